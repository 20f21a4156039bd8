"""Implements `legged-envs crosscheck`."""

from legged_envs.evaluation.crosscheck_options import CrosscheckCfg


def crosscheck(cfg: CrosscheckCfg) -> None:
    """Run one policy on several engines, and in a plain mj_step loop from its ONNX file alone.

    The plain loop knows the robot only from the contract in the ONNX file. The report compares how
    the robot walks in each, and shows where the runs part.
    """
    # Before the engines are imported, which takes seconds.
    cfg.check()
    from legged_envs.evaluation.crosscheck import main as run_crosscheck

    run_crosscheck(cfg)
