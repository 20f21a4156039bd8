from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from legged_envs import rotation
from legged_envs.sim.quantities import ROBOT_QUANTITIES, RobotQuantities
from legged_envs.sim.simulation import Simulation
from legged_envs.state import Stateful
from legged_envs.tables import TableRepr

CONTACT_FORCE = (
    1.0  # contact force above which a foot counts as standing, N (legged_gym's threshold)
)


def _index(ids: list[int], device: torch.device) -> slice | Tensor:
    """An index for ``ids``: a slice (a view, free) where they are evenly spaced."""
    if not ids:
        return slice(0, 0)
    stride = ids[1] - ids[0] if len(ids) > 1 else 1
    spaced = range(ids[0], ids[-1] + 1, stride)
    return (
        slice(spaced.start, spaced.stop, stride)
        if ids == list(spaced)
        else torch.tensor(ids, device=device)
    )


class _Derived(TableRepr, ABC):
    """Tensors that follow, environment by environment, from quantities of the simulation."""

    QUANTITIES: tuple[str, ...]
    """Names of the simulation's quantities that are taken over as attributes of the same names."""

    def __init__(self, sim: Simulation):
        self.sim = sim

    def _describe(self) -> str:
        return f"{self.sim}"

    def take_in(self) -> None:
        vars(self).update({name: getattr(self.sim, name) for name in self.QUANTITIES})

    def compute(self) -> None:
        """Derive every environment's tensors from what was read; pure, so that it can be recorded."""
        vars(self).update(self._derive(self))

    def refresh_rows(self, env_ids: Tensor) -> None:
        """Read the simulation's quantities and derive the tensors of ``env_ids`` from them."""
        self.take_in()
        rows = SimpleNamespace(**{name: getattr(self, name)[env_ids] for name in self.QUANTITIES})
        for name, value in self._derive(rows).items():
            setattr(self, name, getattr(self, name).index_copy(0, env_ids, value))

    @abstractmethod
    def _derive(self, quantities: Any) -> dict[str, Tensor]:
        """The derived tensors by name, of the environments whose :attr:`QUANTITIES` are the attributes given."""


class Bodies(_Derived):
    """Some bodies of every robot, as terms see them; :meth:`RobotState.bodies` makes it and keeps it current.
    ValueError without names, or for bodies that the robot has not got."""

    pos_b: Tensor
    """Positions in the base frame, of body and base in the last physics step, m. Shape: (num_envs, num_bodies, 3)."""
    QUANTITIES = ("body_pos_w", "body_quat_w")

    def __init__(self, sim: Simulation, names: tuple[str, ...]):
        super().__init__(sim)
        if not names:
            raise ValueError(
                f"bodies needs the names of one or more bodies; bodies: {', '.join(sim.body_names)}"
            )
        self._base, *ids = sim.body_ids((sim.robot.base_body, *names))
        self._ids = _index(ids, sim.device)
        self.take_in()
        self.compute()

    def _derive(self, quantities: Any) -> dict[str, Tensor]:
        pos = quantities.body_pos_w
        way = pos[:, self._ids] - pos[:, self._base, None]
        return {"pos_b": rotation.rotate_inverse(quantities.body_quat_w[:, self._base], way)}


