"""Vector environments that step an ``RLTask``, in one thread or with the policy in another one."""

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from legged_envs.checks import check_choice, check_number, whole_number
from legged_envs.state import map_tree

if TYPE_CHECKING:
    from legged_envs.compat.omni_isaac_gym.rl_task import RLTask

POLLING_INTERVAL = 0.02
"""Time after which a waiting thread checks if it still has to wait, s."""
TRAINER_GRACE = 0.6
"""Time in which a trainer can end by itself after the simulation has ended, s."""

Actions = np.ndarray | torch.Tensor
"""Actions. Shape: (num_envs, num_actions)."""
Data = dict[str, Any]
"""Results of a step: ``obs``, ``states``, ``rew``, ``reset``, ``extras``, and ``flags``, which are
terminated and truncated."""


class VecEnvBase:
    """Steps the environments of one task.

    Environments that are flagged in ``reset_buf``, at first all, are reset at the start of the next
    step. So the observation that a step returns with a flag is the true last one.

    Attributes that this object does not have are looked up in the task: ``num_envs``,
    ``observation_space``, ``world``, ``close``, …

    A subclass may have a ``step`` that calls the methods of ``_task`` and
    ``_world.step(render=self._render)``. Then these are all that happens: ``pre_physics_step`` has
    to reset the flagged environments.

    Args:
        headless: False to show the first environment in a window.
    """

    def __init__(self, headless: bool = True):
        self.headless = headless
        """True without a window."""
        self.sim_frame_count = 0
        """Number of physics steps."""
        self._render = not headless
        self._seed: int | None = None

    def __getattr__(self, name: str) -> Any:
        if "_task" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no {name!r} yet. Call set_task(task) first."
            )
        return getattr(self._task, name)

    def set_task(
        self,
        task: "RLTask",
        backend: str = "numpy",
        sim_params: Any = None,
        init_sim: bool = True,
    ) -> None:
        """Set the task that is stepped.

        Args:
            task: The task; its scene is set up if it is not yet.
            backend: ``"numpy"`` or ``"torch"``, the kind of arrays that ``step`` returns.
            sim_params: This setting has no effect: the task's configuration has these parameters.
            init_sim: This setting has no effect.

        Raises:
            ValueError: For another ``backend``.
        """
        check_choice("set_task: backend", backend, ("numpy", "torch"))
        self.task = task
        """The task."""
        self._task = task
        self._world = task.world
        if not task.core.is_built:
            task.core.build()
        # Under AutoReset: this class resets one step later than that.
        self._env = task.stack.env
        self._backend = backend
        # seed() may have been called before this method, and counts then.
        configured_seed = task.cfg.config["seed"]
        if self._seed is None and configured_seed >= 0:
            self._seed = configured_seed

    def seed(self, seed: int = -1) -> int:
        """Set the seed of all random numbers from the next reset of all environments on.

        Args:
            seed: The seed; −1 for a seed that the operating system draws.

        Returns:
            The seed.

        Raises:
            ValueError: For another negative number.
        """
        if seed == -1:
            self._seed = int(np.random.SeedSequence().generate_state(1)[0])
        else:
            self._seed = whole_number("seed", seed, least=0)
        # For tasks that draw with torch.rand; the streams of the environments are seeded at reset.
        torch.manual_seed(self._seed)
        return self._seed

    def step(self, actions: Actions) -> Any:
        """Advance by one control step.

        Args:
            actions: Actions, (num_envs, num_actions).

        Returns:
            Observations, rewards, terminated, truncated and ``extras``: the entries that the task
            wrote, ``cost``, ``costs``, ``time_outs`` and, after episodes ended, their log in
            ``episode``.
        """
        data = map_tree(self._hand_out, self._transition(actions))
        self._parse_data(data)
        terminated, truncated = data["flags"]
        return self._obs, self._rew, terminated, truncated, self._extras

    def reset(self) -> Any:
        """Flag all environments, and make a step with actions of 0.

        Returns:
            Observations, and an empty dict.
        """
        self._task.reset()
        result = self.step(torch.zeros(self._task.num_envs, self._task.num_actions))
        return result[0], {}

    def render(self, mode: str = "human") -> np.ndarray | None:
        """Show the first environment.

        Args:
            mode: ``"human"`` to show it in the window, if there is one; ``"rgb_array"`` for a
                picture.

        Returns:
            A picture, (480, 640, 3), uint8, for ``"rgb_array"``; otherwise None.
        """
        sim = self._task.core.sim
        if mode == "human" and not self.headless:
            sim.view(0, self._task.name)
        if mode == "rgb_array":
            return sim.render()
        return None

    def _transition(self, actions: Actions) -> Data:
        """Reset flagged environments and step.

        Returns:
            Copies, which may be handed to another thread.
        """
        task = self._task
        episode_log = self._reset_flagged()
        action = torch.as_tensor(actions, device=task._device)
        obs, reward, terminated, truncated, info = self._env.step(action)
        has_ended = terminated | truncated
        # The time limit is a wrapper's, so that the task has not flagged these episodes.
        task.reset_buf[has_ended] = 1
        self.sim_frame_count += task.control_frequency_inv
        extras = {
            **episode_log,
            **task.extras,
            **info,
            "time_outs": truncated & ~terminated,
        }
        self.render()
        policy = obs["policy"]
        return {
            "obs": policy,
            # Without states, rl_games expects a tensor of no columns.
            "states": obs.get("critic", policy[:, :0]),
            "rew": reward,
            "reset": has_ended.long(),
            "extras": extras,
            "flags": (terminated, truncated),
        }

    def _reset_flagged(self) -> dict[str, Any]:
        """Reset flagged environments; return the log of their episodes under ``"episode"``."""
        is_due = self._task.reset_buf > 0
        if not is_due.any():
            return {}
        if is_due.all():
            # A seed restarts the random streams of all environments.
            seed = self._seed
            self._seed = None
            _, info = self._env.reset(seed=seed)
        else:
            _, info = self._env.reset(options={"reset_mask": is_due})
        return {"episode": info["log"]} if "log" in info else {}

    def _hand_out(self, value: Any) -> Any:
        """Convert a value to what :meth:`step` returns."""
        if self._backend == "numpy" and isinstance(value, torch.Tensor):
            return value.cpu().numpy()
        return value

    def _parse_data(self, data: Data) -> None:
        """Keep the results of a step; OmniIsaacGymEnvs' name of a method to override."""
        self._obs = data["obs"]
        self._states = data["states"]
        self._rew = data["rew"]
        self._resets = data["reset"]
        self._extras = data["extras"]


