"""The task that calls the methods of a ``DirectRLEnv``."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector.utils import batch_space, create_empty_array
from torch import Tensor

from legged_envs.compat.adapter import AdapterTask
from legged_envs.envs import Evaluation, Spaces
from legged_envs.envs.arguments import check_same_structure
from legged_envs.envs.task import Action, Observation, Space
from legged_envs.state import Tree, map_tree

METHOD_RESULT = "does not fit the spaces and num_envs: it is {} where {} is expected"
"""Error about the result of a method; the fields are the given and the expected structure."""


class DirectTask(AdapterTask):
    """Calls the methods of a user's ``DirectRLEnv``."""

    def prepare(self) -> None:
        """Make what has the structure of the methods' results, and the spaces."""
        env = self.env
        spaces = self.cfg.own_cfg.spaces()

        self.action_space = spaces.pop("action")
        """Action space of one environment."""
        self.groups: dict[str, Space] = spaces
        """Space of each observation group of one environment."""
        self.zeros = {name: self._zeros(space) for name, space in self.groups.items()}
        """Zeros in the structure of each observation group, for all environments."""
        self.zero_action = self._zeros(self.action_space)
        """Zeros in the structure of the actions, for all environments."""
        self.shown_names = [*self.groups] if env.shows_groups else ["policy"]
        """Names of the observation groups that the environment shows."""
        self.observation: dict[str, Observation] = {}
        """Observation groups that the methods returned last."""
        self.returned_costs: dict[str, Tensor] = {}
        """Costs that ``_get_costs`` returned last, by name."""
        for name in self.cfg.own_cfg.cost_limits:
            self.returned_costs[name] = torch.zeros(env.num_envs, device=env.device)
        self._action_bounds = _bounds(self.action_space, env.device)

        self.moves_joints = isinstance(
            self.action_space, gym.spaces.Box
        ) and self.action_space.shape == (self.managers.actions.size,)
        """True if the actions are the elements of the action terms."""
        # Constructors of users read the spaces.
        env.single_action_space = self.action_space
        env.action_space = batch_space(self.action_space, env.num_envs)
        env.single_observation_space = gym.spaces.Dict(self.groups)
        env.observation_space = batch_space(env.single_observation_space, env.num_envs)

    def _zeros(self, space: Space) -> Tree:
        arrays = create_empty_array(space, self.env.num_envs, np.zeros)
        return map_tree(lambda array: torch.from_numpy(array).to(self.env.device), arrays)

    def batched_space(self, group: str) -> Space | None:
        """Return the space of an observation group of all environments; None without the group."""
        if group not in self.groups:
            return None
        return batch_space(self.groups[group], self.env.num_envs)

    def build_evaluation(self) -> Spaces:
        # These are terms only where ``cfg.terms`` has them; the methods do the rest.
        super().build_evaluation()
        return Spaces(observations=self.groups, action=self.action_space)

    @property
    def actions_are_targets(self) -> bool:  # type: ignore[override]
        writes = self.user.writes
        return self.moves_joints and not writes("_pre_physics_step") and not writes("_apply_action")

    def act(self, action: Action) -> None:
        user = self.user
        env = self.env
        action = _clamp(action, self._action_bounds)
        action = user.noisy("action", action)
        if self.moves_joints:
            user.joint_targets = self.managers.actions.process(action)
        user._pre_physics_step(self.by_agent(action))
        # A method that is not written sets the same targets before every physics step: once is
        # enough.
        decimation = env.cfg.sim.decimation
        steps = 1 if user.writes("_apply_action") else decimation
        for _ in range(decimation // steps):
            user._apply_action()
            env.sim.step(steps)
            user.scene.update(env.cfg.sim.dt * steps)

    def by_agent(self, action: Action) -> Action:
        """Return an action as the methods of the user's object take it."""
        return action

    def evaluate(self) -> Evaluation:
        user = self.user
        managers = self.managers
        recovered = self.env.recovered
        # Sensors forget what they measured of the diverged state.
        if recovered is not None:
            user.scene.reset(recovered.nonzero().squeeze(1))
        user.common_step_counter += 1
        for robot in self.env.robots.values():
            robot.compute()
        if "terminations" in self.cfg.own_cfg.terms:
            # Terms of the user's own: his methods may read their results.
            managers.terminations.compute()
            self.evaluate_dones()
        else:
            self.evaluate_dones()
            managers.terminations.compute()
        managers.rewards.compute()
        self.evaluate_rewards()
        self.evaluate_costs()
        managers.costs.compute()
        managers.costs.check_values(recovered)
        self.check_numbers("_get_rewards", "rewards", user.reward_buf)
        terminated = user.reset_terminated
        truncated = user.reset_time_outs
        if self.cfg.is_finite_horizon:
            terminated = user.reset_buf
            # With a finite horizon the end of the time is a part of the task: nothing is cut off.
            truncated = torch.zeros_like(truncated)
        return Evaluation(
            terminated=terminated,
            reward=user.reward_buf,
            cost=managers.costs.total,
            costs=managers.costs.values,
            truncated=truncated,
        )

    def call(self, method: str, expected: object) -> Any:
        """Call a method of the user's object and check the structure of its result.

        Args:
            method: Name of the method.
            expected: Tree of tensors with the expected shapes and dtypes; None fits anything.

        Raises:
            ValueError: If structure, shapes or dtypes are not as expected.
        """
        value = getattr(self.user, method)()
        where = f"what {type(self.user).__name__}.{method} returns"
        check_same_structure(() if value is None else value, expected, where, METHOD_RESULT)
        return value

    def evaluate_dones(self) -> None:
        """Call ``_get_dones`` and keep its flags."""
        user = self.user
        # Only shape and dtype of the flags are compared, so that their device does not matter.
        flags = torch.zeros(self.env.num_envs, dtype=torch.bool)
        terminated, time_outs = self.call("_get_dones", (flags, flags))
        user.reset_terminated = terminated
        user.reset_time_outs = time_outs
        user.reset_buf = terminated | time_outs

    def evaluate_rewards(self) -> None:
        """Call ``_get_rewards`` and keep the rewards."""
        self.user.reward_buf = self.call("_get_rewards", torch.zeros(self.env.num_envs))

    def evaluate_costs(self) -> None:
        """Call ``_get_costs`` and keep the costs."""
        self.returned_costs = dict(self.call("_get_costs", self.returned_costs))

    def observe_all(self) -> None:
        """Call ``_get_observations`` and ``_get_states`` and keep the groups."""
        writes_states = self.user.writes("_get_states")
        expected = dict(self.zeros)
        if writes_states:
            state = expected.pop("critic", None)
        self.observation.update(self.call("_get_observations", expected))
        if writes_states and "critic" in self.shown_names:
            self.observation["critic"] = self.call("_get_states", state)

    def observe(self, env_ids: Tensor | None) -> dict[str, Observation]:
        take: Callable[[Tensor], Tensor]
        if env_ids is None:
            for group in self.managers.shown_groups:
                group.draw()
                group.compute()
            self.observe_all()
            take = torch.clone  # the method may return a buffer that it changes in the next step
        else:
            self.observe_first(env_ids, self.observe_all)
            take = partial(torch.index_select, dim=0, index=env_ids)
        shown = {name: map_tree(take, self.observation[name]) for name in self.shown_names}
        shown["policy"] = self.user.noisy("observation", shown["policy"], env_ids)
        map_tree(partial(self.check_numbers, "_get_observations", "observations"), shown)
        return shown

    def choose_start(self, env_ids: Tensor) -> None:
        # The user's method comes last: it writes the poses, and may read the new commands.
        self.managers.commands.reset(env_ids)
        self.user.scene.reset(env_ids)
        self.user._reset_idx(env_ids)


def _bounds(space: Space, device: torch.device) -> Tree:
    """Return the bounds of each box, in the structure of ``space``; None for discrete spaces."""
    if isinstance(space, gym.spaces.Box):
        return [torch.from_numpy(space.low).to(device), torch.from_numpy(space.high).to(device)]
    if isinstance(space, gym.spaces.Dict):
        return {key: _bounds(part, device) for key, part in space.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(_bounds(part, device) for part in space)
    return None


def _clamp(action: Action, bounds: Tree) -> Action:
    """Return actions clipped to the bounds of :func:`_bounds`."""
    if isinstance(bounds, dict):
        return {key: _clamp(action[key], part) for key, part in bounds.items()}
    if isinstance(bounds, tuple):
        return tuple(_clamp(part, bound) for part, bound in zip(action, bounds, strict=True))
    if bounds is None:
        return action
    low, high = bounds
    return action.clamp(low, high)
