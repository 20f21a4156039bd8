"""What a training run can be told; every field is a flag of ``legged-envs train``."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg, subcommand

from legged_envs.checks import check_choice, whole_number
from legged_envs.configuration import Configuration
from legged_envs.runs.options import LARGEST_SEED, TaskId, Value, check_option_numbers, check_size
from legged_envs.runs.run_folder import TRACKERS
from legged_envs.system_checks import check_installed
from legged_envs.training.mimic_options import (
    Activation,
    MimicDistillationCfg,
    MimicPPOCfg,
    OnPolicyCfg,
)

if TYPE_CHECKING:
    from legged_envs.envs.cfg import TaskCfg


MODULES = ("rsl_rl", "tensordict", "onnx", "onnxscript", "matplotlib", "imageio_ffmpeg")
"""What a training imports, and only the extra ``train`` installs."""
COARSE = 0.8
FIRST_TROT = 2.5
ARMS = 0.4
MOST_THREADS = 256
"""Share of a training with coarse physics, how many times its weight a trot earns at first, how much of the first noise
arms and heads get, and how many threads a machine with fewer cores may have."""


@dataclass
class PPOCfg(OnPolicyCfg):
    """rsl_rl's PPO, for velocity tasks. The learning rate falls linearly over the run."""

    mini_batches: int = 3
    gamma: float | None = None
    """Discount of a step; by default 0.99 on rough ground. On flat ground a step pays off within a second: 0.97, of
    a biped 0.98."""
    final_gamma: float | None = None
    """Discount at the end of the run, linear in between; by default ``gamma``, but of a biped on flat ground 0.99:
    one that begins badly falls a second or two later."""
    hidden: tuple[int, ...] | None = None
    """Hidden layers of actor and critic; by default 128 128, on rough ground, where a policy sees more, 256 128."""
    activation: Activation = "elu"
    init_std: float | None = None
    """Standard deviation of the first actions, 1 is the whole action range; by default 0.5, on rough ground 0.4. Arms
    and heads of bipeds begin with 0.4 of it: their swings turn the trunk."""
    entropy: float | None = None
    """Weight of the entropy; by default 0.0005, of quadrupeds on rough ground 0.002."""
    noise_kept: float = 1.0
    """With --warm-start: which part of the run's standard deviation of actions to begin with, for less exploration."""
    mirror: bool = True
    """Whether half of each mini-batch is mirrored left to right, where the task's terms say how they mirror."""


AlgorithmCfg = PPOCfg | MimicPPOCfg | MimicDistillationCfg
ALGORITHMS: dict[str, type[AlgorithmCfg]] = {
    "ppo": PPOCfg,
    "mmppo": MimicPPOCfg,
    "distillation": MimicDistillationCfg,
}


