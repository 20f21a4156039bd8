"""How rewards and costs are scaled by running statistics."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from legged_envs.wrappers.array_kinds import accumulate, detached, float64, like, to_numpy
from legged_envs.wrappers.normalizer import Normalizer
from legged_envs.wrappers.rows import blank_rows

SCALES = ("return", "step")


class ReturnScale:
    """Scales a stream of rewards or costs, one kind of them, by statistics over all environments.

    ``scale="return"`` divides by the standard deviation of the discounted return G ← γ G + x, which begins at 0 with
    every episode, as Gymnasium's ``NormalizeReward`` does: signs and ratios stay. ``scale="step"`` takes off the mean
    of x and divides by its standard deviation, as OmniSafe does. The step's own values enter the statistics first.

    Args:
        normalizer: The statistics, of G or of x. Its shape is that of one environment's x.
        scale: ``"return"`` or ``"step"``.
        gamma: Discount factor γ of the return.

    Raises:
        ValueError: If ``scale`` is another one, or ``gamma`` not in [0, 1].
    """

    def __init__(self, normalizer: Normalizer, scale: str, gamma: float):
        if scale not in SCALES:
            raise ValueError(f"scale must be one of {SCALES}, got {scale!r}")
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma must be in [0, 1], got {gamma!r}")
        self.normalizer = normalizer
        self.scale = scale
        self.gamma = gamma
        self.returns: Any = None
        """Discounted return G of each environment's present episode, float64. Shape: (num_envs, ``*shape``)."""

    def begin_episodes(self, mask: Any) -> None:
        """Returns begin at 0 in the rows of a mask, None for all. Shape: (num_envs,), bool."""
        if self.returns is not None:
            self.returns = None if mask is None else blank_rows(mask, like(self.returns, mask))

    def __call__(self, values: Any, ended: Any, counted: Any, frozen: bool) -> Any:
        """The values of a step, scaled.

        Args:
            values: Rewards or costs. Shape: (num_envs, ``*shape``).
            ended: Whose episode this step ended, None for nobody's. Shape: (num_envs,), bool.
            counted: Whose step belongs to an episode, None for all. The others enter no statistics, and standardised
                they are 0: taking the mean off the 0 of a step that only resets would give them a reward.
                Shape: (num_envs,), bool.
            frozen: Whether the statistics stay as they are.
        """
        if self.scale == "step":
            if not frozen:
                self.normalizer.push(values, counted)
            scaled = self.normalizer.normalize(values)
            return scaled if counted is None else blank_rows(~counted, scaled)
        if self.returns is None:
            returns = float64(detached(values))
        else:
            returns = accumulate(like(self.returns, values) * self.gamma, values)
        if not frozen:
            self.normalizer.push(returns, counted)
        if ended is not None:
            returns = blank_rows(ended, returns)
        self.returns = returns if counted is None else blank_rows(~counted, returns)
        return self.normalizer.scale(values)

    def state_dict(self) -> dict[str, Any]:
        """The returns and what they are scaled by."""
        return {"scale": self.scale, "returns": None if self.returns is None else to_numpy(self.returns)}

    def check_state(self, state: dict[str, Any], num_envs: int) -> None:
        """Whether a state fits.

        Raises:
            ValueError: If it is of the other scale or of another number of environments or costs.
        """
        if state["scale"] != self.scale:
            raise ValueError(f"the state is of scale={state['scale']!r}, not of scale={self.scale!r}")
        expected = (num_envs, *self.normalizer.shape)
        if state["returns"] is not None and np.shape(state["returns"]) != expected:
            raise ValueError(f"the state has returns of shape {np.shape(state['returns'])}, not {expected}")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`state_dict` that has passed :meth:`check_state`."""
        self.returns = copy.deepcopy(state["returns"])
