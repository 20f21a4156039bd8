"""Options of a training. Every field is an option of ``legged-envs train``."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Suppress, arg, subcommand

from legged_envs.configuration import Configuration
from legged_envs.runs.motion_options import MotionFileOptions
from legged_envs.runs.options import TaskId, Value
from legged_envs.training.mimic_options import MimicDistillationCfg, MimicPPOCfg
from legged_envs.training.ppo_options import PPOCfg as PPOCfg
from legged_envs.training.scheme_options import (
    SCHEME_CONFIGS,
    CTSCfg,
    DreamWaQCfg,
    EECfg,
    HIMCfg,
    LSTMCfg,
    TSCfg,
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


AlgorithmCfg = PPOCfg | MimicPPOCfg | MimicDistillationCfg
"""Options of a learning algorithm; the class selects the algorithm."""

ALGORITHMS: dict[str, type[AlgorithmCfg]] = {
    "ppo": PPOCfg,
    **SCHEME_CONFIGS,
    "lstm": LSTMCfg,
    "mmppo": MimicPPOCfg,
    "distillation": MimicDistillationCfg,
}
"""Class of the options of each algorithm, by the algorithm's name on the command line."""


def algorithm_name(options: AlgorithmCfg) -> str:
    """Return the name of an algorithm on the command line, from its options."""
    for name, kind in ALGORITHMS.items():
        if type(options) is kind:
            return name
    return repr(options)


@dataclass
class TrainCfg(MotionFileOptions, Configuration):
    """Options of ``legged-envs train``."""

    task_id: TaskId
    """Id of a registered task, or module:Id of a task that another package registers."""

    num_envs: int = 768
    """Number of robots that are simulated in parallel."""

    sim: str = "mujoco"
    """Physics engine of training and evaluation. The video always uses mujoco."""

    device: str = "cpu"
    """Torch device of physics engine and learning, such as cpu or cuda:0."""

    minutes: float | None = None
    """Wall-clock training time, min, instead of a number of updates. Learning rate, discount and
    physics then follow the clock, so the same seed gives a different policy on a faster machine.
    Without effect if iterations is given."""

    iterations: int | None = None
    """Number of updates of the training. None: the task's, or no limit with --minutes."""

    learner: Literal["legged_envs", "rsl_rl"] = "legged_envs"
    """Implementation of PPO in tasks without motions. rsl_rl's serves for comparisons: it neither
    treats left and right equally nor has an adaptive learning rate, costs or other additions."""

    seed: int = 1
    """Seed of the task's random numbers and of the networks. The same seed gives the same policy on
    one machine."""

    run_dir: Path | None = None
    """Folder to write to. None: the folder that is resumed, or runs/<task>/<date>."""

    resume: Path | None = None
    """Run folder to continue with its own options, or numbered checkpoint to continue from in a new
    folder. iterations and minutes count from the start of that run."""

    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task's configuration: dotted path and value, e.g. ``--changes
    rewards.joint_torque.weight -0.0002 sim.decimation 2 events.push None``."""

    constraints: Literal["loose", "medium", "tight"] | float | None = None
    """Costs and limits of the suite SafeLegged-v1, which replace the costs of the task. The
    unconstrained policy breaks the limits by 1.3 (loose), 2 (medium) or 3 (tight), or by a given
    factor. None: the costs of the task. --constraint.method keeps the limits."""

    algo: Annotated[
        Annotated[PPOCfg, subcommand("ppo")]
        | Annotated[TSCfg, subcommand("ts")]
        | Annotated[CTSCfg, subcommand("cts")]
        | Annotated[EECfg, subcommand("ee")]
        | Annotated[DreamWaQCfg, subcommand("dreamwaq")]
        | Annotated[HIMCfg, subcommand("him")]
        | Annotated[LSTMCfg, subcommand("lstm")]
        | Annotated[MimicPPOCfg, subcommand("mmppo")]
        | Annotated[MimicDistillationCfg, subcommand("distillation")]
        | Annotated[None, subcommand("auto")],
        arg(name=""),
    ] = None
    """Algorithm and its options. None: motion-mimic PPO for mimic tasks, otherwise PPO."""

    clips: tuple[str, ...] = ()
    """Names of the reference clips that a mimic task imitates. Empty: all clips of the task."""

    warm_start: Path | None = None
    """Run folder or numbered checkpoint with the actor and critic that the training starts with,
    e.g. after a change of rewards. PPO also accepts runs of the robot's other tasks: new
    observations have no influence at first. A training scheme accepts runs of the same scheme on
    any task of the robot with the same observations."""

    coarse: float | None = None
    """Share of the training during which physics makes half as many steps, each twice as long.
    Range 0 to 1; 0 switches it off. Evaluations never use it. None: the task's, which is 0.8 on
    flat ground and 0 on rough ground, where robots do not learn to walk with it."""

    first_trot: float | None = None
    """Factor on the weight of the reward trot in the first 1.8 M steps of all robots. It then falls
    linearly to 1 at 3 M steps. 1 switches it off. None: 1 with --warm-start or on rough ground,
    otherwise the task's, which is 2.5."""

    threads: int = 0
    """Number of threads of the training, in PyTorch and in physics. 0: one per core."""

    checkpoint_minutes: float = 2.0
    """Time between two checkpoints, min."""

    keep: int | None = None
    """Number of numbered checkpoints, e.g. checkpoint_000250.pt, to keep in addition to the latest
    one. None: keep no numbered checkpoints."""

    episodes: int | None = None
    """Number of episodes of an evaluation, simulated in parallel. None: 256, fewer after a training
    of less than 4 M steps or 3 min."""

    video: bool = True
    """True: render a video of the trained policy at the end."""

    video_seconds: float | None = None
    """Duration of the video, s. None: 6, less after a training of less than 4 M steps or 3 min."""

    tracker: Literal["tensorboard", "wandb", "mlflow"] = "tensorboard"
    """Tracker that logs the numbers of each update: TensorBoard files in the run folder, Weights &
    Biases or MLflow."""

    imports: Annotated[tuple[str, ...], Suppress] = ()
    """Modules that register tasks. The command line has them from ``--import``."""

    def with_absolute_paths(self) -> "TrainCfg":
        """Return options that name the same motions and teacher from any folder."""
        algo = self.algo
        if isinstance(algo, MimicPPOCfg) and algo.dagger.teacher is not None:
            teacher = Path(algo.dagger.teacher).absolute()
            algo = replace(algo, dagger=replace(algo.dagger, teacher=teacher))
        elif isinstance(algo, MimicDistillationCfg) and algo.teacher is not None:
            algo = replace(algo, teacher=Path(algo.teacher).absolute())
        motions = tuple(Path(file).absolute() for file in self.motions)
        return replace(self, algo=algo, motions=motions)