class RobotState(_Derived, RobotQuantities, Stateful):
    """The robots as the terms see them. ``read`` and ``compute`` run once after each control step. Tensors are float32
    or bool; see :class:`Simulation` for units, frames and for which quantities lag by one physics step."""

    lin_vel_b: Tensor
    projected_gravity: Tensor
    """Velocity [m/s] and direction of gravity, (0, 0, −1) when upright, in the base frame. Shape: (num_envs, 3)."""
    base_height: Tensor
    """Height of the base above the ground, m. Shape: (num_envs,)."""
    joint_offset: Tensor
    """Joint positions relative to the default pose, rad; 0 where a joint without limits is driven to a velocity, as a
    wheel is, whose angle only counts its turns. Shape: (num_envs, num_joints)."""
    contact_force: Tensor
    """Size of the net contact force on each body, N. Shape: (num_envs, num_bodies)."""
    foot_height: Tensor
    foot_speed: Tensor
    """Height of each foot's origin above the ground, m, and its speed along that, of a wheel that of the point next to
    the ground, m/s. Shape: (num_envs, num_feet)."""
    QUANTITIES = ROBOT_QUANTITIES
    WHEEL_QUANTITIES = ("body_quat_w", "body_ang_vel_w")
    """Taken over too where the feet are wheels."""
    STATE: tuple[str, ...] = ("foot_contact", "foot_landed", "foot_air_time", "foot_contact_time")
    STATE += ("previous_joint_vel", "last_joint_vel", "last_push_velocity")

    def __init__(self, sim: Simulation, step_dt: float):
        super().__init__(sim)
        self.step_dt = step_dt
        robot, device = sim.robot, sim.device
        row = partial(torch.tensor, dtype=torch.float32, device=device)
        self.default_joint_pos = row(robot.default_joint_pos)
        self.torque_limits, self.joint_vel_limits = (
            row(robot.torque_limits),
            row(robot.velocity_limits),
        )
        """Pose at action 0 [rad], and the actuators' limits [N·m] and [rad/s]. Shapes: (num_joints,)."""
        self.joint_pos_limits = sim.joint_pos_limits.to(device)
        """Hard limits, rad; ±inf where a joint has none. Shape: (num_joints, 2)."""
        driven = torch.tensor([kind == "velocity" for kind in robot.actuators], device=device)
        self.endless = driven & self.joint_pos_limits.isinf().all(1)
        """Which joints are driven to a velocity and have no limits, as wheels. Shape: (num_joints,), bool."""
        self._any_endless = bool(self.endless.any())
        self.feet = _index(sim.body_ids(robot.foot_names), device)
        self.penalized_bodies = _index(sim.body_ids(robot.penalized_bodies), device)
        self.termination_bodies = _index(sim.body_ids(robot.termination_bodies), device)
        self.undesired_bodies = _index(
            sim.body_ids((*robot.penalized_bodies, *robot.termination_bodies)), device
        )
        """Indices among the bodies; the undesired ones are the penalised and the terminating ones together."""
        self._foot_bits = 2 ** torch.arange(len(robot.foot_names), device=device)
        self._gravity = row((0.0, 0.0, -1.0))
        self._axle = row((0.0, 1.0, 0.0))
        """Of a wheel, in its own frame."""
        if robot.wheels:
            self.QUANTITIES = (*self.QUANTITIES, *self.WHEEL_QUANTITIES)
        self._tables: dict[Hashable, Any] = {}
        self._bodies: dict[tuple[str, ...], Bodies] = {}
        self._owners: list[_Derived] = []
        self.take_in()
        super().compute()
        per_foot, per_joint = torch.zeros_like(self.foot_height), torch.zeros_like(self.joint_pos)
        self.foot_contact, self.foot_landed = per_foot.bool(), per_foot.bool()
        """Whether each foot stands, and whether it touched down in this control step, after a swing. (n, num_feet)."""
        self.foot_air_time, self.foot_contact_time = per_foot, per_foot.clone()
        """Duration of the swing so far, or of that which ended in this step, and of the stance, s. (n, num_feet)."""
        self.previous_joint_vel, self.last_joint_vel = per_joint, per_joint.clone()
        """Joint velocities one control step ago, and of the last control step or reset, rad/s. (n, num_joints)."""
        self.last_push_velocity = torch.zeros_like(self.root_pos_w)
        """What the last push of the episode added to the base's velocity, m/s; 0 before. Shape: (num_envs, 3)."""

    def read(self) -> None:
        """Take over the simulation's quantities of this moment, for :meth:`compute`."""
        self.previous_joint_vel = self.last_joint_vel
        self.take_in()
        for bodies in self._bodies.values():
            bodies.take_in()
            if bodies not in self._owners:
                bodies.compute()

    def compute(self) -> None:
        super().compute()
        self.last_joint_vel = self.joint_vel.clone()
        in_contact = self._touching(self.contact_force)
        # A foot stands on while it touched in this step or the one before, so losing contact for one step is no swing.
        standing = in_contact | self.foot_contact
        swinging = self.foot_contact_time == 0.0
        self.foot_landed = standing & swinging
        self.foot_air_time.add_(self.step_dt).mul_(swinging | ~standing)
        self.foot_contact_time.add_(self.step_dt).mul_(standing)
        self.foot_contact = in_contact

    def _derive(self, quantities: Any) -> dict[str, Tensor]:
        lin_vel = quantities.root_lin_vel_w
        vectors = torch.stack((lin_vel, self._gravity.expand_as(lin_vel)), dim=1)
        lin_vel_b, gravity = rotation.rotate_inverse(quantities.root_quat_w, vectors).unbind(1)
        offset = quantities.joint_pos - self.default_joint_pos
        return {
            "lin_vel_b": lin_vel_b,
            "projected_gravity": gravity,
            "base_height": self._height_above_ground(quantities.root_pos_w),
            "joint_offset": offset.masked_fill(self.endless, 0.0) if self._any_endless else offset,
            "contact_force": torch.linalg.vector_norm(quantities.contact_force_w, dim=-1),
            "foot_height": self._height_above_ground(quantities.foot_pos_w),
            "foot_speed": self._speed_along_ground(
                quantities.foot_pos_w, self._sole_velocity(quantities)
            ),
        }

    def _sole_velocity(self, quantities: Any) -> Tensor:
        """Velocities of the feet's origins; of wheels that of the point next to the ground, v + ω × r. (n, k, 3)."""
        velocity, robot = quantities.foot_lin_vel_w, self.sim.robot
        if not robot.wheels:
            return velocity
        up, axle = -self._gravity, rotation.rotate(quantities.body_quat_w[:, self.feet], self._axle)
        if self.sim.ground is not None:
            up = self.sim.ground.normal(*quantities.foot_pos_w[..., :2].unbind(-1))
        down = normalize(
            (up * axle).sum(-1, keepdim=True) * axle - up, dim=-1
        )  # in the plane of the wheel
        return velocity + robot.foot_radius * torch.linalg.cross(
            quantities.body_ang_vel_w[:, self.feet], down
        )

    def _height_above_ground(self, points_w: Tensor) -> Tensor:
        """Heights of points (n, …, 3) above the ground below them, m."""
        ground = self.sim.ground
        x, y, z = points_w.unbind(-1)
        return z.clone() if ground is None else z - ground.height(x, y)

    def _speed_along_ground(self, points_w: Tensor, lin_vel_w: Tensor) -> Tensor:
        """Speeds of points (n, k, 3) parallel to the ground below them, m/s. Shape: (n, k)."""
        if self.sim.ground is None:
            return torch.linalg.vector_norm(lin_vel_w[..., :2], dim=-1)
        normal = self.sim.ground.normal(*points_w[..., :2].unbind(-1))
        across = (lin_vel_w * normal).sum(-1, keepdim=True) * normal
        return torch.linalg.vector_norm(lin_vel_w - across, dim=-1)

    def _touching(self, contact_force: Tensor) -> Tensor:
        """Which feet touch the ground, by the contact forces on all bodies. Shapes: (n, num_bodies) → (n, num_feet)."""
        return contact_force[:, self.feet] > CONTACT_FORCE

    def refresh(self, env_ids: Tensor) -> None:
        """Derive the tensors of ``env_ids`` again, after the simulation's state of these robots was changed."""
        for part in (self, *self._bodies.values()):
            part.refresh_rows(env_ids)

    def push(self, env_ids: Tensor, lin_vel_w: Tensor) -> None:
        """Add to the base velocity of ``env_ids``, m/s. Shape: (n, 3)."""
        self.sim.push(env_ids, lin_vel_w)
        self.last_push_velocity = self.last_push_velocity.index_copy(0, env_ids, lin_vel_w)
        self.refresh(env_ids)

    def reset(self, env_ids: Tensor) -> None:
        """Start the timers and histories of ``env_ids`` afresh at their current state."""
        self.refresh(env_ids)
        for name in self.STATE:
            setattr(self, name, getattr(self, name).index_fill(0, env_ids, 0))
        self.foot_contact.index_copy_(0, env_ids, self._touching(self.contact_force[env_ids]))
        self.foot_contact_time.index_fill_(
            0, env_ids, self.step_dt
        )  # a robot placed on its feet does not land
        for joint_vel in (self.previous_joint_vel, self.last_joint_vel):
            joint_vel.index_copy_(0, env_ids, self.joint_vel[env_ids])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state, when the simulation has returned to its own."""
        super().load_state_dict(state)
        self.refresh(torch.arange(self.sim.num_envs, device=self.sim.device))

    def bodies(self, names: tuple[str, ...]) -> Bodies:
        """The bodies ``names``, kept current from now on; ValueError if one does not exist or there are no names."""
        names = tuple(names)
        if names not in self._bodies:
            with torch.inference_mode(False):
                self._bodies[names] = Bodies(self.sim, names)
        return self._bodies[names]

    def owners(self) -> list[_Derived]:
        """The holders of the tensors that terms read: this one, and each of :meth:`bodies` up to the first call. After
        :meth:`read` the caller calls ``compute`` of each; for bodies asked for later ``read`` does."""
        self._owners = self._owners or [self, *self._bodies.values()]
        return self._owners

    def table(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, called when ``key`` is first asked for. Terms look up here what never changes."""
        if key not in self._tables:
            self._tables[key] = make()
        return self._tables[key]

    @property
    def ang_vel_b(self) -> Tensor:
        """Angular velocity in the base frame, rad/s. Shape: (num_envs, 3)."""
        return self.root_ang_vel_b

    def soft_joint_pos_limits(self, fraction: float) -> tuple[Tensor, Tensor]:
        """Ends of ``fraction`` of each joint range about its middle, rad; ±inf without a range. (num_joints,) each."""

        def shrink() -> tuple[Tensor, Tensor]:
            low, high = self.joint_pos_limits.unbind(1)
            middle, half = (low + high) / 2, (high - low) / 2 * fraction
            limited = low.isfinite() & high.isfinite()
            return torch.where(limited, middle - half, low), torch.where(
                limited, middle + half, high
            )

        return self.table(("soft_joint_pos_limits", fraction), shrink)

    def contact_code(self) -> Tensor:
        """Which feet stand, as a number whose bit f is foot f. Shape: (num_envs,), int64."""
        return (self.foot_contact * self._foot_bits).sum(1)

    def joint_index(self, joints: tuple[int, ...]) -> slice | Tensor:
        """An index for the joints with these numbers: a slice where they are evenly spaced, else (n,) int64."""
        return self.table(("joint_index", joints), lambda: _index(list(joints), self.sim.device))

    def heading(self) -> Tensor:
        """Yaw of the base, rad in [−π, π]. Shape: (num_envs,)."""
        return rotation.heading(self.root_quat_w)
