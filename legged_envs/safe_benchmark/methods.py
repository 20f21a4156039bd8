"""The methods of the benchmark, and the base class of your own methods."""

import importlib.util
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.checks import check_known
from legged_envs.envs.cost_suites import LEVELS
from legged_envs.evaluation.run_results import Run
from legged_envs.policy.policy import load_policy
from legged_envs.runs.run_folder import CHECKPOINT
from legged_envs.safe_benchmark.method_options import (
    FIXED,
    PENALTY,
    SEPARATOR,
    base_of,
    method_name,
    read_method,
)
from legged_envs.safe_benchmark.options import ALL
from legged_envs.safe_benchmark.run import BenchmarkRun
from legged_envs.system_checks import check_inputs, import_named
from legged_envs.training.command import train_words
from legged_envs.training.learner_options import ConstraintMethodName
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer
from legged_envs.wrappers.constraints_as_terminations import ConstraintsAsTerminations
from legged_envs.wrappers.lagrangian_reward import LagrangianReward

WARMUP_SHARE = 0.4
"""Share of a training after which a wrapper starts to adapt, when robots can walk."""

METHOD_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
"""Form of the name of a method, which is a part of the name of a run folder."""

PolicyFunction = Callable[..., torch.Tensor]
"""Function from the observations of each group, (n, size), to actions (n, num_actions)."""


class Method:
    """A method of the benchmark. A subclass defines the differences from the package's PPO.

    A method of another library overrides the three methods :meth:`train`, :meth:`policy` and
    :meth:`curve`. A method that changes options or wraps environments overrides :meth:`options` or
    :meth:`wrap`, and no others.
    """

    name: str = ""
    """Name of the method in commands, folders and tables: lower case, digits and underscores."""
    source: str = ""
    """``FILE.py:Class`` of a loaded method. Empty for the methods of the package."""

    def options(self, run: BenchmarkRun) -> TrainCfg:
        """Return the options of the training of a run."""
        return TrainCfg(
            run.task_id,
            num_envs=run.num_envs,
            iterations=run.iterations,
            seed=run.seed,
            run_dir=run.folder,
            constraints=level_option(run.level),
            threads=run.threads,
            video=False,
            algo=PPOCfg(),
        )

    def wrap(self, envs: VectorEnv, run: BenchmarkRun) -> VectorEnv:
        """Return the training environments with the wrappers of the method.

        Args:
            envs: Training environments.
            run: The run.
        """
        return envs

    def train(self, run: BenchmarkRun) -> None:
        """Train a run in this process, and write the result into its folder.

        A training that was interrupted is continued.
        """
        options = self.options(run)
        if (run.folder / CHECKPOINT).exists():
            options = TrainCfg(run.task_id, resume=run.folder, threads=run.threads)
        Trainer(prepare(options), Console(), lambda envs: self.wrap(envs, run)).run()

    def policy(self, run: BenchmarkRun) -> PolicyFunction:
        """Return the trained policy of a run, without exploration noise.

        It returns actions of shape (n, num_actions). A policy of several observation groups has
        their names in an attribute ``inputs``.
        """
        return load_policy(run.folder)

    def curve(self, run: BenchmarkRun) -> list[dict[str, float]]:
        """Return the numbers of each update of a run, by name.

        The benchmark reads ``env_steps``, ``steps_per_second`` and ``cost/NAME``, the mean of each
        cost per step over the robots in training. A row without ``cost/NAME`` does not count.
        """
        return Run(run.folder).curve

    def words(self, run: BenchmarkRun) -> list[str]:
        """Return the words after ``legged-envs`` of a command that trains a run."""
        # The folder of the run is runs/NAME in the benchmark's folder.
        folder = str(run.folder.parents[1])
        words = ["benchmark", "safe", "--run", run.name, "--methods", self.source or self.name]
        words += ["--folder", folder, "--num-envs", str(run.num_envs)]
        if run.iterations is not None:
            words += ["--iterations", str(run.iterations)]
        if run.threads:
            words += ["--cpus-per-run", str(run.threads)]
        return words


class OptionMethod(Method):
    """A value of ``--constraint.method``, or no constraint, trained by ``legged-envs train``.

    Args:
        word: Value of ``--constraint.method``. Options of PPO may follow it, such as
            ``fixed,constraint.penalty=0.2``.

    Raises:
        ValueError: If an option or its value is wrong.
    """

    def __init__(self, word: str):
        self.algo = read_method(word)
        """Options of PPO."""
        self.name = method_name(self.algo)

    def options(self, run: BenchmarkRun) -> TrainCfg:
        return replace(super().options(run), algo=self.algo)

    def words(self, run: BenchmarkRun) -> list[str]:
        return train_words(self.options(run))


class TerminationsWrapper(Method):
    """PPO with the wrapper ``ConstraintsAsTerminations``, as in examples/constrained_go2.py."""

    name = "terminations_wrapper"

    def wrap(self, envs: VectorEnv, run: BenchmarkRun) -> VectorEnv:
        return ConstraintsAsTerminations(
            envs,
            combine="product",
            min_probability=0.005,
            rate=0.15,
            gain=3.0,
            warmup=warmup_steps(self.options(run)),
        )


class LagrangianWrapper(Method):
    """PPO with the wrapper ``LagrangianReward``, as in examples/constrained_go2.py."""

    name = "lagrangian_wrapper"

    def wrap(self, envs: VectorEnv, run: BenchmarkRun) -> VectorEnv:
        warmup = warmup_steps(self.options(run))
        return LagrangianReward(envs, pid=(0.08, 0.001, 0.0), warmup=warmup)


