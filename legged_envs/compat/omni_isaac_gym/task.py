"""The task that calls the methods of an :class:`~legged_envs.compat.omni_isaac_gym.RLTask`."""

import torch
from torch import Tensor

from legged_envs.compat.adapter import AdapterTask
from legged_envs.envs import Evaluation, Spaces
from legged_envs.envs.manager_task import check_evaluation, check_observations
from legged_envs.state import preserve_contents


class OmniIsaacTask(AdapterTask):
    """Task that calls the methods of a user's ``RLTask``, the task class of OmniIsaacGymEnvs."""

    actions_are_targets = False

    is_evaluating = False
    """True while the methods evaluate a step. Episodes that they reset are reset afterwards."""

    def build_evaluation(self) -> Spaces:
        user = self.user
        # Views exist after this, and the methods that evaluate use them.
        user.set_up_scene(user.world)
        user.post_reset()
        spaces = super().build_evaluation()
        self.cost_names = (*self.cost_names, *user.cost_limits_by_name)
        self.cost_limits = (*self.cost_limits, *user.cost_limits_by_name.values())
        groups = {"policy": user.observation_space}
        if user.num_states:
            groups["critic"] = user.state_space
        return spaces._replace(observations=groups, action=user.action_space)

    def verify(self) -> None:
        # A step comes first, and the attributes that it makes stay: an observation before the
        # first step may read them.
        user = self.user
        env = self.env
        with torch.no_grad(), env.preserved(), preserve_contents([*vars(user).values()]):
            self.choose_start(env.all_ids)
            self.act(torch.zeros(env.num_envs, user.num_actions, device=env.device))
            for robot in env.robots.values():
                robot.read()
            self.evaluate()
        super().verify()

    def act(self, action: Tensor) -> None:
        limit = self.user.clip_actions
        self.user.pre_physics_step(action.clamp(-limit, limit))
        self.env.sim.step(self.env.cfg.sim.decimation)

    def evaluate(self) -> Evaluation:
        user = self.user
        self._evaluate_terms()
        # A task that resets here is reset after the step, in every autoreset mode.
        self.is_evaluating = True
        user.post_physics_step()
        self.is_evaluating = False
        self.check_result(
            "get_observations", "obs_buf", user.obs_buf, *user.observation_space.shape
        )
        self.check_result("get_states", "states_buf", user.states_buf, *user.state_space.shape)
        reward = self.check_result("calculate_metrics", "rew_buf", user.rew_buf)
        costs = self.check_result(
            "calculate_costs", "cost_buf", user.cost_buf, len(self.cost_names), least=0.0
        )
        flags = self.check_result("is_done", "reset_buf", user.reset_buf, flags=True)
        late_flags = self.check_result("is_timeout", "flags", user.is_timeout(), flags=True)
        user.reset_buf = user.reset_buf.long()  # whatever type the task gave it
        has_ended = flags > 0
        is_late = late_flags > 0
        return Evaluation(
            terminated=has_ended & ~is_late,
            reward=reward,
            cost=costs.sum(1),
            costs=costs,
            truncated=has_ended & is_late,
        )

    def _evaluate_terms(self) -> None:
        """Evaluate the terms of managers; the methods may read their results."""
        managers = self.managers
        for robot in self.env.robots.values():
            robot.compute()
        managers.terminations.compute()
        managers.rewards.compute()
        managers.costs.compute()
        check_evaluation(managers, self.env.recovered)
        for group in managers.shown_groups:
            group.draw()
            group.compute()
        check_observations(managers)

    def observe(self, env_ids: Tensor | None) -> dict[str, Tensor]:
        user = self.user
        if env_ids is not None:
            self.observe_first(env_ids, user.observe_all)
        limit = user.clip_obs
        groups = {}
        for name, buffer in {"policy": user.obs_buf, "critic": user.states_buf}.items():
            rows = buffer if env_ids is None else buffer[env_ids]
            groups[name] = rows.clamp(-limit, limit)
        return groups

    def choose_start(self, env_ids: Tensor) -> None:
        super().choose_start(env_ids)
        user = self.user
        user.world.robots.reset(env_ids)
        user.progress_buf[env_ids] = 0
        user.reset_buf[env_ids] = 0
        type(user).reset_idx(user, env_ids)
