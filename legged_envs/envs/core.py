"""The core environment: the lifecycle that every task shares."""

import copy
import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, create_empty_array

from legged_envs.envs.arguments import check_actions, check_init, check_reset_options, check_seed
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.episode_log import make_log
from legged_envs.envs.execution import export, replace_rows, step_mode
from legged_envs.envs.managed import ManagedEnv
from legged_envs.envs.pictures import draw_environments
from legged_envs.envs.saved_state import Arguments, StatefulEnv
from legged_envs.envs.spec import HasTaskSpec
from legged_envs.envs.task import Action, Info, Observation, Space, Task
from legged_envs.rng import RandomStreams
from legged_envs.sim import RobotState, make_simulation
from legged_envs.state import Tree, map_tree
from legged_envs.tables import TableRepr


class CoreVectorEnv(ManagedEnv, StatefulEnv, HasTaskSpec, VectorEnv, TableRepr):
    """A vector environment with a task. Derive from the class of the task, not from this class.

    There is no time limit and no autoreset: wrappers add time limit and autoreset. An environment
    with an ended episode runs on until ``reset(options={"reset_mask": mask})``.

    A step, in order: ``task.act``, recovery from bad physics, ``task.evaluate``, ``task.advance``,
    ``task.observe``. With ``cfg.advance_first``, ``advance`` comes before ``evaluate``.

    A reset, in order: end the running episodes, seed, default pose, ``task.place``,
    ``sim.forward``, ``task.begin_episodes``, ``task.observe``. A reset of some environments leaves
    every other environment bit-identical.

    ``info`` of a step holds ``cost``, shape (num_envs,), and ``costs``, shape (num_envs, K), in the
    order of ``cost_names``. ``info`` of a reset after episodes holds ``log``, a dict of scalars:
    means over the ended episodes, and under ``termination/…`` the number of episodes that ended for
    each reason. With ``info="arrays"`` ``log`` has rows: the numbers of each environment's episode.

    Args:
        task: The task; its ``cfg`` has robot, physics, scene and time limit.
        num_envs: Number of environments.
        first_env: Number of the first environment in a batch that several processes share.
        device: Device of the tensors and of engines that run on a GPU.
        sim: Name of the physics engine.
        array: ``"numpy"`` or ``"torch"``, the kind of arrays that are taken and returned.
        observations: ``"policy"`` for the vector of that group, ``"dict"`` for every group.
        info: ``"means"``, or ``"arrays"`` for a row for each environment in all of ``info``.
        render_mode: None or ``"rgb_array"``.

    Raises:
        ValueError: If an argument or a field of the configuration is not valid.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "autoreset_mode": AutoresetMode.DISABLED,
        "render_modes": ["rgb_array"],
    }

    def __init__(
        self,
        task: Task,
        num_envs: int,
        *,
        first_env: int = 0,
        device: str = "cpu",
        sim: str = "mujoco",
        array: str = "numpy",
        observations: str = "policy",
        info: str = "means",
        render_mode: str | None = None,
    ):
        num_envs, first_env = check_init(
            num_envs, first_env, array, observations, info, render_mode
        )
        task.cfg.check()
        self.arguments: Arguments = {
            "first_env": first_env,
            "device": device,
            "sim": sim,
            "array": array,
            "observations": observations,
            "info": info,
            "render_mode": render_mode,
        }
        """Arguments that the environment was made with, except task and number."""
        self.task = task
        """The task of the environments."""
        # A copy: a later change of the given configuration must not change half of this
        # environment.
        self.cfg: TaskCfg = copy.deepcopy(task.cfg)
        """Configuration of the task."""
        task.cfg = self.cfg
        self.num_envs = num_envs

        self.array = array
        """Kind of arrays that are taken and returned, ``"numpy"`` or ``"torch"``."""
        self.render_mode = render_mode

        self.step_dt = self.cfg.sim.step_dt
        """Duration of one control step, s."""
        self.decimation = self.cfg.sim.decimation
        """Physics steps per control step."""
        self.max_episode_length_s = self.cfg.episode_length_s
        """Time limit of an episode, s; ``TimeLimit`` enforces it."""
        self.max_episode_length = self.cfg.max_episode_length
        """Time limit of an episode, control steps; None without a time limit."""
        self.metadata = {**self.metadata, "render_fps": round(1.0 / self.step_dt)}

        self.shows_groups = observations == "dict"
        """True if every observation group is shown, not only ``"policy"``."""
        self._process = os.getpid()  # threads of an engine do not survive a fork
        with torch.inference_mode(False):  # buffers are plain tensors that anyone may write to
            self._make_simulation(sim, device)
            self._make_buffers()
            task.attach(self)
        if task.is_complete and not self.is_built:
            self.build()

    def _make_simulation(self, sim: str, device: str) -> None:
        cfg = self.cfg

        self.sim = make_simulation(sim, cfg.robot, cfg.sim, self.num_envs, device, cfg.scene)
        """The physics of all environments, seen through the first robot."""
        self.sim.viewer = cfg.viewer

        self.device = self.sim.device
        """Device of all tensors."""
        self.random = RandomStreams(self.num_envs, self.device, self.arguments["first_env"])
        """Random streams of the environments."""
        self.robots = {
            name: RobotState(robot, self.step_dt) for name, robot in self.sim.robots.items()
        }
        """State of each robot of the scene by name; the first is called ``"robot"``."""
        self.robot = self.robots["robot"]
        """State of the first robot."""
        self.ground = self.sim.ground
        """Rough ground; None on a plane."""

    def _make_buffers(self) -> None:
        self.num_steps = 0
        """Control steps since the environment was made."""
        self.is_built = False
        """True once :meth:`build` has run."""
        self.has_begun = False
        """True after the first reset, or after a state was loaded."""
        self.all_ids = torch.arange(self.num_envs, device=self.device)
        """Indices of all environments. Shape: (num_envs,)."""
        self.episode_steps = torch.zeros(self.num_envs, dtype=torch.int32, device=self.device)
        """Control steps of the present episodes. Shape: (num_envs,), int32."""
        self.had_bad_physics = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        """Episodes in which the physics diverged. Shape: (num_envs,), bool."""
        self.has_ended = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        """Episodes that are logged already and run on until a reset. Shape: (num_envs,), bool."""
        self.recovered: torch.Tensor | None = None
        """Environments that were reset in this step for bad physics. Shape: (num_envs,), bool.

        None if there are none.
        """

    def set_time_limit(self, seconds: float) -> None:
        """Set the time limit of the task, s; before wrappers are added."""
        self.cfg.episode_length_s = seconds
        self.max_episode_length_s = seconds
        self.max_episode_length = self.cfg.max_episode_length

    def build(self) -> None:
        """Let the task build its parts, and make the spaces. Called once."""
        with torch.inference_mode(False):
            spaces = self.task.build()
            if "policy" not in spaces.observations:
                raise ValueError(
                    f"observations need a group 'policy', got {list(spaces.observations)}"
                )
            self.cost_names = self.task.cost_names
            """Names of the columns of ``info["costs"]``."""
            self.cost_limits = self.task.cost_limits
            """Largest allowed mean per step of each cost."""
            self.log = make_log(self.arguments, self.task.log_names, self.num_envs, self.device)
            """Values of the episodes that ended, until a reset reports them."""
            self._make_spaces(spaces.observations, spaces.action)
            self.is_built = True
            self.task.verify()

    def _make_spaces(self, groups: dict[str, Space], action: Space) -> None:
        self.group_sizes = {name: gym.spaces.flatdim(space) for name, space in groups.items()}
        """Number of elements of each observation group, also of groups that are not shown."""
        shown = groups if self.shows_groups else {"policy": groups["policy"]}
        self.single_action_space = action
        self.action_space = batch_space(action, self.num_envs)
        self.single_observation_space = (
            gym.spaces.Dict(shown) if self.shows_groups else shown["policy"]
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

        self.last_observation: dict[str, Observation] = {}
        """Observation groups of the last step or reset."""
        for name, space in shown.items():
            zeros = create_empty_array(space, self.num_envs, np.zeros)
            self.last_observation[name] = map_tree(self._to_tensor, zeros)

    def _to_tensor(self, value: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(value).to(self.device)

    def reset(
        self,
        *,
        seed: int | list[int] | None = None,
        options: dict[str, object] | None = None,
    ) -> tuple[Observation, Info]:
        """Begin new episodes in all environments, or in some of them.

        Args:
            seed: Gives environment i the random streams of (seed, first_env + i); a list gives one
                seed to each. None continues the streams; the first reset draws a seed from the
                operating system.
            options: ``{"reset_mask": mask}`` with a mask of shape (num_envs,), bool, resets only
                these environments.

        Returns:
            The observations, and ``info``.

        Raises:
            ValueError: If the mask, the seed or an option is not valid.
            TypeError: If the mask or the seed is of another type.
            RuntimeError: If the first reset has a mask, or after ``close``.
        """
        self._check_usable("reset")
        mask = check_reset_options(options, self.num_envs, self.array, self.device)
        if mask is not None and not self.has_begun:
            raise RuntimeError(
                "the first reset must be of all environments: call reset() without a reset_mask"
            )
        seed = check_seed(seed, self.num_envs)
        env_ids = self.all_ids if mask is None else mask.nonzero().squeeze(1)
        if len(env_ids) == 0:
            return self._export_observation(), {}
        with step_mode(self.task.uses_inference_mode):
            self._log_episodes(env_ids)  # before the reset clears sums and counters
            self.start_episodes(env_ids, seed)
            rows = self.task.observe(env_ids)
            for name, last in self.last_observation.items():
                self.last_observation[name] = replace_rows(last, env_ids, rows[name])
        self.has_begun = True
        return self._export_observation(), self.log.report(self.task.take_log(), env_ids)

    def step(self, actions: Action) -> tuple[Observation, Tree, Tree, Tree, Info]:
        """Advance every environment by one control step.

        Args:
            actions: Finite numbers, an array or lists, shape (num_envs, num_actions), which are
                converted to float32 and clipped to the bounds of the action space.

        Returns:
            Observations, rewards, terminated, truncated and ``info``.

        Raises:
            TypeError: If the actions are of another type.
            ValueError: If the shape of the actions is wrong, or the actions are not finite.
            RuntimeError: Before the first ``reset``, or after ``close``.
        """
        self._check_usable("step")
        if not self.has_begun:
            raise RuntimeError("step() was called before reset()")
        action = check_actions(actions, self.action_space, self.array, self.device)
        task = self.task
        with step_mode(task.uses_inference_mode):
            task.act(action)
            # First of all, so that nothing below reads a state that is not finite.
            self.recovered = self._recover_bad_physics()
            self.episode_steps.add_(1)  # before the evaluation, which sees the finished step
            self.num_steps += 1
            for robot in self.robots.values():
                robot.read()
            if self.cfg.advance_first:
                task.advance()
            terminated, reward, cost, costs, truncated = task.evaluate()
            if self.recovered is not None:
                terminated = terminated | self.recovered  # not in place: managers keep theirs
                reward = reward.masked_fill(self.recovered, 0.0)  # the pose is already a new one
                cost = cost.masked_fill(self.recovered, 0.0)
                costs = costs.masked_fill(self.recovered.unsqueeze(1), 0.0)
            if not self.cfg.advance_first:
                task.advance()
            self._keep_observation(task.observe(None))
        if truncated is None:  # a task without terms that truncate
            truncated = torch.zeros_like(terminated)
        info = {"cost": cost, "costs": costs, **task.step_info()}
        return (
            self._export_observation(),
            export(reward, self.array),
            export(terminated, self.array),
            export(truncated, self.array),
            export(info, self.array),
        )

    def end_episodes(self, mask: Tree) -> None:
        """Write the log of episodes that a wrapper ends, and reset nothing.

        Args:
            mask: Environments, shape (num_envs,), bool.
        """
        with step_mode(self.task.uses_inference_mode):
            ended = torch.as_tensor(mask, device=self.device)
            self._log_episodes(ended.nonzero().squeeze(1))

    def observe_again(self) -> Observation:
        """Observe the present moment again, after something was changed from outside.

        Returns:
            The observations, with newly drawn noise.
        """
        with step_mode(self.task.uses_inference_mode):
            self.task.forget_last_observation()  # a history must not hold this step twice
            self._keep_observation(self.task.observe(None))
        return self._export_observation()

    def render(self) -> tuple[np.ndarray, ...]:
        """Draw the environments, from ``cfg.viewer.env_index`` on.

        Of more than 64 environments only the first four are drawn. The pictures of all other
        environments are grey, with a warning.

        Returns:
            A picture per environment, (height, width, 3), uint8; 480 × 640 by default.

        Raises:
            RuntimeError: If the environment was made without a ``render_mode``.
        """
        if self.render_mode is None:
            raise RuntimeError(
                "render() needs render_mode='rgb_array' when the environment is made"
            )
        return draw_environments(self.sim)

    def set_viewer(
        self, eye: tuple[float, float, float], lookat: tuple[float, float, float]
    ) -> None:
        """Move the camera of the next pictures.

        Args:
            eye: Position of the camera, m.
            lookat: Point that the camera looks at, m.

        Raises:
            ValueError: If the positions are not valid.
        """
        viewer = dataclasses.replace(self.cfg.viewer, eye=eye, lookat=lookat)
        viewer.check()
        self.cfg.viewer = viewer
        self.sim.viewer = viewer

    def close_extras(self, **kwargs: object) -> None:
        if getattr(self, "is_built", False):  # Gymnasium 1.2 also closes what could not be made
            self.task.close()
            self.sim.close()

    def start_episodes(self, env_ids: torch.Tensor, seed: int | list[int] | None) -> None:
        """Seed and place the environments ``env_ids`` (n,), and start their episodes."""
        if seed is None and not self.has_begun:
            seed = self.task.first_seed()
        if seed is not None:
            self.random.seed(seed, env_ids)  # before `place`, which draws
            first = seed if isinstance(seed, int) else seed[0]
            self._np_random, self._np_random_seed = seeding.np_random(first)
        self.sim.reset(env_ids)  # default pose and velocities; what `place` does not write stays
        self.episode_steps[env_ids] = 0
        self.has_ended[env_ids] = False
        self.had_bad_physics[env_ids] = False
        self.task.place(env_ids, seeded=seed is not None)
        self._read_first_pose(env_ids)  # after `place`: body poses follow from the joints
        self.task.begin_episodes(env_ids)

    def _recover_bad_physics(self) -> torch.Tensor | None:
        bad = self.sim.diverged()
        if bad is None:
            return None
        env_ids = bad.nonzero().squeeze(1)
        self.sim.reset(env_ids)
        self._read_first_pose(env_ids)
        self.had_bad_physics |= bad
        return bad

    def _read_first_pose(self, env_ids: torch.Tensor) -> None:
        self.sim.forward(env_ids)
        for robot in self.robots.values():
            robot.reset(env_ids)

    def _log_episodes(self, env_ids: torch.Tensor) -> None:
        """Log the episodes of ``env_ids`` that have begun and are not logged yet."""
        is_running = (self.episode_steps[env_ids] > 0) & ~self.has_ended[env_ids]
        env_ids = env_ids[is_running]  # a second reset without a step has no episode to log
        if len(env_ids) == 0:
            return
        steps = self.episode_steps[env_ids]
        values = self.task.end_episodes(env_ids, steps)
        bad_physics = self.had_bad_physics[env_ids]
        self.log.add(env_ids, steps.float() * self.step_dt, values, bad_physics)
        self.has_ended[env_ids] = True

    def _check_usable(self, call: str) -> None:
        if self.closed:
            raise RuntimeError(f"{call}() was called after close()")
        if self._process != os.getpid() and not self.sim.survives_fork:
            raise RuntimeError(
                f"{call}() was called in a process forked after this environment was made, where "
                "the physics' threads do not exist: make the environment in the new process, "
                "start that by 'spawn', or use cfg={'sim.num_threads': 1}"
            )
        if not self.is_built:
            self.build()

    def _keep_observation(self, observation: Mapping[str, Observation]) -> None:
        self.last_observation = {name: observation[name] for name in self.last_observation}

    def _export_observation(self) -> Observation:
        # A copy: the caller's changes must not reach the last observation.
        observation = {
            name: export(value, self.array) for name, value in self.last_observation.items()
        }
        return observation if self.shows_groups else observation["policy"]
