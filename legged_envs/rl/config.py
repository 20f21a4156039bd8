"""What a training run can be told; every field is a flag of ``legged-envs train``."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional
from tyro.constructors import PrimitiveConstructorSpec

from legged_envs.rl.mimic_config import MimicDistillationCfg, MimicPPOCfg


def _parsed(text: str) -> Any:
    """What a word says in Python, ``"2"``, ``"False"``, ``"(-0.5, 0.5)"`` or ``"None"``; else the word itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError):
        return text


Algo = Literal["ppo", "mmppo", "distillation"]
"""Algorithms, each with a field of options in :class:`TrainCfg`."""
Value = Annotated[
    Any,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="VALUE",
        instance_from_str=lambda words: _parsed(words[0]),
        is_instance=lambda _: True,
        str_from_instance=lambda value: [repr(value)],
    ),
]
"""Any value; a command line reads ``2``, ``False``, ``"(-0.5, 0.5)"`` and ``None`` as in Python, else a word."""


@dataclass
class PPOCfg:
    """rsl_rl's PPO. The learning rate falls linearly over the run."""

    steps_per_env: int = 24
    """Control steps of each environment between two updates."""
    epochs: int = 5
    mini_batches: int = 3
    learning_rate: float = 1e-3
    """At the start."""
    final_learning_rate: float = 1e-4
    """At the end."""
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.002
    value_loss: float = 1.0
    max_grad_norm: float = 1.0
    hidden: tuple[int, ...] = (128, 128)
    """Hidden layers of actor and critic."""
    activation: str = "elu"
    init_std: float = 0.5
    """Standard deviation of the first actions; 1 is the whole action range."""
    mirror: bool = True
    """Whether half of each mini-batch is mirrored left to right."""


@dataclass
class TrainCfg:
    """A training run."""

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
    """A run folder to go on with, as it was begun; ``minutes`` and ``iterations`` are those of the whole run."""
    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task, e.g. ``--changes rewards.torques.weight -0.0002 sim.decimation 2 events.push None``."""
    algo: Literal["auto"] | Algo = "auto"
    """rsl_rl's PPO for velocity tasks; motion-mimic PPO, or distillation of a teacher, for mimic tasks."""
    clips: tuple[str, ...] = ()
    """Clips that a mimic task imitates; by default those of the task."""
    motions: tuple[Path, ...] = ()
    """Files of motions that a mimic task imitates in place of its own: .npz, .csv (LAFAN1), .json or .txt (AMP)."""
    teacher: Path | None = None
    """A run folder or policy.pt trained with ``--mmppo.privileged-actor``, for distillation and DAgger."""
    warm_start: Path | None = None
    """A run folder of the task whose actor and critic to begin with, e.g. to change rewards or add constraints."""
    ppo: PPOCfg = field(default_factory=PPOCfg)
    mmppo: MimicPPOCfg = field(default_factory=MimicPPOCfg)
    distillation: MimicDistillationCfg = field(default_factory=MimicDistillationCfg)
    compile: bool = False
    """Whether the environment's maths is compiled, which takes about half a minute the first time."""
    threads: int = 0
    """Torch threads of the update; 0 takes every core."""
    checkpoint_minutes: float = 2.0
    """Time between two checkpoints."""
    episodes: int = 256
    """Episodes of an evaluation."""
    video: bool = True
    """Whether to film the trained policy."""


OF_A_RESUMPTION = ("run_dir", "resume")
"""Options that a run to resume does not pass on."""
FREE = ("minutes", "iterations", "compile", "threads", "checkpoint_minutes", "episodes", "video")
"""Options that it passes on unless they are given; any other may not differ."""


def resumed(cfg: TrainCfg, run: TrainCfg) -> TrainCfg:
    """The options with which ``run`` goes on when asked to by ``cfg``.

    An option counts as given where it differs from its default.

    Raises:
        ValueError: If an option that defines the run is given and differs from the run's.
    """
    merged: TrainCfg = _merged(cfg, run, TrainCfg(cfg.task_id))
    if cfg.minutes != TrainCfg.minutes and cfg.iterations is None:
        merged.iterations = None  # or they would hide the time that was asked for
    return merged


def _merged(given: Any, run: Any, default: Any, prefix: str = "--") -> Any:
    values = {}
    for name in (f.name for f in fields(given)):
        asked, has, usual = getattr(given, name), getattr(run, name), getattr(default, name)
        option = prefix + name.replace("_", "-")
        if is_dataclass(asked):
            values[name] = _merged(asked, has, usual, f"{option}.")
        elif name in OF_A_RESUMPTION or (name in FREE and asked != usual):
            values[name] = asked
        elif name in FREE or asked in (has, usual):
            values[name] = has
        else:
            raise ValueError(f"{option} is {has} in the run to resume, got {asked}; leave it out, or train anew")
    return replace(given, **values)
