"""Options of reading motion files: information that such files often lack.

They stand apart from the readers, so that a command line shows its help without PyTorch.
"""

from dataclasses import dataclass
from typing import Literal

from legged_envs.checks import check_choice, check_number, whole_number

QUATERNION_ORDERS = ("auto", "xyzw", "wxyz")
"""Values of :attr:`MotionReading.quaternion`."""


@dataclass(frozen=True, kw_only=True)
class MotionReading:
    """Options of reading motion files, such as ``--motion.rate 60`` on the command line.

    Each replaces a setting of the files or of their format.
    """

    rate: float | None = None
    """Frames per second. None: the rate in the file, or 30 for a .csv without one."""
    order: tuple[str, ...] = ()
    """Names of the joints in the order of the columns; or limbs (as the robot's model numbers
    them), levels (breadth first, as Isaac Lab does), limbs-by-name or levels-by-name (the same
    with the legs in the order of their names). Empty: the names in the file, or the order that
    fits."""
    quaternion: Literal["auto", "xyzw", "wxyz"] = "auto"
    """Order of the components of the base's orientation. auto: the order of the file's format."""
    degrees: bool = False
    """True if joint positions are in degrees, and joint velocities in degrees per second."""
    lift: float = 0.0
    """Height that is added to the base, m, for clips that float or sink."""
    frames: tuple[int, int] | None = None
    """First and last frame to read, counted from 1. None: all."""
    ignore_extra_joints: bool = False
    """True to leave out columns of joints that the robot does not have."""
    hold_missing_joints: bool = False
    """True to hold joints that the file lacks in the robot's default pose."""

    def check(self) -> None:
        """Check that all options are in their ranges.

        Raises:
            ValueError: An option is out of its range. The message names it.
        """
        if self.rate is not None:
            check_number("--motion.rate", self.rate, above=0.0)
        check_choice("--motion.quaternion", self.quaternion, QUATERNION_ORDERS)
        check_number("--motion.lift", self.lift)
        if not isinstance(self.order, (list, tuple)) or not all(
            isinstance(name, str) for name in self.order
        ):
            raise ValueError(f"--motion.order must be names of joints, got {self.order!r}")
        for option in ("degrees", "ignore_extra_joints", "hold_missing_joints"):
            value = getattr(self, option)
            if not isinstance(value, bool):
                raise ValueError(f"--motion.{option} must be True or False, got {value!r}")
        if self.frames is not None:
            self._check_frames()

    def _check_frames(self) -> None:
        if not isinstance(self.frames, (list, tuple)) or len(self.frames) != 2:
            raise ValueError(
                "--motion.frames must be the first and the last frame, such as 120 720, "
                f"got {self.frames!r}"
            )
        first, last = self.frames
        whole_number("--motion.frames", first)
        whole_number("--motion.frames", last, least=first + 1)


AS_FILES_SAY = MotionReading()
"""Options that replace no information of the files."""
