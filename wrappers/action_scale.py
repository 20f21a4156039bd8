"""The wrapper that takes actions in a range of the user's choice."""

from contextlib import nullcontext
from typing import Any, NamedTuple, cast

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from legged_envs.wrappers.plumbing.arrays import Array, NumPyArray, as_kind_of, clip
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.device import Device, split_device
from legged_envs.wrappers.plumbing.layers import AnyEnv, Step


class _Affine(NamedTuple):
    """The map a ↦ clip(a · scale + offset, low, high), as arrays of one kind, dtype and shape."""

    scale: Array
    offset: Array
    low: Array
    high: Array


class ActionScale(StatefulWrapper):
    """Takes actions in [low, high], maps them to the environment's range and clips them to it.

    The map is a ↦ env_low + (a - low) · (env_high - env_low) / (high - low). The map is computed in
    the type of the actions, which are floats or lists. Integers become floats.

    Args:
        env: The environment.
        low_or_device: ``low``, or the device in OmniSafe's order
            ``ActionScale(env, device, low, high)``.
        low: Lower bound of the actions: a number, or one for each entry of a single action.
        high: Upper bound of the actions: a number, or one for each entry of a single action.
        device: Device on which the environment's arrays must be. None: any device.

    Raises:
        TypeError: The action space is not a Box of floats, a bound is missing, or actions are not
            real numbers.
        ValueError: The action space or a bound is infinite, a bound has a wrong shape, or ``low``
            is not below ``high``.

    Examples:
        >>> import gymnasium as gym
        >>> env = gym.make_vec("Pendulum-v1", num_envs=2, vectorization_mode="sync")
        >>> env.single_action_space
        Box(-2.0, 2.0, (1,), float32)
        >>> ActionScale(env, low=-1, high=1).single_action_space
        Box(-1.0, 1.0, (1,), float32)
    """

    def __init__(
        self,
        env: AnyEnv,
        low_or_device: ArrayLike | Device | None = None,
        /,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        *,
        device: Device | None = None,
    ):
        first, device = split_device("ActionScale", low_or_device, device)
        if first is not None:
            low, high = _shift_bounds(first, low, high)
        if low is None or high is None:
            raise TypeError(f"ActionScale needs low and high, got low={low!r} and high={high!r}")
        super().__init__(env, device)
        inner = _finite_box(self.env.single_action_space)
        lows = _bounds("low", low, inner)
        highs = _bounds("high", high, inner)
        if not (lows < highs).all():
            raise ValueError(
                f"low must be below high in every entry, got low={low!r} and high={high!r}"
            )
        dtype = cast("Any", inner.dtype)
        self.single_action_space = Box(lows.astype(dtype), highs.astype(dtype), dtype=dtype)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._shape = (self.num_envs, *inner.shape)
        # In float64, so that the ends of one range map to the ends of the other.
        env_low = inner.low.astype(np.float64)
        env_high = inner.high.astype(np.float64)
        scale = (env_high - env_low) / (highs - lows)
        # Equal ranges are not changed: the map would round.
        self._keeps_range = bool((lows == env_low).all() and (highs == env_high).all())
        self._affine = _Affine(scale, env_low - lows * scale, env_low, env_high)
        # The same in the kind and dtype of the last actions.
        self._constants: _Affine | None = None

    def step(self, actions: Array | list[Any]) -> Step:
        is_list = isinstance(actions, (list, tuple))
        array: Any = np.asarray(actions) if is_list else actions
        shape = getattr(array, "shape", None)
        if shape != self._shape:
            given = type(array).__name__ if shape is None else tuple(shape)
            raise ValueError(f"actions must be an array of shape {self._shape}, got {given}")
        # Made again only if the kind or dtype changes: converting them in each step takes long.
        if not self._constants_fit(array):
            array = self._as_floats(array)
            self._constants = self._constants_for(array)
        constants = cast("_Affine", self._constants)
        # Scaled before the clip, because the clip has the bounds of the environment below.
        if not self._keeps_range:
            array = array * constants.scale + constants.offset
        scaled: Any = clip(array, constants.low, constants.high)
        step: Step = self.env.step(scaled.tolist() if is_list else scaled)
        return step

    def _constants_fit(self, actions: Array) -> bool:
        if self._constants is None:
            return False
        example = self._constants.scale
        return bool(example.dtype == actions.dtype) and type(example) is type(actions)

    def _as_floats(self, actions: Array) -> Array:
        xp = array_namespace(actions)
        if not xp.isdtype(actions.dtype, "integral"):
            return actions
        dtype = getattr(xp, str(self.single_action_space.dtype))
        converted: Array = xp.astype(actions, dtype)
        return converted

    def _constants_for(self, actions: Array) -> _Affine:
        """Return the map in the kind and dtype of the actions, as full batches.

        These multiply faster than rows that have to be repeated.
        """
        xp = array_namespace(actions)
        dtype = actions.dtype
        if not xp.isdtype(dtype, "real floating"):
            raise TypeError(f"actions must be floats, got {dtype}")
        # Tensors made in inference mode could not be used for the gradients of later actions.
        context = xp.inference_mode(False) if is_torch_array(actions) else nullcontext()
        with context:
            scale = as_kind_of(self._batch(self._affine.scale), actions)
            offset = as_kind_of(self._batch(self._affine.offset), actions)
            low = as_kind_of(self._batch(self._affine.low), actions)
            high = as_kind_of(self._batch(self._affine.high), actions)
            return _Affine(
                scale=xp.astype(scale, dtype),
                offset=xp.astype(offset, dtype),
                low=_inner_bound(low, dtype, 1.0),
                high=_inner_bound(high, dtype, -1.0),
            )

    def _batch(self, row: Array) -> NumPyArray:
        return np.broadcast_to(cast("NumPyArray", row), self._shape).copy()


