"""How a policy walks in a variant of the physics, and what its feet do to the ground."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import mujoco
import numpy as np
import torch

from benchmarks.physics_variants import Variant
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.evaluation.metrics.velocity import VelocityEvaluation
from legged_envs.policy.policy import Policy
from legged_envs.robots import RobotCfg
from legged_envs.sim import SimCfg
from legged_envs.sim.engines import ENGINES
from legged_envs.sim.engines.mujoco import MujocoSimulation

GRAVITY = 9.81
"""m/s²"""
STANDING_FORCE = 1.0
"""Vertical force above which a foot stands, N."""
VERTICAL_FORCE = 5
"""Column of ``cfrc_ext``: torques come first, then forces."""


@dataclass(frozen=True)
class Walk:
    """The walk of a policy in a variant."""

    evaluation: VelocityEvaluation
    """Metrics of ``legged-envs eval``."""

    foot_depth: float
    """Depth of the deepest foot in the ground, m, mean over time, falls included."""

    force_noise: float
    """Change of the vertical force on a standing foot in a physics step.

    Root mean square, relative to the robot's weight.
    """


class FootRecorder(MujocoSimulation):
    """The CPU engine, which notes how the forces on standing feet change in each physics step.

    Args:
        robot: The robot.
        cfg: Configuration of the simulation.
        num_envs: Number of environments.
        device: Device of the tensors.
        model: The scene.
    """

    def __init__(
        self,
        robot: RobotCfg,
        cfg: SimCfg,
        num_envs: int,
        device: torch.device,
        model: mujoco.MjModel,
    ):
        super().__init__(robot, cfg, num_envs, device, model=model)
        feet = [model.body(name).id for name in robot.foot_names]
        is_foot = np.isin(model.geom_bodyid, feet)
        is_collision_shape = model.geom_conaffinity > 0
        is_sphere = model.geom_type == mujoco.mjtGeom.mjGEOM_SPHERE
        self._feet = feet
        self._spheres = np.flatnonzero(is_foot & is_collision_shape & is_sphere)
        self._radii = model.geom_size[self._spheres, 0]
        self._positions = self.batch.bind("geom_xpos")
        self._forces = self.batch.bind("cfrc_ext")
        self._weight = GRAVITY * model.body_mass.sum()

        self.squared_changes: list[np.ndarray] = []
        """Squared changes of the force on each standing foot, relative to the weight."""

    def step(self, num_steps: int) -> None:
        """Advance by physics steps, one by one."""
        for _ in range(num_steps):
            before = self._foot_forces()
            super().step(1)
            after = self._foot_forces()
            standing = (before > STANDING_FORCE) & (after > STANDING_FORCE)
            changes = (after - before)[standing] / self._weight
            self.squared_changes.append(np.square(changes))

    def _foot_forces(self) -> np.ndarray:
        """Return the vertical force on each foot, N. Shape: (num_envs, num_feet)."""
        return self._forces[:, self._feet, VERTICAL_FORCE].copy()

    def foot_depth(self) -> float:
        """Return the depth of the deepest foot of each robot in the ground, m, mean over robots."""
        depth = self._radii - self._positions[:, self._spheres, 2]
        return float(depth.max(axis=1).clip(min=0.0).mean())


@contextmanager
def _engine(variant: Variant) -> Iterator[str]:
    """Register an engine that simulates ``variant`` inside the ``with`` block; gives its name."""

    def make(robot: RobotCfg, cfg: SimCfg, num_envs: int, device: torch.device) -> FootRecorder:
        return FootRecorder(robot, cfg, num_envs, device, model=variant.build(robot, cfg))

    name = f"mujoco ({variant.name})"
    ENGINES[name] = make
    try:
        yield name
    finally:
        del ENGINES[name]


def measure_walk(
    task_id: str, cfg: TaskCfg, policy: Policy, variant: Variant, episodes: int
) -> Walk:
    """Let the policy walk in a variant.

    Args:
        task_id: Registered id of a velocity task.
        cfg: Its configuration.
        policy: The policy.
        variant: The change to the physics.
        episodes: Number of walks.
    """
    # The environment counts steps with its cfg: time step and decimation must be the variant's.
    varied = replace(cfg, sim=replace(cfg.sim, **variant.sim))
    with _engine(variant) as engine:
        evaluator = Evaluator(task_id, varied, episodes, engine)
    policy.check(evaluator.core)
    simulation = cast(FootRecorder, evaluator.core.sim)
    simulation.squared_changes.clear()
    depths: list[float] = []

    def act(observation: torch.Tensor) -> torch.Tensor:
        depths.append(simulation.foot_depth())
        return policy(observation)

    evaluation = evaluator.run(act, still=False)
    squared_changes = np.concatenate(simulation.squared_changes)
    evaluator.close()
    return Walk(
        evaluation=evaluation,
        # Nothing is known of the positions before the first step.
        foot_depth=float(np.mean(depths[1:])),
        force_noise=float(np.sqrt(squared_changes.mean())),
    )
