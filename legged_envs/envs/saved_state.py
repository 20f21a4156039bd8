"""The saved state of a core environment."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import torch

from legged_envs.envs.state_checks import check_state, check_streams
from legged_envs.envs.task import Task
from legged_envs.state import State, copy_state, restore_state

if TYPE_CHECKING:
    from legged_envs.envs.cfg import TaskCfg
    from legged_envs.envs.core import CoreVectorEnv

Arguments: TypeAlias = dict[str, Any]
"""Keyword arguments of ``CoreVectorEnv``."""


def collect(env: "CoreVectorEnv") -> State:
    """Return a copy of everything that the future of ``env`` depends on."""
    state = {
        "sim": env.sim.get_state(),
        "random": env.random.state_dict(),
        "own": env.task.state(),
        "episode_steps": copy_state(env.episode_steps),
        "bad_physics": copy_state(env.had_bad_physics),
        "over": copy_state(env.has_ended),
        "ended_rows": copy_state(env.log.rows),
        "steps": env.num_steps,
        "robots": copy_state(env.robots),
        "observation": copy_state(env.last_observation),
    }
    if env.ground is not None:
        state["ground"] = copy_state(env.ground)
    return state


def restore(env: "CoreVectorEnv", state: State) -> None:
    """Return ``env`` to a state from :func:`collect`.

    Raises:
        ValueError: If the state has another structure or wrong values; nothing is changed then.
    """
    present = collect(env)
    _check_structure(env, state, present)
    env.task.check_state(state["own"])
    try:
        _load(env, state)
    # Of any kind: values that no check knows fail where they are used.
    except Exception as error:
        _load(env, present)
        if isinstance(error, ValueError):
            raise
        raise ValueError(
            f"the state cannot be loaded, and nothing is changed: {type(error).__name__}: {error}"
        ) from error


def _load(env: "CoreVectorEnv", state: State) -> None:
    env.task.load_changes(state["own"])
    env.sim.set_state(state["sim"])
    env.random.load_state_dict(state["random"])
    env.episode_steps = restore_state(env.episode_steps, state["episode_steps"])
    env.had_bad_physics = restore_state(env.had_bad_physics, state["bad_physics"])
    env.has_ended = restore_state(env.has_ended, state["over"])
    env.log.rows = restore_state(env.log.rows, state["ended_rows"])
    env.num_steps = state["steps"]
    env.robots = restore_state(env.robots, state["robots"])
    if env.ground is not None:
        env.ground = restore_state(env.ground, state["ground"])
    env.last_observation = restore_state(env.last_observation, state["observation"])
    env.task.load_state(state["own"])


def _check_structure(env: "CoreVectorEnv", state: State, present: State) -> None:
    expected = dict(present)
    # The engine checks its own part. The number of streams may differ, and so may the number of
    # episodes that ended.
    expected["sim"] = None
    expected["own"] = env.task.state_template()
    expected["random"] = {**present["random"], "streams": None}
    given_rows = state.get("ended_rows") if isinstance(state, dict) else None
    if isinstance(given_rows, torch.Tensor) and given_rows.dim() == 2:
        expected["ended_rows"] = env.log.rows.new_zeros(len(given_rows), len(env.log.names))
    check_state(state, expected)
    check_streams(state["random"]["streams"], env.num_envs)
    if state["steps"] < 0:
        raise ValueError(f"the state has 'steps' below 0: {state['steps']}")


class StatefulEnv:
    """Gives :class:`~legged_envs.envs.CoreVectorEnv` the methods of a saved state."""

    task: Task
    cfg: "TaskCfg"
    num_envs: int
    arguments: Arguments
    spec: Any
    is_built: bool
    has_begun: bool
    _np_random: np.random.Generator | None
    _np_random_seed: int | None

    def build(self) -> None:
        """Let the task build its parts."""
        raise NotImplementedError

    def get_state(self) -> State:
        """Return a copy of everything that the future of the environments depends on.

        Raises:
            RuntimeError: Before the first ``reset``.
        """
        if not self.has_begun:
            raise RuntimeError("get_state() was called before reset()")
        return self.collect_state()

    def collect_state(self) -> State:
        """Return the state also before the first reset: see :meth:`get_state`."""
        if not self.is_built:
            self.build()
        return collect(cast("CoreVectorEnv", self))

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """Return to the present state at the end of the block."""
        state = self.collect_state()
        # Gymnasium's own generator is not a part of the state: no task draws from it.
        generator = self._np_random
        generator_seed = self._np_random_seed
        has_begun = self.has_begun
        yield
        self.set_state(state)
        self._np_random = generator
        self._np_random_seed = generator_seed
        self.has_begun = has_begun

    def set_state(self, state: State) -> None:
        """Return exactly to a state of an equal environment.

        The structure of the state is compared; numbers of the configuration, such as gains, are not
        compared.

        Args:
            state: A state from :meth:`get_state`.

        Raises:
            ValueError: If the state has another structure; nothing is changed then.
        """
        if not self.is_built:
            self.build()
        with torch.inference_mode(False):
            # Tensors made in inference mode could not be changed in place by later steps.
            restore(cast("CoreVectorEnv", self), state)
        self.has_begun = True

    def __reduce__(self) -> tuple[Callable[..., "CoreVectorEnv"], tuple[object, ...], State]:
        # The environment is made again from its arguments, because an engine's threads and buffers
        # cannot be pickled.
        # The state is pickled separately, so that a spawned process gets it by value and not as
        # shared memory.
        state = pickle.dumps((self.has_begun, self.collect_state()))
        made_from = (type(self), type(self.task), self.cfg, self.num_envs, self.arguments)
        return _make_again, made_from, {"spec": self.spec, "state": state}

    def __setstate__(self, state: State) -> None:
        self.spec = state["spec"]
        has_begun, saved = pickle.loads(state["state"])
        self.set_state(saved)
        self.has_begun = has_begun


def _make_again(
    env_class: type["CoreVectorEnv"],
    task_class: type[Task],
    cfg: "TaskCfg",
    num_envs: int,
    arguments: Arguments,
) -> "CoreVectorEnv":
    return env_class(task_class(cfg), num_envs, **arguments)
