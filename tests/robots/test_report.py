"""Reports on robots: their numbers against MuJoCo, and their problems."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from robot_models import write_models

from legged_envs.robot_check import Report, nudges, raise_gains
from legged_envs.robot_check.motions import make_moving
from legged_envs.robot_check.nudges import NUM_NUDGES, count_stands
from legged_envs.robots import GO2, ROBOTS, RobotCfg
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.sim.gains import settle


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with the models."""
    write_models(tmp_path)
    return tmp_path


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_robots_of_the_package_have_no_problems(robot: RobotCfg) -> None:
    assert Report(robot, {}).problems == []


def test_the_numbers_are_those_of_plain_mujoco() -> None:
    model = mujoco.MjModel.from_xml_path(str(GO2.path))
    data = mujoco.MjData(model)
    data.qpos[:] = [0.0, 0.0, GO2.base_height, 1.0, 0.0, 0.0, 0.0, *GO2.default_joint_pos]
    mujoco.mj_forward(model, data)
    masses, joints, stance, feet = (table[2] for table in Report(GO2, {}).tables[:4])
    assert [mass for _, mass in masses] == pytest.approx(
        [
            model.body("base").mass[0],
            *(model.body(f"{leg}_hip").subtreemass[0] for leg in ("FR", "FL", "RR", "RL")),
        ]
    )
    assert sum(mass for _, mass in masses) == pytest.approx(15.20641, abs=1e-4)
    for i, row in enumerate(joints):
        low, high = model.jnt_range[1 + i]
        numbers = (low, high, GO2.default_joint_pos[i], GO2.kp[i], GO2.kd[i], GO2.torque_limits[i])
        assert row[:7] == pytest.approx((GO2.joint_names[i], *numbers))
        assert float(row[8]) == pytest.approx(min(row[3] - low, high - row[3]), abs=1e-3)
    for foot, low, uneven, origin in feet:
        height = data.body(foot).xpos[2] - model.geom(f"{foot}_collision").size[0]
        assert (float(low), float(uneven), float(origin)) == pytest.approx(
            (height, 0.0, 0.022), abs=1e-4
        )
    assert dict(stance)["at which it touches the ground, m"] == pytest.approx(
        GO2.base_height, abs=1e-4
    )
    assert 0.01 < dict(stance)["sinks by, m"] < 0.04


def test_shapes_that_overlap_are_listed_but_not_those_of_neighbours() -> None:
    crossed = replace(
        GO2, default_joint_pos=(0.9, 0.8, -1.5, -0.9, 0.8, -1.5, *GO2.default_joint_pos[6:])
    )
    pairs = [{row[0], row[1]} for row in Report(crossed, {}).tables[4][2]]
    assert pairs and all(
        any("FR" in body for body in pair) and any("FL" in body for body in pair) for pair in pairs
    )


def _change(field: str, value: Any, i: int = 0) -> dict[str, Any]:
    values = list(getattr(GO2, field))
    values[i] = value
    return {field: tuple(values)}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_change("default_joint_pos", 1.047), "default_joint_pos.*'FR_hip_joint'.*1.047.*-1.0472"),
        ({"kp": (5.0,) * 12}, r"kp.*'FR_calf_joint'.* (2[5-9]|[3-9]\d)$"),
        ({"kp": (5.0,) * 12}, r"kp: .* 25, 2 m g base_height / feet"),
        ({"torque_limits": (0.5,) * 12}, "kp: .*torque_limits"),
        ({"kp": (5.0,) * 12}, "kp: .*0.2.* m"),
        (_change("torque_limits", 2.0, 2), "torque_limits.*'FR_calf_joint'.*% of 2 N m"),
        ({"base_height": 0.36}, "'FR_foot'.* 0.025 m"),
        ({"foot_radius": 0.05}, "foot_radius.*'FR_foot'.* 0.0220 m"),
        ({"mirror": tuple((name, 1.0) for name, _ in GO2.mirror)}, "mirror.*'FR_hip_joint'.* -1"),
        ({"penalized_bodies": ("FR_hip",)}, "penalized_bodies.*'FR_hip'.*go2.xml"),
        ({"foot_names": GO2.foot_names[:2], "foot_mirror": (1, 0), "diagonals": ()}, "'RR_foot'.* -?0.000 m.*foot_names"),
    ],
)  # fmt: skip
def test_a_problem_says_which_where_and_what_to_write(change: dict[str, Any], problem: str) -> None:
    report = Report(replace(GO2, **change), {})
    assert any(re.search(problem, each) for each in report.problems), report.problems
    assert all(each in str(report) for each in report.problems)


