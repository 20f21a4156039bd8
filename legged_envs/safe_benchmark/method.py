"""The base class of the methods of the benchmark: your own ones are derived from it."""

import shlex
from collections.abc import Callable
from typing import Any

import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs.cost_suites import LEVELS
from legged_envs.evaluation.run_results import Run
from legged_envs.policy.policy import load_policy
from legged_envs.runs.run_folder import CHECKPOINT
from legged_envs.safe_benchmark.run import BenchmarkRun
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.standing_check import check_standing
from legged_envs.training.trainer import Trainer

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

    def wrap_evaluation(self, envs: VectorEnv, run: BenchmarkRun) -> VectorEnv:
        """Return the environments of the evaluation with the wrappers that the policy needs.

        There are none unless a method overrides this function, for a policy that observes more than
        the observations of the task.

        Args:
            envs: Environments of the evaluation.
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
        prepared = prepare(options)
        check_standing(prepared)
        Trainer(prepared, Console(), lambda envs: self.wrap(envs, run)).run()

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


def level_option(level: str) -> Any:
    """Return the value of ``--constraints`` for a level: its name, or the factor as a number."""
    return level if level in LEVELS else float(level)


def command_of(method: Method, run: BenchmarkRun) -> str:
    """Return the command line that trains a run.

    Args:
        method: Method of the run.
        run: The run.
    """
    return shlex.join(["legged-envs", *method.words(run)])
