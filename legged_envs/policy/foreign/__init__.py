"""Policies of other frameworks: read with their description, and written in their formats."""

from pathlib import Path

FOREIGN_ENDINGS = (".onnx", ".pt", ".pth", ".jit")
"""Endings of policies of other frameworks: ONNX, and TorchScript or checkpoints of PyTorch."""

RUN_CONFIG = "config.json"
"""Name of a file that every run folder of this package has."""


def check_no_checkpoint(policy: Path) -> None:
    """Check that a file is not a checkpoint of a training of this package.

    Raises:
        ValueError: If it is one.
    """
    if policy.match("checkpoint*.pt") and (policy.parent / RUN_CONFIG).is_file():
        raise ValueError(
            f"{str(policy)!r} is a checkpoint of a training of this package and no policy file: "
            f"name the run folder {str(policy.parent)!r}, or make a policy of the checkpoint with "
            f"legged-envs train TASK --resume {policy} --run-dir NEW"
        )
