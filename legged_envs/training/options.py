"""Options of a training. Every field is an option of ``legged-envs train``."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg, subcommand

from legged_envs.configuration import Configuration
from legged_envs.runs.options import TaskId, Value
from legged_envs.training.mimic_options import (
    Activation,
    MimicDistillationCfg,
    MimicPPOCfg,
    OnPolicyCfg,
)

TRAINING_MODULES = (
    "rsl_rl",
    "tensordict",
    "onnx",
    "onnxscript",
    "matplotlib",
    "imageio_ffmpeg",
)
"""Modules that a training imports and that only the extra ``train`` installs."""


@dataclass
class PPOCfg(OnPolicyCfg):
    """Options of rsl_rl's PPO, for all tasks without motions.

    The learning rate falls linearly over the run. A field that is None takes the task's training
    default.
    """

    mini_batches: int = 3
    """Parts of a pass over a rollout, one step of the optimiser for each."""

    gamma: float | None = None
    """Discount of a control step at the start; by default the task's."""

    final_gamma: float | None = None
    """Discount of a control step at the end, linear in between; by default ``gamma`` if that is
    given, else the task's."""

    hidden: tuple[int, ...] | None = None
    """Hidden layers of actor and critic; by default the task's."""

    activation: Activation = "elu"
    """Activation of the hidden layers."""

    init_std: float | None = None
    """Standard deviation of the first actions; 1 is the whole action range; by default the task's.
    Arms and heads of bipeds begin with 0.4 of it, because their swings turn the trunk."""

    entropy: float | None = None
    """Weight of the entropy; by default the task's."""

    noise_kept: float = 1.0
    """With --warm-start: factor of the standard deviation of actions that the earlier run ended
    with. Less than 1 explores less."""

    mirror: bool = True
    """True: half of each mini-batch is mirrored left to right, where the task's terms say how they
    mirror."""


AlgorithmCfg = PPOCfg | MimicPPOCfg | MimicDistillationCfg
"""Options of an algorithm."""

ALGORITHMS: dict[str, type[AlgorithmCfg]] = {
    "ppo": PPOCfg,
    "mmppo": MimicPPOCfg,
    "distillation": MimicDistillationCfg,
}
"""Name of an algorithm on the command line → class of its options."""


@dataclass
class TrainCfg(Configuration):
    """Options of ``legged-envs train``."""

    task_id: TaskId
    """Registered id, or module:Id of another package's task."""

    num_envs: int = 768
    """Robots that learn at once."""

    sim: str = "mujoco"
    """Physics engine, also of the evaluation; the film is made with mujoco."""

    device: str = "cpu"
    """Device of the engine and of the learning, such as cuda:0."""

    minutes: float | None = None
    """Training time, wall clock, min, in place of a number of updates. Learning rate, discount and
    physics then follow the clock, so that the same seed gives another policy on a faster machine.
    Without effect if iterations is given."""

    iterations: int | None = None
    """Number of updates; by default the task's, or none with --minutes."""

    seed: int = 1
    """Seed of the task's random numbers and of the networks. The same seed gives the same policy on
    one machine."""

    run_dir: Path | None = None
    """Folder to write to; by default runs/<task>/<date>, or the folder that is resumed."""

    resume: Path | None = None
    """A run folder to continue as it was begun, or a numbered checkpoint to continue from in a new
    folder. iterations and minutes count from the start of the run."""

    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task, e.g. ``--changes rewards.torques.weight -0.0002 sim.decimation 2
    events.push None``."""

    algo: Annotated[
        Annotated[PPOCfg, subcommand("ppo")]
        | Annotated[MimicPPOCfg, subcommand("mmppo")]
        | Annotated[MimicDistillationCfg, subcommand("distillation")]
        | Annotated[None, subcommand("auto")],
        arg(name=""),
    ] = None
    """Algorithm and its options. None: rsl_rl's PPO, on mimic tasks motion-mimic PPO."""

    clips: tuple[str, ...] = ()
    """Clips that a mimic task imitates; by default those of the task."""

    motions: tuple[Path, ...] = ()
    """Files of motions that a mimic task imitates in place of its own: .npz, .csv (LAFAN1), .json
    or .txt (AMP)."""

    warm_start: Path | None = None
    """A run folder, or a numbered checkpoint, with the actor and critic to begin with, e.g. to
    change rewards. PPO also takes runs of the robot's other tasks: new observations have no
    influence at first."""

    coarse: float | None = None
    """Share of the training in which physics takes half as many steps, each twice as long;
    evaluations never do. By default the task's: 0.8 on flat ground, 0 on rough ground, where
    nothing is learnt so."""

    first_trot: float | None = None
    """Factor of the weight of the reward trot in the first 1.8 M steps. It then falls, to 1 at 3 M
    steps. By default the task's: 2.5 on flat ground; 1 with --warm-start."""

    threads: int = 0
    """Torch threads of the update; 0: one for each core."""

    checkpoint_minutes: float = 2.0
    """Time between two checkpoints, min."""

    keep: int | None = None
    """Number of checkpoints with a number, e.g. checkpoint_000250.pt, to keep in addition to the
    last; by default none."""

    episodes: int = 256
    """Episodes of an evaluation."""

    video: bool = True
    """True: film the trained policy."""

    video_seconds: float = 6.0
    """Length of the film, s."""

    tracker: Literal["tensorboard", "wandb", "mlflow"] = "tensorboard"
    """Tracker of the numbers during the training: files in the run folder, Weights & Biases or
    MLflow."""
