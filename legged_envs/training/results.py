"""Writing of the results of a finished training: policy, evaluation and plots."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from legged_envs.envs import CoreVectorEnv
from legged_envs.evaluation.curve_labels import make_bounds
from legged_envs.evaluation.evaluator import EVALUATION_SEED
from legged_envs.evaluation.plots import plot_learning_curve, plot_tracking
from legged_envs.policy.header import record_evaluation, without_nan
from legged_envs.policy.memory import MEMORY_KEY
from legged_envs.policy.metadata import Contract, contract
from legged_envs.policy.policy import POLICY_FILE, save_onnx, save_policy
from legged_envs.runs.run_folder import EVALUATION, write_json
from legged_envs.training.algorithm import Algorithm
from legged_envs.training.prepare import Prepared


def export_policy(
    prepared: Prepared, algorithm: Algorithm, core: CoreVectorEnv, groups: Sequence[str]
) -> None:
    """Write the current policy into the run folder, as safetensors and as ONNX.

    Both files also describe the observations, actions and task that the policy was trained with.

    Args:
        prepared: Checked options and task of the training.
        algorithm: The algorithm that holds the policy.
        core: The training environment, without wrappers.
        groups: Names of the observation groups that are the arguments of the policy, in order.
    """
    network, entries = describe_policy(prepared, algorithm, core, groups)
    save_policy(prepared.run_dir / POLICY_FILE, network, entries)
    onnx = algorithm.get_policy().as_onnx(verbose=False)
    save_onnx(prepared.run_dir / "policy.onnx", onnx, entries)


def describe_policy(
    prepared: Prepared, algorithm: Algorithm, core: CoreVectorEnv, groups: Sequence[str]
) -> tuple[torch.nn.Module, Contract]:
    """Return the network of the current policy, and what its inputs and outputs mean.

    Args:
        prepared: Checked options and task of the training.
        algorithm: The algorithm that holds the policy.
        core: The training environment, without wrappers.
        groups: Names of the observation groups that are the arguments of the policy, in order.
    """
    network = algorithm.get_policy().as_jit()
    # Without this description, other programs could not know the order and scale of the inputs.
    entries = contract(prepared.cfg.task_id, core, groups, prepared.cfg.changes)
    memory = getattr(network, "memory", None)
    if memory:
        entries[MEMORY_KEY] = memory
    return network, entries


def write_results(
    prepared: Prepared,
    result: Any,
    curve: Sequence[dict[str, float]],
    time_to_walk: Mapping[str, float] | None,
) -> None:
    """Write the evaluation of the trained policy, and plot it and the learning curve.

    The evaluation is also added to the header of the policy file.

    Args:
        prepared: Checked options and task of the training.
        result: Result of the evaluation.
        curve: Numbers of each update by name, in the order of the updates.
        time_to_walk: ``seconds`` of training and ``env_steps`` of all robots until the policy
            reached the goal. None: it did not reach it.
    """
    run_dir = prepared.run_dir
    report: dict[str, Any] = {
        "task_id": prepared.cfg.task_id,
        "seed": prepared.cfg.seed,
        "changes": prepared.cfg.changes,
        "training_seconds": round(curve[-1]["seconds"], 1),
        "env_steps": curve[-1]["env_steps"],
    }
    # Without a goal there is no time to walk; None would mean that the goal was missed.
    if prepared.metrics.GOAL:
        report["time_to_walk"] = time_to_walk
    write_json(run_dir / EVALUATION, without_nan({**report, **result.as_dict()}))
    record_evaluation(run_dir / POLICY_FILE, {"seed": EVALUATION_SEED, **result.as_dict()})
    limits = {name: term.limit for name, term in prepared.task.costs.items()}
    bounds = make_bounds(prepared.metrics.GOAL, limits)
    title = f"{prepared.cfg.task_id}, seed {prepared.cfg.seed}"
    plot_learning_curve(curve, run_dir / "learning_curve.png", bounds, title)
    # Only some metrics record velocities over time.
    tracking = getattr(result, "curves", None)
    if tracking:
        plot_tracking(tracking, run_dir / "tracking.png")
