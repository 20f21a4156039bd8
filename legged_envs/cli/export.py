"""Implements `legged-envs export`."""

from dataclasses import dataclass
from pathlib import Path

from legged_envs.runs.options import TaskId
from legged_envs.system_checks import check_installed, check_output
from legged_envs.tasks import plain_id


@dataclass
class ExportCfg:
    """Options of `legged-envs export`."""

    task_id: TaskId
    """Registered id, or module:Id of another package's task."""
    policy: Path | None = None
    """A policy.safetensors, or a run folder with one. Default: the shipped policy."""
    folder: Path = Path("deploy")
    """A new or empty folder for the files."""
    half: bool = False
    """Round the weights to 16-bit floats, which halves the size of policy.safetensors."""


def export(cfg: ExportCfg) -> None:
    """Write a policy with everything that runs it without this package.

    Writes policy.onnx and policy.safetensors, both with the contract between policy and robot, and
    scene.xml, the robot as plain MuJoCo reads it. examples/deploy.py drives it.
    """
    plain_id(cfg.task_id)
    check_output("--folder", cfg.folder, "folder")
    check_installed("onnx")
    # Files of two policies in one folder would be taken for one policy.
    if cfg.folder.exists() and any(cfg.folder.iterdir()):
        raise ValueError(
            f"--folder must be empty or new, got {str(cfg.folder)!r}: nothing is overwritten"
        )
    from legged_envs.policy.export import export as export_policy

    paths = export_policy(cfg.task_id, cfg.policy, cfg.folder, cfg.half)
    print("wrote", *paths)
