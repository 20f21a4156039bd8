"""Reward terms of goals (``GoalCommand``): ``term(env, **params)`` → (num_envs,) float32.

d is the way from the robot to its goal, v and ω are the base's velocities in its frame, and 1[…] is
1 where the condition holds and else 0.
"""

import torch
from torch import Tensor

from legged_envs.mdp.context import Env


def _is_due(env: Env, duration: float, command: str) -> Tensor:
    """Return 1 / ``duration`` in the last ``duration`` s of the time for a goal, else 0.

    Shape: (num_envs,). An episode at the goal then has a total of 1, whatever the duration is.
    """
    time_left = env.commands[command][:, 4]
    return (time_left < duration).float() / duration


def goal_position(env: Env, duration: float = 4.0, command: str = "goal") -> Tensor:
    """Return the reward for being at the goal in the end: 1[t_left < T] / T / (1 + ‖d‖²).

    Source: Rudin et al. 2022.

    Args:
        duration: T, time before the end in which the position counts, s.
        command: Name of the goal command.
    """
    way = env.commands[command][:, :3]
    return _is_due(env, duration, command) / (1.0 + way.square().sum(1))


def goal_heading(
    env: Env, duration: float = 6.0, near: float = 2.0, command: str = "goal"
) -> Tensor:
    """Return the reward for having the heading of the goal near it in the end.

    It is 1[t_left < T] / T · 1[‖d_xy‖ < near] / (1 + Δψ²). Δψ is the angle from the robot's heading
    to the goal's. Source: Rudin et al. 2022.

    Args:
        duration: T, time before the end in which the heading counts, s.
        near: Distance from the goal within which it counts, m.
        command: Name of the goal command.
    """
    way = env.commands[command]
    is_near = (way[:, :2].square().sum(1) < near**2).float()
    turn = way[:, 3]
    return _is_due(env, duration, command) * is_near / (1.0 + turn.square())


def stall(env: Env, distance: float = 1.0, speed: float = 0.1, command: str = "goal") -> Tensor:
    """Return 1 if the robot waits far from its goal: 1[‖d_xy‖ > distance] · 1[‖v_xy‖ < speed].

    Args:
        distance: Distance from the goal above which the robot should move, m.
        speed: Speed below which it waits, m/s.
        command: Name of the goal command.
    """
    way = env.commands[command][:, :2]
    is_far = way.square().sum(1) > distance**2
    is_slow = env.robot.lin_vel_b[:, :2].square().sum(1) < speed**2
    return (is_far & is_slow).float()


def move_in_direction(env: Env, command: str = "goal") -> Tensor:
    """Return the cosine of the horizontal angle between the velocity and the way to the goal.

    It is v · d / max(‖v‖ ‖d‖, 0.05). It is smaller near the goal and at rest, where the product of
    the norms, m²/s, is below 0.05.

    Args:
        command: Name of the goal command.
    """
    way = env.commands[command][:, :2]
    velocity = env.robot.lin_vel_b[:, :2]
    distance = torch.linalg.vector_norm(way, dim=1)
    speed = torch.linalg.vector_norm(velocity, dim=1)
    return (way * velocity).sum(1) / (distance * speed).clamp(min=0.05)


def goal_stand_still(
    env: Env, near: float = 0.25, turn: float = 0.5, last: float = 1.0, command: str = "goal"
) -> Tensor:
    """Return the speed of a robot that has arrived and should stand still: 2.5 ‖v‖ + ‖ω‖.

    It is 0 where the robot has not arrived, or more time than ``last`` is left.

    Args:
        near: Distance from the goal within which a robot has arrived, m.
        turn: Angle to the goal's heading within which it has arrived, rad.
        last: Time before the end in which it should stand still, s.
        command: Name of the goal command.
    """
    way = env.commands[command]
    is_due = way[:, 4] < last
    is_near = way[:, :2].square().sum(1) < near**2
    is_turned = way[:, 3].abs() < turn
    has_arrived = is_due & is_near & is_turned
    speed = torch.linalg.vector_norm(env.robot.lin_vel_b, dim=1)
    turning = torch.linalg.vector_norm(env.robot.ang_vel_b, dim=1)
    return (2.5 * speed + turning) * has_arrived
