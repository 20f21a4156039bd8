"""What reward, cost, observation and termination terms read about the robots: derived quantities and contact timers."""

from __future__ import annotations

from typing import Any

import torch

from legged_envs.sim.simulation import Simulation

CONTACT_FORCE = 1.0
"""Contact force above which a foot counts as standing, N (legged_gym's threshold)."""


def _index(ids: list[int], device: torch.device) -> slice | torch.Tensor:
    """An index for ``ids``: a slice (a view, free) where they are evenly spaced."""
    stride = ids[1] - ids[0] if len(ids) > 1 else 1
    if ids == list(range(ids[0], ids[-1] + 1, stride)) and stride > 0:
        return slice(ids[0], ids[-1] + 1, stride)
    return torch.tensor(ids, device=device)


def _rotate_inverse(quat: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Rotate world vectors into the frame ``quat`` (w, x, y, z). Shapes: (n, 4), (n, k, 3) → (n, k, 3)."""
    w = quat[:, None, :1]
    axis = quat[:, None, 1:].expand_as(vectors)
    twice_cross = torch.linalg.cross(vectors, axis) * 2.0
    return torch.addcmul(vectors, w, twice_cross).sub_(torch.linalg.cross(axis, twice_cross))


class RobotState:
    """The batch of robots as the terms see it. ``read`` and ``compute`` run once after each control step.

    All tensors are float32 (or bool) and start with ``num_envs``; see :class:`Simulation` for units, frames and for
    which quantities lag by one physics step.
    """

    READS: tuple[str, ...] = (
        "root_pos_w",
        "root_quat_w",
        "root_lin_vel_w",
        "ang_vel_b",
        "joint_pos",
        "joint_vel",
        "previous_joint_vel",
        "joint_torque",
        "contact_force_w",
        "foot_pos_w",
        "foot_lin_vel_w",
        "foot_contact",
        "foot_air_time",
        "foot_contact_time",
        "_joint_vel",
    )
    """Names of the changing tensors that ``compute`` reads, or changes in place."""
    WRITES: tuple[str, ...] = (
        "lin_vel_b",
        "projected_gravity",
        "joint_offset",
        "contact_force",
        "foot_speed",
        "foot_contact",
        "foot_landed",
    )
    """Names of the tensors that ``compute`` sets."""
    recordable = True

    def __init__(self, sim: Simulation, step_dt: float):
        self.sim = sim
        self.step_dt = step_dt
        robot, n, device = sim.robot, sim.num_envs, sim.device
        num_feet = len(robot.foot_names)

        def row(values: tuple[float, ...]) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.float32, device=device)

        self.default_joint_pos = row(robot.default_joint_pos)
        """Shape: (num_joints,)."""
        self.torque_limits = row(robot.torque_limits)
        self.joint_vel_limits = row(robot.velocity_limits)
        self.joint_pos_limits = sim.joint_pos_limits.to(device)
        """Hard limits, rad. Shape: (num_joints, 2)."""
        self.feet = _index(sim.body_ids(robot.foot_names), device)
        """Index of the feet among the bodies."""
        self.penalized_bodies = _index(sim.body_ids(robot.penalized_bodies), device)
        self.termination_bodies = _index(sim.body_ids(robot.termination_bodies), device)
        self.undesired_bodies = _index(sim.body_ids((*robot.penalized_bodies, *robot.termination_bodies)), device)
        """Penalised and terminating bodies together."""
        self._foot_bits = 2 ** torch.arange(num_feet, device=device)
        self._joint_indices: dict[tuple[int, ...], slice | torch.Tensor] = {}
        self._soft_limits: dict[float, tuple[torch.Tensor, torch.Tensor]] = {}

        self._gravity = torch.tensor((0.0, 0.0, -1.0), device=device)
        self.lin_vel_b = torch.zeros(n, 3, device=device)
        """Base velocity in the base frame, m/s. Shape: (num_envs, 3)."""
        self.projected_gravity = torch.zeros(n, 3, device=device)
        """Direction of gravity in the base frame, (0, 0, −1) when upright. Shape: (num_envs, 3)."""
        self.root_pos_w = sim.root_pos_w
        """Base position, m. Shape: (num_envs, 3)."""
        self.root_quat_w = sim.root_quat_w
        """Base orientation. Shape: (num_envs, 4)."""
        self.root_lin_vel_w = sim.root_lin_vel_w
        """Base velocity, m/s. Shape: (num_envs, 3)."""
        self.ang_vel_b = sim.root_ang_vel_b
        """Angular velocity in the base frame, rad/s. Shape: (num_envs, 3)."""
        self.joint_pos = sim.joint_pos
        """rad. Shape: (num_envs, num_joints)."""
        self.joint_vel = sim.joint_vel
        """rad/s. Shape: (num_envs, num_joints)."""
        self.joint_offset = self.joint_pos - self.default_joint_pos
        """Joint positions relative to the default pose, rad. Shape: (num_envs, num_joints)."""
        self.joint_torque = sim.joint_torque
        """N·m. Shape: (num_envs, num_joints)."""
        self.contact_force_w = sim.contact_force_w
        """Net contact force on each body, N. Shape: (num_envs, num_bodies, 3)."""
        self.foot_pos_w = sim.foot_pos_w
        """m. Shape: (num_envs, num_feet, 3)."""
        self.foot_lin_vel_w = sim.foot_lin_vel_w
        """m/s. Shape: (num_envs, num_feet, 3)."""
        self.foot_speed = torch.zeros(n, num_feet, device=device)
        """Horizontal speed of each foot, m/s. Shape: (num_envs, num_feet)."""
        self.contact_force = torch.zeros(n, len(sim.body_names), device=device)
        """Size of the net contact force on each body, N. Shape: (num_envs, num_bodies)."""
        self.foot_contact = torch.zeros(n, num_feet, dtype=torch.bool, device=device)
        """Whether each foot stands. Shape: (num_envs, num_feet)."""
        self.foot_landed = torch.zeros(n, num_feet, dtype=torch.bool, device=device)
        """Whether each foot touched down in this control step, after a swing. Shape: (num_envs, num_feet)."""
        self.foot_air_time = torch.zeros(n, num_feet, device=device)
        """Duration of the swing so far, or in the step in which a foot lands of the swing that ended, s."""
        self.foot_contact_time = torch.zeros(n, num_feet, device=device)
        """Duration of the stance so far, s. Shape: (num_envs, num_feet)."""
        self.previous_joint_vel = torch.zeros(n, len(robot.joint_names), device=device)
        """Joint velocities one control step ago, rad/s. Shape: (num_envs, num_joints)."""
        self._joint_vel = torch.zeros_like(self.previous_joint_vel)
        self.watched_pos_b = torch.zeros(n, 0, 3, device=device)
        """Positions of the watched bodies in the base frame, m. Shape: (num_envs, num_watched, 3)."""
        self._watched: list[int] = []

    def watch_bodies(self, names: tuple[str, ...]) -> None:
        """Keep :attr:`watched_pos_b` of these bodies from now on.

        Raises:
            ValueError: If the robot has no body of that name, or other bodies are watched already.
        """
        base, *watched = self.sim.body_ids((self.sim.robot.base_body, *names))
        if self._watched and watched != self._watched:
            raise ValueError(f"only one set of bodies can be watched, so {names} cannot be too")
        self._base, self._watched = base, watched
        self.READS = (*RobotState.READS, "_base_quat_w", "_to_watched_w")
        self.WRITES = (*RobotState.WRITES, "watched_pos_b")
        self._read_watched()
        self._compute_pose()

    def owners(self) -> list[object]:
        """Objects whose attributes are the tensors that terms read."""
        return [self]

    def soft_joint_pos_limits(self, fraction: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Lower and upper limits, shrunk about the middle of each range to ``fraction`` of it, rad. (num_joints,)."""
        if fraction not in self._soft_limits:
            low, high = self.joint_pos_limits.unbind(1)
            middle, half = (low + high) / 2, (high - low) / 2 * fraction
            self._soft_limits[fraction] = (middle - half, middle + half)
        return self._soft_limits[fraction]

    def contact_code(self) -> torch.Tensor:
        """Which feet stand, as a number whose bit f is foot f. Shape: (num_envs,), int64."""
        return (self.foot_contact * self._foot_bits).sum(1)

    def joint_index(self, joints: tuple[int, ...]) -> slice | torch.Tensor:
        """A fast index for some joints, by their numbers."""
        if joints not in self._joint_indices:
            self._joint_indices[joints] = _index(list(joints), self.default_joint_pos.device)
        return self._joint_indices[joints]

    def heading(self) -> torch.Tensor:
        """Yaw of the base, rad in [−π, π]. Shape: (num_envs,)."""
        w, x, y, z = self.sim.root_quat_w.unbind(1)
        return torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))

    def read(self) -> None:
        """Take in the simulation's state after a control step."""
        self.previous_joint_vel, self._joint_vel = self._joint_vel, self.previous_joint_vel
        self._read_simulation()

    def _read_simulation(self) -> None:
        sim = self.sim
        self.root_pos_w, self.root_quat_w = sim.root_pos_w, sim.root_quat_w
        self.root_lin_vel_w, self.ang_vel_b = sim.root_lin_vel_w, sim.root_ang_vel_b
        self.joint_pos, self.joint_vel, self.joint_torque = sim.joint_pos, sim.joint_vel, sim.joint_torque
        self.contact_force_w = sim.contact_force_w
        self.foot_pos_w, self.foot_lin_vel_w = sim.foot_pos_w, sim.foot_lin_vel_w
        if self._watched:
            self._read_watched()

    def _read_watched(self) -> None:
        """Take in the way from the base to the watched bodies, all of one moment: that of the last physics step."""
        pos = self.sim.body_pos_w
        self._base_quat_w = self.sim.body_quat_w[:, self._base]
        self._to_watched_w = pos[:, self._watched] - pos[:, self._base, None]

    def compute(self) -> None:
        """Compute what follows from what was read; pure, so that it can be recorded."""
        self._joint_vel.copy_(self.joint_vel)
        self._compute_pose()
        self.lin_vel_b, self.projected_gravity = self._base_vectors(self.root_quat_w, self.root_lin_vel_w)
        self.contact_force = torch.linalg.vector_norm(self.contact_force_w, dim=-1)
        in_contact = self.contact_force[:, self.feet] > CONTACT_FORCE
        # A foot stands on while it touched in this step or the one before, so losing contact for one step is no swing.
        standing = in_contact | self.foot_contact
        swinging = self.foot_contact_time == 0.0
        self.foot_landed = standing & swinging
        self.foot_air_time.add_(self.step_dt).mul_(swinging | ~standing)
        self.foot_contact_time.add_(self.step_dt).mul_(standing)
        self.foot_contact = in_contact

    def _compute_pose(self) -> None:
        self.joint_offset = self.joint_pos - self.default_joint_pos
        self.foot_speed = torch.linalg.vector_norm(self.foot_lin_vel_w[..., :2], dim=2)
        if self._watched:
            self.watched_pos_b = _rotate_inverse(self._base_quat_w, self._to_watched_w)

    def _base_vectors(self, quat: torch.Tensor, lin_vel: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Velocity and direction of gravity in the base frame. Shapes: (n, 4), (n, 3) → (n, 3), (n, 3)."""
        vectors = torch.stack((lin_vel, self._gravity.expand_as(lin_vel)), dim=1)
        return _rotate_inverse(quat, vectors).unbind(1)

    def refresh_base(self, env_ids: torch.Tensor) -> None:
        """Recompute the base-frame velocity and gravity of ``env_ids``, after their base was pushed or moved."""
        self.root_quat_w, self.root_lin_vel_w = self.sim.root_quat_w, self.sim.root_lin_vel_w
        lin_vel, gravity = self._base_vectors(self.root_quat_w[env_ids], self.root_lin_vel_w[env_ids])
        self.lin_vel_b = self.lin_vel_b.index_copy(0, env_ids, lin_vel)
        self.projected_gravity = self.projected_gravity.index_copy(0, env_ids, gravity)

    def reset(self, env_ids: torch.Tensor) -> None:
        """Start the timers and histories of ``env_ids`` afresh at their current state."""
        self._read_simulation()
        self._compute_pose()
        self.refresh_base(env_ids)
        joint_vel = self.joint_vel[env_ids]
        self._joint_vel[env_ids] = joint_vel
        self.previous_joint_vel[env_ids] = joint_vel
        force = torch.linalg.vector_norm(self.contact_force_w[env_ids], dim=-1)
        self.contact_force = self.contact_force.index_copy(0, env_ids, force)
        in_contact = force[:, self.feet] > CONTACT_FORCE
        self.foot_contact = self.foot_contact.index_copy(0, env_ids, in_contact)
        self.foot_contact_time[env_ids] = self.step_dt  # a robot placed on its feet does not land
        self.foot_landed = self.foot_landed.index_fill(0, env_ids, False)
        self.foot_air_time[env_ids] = 0.0

    _HISTORY = (
        "contact_force",
        "foot_contact",
        "foot_landed",
        "foot_air_time",
        "foot_contact_time",
        "previous_joint_vel",
        "_joint_vel",
    )

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).clone() for name in self._HISTORY}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in self._HISTORY:
            setattr(self, name, state[name].clone())
        self._read_simulation()
        self._compute_pose()
        self.lin_vel_b, self.projected_gravity = self._base_vectors(self.root_quat_w, self.root_lin_vel_w)
