"""Functions of Isaac Gym for Jacobians and mass matrices."""

from legged_envs.compat.isaac_gym.dynamics import Dynamics
from legged_envs.compat.isaac_gym.gymtorch import Descriptor
from legged_envs.compat.isaac_gym.sim import Sim


class DynamicsFunctions:
    """Functions that give the Jacobians and mass matrices of the actors of one name.

    Each raises a RuntimeError before ``prepare_sim``.
    """

    def acquire_jacobian_tensor(self, sim: Sim, name: str) -> Descriptor:
        """Return the Jacobians of the actors of a name.

        Rows are the linear and the angular velocity of each body, columns the joints.

        Returns:
            Fixed base: (num_envs, num_bodies − 1, 6, num_dofs), without the base. Free base:
            (num_envs, num_bodies, 6, 6 + num_dofs), the velocities of the base first.

        Raises:
            ValueError: If there is no actor of this name.
        """
        return _find_dynamics(sim, "acquire_jacobian_tensor", name).acquire_jacobian()

    def acquire_mass_matrix_tensor(self, sim: Sim, name: str) -> Descriptor:
        """Return the mass matrices of the actors of a name, with the armature of joints.

        Returns:
            Fixed base: (num_envs, num_dofs, num_dofs). Free base:
            (num_envs, 6 + num_dofs, 6 + num_dofs), the base first.

        Raises:
            ValueError: If there is no actor of this name.
        """
        return _find_dynamics(sim, "acquire_mass_matrix_tensor", name).acquire_mass_matrix()

    def refresh_jacobian_tensors(self, sim: Sim) -> bool:
        """Fill the tensors of Jacobians."""
        sim.running("refresh_jacobian_tensors")
        for dynamics in sim.dynamics.values():
            dynamics.refresh_jacobian()
        return True

    def refresh_mass_matrix_tensors(self, sim: Sim) -> bool:
        """Fill the tensors of mass matrices."""
        sim.running("refresh_mass_matrix_tensors")
        for dynamics in sim.dynamics.values():
            dynamics.refresh_mass_matrix()
        return True


def _find_dynamics(sim: Sim, function: str, name: str) -> Dynamics:
    """Return what belongs to the actors of a name, the same object at each call."""
    state = sim.running(function)
    if name in sim.dynamics:
        return sim.dynamics[name]
    names = [actor.name for actor in sim.envs[0].actors]
    if name not in names:
        raise ValueError(
            f"gym.{function}: environment 0 has no actor {name!r}, it has {names}: "
            "give the name that create_actor got"
        )
    handle = names.index(name)
    envs = [env.index for env in sim.envs if env.actors[handle].name == name]
    sim.dynamics[name] = Dynamics(state, state.parts[handle], envs)
    return sim.dynamics[name]
