"""What steps an ``RLTask``: ``VecEnvBase``, with rl_games' buffers ``VecEnvRLGames``, and both with the policy in a
thread of its own, ``VecEnvMT`` and ``VecEnvRLGamesMT``."""

import functools
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from legged_envs.checks import check_choice, check_number, check_spelling, whole_number
from legged_envs.state import mapped

_SLICE, _GRACE = 0.02, 0.6
"""How often a thread that waits looks whether it still should, and how long the other has to end by itself, s."""


class World:
    """The simulation of a task and its ``scene``, to which views are added. It plays from the start. ``pause``,
    ``play`` and ``stop`` may be called from any thread; a :class:`VecEnvMT` heeds them."""

    def __init__(self, core: Any):
        self._core, self.scene, self.status = core, self, "playing"

    def add(self, view: Any) -> Any:
        """Make a view show the robots. Returns it."""
        view.initialize(self._core)
        return view

    def is_playing(self) -> bool:
        return self.status == "playing"

    def play(self) -> None:
        self.status = "playing"

    def pause(self) -> None:
        self.status = "paused"

    def stop(self) -> None:
        self.status = "stopped"

    def step(self, render: bool = False) -> None:
        """One physics step of every environment; ``render`` shows the first in the window, unless it is headless."""
        self._core.sim.step(1)
        self._core.task._env.render("human" if render else "nothing")


class VecEnvBase:
    """Steps the environments of one task. Whoever is flagged in ``reset_buf``, at first all, is reset at the begin of
    the next step, so that what a step returns with a flag is the true last observation. ``headless=False`` shows the
    first environment in a window. ``sim_device``, a torch device or the number of a GPU, has precedence over that of
    the task's configuration; ``sim`` is the physics engine. ``sim_frame_count`` is how many physics steps there were.
    A subclass whose own ``step`` calls the methods of ``_task`` and ``_world.step(render=_render)`` has what these do,
    and no more: ``pre_physics_step`` has to reset whoever is flagged."""

    def __init__(self, headless: bool = True, sim_device: int | str | None = None, sim: str = "mujoco"):
        self.headless, self._render, self.sim_device, self.sim = headless, not headless, sim_device, sim
        self._seed: int | None = None
        self.sim_frame_count = 0

    def __getattr__(self, name: str) -> Any:
        error = RuntimeError if name == "_task" else AttributeError
        raise error(f"{type(self).__name__} has no {name.strip('_')!r}; what is a task's needs set_task(task) first")

    def set_task(self, task: Any, backend: str = "numpy", sim_params: Any = None, init_sim: bool = True) -> None:
        """Set up the scene of ``task`` and step it. ``backend``, ``"numpy"`` or ``"torch"``, is the kind of arrays that
        ``step`` returns. The parameters of the simulation are those of the task's configuration, whatever
        ``sim_params`` are; ValueError for a name in these that is nearly one of :class:`SimCfg`."""
        check_choice("set_task: backend", backend, ("numpy", "torch"))
        check_spelling("set_task: sim_params", sim_params or {}, vars(task.core.cfg.sim), 0.8)
        self.task, self._task, self._backend, self._env = task, task, backend, task.stack.env
        self.world = self._world = task.world = World(task.core)
        if self._seed is None and (seed := task.cfg.config["seed"]) >= 0:
            self._seed = seed
        for name in ("num_envs", "num_states", "observation_space", "action_space", "state_space"):
            setattr(self, name, getattr(task, name))
        task.core.start(self.world)

    def seed(self, seed: int = -1) -> int:
        """Begin all random numbers anew with the next reset of all environments; −1 draws a seed. Returns it."""
        self._seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed == -1 else whole_number("seed", seed, 0)
        torch.manual_seed(self._seed)
        return self._seed

    def step(self, actions: Any) -> Any:
        """Returns observations, rewards, terminated, truncated and ``extras``: what the task wrote there, ``cost``,
        ``costs``, ``time_outs`` and, after episodes ended, ``episode``, the log. ``actions`` is an array or tensor."""
        self._parse_data(data := mapped(self._hand_out, self._transition(actions)))
        return self._obs, self._rew, *data["flags"], self._extras

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Flag all environments and make a step with zero actions. Returns observations and an empty dict."""
        self._task.reset()
        self._seed = self._seed if seed is None else seed
        return self.step(torch.zeros(self._task.num_envs, self._task.num_actions))[0], {}

    def render(self, mode: str = "human") -> np.ndarray | None:
        """Show the first environment in the window, which a headless one lacks, or return a picture of it,
        (480, 640, 3) uint8, for ``"rgb_array"``."""
        if mode == "human" and not self.headless:
            self._task.core.sim.view(0, self._task.name)
        return self._task.core.sim.render() if mode == "rgb_array" else None

    def close(self) -> None:
        """Free the simulation."""
        self._task.close()

    def _transition(self, actions: Any) -> dict[str, Any]:
        """Reset whoever is flagged, step, and pack what a policy gets: copies, to be handed to another thread."""
        task, info = self._task, {}
        if (due := task.reset_buf > 0).any():
            seed, self._seed = (self._seed, None) if due.all() else (None, self._seed)
            _, info = self._env.reset(seed=seed, options=None if due.all() else {"reset_mask": due})
        extras = {"episode": info["log"]} if "log" in info else {}
        obs, reward, terminated, truncated, info = self._env.step(torch.as_tensor(actions, device=task._device))
        task.reset_buf[ended := terminated | truncated] = 1
        self.sim_frame_count += task.control_frequency_inv
        extras |= {**task.extras, **info, "time_outs": truncated & ~terminated}
        self.render()
        data = {"obs": obs["policy"], "states": obs.get("critic", obs["policy"][:, :0]), "rew": reward}
        return {**data, "reset": ended.long(), "extras": extras, "flags": (terminated, truncated)}

    def _hand_out(self, value: Any) -> Any:
        return value.cpu().numpy() if self._backend == "numpy" and isinstance(value, torch.Tensor) else value

    def _parse_data(self, data: dict[str, Any]) -> None:
        """Take in what a step gave."""
        self._obs, self._states, self._rew = data["obs"], data["states"], data["rew"]
        self._resets, self._extras = data["reset"], data["extras"]


class VecEnvRLGames(VecEnvBase):
    """Steps a task as rl_games wants it: tensors on the task's ``rl_device``, observations and states in a dict."""

    def step(self, actions: Any) -> Any:
        """Returns {"obs", "states"}, rewards, resets, (num_envs,) int64, and ``extras`` as those of the base class."""
        super().step(actions)
        return {"obs": self._obs, "states": self._states}, self._rew, self._resets, self._extras

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed, options)[0]

    def _hand_out(self, value: Any) -> Any:
        return value.to(self._task.rl_device) if isinstance(value, torch.Tensor) else value


