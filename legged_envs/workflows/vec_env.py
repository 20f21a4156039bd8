"""What steps an ``RLTask``: ``VecEnvBase``, with rl_games' buffers ``VecEnvRLGames``, and both with the policy in a
thread of its own, ``VecEnvMT`` and ``VecEnvRLGamesMT``."""

import ctypes
import queue
import threading
import time
import warnings
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from legged_envs.checks import check_choice, check_number, whole_number
from legged_envs.state import mapped
from legged_envs.workflows.articulation_view import Scene
from legged_envs.wrappers import TimeLimit

_SLICE, _GRACE = 0.02, 0.4
"""How often a thread that waits looks whether it still should, and how long the other has to end by itself, s."""


class World:
    """The simulation of a task, which plays from the start. ``pause``, ``play`` and ``stop`` may be called from any
    thread; a :class:`VecEnvMT` heeds them."""

    def __init__(self, core: Any):
        self._core, self._playing, self.stopped, self.scene = core, True, False, Scene(core)

    def is_playing(self) -> bool:
        return self._playing

    def play(self) -> None:
        self._playing, self.stopped = True, False

    def pause(self) -> None:
        self._playing = False

    def stop(self) -> None:
        self._playing, self.stopped = False, True

    def step(self, render: bool = False) -> None:
        """One physics step of every environment."""
        self._core.sim.step(1)

    def reset(self) -> None:
        """Set up scene and task, once: what ``set_task`` leaves to the caller with ``init_sim=False``."""
        self._core.task.start(self.scene)


class VecEnvBase:
    """Steps the environments of one task. Whoever is flagged in ``reset_buf``, at first all, is reset at the begin of
    the next step, so that what a step returns with a flag is the true last observation. ``headless=False`` shows the
    first environment in a window. ``sim_device``, a torch device or the number of a GPU, has precedence over that of
    the task's configuration; ``sim`` is the physics engine."""

    def __init__(self, headless: bool = True, sim_device: int | str | None = None, sim: str = "mujoco"):
        self.headless, self.sim = headless, sim
        self.sim_device = f"cuda:{sim_device}" if isinstance(sim_device, int) else sim_device
        self._task: Any = None
        self._seed: int | None = None

    def set_task(self, task: Any, backend: str = "numpy", sim_params: Any = None, init_sim: bool = True) -> None:
        """Step ``task``, whose scene is set up now if ``init_sim``, else by ``world.reset()``. ``backend``, ``"numpy"``
        or ``"torch"``, is the kind of arrays that ``step`` returns. ValueError if ``sim_params`` has another ``dt``
        than the task."""
        check_choice("set_task: backend", backend, ("numpy", "torch"))
        if (core := getattr(task, "__dict__", {}).get("core")) is None:
            how = "its constructor must call RLTask.__init__(self, name, env)"
            raise TypeError(f"{type(self).__name__}.set_task needs an RLTask, got {type(task).__name__}; {how}")
        if (dt := (sim_params or {}).get("dt", core.cfg.sim.dt)) != core.cfg.sim.dt:
            wrong = f"sim_params has dt {dt}, the task's configuration {core.cfg.sim.dt}"
            raise ValueError(f"{type(self).__name__}.set_task: {wrong}; set it in config['task']['sim']")
        self._task, self._backend, steps = task, backend, core.max_episode_length
        self.world = task.world = World(core)
        self._seed = task._cfg["seed"] if self._seed is None and (task._cfg["seed"] or 0) >= 0 else self._seed
        self._env: Any = core if steps is None else TimeLimit(core, steps, core.cfg.is_finite_horizon)
        for name in ("num_envs", "num_states", "observation_space", "action_space", "state_space"):
            setattr(self, name, getattr(task, name))
        if init_sim:
            self.world.reset()

    @property
    def task(self) -> Any:
        if self._task is None:
            raise RuntimeError(f"{type(self).__name__} has no task: call set_task(task) first")
        return self._task

    def seed(self, seed: int = -1) -> int:
        """Begin all random numbers anew with the next reset of all environments; −1 draws a seed. Returns it."""
        drawn = int(np.random.SeedSequence().generate_state(1)[0])
        self._seed = drawn if whole_number("seed", seed, -1) == -1 else seed
        torch.manual_seed(self._seed)
        return self._seed

    def step(self, actions: Any) -> Any:
        """Returns observations, rewards, terminated, truncated and ``extras``: what the task wrote there, ``cost``,
        ``costs``, ``time_outs`` and, after episodes ended, ``episode``, the log. ``actions`` is an array or tensor."""
        self._parse_data(data := self._transition(actions))
        given = (self._obs, self._rew, data["terminated"], data["truncated"], self._extras)
        numpy = self._backend == "numpy"
        return mapped(lambda x: x.cpu().numpy() if numpy and isinstance(x, torch.Tensor) else x, given)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Flag all environments and make a step with zero actions. Returns observations and an empty dict."""
        self.task.reset()
        self._seed = self._seed if seed is None else seed
        return self.step(torch.zeros(self.task.num_envs, self.task.num_actions))[0], {}

    def render(self, mode: str = "human") -> np.ndarray | None:
        """Show the first environment in the window, which a headless one lacks, or return a picture of it,
        (480, 640, 3) uint8, for ``"rgb_array"``."""
        check_choice("render: mode", mode, ("human", "rgb_array"))
        if mode == "human" and not self.headless:
            self.task.core.sim.view(0, self.task.name)
        return self.task.core.sim.render() if mode == "rgb_array" else None

    def close(self) -> None:
        """Free the simulation."""
        self.task.close()

    def _transition(self, actions: Any) -> dict[str, Any]:
        """Reset whoever is flagged, step, and pack what a policy gets: copies, to be handed to another thread."""
        task, info = self.task, {}
        if (due := task.reset_buf > 0).any():
            whole = bool(due.all()) or not task.core._begun
            seed, self._seed = (self._seed, None) if whole else (None, self._seed)
            _, info = self._env.reset(seed=seed, options=None if whole else {"reset_mask": due})
        extras = {"episode": info["log"]} if "log" in info else {}
        obs, reward, terminated, truncated, info = self._env.step(torch.as_tensor(actions, device=task._device))
        task.reset_buf[ended := terminated | truncated] = 1
        extras |= {**task.extras, **info, "time_outs": truncated & ~terminated}
        self.render()
        data = {"obs": obs["policy"], "states": obs.get("critic", obs["policy"][:, :0]), "rew": reward}
        return {**data, "reset": ended.long(), "extras": extras, "terminated": terminated, "truncated": truncated}

    def _parse_data(self, data: dict[str, Any]) -> None:
        """Take in what a step gave."""
        self._obs, self._states, self._rew = data["obs"], data["states"], data["rew"]
        self._resets, self._extras = data["reset"], data["extras"]


class VecEnvRLGames(VecEnvBase):
    """Steps a task as rl_games wants it: tensors on the task's ``rl_device``, observations and states in a dict."""

    def step(self, actions: Any) -> Any:
        """Returns {"obs", "states"}, rewards, resets, (num_envs,) int64, and ``extras`` as those of the base class."""
        self._parse_data(self._transition(actions))
        return {"obs": self._obs, "states": self._states}, self._rew, self._resets, self._extras

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed, options)[0]

    def _parse_data(self, data: dict[str, Any]) -> None:
        device = self.task.rl_device
        super()._parse_data(mapped(lambda x: x.to(device) if isinstance(x, torch.Tensor) else x, data))


