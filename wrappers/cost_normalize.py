"""Scale costs by running statistics."""

import copy
from typing import Any

import numpy as np

from legged_envs.wrappers.plumbing.arrays import Tree, any_row, either
from legged_envs.wrappers.plumbing.layers import COSTS, Step, cost_attribute, name_of
from legged_envs.wrappers.plumbing.normalizer import (
    Normalizers,
    NormalizingWrapper,
    ReturnScale,
    check_normalizer,
)


class CostNormalize(NormalizingWrapper):
    """Costs are divided by the standard deviation of their discounted sum, and clipped.

    That holds for ``info["cost"]`` and, where there are several, for every column of ``info["costs"]`` by itself; raw
    values are ``info["original_cost"]`` and ``info["original_costs"]``, which wrappers above that use limits read.
    ``scale="step"`` standardises each step's cost instead, ``(c − mean) / std``, as OmniSafe does: it can be negative.
    The step of a NEXT_STEP autoreset has cost 0 and enters no statistics; any other without one is a ValueError.

    ``norm`` are statistics to go on from, as :meth:`save` returns them: a ``Normalizer`` of shape (), with several
    costs a dict of one for ``"cost"`` and one of shape (K,) for ``"costs"``, used, not copied, with its own ``clip``, 5
    in a new one unless given. Something else is a TypeError, other shapes or keys a ValueError.

    >>> import gymnasium as gym, legged_envs, numpy as np
    >>> env = gym.make_vec("Legged/Go2-Flat-v0", num_envs=4)
    >>> _ = env.reset(seed=0)
    >>> costs = [env.step(np.ones((4, 12), np.float32))[4]["cost"] for _ in range(20)]
    >>> env = CostNormalize(env)
    >>> _ = env.reset(seed=0)
    >>> infos = [env.step(np.ones((4, 12), np.float32))[4] for _ in range(20)]
    >>> scaled, raw = (np.array([info[key] for info in infos]) for key in ("cost", "original_cost"))
    >>> bool((raw == costs).all()), bool(((scaled > 0.0) == (raw > 0.0)).all()), bool(scaled.max() <= 5.0)
    (True, True, True)
    """

    saved_as = "cost_normalizer"

    def __init__(
        self,
        env: Any,
        norm: "Normalizers | None" = None,
        *,
        scale: str = "return",
        gamma: float = 0.99,
        clip: float | None = None,
    ):
        super().__init__(env)
        if isinstance(norm, dict) and set(norm) != set(COSTS):
            raise ValueError(
                f"CostNormalize needs a Normalizer or a dict of them for {COSTS}, got {sorted(norm)}"
            )
        self._clip, self._arguments = clip, (self.num_envs, scale, gamma)
        self._takes_more = norm is None
        given = norm if isinstance(norm, dict) else {"cost": norm}
        for kind, one in given.items():
            self._scales[kind] = self._new_scale(
                kind, () if kind == "cost" else getattr(one, "shape", ()), one
            )

    @property
    def normalizer(self) -> Normalizers:  # type: ignore[override]
        """The running statistics: a ``Normalizer``, or a dict of them once ``info["costs"]`` was seen."""
        normalizers: dict[str, Normalizers] = {
            kind: scale.normalizer for kind, scale in self._scales.items()
        }
        return normalizers if len(normalizers) > 1 else normalizers["cost"]

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, reported = self.env.step(actions)
        ended, info = either(terminated, truncated), {**reported}
        for kind in COSTS:
            values = reported.get(kind)
            if values is not None:
                scale = self._scales.get(kind)
                if scale is None or values.shape[1:] != scale.normalizer.shape:
                    scale = self._scale_for(kind, tuple(values.shape[1:]))
                scaled = {
                    kind: scale(values, ended, self._over, self.frozen),
                    f"original_{kind}": values,
                }
                info |= scaled
                if kind in info.get("final_info", ()):
                    info["final_info"] = {**info["final_info"], **scaled}
            elif kind in self._scales and not (
                self._over.some_over and not any_row(self._over.running(reward))
            ):
                wrong = f"{name_of(self)} reports {sorted(reported)}: put it above what reports costs, or leave it out"
                raise ValueError(f"CostNormalize needs info[{kind!r}] on every step, {wrong}")
        self._over.step(ended)
        return observation, reward, terminated, truncated, info

    def _new_scale(self, kind: str, shape: tuple[int, ...], norm: Any = None) -> ReturnScale:
        normalizer = check_normalizer(f"CostNormalize of info[{kind!r}]", norm, shape, self._clip)
        return ReturnScale(normalizer, *self._arguments)

    def _scale_for(self, kind: str, shape: tuple[int, ...]) -> ReturnScale:
        if kind not in self._scales:
            if not self._takes_more:
                wrong = f"the environment reports info[{kind!r}] too: give it a dict of Normalizers for {COSTS}"
                raise ValueError(
                    f"CostNormalize was given the Normalizer of info['cost'] alone, and {wrong}"
                )
            self._scales[kind] = self._new_scale(kind, shape)
        own = self._scales[kind].normalizer.shape
        if shape != own:
            rows = f"info[{kind!r}], whose rows have shape {shape}"
            raise ValueError(f"CostNormalize has a Normalizer of shape {own} for {rows}")
        return self._scales[kind]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_state(state)
        self._scales = self._scales_for(state)
        super().load_state_dict(state)

    def _check_state(self, state: dict[str, Any]) -> None:
        loaded = copy.copy(self)
        loaded._scales = self._scales_for(state)
        super(CostNormalize, loaded)._check_state(state)

    def _scales_for(self, state: dict[str, Any]) -> dict[str, ReturnScale]:
        """What scales each kind of costs in a state: what does already, or else a new one of as many costs."""
        scales = {
            kind: self._scales[kind]
            for kind in state.get("scales", self._scales)
            if kind in self._scales
        }
        mean = state.get("normalizer", {}).get("costs", {}).get("mean")
        if mean is not None:
            names, shape = cost_attribute(self.env, "cost_names"), np.shape(mean)
            if names is not None and shape != (len(names),):
                rows = f"info['costs'] has rows of {len(names)} costs, not of shape {shape}"
                raise ValueError(f"CostNormalize needs a state like its own: {rows}")
            scales.setdefault("costs", self._new_scale("costs", shape))
        return scales
