"""Lagrange multipliers that rise while costs exceed their limits and fall while they keep them."""

import copy
from typing import Any

import numpy as np
from array_api_compat import array_namespace


def relative_excess(means: Any, limits: Any) -> Any:
    """Excess of mean costs over limits, in units of the limits: min(mean / limit − 1, 1), or min(mean, 1) of a limit 0.
    The bound keeps first steps from winding multipliers up. Shapes, any kind: (…, K), (K,) or (…, K) → (…, K)."""
    xp = array_namespace(means, limits)
    scales = xp.where(limits > 0.0, limits, xp.ones_like(limits))
    return xp.clip((means - limits) / scales, max=1.0)


class PIDMultipliers:
    """Multipliers λ ≥ 0 that answer an excess e by a controller with integral, proportional and derivative part::

        I ← clip(I + integral · e, 0, maximum)
        λ = clip(proportional · e + I + derivative · max(e − e', 0), 0, maximum)

    e' is the excess of the update before, 0 at first. With the integral part alone this is dual ascent; the
    proportional part answers at once, the derivative part an excess that grows (Stooke et al. 2020, "Responsive safety
    in reinforcement learning by PID Lagrangian methods", algorithm 2). ``initial`` is λ and I at the start: an array of
    any kind, device and shape, to whose dtype gains and float64 sums are rounded. A ``maximum`` of None is none; a gain
    or bound that is negative or NaN is a ``ValueError``."""

    def __init__(
        self,
        initial: Any,
        *,
        integral: float,
        proportional: float = 0.0,
        derivative: float = 0.0,
        maximum: float | None = None,
    ):
        gains = {"integral": integral, "proportional": proportional, "derivative": derivative}
        for name, value in (gains | {"maximum": 0.0 if maximum is None else maximum}).items():
            if not value >= 0.0:
                raise ValueError(f"{name} of the multipliers must be at least 0, got {value!r}")
        xp = array_namespace(initial)
        self._gains = [float(xp.asarray(gain, dtype=initial.dtype)) for gain in gains.values()]
        self._maximum = maximum
        # No array of the state is ever written to: an update puts others in their place.
        start = xp.asarray(initial, copy=True)
        self._state = {"multipliers": start, "integral": start, "last_excess": xp.zeros_like(start)}

    @property
    def values(self) -> Any:
        """The multipliers λ. Shape: that of ``initial``."""
        return self._state["multipliers"]

    def update(self, excess: Any, follow: bool = True) -> None:
        """Follow ``excess``, of the shape of λ, or only keep it as e'. Where it is not finite, nothing changes."""
        xp, old, dtype = array_namespace(excess), self._state, self.values.dtype

        def bounded(total: Any) -> Any:
            return xp.astype(xp.clip(total, min=0.0, max=self._maximum), dtype)

        updated = {"last_excess": excess}
        if follow:
            parts = excess, old["integral"], xp.clip(excess - old["last_excess"], min=0.0)
            error, integral, rise = (xp.astype(part, xp.float64) for part in parts)
            k_i, k_p, k_d = self._gains
            updated["integral"] = bounded(integral + k_i * error)
            updated["multipliers"] = bounded(
                k_p * error + xp.astype(updated["integral"], xp.float64) + k_d * rise
            )
        measured = xp.isfinite(excess)
        self._state = old | {
            name: xp.where(measured, array, old[name]) for name, array in updated.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """λ, I and e' as ``multipliers``, ``integral`` and ``last_excess``, copied. Shapes: that of ``initial``."""
        return copy.deepcopy(self._state)

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise a ``ValueError`` unless ``state`` has the arrays of :meth:`state_dict`, of the shape of ``initial``."""
        for name, own in self._state.items():
            got = tuple(np.shape(state[name])) if name in state else f"only {sorted(state)}"
            if got != tuple(own.shape):
                raise ValueError(
                    f"the multipliers need a state whose {name!r} has shape {tuple(own.shape)}, got {got}"
                )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state, of any array kind; a ``ValueError`` if an array is missing or of another shape."""
        self.check_state(state)
        self._state = copy.deepcopy({name: state[name] for name in self._state})
