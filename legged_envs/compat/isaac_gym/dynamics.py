"""Jacobians and mass matrices of actors."""

import mujoco
import numpy as np
import torch
from torch import Tensor

from legged_envs.compat.isaac_gym.gymtorch import Descriptor
from legged_envs.compat.isaac_gym.scene import Part
from legged_envs.compat.isaac_gym.state import State

NUM_ROOT_COLUMNS = 6
"""Columns of the base of a robot that moves freely: its linear and its angular velocity."""

OUTPUTS = ("cdof", "ximat")
"""Fields of the engine that are read here, in addition to the fields of :meth:`State.read`."""


class Dynamics:
    """Jacobian and mass matrix of one actor of each environment.

    The Jacobian maps the velocities of the joints to the velocities of the bodies, as in the tensor
    of body states: of centers of mass, along the axes of the world. For a base that moves freely
    the columns of the velocities of its root state come first. A fixed base has neither columns nor
    rows.

    Args:
        state: The running simulation.
        part: The actor's parts of the arrays of the model.
        envs: Environments that have the actor.
    """

    def __init__(self, state: State, part: Part, envs: list[int]):
        self._state = state
        self._part = part
        self._envs = torch.tensor(envs)
        for field in OUTPUTS:
            state.bind_output(field)
        # The engine copies an output from the next evaluation on that follows its binding.
        state.mark_moved()
        self._columns = torch.from_numpy(state.model.jnt_dofadr[part.joints]).long()
        moves = _find_moved_bodies(state.model, part)
        self._moves = torch.from_numpy(moves).to(torch.float64)

        self.jacobian: Tensor | None = None
        """Buffer of the Jacobian. Shape: (num_envs, num_bodies, 6, num_columns).
        None: it was not asked for."""
        self.mass_matrix: Tensor | None = None
        """Buffer of the mass matrix. Shape: (num_envs, num_columns, num_columns).
        None: it was not asked for."""

    def acquire_jacobian(self) -> Descriptor:
        """Return the buffer of the Jacobian."""
        if self.jacobian is None:
            self.jacobian = self._make_buffer(self._compute_jacobian())
        return Descriptor(self.jacobian)

    def acquire_mass_matrix(self) -> Descriptor:
        """Return the buffer of the mass matrix."""
        if self.mass_matrix is None:
            self.mass_matrix = self._make_buffer(self._compute_mass_matrix())
        return Descriptor(self.mass_matrix)

    def refresh_jacobian(self) -> None:
        """Fill the buffer of the Jacobian, if there is one."""
        if self.jacobian is not None:
            self.jacobian.copy_(self._compute_jacobian())

    def refresh_mass_matrix(self) -> None:
        """Fill the buffer of the mass matrix, if there is one."""
        if self.mass_matrix is not None:
            self.mass_matrix.copy_(self._compute_mass_matrix())

    def _make_buffer(self, values: Tensor) -> Tensor:
        # Tensors of inference mode could not be written outside of it.
        with torch.inference_mode(False):
            return torch.zeros(values.shape, device=self._state.device)

    def _compute_jacobian(self) -> Tensor:
        self._state.update_kinematics()
        bodies = self._part.bodies
        places = self._read("xipos")[:, bodies]
        axes = self._read("cdof")[:, self._columns]
        turns = axes[..., :3].unsqueeze(1)
        slides = axes[..., 3:].unsqueeze(1)
        # The engine measures velocities of a joint's motion at the robot's center of mass.
        center = self._read("subtree_com")[:, bodies.start]
        lever = places - center.unsqueeze(1)
        linear = slides + torch.linalg.cross(turns, lever.unsqueeze(2))
        angular = turns.expand_as(linear)
        motions = torch.cat((linear, angular), dim=-1)
        # A joint moves the bodies that hang on it.
        motions = motions * self._moves.unsqueeze(-1)
        jacobian = motions.transpose(-1, -2)
        if not self._part.is_free:
            return jacobian[:, 1:]
        root_columns = self._compute_root_columns(places)
        return torch.cat((root_columns, jacobian), dim=-1)

    def _compute_root_columns(self, places: Tensor) -> Tensor:
        """Return the columns of the base's velocities.

        Args:
            places: Center of mass of each body, m. Shape: (num_envs, num_bodies, 3).
        """
        lever = places - places[:, :1]
        shape = (*places.shape[:2], 6, NUM_ROOT_COLUMNS)
        columns = torch.zeros(shape, dtype=torch.float64)
        axes = torch.eye(3, dtype=torch.float64)
        columns[..., :3, :3] = axes
        columns[..., 3:, 3:] = axes
        for i, axis in enumerate(axes):
            # A turn of the base about this axis swings the body around.
            swing = torch.linalg.cross(axis.expand_as(lever), lever)
            columns[..., :3, 3 + i] = swing
        return columns

    def _compute_mass_matrix(self) -> Tensor:
        """Return the mass matrix of the joints: the sum of Jᵀ M J over the bodies.

        J is the Jacobian of a body, M its mass and inertia. Shape: (num_envs, num_columns,
        num_columns).
        """
        jacobian = self._compute_jacobian()
        bodies = self._part.bodies
        if not self._part.is_free:
            # A base that does not move has no kinetic energy.
            bodies = slice(bodies.start + 1, bodies.stop)
        linear, angular = jacobian.split(3, dim=2)
        mass = self._read_field("body_mass")[:, bodies]
        momentum = linear * mass[..., None, None]
        matrix = linear.transpose(-1, -2) @ momentum
        angular_momentum = self._compute_inertia(bodies) @ angular
        matrix = matrix + angular.transpose(-1, -2) @ angular_momentum
        matrix = matrix.sum(1)
        # The inertia of a motor's rotor counts for its own joint only. `diagonal` is a view of
        # `matrix`.
        first = NUM_ROOT_COLUMNS if self._part.is_free else 0
        armature = self._read_field("dof_armature")[:, self._columns]
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        diagonal[:, first:] += armature
        return matrix

    def _compute_inertia(self, bodies: slice) -> Tensor:
        """Return the inertia of bodies along the axes of the world, kg m².

        Shape: (num_envs, num_bodies, 3, 3).
        """
        moments = self._read_field("body_inertia")[:, bodies]
        axes = self._read("ximat")[:, bodies]
        axes = axes.unflatten(-1, (3, 3))
        scaled = axes * moments.unsqueeze(-2)
        return scaled @ axes.transpose(-1, -2)

    def _read(self, field: str) -> Tensor:
        """Return an output of the engine in the environments that have the actor."""
        return self._state.bind_output(field)[self._envs]

    def _read_field(self, name: str) -> Tensor:
        """Return a field of the model in the environments that have the actor."""
        expanded = self._state.batch.expanded(name)
        if expanded is not None:
            return torch.from_numpy(expanded)[self._envs]
        # All environments have the same values.
        shared = getattr(self._state.model, name)
        shared = torch.from_numpy(shared)
        return shared.expand(len(self._envs), *shared.shape)


def _find_moved_bodies(model: mujoco.MjModel, part: Part) -> np.ndarray:
    """Return True where a joint moves a body. Shape: (num_bodies, num_dofs)."""
    bodies = range(part.bodies.start, part.bodies.stop)
    moves = np.zeros((len(bodies), len(part.joints)), bool)
    joint_bodies = model.jnt_bodyid[part.joints]
    for row, body in enumerate(bodies):
        above = body
        while above >= part.bodies.start:
            moves[row] |= joint_bodies == above
            above = model.body_parentid[above]
    return moves
