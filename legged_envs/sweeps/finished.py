"""How far the training in a run folder is, read from its files. It needs no Ray."""

import json
from pathlib import Path

from legged_envs.runs.run_folder import CURVE, EVALUATION

LONGEST_ROW = 2**16
"""Number of bytes at the end of a learning curve that hold its last row."""


def is_finished(folder: Path) -> bool:
    """Return True if a run was evaluated, and not trained further since."""
    try:
        evaluation = json.loads((folder / EVALUATION).read_text())
    except (FileNotFoundError, ValueError):
        return False
    return bool(evaluation["env_steps"] >= last_row(folder / CURVE).get("env_steps", 0))


def last_row(curve: Path) -> dict[str, float]:
    """Return the last row of a learning curve, an empty dict if there is none yet."""
    if not curve.is_file():
        return {}
    with curve.open("rb") as file:
        file.seek(max(0, curve.stat().st_size - LONGEST_ROW))
        # What follows the last line break is a row that is being written.
        lines = file.read().split(b"\n")[:-1]
    row: dict[str, float] = json.loads(lines[-1]) if lines else {}
    return row


def last_line(file: Path) -> str:
    """Return the last line of a text file, empty if there is none."""
    if not file.is_file():
        return ""
    lines = file.read_text(errors="replace").split("\n")
    filled = [line.strip() for line in lines if line.strip()]
    return filled[-1] if filled else ""
