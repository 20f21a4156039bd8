"""Settings and fixtures that all tests share."""

from __future__ import annotations

import importlib
import os
import sys

os.environ.setdefault("GOMP_SPINCOUNT", "20000")  # read once, when torch is loaded

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import legged_envs  # noqa: F401

torch.set_num_threads(1)


def keep_to_one_core() -> None:
    """Give each worker of pytest-xdist a core if there are as many workers as cores.

    Otherwise the threads of one worker, which physics and trainings start for each core, wait for the threads of the other workers.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker or not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    if int(os.environ["PYTEST_XDIST_WORKER_COUNT"]) >= len(cores):
        os.sched_setaffinity(0, [cores[int(worker.removeprefix("gw")) % len(cores)]])


keep_to_one_core()

GO2 = "Legged/Go2-Flat-v0"


@pytest.fixture
def make_vec() -> Iterator[Callable[..., Any]]:
    """``gymnasium.make_vec`` of the Go2 task unless another is named; closes what it made."""
    made = []

    def make(num_envs: int = 3, task: str = GO2, **kwargs: Any) -> Any:
        made.append(gym.make_vec(task, num_envs=num_envs, **kwargs))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.fixture
def make_single() -> Iterator[Callable[..., Any]]:
    """``gymnasium.make`` of the Go2 task unless another is named; closes what it made."""
    made = []

    def make(task: str = GO2, **kwargs: Any) -> Any:
        made.append(gym.make(task, **kwargs))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """A trainer takes every core, also for the tests after it."""
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def short_evaluations() -> Iterator[None]:
    """Evaluations last 1.2 s: for tests of a module that do not ask how well a policy does, as tens of updates teach it
    nothing. Others ask for ``walking_evaluations``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("legged_envs.evaluation.metrics.task.TaskMetrics.EPISODE_SECONDS", 1.2)
        patch.setattr("legged_envs.evaluation.metrics.terrain.TerrainMetrics.EPISODE_SECONDS", 1.2)
        yield


@pytest.fixture
def walking_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations last 4 s: long enough to see how a policy walks."""
    monkeypatch.setattr("legged_envs.evaluation.metrics.task.TaskMetrics.EPISODE_SECONDS", 4.0)
    monkeypatch.setattr(
        "legged_envs.evaluation.metrics.terrain.TerrainMetrics.EPISODE_SECONDS", 4.0
    )


@pytest.fixture
def log_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes a file about bad physics into the working directory: let that be an empty one."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def assert_same() -> Callable[..., None]:
    """Asserts that two trees of arrays are equal bit for bit, in shape and in dtype."""

    def check(one: Any, other: Any, where: str = "") -> None:
        if isinstance(one, SimpleNamespace):
            check(vars(one), vars(other), where)
        elif isinstance(one, dict):
            assert list(one) == list(other), where
            for key in one:
                check(one[key], other[key], f"{where}[{key!r}]")
        elif isinstance(one, (list, tuple)):
            assert len(one) == len(other), where
            for i, (a, b) in enumerate(zip(one, other, strict=True)):
                check(a, b, f"{where}[{i}]")
        elif isinstance(one, (np.ndarray, torch.Tensor)):
            assert type(one) is type(other), where
            one, other = np.asarray(one), np.asarray(other)
            assert (one.shape, one.dtype) == (other.shape, other.dtype), where
            differs = ~((one == other) | ((one != one) & (other != other)))
            assert not differs.any(), (
                f"{where} differs at {np.argwhere(differs)[:4].tolist()}: {one} vs {other}"
            )
        else:
            assert one == other, where

    return check


@pytest.fixture
def random_actions() -> Callable[..., np.ndarray]:
    """``random_actions(num_steps, num_envs, num_joints=12, seed=0)``: uniform in [−1, 1], float32."""

    def draw(num_steps: int, num_envs: int, num_joints: int = 12, seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return rng.uniform(-1.0, 1.0, (num_steps, num_envs, num_joints)).astype(np.float32)

    return draw


@pytest.fixture
def legacy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of a task that imports ``isaacgym``; the name is free again afterwards."""
    import legged_envs.compat.isaac_gym

    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    before = {*sys.modules}
    legged_envs.compat.isaac_gym.install()
    yield importlib.import_module("legacy_task")
    for name in {*sys.modules} - before:
        if name.startswith("isaacgym") or name == "legacy_task":
            del sys.modules[name]
