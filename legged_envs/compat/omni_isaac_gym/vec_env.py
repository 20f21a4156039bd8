"""What steps an ``RLTask``: ``VecEnvBase``, with rl_games' buffers ``VecEnvRLGames``, and both with the policy in a
thread of its own, ``VecEnvMT`` and ``VecEnvRLGamesMT``."""

import queue
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partialmethod
from typing import Any

import numpy as np
import torch

from legged_envs.checks import check_choice, check_number, whole_number
from legged_envs.compat.isaac_lab.entities import Articulation
from legged_envs.state import Stateful, map_tree

_SLICE, _GRACE = 0.02, 0.6
"""How often a thread that waits looks whether it still should, and how long the other has to end by itself, s."""


class World(Stateful):
    """The simulation of a task and its ``scene``, to which views are added. It plays from the start. ``pause``,
    ``play`` and ``stop`` may be called from any thread; a :class:`VecEnvMT` heeds them."""

    STATE = ("entities",)

    def __init__(self, core: Any):
        self.core, self.scene, self.status, self.entities = core, self, "playing", dict[str, Any]()
        self.robots = Articulation(core.cfg.robot, self)
        """What the views show."""

    def add(self, view: Any) -> Any:
        """Make a view show the robots. Returns it."""
        view.initialize(self.robots)
        return view

    def is_playing(self) -> bool:
        return self.status == "playing"

    def _set_status(self, status: str) -> None:
        self.status = status

    play, pause = partialmethod(_set_status, "playing"), partialmethod(_set_status, "paused")
    stop = partialmethod(_set_status, "stopped")

    def step(self, render: bool = False) -> None:
        """One physics step of every environment; ``render`` shows the first in the window, unless it is headless."""
        self.core.sim.step(1)
        self.core.task.user._env.render("human" if render else "nothing")


class VecEnvBase:
    """Steps the environments of one task. Whoever is flagged in ``reset_buf``, at first all, is reset at the begin of
    the next step, so that what a step returns with a flag is the true last observation. ``headless=False`` shows the
    first environment in a window. ``sim_frame_count`` is how many physics steps there were. What it has no attribute
    for is looked up in the task: ``num_envs``, ``observation_space``, ``world``, ``close``, … A subclass whose own
    ``step`` calls the methods of ``_task`` and ``_world.step(render=_render)`` has what these do, and no more:
    ``pre_physics_step`` has to reset whoever is flagged."""

    def __init__(self, headless: bool = True):
        self.headless, self._render = headless, not headless
        self._seed: int | None = None
        self.sim_frame_count = 0

    def __getattr__(self, name: str) -> Any:
        if "_task" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no {name!r}, or not before set_task(task)"
            )
        return getattr(self._task, name)

    def set_task(
        self, task: Any, backend: str = "numpy", sim_params: Any = None, init_sim: bool = True
    ) -> None:
        """Step ``task``, whose scene is set up. ``backend``, ``"numpy"`` or ``"torch"``, is the kind of arrays that
        ``step`` returns. The parameters of the simulation are those of the task's configuration, whatever
        ``sim_params`` are. ValueError for another ``backend``."""
        check_choice("set_task: backend", backend, ("numpy", "torch"))
        self.task = self._task = task
        if not task.core.is_built:
            task.core.build()
        self._world, self._env, self._backend = task.world, task.stack.env, backend
        if self._seed is None and (seed := task.cfg.config["seed"]) >= 0:
            self._seed = seed

    def seed(self, seed: int = -1) -> int:
        """Begin all random numbers anew with the next reset of all environments; −1 draws a seed. Returns it;
        ValueError for another negative one."""
        self._seed = (
            int(np.random.SeedSequence().generate_state(1)[0])
            if seed == -1
            else whole_number("seed", seed, 0)
        )
        torch.manual_seed(self._seed)
        return self._seed

    def step(self, actions: Any) -> Any:
        """Returns observations, rewards, terminated, truncated and ``extras``: what the task wrote there, ``cost``,
        ``costs``, ``time_outs`` and, after episodes ended, ``episode``, the log. ``actions`` is an array or tensor."""
        self._parse_data(data := map_tree(self._hand_out, self._transition(actions)))
        return self._obs, self._rew, *data["flags"], self._extras

    def reset(self) -> Any:
        """Flag all environments and make a step with zero actions. Returns observations and an empty dict."""
        self._task.reset()
        return self.step(torch.zeros(self._task.num_envs, self._task.num_actions))[0], {}

    def render(self, mode: str = "human") -> np.ndarray | None:
        """Show the first environment in the window, which a headless one lacks, or return a picture of it,
        (480, 640, 3) uint8, for ``"rgb_array"``."""
        if mode == "human" and not self.headless:
            self._task.core.sim.view(0, self._task.name)
        return self._task.core.sim.render() if mode == "rgb_array" else None

    def _transition(self, actions: Any) -> dict[str, Any]:
        """Reset whoever is flagged, step, and pack what a policy gets: copies, to be handed to another thread."""
        task, info = self._task, {}
        if (due := task.reset_buf > 0).any():
            seed, self._seed = (self._seed, None) if due.all() else (None, self._seed)
            _, info = self._env.reset(seed=seed, options=None if due.all() else {"reset_mask": due})
        extras = {"episode": info["log"]} if "log" in info else {}
        obs, reward, terminated, truncated, info = self._env.step(
            torch.as_tensor(actions, device=task._device)
        )
        task.reset_buf[ended := terminated | truncated] = 1
        self.sim_frame_count += task.control_frequency_inv
        extras |= {**task.extras, **info, "time_outs": truncated & ~terminated}
        self.render()
        data = {
            "obs": obs["policy"],
            "states": obs.get("critic", obs["policy"][:, :0]),
            "rew": reward,
        }
        return {**data, "reset": ended.long(), "extras": extras, "flags": (terminated, truncated)}

    def _hand_out(self, value: Any) -> Any:
        return (
            value.cpu().numpy()
            if self._backend == "numpy" and isinstance(value, torch.Tensor)
            else value
        )

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

    def reset(self) -> Any:
        return super().reset()[0]

    def _hand_out(self, value: Any) -> Any:
        return value.to(self._task.rl_device) if isinstance(value, torch.Tensor) else value


