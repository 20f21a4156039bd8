"""The changes to the physics of a task that :mod:`benchmarks.physics` compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import mujoco

from legged_envs.robots import RobotCfg
from legged_envs.sim import SimCfg
from legged_envs.sim.scene import build_scene

DEFAULT = "default"
"""Name of the variant that everything is relative to."""
SOFT = (0.9, 0.95, 0.001, 0.5, 2.0)
"""Impedances of contacts: MuJoCo's default."""
STIFF = (0.95, 0.99, 0.001, 0.5, 2.0)
"""Impedances of contacts that leave a fifth of the slack."""


def _leave(model: mujoco.MjModel) -> None:
    """Change nothing."""


@dataclass(frozen=True)
class Variant:
    """A change to the physics of a task."""

    name: str
    """Name in the tables."""

    sim: dict[str, Any] = field(default_factory=dict)
    """Fields of ``SimCfg`` that differ."""

    option: dict[str, Any] = field(default_factory=dict)
    """Fields of ``model.opt`` that differ."""

    edit: Callable[[mujoco.MjModel], None] = _leave
    """Changes the rest of the compiled model in place."""

    walks: bool = True
    """True if a walk is measured: not where it is the default's or contact forces are missing."""

    def build(self, robot: RobotCfg, cfg: SimCfg) -> mujoco.MjModel:
        """Return the scene of ``robot`` with this change."""
        model = build_scene(robot, replace(cfg, **self.sim))
        for name, value in self.option.items():
            setattr(model.opt, name, value)
        self.edit(model)
        return model


def variants() -> list[Variant]:
    """Return all variants, the default first. Its repetition shows the noise of the timing."""
    return [
        Variant(DEFAULT),
        Variant("default again", walks=False),
        *_solver_variants(),
        *_contact_variants(),
        *_time_step_variants(),
        *_stiffness_variants(),
        Variant("no accelerometer", edit=_remove_accelerometer, walks=False),
    ]


def _solver_variants() -> list[Variant]:
    integrator = mujoco.mjtIntegrator
    solver = mujoco.mjtSolver
    return [
        Variant("Euler", option={"integrator": integrator.mjINT_EULER}),
        Variant("implicit", option={"integrator": integrator.mjINT_IMPLICIT}),
        Variant("PGS, 50 iter", {"iterations": 50}, {"solver": solver.mjSOL_PGS}),
        Variant("CG, 100 iter", {"iterations": 100}, {"solver": solver.mjSOL_CG}),
        Variant("Newton, 1 iter, 5 ls", {"iterations": 1, "ls_iterations": 5}),
        Variant("Newton, 2 iter", {"iterations": 2}),
    ]


def _contact_variants() -> list[Variant]:
    elliptic = mujoco.mjtCone.mjCONE_ELLIPTIC
    disable = mujoco.mjtDisableBit
    return [
        Variant("elliptic, impratio 1", option={"cone": elliptic, "impratio": 1.0}),
        Variant("elliptic, impratio 100", option={"cone": elliptic, "impratio": 100.0}),
        Variant("islands off", option={"disableflags": disable.mjDSBL_ISLAND}),
        Variant("warm start off", option={"disableflags": disable.mjDSBL_WARMSTART}),
        Variant("condim 4", edit=partial(_set_condim, condim=4)),
        Variant("condim 6", edit=partial(_set_condim, condim=6)),
    ]


def _time_step_variants() -> list[Variant]:
    return [
        Variant("2 ms × 10", {"dt": 0.002, "decimation": 10}),
        Variant("2.5 ms × 8", {"dt": 0.0025, "decimation": 8}),
        Variant("10 ms × 2", {"dt": 0.01, "decimation": 2}),
    ]


def _stiffness_variants() -> list[Variant]:
    return [
        Variant("solref 0.02", {"solref": (0.02, 1.0), "solimp": SOFT}),
        Variant("solref 0.015", {"solref": (0.015, 1.0), "solimp": SOFT}),
        Variant("solref 0.01", {"solref": (0.01, 1.0), "solimp": SOFT}),
        Variant("solref 0.02, solimp 0.95 0.99", {"solref": (0.02, 1.0), "solimp": STIFF}),
        Variant("solref 0.015, solimp 0.95 0.99", {"solref": (0.015, 1.0), "solimp": STIFF}),
        Variant("solref 0.01, solimp 0.95 0.99", {"solref": (0.01, 1.0), "solimp": STIFF}),
    ]


def _set_condim(model: mujoco.MjModel, condim: int) -> None:
    """Set the contact dimension of the robot's collision shapes.

    A contact has the larger one of its two shapes.
    """
    is_collision_shape = (model.geom_bodyid > 0) & (model.geom_conaffinity > 0)
    model.geom_condim[is_collision_shape] = condim


def _remove_accelerometer(model: mujoco.MjModel) -> None:
    """Make the accelerometer a gyroscope, which needs no contact forces (``cfrc_ext``)."""
    sensor = model.sensor("imu_acc").id
    model.sensor_type[sensor] = mujoco.mjtSensor.mjSENS_GYRO
    model.sensor_needstage[sensor] = mujoco.mjtStage.mjSTAGE_VEL
