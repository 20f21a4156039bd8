"""Scale costs by running statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from legged_envs.wrappers.array_kinds import any_row
from legged_envs.wrappers.base import kept, name_of
from legged_envs.wrappers.cost_reduce import cost_attribute, transition_costs
from legged_envs.wrappers.normalizer import check_normalizer
from legged_envs.wrappers.normalizing_wrapper import Normalizers, NormalizingWrapper
from legged_envs.wrappers.return_scale import ReturnScale

KINDS = ("cost", "costs")


class CostNormalize(NormalizingWrapper):
    """Costs are divided by the standard deviation of their discounted sum, and clipped.

    That holds for ``info["cost"]`` and, where there are several, for every column of ``info["costs"]`` by itself; raw
    values are ``info["original_cost"]`` and ``info["original_costs"]``, which limits apply to: wrappers above that use
    limits read those. ``scale="step"`` standardises each step's cost instead, ``(c − mean) / std``, as OmniSafe does;
    such costs can be negative.

    The costs of the last step of an episode count, also where Gymnasium's vector environments report them in
    ``final_info`` alone: they are then put in their place in ``info["cost"]`` as well. The step of an autoreset in the
    next step has cost 0 and enters no statistics.

    Args:
        env: A vector environment with costs.
        norm: Statistics to go on from, as :meth:`save` returns them: a ``Normalizer`` of shape (), with several costs a
            dict of one for ``"cost"`` and one of shape (K,) for ``"costs"``. It is used, not copied. None begins anew.
        scale: ``"return"`` or ``"step"``.
        gamma: Discount factor of the sum.
        clip: Bound of the scaled costs, 5 unless given. A ``norm`` has its own.

    Raises:
        TypeError: If ``norm`` is something else.
        ValueError: If the shapes or the keys of ``norm`` do not fit, another argument is not valid, or, from ``step``,
            the environment reports no cost.
    """

    saved_as = "cost_normalizer"

    def __init__(
        self,
        env: VectorEnv,
        norm: Normalizers = None,
        *,
        scale: str = "return",
        gamma: float = 0.99,
        clip: float | None = None,
    ):
        super().__init__(env)
        if isinstance(norm, dict) and set(norm) != set(KINDS):
            raise ValueError(f"CostNormalize needs a Normalizer or a dict of them for {KINDS}, got {sorted(norm)}")
        self._clip, self._arguments = clip, (scale, gamma)
        self._takes_more = norm is None
        self._scales: dict[str, ReturnScale] = {}
        if isinstance(norm, dict):
            self._scales["cost"] = self._new_scale("cost", (), norm["cost"])
            self._scales["costs"] = self._new_scale("costs", getattr(norm["costs"], "shape", ()), norm["costs"])
        else:
            self._scales["cost"] = self._new_scale("cost", (), norm)

    @property
    def normalizer(self) -> Normalizers:
        """The running statistics: a ``Normalizer``, or a dict of them once ``info["costs"]`` was seen."""
        normalizers = {kind: scale.normalizer for kind, scale in self._scales.items()}
        return normalizers if len(normalizers) > 1 else normalizers["cost"]

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=kept(options))
        mask = self._begin_episodes(options)
        for scale in self._scales.values():
            scale.begin_episodes(mask)
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, reported = self.env.step(actions)
        ended = terminated | truncated
        if not any_row(ended):
            ended = None
        counted = None if self._over is None else self._counted(reward)
        info = {**reported}
        for kind, values in zip(KINDS, transition_costs(reported), strict=True):
            if values is not None:
                scale = self._scales.get(kind)
                if scale is None or values.shape[1:] != scale.normalizer.shape:
                    scale = self._scale_for(kind, tuple(values.shape[1:]))
                _replace(info, kind, values, scale(values, ended, counted, self.frozen))
            elif kind in self._scales and (counted is None or any_row(counted)):
                raise ValueError(
                    f"CostNormalize needs info[{kind!r}] on every step, {name_of(self)} reports {sorted(reported)}: "
                    "put it above what reports costs, or leave it out"
                )
        if ended is not None or counted is not None:
            self._end_of_step(ended)
        return observation, reward, terminated, truncated, info

    def _new_scale(self, kind: str, shape: tuple[int, ...], norm: Any = None) -> ReturnScale:
        normalizer = check_normalizer(f"CostNormalize of info[{kind!r}]", norm, shape, self._clip)
        return ReturnScale(normalizer, *self._arguments)

    def _scale_for(self, kind: str, shape: tuple[int, ...]) -> ReturnScale:
        """What scales a kind of costs that is new, or that has another shape than before."""
        if kind not in self._scales:
            if not self._takes_more:
                raise ValueError(
                    f"CostNormalize was given the Normalizer of info['cost'] alone, and the environment reports "
                    f"info[{kind!r}] too: give it a dict of Normalizers for {KINDS}"
                )
            self._scales[kind] = self._new_scale(kind, shape)
        expected = self._scales[kind].normalizer.shape
        if shape != expected:
            raise ValueError(
                f"CostNormalize has a Normalizer of shape {expected} for info[{kind!r}], whose rows have shape {shape}"
            )
        return self._scales[kind]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "scales": {kind: scale.state_dict() for kind, scale in self._scales.items()}}

    def _scales_for(self, state: dict[str, Any]) -> dict[str, ReturnScale]:
        """What scales each kind of costs in a state: what does already, or else a new one."""
        return {
            kind: self._scales.get(kind) or self._new_scale(kind, np.shape(_statistics(state, kind)["mean"]))
            for kind in state["scales"]
        }

    def _check_statistics(self, state: dict[str, Any]) -> None:
        names = cost_attribute(self.env, "cost_names")
        for kind, scale in self._scales_for(state).items():
            if kind == "costs" and names is not None and scale.normalizer.shape != (len(names),):
                raise ValueError(f"info['costs'] has rows of {len(names)} costs, not of shape {scale.normalizer.shape}")
            scale.normalizer.check_state(_statistics(state, kind))
            scale.check_state(state["scales"][kind], self.num_envs)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_state(state)
        self._scales = self._scales_for(state)
        for kind, scale in self._scales.items():
            scale.load_state_dict(state["scales"][kind])
        super().load_state_dict(state)


def _statistics(state: dict[str, Any], kind: str) -> dict[str, Any]:
    """The state of the normalizer of a kind of costs."""
    return state["normalizer"] if len(state["scales"]) == 1 else state["normalizer"][kind]


def _replace(info: dict[str, Any], kind: str, values: Any, scaled: Any) -> None:
    """Put scaled values where the raw ones were reported, and the raw ones beside them."""
    info[kind], info[f"original_{kind}"] = scaled, values
    if "final_info" in info and kind in info["final_info"]:
        info["final_info"] = {**info["final_info"], kind: scaled, f"original_{kind}": values}
