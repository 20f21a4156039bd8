"""Partners on the other side, whatever the joints are called."""

from pathlib import Path

import mujoco
import pytest
from dogs import dog, draft

from legged_envs.robots.reading.mirror import foot_partners
from legged_envs.robots.reading.pose import Pose
from legged_envs.robots.robot import counterpart

LEGS = ("FL", "FR", "RL", "RR")
PARTNERS = {"FL": "FR", "FR": "FL", "RL": "RR", "RR": "RL"}
NAMINGS = {
    "numbers": {"FL": "leg1", "FR": "leg2", "RL": "leg3", "RR": "leg4"},
    "sides twice": {"FL": "left_front_left", "FR": "right_front_right", "RL": "left_hind_left",
                    "RR": "right_hind_right"},
    "front and hind": {"FL": "frontleft", "FR": "frontright", "RL": "hindleft", "RR": "hindright"},
    "letters twice": {"FL": "L_front_L", "FR": "R_front_R", "RL": "L_hind_L", "RR": "R_hind_R"},
    "places": {"FL": "a", "FR": "b", "RL": "c", "RR": "d"},
    "names that mislead": {"FL": "FL", "FR": "RL", "RL": "FR", "RR": "RR"},
}  # fmt: skip
PARTS = {"hip": -1.0, "thigh": 1.0, "calf": 1.0}


@pytest.mark.parametrize("naming", NAMINGS)
def test_partners_are_found_whatever_the_naming(naming: str, tmp_path: Path) -> None:
    names = NAMINGS[naming]
    robot, gaps = draft(dog(name=lambda leg, part: f"{names[leg]}_{part}"), tmp_path)
    mirror = dict(zip(robot.joint_names, robot.mirror, strict=True))
    for leg in LEGS:
        for part, sign in PARTS.items():
            partner = f"{names[PARTNERS[leg]]}_{part}_joint"
            assert mirror[f"{names[leg]}_{part}_joint"] == (partner, sign)
    assert robot.foot_mirror == (1, 0, 3, 2)
    assert "mirror" not in gaps


def test_names_with_both_sides_twice_have_a_counterpart() -> None:
    names = ["left_leg_left_hip", "right_leg_right_hip", "L_arm_L", "R_arm_R", "roll_l", "roll_r"]
    for left, right in zip(names[::2], names[1::2], strict=True):
        assert counterpart(left, names) == right and counterpart(right, names) == left


def test_a_joint_without_an_image_is_told(tmp_path: Path) -> None:
    names = {"FL": "a", "FR": "b", "RL": "c", "RR": "d"}
    text = dog(name=lambda leg, part: f"{names[leg]}_{part}").replace('"0.18 -0.1 0', '"0.3 -0.1 0')
    robot, gaps = draft(text, tmp_path)
    mirror = dict(zip(robot.joint_names, robot.mirror, strict=True))
    assert mirror["a_hip_joint"][0] == "a_hip_joint" and "a_hip_joint" in gaps["mirror"]
    assert mirror["c_hip_joint"][0] == "d_hip_joint"


def test_a_foot_that_lost_its_partner_by_name_has_none() -> None:
    spec = mujoco.MjSpec()
    places = {"left_a": (0.0, 0.1, 0.0), "right_a": (0.5, -0.1, 0.0), "b": (0.0, -0.1, 0.0)}
    for name, place in places.items():
        spec.worldbody.add_body(name=name, pos=place).add_geom(size=(0.01, 0.0, 0.0))
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert foot_partners(Pose(model, data), tuple(places), height=1.0) == (2, 1, 0)
