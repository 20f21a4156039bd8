"""Rough ground under harsh conditions: slippery ground, delays, noise and sudden commands.

Each change answers a weakness that the benchmark RoboGauge (https://github.com/wty-yy/RoboGauge,
MIT) shows in policies of ``Legged/Go2-Blind-v0``. Its conditions are friction from 0.2, delays of
up to a control step, noise on gyroscope and joint speeds, stairs with treads of 0.31 m, and
commands that are inverted at full speed or end in an emergency stop.
"""

from collections.abc import Callable, Collection, Mapping

from legged_envs.checks import check_known
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import EventTermCfg, RewardTermCfg
from legged_envs.mdp import events, rewards
from legged_envs.mdp.commands import VELOCITY_RANGES, VelocityCommandCfg
from legged_envs.mdp.gait_clock import GaitClockCfg
from legged_envs.tasks.rough import go2_blind
from legged_envs.terrains import KindCfg

TREAD = 0.31
"""Depth of a step of stairs, m. RoboGauge and public buildings have the same value."""

STEP_FACTOR = 1.25
"""Factor on the largest height of steps. A Go2's are 0.23 m at the last level."""

FINE_CELL = 0.05
"""Distance between neighbouring points of the height field, m."""

FINE_BORDER = 5.0
"""Width of the flat margin around the tiles, m."""

LIFT_FACTOR = 1.4
"""Factor on the height to which feet are lifted: 0.14 m for a Go2."""

STAIRS = ("stairs_up", "stairs_down")
"""Kinds of tiles with stairs."""

FAST_FACTOR = 2.0
"""Factor on the range of the forward and the turning velocity on flat tiles."""

FLAT_SHARE = 0.1
"""Share of flat tiles, as a fraction of all other tiles."""

GYROSCOPE_NOISE = 0.8
"""Bound of the uniform noise of the angular velocity, rad/s."""

JOINT_SPEED_NOISE = 3.0
"""Bound of the uniform noise of joint velocities, rad/s."""


def robust(cfg: TaskCfg, changes: Collection[str] | None = None) -> TaskCfg:
    """Make a velocity task on rough ground harsher.

    Args:
        cfg: A task of any robot from :mod:`legged_envs.tasks.rough`. It is changed in place.
        changes: Names of the changes to make, keys of :data:`CHANGES`. None: all.

    Returns:
        The argument ``cfg``.

    Raises:
        ValueError: A change does not exist, or the task is on a plane.
    """
    names = tuple(CHANGES) if changes is None else changes
    check_known("robust: there is no change", names, CHANGES, "changes")
    if cfg.scene.terrain is None:
        raise ValueError(
            f"robust: the task of robot {cfg.robot.name!r} is on a plane: "
            "give it rough ground first, with legged_envs.tasks.rough.on_terrain"
        )
    for name in names:
        CHANGES[name](cfg)
    return cfg


def go2_robust() -> TaskCfg:
    """Make the task of the Unitree Go2 on rough ground under harsh conditions, without a scan."""
    return robust(go2_blind())


def _velocity(cfg: TaskCfg) -> VelocityCommandCfg:
    velocity = cfg.commands["velocity"]
    assert isinstance(velocity, VelocityCommandCfg)
    return velocity


def _stand_more(cfg: TaskCfg) -> None:
    # With 0.02, robots trot on the spot under the zero command.
    _velocity(cfg).standing_fraction = 0.15


def _start_on_steps(cfg: TaskCfg) -> None:
    # Otherwise all episodes start on the flat platform in the middle of a tile, and nobody learns
    # to stand on steps. The event is not a part of an evaluation, in which robots cross their tile.
    cfg.events["drop"] = EventTermCfg(
        events.drop, "reset", purpose="disturb", params={"fraction": 0.3, "distance": 3.0}
    )


def _delay_actions(cfg: TaskCfg) -> None:
    # Half of the episodes have the delay. The scheme infers from the history which ones.
    cfg.max_action_delay = 1


