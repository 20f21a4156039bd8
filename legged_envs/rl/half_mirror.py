"""Learning from every transition and its mirror image with rsl_rl's PPO, at the cost of one."""

from typing import Any

import torch
from rsl_rl.storage import RolloutStorage

from legged_envs.envs import LeggedVectorEnv
from legged_envs.mdp.symmetry import Mirror


class HalfMirror:
    """Mirrors one half of each mini-batch, in place of rsl_rl's ``Symmetry``. A mirrored action keeps its old
    log-probability, as for a symmetric policy (Mittal et al. 2024)."""

    use_mirror_loss = False

    def __init__(self, env: LeggedVectorEnv):
        robot, self._observation = env.cfg.robot, {}
        for group, cfg in env.cfg.observations.items():
            sizes = env.observations.term_sizes(group).items()
            self._observation[group] = Mirror(robot, [(name, cfg.terms[name].mirror, size) for name, size in sizes])
        self._action = Mirror(robot, [("action", "joint", robot.num_joints)])

    def augment_batch(self, batch: RolloutStorage.Batch, original_batch_size: int) -> None:
        """Mirror the first half of ``batch``, in place."""
        half = original_batch_size // 2
        assert batch.observations is not None and batch.actions is not None and batch.old_distribution_params
        for group, mirror in self._observation.items():
            batch.observations[group][:half] = mirror(batch.observations[group][:half])
        batch.actions[:half] = self._action(batch.actions[:half])
        mean, std = batch.old_distribution_params
        mean[:half] = self._action(mean[:half])
        std[:half] = std[:half, self._action.index]

    def compute_loss(self, *args: Any) -> torch.Tensor:
        return torch.zeros(())
