"""The configuration of a :class:`~legged_envs.workflows.legged_robot.LeggedRobot`: nested classes in LeggedGym-Ex's
words."""

import copy
import warnings
from collections.abc import Collection
from typing import Any, cast

from legged_envs.checks import did_you_mean

DEFAULT = ("lin_vel", "gravity", "ang_vel", "commands", "dof_pos", "dof_vel", "actions")


class BaseConfig:
    """A tree of classes; an instance has an instance of each nested class, and fields of its own, in the order of their
    definition."""

    def __init__(self) -> None:
        _instantiate(self, LeggedRobotCfg if isinstance(self, LeggedRobotCfg) else BaseConfig)


def _instantiate(section: Any, base: type) -> None:
    classes = (*reversed(base.__mro__), *reversed(type(section).__mro__))
    for name in dict.fromkeys(name for each in classes for name in vars(each) if not name.startswith("__")):
        default = getattr(base, name, None)
        value = copy.deepcopy(getattr(section, name, default))
        if isinstance(value, type):
            value = value()
            _instantiate(value, default if isinstance(default, type) else object)
        setattr(section, name, value)


class LeggedRobotCfg(BaseConfig):
    """Subclass it, and the sections whose fields are to differ; what a section leaves out has the value here."""

    class env:
        num_envs, num_observations, num_actions = 4096, 48, 12
        num_privileged_obs: int | None = None
        episode_length_s, send_timeouts, debug = 20.0, True, False
        fail_to_terminal_time_s, max_projected_gravity = 0.1, -0.1
        observations = DEFAULT
        privileged_observations = (*DEFAULT, "last_actions", "friction", "base_mass_offset", "base_com_offset", "push")
        """What ``compute_observations`` fills the buffers with: these, or terms of ``legged_envs.mdp.observations``."""

    class terrain:
        mesh_type = "plane"
        curriculum = measure_heights = selected = False

    class commands:
        curriculum, max_curriculum, curriculum_threshold = False, 1.0, 0.8
        num_commands, heading_command, zero_cmd_prob, small_command = 4, True, 0.0, 0.2
        """How probable a command to stand still is, and the norm up to which a linear command becomes 0, m/s."""
        resampling_time: Any = 10.0

        class ranges:
            lin_vel_x = lin_vel_y = ang_vel_yaw = (-1.0, 1.0)
            heading = (-3.14, 3.14)

    class init_state:
        pos: Any = None
        default_joint_angles: Any = None
        """First position of the base, m, and pose at action 0, rad; None for those of the robot."""
        rot = (0.0, 0.0, 0.0, 1.0)
        roll_random_scale = pitch_random_scale = yaw_random_scale = 0.0
        dof_pos_random_scale, velocity_random_scale = 0.2, 0.5
        """By how much first poses, rad, and first velocities of the base, m/s and rad/s, vary to both sides."""

    class control:
        control_type, action_scale, decimation = "P", 0.5, 4
        stiffness: Any = None
        damping: Any = None
        """Part of a joint's name → gain; None for those of the robot."""

    class asset:
        robot: Any = None
        name: Any = None
        """A :class:`RobotCfg`, or the name of one of this package."""
        penalize_contacts_on: Any = None
        terminate_after_contacts_on: Any = None
        """Parts of the names of bodies; None for those of the robot."""
        dof_names: Any = None
        fix_base_link = disable_gravity = False

    class rewards:
        only_positive_rewards, tracking_sigma = True, 0.25
        soft_dof_pos_limit = soft_torque_limit = base_height_target = 1.0
        foot_clearance_target, foot_height_offset, foot_clearance_tracking_sigma = 0.04, 0.0, 0.01

        class scales:
            termination = tracking_lin_vel = tracking_ang_vel = 0.0

        class params:
            """``name = {parameter: value}``: more parameters of a built-in reward."""

    class costs:
        class limits:
            """``name = limit``, an average per step, of a term of ``legged_envs.mdp.costs`` or of ``_get_costs``."""

        class params:
            """``name = {parameter: value}``: parameters of a built-in cost."""

    class domain_rand:
        randomize_friction, friction_range = True, (0.5, 1.25)
        randomize_base_mass, added_mass_range = True, (-1.0, 1.0)
        randomize_com_displacement = push_robots = True
        com_pos_x_range = com_pos_y_range = com_pos_z_range = (-0.01, 0.01)
        max_push_vel_xy, push_interval_s = 1.0, cast(Any, 15.0)
        randomize_ctrl_delay, ctrl_delay_step_range = False, (0, 1)
        kp_range = kd_range = (0.8, 1.2)
        randomize_pd_gain = push_links = False
        randomize_joint_armature = randomize_joint_friction = randomize_joint_damping = False

    class normalization:
        clip_observations = clip_actions = 100.0

        class obs_scales:
            lin_vel, ang_vel, dof_pos, dof_vel = 1.0, 0.25, 1.0, 0.05
            commands: Any = None
            """None for (lin_vel, lin_vel, ang_vel)."""

    class noise:
        add_noise, noise_level = True, 1.0

        class noise_scales:
            dof_pos, dof_vel, lin_vel, ang_vel, gravity = 0.01, 0.5, 0.1, 0.2, 0.05

    class viewer:
        ref_env, follow_robot, lookat = 0, False, (0.0, 0.0, 0.0)
        pos: Any = None
        """m, from the robot with ``follow_robot``; None for the camera of the robot's model."""

    class sim:
        dt, substeps, gravity = 0.005, 1, (0.0, 0.0, -9.81)