def _add_noise(cfg: TaskCfg) -> None:
    terms = cfg.observations["policy"].terms
    terms["ang_vel"].noise = GYROSCOPE_NOISE
    terms["joint_vel"].noise = JOINT_SPEED_NOISE


def _command_suddenly(cfg: TaskCfg) -> None:
    velocity = _velocity(cfg)
    slow = {name: getattr(velocity, name) for name in VELOCITY_RANGES}
    velocity.lin_vel_y = _scaled(slow["lin_vel_y"], 2.0)
    velocity.ang_vel_z = _scaled(slow["ang_vel_z"], 1.5)
    velocity.kind_ranges = {
        "flat": {
            "lin_vel_x": _scaled(slow["lin_vel_x"], FAST_FACTOR),
            "ang_vel_z": _scaled(slow["ang_vel_z"], FAST_FACTOR),
        }
    }
    velocity.resampling_time_s = (2.0, 5.0)
    velocity.inversion_fraction = 0.3
    # With only a heading, robots are never commanded to turn for as long as a command lasts.
    velocity.heading_fraction = 0.5
    # A reversal costs way: robots that follow such commands well cover less of it.
    cfg.curriculum["terrain_levels"].params.update(up=0.7, down=0.4)
    # Twice the speed is possible on flat ground only.
    assert cfg.scene.terrain is not None
    kinds = cfg.scene.terrain.kinds
    others = sum(kind.proportion for kind in kinds.values())
    kinds.setdefault("flat", KindCfg(FLAT_SHARE * others))


def _scaled(span: tuple[float, float], factor: float) -> tuple[float, float]:
    low, high = span
    return (factor * low, factor * high)


def _lower_friction(cfg: TaskCfg) -> None:
    cfg.events["friction"].params["range"] = (0.1, 1.25)


def _steepen_stairs(cfg: TaskCfg) -> None:
    assert cfg.scene.terrain is not None
    for name in STAIRS:
        kind = cfg.scene.terrain.kinds.get(name)
        if kind is None:
            continue
        # The defaults of the generator fit a robot as large as a Go2.
        low, high = kind.params.get("height", (0.05, 0.2))
        kind.params["height"] = (low, round(STEP_FACTOR * high, 3))
        kind.params["width"] = TREAD


def _sharpen_risers(cfg: TaskCfg) -> None:
    # Stairs are boxes. The other edges fall over the distance between two points of the height
    # field: an edge of 0.2 m has 63° with 0.1 m and 76° with 0.05 m. The narrower margin makes up
    # for the memory of the finer field.
    assert cfg.scene.terrain is not None
    cfg.scene.terrain.vertical_risers = True
    cfg.scene.terrain.horizontal_scale = FINE_CELL
    cfg.scene.terrain.border = FINE_BORDER


def _lift_feet(cfg: TaskCfg) -> None:
    # Robots that got stuck at the vertical face of a step had lifted their front feet by only 3 to
    # 8 cm.
    clearance = cfg.rewards.get("foot_clearance")
    if clearance is not None:
        target = clearance.params["target"]
        clearance.params["target"] = round(LIFT_FACTOR * target, 3)
    # For bipeds, the gait clock sets how high the feet swing.
    for command in cfg.commands.values():
        if isinstance(command, GaitClockCfg):
            command.swing = round(LIFT_FACTOR * command.swing, 3)


def _punish_stops(cfg: TaskCfg) -> None:
    # Without it, a robot that stops at a riser still earns the reward for its turning velocity.
    cfg.rewards["no_progress"] = RewardTermCfg(rewards.no_progress, -1.0)


CHANGES: Mapping[str, Callable[[TaskCfg], None]] = {
    "standing": _stand_more,
    "starts": _start_on_steps,
    "delay": _delay_actions,
    "noise": _add_noise,
    "commands": _command_suddenly,
    "friction": _lower_friction,
    "stairs": _steepen_stairs,
    "risers": _sharpen_risers,
    "clearance": _lift_feet,
    "progress": _punish_stops,
}
"""Name of each change → function that makes it, in place."""
