"""Curriculum terms: ``term(env, env_ids, **params)`` → a number to log, called when episodes
end."""

import numpy as np
import torch

from legged_envs.checks import check_choice, check_known, whole_number
from legged_envs.mdp.context import Env


def widen_velocity_command(
    env: Env,
    env_ids: torch.Tensor,
    reward: str = "tracking_lin_vel",
    threshold: float = 0.8,
    step: float = 0.1,
    largest: float = 1.0,
    command: str = "velocity",
) -> float:
    """Widen the range of vx at both ends if the ended episodes tracked their commands well.

    The mean sum of a reward over these episodes is compared with the largest sum that an episode
    gives. Source: LeggedGym-Ex ``_update_command_curriculum``.

    Args:
        env_ids: Environments with an ended episode. Shape: (n,).
        reward: Name of the reward term.
        threshold: Part of the largest sum above which the range is widened.
        step: Change of both ends, m/s.
        largest: Largest end of the range, m/s.
        command: Name of the velocity command.

    Returns:
        Upper end of the range, m/s: a number.

    Raises:
        ValueError: There is no reward term with that name.
    """
    names = env.rewards.names
    check_known("widen_velocity_command: there is no reward term", (reward,), names, "terms")
    column = names.index(reward)
    term = env.commands.terms[command]
    # Row 0 is vx.
    low, high = term.ranges[0].tolist()
    # That of a term which is 1 in every step.
    largest_sum = env.rewards.weights[column] * env.max_episode_length_s
    mean_sum = env.rewards.episode_sums[env_ids, column].mean().item()
    if mean_sum > threshold * largest_sum:
        low = max(low - step, -largest)
        high = min(high + step, largest)
        term.set_range("lin_vel_x", low, high)
    return high


def terrain_levels(
    env: Env,
    env_ids: torch.Tensor,
    by: str = "path",
    up: float = 0.8,
    down: float = 0.5,
    command: str = "velocity",
) -> torch.Tensor:
    """Move robots with an ended episode to a harder or an easier tile of the same kind.

    A robot that has done the hardest level goes to a random level.

    ``by="path"``: up if the robot went more than ``up`` of the commanded distance along its
    commands, and that distance is above half a tile; down if it went less than ``down`` of it.
    Commands to turn then do not count against a robot.

    ``by="distance"``: up if the robot is more than half a tile away from where it began; else down
    if it is less away than ``down`` of the way that the last command makes in a whole episode.
    Source: legged_gym.

    Args:
        env_ids: Environments with an ended episode. Shape: (n,).
        by: ``"path"`` or ``"distance"``.
        up: Part of the commanded distance above which a robot moves up.
        down: Part of the distance below which a robot moves down.
        command: Name of the velocity command.

    Returns:
        Mean level of all robots. Shape: ().

    Raises:
        ValueError: ``by`` is unknown, or the ground is a plane.
    """
    check_choice("terrain_levels: by", by, ("path", "distance"))
    ground = env.sim.ground
    term = env.commands.terms[command]
    # On a plane move_levels raises the error, whatever is computed here.
    half_tile = 0.0 if ground is None else 0.5 * ground.terrain.size
    if by == "path":
        done = term.progress[env_ids]
        asked = term.path[env_ids]
        is_better = (done > up * asked) & (asked > half_tile)
        is_worse = done < down * asked
    else:
        origins = 0.0 if ground is None else ground.origins
        from_origin = (env.robot.root_pos_w - origins)[env_ids, :2]
        done = torch.linalg.vector_norm(from_origin, dim=1)
        speed = torch.linalg.vector_norm(term.value[env_ids, :2], dim=1)
        asked = speed * env.max_episode_length_s
        is_better = done > half_tile
        is_worse = done < down * asked
    return move_levels(env, env_ids, is_better, is_worse)


