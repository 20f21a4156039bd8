"""Running mean and variance of a stream of batches."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from array_api_compat import device

from legged_envs.wrappers import arrays
from legged_envs.wrappers.arrays import Array

CLIP, STD_FLOOR = 5.0, 0.01
"""Bound of normalised values unless said otherwise, and what smaller standard deviations count as, as in OmniSafe:
something that hardly ever changes is not blown up."""


class Normalizer:
    """Running mean and variance per element, and the normalisation by them.

    Everything is kept in float64 and the count is an integer, so the statistics go on changing however long a run is.
    They live where the data live: the first batch decides the array kind and the device, and a batch of another kind
    moves them there. Pickles and states hold NumPy arrays.

    A batch is merged as in Chan, Golub, LeVeque 1979 ("Updating formulae and a pairwise algorithm for computing sample
    variances"). With S and Q the sums over the batch of d and d², where d = x − mean, and n the count afterwards, their
    formulae become mean += S/n and M2 += Q − S²/n.

    Args:
        shape: Of one sample.
        clip: Normalised values are clipped to [−clip, clip].

    Raises:
        ValueError: If ``clip`` is not positive.
    """

    def __init__(self, shape: tuple[int, ...], clip: float = CLIP):
        if not clip > 0:
            raise ValueError(f"clip must be positive, got {clip!r}")
        self.shape = tuple(shape)
        """Shape of one sample."""
        self.clip = float(clip)
        """Bound of the normalised values."""
        self.count = 0
        """Number of samples."""
        self.mean: Any = np.zeros(self.shape)
        """Mean of the samples, float64. Shape: ``shape``."""
        self.m2: Any = np.zeros(self.shape)
        """Sum of the squared deviations from the mean, float64. Shape: ``shape``."""
        self._kind: Any = None
        self._adopt(self.mean)

    @property
    def var(self) -> Any:
        """Unbiased variance M2 / (n − 1); 1 before the second sample. Shape: ``shape``."""
        if self.count < 2:
            return self._xp.ones_like(self.m2)
        return self._xp.maximum(self.m2, 0.0) / (self.count - 1)

    @property
    def std(self) -> Any:
        """Standard deviation, at least 0.01; 1 before the second sample. Shape: ``shape``."""
        return self._xp.maximum(self._xp.sqrt(self.var), STD_FLOOR)

    def push(self, samples: Array, rows: Array | None = None) -> None:
        """Add samples (num_samples, ``*shape``) to the statistics: of ``rows`` (num_samples,) bool, or without it all.

        None at all change nothing. Samples of another shape are a ``ValueError``.
        """
        if samples.shape[1:] != self.shape or not samples.ndim:
            expected = ", ".join(map(str, ("num_samples", *self.shape)))
            raise ValueError(f"expected samples of shape ({expected}), got {tuple(samples.shape)}")
        if rows is not None:
            samples = samples[rows]
        if samples.shape[0]:
            self._merge(samples)

    def push_and_normalize(self, samples: Array) -> Array:
        """:meth:`push` all samples and then :meth:`normalize` them, in one pass."""
        if samples.shape[1:] != self.shape or not samples.ndim or self.count + samples.shape[0] < 2:
            self.push(samples)
            return self.normalize(samples)
        deviations, change = self._merge(samples)
        deviations -= change
        deviations *= self._factor()
        return self._clip(deviations, samples.dtype)

    def normalize(self, values: Array) -> Array:
        """``(values − mean) / std``, clipped, in their own floating dtype (float32 for integers).

        The statistics stay as they are. Before the second sample values, of shape (…, ``*shape``), are only clipped.
        """
        self._adopt(values)
        if self.count < 2:
            return self._clip(arrays.float64(values), values.dtype)
        return self._clip((self._exact(values) - self.mean) * self._factor(), values.dtype)

    def scale(self, values: Array) -> Array:
        """``values / std``, clipped, like :meth:`normalize` without taking off the mean."""
        self._adopt(values)
        exact = self._exact(values)
        return self._clip(exact * self._factor() if self.count >= 2 else exact, values.dtype)

    def state_dict(self) -> dict[str, Any]:
        """The statistics as NumPy arrays."""
        mean, m2 = (np.array(arrays.as_numpy(value)) for value in (self.mean, self.m2))
        return {"count": self.count, "mean": mean, "m2": m2, "clip": self.clip}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return exactly to a state from :meth:`state_dict`.

        One that lacks something, or is of another shape or clip, is a ``ValueError``, and nothing has changed.
        """
        self.check_state(state)
        self.count = int(state["count"])
        self.mean, self.m2 = (np.array(state[key], np.float64) for key in ("mean", "m2"))
        self._kind = None
        self._adopt(self.mean)

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise the errors of :meth:`load_state_dict` and change nothing."""
        for key in ("mean", "m2", "count", "clip"):
            if key not in state:
                raise ValueError(f"the state has no {key!r}")
        for shape in (np.shape(state["mean"]), np.shape(state["m2"])):
            if shape != self.shape or state["clip"] != self.clip:
                raise ValueError(
                    f"the state is of Normalizer({shape}, clip={state['clip']}), not of Normalizer({self.shape}, "
                    f"clip={self.clip})"
                )

    def __getstate__(self) -> dict[str, Any]:
        return {"shape": self.shape, **self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Normalizer.__init__(self, state["shape"], state["clip"])
        self.load_state_dict(state)

    def __repr__(self) -> str:
        return f"Normalizer({self.shape}, clip={self.clip}, count={self.count})"

    def _adopt(self, array: Array) -> None:
        """Become of the kind and on the device of ``array``."""
        if type(array) is self._kind:  # NumPy
            return
        kind = np.ndarray if isinstance(array, arrays.NUMPY) else (type(array), device(array))
        if kind == self._kind:
            return
        xp = arrays.namespace(array)
        mean, m2 = (arrays.as_kind_of(np.array(arrays.as_numpy(value)), array) for value in (self.mean, self.m2))
        if mean.dtype != xp.float64:
            raise TypeError(f"running statistics need float64, which {xp.__name__} gave as {mean.dtype}: enable it")
        self.mean, self.m2, self._kind, self._xp = mean, m2, kind, xp

    def _merge(self, samples: Array) -> tuple[Any, Any]:
        """Add samples. Returns their deviations from the mean before, a new float64 array, and by how much it changed.

        The first batch has its own mean before.
        """
        self._adopt(samples)
        xp = self._xp
        if not self.count:
            self.mean = xp.mean(arrays.float64(arrays.detached(samples)), axis=0)
        deviations = self._exact(samples) - self.mean
        if xp is np:  # BLAS is left alone: its threads would spin beside the physics
            total, squares = np.add.reduce(deviations, 0), np.add.reduce(deviations * deviations, 0)
        else:
            added = arrays.detached(deviations)
            total, squares = xp.sum(added, axis=0), xp.sum(added * added, axis=0)
        self.count += samples.shape[0]
        change = total / float(self.count)
        self.mean = self.mean + change
        self.m2 = self.m2 + (squares - total * change)
        return deviations, change

    def _exact(self, values: Array) -> Any:
        """``values`` in float64; NumPy's are that as soon as something of float64 is added or multiplied."""
        return values if self._xp is np else arrays.float64(values)

    def _factor(self) -> Any:
        """1 / std of two samples or more. Rounding can leave M2 of a constant just below zero."""
        freedom = self.count - 1.0
        least = STD_FLOOR**2 * freedom
        if self._xp is np and not self.shape:
            return math.sqrt(freedom / max(self.m2, least))
        return math.sqrt(freedom) / self._xp.sqrt(self._xp.maximum(self.m2, least))

    def _clip(self, values: Any, dtype: Any) -> Array:
        """``values``, clipped, in ``dtype`` or float32 if that is no floating one."""
        clipped: Any = arrays.clip(values, -self.clip, self.clip)
        if self._xp is np:
            return cast(Array, clipped.astype(dtype if dtype.kind == "f" else np.float32, copy=False))
        is_float = self._xp.isdtype(dtype, "real floating")
        return cast(Array, self._xp.astype(clipped, dtype if is_float else self._xp.float32, copy=False))


def check_normalizer(owner: str, norm: Any, shape: tuple[int, ...], clip: float | None) -> Normalizer:
    """The normalizer ``norm`` that the wrapper ``owner`` was given, or a new one if that is None.

    Raises:
        TypeError: If ``norm`` is something else.
        ValueError: If its shape does not fit, or it comes together with a clip that is not its own.
    """
    if norm is None:
        return Normalizer(shape, CLIP if clip is None else clip)
    if not isinstance(norm, Normalizer):
        raise TypeError(f"{owner} needs a Normalizer, got {type(norm).__name__}")
    if norm.shape != tuple(shape):
        raise ValueError(f"{owner} needs a Normalizer of shape {tuple(shape)}, got one of shape {norm.shape}")
    if clip is not None and clip != norm.clip:
        raise ValueError(f"{owner} was given clip={clip} and a Normalizer with clip={norm.clip}: leave clip out")
    return norm