@dataclass
class TrainCfg(Configuration):
    """What ``legged-envs train`` can be told."""

    task_id: TaskId
    """Registered id, or module:Id of another package's task."""
    num_envs: int = 768
    """Robots that learn at once."""
    sim: str = "mujoco"
    """Physics engine, also of the evaluation; the film is made with mujoco."""
    device: str = "cpu"
    """Where the engine and the learning run, such as cuda:0."""
    minutes: float | None = None
    """Training time, wall clock, min, after which the policy is exported and evaluated; by default 4, of a biped 40, on
    rough ground 60, for motions 10."""
    iterations: int | None = None
    """Number of updates in place of a time: the run is then the same on every machine of one kind."""
    seed: int = 1
    """Of the task's random numbers and of the networks."""
    run_dir: Path | None = None
    """Where to write; by default runs/<task>/<date>, or the folder that is resumed."""
    resume: Path | None = None
    """A run folder to go on with, as it was begun, or a numbered checkpoint of one, from which to go on in a folder of
    its own; ``minutes`` and ``iterations`` are those of the whole run."""
    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task, e.g. ``--changes rewards.torques.weight -0.0002 sim.decimation 2 events.push None``."""
    algo: Annotated[
        Annotated[PPOCfg, subcommand("ppo")]
        | Annotated[MimicPPOCfg, subcommand("mmppo")]
        | Annotated[MimicDistillationCfg, subcommand("distillation")]
        | Annotated[None, subcommand("auto")],
        arg(name=""),
    ] = None
    """Algorithm and its options. None stands for rsl_rl's PPO on velocity tasks, motion-mimic PPO on mimic tasks."""
    clips: tuple[str, ...] = ()
    """Clips that a mimic task imitates; by default those of the task."""
    motions: tuple[Path, ...] = ()
    """Files of motions that a mimic task imitates in place of its own: .npz, .csv (LAFAN1), .json or .txt (AMP)."""
    warm_start: Path | None = None
    """A run folder, or a numbered checkpoint, whose actor and critic to begin with, e.g. to change rewards. PPO also
    takes runs of the robot's other tasks: what is new to see counts for nothing at first."""
    coarse: float | None = None
    """Share of the training in which physics takes half as many steps, each twice as long; evaluations never do. By
    default 0.8 for velocity tasks on flat ground, else 0: on rough ground nothing is learnt so."""
    first_trot: float | None = None
    """How many times its weight a trot earns in the first 1.8 M steps, from where on that falls, to 1 at 3 M; by
    default 2.5 for velocity tasks on flat ground that reward one, without a --warm-start."""
    compile: bool = False
    """Whether the environment's maths is compiled, which takes about half a minute the first time."""
    threads: int = 0
    """Torch threads of the update; 0 takes every core."""
    checkpoint_minutes: float = 2.0
    """Time between two checkpoints, min."""
    keep: int | None = None
    """How many checkpoints with a number, e.g. checkpoint_000250.pt, to keep beside the last; by default none."""
    episodes: int = 256
    """Episodes of an evaluation."""
    video: bool = True
    """Whether to film the trained policy."""
    video_seconds: float = 6.0
    """Length of the film, s."""
    tracker: Literal["tensorboard", "wandb", "mlflow"] = "tensorboard"
    """Where numbers go as the training runs: files in the run folder, Weights & Biases or MLflow."""


