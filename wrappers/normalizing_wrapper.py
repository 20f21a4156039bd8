"""What the wrappers that normalise by running statistics share."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

from gymnasium.vector import AutoresetMode, VectorEnv

from legged_envs.wrappers.array_kinds import any_row, like, to_numpy
from legged_envs.wrappers.base import StatefulWrapper, autoreset_mode, reset_mask

Normalizers = Any
"""A :class:`~legged_envs.wrappers.normalizer.Normalizer` or a (nested) dict of them."""


def map_tree(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Call a function with the leaves of nested dicts that have the same keys; returns a dict like the first."""
    if isinstance(tree, dict):
        return {key: map_tree(function, tree[key], *(other[key] for other in others)) for key in tree}
    return function(tree, *others)


class NormalizingWrapper(StatefulWrapper):
    """A wrapper with running statistics that can be frozen, saved and loaded.

    What an environment does between the end of its episode and its reset belongs to no episode and enters no
    statistics: without autoreset until the reset, with autoreset in the next step on the step that resets.
    """

    saved_as: ClassVar[str]
    """The key of this wrapper's normalizers in :meth:`save`."""

    normalizer: Normalizers
    """The running statistics."""

    def __init__(self, env: VectorEnv):
        super().__init__(env)
        self.frozen = False
        """Whether the statistics stay as they are."""
        self._mode = autoreset_mode(env)
        self._over: Any = None  # (num_envs,) bool: whose episode is over; None if nobody's is

    def freeze(self) -> None:
        """Go on with the statistics as they are."""
        self.frozen = True

    def train(self) -> None:
        """Update the statistics on every step, as a new wrapper does."""
        self.frozen = False

    def end_episodes(self, mask: Any) -> None:
        """Count nothing of the rows of ``mask`` until their reset. Shape: (num_envs,), bool."""
        self._over = copy.deepcopy(mask) if self._over is None else like(self._over, mask) | mask

    def _begin_episodes(self, options: dict[str, Any] | None) -> Any:
        """Note what a reset with these options has reset; returns the mask, None for everything."""
        mask = reset_mask(options)
        if mask is None:
            self._over = None
        elif self._over is not None:
            over = like(self._over, mask) & ~mask
            self._over = over if any_row(over) else None
        return mask

    def _counted(self, kind: Any) -> Any:
        """Which rows enter the statistics, as an array of the kind of ``kind``; None for all. Shape: (num_envs,)."""
        return None if self._over is None else ~like(self._over, kind)

    def _end_of_step(self, ended: Any) -> None:
        """Note which environments' episodes this step has ended, None if nobody's. Shape: (num_envs,), bool."""
        if self._mode is AutoresetMode.NEXT_STEP:
            self._over = ended
        elif self._mode is AutoresetMode.DISABLED and ended is not None:
            self._over = ended if self._over is None else like(self._over, ended) | ended

    def state_dict(self) -> dict[str, Any]:
        return {
            "normalizer": map_tree(lambda normalizer: normalizer.state_dict(), self.normalizer),
            "frozen": self.frozen,
            "over": None if self._over is None else to_numpy(self._over),
        }

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"over": (self.num_envs,)}

    def _check_state(self, state: dict[str, Any]) -> None:
        super()._check_state(state)
        try:
            self._check_statistics(state)
        except (KeyError, ValueError) as error:
            reason = f"the state has no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{type(self).__name__} needs a state like its own: {reason}") from error

    def _check_statistics(self, state: dict[str, Any]) -> None:
        """Raise a ``KeyError`` or ``ValueError`` if the statistics of a state do not fit."""
        map_tree(lambda normalizer, own: normalizer.check_state(own), self.normalizer, state["normalizer"])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_state(state)
        map_tree(lambda normalizer, own: normalizer.load_state_dict(own), self.normalizer, state["normalizer"])
        self.frozen = state["frozen"]
        self._over = copy.deepcopy(state["over"])
