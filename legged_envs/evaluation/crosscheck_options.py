"""Options of `legged-envs crosscheck`. They do not import PyTorch, which takes seconds."""

from dataclasses import dataclass, field
from pathlib import Path

from legged_envs import checks, system_checks
from legged_envs.configuration import Configuration
from legged_envs.runs.motion_options import MotionFileOptions
from legged_envs.runs.options import LARGEST_SEED, TaskId, Value, check_size
from legged_envs.tasks import plain_id


@dataclass
class CrosscheckCfg(MotionFileOptions, Configuration):
    """Options of `legged-envs crosscheck`."""

    task_id: TaskId
    """Registered id of a velocity task, or module:Id of another package's task."""
    policy: Path | None = None
    """A policy.safetensors, or the run folder with it. None: the pretrained policy."""
    contract: Path | None = None
    """File that describes a policy of another framework: deploy.yaml of unitree_rl_lab, a yaml of
    unitree_rl_gym, config.yaml of rl_sar. The .onnx of mjlab describes itself."""
    sims: tuple[str, ...] = ()
    """Names of the physics engines. The first one is the reference for the others. Empty: all that
    are installed."""
    robots: int = 16
    """Number of robots in each run."""
    seconds: float = 5.0
    """Duration of each run, s. Means exclude the first second."""
    device: str = "cpu"
    """Torch device of all engines except mujoco, such as cuda:0."""
    seed: int = 90_001
    """Random seed of initial states and commands. The default is the seed of evaluations."""
    changes: dict[str, Value] = field(default_factory=dict)
    """Changes to the task in addition to those of the policy, e.g. `--changes sim.dt 0.0025
    sim.decimation 8`."""
    picture: Path = Path("crosscheck.png")
    """Image file for the plot of the runs, .png."""
    json: Path | None = None
    """JSON file for the numbers of the runs. None: they are not written."""

    def check(self) -> None:
        """Check the options before anything is computed.

        Raises:
            FileNotFoundError: If a file of motions is missing.
            ValueError: If an option is out of its range or a file cannot be written.
            ModuleNotFoundError: If a needed package is not installed.
        """
        plain_id(self.task_id)
        self.check_motion_files()
        check_size("--robots", self.robots)
        checks.check_number("--seconds", self.seconds, above=1.0, most=3600.0)
        checks.whole_number("--seed", self.seed, least=0, most=LARGEST_SEED)
        system_checks.check_output("--picture", self.picture, endings=(".png",))
        system_checks.check_output("--json", self.json)
        system_checks.check_installed("onnx", "matplotlib")
