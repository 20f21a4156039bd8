"""Model of the time of an update, fitted to measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.scaling.measurements import Measurement
from benchmarks.scaling.traffic import GIGABIT, Traffic, ring_seconds
from legged_envs.training.learner_options import OnPolicyCfg


@dataclass
class Model:
    """Time of an update of k processes with n robots each, on a core each.

    rollout   T · (step + robot · n + noise · n · (k − 1))
    waiting   spread · √(2 ln k) · rollout, for the slowest of k processes
    learning  S · fixed + E · sample · n · T, and the sums of :func:`ring_seconds`

    with T control steps, E passes over a rollout and S steps of the optimizer.
    """

    step: float
    """Time of a control step without robots, s."""
    robot: float
    """Time that each robot adds to a control step, s."""
    fixed: float
    """Time of a step of the optimizer without samples, s."""
    sample: float
    """Time that each sample adds to a pass over the rollout, s."""
    noise: float
    """Time of drawing the noise of a robot of another process, s."""
    spread: float
    """Standard deviation of the time of a rollout, as a fraction of it."""
    traffic: Traffic
    """What an update sends."""
    latency: float = 50e-6
    """Time of a round of a sum, s."""
    bandwidth: float = GIGABIT
    """Bytes per second between two neighbours in the ring."""

    def seconds(self, count: int, robots: int, algo: OnPolicyCfg) -> dict[str, float]:
        """Return the time of each part of an update.

        Args:
            count: Number of processes.
            robots: Number of robots of each process.
            algo: Options of the algorithm.
        """
        steps = algo.steps_per_env
        rollout = steps * (self.step + self.robot * robots)
        noise = steps * self.noise * robots * (count - 1)
        waiting = self.spread * math.sqrt(2.0 * math.log(count)) * rollout
        optimizer_steps = algo.epochs * algo.mini_batches
        learning = optimizer_steps * self.fixed + algo.epochs * self.sample * robots * steps
        sums = ring_seconds(self.traffic, count, self.latency, self.bandwidth)
        return {
            "rollout": rollout,
            "noise": noise,
            "waiting": waiting,
            "learning": learning,
            "sums": sums,
        }

    def speed(self, count: int, robots: int, algo: OnPolicyCfg) -> float:
        """Return the environment steps per second of all processes."""
        seconds = sum(self.seconds(count, robots, algo).values())
        return count * robots * algo.steps_per_env / seconds


PARTS = ("rollout", "noise", "waiting", "learning", "sums")
"""Parts of an update, as :meth:`Model.seconds` names them."""


def fit(contents: dict[str, Any], algo: OnPolicyCfg) -> Model:
    """Fit the model to measurements, by least squares of relative errors.

    What processes send to each other is left out of the fit: on one machine it takes milliseconds.
    So are measurements of more processes than cores, which take turns.

    Args:
        contents: What ``measure`` wrote.
        algo: Options of the algorithm that was measured.

    Raises:
        ValueError: If all measurements have as many robots in a process.
    """
    rows = [Measurement(**row) for row in contents["measurements"]]
    rows = [row for row in rows if row.processes <= contents["machine"]["cores"]]
    robots = [row.robots // row.processes for row in rows]
    if len(set(robots)) < 2:
        raise ValueError(
            "the model needs measurements with two numbers of robots in a process, "
            f"got {robots}: run measure with other --num-envs"
        )
    steps = algo.steps_per_env
    step, robot = _line(robots, [row.rollout / steps for row in rows])
    optimizer_steps = algo.epochs * algo.mini_batches
    fixed, batch = _line(robots, [row.update / optimizer_steps for row in rows])
    return Model(
        step=step,
        robot=robot,
        fixed=fixed,
        sample=batch * algo.mini_batches / steps,
        noise=contents["noise"],
        spread=contents["spread"],
        traffic=Traffic(**contents["traffic"]),
    )


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return offset and slope of a line, both at least 0, fitted with relative errors."""
    values = np.asarray(y)
    columns = np.stack((np.ones(len(x)), np.asarray(x, float)), axis=1)
    offset, slope = np.linalg.lstsq(columns / values[:, None], np.ones(len(x)), rcond=None)[0]
    return max(float(offset), 0.0), max(float(slope), 0.0)
