"""Export of a policy in the format of another framework."""

from collections.abc import Callable
from pathlib import Path

from legged_envs.checks import check_choice
from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.export import check_exportable
from legged_envs.policy.foreign import mjlab, rl_sar, unitree_rl_gym, unitree_rl_lab
from legged_envs.policy.foreign.mapping import MappedNetwork
from legged_envs.policy.foreign.networks import OnnxNetwork, TorchNetwork
from legged_envs.policy.foreign.torchscript import TorchScriptNetwork
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.policy import Policy
from legged_envs.system_checks import check_installed
from legged_envs.tasks.kind import kind_of

WRITERS: dict[str, Callable[[Path, Policy, TaskCfg], list[Path]]] = {
    unitree_rl_lab.FRAMEWORK: unitree_rl_lab.write,
    unitree_rl_gym.FRAMEWORK: unitree_rl_gym.write,
    rl_sar.FRAMEWORK: rl_sar.write,
    mjlab.FRAMEWORK: mjlab.write,
}
"""Name of a format → function that writes a policy in it."""


def export_format(
    task_id: str,
    policy: Path | None,
    folder: Path,
    framework: str,
    description: Path | None = None,
) -> tuple[Path, ...]:
    """Write a policy in the format of another framework.

    Args:
        task_id: Registered id of the task.
        policy: Policy file or run folder; None for the pretrained policy of the package.
        folder: Folder to write to.
        framework: Name of the format, one of `WRITERS`.
        description: File that describes a policy of another framework. None: `policy` is one of
            this package, or describes itself.

    Returns:
        Paths of the written files.

    Raises:
        FileNotFoundError: If there is no such policy file.
        ValueError: If the loops of the format cannot drive the policy. Nothing is written then.
    """
    check_choice("--format", framework, tuple(WRITERS))
    check_installed("yaml", "onnx", extra="foreign")
    given, cfg, _ = policy_and_task(task_id, policy, description=description)
    if isinstance(given.network, MappedNetwork):
        check_writable(str(policy), given.network)
    else:
        check_exportable(given, policy)
        if given.contract.get("memory"):
            raise _memory_error(str(policy or task_id))
    if not kind_of(cfg).follows_velocity:
        raise ValueError(
            f"{task_id!r} has no velocity command, and policies of {framework} follow one: "
            "export it without --format"
        )
    return tuple(WRITERS[framework](folder, given, cfg))


def check_writable(path: str, mapped: MappedNetwork) -> None:
    """Check that a policy of another framework can be written in the format of a third one.

    Args:
        path: Its file, for errors.
        mapped: Its network.

    Raises:
        ValueError: If its layers are not known here, or it has a memory.
    """
    network = mapped.network
    if isinstance(network, (TorchNetwork, TorchScriptNetwork)) and not network.has_memory:
        return
    if isinstance(network, OnnxNetwork):
        raise ValueError(
            f"{path!r} is ONNX, and its operations cannot be written into another file: "
            "name the checkpoint (model_….pt) or the TorchScript of the same policy"
        )
    raise _memory_error(path)


def _memory_error(path: str) -> ValueError:
    return ValueError(
        f"{path!r} remembers the past of the robot, and no format has a place for its memory: "
        "export a policy without LSTM or GRU"
    )
