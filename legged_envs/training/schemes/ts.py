"""TS: a teacher acts on privileged observations, and a student predicts its latent from the past.

Kumar, Fu, Pathak and Malik 2021, "RMA: rapid motor adaptation for legged robots", in the form of
LeggedGym-Ex's ``LeggedRobotTS``. The teacher's encoder μ turns privileged observations p into a
code z of length 1, and PPO trains it with the policy π(o, z). The student's encoder φ of the
history h learns to find that code,

    L = mean over samples of ‖φ(h) − μ(p)‖²,

on the same rollouts, with a separate optimizer. On the robot the policy acts on φ(h). The
privileged observations are the task's group ``critic``.
"""

from typing import Any, ClassVar

import torch
from rsl_rl.modules import MLP
from tensordict import TensorDict

from legged_envs.envs.cfg import TaskCfg
from legged_envs.training.learner.normalization import Normalization
from legged_envs.training.learner.part import Loss, Pass
from legged_envs.training.scheme_options import TSCfg
from legged_envs.training.schemes.encoders import to_unit_length
from legged_envs.training.schemes.networks import HistoryActor, HistoryNetwork
from legged_envs.training.schemes.scheme import MirrorOf, Scheme, make_optimizer


class StudentNetwork(HistoryNetwork):
    """Network with the student's encoder: it acts on the code that the teacher would give."""

    def code_of(self, encoded: torch.Tensor) -> torch.Tensor:
        """Return the code, of length 1. Shape: (n, latent)."""
        return to_unit_length(encoded)


class TeacherActor(HistoryActor):
    """Policy that acts on the teacher's code while it trains, and on the student's once deployed.

    Args:
        network: Network of the mean actions, with the student's encoder.
        privileged_size: Size of the privileged observations.
        cfg: Options of the scheme.
        init_std: Initial standard deviation of each action. Shape: (num_actions,).
    """

    def __init__(
        self, network: StudentNetwork, privileged_size: int, cfg: TSCfg, init_std: torch.Tensor
    ):
        super().__init__(network, init_std)
        self.privileged_normalizer = Normalization(privileged_size)
        self.teacher = MLP(privileged_size, cfg.latent, list(cfg.encoder_hidden), cfg.activation)

    @torch.no_grad()
    def normalize(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """Return the arguments of :meth:`evaluate`: the history and the privileged observations,
        both normalized."""
        history, privileged = inputs
        return [self.network.normalized(history), self.privileged_normalizer(privileged)]

    def code(self, *normalized: torch.Tensor) -> torch.Tensor:
        """Return the teacher's code; gradients flow to the teacher. Shape: (n, latent)."""
        privileged = normalized[1]
        return self.teacher_code(privileged)

    def teacher_code(self, privileged: torch.Tensor) -> torch.Tensor:
        """Return the teacher's code of normalized privileged observations. Shape: (n, latent)."""
        return to_unit_length(self.teacher(privileged))

    def update_normalizers(self, *inputs: torch.Tensor) -> None:
        """Update the running means and variances with a rollout. Shapes: (…, size)."""
        super().update_normalizers(*inputs)
        privileged = inputs[1]
        self.privileged_normalizer.update(privileged.flatten(0, -2))


class TeacherStudent(Scheme):
    """The policy with two encoders, and the regression that trains the student's."""

    name = "student"
    groups: ClassVar[tuple[str, ...]] = ("policy", "critic")

    actor_class: ClassVar[type[TeacherActor]] = TeacherActor
    """Class of the policy."""

    def __init__(
        self,
        cfg: TSCfg,
        observation: TensorDict,
        init_std: torch.Tensor,
        mirror_of: MirrorOf | None,
    ):
        super().__init__(cfg, observation, init_std, mirror_of)
        network = StudentNetwork(
            cfg,
            observation["policy"].shape[1],
            encoded=cfg.latent,
            code_size=cfg.latent,
            outputs=len(init_std),
        )
        privileged_size = observation["critic"].shape[1]
        actor = self.actor_class(network, privileged_size, cfg, init_std)
        self.actor: TeacherActor = actor.to(observation["policy"].device)
        self.optimizer = make_optimizer(cfg, network.encoder)

    @classmethod
    def add_observations(cls, task: TaskCfg, cfg: Any) -> None:
        """Check that a task has privileged observations.

        Raises:
            ValueError: If it has none.
        """
        if "critic" not in task.observations:
            raise ValueError(
                f"a teacher reads the observation group 'critic', and the task has only "
                f"{', '.join(task.observations)}: add it, or train with ee, dreamwaq or him"
            )

    def loss(self, done: Pass) -> Loss:
        """Return the mean squared distance of the student's code from the teacher's."""
        history, privileged = done.actor_inputs[:2]
        student = self.actor.network.code(history)
        with torch.no_grad():
            teacher = self.actor.teacher_code(privileged)
        distance = (student - teacher).square().sum(dim=1)
        return distance.mean(), {}
