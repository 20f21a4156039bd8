"""Code written for Isaac Gym runs here, on `mujoco.batch`: the part that legged robots use.

Nothing takes the name `isaacgym` by itself: :func:`install` does, or `python -m
legged_envs.compat.isaac_gym train.py …`. docs/isaacgym.md lists the names that exist, and
how they differ from the original.
"""

import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from gymnasium.vector import VectorEnv

__all__ = ["as_vector_env", "install"]


def install() -> None:
    """Let `import isaacgym` find this package from here on.

    Raises:
        ImportError: If NVIDIA's own isaacgym can be imported.
    """
    # The modules need PyTorch and MuJoCo, which take seconds to import.
    from legged_envs.compat.isaac_gym import (
        gymapi,
        gymtorch,
        gymutil,
        namespace,
        terrain_utils,
        torch_utils,
    )

    if sys.modules.get("isaacgym") is namespace:
        return
    spec = find_spec("isaacgym")
    # A folder without Python files has a spec without a loader. It is not a package.
    if spec is not None and spec.loader is not None:
        raise ImportError(
            f"there is another isaacgym, {spec!r}, "
            "which legged_envs.compat.isaac_gym does not replace: "
            "use that one, or an environment of Python without it"
        )
    sys.modules["isaacgym"] = namespace
    sys.modules["isaacgym.gymapi"] = gymapi
    sys.modules["isaacgym.gymtorch"] = gymtorch
    sys.modules["isaacgym.gymutil"] = gymutil
    sys.modules["isaacgym.terrain_utils"] = terrain_utils
    sys.modules["isaacgym.torch_utils"] = torch_utils


def as_vector_env(
    task: Any,
    costs: "Callable[[Any], Mapping[str, torch.Tensor]] | None" = None,
    cost_limits: Mapping[str, float] | None = None,
) -> "VectorEnv[torch.Tensor, torch.Tensor, torch.Tensor]":
    """Return a task of legged_gym's kind as a ``gymnasium.vector.VectorEnv``.

    Args:
        task: The task. :class:`~legged_envs.compat.isaac_gym.bridge.LegacyVectorEnv` describes what
            it must have.
        costs: Function of the task that returns the costs of a step, (num_envs,) each, at least 0.
        cost_limits: Limits of the costs, by name. Default: infinity.

    Raises:
        ValueError: If the task lacks something, or a limit has no cost.
    """
    from legged_envs.compat.isaac_gym.bridge import LegacyVectorEnv

    return LegacyVectorEnv(task, costs, cost_limits or {})
