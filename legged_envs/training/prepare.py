"""Preparation of a training: checks of all options and completion with the task's defaults.

A mistake in an option is reported here, before environments are made or files are written.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from legged_envs import __version__
from legged_envs.checks import check_choice, check_known, whole_number
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.evaluation.evaluator import metrics_of
from legged_envs.evaluation.metrics.task import TaskMetrics
from legged_envs.motions import Motion, MotionFiles, shipped_motions
from legged_envs.policy.policy import load_policy
from legged_envs.robots import RobotCfg
from legged_envs.runs.options import LARGEST_SEED, check_option_numbers, check_size
from legged_envs.runs.run_folder import CONFIG
from legged_envs.runs.trackers import TRACKERS
from legged_envs.system_checks import check_installed
from legged_envs.tasks import make_task_cfg, make_training_defaults, registered_id
from legged_envs.tasks.kind import TaskKind, kind_of
from legged_envs.tasks.mimic import imitating
from legged_envs.tasks.training_defaults import TrainingDefaults
from legged_envs.training import processes
from legged_envs.training.checkpoint import (
    check_changes,
    read_checkpoint,
    resolve_resume,
    run_folder,
)
from legged_envs.training.command import option_values
from legged_envs.training.constraint_checks import check_constraint, with_suite
from legged_envs.training.learner_options import AmpCfg, OnPolicyCfg
from legged_envs.training.mimic.amp_observations import amp_observations
from legged_envs.training.mimic_options import MimicDistillationCfg, MimicPPOCfg, teacher_path
from legged_envs.training.options import (
    TRAINING_MODULES,
    AlgorithmCfg,
    PPOCfg,
    TrainCfg,
    algorithm_name,
)
from legged_envs.training.ppo_options import Symmetry
from legged_envs.training.result_size import size_of_results
from legged_envs.training.scheme_options import SCHEME_CONFIGS, CTSCfg, LSTMCfg, SchemeCfg
from legged_envs.training.schemes.history import with_history
from legged_envs.training.task_defaults import coarse_fraction, complete_ppo, first_trot_factor
from legged_envs.viewing.scenes import Scene, make_scenes

MOST_THREADS = 256
"""Largest accepted ``--threads`` on a machine with fewer cores. A larger number is nearly always a
mistake."""


@dataclass
class Prepared:
    """Checked options and task of a training, from :func:`prepare`: the input of the trainer."""

    cfg: TrainCfg
    """Options of the training, completed with the task's defaults."""

    algo: AlgorithmCfg
    """Completed options of the algorithm. The same object as ``cfg.algo``, but never None."""

    task: TaskCfg
    """Configuration of the task with ``cfg.changes`` applied, for training and evaluation."""

    defaults: TrainingDefaults
    """Default training options of the task."""

    coarse: float
    """Share of the training during which physics makes half as many steps, each twice as long.
    Range 0 to 1; 0 switches it off."""

    first_trot: float
    """Factor on the weight of the reward ``trot`` at the start of the training. 1 switches it
    off."""

    run_dir: Path
    """Folder that the training writes to. It may not exist yet."""

    metrics: type[TaskMetrics]
    """Class that measures a policy on this kind of task and defines its goal."""

    episodes: int
    """Number of episodes of an evaluation."""

    scenes: list[Scene]
    """Commands, clips or grounds that the video shows, in order. Empty: no video."""

    checkpoint: dict[str, Any] | None
    """Checkpoint of the run to resume. None: a new run."""

    style: Callable[[RobotCfg], Sequence[Motion]]
    """Function that loads the clips for the adversarial motion prior of a robot, in tasks without
    motions."""

    warm_start: dict[str, Any] | None
    """Checkpoint with the networks that a new run starts from. None: random initial networks, or a
    resumed run."""


