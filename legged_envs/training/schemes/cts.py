"""CTS: teacher and student act at once, each in robots of its own, and one policy learns from both.

Wang, Xin, et al. 2024, "CTS: concurrent teacher-student reinforcement learning for legged
locomotion". Three quarters of the robots act on the teacher's code μ(p), one quarter on the
student's φ(h). PPO trains the policy π(o, z) with all of them, and μ through the robots of the
teacher. φ learns

    L = mean ‖φ(h) − μ(p)‖²

on all robots. So the policy knows the student's mistakes, and the student sees where its own policy
goes, without the second training of RMA.
"""

import torch

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.training.scheme_options import CTSCfg
from legged_envs.training.schemes.ts import TeacherActor, TeacherStudent

ROLE = "is_teacher"
"""Name of the observation group that says whose robot it is."""


def is_teacher(env: CoreVectorEnv, share: float) -> torch.Tensor:
    """Return 1 for robots that the teacher acts for, else 0. Shape: (num_envs, 1).

    The robots of both are spread evenly, so that each kind of ground has robots of both.
    """
    counts = (torch.arange(env.num_envs + 1, device=env.device) * share).floor()
    return counts.diff().unsqueeze(1)


class MixedActor(TeacherActor):
    """Policy that acts on the teacher's code in some robots, on the student's in the others."""

    def code(self, *normalised: torch.Tensor) -> torch.Tensor:
        """Return the code of the one whose robot it is. Shape: (n, latent)."""
        history, privileged, role = normalised
        with torch.no_grad():
            student = self.network.code(history)
        return torch.where(role > 0.5, self.teacher_code(privileged), student)


class ConcurrentTeacherStudent(TeacherStudent):
    """The policy that acts for teachers and students, and the regression of the student."""

    name = "student"
    groups = ("policy", "critic", ROLE)
    actor_class = MixedActor

    @classmethod
    def add_observations(cls, task: TaskCfg, cfg: CTSCfg) -> None:
        """Add the roles of the robots to a task."""
        super().add_observations(task, cfg)
        if not 0.0 < cfg.teacher_share < 1.0:
            raise ValueError(
                f"--teacher-share must be between 0 and 1, got {cfg.teacher_share:g}; "
                "ts has teachers alone"
            )
        role = ObservationTermCfg(is_teacher, params={"share": cfg.teacher_share}, mirror="scalar")
        task.observations[ROLE] = ObservationGroupCfg({ROLE: role})
