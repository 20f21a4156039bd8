"""Running mean and variance of a stream of batches, and the normalization by them."""

import math
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import device

from legged_envs.checks import whole_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array
from legged_envs.wrappers.plumbing.layers import State

DEFAULT_CLIP = 5.0
"""Default bound of normalized values, as in OmniSafe."""
STD_FLOOR = 0.01
"""Smallest standard deviation that values are divided by, as in OmniSafe."""


class Normalizer:
    """Running mean and variance of each element of the samples, and the normalization by them.

    The statistics are float64 with an integer count, so they keep changing however long a run is.
    The statistics live where the data live: a batch of another array kind or device moves them.
    Pickles and states hold NumPy arrays.

    A batch is merged as in Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise algorithm
    for computing sample variances". With S and Q the batch's sums of d and d², where d is sample
    minus mean, and n the count afterwards::

        mean ← mean + S / n
        M2 ← M2 + Q - S² / n

    Args:
        shape: Shape of one sample.
        clip: Normalized values are limited to [-clip, clip].

    Raises:
        ValueError: ``clip`` is not positive.
    """

    def __init__(self, shape: tuple[int, ...], clip: float = DEFAULT_CLIP):
        if not clip > 0:
            raise ValueError(f"clip must be positive, got {clip!r}")
        self.shape = tuple(shape)
        """Shape of one sample."""
        self.clip = float(clip)
        """Bound of the normalized values."""
        self.count = 0
        """Number of samples."""
        self.mean: Array = np.zeros(self.shape)
        """Mean of the samples, float64. Shape: ``shape``."""
        self.m2: Array = np.zeros(self.shape)
        """Sum of the squared deviations of the samples from their mean. Shape: ``shape``."""
        # Kind of array and device of the statistics, and the functions of their library.
        self._kind: object = np.ndarray
        self._xp: ModuleType = np

    @property
    def var(self) -> Array:
        """Unbiased variance M2 / (n - 1), 1 before the second sample. Shape: ``shape``."""
        variance: Array
        if self.count < 2:
            variance = self._xp.ones_like(self.m2)
        else:
            variance = self._xp.maximum(self.m2, 0.0) / (self.count - 1)
        return variance

    @property
    def std(self) -> Array:
        """Standard deviation, at least 0.01, and 1 before the second sample. Shape: ``shape``."""
        deviation: Array = self._xp.maximum(self._xp.sqrt(self.var), STD_FLOOR)
        return deviation

    def push(self, samples: Array, rows: Array | None = None) -> None:
        """Add samples to the statistics.

        Args:
            samples: The samples. Shape: (num_samples, ``*shape``).
            rows: Samples to add. Shape: (num_samples,), bool. None: all.

        Raises:
            ValueError: The samples are of another shape.
        """
        if not self._fits(samples):
            expected = ", ".join(["num_samples", *map(str, self.shape)])
            raise ValueError(f"expected samples of shape ({expected}), got {tuple(samples.shape)}")
        if rows is not None:
            samples = samples[rows]
        if samples.shape[0] > 0:
            self._merge(samples)

    def push_and_normalize(self, samples: Array) -> Array:
        """Add all samples and return them normalized: :meth:`push` and :meth:`normalize` at once.

        Raises:
            ValueError: The samples are of another shape.
        """
        if not self._fits(samples) or self.count + samples.shape[0] < 2:
            self.push(samples)
            return self.normalize(samples)
        self._merge(samples)
        centred = arrays.float64(samples) - self.mean
        return self._clip(centred * self._factor(), samples.dtype)

    def normalize(self, values: Array) -> Array:
        """Return ``(values - mean) / std``, clipped.

        Before the second sample the values are clipped only.

        Args:
            values: The values. Shape: (…, ``*shape``).

        Returns:
            The result in the floating dtype of the values, or otherwise in float32.
        """
        self._adopt(values)
        exact = arrays.float64(values)
        if self.count >= 2:
            exact = (exact - self.mean) * self._factor()
        return self._clip(exact, values.dtype)

    def scale(self, values: Array) -> Array:
        """Return ``values / std``, clipped: :meth:`normalize` without subtracting the mean."""
        self._adopt(values)
        scaled = arrays.float64(values)
        if self.count >= 2:
            scaled = scaled * self._factor()
        return self._clip(scaled, values.dtype)

    def state_dict(self) -> State:
        """Return count, mean, sum of squared deviations and clip. Arrays are NumPy float64."""
        return {
            "count": self.count,
            "mean": np.array(arrays.as_numpy(self.mean)),
            "m2": np.array(arrays.as_numpy(self.m2)),
            "clip": self.clip,
        }

    def load_state_dict(self, state: State) -> None:
        """Return exactly to a state from :meth:`state_dict`.

        Raises:
            ValueError: The state is of another shape or clip. Nothing changes.
        """
        # All checks come before the first change.
        self.check_state(state)
        self.count = int(state["count"])
        self.mean = np.array(state["mean"], np.float64)
        self.m2 = np.array(state["m2"], np.float64)
        self._kind = np.ndarray
        self._xp = np

    def check_state(self, state: State) -> None:
        """Check that saved statistics can be loaded into this normalizer.

        Args:
            state: Result of an earlier ``state_dict``.

        Raises:
            ValueError: An entry is missing, or the state has another shape or another ``clip``.
        """
        for key in ("mean", "m2", "count", "clip"):
            if key not in state:
                raise ValueError(f"the state has no {key!r}")
        for key in ("mean", "m2"):
            shape = np.shape(state[key])
            if shape != self.shape or state["clip"] != self.clip:
                raise ValueError(
                    f"the state is of Normalizer({shape}, clip={state['clip']}), "
                    f"not of Normalizer({self.shape}, clip={self.clip})"
                )
        whole_number("count of the state of a Normalizer", state["count"], least=0)
        for key in ("mean", "m2"):
            values = np.asarray(state[key])
            if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
                raise ValueError(f"{key!r} of the state of a Normalizer must be finite numbers")
        if np.min(state["m2"], initial=0.0) < 0.0:
            raise ValueError("'m2' of the state of a Normalizer must not be negative")

    def __getstate__(self) -> State:
        return {"shape": self.shape, **self.state_dict()}

    def __setstate__(self, state: State) -> None:
        Normalizer.__init__(self, state["shape"], state["clip"])
        self.load_state_dict(state)

    def __repr__(self) -> str:
        return f"Normalizer({self.shape}, clip={self.clip}, count={self.count})"

    def _fits(self, samples: Array) -> bool:
        return samples.ndim > 0 and samples.shape[1:] == self.shape

    def _adopt(self, array: Array) -> None:
        """Move the statistics to the kind and device of an array."""
        # The first comparison is the fast way for NumPy.
        if type(array) is self._kind:
            return
        kind: object = np.ndarray
        if not isinstance(array, arrays.NUMPY_TYPES):
            kind = (type(array), device(array))
        if kind == self._kind:
            return
        xp = arrays.namespace(array)
        mean = arrays.as_kind_of(np.array(arrays.as_numpy(self.mean)), array)
        m2 = arrays.as_kind_of(np.array(arrays.as_numpy(self.m2)), array)
        if mean.dtype != xp.float64:
            raise TypeError(
                f"running statistics need float64, which {xp.__name__} gave as {mean.dtype}: "
                "enable it"
            )
        self.mean = mean
        self.m2 = m2
        self._kind = kind
        self._xp = xp

    def _merge(self, samples: Array) -> None:
        self._adopt(samples)
        xp = self._xp
        # Converted first, because NumPy takes longer to subtract arrays of two types.
        deviations: Any = arrays.float64(samples)
        # Deviations from a mean that is near: sums of squares of large numbers would cancel.
        if self.count == 0:
            self.mean = xp.mean(arrays.detached(deviations), axis=0)
        deviations -= self.mean
        if xp is np:
            # Not by a product of matrices: the threads of BLAS would spin next to the physics.
            total = np.add.reduce(deviations, 0)
            squares = np.add.reduce(deviations * deviations, 0)
        else:
            added = arrays.detached(deviations)
            total = xp.sum(added, axis=0)
            squares = xp.sum(added * added, axis=0)
        self.count += samples.shape[0]
        change = total / float(self.count)
        self.mean = self.mean + change
        self.m2 = self.m2 + (squares - total * change)

    def _factor(self) -> float | Array:
        """Return 1 / std of two samples or more."""
        freedom = self.count - 1.0  # Bessel's correction
        # Also because rounding can leave M2 of a constant just below zero.
        smallest = STD_FLOOR**2 * freedom
        m2: Any = self.m2
        if self._xp is np and not self.shape:
            return math.sqrt(freedom / max(m2, smallest))
        factor: Array = math.sqrt(freedom) / self._xp.sqrt(self._xp.maximum(m2, smallest))
        return factor

    def _clip(self, values: Array, dtype: Any) -> Array:
        clipped: Any = arrays.clip(values, -self.clip, self.clip)
        result: Array
        if self._xp is np:
            numpy_dtype = dtype if dtype.kind == "f" else np.float32
            result = clipped.astype(numpy_dtype, copy=False)
        else:
            is_float = self._xp.isdtype(dtype, "real floating")
            own_dtype = dtype if is_float else self._xp.float32
            result = self._xp.astype(clipped, own_dtype, copy=False)
        return result


