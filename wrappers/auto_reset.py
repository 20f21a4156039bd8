"""Turn an environment that does not reset by itself into one that does, and the parts of that other wrappers need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from legged_envs.wrappers.array_kinds import any_row, as_kind_of, as_numpy, copied, map_arrays
from legged_envs.wrappers.base import StatefulWrapper, Step, autoreset_mode, end_episodes, kept, reset_mask
from legged_envs.wrappers.rows import blank_rows, choose_rows, info_rows, without_rows
from legged_envs.wrappers.unsqueeze import Unsqueeze

COSTS = ("cost", "costs")
"""Keys of ``info`` that stay at the top level on the step that they belong to."""

FINAL = ("final_obs", "_final_obs", "final_info", "_final_info")
"""Keys of ``info`` that a reset in the same step adds."""


class AutoReset(StatefulWrapper):
    """Resets environments whose episode ended, as Gymnasium defines its two autoreset modes.

    ``SAME_STEP``: the step that ends an episode returns the next episode's first observation; ``info["final_obs"]`` is
    the true last observation, equal to the observation in rows that go on, so it serves as next observation for all;
    ``info["_final_obs"]`` marks the rows that ended and ``info["final_info"]`` is what that step reported. Costs and
    all else stay at the top level of ``info`` on the step they belong to, except what the reset reports under the same
    key.

    ``NEXT_STEP``: the step after the one that ended an episode ignores that environment's action and returns the next
    episode's first observation with reward 0, cost 0 and both flags False. An environment that cannot leave out some of
    its rows makes that step all the same, unseen; Gymnasium's ``SyncVectorEnv`` and :class:`Unsqueeze` leave it out.

    Args:
        env: A vector environment with ``metadata["autoreset_mode"]`` DISABLED and partial resets.
        mode: An :class:`~gymnasium.vector.AutoresetMode` or its value.

    Raises:
        ValueError: If ``mode`` is DISABLED or ``env`` already resets by itself.
    """

    def __init__(self, env: VectorEnv, mode: AutoresetMode | str = AutoresetMode.SAME_STEP):
        super().__init__(env)
        self.mode = AutoresetMode(mode)
        if self.mode is AutoresetMode.DISABLED:
            raise ValueError("AutoReset's mode must be SAME_STEP or NEXT_STEP; leave the wrapper out for DISABLED")
        below = autoreset_mode(env)
        if below is not AutoresetMode.DISABLED:
            raise ValueError(
                f"AutoReset needs an environment with autoreset DISABLED, got {below}, which resets by itself: make it "
                "with autoreset_mode=AutoresetMode.DISABLED, or leave AutoReset out"
            )
        self.metadata = {**env.metadata, "autoreset_mode": self.mode}
        self._ended: Any = None  # rows whose next step resets, None if there are none

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = reset_mask(options)
        observation, info = self.env.reset(seed=seed, options=kept(options))
        self._ended = without_rows(self._ended, mask)
        return observation, info

    def step(self, actions: Any) -> Step:
        step = self.env.step(actions) if self._ended is None else step_and_reset(self.env, self._ended, actions)
        ended = step[2] | step[3]
        if any_row(ended):
            if self.mode is AutoresetMode.SAME_STEP:
                return reset_in_step(self.env, ended, step)
            self._ended = ended
            end_episodes(self.env, ended)
        elif self._ended is not None:
            self._ended = None
        return step

    def state_dict(self) -> dict[str, Any]:
        return {"ended": copied(self._ended)}

    def _state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"ended": (self.num_envs,)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._check_state(state)
        self._ended = copied(state["ended"])


# --- resets of some rows ----------------------------------------------------------------------------------------------


def reset_in_step(env: Any, ended: Any, step: Step) -> Step:
    """Reset the rows ``ended`` after a step.

    What the step returned is copied, since a reset may write to the same arrays.

    Returns:
        The step with the observation whose ended rows are the first ones of the next episodes, and ``info`` with
        ``final_obs``, a full batch, ``_final_obs``, ``final_info`` and ``_final_info``. Where ``env`` has reset other
        rows in that step by itself, these stay.
    """
    final_observation, reward, terminated, truncated, info = map_arrays(copied, step)
    final_info = map_arrays(copied, {key: value for key, value in info.items() if key not in FINAL})
    if "_final_obs" in info:
        rows = ended | info["_final_obs"]
        final_observation = with_final(info["_final_obs"], info["final_obs"], final_observation)
        final_info = info_rows(ended, final_info, info.get("final_info", {}))
    else:
        rows = copied(ended)
    observation, reset_info = env.reset(options={"reset_mask": copied(ended)})
    reset_info = {key: reset_info[key] for key in reset_info if not (key in info and key.removeprefix("_") in COSTS)}
    info = {
        **info,
        **info_rows(ended, reset_info, {key: info[key] for key in reset_info if key in info}),
        "final_obs": final_observation,
        "_final_obs": rows,
        "final_info": final_info,
        "_final_info": copied(rows),
    }
    return observation, reward, terminated, truncated, info


def step_and_reset(env: Any, resetting: Any, actions: Any) -> Step:
    """A step that starts the next episodes of the rows ``resetting`` in place of their actions."""
    with held(env, resetting):
        _, reward, terminated, truncated, info = env.step(actions)
    # Before the reset, which may write to the same arrays.
    reward, terminated, truncated = blank_rows(resetting, reward), terminated & ~resetting, truncated & ~resetting
    observation, reset_info = env.reset(options={"reset_mask": copied(resetting)})
    return observation, reward, terminated, truncated, info_rows(resetting, reset_info, info)


class _Held(gym.Wrapper):
    """An environment that waits: it returns its last observation, whatever is asked of it."""

    def __init__(self, env: gym.Env, observation: Any):
        super().__init__(env)
        self._observation = observation

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        return self._observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._observation, 0.0, False, False, {}


@contextmanager
def held(env: Any, ended: Any) -> Iterator[None]:
    """Within it a step leaves out the rows ``ended`` of a batch of single environments; other batches step them too.

    ``SyncVectorEnv`` refuses to step an environment that has ended, and a step would take random numbers from its next
    episode.
    """
    core = env.unwrapped
    if not isinstance(core, (SyncVectorEnv, Unsqueeze)):
        yield
        return
    mask = as_numpy(ended)
    envs = list(core.envs)
    for i in np.flatnonzero(mask):
        core.envs[i] = _Held(envs[i], core._env_obs[i])
    try:
        core.reset(options={"reset_mask": mask.copy()})  # forgets that they have ended
        yield
    finally:
        core.envs[:] = envs


def with_final(rows: Any, final_observation: Any, observation: Any) -> Any:
    """``observation`` with the rows of a full batch or of Gymnasium's array of single ones."""
    if not (isinstance(final_observation, np.ndarray) and final_observation.dtype == object):
        return choose_rows(rows, final_observation, observation)
    observation = map_arrays(copied, observation)
    for i in np.flatnonzero(rows).tolist():
        _write(observation, i, final_observation[i])
    return observation


def _write(batch: Any, row: int, value: Any) -> None:
    if isinstance(batch, (dict, tuple)):
        for key in batch if isinstance(batch, dict) else range(len(batch)):
            _write(batch[key], row, value[key])
    else:
        batch[row] = as_kind_of(np.asarray(value), batch)