class LeggedRobotCfgPPO(BaseConfig):
    """The configuration of a training, which the task registry hands out."""

    class policy: ...

    class algorithm: ...

    class runner: ...


ONLY: dict[str, Any] = {f"domain_rand.randomize_joint_{part}": False for part in ("armature", "friction", "damping")}
ONLY |= {"terrain.mesh_type": "plane", "terrain.measure_heights": False, "terrain.selected": False, "sim.substeps": 1}
ONLY |= {"domain_rand.push_links": False, "asset.fix_base_link": False, "asset.disable_gravity": False}
ONLY |= {"init_state.roll_random_scale": 0.0, "init_state.pitch_random_scale": 0.0}
ONLY |= {"init_state.rot": (0, 0, 0, 1), "sim.gravity": (0, 0, -9.81)}
"""Fields that can have no other value yet."""
WITHOUT_EFFECT = {
    "env_spacing",
    "debug_sensor_images",
    "file",
    "foot_name",
    "base_link_name",
    "links_to_keep",
    "sensor",
}
WITHOUT_EFFECT |= {"dof_armature", "dof_vel_limits", "flip_visual_attachments", "self_collisions", "physx", "lin_vel"}
WITHOUT_EFFECT |= {"collapse_fixed_joints", "default_dof_drive_mode", "replace_cylinder_with_capsule", "ang_vel", "dt"}
"""Fields of LeggedGym-Ex for what the model of the robot has, or this engine has not."""


def check_fields(cfg: Any, read: Collection[str], base: Any = None, path: str = "cfg") -> None:
    """Warn of a field that would be ignored, because neither this module knows it nor the task ``read``s it. Raise
    ValueError if it is like another's name, or a field has another value than :data:`ONLY` allows."""
    if not isinstance(cfg, LeggedRobotCfg) and base is None:
        raise TypeError(f"cfg must be an instance of a subclass of LeggedRobotCfg, got {cfg!r}")
    base = base or LeggedRobotCfg()
    free = path.endswith(("scales", ".params", ".limits"))  # names of terms, which are checked as such
    for name, value in vars(cfg).items():
        here, ours = f"{path}.{name}", getattr(base, name, None)
        if type(ours).__module__ == __name__:
            if not hasattr(value, "__dict__"):
                raise ValueError(f"{here} must be a class, got {value!r}")
            check_fields(value, read, ours, here)
        elif not (free or hasattr(base, name) or name in read or name in WITHOUT_EFFECT or name.startswith("_")):
            wrong, alike = f"{here} is ignored: no method of the task reads it", did_you_mean(name, vars(base))
            if alike:
                raise ValueError(f"{wrong}; {alike}{path} has: {', '.join(vars(base))}")
            warnings.warn(wrong, stacklevel=2)
        needed = ONLY.get(here.removeprefix("cfg."))
        if needed is not None and (tuple(value) if isinstance(value, (list, tuple)) else value) != needed:
            raise ValueError(f"{here} = {value!r} is not there yet: it must be {needed!r}")