Normalizers: TypeAlias = Normalizer | dict[str, "Normalizers"]
"""A normalizer, or a dict with one for each key of a dict of observations or costs."""


def check_normalizer(
    owner: str, norm: object, shape: tuple[int, ...], clip: float | None
) -> Normalizer:
    """Return the normalizer that a wrapper was given, or a new one.

    Args:
        owner: Name of the wrapper, for errors.
        norm: A ``Normalizer``, or None for a new one.
        shape: Shape of one sample.
        clip: Bound of a new normalizer. None: 5.

    Raises:
        TypeError: ``norm`` is not a ``Normalizer``.
        ValueError: ``norm`` is of another shape or ``clip``.
    """
    if norm is None:
        return Normalizer(shape, DEFAULT_CLIP if clip is None else clip)
    if not isinstance(norm, Normalizer):
        raise TypeError(f"{owner} needs a Normalizer, got {type(norm).__name__}")
    if norm.shape != tuple(shape):
        raise ValueError(
            f"{owner} needs a Normalizer of shape {tuple(shape)}, got one of shape {norm.shape}"
        )
    if clip is not None and clip != norm.clip:
        raise ValueError(
            f"{owner} was given clip={clip} and a Normalizer with clip={norm.clip}: leave clip out"
        )
    return norm
