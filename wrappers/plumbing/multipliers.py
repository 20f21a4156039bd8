"""Lagrange multipliers that rise while costs exceed their limits and fall while they keep them."""

from types import ModuleType

import numpy as np
from array_api_compat import array_namespace

from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array


def relative_excess(means: Array, limits: Array) -> Array:
    """Return by how much mean costs exceed their limits, in units of the limits.

    The excess is min(mean / limit - 1, 1), or min(mean, 1) where the limit is 0. The upper bound
    keeps the first steps of a training from winding multipliers up.

    Args:
        means: Mean costs. Shape: (…, K).
        limits: Limits of the costs. Shape: (K,) or (…, K).

    Returns:
        The excess, of the same kind of arrays. Shape: (…, K).
    """
    xp = array_namespace(means, limits)
    scales = xp.where(limits > 0.0, limits, xp.ones_like(limits))
    excess: Array = xp.clip((means - limits) / scales, max=1.0)
    return excess


class PIDMultipliers:
    """Lagrange multipliers with an integral, a proportional and a derivative part.

    With e the excess of an update and e' the excess of the previous update, 0 at first::

        I ← clip(I + integral · e, 0, maximum)
        λ = clip(proportional · e + I + derivative · max(e - e', 0), 0, maximum)

    With only the integral part, the update is dual ascent. The proportional part answers at once,
    and the derivative part answers an excess that grows. See Stooke et al. 2020, "Responsive safety
    in reinforcement learning by PID Lagrangian methods", algorithm 2.

    Args:
        initial: λ and I at the start, an array of any kind, device and shape. Gains, and sums that
            are made in float64, are rounded to its dtype.
        integral: Gain of the integral part.
        proportional: Gain of the proportional part.
        derivative: Gain of the derivative part.
        maximum: Upper bound of I and λ. None: no bound.

    Raises:
        ValueError: A gain or the bound is negative or NaN.
    """

    def __init__(
        self,
        initial: Array,
        *,
        integral: float,
        proportional: float = 0.0,
        derivative: float = 0.0,
        maximum: float | None = None,
    ):
        _check_gain("integral", integral)
        _check_gain("proportional", proportional)
        _check_gain("derivative", derivative)
        if maximum is not None:
            _check_gain("maximum", maximum)
        xp = array_namespace(initial)
        self._integral_gain = _rounded(integral, xp, initial)
        self._proportional_gain = _rounded(proportional, xp, initial)
        self._derivative_gain = _rounded(derivative, xp, initial)
        self._maximum = maximum
        # The arrays of the state are never written to: an update replaces them.
        start: Array = xp.asarray(initial, copy=True)
        self._state: dict[str, Array] = {
            "multipliers": start,
            "integral": start,
            "last_excess": xp.zeros_like(start),
        }

    @property
    def values(self) -> Array:
        """The multipliers λ. Shape: the shape of ``initial``."""
        return self._state["multipliers"]

    def update(self, excess: Array, follow: bool = True) -> None:
        """Adapt the multipliers to an excess. Elements that are not finite change nothing.

        Args:
            excess: The excess e. Shape: the shape of ``initial``.
            follow: False only keeps the excess as e' of the next update.
        """
        xp = array_namespace(excess)
        updated = {"last_excess": excess}
        if follow:
            rise = xp.clip(excess - self._state["last_excess"], min=0.0)
            integral = self._bounded(
                xp.astype(self._state["integral"], xp.float64)
                + self._integral_gain * xp.astype(excess, xp.float64)
            )
            updated["integral"] = integral
            updated["multipliers"] = self._bounded(
                self._proportional_gain * xp.astype(excess, xp.float64)
                + xp.astype(integral, xp.float64)
                + self._derivative_gain * xp.astype(rise, xp.float64)
            )
        is_measured = xp.isfinite(excess)
        state = dict(self._state)
        for name, array in updated.items():
            state[name] = xp.where(is_measured, array, self._state[name])
        self._state = state

    def _bounded(self, total: Array) -> Array:
        xp = array_namespace(total)
        clipped = xp.clip(total, min=0.0, max=self._maximum)
        bounded: Array = xp.astype(clipped, self.values.dtype)
        return bounded

    def state_dict(self) -> dict[str, Array]:
        """Return copies of λ, I and e' as ``multipliers``, ``integral`` and ``last_excess``."""
        return {name: arrays.copied(value) for name, value in self._state.items()}

    def check_state(self, state: dict[str, Array]) -> None:
        """Check that saved multipliers can be loaded into this object.

        Args:
            state: Result of an earlier ``state_dict``: name → array.

        Raises:
            ValueError: An array is missing, or has another shape than ``initial``.
        """
        for name, own in self._state.items():
            shape = tuple(own.shape)
            given: object = f"only {sorted(state)}"
            if name in state:
                given = tuple(np.shape(state[name]))
            if given != shape:
                raise ValueError(
                    f"the multipliers need a state with {name!r} of shape {shape}, got {given}"
                )
            values = arrays.as_numpy(state[name])
            if values.dtype.kind != "f" or not np.isfinite(values).all():
                raise ValueError(
                    f"the multipliers need a state with finite floats in {name!r}, got {values}"
                )

    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Return to a state from :meth:`state_dict`, of any array kind.

        Raises:
            ValueError: An array is missing, or of another shape than ``initial``.
        """
        self.check_state(state)
        self._state = {name: arrays.copied(state[name]) for name in self._state}


def _check_gain(name: str, value: float) -> None:
    # Not "value < 0.0": NaN must fail too.
    if not value >= 0.0:
        raise ValueError(f"{name} of the multipliers must be at least 0, got {value!r}")


def _rounded(gain: float, xp: ModuleType, example: Array) -> float:
    return float(xp.asarray(gain, dtype=example.dtype))
