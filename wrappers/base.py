"""What the wrappers share: array kinds and saved state."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace
from gymnasium.vector import VectorWrapper


def first_array(tree: Any) -> Any:
    """The first array of an observation, which may be a dict of them: it tells the array kind and device."""
    while isinstance(tree, dict):
        tree = next(iter(tree.values()))
    return tree


def zeros_like_batch(tree: Any, num_envs: int, dtype: str) -> Any:
    """Zeros of shape (num_envs,) of the array kind and on the device of an observation."""
    array = first_array(tree)
    xp = array_namespace(array)
    return xp.zeros(num_envs, dtype=getattr(xp, dtype), device=array.device)


def reset_mask(options: dict[str, Any] | None) -> Any | None:
    """The mask of a partial reset, or None if every environment is reset."""
    return None if options is None else options.get("reset_mask")


def end_episodes(env: Any, mask: Any) -> None:
    """Tell every layer below that keeps statistics that the episodes of ``mask`` are over until they are reset.

    Layers take part by having a method ``end_episodes(mask)``.
    """
    while True:
        if hasattr(type(env), "end_episodes"):  # of its own: wrappers pass on what they lack
            env.end_episodes(mask)
        if env is env.unwrapped:
            return
        env = env.env


class StatefulWrapper(VectorWrapper):
    """A vector wrapper whose state can be saved.

    ``state_dict``/``load_state_dict`` hold the wrapper's own state, ``get_state``/``set_state`` that of the whole
    stack down to the environment: a run that goes on from it continues bit for bit.
    """

    env: Any
    """The vector environment or wrapper below."""

    def state_dict(self) -> dict[str, Any]:
        """This wrapper's own state."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from ``state_dict``."""
        if state:
            raise ValueError(f"{type(self).__name__} has no state, got {list(state)}")

    def get_state(self) -> dict[str, Any]:
        """The state of this wrapper and of everything below it."""
        return {"wrapper": type(self).__name__, "own": self.state_dict(), "env": self.env.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from ``get_state`` of the same stack.

        Raises:
            ValueError: If the state is of another wrapper.
        """
        if state.get("wrapper") != type(self).__name__:
            raise ValueError(f"{type(self).__name__}.set_state got the state of {state.get('wrapper')!r}")
        self.env.set_state(state["env"])
        self.load_state_dict(state["own"])
