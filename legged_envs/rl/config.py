"""What a training run can be told; every field is a flag of ``legged-envs train``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from legged_envs.rl.mimic_config import MimicDistillationCfg, MimicPPOCfg


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
    """Where to write; by default runs/<task>/<date>."""
    resume: Path | None = None
    """A run folder to go on with, up to ``minutes`` or ``iterations`` in all."""
    changes: dict[str, float | None] = field(default_factory=dict)
    """Changes to the task, e.g. ``--changes rewards.torques.weight -0.0002``."""
    algo: Literal["auto", "ppo", "mmppo", "distillation"] = "auto"
    """rsl_rl's PPO for velocity tasks; motion-mimic PPO, or distillation of a teacher, for mimic tasks."""
    clips: tuple[str, ...] = ()
    """Clips that a mimic task imitates; by default those of the task."""
    motions: tuple[Path, ...] = ()
    """Files of motions that a mimic task imitates in place of its own: .npz, .csv (LAFAN1), .json or .txt (AMP)."""
    teacher: Path | None = None
    """A run folder or policy.pt trained with ``--mmppo.privileged-actor``, for distillation and DAgger."""
    warm_start: Path | None = None
    """A run folder of a mimic task whose actor and critic to begin with, e.g. to add constraints."""
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
