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

Costs = Callable[[Any], Mapping[str, Tensor]]
_NEEDED = (
    "num_envs",
    "num_actions",
    "obs_buf",
    "step",
    "reset",
    "reset_idx",
    "compute_observations",
)


class LegacyVectorEnv(VectorEnv[Tensor, Tensor, Tensor]):
    """A vector environment of tensors, in mode SAME_STEP, from a ``task`` whose ``step`` returns (observation,
    privileged observation, reward, done, extras) or (observation, reward, done, extras), where an observation may be a
    dict with ``"obs"``, and calls its ``reset_idx`` for episodes that end. What it does stays the same bit for bit.

    ``costs(task)`` returns a dict of tensors (num_envs,), at least 0, with the same names at each call; it sees the
    task before episodes that end are reset. ``info`` has ``costs`` and their sum ``cost``, ``final_obs``, the true last
    observation, for which ``compute_observations`` is called in ``reset_idx``, ``privileged`` where there is such an
    observation, ``log``, the task's means over episodes, and ``extras``. ``extras["time_outs"]`` truncate. A mask in
    ``reset(options={"reset_mask": mask})`` resets its rows alone. A ``seed`` seeds the global generators of PyTorch,
    NumPy and Python, which such tasks use. ValueError or RuntimeError for a task that does not fit."""

    def __init__(self, task: Any, costs: Costs | None, cost_limits: Mapping[str, float]):
        if missing := [name for name in _NEEDED if not hasattr(task, name)]:
            raise ValueError(
                f"as_vector_env: the task {type(task).__name__} has no {', '.join(missing)}"
            )
        self.task, self.num_envs, self.device = task, task.num_envs, torch.device(task.device)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self._clip, actions = (_bound(task, kind) for kind in ("observations", "actions"))
        self.single_observation_space = Box(-self._clip, self._clip, (task.obs_buf.shape[1],))
        self.single_action_space = Box(-actions, actions, (task.num_actions,))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._cost_function, self.cost_names = costs, tuple(costs(task) if costs else ())
        if unknown := [name for name in cost_limits if name not in self.cost_names]:
            raise ValueError(
                f"as_vector_env: cost_limits has {unknown[0]!r}, the costs are {self.cost_names}"
            )
        self.cost_limits = tuple(float(cost_limits.get(name, np.inf)) for name in self.cost_names)
        self._reset_idx, task.reset_idx = task.reset_idx, self._before_reset
        self._before: dict[str, Tensor] | None = (
            None  # costs and final observation of a step under way
        )

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Tensor, dict[str, Any]]:
        if seed is not None:
            seed = int(np.ravel(seed)[0])
            random.seed(seed), np.random.seed(seed % 2**32), torch.manual_seed(seed)
        kind = "numpy" if isinstance((options or {}).get("reset_mask"), np.ndarray) else "torch"
        mask = check_reset_options(options, self.num_envs, kind, self.device)
        if mask is None:
            return _policy(self.task.reset()), {}
        self._reset_idx(mask.nonzero().flatten())
        before = copy_rows(vars(self.task), self.num_envs)
        observation = self._observe().clone()
        restore_rows(vars(self.task), before, ~mask)
        return observation, {}

    def step(self, actions: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Any]]:
        before = self._before = {}
        try:
            values = self.task.step(
                torch.as_tensor(actions, dtype=torch.float32, device=self.device)
            )
        finally:
            self._before = None
        if len(values) not in (4, 5):
            raise ValueError(
                f"{type(self.task).__name__}.step must return 4 or 5 values, got {len(values)}"
            )
        observation, (reward, done, extras) = (
            _policy(values),
            (values[-3], values[-2].bool(), values[-1]),
        )
        late = extras.get("time_outs", torch.zeros_like(done)).bool() & done
        costs = before["costs"] if "costs" in before else self._costs()
        info = {"cost": costs.sum(1), "costs": costs, "extras": {**extras}}
        if len(values) == 5 and values[1] is not None:
            info["privileged"] = values[1]
        if done.any():
            if "final" not in before:
                wrong = f"{type(self.task).__name__} ended episodes and did not call reset_idx in that step"
                raise RuntimeError(f"{wrong}: let it reset them before it computes observations")
            final = torch.where(done.unsqueeze(1), before["final"], observation)
            info |= {"final_obs": final, "_final_obs": done, "log": {**extras.get("episode", {})}}
        return observation, reward.clone(), done & ~late, late, info

    def close_extras(self, **kwargs: Any) -> None:
        self.task.reset_idx = self._reset_idx

    def _before_reset(self, env_ids: Any, *args: Any, **kwargs: Any) -> Any:
        if self._before is not None:
            self._before.setdefault("costs", self._costs())
            if len(env_ids):
                self._before["final"] = self._observe_apart()
        return self._reset_idx(env_ids, *args, **kwargs)

    def _observe_apart(self) -> Tensor:
        """The observation of this moment; what the task has and what it will draw stay as they are."""
        generators = random.getstate(), np.random.get_state()
        gpus = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=gpus), preserve_contents(vars(self.task)):
            observation = self._observe().clone()
        random.setstate(generators[0]), np.random.set_state(generators[1])
        return observation

    def _observe(self) -> Tensor:
        self.task.compute_observations()
        return self.task.obs_buf.clip(-self._clip, self._clip)

    def _costs(self) -> Tensor:
        """Shape: (num_envs, K)."""
        costs = self._cost_function(self.task) if self._cost_function else {}
        if tuple(costs) != self.cost_names:
            raise ValueError(
                f"costs must have the names {self.cost_names} at each call, got {tuple(costs)}"
            )
        for name, cost in costs.items():
            if tuple(cost.shape) != (self.num_envs,) or not (cost >= 0).all():
                wrong = f"cost {name!r} must have shape ({self.num_envs},) and no value below 0"
                raise ValueError(
                    f"{wrong}, got shape {tuple(cost.shape)}, least {float(cost.min()):g}"
                )
        return torch.stack(
            [torch.zeros(self.num_envs, device=self.device), *costs.values()], dim=1
        )[:, 1:]


def _bound(task: Any, kind: str) -> float:
    """What the task clips its observations or actions to, ∞ where it does not tell."""
    of_task = getattr(task, {"observations": "clip_obs"}.get(kind, f"clip_{kind}"), np.inf)
    return float(
        getattr(getattr(getattr(task, "cfg", None), "normalization", None), f"clip_{kind}", of_task)
    )


def _policy(values: Any) -> Tensor:
    """The observation for the policy of what a task returns."""
    first = values[0] if isinstance(values, tuple) else values
    return first["obs"] if isinstance(first, dict) else first
