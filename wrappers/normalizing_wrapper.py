"""What the wrappers that normalise by running statistics share."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from legged_envs.wrappers.arrays import Array
from legged_envs.wrappers.base import Episodes, Shape, StatefulWrapper
from legged_envs.wrappers.layers import autoreset_mode
from legged_envs.wrappers.normalizer import Normalizer

Normalizers: TypeAlias = "Normalizer | dict[str, Normalizers]"
"""A :class:`~legged_envs.wrappers.normalizer.Normalizer` or a (nested) dict of them."""


class NormalizingWrapper(StatefulWrapper):
    """A wrapper with running statistics that can be frozen, saved and loaded.

    What an environment does between the end of its episode and its reset belongs to no episode and enters no
    statistics: without autoreset until the reset, with autoreset in the next step on the step that resets.
    """

    saved_as: ClassVar[str]
    """The key of this wrapper's normalizers in :meth:`save`."""

    normalizer: Normalizers
    """The running statistics."""

    STATE: ClassVar[dict[str, Shape | None]] = {"over": ("num_envs",), "normalizer": None, "frozen": None}

    def __init__(self, env: Any):
        super().__init__(env)
        self.frozen = False
        """Whether the statistics stay as they are."""
        self._over = Episodes(autoreset_mode(self.env))

    def freeze(self) -> None:
        """Go on with the statistics as they are."""
        self.frozen = True

    def train(self) -> None:
        """Update the statistics on every step, as a new wrapper does."""
        self.frozen = False

    def end_episodes(self, mask: Array) -> None:
        """Count nothing of the rows of ``mask`` until their reset. Shape: (num_envs,), bool."""
        self._over.end(mask)
