"""Small environments with known numbers, for the tests of the wrappers."""

from __future__ import annotations

import copy
from typing import Any

import array_api_strict
import gymnasium as gym
import numpy as np
import torch
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

ARRAYS = ("numpy", "torch", "strict")
NUM_ACTIONS = 2
OBSERVATION = Box(-1000.0, 1000.0, (5,))
GROUPED_OBSERVATION = Dict(
    {"critic": Box(-1000.0, 1000.0, (5,)), "policy": Box(-1000.0, 1000.0, (2,))}
)


def convert(tree: Any, array: str) -> Any:
    """NumPy arrays as copies of another kind."""
    if isinstance(tree, dict):
        return {key: convert(value, array) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(convert(value, array) for value in tree)
    if not isinstance(tree, np.ndarray) or tree.dtype == object:
        return tree
    if array == "strict":
        return array_api_strict.asarray(tree.copy())
    return torch.from_numpy(tree.copy()) if array == "torch" else tree.copy()


class ToyVectorEnv(VectorEnv):
    """A deterministic batch that never resets by itself, of any kind of arrays.

    Row i is environment ``first + i``, whose e-th episode lasts ``lengths[(first + i + e) % len(lengths)]`` steps and
    terminates if first + i + e is even, else is truncated. Its observation is (environment, e, steps taken, the last
    action), its reward and its costs are functions of these. Rows whose episode has ended go on.

    Args:
        num_envs: Number of rows.
        array: One of ``ARRAYS``; actions and masks of another kind are refused.
        grouped: Observations are a dict.
        costs: ``info`` has ``cost`` and two ``costs``.
        lengths: Lengths of episodes, in turn.
        first: Which environment row 0 is.
    """

    def __init__(
        self,
        num_envs: int = 3,
        array: str = "numpy",
        *,
        grouped: bool = False,
        costs: bool = True,
        lengths: tuple[int, ...] = (3, 6, 2, 5),
        first: int = 0,
        render_mode: str | None = None,
    ):
        self.num_envs, self.array, self.grouped, self.costs, self.lengths = (
            num_envs,
            array,
            grouped,
            costs,
            lengths,
        )
        self.metadata = {
            "autoreset_mode": AutoresetMode.DISABLED,
            "render_modes": ["rgb_array"],
            "render_fps": 20,
        }
        self.render_mode = render_mode
        self.single_observation_space = GROUPED_OBSERVATION if grouped else OBSERVATION
        self.single_action_space = Box(-1.0, np.array([1.0, 3.0], np.float32))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        if costs:
            self.cost_names, self.cost_limits = ("odd", "late"), (0.5, 0.25)
        self.ids = first + np.arange(num_envs)
        self.episodes = np.full(num_envs, -1)
        self.times = np.zeros(num_envs, int)
        self.last_actions = np.zeros((num_envs, NUM_ACTIONS), np.float32)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = np.ones(self.num_envs, bool)
        if options is not None:
            mask = self._taken(options["reset_mask"])
            assert mask.dtype == bool and mask.shape == (self.num_envs,)
        elif seed is not None:
            self.episodes[:] = -1
        self.episodes[mask] += 1
        self.times[mask] = 0
        self.last_actions[mask] = 0.0
        return convert(self._observe(), self.array), convert(
            {"begun": mask, "count": self.episodes + 1}, self.array
        )

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        actions = self._taken(actions)
        assert actions.dtype == np.float32 and actions.shape == (self.num_envs, NUM_ACTIONS)
        self.times += 1
        self.last_actions[:] = actions
        turn = self.ids + self.episodes
        over = self.times >= np.array(self.lengths)[turn % len(self.lengths)]
        even = turn % 2 == 0
        reward = (self.ids + 0.25 * self.times + actions[:, 0]).astype(np.float32)
        info = {"time": self.times}
        if self.costs:
            costs = np.stack((self.times % 2, 0.5 * (self.times > 2)), axis=1).astype(np.float32)
            info |= {"cost": costs.sum(1), "costs": costs}
        return convert((self._observe(), reward, over & even, over & ~even, info), self.array)

    def render(self) -> tuple[np.ndarray, ...]:
        return tuple(np.full((16, 16, 3), 10 * time, np.uint8) for time in self.times)

    def get_state(self) -> dict[str, Any]:
        return copy.deepcopy(
            {name: getattr(self, name) for name in ("episodes", "times", "last_actions")}
        )

    def set_state(self, state: dict[str, Any]) -> None:
        vars(self).update(copy.deepcopy(state))

    def _observe(self) -> Any:
        columns = (self.ids, self.episodes, self.times, *self.last_actions.T)
        observation = np.stack(columns, axis=1).astype(np.float32)
        return (
            {"critic": observation, "policy": observation[:, :2].copy()}
            if self.grouped
            else observation
        )

    def _taken(self, array: Any) -> np.ndarray:
        kind = {
            "numpy": np.ndarray,
            "torch": torch.Tensor,
            "strict": array_api_strict.asarray(0).__class__,
        }[self.array]
        if not isinstance(array, kind):
            raise TypeError(f"this environment takes {self.array} arrays, got {type(array)}")
        return np.asarray(array).copy()


class ToyEnv(gym.Env):
    """One environment that draws random numbers in every reset and in every step, and reports in both of them.

    A step too many or a reset too many changes all that follows.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012
    action_space = Box(-1.0, np.array([1.0, 3.0], np.float32))
    cost_names, cost_limits = ("odd", "late"), (0.5, 0.25)

    def __init__(self, grouped: bool = False, render_mode: str | None = None):
        self.observation_space = GROUPED_OBSERVATION if grouped else OBSERVATION
        self.grouped = grouped
        self.render_mode = render_mode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.length = int(self.np_random.integers(2, 8))
        self.time = 0
        self.action = np.zeros(NUM_ACTIONS, np.float32)
        return self._observe(), {
            "phase": float(self.np_random.random()),
            "length": self.length,
            "cost": 0.0,
        }

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        self.action = np.array(action)
        over = self.time >= self.length
        costs = np.array([self.time % 2, 0.5 * (self.time > 2)], np.float32)
        info = {
            "phase": float(self.np_random.random()),
            "cost": float(costs.sum()),
            "costs": costs,
            "parts": {"time": self.time},
        }
        reward = self.time + float(action[0]) + float(self.np_random.random())
        return (
            self._observe(),
            reward,
            over and self.length % 2 == 0,
            over and self.length % 2 == 1,
            info,
        )

    def render(self) -> np.ndarray:
        return np.full((16, 16, 3), 10 * self.time, np.uint8)

    def get_state(self) -> dict[str, Any]:
        return copy.deepcopy(
            {name: getattr(self, name) for name in ("length", "time", "action", "np_random")}
        )

    def set_state(self, state: dict[str, Any]) -> None:
        for name, value in copy.deepcopy(state).items():
            setattr(self, name, value)

    def _observe(self) -> Any:
        observation = np.array(
            [self.length, self.time, self.np_random.random(), *self.action], np.float32
        )
        return (
            {"critic": observation, "policy": observation[:2].copy()}
            if self.grouped
            else observation
        )


def make_toy_env(
    limit: int | None = None, grouped: bool = False, render_mode: str | None = None
) -> gym.Env:
    """A :class:`ToyEnv`, within Gymnasium's time limit if there is one."""
    env: gym.Env = ToyEnv(grouped, render_mode)
    return env if limit is None else gym.wrappers.TimeLimit(env, limit)
