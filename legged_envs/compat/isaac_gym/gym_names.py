"""Functions of Isaac Gym that find bodies and joints by the name of their actor, and back."""

from legged_envs.compat.isaac_gym.enums import Limit
from legged_envs.compat.isaac_gym.gym_queries import QueryFunctions
from legged_envs.compat.isaac_gym.sim import Env


class NameFunctions(QueryFunctions):
    """Functions that turn names into handles of an environment, and handles into names."""

    def get_rigid_handle(self, env: Env, actor_name: str, body_name: str) -> int:
        """Return the handle of a body by the names of its actor and itself, or −1."""
        actor = self.find_actor_handle(env, actor_name)
        if actor < 0:
            return int(Limit.INVALID_HANDLE)
        return self.find_actor_rigid_body_handle(env, actor, body_name)

    def get_rigid_name(self, env: Env, handle: int) -> str:
        """Return the name of a body of an environment."""
        names: list[str] = []
        for actor in env.actors:
            names.extend(actor.asset.body_names)
        return _name_at(names, handle, "a body", "find_actor_rigid_body_handle")

    def get_joint_handle(self, env: Env, actor_name: str, joint_name: str) -> int:
        """Return the handle of a joint by the names of its actor and itself, or −1."""
        actor = self.find_actor_handle(env, actor_name)
        if actor < 0:
            return int(Limit.INVALID_HANDLE)
        return self.find_actor_dof_handle(env, actor, joint_name)

    def get_joint_name(self, env: Env, handle: int) -> str:
        """Return the name of a joint of an environment."""
        names: list[str] = []
        for actor in env.actors:
            names.extend(actor.asset.dof_names)
        return _name_at(names, handle, "a joint", "find_actor_dof_handle")


def _name_at(names: list[str], handle: int, kind: str, function: str) -> str:
    if not 0 <= handle < len(names):
        raise ValueError(
            f"the handle of {kind} must be 0 to {len(names) - 1}, got {handle}: "
            f"take it from {function}"
        )
    return names[handle]
