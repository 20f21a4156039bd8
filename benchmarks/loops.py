"""What :mod:`benchmarks.throughput` times: environments in the middle of a long run, and the physics by itself."""

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

from legged_envs.envs import LeggedVectorEnv
from legged_envs.sim.engines.mujoco import MujocoSimulation
from legged_envs.wrappers import TimeLimit
from legged_envs.wrappers.plumbing.base import layers

ROUND_ENV_STEPS = 12_000
"""Environment steps of each side in a round, about 0.4 s on two cores."""
MIN_CHUNK, MAX_CHUNK = 6, 25
"""Control steps timed without a break. Raw physics has no resets: it must not run long enough for many to fall."""
AMPLITUDE = 0.25
"""Greatest amplitude of the joints' slow swing about the standing pose, in the action's unit."""
FREQUENCIES_HZ = (0.3, 1.5)


class SlowActions:
    """Actions that swing each joint slowly about the standing pose, each robot in its own way."""

    def __init__(self, shape: tuple[int, ...], step_dt: float, rng: np.random.Generator):
        self._amplitude = rng.uniform(0.0, AMPLITUDE, shape)
        self._omega = 2.0 * np.pi * rng.uniform(*FREQUENCIES_HZ, shape) * step_dt
        self._phase = rng.uniform(0.0, 2.0 * np.pi, shape)
        self._step = 0

    def take(self, steps: int) -> list[np.ndarray]:
        """The next ``steps`` actions."""
        times = range(self._step, self._step + steps)
        self._step += steps
        return [
            (self._amplitude * np.sin(self._omega * t + self._phase)).astype(np.float32)
            for t in times
        ]