def goal_levels(
    env: Env,
    env_ids: torch.Tensor,
    near: float = 0.5,
    far: float = 1.5,
    command: str = "goal",
) -> torch.Tensor:
    """Move robots with an ended episode up or down a level by their distance from the goal.

    A robot that has done the hardest level goes to a random level.

    Args:
        env_ids: Environments with an ended episode. Shape: (n,).
        near: Distance from the goal below which a robot moves up a level, m.
        far: Distance above which it moves down, m.
        command: Name of the goal command.

    Returns:
        Mean level of all robots. Shape: ().
    """
    way = env.commands[command][env_ids, :2]
    distance = torch.linalg.vector_norm(way, dim=1)
    return move_levels(env, env_ids, distance < near, distance > far)


def move_levels(
    env: Env,
    env_ids: torch.Tensor,
    better: torch.Tensor,
    worse: torch.Tensor,
) -> torch.Tensor:
    """Move robots up or down a level of the terrain.

    A robot above the hardest level goes to a random level.

    Args:
        env_ids: Indices of environments. Shape: (n,).
        better: True for robots that move up. Shape: (n,), bool.
        worse: True for robots that move down, unless they are ``better``. Shape: (n,), bool.

    Returns:
        Mean level of all robots. Shape: ().

    Raises:
        ValueError: The ground is a plane, which has no levels.
    """
    ground = env.sim.ground
    if ground is None:
        raise ValueError(
            "levels need a terrain: set scene.terrain, or leave the curriculum term out"
        )
    num_levels = len(ground.tile_origins)
    # Drawn for every robot, needed or not, so that the stream does not depend on who succeeds.
    random = env.random.stream("terrain_levels")
    draw = random.uniform(0.0, float(num_levels), 1, env_ids).squeeze(1)
    up = better.long()
    down = (worse & ~better).long()
    levels = ground.levels[env_ids] + up - down
    levels = torch.where(levels >= num_levels, draw.long(), levels.clamp(min=0))
    ground.levels = ground.levels.index_copy(0, env_ids, levels)
    return ground.levels.float().mean()


def schedule(
    env: Env,
    env_ids: torch.Tensor,
    path: str,
    steps: tuple[int, ...],
    values: tuple[float, ...],
    pieces: int = 10,
) -> float:
    """Set a number of the task by the number of control steps that were made.

    It is linear between the given steps, and constant before and after them.

    Args:
        env_ids: Environments with an ended episode. They have no effect. Shape: (n,).
        path: ``rewards.<term>.weight``; ``commands.<term>.<range>``, which is set to ± the value;
            or any path of :meth:`~legged_envs.envs.CoreVectorEnv.reconfigure`.
        steps: Numbers of control steps, rising.
        values: Value at each of ``steps``, in the unit of the number at ``path``.
        pieces: Number of changes from one value to the next for paths of ``reconfigure``, each of
            which takes some time.

    Returns:
        The present value: a number.

    Raises:
        ValueError: The steps do not rise, there is not one value for each, or the path cannot be
            changed.
    """
    if len(steps) != len(values) or list(steps) != sorted(steps) or not steps:
        raise ValueError(f"schedule: steps must rise, with a value each, got {steps} and {values}")
    value = float(np.interp(env.num_steps, steps, values))
    # Weights and ranges can change in every step without reconfigure.
    parts = path.split(".")
    if len(parts) == 3:
        kind, name, field = parts
        if kind == "rewards" and field == "weight":
            env.rewards.set_weight(name, value)
            return value
        if kind == "commands" and name in env.commands.terms:
            env.commands.terms[name].set_range(field, -value, value)
            return value
    pieces = whole_number("schedule: pieces", pieces)
    order = range(len(steps))
    # The position among the steps, rounded down to a whole piece.
    position = np.floor(np.interp(env.num_steps, steps, order) * pieces) / pieces
    value = float(np.interp(position, order, values))
    # reconfigure takes time, so it is called for changes only.
    if value != env.changes.get(path):
        env.reconfigure({path: value})
    return value
