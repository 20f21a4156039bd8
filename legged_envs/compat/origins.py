"""Start places of robots on rough ground, with the names of LeggedGym-Ex and Isaac Lab."""

import torch

from legged_envs.envs import CoreVectorEnv
from legged_envs.mdp.curricula import move_levels
from legged_envs.sim.ground import Ground


class TerrainOrigins:
    """Gives an object with an environment the start places of robots, as attributes."""

    env: CoreVectorEnv
    """The environment."""

    @property
    def _ground(self) -> Ground:
        if self.env.ground is None:
            raise AttributeError("the robots stand on a plane, which has no tiles and levels")
        return self.env.ground

    @property
    def env_origins(self) -> torch.Tensor:
        """Middle of each environment's tile, m; 0 on a plane. Shape: (num_envs, 3).

        Every environment is a separate world, so the origins of a plane are all the same.
        """
        if self.env.ground is None:
            return torch.zeros_like(self.env.robot.root_pos_w)
        return self.env.ground.origins

    @property
    def terrain_levels(self) -> torch.Tensor:
        """Level of each environment's tile. Shape: (num_envs,)."""
        return self._ground.levels

    @property
    def terrain_types(self) -> torch.Tensor:
        """Column of each environment's tile. Shape: (num_envs,)."""
        return self._ground.columns

    @property
    def terrain_origins(self) -> torch.Tensor:
        """Middle of each tile, m. Shape: (rows, columns, 3)."""
        return self._ground.tile_origins

    @property
    def max_terrain_level(self) -> int:
        """Number of levels."""
        return len(self._ground.tile_origins)

    def update_env_origins(
        self, env_ids: torch.Tensor, move_up: torch.Tensor, move_down: torch.Tensor
    ) -> None:
        """Move environments to other levels.

        Args:
            env_ids: The environments, shape (n,).
            move_up: Those of them that move a level up, shape (n,), bool.
            move_down: Those of them that move a level down, shape (n,), bool.
        """
        move_levels(self.env, env_ids, move_up, move_down)
