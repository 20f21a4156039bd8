"""Options of `legged-envs crosscheck`. They do not import PyTorch, which takes seconds."""

from dataclasses import dataclass, field
from pathlib import Path

from legged_envs import checks, system_checks
from legged_envs.configuration import Configuration
from legged_envs.runs.options import LARGEST_SEED, TaskId, Value, check_size
from legged_envs.tasks import plain_id


@dataclass
class CrosscheckCfg(Configuration):
    """Options of `legged-envs crosscheck`."""

    task_id: TaskId
    """Registered id of a velocity task, or module:Id of another package's task."""
    policy: Path | None = None
    """A policy.safetensors, or the run folder with it. Default: the policy that ships."""
    sims: tuple[str, ...] = ()
    """Engines; the others are compared with the first. Default: all that are installed."""
    robots: int = 16
    """Number of robots."""
    seconds: float = 5.0
    """Duration of the runs, s; means leave out the first second."""
    device: str = "cpu"
    """Device of all engines but mujoco, such as cuda:0."""
    seed: int = 90_001
    """Seed of first states and commands. Default: the seed of evaluations."""
    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task in addition to those of the policy, e.g. `--changes sim.dt 0.0025
    sim.decimation 8`."""
    picture: Path = Path("crosscheck.png")
    """File to draw the runs to, .png."""
    json: Path | None = None
    """File to write the numbers to."""

    def check(self) -> None:
        """Check the options before anything is computed.

        Raises:
            ValueError: If an option is out of its range or a file cannot be written.
            ModuleNotFoundError: If a needed package is not installed.
        """
        plain_id(self.task_id)
        check_size("--robots", self.robots)
        checks.check_number("--seconds", self.seconds, above=1.0, most=3600.0)
        checks.whole_number("--seed", self.seed, least=0, most=LARGEST_SEED)
        system_checks.check_output("--picture", self.picture, endings=(".png",))
        system_checks.check_output("--json", self.json)
        system_checks.check_installed("onnx", "matplotlib")
