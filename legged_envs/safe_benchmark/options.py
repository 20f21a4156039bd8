"""Options of ``legged-envs benchmark``. Every field is an option of the command."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

ALL = "all"
"""Word that stands for all methods of the package."""

EPISODES = 1024
"""Number of episodes of an evaluation, by the protocol."""


@dataclass
class BenchmarkCfg:
    """Options of ``legged-envs benchmark``."""

    benchmark: Annotated[Literal["safe"], Positional]
    """Name of the benchmark."""

    tasks: tuple[str, ...] = ()
    """Tasks to train, without Legged/ and version, such as Go2-Flat. Empty: nothing is trained."""

    levels: tuple[str, ...] = ("medium",)
    """Levels of the limits: loose, medium, tight, or factors such as 1.5 2.5 by which the
    unconstrained policy breaks each binding limit. Several levels of a method are a limit sweep."""

    methods: tuple[str, ...] = (ALL,)
    """Methods: all, names such as none and p3o, names with options such as
    p3o,constraint.kappa=0.1, or FILE.py:Class for your own method. none is the unconstrained
    policy, which all others are compared with."""

    penalties: tuple[float, ...] = ()
    """Multiplier profile: values of --constraint.penalty, each of which the method fixed is trained
    with, in addition to --methods."""

    seeds: int = 5
    """Number of seeds: each method is trained with the seeds 1 to this number."""

    folder: Path = Path("benchmarks_safe")
    """Folder of the benchmark, with the run folders in runs/. Runs that are finished there are kept
    and only evaluated."""

    results: Path | None = None
    """Folder of the result files. None: results/ in the folder. Without that folder and without
    anything to train or evaluate: the published results of this clone."""

    evaluate_only: bool = False
    """Train nothing: evaluate the finished runs in the folder that have no result yet."""

    page: Path | None = None
    """Page to write, .html: one file with table, figures and commands that needs no network."""

    suite: str | None = None
    """Name and version of the suite of costs and limits. None: SafeLegged-v1, the present one."""

    iterations: int | None = None
    """Number of updates of each training. None: the task's number, as in the protocol."""

    num_envs: int = 768
    """Number of robots of each training."""

    episodes: int = EPISODES
    """Number of unseen episodes of each evaluation. The protocol has 1,024."""

    cpus_per_run: int = 1
    """Number of cores, and of threads, of each run. As many runs train at once as cores allow."""

    address: str | None = None
    """Address of a running Ray cluster: auto, HOST:PORT or ray://HOST:PORT. Its machines must share
    the folder. None: only this machine."""

    run: str | None = None
    """Name of a single planned run, such as Go2-Flat_medium_p3o_1: train it in this process,
    without Ray, and do nothing else."""
