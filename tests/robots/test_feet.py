"""Feet that are several bodies: halves of a sole, and toes."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
from robot_models import biped, joint, link, shape

from legged_envs.robots.reading.draft import draft_robot
from legged_envs.robots.robot import RobotCfg

SOLE = '<collision><origin xyz="0.03 0 -0.04"/><geometry><box size="0.2 0.08 0.03"/></geometry></collision>'
"""Sole of the biped, which is a shape of the link of its ankle."""

HINGE = ("0 1 0", 'lower="-0.5" upper="0.5" effort="10" velocity="10"')
"""Axis and limits of the joint of a toe."""


def with_parts(sole: str, *parts: tuple[str, str, str, tuple[str, ...]]) -> str:
    """The biped with another sole, and with parts at its ankles: name, shape, place and joint."""
    text = biped().replace(SOLE, sole)
    for side in ("left", "right"):
        for name, form, place, moves in parts:
            child = f"{side}_{name}"
            ends = (f"{side}_ankle_link", child, place)
            text = text.replace("</robot>", link(child, 0.2, shape(form), middle="0 0 0"))
            text += joint(f"{child}_joint", *ends, *moves) + "</robot>"
    return text


def drafted(folder: Path, text: str) -> tuple[RobotCfg, mujoco.MjData]:
    (folder / "man.urdf").write_text(text)
    robot, _ = draft_robot(folder / "man.urdf", "man", folder)
    data = mujoco.MjData(mujoco.MjModel.from_xml_path(robot.xml))
    data.qpos[2] = robot.base_height
    for name, position in zip(robot.joint_names, robot.default_joint_pos, strict=True):
        data.joint(name).qpos = position
    mujoco.mj_forward(data.model, data)
    return robot, data


def test_the_halves_of_a_sole_are_one_foot(tmp_path: Path) -> None:
    halves = (
        ("foot_front", 'box size="0.08 0.08 0.03"', "0.09 0 -0.04", ()),
        ("foot_rear", 'box size="0.06 0.08 0.03"', "-0.05 0.01 -0.04", ()),
    )
    robot, data = drafted(tmp_path, with_parts("", *halves))
    assert len(robot.foot_names) == 2
    assert robot.foot_mirror == (1, 0)
    model = data.model
    for foot in robot.foot_names:
        side = foot.split("_")[0]
        geoms = range(model.body(foot).geomadr[0], model.body(foot).geomadr[0] + 2)
        assert model.body(foot).geomnum[0] == 2
        ankle = data.body(f"{side}_ankle_link")
        turn = ankle.xmat.reshape(3, 3)
        # Both are where the file has them, and the masses of the links have not changed.
        for geom, place in zip(geoms, ((0.09, 0, -0.04), (-0.05, 0.01, -0.04)), strict=True):
            np.testing.assert_allclose(
                data.geom_xpos[geom], ankle.xpos + turn @ np.array(place), atol=1e-6
            )
            assert data.geom_xpos[geom, 2] == pytest.approx(0.015, abs=2e-3)
        assert not any(name.startswith(f"{side}_foot") for name in robot.penalized_bodies)
    assert model.body_subtreemass[1] == pytest.approx(21.6 + 4 * 0.2)


@pytest.mark.parametrize("heel", ["link", "body"])
def test_a_toe_that_moves_belongs_to_the_foot(tmp_path: Path, heel: str) -> None:
    toe = ("toe", 'box size="0.05 0.08 0.03"', "0.15 0 -0.04", HINGE)
    if heel == "link":
        text = with_parts(SOLE, toe).replace("_ankle_link", "_ankle_roll")
    else:
        text = with_parts("", toe, ("heel_foot", 'box size="0.2 0.08 0.03"', "0.03 0 -0.04", ()))
    robot, data = drafted(tmp_path, text)
    assert len(robot.foot_names) == 2
    # The soles are those of the heels, and toes may touch the ground too.
    for foot in robot.foot_names:
        geom = data.model.body(foot).geomadr[0]
        np.testing.assert_allclose(data.model.geom_size[geom], (0.1, 0.04, 0.015))
    assert not any("toe" in name for name in robot.penalized_bodies)


def test_two_wheels_of_a_cart_at_a_waist_are_two_feet(tmp_path: Path) -> None:
    cart = link("torso", 5.0, shape('box size="0.1 0.1 0.3"', "0 0 0.2"), middle="0 0 0")
    cart += link("cart", 5.0, shape('box size="0.2 0.2 0.05"'), middle="0 0 0")
    cart += joint("waist", "torso", "cart", "0 0 0", "0 0 1", HINGE[1])
    for side, y in (("left", 0.15), ("right", -0.15)):
        wheel = (
            '<origin rpy="1.5708 0 0"/><geometry><cylinder radius="0.1" length="0.03"/></geometry>'
        )
        cart += link(f"{side}_wheel", 1.0, wheel, middle="0 0 0")
        turns = joint(
            f"{side}_axle", "cart", f"{side}_wheel", f"0 {y} 0", "0 1 0", 'effort="5" velocity="20"'
        )
        cart += turns.replace("revolute", "continuous")
    (tmp_path / "cart.urdf").write_text(f'<robot name="cart">{cart}</robot>')
    robot, _ = draft_robot(tmp_path / "cart.urdf", "cart", tmp_path)
    assert len(robot.foot_names) == 2 and robot.wheels