def prepare(cfg: TrainCfg) -> Prepared:
    """Check the options of a training, complete them and configure its task.

    Args:
        cfg: The options as given.

    Raises:
        ValueError: If an option does not suit the task or the resumed run.
        FileNotFoundError: If ``cfg.resume``, ``cfg.warm_start``, a motion file or the teacher does
            not exist.
        FileExistsError: If the run folder holds another run.
        ModuleNotFoundError: If a module that a training needs is not installed.
    """
    # First, because the options of a resumed run replace most of the given ones.
    cfg, checkpoint = resolve_resume(cfg.with_absolute_paths())
    registered = make_task_cfg(cfg.task_id)
    defaults = make_training_defaults(cfg.task_id)
    cfg, algo = with_defaults(cfg, kind_of(registered), defaults)
    cfg = with_suite(cfg)
    if isinstance(algo, SchemeCfg):
        check_changes(cfg.changes)
        changed = override(registered, cfg.changes)
        cfg = replace(cfg, changes=with_history(cfg.changes, algo, changed))
    cfg.check_motion_files()
    check_changes(cfg.changes)
    run_dir = run_folder(cfg)
    task = override(registered, cfg.changes)
    task.check()
    if kind_of(task).imitates_motions:
        task = imitating(task, cfg.clips, cfg.motions, cfg.motion)
    _check_algorithm(algo, task)
    # The video is planned before the algorithm adds its observations, which a video does not need.
    episodes, video_seconds = size_of_results(cfg, algo)
    film = make_scenes(task, total=video_seconds) if cfg.video else []
    add_algorithm_observations(algo, task)
    warm_start = None
    if cfg.warm_start is not None and checkpoint is None:
        # PPO adapts networks of another task of the same robot; mimic networks must be equal.
        same_task = None if isinstance(algo, PPOCfg) else cfg.task_id
        warm_start = read_checkpoint(cfg.warm_start, same_task)
    return Prepared(
        cfg=cfg,
        algo=algo,
        task=task,
        defaults=defaults,
        coarse=coarse_fraction(cfg, task, defaults),
        first_trot=first_trot_factor(cfg, task, defaults),
        run_dir=run_dir,
        metrics=metrics_of(task),
        episodes=episodes,
        scenes=film,
        checkpoint=checkpoint,
        style=style_of(cfg),
        warm_start=warm_start,
    )


def agreed(prepared: Prepared) -> Prepared:
    """Check that all processes of a training were started alike, and give them one run folder.

    Raises:
        ValueError: If an option or the version of the package differs between processes.
    """
    cfg = replace(prepared.cfg, run_dir=None, threads=0)
    facts = {"version": __version__, "task": cfg.task_id, "seed": cfg.seed, "options": repr(cfg)}
    processes.check_agreement(facts)
    folder = processes.gather(str(prepared.run_dir))[0]
    return replace(prepared, run_dir=Path(folder))


def style_of(cfg: TrainCfg) -> Callable[[RobotCfg], Sequence[Motion]]:
    """Return the function that loads the clips that ``--clips`` and ``--motions`` name."""
    if cfg.motions:
        files = MotionFiles(cfg.motions, **asdict(cfg.motion))
        return partial(_chosen, files, cfg.clips)
    return partial(_shipped, cfg.clips)


def _shipped(clips: Sequence[str], robot: RobotCfg) -> Sequence[Motion]:
    return shipped_motions(robot, *clips)


def _chosen(files: MotionFiles, clips: Sequence[str], robot: RobotCfg) -> Sequence[Motion]:
    motions = files(robot)
    names = [motion.name for motion in motions]
    check_known("--clips: there is no clip", clips, names, "clips")
    return [motion for motion in motions if not clips or motion.name in clips]


def default_config(task_id: str) -> dict[str, Any]:
    """Return the configuration of a training with default options.

    Args:
        task_id: Id of a registered task, or ``module:Id``; its module is not imported.

    Returns:
        ``training``, the completed options, and ``task``, the configuration of the task.

    Raises:
        ValueError: If no task has that id.
    """
    task_id = registered_id(task_id, CONFIG)
    task = make_task_cfg(task_id)
    defaults = make_training_defaults(task_id)
    training, _ = with_defaults(TrainCfg(task_id), kind_of(task), defaults)
    return {"training": training, "task": task}


