"""Policies of a training that is running: files in its run folder, named by their update."""

from pathlib import Path

SNAPSHOT_FOLDER = "policies"
"""Folder in a run folder that holds the policies of single updates."""
SNAPSHOT_PREFIX = "policy_"
"""Beginning of the name of such a policy file. Then comes the number of updates."""
SNAPSHOT_SUFFIX = ".safetensors"
"""End of the name of such a policy file."""


def snapshot_file(run_dir: Path, update: int) -> Path:
    """Return the path of the policy after an update.

    Args:
        run_dir: Run folder.
        update: Number of updates of the policy.
    """
    return run_dir / SNAPSHOT_FOLDER / f"{SNAPSHOT_PREFIX}{update:06d}{SNAPSHOT_SUFFIX}"


def find_snapshots(run_dir: Path) -> dict[int, Path]:
    """Return the policies that a training saved on its way, by update number, oldest first.

    Links that lead out of the folder are left out.
    """
    found = {}
    inside = run_dir.resolve()
    for path in run_dir.glob(f"{SNAPSHOT_FOLDER}/{SNAPSHOT_PREFIX}*{SNAPSHOT_SUFFIX}"):
        update = path.name.removeprefix(SNAPSHOT_PREFIX).removesuffix(SNAPSHOT_SUFFIX)
        if update.isdecimal() and path.resolve().is_relative_to(inside):
            found[int(update)] = path
    return dict(sorted(found.items()))
