"""Motions from files, whatever of the known formats they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legged_envs.motions.amp import load_amp_json
from legged_envs.motions.archive import Archive
from legged_envs.motions.beyondmimic import load_beyondmimic_npz
from legged_envs.motions.lafan1 import load_lafan1_csv
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.motions.npz import load_motion
from legged_envs.robots import RobotCfg


@dataclass(frozen=True)
class MotionFiles:
    """The clips of a task from files: ``cfg={"commands.motion.motions": MotionFiles(("kick.npz",))}``.

    ``.npz`` is our own format or BeyondMimic's, ``.csv`` LAFAN1 retargeted to the G1, ``.json`` and ``.txt`` AMP's.
    """

    paths: Sequence[str | Path]

    def __call__(self, robot: RobotCfg) -> list[Motion]:
        """Load the clips of ``robot``.

        Raises:
            MotionError: If a file has another ending, or is not what its loader takes.
            FileNotFoundError: If there is no such file.
        """
        return [_load(Path(path), robot) for path in self.paths]


def _load(path: Path, robot: RobotCfg) -> Motion:
    if path.suffix == ".npz":
        return load_beyondmimic_npz(path, robot) if "fps" in Archive(path).arrays else load_motion(path, robot)
    if path.suffix == ".csv":
        return load_lafan1_csv(path, robot)
    if path.suffix in (".json", ".txt"):
        return load_amp_json(path, robot)
    raise MotionError(f"{str(path)!r}: the ending of a motion's file must be .npz, .csv, .json or .txt")
