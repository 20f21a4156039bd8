"""Options of `legged-envs record`. They do not import PyTorch, which takes seconds."""

from dataclasses import dataclass, field
from pathlib import Path

from legged_envs.checks import whole_number
from legged_envs.configuration import Configuration
from legged_envs.runs.motion_options import MotionFileOptions
from legged_envs.runs.options import LARGEST_SEED, TaskId, Value, check_option_numbers, check_size


@dataclass
class RecordCfg(MotionFileOptions, Configuration):
    """Options of `legged-envs record`."""

    task_id: TaskId
    """Id of a registered task, or module:Id of a task that another package registers."""
    name: str
    """Minari's id of the dataset: [NAMESPACE/]NAME-vN, such as go2/walk-v0."""
    policy: Path | None = None
    """A policy.safetensors, or the run folder with it. None: the pretrained policy."""
    episodes: int = 1000
    """Number of episodes to record."""
    num_envs: int = 128
    """Number of robots that are simulated in parallel. Each contributes the same number of
    episodes, so that short episodes are not overrepresented."""
    seed: int = 1
    """Random seed of the task and of the action noise."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise on the actions, which lie in [-1, 1]. It gives data
    from states that the policy does not reach without noise."""
    clips: tuple[str, ...] = ()
    """Motions to imitate, for mimic tasks. Empty: the motions that the policy was trained on."""
    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task in addition to the policy's changes, e.g. --changes events.push None"""

    def check(self) -> None:
        """Check the options before anything is recorded.

        Raises:
            FileExistsError: If there is a dataset of this name.
            FileNotFoundError: If a file of motions is missing.
            ValueError: If an option is out of its range.
        """
        from legged_envs.datasets.episodes import dataset_folder

        self.check_motion_files()
        check_option_numbers(self)
        check_size("--episodes", self.episodes)
        check_size("--num-envs", self.num_envs)
        whole_number("--seed", self.seed, least=0, most=LARGEST_SEED)
        folder = dataset_folder(self.name)
        if folder.exists():
            raise FileExistsError(
                f"there is a dataset {self.name!r} in {str(folder)!r}: choose another --name"
            )
