"""Force sensors on bodies."""

import warnings
from collections.abc import Sequence

import mujoco.batch
import torch
from torch import Tensor
from torch.linalg import cross

from legged_envs.compat.isaac_gym.assets import ForceSensor
from legged_envs.compat.isaac_gym.torch_utils import quat_apply, quat_mul, quat_rotate_inverse

ENGINE_TO_ISAAC = [1, 2, 3, 0]
"""Order that makes (x, y, z, w) of (w, x, y, z)."""

OUTPUTS = ("xpos", "xquat", "xipos", "ximat", "cvel", "cacc", "subtree_com", "cfrc_ext")
"""Fields of the engine that sensors read."""


class ForceSensors:
    """The force sensors of all environments, and what they measured in the last physics step.

    The net force on a body follows from its acceleration, and the force of contacts from the
    engine. All other forces are the difference of the two.

    Args:
        batch: The engine.
        sensors: Sensors of an environment, each with its body in the model.
    """

    def __init__(self, batch: mujoco.batch.Batch, sensors: Sequence[tuple[int, ForceSensor]]):
        self.count = len(sensors)
        """Number of sensors of an environment."""
        self.readings = torch.zeros(batch.nsim, self.count, 6, dtype=torch.float64)
        """Force, N, and torque, N·m, about the place of each sensor.
        Shape: (num_envs, count, 6)."""
        self._batch = batch
        self._outputs: dict[str, Tensor] = {}
        if not sensors:
            return
        self._bodies = torch.tensor([body for body, _ in sensors])
        self._roots = torch.from_numpy(batch.model.body_rootid.copy()).long()[self._bodies]
        self._bind_outputs()
        self._read_sensors([sensor for _, sensor in sensors])

    def _read_sensors(self, sensors: Sequence[ForceSensor]) -> None:
        """Keep the poses and properties of the sensors of an environment as tensors."""
        places = []
        turns = []
        counts_contacts = []
        counts_others = []
        is_in_world = []
        for sensor in sensors:
            places.append(sensor.pose.p.values)
            turns.append(sensor.pose.r.values)
            properties = sensor.properties
            counts_contacts.append(properties.enable_constraint_solver_forces)
            counts_others.append(properties.enable_forward_dynamics_forces)
            is_in_world.append(bool(properties.use_world_frame))
        self._places = torch.tensor(places, dtype=torch.float64)
        self._turns = torch.tensor(turns, dtype=torch.float64)
        self._counts_contacts = torch.tensor(counts_contacts, dtype=torch.float64)
        self._counts_others = torch.tensor(counts_others, dtype=torch.float64)
        self._is_in_world = torch.tensor(is_in_world)

    def _bind_outputs(self) -> None:
        """Let the engine copy what sensors read after each step."""
        with warnings.catch_warnings():
            # The engine marks its outputs as read-only, of which PyTorch warns.
            warnings.simplefilter("ignore", UserWarning)
            for field in OUTPUTS:
                self._outputs[field] = torch.from_numpy(self._batch.bind(field))

    def _read(self, field: str) -> Tensor:
        """Return an output of the engine for the bodies of the sensors.

        Shape: (num_envs, count, …).
        """
        return self._outputs[field][:, self._bodies]

    def measure(self, applied: Tensor | None) -> None:
        """Evaluate the readings from the last physics step.

        Args:
            applied: Forces and torques at the centers of mass of bodies that a script applied and
                that the engine counts among the contact forces. Shape: (num_envs, num_bodies, 6).
                None: there are none.
        """
        if self.count == 0:
            return
        quat = self._read("xquat")
        quat = quat[..., ENGINE_TO_ISAAC]
        places_b = self._places.expand_as(quat[..., :3])
        places = quat_apply(quat, places_b)
        places = places + self._read("xpos")
        contacts = self._get_contact_wrenches(places, applied)
        others = self._get_net_wrenches(places) - contacts
        counted_contacts = contacts * self._counts_contacts[:, None]
        counted_others = others * self._counts_others[:, None]
        wrenches = counted_contacts + counted_others
        local = self._turn_to_sensors(quat, wrenches)
        is_in_world = self._is_in_world[:, None]
        self.readings = torch.where(is_in_world, wrenches, local)

    def _turn_to_sensors(self, quat: Tensor, wrenches: Tensor) -> Tensor:
        """Return forces and torques in the frames of the sensors.

        Args:
            quat: Orientation of each sensor's body, (x, y, z, w). Shape: (num_envs, count, 4).
            wrenches: Forces and torques in the world frame. Shape: (num_envs, count, 6).
        """
        sensor_turns = self._turns.expand_as(quat)
        turns = quat_mul(quat, sensor_turns)
        turns = turns.reshape(-1, 4)
        local = []
        for vectors in wrenches.split(3, dim=-1):
            rows = vectors.reshape(-1, 3)
            turned = quat_rotate_inverse(turns, rows)
            local.append(turned.view(vectors.shape))
        return torch.cat(local, dim=-1)

    def _get_contact_wrenches(self, places: Tensor, applied: Tensor | None) -> Tensor:
        """Return the contact forces on the bodies of the sensors, and their torques about places.

        Args:
            places: Place of each sensor, m. Shape: (num_envs, count, 3).
            applied: Forces that a script applied, which are subtracted: see :meth:`measure`.

        Returns:
            Forces, N, and torques, N·m. Shape: (num_envs, count, 6).
        """
        # The engine's torques are about the center of mass of the whole robot.
        wrench = self._read("cfrc_ext")
        torque, force = wrench.split(3, dim=-1)
        center = self._outputs["subtree_com"][:, self._roots]
        torque = torque + cross(center - places, force)
        if applied is not None:
            # Given forces have no row for the world, which is body 0.
            given = applied[:, self._bodies - 1]
            given_force, given_torque = given.split(3, dim=-1)
            lever = self._read("xipos") - places
            lever_torque = cross(lever, given_force)
            torque = torque - given_torque - lever_torque
            force = force - given_force
        return torch.cat((force, torque), dim=-1)

    def _get_net_wrenches(self, places: Tensor) -> Tensor:
        """Return mass times acceleration, and its torque about places.

        Shape: (num_envs, count, 6).
        """
        center = self._read("xipos")
        lever = center - self._outputs["subtree_com"][:, self._roots]
        ang_vel, root_vel = self._read("cvel").split(3, dim=-1)
        ang_acc, root_acc = self._read("cacc").split(3, dim=-1)
        velocity = root_vel + cross(ang_vel, lever)
        acceleration = root_acc + cross(ang_acc, lever)
        coriolis = cross(ang_vel, velocity)
        # The engine returns accelerations as an accelerometer measures them, so gravity is added.
        acceleration = acceleration + coriolis + self._get_gravity()
        mass = self._get_field("body_mass", self._batch.model.body_mass)
        force = mass[..., None] * acceleration
        inertia = self._get_inertia()
        spin = inertia @ ang_vel[..., None]
        gyroscopic = cross(ang_vel, spin.squeeze(-1))
        torque = inertia @ ang_acc[..., None]
        torque = torque.squeeze(-1) + gyroscopic
        torque = torque + cross(center - places, force)
        return torch.cat((force, torque), dim=-1)

    def _get_inertia(self) -> Tensor:
        """Return the inertia of each body in the world frame, kg·m².

        Shape: (num_envs, count, 3, 3).
        """
        moments = self._get_field("body_inertia", self._batch.model.body_inertia)
        axes = self._read("ximat")
        axes = axes.unflatten(-1, (3, 3))
        scaled_axes = axes * moments[..., None, :]
        return scaled_axes @ axes.transpose(-1, -2)

    def _get_field(self, name: str, shared: object) -> Tensor:
        """Return a field of the model for the bodies of the sensors, in each environment."""
        expanded = self._batch.expanded(name)
        field = shared if expanded is None else expanded
        values = torch.as_tensor(field, dtype=torch.float64)
        if name == "body_mass":
            return values[..., self._bodies]
        return values[..., self._bodies, :]

    def _get_gravity(self) -> Tensor:
        expanded = self._batch.expanded("opt.gravity")
        if expanded is None:
            shared = self._batch.model.opt.gravity
            return torch.as_tensor(shared, dtype=torch.float64)
        gravity = torch.as_tensor(expanded, dtype=torch.float64)
        return gravity[:, None]
