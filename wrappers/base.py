"""What the wrappers share: array kinds and saved state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

Step = tuple[Any, Any, Any, Any, dict[str, Any]]
"""What a step returns: observation, reward, terminated, truncated and info."""


def first_array(tree: Any) -> Any:
    """The first array of an observation, which may be a dict or tuple: it tells the array kind and device."""
    while isinstance(tree, (dict, tuple)):
        tree = next(iter(tree.values() if isinstance(tree, dict) else tree))
    return tree


def zeros_like_batch(tree: Any, num_envs: int, dtype: str) -> Any:
    """Zeros of shape (num_envs,) of the array kind and on the device of an observation."""
    array = first_array(tree)
    xp = array_namespace(array)
    return xp.zeros(num_envs, dtype=getattr(xp, dtype), device=device(array))


def reset_mask(options: dict[str, Any] | None) -> Any | None:
    """The mask of a partial reset, or None if every environment is reset."""
    return None if options is None else options.get("reset_mask")


def kept(options: dict[str, Any] | None) -> dict[str, Any] | None:
    """Options to pass on: Gymnasium's vector environments take the mask out of the dict that they get."""
    return None if options is None else dict(options)


def not_reset(wrapper: VectorEnv) -> RuntimeError:
    """The error of a step before the first reset."""
    return RuntimeError(f"{type(wrapper).__name__} has no episodes to step yet: call reset() first")


def autoreset_mode(env: VectorEnv) -> AutoresetMode:
    """When an environment resets; Gymnasium's default is the next step."""
    return AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))


def layers(env: Any) -> Iterator[Any]:
    """The wrappers of a stack from the outside in, and the environment itself."""
    while env is not env.unwrapped:
        yield env
        env = env.env
    yield env


def name_of(env: Any) -> str:
    """What an error calls the environment at the bottom of a stack: its class and its id. Its ``str`` may be pages."""
    core = env.unwrapped
    return type(core).__name__ if core.spec is None else f"{type(core).__name__} {core.spec.id!r}"


def check_step_values(env: Any, owner: str) -> None:
    """Raise if a step of ``env`` does not return Gymnasium's five values.

    Raises:
        ValueError: Naming ``owner``, which needs them, and the layer that has to be the outermost one.
    """
    for layer in layers(env):
        if getattr(type(layer), "outermost", False):
            top = type(layer).__name__
            raise ValueError(
                f"{owner} needs the five values of Gymnasium's step, got those of {top} below it: leave {top} out, or "
                f"put {top} outermost"
            )


def end_episodes(env: Any, mask: Any) -> None:
    """Tell every layer below that keeps statistics that the episodes of ``mask`` are over until they are reset.

    Layers take part by having a method ``end_episodes(mask)``.
    """
    for layer in layers(env):
        if hasattr(type(layer), "end_episodes"):
            layer.end_episodes(mask)


class StatefulWrapper(VectorWrapper):
    """A vector wrapper whose state can be saved.

    ``state_dict``/``load_state_dict`` hold the wrapper's own state, ``get_state``/``set_state`` that of the whole
    stack down to the environment: a run that goes on from it continues bit for bit.

    Raises:
        ValueError: If a layer of ``env`` has to be the outermost one.
    """

    env: Any
    """The vector environment or wrapper below."""

    outermost: ClassVar[bool] = False
    """Whether no other wrapper can go above, since ``step`` does not return Gymnasium's five values."""

    def __init__(self, env: VectorEnv):
        super().__init__(env)
        check_step_values(env, type(self).__name__)

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When the stack resets; TorchRL asks for it."""
        return autoreset_mode(self)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=seed, options=kept(options))

    def state_dict(self) -> dict[str, Any]:
        """This wrapper's own state."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from ``state_dict``.

        Raises:
            ValueError: If it does not fit, such as that of another number of environments or costs. Then nothing
                has changed.
        """
        if state:
            raise ValueError(f"{type(self).__name__} has no state, got {list(state)}")

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays in ``state_dict``. In place of an array None fits too."""
        return {}

    def _check_state(self, state: dict[str, Any]) -> None:
        """Raise a ``ValueError`` if a state does not fit; :meth:`load_state_dict` assigns nothing before."""
        shapes = self._state_shapes()
        for key in (*shapes, *self.state_dict()):
            if key not in state:
                raise ValueError(f"{type(self).__name__} needs a state with {key!r}, got one of {list(state)}")
        for key, shape in shapes.items():
            if state[key] is not None and tuple(np.shape(state[key])) != shape:
                raise ValueError(
                    f"{type(self).__name__} needs a state whose {key!r} has shape {shape}, got "
                    f"{tuple(np.shape(state[key]))}: load one of as many environments and costs"
                )

    def save(self) -> dict[str, Any]:
        """The normalizers of this wrapper and of all below it, to be pickled or given to a wrapper as ``norm``.

        They are the ones in use: another wrapper that is given them shares them. The keys are ``obs_normalizer``,
        ``reward_normalizer`` and ``cost_normalizer``; of two wrappers of one kind the outer one counts.
        """
        saved: dict[str, Any] = {}
        for layer in layers(self):
            if hasattr(type(layer), "saved_as"):
                saved.setdefault(layer.saved_as, layer.normalizer)
        return dict(reversed(saved.items()))

    def get_state(self) -> dict[str, Any]:
        """The state of this wrapper and of everything below it.

        Raises:
            TypeError: If a layer below has no state to give, such as Gymnasium's own wrappers and environments.
        """
        if not hasattr(self.env, "get_state"):
            raise TypeError(
                f"{type(self.env).__name__} below {type(self).__name__} has no get_state: save each wrapper by its own "
                "state_dict()"
            )
        return {"wrapper": type(self).__name__, "own": self.state_dict(), "env": self.env.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from ``get_state`` of the same stack.

        Raises:
            ValueError: If the state is of another wrapper or does not fit.
        """
        if state.get("wrapper") != type(self).__name__:
            raise ValueError(f"{type(self).__name__}.set_state got the state of {state.get('wrapper')!r}")
        self._check_state(state["own"])
        self.env.set_state(state["env"])
        self.load_state_dict(state["own"])
