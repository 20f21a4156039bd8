"""Running mean and variance of a stream of batches, and what the wrappers that normalise by them share."""

import math
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from array_api_compat import device

from legged_envs.checks import check_choice, check_number
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import Episodes, StatefulWrapper
from legged_envs.wrappers.plumbing.layers import autoreset_mode

Normalizers: TypeAlias = "Normalizer | dict[str, Normalizers]"
CLIP, STD_FLOOR = (
    5.0,
    0.01,
)  # default bound of normalised values, and what smaller deviations count as, as in OmniSafe


class Normalizer:
    """Running mean and variance per element of samples of one ``shape``, and the normalisation by them.

    Statistics are float64 with an integer count, so they go on changing however long a run is. They live where the data
    live: a batch of another array kind or device moves them there. Pickles and states hold NumPy arrays. Normalised
    values are clipped to [−clip, clip]; a ``clip`` that is not positive is a ``ValueError``. A batch is merged as in
    Chan, Golub, LeVeque 1979 ("Updating formulae and a pairwise algorithm for computing sample variances"). With S and
    Q the batch's sums of d and d², where d = x − mean, and n the count afterwards, mean += S/n and M2 += Q − S²/n."""

    def __init__(self, shape: tuple[int, ...], clip: float = CLIP):
        if not clip > 0:
            raise ValueError(f"clip must be positive, got {clip!r}")
        self.shape = tuple(shape)
        self.clip = float(clip)
        self.count = 0
        self.mean: Any = np.zeros(self.shape)
        self.m2: Any = np.zeros(self.shape)
        """Mean of the samples, and sum of their squared deviations from it, float64. Shape: ``shape``."""
        self._kind: Any = np.ndarray
        self._xp: Any = np

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
        """Add samples (num_samples, ``*shape``), all or those of the mask ``rows``; a ValueError of another shape."""
        if samples.shape[1:] != self.shape or not samples.ndim:
            expected = ", ".join(map(str, ("num_samples", *self.shape)))
            raise ValueError(f"expected samples of shape ({expected}), got {tuple(samples.shape)}")
        if rows is not None:
            samples = samples[rows]
        if samples.shape[0]:
            self._merge(samples)

    def push_and_normalize(self, samples: Array) -> Array:
        """:meth:`push` and then :meth:`normalize` all samples, in one pass."""
        if samples.shape[1:] != self.shape or not samples.ndim or self.count + samples.shape[0] < 2:
            self.push(samples)
            return self.normalize(samples)
        self._merge(samples)
        return self._clip((arrays.float64(samples) - self.mean) * self._factor(), samples.dtype)

    def normalize(self, values: Array) -> Array:
        """``(values − mean) / std`` in their own floating dtype or float32; only clipped before the second sample."""
        self._adopt(values)
        exact = arrays.float64(values)
        return self._clip(
            (exact - self.mean) * self._factor() if self.count >= 2 else exact, values.dtype
        )

    def scale(self, values: Array) -> Array:
        """``values / std``, clipped, like :meth:`normalize` without taking off the mean."""
        self._adopt(values)
        exact = values if self._xp is np else arrays.float64(values)
        return self._clip(exact * self._factor() if self.count >= 2 else exact, values.dtype)

    def state_dict(self) -> dict[str, Any]:
        """Count, mean, sum of squared deviations, as NumPy float64, and clip."""
        mean, m2 = (np.array(arrays.as_numpy(value)) for value in (self.mean, self.m2))
        return {"count": self.count, "mean": mean, "m2": m2, "clip": self.clip}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return exactly to a state from :meth:`state_dict`; another one is a ``ValueError`` and changes nothing."""
        self.check_state(state)
        self.count, self._kind, self._xp = int(state["count"]), np.ndarray, np
        self.mean, self.m2 = (np.array(state[key], np.float64) for key in ("mean", "m2"))

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise a ValueError if a state is not of this shape and clip."""
        for key in ("mean", "m2", "count", "clip"):
            if key not in state:
                raise ValueError(f"the state has no {key!r}")
        own = f"Normalizer({self.shape}, clip={self.clip})"
        for shape in (np.shape(state["mean"]), np.shape(state["m2"])):
            if shape != self.shape or state["clip"] != self.clip:
                raise ValueError(
                    f"the state is of Normalizer({shape}, clip={state['clip']}), not of {own}"
                )

    def __getstate__(self) -> dict[str, Any]:
        return {"shape": self.shape, **self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Normalizer.__init__(self, state["shape"], state["clip"])
        self.load_state_dict(state)

    def __repr__(self) -> str:
        return f"Normalizer({self.shape}, clip={self.clip}, count={self.count})"

    def _adopt(self, array: Array) -> None:
        if type(array) is self._kind:  # NumPy
            return
        kind = np.ndarray if isinstance(array, arrays.NUMPY) else (type(array), device(array))
        if kind != self._kind:
            xp = arrays.namespace(array)
            mean, m2 = (
                arrays.as_kind_of(np.array(arrays.as_numpy(value)), array)
                for value in (self.mean, self.m2)
            )
            if mean.dtype != xp.float64:
                raise TypeError(
                    f"running statistics need float64, which {xp.__name__} gave as {mean.dtype}: enable it"
                )
            self.mean, self.m2, self._kind, self._xp = mean, m2, kind, xp

    def _merge(self, samples: Array) -> None:
        self._adopt(samples)
        xp: Any = self._xp
        deviations: Any = arrays.float64(
            samples
        )  # NumPy takes longer to subtract arrays of two types
        if not self.count:
            self.mean = xp.mean(arrays.detached(deviations), axis=0)
        deviations -= self.mean
        if xp is np:  # BLAS is left alone: its threads would spin beside the physics
            total, squares = np.add.reduce(deviations, 0), np.add.reduce(deviations * deviations, 0)
        else:
            added = arrays.detached(deviations)
            total, squares = xp.sum(added, axis=0), xp.sum(added * added, axis=0)
        self.count += samples.shape[0]
        change = total / float(self.count)
        self.mean = self.mean + change
        self.m2 = self.m2 + (squares - total * change)

    def _factor(self) -> Any:
        """1 / std of two samples or more. Rounding can leave M2 of a constant just below zero."""
        freedom = self.count - 1.0
        least = STD_FLOOR**2 * freedom
        if self._xp is np and not self.shape:
            return math.sqrt(freedom / max(self.m2, least))
        return math.sqrt(freedom) / self._xp.sqrt(self._xp.maximum(self.m2, least))

    def _clip(self, values: Any, dtype: Any) -> Array:
        clipped: Any = arrays.clip(values, -self.clip, self.clip)
        if self._xp is np:
            return cast(
                Array, clipped.astype(dtype if dtype.kind == "f" else np.float32, copy=False)
            )
        is_float = self._xp.isdtype(dtype, "real floating")
        return cast(
            Array, self._xp.astype(clipped, dtype if is_float else self._xp.float32, copy=False)
        )


def check_normalizer(
    owner: str, norm: Any, shape: tuple[int, ...], clip: float | None
) -> Normalizer:
    """``norm``, or a new one for None; another type is a TypeError, another shape or ``clip`` a ValueError."""
    if norm is None:
        return Normalizer(shape, CLIP if clip is None else clip)
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


class ReturnScale:
    """Scales a stream of rewards or costs, one kind of them, by statistics over all environments.

    ``scale="return"`` divides by the standard deviation of the discounted return G ← γ G + x, which begins at 0 with
    every episode, as Gymnasium's ``NormalizeReward`` does: signs and ratios stay. ``scale="step"`` takes off the mean
    of x and divides by its standard deviation, as OmniSafe does. The step's own values enter the statistics first.
    ``normalizer`` holds those of G or of x, of the shape of one environment's x."""

    def __init__(self, normalizer: Normalizer, num_envs: int, scale: str, gamma: float):
        check_choice("scale", scale, ("return", "step"))
        check_number("gamma", gamma, 0.0, 1.0)
        self.normalizer, self.num_envs, self.scale, self.gamma = normalizer, num_envs, scale, gamma
        self.returns: Any = None
        """Discounted return G of each environment's present episode, float64. Shape: (num_envs, ``*shape``)."""

    def begin_episodes(self, begun: Array) -> None:
        if self.returns is not None:
            self.returns = arrays.blank_rows(begun, arrays.as_kind_of(self.returns, begun))

    def __call__(
        self, values: Array, ended: Array | None, episodes: Episodes, frozen: bool
    ) -> Array:
        """Rewards or costs of a step (num_envs, ``*shape``), scaled; ``frozen`` leaves the statistics as they are.
        ``ended`` (num_envs,) bool, None for no row, marks the episodes that this step ended. Rows without a running one
        in ``episodes`` enter no statistics and, standardised, stay 0: a reset earns nothing."""
        counted = episodes.running(values) if episodes.some_over else None
        if self.scale == "step":
            if not frozen:
                self.normalizer.push(values, counted)
            scaled = self.normalizer.normalize(values)
            return scaled if counted is None else arrays.blank_rows(~counted, scaled)
        returns = arrays.accumulate(
            None if self.returns is None else self.returns * self.gamma, values
        )
        if not frozen:
            self.normalizer.push(returns, counted)
        if ended is not None:
            returns = arrays.blank_rows(ended, returns)
        self.returns = returns if counted is None else arrays.blank_rows(~counted, returns)
        return self.normalizer.scale(values)

    def state_dict(self) -> dict[str, Any]:
        return {"scale": self.scale, "returns": arrays.map_arrays(arrays.copied, self.returns)}

    def check_state(self, state: dict[str, Any]) -> None:
        if state["scale"] != self.scale:
            raise ValueError(
                f"the state is of scale={state['scale']!r}, not of scale={self.scale!r}"
            )
        expected = (self.num_envs, *self.normalizer.shape)
        if state["returns"] is not None and np.shape(state["returns"]) != expected:
            raise ValueError(
                f"the state has returns of shape {np.shape(state['returns'])}, not {expected}"
            )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.returns = arrays.map_arrays(arrays.copied, state["returns"])


class NormalizingWrapper(StatefulWrapper):
    """A wrapper with running statistics that can be frozen, saved and loaded. What an environment does between the end
    of its episode and its reset, in each autoreset mode, enters none."""

    saved_as: ClassVar[str]  # the key of this wrapper's normalizers in save()
    normalizer: Normalizers
    STATE = {"over": ("num_envs",), "normalizer": None, "scales": None, "frozen": None}  # noqa: RUF012

    def __init__(self, env: Any):
        super().__init__(env)
        self.frozen = False
        self._over = Episodes(autoreset_mode(self.env))
        self._scales: dict[str, ReturnScale] = {}  # kind of reward or cost → what scales it

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        for scale in self._scales.values():
            scale.begin_episodes(begun)
        return observation, info

    def freeze(self) -> None:
        """Go on with the statistics as they are."""
        self.frozen = True

    def train(self) -> None:
        """Update the statistics on every step, as a new wrapper does."""
        self.frozen = False
