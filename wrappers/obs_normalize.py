"""Normalise observations by their running mean and variance."""

from typing import Any, cast

import numpy as np
from gymnasium.spaces import Box, Dict, Space
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree, either, map_leaves, where_rows
from legged_envs.wrappers.plumbing.layers import Step
from legged_envs.wrappers.plumbing.normalizer import (
    Normalizer,
    Normalizers,
    NormalizingWrapper,
    check_normalizer,
)


class ObsNormalize(NormalizingWrapper):
    """Observations become ``(observation − mean) / std``, clipped, with statistics per element over all environments.

    Observations enter the statistics in the order in which they happen, and each is normalised by the result: first the
    last observations of the episodes that a step has ended (``info["final_obs"]``), each once, then the step's, which
    ``final_obs`` does not know yet; its rows of environments that go on equal the observation. The rows that a partial
    reset begins count from the next step on, so all other rows keep their values. ``info["original_obs"]`` and
    ``info["original_final_obs"]`` are the raw ones. The observation space becomes Box(−clip, clip).

    A Dict of observations has one normalizer per key; other spaces than Box are a ``TypeError``. ``norm`` are
    statistics to go on from, as :meth:`save` returns them: a ``Normalizer`` of the shape of one observation, for a Dict
    a dict of them, used, not copied, with its own ``clip``, 5 in a new one unless given. Something else is a
    ``TypeError``, another shape a ``ValueError``.

    >>> import gymnasium as gym, numpy as np
    >>> env = gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    >>> env.reset(seed=0)[0].mean(axis=0).round(3)
    array([-0.003,  0.001, -0.017, -0.015], dtype=float32)
    >>> env = ObsNormalize(env)
    >>> observation, info = env.reset(seed=0)
    >>> bool(np.abs(observation.mean(axis=0)).max() < 1e-6), info["original_obs"].mean(axis=0).round(3)
    (True, array([-0.003,  0.001, -0.017, -0.015], dtype=float32))
    """

    saved_as = "obs_normalizer"

    def __init__(self, env: Any, norm: "Normalizers | None" = None, *, clip: float | None = None):
        super().__init__(env)
        self.normalizer = _normalizers(
            self.env.single_observation_space, norm, clip, "ObsNormalize"
        )
        self.single_observation_space = _space(self.env.single_observation_space, self.normalizer)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        info = {**info, "original_obs": observation}
        if not partial:
            self._push(observation)
        normalized = self._normalize(observation)
        if partial:
            self._push(observation, begun)
        return normalized, info

    def step(self, actions: Tree) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        info = {**info, "original_obs": observation}
        final = info.get("final_obs")
        if final is not None:
            info["original_final_obs"] = final
            rows = info.get("_final_obs", terminated | truncated)
            self._push(final, rows)
            last = self._normalize(final)
        if self.frozen or self._over.some_over:
            self._push(observation, self._over.running(reward) if self._over.some_over else None)
            normalized = self._normalize(observation)
        else:
            normalized = map_leaves(Normalizer.push_and_normalize, self.normalizer, observation)
        if final is not None:
            info["final_obs"] = where_rows(rows, last, normalized)
        if self._over.mode is AutoresetMode.DISABLED:
            self._over.step(either(terminated, truncated))
        return normalized, reward, terminated, truncated, info

    def _push(self, observation: Tree, rows: Array | None = None) -> None:
        if not self.frozen:
            map_leaves(
                lambda normalizer, array: normalizer.push(array, rows), self.normalizer, observation
            )

    def _normalize(self, observation: Tree) -> Tree:
        return cast(Tree, map_leaves(Normalizer.normalize, self.normalizer, observation))


def _normalizers(
    space: Space[Any], norm: "Normalizers | None", clip: float | None, owner: str
) -> Normalizers:
    if isinstance(space, Dict):
        if norm is not None and not (isinstance(norm, dict) and set(norm) == set(space)):
            given = sorted(norm) if isinstance(norm, dict) else norm
            raise ValueError(
                f"{owner} needs a dict of Normalizers with the keys {sorted(space)}, got {given}"
            )
        return {
            key: _normalizers(
                part, None if norm is None else norm[key], clip, f"{owner} of observation {key!r}"
            )
            for key, part in space.items()
        }
    if not isinstance(space, Box):
        raise TypeError(f"{owner} needs Box observations or a Dict of them, got {space}")
    return check_normalizer(owner, norm, space.shape, clip)


def _space(space: Space[Any], normalizer: Any) -> Space[Any]:
    if isinstance(space, Dict):
        return Dict({key: _space(part, normalizer[key]) for key, part in space.items()})
    dtype = (
        space.dtype if space.dtype is not None and space.dtype.kind == "f" else np.dtype(np.float32)
    )
    return Box(-normalizer.clip, normalizer.clip, normalizer.shape, dtype.type)
