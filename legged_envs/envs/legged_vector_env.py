"""The vector environment: one lifecycle for every robot and task."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from legged_envs.envs.arguments import ARRAYS, check_action, check_reset_options, check_seed
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import (
    ActionManager,
    CommandManager,
    CostManager,
    EventManager,
    ObservationManager,
    Place,
    Recorded,
    RewardManager,
    TerminationManager,
)
from legged_envs.managers.observation import OBSERVATION_LIMIT
from legged_envs.rng import RandomStreams
from legged_envs.sim import RobotState, make_simulation

OBSERVATIONS = ("policy", "dict")


@contextmanager
def _torch_mode() -> Iterator[None]:
    """How an environment runs its batched maths: without gradients' bookkeeping, on one thread.

    The maths of a step gain nothing from more threads, and OpenMP's waiting threads would spin on the cores that the
    physics is about to use.
    """
    threads = torch.get_num_threads()
    if threads != 1:
        torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)


class LeggedVectorEnv(VectorEnv):
    """``num_envs`` robots with one task, without time limit and without autoreset (wrappers add both).

    A step: action → joint targets → ``decimation`` physics steps → terminations, rewards, costs → commands and pushes
    → observations. An environment whose episode ended goes on until it is reset with
    ``reset(options={"reset_mask": mask})``. A reset leaves every other environment bit-identical.

    ``info`` holds, of the kind of array that the observations are: on every step ``cost`` (num_envs,) and ``costs``
    (num_envs, K) in the order of ``cost_names``; from a reset that ended episodes ``log``, a dict of scalars: the mean
    over those episodes of each reward term (per second), cost term (per step) and how many ended for which reason.

    Args:
        cfg: The task.
        num_envs: Number of robots.
        device: Torch device.
        sim: Name of the physics engine.
        array: ``"numpy"`` or ``"torch"``: the kind of arrays taken and given.
        observations: ``"policy"`` gives the policy's vector, ``"dict"`` every group by name.
        render_mode: None or ``"rgb_array"``.
        compile: Fuse the maths of a step into C++ with TorchInductor. A step of one robot then takes about half the
            time, and its results differ in the last digits. Compiling takes about half a minute on the first call for
            a task and ``num_envs``; the result is kept in Inductor's cache folder (``TORCHINDUCTOR_CACHE_DIR``), from
            which loading it takes two seconds. Terms that you wrote run as they are written.

    Raises:
        ValueError: If an argument or a field of ``cfg`` is not valid.
        RuntimeError: If ``compile`` finds no C++ compiler.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "autoreset_mode": AutoresetMode.DISABLED,
        "render_modes": ["rgb_array"],
        "render_fps": 50,
    }

    def __init__(
        self,
        cfg: TaskCfg,
        num_envs: int,
        *,
        device: str = "cpu",
        sim: str = "mujoco",
        array: str = "numpy",
        observations: str = "policy",
        render_mode: str | None = None,
        compile: bool = False,
    ):
        if not isinstance(num_envs, int) or isinstance(num_envs, bool) or num_envs < 1:
            raise ValueError(f"num_envs must be a positive integer, got {num_envs!r}")
        if array not in ARRAYS:
            raise ValueError(f"array must be one of {ARRAYS}, got {array!r}")
        if observations not in OBSERVATIONS:
            raise ValueError(f"observations must be one of {OBSERVATIONS}, got {observations!r}")
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        if not isinstance(compile, bool):
            raise ValueError(f"compile must be True or False, got {compile!r}")
        self._arguments = {
            "device": device,
            "sim": sim,
            "array": array,
            "observations": observations,
            "render_mode": render_mode,
            "compile": compile,
        }
        cfg = copy.deepcopy(cfg)  # what is changed in it later must not change half of this environment
        self.cfg = cfg
        self.num_envs = num_envs
        self.array = array
        self.render_mode = render_mode
        with torch.inference_mode(False):  # buffers are plain tensors: they may be written to from anywhere
            self.sim = make_simulation(sim, cfg.robot, cfg.sim, num_envs, device)
            self.device = self.sim.device
            self.step_dt = cfg.sim.step_dt
            """Control time step, s."""
            self.random = RandomStreams(num_envs, self.device)
            self.robot = RobotState(self.sim, self.step_dt)
            self.commands = CommandManager(self, cfg.commands, self.random)
            self.actions = ActionManager(self, cfg.action, self.random)
            self.events = EventManager(self, cfg.events, self.random)
            self._all_ids = torch.arange(num_envs, device=self.device)
            self.robot.reset(self._all_ids)
            self.observations = ObservationManager(self, cfg.observations, self.random)
            self.rewards = RewardManager(self, cfg.rewards, cfg.only_positive_rewards)
            self.costs = CostManager(self, cfg.costs)
            self.terminations = TerminationManager(self, cfg.terminations)
            parts: tuple[Any, ...] = (*self.robot.owners(), self.terminations, self.rewards, self.costs)
            self._evaluate = Recorded(parts, self._state(), compile)
            self._dict_observations = observations == "dict"
            self._observation_groups = tuple(cfg.observations) if self._dict_observations else ("policy",)
            self.observations.record(self._observation_groups, self._state(), compile)
        self.metadata = {**self.metadata, "render_fps": round(1.0 / self.step_dt)}
        self._define_spaces()
        self._episode_steps = torch.zeros(num_envs, dtype=torch.int32, device=self.device)
        self._bad_physics = torch.zeros(num_envs, dtype=torch.bool, device=self.device)
        self._ended = torch.zeros(num_envs, dtype=torch.bool, device=self.device)
        self._some_ended = False
        self._needs_seed = True
        self._last_observation: dict[str, torch.Tensor] | None = None

    def _define_spaces(self) -> None:
        sizes = self.observations.group_sizes
        boxes: dict[str, gym.Space] = {
            name: gym.spaces.Box(-OBSERVATION_LIMIT, OBSERVATION_LIMIT, (sizes[name],))
            for name in self._observation_groups
        }
        self.single_observation_space = gym.spaces.Dict(boxes) if self._dict_observations else boxes["policy"]
        self.single_action_space = gym.spaces.Box(-1.0, 1.0, (len(self.cfg.robot.joint_names),))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _state(self) -> list[Place]:
        """Where the changing tensors are that terms read."""
        return [
            *((owner, name) for owner in self.robot.owners() for name in (*owner.READS, *owner.WRITES)),
            *((self.sim.parameters, name) for name in vars(self.sim.parameters)),
            *((self.actions, name) for name in ("current", "previous", "before_previous")),
            *((term, name) for term in self.commands.terms.values() for name in term.tensors),
        ]

    @property
    def cost_names(self) -> tuple[str, ...]:
        """Names of the columns of ``info["costs"]``."""
        return self.costs.names

    @property
    def cost_limits(self) -> tuple[float, ...]:
        """What each column of ``info["costs"]`` may be on average per step."""
        return tuple(term.limit for term in self.cfg.costs.values())

    # --- Gymnasium ---------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start new episodes.

        Args:
            seed: An int gives environment i the random streams of (seed, i); a list gives one seed to each. None goes
                on with the streams as they are (the first reset seeds them from the operating system).
            options: ``{"reset_mask": mask}`` resets only some environments. Shape: (num_envs,), bool.

        Raises:
            ValueError: If the mask or the list of seeds has the wrong length, or an option is unknown.
            TypeError: If the mask is not boolean.
        """
        self._check_open("reset")
        mask = check_reset_options(options, self.num_envs, self.array, self.device)
        env_ids = self._all_ids if mask is None else mask.nonzero().squeeze(1)
        if mask is not None and self._last_observation is None:
            raise RuntimeError("the first reset must be of all environments: call reset() without a reset_mask")
        seed = check_seed(seed, self.num_envs)
        if len(env_ids) == 0:
            return self._export_observation(), {}
        with _torch_mode():
            log = self._take_log(env_ids) if self._last_observation is not None else None
            self._start_episodes(env_ids, seed)
            observation = self.observations.compute(self._observation_groups, env_ids)
        if mask is not None:
            assert self._last_observation is not None
            last = self._last_observation
            observation = {name: last[name].index_copy(0, env_ids, rows) for name, rows in observation.items()}
        self._last_observation = observation
        return self._export_observation(), (self._log(log) if log is not None else {})

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance every environment by one control step.

        Args:
            actions: In [−1, 1]; values outside are clipped. Shape: (num_envs, num_joints), float32.

        Returns:
            observation, reward (num_envs,), terminated (num_envs,), truncated (num_envs,), all False, and info.

        Raises:
            RuntimeError: Before the first ``reset`` or after ``close``.
            TypeError: If the actions are of the wrong kind or dtype.
            ValueError: If the actions have the wrong shape or are not finite.
        """
        self._check_open("step")
        if self._last_observation is None:
            raise RuntimeError("step() was called before reset()")
        action = check_action(actions, self.action_space.shape, self.array).to(self.device)
        with _torch_mode():
            self.sim.set_joint_targets(self.actions.process(action))
            self.sim.step(self.cfg.sim.decimation)
            bad = self._recover_bad_physics()
            self.robot.read()
            if self._some_ended:
                self._evaluate_running()
            else:
                self._evaluate()
            terminated, reward = self.terminations.terminated, self.rewards.total
            cost, costs = self.costs.total, self.costs.values
            if bad is not None:
                terminated, reward = terminated | bad, reward.masked_fill(bad, 0.0)
                cost, costs = cost.masked_fill(bad, 0.0), costs.masked_fill(bad[:, None], 0.0)
            self._episode_steps.add_(~self._ended if self._some_ended else 1)
            self.commands.advance()
            for env_ids in self.events.advance():
                self.robot.refresh(env_ids)
            observation = self.observations.observe()
        self._last_observation = observation
        truncated = torch.zeros_like(terminated)
        return (
            self._export_observation(),
            self._export(reward),
            self._export(terminated),
            self._export(truncated),
            self._export({"cost": cost, "costs": costs}),
        )

    def render(self) -> tuple[np.ndarray, ...]:
        """Pictures of the first four environments (all if there are fewer), each (480, 640, 3) uint8."""
        if self.render_mode is None:
            raise RuntimeError("render() needs render_mode='rgb_array' when the environment is made")
        return tuple(self.sim.render(i) for i in range(min(self.num_envs, 4)))

    def close_extras(self, **kwargs: Any) -> None:
        self.sim.close()

    def end_episodes(self, mask: Any) -> None:
        """Tell that the episodes of ``mask`` (num_envs,) are over: what follows until their reset enters no log.

        An autoreset in the next step calls this, since the physics of an ended episode runs on for a step.
        """
        self._ended |= torch.as_tensor(mask, device=self.device)
        self._some_ended = bool(self._ended.any())

    # --- state -------------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        """Everything that the future of this environment depends on, copied."""
        if self._last_observation is None:
            raise RuntimeError("get_state() was called before reset()")
        return {
            "sim": self.sim.get_state(),
            **{name: getattr(self, name).state_dict() for name in self._STATEFUL},
            "sums": [self.rewards.episode_sums.clone(), self.costs.episode_sums.clone()],
            "episode_steps": self._episode_steps.clone(),
            "bad_physics": self._bad_physics.clone(),
            "ended": self._ended.clone(),
            "observation": {name: value.clone() for name, value in self._last_observation.items()},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Return exactly to a state from ``get_state`` of an environment made with the same arguments.

        Raises:
            ValueError: If its observations are others.
        """
        given = {name: tuple(value.shape) for name, value in state["observation"].items()}
        ours = {name: (self.num_envs, self.observations.group_sizes[name]) for name in self._observation_groups}
        if given != ours:
            raise ValueError(f"the state is of an environment with observations {given}, this one has {ours}")
        with torch.inference_mode(False):
            self.sim.set_state(state["sim"])
            for name in self._STATEFUL:
                getattr(self, name).load_state_dict(state[name])
            for manager, sums in zip((self.rewards, self.costs), state["sums"], strict=True):
                manager.episode_sums.copy_(sums)
            self._episode_steps.copy_(state["episode_steps"])
            self._bad_physics.copy_(state["bad_physics"])
            self._ended.copy_(state["ended"])
            self._some_ended = bool(self._ended.any())
            self._last_observation = {name: value.clone() for name, value in state["observation"].items()}
        self._needs_seed = False

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a deep copy holds: what the environment is made from, and its state."""
        state = None if self._last_observation is None else self.get_state()
        return {"made_from": (self.cfg, self.num_envs, self._arguments), "spec": self.spec, "state": state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        cfg, num_envs, arguments = state["made_from"]
        self.__init__(cfg, num_envs, **arguments)  # type: ignore[misc]
        self.spec = state["spec"]
        if state["state"] is not None:
            self.set_state(state["state"])

    _STATEFUL = ("random", "robot", "actions", "commands", "events", "terminations")

    def __str__(self) -> str:
        """The managers as tables."""
        managers = (
            self.actions,
            self.commands,
            self.observations,
            self.rewards,
            self.costs,
            self.terminations,
            self.events,
        )
        return "\n\n".join(str(manager) for manager in managers)

    # --- steps of the lifecycle --------------------------------------------------------------------------------------

    def _start_episodes(self, env_ids: torch.Tensor, seed: int | list[int] | None) -> None:
        if seed is None and self._needs_seed:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        if seed is not None:
            self.random.seed(seed, env_ids)
            self.events.apply("startup", env_ids)
            self._needs_seed = False
        self.sim.reset(env_ids)
        self.commands.reset(env_ids)
        self.events.reset(env_ids)
        self.sim.forward(env_ids)
        self.actions.reset(env_ids)
        self.robot.reset(env_ids)
        self.commands.placed(env_ids)
        self.terminations.reset(env_ids)
        self._episode_steps[env_ids] = 0
        if self._some_ended:
            self._ended[env_ids] = False
            self._some_ended = bool(self._ended.any())
        self._bad_physics[env_ids] = False

    def _evaluate_running(self) -> None:
        """Evaluate the terms, but let nothing enter the statistics of the episodes that are over."""
        ended = self._ended.nonzero().squeeze(1)
        rewards, costs = self.rewards.episode_sums[ended], self.costs.episode_sums[ended]
        reasons = self.terminations.reasons[ended]
        self._evaluate()
        self.rewards.episode_sums[ended], self.costs.episode_sums[ended] = rewards, costs
        self.terminations.reasons[ended] = reasons
        self.terminations.terminated = self.terminations.reasons.any(1)

    def _recover_bad_physics(self) -> torch.Tensor | None:
        """Put environments whose state is not finite back on their feet; returns which, or None."""
        bad = self.sim.diverged()
        if bad is None:
            return None
        env_ids = bad.nonzero().squeeze(1)
        self.sim.reset(env_ids)
        self.sim.forward(env_ids)
        self.robot.reset(env_ids)
        self._bad_physics |= bad
        return bad

    def _take_log(self, env_ids: torch.Tensor) -> torch.Tensor | None:
        """Statistics of the episodes of ``env_ids`` that ended; None if none had begun."""
        steps = self._episode_steps[env_ids]
        begun = steps > 0
        if not begun.all():
            env_ids, steps = env_ids[begun], steps[begun]
        if len(env_ids) == 0:
            return None
        seconds = steps * self.step_dt
        return torch.cat(
            (
                torch.stack((torch.tensor(float(len(env_ids)), device=self.device), seconds.mean())),
                self.rewards.take_episode_means(env_ids, seconds),
                self.costs.take_episode_means(env_ids, steps),
                self.terminations.counts(env_ids),
                self._bad_physics[env_ids].sum(0, keepdim=True),
            )
        )

    def _log(self, values: torch.Tensor) -> dict[str, Any]:
        names = [
            "episodes",
            "episode_length_s",
            *(f"reward/{name}" for name in self.rewards.names),
            *(f"cost/{name}" for name in self.costs.names),
            *(f"termination/{name}" for name in self.terminations.names),
            "termination/bad_physics",
        ]
        return {"log": dict(zip(names, self._export(values), strict=True))}

    # --- conversions --------------------------------------------------------------------------------------

    def _check_open(self, call: str) -> None:
        if self.closed:
            raise RuntimeError(f"{call}() was called after close()")

    def _export(self, value: Any) -> Any:
        """Tensors as this environment's kind of array (sharing memory)."""
        if isinstance(value, dict):
            return {key: self._export(item) for key, item in value.items()}
        # A tensor made in inference mode could not take part in the caller's autograd, its clone can.
        return value.numpy() if self.array == "numpy" else value.clone()

    def _export_observation(self) -> Any:
        """A copy of the last observation: what the caller does to it cannot reach a later partial reset."""
        assert self._last_observation is not None
        observation: dict[str, Any] = {name: value.clone() for name, value in self._last_observation.items()}
        if self.array == "numpy":
            observation = {name: value.numpy() for name, value in observation.items()}
        return observation if self._dict_observations else observation["policy"]


def unwrap(env: VectorEnv) -> LeggedVectorEnv:
    """The :class:`LeggedVectorEnv` under a stack of wrappers.

    Raises:
        TypeError: If there is another environment.
    """
    core: object = env.unwrapped
    if not isinstance(core, LeggedVectorEnv):
        raise TypeError(f"expected a LeggedVectorEnv under the wrappers, got {type(core).__name__}")
    return core
