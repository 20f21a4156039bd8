"""Train a policy, evaluate it and write a run folder."""

import json
import os
import shlex
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import unwrap
from legged_envs.evaluation.conditions import combine_logs
from legged_envs.policy.policy import load_policy
from legged_envs.runs.checkpoint_file import CHECKPOINT, write_checkpoint
from legged_envs.runs.progress import LINE_INTERVAL, Show, showing
from legged_envs.runs.run_folder import (
    ABOUT,
    CONFIG,
    CURVE,
    as_json,
    describe_session,
    flatten_numbers,
    lock_run_folder,
    write_json,
)
from legged_envs.runs.trackers import TRACKERS, Track
from legged_envs.training.algorithm import Algorithm, make_algorithm
from legged_envs.training.goal import GoalCheck
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import Prepared, prepare
from legged_envs.training.results import export_policy, write_results
from legged_envs.training.schedule import Schedule
from legged_envs.training.stop import StopRequest
from legged_envs.training.warm_start import load_warm_start
from legged_envs.viewing.film import film_policy
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

TRAINING_INTERVAL = 60.0
"""Time between two lines about a training where there is no terminal, s."""

SPEED_UPDATES = 20
"""Number of the last updates over which the speed that is shown is averaged."""


def train(cfg: TrainCfg) -> Path:
    """Run a training with the options ``cfg``.

    Returns:
        The run folder.
    """
    return Trainer(prepare(cfg), Console()).run()


