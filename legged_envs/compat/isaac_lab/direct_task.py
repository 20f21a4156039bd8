"""The vector environment of direct tasks: it calls their methods."""

from collections.abc import Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector.utils import batch_space, create_empty_array
from torch import Tensor

from legged_envs.compat.isaac_lab.environment import IsaacCore
from legged_envs.envs.arguments import check_same_structure
from legged_envs.envs.task import Evaluation
from legged_envs.managers import Piece
from legged_envs.mdp.context import is_pure
from legged_envs.state import map_tree


class DirectCore(IsaacCore):
    """The vector environment of a :class:`~legged_envs.compat.isaac_lab.direct.DirectRLEnv`."""

    task: Any

    def prepare(self, spaces: dict[str, gym.Space[Any]], costs: Iterable[str]) -> None:
        """Make what has the structure of the task's results."""
        action = self.single_action_space = spaces["action"]
        self.groups = {name: space for name, space in spaces.items() if name != "action"}
        self.single_observation_space = gym.spaces.Dict(self.groups)
        self.batched = {name: batch_space(space, self.num_envs) for name, space in spaces.items()}
        self.action_space = self.batched["action"]
        empty = {
            name: create_empty_array(space, self.num_envs, np.zeros)
            for name, space in spaces.items()
        }
        self.zeros: dict[str, Any] = map_tree(
            lambda array: torch.from_numpy(array).to(self.device), empty
        )
        self._shown = [*self.groups] if self._dict_observations else ["policy"]
        self.seen = SimpleNamespace()
        self.task_costs = SimpleNamespace(
            **{name: torch.zeros(self.num_envs, device=self.device) for name in costs}
        )
        """What the task returned last: observation groups, and costs."""
        self._action_bounds = _bounds(action, self.device)
        self.moves_joints = isinstance(action, gym.spaces.Box) and action.shape == (
            self.actions.size,
        )
        self._expected = self._results(torch.zeros(self.num_envs))

    def _results(self, number: Tensor) -> dict[str, Any]:
        """What the methods return; a ``number`` and a flag of each environment have the shape (num_envs,)."""
        groups = {name: self.zeros[name] for name in self.groups}
        state = groups.pop("critic", None) if self.task.writes("_get_states") else None
        results = {"_get_observations": groups, "_get_states": state, "_get_rewards": number}
        return {
            **results,
            "_get_dones": (number.bool(),) * 2,
            "_get_costs": {**vars(self.task_costs)},
        }

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        pure = {name: is_pure(getattr(self.task, name)) for name in self._expected}
        self._ends = Piece(self._end, pure["_get_dones"])
        self._rates = [
            Piece(self._reward, pure["_get_rewards"]),
            Piece(self._charge, pure["_get_costs"]),
        ]
        looks = [name for name in ("_get_observations", "_get_states") if self.task.writes(name)]
        self._looks = Piece(self._look, all(pure[name] for name in looks))
        self._evaluate_and_observe(self)
        return self.groups, self.single_action_space

    def _record(self, robots: list[Piece], owners: list[object]) -> None:
        for piece in (self._ends, *self._rates, self._looks):
            if piece.pure:
                piece.run()  # once before they are recorded: a recording knows no attribute that it makes
        super()._record(robots, owners)

    def _sources(self) -> list[object]:
        return [
            self,
            self.task,
            self.seen,
            self.task_costs,
            *(each.data for each in self.scene.entities.values()),
        ]

    def _evaluation_pieces(self) -> list[Piece]:
        ends = [[self._ends], self.terminations.pieces()]
        first, second = ends[::-1] if "terminations" in self.task.cfg.terms else ends
        return [*first, *second, *self.rewards.pieces(), *self._rates, *self.costs.pieces()]

    def _observation_pieces(self) -> list[Piece]:
        return [*super()._observation_pieces(), self._looks]

    @property
    def acts_by_terms(self) -> bool:
        return self.moves_joints and not any(
            map(self.task.writes, ("_pre_physics_step", "_apply_action"))
        )

    def _act(self, action: Any) -> None:
        task, decimation = self.task, self.cfg.sim.decimation
        action = _clamped(action, self._action_bounds)
        action = task.noisy("action", action)
        if self.moves_joints:
            task.joint_targets = self.actions.process(action)
        task._pre_physics_step(self.by_agent(action))
        steps = 1 if task.writes("_apply_action") else decimation
        for _ in range(decimation // steps):
            task._apply_action()
            self.sim.step(steps)
            self.scene.update(self.cfg.sim.dt * steps)

    def by_agent(self, action: Any) -> Any:
        """The action as the task takes it."""
        return action

    def _evaluate(self) -> Evaluation:
        task = self.task
        if self._recovered is not None:
            self.scene.reset(self._recovered.nonzero().squeeze(1))
        self.scene.refresh()
        task.common_step_counter += 1
        self._evaluation()
        self.costs.check_values(self._recovered)
        self.check_numbers("_get_rewards", "rewards", task.reward_buf)
        terminated, truncated = task.reset_terminated, task.reset_time_outs
        if self.cfg.is_finite_horizon:
            terminated, truncated = task.reset_buf, torch.zeros_like(truncated)
        return Evaluation(
            terminated, task.reward_buf, self.costs.total, self.costs.values, truncated
        )

    def _returned(self, method: str) -> Any:
        """What a method returns; ValueError unless that has the structure, shapes and dtypes that are expected."""
        value, where = (
            getattr(self.task, method)(),
            f"what {type(self.task).__name__}.{method} returns",
        )
        wrong = "does not fit the spaces and num_envs: it is {} where {} is expected"
        check_same_structure(() if value is None else value, self._expected[method], where, wrong)
        return value

    def _end(self) -> None:
        task = self.task
        task.reset_terminated, task.reset_time_outs = self._returned("_get_dones")
        task.reset_buf = task.reset_terminated | task.reset_time_outs

    def _reward(self) -> None:
        self.task.reward_buf = self._returned("_get_rewards")

    def _charge(self) -> None:
        vars(self.task_costs).update(self._returned("_get_costs"))

    def _look(self) -> None:
        vars(self.seen).update(self._returned("_get_observations"))
        if "critic" in self._shown and self.task.writes("_get_states"):
            self.seen.critic = self._returned("_get_states")

    def _observe(self, env_ids: Tensor | None) -> dict[str, Any]:
        if env_ids is None:
            for group in self._groups:
                group.draw()
            self._observation()
        else:
            self._observe_new(env_ids, self._look)
        take = torch.clone if env_ids is None else (lambda value: value[env_ids])
        shown = {name: map_tree(take, getattr(self.seen, name)) for name in self._shown}
        shown["policy"] = self.task.noisy("observation", shown["policy"], env_ids)
        map_tree(partial(self.check_numbers, "_get_observations", "observations"), shown)
        return shown

    def _choose_start(self, env_ids: Tensor) -> None:
        self.commands.reset(env_ids)
        self.scene.reset(env_ids)
        self.task._reset_idx(env_ids)


def _bounds(space: gym.Space[Any], device: torch.device) -> Any:
    """The bounds of each box, in the structure of ``space``; None for what is discrete."""
    if isinstance(space, gym.spaces.Box):
        return [torch.from_numpy(bound).to(device) for bound in (space.low, space.high)]
    if isinstance(space, gym.spaces.Dict):
        return {key: _bounds(part, device) for key, part in space.items()}
    return (
        tuple(_bounds(part, device) for part in space)
        if isinstance(space, gym.spaces.Tuple)
        else None
    )


def _clamped(action: Any, bounds: Any) -> Any:
    if isinstance(bounds, dict):
        return {key: _clamped(action[key], part) for key, part in bounds.items()}
    if isinstance(bounds, tuple):
        return tuple(map(_clamped, action, bounds))
    return action.clamp(*bounds) if bounds else action
