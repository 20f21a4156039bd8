"""Implements `legged-envs export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from legged_envs.cli.foreign import is_foreign
from legged_envs.policy.foreign import check_no_checkpoint
from legged_envs.runs.options import TaskId
from legged_envs.system_checks import check_installed, check_output
from legged_envs.tasks import plain_id

Format = Literal["unitree-rl-lab", "unitree-rl-gym", "rl-sar", "mjlab"]
"""Formats of other frameworks."""


@dataclass
class ExportCfg:
    """Options of `legged-envs export`."""

    task_id: TaskId
    """Registered id, or module:Id of another package's task."""
    policy: Path | None = None
    """A policy.safetensors, or a run folder with one. Default: the pretrained policy. With --format
    also a policy of another framework: .pt."""
    folder: Path = Path("deploy")
    """A new or empty folder for the files."""
    half: bool = False
    """Round the weights to 16-bit floats, which halves the size of policy.safetensors."""
    format: Format | None = None
    """Write the policy for the control loops of another framework instead. Default: for any loop,
    with the contract of this package."""
    card: bool = False
    """Also write README.md, a model card: robot, task, evaluation, costs and licence."""
    contract: Path | None = None
    """File that describes a policy of another framework: deploy.yaml of unitree_rl_lab, a yaml of
    unitree_rl_gym, config.yaml of rl_sar."""


def export(cfg: ExportCfg) -> None:
    """Export a policy with all that it needs on other machines.

    Writes policy.onnx and policy.safetensors, both with the contract between policy and robot, and
    scene.xml, the robot on its ground for plain MuJoCo. With --format, writes the files of another
    framework.
    """
    plain_id(cfg.task_id)
    check_output("--folder", cfg.folder, "folder")
    check_installed("onnx")
    # Files of two policies in one folder would be taken for one policy.
    if cfg.folder.exists() and any(cfg.folder.iterdir()):
        raise ValueError(
            f"--folder must be empty or new, got {str(cfg.folder)!r}: nothing is overwritten"
        )
    if cfg.format is not None and cfg.half:
        raise ValueError(
            f"--half is for policy.safetensors, which --format {cfg.format} does not write: "
            "leave one of them out"
        )
    _check_foreign(cfg)
    from legged_envs.policy.export import export as export_policy
    from legged_envs.policy.export import export_card

    paths: tuple[Path, ...]
    if cfg.format is None:
        paths = export_policy(cfg.task_id, cfg.policy, cfg.folder, cfg.half)
    else:
        from legged_envs.policy.foreign.writing import export_format

        paths = export_format(cfg.task_id, cfg.policy, cfg.folder, cfg.format, cfg.contract)
    if cfg.card:
        paths += (export_card(cfg.task_id, cfg.policy, cfg.folder),)
    print("wrote", *paths)


def _check_foreign(cfg: ExportCfg) -> None:
    """Check the options for a policy of another framework.

    Raises:
        ValueError: If there is no --format, or a card is asked for.
    """
    if not is_foreign(cfg.policy, cfg.contract):
        return
    if cfg.policy is not None:
        check_no_checkpoint(cfg.policy)
    if cfg.format is None:
        raise ValueError(
            f"{str(cfg.policy or cfg.contract)!r} comes from another framework and already runs in "
            "its control loop: add --format to write it for a further framework"
        )
    if cfg.card:
        raise ValueError(
            "--card describes the training and the evaluation that a policy.safetensors has, but "
            f"{str(cfg.policy or cfg.contract)!r} is of another framework: leave out --card"
        )
