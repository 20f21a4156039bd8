"""The wrapper that scales rewards by running statistics."""

from legged_envs.wrappers.plumbing.arrays import Tree, union_rows
from legged_envs.wrappers.plumbing.device import Device, split_device
from legged_envs.wrappers.plumbing.layers import AnyEnv, Step
from legged_envs.wrappers.plumbing.normalizer import Normalizer, check_normalizer
from legged_envs.wrappers.plumbing.normalizing import NormalizingWrapper
from legged_envs.wrappers.plumbing.return_scale import ReturnScale


class RewardNormalize(NormalizingWrapper):
    """Divides rewards by the standard deviation of the discounted return, and clips them.

    ``info["original_reward"]`` is the reward of the layer below. The step of an autoreset in the
    next step has reward 0 and enters no statistics.

    With ``scale="step"`` the reward of each step is standardized instead, ``(r - mean) / std``, as
    OmniSafe does. Standardizing changes the signs of rewards, and with the signs the value of a
    long episode.

    Args:
        env: The environment.
        norm_or_device: ``norm``, or the device in OmniSafe's order
            ``RewardNormalize(env, device, norm)``.
        norm: Statistics to continue, as :meth:`save` returns them: a ``Normalizer`` of shape (), of
            the return, or of the reward with ``scale="step"``. The normalizer is used, not copied.
            None: a new one.
        scale: ``"return"`` or ``"step"``.
        gamma: Discount of the return.
        clip: Bound of the scaled rewards. None: the value of ``norm``, or 5.
        device: Device on which the environment's arrays must be. None: any device.

    Raises:
        TypeError: ``norm`` is something else.
        ValueError: ``norm`` is of another shape.

    Examples:
        >>> import gymnasium as gym, numpy as np
        >>> env = gym.make_vec("Pendulum-v1", num_envs=8, vectorization_mode="sync")
        >>> def rewards(env):
        ...     env.reset(seed=0)
        ...     return np.array([env.step(np.zeros((8, 1), np.float32))[1] for _ in range(100)])
        >>> raw = rewards(env)
        >>> scaled = rewards(RewardNormalize(env))
        >>> bool(raw.min() < -10.0), bool(scaled[50:].min() > -1.0)
        (True, True)
        >>> bool(((scaled < 0.0) == (raw < 0.0)).all())
        True
    """

    saved_as = "reward_normalizer"
    normalizer: Normalizer

    def __init__(
        self,
        env: AnyEnv,
        norm_or_device: Normalizer | Device | None = None,
        /,
        norm: Normalizer | None = None,
        *,
        scale: str = "return",
        gamma: float = 0.99,
        clip: float | None = None,
        device: Device | None = None,
    ):
        first, device = split_device("RewardNormalize", norm_or_device, device)
        if first is not None:
            if norm is not None:
                raise TypeError(f"RewardNormalize takes one norm, got {first!r} and {norm!r}")
            norm = first
        super().__init__(env, device)
        self.normalizer = check_normalizer("RewardNormalize", norm, (), clip)
        self._scales["reward"] = ReturnScale(self.normalizer, self.num_envs, scale, gamma)

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        ended = union_rows(terminated, truncated)
        # Scaled before the ends are noted, so that the last reward of an episode counts.
        scaled = self._scales["reward"](reward, ended, self._over, self.frozen)
        self._over.step(ended)
        info = {**info, "original_reward": reward}
        return observation, scaled, terminated, truncated, info
