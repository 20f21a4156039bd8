"""The wrapper that scales costs by running statistics."""

import copy
from collections.abc import Mapping

import numpy as np

from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree, any_row, union_rows
from legged_envs.wrappers.plumbing.device import Device, split_device
from legged_envs.wrappers.plumbing.layers import (
    COST_KEYS,
    AnyEnv,
    State,
    Step,
    cost_attribute,
    name_of,
)
from legged_envs.wrappers.plumbing.normalizer import Normalizer, Normalizers, check_normalizer
from legged_envs.wrappers.plumbing.normalizing import NormalizingWrapper
from legged_envs.wrappers.plumbing.return_scale import ReturnScale


class CostNormalize(NormalizingWrapper):
    """Divides costs by the standard deviation of their discounted sum, and clips them.

    The wrapper scales ``info["cost"]`` and, where there are several costs, every column of
    ``info["costs"]`` separately. The raw values are ``info["original_cost"]`` and
    ``info["original_costs"]``, which wrappers above that use limits read. The step of a NEXT_STEP
    autoreset has cost 0 and enters no statistics.

    With ``scale="step"`` the cost of each step is standardized instead, ``(c - mean) / std``, as
    OmniSafe does. A standardized cost can be negative.

    Args:
        env: The environment.
        norm_or_device: ``norm``, or the device in OmniSafe's order
            ``CostNormalize(env, device, norm)``.
        norm: Statistics to continue, as :meth:`save` returns them. The statistics are used, not
            copied. For one cost a ``Normalizer`` of shape (); for several a dict with one for
            ``"cost"`` and one of shape (K,) for ``"costs"``. None: new ones.
        scale: ``"return"`` or ``"step"``.
        gamma: Discount of the sum.
        clip: Bound of the scaled costs. None: the value of ``norm``, or 5.
        device: Device on which the environment's arrays must be. None: any device.

    Raises:
        TypeError: ``norm`` is something else.
        ValueError: ``norm`` is of other shapes or keys, or a step reports no costs.

    Examples:
        >>> import gymnasium as gym, legged_envs, numpy as np
        >>> action = np.ones((4, 12), np.float32)
        >>> env = gym.make_vec("Legged/Go2-Flat-v0", num_envs=4)
        >>> _ = env.reset(seed=0)
        >>> costs = np.array([env.step(action)[4]["cost"] for _ in range(20)])
        >>> env = CostNormalize(env)
        >>> _ = env.reset(seed=0)
        >>> infos = [env.step(action)[4] for _ in range(20)]
        >>> raw = np.array([info["original_cost"] for info in infos])
        >>> scaled = np.array([info["cost"] for info in infos])
        >>> bool((raw == costs).all())
        True
        >>> bool(((scaled > 0.0) == (raw > 0.0)).all()), bool(scaled.max() <= 5.0)
        (True, True)
    """

    saved_as = "cost_normalizer"

    def __init__(
        self,
        env: AnyEnv,
        norm_or_device: Normalizers | Device | None = None,
        /,
        norm: Normalizers | None = None,
        *,
        scale: str = "return",
        gamma: float = 0.99,
        clip: float | None = None,
        device: Device | None = None,
    ):
        first, device = split_device("CostNormalize", norm_or_device, device)
        if first is not None:
            if norm is not None:
                raise TypeError(f"CostNormalize takes one norm, got {first!r} and {norm!r}")
            norm = first
        super().__init__(env, device)
        self._clip = clip
        self._scale = scale
        self._gamma = gamma
        # Statistics of info["costs"] are added when these are first seen, if none were given.
        self._adds_scales = norm is None
        if isinstance(norm, dict):
            if set(norm) != set(COST_KEYS):
                raise ValueError(
                    "CostNormalize needs a Normalizer or a dict of them "
                    f"for {COST_KEYS}, got {sorted(norm)}"
                )
            shape = getattr(norm["costs"], "shape", ())
            for key in norm:
                key_shape = () if key == "cost" else shape
                self._scales[key] = self._new_scale(key, key_shape, norm[key])
        else:
            self._scales["cost"] = self._new_scale("cost", (), norm)

    @property
    def normalizer(self) -> Normalizers:  # type: ignore[override]
        """The running statistics: a ``Normalizer``, or a dict of them if there are several costs.

        The dict has the keys ``"cost"`` and ``"costs"``, once ``info["costs"]`` was seen.
        """
        if len(self._scales) == 1:
            return self._scales["cost"].normalizer
        return {key: scale.normalizer for key, scale in self._scales.items()}

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, reported = self.env.step(actions)
        ended = union_rows(terminated, truncated)
        info = dict(reported)
        for key in COST_KEYS:
            costs = reported.get(key)
            if costs is not None:
                self._scale_cost(key, costs, ended, info)
            elif key in self._scales and not self._all_over(reward):
                raise ValueError(
                    f"CostNormalize needs info[{key!r}] on every step, "
                    f"{name_of(self)} reports {sorted(reported)}. "
                    "Put it above the layer that reports costs, or leave it out."
                )
        # Only now, so that the last cost of an episode counts.
        self._over.step(ended)
        return observation, reward, terminated, truncated, info

    def _scale_cost(self, key: str, costs: Array, ended: Array | None, info: Info) -> None:
        """Write the scaled costs into an ``info``, and into its ``final_info``."""
        scale = self._scales.get(key)
        if scale is None or costs.shape[1:] != scale.normalizer.shape:
            scale = self._scale_for(key, tuple(costs.shape[1:]))
        scaled = {
            key: scale(costs, ended, self._over, self.frozen),
            f"original_{key}": costs,
        }
        info.update(scaled)
        if key in info.get("final_info", ()):
            info["final_info"] = {**info["final_info"], **scaled}

    def _all_over(self, example: Array) -> bool:
        """Return True if no environment has a running episode."""
        return self._over.some_over and not any_row(self._over.running(example))

    def _new_scale(
        self, key: str, shape: tuple[int, ...], norm: Normalizers | None = None
    ) -> ReturnScale:
        owner = f"CostNormalize of info[{key!r}]"
        normalizer = check_normalizer(owner, norm, shape, self._clip)
        return ReturnScale(normalizer, self.num_envs, self._scale, self._gamma)

    def _scale_for(self, key: str, shape: tuple[int, ...]) -> ReturnScale:
        if key not in self._scales:
            if not self._adds_scales:
                raise ValueError(
                    "CostNormalize was given only the Normalizer of info['cost'], "
                    f"but the environment reports info[{key!r}] too: "
                    f"give it a dict of Normalizers for {COST_KEYS}"
                )
            self._scales[key] = self._new_scale(key, shape)
        own: Normalizer = self._scales[key].normalizer
        if shape != own.shape:
            raise ValueError(
                f"CostNormalize has a Normalizer of shape {own.shape} for info[{key!r}], "
                f"but its rows have shape {shape}"
            )
        return self._scales[key]

    # --- state ------------------------------------------------------------------------------------

    def load_state_dict(self, state: State) -> None:
        self._check_state(state)
        self._scales = self._scales_for(state)
        super().load_state_dict(state)

    def _check_state(self, state: State) -> None:
        # A copy gets the scales that loading would add, because a check must change nothing.
        checked = copy.copy(self)
        checked._scales = self._scales_for(state)
        super(CostNormalize, checked)._check_state(state)

    def _scales_for(self, state: State) -> dict[str, ReturnScale]:
        """Return the scale of each kind of costs in a state: the present one if there is one, and
        a new one for "costs" if there is none.

        Raises:
            ValueError: The state is not that of a ``CostNormalize``, or has another number of
                costs.
        """
        if not isinstance(state, Mapping):
            raise ValueError(f"CostNormalize needs a state like its own, got {state!r}")
        saved = state.get("scales", self._scales)
        # Of RewardNormalize, for example, whose state has the same parts.
        if "cost" not in saved:
            raise ValueError("CostNormalize needs a state like its own, with a scale of 'cost'")
        scales: dict[str, ReturnScale] = {}
        for key in saved:
            if key in self._scales:
                scales[key] = self._scales[key]
        mean = state.get("normalizer", {}).get("costs", {}).get("mean")
        if mean is None:
            return scales
        shape = np.shape(mean)
        names = cost_attribute(self.env, "cost_names")
        if names is not None and shape != (len(names),):
            raise ValueError(
                "CostNormalize needs a state like its own: "
                f"info['costs'] has rows of {len(names)} costs, not of shape {shape}"
            )
        if "costs" not in scales:
            scales["costs"] = self._new_scale("costs", shape)
        return scales
