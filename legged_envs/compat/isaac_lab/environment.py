"""What Isaac Lab's environments have in common."""

import random
from functools import partialmethod
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor

from legged_envs.compat.adapter import _GIVEN, Workflow, WorkflowCore
from legged_envs.compat.isaac_lab.scene import InteractiveScene
from legged_envs.envs.cfg import TaskCfg
from legged_envs.wrappers import TimeLimit


def full_name(cls: Any) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


class IsaacCore(WorkflowCore):
    """The vector environment of an :class:`IsaacEnv`."""

    task: Any
    scene: InteractiveScene

    def _start_episodes(self, env_ids: Tensor, seed: int | list[int] | None) -> None:
        super()._start_episodes(
            env_ids, self.task.cfg.seed if seed is None and not self._begun else seed
        )


class IsaacEnv(Workflow):
    """A task that, made directly, is stepped itself; ended episodes begin anew in the same step."""

    is_vector_env: ClassVar[bool] = True
    metadata: ClassVar = {
        "render_modes": [None, "rgb_array"],
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }
    unwrapped = property(lambda self: self)
    get_wrapper_attr, has_wrapper_attr = partialmethod(getattr), partialmethod(hasattr)
    set_wrapper_attr = partialmethod(setattr)
    CFG: ClassVar[type]
    """The class of the configurations of such tasks."""
    physics_dt = property(lambda self: self.core.cfg.sim.dt)
    """Physics time step, s."""

    @classmethod
    def task_cfg(cls, cfg: Any) -> TaskCfg:
        """What a configuration in Isaac Lab's words says in ours; TypeError if it is one of another kind."""
        if not isinstance(cfg, cls.CFG):
            raise TypeError(
                f"{cls.__name__} needs a {full_name(cls.CFG)}, got a {full_name(type(cfg))}"
            )
        return super().task_cfg(cfg)

    @classmethod
    def _construct(cls, cfg: Any) -> Workflow:
        cfg.scene.num_envs = (_GIVEN.get() or {})["num_envs"]  # of make_core
        return super()._construct(cfg)

    def writes(self, method: str) -> bool:
        """Whether the class of this task, or another one outside of this package, writes a method."""
        return not getattr(type(self), method).__module__.startswith("legged_envs.compat.")

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None, env_ids: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes, or those of ``env_ids`` or of ``options["reset_mask"]``."""
        if env_ids is not None:
            mask = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
            mask[env_ids] = True
            options = {**(options or {}), "reset_mask": mask}
        observation, info = self.stack.reset(seed=seed, options=options)
        return observation, {**self.extras, **info}

    def step(self, action: Any) -> Any:
        """Observations (of new episodes where one ended), rewards, terminated, truncated and extras."""
        *outcome, info = self.stack.step(action)
        return *outcome, {**self.extras, **info}

    @staticmethod
    def seed(seed: int = -1) -> int:
        """Seed the generators of Python, NumPy and PyTorch, −1: with a random number, which is returned. The streams
        ``self.random`` of the environments are seeded by ``reset(seed=…)`` or ``cfg.seed``."""
        seed = random.randrange(10_000) if seed == -1 else seed
        for seed_generator in (random.seed, np.random.seed, torch.manual_seed):
            seed_generator(seed)
        return seed

    def render(self, recompute: bool = False) -> np.ndarray | None:
        """A picture of environment ``cfg.viewer.env_index``, (height, width, 3) uint8; None without a render mode."""
        return None if self.render_mode is None else self.core.render()[0]

    @property
    def episode_length_buf(self) -> Tensor:
        """Steps of the present episodes; what is assigned is taken over, also by the time limit. (num_envs,), int32."""
        return self.core._episode_steps

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None:
        self.core._episode_steps.copy_(steps)
        if isinstance(self.stack.env, TimeLimit):
            self.stack.env.elapsed_steps = steps.long().clone()
