"""Make the motions that come with the package.

Run ``python -m tools.motions.generate`` from the root of the repository.
"""

from __future__ import annotations

from pathlib import Path

from legged_envs.motions.formats.own import save_motion
from legged_envs.motions.motion import Motion, MotionError
from legged_envs.motions.report import MotionReport, inspect_motion
from legged_envs.motions.shipped import FOLDER
from tools.motions.choreography import Clip, make_motion
from tools.motions.g1_clips import g1_clips
from tools.motions.go2_clips import go2_clips


def all_clips() -> list[Clip]:
    """Return every clip of every robot."""
    return [*go2_clips(), *g1_clips()]


def generate(folder: Path = FOLDER) -> list[str]:
    """Write every clip to ``folder`` / robot / name.npz.

    Args:
        folder: Where the motions are kept.

    Returns:
        A line about each file.

    Raises:
        MotionError: If a robot cannot make its clip.
    """
    lines = []
    for clip in all_clips():
        motion = make_motion(clip)
        report = inspect_motion(motion, clip.robot)
        problems = report.problems()
        if problems:
            raise MotionError(f"{motion.origin}: {'; '.join(problems)}")
        path = folder / clip.robot.name / f"{clip.name}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_motion(path, motion)
        lines.append(_line(clip, motion, report, path))
    return lines


def _line(clip: Clip, motion: Motion, report: MotionReport, path: Path) -> str:
    """Return a line about a file: its size, and how near the motion comes to the robot's limits."""
    kibibytes = path.stat().st_size / 1024
    parts = [
        f"{clip.robot.name:5} {clip.name:13} {motion.duration:5.2f} s {kibibytes:6.1f} KiB",
        f"slip {1e3 * report.foot_slip:5.3f} mm/frame",
        f"margin {report.joint_margin:5.3f} rad ({report.tightest_joint})",
        f"speed {report.joint_speed:4.2f} ({report.fastest_joint})",
        f"lowest {1e3 * report.lowest:6.2f} mm",
    ]
    return "  ".join(parts)


if __name__ == "__main__":
    print("\n".join(generate()))
