"""Train a policy that imitates reference motions, evaluate it and write a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from legged_envs.envs.cfg import TaskCfg
from legged_envs.mdp.motion_command import MotionCommand, motion_command
from legged_envs.rl.config import Algo
from legged_envs.rl.mimic.amp import ExpertTransitions, amp_observations
from legged_envs.rl.mimic.distillation import MimicDistillation
from legged_envs.rl.mimic.ppo import MimicPPO
from legged_envs.rl.mimic_config import ACTOR_GROUPS, CRITIC_GROUPS
from legged_envs.rl.mimic_evaluate import MimicEvaluator, print_mimic_evaluation
from legged_envs.rl.policy import Policy, load_policy
from legged_envs.rl.train import Trainer
from legged_envs.tasks.mimic import imitating


class MimicTrainer(Trainer):
    """One training run with motion-mimic PPO."""

    ALGO: ClassVar[Algo] = "mmppo"
    ERRORS: ClassVar[dict[str, str]] = {"joint_error": "rad", "lin_vel_error": "m/s"}

    def _make_task(self) -> TaskCfg:
        task, amp = imitating(super()._make_task(), self.cfg.clips, self.cfg.motions), self.cfg.mmppo.amp
        if amp.amp_reward_weight:
            task.observations.setdefault(amp.group, amp_observations())
        return task

    @property
    def GROUPS(self) -> tuple[str, ...]:  # type: ignore[override]
        """Observation groups that the policy takes."""
        return CRITIC_GROUPS if self.cfg.mmppo.privileged_actor else ACTOR_GROUPS

    @property
    def _motion(self) -> MotionCommand:
        return motion_command(self.core.commands)

    def _make_algorithm(self) -> Any:
        cfg = self.cfg.mmppo
        return MimicPPO(
            self.env.get_observations(),
            self.env.num_actions,
            len(self._motion.cfg.window),
            cfg,
            cost_names=self.core.cost_names,
            cost_limits=self.core.cost_limits,
            teacher=self._load_teacher() if cfg.dagger.coefficient else None,
            expert=self._expert_transitions().sample if cfg.amp.amp_reward_weight else None,
        )

    def _expert_transitions(self) -> ExpertTransitions:
        states = self.core.cfg.observations[self.cfg.mmppo.amp.group]
        return ExpertTransitions(self._motion.player.library, states, self.core.step_dt)

    def _load_teacher(self) -> Policy:
        path = self.cfg.teacher
        if path is None:
            raise ValueError("distillation and DAgger need --teacher, a run trained with --mmppo.privileged-actor")
        teacher = load_policy(path)
        teacher.check(self.core, CRITIC_GROUPS)
        return teacher

    def _set_learning_rate(self, done: float) -> None:
        if getattr(self._schedule, "schedule", "fixed") == "fixed":
            super()._set_learning_rate(done)

    def _errors(self) -> dict[str, float]:
        motion, robot = self._motion, self.core.robot
        # The command has moved on since the last step: the errors are those to one step ahead.
        joint = (robot.joint_pos - motion.target_joint_pos).abs().mean(1)
        velocity = (robot.lin_vel_b - motion.target_lin_vel_b).norm(dim=1)
        count = motion.available.sum().clamp(min=1.0)
        return {
            "joint_error": ((joint * motion.available).sum() / count).item(),
            "lin_vel_error": ((velocity * motion.available).sum() / count).item(),
        }

    def _watch(self, row: dict[str, float]) -> None:
        pass

    def _evaluate_export(self) -> None:
        evaluator = MimicEvaluator(self.cfg.task_id, self.task, (), self.cfg.episodes, self.GROUPS)
        result, self._tracking = evaluator.run_with_curves(load_policy(self._run_dir / "policy.pt"))
        evaluator.close()
        print_mimic_evaluation(result, self.console)
        self._report(**result.as_dict())

    def _draw(self) -> None:
        from legged_envs.rl.plots import plot_learning_curve, plot_tracking

        plot_learning_curve(self.curve, self._run_dir / "learning_curve.png", self.ERRORS)
        plot_tracking(self._tracking, self._run_dir / "tracking.png")

    def _film(self, path: Path) -> None:
        from legged_envs.rl.mimic_play import film_task

        film_task(self.task, load_policy(self._run_dir / "policy.pt"), path)


class DistillationTrainer(MimicTrainer):
    """One run that distils a teacher into a student without privileged observations."""

    ALGO: ClassVar[Algo] = "distillation"
    GROUPS = ACTOR_GROUPS

    def _make_algorithm(self) -> Any:
        return MimicDistillation(
            self.env.get_observations(),
            self.env.num_actions,
            len(self._motion.cfg.window),
            self.cfg.distillation,
            teacher=self._load_teacher(),
        )