def _inner_bound(bound: Array, dtype: Any, inwards: float) -> Array:
    """Return a float64 bound in ``dtype``, never outside of the float64 bound.

    Args:
        bound: The bound.
        dtype: A floating dtype.
        inwards: 1.0 for a lower bound, -1.0 for an upper bound.

    Returns:
        The nearest number. If that lies outside, the next number inwards.
    """
    xp = array_namespace(bound)
    nearest = xp.astype(bound, dtype)
    epsilon = float(xp.finfo(dtype).eps)
    moved = bound + xp.abs(bound) * (inwards * epsilon)
    outside = (bound - xp.astype(nearest, bound.dtype)) * inwards > 0.0
    inner: Array = xp.where(outside, xp.astype(moved, dtype), nearest)
    return inner


def _shift_bounds(
    first: ArrayLike, second: ArrayLike | None, high: ArrayLike | None
) -> tuple[ArrayLike, ArrayLike | None]:
    """Return low and high of ``ActionScale(env, first, second, high=high)``."""
    if second is None:
        return first, high
    if high is not None:
        raise TypeError(f"ActionScale takes two bounds, got {first!r}, {second!r} and {high!r}")
    return first, second


def _finite_box(space: object) -> Box:
    if not isinstance(space, Box) or np.dtype(space.dtype).kind != "f":
        raise TypeError(f"ActionScale needs a Box of floats as action space, got {space}")
    if not space.is_bounded():
        raise ValueError(
            f"ActionScale needs a finite action space, got {space}. Bound it below, for example "
            "with gymnasium.wrappers.vector.TransformAction and an action_space."
        )
    return space


def _bounds(name: str, value: ArrayLike, space: Box) -> NumPyArray:
    array = np.asarray(value, np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    try:
        return np.broadcast_to(array, space.shape)
    except ValueError:
        raise ValueError(
            f"{name} must be a number or have the shape {space.shape} of a single action, "
            f"got shape {array.shape}"
        ) from None
