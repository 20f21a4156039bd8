"""Actions in a range of one's choice."""

from contextlib import nullcontext
from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from legged_envs.wrappers.plumbing.arrays import Array, NumPyArray, as_kind_of, clip
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.layers import Step


class ActionScale(StatefulWrapper):
    """Takes actions in [low, high], maps them affinely to the environment's range and clips them to it.

    a ↦ clip(env_low + (a − low) · (env_high − env_low) / (high − low), env_low, env_high), in the type of ``a``, floats
    or lists; integers become floats. ``low`` and ``high`` are numbers or have one for each entry of a single action.
    Actions that are no real numbers or an action space of other than floats are a TypeError; wrong shapes, infinite
    bounds and a ``low`` not below ``high`` a ValueError.

    >>> import gymnasium as gym
    >>> env = gym.make_vec("Pendulum-v1", num_envs=2, vectorization_mode="sync")
    >>> env.single_action_space, ActionScale(env, low=-1, high=1).single_action_space
    (Box(-2.0, 2.0, (1,), float32), Box(-1.0, 1.0, (1,), float32))
    """

    def __init__(self, env: Any, low: ArrayLike, high: ArrayLike):
        super().__init__(env)
        inner: Any = self.env.single_action_space
        if not isinstance(inner, Box) or inner.dtype.kind != "f":
            raise TypeError(f"ActionScale needs a Box of floats as action space, got {inner}")
        if not inner.is_bounded():
            how = "bound it below, for example with gymnasium.wrappers.vector.TransformAction and an action_space"
            raise ValueError(f"ActionScale needs a finite action space, got {inner}: {how}")
        lows, highs = _bounds("low", low, inner), _bounds("high", high, inner)
        if not (lows < highs).all():
            raise ValueError(
                f"low must be below high in every entry, got low={low!r} and high={high!r}"
            )
        self.single_action_space = Box(
            lows.astype(inner.dtype), highs.astype(inner.dtype), dtype=inner.dtype
        )
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._shape = (self.num_envs, *inner.shape)
        env_low, env_high = inner.low.astype(np.float64), inner.high.astype(np.float64)
        scale = (env_high - env_low) / (highs - lows)
        self._keeps_range = bool((lows == env_low).all() and (highs == env_high).all())
        self._affine = (scale, env_low - lows * scale, env_low, env_high)
        self._constants: Any = None  # those of the kind and type of the last actions

    def step(self, actions: Array) -> Step:
        listed = isinstance(actions, (list, tuple))
        actions = np.asarray(actions) if listed else actions
        shape = getattr(actions, "shape", None)
        if shape != self._shape:
            given = type(actions).__name__ if shape is None else tuple(shape)
            raise ValueError(f"actions must be an array of shape {self._shape}, got {given}")
        constants = self._constants
        if (
            constants is None
            or constants[0].dtype != actions.dtype
            or type(constants[0]) is not type(actions)
        ):
            xp = array_namespace(actions)
            if xp.isdtype(actions.dtype, "integral"):
                actions = xp.astype(actions, getattr(xp, str(self.single_action_space.dtype)))
            constants = self._constants = self._constants_for(actions)
        scale, offset, low, high = constants
        scaled = clip(actions if self._keeps_range else actions * scale + offset, low, high)
        step: Step = self.env.step(cast(NumPyArray, scaled).tolist() if listed else scaled)
        return step

    def _constants_for(self, actions: Array) -> tuple[Array, ...]:
        """Scale, offset and bounds as full batches: these multiply faster than rows that have to be repeated."""
        xp = array_namespace(actions)
        if not xp.isdtype(actions.dtype, "real floating"):
            raise TypeError(f"actions must be floats, got {actions.dtype}")
        # Tensors that are made in inference mode serve no later action's gradients.
        with xp.inference_mode(False) if is_torch_array(actions) else nullcontext():
            batches = (np.broadcast_to(value, self._shape).copy() for value in self._affine)
            scale, offset, low, high = (as_kind_of(batch, actions) for batch in batches)
            bounds = _inner_bound(low, actions.dtype, 1.0), _inner_bound(high, actions.dtype, -1.0)
            return xp.astype(scale, actions.dtype), xp.astype(offset, actions.dtype), *bounds


def _inner_bound(bound: Array, dtype: Any, inwards: float) -> Array:
    """A float64 bound in ``dtype`` or, where that cannot hold it, the number above (``inwards`` 1) or below it (−1)."""
    xp = array_namespace(bound)
    nearest = xp.astype(bound, dtype)
    inner = xp.astype(bound + xp.abs(bound) * (inwards * float(xp.finfo(dtype).eps)), dtype)
    return cast(
        Array, xp.where((bound - xp.astype(nearest, bound.dtype)) * inwards > 0.0, inner, nearest)
    )


def _bounds(name: str, value: ArrayLike, space: Box) -> NumPyArray:
    array = np.asarray(value, np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    try:
        return np.broadcast_to(array, space.shape)
    except ValueError:
        expected = f"a number or have the shape {space.shape} of a single action"
        raise ValueError(f"{name} must be {expected}, got shape {array.shape}") from None