def with_defaults(
    cfg: TrainCfg, kind: TaskKind, defaults: TrainingDefaults
) -> tuple[TrainCfg, AlgorithmCfg]:
    """Check the options of a training, and replace None by the task's defaults.

    Args:
        cfg: The options as given.
        kind: Kind of the task, which decides which algorithms and options suit it.
        defaults: Default training options of the task.

    Returns:
        The completed copy of the options, and the options of the algorithm in it.

    Raises:
        ValueError: If an option is out of its range, or does not suit the kind of the task or other
            options.
        ModuleNotFoundError: If a module that a training needs is not installed.
    """
    check_choice("--tracker", cfg.tracker, tuple(TRACKERS))
    check_installed(*TRAINING_MODULES)
    # The other trackers have an extra of their name.
    check_installed(cfg.tracker, extra="train" if cfg.tracker == "tensorboard" else cfg.tracker)
    algo: AlgorithmCfg
    if cfg.algo is not None:
        algo = cfg.algo
    elif kind.imitates_motions:
        algo = MimicPPOCfg()
    else:
        algo = PPOCfg()
    if isinstance(algo, PPOCfg):
        # A resumed run has its completed options, and its std from the checkpoint.
        if cfg.warm_start is not None and cfg.resume is None and algo.init_std is not None:
            raise ValueError(
                f"--init-std is for new networks, got {algo.init_std:g} with --warm-start: the "
                "networks of the run bring their own; --noise-kept changes it"
            )
        algo = complete_ppo(algo, defaults, cfg)
    _check_combination(cfg, algo, kind)
    _check_symmetry(algo)
    _check_numbers(cfg, algo)
    iterations = cfg.iterations
    if iterations is None and cfg.minutes is None:
        iterations = defaults.iterations
    return replace(cfg, algo=algo, iterations=iterations), algo


def _check_combination(cfg: TrainCfg, algo: AlgorithmCfg, kind: TaskKind) -> None:
    """Check that options suit the kind of the task and each other."""
    fitting = (
        ("mmppo", "distillation") if kind.imitates_motions else ("ppo", *SCHEME_CONFIGS, "lstm")
    )
    given = algorithm_name(algo)
    if given not in fitting:
        raise ValueError(f"{cfg.task_id!r} is trained with {' or '.join(fitting)}, got {given}")
    has_style = isinstance(algo, OnPolicyCfg) and algo.amp.amp_reward_weight > 0.0
    if not kind.imitates_motions and not has_style:
        for option, value in (("--clips", cfg.clips), ("--motions", cfg.motions)):
            if value:
                raise ValueError(
                    f"{option} is for mimic tasks, and {cfg.task_id!r} is not one; "
                    "with --amp.weight they are the style of any task"
                )
    if cfg.learner == "rsl_rl":
        _check_rsl_rl(algo)
    if cfg.warm_start is not None and isinstance(algo, (MimicDistillationCfg, LSTMCfg)):
        raise ValueError(f"--warm-start is not for {given}, which starts with new networks")
    noise_kept = getattr(algo, "noise_kept", 1.0)
    if noise_kept != 1.0 and cfg.warm_start is None:
        raise ValueError(
            f"--noise-kept is for a --warm-start, got {noise_kept:g} without one; "
            "a new run has --init-std"
        )
    if isinstance(algo, MimicPPOCfg) and algo.dagger.teacher and not algo.dagger.coefficient:
        raise ValueError("--dagger.teacher needs --dagger.coefficient, got 0")


def _check_symmetry(algo: AlgorithmCfg) -> None:
    """Check that an algorithm can treat left and right equally as its options say."""
    if not isinstance(algo, PPOCfg):
        return
    check_choice("--symmetry", algo.symmetry, get_args(Symmetry))
    if algo.symmetry == "networks" and type(algo) is not PPOCfg:
        raise ValueError(
            f"--symmetry networks is for ppo, got {algorithm_name(algo)}: leave it out"
        )
    assert algo.hidden is not None, "complete_ppo() comes first"
    odd = [width for width in algo.hidden if width % 2]
    if algo.symmetry == "networks" and odd:
        raise ValueError(
            f"--symmetry networks needs even --hidden, got {odd[0]}: give even widths, or "
            "--symmetry batches"
        )