class TaskStopException(Exception):
    """Raised in one thread of a :class:`VecEnvMT` when the other has stopped; its cause is what that raised, if so."""


class TrainerMT(ABC):
    """What trains a policy on a :class:`VecEnvMT`."""

    @abstractmethod
    def run(self) -> None:
        """Call ``env.step`` again and again, in the thread that it is called in: one of its own."""

    @abstractmethod
    def stop(self) -> None:
        """Called once when the simulation has stopped."""


class VecEnvMT(VecEnvBase):
    """Keeps the policy in a thread of its own: whoever calls :meth:`run` simulates, the trainer's ``run`` calls
    ``step``. Two queues of size one connect them. Who waits longer than ``timeout`` s raises TimeoutError, and so does
    the other when it next looks; whatever else either raises, ``run`` raises after it has stopped the other.
    ``world.pause``, ``play`` and ``stop`` work from any thread; time does not count while it is paused."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._error: Any = None
        self._threads: tuple[threading.Thread, ...] = ()
        self.initialize(queue.Queue(1), queue.Queue(1))

    def initialize(self, action_queue: Any, data_queue: Any, timeout: float = 90) -> None:
        """Set the queues of the next :meth:`run`, both ``queue.Queue(1)``; of several calls the last counts.
        ValueError unless ``timeout`` [s] is positive, RuntimeError while a trainer runs."""
        self._check_free("initialize")
        check_number(f"{type(self).__name__}.initialize: timeout [s]", timeout, above=0.0)
        self._queues, self.timeout = (action_queue, data_queue), timeout

    def run(self, trainer: TrainerMT) -> None:
        """Simulate until the trainer ends, ``world.stop()`` is called or either thread raises an exception."""
        self._check_free("run")
        thread = threading.Thread(target=self._work, args=(trainer.run,), name="trainer of a VecEnvMT", daemon=True)
        self._threads, self._error = (thread, threading.current_thread()), None
        thread.start()
        self._work(self._simulate)
        thread.join(_GRACE)
        self._threads = ()
        self.initialize(queue.Queue(1), queue.Queue(1), self.timeout)  # without what is left in the others
        trainer.stop()
        if not isinstance(self._error, TaskStopException):
            raise self._error

    def _work(self, work: Callable[[], None]) -> None:
        """Do the work of a thread. How it ends is what the other thread raises."""
        try:
            work()
            self._error = self._error or TaskStopException("the trainer has ended")
        except BaseException as error:
            self._error = self._error or error

    def _simulate(self) -> None:
        while True:
            self._exchange(1, "room for data", super()._transition(self._exchange(0, "actions")))

    def _transition(self, actions: Any) -> dict[str, Any]:
        self._exchange(0, "room for actions", actions)
        return dict(self._exchange(1, "data"))

    def _exchange(self, number: int, what: str, *item: Any) -> Any:
        """Put an item into a queue, or take one out, once there is one; an exception as soon as all is to stop."""
        transfer = functools.partial(self._queues[number].put, *item) if item else self._queues[number].get
        end = time.monotonic() + self.timeout
        while time.monotonic() < end:
            self._check_running()
            if self._world.is_playing():
                with suppress(queue.Full, queue.Empty):
                    return transfer(timeout=_SLICE)
            else:
                time.sleep(_SLICE)
                end = time.monotonic() + self.timeout
        how = "the other thread hangs or takes longer, for which initialize(…, timeout=…) gives it time"
        self._error = TimeoutError(f"VecEnvMT: no {what} for {self.timeout:g} s: {how}")
        raise self._error

    def _check_running(self) -> None:
        if (error := self._error) is not None:
            kind = TimeoutError if isinstance(error, TimeoutError) else TaskStopException
            raise kind(f"VecEnvMT has stopped: {type(error).__name__}: {error}") from error
        if self._task.world.status == "stopped" or threading.current_thread() not in self._threads:
            raise TaskStopException("VecEnvMT has stopped; only the thread in which it runs a trainer may step it")

    def _check_free(self, method: str) -> None:
        if self._threads:
            raise RuntimeError(f"{type(self).__name__}.{method}: it has a trainer already; wait until run has returned")


class VecEnvRLGamesMT(VecEnvRLGames, VecEnvMT):
    """:class:`VecEnvRLGames` whose ``step`` is for a policy in a thread of its own, as :class:`VecEnvMT` says."""
