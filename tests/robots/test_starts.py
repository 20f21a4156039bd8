"""Starts of the velocity task, which robots on two feet must survive without a policy."""

from pathlib import Path

import pytest
from robot_models import write_models

from legged_envs.robot_check import raise_gains
from legged_envs.robots import G1, GO2
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.tasks.biped import g1_flat
from legged_envs.tasks.velocity import set_starts, velocity_task
from tools.robot_files import stand


def test_robots_on_two_feet_start_gently_but_for_tasks_with_a_gait_clock() -> None:
    for robot, speed, offset in ((G1, 0.1, 0.05), (GO2, 0.3, 0.2)):
        events = velocity_task(robot).events
        assert events["root"].params["velocity"] == pytest.approx(speed)
        assert events["joints"].params["range"] == pytest.approx(offset)
    assert g1_flat().events["joints"].params["range"] == 0.2
    cfg = velocity_task(G1)
    set_starts(cfg)
    assert cfg.events["root"].params["velocity"] == pytest.approx(0.3)


def test_a_drafted_biped_stands_with_all_events(tmp_path: Path) -> None:
    write_models(tmp_path)
    robot, _ = draft_robot(tmp_path / "man.urdf", "man", tmp_path / "out")
    fell, bad = stand(velocity_task(raise_gains(robot)))
    assert bad == 0 and fell <= 6
