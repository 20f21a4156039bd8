"""Runs the commands of the documentation: with few robots, for a moment, and without a network or a display."""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from rich.console import Console
from robot_models import quadruped

from benchmarks import loops
from legged_envs import cli, registration
from legged_envs.compat.legged_gym import LeggedRobotCfg
from legged_envs.safe_benchmark.benchmark import run_benchmark
from legged_envs.safe_benchmark.methods import find_methods
from legged_envs.safe_benchmark.options import BenchmarkCfg
from legged_envs.safe_benchmark.plan import plan_runs, trial_runs
from legged_envs.sweeps.options import SweepCfg
from legged_envs.tasks import TASKS
from legged_envs.training.learner.constraint_methods import METHODS
from legged_envs.training.options import TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer

ROOT = Path(__file__).parents[1]
HAS_TESTED_VERSIONS = (
    f"numpy=={np.__version__}" in (ROOT / "constraints.txt").read_text().splitlines()
)
"""Whether the packages are those of constraints.txt, judged by NumPy. If not, as with the lowest versions, pip is not
tried: it would have to download, and the tests have no network."""
FEW = 64
"""Most environments of a batch."""
SMALL = {
    "legged-envs bench ": "--rounds 1 --sizes 4",
    "legged-envs crosscheck": "--robots 2 --seconds 1.1",
    "legged-envs demo": "--seconds 0.1",
    "legged-envs eval": "--episodes 1",
    "legged-envs motion": "--video None",
    "legged-envs play": "--seconds 0.1",
    "legged-envs record": "--num-envs 2 --episodes 2 --changes episode_length_s 0.4",
    "python -m benchmarks.ab": "--rounds 1 --sizes 1 --cycles 0 --no-start --round-steps 48",
    "python -m benchmarks.isaacgym": "--num-envs 4 --steps 2",
    "python -m benchmarks.physics": "--rounds 1 --episodes 1 --num-envs 4",
    "python -m benchmarks.storage": "--rounds 1",
    "python -m benchmarks.throughput": "--rounds 1 --quick",
    "python3 -m venv": "--without-pip",
    "pytest --pyargs legged_envs.conformance": "-k falls_freely",
    "python examples/offline.py": "--updates 10 --episodes 2",
}
"""Beginning of a command → the options that make it small. Trainings are made small by :func:`small_train`."""
SAME_ON_EVERY_PAGE = (
    "legged-envs bench Legged/",
    "legged-envs crosscheck Legged/",
    "pip install -c constraints.txt",
    "pip install legged-envs[",
    "python -m benchmarks.",
)
"""Beginnings of commands that need no files of a page: identical commands run only for the first page."""
SCRIPT_FOR_ISAAC_GYM = """
from isaacgym import gymapi, gymutil
args = gymutil.parse_arguments(custom_parameters=[{"name": "--task"}, {"name": "--headless", "action": "store_true"}])
assert args.headless and args.task == "a1"
gymapi.acquire_gym().create_sim(0, -1, args.physics_engine, gymapi.SimParams())
"""
"""Stands where the page has the script of another repository."""
ENGINE = "from legged_envs.sim.engines.mujoco import MujocoSimulation as MySimulation\n"
"""Stands where the page has the engine of another package."""

OWN = ("my_robots", "my_tasks", "my_robot", "own_robot")
"""Packages that pages make; packages without a file are known by these names."""


def small_train(cfg: TrainCfg) -> Path:
    """One update of four robots and a short evaluation, whatever ``cfg`` asks for.

    Films, trackers and figures of trainings take seconds each: tests/viewing, tests/runs and tests/training make those.
    """
    small = replace(cfg, num_envs=4, iterations=1, episodes=1, video=False, tracker="tensorboard")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("legged_envs.training.results.plot_learning_curve", lambda *_: None)
        return Trainer(prepare(small), Console()).run()


def small_sweep(cfg: SweepCfg) -> Path:
    """The runs of a sweep are checked and written, or read, and not trained; tests/sweeps trains some."""
    from legged_envs.sweeps.folder import make_runs, new_folder, read_runs, write_runs

    if cfg.resume is not None:
        assert read_runs(cfg)
        return cfg.resume
    folder = new_folder(cfg)
    runs = make_runs(cfg, folder)
    # A page may name a folder of another machine, which is not written.
    if not folder.is_absolute():
        write_runs(folder, cfg.task_id, runs)
    return folder


def commands_of(line: str) -> Iterator[list[str]]:
    """The commands of a line of bash, as words."""
    for command in line.split(" && "):
        words = shlex.split(command, comments=True)
        if not words:
            continue
        words[0] = words[0].removeprefix(".venv/bin/")
        if words[:3] == ["python", "-m", "legged_envs"]:
            words = ["legged-envs", *words[3:]]
        yield words


