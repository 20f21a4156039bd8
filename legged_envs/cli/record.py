"""Implements `legged-envs record`."""

from legged_envs.evaluation.record_options import RecordCfg


def record(cfg: RecordCfg) -> None:
    """Record episodes of a policy as a Minari dataset.

    The dataset holds whole episodes, with observations, actions, rewards, costs, terminations and
    truncations. Minari recovers the environment from it.
    """
    from legged_envs.evaluation.record import main as record_dataset

    record_dataset(cfg)
