"""Training run: learn a policy, evaluate it and write the run folder."""

import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import unwrap
from legged_envs.evaluation.conditions import as_floats, combine_logs
from legged_envs.policy.memory import remembering
from legged_envs.policy.policy import load_policy
from legged_envs.rng import hash_64
from legged_envs.runs.checkpoint_file import write_checkpoint
from legged_envs.runs.progress import LINE_INTERVAL, TRAINING_INTERVAL, Show, show_nothing, showing
from legged_envs.runs.run_folder import (
    CONFIG,
    CURVE,
    as_json,
    flatten_numbers,
    lock_run_folder,
    write_json,
    write_session,
)
from legged_envs.runs.trackers import TRACKERS, Track
from legged_envs.system_checks import usable_cores
from legged_envs.training import processes
from legged_envs.training.algorithm import Algorithm, make_algorithm
from legged_envs.training.checkpoint import resuming_after_failure
from legged_envs.training.film import Film
from legged_envs.training.goal import GoalCheck
from legged_envs.training.notices import print_how_to_resume, print_next_step, report_bad_physics
from legged_envs.training.options import TrainCfg
from legged_envs.training.prepare import Prepared, agreed, prepare
from legged_envs.training.restore import resume_training, start_warm, state_of_process
from legged_envs.training.results import export_policy, write_results
from legged_envs.training.schedule import Schedule
from legged_envs.training.snapshots import Snapshots
from legged_envs.training.standing_check import check_standing
from legged_envs.training.stop import StopRequest
from legged_envs.training.threads import limit_threads
from legged_envs.wrappers.adapters.rsl_rl import RslRlVecEnv

SPEED_UPDATES = 20
"""Number of most recent updates over which the displayed steps per second are averaged."""


def train(cfg: TrainCfg) -> Path:
    """Train a policy, evaluate it, and write both into a run folder.

    The processes that ``torchrun`` starts train one policy together.

    Args:
        cfg: Options of the training, checked by :func:`~legged_envs.training.prepare.prepare`.

    Returns:
        The run folder.
    """
    cfg = resuming_after_failure(cfg)
    with processes.joined():
        prepared = agreed(prepare(cfg))
        check_standing(prepared)
        return Trainer(prepared, Console(quiet=not processes.is_first())).run()


