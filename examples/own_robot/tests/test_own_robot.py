"""The robot has no problems and stands; its task is known by its id, and steps."""

import gymnasium as gym
import numpy as np
import pytest
from legged_envs.robot_check import Report

from own_robot import OWN_ROBOT

TASK = "legged_envs:own_robot/Flat-v0"


def test_check_finds_no_problems() -> None:
    assert Report(OWN_ROBOT, {}).problems == []


def test_the_robot_stands_when_it_is_told_to_stay_in_its_default_pose() -> None:
    envs = gym.make_vec(TASK, num_envs=2, cfg={f"events.{name}": None for name in ("push", "root", "joints")})
    envs.reset(seed=0)
    for _ in range(100):
        _, _, terminated, _, _ = envs.step(np.zeros((2, OWN_ROBOT.num_joints), np.float32))
        assert not terminated.any()
    assert (envs.unwrapped.sim.root_pos_w[:, 2] > 0.95 * OWN_ROBOT.base_height).all()
    envs.close()


def test_the_task_steps_and_its_power_is_torque_times_speed() -> None:
    envs = gym.make_vec(TASK, num_envs=2)
    envs.reset(seed=0)
    _, _, _, _, info = envs.step(envs.action_space.sample())
    robot = envs.unwrapped.robot
    watts = (robot.joint_torque.numpy().astype(float) * robot.joint_vel.numpy()).__abs__().sum(1)
    assert info["costs"][:, envs.unwrapped.cost_names.index("power")] == pytest.approx(watts, rel=1e-4)
    envs.close()
