"""Functions of Isaac Gym for tensors of states and forces."""

from legged_envs.compat.isaac_gym.gymtorch import Descriptor
from legged_envs.compat.isaac_gym.records import DOF_MODE_EFFORT, DOF_MODE_POS
from legged_envs.compat.isaac_gym.sim import Sim
from legged_envs.compat.isaac_gym.state import TENSOR_COLUMNS


class TensorFunctions:
    """Functions that acquire, refresh and set the tensors of a simulation.

    Each raises a RuntimeError before ``prepare_sim``. A setter raises a ValueError for a tensor of
    another shape.
    """

    def acquire_actor_root_state_tensor(self, sim: Sim) -> Descriptor:
        """Return the root states of all actors. Shape: (num_actors, 13)."""
        return sim.running("acquire_actor_root_state_tensor").acquire("actor_root_state")

    def acquire_dof_state_tensor(self, sim: Sim) -> Descriptor:
        """Return the position and velocity of all joints. Shape: (num_dofs, 2)."""
        return sim.running("acquire_dof_state_tensor").acquire("dof_state")

    def acquire_net_contact_force_tensor(self, sim: Sim) -> Descriptor:
        """Return the contact force on each body, N. Shape: (num_bodies, 3)."""
        return sim.running("acquire_net_contact_force_tensor").acquire("net_contact_force")

    def acquire_rigid_body_state_tensor(self, sim: Sim) -> Descriptor:
        """Return the states of all bodies. Shape: (num_bodies, 13)."""
        return sim.running("acquire_rigid_body_state_tensor").acquire("rigid_body_state")

    def acquire_dof_force_tensor(self, sim: Sim) -> Descriptor:
        """Return the force of each joint, N·m. Shape: (num_dofs,)."""
        return sim.running("acquire_dof_force_tensor").acquire("dof_force")

    def refresh_actor_root_state_tensor(self, sim: Sim) -> bool:
        """Fill the tensor of root states."""
        sim.running("refresh_actor_root_state_tensor").refresh("actor_root_state")
        return True

    def refresh_dof_state_tensor(self, sim: Sim) -> bool:
        """Fill the tensor of joint states."""
        sim.running("refresh_dof_state_tensor").refresh("dof_state")
        return True

    def refresh_net_contact_force_tensor(self, sim: Sim) -> bool:
        """Fill the tensor of contact forces."""
        sim.running("refresh_net_contact_force_tensor").refresh("net_contact_force")
        return True

    def refresh_rigid_body_state_tensor(self, sim: Sim) -> bool:
        """Fill the tensor of body states."""
        sim.running("refresh_rigid_body_state_tensor").refresh("rigid_body_state")
        return True

    def refresh_dof_force_tensor(self, sim: Sim) -> bool:
        """Fill the tensor of joint forces."""
        sim.running("refresh_dof_force_tensor").refresh("dof_force")
        return True

    def set_actor_root_state_tensor(self, sim: Sim, values: Descriptor) -> bool:
        """Set the root states of all actors."""
        function = "set_actor_root_state_tensor"
        state = sim.running(function)
        columns = TENSOR_COLUMNS["actor_root_state"]
        states = state.arguments.read_values(function, values, "actors", columns)
        state.write_roots(states)
        return True

    def set_actor_root_state_tensor_indexed(
        self, sim: Sim, values: Descriptor, actors: Descriptor | None = None, count: int = 0
    ) -> bool:
        """Set the root states of some actors.

        Args:
            sim: The simulation.
            values: States of all actors. Shape: (num_actors, 13).
            actors: Descriptor of the indices of the actors whose states are set, int32.
            count: Number of these indices.
        """
        function = "set_actor_root_state_tensor_indexed"
        state = sim.running(function)
        # Indices are checked before the values, and both before anything is written.
        rows = state.arguments.read_actors(function, actors, count)
        columns = TENSOR_COLUMNS["actor_root_state"]
        states = state.arguments.read_values(function, values, "actors", columns)
        state.write_roots(states, rows)
        return True

    def set_dof_state_tensor(self, sim: Sim, values: Descriptor) -> bool:
        """Set the position and velocity of all joints."""
        function = "set_dof_state_tensor"
        state = sim.running(function)
        columns = TENSOR_COLUMNS["dof_state"]
        states = state.arguments.read_values(function, values, "dofs", columns)
        state.write_dofs(states)
        return True

    def set_dof_state_tensor_indexed(
        self, sim: Sim, values: Descriptor, actors: Descriptor | None = None, count: int = 0
    ) -> bool:
        """Set the joint states of some actors.

        Args:
            sim: The simulation.
            values: States of all joints. Shape: (num_dofs, 2).
            actors: Descriptor of the indices of the actors whose joints are set, int32.
            count: Number of these indices.
        """
        function = "set_dof_state_tensor_indexed"
        state = sim.running(function)
        # Indices are checked before the values, and both before anything is written.
        rows = state.arguments.read_actors(function, actors, count)
        columns = TENSOR_COLUMNS["dof_state"]
        states = state.arguments.read_values(function, values, "dofs", columns)
        state.write_dofs(states, rows)
        return True

    def set_dof_actuation_force_tensor(self, sim: Sim, values: Descriptor) -> bool:
        """Set the forces of joints in mode EFFORT for the next ``simulate``, N·m."""
        state = sim.running("set_dof_actuation_force_tensor")
        forces = state.arguments.read_values("set_dof_actuation_force_tensor", values, "dofs", 1)
        state.drive(forces, DOF_MODE_EFFORT)
        return True

    def set_dof_position_target_tensor(self, sim: Sim, values: Descriptor) -> bool:
        """Set the targets of joints in mode POS until the next call, rad."""
        state = sim.running("set_dof_position_target_tensor")
        targets = state.arguments.read_values("set_dof_position_target_tensor", values, "dofs", 1)
        state.drive(targets, DOF_MODE_POS)
        return True

    def apply_rigid_body_force_tensors(
        self,
        sim: Sim,
        forceTensor: Descriptor | None = None,
        torqueTensor: Descriptor | None = None,
        space: int = 0,
    ) -> bool:
        """Apply forces and torques at the centers of mass of all bodies, for the next ``simulate``.

        Args:
            sim: The simulation.
            forceTensor: Descriptor of forces, N. Shape: (num_bodies, 3). None: no forces.
            torqueTensor: Descriptor of torques, N·m. Shape: (num_bodies, 3). None: no torques.
            space: Frame of both, a ``CoordinateSpace``.
        """
        state = sim.running("apply_rigid_body_force_tensors")
        state.apply_body_forces(forceTensor, torqueTensor, space)
        return True
