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

Costs = Callable[[Any], Mapping[str, Tensor]]
Step = tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]


def as_vector_env(
    task: Any,
    costs: Costs | None = None,
    cost_limits: Mapping[str, float] | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
) -> "LegacyVectorEnv":
    """A task of legged_gym's kind as a ``gymnasium.vector.VectorEnv`` of tensors; see :class:`LegacyVectorEnv`."""
    return LegacyVectorEnv(task, costs, cost_limits or {}, AutoresetMode(autoreset_mode))


class LegacyVectorEnv(VectorEnv[Tensor, Tensor, Tensor]):
    """A vector environment of tensors from a ``task`` whose ``step`` returns (observation, privileged observation,
    reward, done, extras) or (observation, reward, done, extras), where an observation may be a dict with ``"obs"``.

    ``costs(task)`` returns a dict of tensors (num_envs,), at least 0, with the same names at each call; it sees the task
    before episodes that end are reset. ``info`` has ``cost``, their sum, ``costs``, ``privileged`` where there is such
    an observation, ``log`` with the task's episode means, and ``extras``. ``extras["time_outs"]`` truncate.

    SAME_STEP, legged_gym's: the step that ends an episode resets it. ``final_obs`` is the true last observation:
    ``compute_observations`` is called when the task calls its own ``reset_idx``, and takes no random numbers from it.
    NEXT_STEP, of tasks of IsaacGymEnvs that reset at the beginning of the next step: that step has reward and costs 0.
    A mask in ``reset(options={"reset_mask": mask})`` resets its rows alone. A ``seed`` seeds the global generators of
    PyTorch, NumPy and Python, which such tasks use. ValueError or RuntimeError for a task that does not fit."""

    def __init__(self, task: Any, costs: Costs | None, cost_limits: Mapping[str, float], mode: AutoresetMode):
        if missing := [
            name for name in ("num_envs", "obs_buf", "num_actions", "reset_idx", "step") if not hasattr(task, name)
        ]:
            raise ValueError(f"as_vector_env: the task {type(task).__name__} has no {', '.join(missing)}")
        if mode is AutoresetMode.SAME_STEP and not hasattr(task, "compute_observations"):
            raise ValueError(f"as_vector_env: {type(task).__name__} has no compute_observations, which final_obs needs")
        self.task, self.num_envs, self.device = task, task.num_envs, torch.device(task.device)
        self.metadata = {"autoreset_mode": mode}
        observations, actions = (_bound(task, name) for name in ("observations", "actions"))
        self._clip = observations
        self.single_observation_space = Box(-observations, observations, (task.obs_buf.shape[1],))
        self.single_action_space = Box(-actions, actions, (task.num_actions,))
        self.observation_space, self.action_space = (
            batch_space(space, self.num_envs) for space in (self.single_observation_space, self.single_action_space)
        )
        self._cost_function, self.cost_names = costs, tuple(costs(task) if costs else ())
        if unknown := [name for name in cost_limits if name not in self.cost_names]:
            raise ValueError(f"as_vector_env: cost_limits has {unknown[0]!r}, the costs are {self.cost_names}")
        self.cost_limits = tuple(float(cost_limits.get(name, np.inf)) for name in self.cost_names)
        self._reset_idx, task.reset_idx = task.reset_idx, self._before_reset
        self._stepping, self._ended = False, torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        self._costs: Tensor | None = None
        self._final: Tensor | None = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Tensor, dict[str, Any]]:
        if seed is not None:
            seed = int(np.ravel(seed)[0])
            random.seed(seed), np.random.seed(seed % 2**32), torch.manual_seed(seed)
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            self._reset_idx(torch.as_tensor(mask, device=self.device).nonzero().flatten())
            return self._observe(), {}
        self._ended[:] = False
        result = self.task.reset()
        return _policy(result[0] if isinstance(result, tuple) else result), {}

    def step(self, actions: Any) -> Step:
        self._costs = self._final = None
        self._stepping = True
        try:
            values = self.task.step(torch.as_tensor(actions, dtype=torch.float32, device=self.device))
        finally:
            self._stepping = False
        if len(values) not in (4, 5):
            raise ValueError(f"{type(self.task).__name__}.step must return 4 or 5 values, got {len(values)}")
        observation, (reward, done, extras) = _policy(values[0]), values[-3:]
        done, next_step = done.bool(), self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        costs, begun = self._evaluate_costs() if self._costs is None else self._costs, self._ended
        if next_step:
            reward, costs, done = reward * ~begun, costs * ~begun.unsqueeze(1), done & ~begun
            self._ended = done
        late = extras.get("time_outs", torch.zeros_like(done)).bool() & done
        info: dict[str, Any] = {"cost": costs.sum(1), "costs": costs}
        if len(values) == 5 and values[1] is not None:
            info["privileged"] = values[1]
        if extras.get("episode") and done.any():
            info["log"] = dict(extras["episode"])
        info["extras"] = {key: value for key, value in extras.items() if key not in ("time_outs", "episode")}
        if done.any() and not next_step:
            if self._final is None:
                how = "it resets in the next step, give autoreset_mode='NextStep'"
                raise RuntimeError(f"{type(self.task).__name__} ended episodes and did not call reset_idx: {how}")
            info |= {"final_obs": torch.where(done.unsqueeze(1), self._final, observation), "_final_obs": done}
        return observation, reward.clone(), done & ~late, late, info

    def close_extras(self, **kwargs: Any) -> None:
        self.task.reset_idx = self._reset_idx

    def _before_reset(self, env_ids: Any, *args: Any, **kwargs: Any) -> Any:
        if self._stepping and self._costs is None:
            self._costs = self._evaluate_costs()
        if self._stepping and len(env_ids) and self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
                self._final = self._observe().clone()
        return self._reset_idx(env_ids, *args, **kwargs)

    def _observe(self) -> Tensor:
        self.task.compute_observations()
        return self.task.obs_buf.clip(-self._clip, self._clip)

    def _evaluate_costs(self) -> Tensor:
        """Shape: (num_envs, K)."""
        if self._cost_function is None:
            return torch.zeros(self.num_envs, 0, device=self.device)
        costs = self._cost_function(self.task)
        if tuple(costs) != self.cost_names:
            raise ValueError(f"costs must have the names {self.cost_names} at each call, got {tuple(costs)}")
        for name, cost in costs.items():
            if tuple(cost.shape) != (self.num_envs,) or not (cost >= 0).all():
                wrong = f"cost {name!r} must have shape ({self.num_envs},) and no value below 0"
                raise ValueError(f"{wrong}, got shape {tuple(cost.shape)}, least {float(cost.min()):g}")
        return torch.stack([cost.float() for cost in costs.values()], dim=1)


def _bound(task: Any, kind: str) -> float:
    """What the task clips its observations or actions to, ∞ where it does not tell."""
    of_cfg = getattr(getattr(getattr(task, "cfg", None), "normalization", None), f"clip_{kind}", np.inf)
    short = {"observations": "clip_obs", "actions": "clip_actions"}[kind]
    return float(getattr(task, short, of_cfg))


def _policy(observation: Any) -> Tensor:
    return observation["obs"] if isinstance(observation, dict) else observation
