"""The scaling of rewards and costs by running statistics."""

import numpy as np

from legged_envs.checks import check_choice, check_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array
from legged_envs.wrappers.plumbing.episodes import Episodes
from legged_envs.wrappers.plumbing.layers import State
from legged_envs.wrappers.plumbing.normalizer import Normalizer


class ReturnScale:
    """Scales a stream of rewards, or of one kind of costs, by statistics over all environments.

    ``scale="return"`` divides the value x of a step by the standard deviation of the discounted
    return G ← γ G + x, which starts at 0 with every episode, as Gymnasium's ``NormalizeReward``
    does. Signs and ratios stay. ``scale="step"`` subtracts the mean of x and divides by its
    standard deviation, as OmniSafe does. The values of a step enter the statistics before they are
    scaled.

    Args:
        normalizer: Statistics of G or of x, with the shape of one environment's x.
        num_envs: Number of environments.
        scale: ``"return"`` or ``"step"``.
        gamma: Discount γ of the return.

    Raises:
        ValueError: ``scale`` is something else, or ``gamma`` is not in [0, 1].
    """

    def __init__(self, normalizer: Normalizer, num_envs: int, scale: str, gamma: float):
        check_choice("scale", scale, ("return", "step"))
        check_number("gamma", gamma, 0.0, 1.0)
        self.normalizer = normalizer
        """Statistics of G or of x."""
        self.num_envs = num_envs
        """Number of environments."""
        self.scale = scale
        """``"return"`` or ``"step"``."""
        self.gamma = gamma
        """Discount γ of the return."""
        self.returns: Array | None = None
        """Discounted return G of each environment's episode so far, float64. None before a step.

        Shape: (num_envs, ``*normalizer.shape``).
        """

    def begin_episodes(self, begun: Array) -> None:
        """Set the returns of a mask (num_envs,) to 0."""
        if self.returns is not None:
            self.returns = arrays.blank_rows(begun, arrays.as_kind_of(self.returns, begun))

    def __call__(
        self, values: Array, ended: Array | None, episodes: Episodes, frozen: bool
    ) -> Array:
        """Scale the rewards or costs of a step.

        Args:
            values: Rewards or costs. Shape: (num_envs, ``*normalizer.shape``).
            ended: Environments with an episode that this step ended. Shape: (num_envs,), bool.
                None: none.
            episodes: Environments without a running episode, which enter no statistics and have the
                standardized value 0, because a reset earns nothing.
            frozen: True leaves the statistics as they are.

        Returns:
            The scaled values, clipped. Shape: the shape of ``values``.
        """
        counted = episodes.running(values) if episodes.some_over else None
        if self.scale == "step":
            if not frozen:
                self.normalizer.push(values, counted)
            scaled = self.normalizer.normalize(values)
            return scaled if counted is None else arrays.blank_rows(~counted, scaled)
        discounted = None if self.returns is None else self.returns * self.gamma
        returns = arrays.accumulate(discounted, values)
        if not frozen:
            self.normalizer.push(returns, counted)
        # The return enters the statistics before it is set to 0 at the end of the episode.
        if ended is not None:
            returns = arrays.blank_rows(ended, returns)
        if counted is not None:
            returns = arrays.blank_rows(~counted, returns)
        self.returns = returns
        return self.normalizer.scale(values)

    def state_dict(self) -> State:
        """Return the kind of scale and a copy of the returns."""
        return {"scale": self.scale, "returns": arrays.map_arrays(arrays.copied, self.returns)}

    def check_state(self, state: State) -> None:
        """Check that a saved state can be loaded into this object.

        Args:
            state: Result of an earlier ``state_dict``.

        Raises:
            ValueError: The state has another ``scale`` or another number of environments.
        """
        if state["scale"] != self.scale:
            raise ValueError(
                f"the state has scale={state['scale']!r}, but the wrapper has scale={self.scale!r}"
            )
        if state["returns"] is None:
            return
        expected = (self.num_envs, *self.normalizer.shape)
        given = np.shape(state["returns"])
        if given != expected:
            raise ValueError(f"the state has returns of shape {given}, not {expected}")
        returns = arrays.as_numpy(state["returns"])
        if returns.dtype.kind != "f" or not np.isfinite(returns).all():
            raise ValueError("the returns of the state must be finite floats")

    def load_state_dict(self, state: State) -> None:
        """Return to a state from :meth:`state_dict`."""
        self.returns = arrays.map_arrays(arrays.copied, state["returns"])
