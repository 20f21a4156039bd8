"""Loops that :mod:`benchmarks.throughput` times: environments in a long run, and only physics."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import VectorEnv

from legged_envs.envs import CoreVectorEnv
from legged_envs.sim.engines.mujoco import MujocoSimulation
from legged_envs.wrappers import TimeLimit
from legged_envs.wrappers.plumbing.layers import layers

ROUND_ENV_STEPS = 12_000
"""Environment steps of each side in a round, about 0.4 s on two cores."""
MIN_CHUNK = 6
"""Fewest control steps that are timed without a break."""
MAX_CHUNK = 25
"""Most control steps that are timed without a break. Raw physics has no resets: few may fall."""
WARM_UP_ENV_STEPS = 100_000
"""Environment steps before the first timed run."""
AMPLITUDE = 0.25
"""Greatest amplitude of the joints' slow swing about the standing pose, in the action's unit."""
FREQUENCIES_HZ = (0.3, 1.5)
"""Lowest and highest frequency of the swing, Hz."""

Stretch = tuple[np.ndarray, list[np.ndarray]]
"""States of all robots, and the joint targets of each control step from there, rad."""


class SlowActions:
    """Actions that swing each joint slowly about the standing pose, each robot differently.

    Args:
        shape: Shape of an action.
        step_dt: Duration of a control step, s.
        rng: Generator of amplitudes, frequencies and phases.
    """

    def __init__(self, shape: tuple[int, ...], step_dt: float, rng: np.random.Generator):
        low, high = FREQUENCIES_HZ
        self._amplitude = rng.uniform(0.0, AMPLITUDE, shape)
        self._omega = 2.0 * np.pi * rng.uniform(low, high, shape) * step_dt
        self._phase = rng.uniform(0.0, 2.0 * np.pi, shape)
        self._step = 0

    def take(self, steps: int) -> list[np.ndarray]:
        """Return the next ``steps`` actions."""
        actions = []
        for _ in range(steps):
            wave = np.sin(self._omega * self._step + self._phase)
            actions.append((self._amplitude * wave).astype(np.float32))
            self._step += 1
        return actions


class EnvLoop:
    """A stack of wrappers in the middle of a long run.

    Args:
        task_id: Id of the task.
        num_envs: Number of environments.
        wrap: Adds wrappers to the wrappers of ``gymnasium.make_vec``.
    """

    def __init__(
        self,
        task_id: str,
        num_envs: int,
        wrap: Callable[[VectorEnv], VectorEnv] | None = None,
    ):
        rng = np.random.default_rng(0)
        envs = gym.make_vec(task_id, num_envs=num_envs)
        if wrap is not None:
            envs = wrap(envs)
        self.envs: VectorEnv = envs
        """The stack."""
        self.core = cast(CoreVectorEnv, self.envs.unwrapped)
        """The environment below the wrappers."""
        self.sim = cast(MujocoSimulation, self.core.sim)
        """Its simulation."""
        self.num_envs = num_envs
        """Number of environments."""
        self.chunk = min(max(ROUND_ENV_STEPS // num_envs, MIN_CHUNK), MAX_CHUNK)
        """Control steps of one timed run."""
        self.turns = max(ROUND_ENV_STEPS // (num_envs * self.chunk), 1)
        """Timed runs in a round."""
        action_shape = (num_envs, self.sim.model.nu)
        self._actions = SlowActions(action_shape, self.core.step_dt, rng)
        self.envs.reset(seed=0)
        self._spread_ages(rng)
        rows = self.sim.batch.state.copy()
        targets = self.sim.batch.bind("ctrl").copy()

        self.stretch: Stretch = (rows, [targets])
        """States before the last timed run, and the joint targets of each of its steps."""
        self.steps = 0
        """Control steps of the timed runs."""
        self.ended = 0
        """Episodes that ended in the timed runs."""
        warm_up_steps = max(10, min(100, WARM_UP_ENV_STEPS // num_envs))
        self.run(self._actions.take(warm_up_steps))
        self.steps = 0
        self.ended = 0

    def _spread_ages(self, rng: np.random.Generator) -> None:
        """Let time limits, commands and pushes fall due one after another, as in a long run."""
        limit = next(layer for layer in layers(self.envs) if isinstance(layer, TimeLimit))
        limit.elapsed_steps = rng.integers(0, limit.time_limit, self.num_envs)
        commands = self.core.commands.state_dict()
        events = self.core.events.state_dict()
        timers = []
        for term in commands["terms"].values():
            if "resampling" in term:
                timers.append(term["resampling"])
        timers.extend(events["timers"].values())
        for timer in timers:
            share = torch.from_numpy(rng.random(self.num_envs))
            left = (timer["due"] - timer["now"]).double() * share
            timer["due"] = timer["now"] + 1 + left.long()
            timer["earliest"] = int(timer["due"].min())
        self.core.commands.load_state_dict(commands)
        self.core.events.load_state_dict(events)

    def next_actions(self) -> list[np.ndarray]:
        """Return the actions of the next timed run."""
        return self._actions.take(self.chunk)

    def run(self, actions: Sequence[np.ndarray]) -> tuple[float, float]:
        """Step through ``actions``. Returns wall-clock and CPU seconds."""
        wall = 0.0
        cpu = 0.0
        targets: list[np.ndarray] = []
        rows = self.sim.batch.state.copy()
        ctrl = self.sim.batch.bind("ctrl")
        for action in actions:
            wall_begun = time.perf_counter()
            cpu_begun = time.process_time()
            _, _, terminated, truncated, _ = self.envs.step(action)
            wall += time.perf_counter() - wall_begun
            cpu += time.process_time() - cpu_begun
            targets.append(ctrl.copy())
            self.ended += int((terminated | truncated).sum())
        self.steps += len(targets)
        self.stretch = (rows, targets)
        return wall, cpu

    def run_round(self) -> float:
        """Step through the timed runs of a round. Returns wall-clock seconds."""
        seconds = 0.0
        for _ in range(self.turns):
            wall, _ = self.run(self.next_actions())
            seconds += wall
        return seconds


class RawLoop(ABC):
    """Only physics: the model of an environment, from the states and with the targets of its run.

    It has no resets. Loading states and writing targets is not timed.
    """

    def run(self, rows: np.ndarray, targets: Sequence[np.ndarray]) -> tuple[float, float]:
        """Step through ``targets`` from the state ``rows``. Returns wall-clock and CPU seconds."""
        wall = 0.0
        cpu = 0.0
        self._load(rows)
        for target in targets:
            self._write(target)
            wall_begun = time.perf_counter()
            cpu_begun = time.process_time()
            self._step()
            wall += time.perf_counter() - wall_begun
            cpu += time.process_time() - cpu_begun
        return wall, cpu

    @abstractmethod
    def _load(self, rows: np.ndarray) -> None:
        """Put all robots into the states ``rows``."""

    @abstractmethod
    def _write(self, target: np.ndarray) -> None:
        """Set the joint targets of all robots."""

    @abstractmethod
    def _step(self) -> None:
        """Advance all robots by a control step."""


class BatchLoop(RawLoop):
    """Only the batch engine.

    Args:
        env: Environments with the model.
    """

    def __init__(self, env: EnvLoop):
        batch = env.sim.batch

        self.batch = type(batch)(env.sim.model, env.num_envs, batch.nthread)
        """The engine's batch."""
        self._ctrl = self.batch.bind("ctrl")
        self._decimation = env.core.cfg.sim.decimation

    def _load(self, rows: np.ndarray) -> None:
        self.batch.state[:] = rows

    def _write(self, target: np.ndarray) -> None:
        self._ctrl[:] = target

    def _step(self) -> None:
        self.batch.step(nstep=self._decimation)


