"""The scene that is being set up: Isaac Lab makes entities from only their configuration."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from legged_envs.envs import CoreVectorEnv
from legged_envs.state import Stateful


class Scene(Protocol):
    """The part of a scene that its entities use."""

    core: CoreVectorEnv
    """The vector environment."""
    entities: dict[str, Any]
    """All entities with a state, by a name that nothing else reads."""


class _SceneOfThread(threading.local):
    """The scene that each thread sets up at the moment, if it does."""

    scene: Scene | None = None


_CURRENT = _SceneOfThread()


@contextmanager
def setting_up(scene: Scene) -> Iterator[None]:
    """Let entities that are made in the block belong to ``scene``."""
    # A task may make another environment while it sets up its own scene.
    outer_scene = _CURRENT.scene
    _CURRENT.scene = scene
    try:
        yield
    finally:
        _CURRENT.scene = outer_scene


def scene_of(entity: object, scene: Scene | None = None) -> Scene:
    """Return the scene that a new entity belongs to.

    An entity with a state is added to the scene, which saves the state.

    Args:
        entity: The entity.
        scene: Its scene. None: the scene that is being set up.

    Raises:
        RuntimeError: If there is no scene.
    """
    if scene is None:
        scene = _CURRENT.scene
    if scene is None:
        raise RuntimeError(
            f"{type(entity).__name__}(cfg) finds its scene only where one is set up: "
            "make it in _setup_scene, or by a field of the configuration of the scene"
        )
    if isinstance(entity, Stateful):
        scene.entities[f"{type(entity).__name__} {len(scene.entities)}"] = entity
    return scene
