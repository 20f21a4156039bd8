"""Harsh conditions of an evaluation: slippery ground, payload, delay, noise and sudden commands.

They follow the benchmark RoboGauge (https://github.com/wty-yy/RoboGauge, MIT) and are scaled with
the robot: the payload is a share of its mass, and speeds are those at the ends of the ranges of its
training.
"""

import copy
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch

from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import COMMAND_RANGES
from legged_envs.managers import EventTermCfg
from legged_envs.mdp import events, observations
from legged_envs.mdp.commands import VELOCITY_RANGES, VelocityCommand, VelocityCommandCfg
from legged_envs.mdp.context import Env
from legged_envs.rng import Stream
from legged_envs.tasks.kind import kind_of

if TYPE_CHECKING:
    from legged_envs.sim import Simulation

FRICTION = (0.2, 1.0)
"""Range of the friction coefficient of an episode."""

PAYLOAD_SHARE = (-1.0 / 15.2, 3.0 / 15.2)
"""Range of the mass that is added to the base, as a share of the robot's mass.

It is −1 to 3 kg for a Go2, which weighs 15.2 kg.
"""

LEAST_BASE = 0.5
"""Smallest share of the base's mass that remains when a payload is negative."""

ACTION_DELAY = 1
"""Largest delay of an episode's actions, control steps. Half of the episodes have it."""

GYROSCOPE_NOISE = 0.8
"""Bound of the uniform noise of the angular velocity, rad/s."""

JOINT_SPEED_NOISE = 3.0
"""Bound of the uniform noise of joint velocities, rad/s."""

FIELDS = fields(VelocityCommandCfg)
"""Fields of a velocity command that a harsh command takes from the training."""

NOISE: dict[Any, float] = {
    observations.base_ang_vel: GYROSCOPE_NOISE,
    observations.joint_vel: JOINT_SPEED_NOISE,
}
"""Observation → least bound of its noise, in its unit."""

PHASES = ((1.0, 0.0), (8.0, 1.0), (2.0, -1.0), (6.0, 1.0), (3.0, 0.0))
"""Phases of the command of an episode: duration, s, and factor on the velocity.

A robot stands, starts at once, is reversed twice at speed, and stops at once.
"""

EPISODE_SECONDS = sum(seconds for seconds, _ in PHASES)
"""Duration of an episode, s."""

STOP_SECONDS = EPISODE_SECONDS - PHASES[-1][0]
"""Start of the last command to stand still, s."""

SPEED_SHARE = (0.8, 1.0)
"""Range of the velocity on rough ground, as a share of the largest forward velocity."""

DIRECTIONS = (
    (1.0, 0.0, 0.0),
    (0.0, 1.0, 0.0),
    (0.0, 0.0, 1.0),
    (1.0, 1.0, 0.0),
    (1.0, 0.0, 1.0),
)
"""Velocities that are commanded on flat ground: 1 for each of vx, vy and ωz that is not 0."""


@dataclass
class HarshCommandCfg(VelocityCommandCfg):
    """Configuration of velocity commands that follow ``PHASES``, at the ends of their ranges."""

    forwards: bool = False
    """True if robots only walk straight ahead, as on rough ground, which they must cross."""

    def build(self, env: Env) -> "HarshCommand":
        """Make the commands of an environment.

        Raises:
            ValueError: A range is not (low, high). The message names the field.
        """
        return HarshCommand(self, env)


class HarshCommand(VelocityCommand):
    """Sudden velocity commands: a drawn velocity, times the factor of the present phase.

    Args:
        cfg: Ranges of the commands.
        env: Environment that the commands are for.
    """

    STATE = (*VelocityCommand.STATE, "direction", "elapsed")

    def __init__(self, cfg: HarshCommandCfg, env: Env):
        super().__init__(cfg, env)
        self._forwards = cfg.forwards
        directions = torch.tensor(DIRECTIONS, device=env.device)
        # A robot on wheels has no sideways velocity.
        is_possible = (self._low[:3] != 0.0) | (self._high[:3] != 0.0)
        directions = directions * is_possible
        self._directions = directions[directions.any(1)]
        seconds = torch.tensor([seconds for seconds, _ in PHASES], device=env.device)
        self._ends = seconds.cumsum(0)
        self._factors = torch.tensor([factor for _, factor in PHASES], device=env.device)

        self.direction = torch.zeros_like(self.value[:, :3])
        """Velocity of each environment when the factor is 1. Shape: (num_envs, 3)."""
        self.elapsed = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
        """Control steps since the start of the episode. Shape: (num_envs,)."""

    def reset(self, env_ids: torch.Tensor) -> None:
        # Four numbers, whatever they are used for: direction, and sign or share of each velocity.
        draw = self._random.uniform(0.0, 1.0, 4, env_ids)
        low = self._low[:3]
        high = self._high[:3]
        if self._forwards:
            least, most = SPEED_SHARE
            direction = torch.zeros_like(draw[:, :3])
            direction[:, 0] = high[0] * (least + (most - least) * draw[:, 0])
        else:
            row = (draw[:, 3] * len(self._directions)).long()
            end = torch.where(draw[:, :3] < 0.5, low, high)
            direction = self._directions[row] * end
        self.direction = self.direction.index_copy(0, env_ids, direction)
        self.elapsed[env_ids] = 0
        self._follow_phases()

    def on_placed(self, env_ids: torch.Tensor) -> None:
        # Straight on from where the robot looks at first.
        heading = self._env.robot.heading()
        self.heading = self.heading.index_copy(0, env_ids, heading[env_ids])
        super().on_placed(env_ids)

    def advance(self) -> None:
        if self._env.sim.ground is not None:
            self._measure_progress()
        self.elapsed += 1
        self._follow_phases()
        if self.cfg.heading:
            self._steer()

    def _follow_phases(self) -> None:
        # A step more than the last phase belongs to the last phase.
        phase = torch.bucketize(self.elapsed * self._env.step_dt, self._ends, right=True)
        factor = self._factors[phase.clamp(max=len(PHASES) - 1)].unsqueeze(1)
        velocity = self.direction * factor
        # A range need not be the same backwards. A velocity of 0 stays 0.
        bounded = velocity.clamp(self._low[:3], self._high[:3])
        self._set(torch.where(velocity == 0.0, velocity, bounded))
        self._steering = (factor != 0.0).squeeze(1)


