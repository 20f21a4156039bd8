"""Force sensors on bodies."""

import warnings
from collections.abc import Sequence

import mujoco.batch
import torch
from torch import Tensor

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
        poses = [sensor.pose for _, sensor in sensors]
        self._places = torch.tensor([pose.p.values for pose in poses], dtype=torch.float64)
        self._turns = torch.tensor([pose.r.values for pose in poses], dtype=torch.float64)
        properties = [sensor.properties for _, sensor in sensors]
        self._counts_contacts = torch.tensor(
            [prop.enable_constraint_solver_forces for prop in properties], dtype=torch.float64
        )
        self._counts_others = torch.tensor(
            [prop.enable_forward_dynamics_forces for prop in properties], dtype=torch.float64
        )
        self._is_in_world = torch.tensor([bool(prop.use_world_frame) for prop in properties])

    def _bind_outputs(self) -> None:
        """Let the engine copy what sensors read after each step."""
        with warnings.catch_warnings():
            # The engine marks its outputs as read-only, of which PyTorch warns.
            warnings.simplefilter("ignore", UserWarning)
            for field in OUTPUTS:
                self._outputs[field] = torch.from_numpy(self._batch.bind(field))

    def measure(self, applied: Tensor | None) -> None:
        """Evaluate the readings from the last physics step.

        Args:
            applied: Forces and torques at the centers of mass of bodies that a script applied and
                that the engine counts among the contact forces. Shape: (num_envs, num_bodies, 6).
                None: there are none.
        """
        if self.count == 0:
            return
        quat = self._outputs["xquat"][:, self._bodies][..., ENGINE_TO_ISAAC]
        places = quat_apply(quat, self._places.expand_as(quat[..., :3]))
        places = places + self._outputs["xpos"][:, self._bodies]
        contacts = self._get_contact_wrenches(places, applied)
        others = self._get_net_wrenches(places) - contacts
        wrenches = contacts * self._counts_contacts[:, None] + others * self._counts_others[:, None]
        turns = quat_mul(quat, self._turns.expand_as(quat))
        local = []
        for vectors in wrenches.split(3, dim=-1):
            turned = quat_rotate_inverse(turns.reshape(-1, 4), vectors.reshape(-1, 3))
            local.append(turned.view(vectors.shape))
        is_in_world = self._is_in_world[:, None]
        self.readings = torch.where(is_in_world, wrenches, torch.cat(local, dim=-1))

    def _get_contact_wrenches(self, places: Tensor, applied: Tensor | None) -> Tensor:
        """Return the contact forces on the bodies of the sensors, and their torques about places.

        Args:
            places: Place of each sensor, m. Shape: (num_envs, count, 3).
            applied: Forces that a script applied, which are subtracted: see :meth:`measure`.

        Returns:
            Forces, N, and torques, N·m. Shape: (num_envs, count, 6).
        """
        # The engine's torques are about the center of mass of the whole robot.
        torque, force = self._outputs["cfrc_ext"][:, self._bodies].split(3, dim=-1)
        center = self._outputs["subtree_com"][:, self._roots]
        torque = torque + torch.linalg.cross(center - places, force)
        if applied is not None:
            # Given forces have no row for the world, which is body 0.
            given_force, given_torque = applied[:, self._bodies - 1].split(3, dim=-1)
            lever = self._outputs["xipos"][:, self._bodies] - places
            torque = torque - given_torque - torch.linalg.cross(lever, given_force)
            force = force - given_force
        return torch.cat((force, torque), dim=-1)

    def _get_net_wrenches(self, places: Tensor) -> Tensor:
        """Return mass times acceleration, and its torque about places.

        Shape: (num_envs, count, 6).
        """
        model = self._batch.model
        center = self._outputs["xipos"][:, self._bodies]
        lever = center - self._outputs["subtree_com"][:, self._roots]
        ang_vel, root_vel = self._outputs["cvel"][:, self._bodies].split(3, dim=-1)
        ang_acc, root_acc = self._outputs["cacc"][:, self._bodies].split(3, dim=-1)
        velocity = root_vel + torch.linalg.cross(ang_vel, lever)
        acceleration = root_acc + torch.linalg.cross(ang_acc, lever)
        # The second term is the Coriolis term. The engine returns accelerations as an accelerometer
        # measures them, so gravity is added.
        acceleration = acceleration + torch.linalg.cross(ang_vel, velocity) + self._get_gravity()
        mass = self._get_field("body_mass", model.body_mass)[..., None]
        moments = self._get_field("body_inertia", model.body_inertia)
        axes = self._outputs["ximat"][:, self._bodies].unflatten(-1, (3, 3))
        inertia = axes * moments[..., None, :] @ axes.transpose(-1, -2)
        force = mass * acceleration
        spin = (inertia @ ang_vel[..., None]).squeeze(-1)
        torque = (inertia @ ang_acc[..., None]).squeeze(-1) + torch.linalg.cross(ang_vel, spin)
        torque = torque + torch.linalg.cross(center - places, force)
        return torch.cat((force, torque), dim=-1)

    def _get_field(self, name: str, shared: object) -> Tensor:
        """Return a field of the model for the bodies of the sensors, in each environment."""
        expanded = self._batch.expanded(name)
        values = torch.as_tensor(shared if expanded is None else expanded, dtype=torch.float64)
        return values[..., self._bodies] if name == "body_mass" else values[..., self._bodies, :]

    def _get_gravity(self) -> Tensor:
        expanded = self._batch.expanded("opt.gravity")
        if expanded is None:
            return torch.as_tensor(self._batch.model.opt.gravity, dtype=torch.float64)
        return torch.as_tensor(expanded, dtype=torch.float64)[:, None]
