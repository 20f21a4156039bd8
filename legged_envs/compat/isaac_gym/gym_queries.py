"""Functions of Isaac Gym for counts, names, handles and indices of actors and their parts.

A handle of a body or joint is its index in the environment. Names that are not there have the
index −1.
"""

from legged_envs.compat.isaac_gym.assets import Asset
from legged_envs.compat.isaac_gym.enums import IndexDomain, Limit
from legged_envs.compat.isaac_gym.gym_assets import find_index
from legged_envs.compat.isaac_gym.index_range import IndexRange
from legged_envs.compat.isaac_gym.sim import Env, Sim
from legged_envs.compat.isaac_gym.vectors import Vec3


class QueryFunctions:
    """Functions that return the contents of a simulation, an environment and an actor."""

    # --- Simulation and environments --------------------------------------------------------------

    def get_env_count(self, sim: Sim) -> int:
        """Return the number of environments."""
        return len(sim.envs)

    def get_env(self, sim: Sim, index: int) -> Env:
        """Return an environment."""
        return sim.envs[index]

    def get_env_origin(self, env: Env) -> Vec3:
        """Return (0, 0, 0): coordinates are relative to the environment."""
        return Vec3()

    def get_sim_actor_count(self, sim: Sim) -> int:
        """Return the number of actors of all environments."""
        return sum(len(env.actors) for env in sim.envs)

    def get_sim_rigid_body_count(self, sim: Sim) -> int:
        """Return the number of bodies of all environments."""
        return sum(env.count_bodies() for env in sim.envs)

    def get_sim_dof_count(self, sim: Sim) -> int:
        """Return the number of joints that move of all environments."""
        return sum(env.count_dofs() for env in sim.envs)

    def get_sim_joint_count(self, sim: Sim) -> int:
        """Return the number of joints that move of all environments."""
        return self.get_sim_dof_count(sim)

    def get_sim_force_sensor_count(self, sim: Sim) -> int:
        """Return the number of force sensors of all environments."""
        return sum(env.count_force_sensors() for env in sim.envs)

    def get_env_rigid_body_count(self, env: Env) -> int:
        """Return the number of bodies of an environment."""
        return env.count_bodies()

    def get_env_dof_count(self, env: Env) -> int:
        """Return the number of joints that move of an environment."""
        return env.count_dofs()

    def get_env_joint_count(self, env: Env) -> int:
        """Return the number of joints that move of an environment."""
        return env.count_dofs()

    # --- Actors -----------------------------------------------------------------------------------

    def get_actor_count(self, env: Env) -> int:
        """Return the number of actors of an environment."""
        return len(env.actors)

    def get_actor_handle(self, env: Env, index: int) -> int:
        """Return the handle of an actor, which is its index."""
        return index if env.actor(index) else -1

    def find_actor_handle(self, env: Env, name: str) -> int:
        """Return the handle of the actor with a name, or −1."""
        # The first of several actors with one name, as in Isaac Gym.
        for handle, actor in enumerate(env.actors):
            if actor.name == name:
                return handle
        return int(Limit.INVALID_HANDLE)

    def get_actor_index(self, env: Env, handle: int, domain: int = IndexDomain.DOMAIN_SIM) -> int:
        """Return the index of an actor, such as its row in the tensor of root states."""
        env.actor(handle)
        if domain != IndexDomain.DOMAIN_SIM:
            return handle
        return env.index * len(env.sim.envs[0].actors) + handle

    def find_actor_index(self, env: Env, name: str, domain: int = IndexDomain.DOMAIN_SIM) -> int:
        """Return the index of the actor with a name, or −1."""
        handle = self.find_actor_handle(env, name)
        return handle if handle < 0 else self.get_actor_index(env, handle, domain)

    def get_actor_name(self, env: Env, handle: int) -> str:
        """Return the name of an actor."""
        return env.actor(handle).name

    def get_actor_asset(self, env: Env, handle: int) -> Asset:
        """Return the robot of an actor."""
        return env.actor(handle).asset

    def get_actor_force_sensor_count(self, env: Env, handle: int) -> int:
        """Return the number of force sensors of an actor."""
        return len(env.actor(handle).asset.force_sensors)

    def get_actor_tendon_count(self, env: Env, handle: int) -> int:
        """Return 0: robots have no tendons."""
        return 0

    def get_actor_soft_body_count(self, env: Env, handle: int) -> int:
        """Return 0: robots have no soft bodies."""
        return 0

    # --- Bodies and shapes ------------------------------------------------------------------------

    def get_actor_rigid_body_count(self, env: Env, handle: int) -> int:
        """Return the number of bodies of an actor."""
        return len(env.actor(handle).mass)

    def get_actor_rigid_body_names(self, env: Env, handle: int) -> list[str]:
        """Return the names of the bodies of an actor."""
        return list(env.actor(handle).asset.body_names)

    def get_actor_rigid_body_dict(self, env: Env, handle: int) -> dict[str, int]:
        """Return the index of each body in the actor, by name."""
        return {name: i for i, name in enumerate(env.actor(handle).asset.body_names)}

    def get_actor_rigid_body_index(
        self, env: Env, handle: int, index: int, domain: int = IndexDomain.DOMAIN_SIM
    ) -> int:
        """Return the index of a body of an actor in the arrays of a domain."""
        return _place_index(env, env.locate_bodies(handle), index, env.sim.envs[0], domain, "body")

    def find_actor_rigid_body_index(
        self, env: Env, handle: int, name: str, domain: int = IndexDomain.DOMAIN_SIM
    ) -> int:
        """Return the index of the body with a name in the arrays of a domain, or −1."""
        index = find_index(env.actor(handle).asset.body_names, name)
        return index if index < 0 else self.get_actor_rigid_body_index(env, handle, index, domain)

    def get_actor_rigid_body_handle(self, env: Env, handle: int, index: int) -> int:
        """Return the index of a body of an actor in its environment."""
        return self.get_actor_rigid_body_index(env, handle, index, IndexDomain.DOMAIN_ENV)

    def find_actor_rigid_body_handle(self, env: Env, handle: int, name: str) -> int:
        """Return the index of a body in its environment, or −1 if there is no such body."""
        return self.find_actor_rigid_body_index(env, handle, name, IndexDomain.DOMAIN_ENV)

    def get_actor_root_rigid_body_handle(self, env: Env, handle: int) -> int:
        """Return the index of the base of an actor in its environment."""
        return self.get_actor_rigid_body_handle(env, handle, 0)

    def get_actor_rigid_shape_count(self, env: Env, handle: int) -> int:
        """Return the number of shapes of an actor."""
        return len(env.actor(handle).friction)

    def get_actor_rigid_body_shape_indices(self, env: Env, handle: int) -> list[IndexRange]:
        """Return the shapes of each body of an actor, as a range of indices."""
        return env.actor(handle).asset.list_shape_ranges()

    # --- Joints -----------------------------------------------------------------------------------

    def get_actor_dof_count(self, env: Env, handle: int) -> int:
        """Return the number of joints of an actor that move."""
        return len(env.actor(handle).asset.dof_names)

    def get_actor_dof_names(self, env: Env, handle: int) -> list[str]:
        """Return the names of the joints of an actor that move."""
        return list(env.actor(handle).asset.dof_names)

    def get_actor_dof_dict(self, env: Env, handle: int) -> dict[str, int]:
        """Return the index of each joint in the actor, by name."""
        return {name: i for i, name in enumerate(env.actor(handle).asset.dof_names)}

    def get_actor_dof_index(
        self, env: Env, handle: int, index: int, domain: int = IndexDomain.DOMAIN_SIM
    ) -> int:
        """Return the index of a joint of an actor in the arrays of a domain."""
        return _place_index(env, env.locate_dofs(handle), index, env.sim.envs[0], domain, "joint")

    def find_actor_dof_index(
        self, env: Env, handle: int, name: str, domain: int = IndexDomain.DOMAIN_SIM
    ) -> int:
        """Return the index of the joint with a name in the arrays of a domain, or −1."""
        index = find_index(env.actor(handle).asset.dof_names, name)
        return index if index < 0 else self.get_actor_dof_index(env, handle, index, domain)

    def get_actor_dof_handle(self, env: Env, handle: int, index: int) -> int:
        """Return the index of a joint of an actor in its environment."""
        return self.get_actor_dof_index(env, handle, index, IndexDomain.DOMAIN_ENV)

    def find_actor_dof_handle(self, env: Env, handle: int, name: str) -> int:
        """Return the index of a joint in its environment, or −1 if there is no such joint."""
        return self.find_actor_dof_index(env, handle, name, IndexDomain.DOMAIN_ENV)

    # Joints that do not move are not joints in MuJoCo.

    def get_actor_joint_count(self, env: Env, handle: int) -> int:
        """Return the number of joints of an actor that move."""
        return self.get_actor_dof_count(env, handle)

    def get_actor_joint_names(self, env: Env, handle: int) -> list[str]:
        """Return the names of the joints of an actor that move."""
        return self.get_actor_dof_names(env, handle)

    def get_actor_joint_dict(self, env: Env, handle: int) -> dict[str, int]:
        """Return the index of each joint in the actor, by name."""
        return self.get_actor_dof_dict(env, handle)

    def get_actor_joint_handle(self, env: Env, handle: int, index: int) -> int:
        """Return the index of a joint of an actor in its environment."""
        return self.get_actor_dof_handle(env, handle, index)

    def find_actor_joint_handle(self, env: Env, handle: int, name: str) -> int:
        """Return the index of a joint in its environment, or −1 if there is no such joint."""
        return self.find_actor_dof_handle(env, handle, name)

    def get_actor_joint_index(
        self, env: Env, handle: int, index: int, domain: int = IndexDomain.DOMAIN_SIM
    ) -> int:
        """Return the index of a joint of an actor in the arrays of a domain."""
        return self.get_actor_dof_index(env, handle, index, domain)

    def find_actor_joint_index(
        self, env: Env, handle: int, name: str, domain: int = IndexDomain.DOMAIN_SIM
    ) -> int:
        """Return the index of the joint with a name in the arrays of a domain, or −1."""
        return self.find_actor_dof_index(env, handle, name, domain)


def _place_index(
    env: Env, indices: range, index: int, first_env: Env, domain: int, kind: str
) -> int:
    """Return an index of an actor in the arrays of a domain.

    Args:
        env: Environment of the actor.
        indices: Indices of all bodies or joints of the actor in the environment.
        index: Index of one of them in the actor.
        first_env: The first environment, which has as many of them as each other one.
        domain: The ``IndexDomain``.
        kind: ``"body"`` or ``"joint"``.

    Raises:
        ValueError: If the actor has no such body or joint, or there is no such domain.
    """
    if not 0 <= index < len(indices):
        raise ValueError(f"an actor has {len(indices)} of kind {kind}, there is none with {index=}")
    if domain not in tuple(IndexDomain):
        raise ValueError(
            f"the domain must be one of gymapi.DOMAIN_ACTOR, _ENV and _SIM, got {domain!r}"
        )
    if domain == IndexDomain.DOMAIN_ACTOR:
        return index
    if domain == IndexDomain.DOMAIN_ENV:
        return indices[index]
    count = first_env.count_bodies() if kind == "body" else first_env.count_dofs()
    return env.index * count + indices[index]