def _check_rsl_rl(algo: AlgorithmCfg) -> None:
    """Check that no option is switched on that rsl_rl's PPO does not have."""
    if type(algo) is not PPOCfg:
        raise ValueError("--learner rsl_rl is only for ppo; leave it out")
    if processes.count() > 1:
        raise ValueError(
            f"--learner rsl_rl trains in one process, got {processes.count()}; leave it out, or "
            "start it without torchrun"
        )
    for option, is_on in (
        ("--amp.weight", algo.amp.amp_reward_weight > 0.0),
        ("--rnd.weight", algo.rnd.weight > 0.0),
        ("--lagrange.enabled", algo.lagrange.enabled),
        ("--constraint.method", algo.constraint.method != "none"),
        ("--symmetry", algo.symmetry != "off"),
        ("--schedule adaptive", algo.schedule == "adaptive"),
    ):
        if is_on:
            raise ValueError(f"{option} is for --learner legged_envs, got --learner rsl_rl")


def _check_numbers(cfg: TrainCfg, algo: AlgorithmCfg) -> None:
    check_option_numbers(cfg)
    check_option_numbers(algo)
    for option, value in option_values(algo).items():
        if option.endswith("hidden") and value == ():
            raise ValueError(f"--{option} must be widths of layers, such as 256 128, got none")
    whole_number("--seed", cfg.seed, least=0, most=LARGEST_SEED)
    whole_number("--threads", cfg.threads, least=0, most=max(MOST_THREADS, os.cpu_count() or 1))
    check_size("--num-envs", cfg.num_envs)
    if cfg.episodes is not None:
        check_size("--episodes", cfg.episodes)
    if isinstance(algo, MimicDistillationCfg):
        # It makes one mini-batch of each control step, so there is no number to check.
        return
    if isinstance(algo, CTSCfg):
        teachers = int(cfg.num_envs * algo.teacher_share)
        if not 1 <= teachers < cfg.num_envs:
            raise ValueError(
                f"--teacher-share {algo.teacher_share:g} of --num-envs {cfg.num_envs} are "
                f"{teachers} teachers; there must be a teacher and a student, or train with ts"
            )
    if isinstance(algo, SchemeCfg) and algo.encoder_epochs > algo.epochs:
        raise ValueError(f"--encoder-epochs {algo.encoder_epochs} exceeds --epochs {algo.epochs}")
    if isinstance(algo, LSTMCfg) and algo.mini_batches > cfg.num_envs:
        raise ValueError(
            f"--mini-batches must be at most num_envs = {cfg.num_envs}, because lstm learns from "
            f"the whole rollout of each robot, got {algo.mini_batches}"
        )
    samples = cfg.num_envs * algo.steps_per_env
    if algo.mini_batches > samples:
        raise ValueError(
            f"--mini-batches must be at most num_envs · steps_per_env = {samples}, "
            f"got {algo.mini_batches}"
        )


def _check_algorithm(algo: AlgorithmCfg, task: TaskCfg) -> None:
    """Check that the cost terms and the teacher that an algorithm names exist."""
    if isinstance(algo, OnPolicyCfg):
        check_known("--lagrange.costs: there is no cost", algo.lagrange.costs, task.costs, "costs")
        check_constraint(algo, task)
    if isinstance(algo, PPOCfg) or (isinstance(algo, MimicPPOCfg) and not algo.dagger.coefficient):
        return
    # Loading finds a missing or damaged file now. The trainer loads it again on the right device.
    load_policy(teacher_path(algo))


def add_algorithm_observations(algo: AlgorithmCfg, task: TaskCfg) -> None:
    """Add to a task the observation groups that only the algorithm needs.

    Args:
        algo: Options of the algorithm.
        task: Configuration of the task, which is changed.

    Raises:
        ValueError: If the task lacks the observations that the algorithm learns from.
    """
    if isinstance(algo, OnPolicyCfg) and algo.amp.amp_reward_weight:
        groups = [*task.observations, AmpCfg.group]
        check_known("--amp.group: there is no group", [algo.amp.group], groups, "groups")
        task.observations.setdefault(algo.amp.group, amp_observations())
    if isinstance(algo, SchemeCfg):
        # The schemes import rsl_rl, which takes seconds, and PPO does without them.
        from legged_envs.training.schemes.registry import SCHEMES

        SCHEMES[type(algo)].add_observations(task, algo)
