"""Train a policy that imitates reference motions, evaluate it and write a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import torch

from legged_envs.envs import LeggedVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.mdp.motion_command import MotionCommand, motion_command
from legged_envs.rl.config import Algo
from legged_envs.rl.mimic_config import ACTOR_GROUPS, CRITIC_GROUPS
from legged_envs.rl.mimic_evaluate import MimicEvaluator, print_mimic_evaluation
from legged_envs.rl.mmppo import MimicDistillation, MimicPPO
from legged_envs.rl.policy import Policy, load_policy
from legged_envs.rl.train import Trainer
from legged_envs.tasks.mimic import imitating


class MimicTrainer(Trainer):
    """One training run with motion-mimic PPO."""

    ALGO: ClassVar[Algo] = "mmppo"
    ERRORS: ClassVar[dict[str, str]] = {"joint_error": "rad", "lin_vel_error": "m/s"}

    def _make_task(self) -> TaskCfg:
        return imitating(super()._make_task(), self.cfg.clips, self.cfg.motions)

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
            self.cfg.num_envs,
            len(self._motion.cfg.window),
            cfg,
            cost_names=self.core.cost_names,
            cost_limits=self.core.cost_limits,
            teacher=self._load_teacher() if cfg.dagger.coefficient else None,
            amp_cfg=AmpStates(self.core, self.GROUPS[0]).as_cfg() if cfg.amp.amp_reward_weight else None,
            device=self.env.device,
        )

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
            self.cfg.num_envs,
            len(self._motion.cfg.window),
            self.cfg.distillation,
            teacher=self._load_teacher(),
            device=self.env.device,
        )


class AmpStates:
    """The states that an adversarial motion prior compares: what a robot and a clip both have.

    Direction of gravity, angular velocity, joint positions and velocities, scaled as the policy sees them. Where the
    policy's observation is noisy, so are the reference's states, or the noise alone would tell them apart.

    Args:
        core: The environment.
        group: The observation group that the actor sees.
    """

    TERMS = ("gravity", "ang_vel", "joint_pos", "joint_vel")

    def __init__(self, core: LeggedVectorEnv, group: str):
        cfg, sizes = core.cfg.observations[group], core.observations.term_sizes(group)
        motion = motion_command(core.commands)
        self._frames = len(motion.cfg.window)
        self._columns = _columns(sizes, self.TERMS)
        self._reference_columns = _columns(motion.frame_sizes, self.TERMS)
        noise = [torch.full((sizes[n],), cfg.terms[n].noise * _scale(cfg.terms[n].scale)) for n in self.TERMS]
        self._noise = torch.cat(noise).to(core.device) if cfg.noisy else None

    def as_cfg(self) -> dict[str, Any]:
        """The storage's ``amp_cfg``."""
        return {"amp_obs_extractor": self.of_robot, "amp_ref_obs_extractor": self.of_reference}

    def of_robot(self, observations: torch.Tensor) -> torch.Tensor:
        """Shape: (…, observation) → (…, states)."""
        return observations[..., self._columns]

    def of_reference(self, reference: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """The first frame of the window. Shapes: (…, window), (…,) → (…, states), (…,)."""
        window, mask = reference
        states = window.unflatten(-1, (self._frames, -1))[..., 0, :][..., self._reference_columns]
        if self._noise is not None:
            states = states + self._noise * (2.0 * torch.rand_like(states) - 1.0)
        return states, mask


def _columns(sizes: dict[str, int], names: tuple[str, ...]) -> list[int]:
    """Columns of the terms ``names`` in a vector of terms of these ``sizes``."""
    ends = dict(zip(sizes, torch.tensor(list(sizes.values())).cumsum(0).tolist(), strict=True))
    return [column for name in names for column in range(ends[name] - sizes[name], ends[name])]


def _scale(scale: float | tuple[float, ...]) -> float:
    if isinstance(scale, tuple):
        raise TypeError(f"AMP needs one scale per observation term, got {scale}")
    return scale
