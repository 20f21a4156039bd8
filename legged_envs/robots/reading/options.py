"""Global options of a robot's file, which are a matter of the task."""

import mujoco
import numpy as np

WORLD_OPTIONS = ("gravity", "wind", "magnetic", "density", "viscosity")
"""Attributes of ``<option>`` that describe the world around a robot."""

FLAGS = ("disableflags", "enableflags", "disableactuator")
"""Attributes of MuJoCo's options that switch parts of the physics on or off."""

SOLVER_OPTIONS = ("impratio", "tolerance", "ls_tolerance", "noslip_iterations", "ccd_iterations")
"""Attributes of ``<option>`` that tune the solver."""


def changed_options(spec: mujoco.MjSpec) -> dict[str, str]:
    """Return the options of a model that differ from MuJoCo's and change how a robot moves.

    Returns:
        Name of each option and its value. ``"gravcomp"`` has the names of the bodies with
        compensated weight.
    """
    default = mujoco.MjSpec().option
    changed = {}
    for name in (*WORLD_OPTIONS, *FLAGS):
        value = getattr(spec.option, name)
        if not np.array_equal(value, getattr(default, name)):
            changed[name] = " ".join(f"{number:g}" for number in np.atleast_1d(value))
    weightless = [body.name for body in spec.bodies if body.gravcomp]
    if weightless:
        changed["gravcomp"] = ", ".join(weightless)
    return changed


def reset_options(spec: mujoco.MjSpec, notes: list[str]) -> None:
    """Set the global options of a model to MuJoCo's, because tasks set their own.

    Args:
        spec: Model, changed in place.
        notes: Notes. One is added that lists the options that change how the robot moves.
    """
    changed = changed_options(spec)
    default = mujoco.MjSpec().option
    for name in (*WORLD_OPTIONS, *FLAGS, *SOLVER_OPTIONS):
        setattr(spec.option, name, getattr(default, name))
    for body in spec.bodies:
        body.gravcomp = 0.0
    for joint in spec.joints:
        joint.actgravcomp = False
    if changed:
        listed = ", ".join(f"{name} {value}" for name, value in changed.items())
        notes.append(f"options of the file are left out, which are the task's: {listed}")
