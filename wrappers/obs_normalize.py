"""Normalise observations by their running mean and variance."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from legged_envs.wrappers.array_kinds import any_row, where_rows
from legged_envs.wrappers.base import kept
from legged_envs.wrappers.normalizer import Normalizer, check_normalizer
from legged_envs.wrappers.normalizing_wrapper import Normalizers, NormalizingWrapper, map_tree


class ObsNormalize(NormalizingWrapper):
    """Observations become ``(observation − mean) / std``, clipped, with statistics per element over all environments.

    A step updates the statistics first and is normalised by the result. ``info["final_obs"]`` is treated like the
    observations, in the form of this package (a full batch, whose rows of environments that go on equal the
    observation) and in that of Gymnasium's vector environments (an object array); every last observation counts once.
    The rows that a partial reset begins count from the next step on, so all other rows keep their values.

    ``info["original_obs"]`` and ``info["original_final_obs"]`` are the raw ones. A Dict of observations has one
    normalizer per key, and the observation space becomes Box(−clip, clip).

    Args:
        env: A vector environment with Box observations or a Dict of them.
        norm: Statistics to go on from, as :meth:`save` returns them: a ``Normalizer`` of the shape of one observation,
            for a Dict a dict of them. It is used, not copied. None begins anew.
        clip: Bound of the normalised values, 5 unless given. A ``norm`` has its own.

    Raises:
        TypeError: If an observation is no Box, or ``norm`` no Normalizer.
        ValueError: If the shape or the keys of ``norm`` do not fit.
    """

    saved_as = "obs_normalizer"

    def __init__(self, env: VectorEnv, norm: Normalizers = None, *, clip: float | None = None):
        super().__init__(env)
        self.normalizer = _normalizers(env.single_observation_space, norm, clip, "ObsNormalize")
        self.single_observation_space = _space(env.single_observation_space, self.normalizer)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=kept(options))
        mask = self._begin_episodes(options)
        info = {**info, "original_obs": observation}
        if mask is None:
            self._push(observation)
            return self._normalize(observation), info
        normalized = self._normalize(observation)
        self._push(observation, mask)
        return normalized, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        info = {**info, "original_obs": observation}
        final = info.get("final_obs")
        if final is not None:
            info["original_final_obs"] = final
            ended = info.get("_final_obs", terminated | truncated)
            normalized_final = self._normalize_final(final, ended)
        if self._over is None and not self.frozen:
            normalized = map_tree(Normalizer.push_and_normalize, self.normalizer, observation)
        else:
            self._push(observation, self._counted(reward))
            normalized = self._normalize(observation)
        if final is not None:
            if not _in_rows(final):
                normalized_final = map_tree(lambda *both: where_rows(ended, *both), normalized_final, normalized)
            info["final_obs"] = normalized_final
        if self._mode is AutoresetMode.DISABLED:
            ended = terminated | truncated
            self._end_of_step(ended if any_row(ended) else None)
        return normalized, reward, terminated, truncated, info

    def _push(self, observation: Any, rows: Any = None) -> None:
        if not self.frozen:
            map_tree(lambda normalizer, array: normalizer.push(array, rows), self.normalizer, observation)

    def _normalize(self, observation: Any) -> Any:
        return map_tree(Normalizer.normalize, self.normalizer, observation)

    def _normalize_final(self, final: Any, ended: Any) -> Any:
        """The last observations, counted and normalised. Rows of environments that go on have no meaning."""
        if not _in_rows(final):
            self._push(final, ended)
            return self._normalize(final)
        normalized = np.full(len(final), None, dtype=object)
        ids = np.flatnonzero(ended)
        if len(ids):
            rows = map_tree(lambda *arrays: np.stack(arrays), *final[ids])
            self._push(rows)
            rows = self._normalize(rows)
            for row, env_id in enumerate(ids):
                normalized[env_id] = map_tree(lambda array, row=row: array[row], rows)
        return normalized


def _in_rows(final: Any) -> bool:
    """Whether final observations are in Gymnasium's form: an array of objects with None for those that go on."""
    return isinstance(final, np.ndarray) and final.dtype == object


def _normalizers(space: Space, norm: Normalizers, clip: float | None, owner: str) -> Normalizers:
    """One normalizer for each Box of a space."""
    if isinstance(space, Dict):
        if norm is not None and not (isinstance(norm, dict) and set(norm) == set(space)):
            given = sorted(norm) if isinstance(norm, dict) else norm
            raise ValueError(f"{owner} needs a dict of Normalizers with the keys {sorted(space)}, got {given}")
        return {
            key: _normalizers(part, None if norm is None else norm[key], clip, f"{owner} of observation {key!r}")
            for key, part in space.items()
        }
    if not isinstance(space, Box):
        raise TypeError(f"{owner} needs Box observations or a Dict of them, got {space}")
    return check_normalizer(owner, norm, space.shape, clip)


def _space(space: Space, normalizer: Normalizers) -> Space:
    if isinstance(space, Dict):
        return Dict({key: _space(part, normalizer[key]) for key, part in space.items()})
    dtype = space.dtype if space.dtype is not None and space.dtype.kind == "f" else np.dtype(np.float32)
    return Box(-normalizer.clip, normalizer.clip, normalizer.shape, dtype.type)
