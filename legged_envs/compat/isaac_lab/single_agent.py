"""Isaac Lab's views of an environment of several agents as one of a single agent."""

from typing import Any, cast

import gymnasium as gym

from legged_envs.compat.isaac_lab.multi_agent import ByAgent, DirectMARLEnv
from legged_envs.envs.task import Action, Info, Space
from legged_envs.state import Tree


class SingleAgentEnv:
    """Several agents as one agent of the direct workflow.

    The observation, under ``"policy"``, concatenates all agents, or is the state. The action
    consists of all actions; the reward is the sum of all rewards.

    Args:
        env: The environment of several agents.
        state_as_observation: True to observe the state.

    Raises:
        ValueError: If the state is to be observed and there is none.
    """

    AGENT = "policy"
    """Key of the observation."""

    def __init__(self, env: DirectMARLEnv, state_as_observation: bool = False):
        if state_as_observation and env.state_space is None:
            raise ValueError(
                f"{type(env).__name__} has no state to observe: its cfg.state_space is 0"
            )
        self.env = env
        """The environment of several agents."""
        self._group = "critic" if state_as_observation else "policy"

        self.single_observation_space = gym.spaces.Dict(
            {self.AGENT: env.adapter.groups[self._group]}
        )
        """Observation space of one environment."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, **options: Any) -> tuple[ByAgent, Info]:
        """Begin episodes: see :meth:`IsaacEnv.reset`."""
        observation, info = self.env.stack.reset(**options)
        groups = cast("dict[str, Tree]", observation)
        return {self.AGENT: groups[self._group]}, info

    def step(self, action: Action) -> Any:
        """Advance by one control step.

        Returns:
            The observation, and reward, terminated, truncated, (num_envs,), and ``info``.
        """
        observation, reward, terminated, truncated, info = self.env.stack.step(action)
        groups = cast("dict[str, Tree]", observation)
        return {self.AGENT: groups[self._group]}, reward, terminated, truncated, info


class OneAgentEnv(SingleAgentEnv):
    """Several agents as a multi-agent environment with the one agent ``"single-agent"``."""

    AGENT = "single-agent"

    def __init__(self, env: DirectMARLEnv, state_as_observation: bool = False):
        super().__init__(env, state_as_observation)
        self.possible_agents = [self.AGENT]
        """Names of the agents."""
        self.agents = [self.AGENT]
        """Names of the agents that act."""
        self.num_agents = 1
        """Number of agents that act."""
        self.max_num_agents = 1
        """Number of agents."""
        space = env.adapter.groups[self._group]

        self.observation_spaces: dict[str, Space] = {self.AGENT: space}
        """Observation space of each agent in one environment."""
        self.action_spaces: dict[str, Space] = {self.AGENT: env.adapter.action_space}
        """Action space of each agent in one environment."""

    def observation_space(self, agent: str) -> Space:
        """Return the observation space of an agent in one environment."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Space:
        """Return the action space of an agent in one environment."""
        return self.action_spaces[agent]

    def step(self, actions: ByAgent) -> Any:
        """Advance by one control step; returns five dicts, as :meth:`DirectMARLEnv.step`."""
        observation, reward, terminated, truncated, info = super().step(actions[self.AGENT])
        return (
            observation,
            {self.AGENT: reward},
            {self.AGENT: terminated},
            {self.AGENT: truncated},
            info,
        )


multi_agent_to_single_agent = SingleAgentEnv
"""Isaac Lab's name of :class:`SingleAgentEnv`."""
multi_agent_with_one_agent = OneAgentEnv
"""Isaac Lab's name of :class:`OneAgentEnv`."""
