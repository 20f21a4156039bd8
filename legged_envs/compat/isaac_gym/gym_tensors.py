"""Functions of Isaac Gym for tensors of states and forces."""

from legged_envs.compat.isaac_gym.enums import DofDriveMode
from legged_envs.compat.isaac_gym.gymtorch import Descriptor
from legged_envs.compat.isaac_gym.sim import Sim
from legged_envs.compat.isaac_gym.tensor_layout import TENSOR_COLUMNS


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

    def acquire_force_sensor_tensor(self, sim: Sim) -> Descriptor:
        """Return the force, N, and torque, N·m, of each sensor. Shape: (num_sensors, 6)."""
        return sim.running("acquire_force_sensor_tensor").acquire("force_sensor")

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

    def refresh_force_sensor_tensor(self, sim: Sim) -> bool:
        """Fill the tensor of force sensors."""
        sim.running("refresh_force_sensor_tensor").refresh("force_sensor")
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
            actors: Descriptor of the indices of the actors to set, int32.
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
            actors: Descriptor of the indices of the actors to set, int32.
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
        function = "set_dof_actuation_force_tensor"
        return _drive(sim, function, values, DofDriveMode.DOF_MODE_EFFORT)

    def set_dof_position_target_tensor(self, sim: Sim, values: Descriptor) -> bool:
        """Set the targets of joints in mode POS until the next call, rad."""
        function = "set_dof_position_target_tensor"
        return _drive(sim, function, values, DofDriveMode.DOF_MODE_POS)

    def set_dof_velocity_target_tensor(self, sim: Sim, values: Descriptor) -> bool:
        """Set the targets of joints in mode VEL until the next call, rad/s."""
        function = "set_dof_velocity_target_tensor"
        return _drive(sim, function, values, DofDriveMode.DOF_MODE_VEL)

    # These set the joints of some actors: ``actors`` has their indices, int32, ``count`` of them.

    def set_dof_actuation_force_tensor_indexed(
        self, sim: Sim, values: Descriptor, actors: Descriptor | None = None, count: int = 0
    ) -> bool:
        """Set the forces of joints of some actors in mode EFFORT for the next ``simulate``, N·m."""
        function = "set_dof_actuation_force_tensor_indexed"
        return _drive_some(sim, function, values, DofDriveMode.DOF_MODE_EFFORT, actors, count)

    def set_dof_position_target_tensor_indexed(
        self, sim: Sim, values: Descriptor, actors: Descriptor | None = None, count: int = 0
    ) -> bool:
        """Set the targets of joints of some actors in mode POS until the next call, rad."""
        function = "set_dof_position_target_tensor_indexed"
        return _drive_some(sim, function, values, DofDriveMode.DOF_MODE_POS, actors, count)

    def set_dof_velocity_target_tensor_indexed(
        self, sim: Sim, values: Descriptor, actors: Descriptor | None = None, count: int = 0
    ) -> bool:
        """Set the targets of joints of some actors in mode VEL until the next call, rad/s."""
        function = "set_dof_velocity_target_tensor_indexed"
        return _drive_some(sim, function, values, DofDriveMode.DOF_MODE_VEL, actors, count)

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
        function = "apply_rigid_body_force_tensors"
        sim.running(function).apply_body_forces(function, forceTensor, torqueTensor, space)
        return True

    def apply_rigid_body_force_at_pos_tensors(
        self,
        sim: Sim,
        forceTensor: Descriptor,
        posTensor: Descriptor | None = None,
        space: int = 0,
    ) -> bool:
        """Apply forces at points of all bodies, for the next ``simulate``.

        Args:
            sim: The simulation.
            forceTensor: Descriptor of forces, N. Shape: (num_bodies, 3).
            posTensor: Descriptor of points, m. Shape: (num_bodies, 3). None: the centers of mass.
            space: Frame of both, a ``CoordinateSpace``.
        """
        function = "apply_rigid_body_force_at_pos_tensors"
        sim.running(function).apply_body_forces(function, forceTensor, None, space, posTensor)
        return True


def _drive(sim: Sim, function: str, values: Descriptor, mode: DofDriveMode) -> bool:
    state = sim.running(function)
    state.drive(state.arguments.read_values(function, values, "dofs", 1), mode)
    return True


def _drive_some(
    sim: Sim,
    function: str,
    values: Descriptor,
    mode: DofDriveMode,
    actors: Descriptor | None,
    count: int,
) -> bool:
    state = sim.running(function)
    # Indices are checked before the values, and both before anything is written.
    rows = state.arguments.read_actors(function, actors, count)
    state.drive(state.arguments.read_values(function, values, "dofs", 1), mode, rows)
    return True
