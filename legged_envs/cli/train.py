"""Implements `legged-envs train`."""

from legged_envs.system_checks import check_installed
from legged_envs.training.options import TRAINING_MODULES, TrainCfg


def train(cfg: TrainCfg) -> None:
    """Train a policy, evaluate it and write a run folder."""
    # The trainer imports these: without the extra, the error names it.
    check_installed(*TRAINING_MODULES)
    from legged_envs.training.trainer import train as run_training

    run_training(cfg)
