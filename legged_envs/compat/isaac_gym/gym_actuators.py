"""Functions of Isaac Gym for the motors of a robot's file.

They are read for scripts that take their torques from them. Each joint is moved by its drive.
"""

import copy

from legged_envs.compat.isaac_gym.assets import Asset
from legged_envs.compat.isaac_gym.gym_assets import find_index
from legged_envs.compat.isaac_gym.records import ActuatorProperties
from legged_envs.compat.isaac_gym.sim import Env


class ActuatorFunctions:
    """Functions that return the motors of an MJCF file; a URDF has none."""

    def get_asset_actuator_count(self, asset: Asset) -> int:
        """Return the number of motors."""
        return len(asset.actuators)

    def get_asset_actuator_name(self, asset: Asset, index: int) -> str:
        """Return the name of a motor."""
        return asset.actuators[index].name

    def get_asset_actuator_joint_name(self, asset: Asset, index: int) -> str:
        """Return the name of the joint that a motor drives."""
        return asset.actuators[index].joint

    def find_asset_actuator_index(self, asset: Asset, name: str) -> int:
        """Return the index of a motor, or −1."""
        names = [actuator.name for actuator in asset.actuators]
        return find_index(names, name)

    def get_asset_actuator_properties(self, asset: Asset) -> list[ActuatorProperties]:
        """Return the properties of each motor, such as its gains and its range of controls.

        ``motor_effort`` is the motor's ``gear`` in the MJCF.
        """
        return [copy.deepcopy(actuator.properties) for actuator in asset.actuators]

    def get_actor_actuator_count(self, env: Env, handle: int) -> int:
        """Return the number of motors of an actor's file."""
        return self.get_asset_actuator_count(env.actor(handle).asset)

    def get_actor_actuator_name(self, env: Env, handle: int, index: int) -> str:
        """Return the name of a motor of an actor's file."""
        return self.get_asset_actuator_name(env.actor(handle).asset, index)

    def get_actor_actuator_joint_name(self, env: Env, handle: int, index: int) -> str:
        """Return the name of the joint that a motor of an actor's file drives."""
        return self.get_asset_actuator_joint_name(env.actor(handle).asset, index)

    def find_actor_actuator_index(self, env: Env, handle: int, name: str) -> int:
        """Return the index of a motor of an actor's file, or −1."""
        return self.find_asset_actuator_index(env.actor(handle).asset, name)

    def get_actor_actuator_properties(self, env: Env, handle: int) -> list[ActuatorProperties]:
        """Return effort, gains and limits of each motor of an actor's file."""
        return self.get_asset_actuator_properties(env.actor(handle).asset)
