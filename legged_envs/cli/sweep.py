"""Implements `legged-envs sweep`."""

from legged_envs.sweeps.options import SweepCfg
from legged_envs.system_checks import check_installed
from legged_envs.tasks import plain_id
from legged_envs.training.options import TRAINING_MODULES

SWEEP_MODULES = ("ray", "pandas", "pyarrow")
"""Modules that a sweep imports and that only the extra ``ray`` installs."""


def sweep(cfg: SweepCfg) -> None:
    """Train many runs with different seeds and settings.

    As many runs as the cores allow train at the same time.

    Each run is an ordinary training with a run folder. Ray Tune schedules them, on this machine or
    on a cluster. A sweep that is interrupted is continued with --resume. At its end it writes
    report.html, the page of legged-envs report, about the finished runs.
    """
    plain_id(cfg.task_id)
    check_installed(*SWEEP_MODULES, extra="ray")
    check_installed(*TRAINING_MODULES)
    from legged_envs.sweeps.sweep import sweep as run_sweep

    run_sweep(cfg)
