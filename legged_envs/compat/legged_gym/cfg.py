"""The configuration of a task in LeggedGym-Ex's words: a class with a nested class per section."""

import copy
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from legged_envs.mdp.scan import SCAN_X, SCAN_Y
from legged_envs.robots import RobotCfg


class LeggedRobotCfg:
    """Configuration of a :class:`~legged_envs.compat.legged_gym.LeggedRobot`.

    Subclass it, and in it the sections that have other values. A section has the fields of the
    classes that it inherits from in Python; a field that none of them has gets the value that it
    has here. Further fields are allowed: methods of the task may read them.

    An instance has a namespace for each nested class, with copies of the fields, so that values
    can be changed: ``cfg.rewards.scales.torques = -1e-5``.
    """

    def __init__(self) -> None:
        _fill(self, cls=type(self), base=LeggedRobotCfg)

    class env:
        """Sizes, time limit and the end of episodes."""

        num_envs: int = 4096
        """Number of environments, unless ``make_vec`` gives it."""

        # Base velocities 3 + 3, gravity 3, commands 3, and three numbers for each of 12 joints.
        num_observations: int = 48
        """Number of elements of ``obs_buf``."""
        num_actions: int = 12
        """Number of joints of the robot."""
        num_privileged_obs: int | None = None
        """Number of elements of ``privileged_obs_buf``, which a critic sees; None without one."""
        episode_length_s: float = 20.0
        """Time limit of an episode, s."""
        send_timeouts: bool = True
        """True to report truncated episodes in ``extras["time_outs"]``."""
        debug: bool = False
        """True to call ``_draw_debug_vis`` after each step."""
        fail_to_terminal_time_s: float = 0.1
        """Time for which an environment must fail without a break before its episode ends, s."""
        max_projected_gravity: float = -0.1
        """Largest z of the unit vector of gravity in the base frame; the robot has fallen above it.

        An upright base has −1, a base on its side 0.
        """

    class terrain:
        """Ground: a plane, or square tiles with levels of difficulty along x and kinds along y."""

        mesh_type: str = "plane"
        """``"plane"``, or ``"heightfield"`` or ``"trimesh"``, which both make one height field."""
        selected: bool = False
        """False: a single kind of terrain is not supported."""
        curriculum: bool = False
        """True if robots start on low levels and ``_update_terrain_curriculum`` moves them."""
        max_init_terrain_level: int = 1
        """Highest level on which robots start with ``curriculum``."""
        num_rows: int = 4
        """Number of levels."""
        num_cols: int = 4
        """Number of tiles in each level."""
        horizontal_scale: float = 0.1
        """Distance between neighbouring points, m; sizes are multiples of it."""
        vertical_scale: float = 0.005
        """Step of the heights, m."""
        slope_treshold: float = 0.75
        """Slope between two points above which there is an edge (LeggedGym-Ex's spelling)."""
        border_size: float = 5.0
        """Width of the flat margin around all tiles, m."""
        platform_size: float = 3.0
        """Side of the flat middle of slopes, stairs, gaps and pits, m."""
        terrain_length: float = 6.0
        """Side of a tile, m."""
        terrain_width: float = 6.0
        """The same as ``terrain_length``: tiles are square."""
        terrain_proportions: Sequence[float] = (0.1, 0.1, 0.35, 0.25, 0.2)
        """Shares of the kinds of tiles, up to 8.

        In order: slopes (half of them up, half down), noise, stairs up, stairs down, obstacles,
        stepping stones, gaps and pits.
        """
        obtain_terrain_info_around_feet: bool = False
        """Not needed: the simulator always knows the ground around the feet."""
        measure_heights: bool = False
        """True to append heights of the ground around the robot to the observations."""
        measured_points_x: Sequence[float] = SCAN_X
        """Distances ahead of the base at which heights are measured, m."""
        measured_points_y: Sequence[float] = SCAN_Y
        """Distances to the left of the base at which heights are measured, m."""

    class commands:
        """Velocity commands."""

        curriculum: bool = False
        """True if ``_update_command_curriculum`` widens the range of forward velocities."""
        max_curriculum: float = 1.0
        """Bound of the widened range, m/s."""
        curriculum_threshold: float = 0.8
        """Share of the greatest tracking reward from which on the range is widened."""
        num_commands: int = 4
        """Columns of ``commands``: vx, vy, ωz and, if 4, the heading."""
        heading_command: bool = True
        """True if ωz turns the robot towards a drawn heading."""
        resampling_time: float = 10.0
        """Time for which a command is kept, s."""
        zero_cmd_prob: float = 0.0
        """Probability that a command is zero."""
        small_command: float = 0.2
        """Norm of (vx, vy) up to which both become 0, m/s."""

        class ranges:
            """(low, high) of the commands when a training starts."""

            lin_vel_x: tuple[float, float] = (-1.0, 1.0)
            """Range of vx, m/s."""
            lin_vel_y: tuple[float, float] = (-1.0, 1.0)
            """Range of vy, m/s."""
            ang_vel_yaw: tuple[float, float] = (-1.0, 1.0)
            """Range of ωz, rad/s."""
            heading: tuple[float, float] = (-3.14, 3.14)
            """Range of the heading, rad."""

    class init_state:
        """First pose of an episode."""

        pos: Sequence[float] | None = None
        """First position of the base, m; only its height is read. None: the robot's."""
        default_joint_angles: Mapping[str, float] | None = None
        """Pose at action 0: part of a joint's name mapped to its angle, rad. None: the robot's."""
        yaw_random_scale: float = 0.0
        """Largest turn of the base to both sides, rad."""
        dof_pos_random_scale: float = 0.2
        """Largest change of a joint angle to both sides, rad."""
        velocity_random_scale: float = 0.5
        """Bound of the components of the base's first velocity, m/s and rad/s."""

    class control:
        """Actions and gains."""

        control_type: str = "P"
        """Targets of the joints: ``"P"`` positions, ``"V"`` velocities, ``"T"`` torques."""
        action_scale: float = 0.5
        """Change of a target by an action of 1, rad, rad/s or N·m."""
        decimation: int = 4
        """Physics steps per control step."""
        stiffness: Mapping[str, float] | None = None
        """Part of a joint's name mapped to the gain on the error of the target.

        N·m/rad for ``"P"``; N·m·s/rad for ``"V"``, which needs it. None: the robot's.
        """
        damping: Mapping[str, float] | None = None
        """Part of a joint's name mapped to its damping for ``"P"``, N·m·s/rad.

        None: the robot's.
        """

    class asset:
        """The robot and the meaning of its bodies."""

        robot: RobotCfg | None = None
        """The robot; None for the robot called ``name``."""
        name: str | None = None
        """Name of a robot of :mod:`legged_envs.robots`, such as ``"go2"``."""
        dof_names: list[str] | None = None
        """Names of the joints in the robot's order, for a check; None: not checked."""
        penalize_contacts_on: Sequence[str] | None = None
        """Parts of the names of bodies that ``_reward_collision`` counts. None: the robot's."""
        obtain_link_contact_states: bool = False
        """Not needed: ``contact_state_link_names`` decides."""
        contact_state_link_names: Sequence[str] = ()
        """Parts of the names of the bodies in ``simulator.link_contact_states``."""
        terminate_after_contacts_on: Sequence[str] | None = None
        """Parts of the names of bodies on which contact ends an episode. None: the robot's."""

    class rewards:
        """Rewards, which are methods ``_reward_<name>`` of the task."""

        only_positive_rewards: bool = True
        """True if the sum of all rewards but ``termination`` is floored at 0."""
        tracking_sigma: float = 0.25
        """Squared error at which a tracking reward is 1/e, (m/s)² or (rad/s)²."""
        soft_dof_pos_limit: float = 1.0
        """Share of a joint's range outside of which ``dof_pos_limits`` counts."""
        soft_torque_limit: float = 1.0
        """Share of a joint's torque limit above which ``torque_limits`` counts."""
        about_landing_threshold: float = 0.05
        """Height of a foot below which ``foot_landing_vel`` counts its downward speed, m."""
        foot_clearance_target: float = 0.04
        """Height of a swinging foot above its stance that ``foot_clearance`` rewards, m."""
        foot_height_offset: float = 0.0
        """Height of a foot's origin above the ground in stance, m."""
        foot_clearance_tracking_sigma: float = 0.01
        """Error at which ``foot_clearance`` is 1/e, m³/s."""
        max_contact_force: float = 100.0
        """Force on a foot above which ``feet_contact_forces`` counts, N."""
        base_height_target: float = 1.0
        """Height of the base above the ground that ``base_height`` compares with, m."""

        class scales:
            """``name = scale``: reward per second at a value of 1; 0 leaves the reward out."""

            termination: float = 0.0
            """Scale of the failures, added after the floor of ``only_positive_rewards``."""
            tracking_lin_vel: float = 0.0
            """Scale of the reward for following (vx, vy)."""
            tracking_ang_vel: float = 0.0
            """Scale of the reward for following ωz."""

        class params:
            """``name = {parameter: value}``: parameters of built-in rewards."""

            feet_air_time: ClassVar[dict[str, float]] = {"target": 0.3}
            """Air time of a foot above which ``feet_air_time`` rewards its footstep, s."""

    class costs:
        """Costs: terms of :mod:`legged_envs.mdp.costs`, and entries that ``_get_costs`` returns."""

        # Empty, as every limit adds a cost to the task.
        class limits:
            """``name = limit``: largest allowed mean of a cost per step."""

        class params:
            """``name = {parameter: value}``: parameters of built-in costs."""

    class domain_rand:
        """Randomization of the robots, and pushes."""

        randomize_friction: bool = True
        """True to draw the friction of the robot with the ground in each episode."""
        friction_range: Sequence[float] = (0.5, 1.25)
        """Range of the friction coefficient."""
        randomize_base_mass: bool = True
        """True to add a mass to the base when an environment is seeded."""
        added_mass_range: Sequence[float] = (-1.0, 1.0)
        """Range of the added mass, kg."""
        randomize_com_displacement: bool = True
        """True to displace the base's centre of mass when an environment is seeded."""
        com_pos_x_range: Sequence[float] = (-0.01, 0.01)
        """Range of the displacement along x, m; those along y and z must be equal to it."""
        com_pos_y_range: Sequence[float] = (-0.01, 0.01)
        """Range of the displacement along y, m."""
        com_pos_z_range: Sequence[float] = (-0.01, 0.01)
        """Range of the displacement along z, m."""
        randomize_pd_gain: bool = False
        """True to scale the gains of the joints in each episode."""
        kp_range: Sequence[float] = (0.8, 1.2)
        """Range of the factor of position gains; velocity gains must have the same range."""
        kd_range: Sequence[float] = (0.8, 1.2)
        """Range of the factor of velocity gains."""
        randomize_joint_armature: bool = False
        """True to draw the armature of the joints when an environment is seeded."""
        joint_armature_range: Sequence[float] = (0.0, 0.05)
        """Range of the armature, kg·m², one value for all joints of a robot."""
        randomize_joint_friction: bool = False
        """True to draw the dry friction of the joints when an environment is seeded. Only in the
        engine ``mujoco``."""
        joint_friction_range: Sequence[float] = (0.0, 0.1)
        """Range of the dry friction, N·m, one value for all joints of a robot."""
        randomize_joint_damping: bool = False
        """True to draw the damping of the joints when an environment is seeded. Only in the engine
        ``mujoco``."""
        joint_damping_range: Sequence[float] = (0.0, 1.0)
        """Range of the damping in addition to the motors, N·m·s/rad, one value for all joints."""
        push_robots: bool = True
        """True to push the robots now and then."""
        push_interval_s: float | tuple[float, float] = 15.0
        """Time between two pushes, s: a number or (least, most)."""
        max_push_vel_xy: float = 1.0
        """Bound of the components of a push's velocity along x and y, m/s."""
        randomize_ctrl_delay: bool = False
        """True to delay the actions of an episode by a drawn number of control steps."""
        ctrl_delay_step_range: Sequence[int] = (0, 1)
        """Range of the delay, control steps; at most 1, and the lower end is 0 in any case."""

    class sensor:
        """Sensors of the robot."""

        add_depth: bool = False
        """False: tasks have no depth cameras."""

    class normalization:
        """Bounds and factors of observations and actions."""

        clip_observations: float = 100.0
        """Bound of the observations."""
        clip_actions: float = 100.0
        """Bound of the actions."""

        class obs_scales:
            """Factors of the observed quantities."""

            lin_vel: float = 1.0
            """Factor of linear velocities, s/m."""
            ang_vel: float = 0.25
            """Factor of angular velocities, s/rad."""
            dof_pos: float = 1.0
            """Factor of joint angles relative to the default pose, 1/rad."""
            dof_vel: float = 0.05
            """Factor of joint velocities, s/rad."""
            height_measurements: float = 5.0
            """Factor of heights, 1/m."""

    class noise:
        """Noise of ``obs_buf``, uniform within ± its scale."""

        add_noise: bool = True
        """True if observations are noisy."""
        noise_level: float = 1.0
        """Factor of all scales."""

        class noise_scales:
            """Half-widths of the noise, before the factors of ``obs_scales``."""

            dof_pos: float = 0.01
            """Noise of joint angles, rad."""
            dof_vel: float = 0.5
            """Noise of joint velocities, rad/s."""
            lin_vel: float = 0.1
            """Noise of the base's linear velocity, m/s."""
            ang_vel: float = 0.2
            """Noise of the base's angular velocity, rad/s."""
            gravity: float = 0.05
            """Noise of the direction of gravity."""
            height_measurements: float = 0.1
            """Noise of heights, m."""

    class viewer:
        """Camera of pictures and windows."""

        ref_env: int = 0
        """Environment that is shown."""
        pos: tuple[float, float, float] | None = None
        """Position of the camera, m. None: the camera of the robot's model."""
        lookat: tuple[float, float, float] | None = None
        """Point that the camera looks at, m. None: the origin."""

    class sim:
        """Physics."""

        dt: float = 0.005
        """Duration of one physics step, s."""


def _fill(section: Any, cls: type, base: type | None) -> Any:
    """Copy the fields of a class into an object, with a namespace for each nested class.

    Args:
        section: Object that gets the fields.
        cls: Class of the section, perhaps a user's.
        base: The same section of :class:`LeggedRobotCfg`; None if that has no such section.

    Returns:
        ``section``.
    """
    # Python inherits within a user's classes only if each section is subclassed too. The defaults
    # fill what a plain nested class leaves out.
    defaults = {} if base is None else _inherited_attributes(base)
    values = {**defaults, **_inherited_attributes(cls)}
    for name, value in values.items():
        if isinstance(value, type):
            default = defaults.get(name)
            nested_base = default if isinstance(default, type) else None
            value = _fill(SimpleNamespace(), cls=value, base=nested_base)
        # Copies: a change of a dict or list must not reach the class, which other instances share.
        setattr(section, name, copy.deepcopy(value))
    return section


def _inherited_attributes(cls: type) -> dict[str, Any]:
    """Return the attributes that a class has or inherits; inherited attributes come first."""
    attributes: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        for name, value in vars(each).items():
            if not name.startswith("__"):
                attributes[name] = value
    return attributes