class Trainer:
    """Training run of one policy: makes environment and algorithm, and runs the updates.

    In an update all robots make a rollout and the algorithm learns from it. Physics, learning
    rate and discount are scheduled by the share of the updates that is done, so the same seed gives
    the same policy. With ``--minutes`` they are scheduled by the clock. The weight of the trot
    reward is scheduled by the number of environment steps.

    Args:
        prepared: Checked options and task, from :func:`~legged_envs.training.prepare.prepare`.
        console: Console that progress and results are printed to.
        wrap: Function that adds wrappers to the training environment. Evaluations run without them.
            None: no wrappers.

    Raises:
        FileNotFoundError: If the file of the teacher is missing.
        ValueError: If the observations or actions of the teacher or of the warm start do not suit
            the task.
    """

    def __init__(
        self,
        prepared: Prepared,
        console: Console,
        wrap: Callable[[VectorEnv], VectorEnv] | None = None,
    ):
        self.prepared = prepared
        """Checked options and task of the training."""
        self.cfg = prepared.cfg
        """Options of the training, completed with the task's defaults."""
        self.task = prepared.task
        """Configuration of the task, for training and evaluation."""
        self.run_dir = prepared.run_dir
        """Folder that the training writes to."""
        self.metrics = prepared.metrics
        """Class that measures a policy on this kind of task and defines its goal."""
        self.console = console
        """Console that progress and results are printed to."""
        self._is_wrapped = wrap is not None
        self._film = Film(prepared.scenes, console)

        self.num_envs = processes.share_of(self.cfg.num_envs)
        """Number of environments of this process."""
        torch.set_num_threads(self.cfg.threads or processes.own_cores() or usable_cores())
        # Everything below that is drawn at random depends on this seed.
        torch.manual_seed(self.cfg.seed)
        envs = self._make_envs()

        self.env = RslRlVecEnv(wrap(envs) if wrap else envs, seed=self.cfg.seed)
        """Training environment with all wrappers and rsl_rl's interface."""
        self.core = unwrap(envs)
        """The same training environment without wrappers."""
        self._draw_ages()

        self.algorithm: Algorithm = make_algorithm(
            prepared.algo,
            self.env,
            prepared.defaults.upper_body_noise,
            self.cfg.learner,
            prepared.style,
        )
        """Learning algorithm, which holds the policy."""
        self.algorithm.train_mode()
        self.groups: tuple[str, ...] = getattr(self.algorithm, "groups", self.metrics.GROUPS)
        """Names of the observation groups that are the arguments of the policy, in order."""
        if prepared.warm_start is not None:
            start_warm(self, prepared.warm_start)
        self.schedule = Schedule(prepared, self.algorithm, self.core)
        """Schedule of physics, learning rate, discount and trot weight."""
        self.goal = GoalCheck(prepared, self.groups)
        """Evaluations during the training, until the policy reaches the goal of the task."""

        self.iteration = 0
        """Number of updates so far, including those before a resume."""
        self.seconds = 0.0
        """Wall-clock training time so far, including evaluations of the goal, s."""
        self.curve: list[dict[str, float]] = []
        """Numbers of each update by name, as returned by :meth:`iterate`, plus ``seconds``."""
        self.time_to_walk: dict[str, float] | None = None
        """``seconds`` of training and ``env_steps`` of all robots until the policy reached the
        goal. None: it has not reached it yet."""
        self.stop = StopRequest(console)
        """Request to end the training after the current update."""
        if prepared.checkpoint is not None:
            resume_training(self, prepared.checkpoint)

    def _draw_ages(self) -> None:
        """Start episodes at random ages, so that they do not all time out in the same update."""
        ages = self.env.episode_length_buf.new_empty(self.cfg.num_envs)
        ages.random_(self.env.max_episode_length)
        self.env.episode_length_buf = processes.own_rows(ages)

    def _make_envs(self) -> VectorEnv:
        return gym.make_vec(
            self.cfg.task_id,
            num_envs=self.num_envs,
            first_env=processes.rank() * self.num_envs,
            cfg=limit_threads(self.task, self.cfg.threads or processes.own_cores()),
            array="torch",
            observations="dict",
            sim=self.cfg.sim,
            device=self.cfg.device,
        )

    @property
    def env_steps(self) -> int:
        """Number of environment steps so far, summed over robots."""
        return self.iteration * self.prepared.algo.steps_per_env * self.cfg.num_envs

    @property
    def progress(self) -> float:
        """Share of the training that is done, in updates or minutes. 1 or more at its end."""
        if self.cfg.iterations is not None:
            return self.iteration / self.cfg.iterations
        assert self.cfg.minutes is not None, "prepare() completes the number of updates"
        return self.seconds / (60.0 * self.cfg.minutes)

    def run(self) -> Path:
        """Train the policy, then export and evaluate it, and make plots and a video.

        Of several processes, only the first one writes files, evaluates and renders videos.

        SIGINT (Ctrl-C) or SIGTERM ends the run with a KeyboardInterrupt. During the training it
        first finishes the update and saves policy and checkpoint.

        Returns:
            The run folder.

        Raises:
            FileExistsError: If another training writes to the folder.
            KeyboardInterrupt: If the run is interrupted.
        """
        if not processes.is_first():
            self._train_with_the_first()
            return self.run_dir
        with lock_run_folder(self.run_dir):
            config: dict[str, Any] = {"training": self.cfg, "task": self.task}
            write_json(self.run_dir / CONFIG, config)
            # An f-string would write the line of the environment, not its tables.
            (self.run_dir / "task.txt").write_text(str(self.core) + "\n")
            self.console.print(
                f"{self.cfg.task_id}: {self.cfg.num_envs} environments → {self.run_dir}",
                markup=False,
            )
            self._film.try_to_render(self.core)
            with self.stop.on_signals():
                try:
                    self._train_and_evaluate(json.loads(json.dumps(config, default=as_json)))
                except KeyboardInterrupt:
                    print_how_to_resume(self.console, self.cfg, self.run_dir, self._is_wrapped)
                    raise
            print_next_step(self.console, self.cfg, self.run_dir)
        return self.run_dir

    def _train_with_the_first(self) -> None:
        """Train along with process 0, which decides when the training ends."""
        with self.stop.on_signals():
            self._make_updates(show_nothing)
            # The checkpoint that process 0 writes contains the robots of all processes.
            self.save()
            self.stop.raise_once_saved()

    def _train_and_evaluate(self, config: dict[str, Any]) -> None:
        tracker = TRACKERS[self.cfg.tracker]
        with tracker(self.run_dir, config, self.iteration) as track:
            with showing(self.console, TRAINING_INTERVAL) as show:
                self._train(show, track)
            with showing(self.console, LINE_INTERVAL) as show:
                result = self._save_and_evaluate(show)
            track(flatten_numbers({"evaluation": result.as_dict()}), self.iteration)
        result.print(self.console)

    def _train(self, show: Show, track: Track) -> None:
        write_session(self.run_dir, self.iteration)
        # Line-buffered, because a report may read the file at any time.
        with (self.run_dir / CURVE).open("w", buffering=1) as file:
            file.writelines(json.dumps(row) + "\n" for row in self.curve)

            def record(row: dict[str, float]) -> None:
                file.write(json.dumps(row) + "\n")
                track({f"train/{name}": value for name, value in row.items()}, self.iteration)
                # After the row is written: an evaluation can take many seconds, and be interrupted.
                self.check_goal(row)

            self._make_updates(show, record)

    def _make_updates(
        self, show: Show, record: Callable[[dict[str, float]], None] | None = None
    ) -> None:
        """Make updates until the training ends or is stopped. ``record`` receives the rows."""
        saved_at = self.seconds
        snapshots = Snapshots(self)
        begun = time.perf_counter() - self.seconds
        while self._goes_on():
            self.set_schedule()
            row = self.iterate()
            report_bad_physics(self.console, row, self.core.sim.robot.name)
            # All processes have the clock of the first one, as it decides on schedules.
            self.seconds = processes.of_first(time.perf_counter() - begun)
            row["seconds"] = self.seconds
            self.curve.append(row)
            if record is not None:
                record(row)
            if self.seconds - saved_at > 60.0 * self.cfg.checkpoint_minutes:
                self.save()
                saved_at = self.seconds
            snapshots.write_if_due()
            show("training", self.progress, self._progress_text(row))

    def _goes_on(self) -> bool:
        """Return True if another update is due. Of several processes, the first one decides."""
        goes_on = self.progress < 1.0 and not self.stop.is_requested
        return bool(processes.of_first(goes_on))

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
        """Set physics, learning rate, discount and trot weight for the next update."""
        self.schedule.apply(self.progress, self.env_steps)

    def iterate(self) -> dict[str, float]:
        """Make one update: collect a rollout, and let the algorithm learn from it.

        Returns:
            Numbers of the update by name. ``reward`` is the mean over robots per second of
            simulated time, ``env_steps`` the total over all robots and updates.
        """
        algorithm = self.algorithm
        steps = self.prepared.algo.steps_per_env
        # The update before draws more numbers in several processes than in one.
        torch.manual_seed(hash_64(f"{self.cfg.seed}/update {self.iteration}"))
        begun = time.perf_counter()
        observation = self.env.get_observations()
        reward_sum = torch.zeros((), device=self.core.device)
        logs = []
        # No gradients in the rollout: the update evaluates the networks again.
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
        self._share_decisions()
        numbers = {
            "reward": reward_sum.item() / (steps * self.core.step_dt),
            **self.metrics.training_errors(self.core),
            **{f"loss_{name}": value for name, value in losses.items()},
        }
        return {
            "iteration": self.iteration,
            "env_steps": self.env_steps,
            **processes.average_numbers(numbers),
            "steps_per_second": samples / (ended - begun),
            "rollout_steps_per_second": samples / (collected - begun),
            "update_steps_per_second": samples / (ended - collected),
            "action_std": algorithm.get_policy().output_std.mean().item(),
            **combine_logs(processes.concatenated([as_floats(log) for log in logs])),
        }

    def _share_decisions(self) -> None:
        """Share with all processes what curricula changed, and a request to stop."""
        for term in self.core.commands.terms.values():
            term.average_shared(processes.average)
        if processes.any_is(self.stop.is_requested):
            self.stop.request()

    def check_goal(self, row: dict[str, float]) -> None:
        """Evaluate the current policy against the goal of the task, if an evaluation is due.

        The first success sets :attr:`time_to_walk` and ends these evaluations.

        Args:
            row: Numbers of the last update, from :meth:`iterate`.
        """
        if self.time_to_walk is not None or not self.goal.is_due(row, self.seconds):
            return
        network = self.algorithm.get_policy().as_jit()
        policy = remembering(network, getattr(network, "memory", None))
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
        """Write the current policy into the run folder, as safetensors and as ONNX."""
        export_policy(self.prepared, self.algorithm, self.core, self.groups)

    def _save_and_evaluate(self, show: Show) -> Any:
        show("exporting", 0.0)
        self.save()
        self.export()
        show("exporting", 1.0)
        self.stop.raise_once_saved()

        def show_or_stop(what: str, done: float, text: str = "") -> None:
            self.stop.raise_if_requested()
            show(what, done, text)

        # The exported file is evaluated, not the policy in memory: the result is valid for it.
        policy = load_policy(self.run_dir)
        with ThreadPoolExecutor(1) as pool:
            evaluating = pool.submit(self.goal.evaluator.run, policy, show=show_or_stop)
            # The video is rendered on the main thread: some graphics libraries need that.
            self._film.write(self.cfg.task_id, self.task, self.run_dir, show)
            result = evaluating.result()
        show("drawing", 0.0)
        write_results(self.prepared, result, self.curve, self.time_to_walk)
        show("drawing", 1.0)
        return result

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the state that a resumed run needs to continue bit for bit, by name.

        It holds networks, optimizers, environments, random numbers, options and the learning curve.
        ``other_processes`` has environments and random numbers of the processes after the first.
        """
        own, *others = processes.gather(state_of_process(self))
        return {
            "iteration": self.iteration,
            "seconds": self.seconds,
            "curve": self.curve,
            "time_to_walk": self.time_to_walk,
            "constraints_act": self.schedule.constraints_act,
            "algorithm": self.algorithm.save(),
            "env": own["env"],
            "rng": own["rng"],
            "other_processes": others,
            "task_id": self.cfg.task_id,
            "cfg": self.cfg,
        }

    def save(self) -> None:
        """Write a checkpoint of the present state. All processes of a training must call it."""
        # The first process may still evaluate the policy, for longer than a usual exchange waits.
        processes.of_first(0.0)
        state = self.checkpoint_state()
        if processes.is_first():
            write_checkpoint(self.run_dir, state, self.cfg.keep)
