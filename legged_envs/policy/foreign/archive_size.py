"""Sizes of archives of PyTorch, before any of their content is read."""

import zipfile
from pathlib import Path

from legged_envs.policy.weights_file import LARGEST_FILE, check_file_size


def check_archive_size(path: Path) -> None:
    """Check that a checkpoint or TorchScript file is small enough, also after it is unpacked.

    Raises:
        ValueError: If it is too large.
    """
    check_file_size(path)
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        size = sum(info.file_size for info in archive.infolist())
    if size > LARGEST_FILE:
        raise ValueError(
            f"{str(path)!r} holds {size:,} bytes, and a policy has at most {LARGEST_FILE:,}: "
            "name another file"
        )