def level_option(level: str) -> Any:
    """Return the value of ``--constraints`` for a level: its name, or the factor as a number."""
    return level if level in LEVELS else float(level)


def warmup_steps(options: TrainCfg) -> int:
    """Return the control steps of each robot before a wrapper starts to adapt."""
    # The folder of a training that is continued is not empty.
    prepared = prepare(replace(options, run_dir=None))
    assert prepared.cfg.iterations is not None
    return round(WARMUP_SHARE * prepared.cfg.iterations * prepared.algo.steps_per_env)


def shipped_methods() -> dict[str, Method]:
    """Return the methods of the package by name, first the unconstrained one."""
    methods: dict[str, Method] = {}
    for name in get_args(ConstraintMethodName):
        methods[name] = OptionMethod(name)
    for method in (TerminationsWrapper(), LagrangianWrapper()):
        methods[method.name] = method
    return methods


def find_methods(words: Sequence[str]) -> dict[str, Method]:
    """Return the methods that ``--methods`` asks for, by name.

    Args:
        words: Names of methods, ``all`` for all methods of the package, and ``FILE.py:Class`` or
            ``module:Class`` for others. Options may follow a value of ``--constraint.method``:
            ``p3o,constraint.kappa=0.1``.

    Raises:
        ValueError: If there is no such method, or one is given twice.
        FileNotFoundError: If there is no such file.
    """
    shipped = shipped_methods()
    methods: dict[str, Method] = {}
    for word in words:
        if word == ALL:
            chosen = list(shipped.values())
        elif ":" in word:
            chosen = [load_method(word)]
            check_new_name(word, chosen[0].name, shipped)
        else:
            known = [ALL, *shipped, "FILE.py:Class"]
            check_known("--methods: there is no method", (base_of(word),), known, "methods")
            chosen = [shipped_method(word)]
        for method in chosen:
            if method.name in methods:
                raise ValueError(f"--methods has {method.name!r} twice: give each method once")
            methods[method.name] = method
    return methods


def profile_methods(penalties: Sequence[float]) -> dict[str, Method]:
    """Return the methods of ``--penalties`` by name: the fixed penalty with each of them.

    Raises:
        ValueError: If a penalty is below 0, or given twice.
    """
    methods: dict[str, Method] = {}
    for penalty in penalties:
        method = OptionMethod(f"{FIXED}{SEPARATOR}{PENALTY}={penalty}")
        if method.name in methods:
            raise ValueError(f"--penalties has {penalty:g} twice: give each penalty once")
        methods[method.name] = method
    return methods


def shipped_method(word: str) -> Method:
    """Return a method of the package, with the options that follow its name.

    Raises:
        ValueError: If an option is wrong, or the method takes none.
    """
    method = shipped_methods()[base_of(word)]
    if SEPARATOR not in word:
        return method
    if not isinstance(method, OptionMethod):
        raise ValueError(
            f"--methods {word}: only methods of --constraint.method take options, not "
            f"{method.name!r}; a class in a file can have other numbers"
        )
    return OptionMethod(word)


def method_of(run: BenchmarkRun, methods: Mapping[str, Method], where: str) -> Method:
    """Return the method that the name of a run stands for.

    Args:
        run: The run.
        methods: Methods by name. Methods with options need not be among them.
        where: Beginning of an error, such as an option or a path.

    Raises:
        ValueError: If the method is not known, or the name is not the usual form of its options.
    """
    if run.method in methods:
        return methods[run.method]
    known = (*methods, "FILE.py:Class of --methods")
    check_known(f"{where}: there is no method", (base_of(run.method),), known, "methods")
    method = shipped_method(run.method)
    if method.name != run.method:
        usual = replace(run, method=method.name).name
        raise ValueError(f"{where} is the run {usual!r}: give it this name")
    return method


def load_method(word: str) -> Method:
    """Return the method that ``FILE.py:Class`` or ``module:Class`` names.

    Raises:
        ValueError: If the class is not there, or is not a :class:`Method`.
        FileNotFoundError: If there is no such file.
    """
    place, _, class_name = word.rpartition(":")
    if place.endswith(".py"):
        file = Path(place)
        check_inputs("--methods", [file])
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        # Classes of the file can be pickled only if their module can be found.
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
    else:
        module = import_named(place, word)
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise ValueError(
            f"--methods {word}: {class_name!r} must be a class derived from "
            f"legged_envs.safe_benchmark.methods.Method, got {found!r}"
        )
    method = found()
    method.source = word
    return method


def check_new_name(word: str, name: str, shipped: dict[str, Method]) -> None:
    """Raise a ValueError if the name of a loaded method is taken, or no name of a folder.

    Args:
        word: Word of ``--methods`` from which the method was loaded.
        name: Name of the method.
        shipped: Methods of the package, by name.
    """
    if not METHOD_NAME.fullmatch(name):
        raise ValueError(
            f"--methods {word}: its name must be lower case, digits and underscores, got {name!r}"
        )
    if name in shipped:
        raise ValueError(f"--methods {word}: {name!r} is a method of the package: choose another")


def command_of(method: Method, run: BenchmarkRun) -> str:
    """Return the command line that trains a run.

    Args:
        method: Method of the run.
        run: The run.
    """
    return shlex.join(["legged-envs", *method.words(run)])
