"""Motions from files, whatever of the known formats they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legged_envs.motions.motion import Motion, require
from legged_envs.motions.npz import load_beyondmimic_npz, load_motion, read_arrays
from legged_envs.motions.text import load_amp_json, load_lafan1_csv
from legged_envs.robots import RobotCfg

_LOADERS = {".npz": load_motion, ".csv": load_lafan1_csv, ".json": load_amp_json, ".txt": load_amp_json}


@dataclass(frozen=True)
class MotionFiles:
    """The clips of a task from files: ``cfg={"commands.motion.motions": MotionFiles(("kick.npz",))}``.

    ``.npz`` is our own format or BeyondMimic's, ``.csv`` LAFAN1 retargeted to the G1, ``.json`` and ``.txt`` AMP's.
    """

    paths: Sequence[str | Path]

    def __call__(self, robot: RobotCfg) -> list[Motion]:
        """The clips of ``robot``; raises MotionError for another ending, or a file that its loader does not take."""
        return [_load(Path(path), robot) for path in self.paths]


def _load(path: Path, robot: RobotCfg) -> Motion:
    require(path.suffix in _LOADERS, str(path), "the ending", ".npz, .csv, .json or .txt", repr(path.suffix))
    if path.suffix == ".npz" and "fps" in read_arrays(path):
        return load_beyondmimic_npz(path, robot)
    return _LOADERS[path.suffix](path, robot)
