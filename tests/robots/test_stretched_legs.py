"""Default poses of robots with four feet whose files have their legs stretched."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
from dogs import LEGS, dog, draft

from legged_envs.robots.reading.stretched_legs import STANDING

KNEE = 'lower="-2.5" upper="-0.5"'
"""Range of the knees of the dog. It excludes 0."""

FREE_KNEE = dog().replace(KNEE, 'lower="-2.5" upper="2.5"')


def standing(model_path: str, angles: dict[str, float]) -> mujoco.MjData:
    data = mujoco.MjData(mujoco.MjModel.from_xml_path(model_path))
    for joint, angle in angles.items():
        data.joint(joint).qpos = angle
    mujoco.mj_forward(data.model, data)
    return data


def test_stretched_legs_are_bent_and_feet_stay_below_the_hips(tmp_path: Path) -> None:
    assert KNEE in dog()
    robot, _ = draft(FREE_KNEE, tmp_path)
    angles = dict(zip(robot.joint_names, robot.default_joint_pos, strict=True))
    data = standing(robot.xml, angles)
    for leg in LEGS:
        hip = data.joint(f"{leg}_thigh_joint").xanchor
        knee = data.joint(f"{leg}_calf_joint").xanchor
        foot = data.body(f"{leg}_foot")
        # The point of the ball of 0.02 m that is the lowest one of the stretched leg.
        sole = foot.xpos + foot.xmat.reshape(3, 3) @ (0.0, 0.0, -0.02)
        assert hip[2] - sole[2] == pytest.approx(STANDING * 0.42, abs=1e-4)
        assert sole[0] == pytest.approx(hip[0], abs=1e-4)
        assert knee[0] < hip[0] - 0.1
        # The law of cosines by hand: 0.315² = 0.2² + 0.22² − 2 · 0.2 · 0.22 cos(knee).
        at_knee = np.arccos((0.2**2 + 0.22**2 - 0.315**2) / (2 * 0.2 * 0.22))
        assert angles[f"{leg}_calf_joint"] == pytest.approx(at_knee - np.pi, abs=1e-3)
    # The ball is turned, so that its centre is less than 0.02 m above this point.
    assert robot.base_height == pytest.approx(0.315 + 0.0045, abs=1e-3)


def test_the_sign_of_the_axes_does_not_matter(tmp_path: Path) -> None:
    robot, _ = draft(FREE_KNEE, tmp_path)
    (tmp_path / "other").mkdir()
    turned, _ = draft(FREE_KNEE.replace('"0 1 0"', '"0 -1 0"'), tmp_path / "other")
    assert turned.base_height == pytest.approx(robot.base_height, abs=1e-4)
    assert turned.default_joint_pos[1] == pytest.approx(-robot.default_joint_pos[1], abs=1e-4)


@pytest.mark.parametrize(
    "text",
    [
        FREE_KNEE.replace('lower="-2.5"', 'lower="-0.1"'),
        FREE_KNEE.replace('"1 0 0"', '"0 0 1"'),
        dog(),
    ],
    ids=["a knee that cannot bend backwards", "no joint sideways", "legs that are bent already"],
)
def test_other_legs_stay_as_they_are(tmp_path: Path, text: str) -> None:
    robot, _ = draft(text, tmp_path)
    angles = dict(zip(robot.joint_names, robot.default_joint_pos, strict=True))
    expected = -0.6 if KNEE in text else 0.0
    assert angles["FL_calf_joint"] == pytest.approx(expected, abs=1e-4)
