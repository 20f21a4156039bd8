"""Implements `legged-envs train`."""

from legged_envs.training.options import TrainCfg


def train(cfg: TrainCfg) -> None:
    """Train a policy, evaluate it and write a run folder."""
    from legged_envs.training.trainer import train as run_training

    run_training(cfg)
