"""How much time each layer of a stack takes in a step."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from gymnasium.vector import VectorEnv

from benchmarks.loops import EnvLoop
from benchmarks.ratios import median_ratio
from legged_envs.wrappers import ActionScale, CostNormalize, ObsNormalize, RewardNormalize
from legged_envs.wrappers.plumbing.layers import layers


class _Clock:
    """A function that adds up the time it takes."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self.seconds = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        result = self._function(*args, **kwargs)
        self.seconds += time.perf_counter() - begun
        return result


class _LayerClocks:
    """Clocks around ``step`` and ``reset`` of a layer, put into the layer itself.

    A layer calls the one below it by these two names, so a clock there sees every call.
    """

    def __init__(self, layer: Any):
        self.name = type(layer).__name__
        self._layer = layer
        self._step = _Clock(layer.step)
        self._reset = _Clock(layer.reset)
        layer.step = self._step
        layer.reset = self._reset

    @property
    def step_seconds(self) -> float:
        """Seconds in ``step``, with the layers below."""
        return self._step.seconds

    @property
    def reset_seconds(self) -> float:
        """Seconds in ``reset``, with the layers below."""
        return self._reset.seconds

    @property
    def seconds(self) -> float:
        """Seconds in both."""
        return self._step.seconds + self._reset.seconds

    def remove(self) -> None:
        """Give the layer its own functions back."""
        del self._layer.step
        del self._layer.reset


def time_layers(env: EnvLoop) -> dict[str, float]:
    """Return the time of each layer in a step, without the layers below it, µs."""
    sim = _LayerClocks(env.sim)
    core = _LayerClocks(env.core)
    wrappers = [_LayerClocks(layer) for layer in layers(env.envs) if layer is not env.core]
    turns = max(3, env.turns)
    for _ in range(turns):
        env.run(env.next_actions())
    for clocks in (sim, core, *wrappers):
        clocks.remove()
    microseconds = 1e6 / (turns * env.chunk)
    times = {
        "physics": microseconds * sim.step_seconds,
        "environment": microseconds * (core.step_seconds - sim.step_seconds),
        "partial resets": microseconds * core.reset_seconds,
    }
    below = [*wrappers[1:], core]
    for wrapper, layer in zip(wrappers, below, strict=True):
        times[wrapper.name] = microseconds * (wrapper.seconds - layer.seconds)
    return times


def _normalized(envs: VectorEnv) -> VectorEnv:
    """Add the wrappers that a user needs for a library that does not normalize by itself."""
    return ActionScale(CostNormalize(RewardNormalize(ObsNormalize(envs))), -1.0, 1.0)


def measure_wrappers(task_id: str, num_envs: int, rounds: int) -> dict[str, Any]:
    """Time a stack of seven wrappers against the environment's own steps and partial resets.

    Args:
        task_id: Id of the task.
        num_envs: Number of environments.
        rounds: Rounds.

    Returns:
        Names of the wrappers, time of the environment and of the wrappers in a step, µs, and the
        ratio of the two.
    """
    env = EnvLoop(task_id, num_envs, _normalized)
    names = [type(layer).__name__ for layer in layers(env.envs) if layer is not env.core]
    core = _LayerClocks(env.core)
    inside = []
    outside = []
    for _ in range(rounds):
        before = core.seconds
        total = env.run_round()
        own = core.seconds - before
        inside.append(own)
        outside.append(total - own)
    env.envs.close()
    steps = env.turns * env.chunk
    return {
        "num_envs": num_envs,
        "wrappers": names,
        "environment_us": 1e6 * statistics.median(inside) / steps,
        "wrappers_us": 1e6 * statistics.median(outside) / steps,
        "share": median_ratio(outside, inside),
    }
