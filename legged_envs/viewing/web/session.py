"""Robots that act while the page shows and controls them."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from legged_envs.envs import unwrap
from legged_envs.evaluation.metrics.gaits import hold_gait
from legged_envs.evaluation.metrics.velocity import hold_velocity
from legged_envs.mdp.gait_command import GaitChoice
from legged_envs.policy.policy import Policy, load_policy
from legged_envs.viewing.labels import SMOOTHING_TIME
from legged_envs.viewing.scenes import Command, Scene
from legged_envs.viewing.watch import start_scene

PULL_STIFFNESS = 20.0
"""Acceleration of a pulled robot for each metre between it and the mouse, 1/s²."""
PULL_DAMPING = 9.0
"""Deceleration of a pulled robot for each m/s, 1/s. With it, a robot reaches the mouse without
overshooting."""
LARGEST_PULL = 20.0
"""Largest acceleration of a pulled robot along each axis, m/s²."""


class Session:
    """Robots with a policy, in a scene without end.

    A robot whose episode ends starts the scene again.

    Args:
        envs: Environments with the options ``EVALUATION_ENV_OPTIONS``.
        policy: The policy.
        scene: The scene.
    """

    def __init__(self, envs: VectorEnv, policy: Policy, scene: Scene):
        self.envs = envs
        """The environments."""
        self.core = unwrap(envs)
        """Their core, without wrappers."""
        self.policy = policy
        """Policy that acts."""
        self.scene = scene
        """Present scene."""
        self.rewards = torch.zeros_like(self.core.rewards.episode_sums)
        """Weighted reward terms per second, averaged over ``SMOOTHING_TIME``. Shape: (num_envs,
        num_terms)."""
        self.costs = torch.zeros_like(self.core.costs.episode_sums)
        """Cost terms per control step, averaged over ``SMOOTHING_TIME``. Shape: (num_envs,
        num_terms)."""
        self.pull: tuple[int, np.ndarray] | None = None
        """Environment of the robot that the mouse holds, and the target of its base, m, world
        frame. None: the mouse holds no robot."""
        self._directions = np.random.default_rng(0)
        self.observation = start_scene(envs, scene, seed=0)

    def restart(self, scene: Scene | None = None) -> None:
        """Start all episodes again.

        Args:
            scene: Another scene. None: the same one.
        """
        if scene is not None:
            self.scene = scene
        # The robot jumps away from the mouse that holds it.
        self.pull = None
        self.observation = start_scene(self.envs, self.scene)
        self.policy.reset()

    def restart_robot(self, env_id: int) -> None:
        """Start the episode of one robot again.

        Args:
            env_id: Environment of the robot.
        """
        mask = torch.zeros(self.core.num_envs, dtype=torch.bool)
        mask[env_id] = True
        self._restart_some(mask)

    def push_robot(self, env_id: int, speed: float) -> None:
        """Add a velocity to that of the base of one robot, horizontal, in a random direction.

        Args:
            env_id: Environment of the robot.
            speed: Amount of the added velocity, m/s.
        """
        angle = self._directions.uniform(-math.pi, math.pi)
        change = torch.tensor([[speed * math.cos(angle), speed * math.sin(angle), 0.0]])
        self.core.sim.push(torch.tensor([env_id]), change)

    def _restart_some(self, mask: torch.Tensor) -> None:
        """Start the episodes of robots again. Shape of the mask: (num_envs,), bool."""
        if self.pull is not None and mask[self.pull[0]]:
            # The robot is far from the mouse now, which would pull it over.
            self.pull = None
        self.observation = start_scene(self.envs, self.scene, options={"reset_mask": mask})
        self.policy.reset(mask)

    def step(self) -> None:
        """Run one control step."""
        core = self.core
        step_dt = core.step_dt
        # A reset clears the sums. There is none before they are read again, because robots are
        # reset at the end of this function.
        sums_before = core.rewards.episode_sums.clone()
        if self.pull is not None:
            self._pull_robot(*self.pull)
        with torch.inference_mode():
            action = self._act(self.policy)
        self.observation, _, terminated, truncated, info = self.envs.step(action)
        rewards = (core.rewards.episode_sums - sums_before) / step_dt
        self.rewards += (rewards - self.rewards) * step_dt / SMOOTHING_TIME
        self.costs += (info["costs"] - self.costs) * step_dt / SMOOTHING_TIME
        ended = terminated | truncated
        if ended.any():
            self._restart_some(ended)

    def _act(self, policy: Policy) -> torch.Tensor:
        inputs = [self.observation[group] for group in policy.inputs]
        return policy(*inputs)

    def _pull_robot(self, env_id: int, target: np.ndarray) -> None:
        """Change the velocity of a robot towards a target of its base, m, world frame."""
        core = self.core
        position = core.robot.root_pos_w[env_id].cpu().numpy()
        velocity = core.sim.root_lin_vel_w[env_id].cpu().numpy()
        acceleration = (target - position) * PULL_STIFFNESS - velocity * PULL_DAMPING
        acceleration = np.clip(acceleration, -LARGEST_PULL, LARGEST_PULL)
        change = torch.from_numpy(acceleration * core.step_dt).float()
        core.sim.push(torch.tensor([env_id]), change[None])

    def hold_command(self, command: Command) -> None:
        """Ask all robots for a velocity from the next step on."""
        if command != self.scene.command:
            self.scene = replace(self.scene, command=command)
            hold_velocity(self.core, command, self.observation)

    def hold_gait(self, choice: GaitChoice) -> None:
        """Ask all robots for a gait and style from the next step on."""
        if choice != self.scene.gait:
            self.scene = replace(self.scene, gait=choice)
            hold_gait(self.core, choice, self.observation)

    def place_robots(self, kind: str, level: int) -> None:
        """Start again with all robots on tiles of one kind and level.

        Args:
            kind: Kind of the tiles.
            level: Level of the tiles. The first is 0.

        Raises:
            ValueError: If the ground is a plane.
        """
        ground = self.core.sim.ground
        if ground is None:
            raise ValueError(f"a plane has no tiles, got terrain {kind!r}")
        matching = []
        for column, name in enumerate(ground.terrain.kinds):
            if name == kind:
                matching.append(column)
        robots = torch.arange(self.core.num_envs)
        # Robots are distributed over the columns of this kind in turn.
        columns = torch.tensor(matching)[robots % len(matching)]
        # Without a curriculum, robots stay on the tiles that are written here.
        ground.levels.fill_(level)
        ground.columns.copy_(columns)
        self.restart()

    def change_policy(self, policy: Policy | Path) -> None:
        """Act by another policy.

        Args:
            policy: The policy, or its file or run folder.

        Raises:
            FileNotFoundError: If there is no such file. The present policy stays.
            ValueError: If it does not fit the task, or its actions are not finite. The present
                policy stays.
        """
        if isinstance(policy, Path):
            policy = load_policy(policy)
        policy.check(self.core)
        # Tried on the present observation before it acts. It may have acted here before.
        policy.reset()
        if not self._act(policy).isfinite().all():
            raise ValueError(f"the policy of {policy.task_id!r} gives no finite actions here")
        policy.reset()
        self.policy = policy
