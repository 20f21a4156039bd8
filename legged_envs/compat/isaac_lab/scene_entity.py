"""Selection of the part of the scene that a term reads, in Isaac Lab's words."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from legged_envs.configuration import ConfigClass, configclass
from legged_envs.mdp.context import Env


@configclass
class SceneEntityCfg(ConfigClass):
    """An entity of the scene, with some of its joints and bodies.

    Joints and bodies are given as names or regular expressions. :meth:`resolve` finds their
    indices.
    """

    name: str
    """Name of the entity in the scene."""
    joint_names: str | Sequence[str] | None = None
    """Joints, as names or regular expressions. None: all."""
    joint_ids: slice | list[int] = slice(None)
    """Indices of the joints."""
    body_names: str | Sequence[str] | None = None
    """Bodies, as names or regular expressions. None: all."""
    body_ids: slice | list[int] = slice(None)
    """Indices of the bodies."""
    preserve_order: bool = False
    """True for the order of the expressions, false for the order of the entity."""

    def resolve(self, scene: Any) -> None:
        """Replace names and regular expressions by the names that match, and find their indices.

        Args:
            scene: The scene, which has the entity under :attr:`name`.

        Raises:
            KeyError: If the scene has no such entity.
            ValueError: If an expression matches nothing, or a name is matched twice.
        """
        if self.joint_names is not None:
            entity = scene[self.name]
            self.joint_ids, self.joint_names = entity.find_joints(
                self.joint_names, preserve_order=self.preserve_order
            )
        if self.body_names is not None:
            entity = scene[self.name]
            self.body_ids, self.body_names = entity.find_bodies(
                self.body_names, preserve_order=self.preserve_order
            )


ROBOT = SceneEntityCfg("robot")
"""The first robot, with all joints and bodies."""


def resolved(params: dict[str, Any], scene: Any) -> dict[str, Any]:
    """Resolve each :class:`SceneEntityCfg` among the parameters of a term.

    Args:
        params: Parameters of a term by name. The configurations are changed.
        scene: The scene.

    Returns:
        The same ``params``.
    """
    for value in params.values():
        if isinstance(value, SceneEntityCfg):
            value.resolve(scene)
    return params


def select_joints(env: Env, values: Tensor, asset_cfg: SceneEntityCfg) -> Tensor:
    """Return the columns of the joints of ``asset_cfg``. Shape: (num_envs, joints)."""
    return select_columns(env, values, asset_cfg.joint_ids)


def select_columns(env: Env, values: Tensor, ids: slice | list[int]) -> Tensor:
    """Return columns of ``values`` (num_envs, size). Shape: (num_envs, len(ids))."""
    if isinstance(ids, slice):
        return values[:, ids]
    # The robot caches the index on the device; a list would be copied there in every step.
    return values[:, env.robot.joint_index(tuple(ids))]