def complete(cfg: TrainCfg, task: "TaskCfg") -> tuple[TrainCfg, AlgorithmCfg]:
    """A copy of ``cfg`` with its algorithm, and that, with what it has by default for ``task``; ValueError for an
    option that cannot be."""
    from legged_envs.tasks.kind import kind_of

    kind = kind_of(task)
    mimic = kind.imitates_motions
    check_choice("--tracker", cfg.tracker, tuple(TRACKERS))
    check_installed(*MODULES)
    check_installed(cfg.tracker, extra="train" if cfg.tracker == "tensorboard" else "track")
    algo = cfg.algo or (MimicPPOCfg() if mimic else PPOCfg())
    biped, rough = kind.balances, kind.has_terrain
    minutes = 10.0 if mimic else 60.0 if rough else 40.0 if biped else 4.0
    if isinstance(algo, PPOCfg):
        usual: dict[str, Any] = {
            "hidden": (256, 128) if rough else (128, 128),
            "init_std": 0.4 if rough else 0.5,
            "entropy": 0.002 if rough and not biped else 0.0005,
            "gamma": 0.99 if rough else 0.98 if biped else 0.97,
            "final_gamma": 0.99 if biped and algo.gamma is None else None,
        }
        algo = replace(
            algo, **{name: value for name, value in usual.items() if getattr(algo, name) is None}
        )
        algo = replace(
            algo, final_gamma=algo.gamma if algo.final_gamma is None else algo.final_gamma
        )
    name_of = {options: name for name, options in ALGORITHMS.items()}
    fitting = [name for options, name in name_of.items() if mimic != (options is PPOCfg)]
    if (given := name_of.get(type(algo))) not in fitting:
        raise ValueError(
            f"{cfg.task_id!r} is trained with {' or '.join(fitting)}, got {given or algo}"
        )
    for name in ("clips", "motions"):
        if getattr(cfg, name) and not mimic:
            raise ValueError(f"--{name} is for mimic tasks, and {cfg.task_id!r} is none")
    if cfg.warm_start and isinstance(algo, MimicDistillationCfg):
        raise ValueError("--warm-start is for ppo and mmppo; a student begins anew")
    if isinstance(algo, PPOCfg) and algo.noise_kept != 1.0 and cfg.warm_start is None:
        how = "a new run has --init-std"
        raise ValueError(
            f"--noise-kept is for a --warm-start, got {algo.noise_kept:g} without; {how}"
        )
    if isinstance(algo, MimicPPOCfg) and algo.dagger.teacher and not algo.dagger.coefficient:
        raise ValueError("--dagger.teacher needs --dagger.coefficient, got 0")
    check_option_numbers(cfg)
    check_option_numbers(algo)
    whole_number("--seed", cfg.seed, least=0, most=LARGEST_SEED)
    whole_number("--threads", cfg.threads, least=0, most=max(MOST_THREADS, os.cpu_count() or 1))
    check_size("--num-envs", cfg.num_envs)
    check_size("--episodes", cfg.episodes)
    samples, mini_batches = cfg.num_envs * algo.steps_per_env, getattr(algo, "mini_batches", 1)
    if mini_batches > samples:
        raise ValueError(
            f"--mini-batches must be at most num_envs · steps_per_env = {samples}, got {mini_batches}"
        )
    return replace(cfg, algo=algo, minutes=minutes if cfg.minutes is None else cfg.minutes), algo


def default_config(task_id: str) -> dict[str, Any]:
    """Return the ``training`` and ``task`` configurations of a training with default options."""
    from legged_envs.tasks import make_task_cfg

    task = make_task_cfg(task_id)
    training, _ = complete(TrainCfg(task_id), task)
    return {"training": training, "task": task}


def coarse(cfg: TrainCfg, task: "TaskCfg") -> float:
    """The share of a training with coarse physics; ValueError if the task cannot have it."""
    from legged_envs.tasks.kind import kind_of

    fits = task.is_reconfigurable and task.sim.decimation % 2 == 0
    if cfg.coarse and not fits:
        raise ValueError(
            f"--coarse halves sim.decimation of a task of terms, got {cfg.coarse} for {cfg.task_id!r}"
        )
    usual = (
        COARSE
        if fits and kind_of(task).has_velocity_command and task.scene.terrain is None
        else 0.0
    )
    return usual if cfg.coarse is None else cfg.coarse


def first_trot(cfg: TrainCfg, task: "TaskCfg") -> float:
    """How many times its weight a trot earns at first; ValueError if the task rewards none."""
    from legged_envs.tasks.kind import kind_of

    fits = task.is_reconfigurable and "trot" in task.rewards and task.rewards["trot"].weight != 0.0
    if cfg.first_trot is not None and not fits:
        raise ValueError(
            f"--first-trot is for tasks with a reward 'trot', {cfg.task_id!r} has none"
        )
    begins = (
        kind_of(task).has_velocity_command and task.scene.terrain is None and cfg.warm_start is None
    )
    usual = FIRST_TROT if fits and begins else 1.0
    return usual if cfg.first_trot is None else cfg.first_trot


def teacher_path(algo: MimicPPOCfg | MimicDistillationCfg) -> Path:
    """Where the teacher of an algorithm is that needs one; ValueError if it is not given."""
    path = algo.dagger.teacher if isinstance(algo, MimicPPOCfg) else algo.teacher
    if path is None:
        raise ValueError(
            "distillation and DAgger need a --teacher, a run trained with mmppo --privileged-actor"
        )
    return path
