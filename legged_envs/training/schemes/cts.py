"""CTS: teacher and student act at once on different robots, and one policy learns from both.

Wang, Xin, et al. 2024, "CTS: concurrent teacher-student reinforcement learning for legged
locomotion". Three quarters of the robots act on the teacher's code μ(p), one quarter on the
student's φ(h). PPO trains the policy π(o, z) with all of them, and μ through the robots of the
teacher. φ learns

    L = mean over samples of ‖φ(h) − μ(p)‖²

on all robots. The policy therefore learns with the errors of the student, and the student learns in
the states that its own policy visits. RMA needs a second training for that.
"""

import torch

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.training.scheme_options import CTSCfg
from legged_envs.training.schemes.ts import TeacherActor, TeacherStudent

ROLE = "is_teacher"
"""Name of the observation group that is 1 for teacher robots and 0 for student robots."""


def is_teacher(env: CoreVectorEnv, share: float) -> torch.Tensor:
    """Return 1 for robots that the teacher acts for, 0 for the others. Shape: (num_envs, 1).

    Teacher and student robots alternate evenly over the environments, so that both occur on each
    kind of ground.
    """
    # Numbers of all processes, so that a process has the roles that one environment would give.
    numbers = torch.arange(env.num_envs + 1, device=env.device) + env.random.first_env
    # In float64: float32 cannot count so many robots.
    counts = (numbers.double() * share).floor()
    return counts.diff().float().unsqueeze(1)


class MixedActor(TeacherActor):
    """Policy that uses the teacher's code for teacher robots, and the student's for the others."""

    @torch.no_grad()
    def normalize(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """Return the arguments of :meth:`evaluate`: those of a teacher, roles, and the codes of the
        student."""
        *seen, role = inputs
        history, privileged = super().normalize(*seen)
        return [history, privileged, role, self.network.code(history)]

    def code(self, *normalized: torch.Tensor) -> torch.Tensor:
        """Return the latent code that the policy acts on. Shape: (n, latent).

        Args:
            normalized: The tensors of :meth:`normalize`: history (not used), privileged
                observations, the role of each robot with shape (n, 1), and the student's code.
                A robot with role 1 has the teacher's code, a robot with role 0 the student's.
        """
        _, privileged, role, student = normalized
        return torch.where(role > 0.5, self.teacher_code(privileged), student)


class ConcurrentTeacherStudent(TeacherStudent):
    """The policy that acts for teachers and students, and the regression of the student."""

    name = "student"
    groups = ("policy", "critic", ROLE)
    actor_class = MixedActor

    @classmethod
    def add_observations(cls, task: TaskCfg, cfg: CTSCfg) -> None:
        """Add the roles of the robots to a task.

        Raises:
            ValueError: If the task has no privileged observations.
        """
        super().add_observations(task, cfg)
        role = ObservationTermCfg(is_teacher, params={"share": cfg.teacher_share}, mirror="scalar")
        task.observations[ROLE] = ObservationGroupCfg({ROLE: role})
