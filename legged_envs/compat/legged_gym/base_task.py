"""The interface of a task in LeggedGym-Ex's words."""

import copy
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from legged_envs.compat.adapter import AdapterTask, OwnCfg
from legged_envs.compat.legged_gym.buffers import BUFFERS, Buffers
from legged_envs.compat.legged_gym.cfg_checks import check_fields
from legged_envs.compat.legged_gym.simulator import Simulator
from legged_envs.compat.legged_gym.task import LeggedGymTask
from legged_envs.compat.user_task import UserTask

ObsBuf = Tensor
"""Observations. Shape: (num_envs, num_obs)."""
Action = Tensor
"""Actions. Shape: (num_envs, num_actions)."""
Reward = Tensor
"""Rewards. Shape: (num_envs,)."""
EnvIds = Tensor
"""Indices of environments. Shape: (n,)."""


class BaseTask(UserTask):
    """The buffers and the interface of a task.

    Args:
        cfg: Configuration; ``cfg.env.num_envs`` is the number of environments, unless the task is
            made by ``make_vec``.
        sim_params: Fields that replace fields of ``cfg.sim``; None for none.
        sim_device: Device of the tensors: a name, or the number of a GPU.
        headless: False to show environment ``cfg.viewer.ref_env`` in a window.

    Raises:
        ValueError: If a field of ``cfg`` is misspelt or not supported.
    """

    ADAPTER: ClassVar[type[AdapterTask]] = LeggedGymTask

    BUFFERS: ClassVar[Buffers] = BUFFERS
    """Observation groups and the buffers that hold them, in the order of ``step``."""

    external_command_source_enabled = False
    """False: commands are drawn."""
    privileged_obs_buf: Tensor | None = None
    """Observations of the critic; None without one. Shape: (num_envs, num_privileged_obs)."""
    _rows: Tensor | None = None  # environments that observe an episode's first step

    def __init__(
        self,
        cfg: OwnCfg,
        sim_params: dict[str, object] | None,
        sim_device: str | int,
        headless: bool,
    ):
        check_fields(cfg)
        # A copy, as sizes are written into it below.
        cfg = copy.deepcopy(cfg)
        for name, value in (sim_params or {}).items():
            setattr(cfg.sim, name, value)
        device = f"cuda:{sim_device}" if isinstance(sim_device, int) else sim_device
        self.make_core(cfg, cfg.env.num_envs, device=device)
        core = self.core
        # make_vec may have been called with other values than the configuration.
        cfg.env.num_envs = core.num_envs
        cfg.env.episode_length_s = core.max_episode_length_s

        self.headless = headless
        """True without a window."""
        self.simulator = Simulator(self.adapter)
        """The robots in LeggedGym-Ex's words."""
        self.num_obs: int = cfg.env.num_observations
        """Number of elements of an observation."""
        self.num_privileged_obs: int | None = cfg.env.num_privileged_obs
        """Number of elements of the critic's observation; None without one."""
        self.num_actions = core.actions.size
        """Number of elements of an action."""
        # LeggedGym-Ex's order: a subclass's _init_buffers may read the buffers and the parsed
        # configuration.
        self._make_buffers()
        # A call of reset_idx asks for a reset, in which the adapter calls the method of the class.
        self.reset_idx = self._reset_now
        self._parse_cfg(cfg)
        self._init_buffers()
        self._prepare_reward_function()

    def _make_buffers(self) -> None:
        num_envs = self.core.num_envs
        device = self.core.device

        self.obs_buf = torch.zeros(num_envs, self.num_obs, device=device)
        """Observations. Shape: (num_envs, num_obs)."""
        self.rew_buf = torch.zeros(num_envs, device=device)
        """Rewards of the last step. Shape: (num_envs,)."""
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long, device=device)
        """Control steps of the present episodes. Shape: (num_envs,), int64."""
        self.reset_buf = torch.ones(num_envs, dtype=torch.bool, device=device)
        """Environments with an episode that ended in the last step. Shape: (num_envs,), bool."""
        self.time_out_buf = torch.zeros(num_envs, dtype=torch.bool, device=device)
        """Environments with an episode that ran out of time. Shape: (num_envs,), bool."""

    @property
    def device(self) -> str:
        """Device of the tensors, as a name, because functions of LeggedGym-Ex accept only names."""
        return str(self.core.device)

    @property
    def adapter(self) -> LeggedGymTask:
        """The task that calls the methods."""
        return cast("LeggedGymTask", self.core.task)

    def construct(self, cfg: OwnCfg) -> None:
        self.__init__(cfg, {}, "cpu", True)  # type: ignore[misc]

    def _parse_cfg(self, cfg: OwnCfg) -> None:
        """Read the configuration."""

    def _init_buffers(self) -> None:
        """Make further buffers."""

    def _prepare_reward_function(self) -> None:
        """Find the methods of the rewards."""

    def _reset_now(self, env_ids: Tensor) -> None:
        """Reset ``env_ids``; in a step, the autoreset does that after the last observation."""
        if self.adapter.is_evaluating or not len(env_ids):
            return
        if not self.core.has_begun:
            self.stack.reset()
            return
        # The stack and not the core: the time limit has to start its count again.
        mask = torch.zeros_like(self.reset_buf)
        mask[torch.as_tensor(env_ids)] = True
        self.stack.reset(options={"reset_mask": mask})

    def reset(self, seed: int | None = None) -> tuple[Any, ...]:
        """Reset all environments.

        Args:
            seed: Seed of the random streams; None continues them.

        Returns:
            What :meth:`get_observations` returns.
        """
        self.stack.reset(seed=seed)
        return self.get_observations()

    def step(self, actions: Tensor) -> tuple[Any, ...]:
        """Advance by one control step.

        Args:
            actions: Actions, shape (num_envs, num_actions).

        Returns:
            Observations (num_envs, num_obs); the critic's observations or None; rewards
            (num_envs,); environments with an ended episode, (num_envs,), bool; and ``extras``:
            ``info`` of the core, statistics of the ended episodes under ``"episode"``, and
            time-outs under ``"time_outs"``.
        """
        # A new dict: the caller may have kept the tensor of the last step.
        self.extras = {}
        stack: Any = self.stack
        observation, reward, terminated, truncated, info = stack.step(actions)
        # After the stack, which has reset the environments: these flags are of the ended episodes.
        self.reset_buf = terminated | truncated
        self.time_out_buf = truncated
        if "log" in info:
            info["episode"] = info.pop("log")
        self.extras.update(info)
        if self.cfg.env.send_timeouts:
            self.extras["time_outs"] = truncated
        if not self.headless:
            self.core.sim.view(self.cfg.viewer.ref_env)
        shown = [observation.get(group) for group in self.BUFFERS]
        return *shown, reward, self.reset_buf, self.extras

    def get_observations(self) -> tuple[Any, ...]:
        """Return the present observations, (num_envs, num_obs), and the critic's observations or
        None."""
        return tuple(getattr(self, buffer.name) for buffer in self.BUFFERS.values())
