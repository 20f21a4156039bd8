"""Which part of the scene a term reads, in Isaac Lab's words."""

from typing import Any

from legged_envs.configuration import ConfigClass, configclass


@configclass
class SceneEntityCfg(ConfigClass):
    """A part of the scene that a term reads: an entity, and which of its joints and bodies, by names or regular
    expressions, of which :meth:`resolve` makes indices."""

    name: str
    joint_names: Any = None
    joint_ids: Any = slice(None)
    body_names: Any = None
    body_ids: Any = slice(None)
    preserve_order: bool = False

    def resolve(self, scene: Any) -> None:
        """ValueError or KeyError, which lists what there is, for a name that there is not."""
        for part, method in (("joint", "find_joints"), ("body", "find_bodies")):
            if (patterns := getattr(self, f"{part}_names")) is not None:
                ids, names = getattr(scene[self.name], method)(
                    patterns, preserve_order=self.preserve_order
                )
                setattr(self, f"{part}_names", names)
                setattr(self, f"{part}_ids", ids)


def resolved(params: dict[str, Any], scene: Any) -> dict[str, Any]:
    """``params`` of a term, each :class:`SceneEntityCfg` among which is resolved."""
    for entity in [each for each in params.values() if isinstance(each, SceneEntityCfg)]:
        entity.resolve(scene)
    return params
