"""Velocity tracking and navigation on rough ground, with and without a scan of its heights."""

import copy
import math

from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import (
    CostTermCfg,
    CurriculumTermCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from legged_envs.mdp import costs, curricula, observations, rewards, terminations
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.goal_command import GoalCommandCfg
from legged_envs.robots import A1, ANYMAL_C, G1, GO1, GO2, K1, TRON1_PF, RobotCfg
from legged_envs.sim import SceneCfg
from legged_envs.tasks.biped import biped
from legged_envs.tasks.training_defaults import TrainingDefaults, quadruped_rough_training
from legged_envs.tasks.velocity import quadruped_flat, reach
from legged_envs.terrains.cfg import MIXTURE, KindCfg, TerrainCfg

NAVIGATION_REWARDS = (
    "lin_vel_z",
    "action_rate",
    "action_smoothness",
    "collision",
    "joint_acc",
    "joint_pos_limits",
    "joint_torque",
)
"""Names of the rewards of a velocity task that the navigation task keeps.

They concern the quality of the motion. Rewards for where the robot moves are replaced.
"""


def on_terrain(cfg: TaskCfg, terrain: TerrainCfg, sees: bool = True) -> TaskCfg:
    """Put a velocity task on rough ground.

    Args:
        cfg: The task on flat ground. It is changed in place.
        terrain: Configuration of the rough ground.
        sees: True if the policy observes the heights of the ground around the robot. The critic
            observes them in any case.

    Returns:
        The argument ``cfg``.
    """
    cfg.scene = SceneCfg(terrain=terrain)
    velocity = cfg.commands["velocity"]
    assert isinstance(velocity, VelocityCommandCfg)
    # With a constant yaw rate, robots would walk in circles and never cross their tile.
    velocity.heading = True
    velocity.standing_fraction = 0.02
    scan = ObservationTermCfg(observations.height_scan, noise=0.05, scale=2.0, mirror="scan")
    for name, group in cfg.observations.items():
        if sees or name == "critic":
            # A copy, so that a change to a term of one group leaves the other group as it is.
            group.terms["height_scan"] = copy.deepcopy(scan)
    # Robots start up to 1 m from the middle of their tile, as in legged_gym.
    cfg.events["root"].params["position"] = 1.0
    cfg.terminations["left_terrain"] = TerminationTermCfg(terminations.left_terrain, time_out=True)
    cfg.curriculum["terrain_levels"] = CurriculumTermCfg(curricula.terrain_levels)
    cfg.costs["stumble"] = CostTermCfg(costs.stumble, limit=0.025)
    return cfg


def quadruped_rough(robot: RobotCfg, sees: bool = True) -> TaskCfg:
    """Make the velocity task of a quadruped on slopes, rubble and stairs.

    Args:
        robot: The quadruped.
        sees: True if the policy observes the heights of the ground around the robot.
    """
    terrain = TerrainCfg({**MIXTURE, "rubble": 0.1}, first_levels=(0, 1))
    cfg = on_terrain(quadruped_flat(robot), terrain, sees)
    # Each joint has its own range, up to its torque limit. With the range of the flat task, knees
    # cannot lift a foot over a step.
    scale = tuple(round(angle, 1) for angle in reach(robot))
    cfg.actions["joint_position"] = JointPositionCfg(scale)
    # Height and attitude of the base must follow the ground, so deviations cost less than on a
    # plane. Feet must be lifted higher.
    weights = {
        "base_height": -2.0,
        "lin_vel_z": -0.25,
        "orientation": -0.3,
        "foot_clearance": -3.0,
    }
    for name, weight in weights.items():
        cfg.rewards[name].weight = weight
    cfg.rewards["foot_clearance"].params["target"] = 0.1
    return cfg


def go2_rough() -> TaskCfg:
    """Make the task of the Unitree Go2 on rough ground, with a height scan."""
    return quadruped_rough(GO2)


def go2_blind() -> TaskCfg:
    """Make the task of the Unitree Go2 on rough ground, without a height scan for the policy."""
    return quadruped_rough(GO2, sees=False)


def go1_rough() -> TaskCfg:
    """Make the task of the Unitree Go1 on rough ground, with a height scan."""
    return quadruped_rough(GO1)


def a1_rough() -> TaskCfg:
    """Make the task of the Unitree A1 on rough ground, with a height scan."""
    return quadruped_rough(A1)


def anymal_c_rough() -> TaskCfg:
    """Make the task of the ANYmal C on rough ground, with a height scan."""
    return quadruped_rough(ANYMAL_C)


def biped_rough(robot: RobotCfg) -> TaskCfg:
    """Make the velocity task of a biped on rough ground, with a height scan.

    The ground is gentler than for quadrupeds. Heights of steps and spikes are proportional to
    the robot's height. At the highest level, they are 12 cm and 6 cm for a G1.
    """
    size = robot.base_height / G1.base_height
    step_height = (round(0.02 * size, 3), round(0.12 * size, 3))
    spike_height = (round(0.02 * size, 3), round(0.06 * size, 3))
    kinds: dict[str, float | KindCfg] = {
        "slope_up": 0.2,
        "slope_down": 0.2,
        "rough": KindCfg(0.2, {"spread": spike_height}),
        "stairs_up": KindCfg(0.2, {"height": step_height}),
        "stairs_down": KindCfg(0.2, {"height": step_height}),
    }
    cfg = on_terrain(biped(robot), TerrainCfg(kinds, first_levels=(0, 1)))
    cfg.rewards["base_height"].weight *= 0.2
    cfg.rewards["lin_vel_z"].weight = -0.5
    return cfg


def g1_rough() -> TaskCfg:
    """Make the task of the Unitree G1 on rough ground, with a height scan."""
    return biped_rough(G1)


def k1_rough() -> TaskCfg:
    """Make the task of the Booster K1 on rough ground, with a height scan."""
    return biped_rough(K1)


def tron1_pf_rough() -> TaskCfg:
    """Make the task of TRON1 with point feet on rough ground, with a height scan."""
    return biped_rough(TRON1_PF)


def go2_nav() -> TaskCfg:
    """Make the task of a Go2 that must reach a goal pose on rough ground within 8 s.

    The robot chooses its path. Source: Rudin et al. 2022, "Advanced skills by learning locomotion
    and local navigation end-to-end", and LeggedGym-Ex ``go2_nav``.
    """
    cfg = go2_rough()
    cfg.episode_length_s = 8.0
    cfg.only_positive_rewards = False
    cfg.commands = {"goal": GoalCommandCfg()}
    cfg.curriculum = {"terrain_levels": CurriculumTermCfg(curricula.goal_levels)}
    for group in cfg.observations.values():
        terms = {"goal": _goal_observation(), **group.terms}
        del terms["command"]
        group.terms = terms
    kept = {name: cfg.rewards[name] for name in NAVIGATION_REWARDS}
    cfg.rewards = {
        **kept,
        "goal_position": RewardTermCfg(rewards.goal_position, 10.0),
        "goal_heading": RewardTermCfg(rewards.goal_heading, 5.0),
        "move_in_direction": RewardTermCfg(rewards.move_in_direction, 0.5),
        "stall": RewardTermCfg(rewards.stall, -1.0),
        "stand_still": RewardTermCfg(rewards.goal_stand_still, -1.0),
        "termination": RewardTermCfg(rewards.termination, -200.0),
    }
    return cfg


def go2_nav_training() -> TrainingDefaults:
    """Return the training defaults of ``Legged/Go2-Nav-v0``, which equal the defaults of rough
    ground."""
    return quadruped_rough_training()


def _goal_observation() -> ObservationTermCfg:
    """Make the observation of way, m, and angle, rad, to the goal and of the time left, s."""
    scale = (0.2, 0.2, 0.2, 1 / math.pi, 0.25)
    return ObservationTermCfg(
        observations.command, params={"name": "goal"}, scale=scale, mirror="goal"
    )
