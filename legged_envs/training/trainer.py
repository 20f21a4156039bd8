"""Train a policy, evaluate it and write a run folder."""

import json
import os
import shlex
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from rich.console import Console

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import override
from legged_envs.evaluation.conditions import combine_logs
from legged_envs.evaluation.evaluator import EVALUATION_SEED, Evaluator, metrics_of
from legged_envs.evaluation.plots import plot_learning_curve, plot_tracking
from legged_envs.policy.header import record_evaluation
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import POLICY_FILE, load_policy, save_onnx, save_policy
from legged_envs.runs.checkpoint_file import CHECKPOINT, write_checkpoint
from legged_envs.runs.progress import LINE_INTERVAL, Show, showing
from legged_envs.runs.run_folder import (
    ABOUT,
    CONFIG,
    CURVE,
    EVALUATION,
    TRACKERS,
    Track,
    alone,
    as_json,
    describe_session,
    numbers,
    write_json,
)
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.kind import kind_of
from legged_envs.tasks.mimic import imitating
from legged_envs.training.algorithm import add_observations, make_algorithm
from legged_envs.training.checkpoint import (
    check_changes,
    going_on,
    read_checkpoint,
    run_folder,
)
from legged_envs.training.options import PPOCfg, TrainCfg, coarse, complete, first_trot
from legged_envs.training.warm_start import begin_with
from legged_envs.viewing.film import film_policy
from legged_envs.viewing.scenes import make_scenes
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

GOAL_INTERVAL = 15.0
NEAR = 0.1
SCOUTS = 32
PATIENCE = 5
"""Least time between two checks for the goal, s, by how much training errors may exceed it to be worth one, how many
episodes must reach it to be worth all of them, and how much longer training goes on after a check than that took."""
TROT_FADES = (1.8e6, 3.0e6)
"""Steps of robots between which what a trot earns beyond its weight falls to nothing: by then a quadruped walks."""
TRAINING_INTERVAL = 60.0
"""Time between two lines about a training where there is no terminal, s."""
OF_A_CHECKPOINT = ("iteration", "seconds", "curve", "time_to_walk")


def train(cfg: TrainCfg) -> Path:
    """Run a training; returns the run folder, raises what :class:`Trainer` does."""
    return Trainer(cfg, Console()).run()


