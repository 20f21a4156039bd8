"""Files that a finished training leaves in its run folder: policy, evaluation and plots."""

from collections.abc import Mapping, Sequence
from typing import Any

from legged_envs.envs import CoreVectorEnv
from legged_envs.evaluation.evaluator import EVALUATION_SEED
from legged_envs.evaluation.plots import plot_learning_curve, plot_tracking
from legged_envs.policy.header import record_evaluation
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import POLICY_FILE, save_onnx, save_policy
from legged_envs.runs.run_folder import EVALUATION, write_json
from legged_envs.training.algorithm import Algorithm
from legged_envs.training.prepare import Prepared


def export_policy(
    prepared: Prepared, algorithm: Algorithm, core: CoreVectorEnv, groups: Sequence[str]
) -> None:
    """Write the policy as safetensors and as ONNX.

    Args:
        prepared: The training.
        algorithm: The algorithm, with the policy.
        core: The environment that the policy was trained in, without wrappers.
        groups: Observation groups that the policy takes.
    """
    policy = algorithm.get_policy()
    entries = contract(prepared.cfg.task_id, core, groups, prepared.cfg.changes)
    save_policy(prepared.run_dir / POLICY_FILE, policy.as_jit(), entries)
    save_onnx(prepared.run_dir / "policy.onnx", policy.as_onnx(verbose=False), entries)


def write_results(
    prepared: Prepared,
    result: Any,
    curve: Sequence[dict[str, float]],
    time_to_walk: Mapping[str, float] | None,
) -> None:
    """Write the evaluation of the trained policy, and draw it and the learning curve.

    Args:
        prepared: The training.
        result: The evaluation.
        curve: Numbers of each update.
        time_to_walk: Training time, s, and steps after which the policy reached the goal. None: it
            did not.
    """
    run_dir = prepared.run_dir
    report: dict[str, Any] = {
        "task_id": prepared.cfg.task_id,
        "seed": prepared.cfg.seed,
        "changes": prepared.cfg.changes,
        "training_seconds": round(curve[-1]["seconds"], 1),
        "env_steps": curve[-1]["env_steps"],
    }
    if prepared.metrics.GOAL:
        report["time_to_walk"] = time_to_walk
    write_json(run_dir / EVALUATION, {**report, **result.as_dict()})
    record_evaluation(run_dir / POLICY_FILE, {"seed": EVALUATION_SEED, **result.as_dict()})
    plot_learning_curve(curve, run_dir / "learning_curve.png")
    tracking = getattr(result, "curves", None)
    if tracking:
        plot_tracking(tracking, run_dir / "tracking.png")