class VecEnvRLGames(VecEnvBase):
    """Steps a task as rl_games expects it, with tensors on the task's ``rl_device``."""

    def step(self, actions: Actions) -> Any:
        """Advance by one control step.

        Args:
            actions: Actions, (num_envs, num_actions).

        Returns:
            ``{"obs": …, "states": …}``, rewards, resets (num_envs,), int64, and ``extras`` as those
            of :meth:`VecEnvBase.step`.
        """
        super().step(actions)
        observations = {"obs": self._obs, "states": self._states}
        return observations, self._rew, self._resets, self._extras

    def reset(self) -> Any:
        """Flag all environments, make a step with actions of 0, and return the observations."""
        return super().reset()[0]

    def _hand_out(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(self._task.rl_device)
        return value


class TaskStopException(Exception):
    """Raised in a thread of a :class:`VecEnvMT` after the trainer ended or ``world.stop()``."""


class TrainerMT(ABC):
    """Trains a policy on a :class:`VecEnvMT`."""

    @abstractmethod
    def run(self) -> None:
        """Call ``env.step`` repeatedly; this method runs in a separate thread."""

    def stop(self) -> None:
        """Called once when the simulation has stopped; does nothing by default."""


class VecEnvMT(VecEnvBase):
    """Steps a task for a policy in a separate thread.

    The thread that calls :meth:`run` simulates. The trainer's ``run`` calls ``step`` in another
    thread. Two queues of size one connect them.

    An exception in one thread is raised in the other one as soon as it waits, and by :meth:`run`.
    One is TimeoutError after a wait of more than ``timeout`` s. ``world.pause``, ``play`` and
    ``stop`` work from any thread; the time of a pause does not count.

    Args:
        headless: False to show the first environment in a window.
    """

    _threads: tuple[threading.Thread, ...] = ()

    def __init__(self, headless: bool = True):
        super().__init__(headless)
        self.initialize(queue.Queue(1), queue.Queue(1))

    def initialize(
        self, action_queue: queue.Queue[Any], data_queue: queue.Queue[Any], timeout: float = 90
    ) -> None:
        """Set the queues of the next :meth:`run`; of several calls, the last one counts.

        Args:
            action_queue: A ``queue.Queue(1)`` for the actions.
            data_queue: A ``queue.Queue(1)`` for the results.
            timeout: Longest wait of a thread, s.

        Raises:
            ValueError: If ``timeout`` is not positive.
            RuntimeError: While a trainer runs.
        """
        if self._threads:
            raise RuntimeError(
                f"{type(self).__name__} has a trainer already. Wait until run() has returned."
            )
        check_number(f"{type(self).__name__}.initialize: timeout [s]", timeout, above=0.0)
        self.timeout = timeout
        """Longest wait of a thread, s."""
        self._actions = action_queue
        self._data = data_queue
        self._error: BaseException | None = None

    def run(self, trainer: TrainerMT) -> None:
        """Simulate until the trainer ends, ``world.stop()`` is called or a thread raises.

        Afterwards the queues are replaced by new ones.

        Args:
            trainer: Its ``run`` is called in a new thread, its ``stop`` at the end in this one.

        Raises:
            RuntimeError: While another trainer runs.
        """
        # Refuses a second trainer, and forgets the error of the last one.
        self.initialize(self._actions, self._data, self.timeout)
        thread = threading.Thread(
            target=self._work,
            args=(trainer.run,),
            name="trainer of a VecEnvMT",
            # A trainer that hangs must not keep the process alive.
            daemon=True,
        )
        self._threads = (thread, threading.current_thread())
        thread.start()
        self._work(self._simulate)
        thread.join(TRAINER_GRACE)
        # A trainer that hangs still has the old queues, so it cannot disturb the next one.
        self._threads = ()
        self._actions = queue.Queue(1)
        self._data = queue.Queue(1)
        trainer.stop()
        if self._error is not None and not isinstance(self._error, TaskStopException):
            raise self._error

    def _work(self, work: Callable[[], None]) -> None:
        """Do the work of a thread. The other thread raises what ended the first of both."""
        try:
            work()
            raise TaskStopException("the trainer has ended")
        except BaseException as error:
            # The first error is the cause, a later one its consequence.
            if self._error is None:
                self._error = error

    def _simulate(self) -> None:
        while True:
            actions = self._next_item(self._actions, "actions")
            self._data.put_nowait(super()._transition(actions))

    def _transition(self, actions: Actions) -> Data:
        self._check_running()
        # The queue is empty: its last item was taken before the result came that this thread had.
        self._actions.put_nowait(actions)
        data: Data = self._next_item(self._data, "data")
        return dict(data)

    def _next_item(self, items: queue.Queue[Any], what: str) -> Any:
        """Return the next item of a queue; while the world is paused, none is taken.

        Args:
            items: The queue.
            what: Name of the items for the error.
        """
        waited = 0.0
        while waited < self.timeout:
            self._check_running()
            # Short waits: pause() and stop() of another thread must be noticed in time.
            if not self._world.is_playing():
                time.sleep(POLLING_INTERVAL)
                continue
            try:
                return items.get(timeout=POLLING_INTERVAL)
            except queue.Empty:
                waited += POLLING_INTERVAL
        self._error = TimeoutError(
            f"VecEnvMT: no {what} for {self.timeout:g} s. "
            "Call initialize(…, timeout=…) for a longer wait."
        )
        raise self._error

    def _check_running(self) -> None:
        if self._error is not None:
            raise self._error
        is_stopped = self._task.world.status == "stopped"
        if is_stopped or threading.current_thread() not in self._threads:
            raise TaskStopException(
                "VecEnvMT has stopped. Only the thread in which run() starts a trainer may step it."
            )


class VecEnvRLGamesMT(VecEnvRLGames, VecEnvMT):
    """A :class:`VecEnvRLGames` for a policy in a separate thread: see :class:`VecEnvMT`."""
