"""The vector environment of direct tasks: it calls their methods."""

import math
from collections.abc import Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector.utils import batch_space, create_empty_array
from torch import Tensor

from legged_envs.envs.arguments import check_same_structure
from legged_envs.envs.hooks import Evaluation
from legged_envs.managers import Piece
from legged_envs.mdp.context import is_pure
from legged_envs.state import copied, mapped
from legged_envs.workflows.scene import InteractiveScene
from legged_envs.workflows.workflow import WorkflowCore, put_back


class DirectCore(WorkflowCore):
    """The vector environment of a :class:`~legged_envs.workflows.direct.DirectRLEnv`."""

    task: Any
    scene: InteractiveScene

    def prepare(self, spaces: dict[str, gym.Space[Any]], costs: Iterable[str]) -> None:
        """Make what has the structure of the task's results."""
        action = self.single_action_space = spaces["action"]
        self.action_space = batch_space(action, self.num_envs)
        self.groups = {name: space for name, space in spaces.items() if name != "action"}
        self.single_observation_space = gym.spaces.Dict(self.groups)
        self._shown = [*self.groups] if self._dict_observations else ["policy"]
        zeros = {name: create_empty_array(space, self.num_envs, np.zeros) for name, space in self.groups.items()}
        flag = torch.zeros(self.num_envs, dtype=torch.bool)
        self._expected: dict[str, Any] = {
            **mapped(torch.from_numpy, zeros),
            "done": (flag, flag),
            "reward": flag.float(),
        }
        self.seen = SimpleNamespace()
        self.task_costs = SimpleNamespace(**{name: flag.to(self.device).float() for name in costs})
        """What the task returned last: observation groups, and costs."""
        self._expected["cost"] = dict(vars(self.task_costs))
        bounds = (action.low, action.high) if isinstance(action, gym.spaces.Box) else ()
        self.action_bounds = [torch.from_numpy(bound).to(self.device) for bound in bounds]
        self.moves_joints = bool(bounds) and action.shape == (self.actions.size,)

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        task = self.task
        self._ends = Piece(self._end, is_pure(task._get_dones))
        self._rates = [Piece(self._reward, is_pure(task._get_rewards)), Piece(self._charge, is_pure(task._get_costs))]
        methods = [name for name in ("_get_observations", "_get_states") if task.writes(name)]
        self._looks = Piece(self._look, all(is_pure(getattr(task, name)) for name in methods))
        before = copied(task._stateful())
        for piece in (self._ends, *self._rates, self._looks):
            if piece.pure:
                piece.run()  # once before they are recorded: a recording knows no attribute that it makes
        put_back(task, before)
        self._evaluate_and_observe(self)
        return self.groups, self.single_action_space

    def _sources(self) -> list[object]:
        data = [entity.data for entity in self.scene.entities.values()]
        return [self, self.task, self.seen, self.task_costs, *data]

    def _evaluation_pieces(self) -> list[Piece]:
        return [self._ends, *self.terminations.pieces(), *self._rates, *self.costs.pieces()]

    def _observation_pieces(self) -> list[Piece]:
        return [self._looks]

    def _act(self, action: Any) -> None:
        task, decimation = self.task, self.cfg.sim.decimation
        if self.action_bounds:
            action = action.clamp(*self.action_bounds)
        if task._action_noise_model is not None:
            action = task._action_noise_model(action)
        if self.moves_joints:
            task.joint_targets = self.actions.process(action)
        task._pre_physics_step(self._given(action))
        steps = 1 if task.writes("_apply_action") else decimation
        for _ in range(decimation // steps):
            task._apply_action()
            self.sim.step(steps)
            self.scene.update(self.cfg.sim.dt * steps)

    def _given(self, action: Any) -> Any:
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
        self._check_finite("_get_rewards", task.reward_buf, self._recovered)
        terminated, truncated = task.reset_terminated, task.reset_time_outs
        if self.cfg.is_finite_horizon:
            terminated, truncated = task.reset_buf, torch.zeros_like(truncated)
        return Evaluation(terminated, task.reward_buf, self.costs.total, self.costs.values, truncated)

    def _returned(self, method: str, value: Any, expected: Any) -> Any:
        """What a method returned, if it has the structure, the shapes and the dtypes of ``expected``."""
        wrong = "does not fit the spaces and num_envs: it is {} where {} is expected"
        value = () if value is None else value
        check_same_structure(value, expected, f"what {type(self.task).__name__}.{method} returns", wrong)
        return value

    def _end(self) -> None:
        task = self.task
        dones = self._returned("_get_dones", task._get_dones(), self._expected["done"])
        task.reset_terminated, task.reset_time_outs = dones
        task.reset_buf = task.reset_terminated | task.reset_time_outs

    def _reward(self) -> None:
        self.task.reward_buf = self._returned("_get_rewards", self.task._get_rewards(), self._expected["reward"])

    def _charge(self) -> None:
        vars(self.task_costs).update(self._returned("_get_costs", self.task._get_costs(), self._expected["cost"]))

    def _look(self) -> None:
        given = self.task._get_observations()
        if isinstance(given, dict) and "critic" in self._shown and "critic" not in given:
            states = self._returned("_get_states", self.task._get_states(), self._expected["critic"])
            given = {**given, "critic": states}
        names = [name for name in self.groups if name in self._shown or name in given]
        expected = {name: self._expected[name] for name in names}
        vars(self.seen).update(self._returned("_get_observations", given, expected))

    def _look_at(self, env_ids: Tensor) -> None:
        """Look where only ``env_ids`` have begun: what the methods keep of other environments stays as it is."""

        def begun(was: Tensor, now: Tensor) -> Tensor:
            per_env = was.shape == now.shape and was.shape[:1] == (self.num_envs,)
            return was.index_copy(0, env_ids, now[env_ids]) if per_env else now

        task = self.task
        before = {name: value.clone() for name, value in vars(task).items() if isinstance(value, Tensor)}
        self._look()
        put_back(task, {name: begun(was, getattr(task, name)) for name, was in before.items()})

    def _observe(self, env_ids: Tensor | None) -> dict[str, Any]:
        if env_ids is None:
            self._observation()
        else:
            self._look_at(env_ids)
        take = torch.clone if env_ids is None else (lambda value: value[env_ids])
        shown = {name: mapped(take, getattr(self.seen, name)) for name in self._shown}
        if self.task._observation_noise_model is not None:
            shown["policy"] = self.task._observation_noise_model(shown["policy"], env_ids)
        mapped(partial(self._check_finite, "_get_observations"), shown)
        return shown

    def _check_finite(self, method: str, value: Tensor, excepted: Tensor | None = None) -> None:
        if math.isfinite(value.sum().item()):
            return
        wrong = ~torch.isfinite(value.flatten(1) if value.ndim > 1 else value.unsqueeze(1)).all(1)
        if env_ids := (wrong if excepted is None else wrong & ~excepted).nonzero().squeeze(1).tolist():
            what = f"{type(self.task).__name__}.{method} returned numbers that are not finite, in rows {env_ids[:8]}"
            raise ValueError(f"{what}: guard divisions, roots and logarithms, or use torch.where")

    def _place(self, env_ids: Tensor, seeded: bool) -> None:
        if seeded:
            self.events.apply("startup", env_ids)
        self.commands.reset(env_ids)
        self.scene.reset(env_ids)
        self.task._reset_idx(env_ids)

    def _start_episodes(self, env_ids: Tensor, seed: int | list[int] | None) -> None:
        super()._start_episodes(env_ids, self.task.cfg.seed if seed is None and not self._begun else seed)
