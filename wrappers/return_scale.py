"""How rewards and costs are scaled by running statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged_envs.wrappers.arrays import Array, accumulate, blank_rows, copied, detached, float64, like, to_numpy
from legged_envs.wrappers.base import Episodes
from legged_envs.wrappers.normalizer import Normalizer

SCALES = ("return", "step")


class ReturnScale:
    """Scales a stream of rewards or costs, one kind of them, by statistics over all environments.

    ``scale="return"`` divides by the standard deviation of the discounted return G ← γ G + x, which begins at 0 with
    every episode, as Gymnasium's ``NormalizeReward`` does: signs and ratios stay. ``scale="step"`` takes off the mean
    of x and divides by its standard deviation, as OmniSafe does. The step's own values enter the statistics first.

    Args:
        normalizer: The statistics, of G or of x. Its shape is that of one environment's x.
        num_envs: Number of environments.
        scale: ``"return"`` or ``"step"``.
        gamma: Discount factor γ of the return.

    Raises:
        ValueError: If ``scale`` is another one, or ``gamma`` not in [0, 1].
    """

    def __init__(self, normalizer: Normalizer, num_envs: int, scale: str, gamma: float):
        if scale not in SCALES:
            raise ValueError(f"scale must be one of {SCALES}, got {scale!r}")
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must be in [0, 1], got {gamma!r}")
        self.normalizer = normalizer
        self.num_envs = num_envs
        self.scale = scale
        self.gamma = gamma
        self.returns: Any = None
        """Discounted return G of each environment's present episode, float64. Shape: (num_envs, ``*shape``)."""

    def begin_episodes(self, begun: Array) -> None:
        """Returns begin at 0 in the rows of a mask. Shape: (num_envs,), bool."""
        if self.returns is not None:
            self.returns = blank_rows(begun, like(self.returns, begun))

    def __call__(self, values: Array, ended: Array, some_ended: bool, episodes: Episodes, frozen: bool) -> Array:
        """The values of a step, scaled.

        Args:
            values: Rewards or costs. Shape: (num_envs, ``*shape``).
            ended: Whose episode this step ended. Shape: (num_envs,), bool.
            some_ended: Whether it ended any.
            episodes: Whose step belongs to an episode. The others enter no statistics, and standardised they are 0:
                taking the mean off the 0 of a step that only resets would give them a reward.
            frozen: Whether the statistics stay as they are.
        """
        counted = episodes.running(values) if episodes.some_over else None
        if self.scale == "step":
            if not frozen:
                self.normalizer.push(values, counted)
            scaled = self.normalizer.normalize(values)
            return blank_rows(~counted, scaled) if counted is not None else scaled
        if self.returns is None:
            returns = float64(detached(values))
        else:
            returns = accumulate(like(self.returns, values) * self.gamma, values)
        if not frozen:
            self.normalizer.push(returns, counted)
        if some_ended:
            returns = blank_rows(ended, returns)
        self.returns = blank_rows(~counted, returns) if counted is not None else returns
        return self.normalizer.scale(values)

    def state_dict(self) -> dict[str, Any]:
        """The returns and what they are scaled by."""
        return {"scale": self.scale, "returns": None if self.returns is None else to_numpy(self.returns)}

    def check_state(self, state: dict[str, Any]) -> None:
        """Whether a state fits.

        Raises:
            ValueError: If it is of the other scale or of another number of environments or costs.
        """
        if state["scale"] != self.scale:
            raise ValueError(f"the state is of scale={state['scale']!r}, not of scale={self.scale!r}")
        expected = (self.num_envs, *self.normalizer.shape)
        if state["returns"] is not None and np.shape(state["returns"]) != expected:
            raise ValueError(f"the state has returns of shape {np.shape(state['returns'])}, not {expected}")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`state_dict` that has passed :meth:`check_state`."""
        self.returns = None if state["returns"] is None else copied(state["returns"])
