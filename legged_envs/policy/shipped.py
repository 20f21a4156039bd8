"""Files of the pretrained policies."""

from pathlib import Path

from legged_envs.tasks import TASKS

SHIPPED_FOLDER = Path(__file__).parents[1] / "policies"
"""Folder of the policy files in the package."""


def _shipped_files() -> dict[str, Path]:
    files = {}
    for task_id in TASKS:
        if not task_id.startswith("Legged/"):
            continue
        # The file of Legged/Go2-Flat-v0 is go2_flat.safetensors.
        name = task_id.removeprefix("Legged/")[: -len("-v0")]
        file = SHIPPED_FOLDER / f"{name.lower().replace('-', '_')}.safetensors"
        if file.is_file():
            files[task_id] = file
    return files


SHIPPED = _shipped_files()
"""Task id → file of its pretrained policy."""


def shipped_file(task_id: str) -> Path:
    """Return the file of the pretrained policy for a task.

    Raises:
        ValueError: If there is no pretrained policy for the task.
    """
    if task_id not in SHIPPED:
        raise ValueError(
            f"there is no pretrained policy for {task_id!r} (only for {', '.join(SHIPPED)}); "
            "train one, then pass --policy"
        )
    return SHIPPED[task_id]