class EnvLoop:
    """A stack of wrappers, by default that of ``gymnasium.make_vec``, in the middle of a long run."""

    def __init__(
        self,
        task_id: str,
        num_envs: int,
        compile: bool,
        wrap: Callable[[VectorEnv], VectorEnv] | None = None,
    ):
        rng = np.random.default_rng(0)
        envs = gym.make_vec(task_id, num_envs=num_envs, compile=compile)
        self.envs: VectorEnv = envs if wrap is None else wrap(envs)
        self.core = cast(LeggedVectorEnv, self.envs.unwrapped)
        self.sim = cast(MujocoSimulation, self.core.sim)
        self.num_envs = num_envs
        self.chunk = min(max(ROUND_ENV_STEPS // num_envs, MIN_CHUNK), MAX_CHUNK)
        """Control steps of one timed run."""
        self.turns = max(ROUND_ENV_STEPS // (num_envs * self.chunk), 1)
        """Timed runs in a round."""
        self._actions = SlowActions((num_envs, self.sim.model.nu), self.core.step_dt, rng)
        self.steps = 0
        self.ended = 0
        """Episodes that ended in the timed steps."""
        self.envs.reset(seed=0)
        self._spread_ages(rng)
        self.stretch = self.sim.batch.state.copy(), [self.sim.batch.bind("ctrl").copy()]
        """States before the last timed run, and the joint targets of each of its steps, rad."""
        self.run(self._actions.take(max(10, min(100, 100_000 // num_envs))))
        self.steps = self.ended = 0

    def _spread_ages(self, rng: np.random.Generator) -> None:
        """Let time limits, commands and pushes fall due one after another, as they do in a long run."""
        limit = next(layer for layer in layers(self.envs) if isinstance(layer, TimeLimit))
        limit.elapsed_steps = rng.integers(0, limit.time_limit, self.num_envs)
        commands, events = self.core.commands.state_dict(), self.core.events.state_dict()
        resampled = [
            term["resampling"] for term in commands["terms"].values() if "resampling" in term
        ]
        for timer in [*resampled, *events["timers"].values()]:
            left = (timer["due"] - timer["now"]).double() * torch.from_numpy(
                rng.random(self.num_envs)
            )
            timer["due"] = timer["now"] + 1 + left.long()
            timer["earliest"] = int(timer["due"].min())
        self.core.commands.load_state_dict(commands)
        self.core.events.load_state_dict(events)

    def next_actions(self) -> list[np.ndarray]:
        """The actions of the next timed run."""
        return self._actions.take(self.chunk)

    def run(self, actions: Sequence[np.ndarray]) -> tuple[float, float]:
        """Step through ``actions``. Returns wall-clock and CPU seconds."""
        wall = cpu = 0.0
        targets: list[np.ndarray] = []
        rows, ctrl = self.sim.batch.state.copy(), self.sim.batch.bind("ctrl")
        for action in actions:
            wall_begun, cpu_begun = time.perf_counter(), time.process_time()
            _, _, terminated, truncated, _ = self.envs.step(action)
            wall += time.perf_counter() - wall_begun
            cpu += time.process_time() - cpu_begun
            targets.append(ctrl.copy())
            self.ended += int((terminated | truncated).sum())
        self.steps += len(targets)
        self.stretch = rows, targets
        return wall, cpu


class RawLoop(ABC):
    """Nothing but physics: the same model from the states and with the joint targets of the environment's last run.

    It has no resets. Loading states and writing targets is not timed.
    """

    def run(self, rows: np.ndarray, targets: Sequence[np.ndarray]) -> tuple[float, float]:
        """Step through ``targets`` from the state ``rows``. Returns wall-clock and CPU seconds."""
        wall = cpu = 0.0
        self._load(rows)
        for target in targets:
            self._write(target)
            wall_begun, cpu_begun = time.perf_counter(), time.process_time()
            self._step()
            wall += time.perf_counter() - wall_begun
            cpu += time.process_time() - cpu_begun
        return wall, cpu

    @abstractmethod
    def _load(self, rows: np.ndarray) -> None: ...

    @abstractmethod
    def _write(self, target: np.ndarray) -> None: ...

    @abstractmethod
    def _step(self) -> None: ...


class BatchLoop(RawLoop):
    """The batch engine by itself."""

    def __init__(self, env: EnvLoop):
        self._batch = type(env.sim.batch)(env.sim.model, env.num_envs, env.sim.batch.nthread)
        self._ctrl = self._batch.bind("ctrl")
        self._decimation = env.core.cfg.sim.decimation

    def _load(self, rows: np.ndarray) -> None:
        self._batch.state[:] = rows

    def _write(self, target: np.ndarray) -> None:
        self._ctrl[:] = target

    def _step(self) -> None:
        self._batch.step(nstep=self._decimation)


class PlainLoop(RawLoop):
    """As many Python threads as the engine has, each calling ``mj_step`` (which frees the interpreter) on its share."""

    def __init__(self, env: EnvLoop):
        import mujoco  # later than the simulation's module, which chooses MuJoCo's renderer

        self._mujoco = mujoco
        self._model, self._decimation = env.sim.model, env.core.cfg.sim.decimation
        self._datas = [mujoco.MjData(self._model) for _ in range(env.num_envs)]
        self._ctrls = [data.ctrl for data in self._datas]
        num_threads = env.sim.batch.nthread
        self._shares = [self._datas[i::num_threads] for i in range(num_threads)]
        self._pool = ThreadPoolExecutor(num_threads)

    def _load(self, rows: np.ndarray) -> None:
        for data, row in zip(self._datas, rows, strict=True):
            self._mujoco.mj_setState(
                self._model, data, row, self._mujoco.mjtState.mjSTATE_INTEGRATION
            )

    def _write(self, target: np.ndarray) -> None:
        for ctrl, row in zip(self._ctrls, target, strict=True):
            ctrl[:] = row

    def _step(self) -> None:
        for _ in self._pool.map(self._step_share, self._shares):
            pass

    def _step_share(self, share: list[Any]) -> None:
        mj_step, model, decimation = self._mujoco.mj_step, self._model, self._decimation
        for data in share:
            mj_step(model, data, decimation)
