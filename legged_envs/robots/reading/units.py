"""Finds lengths in millimetres and inertias in other units in a robot's file."""

import mujoco
import numpy as np

LONGEST_SHAPE = 10.0
"""Largest radius of a shape of a robot, m. Shapes in millimetres have a hundred and more."""

HIGHEST_BASE = 5.0
"""Largest height of the base of a robot above its feet, m. In inches it is ten and more."""

DEGREES = 4.0 * np.pi
"""Position of a joint from which on a range that excludes 0 is likely in degrees, rad."""

LARGEST_GYRATION = 2.0
"""Largest radius of gyration of a body, as a multiple of the height of the robot's base. It is the
distance from its centre of mass at which its mass as a point has the same inertia."""

LEAST_SHARE = 0.01
"""Inertia from which on a body matters, as a fraction of m h² of the robot. Links without a real
mass, such as frames of sensors, have inertias without a meaning."""


def check_mesh_sizes(model: mujoco.MjModel) -> None:
    """Raise a ValueError if a mesh is larger than :data:`LONGEST_SHAPE`: it is not in metres."""
    for geom in np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_MESH):
        radius = float(model.geom_rbound[geom])
        if radius > LONGEST_SHAPE:
            body = model.body(model.geom_bodyid[geom]).name
            mesh = model.mesh(model.geom_dataid[geom]).name
            raise ValueError(
                f"the mesh {mesh!r} of {body!r} is {2 * radius:.3g} m long: "
                'if it is in millimetres, write scale="0.001 0.001 0.001"'
            )


def check_shape_sizes(model: mujoco.MjModel) -> None:
    """Raise a ValueError if a box, ball or cylinder is larger than :data:`LONGEST_SHAPE`."""
    # A plane has the radius 0.
    for geom in np.flatnonzero(model.geom_rbound > LONGEST_SHAPE):
        body = model.body(model.geom_bodyid[geom]).name
        length = 2 * model.geom_rbound[geom]
        raise ValueError(f"a shape of {body!r} is {length:.3g} m long: write its size in metres")


def check_height(height: float) -> None:
    """Raise a ValueError if the base is more than :data:`HIGHEST_BASE` above the feet, m."""
    if height > HIGHEST_BASE:
        raise ValueError(
            f"the base is {height:.3g} m above the lowest point: write all lengths in metres, "
            "those of joints and of shapes"
        )


def check_range_excluding_zero(joint: str, low: float, high: float) -> None:
    """Raise a ValueError if the range of a joint, which excludes 0, is likely in degrees."""
    if max(abs(low), abs(high)) > DEGREES:
        raise ValueError(
            f"joint {joint!r} has a range of {low:g} to {high:g} rad, which is several turns from "
            "0: write rad, not degrees"
        )


def note_wrong_inertias(model: mujoco.MjModel, height: float, notes: list[str]) -> None:
    """Note the bodies with an inertia that fits only a body larger than the robot.

    Args:
        model: Robot.
        height: Height of its base above the ground, m.
        notes: Notes. One is added that lists the bodies.
    """
    largest = model.body_inertia.max(axis=1)
    least = LEAST_SHARE * model.body_subtreemass[1] * height**2
    found = []
    for body in range(1, model.nbody):
        mass = model.body_mass[body]
        if largest[body] > least and largest[body] > mass * (LARGEST_GYRATION * height) ** 2:
            found.append(f"{model.body(body).name!r} ({largest[body]:.2g} kg m² at {mass:.2g} kg)")
    if found:
        notes.append(
            f"inertias are too large for the masses, of {', '.join(found)}: write them in kg m²"
        )
