"""Curriculum terms: ``term(env, env_ids, **params)`` → a number to log, called when episodes are over."""

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
    """Widen the range of vx by ``step`` m/s at both ends, to ±``largest`` at most, if the mean sum of ``reward`` over
    the ended episodes is above ``threshold`` of the most that an episode gives (LeggedGym-Ex
    ``_update_command_curriculum``). Returns its upper end, m/s; ValueError if there is no such reward term."""
    names = env.rewards.names
    check_known("widen_velocity_command: there is no reward term", (reward,), names, "terms")
    column, term = names.index(reward), env.commands.terms[command]
    low, high = term.ranges[0].tolist()
    most = env.rewards.weights[column] * env.max_episode_length_s
    if env.rewards.episode_sums[env_ids, column].mean().item() > threshold * most:
        low, high = max(low - step, -largest), min(high + step, largest)
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
    """Move robots whose episodes are over to a harder or an easier tile of the same kind; who has done the hardest goes
    to a random level. ``by="path"``: up who went more than ``up`` of the way that was commanded, along the commands,
    and that was at least half a tile, down who went less than ``down`` of it, so that turning commands do not count
    against a robot. ``by="distance"``: up who is half a tile away from where it began, down who is not and less than
    ``down`` of what the last command makes in a whole episode (legged_gym). Returns the mean level of all; ValueError
    for another ``by``."""
    check_choice("terrain_levels: by", by, ("path", "distance"))
    ground, term = env.sim.ground, env.commands.terms[command]
    half = 0.5 * ground.terrain.size if ground is not None else 0.0
    if by == "path":
        done, asked = term.progress[env_ids], term.path[env_ids]
        better, worse = (done > up * asked) & (asked > half), done < down * asked
    else:
        origins = 0.0 if ground is None else ground.origins
        way = torch.linalg.vector_norm((env.robot.root_pos_w - origins)[env_ids, :2], dim=1)
        asked = torch.linalg.vector_norm(term.value[env_ids, :2], dim=1) * env.max_episode_length_s
        better, worse = way > half, way < down * asked
    return move_levels(env, env_ids, better, worse)


def goal_levels(
    env: Env, env_ids: torch.Tensor, near: float = 0.5, far: float = 1.5, command: str = "goal"
) -> torch.Tensor:
    """Move robots whose episodes are over up a level if they were less than ``near`` m from their goal at the end, down
    if more than ``far``; otherwise as :func:`terrain_levels`."""
    way = torch.linalg.vector_norm(env.commands[command][env_ids, :2], dim=1)
    return move_levels(env, env_ids, way < near, way > far)


def move_levels(
    env: Env, env_ids: torch.Tensor, better: torch.Tensor, worse: torch.Tensor
) -> torch.Tensor:
    """Move robots that were ``better`` up a level, ``worse`` ones that were not down; who is above the hardest goes to
    a random one. Returns the mean level of all; ValueError on a plane, which has no levels."""
    ground = env.sim.ground
    if ground is None:
        raise ValueError(
            "levels need a terrain: set scene.terrain, or leave the curriculum term out"
        )
    last = len(ground.tile_origins)
    draw = env.random.stream("terrain_levels").uniform(0.0, float(last), 1, env_ids).squeeze(1)
    levels = ground.levels[env_ids] + better.long() - (worse & ~better).long()
    levels = torch.where(levels >= last, draw.long(), levels.clamp(min=0))
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
    """Set ``path`` to what ``values`` are after so many control ``steps`` of the environment, linear in between,
    constant before and after: ``rewards.<term>.weight``, ``commands.<term>.<range>`` (to ± the value), or any that
    :meth:`~legged_envs.envs.LeggedVectorEnv.reconfigure` takes, which goes from one value to the next in so many
    ``pieces``. Returns the value; ValueError for other paths."""
    if len(steps) != len(values) or list(steps) != sorted(steps) or not steps:
        raise ValueError(f"schedule: steps must rise, with a value each, got {steps} and {values}")
    now = float(np.interp(env.num_steps, steps, values))
    kind, name, field = path.split(".") if path.count(".") == 2 else ("", "", "")
    if kind == "rewards" and field == "weight":
        env.rewards.set_weight(name, now)
    elif kind == "commands" and name in env.commands.terms:
        env.commands.terms[name].set_range(field, -now, now)
    else:
        order, pieces = range(len(steps)), whole_number("schedule: pieces", pieces)
        place = np.floor(np.interp(env.num_steps, steps, order) * pieces) / pieces
        now = float(np.interp(place, order, values))
        if now != env.changes.get(path):
            env.reconfigure({path: now})
    return now
