"""The module that `import isaacgym` gives after `install`."""

from typing import NoReturn

from legged_envs.compat.isaac_gym import gymapi, gymtorch, gymutil, terrain_utils, torch_utils
from legged_envs.compat.isaac_gym.missing import make_missing_name_error

__all__ = ["gymapi", "gymtorch", "gymutil", "terrain_utils", "torch_utils"]


def __getattr__(name: str) -> NoReturn:
    raise make_missing_name_error(f"isaacgym.{name}")
