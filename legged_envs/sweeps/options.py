"""Options of ``legged-envs sweep``: options of a training, and options of the sweep."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Suppress

from legged_envs.training.options import TrainCfg


@dataclass
class SweepCfg(TrainCfg):
    """Options of ``legged-envs sweep``. Those of a training apply to each run."""

    seed: Annotated[int, Suppress] = 1
    """Set by the sweep for each run."""
    run_dir: Annotated[Path | None, Suppress] = None
    """Set by the sweep for each run."""
    threads: Annotated[int, Suppress] = 0
    """Set by the sweep for each run."""

    resume: Path | None = None
    """Folder of an interrupted sweep to continue: finished runs are kept, interrupted ones continue
    from their checkpoints, and failed runs are tried again. The sweep fixes all options except the
    address."""

    seeds: tuple[int, ...] = (1,)
    """Seeds. Each setting is trained with each of them."""

    grid: tuple[str, ...] = ()
    """Lists of values: PATH=VALUE,VALUE,… with a path as in --changes, e.g. ``--grid
    rewards.joint_torque.weight=-1e-4,-2e-4 actions.legs.scale=0.25,0.5``. Each combination is a
    setting."""

    random: tuple[str, ...] = ()
    """Ranges of values to draw from: PATH=LOW,HIGH or PATH=LOW,HIGH,log, uniform in the value or in
    its logarithm. The same command draws the same values."""

    samples: int | None = None
    """Number of draws with --random. Each is combined with all settings of --grid. None: 1."""

    cpus_per_run: int = 1
    """Number of cores, and of threads, of each run. As many runs train at once as cores allow."""

    address: str | None = None
    """Address of a running Ray cluster: auto, HOST:PORT or ray://HOST:PORT. Its machines must share
    the folder of the sweep. None: only this machine."""

    sweep_dir: Path | None = None
    """New or empty folder for runs, page and state. None: sweeps/<task>/<date>."""
