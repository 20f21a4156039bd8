"""Implements `legged-envs crosscheck`."""

from legged_envs.evaluation.crosscheck_options import CrosscheckCfg


def crosscheck(cfg: CrosscheckCfg) -> None:
    """Run one policy on several physics engines (sim2sim).

    It also runs in a plain mj_step loop, which knows the robot only from the metadata in the ONNX
    file. The report compares how the robot walks in each engine, and shows when the runs start to
    differ.
    """
    # Before the engines are imported, which takes seconds.
    cfg.check()
    from legged_envs.evaluation.crosscheck import main as run_crosscheck

    run_crosscheck(cfg)
