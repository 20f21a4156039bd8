"""The wrapper that normalizes observations by their running mean and variance."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from legged_envs.wrappers.plumbing.arrays import (
    Array,
    Info,
    Tree,
    map_leaves,
    union_rows,
    where_rows,
)
from legged_envs.wrappers.plumbing.device import Device, split_device
from legged_envs.wrappers.plumbing.layers import AnyEnv, Space, Step
from legged_envs.wrappers.plumbing.normalizer import Normalizer, Normalizers, check_normalizer
from legged_envs.wrappers.plumbing.normalizing import NormalizingWrapper


class ObsNormalize(NormalizingWrapper):
    """Makes observations ``(observation - mean) / std``, clipped.

    The statistics are per element, over all environments. A Dict of observations has one normalizer
    per key. The observation space becomes Box(-clip, clip). ``info["original_obs"]`` and
    ``info["original_final_obs"]`` are the raw observations.

    Observations enter the statistics in the order in which they happen, and each observation is
    normalized by the statistics that include it:

    1. The last observations of the episodes that a step ended, ``info["final_obs"]``, each once.
    2. The observations of the step, which ``final_obs`` does not know yet. Rows of ``final_obs``
        with running episodes equal the normalized observation.
    3. The rows that a partial reset starts. These rows count from the next step on, so that all
        other rows keep their values.

    Args:
        env: The environment.
        norm_or_device: ``norm``, or the device in OmniSafe's order
            ``ObsNormalize(env, device, norm)``.
        norm: Statistics to continue, as :meth:`save` returns them. The statistics are used, not
            copied. A ``Normalizer`` of the shape of one observation, for a Dict a dict of them.
            None: new ones.
        clip: Bound of the normalized observations. None: the value of ``norm``, or 5.
        device: Device on which the environment's arrays must be. None: any device.

    Raises:
        TypeError: The observation space is not a Box or a Dict of them, or ``norm`` is something
            else.
        ValueError: ``norm`` is of another shape, or has other keys.

    Examples:
        >>> import gymnasium as gym, numpy as np
        >>> env = gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
        >>> env.reset(seed=0)[0].mean(axis=0).round(3)
        array([-0.003,  0.001, -0.017, -0.015], dtype=float32)
        >>> env = ObsNormalize(env)
        >>> observation, info = env.reset(seed=0)
        >>> bool(np.abs(observation.mean(axis=0)).max() < 1e-6)
        True
        >>> info["original_obs"].mean(axis=0).round(3)
        array([-0.003,  0.001, -0.017, -0.015], dtype=float32)
    """

    saved_as = "obs_normalizer"

    def __init__(
        self,
        env: AnyEnv,
        norm_or_device: Normalizers | Device | None = None,
        /,
        norm: Normalizers | None = None,
        *,
        clip: float | None = None,
        device: Device | None = None,
    ):
        first, device = split_device("ObsNormalize", norm_or_device, device)
        if first is not None:
            if norm is not None:
                raise TypeError(f"ObsNormalize takes one norm, got {first!r} and {norm!r}")
            norm = first
        super().__init__(env, device)
        space = self.env.single_observation_space
        self.normalizer = _normalizers(space, norm, clip, "ObsNormalize")
        self.single_observation_space = _normalized_space(space, self.normalizer)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        info = {**info, "original_obs": observation}
        # The other rows were normalized in their step. They are normalized before the new rows
        # change the statistics, and so stay as they were.
        if partial:
            normalized = self._normalize(observation)
            self._push(observation, begun)
        else:
            self._push(observation)
            normalized = self._normalize(observation)
        return normalized, info

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        # A new dict: the info of the environment below belongs to it.
        info = {**info, "original_obs": observation}
        final = info.get("final_obs")
        if final is not None:
            info["original_final_obs"] = final
            ended = info.get("_final_obs", terminated | truncated)
            # Before the observations of the step: these happened later.
            self._push(final, ended)
            last = self._normalize(final)
            normalized = self._push_and_normalize(observation, reward)
            info["final_obs"] = where_rows(ended, last, normalized)
        else:
            normalized = self._push_and_normalize(observation, reward)
        # In the other modes, a step returns the observation of a running episode.
        if self._over.mode is AutoresetMode.DISABLED:
            self._over.step(union_rows(terminated, truncated))
        return normalized, reward, terminated, truncated, info

    def _push_and_normalize(self, observation: Tree, example: Array) -> Tree:
        normalized: Tree
        if self.frozen:
            normalized = self._normalize(observation)
        elif self._over.some_over:
            self._push(observation, self._over.running(example))
            normalized = self._normalize(observation)
        else:
            # The usual step: one pass over the samples instead of two.
            normalized = map_leaves(Normalizer.push_and_normalize, self.normalizer, observation)
        return normalized

    def _push(self, observation: Tree, rows: Array | None = None) -> None:
        if self.frozen:
            return

        def push(normalizer: Normalizer, array: Array) -> None:
            normalizer.push(array, rows)

        map_leaves(push, self.normalizer, observation)

    def _normalize(self, observation: Tree) -> Tree:
        normalized: Tree = map_leaves(Normalizer.normalize, self.normalizer, observation)
        return normalized


def _normalizers(
    space: Space, norm: Normalizers | None, clip: float | None, owner: str
) -> Normalizers:
    if isinstance(space, Dict):
        return _normalizers_of_dict(space, norm, clip, owner)
    if not isinstance(space, Box):
        raise TypeError(f"{owner} needs Box observations or a Dict of them, got {space}")
    return check_normalizer(owner, norm, space.shape, clip)


def _normalizers_of_dict(
    space: Dict, norm: Normalizers | None, clip: float | None, owner: str
) -> Normalizers:
    if norm is not None and not (isinstance(norm, dict) and set(norm) == set(space)):
        given = sorted(norm) if isinstance(norm, dict) else norm
        raise ValueError(
            f"{owner} needs a dict of Normalizers with the keys {sorted(space)}, got {given}"
        )
    normalizers: dict[str, Normalizers] = {}
    for key, part in space.items():
        part_norm = norm[key] if isinstance(norm, dict) else None
        part_owner = f"{owner} of observation {key!r}"
        normalizers[key] = _normalizers(part, part_norm, clip, part_owner)
    return normalizers


def _normalized_space(space: Space, normalizer: Any) -> Space:
    if isinstance(space, Dict):
        parts = {}
        for key, part in space.items():
            parts[key] = _normalized_space(part, normalizer[key])
        return Dict(parts)
    dtype = np.dtype(np.float32)
    if space.dtype is not None and space.dtype.kind == "f":
        dtype = space.dtype
    return Box(-normalizer.clip, normalizer.clip, normalizer.shape, dtype.type)