class TaskStopException(Exception):
    """Raised in one thread of a :class:`VecEnvMT` when the other has stopped; its cause is what that raised, if so."""


class TrainerMT(ABC):
    """What trains a policy on a :class:`VecEnvMT`."""

    @abstractmethod
    def run(self) -> None:
        """Call ``env.step`` again and again. It runs in a thread of its own; it may also start threads and return."""

    @abstractmethod
    def stop(self) -> None:
        """Called once when the simulation has stopped and the threads that called ``env.step`` are over."""


class VecEnvMT(VecEnvBase):
    """Keeps the policy in a thread of its own: whoever calls :meth:`run` simulates, the trainer's ``run`` calls
    ``step``. Two queues of size one connect them. Who waits longer than ``timeout`` s raises TimeoutError, and so does
    the other when it next looks; whatever else either raises, ``run`` raises after it has stopped the other.
    ``world.pause``, ``play`` and ``stop`` work from any thread; time does not count while it is paused."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.timeout, self.should_run, self.stop, self._policies = 90.0, True, False, set[threading.Thread]()
        self._queues: tuple[Any, ...] = ()  # of actions and of data
        self._simulating: threading.Thread | None = None
        self._error: BaseException | None = None

    def initialize(self, action_queue: Any, data_queue: Any, timeout: float = 90) -> None:
        """Connect a trainer, which may do so in its ``run``; without this call its first step does. ValueError unless
        the queues are of size one and ``timeout`` [s] is positive, RuntimeError if there is a trainer already."""
        check_number(f"{type(self).__name__}.initialize: timeout [s]", timeout, above=0.0)
        for name, given in {"action_queue": action_queue, "data_queue": data_queue}.items():
            if getattr(given, "maxsize", None) != 1:
                raise ValueError(f"{type(self).__name__}.initialize: {name} must be queue.Queue(1), got {given!r}")
        self._check_free("initialize", self._queues)
        self.timeout, self.should_run, self.stop, self._queues = timeout, True, False, (action_queue, data_queue)

    def run(self, trainer: TrainerMT) -> None:
        """Simulate until the trainer ends, ``world.stop()`` is called or either thread raises an exception."""
        self._check_free("run", self._simulating)
        task, self._before, self._launched = self.task, set(threading.enumerate()), set[threading.Thread]()
        self._simulating, self._hook = threading.current_thread(), threading.excepthook
        threading.excepthook = self._take_exception
        try:
            if not self._queues:  # else the trainer's constructor has started it
                self.should_run, self.stop, self._policies = True, False, set()
                thread = threading.Thread(target=trainer.run, name=f"trainer of {task.name}", daemon=True)
                self._launched = {thread}
                thread.start()
            while (actions := self.get_actions()) is not None:
                self.send_data(super()._transition(actions))
        except TaskStopException:
            pass
        except BaseException as error:
            self._error = self._error or error
        finally:
            self._end_policies()
            self.clear_queues()
            threading.excepthook = self._hook
            failure, self._error, self._simulating, self._queues = self._error, None, None, ()
            self._policies = set()
        trainer.stop()
        if failure is not None:
            raise failure

    def get_actions(self, block: bool = True) -> Any:
        """What the policy sent; None if that was its end."""
        return self._exchange(0, "actions", block)

    def send_actions(self, actions: Any, block: bool = True) -> None:
        self._exchange(0, "room for actions", block, actions)

    def get_data(self) -> Any:
        """The buffers after a step."""
        return self._exchange(1, "data", True)

    def send_data(self, data: Any, block: bool = True) -> None:
        self._exchange(1, "room for data", block, data)

    def clear_queues(self) -> None:
        """Drop what is in the queues."""
        for full in self._queues:
            with suppress(queue.Empty):
                full.get_nowait()
                full.task_done()

    def _transition(self, actions: Any) -> dict[str, Any]:
        self.send_actions(actions)
        data: dict[str, Any] = self.get_data()
        return data

    def _exchange(self, number: int, what: str, block: bool, *item: Any) -> Any:
        """Put an item into a queue, or take one out, once there is one; an exception as soon as all is to stop."""
        simulates, end = threading.current_thread() is self._simulating, time.monotonic() + self.timeout
        if not simulates:
            self._policies.add(threading.current_thread())
            if not self._queues and not self.stop:
                self.initialize(queue.Queue(1), queue.Queue(1), self.timeout)
        while True:
            if block:
                self._check_running(simulates)
            if not self._queues or not self.world.is_playing():
                time.sleep(_SLICE)
                end = end if self.world.is_playing() else time.monotonic() + self.timeout
            else:
                with suppress(queue.Full, queue.Empty):
                    if item:
                        return self._queues[number].put(item[0], block, _SLICE)
                    taken = self._queues[number].get(block, _SLICE)
                    self._queues[number].task_done()
                    return taken
            if not block:
                return None
            if time.monotonic() > end:
                who, other = ("simulation", "trainer") if simulates else ("trainer", "simulation")
                how = f"the {other} hangs or takes longer, for which initialize(…, timeout=…) gives it time"
                self._error = TimeoutError(f"VecEnvMT: the {who} got no {what} for {self.timeout:g} s: {how}")
                raise self._error

    def _check_running(self, simulates: bool) -> None:
        if (error := self._error) is not None:
            kind = TimeoutError if isinstance(error, TimeoutError) else TaskStopException
            raise kind(f"VecEnvMT has stopped: {type(error).__name__}: {error}") from error
        # The trainer is over when all are that called ``step``, or before any did all that run() started.
        threads = self._policies or (set(threading.enumerate()) - self._before) | self._launched if simulates else set()
        if threads and not any(thread.is_alive() for thread in threads):
            self.should_run = False
        if self.stop or not self.should_run or self.world.stopped:
            raise TaskStopException("VecEnvMT was stopped")

    def _take_exception(self, failed: Any) -> None:
        """``threading.excepthook`` during :meth:`run`: what ends a thread of the trainer is the caller's."""
        if failed.thread in self._before - self._policies:
            self._hook(failed)
        elif not issubclass(failed.exc_type, TaskStopException):
            self._error = self._error or failed.exc_value

    def _end_policies(self) -> None:
        self.stop = True
        for thread in (self._policies | self._launched) - {self._simulating, threading.main_thread()}:
            thread.join(_GRACE)
            if thread.is_alive():  # it is busy with something else than this environment
                where, what = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TaskStopException)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(where, what)
                thread.join(_GRACE)
            if thread.is_alive():
                warnings.warn(f"VecEnvMT.run: the thread {thread.name!r} has not ended", stacklevel=3)

    def _check_free(self, method: str, trainer: Any) -> None:
        if trainer:
            how = "wait until VecEnvMT.run has returned, or make another"
            raise RuntimeError(f"{type(self).__name__}.{method}: it has a trainer already, and can have one; {how}")


class VecEnvRLGamesMT(VecEnvRLGames, VecEnvMT):
    """:class:`VecEnvRLGames` whose ``step`` is for a policy in a thread of its own, as :class:`VecEnvMT` says."""
