"""Options of ``legged-envs record``."""

from dataclasses import dataclass, field
from pathlib import Path

from legged_envs.checks import whole_number
from legged_envs.configuration import Configuration
from legged_envs.runs.options import LARGEST_SEED, TaskId, Value, check_option_numbers, check_size


@dataclass
class RecordCfg(Configuration):
    """What ``legged-envs record`` can be told."""

    task_id: TaskId
    """Registered id, or module:Id of another package's task."""
    name: str
    """Of the dataset, as Minari has it: [NAMESPACE/]NAME-vN, such as go2/walk-v0."""
    policy: Path | None = None
    """A policy.safetensors, or the run folder with it; by default the one that ships with the package."""
    episodes: int = 1000
    """How many to record."""
    num_envs: int = 128
    """Robots at once. All give as many episodes, so that short episodes are not preferred."""
    seed: int = 1
    """Of the task's random numbers and of the noise."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise on the actions, whose range is [-1, 1]: data from beside its own way."""
    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task beside the policy's own, e.g. --changes events.push None"""

    def check(self) -> None:
        """Raise what a recording would, as far as its options and files tell it: ValueError, or FileExistsError if
        there is such a dataset."""
        from legged_envs.datasets.episodes import dataset_folder

        check_option_numbers(self)
        check_size("--episodes", self.episodes)
        check_size("--num-envs", self.num_envs)
        whole_number("--seed", self.seed, least=0, most=LARGEST_SEED)
        if (folder := dataset_folder(self.name)).exists():
            raise FileExistsError(
                f"there is a dataset {self.name!r} in {str(folder)!r}: choose another --name"
            )