class PlainLoop(RawLoop):
    """As many Python threads as the engine has, each calling ``mj_step`` on its share.

    Args:
        env: Environments with the model.
    """

    def __init__(self, env: EnvLoop):
        import mujoco  # later than the simulation's module, which chooses MuJoCo's renderer

        self._mujoco = mujoco
        self._model = env.sim.model
        self._decimation = env.core.cfg.sim.decimation
        self._datas = [mujoco.MjData(self._model) for _ in range(env.num_envs)]
        self._ctrls = [data.ctrl for data in self._datas]
        num_threads = env.sim.batch.nthread
        self._shares = [self._datas[i::num_threads] for i in range(num_threads)]
        self._pool = ThreadPoolExecutor(num_threads)

    def _load(self, rows: np.ndarray) -> None:
        everything = self._mujoco.mjtState.mjSTATE_INTEGRATION
        for data, row in zip(self._datas, rows, strict=True):
            self._mujoco.mj_setState(self._model, data, row, everything)

    def _write(self, target: np.ndarray) -> None:
        for ctrl, row in zip(self._ctrls, target, strict=True):
            ctrl[:] = row

    def _step(self) -> None:
        # mj_step frees the interpreter, so the threads run at the same time.
        for _ in self._pool.map(self._step_share, self._shares):
            pass

    def _step_share(self, share: list[Any]) -> None:
        mj_step = self._mujoco.mj_step
        for data in share:
            mj_step(self._model, data, self._decimation)