def add_payload(env: Env, env_ids: torch.Tensor, random: Stream) -> None:
    """Add a drawn mass in ``payload_range`` to the base of each robot."""
    events.randomize_base_mass(env, env_ids, random, payload_range(env.sim))


def payload_range(sim: "Simulation") -> tuple[float, float]:
    """Return the range of the mass that is added to the base of a robot, kg.

    Its ends are the two fractions ``PAYLOAD_SHARE`` of the robot's total mass. A negative value
    removes mass, but at least the fraction ``LEAST_BASE`` of the base's own mass remains.
    """
    masses = sim.default_parameter("body_mass")[0]
    total = masses.sum().item()
    # The base is the first of these masses: they leave out MuJoCo's world body.
    most_off = (1.0 - LEAST_BASE) * masses[0].item()
    low, high = PAYLOAD_SHARE
    return max(low * total, -most_off), high * total


def check_can_be_harsh(task_id: str, cfg: TaskCfg) -> None:
    """Check that a task can be evaluated under harsh conditions.

    Raises:
        ValueError: If it has other commands than velocity commands.
    """
    if not kind_of(cfg).follows_velocity:
        raise ValueError(
            f"{task_id!r} has no velocity commands, or motions to imitate as well: "
            "leave out --harsh, which makes commands sudden"
        )


def harsh_cfg(cfg: TaskCfg, trained: TaskCfg) -> TaskCfg:
    """Return the configuration of an evaluation under harsh conditions.

    Args:
        cfg: Configuration of the usual evaluation.
        trained: Configuration of the training, with the ranges of commands.

    Returns:
        A changed copy of ``cfg``.
    """
    cfg = copy.deepcopy(cfg)
    cfg.max_action_delay = ACTION_DELAY
    on_rough_ground = cfg.scene.terrain is not None
    values = {each.name: getattr(trained.commands["velocity"], each.name) for each in FIELDS}
    command = HarshCommandCfg(**values, forwards=on_rough_ground)
    command.heading = on_rough_ground
    command.heading_fraction = 1.0
    command.kind_ranges = {}
    cfg.commands["velocity"] = command
    replaced = (events.randomize_friction, events.randomize_base_mass)
    cfg.events = {name: term for name, term in cfg.events.items() if term.func not in replaced}
    cfg.events["harsh_friction"] = EventTermCfg(
        events.randomize_friction, "reset", purpose="randomize", params={"range": FRICTION}
    )
    cfg.events["harsh_payload"] = EventTermCfg(add_payload, "startup")
    for name, group in cfg.observations.items():
        # Policies of other frameworks have no noise in their task, and get the same noise here.
        if group.noisy or name == "policy":
            group.noisy = True
            for term in group.terms.values():
                term.noise = max(term.noise, NOISE.get(term.func, 0.0))
    return cfg


def commanded_ranges(cfg: TaskCfg) -> dict[str, tuple[float, float]]:
    """Return the ranges of the commands of a harsh evaluation, by name, m/s and rad/s.

    On rough ground robots walk straight on, and have no commands to the side and to turn.

    Args:
        cfg: Configuration of the evaluation, from :func:`harsh_cfg`.
    """
    command = cfg.commands["velocity"]
    assert isinstance(command, HarshCommandCfg)
    if command.forwards:
        _, fastest = command.lin_vel_x
        return {"lin_vel_x": (0.0, fastest)}
    return {name: getattr(command, name) for name in VELOCITY_RANGES}


def clipped_commands(cfg: TaskCfg) -> list[str]:
    """Return the names of commands that are slower than in a usual evaluation.

    They are clipped to the ranges of the training.

    Args:
        cfg: Configuration of the evaluation, from :func:`harsh_cfg`.
    """
    command = cfg.commands["velocity"]
    assert isinstance(command, HarshCommandCfg)
    clipped = []
    for name, (low, high) in commanded_ranges(cfg).items():
        least, most = COMMAND_RANGES[name]
        # Robots that walk straight on have no commands to walk backwards.
        is_cut_below = low > least and not command.forwards
        if is_cut_below or high < most:
            clipped.append(name)
    return clipped
