"""Base class of the environments in Isaac Lab's words."""

import random
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor

from legged_envs.compat.adapter import AdapterCfg, OwnCfg
from legged_envs.compat.user_task import UserTask
from legged_envs.envs.task import Action, Info, Observation
from legged_envs.wrappers import TimeLimit


def full_name(cls: type) -> str:
    """Return module and name of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


class IsaacEnv(UserTask):
    """A task that is stepped itself if made directly; ended episodes restart in the same step."""

    is_vector_env: ClassVar[bool] = True
    metadata: ClassVar[dict[str, object]] = {
        "render_modes": [None, "rgb_array"],
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    CFG: ClassVar[type]
    """Class of the configurations of these tasks."""

    @property
    def unwrapped(self) -> "IsaacEnv":
        """This object."""
        return self

    @property
    def initial_seed(self) -> int | None:
        """Seed of the first reset, if that has none: ``cfg.seed``.

        Later resets without a seed continue the random streams.
        """
        seed: int | None = self.cfg.seed
        return seed

    @property
    def physics_dt(self) -> float:
        """Physics time step, s."""
        return self.core.cfg.sim.dt

    def get_wrapper_attr(self, name: str) -> Any:
        """Return the attribute ``name``."""
        return getattr(self, name)

    def has_wrapper_attr(self, name: str) -> bool:
        """Return True if there is an attribute ``name``."""
        return hasattr(self, name)

    def set_wrapper_attr(self, name: str, value: object) -> None:
        """Set the attribute ``name``."""
        setattr(self, name, value)

    @classmethod
    def task_cfg(cls, cfg: OwnCfg) -> AdapterCfg:
        """Translate a configuration in Isaac Lab's words.

        Raises:
            TypeError: If it is of another kind.
        """
        if not isinstance(cfg, cls.CFG):
            raise TypeError(
                f"{cls.__name__} needs a {full_name(cls.CFG)}, got a {full_name(type(cfg))}"
            )
        return super().task_cfg(cfg)

    def construct(self, cfg: OwnCfg) -> None:
        # make_vec decides the number of environments; constructors read it here.
        cfg.scene.num_envs = self.core.num_envs
        super().construct(cfg)

    def writes(self, method: str) -> bool:
        """Return True if a class outside of this package writes a method."""
        return not getattr(type(self), method).__module__.startswith("legged_envs.compat.")

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, object] | None = None,
        env_ids: Tensor | Sequence[int] | slice | None = None,
    ) -> tuple[Observation, Info]:
        """Begin all episodes, or some.

        Args:
            seed: As of :meth:`~legged_envs.envs.CoreVectorEnv.reset`.
            options: ``{"reset_mask": mask}`` resets some environments.
            env_ids: Environments to reset, instead of a mask.

        Returns:
            The observations, and ``extras``.
        """
        if env_ids is not None:
            mask = torch.zeros(self.core.num_envs, dtype=torch.bool, device=self.core.device)
            mask[env_ids] = True
            options = {**(options or {}), "reset_mask": mask}
        observation, info = self.stack.reset(seed=seed, options=options)
        return observation, {**self.extras, **info}

    def step(self, action: Action) -> Any:
        """Advance by one control step.

        Returns:
            Observations (of the new episode where an episode ended); rewards, terminated, truncated
            and ``extras``.
        """
        observation, reward, terminated, truncated, info = self.stack.step(action)
        return observation, reward, terminated, truncated, {**self.extras, **info}

    @staticmethod
    def seed(seed: int = -1) -> int:
        """Seed the generators of Python, NumPy and PyTorch.

        The random streams of the environments are seeded by ``reset(seed=…)`` or ``cfg.seed``.

        Args:
            seed: The seed; −1 draws one.

        Returns:
            The seed.
        """
        if seed == -1:
            seed = random.randrange(10_000)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        return seed

    def render(self, recompute: bool = False) -> np.ndarray | None:
        """Draw environment ``cfg.viewer.env_index``, (height, width, 3), uint8.

        None without a render mode.
        """
        return None if self.core.render_mode is None else self.core.render()[0]

    @property
    def episode_length_buf(self) -> Tensor:
        """Control steps of the present episodes, (num_envs,), int32.

        Assigned steps are counted by the time limit too.
        """
        return self.core.episode_steps

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Tensor) -> None:
        # The core and the time limit count separately, and trainings assign random steps here so
        # that the first episodes do not all end in the same step.
        self.core.episode_steps.copy_(steps)
        time_limit = self.stack.env
        if isinstance(time_limit, TimeLimit):
            time_limit.elapsed_steps = steps.long().clone()
