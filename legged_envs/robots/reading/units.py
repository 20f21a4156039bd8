"""Finds lengths in millimetres and inertias in other units in a robot's file."""

import mujoco
import numpy as np

LONGEST_SHAPE = 10.0
"""Largest radius of a mesh of a robot, m. Meshes in millimetres have a hundred and more."""

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
