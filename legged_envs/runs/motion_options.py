"""Options of the commands that take files of motions."""

from dataclasses import dataclass
from pathlib import Path

from legged_envs.motion_reading import AS_FILES_SAY, MotionReading
from legged_envs.system_checks import check_inputs


@dataclass(kw_only=True, repr=False)
class MotionFileOptions:
    """Options ``--motions`` and ``--motion.…`` of a command."""

    motions: tuple[Path, ...] = ()
    """Files of motions that replace the task's own, for mimic tasks, or that a policy of another
    framework imitates: .npz, .csv, .pkl, .json or .txt."""
    motion: MotionReading = AS_FILES_SAY
    """Settings for reading the files of --motions."""

    def check_motion_files(self) -> None:
        """Check these options before PyTorch is imported.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: An option is out of its range, or there are no files that it is for.
        """
        check_inputs("--motions", self.motions)
        self.motion.check()
        if self.motion != AS_FILES_SAY and not self.motions:
            raise ValueError("--motion.… describes the files of --motions, and there are none")
