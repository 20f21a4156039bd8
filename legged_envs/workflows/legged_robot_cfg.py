"""The configuration of a :class:`~legged_envs.workflows.legged_robot.LeggedRobot`: nested classes in LeggedGym-Ex's
words."""

import copy
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Any

NONE: Any = None
ONLY: dict[str, Any] = {f"domain_rand.randomize_joint_{part}": False for part in ("armature", "friction", "damping")}
ONLY |= dict.fromkeys(("domain_rand.push_links", "asset.fix_base_link", "terrain.measure_heights"), False)
ONLY |= dict.fromkeys(("init_state.roll_random_scale", "init_state.pitch_random_scale"), 0.0)
ONLY |= {"terrain.mesh_type": "plane", "terrain.selected": False, "asset.disable_gravity": False, "sim.substeps": 1}
ONLY |= {"sim.gravity": [0.0, 0.0, -9.81], "init_state.rot": [0.0, 0.0, 0.0, 1.0]}
"""LeggedGym-Ex's fields that can have no other value yet."""


def _fields(cls: Any) -> dict[str, Any]:
    """The class attributes as Python inherits them, in their order; none of what is no class."""
    return {k: v for each in getattr(cls, "__mro__", ())[::-1] for k, v in vars(each).items() if k[:2] != "__"}


def _fill(section: Any, cls: type, base: Any) -> Any:
    """``section`` with copies of the fields of ``cls``, and of those of ``base`` which that lacks."""
    defaults = _fields(base)
    for name, value in (defaults | _fields(cls)).items():
        if isinstance(value, type):
            value = _fill(SimpleNamespace(), value, defaults.get(name))
        setattr(section, name, copy.deepcopy(value))
    return section


class LeggedRobotCfg:
    """Subclass it, and the sections whose fields are to differ: they have the fields of the classes they inherit from
    in Python, and what those leave out has the value here. An instance has a namespace for each nested class, with
    copies of the fields."""

    def __init__(self) -> None:
        _fill(self, type(self), LeggedRobotCfg)

    class env:
        num_envs, num_observations, num_actions, num_privileged_obs = 4096, 48, 12, NONE
        episode_length_s, send_timeouts, debug = 20.0, True, False
        fail_to_terminal_time_s, max_projected_gravity = 0.1, -0.1

    class terrain:
        mesh_type, curriculum, measure_heights = "plane", False, False

    class commands:
        curriculum, max_curriculum, curriculum_threshold = False, 1.0, 0.8
        num_commands, heading_command, zero_cmd_prob, small_command = 4, True, 0.0, 0.2
        """How probable a command to stand still is, and the norm up to which a linear command becomes 0, m/s."""
        resampling_time: Any = 10.0

        class ranges:
            lin_vel_x = lin_vel_y = ang_vel_yaw = (-1.0, 1.0)
            heading = (-3.14, 3.14)

    class init_state:
        pos = default_joint_angles = NONE
        """First position of the base, m, and pose at action 0, rad; None for those of the robot."""
        yaw_random_scale, dof_pos_random_scale, velocity_random_scale = 0.0, 0.2, 0.5
        """By how much first poses, rad, and first velocities of the base, m/s and rad/s, vary to both sides."""

    class control:
        control_type, action_scale, decimation = "P", 0.5, 4
        stiffness = damping = NONE
        """Part of a joint's name → gain; None for those of the robot."""

    class asset:
        robot = name = dof_names = NONE
        """A :class:`RobotCfg`, or the name of one of this package, and its joints in their order."""
        penalize_contacts_on = terminate_after_contacts_on = NONE
        """Parts of the names of bodies; None for those of the robot."""

    class rewards:
        only_positive_rewards, tracking_sigma = True, 0.25
        soft_dof_pos_limit = soft_torque_limit = base_height_target = 1.0

        class scales:
            termination = tracking_lin_vel = tracking_ang_vel = 0.0

        class params:
            """``name = {parameter: value}``: parameters of built-in rewards."""

            feet_air_time: Any = {"target": 0.3}  # noqa: RUF012

    class costs:
        class limits:
            """``name = limit``, an average per step, of a term of ``legged_envs.mdp.costs`` or of ``_get_costs``."""

        class params:
            """``name = {parameter: value}``: parameters of built-in costs."""

    class domain_rand:
        randomize_friction, friction_range = True, (0.5, 1.25)
        randomize_base_mass, added_mass_range = True, (-1.0, 1.0)
        randomize_com_displacement, push_robots, max_push_vel_xy = True, True, 1.0
        com_pos_x_range = com_pos_y_range = com_pos_z_range = (-0.01, 0.01)
        push_interval_s: Any = 15.0
        randomize_ctrl_delay, ctrl_delay_step_range, randomize_pd_gain = False, (0, 1), False
        kp_range = kd_range = (0.8, 1.2)

    class normalization:
        clip_observations = clip_actions = 100.0

        class obs_scales:
            lin_vel, ang_vel, dof_pos, dof_vel = 1.0, 0.25, 1.0, 0.05

    class noise:
        add_noise, noise_level = True, 1.0

        class noise_scales:
            dof_pos, dof_vel, lin_vel, ang_vel, gravity = 0.01, 0.5, 0.1, 0.2, 0.05

    class viewer:
        ref_env, pos, lookat = 0, NONE, NONE
        """In m; None for the camera of the robot's model."""

    class sim:
        dt = 0.005


def check_fields(cfg: Any, base: Any = None, path: str = "") -> None:
    """Raise ValueError if a field is spelt like another, or has another value than :data:`ONLY` allows. Fields of
    another name are the task's own."""
    if not isinstance(cfg, LeggedRobotCfg if base is None else SimpleNamespace):
        raise TypeError(f"cfg{path} must be of a subclass of LeggedRobotCfg, or a class in one, got {cfg!r}")
    known = vars(base or LeggedRobotCfg())
    for name, value in vars(cfg).items():
        here, alike = f"{path}.{name}", get_close_matches(name, known, 1, 0.9 if len(name) > 7 else 0.8)
        if isinstance(known.get(name), SimpleNamespace):
            check_fields(value, known[name], here)
        elif name not in known and alike and not path.startswith((".rewards.", ".costs.")):
            raise ValueError(f"cfg{here} is no field: did you mean {alike[0]!r}? cfg{path} has: {', '.join(known)}")
        if value != (only := ONLY.get(here[1:], value)):
            raise ValueError(f"cfg{here} = {value!r} is not there yet: it must be {only!r}")
