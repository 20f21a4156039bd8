"""Reward terms for reaching a goal: functions ``term(env, **params)`` → (num_envs,) float32.

A :class:`~legged_envs.mdp.goal_command.GoalCommand` gives the goal. d is the vector from the
base to the goal, m. v and ω are the base's linear and angular velocity in the base frame, m/s and
rad/s. t_left is the time until the end of the episode, s. 1[…] is 1 if the condition holds,
otherwise 0.
"""

import torch
from torch import Tensor

from legged_envs.mdp.context import Env


def _due_rate(
    env: Env,
    duration: float,
    command: str,
) -> Tensor:
    """Return 1 / ``duration`` in the last ``duration`` s of the time for a goal, otherwise 0.

    Shape: (num_envs,), 1/s. A robot that is at the goal throughout that time collects 1 in total,
    the sum over its steps times their length, whatever ``duration`` is.
    """
    time_left = env.commands[command][:, 4]
    # The last control step ends at a time left of 0, up to rounding.
    is_due = (time_left < duration) & (time_left > -0.5 * env.step_dt)
    return is_due.float() / duration


def goal_position(
    env: Env,
    duration: float = 4.0,
    command: str = "goal",
) -> Tensor:
    """Return the reward for being at the goal in the last seconds of an episode.

    The reward is 1[t_left < T] / T / (1 + ‖d‖²), with d the vector from the base to the goal, m.
    Source: Rudin et al. 2022.

    Args:
        duration: T, time before the end of the episode during which the reward is given, s.
        command: Name of the goal command.
    """
    goal = env.commands[command]
    way = goal[:, :3]
    squared_distance = way.square().sum(1)
    due_rate = _due_rate(env, duration, command)
    return due_rate / (1.0 + squared_distance)


def goal_heading(
    env: Env,
    duration: float = 6.0,
    near: float = 2.0,
    command: str = "goal",
) -> Tensor:
    """Return the reward for facing the goal's heading, near the goal, in an episode's last seconds.

    The reward is 1[t_left < T] / T · 1[‖d_xy‖ < near] / (1 + Δψ²). Δψ is the angle from the robot's
    heading to the goal's heading, rad. Source: Rudin et al. 2022.

    Args:
        duration: T, time before the end of the episode during which the reward is given, s.
        near: Horizontal distance from the goal below which the reward is given, m.
        command: Name of the goal command.
    """
    goal = env.commands[command]
    # Squares are compared, which spares a root.
    squared_distance = goal[:, :2].square().sum(1)
    is_near = (squared_distance < near**2).float()
    turn = goal[:, 3]
    due_rate = _due_rate(env, duration, command)
    return due_rate * is_near / (1.0 + turn.square())


def stall(
    env: Env,
    distance: float = 1.0,
    speed: float = 0.1,
    command: str = "goal",
) -> Tensor:
    """Return 1 if the robot waits far from its goal: 1[‖d_xy‖ > distance] · 1[‖v_xy‖ < speed].

    Args:
        distance: Horizontal distance from the goal above which the robot should move, m.
        speed: Horizontal speed of the base below which the robot counts as waiting, m/s.
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
    """Return the cosine of the horizontal angle between the velocity and the direction of the goal.

    The reward is v · d / max(‖v‖ ‖d‖, 0.05), with horizontal v and d. The value falls to 0 at the
    goal and at rest, where the product of the norms is below 0.05 m²/s.

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
    """Return the motion of a robot that should stand still at its goal: 2.5 ‖v‖ + ‖ω‖.

    The reward is 0 for robots that have not arrived, and 0 before the last ``last`` seconds of the
    episode.

    Args:
        near: Distance from the goal below which a robot has arrived, m.
        turn: Largest angle between the robot's heading and the goal's heading on arrival, rad.
        last: Time before the end of the episode during which robots should stand still, s.
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