def test_feet_that_would_catch_on_rough_ground_are_seen(tmp_path: Path) -> None:
    text = GO2.path.read_text()
    (tmp_path / "go2.xml").write_text(
        text.replace('type="sphere" size="0.022"/>', 'type="sphere" size="0.005"/>')
    )
    robot = replace(
        GO2, xml=str(tmp_path / "go2.xml"), foot_radius=0.005, base_height=GO2.base_height - 0.017
    )
    (wrong, *_) = Report(robot, {}).problems
    assert "'FR_foot'" in wrong and "0.005 m" in wrong
    assert not Report(GO2, {}).problems


def test_a_box_that_is_not_level_is_seen(here: Path) -> None:
    robot, _ = draft_robot(here / "man.urdf", "man", here)
    assert not [problem for problem in Report(robot, {}).problems if "level" in problem]
    tilted = [0.1 if "ankle" in name else 0.0 for name in robot.joint_names]
    problems = Report(
        replace(robot, default_joint_pos=tuple(tilted), base_height=0.715), {}
    ).problems
    uneven = [problem for problem in problems if "level" in problem]
    assert re.search("'left_ankle_foot'.* 0.020 m", uneven[0])


def test_gains_are_raised_until_the_robot_stands() -> None:
    weak = replace(GO2, kp=(15.0,) * 12, kd=(0.4,) * 12)
    strong = raise_gains(weak)
    assert settle(weak)[0] > 0.03 * GO2.base_height > settle(strong)[0]
    assert strong.kp[0] / strong.kd[0] == pytest.approx(15.0 / 0.4, rel=0.01)


def test_gains_are_raised_until_a_robot_with_four_feet_stands_after_nudges() -> None:
    soft = replace(GO2, kp=(22.0,) * 12, kd=(0.3,) * 12)
    strong = raise_gains(soft)
    moving = make_moving(GO2, is_held=False)
    assert count_stands(moving, strong) == NUM_NUDGES
    assert count_stands(moving, replace(GO2, kp=(8.0,) * 12)) == 0
    # The gains of the model are those of the robot, also after others.
    assert count_stands(moving, strong) == NUM_NUDGES


def test_gains_of_a_biped_are_raised_until_it_stands_after_gentle_nudges(here: Path) -> None:
    robot, _ = draft_robot(here / "man.urdf", "man", here)
    soft = replace(robot, kp=tuple(0.3 * gain for gain in robot.kp))
    moving = make_moving(soft, is_held=False)
    assert count_stands(moving, soft) == 0
    assert count_stands(moving, raise_gains(soft)) == NUM_NUDGES


def test_a_robot_must_stand_with_the_payloads_of_a_task(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot, _ = draft_robot(here / "man.urdf", "man", here)
    soft = replace(robot, kp=tuple(0.7 * gain for gain in robot.kp))
    moving = make_moving(soft, is_held=False)
    base = moving.model.body(robot.base_body).id
    mass = moving.model.body_mass[base]
    centre = moving.model.body_ipos[base].copy()
    assert count_stands(moving, soft) < NUM_NUDGES
    assert moving.model.body_mass[base] == mass
    np.testing.assert_array_equal(moving.model.body_ipos[base], centre)
    monkeypatch.setattr(nudges, "SHIFT", 0.0)
    monkeypatch.setattr(nudges, "PAYLOAD", (0.0, 1e-9))
    assert count_stands(moving, soft) == NUM_NUDGES
