"""Train a policy with rsl_rl's PPO, evaluate it and write a run folder."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import os
import pickle
import shlex
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, get_args

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.rl.config import Algo, PPOCfg, TrainCfg, resumed
from legged_envs.rl.evaluate import Evaluation, Evaluator, print_evaluation
from legged_envs.rl.mimic_config import MimicDistillationCfg, MimicPPOCfg
from legged_envs.rl.mirrored_ppo import MirroredPPO
from legged_envs.rl.policy import contract, load_policy, save_onnx, save_policy
from legged_envs.tasks import is_mimic, make_task_cfg
from legged_envs.wrappers.rsl_rl import BootstrapPPO, RslRlVecEnv

WALK = {"lin_vel_error": 0.25, "ang_vel_error": 0.25, "falls": 0.05}
"""A robot walks when all three hold (m/s, rad/s, fraction)."""
CHECKPOINT = "checkpoint.pt"


class Trainer:
    """One training run, with rsl_rl's PPO on a velocity task.

    Args:
        cfg: What to train and for how long.
        console: Where to report.
        wrap: Puts wrappers on top of the training environment; evaluations are of the task itself.

    Raises:
        FileExistsError: If another run's checkpoint is in the folder to write to.
        FileNotFoundError: If there is no checkpoint to resume or to begin with.
        ValueError: If an option has no meaning, or differs from that of the run to resume.
    """

    ALGO: ClassVar[Algo] = "ppo"
    """Name of the algorithm, and of the field of TrainCfg with its options."""

    def __init__(self, cfg: TrainCfg, console: Console, wrap: Callable[[VectorEnv], VectorEnv] | None = None):
        cfg, checkpoint = _going_on(cfg)
        self.cfg = replace(cfg, algo=self.ALGO)
        self._check_options()
        self._run_dir = self._find_run_dir()
        self.console = console
        self._wrapped = wrap is not None
        self.task = self._make_task()
        torch.set_num_threads(cfg.threads or os.cpu_count() or 1)
        torch.manual_seed(cfg.seed)
        options: dict[str, Any] = {"array": "torch", "observations": "dict", "compile": cfg.compile}
        envs = gym.make_vec(cfg.task_id, num_envs=cfg.num_envs, cfg=self.task, **options)
        if wrap is not None:
            envs = wrap(envs)
        self.env = RslRlVecEnv(envs, seed=cfg.seed)
        self.core = unwrap(envs)
        # Episodes start at random ages, so that they do not all end together.
        self.env.episode_length_buf = torch.randint_like(self.env.episode_length_buf, high=self.env.max_episode_length)
        self.algorithm = self._make_algorithm()
        if cfg.warm_start is not None and checkpoint is None:
            state = _read(cfg.warm_start / CHECKPOINT, cfg.task_id)["algorithm"]
            self.algorithm.load(state, {"actor": True, "critic": True}, strict=True)
        self._evaluator: Evaluator | None = None
        self.iteration = 0
        self.seconds = 0.0
        """Training time so far, checks for walking included."""
        self.curve: list[dict[str, float]] = []
        """One row per update: the learning curve."""
        self.time_to_walk: dict[str, float] | None = None
        self._walk_checked = 0.0
        self._interrupted = False
        if checkpoint is not None:
            self._load(checkpoint)

    def _check_options(self) -> None:
        cfg, algorithm, group = self.cfg, self._schedule, self.ALGO
        if cfg.minutes <= 0 or (cfg.iterations is not None and cfg.iterations < 1):
            raise ValueError(f"minutes and iterations must be positive, got {cfg.minutes} and {cfg.iterations}")
        for option, value, least in (
            ("num-envs", cfg.num_envs, 1),
            ("episodes", cfg.episodes, 1),
            ("threads", cfg.threads, 0),
            (f"{group}.steps-per-env", algorithm.steps_per_env, 1),
            (f"{group}.epochs", algorithm.epochs, 1),
        ):
            if value < least:
                raise ValueError(f"--{option} must be at least {least}, got {value}")
        samples = cfg.num_envs * algorithm.steps_per_env
        if not isinstance(algorithm, MimicDistillationCfg) and not 1 <= algorithm.mini_batches <= samples:
            raise ValueError(
                f"--{group}.mini-batches must be from 1 to num_envs · steps_per_env = {samples}, "
                f"got {algorithm.mini_batches}"
            )
        try:
            pickle.dumps(cfg)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(f"changes must be values that a checkpoint can hold: {error}") from error

    def _find_run_dir(self) -> Path:
        """The folder to write to; a run that is not the one to go on with is never written over."""
        folder, resume = self.cfg.run_dir or self.cfg.resume or self._new_run_dir(), self.cfg.resume
        if (folder / CHECKPOINT).exists() and (resume is None or folder.resolve() != resume.resolve()):
            raise FileExistsError(f"there is a run in {str(folder)!r}: choose another --run-dir, or --resume it")
        return folder

    def _make_task(self) -> TaskCfg:
        return override(make_task_cfg(self.cfg.task_id), self.cfg.changes)

    @property
    def _schedule(self) -> PPOCfg | MimicPPOCfg | MimicDistillationCfg:
        """What has the learning rates and the length of a rollout."""
        return getattr(self.cfg, self.ALGO)

    def _new_run_dir(self) -> Path:
        stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        return Path("runs") / self.cfg.task_id.split("/")[-1] / stamp

    def _make_algorithm(self) -> Any:
        """rsl_rl's PPO, or what has its interface."""
        ppo = self.cfg.ppo
        model = {
            "class_name": "rsl_rl.models:MLPModel",
            "hidden_dims": list(ppo.hidden),
            "activation": ppo.activation,
            "obs_normalization": True,
        }
        distribution = {"class_name": "rsl_rl.modules.distribution:GaussianDistribution", "init_std": ppo.init_std}
        cls = MirroredPPO if ppo.mirror else BootstrapPPO
        cfg = {
            "algorithm": {
                "class_name": cls,
                "num_learning_epochs": ppo.epochs,
                "num_mini_batches": ppo.mini_batches,
                "learning_rate": ppo.learning_rate,
                "schedule": "fixed",
                "gamma": ppo.gamma,
                "lam": ppo.gae_lambda,
                "clip_param": ppo.clip,
                "entropy_coef": ppo.entropy,
                "value_loss_coef": ppo.value_loss,
                "max_grad_norm": ppo.max_grad_norm,
            },
            "actor": {**model, "distribution_cfg": distribution},
            "critic": dict(model),
            "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
            "num_steps_per_env": ppo.steps_per_env,
            "multi_gpu": None,
        }
        with contextlib.redirect_stdout(io.StringIO()):  # rsl_rl prints the networks
            algorithm = cls.construct_algorithm(self.env.get_observations(), self.env, cfg, str(self.env.device))
        algorithm.train_mode()
        return algorithm

    # --- the run -----------------------------------------------------------------------------------------------------

    def run(self) -> Path:
        """Train, export, evaluate, draw and film. Returns the run folder."""
        self._run_dir.mkdir(parents=True, exist_ok=True)
        config = {"training": _plain(self.cfg), "task": _plain(self.task)}
        (self._run_dir / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        (self._run_dir / "task.txt").write_text(str(self.core) + "\n")
        self.console.print(f"{self.cfg.task_id}: {self.cfg.num_envs} environments → {self._run_dir}", markup=False)
        self._train()
        self._save()
        self._export()
        if self._interrupted:
            self.console.print(f"interrupted; go on with: {self._how_to_resume()}", markup=False, soft_wrap=True)
            return self._run_dir
        self._evaluate_export()
        self._draw()
        if self.cfg.video:
            try:
                self._film(self._run_dir / "video.mp4")
            except RuntimeError as error:  # a machine that cannot render has trained all the same
                self.console.print(f"no video: {error}", style="yellow")
        return self._run_dir

    def _how_to_resume(self) -> str:
        if self._wrapped:
            return f"TrainCfg({self.cfg.task_id!r}, resume=Path({str(self._run_dir)!r})) and the same wrappers"
        return shlex.join(["legged-envs", "train", self.cfg.task_id, "--resume", str(self._run_dir)])

    def _train(self) -> None:
        previous = signal.signal(signal.SIGINT, self._on_interrupt)
        writer = SummaryWriter(str(self._run_dir))
        recent: deque[float] = deque(maxlen=20)
        saved = self.seconds
        begun, seconds_before = time.perf_counter(), self.seconds
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        try:
            with Progress(*columns, console=self.console) as progress:
                bar = progress.add_task("starting", total=1.0)
                while (done := self._progress()) < 1.0 and not self._interrupted:
                    self._set_learning_rate(done)
                    row = self._iterate()
                    self.seconds = seconds_before + time.perf_counter() - begun
                    row["seconds"] = self.seconds
                    self.curve.append(row)
                    recent.append(row["steps_per_second"])
                    for name, value in row.items():
                        writer.add_scalar(f"train/{name}", value, self.iteration)
                    self._watch(row)
                    if self.seconds - saved > 60.0 * self.cfg.checkpoint_minutes:
                        self._save()
                        saved = self.seconds
                    errors = "  ".join(f"{row[name]:.2f} {unit}" for name, unit in self.ERRORS.items())
                    speed = sum(recent) / len(recent)
                    text = f"{speed:6.0f} steps/s  reward {row['reward']:5.2f}/s  error {errors}"
                    progress.update(bar, completed=self._progress(), description=text)
        finally:
            writer.close()
            signal.signal(signal.SIGINT, previous)

    def _progress(self) -> float:
        """Fraction of the run that is done."""
        if self.cfg.iterations is not None:
            return self.iteration / self.cfg.iterations
        return self.seconds / (60.0 * self.cfg.minutes)

    def _set_learning_rate(self, done: float) -> None:
        start, end = self._schedule.learning_rate, self._schedule.final_learning_rate
        rate = start + (end - start) * min(done, 1.0)
        self.algorithm.learning_rate = rate
        for group in self.algorithm.optimizer.param_groups:
            group["lr"] = rate

    def _iterate(self) -> dict[str, float]:
        """One rollout and one update."""
        algorithm, steps = self.algorithm, self._schedule.steps_per_env
        begun = time.perf_counter()
        observation = self.env.get_observations()
        reward_sum = torch.zeros(())
        with torch.inference_mode():
            for _ in range(steps):
                observation, rewards, dones, extras = self.env.step(algorithm.act(observation))
                algorithm.process_env_step(observation, rewards, dones, extras)
                reward_sum += rewards.mean()
            algorithm.compute_returns(observation)
        collected = time.perf_counter()
        losses = algorithm.update()
        ended = time.perf_counter()
        self.iteration += 1
        samples = steps * self.cfg.num_envs
        return {
            "iteration": self.iteration,
            "env_steps": self.iteration * samples,
            "reward": reward_sum.item() / (steps * self.core.step_dt),
            **self._errors(),
            "steps_per_second": samples / (ended - begun),
            "rollout_steps_per_second": samples / (collected - begun),
            "update_steps_per_second": samples / (ended - collected),
            "action_std": algorithm.get_policy().output_std.mean().item(),
            **{f"loss_{name}": value for name, value in losses.items() if name != "symmetry"},
        }

    ERRORS: ClassVar[dict[str, str]] = {"lin_vel_error": "m/s", "ang_vel_error": "rad/s"}
    """Entries of ``_errors`` that the progress bar shows, and their units."""

    def _errors(self) -> dict[str, float]:
        """How far the robots are from what they are asked to do, at this moment."""
        robot, command = self.core.robot, self.core.commands["velocity"]
        return {
            "lin_vel_error": (command[:, :2] - robot.lin_vel_b[:, :2]).norm(dim=1).mean().item(),
            "ang_vel_error": (command[:, 2] - robot.ang_vel_b[:, 2]).abs().mean().item(),
        }

    def _watch(self, row: dict[str, float]) -> None:
        """Evaluate, at most every 15 s, once the training errors are near the threshold and until the robot walks."""
        near = row["lin_vel_error"] < WALK["lin_vel_error"] + 0.1 and row["ang_vel_error"] < WALK["ang_vel_error"] + 0.1
        if self.time_to_walk is not None or not near or self.seconds - self._walk_checked < 15.0:
            return
        reached = self.seconds
        result = self._evaluate(self.algorithm.get_policy().as_jit(), still=False)
        self._walk_checked = reached
        if result.walks(**WALK):
            self.time_to_walk = {"seconds": round(reached, 1), "env_steps": row["env_steps"]}
            self.console.print(
                f"walks after {reached:.0f} s and {row['env_steps'] / 1e6:.1f} M steps: "
                f"{result.lin_vel_error:.2f} m/s, {result.ang_vel_error:.2f} rad/s, {result.falls:.1%} falls"
            )

    def _on_interrupt(self, *_: Any) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True
        self.console.print("stopping after this update (Ctrl-C again to stop at once)")

    # --- results -----------------------------------------------------------------------------------------------------

    def _evaluate(self, policy: Any, still: bool) -> Evaluation:
        if self._evaluator is None:
            self._evaluator = Evaluator(self.cfg.task_id, self.task, self.cfg.episodes)
        with torch.inference_mode():
            return self._evaluator.run(policy, still)

    GROUPS: tuple[str, ...] = ("policy",)
    """Observation groups that the exported policy takes."""

    def _export(self) -> None:
        meaning = contract(self.cfg.task_id, self.core, self.GROUPS, _plain(self.cfg.changes))
        save_policy(self._run_dir / "policy.pt", self.algorithm.get_policy().as_jit(), meaning)
        save_onnx(self._run_dir / "policy.onnx", self.algorithm.get_policy().as_onnx(verbose=False), meaning)

    def _evaluate_export(self) -> None:
        result = self._evaluate(load_policy(self._run_dir / "policy.pt"), still=True)
        print_evaluation(result, self.console)
        self._report(time_to_walk=self.time_to_walk, **result.as_dict())

    def _report(self, **results: Any) -> None:
        """Write eval.json."""
        report = {
            "task_id": self.cfg.task_id,
            "seed": self.cfg.seed,
            "training_seconds": round(self.seconds, 1),
            "env_steps": self.curve[-1]["env_steps"],
            "changes": _plain(self.cfg.changes),
            **results,
        }
        (self._run_dir / "eval.json").write_text(json.dumps(report, indent=1) + "\n")

    def _draw(self) -> None:
        from legged_envs.rl.plots import plot_learning_curve

        plot_learning_curve(self.curve, self._run_dir / "learning_curve.png", self.ERRORS)

    def _film(self, path: Path) -> None:
        from legged_envs.rl.play import film

        film(self.cfg.task_id, self.task, load_policy(self._run_dir / "policy.pt"), path)

    def _save(self) -> None:
        state = {
            "algorithm": self.algorithm.save(),
            "env": self.env.get_state(),
            "rng": torch.get_rng_state(),
            "iteration": self.iteration,
            "seconds": self.seconds,
            "curve": self.curve,
            "time_to_walk": self.time_to_walk,
            "task_id": self.cfg.task_id,
            "cfg": self.cfg,
        }
        path = self._run_dir / CHECKPOINT
        torch.save(state, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").replace(path)

    def _load(self, state: dict[str, Any]) -> None:
        self.algorithm.load(state["algorithm"], None, strict=True)
        self.env.set_state(state["env"])
        torch.set_rng_state(state["rng"])
        self.iteration, self.seconds = state["iteration"], state["seconds"]
        self.curve, self.time_to_walk = state["curve"], state["time_to_walk"]


def _read(path: Path, task_id: str) -> dict[str, Any]:
    """A checkpoint of the task."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {str(path)!r} to go on from")
    state = torch.load(path, weights_only=False)
    if state["task_id"] != task_id:
        raise ValueError(f"{str(path)!r} is a checkpoint of {state['task_id']!r}, not of {task_id!r}")
    return state


def _going_on(cfg: TrainCfg) -> tuple[TrainCfg, dict[str, Any] | None]:
    """The options of the run that ``cfg`` asks for and the checkpoint that it goes on from, None for a new one."""
    if cfg.resume is None:
        return cfg, None
    path = cfg.resume / CHECKPOINT
    checkpoint = _read(path, cfg.task_id)
    if "cfg" not in checkpoint:
        raise ValueError(
            f"{str(path)!r} is of an older version and does not hold the options of its run, which cannot go on; "
            "--warm-start begins a new run with its networks"
        )
    return resumed(cfg, checkpoint["cfg"]), checkpoint


def _plain(value: Any) -> Any:
    """A configuration as JSON values: dataclasses as dicts, functions by their dotted names."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def train(cfg: TrainCfg) -> Path:
    """Run a training. Returns the run folder.

    Raises:
        FileExistsError: If another run's checkpoint is in the folder to write to.
        ValueError: If the algorithm is not one for the task, or an option has no meaning or would not be read.
    """
    return make_trainer(cfg, Console()).run()


def make_trainer(cfg: TrainCfg, console: Console) -> Trainer:
    """The trainer for the task and the algorithm of ``cfg``.

    Raises:
        ValueError: If the algorithm is not one for the task, or would not read an option that was given.
    """
    cfg, _ = _going_on(cfg)
    mimic = is_mimic(make_task_cfg(cfg.task_id))
    algo = cfg.algo if cfg.algo != "auto" else "mmppo" if mimic else "ppo"
    if (algo == "ppo") == mimic:
        known = "mmppo and distillation" if mimic else "ppo"
        raise ValueError(f"{cfg.task_id!r} is trained with --algo {known}, got {cfg.algo!r}")
    for option in () if mimic else ("clips", "motions", "teacher"):
        if getattr(cfg, option):
            raise ValueError(f"--{option} is for mimic tasks, and {cfg.task_id!r} is none")
    if algo == "distillation" and cfg.warm_start:
        raise ValueError("--warm-start is for --algo ppo and mmppo; a student begins anew")
    if algo == "mmppo" and cfg.teacher and not cfg.mmppo.dagger.coefficient:
        raise ValueError("--teacher with --algo mmppo needs --mmppo.dagger.coefficient, got 0")
    for group in get_args(Algo):
        if group != algo and getattr(cfg, group) != getattr(TrainCfg(cfg.task_id), group):
            raise ValueError(f"--{group}.* is for --algo {group}, and {cfg.task_id!r} is to be trained with {algo}")
    if algo == "ppo":
        return Trainer(cfg, console)
    from legged_envs.rl.mimic_train import DistillationTrainer, MimicTrainer

    return (MimicTrainer if algo == "mmppo" else DistillationTrainer)(cfg, console)
