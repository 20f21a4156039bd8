"""Reward terms of goals (``GoalCommand``): ``term(env, **params)`` → (num_envs,) float32.

d is the way from the robot to its goal, v and ω are the base's velocities in its frame, and 1[…] is
1 where the condition holds and else 0.
"""

import torch
from torch import Tensor

from legged_envs.mdp.context import Env


def _is_due(
    env: Env,
    duration: float,
    command: str,
) -> Tensor:
    """Return 1 / ``duration`` in the last ``duration`` s of the time for a goal, else 0.

    Shape: (num_envs,). An episode at the goal then has a total of 1, whatever the duration is.
    """
    goal = env.commands[command]
    time_left = goal[:, 4]
    is_due = (time_left < duration).float()
    return is_due / duration


def goal_position(
    env: Env,
    duration: float = 4.0,
    command: str = "goal",
) -> Tensor:
    """Return the reward for being at the goal in the end: 1[t_left < T] / T / (1 + ‖d‖²).

    Source: Rudin et al. 2022.

    Args:
        duration: T, time before the end in which the position counts, s.
        command: Name of the goal command.
    """
    goal = env.commands[command]
    way = goal[:, :3]
    squared_distance = way.square().sum(1)
    is_due = _is_due(env, duration, command)
    return is_due / (1.0 + squared_distance)


def goal_heading(
    env: Env,
    duration: float = 6.0,
    near: float = 2.0,
    command: str = "goal",
) -> Tensor:
    """Return the reward for having the heading of the goal near it in the end.

    It is 1[t_left < T] / T · 1[‖d_xy‖ < near] / (1 + Δψ²). Δψ is the angle from the robot's heading
    to the goal's. Source: Rudin et al. 2022.

    Args:
        duration: T, time before the end in which the heading counts, s.
        near: Distance from the goal within which it counts, m.
        command: Name of the goal command.
    """
    goal = env.commands[command]
    # Squares are compared, which spares a root.
    squared_distance = goal[:, :2].square().sum(1)
    is_near = (squared_distance < near**2).float()
    turn = goal[:, 3]
    is_due = _is_due(env, duration, command)
    return is_due * is_near / (1.0 + turn.square())


def stall(
    env: Env,
    distance: float = 1.0,
    speed: float = 0.1,
    command: str = "goal",
) -> Tensor:
    """Return 1 if the robot waits far from its goal: 1[‖d_xy‖ > distance] · 1[‖v_xy‖ < speed].

    Args:
        distance: Distance from the goal above which the robot should move, m.
        speed: Speed below which it waits, m/s.
        command: Name of the goal command.
    """
    goal = env.commands[command]
    squared_distance = goal[:, :2].square().sum(1)
    is_far = squared_distance > distance**2
    velocity = env.robot.lin_vel_b[:, :2]
    squared_speed = velocity.square().sum(1)
    is_slow = squared_speed < speed**2
    return (is_far & is_slow).float()


def move_in_direction(env: Env, command: str = "goal") -> Tensor:
    """Return the cosine of the horizontal angle between the velocity and the way to the goal.

    It is v · d / max(‖v‖ ‖d‖, 0.05). It is smaller near the goal and at rest, where the product of
    the norms, m²/s, is below 0.05.

    Args:
        command: Name of the goal command.
    """
    goal = env.commands[command]
    way = goal[:, :2]
    velocity = env.robot.lin_vel_b[:, :2]
    distance = torch.linalg.vector_norm(way, dim=1)
    speed = torch.linalg.vector_norm(velocity, dim=1)
    # Without the bound a robot at rest, or at its goal, would divide by 0.
    norms = (distance * speed).clamp(min=0.05)
    product = (way * velocity).sum(1)
    return product / norms


def goal_stand_still(
    env: Env,
    near: float = 0.25,
    turn: float = 0.5,
    last: float = 1.0,
    command: str = "goal",
) -> Tensor:
    """Return the speed of a robot that has arrived and should stand still: 2.5 ‖v‖ + ‖ω‖.

    It is 0 where the robot has not arrived, or more time than ``last`` is left.

    Args:
        near: Distance from the goal within which a robot has arrived, m.
        turn: Angle to the goal's heading within which it has arrived, rad.
        last: Time before the end in which it should stand still, s.
        command: Name of the goal command.
    """
    goal = env.commands[command]
    is_due = goal[:, 4] < last
    squared_distance = goal[:, :2].square().sum(1)
    is_near = squared_distance < near**2
    is_turned = goal[:, 3].abs() < turn
    has_arrived = is_due & is_near & is_turned
    speed = torch.linalg.vector_norm(env.robot.lin_vel_b, dim=1)
    turning = torch.linalg.vector_norm(env.robot.ang_vel_b, dim=1)
    return (2.5 * speed + turning) * has_arrived
