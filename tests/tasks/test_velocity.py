"""Values that the velocity task derives from any robot: action scales and payloads."""

import os
from pathlib import Path

import pytest
from dogs import dog, draft

from legged_envs.envs import make_core
from legged_envs.mdp.events import randomize_base_mass
from legged_envs.policy.training_facts import training_facts
from legged_envs.robots import GO2
from legged_envs.tasks.velocity import velocity_task

NARROW = '<limit lower="-0.1" upper="0.1"'
"""Range of the hips: 0.2 rad are less than an action of 1 moves a joint."""


def narrow_dog(**parts: str) -> str:
    return dog(**parts).replace('<limit lower="-0.8" upper="0.8"', NARROW)


def test_legs_of_robots_with_wheels_move_within_their_ranges(tmp_path: Path) -> None:
    text = narrow_dog(foot='<cylinder radius="0.05" length="0.03"/>', foot_kind="continuous")
    text = text.replace(
        '<origin xyz="0 0 0"/><geometry><cyl', '<origin rpy="1.5708 0 0"/><geometry><cyl'
    )
    robot, _ = draft(text, tmp_path)
    assert robot.wheels
    actions = velocity_task(robot).actions
    assert actions["legs"].scale == (0.2, 0.5, 0.5) * 4
    core = make_core(velocity_task(robot), 1)
    assert core.action_space.shape == (1, 16)


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    robot, _ = draft(narrow_dog(), tmp_path)
    assert velocity_task(robot).actions["joint_position"].scale[0] == 0.2
    path = Path(robot.xml)
    path.write_text(path.read_text().replace('range="-0.1 0.1"', 'range="-0.15 0.15"'))
    os.utime(path, ns=(1, 1))  # Two writes within one tick of the clock have the same time.
    assert velocity_task(robot).actions["joint_position"].scale[0] == 0.3


@pytest.mark.parametrize("base_mass", [1.0, 6.0])
def test_the_payload_of_a_contract_is_what_the_robot_carries(
    tmp_path: Path, base_mass: float
) -> None:
    robot, _ = draft(dog(base_mass=base_mass), tmp_path)
    cfg = velocity_task(robot)
    low, high = training_facts(cfg)["payload"]
    assert high == pytest.approx(min(2.0, 0.6 * base_mass))
    assert low == pytest.approx(-high / 2)
    core = make_core(cfg, 256)
    core.reset(seed=0)
    masses = core.sim.get_parameter("body_mass")[:, 0] - base_mass
    assert low <= masses.min() < low + 0.1 and high - 0.1 < masses.max() <= high


def test_without_the_event_a_contract_has_no_payload() -> None:
    cfg = velocity_task(GO2)
    assert training_facts(cfg)["payload"] == (-1.0, 2.0)
    assert cfg.events["base_mass"].func is randomize_base_mass
    del cfg.events["base_mass"]
    assert training_facts(cfg)["payload"] is None