class TaskStopException(Exception):
    """Raised in a thread of a :class:`VecEnvMT` when the trainer has ended, or ``world.stop()`` was called."""


class TrainerMT(ABC):
    """What trains a policy on a :class:`VecEnvMT`."""

    @abstractmethod
    def run(self) -> None:
        """Call ``env.step`` again and again, in the thread that it is called in: one of its own."""

    def stop(self) -> None:
        """Called once when the simulation has stopped; by default nothing happens."""


class VecEnvMT(VecEnvBase):
    """Keeps the policy in a thread of its own: whoever calls :meth:`run` simulates, the trainer's ``run`` calls
    ``step``. Two queues of size one connect them. What either raises, such as TimeoutError after a wait of more than
    ``timeout`` s, the other raises too as soon as it waits, and so does ``run``.
    ``world.pause``, ``play`` and ``stop`` work from any thread; time does not count while it is paused."""

    _threads: tuple[threading.Thread, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.initialize(queue.Queue(1), queue.Queue(1))

    def initialize(self, action_queue: Any, data_queue: Any, timeout: float = 90) -> None:
        """Set the queues of the next :meth:`run`, both ``queue.Queue(1)``; of several calls the last counts.
        ValueError unless ``timeout`` [s] is positive, RuntimeError while a trainer runs."""
        if self._threads:
            raise RuntimeError(
                f"{type(self).__name__} has a trainer already: wait until its run has returned"
            )
        check_number(f"{type(self).__name__}.initialize: timeout [s]", timeout, above=0.0)
        self._actions, self._data, self.timeout = action_queue, data_queue, timeout
        self._error: Any = None

    def run(self, trainer: TrainerMT) -> None:
        """Simulate until the trainer ends, ``world.stop()`` is called or either thread raises an exception; its queues
        are new ones afterwards. RuntimeError while another trainer runs."""
        self.initialize(self._actions, self._data, self.timeout)
        thread = threading.Thread(
            target=self._work, args=(trainer.run,), name="trainer of a VecEnvMT", daemon=True
        )
        self._threads = thread, threading.current_thread()
        thread.start()
        self._work(self._simulate)
        thread.join(_GRACE)
        self._threads, self._actions, self._data = (), queue.Queue(1), queue.Queue(1)
        trainer.stop()
        if not isinstance(self._error, TaskStopException):
            raise self._error

    def _work(self, work: Any) -> None:
        """Do the work of a thread. How the first of both ends is what the other raises."""
        try:
            work()
            raise TaskStopException("the trainer has ended")
        except BaseException as error:
            self._error = self._error or error

    def _simulate(self) -> None:
        while True:
            self._data.put_nowait(super()._transition(self._next(self._actions, "actions")))

    def _transition(self, actions: Any) -> dict[str, Any]:
        self._check_running()
        self._actions.put_nowait(actions)
        return dict(self._next(self._data, "data"))

    def _next(self, items: Any, what: str) -> Any:
        """Take what comes next out of a queue, while the world is paused nothing; an exception once all is to stop."""
        waited = 0.0
        while waited < self.timeout:
            self._check_running()
            with suppress(queue.Empty):
                return (items if self._world.is_playing() else queue.Queue()).get(timeout=_SLICE)
            waited += _SLICE * self._world.is_playing()
        self._error = TimeoutError(
            f"VecEnvMT: no {what} for {self.timeout:g} s, see initialize(…, timeout=…)"
        )
        raise self._error

    def _check_running(self) -> None:
        if self._error:
            raise self._error
        if self._task.world.status == "stopped" or threading.current_thread() not in self._threads:
            raise TaskStopException(
                "VecEnvMT has stopped; only the thread in which it runs a trainer may step it"
            )


class VecEnvRLGamesMT(VecEnvRLGames, VecEnvMT):
    """:class:`VecEnvRLGames` whose ``step`` is for a policy in a thread of its own, as :class:`VecEnvMT` says."""
