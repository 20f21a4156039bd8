"""The cost as a return value of ``step``, for code written for Safety-Gymnasium's six values."""

from typing import Any, TypeAlias

from array_api_compat import array_namespace
from gymnasium.vector import VectorEnv

from legged_envs.wrappers.from_cmdp import FINAL_NAMES
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.device import Device
from legged_envs.wrappers.plumbing.layers import Env, SingleEnv, SingleWrapper, name_of

SixValues: TypeAlias = tuple[Tree, Array, Array, Array, Array, Info]
"""Observation, reward, cost, terminated, truncated and info."""


class VectorCMDP(StatefulWrapper):
    """A vector environment with the cost as a return value of ``step``; goes outermost.

    The cost belongs to the transition of its step, also in environments with an episode that the
    step ended. In mode SAME_STEP the true last observations are ``info["final_observation"]``,
    marked by ``info["_final_observation"]``: Safety-Gymnasium's names of ``final_obs`` and
    ``_final_obs``.

    Args:
        env: A vector environment that reports ``info["cost"]``.
        device: Device on which the environment's arrays must be. None: any device.

    Raises:
        TypeError: ``env`` is not a vector environment.

    Examples:
        >>> import gymnasium as gym, legged_envs
        >>> env = gym.make_vec("Legged/Go2-Flat-v0", num_envs=2)
        >>> _ = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        >>> env = VectorCMDP(env)
        >>> _ = env.reset(seed=0)
        >>> observation, reward, cost, terminated, truncated, info = env.step(
        ...     env.action_space.sample()
        ... )
        >>> cost.shape
        (2,)
    """

    outermost = True
    STATE = {"reports_costs": None}  # noqa: RUF012

    def __init__(self, env: Env, device: Device | None = None):
        if not isinstance(env, VectorEnv):
            raise TypeError(
                f"VectorCMDP needs a VectorEnv, got {type(env).__name__}. "
                "For a plain gymnasium.Env use CMDP."
            )
        super().__init__(env, device)
        self._reports_costs = False

    def step(self, actions: Tree) -> SixValues:  # type: ignore[override]
        """Step the environments.

        Returns:
            Observation, reward, cost, terminated, truncated and info. Shape of the cost:
            (num_envs,).

        Raises:
            ValueError: The environment has never reported a cost.
        """
        observation, reward, terminated, truncated, info = self.env.step(actions)
        cost = info.get("cost")
        if cost is None:
            if not self._reports_costs:
                raise _no_cost(self)
            # Gymnasium leaves the key out of a step in which all environments only reset.
            cost = array_namespace(reward).zeros_like(reward)
        self._reports_costs = True
        renamed = {FINAL_NAMES.get(key, key): value for key, value in info.items()}
        return observation, reward, cost, terminated, truncated, renamed


class CMDP(SingleWrapper):
    """A plain ``gymnasium.Env`` with the cost as a return value of ``step``; goes outermost.

    The wrapped environment reports ``info["cost"]``.

    Examples:
        >>> import gymnasium as gym, legged_envs
        >>> env = gym.make("Legged/Go2-Flat-v0")
        >>> _ = env.reset(seed=0)
        >>> len(env.step(env.action_space.sample()))
        5
        >>> env = CMDP(env)
        >>> _ = env.reset(seed=0)
        >>> observation, reward, cost, terminated, truncated, info = env.step(
        ...     env.action_space.sample()
        ... )
        >>> cost == info["cost"]
        True
    """

    outermost = True

    def step(  # type: ignore[override]
        self, action: Any
    ) -> tuple[Any, Any, float, bool, bool, Info]:
        """Step the environment.

        Returns:
            Observation, reward, cost, terminated, truncated and info.

        Raises:
            ValueError: The environment reports no cost.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        if "cost" not in info:
            raise _no_cost(self)
        cost = float(info["cost"])
        return observation, reward, cost, terminated, truncated, info


def _no_cost(wrapper: Env | SingleEnv) -> ValueError:
    return ValueError(
        f"{name_of(wrapper)} reports no info['cost'], so there is no cost to return. "
        "The environments of legged_envs report one: "
        "gymnasium.make_vec('Legged/Go2-Flat-v0', num_envs=…). "
        "For other environments, add a wrapper that writes info['cost'] below this wrapper: "
        "CostReduce, if they report info['costs']."
    )
