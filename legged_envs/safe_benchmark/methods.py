"""The methods of the benchmark, by name, and of other files."""

import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from gymnasium.vector import VectorEnv

from legged_envs.checks import check_known
from legged_envs.safe_benchmark.method import Method as Method
from legged_envs.safe_benchmark.method import PolicyFunction as PolicyFunction
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
from legged_envs.safe_benchmark.saute import SauteWrapper
from legged_envs.system_checks import check_inputs, import_named
from legged_envs.training.command import train_words
from legged_envs.training.learner_options import ConstraintMethodName
from legged_envs.training.options import TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.wrappers.constraints_as_terminations import ConstraintsAsTerminations
from legged_envs.wrappers.lagrangian_reward import LagrangianReward

WARMUP_SHARE = 0.4
"""Share of a training after which a wrapper starts to adapt, when robots can walk."""

METHOD_NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
"""Form of the name of a method, which is a part of the name of a run folder."""


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
    for method in (TerminationsWrapper(), LagrangianWrapper(), SauteWrapper()):
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