def same_on_every_page(lines: Iterable[str]) -> set[str]:
    """Which commands of lines of bash use nothing of what a page makes."""
    commands = {" ".join(words) for line in lines for words in commands_of(line)}
    return {
        each
        for each in commands
        if each.startswith(SAME_ON_EVERY_PAGE) and "--policy" not in each.split()
    }


def small_benchmark(cfg: BenchmarkCfg) -> None:
    """The runs of a benchmark are planned and checked, and not trained; tests/safe_benchmark trains some.

    Finished runs are evaluated into the folder of the page, also where a command names the results of the clone.
    """
    methods = find_methods(cfg.methods)
    if cfg.tasks:
        assert [*trial_runs(plan_runs(replace(cfg, seeds=1), methods), methods)]
    elif cfg.evaluate_only:
        run_benchmark(replace(cfg, episodes=2, results=None))
    else:
        run_benchmark(cfg)


class Terminal:
    """A folder that looks like a clone with a robot in it, ``spot.urdf``, and what is done there.

    Commands of this package and scripts run in this process, as it takes seconds to import what they need; each begins
    without the tasks and modules of the folder, as a new process does.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch):
        self.folder, self._patch = folder, patch
        self._tasks, self._ids = dict(TASKS), set(gym.registry)
        self._paths: list[str] = []
        self.elsewhere: set[str] = set()
        """Commands of :data:`SAME_ON_EVERY_PAGE` that run for another page."""

    def run(self, line: str) -> None:
        """Run a line; AssertionError if one of its commands fails or cannot be run here."""
        for words in commands_of(line):
            command = " ".join(words)
            if command in self.elsewhere:
                continue
            small = next((more for start, more in SMALL.items() if command.startswith(start)), "")
            self._run_small([*words, *small.split()])

    def _run_small(self, words: list[str]) -> None:
        run = {
            "legged-envs": self._verb,
            "python": self._python,
            "make": self._make,
            "pip": self._pip,
            "cd": self._cd,
        }
        if words[0] in run:
            run[words[0]](*words[1:])
        elif words[0] == "pytest" and "tests" in words[-1].split("/"):
            self._suite(*words[1:])
        elif words[0] == "pytest":
            assert pytest.main(["-q", "-p", "no:cacheprovider", *words[1:]]) == 0, words
        else:
            self.script(shlex.join(words))

    def script(self, text: str) -> None:
        """Run a script of bash, which stops where something fails."""
        self._process("bash", "-euc", text)

    def _process(self, *words: str, cwd: Path | None = None) -> str:
        scripts = sysconfig.get_path("scripts")
        env = os.environ | {
            "PATH": f"{scripts}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(map(str, self._paths)),
        }
        done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def _suite(self, *paths: str) -> None:
        """Tests of this suite, which runs them itself: they must be there."""
        for path in paths:
            assert (ROOT / path).exists(), path

    def _cd(self, folder: str) -> None:
        self._patch.chdir(folder)

    def _verb(self, verb: str, *words: str) -> None:
        self.forget()
        registration.register_tasks()
        if verb in ("demo", "play"):
            with socket.create_server(("127.0.0.1", 0)) as taken:
                port = taken.getsockname()[1]
            words += ("--port", str(port)) if "--web" in words else ("--video", "play.mp4")
        if verb == "benchmark":
            run = "legged_envs.safe_benchmark.benchmark.run_benchmark"
            self._patch.setattr(run, small_benchmark)
        if verb == "sweep":
            self._patch.setattr("legged_envs.sweeps.sweep.sweep", small_sweep)
        try:
            cli.main([verb, *words])
        except SystemExit as stop:  # check says by 1 that a robot has problems
            assert stop.code in ((None, 0, 1) if verb == "check" else (None, 0)), (verb, *words)

    def _python(self, *words: str) -> None:
        if words[:2] == ("-m", "legged_envs.compat.isaac_gym"):  # which takes a name for good
            self._process(sys.executable, *words)
            return
        module, what, given = (
            (True, words[1], words[2:]) if words[0] == "-m" else (False, words[0], words[1:])
        )
        self._patch.setattr(sys, "argv", [what, *given])
        self._patch.setattr(sys, "path", [*sys.path])
        # Python's default, set so that the patch restores it after a script changes it.
        self._patch.setattr(sys, "tracebacklimit", 1000, raising=False)
        try:
            if module:
                runpy.run_module(what, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(what, run_name="__main__")
        except SystemExit as stop:
            assert stop.code in (None, 0), (what, *given, stop.code)

    def _make(self, *words: str) -> None:
        """Return the commands of a make target that run this package, without test tools and releases, which take minutes."""
        for line in self._process("make", "-n", *words, cwd=ROOT).splitlines():
            if line.startswith(".venv/bin/legged-envs "):
                self.run(line)

    def _pip(self, *words: str) -> None:
        """Packages of others must be installed in the versions that are asked for, one of ours is."""
        if "-e" in words:
            folder, _, extras = words[words.index("-e") + 1].partition("[")
            about = tomllib.loads((Path(folder) / "pyproject.toml").read_text())["project"]
            if about["name"] != "legged-envs":
                self._install(Path(folder).resolve(), about["name"])
                return
            words = tuple(word for word in words if word != "-e" and not word.startswith(folder))
            words += (f"legged-envs[{extras.removesuffix(']')}]",)
        if not HAS_TESTED_VERSIONS:
            return
        said = self._process(
            sys.executable, "-m", "pip", *words, "--dry-run", "--no-index", cwd=ROOT
        )
        assert "Would install" not in said and "does not provide" not in said, said

    def _install(self, folder: Path, name: str) -> None:
        """Make a project known as an editable installation does, without the seconds that pip takes.

        tests/properties/test_own_package.py installs one.
        """
        self.entry_points((folder / "pyproject.toml").read_text(), name)
        self.add_path(folder / "src")

    def add_path(self, path: Any) -> None:
        """Let this process and its children import from there."""
        self._paths.insert(0, str(path))
        self._patch.syspath_prepend(path)

    def entry_points(self, text: str, package: str = "page") -> None:
        """Name entry points, given as in a pyproject.toml, as an installed package does."""
        lines = []
        for group, points in tomllib.loads(text)["project"]["entry-points"].items():
            lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
        about = self.folder / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")

    def forget(self) -> None:
        """Forget the tasks that were registered, and the modules that were imported, from the folder."""
        TASKS.clear()
        TASKS.update(self._tasks)
        for task_id in gym.registry.keys() - self._ids:
            del gym.registry[task_id]
        for name, module in [*sys.modules.items()]:
            if (
                str(getattr(module, "__file__", None)).startswith(str(self.folder))
                or name.partition(".")[0] in OWN
            ):
                del sys.modules[name]


def make_terminal(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal in a new folder; environments and registrations of the page are removed after it."""
    folder = folder / "clone"
    folder.mkdir()
    (folder.parent / "before").symlink_to(ROOT)
    for name in ("legged_envs", "benchmarks", "pyproject.toml", "constraints.txt", "tests"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(
        ROOT / "examples",
        folder / "examples",
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
    )
    (folder / "spot.urdf").write_text(quadruped())
    for name, text in {
        "legged_gym/scripts/train.py": SCRIPT_FOR_ISAAC_GYM,
        "my_package/engine.py": ENGINE,
    }.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    terminal = Terminal(folder, patch)
    patch.chdir(folder)
    terminal.add_path(folder)
    patch.delenv("DISPLAY", raising=False)
    patch.setenv("MINARI_DATASETS_PATH", str(folder / "datasets"))
    patch.setenv("WANDB_MODE", "offline")
    patch.setenv("WANDB_SILENT", "true")
    patch.setattr("legged_envs.evaluation.metrics.task.TaskMetrics.EPISODE_SECONDS", 1.2)
    patch.setattr("legged_envs.evaluation.metrics.terrain.TerrainMetrics.EPISODE_SECONDS", 1.2)
    patch.setattr(LeggedRobotCfg.env, "num_envs", 4)
    patch.setattr(loops, "ROUND_ENV_STEPS", 48)
    patch.setattr(loops, "WARM_UP_ENV_STEPS", 48)
    patch.setattr("legged_envs.viewing.film.RENDER_SIZE", (320, 192))
    patch.setattr("legged_envs.viewing.film.VIDEO_WIDTH", 320)
    made, threads = [], torch.get_num_threads()
    make_vec, loop = gym.make_vec, loops.EnvLoop.__init__

    def make_few(task: str, num_envs: int = 1, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") == "cuda:0" and not torch.cuda.is_available():
            kwargs["device"] = "cpu"
        made.append(make_vec(task, min(num_envs, FEW), *args, **kwargs))
        return made[-1]

    patch.setattr(gym, "make_vec", make_few)
    patch.setattr(
        loops.EnvLoop,
        "__init__",
        lambda self, task, num, *more: loop(self, task, min(num, FEW), *more),
    )
    patch.setattr("legged_envs.training.trainer.train", small_train)
    # An example adds it, and no other test is to see it.
    patch.delitem(METHODS, "quadratic", raising=False)
    yield terminal
    for env in made:
        env.close()
    torch.set_num_threads(threads)
    terminal.forget()
