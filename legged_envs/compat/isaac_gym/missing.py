"""The error for names of Isaac Gym that this package does not have."""

ADVICE: dict[str, tuple[str, ...]] = {
    "there are only rigid bodies, take cloth, soft bodies and particles out": (
        "cloth",
        "tet_grid",
        "tetrahedra",
        "triangles",
        "triangle_count",
        "triangle_range",
        "particle",
        "pneumatic",
        "soft",
        "Soft",
        "Particle",
        "MAT_COROTATIONAL",
        "MAT_NEOHOOKEAN",
        "actor_materials",
    ),
    "robots have no tendons, leave them out": ("tendon", "Tendon", "TENDON"),
    "USD files are not read or written, use URDF or MJCF": (
        "usd",
        "USD",
        "Usd",
        "omni",
        "Omni",
        "load_opensim",
    ),
    "there are no attractors, pull bodies with apply_rigid_body_force_tensors": (
        "attractor",
        "Attractor",
    ),
    "pictures have the colours of the robots' files": ("texture", "rigid_body_color"),
    "contacts are read as net forces of bodies, with acquire_net_contact_force_tensor": (
        "rigid_contact",
        "RigidContact",
    ),
    "states are written with set_actor_root_state_tensor and set_dof_state_tensor": (
        "set_actor_rigid_body_states",
        "set_env_rigid_body_states",
        "set_sim_rigid_body_states",
        "set_rigid_body_state_tensor",
        "set_rigid_angular_velocity",
        "set_rigid_linear_velocity",
        "set_rigid_transform",
    ),
    "forces are applied with apply_rigid_body_force_tensors": ("apply_body_force",),
    "a simulation keeps its environments and actors, destroy it and make another": (
        "destroy_actor",
        "destroy_env",
    ),
    "joints that move are DOFs, use find_actor_dof_handle and get_dof_position": (
        "get_joint_",
        "set_joint_",
        "joint_transforms",
        "dof_frame",
        "DofFrame",
    ),
    "measure time with time.perf_counter": ("performance_timers", "PerformanceTimers"),
    "load_asset reads URDF and MJCF files": ("load_urdf", "load_mjcf", "load_sim"),
    "create_asset_force_sensor and acquire_force_sensor_tensor measure forces": (
        "create_force_sensor",
        "get_actor_force_sensor",
        "get_sensor",
    ),
    "acquire_gym needs no separate start, leave the call out": (
        "carb_init",
        "initialize",
        "attach_sim",
        "set_sim_device",
    ),
}
"""What to do instead, mapped to parts of the names of Isaac Gym for which it counts."""


def make_missing_name_error(name: str) -> AttributeError:
    """Return the error for a name of Isaac Gym that is not here.

    It is an AttributeError, which tools expect that look for a name in all modules. A statement
    `from … import …` turns it into an ImportError of Python with the name.

    Args:
        name: The name with its module, such as ``gymapi.VhacdParams``.
    """
    return AttributeError(
        f"{name} of Isaac Gym is not in legged_envs.compat.isaac_gym: {_find_advice(name)}; "
        "docs/isaacgym.md lists the names that exist"
    )


def _find_advice(name: str) -> str:
    for advice, parts in ADVICE.items():
        if any(part in name for part in parts):
            return advice
    return "ask for it in an issue of legged-envs"
