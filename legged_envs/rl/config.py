"""What a training run can be told; every field is a flag of ``legged-envs train``."""

import ast
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg, subcommand
from tyro.constructors import PrimitiveConstructorSpec

from legged_envs.checks import check_number, whole_number
from legged_envs.rl.mimic_config import MimicDistillationCfg, MimicPPOCfg, OnPolicyCfg


def _parsed(words: list[str]) -> Any:
    try:
        return ast.literal_eval(words[0])
    except (ValueError, TypeError, SyntaxError):
        return words[0]


Value = Annotated[
    Any, PrimitiveConstructorSpec(1, "VALUE", _parsed, lambda _: True, str_from_instance=lambda value: [repr(value)])
]
"""Any value; a word that is Python, such as ``2``, ``(-0.5, 0.5)`` or ``None``, is read as that."""


@dataclass
class PPOCfg(OnPolicyCfg):
    """rsl_rl's PPO, for velocity tasks. The learning rate falls linearly over the run."""

    mini_batches: int = 3
    hidden: tuple[int, ...] = (128, 128)
    """Hidden layers of actor and critic."""
    activation: str = "elu"
    init_std: float = 0.5
    """Standard deviation of the first actions; 1 is the whole action range."""
    mirror: bool = True
    """Whether half of each mini-batch is mirrored left to right."""


AlgorithmCfg = PPOCfg | MimicPPOCfg | MimicDistillationCfg
ALGORITHMS: dict[str, type[AlgorithmCfg]] = {"ppo": PPOCfg, "mmppo": MimicPPOCfg, "distillation": MimicDistillationCfg}


@dataclass
class TrainCfg:
    task_id: Positional[str]
    """Registered id."""
    num_envs: int = 768
    minutes: float = 10.0
    """Training time, wall clock, after which the policy is exported and evaluated."""
    iterations: int | None = None
    """Number of updates in place of a time: the run is then the same on every machine of one kind."""
    seed: int = 1
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
    """A run folder, or a numbered checkpoint, whose actor and critic to begin with, e.g. to change rewards."""
    compile: bool = False
    """Whether the environment's maths is compiled, which takes about half a minute the first time."""
    threads: int = 0
    """Torch threads of the update; 0 takes every core."""
    checkpoint_minutes: float = 2.0
    """Time between two checkpoints."""
    keep: int | None = None
    """How many checkpoints with a number, e.g. checkpoint_000250.pt, to keep beside the last; by default none."""
    episodes: int = 256
    """Episodes of an evaluation."""
    video: bool = True
    """Whether to film the trained policy."""
    video_seconds: float = 8.0
    """Length of the film, s."""


def complete(cfg: TrainCfg, mimic: bool) -> tuple[TrainCfg, AlgorithmCfg]:
    """A copy of ``cfg`` with its algorithm, and that; all options are checked, for a task of motions if ``mimic``."""
    algo = cfg.algo or (MimicPPOCfg() if mimic else PPOCfg())
    for_task = [name for name, options in ALGORITHMS.items() if mimic != (options is PPOCfg)]
    if type(algo) not in [ALGORITHMS[name] for name in for_task]:
        raise ValueError(f"{cfg.task_id!r} is trained with {' or '.join(for_task)}, got {algo}")
    for name, given in (("clips", cfg.clips), ("motions", cfg.motions)):
        if given and not mimic:
            raise ValueError(f"--{name} is for mimic tasks, and {cfg.task_id!r} is none")
    if cfg.warm_start and isinstance(algo, MimicDistillationCfg):
        raise ValueError("--warm-start is for ppo and mmppo; a student begins anew")
    if isinstance(algo, MimicPPOCfg) and algo.dagger.teacher and not algo.dagger.coefficient:
        raise ValueError("--dagger.teacher needs --dagger.coefficient, got 0")
    for name in ("num_envs", "episodes", "threads", "iterations", "keep", "steps_per_env", "epochs", "mini_batches"):
        value = getattr(cfg, name, getattr(algo, name, None))
        if value is not None:
            whole_number(f"--{name.replace('_', '-')}", value, least=0 if name == "threads" else 1)
    samples, mini_batches = cfg.num_envs * algo.steps_per_env, getattr(algo, "mini_batches", 1)
    if mini_batches > samples:
        raise ValueError(f"--mini-batches must be at most num_envs · steps_per_env = {samples}, got {mini_batches}")
    for name in ("minutes", "checkpoint_minutes"):
        check_number(f"--{name.replace('_', '-')}", getattr(cfg, name), above=0.0)
    return replace(cfg, algo=algo), algo