class Trainer:
    """One training run.

    An update is a rollout of all robots and what the algorithm learns from it. Physics, learning
    rate, discount and the weight of a trot follow the share of the updates that is done, so the
    same seed gives the same policy. With ``--minutes`` they follow the clock.

    Args:
        prepared: The checked options and task, from :func:`~legged_envs.training.prepare.prepare`.
        console: Where the run is reported.
        wrap: Function that puts wrappers on the training environment. Evaluations do without them.

    Raises:
        FileNotFoundError: If the teacher is missing.
        ValueError: If the teacher or the run to begin with does not suit the task.
    """

    def __init__(
        self,
        prepared: Prepared,
        console: Console,
        wrap: Callable[[VectorEnv], VectorEnv] | None = None,
    ):
        self.prepared = prepared
        """The checked options and task."""
        self.cfg = prepared.cfg
        """The options, complete."""
        self.task = prepared.task
        """The task that is trained and evaluated."""
        self.run_dir = prepared.run_dir
        """The run folder."""
        self.metrics = prepared.metrics
        """Class that measures the policy."""
        self.console = console
        """Where the run is reported."""
        self._is_wrapped = wrap is not None
        self._scenes = prepared.scenes

        torch.set_num_threads(self.cfg.threads or os.cpu_count() or 1)
        # Everything below that is drawn at random depends on this seed.
        torch.manual_seed(self.cfg.seed)
        envs = self._make_envs()

        self.env = RslRlVecEnv(wrap(envs) if wrap else envs, seed=self.cfg.seed)
        """The training environment, with wrappers."""
        self.core = unwrap(envs)
        """The training environment, without wrappers."""
        # Episodes start at random ages, so that they do not all end together.
        self.env.episode_length_buf = torch.randint_like(
            self.env.episode_length_buf, high=self.env.max_episode_length
        )

        self.algorithm: Algorithm = make_algorithm(
            prepared.algo, self.env, prepared.defaults.upper_body_noise
        )
        """The algorithm that learns, with the policy."""
        self.algorithm.train_mode()
        self.groups: tuple[str, ...] = getattr(self.algorithm, "groups", self.metrics.GROUPS)
        """Observation groups that the policy takes."""
        self._load_warm_start()
        self.schedule = Schedule(prepared, self.algorithm, self.core)
        """Sets what changes over the training."""
        self.goal = GoalCheck(prepared, self.groups)
        """Checks whether the policy reaches the goal of the task."""

        self.iteration = 0
        """Number of updates so far."""
        self.seconds = 0.0
        """Training time so far, checks for the goal included, s."""
        self.curve: list[dict[str, float]] = []
        """Numbers of each update."""
        self.time_to_walk: dict[str, float] | None = None
        """Training time, s, and steps after which the policy reached the goal. None: it did not
        yet."""
        self.stop = StopRequest(console)
        """Ends the training after the present update."""
        if prepared.checkpoint is not None:
            self._load(prepared.checkpoint)

    def _make_envs(self) -> VectorEnv:
        return gym.make_vec(
            self.cfg.task_id,
            num_envs=self.cfg.num_envs,
            cfg=self.task,
            array="torch",
            observations="dict",
            sim=self.cfg.sim,
            device=self.cfg.device,
        )

    def _load_warm_start(self) -> None:
        checkpoint = self.prepared.warm_start
        if checkpoint is None:
            return
        if isinstance(self.algorithm, BootstrapPPO):
            algo = self.prepared.algo
            assert isinstance(algo, PPOCfg)
            assert self.cfg.warm_start is not None
            load_warm_start(
                checkpoint,
                place=self.cfg.warm_start,
                algorithm=self.algorithm,
                task_id=self.cfg.task_id,
                env=self.env,
                noise=algo.noise_kept,
            )
        else:
            parts = {"actor": True, "critic": True}
            self.algorithm.load(checkpoint["algorithm"], parts, strict=True)

    @property
    def env_steps(self) -> int:
        """Steps of all robots so far."""
        return self.iteration * self.prepared.algo.steps_per_env * self.cfg.num_envs

    @property
    def progress(self) -> float:
        """Share of the training that is done; 1 or more at its end."""
        if self.cfg.iterations is not None:
            return self.iteration / self.cfg.iterations
        assert self.cfg.minutes is not None, "prepare() completes the number of updates"
        return self.seconds / (60.0 * self.cfg.minutes)

    def run(self) -> Path:
        """Train, export, evaluate, draw and film.

        SIGINT (Ctrl-C) and SIGTERM end a run with a KeyboardInterrupt: in training once the update
        is done and the policy and a checkpoint are saved.

        Returns:
            The run folder.

        Raises:
            FileExistsError: If another training writes to the folder.
            KeyboardInterrupt: If the run is interrupted.
        """
        with lock_run_folder(self.run_dir):
            config: dict[str, Any] = {"training": self.cfg, "task": self.task}
            write_json(self.run_dir / CONFIG, config)
            # An f-string would write the line of the environment, not its tables.
            (self.run_dir / "task.txt").write_text(str(self.core) + "\n")
            self.console.print(
                f"{self.cfg.task_id}: {self.cfg.num_envs} environments → {self.run_dir}",
                markup=False,
            )
            # A machine that cannot draw says so now, not after the training.
            with self._rendering():
                if self._scenes:
                    self.core.sim.render(0, 16, 16)
            with self.stop.on_signals():
                try:
                    self._train_and_evaluate(json.loads(json.dumps(config, default=as_json)))
                except KeyboardInterrupt:
                    self._print_how_to_resume()
                    raise
        return self.run_dir

    def _train_and_evaluate(self, config: dict[str, Any]) -> None:
        tracker = TRACKERS[self.cfg.tracker]
        with tracker(self.run_dir, config, self.iteration) as track:
            with showing(self.console, TRAINING_INTERVAL) as show:
                self._train(show, track)
            with showing(self.console, LINE_INTERVAL) as show:
                result = self._save_and_evaluate(show)
            track(flatten_numbers({"evaluation": result.as_dict()}), self.iteration)
        result.print(self.console)

    def _print_how_to_resume(self) -> None:
        if not (self.run_dir / CHECKPOINT).exists():
            return
        if self._is_wrapped:
            command = (
                f"TrainCfg({self.cfg.task_id!r}, resume=Path({str(self.run_dir)!r})) "
                "and the same wrappers"
            )
        else:
            words = ["legged-envs", "train", self.cfg.task_id, "--resume", str(self.run_dir)]
            command = shlex.join(words)
        self.console.print(f"interrupted; go on with: {command}", markup=False, soft_wrap=True)

    @contextmanager
    def _rendering(self) -> Iterator[None]:
        """Report an error of drawing and do without a film; the training goes on."""
        try:
            yield
        except (RuntimeError, OSError) as error:
            self.console.print(
                f"no video: {error}", style="yellow", markup=False, highlight=False, soft_wrap=True
            )
            self._scenes = []

    def _train(self, show: Show, track: Track) -> None:
        self._write_session()
        saved_at = self.seconds
        begun = time.perf_counter() - self.seconds
        # Written line by line, because a report may read the file at any time.
        with (self.run_dir / CURVE).open("w", buffering=1) as file:
            file.writelines(json.dumps(row) + "\n" for row in self.curve)
            while self.progress < 1.0 and not self.stop.is_requested:
                self.set_schedule()
                row = self.iterate()
                self.seconds = time.perf_counter() - begun
                row["seconds"] = self.seconds
                self.curve.append(row)
                file.write(json.dumps(row) + "\n")
                track({f"train/{name}": value for name, value in row.items()}, self.iteration)
                self.check_goal(row)
                if self.seconds - saved_at > 60.0 * self.cfg.checkpoint_minutes:
                    self.save()
                    saved_at = self.seconds
                show("training", self.progress, self._progress_text(row))

    def _write_session(self) -> None:
        """Add this session to those of the run, or begin their list with it."""
        path = self.run_dir / ABOUT
        sessions = []
        if self.iteration and path.is_file():
            sessions = json.loads(path.read_text())
        write_json(path, [*sessions, describe_session(self.iteration)])

    def _progress_text(self, row: dict[str, float]) -> str:
        errors = [f"{row[name]:.2f} {unit}" for name, unit in self.metrics.ERRORS.items()]
        recent = [last["steps_per_second"] for last in self.curve[-SPEED_UPDATES:]]
        lines = [
            f"update {self.iteration}  {row['env_steps'] / 1e6:.2f} M steps",
            f"{statistics.fmean(recent):.0f} steps/s  reward {row['reward']:.2f}/s",
            f"error {'  '.join(errors)}" if errors else "",
        ]
        return "\n".join(lines)

    def set_schedule(self) -> None:
        """Set physics, learning rate, discount and the weight of a trot for the next update."""
        self.schedule.apply(self.progress, self.env_steps)

    def iterate(self) -> dict[str, float]:
        """Make one update: a rollout, and what the algorithm learns from it.

        Returns:
            Numbers of the update, the reward per second.
        """
        algorithm = self.algorithm
        steps = self.prepared.algo.steps_per_env
        begun = time.perf_counter()
        observation = self.env.get_observations()
        reward_sum = torch.zeros((), device=self.core.device)
        logs = []
        with torch.inference_mode():
            for _ in range(steps):
                observation, rewards, dones, extras = self.env.step(algorithm.act(observation))
                algorithm.process_env_step(observation, rewards, dones, extras)
                reward_sum += rewards.mean()
                if "log" in extras:
                    logs.append(extras["log"])
            algorithm.compute_returns(observation)
        collected = time.perf_counter()
        losses = algorithm.update()
        ended = time.perf_counter()
        self.iteration += 1
        samples = steps * self.cfg.num_envs
        return {
            "iteration": self.iteration,
            "env_steps": self.env_steps,
            "reward": reward_sum.item() / (steps * self.core.step_dt),
            **self.metrics.training_errors(self.core),
            "steps_per_second": samples / (ended - begun),
            "rollout_steps_per_second": samples / (collected - begun),
            "update_steps_per_second": samples / (ended - collected),
            "action_std": algorithm.get_policy().output_std.mean().item(),
            **{f"loss_{name}": value for name, value in losses.items()},
            **combine_logs(logs),
        }

    def check_goal(self, row: dict[str, float]) -> None:
        """Evaluate the policy if it is time to, until it reaches the goal.

        Args:
            row: Numbers of the last update.
        """
        if self.time_to_walk is not None or not self.goal.is_due(row, self.seconds):
            return
        policy = self.algorithm.get_policy().as_jit()
        result = self.goal.check(policy, self.seconds, show=self.stop.raise_if_requested)
        if result is None:
            return
        self.time_to_walk = {"seconds": round(self.seconds, 1), "env_steps": row["env_steps"]}
        self.console.print(
            f"walks after {self.seconds:.0f} s and {row['env_steps'] / 1e6:.1f} M steps: "
            f"{result.lin_vel_error:.2f} m/s, {result.ang_vel_error:.2f} rad/s, "
            f"{result.falls:.1%} falls"
        )

    def export(self) -> None:
        """Write the policy into the run folder."""
        export_policy(self.prepared, self.algorithm, self.core, self.groups)

    def _save_and_evaluate(self, show: Show) -> Any:
        show("exporting", 0.0)
        self.save()
        self.export()
        show("exporting", 1.0)
        self.stop.nothing_to_lose = True
        self.stop.raise_if_requested()

        def show_or_stop(what: str, done: float, text: str = "") -> None:
            self.stop.raise_if_requested()
            show(what, done, text)

        policy = load_policy(self.run_dir)
        with ThreadPoolExecutor(1) as pool:
            evaluating = pool.submit(self.goal.evaluator.run, policy, show=show_or_stop)
            # On the main thread: some graphics libraries draw on no other.
            with self._rendering():
                if self._scenes:
                    film_policy(
                        self.cfg.task_id,
                        self.task,
                        load_policy(self.run_dir),
                        self.run_dir / "video.mp4",
                        self._scenes,
                        show,
                    )
            result = evaluating.result()
        show("drawing", 0.0)
        write_results(self.prepared, result, self.curve, self.time_to_walk)
        show("drawing", 1.0)
        return result

    def checkpoint_state(self) -> dict[str, Any]:
        """Return everything that a resumed run needs to continue bit for bit."""
        return {
            "iteration": self.iteration,
            "seconds": self.seconds,
            "curve": self.curve,
            "time_to_walk": self.time_to_walk,
            "algorithm": self.algorithm.save(),
            "env": self.env.get_state(),
            "rng": torch.get_rng_state(),
            "task_id": self.cfg.task_id,
            "cfg": self.cfg,
        }

    def save(self) -> None:
        """Write a checkpoint into the run folder."""
        write_checkpoint(self.run_dir, self.checkpoint_state(), self.cfg.keep)

    def _load(self, state: dict[str, Any]) -> None:
        self.algorithm.load(state["algorithm"], None, strict=True)
        self.env.set_state(state["env"])
        torch.set_rng_state(state["rng"])
        self.iteration = state["iteration"]
        self.seconds = state["seconds"]
        self.curve = state["curve"]
        self.time_to_walk = state["time_to_walk"]
