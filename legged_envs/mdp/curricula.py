"""Curriculum terms: functions ``term(env, env_ids, **params)`` that adapt a task's difficulty.

The environment calls them when episodes end, with the indices of their environments, and logs the
number that they return.
"""

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

    "Well" means: the sum of a tracking reward over an episode, averaged over these episodes, is
    above ``threshold`` times the largest possible sum. Source: LeggedGym-Ex
    ``_update_command_curriculum``.

    Args:
        env_ids: Environments with an ended episode. Shape: (n,).
        reward: Name of the tracking reward's term, with values in [0, 1].
        threshold: Fraction of the largest possible sum above which the range is widened.
        step: Amount by which each end of the range moves outwards, m/s.
        largest: Bound of the range's ends, m/s: the range never exceeds ±``largest``.
        command: Name of the velocity command.

    Returns:
        Present upper end of the range of vx, m/s.

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
    """Move robots with an ended episode to a harder or an easier tile of the rough ground.

    A tile is a square of the ground with one kind of terrain (such as stairs) at one level of
    difficulty. A robot stays on its kind of terrain; only the level changes. A robot that succeeds
    on the hardest level continues on a random level.

    ``by="path"``: a robot moves up if it covered more than ``up`` of the commanded distance in the
    commanded directions, and the commanded distance is above half a tile. It moves down if it
    covered less than ``down`` of the commanded distance. Commands to turn on the spot have no
    commanded distance, so they do not count against a robot.

    ``by="distance"``: a robot moves up if it ended more than half a tile away from its start. Else
    it moves down if it ended nearer than ``down`` times the distance that its last command gives
    over a whole episode. Source: legged_gym.

    Args:
        env_ids: Environments with an ended episode. Shape: (n,).
        by: Measure of success, ``"path"`` or ``"distance"``.
        up: Fraction of the commanded distance above which a robot moves up. Used by ``"path"``.
        down: Fraction of the commanded distance below which a robot moves down.
        command: Name of the velocity command.

    Returns:
        Level of difficulty, 0 is the easiest, as a mean over all robots. Shape: ().

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
        start = env.robot.root_pos_w.new_tensor((*env.sim.start[:2], 0.0))
        from_start = (env.robot.root_pos_w - origins - start)[env_ids, :2]
        done = torch.linalg.vector_norm(from_start, dim=1)
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
    """Move robots to harder or easier ground by their distance from the goal at an episode's end.

    The ground has tiles of several levels of difficulty. A robot that succeeds on the hardest level
    continues on a random level.

    Args:
        env_ids: Environments with an ended episode. Shape: (n,).
        near: Distance from the goal below which a robot moves to the next harder level, m.
        far: Distance from the goal above which a robot moves to the next easier level, m.
        command: Name of the goal command.

    Returns:
        Level of difficulty, 0 is the easiest, as a mean over all robots. Shape: ().
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
    """Move robots to the next harder or the next easier level of the rough ground.

    A robot that moves up from the hardest level continues on a random level.

    Args:
        env_ids: Indices of environments. Shape: (n,).
        better: True for robots that move to the next harder level. Shape: (n,), bool.
        worse: True for robots that move to the next easier level. Where ``better`` is also True,
            the robot moves to the harder level. Shape: (n,), bool.

    Returns:
        Level of difficulty, 0 is the easiest, as a mean over all robots. Shape: ().

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
    """Set a number of the task's configuration as a function of the control steps made so far.

    The function is linear between the given points, and constant before the first and after the
    last one.

    Args:
        env_ids: Environments with an ended episode, unused. Shape: (n,).
        path: ``rewards.<term>.weight``; ``commands.<term>.<range>``, which is set to ± the value;
            or any path of :meth:`~legged_envs.envs.CoreVectorEnv.reconfigure`.
        steps: Control steps of the points, since the environment was made, in rising order.
        values: Value at each of ``steps``, in the unit of the number at ``path``.
        pieces: Number of equal changes between two points. The number applies to paths of
            ``reconfigure`` only, because each of its calls takes some time.

    Returns:
        Value that is set now, in the unit of the number at ``path``.

    Raises:
        ValueError: ``steps`` do not rise, ``values`` has another length than ``steps``, or the
            number at ``path`` cannot be changed.
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
        if kind == "commands" and hasattr(env.commands.terms.get(name), "set_range"):
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
