"""Make the motions that come with the package.

From the root of the repository: ``python -m tools.motions.generate``.
"""

from __future__ import annotations

from pathlib import Path

from legged_envs.motions.files import save_motion
from legged_envs.motions.motion import MotionError
from legged_envs.motions.report import inspect_motion
from legged_envs.motions.shipped import FOLDER
from tools.motions.choreography import Clip, make_motion
from tools.motions.g1_clips import g1_clips
from tools.motions.go2_clips import go2_clips


def all_clips() -> list[Clip]:
    """Every clip of every robot."""
    return [*go2_clips(), *g1_clips()]


def generate(folder: Path = FOLDER) -> list[str]:
    """Write every clip to ``folder`` / robot / name.npz.

    Returns:
        A line about each file.

    Raises:
        MotionError: A clip that its robot could not make.
    """
    lines = []
    for clip in all_clips():
        motion = make_motion(clip)
        report = inspect_motion(motion, clip.robot)
        if report.problems():
            raise MotionError(f"{motion.origin}: {'; '.join(report.problems())}")
        path = folder / clip.robot.name / f"{clip.name}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_motion(path, motion)
        lines.append(
            f"{clip.robot.name:5} {clip.name:13} {motion.duration:5.2f} s {path.stat().st_size / 1024:6.1f} KiB  "
            f"slip {1e3 * report.foot_slip:5.3f} mm/frame  margin {report.joint_margin:5.3f} rad "
            f"({report.tightest_joint})  speed {report.joint_speed:4.2f} ({report.fastest_joint})  "
            f"lowest {1e3 * report.lowest:6.2f} mm"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(generate()))
