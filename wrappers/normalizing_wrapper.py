"""What the wrappers that normalise by running statistics share, and how those of rewards and costs scale them."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import numpy as np

from legged_envs.checks import check_choice, check_number
from legged_envs.wrappers import arrays
from legged_envs.wrappers.arrays import Array, Info, Tree
from legged_envs.wrappers.base import Episodes, StatefulWrapper
from legged_envs.wrappers.layers import autoreset_mode
from legged_envs.wrappers.normalizer import Normalizer

Normalizers: TypeAlias = "Normalizer | dict[str, Normalizers]"
"""A :class:`~legged_envs.wrappers.normalizer.Normalizer` or a (nested) dict of them."""


class ReturnScale:
    """Scales a stream of rewards or costs, one kind of them, by statistics over all environments.

    ``scale="return"`` divides by the standard deviation of the discounted return G ← γ G + x, which begins at 0 with
    every episode, as Gymnasium's ``NormalizeReward`` does: signs and ratios stay. ``scale="step"`` takes off the mean
    of x and divides by its standard deviation, as OmniSafe does. The step's own values enter the statistics first.
    The shape of ``normalizer``, the statistics of G or of x, is that of one environment's x.
    """

    def __init__(self, normalizer: Normalizer, num_envs: int, scale: str, gamma: float):
        check_choice("scale", scale, ("return", "step"))
        check_number("gamma", gamma, 0.0, 1.0)
        self.normalizer, self.num_envs, self.scale, self.gamma = normalizer, num_envs, scale, gamma
        self.returns: Any = None
        """Discounted return G of each environment's present episode, float64. Shape: (num_envs, ``*shape``)."""

    def begin_episodes(self, begun: Array) -> None:
        """Returns begin at 0 in the rows of a mask (num_envs,)."""
        if self.returns is not None:
            self.returns = arrays.blank_rows(begun, arrays.as_kind_of(self.returns, begun))

    def __call__(self, values: Array, ended: Array | None, episodes: Episodes, frozen: bool) -> Array:
        """Rewards or costs of a step (num_envs, ``*shape``), scaled; ``frozen`` leaves the statistics as they are.

        Rows without a running episode in ``episodes`` enter no statistics, and standardised they are 0: taking the mean
        off the 0 of a step that only resets would give them a reward. ``ended`` (num_envs,) bool marks the rows whose
        episode this step ended, None stands for no row.
        """
        counted = episodes.running(values) if episodes.some_over else None
        if self.scale == "step":
            if not frozen:
                self.normalizer.push(values, counted)
            scaled = self.normalizer.normalize(values)
            return scaled if counted is None else arrays.blank_rows(~counted, scaled)
        returns = arrays.accumulate(None if self.returns is None else self.returns * self.gamma, values)
        if not frozen:
            self.normalizer.push(returns, counted)
        if ended is not None:
            returns = arrays.blank_rows(ended, returns)
        self.returns = returns if counted is None else arrays.blank_rows(~counted, returns)
        return self.normalizer.scale(values)

    def state_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "returns": arrays.map_arrays(arrays.copied, self.returns)}

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise a ``ValueError`` if a state is of the other scale or of another number of environments or costs."""
        if state["scale"] != self.scale:
            raise ValueError(f"the state is of scale={state['scale']!r}, not of scale={self.scale!r}")
        expected = (self.num_envs, *self.normalizer.shape)
        if state["returns"] is not None and np.shape(state["returns"]) != expected:
            raise ValueError(f"the state has returns of shape {np.shape(state['returns'])}, not {expected}")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.returns = arrays.map_arrays(arrays.copied, state["returns"])


class NormalizingWrapper(StatefulWrapper):
    """A wrapper with running statistics that can be frozen, saved and loaded.

    What an environment does between the end of its episode and its reset belongs to no episode and enters no
    statistics: without autoreset until the reset, with autoreset in the next step on the step that resets.
    """

    saved_as: ClassVar[str]
    """The key of this wrapper's normalizers in :meth:`save`."""
    normalizer: Normalizers
    """The running statistics."""
    STATE = {"over": ("num_envs",), "normalizer": None, "scales": None, "frozen": None}  # noqa: RUF012

    def __init__(self, env: Any):
        super().__init__(env)
        self.frozen = False
        """Whether the statistics stay as they are."""
        self._over = Episodes(autoreset_mode(self.env))
        self._scales: dict[str, ReturnScale] = {}  # kind of reward or cost → what scales it

    def _begin(self, observation: Tree, info: Info, begun: Array, *, partial: bool) -> tuple[Tree, Info]:
        for scale in self._scales.values():
            scale.begin_episodes(begun)
        return observation, info

    def freeze(self) -> None:
        """Go on with the statistics as they are."""
        self.frozen = True

    def train(self) -> None:
        """Update the statistics on every step, as a new wrapper does."""
        self.frozen = False
