"""Options of ``legged-envs crosscheck``; without PyTorch, whose import takes seconds."""

from dataclasses import dataclass, field
from pathlib import Path

from legged_envs import checks, system_checks
from legged_envs.configuration import Configuration
from legged_envs.runs.options import LARGEST_SEED, TaskId, Value, check_size
from legged_envs.tasks import plain_id


@dataclass
class CrosscheckCfg(Configuration):
    task_id: TaskId
    """Registered id, or module:Id of another package's task; of velocity commands."""
    policy: Path | None = None
    """A policy.safetensors, or the run folder with it; by default the one that ships with the package."""
    sims: tuple[str, ...] = ()
    """Engines; the others are compared with the first. By default all that are installed."""
    robots: int = 16
    seconds: float = 5.0
    """How many, and for how long; means leave out the first second."""
    device: str = "cpu"
    """Of all engines but mujoco, such as cuda:0."""
    seed: int = 90_001
    """Of first states and commands; by default that of evaluations."""
    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task beside the policy's own, e.g. ``--changes sim.dt 0.0025 sim.decimation 8``."""
    picture: Path = Path("crosscheck.png")
    """Where to draw the runs, .png."""
    json: Path | None = None
    """Where to write the numbers."""

    def check(self) -> None:
        plain_id(self.task_id)
        check_size("--robots", self.robots)
        checks.check_number("--seconds", self.seconds, above=1.0, most=3600.0)
        checks.whole_number("--seed", self.seed, least=0, most=LARGEST_SEED)
        system_checks.check_output("--picture", self.picture, endings=(".png",))
        system_checks.check_output("--json", self.json)
        system_checks.check_installed("onnx", "matplotlib")