class Trainer:
    """One training run, reported on ``console``; ``wrap`` puts wrappers on the training environment only.
    FileExistsError if another run's checkpoint is in the folder; FileNotFoundError if there is none to resume or begin
    with; ValueError if an option or the algorithm does not suit the task or the resumed run."""

    def __init__(
        self, cfg: TrainCfg, console: Console, wrap: Callable[[VectorEnv], VectorEnv] | None = None
    ):
        cfg, checkpoint = going_on(cfg)
        task = make_task_cfg(cfg.task_id)
        cfg, self._algo = complete(cfg, task)
        check_changes(cfg.changes)
        self.cfg, self.console, self._wrapped = cfg, console, wrap is not None
        self._run_dir = run_folder(cfg)
        task = override(task, cfg.changes)
        self.task = (
            imitating(task, cfg.clips, cfg.motions) if kind_of(task).imitates_motions else task
        )
        self._scenes = make_scenes(self.task, total=cfg.video_seconds) if cfg.video else []
        add_observations(self._algo, self.task)
        self.metrics = metrics_of(self.task)
        torch.set_num_threads(cfg.threads or os.cpu_count() or 1)
        torch.manual_seed(cfg.seed)
        self._coarse, self._first_trot = coarse(cfg, self.task), first_trot(cfg, self.task)
        self._trot_weight = self.task.rewards["trot"].weight if self._first_trot != 1.0 else 0.0
        options: dict[str, Any] = {"array": "torch", "observations": "dict"}
        options |= {"sim": cfg.sim, "device": cfg.device}
        envs = gym.make_vec(cfg.task_id, num_envs=cfg.num_envs, cfg=self.task, **options)
        self.env = RslRlVecEnv(wrap(envs) if wrap else envs, seed=cfg.seed)
        self.core = unwrap(envs)
        # Episodes start at random ages, so that they do not all end together.
        self.env.episode_length_buf = torch.randint_like(
            self.env.episode_length_buf, high=self.env.max_episode_length
        )
        self.algorithm = make_algorithm(self._algo, self.env)
        self.algorithm.train_mode()
        self._groups: tuple[str, ...] = getattr(self.algorithm, "groups", self.metrics.GROUPS)
        if cfg.warm_start is not None and checkpoint is None:
            if isinstance(self.algorithm, BootstrapPPO):
                assert isinstance(self._algo, PPOCfg)
                begin_with(
                    cfg.warm_start, self.algorithm, cfg.task_id, self.env, self._algo.noise_kept
                )
            else:
                state = read_checkpoint(cfg.warm_start, cfg.task_id)["algorithm"]
                self.algorithm.load(state, {"actor": True, "critic": True}, strict=True)
        self.iteration, self.seconds = 0, 0.0
        """Updates so far, and training time so far, checks for the goal included, s."""
        self.curve: list[dict[str, float]] = []
        self.time_to_walk: dict[str, float] | None = None
        self._next_check, self._interrupted, self._saved = GOAL_INTERVAL, False, False
        if checkpoint is not None:
            self._load(checkpoint)

    def run(self) -> Path:
        """Train, export, evaluate, draw and film. Returns the run folder. SIGINT (Ctrl-C) and SIGTERM end a run with a
        KeyboardInterrupt, in training once the update is done and the policy and a checkpoint are saved.
        FileExistsError if another training writes to the folder."""
        with alone(self._run_dir):
            return self._run()

    def _run(self) -> Path:
        config: dict[str, Any] = {"training": self.cfg, "task": self.task}
        self._write(CONFIG, config)
        (self._run_dir / "task.txt").write_text(str(self.core) + "\n")
        self.console.print(
            f"{self.cfg.task_id}: {self.cfg.num_envs} environments → {self._run_dir}", markup=False
        )
        with self._rendering():  # what fails later is better said now
            if self._scenes:
                self.core.sim.render(0, 16, 16)
        signals = signal.SIGINT, signal.SIGTERM
        previous = [signal.signal(each, self._on_interrupt) for each in signals]
        try:
            config = json.loads(json.dumps(config, default=as_json))
            with TRACKERS[self.cfg.tracker](self._run_dir, config, self.iteration) as track:
                with showing(self.console, TRAINING_INTERVAL) as show:
                    self._train(show, track)
                with showing(self.console, LINE_INTERVAL) as show:
                    result = self._save_and_evaluate(show)
                track(numbers({"evaluation": result.as_dict()}), self.iteration)
            result.print(self.console)
        except KeyboardInterrupt:
            again = shlex.join(
                ["legged-envs", "train", self.cfg.task_id, "--resume", str(self._run_dir)]
            )
            if self._wrapped:
                again = f"TrainCfg({self.cfg.task_id!r}, resume=Path({str(self._run_dir)!r})) and the same wrappers"
            if (self._run_dir / CHECKPOINT).exists():
                self.console.print(
                    f"interrupted; go on with: {again}", markup=False, soft_wrap=True
                )
            raise
        finally:
            for each, handler in zip(signals, previous, strict=True):
                signal.signal(each, handler)
        return self._run_dir

    @contextmanager
    def _rendering(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, OSError) as error:  # a machine that cannot render trains all the same
            self.console.print(
                f"no video: {error}", style="yellow", markup=False, highlight=False, soft_wrap=True
            )
            self._scenes = []

    def _train(self, show: Show, track: Track) -> None:
        about = self._run_dir / ABOUT
        sessions = json.loads(about.read_text()) if about.is_file() and self.iteration else []
        self._write(ABOUT, [*sessions, describe_session(self.iteration)])
        saved, begun = self.seconds, time.perf_counter() - self.seconds
        with (self._run_dir / CURVE).open(
            "w", buffering=1
        ) as file:  # a report reads whole lines meanwhile
            file.writelines(json.dumps(row) + "\n" for row in self.curve)
            while (done := self._progress()) < 1.0 and not self._interrupted:
                self._schedule(done)
                row = self._iterate()
                row["seconds"] = self.seconds = time.perf_counter() - begun
                self.curve.append(row)
                file.write(json.dumps(row) + "\n")
                track({f"train/{name}": value for name, value in row.items()}, self.iteration)
                self._check_goal(row)
                if self.seconds - saved > 60.0 * self.cfg.checkpoint_minutes:
                    self._save()
                    saved = self.seconds
                errors = "  ".join(
                    f"{row[name]:.2f} {unit}" for name, unit in self.metrics.ERRORS.items()
                )
                speed = statistics.fmean(recent["steps_per_second"] for recent in self.curve[-20:])
                count = f"update {self.iteration}  {row['env_steps'] / 1e6:.2f} M steps"
                text = f"{count}\n{speed:.0f} steps/s  reward {row['reward']:.2f}/s\n{errors and f'error {errors}'}"
                show("training", self._progress(), text)

    def _progress(self) -> float:
        if self.cfg.iterations is not None:
            return self.iteration / self.cfg.iterations
        assert self.cfg.minutes is not None, "complete() was to give what the task has by default"
        return self.seconds / (60.0 * self.cfg.minutes)

    def _schedule(self, done: float) -> None:
        """Set what depends on the part of the training that is ``done``: physics steps, the learning rate, the
        discount and what a trot earns."""
        steps = self.task.sim.decimation // (2 if done < self._coarse else 1)
        if steps != self.core.decimation:
            self.core.reconfigure({"sim.dt": self.core.step_dt / steps, "sim.decimation": steps})
        if getattr(self._algo, "schedule", "fixed") == "fixed":
            start, end = self._algo.learning_rate, self._algo.final_learning_rate
            self.algorithm.learning_rate = start + (end - start) * min(done, 1.0)
            for group in self.algorithm.optimizer.param_groups:
                group["lr"] = self.algorithm.learning_rate
        if isinstance(ppo := self._algo, PPOCfg):
            assert (
                isinstance(self.algorithm, BootstrapPPO)
                and ppo.gamma is not None
                and ppo.final_gamma is not None
            )
            self.algorithm.gamma = float(np.interp(done, (0.0, 1.0), (ppo.gamma, ppo.final_gamma)))
        if self._first_trot != 1.0:
            times = np.interp(self.env_steps, TROT_FADES, (self._first_trot, 1.0))
            self.core.rewards.set_weight("trot", float(times) * self._trot_weight)

    @property
    def env_steps(self) -> int:
        """Steps of robots so far."""
        return self.iteration * self._algo.steps_per_env * self.cfg.num_envs

    def _iterate(self) -> dict[str, float]:
        algorithm, steps = self.algorithm, self._algo.steps_per_env
        begun = time.perf_counter()
        observation, reward_sum, logs = (
            self.env.get_observations(),
            torch.zeros((), device=self.core.device),
            [],
        )
        with torch.inference_mode():
            for _ in range(steps):
                observation, rewards, dones, extras = self.env.step(algorithm.act(observation))
                algorithm.process_env_step(observation, rewards, dones, extras)
                reward_sum += rewards.mean()
                logs += [extras["log"]] if "log" in extras else []
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

    def _check_goal(self, row: dict[str, float]) -> None:
        goal, due = (
            self.metrics.GOAL,
            self.time_to_walk is None and self.seconds >= self._next_check,
        )
        if not (goal and due) or not all(
            row[name] < goal[name] + NEAR for name in self.metrics.ERRORS
        ):
            return
        policy, begun = self.algorithm.get_policy().as_jit(), time.perf_counter()
        for evaluator in (self._scouts, self._evaluator):
            try:
                result = evaluator.run(policy, still=False, show=self._stop_if_asked)
            except KeyboardInterrupt:
                return
            if not result.walks(**goal):
                took = time.perf_counter() - begun
                self._next_check = self.seconds + max(GOAL_INTERVAL, took + PATIENCE * took)
                return
        self.time_to_walk = {"seconds": round(self.seconds, 1), "env_steps": row["env_steps"]}
        self.console.print(
            f"walks after {self.seconds:.0f} s and {row['env_steps'] / 1e6:.1f} M steps: "
            f"{result.lin_vel_error:.2f} m/s, {result.ang_vel_error:.2f} rad/s, {result.falls:.1%} falls"
        )

    def _on_interrupt(self, *_: Any) -> None:
        again, self._interrupted = self._interrupted, True
        if again or self._saved:
            raise KeyboardInterrupt
        self.console.print("stopping after this update (Ctrl-C again to stop at once)")

    def _stop_if_asked(self, *_: Any) -> None:
        if self._interrupted:
            raise KeyboardInterrupt

    @cached_property
    def _evaluator(self) -> Evaluator:
        return self._evaluator_of(self.cfg.episodes)

    @cached_property
    def _scouts(self) -> Evaluator:
        return self._evaluator_of(min(SCOUTS, self.cfg.episodes))

    def _evaluator_of(self, episodes: int) -> Evaluator:
        return Evaluator(
            self.cfg.task_id, self.task, episodes, self.cfg.sim, self._groups, self.cfg.device
        )

    def _export(self) -> None:
        policy = self.algorithm.get_policy()
        meaning = contract(self.cfg.task_id, self.core, self._groups, self.cfg.changes)
        save_policy(self._run_dir / POLICY_FILE, policy.as_jit(), meaning)
        save_onnx(self._run_dir / "policy.onnx", policy.as_onnx(verbose=False), meaning)

    def _save_and_evaluate(self, show: Show) -> Any:
        show("exporting", 0.0)
        self._save()
        self._export()
        show("exporting", 1.0)
        self._saved = True
        self._stop_if_asked()

        def show_or_stop(*progress: Any) -> None:
            self._stop_if_asked()
            show(*progress)

        with ThreadPoolExecutor(1) as pool:
            evaluating = pool.submit(
                self._evaluator.run, load_policy(self._run_dir), show=show_or_stop
            )
            with self._rendering():  # on the main thread: some graphics libraries draw on no other
                if self._scenes:
                    policy, path = load_policy(self._run_dir), self._run_dir / "video.mp4"
                    film_policy(self.cfg.task_id, self.task, policy, path, self._scenes, show)
            result = evaluating.result()
        show("drawing", 0.0)
        self._report(result)
        show("drawing", 1.0)
        return result

    def _report(self, result: Any) -> None:
        report = {"task_id": self.cfg.task_id, "seed": self.cfg.seed, "changes": self.cfg.changes}
        report |= {
            "training_seconds": round(self.seconds, 1),
            "env_steps": self.curve[-1]["env_steps"],
        }
        if self.metrics.GOAL:
            report["time_to_walk"] = self.time_to_walk
        self._write(EVALUATION, report | result.as_dict())
        record_evaluation(self._run_dir / POLICY_FILE, {"seed": EVALUATION_SEED} | result.as_dict())
        plot_learning_curve(self.curve, self._run_dir / "learning_curve.png")
        if curves := getattr(result, "curves", None):
            plot_tracking(curves, self._run_dir / "tracking.png")

    def _write(self, name: str, values: Any) -> None:
        write_json(self._run_dir / name, values)

    def _save(self) -> None:
        state = {name: getattr(self, name) for name in OF_A_CHECKPOINT}
        state |= {
            "algorithm": self.algorithm.save(),
            "env": self.env.get_state(),
            "rng": torch.get_rng_state(),
        }
        state |= {"task_id": self.cfg.task_id, "cfg": self.cfg}
        write_checkpoint(self._run_dir, state, self.cfg.keep)

    def _load(self, state: dict[str, Any]) -> None:
        self.algorithm.load(state["algorithm"], None, strict=True)
        self.env.set_state(state["env"])
        torch.set_rng_state(state["rng"])
        for name in OF_A_CHECKPOINT:
            setattr(self, name, state[name])
