"""Implements `legged-envs bench`."""

from dataclasses import dataclass
from pathlib import Path

from legged_envs.checks import whole_number
from legged_envs.runs.options import TaskId, check_size
from legged_envs.system_checks import check_output
from legged_envs.tasks import plain_id


@dataclass
class BenchCfg:
    """Options of `legged-envs bench`."""

    task_id: TaskId
    """Registered id, or module:Id of another package's task."""
    rounds: int = 7
    """Number of measurements, each with the environment and with only the physics. The table shows
    their medians. Its columns: envs: robots in one process. env-steps/s: robots times control steps
    per second. control step: time of one envs.step(). physics only: time of the engine for the same
    model, states and targets. ratio: control step divided by physics only."""
    quick: bool = False
    """Run two rounds, without the largest size."""
    json: Path | None = None
    """File to write the numbers to."""
    sim: str = "mujoco"
    """Physics engine: mujoco, mujoco_warp, genesis or one of another package."""
    device: str = "cpu"
    """Device of the engine, such as cuda:0."""
    sizes: tuple[int, ...] = ()
    """Numbers of robots. Default: 64, 512 and 4096."""


def bench(cfg: BenchCfg) -> None:
    """Measure the speed of a task, and of its physics only."""
    # All options are checked before PyTorch is imported, which takes seconds.
    plain_id(cfg.task_id)
    whole_number("--rounds", cfg.rounds)
    check_output("--json", cfg.json)
    for size in cfg.sizes:
        check_size("--sizes", size)
    from legged_envs.evaluation import bench as benchmark

    benchmark.main(
        cfg.task_id,
        cfg.rounds,
        quick=cfg.quick,
        json_path=cfg.json,
        sim=cfg.sim,
        device=cfg.device,
        sizes=cfg.sizes,
    )
