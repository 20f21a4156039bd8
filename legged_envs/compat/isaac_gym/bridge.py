"""Tasks that were written for Isaac Gym as vector environments of Gymnasium, with costs."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from legged_envs.envs.arguments import check_reset_options
from legged_envs.state import copy_rows, preserve_contents, restore_rows

LegacyTask = Any
"""A task in the style of legged_gym or IsaacGymEnvs. It has no common base class, and further
methods and attributes that its costs may read."""

Costs = Callable[[LegacyTask], Mapping[str, Tensor]]
"""Function of a task that returns the costs of a step, by name. Shape of each: (num_envs,)."""

REQUIRED_NAMES = (
    "num_envs",
    "num_actions",
    "obs_buf",
    "step",
    "reset",
    "reset_idx",
    "compute_observations",
)
"""Attributes and methods that a task must have."""


class LegacyVectorEnv(VectorEnv[Tensor, Tensor, Tensor]):
    """A vector environment of tensors from a task, in the autoreset mode SAME_STEP.

    The ``step`` of the task returns (observation, privileged observation, reward, done, extras) or
    (observation, reward, done, extras). An observation may be a dict with the key ``"obs"``. In the
    same step it calls its ``reset_idx`` for episodes that end. The task does the same, bit for bit,
    as without this class.

    ``info`` has:

    * ``costs`` and their sum ``cost``, of the state before finished episodes are reset.
    * ``final_obs``: the true last observation. ``compute_observations`` is called for it at the
      start of ``reset_idx``.
    * ``privileged``, if there is a privileged observation.
    * ``log``: the task's means over finished episodes.
    * ``extras``: the extras of the task. Its ``time_outs`` truncate episodes.

    Args:
        task: The task.
        costs: Function of the task that returns costs, at least 0, with the same names at each
            call. None: there are no costs.
        cost_limits: Limits of the costs, by name. Default: infinity.

    Raises:
        ValueError: If the task lacks something, or a limit has no cost.
    """

    def __init__(self, task: LegacyTask, costs: Costs | None, cost_limits: Mapping[str, float]):
        missing = [name for name in REQUIRED_NAMES if not hasattr(task, name)]
        if missing:
            raise ValueError(
                f"as_vector_env: the task {type(task).__name__} has no {', '.join(missing)}"
            )
        self.task = task
        """The task."""
        self.num_envs: int = task.num_envs
        """Number of environments."""
        self.device = torch.device(task.device)
        """Device of observations, rewards and costs."""
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        """Metadata of Gymnasium."""
        self._max_observation = _get_clip(task, "clip_observations", "clip_obs")
        max_action = _get_clip(task, "clip_actions", "clip_actions")

        self.single_observation_space = Box(
            -self._max_observation, self._max_observation, (task.obs_buf.shape[1],)
        )
        """Space of the observation of one environment."""
        self.single_action_space = Box(-max_action, max_action, (task.num_actions,))
        """Space of the action of one environment."""
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        """Space of observations."""
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        """Space of actions."""
        self._cost_function = costs
        # Called once here: the names of the costs are known only from its result.
        self.cost_names = tuple(costs(task)) if costs is not None else ()
        """Names of the costs."""
        for name in cost_limits:
            if name not in self.cost_names:
                raise ValueError(
                    f"as_vector_env: cost_limits has {name!r}, the costs are {self.cost_names}"
                )
        self.cost_limits = tuple(float(cost_limits.get(name, np.inf)) for name in self.cost_names)
        """Limit of each cost."""
        # The task calls reset_idx in the middle of its step. This is the only moment at which costs
        # and observations of the finished episodes can be seen.
        self._reset_task = task.reset_idx
        task.reset_idx = self._observe_and_reset
        self._is_in_step = False
        self._costs_before_reset: Tensor | None = None
        self._final_observation: Tensor | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Tensor, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: Seed of the global generators of PyTorch, NumPy and Python, which tasks use.
                Of a list, the first element counts.
            options: A ``reset_mask`` restricts the reset to some environments.

        Returns:
            Observations and an empty dict.
        """
        if seed is not None:
            _seed_generators(int(np.ravel(seed)[0]))
        is_numpy = isinstance((options or {}).get("reset_mask"), np.ndarray)
        kind = "numpy" if is_numpy else "torch"
        mask = check_reset_options(options, self.num_envs, kind, self.device)
        if mask is None:
            return _get_policy_observation(self.task.reset()), {}
        self._reset_task(mask.nonzero().flatten())
        # Observing advances the history and the noise of all environments. Those that are not reset
        # must keep theirs.
        before = copy_rows(vars(self.task), self.num_envs)
        observation = self._observe().clone()
        restore_rows(vars(self.task), before, ~mask)
        return observation, {}

    def step(self, actions: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Run one step of the task.

        Args:
            actions: A tensor or array. Shape: (num_envs, num_actions).

        Returns:
            Observations, rewards, and whether episodes were terminated and truncated, and info.

        Raises:
            RuntimeError: If the task did not reset episodes that it ended.
            ValueError: If it does not return 4 or 5 values.
        """
        self._begin_step()
        try:
            values = self.task.step(
                torch.as_tensor(actions, dtype=torch.float32, device=self.device)
            )
        finally:
            # Else a reset by the caller after an exception would count as one of this step.
            self._is_in_step = False
        if len(values) not in (4, 5):
            raise ValueError(
                f"{type(self.task).__name__}.step must return 4 or 5 values, got {len(values)}"
            )
        observation = _get_policy_observation(values)
        reward, done, extras = values[-3:]
        # IsaacGymEnvs returns integers.
        done = done.bool()
        time_outs = extras.get("time_outs", torch.zeros_like(done)).bool()
        # Codebases leave old time-outs in extras, so they count with an end only.
        truncated = time_outs & done
        costs = self._costs_before_reset
        if costs is None:
            costs = self._compute_costs()
        info = {"cost": costs.sum(1), "costs": costs, "extras": dict(extras)}
        if len(values) == 5 and values[1] is not None:
            info["privileged"] = values[1]
        if done.any():
            if self._final_observation is None:
                raise RuntimeError(
                    f"{type(self.task).__name__} ended episodes and did not call reset_idx in that "
                    "step: let it reset them before it computes observations"
                )
            # Rows of running episodes hold the next observation, as the contract of final_obs asks.
            info["final_obs"] = torch.where(done.unsqueeze(1), self._final_observation, observation)
            info["_final_obs"] = done
            info["log"] = dict(extras.get("episode", {}))
        # Tasks return their buffer, which the next step overwrites.
        return observation, reward.clone(), done & ~truncated, truncated, info

    def _begin_step(self) -> None:
        # Results of the last step would be taken for results of this step.
        self._costs_before_reset = None
        self._final_observation = None
        self._is_in_step = True

    def close_extras(self, **kwargs: Any) -> None:
        """Give the task its own ``reset_idx`` back."""
        self.task.reset_idx = self._reset_task

    def _observe_and_reset(self, env_ids: Any, *args: Any, **kwargs: Any) -> Any:
        """Stand for ``reset_idx`` of the task: keep costs and observations, then reset."""
        if self._is_in_step:
            # A task may reset in several calls. Only the first one sees all episodes as they ended.
            if self._costs_before_reset is None:
                self._costs_before_reset = self._compute_costs()
            if len(env_ids):
                self._final_observation = self._observe_without_effect()
        return self._reset_task(env_ids, *args, **kwargs)

    def _observe_without_effect(self) -> Tensor:
        """Return the present observation. The task and all generators stay as they are."""
        python_state = random.getstate()
        numpy_state = np.random.get_state()
        gpus = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=gpus), preserve_contents(vars(self.task)):
            # Cloned before the buffer gets its old contents back.
            observation = self._observe().clone()
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        return observation

    def _observe(self) -> Tensor:
        self.task.compute_observations()
        # Tasks clip in their step, after compute_observations.
        observation: Tensor = self.task.obs_buf
        return observation.clip(-self._max_observation, self._max_observation)

    def _compute_costs(self) -> Tensor:
        """Return the costs of the present state. Shape: (num_envs, num_costs)."""
        costs: Mapping[str, Tensor] = {}
        if self._cost_function is not None:
            costs = self._cost_function(self.task)
        if tuple(costs) != self.cost_names:
            raise ValueError(
                f"costs must have the names {self.cost_names} at each call, got {tuple(costs)}"
            )
        for name, cost in costs.items():
            if tuple(cost.shape) != (self.num_envs,) or not (cost >= 0).all():
                raise ValueError(
                    f"cost {name!r} must have shape ({self.num_envs},) and no value below 0, "
                    f"got shape {tuple(cost.shape)}, least {float(cost.min()):g}"
                )
        # The column of zeros gives shape, type and device if there are no costs.
        zeros = torch.zeros(self.num_envs, device=self.device)
        return torch.stack([zeros, *costs.values()], dim=1)[:, 1:]


def _seed_generators(seed: int) -> None:
    random.seed(seed)
    # NumPy takes 32 bits.
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def _get_clip(task: LegacyTask, name: str, name_in_task: str) -> float:
    """Return the value to which a task clips, or infinity if it has none.

    Args:
        task: The task.
        name: Name in ``cfg.normalization``, as in legged_gym.
        name_in_task: Name of the attribute of the task, as in IsaacGymEnvs.
    """
    cfg = getattr(task, "cfg", None)
    normalization = getattr(cfg, "normalization", None)
    clip_in_task = getattr(task, name_in_task, np.inf)
    return float(getattr(normalization, name, clip_in_task))


def _get_policy_observation(values: Any) -> Tensor:
    """Return the observation for the policy from what a task returns."""
    first = values[0] if isinstance(values, tuple) else values
    observation: Tensor = first["obs"] if isinstance(first, dict) else first
    return observation
