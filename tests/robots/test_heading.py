"""Robots that look along another axis than x in their files."""

from dataclasses import fields
from math import cos, pi, sin
from pathlib import Path

import mujoco
import numpy as np
import pytest
from robot_models import scene

from legged_envs.robots.reading.draft import draft_robot
from legged_envs.robots.reading.root import turn_base


def write_turned(path: Path, angle: float, text: str) -> None:
    spec = mujoco.MjSpec.from_string(text)
    turn_base(spec, np.array((cos(angle / 2), 0.0, 0.0, sin(angle / 2))))
    spec.compile()
    path.write_text(spec.to_xml())


@pytest.mark.parametrize(("angle", "axis"), [(pi / 2, "y"), (pi, "-x"), (-pi / 2, "-y")])
def test_a_robot_is_turned_to_look_along_x(tmp_path: Path, angle: float, axis: str) -> None:
    (tmp_path / "spot.xml").write_text(scene())
    write_turned(tmp_path / "turned.xml", angle, scene())
    expected, gaps = draft_robot(tmp_path / "spot.xml", "spot", tmp_path / "a")
    robot, told = draft_robot(tmp_path / "turned.xml", "spot", tmp_path / "b")
    assert f"looks along {axis} " in told["xml"] and "looks" not in str(gaps)
    for field in fields(robot):
        if field.name not in ("xml", "kp", "kd"):
            assert getattr(robot, field.name) == getattr(expected, field.name), field.name
    assert robot.kp == pytest.approx(expected.kp, rel=0.02)
    models = [mujoco.MjModel.from_xml_path(cfg.xml) for cfg in (expected, robot)]
    # Accelerations by forces follow from masses, inertias and places of all joints.
    matrices = []
    for model in models:
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        matrix = np.zeros((model.nv, model.nv))
        mujoco.mj_solveM(model, data, matrix, np.eye(model.nv))
        matrices.append(matrix)
    np.testing.assert_allclose(matrices[1], matrices[0], rtol=1e-2, atol=1e-2)


def test_a_robot_without_left_and_right_in_its_names_stays_as_it_is(tmp_path: Path) -> None:
    text = scene()
    for i, leg in enumerate(("fl", "fr", "hl", "hr")):
        text = text.replace(f"{leg}_", f"leg{i}.")
    write_turned(tmp_path / "turned.xml", pi / 2, text)
    robot, told = draft_robot(tmp_path / "turned.xml", "spot", tmp_path / "b")
    assert "looks" not in str(told)
    data = mujoco.MjData(mujoco.MjModel.from_xml_path(robot.xml))
    mujoco.mj_forward(data.model, data)
    # The front left foot of the file, at the left of y.
    assert data.body(robot.foot_names[0]).xpos[0] < -0.1


@pytest.mark.parametrize("angle", [0.5, pi / 2, pi])
def test_the_heading_of_the_root_in_the_file_does_not_turn_the_robot(
    tmp_path: Path, angle: float
) -> None:
    spec = mujoco.MjSpec.from_string(scene())
    root = spec.worldbody.bodies[0]
    root.quat = [cos(angle / 2), 0.0, 0.0, sin(angle / 2)]
    root.pos = [3.0, -4.0, 0.5]
    (tmp_path / "turned.xml").write_text(spec.to_xml())
    (tmp_path / "plain.xml").write_text(scene())
    expected, _ = draft_robot(tmp_path / "plain.xml", "spot", tmp_path / "a")
    robot, told = draft_robot(tmp_path / "turned.xml", "spot", tmp_path / "b")
    assert "looks" not in str(told)
    places = []
    for cfg in (expected, robot):
        data = mujoco.MjData(mujoco.MjModel.from_xml_path(cfg.xml))
        mujoco.mj_forward(data.model, data)
        places.append([data.body(foot).xpos for foot in cfg.foot_names])
    np.testing.assert_allclose(places[1], places[0], atol=1e-6)
