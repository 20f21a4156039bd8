"""The state of the robots that rewards, observations and other terms of a task read."""

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from legged_envs import rotation
from legged_envs.robots.robot import RobotCfg
from legged_envs.sim.bodies import Bodies, index_of
from legged_envs.sim.joint_tables import JointTables
from legged_envs.sim.simulation import Simulation
from legged_envs.state import Stateful
from legged_envs.tables import TableRepr

ALL = slice(None)
"""Index of all environments."""
CONTACT_FORCE = 1.0
"""Contact force above which a foot counts as standing, N. It is legged_gym's threshold."""


class RobotState(JointTables, TableRepr, Stateful):
    """State of the robot in every environment, which terms of a task read as ``env.robot``.

    It has the quantities of the simulation and tensors that are computed from them, such as foot
    contacts. ``read`` and ``compute`` update it once after each control step. Tensors are float32
    or bool. World z is up, quaternions are (w, x, y, z), ``_w`` is the world frame, ``_b`` the base
    frame.

    "Lags" means that after a control step the tensor describes the start of the last physics step,
    as after ``mj_step``. After a reset everything is current.

    Args:
        sim: Simulation of the robots.
        step_dt: Duration of one control step, s.
    """

    root_pos_w: Tensor
    """Positions of the bases' origins in the world frame, m. Shape: (num_envs, 3)."""
    root_quat_w: Tensor
    """Orientations of the bases in the world frame, (w, x, y, z). Shape: (num_envs, 4)."""
    root_lin_vel_w: Tensor
    """Velocities of the bases' origins in the world frame, m/s. Shape: (num_envs, 3)."""
    root_ang_vel_b: Tensor
    """Angular velocities of the bases in the base frame, rad/s. Shape: (num_envs, 3)."""
    lin_vel_b: Tensor
    """Velocities of the bases' origins in the base frame, m/s. Shape: (num_envs, 3)."""
    projected_gravity: Tensor
    """Direction of gravity in the base frame, (0, 0, −1) when upright. Shape: (num_envs, 3)."""
    base_height: Tensor
    """Heights of the bases above the ground below them, m. Shape: (num_envs,)."""
    joint_pos: Tensor
    """Joint positions, rad. Shape: (num_envs, num_joints)."""
    joint_vel: Tensor
    """Joint velocities, rad/s. Shape: (num_envs, num_joints)."""
    joint_torque: Tensor
    """Torque that each joint's actuator applied, after clipping to its limit, N m. Lags.

    Shape: (num_envs, num_joints).
    """
    joint_offset: Tensor
    """Joint positions minus the default pose, rad. 0 for ``endless`` joints, such as wheels.

    Shape: (num_envs, num_joints).
    """
    contact_force_w: Tensor
    """Net contact force on each body in the world frame, N. Lags.

    Shape: (num_envs, num_bodies, 3).
    """
    contact_force: Tensor
    """Magnitude of the net contact force on each body, N. Lags. Shape: (num_envs, num_bodies)."""
    foot_pos_w: Tensor
    """Positions of the feet's origins in the world frame, m. Lags.

    Shape: (num_envs, num_feet, 3).
    """
    foot_lin_vel_w: Tensor
    """Velocities of the feet's origins in the world frame, m/s. Lags.

    Shape: (num_envs, num_feet, 3).
    """
    foot_height: Tensor
    """Heights of the feet's origins above the ground below them, m. Lags.

    Shape: (num_envs, num_feet).
    """
    foot_speed: Tensor
    """Speed of each foot's origin parallel to the ground, m/s. Lags.

    For a wheel it is the speed of its point next to the ground, which is 0 without slip. Shape:
    (num_envs, num_feet).
    """
    STATE: tuple[str, ...] = (
        "foot_contact",
        "foot_landed",
        "foot_air_time",
        "foot_contact_time",
        "previous_joint_vel",
        "last_joint_vel",
        "last_push_velocity",
    )

    def __init__(self, sim: Simulation, step_dt: float):
        self.sim = sim
        """Simulation of the robots."""
        self.step_dt = step_dt
        """Duration of one control step, s."""
        self._tables: dict[Hashable, Any] = {}
        self._bodies: dict[tuple[str, ...], Bodies] = {}
        self._set_constants(sim.robot)
        self._read_quantities()
        self._derive()
        # After the quantities, because the histories have the shapes of their tensors.
        self._start_histories()

    def _describe(self) -> str:
        return f"{self.sim}"

    def _set_constants(self, robot: RobotCfg) -> None:
        sim = self.sim

        self.default_joint_pos = self._row(robot.default_joint_pos)
        """Joint positions of the default pose, rad. Shape: (num_joints,)."""
        self.torque_limits = self._row(robot.torque_limits)
        """Largest absolute torque of each joint, N m. Shape: (num_joints,)."""
        self.joint_vel_limits = self._row(robot.velocity_limits)
        """Largest absolute velocity of each joint that the real motor reaches, rad/s. Shape:
        (num_joints,)."""
        self.joint_pos_limits = sim.joint_pos_limits.to(sim.device)
        """Lower and upper end of each joint's range, rad; ±inf for a joint without limits. Shape:
        (num_joints, 2)."""
        follows_velocity = [kind == "velocity" for kind in robot.actuators]
        has_no_limits = self.joint_pos_limits.isinf().all(1)

        self.endless = torch.tensor(follows_velocity, device=sim.device) & has_no_limits
        """True for joints with a velocity actuator and without limits, such as wheels.

        Their positions only count turns. Shape: (num_joints,), bool.
        """
        # Computed once: in each step it would make the CPU wait for the GPU.
        self._any_endless = bool(self.endless.any())
        undesired_bodies = (*robot.penalized_bodies, *robot.termination_bodies)

        self.feet = self._body_index(robot.foot_names)
        """Index that selects the feet in the body dimension, for example of ``contact_force``."""
        self.penalized_bodies = self._body_index(robot.penalized_bodies)
        """Index that selects ``RobotCfg.penalized_bodies`` in the body dimension."""
        self.termination_bodies = self._body_index(robot.termination_bodies)
        """Index that selects ``RobotCfg.termination_bodies`` in the body dimension."""
        self.undesired_bodies = self._body_index(undesired_bodies)
        """Index that selects the penalized and then the termination bodies in the body
        dimension."""
        self._foot_bits = 2 ** torch.arange(len(robot.foot_names), device=sim.device)
        self._gravity = self._row((0.0, 0.0, -1.0))

        self._axle = self._row((0.0, 1.0, 0.0))
        """Axle of a wheel in its own frame."""

    def _row(self, values: tuple[float, ...]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.sim.device)

    def _body_index(self, names: tuple[str, ...]) -> slice | Tensor:
        return index_of(self.sim.body_ids(names), self.sim.device)

    def _start_histories(self) -> None:
        self.foot_contact = torch.zeros_like(self.foot_height, dtype=torch.bool)
        """True for feet that stand: their contact force is above `CONTACT_FORCE`. Lags.

        Shape: (num_envs, num_feet), bool.
        """
        self.foot_landed = torch.zeros_like(self.foot_height, dtype=torch.bool)
        """True for feet that touched down after a swing in the last control step.

        Shape: (num_envs, num_feet), bool.
        """
        self.foot_air_time = torch.zeros_like(self.foot_height)
        """Duration of each foot's present swing, or of the swing that ended in the last control
        step, s. 0 during a stance. Shape: (num_envs, num_feet)."""
        self.foot_contact_time = torch.zeros_like(self.foot_height)
        """Duration of each foot's present stance, s. 0 during a swing. Shape: (num_envs,
        num_feet)."""
        self.previous_joint_vel = torch.zeros_like(self.joint_pos)
        """Joint velocities one control step before ``joint_vel``, rad/s. Shape: (num_envs,
        num_joints)."""
        self.last_joint_vel = torch.zeros_like(self.joint_pos)
        """Copy of the joint velocities after the last control step or reset, rad/s. Shape:
        (num_envs, num_joints)."""
        self.last_push_velocity = torch.zeros_like(self.root_pos_w)
        """Velocity in the world frame that the last push of the episode added to the base, m/s.

        0 if there was no push. Shape: (num_envs, 3).
        """

    # --- Reading ----------------------------------------------------------------------------------

    def read(self) -> None:
        """Read the quantities of the simulation after a control step.

        Call `compute` next. Between the two calls, tensors that are computed from quantities, such
        as ``foot_height``, still belong to the control step before.
        """
        # No copy is needed, because `compute` replaces `last_joint_vel` by a new tensor.
        self.previous_joint_vel = self.last_joint_vel
        self._read_quantities()
        for bodies in self._bodies.values():
            bodies.read()

    def compute(self) -> None:
        """Compute all tensors that depend on the quantities from `read`, in every environment."""
        self._derive()
        self._update_histories()
        for bodies in self._bodies.values():
            bodies.compute()

    def _read_quantities(self) -> None:
        """Take the simulation's tensors, which it changes in place in its next step."""
        sim = self.sim
        self.root_pos_w = sim.root_pos_w
        self.root_quat_w = sim.root_quat_w
        self.root_lin_vel_w = sim.root_lin_vel_w
        self.root_ang_vel_b = sim.root_ang_vel_b
        self.joint_pos = sim.joint_pos
        self.joint_vel = sim.joint_vel
        self.joint_torque = sim.joint_torque
        self.contact_force_w = sim.contact_force_w
        self.foot_pos_w = sim.foot_pos_w
        self.foot_lin_vel_w = sim.foot_lin_vel_w
        if sim.robot.wheels:
            self._wheel_quat_w = sim.body_quat_w[:, self.feet]
            self._wheel_ang_vel_w = sim.body_ang_vel_w[:, self.feet]

    def _derive(self) -> None:
        """Compute the tensors that depend only on the quantities."""
        self.lin_vel_b, self.projected_gravity = self._in_base_frame(
            self.root_quat_w, self.root_lin_vel_w
        )
        self.base_height = self._height_above_ground(self.root_pos_w)
        self.joint_offset = self._offset_from_default(self.joint_pos)
        self.contact_force = torch.linalg.vector_norm(self.contact_force_w, dim=-1)
        self.foot_height = self._height_above_ground(self.foot_pos_w)
        self.foot_speed = self._speed_along_ground(self.foot_pos_w, self._sole_velocity(ALL))

    def _derive_rows(self, env_ids: Tensor) -> None:
        """Compute the same tensors of ``env_ids`` (n,); other rows stay as they are.

        The tensors are replaced, not changed in place: others may hold the tensors of this step.
        """
        root_quat_w = self.root_quat_w[env_ids]
        root_lin_vel_w = self.root_lin_vel_w[env_ids]
        foot_pos_w = self.foot_pos_w[env_ids]
        lin_vel_b, gravity = self._in_base_frame(root_quat_w, root_lin_vel_w)
        base_height = self._height_above_ground(self.root_pos_w[env_ids])
        joint_offset = self._offset_from_default(self.joint_pos[env_ids])
        contact_force = torch.linalg.vector_norm(self.contact_force_w[env_ids], dim=-1)
        foot_height = self._height_above_ground(foot_pos_w)
        foot_speed = self._speed_along_ground(foot_pos_w, self._sole_velocity(env_ids))
        self.lin_vel_b = self.lin_vel_b.index_copy(0, env_ids, lin_vel_b)
        self.projected_gravity = self.projected_gravity.index_copy(0, env_ids, gravity)
        self.base_height = self.base_height.index_copy(0, env_ids, base_height)
        self.joint_offset = self.joint_offset.index_copy(0, env_ids, joint_offset)
        self.contact_force = self.contact_force.index_copy(0, env_ids, contact_force)
        self.foot_height = self.foot_height.index_copy(0, env_ids, foot_height)
        self.foot_speed = self.foot_speed.index_copy(0, env_ids, foot_speed)

    def _update_histories(self) -> None:
        """Advance timers and histories by one control step."""
        # A copy, because the engine overwrites its buffer in the next step.
        self.last_joint_vel = self.joint_vel.clone()
        in_contact = self._touches_ground(self.contact_force)
        # A foot stands if it touched in this step or the one before: to lose contact for one step
        # is not a swing.
        is_standing = in_contact | self.foot_contact
        was_swinging = self.foot_contact_time == 0.0
        self.foot_landed = is_standing & was_swinging
        # A foot that has just landed keeps its air time for this step: rewards are paid for it.
        self.foot_air_time.add_(self.step_dt).mul_(was_swinging | ~is_standing)
        self.foot_contact_time.add_(self.step_dt).mul_(is_standing)
        self.foot_contact = in_contact

    def _in_base_frame(self, quat_w: Tensor, lin_vel_w: Tensor) -> tuple[Tensor, ...]:
        """Return velocity and direction of gravity in the base frame. Shapes: (n, 3)."""
        # One rotation of both is faster than two.
        vectors = torch.stack((lin_vel_w, self._gravity.expand_as(lin_vel_w)), dim=1)
        return rotation.rotate_inverse(quat_w, vectors).unbind(1)

    def _offset_from_default(self, joint_pos: Tensor) -> Tensor:
        # The position of a wheel grows without end, and means nothing to a policy.
        offset = joint_pos - self.default_joint_pos
        return offset.masked_fill(self.endless, 0.0) if self._any_endless else offset

    def _sole_velocity(self, rows: slice | Tensor) -> Tensor:
        """Return the velocities of the feet's origins, m/s. Shape: (n, num_feet, 3).

        Of wheels it is v + ω × r, the velocity of the point next to the ground.
        """
        lin_vel_w = self.foot_lin_vel_w[rows]
        if not self.sim.robot.wheels:
            return lin_vel_w
        axle = rotation.rotate(self._wheel_quat_w[rows], self._axle)
        up = -self._gravity
        if self.sim.ground is not None:
            foot_pos_w = self.foot_pos_w[rows]
            up = self.sim.ground.normal(foot_pos_w[..., 0], foot_pos_w[..., 1])
        # Down in the plane of the wheel.
        down = normalize((up * axle).sum(-1, keepdim=True) * axle - up, dim=-1)
        turning = torch.linalg.cross(self._wheel_ang_vel_w[rows], down)
        return lin_vel_w + self.sim.robot.foot_radius * turning

    def _height_above_ground(self, points_w: Tensor) -> Tensor:
        """Return the heights of points (n, …, 3) above the ground below them, m."""
        ground = self.sim.ground
        # A copy on a plane too: the engine overwrites its buffer in the next step.
        x, y, z = points_w.unbind(-1)
        return z.clone() if ground is None else z - ground.height(x, y)

    def _speed_along_ground(self, points_w: Tensor, lin_vel_w: Tensor) -> Tensor:
        """Return the speeds of points (n, k, 3) parallel to the ground below them, m/s. (n, k)."""
        ground = self.sim.ground
        if ground is None:
            return torch.linalg.vector_norm(lin_vel_w[..., :2], dim=-1)
        normal = ground.normal(points_w[..., 0], points_w[..., 1])
        # Without the part of the velocity along the normal.
        across = (lin_vel_w * normal).sum(-1, keepdim=True) * normal
        return torch.linalg.vector_norm(lin_vel_w - across, dim=-1)

    def _touches_ground(self, contact_force: Tensor) -> Tensor:
        """Return the feet with a contact force (n, num_bodies) on them. (n, num_feet), bool."""
        return contact_force[:, self.feet] > CONTACT_FORCE

    # --- Changes of the state ---------------------------------------------------------------------

    def refresh(self, env_ids: Tensor) -> None:
        """Update this state after the simulation's state of some environments was changed.

        Timers and histories, such as ``foot_air_time``, do not change. Shape of ``env_ids``: (n,).
        """
        self._read_quantities()
        self._derive_rows(env_ids)
        for bodies in self._bodies.values():
            bodies.refresh(env_ids)

    def push(self, env_ids: Tensor, lin_vel_w: Tensor) -> None:
        """Push robots: add a velocity to their bases, and update this state.

        Args:
            env_ids: Indices of the environments. Shape: (n,).
            lin_vel_w: Added velocities in the world frame, m/s. Shape: (n, 3).
        """
        # A new tensor, not a change in place: an observation may refer to the old one.
        self.sim.push(env_ids, lin_vel_w)
        self.last_push_velocity = self.last_push_velocity.index_copy(0, env_ids, lin_vel_w)
        self.refresh(env_ids)

    def reset(self, env_ids: Tensor) -> None:
        """Start the timers and histories of environments after a reset of the simulation.

        Shape of ``env_ids``: (n,).
        """
        self.refresh(env_ids)
        in_contact = self._touches_ground(self.contact_force[env_ids])
        joint_vel = self.joint_vel[env_ids]
        self.foot_contact = self.foot_contact.index_copy(0, env_ids, in_contact)
        self.foot_landed = self.foot_landed.index_fill(0, env_ids, False)
        self.foot_air_time = self.foot_air_time.index_fill(0, env_ids, 0.0)
        # With a positive time a robot that is placed on its feet does not land.
        self.foot_contact_time = self.foot_contact_time.index_fill(0, env_ids, self.step_dt)
        self.previous_joint_vel = self.previous_joint_vel.index_copy(0, env_ids, joint_vel)
        self.last_joint_vel = self.last_joint_vel.index_copy(0, env_ids, joint_vel)
        self.last_push_velocity = self.last_push_velocity.index_fill(0, env_ids, 0.0)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from ``state_dict``. The simulation's state must be restored first."""
        # Only timers and histories are saved. All other tensors follow from the simulation.
        super().load_state_dict(state)
        self.refresh(torch.arange(self.sim.num_envs, device=self.sim.device))

    # --- What terms ask for -----------------------------------------------------------------------

    @property
    def ang_vel_b(self) -> Tensor:
        """Angular velocities of the bases in the base frame, rad/s. Shape: (num_envs, 3)."""
        return self.root_ang_vel_b

    def heading(self) -> Tensor:
        """Return the yaw of the bases, rad in [−π, π]. Shape: (num_envs,)."""
        return rotation.heading(self.root_quat_w)

    def contact_code(self) -> Tensor:
        """Return the set of standing feet as one number: bit f is 1 if foot f stands.

        Shape: (num_envs,), int64.
        """
        return (self.foot_contact * self._foot_bits).sum(1)

    def bodies(self, names: tuple[str, ...]) -> Bodies:
        """Return selected bodies of the robot. They are updated in every following control step.

        Args:
            names: Names of the bodies, one or more.

        Raises:
            ValueError: There are no names, or the robot has no body with one of the names.
        """
        names = tuple(names)
        if names not in self._bodies:
            # They outlive this call, which may run in inference mode.
            with torch.inference_mode(False):
                self._bodies[names] = Bodies(self.sim, names)
        return self._bodies[names]
