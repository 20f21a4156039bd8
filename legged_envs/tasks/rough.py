"""Velocity tracking over rough ground, with and without sight of it."""

import copy
import math
from functools import partial
from typing import Any

from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CostTermCfg, CurriculumTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.managers.observation import ObservationTermCfg
from legged_envs.mdp import costs, curricula, observations, rewards, terminations
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.goal_command import GoalCommandCfg
from legged_envs.robots import A1, ANYMAL_C, G1, GO1, GO2, K1, TRON1_PF, RobotCfg
from legged_envs.sim import SceneCfg
from legged_envs.tasks.velocity import biped, quadruped_flat, reach
from legged_envs.terrains.cfg import MIXTURE, KindCfg, TerrainCfg


def on_terrain(cfg: TaskCfg, terrain: TerrainCfg, sees: bool = True) -> TaskCfg:
    """A velocity task on rough ground, whose robot ``sees`` heights around it; its critic does in any case."""
    cfg.scene = SceneCfg(terrain=terrain)
    velocity = cfg.commands["velocity"]
    assert isinstance(velocity, VelocityCommandCfg)
    velocity.heading, velocity.standing_fraction = True, 0.02
    scan = ObservationTermCfg(observations.height_scan, noise=0.05, scale=2.0, mirror="scan")
    for name, group in cfg.observations.items():
        if sees or name == "critic":
            group.terms["height_scan"] = copy.deepcopy(scan)
    cfg.events["root"].params["position"] = 1.0
    cfg.terminations["left_terrain"] = TerminationTermCfg(terminations.left_terrain, time_out=True)
    cfg.curriculum["terrain_levels"] = CurriculumTermCfg(curricula.terrain_levels)
    cfg.costs["stumble"] = CostTermCfg(costs.stumble, limit=0.025)
    return cfg


def quadruped_rough(robot: RobotCfg, sees: bool = True) -> TaskCfg:
    """A quadruped walks over slopes, rubble and stairs. Its knees bend as far as their torque allows: with the range of
    the flat task they cannot lift a foot over a step."""
    terrain = TerrainCfg({**MIXTURE, "rubble": 0.1}, first_levels=(0, 1))
    cfg = on_terrain(quadruped_flat(robot), terrain, sees)
    cfg.actions["joint_position"] = JointPositionCfg(
        tuple(round(angle, 1) for angle in reach(robot))
    )
    weights = {"base_height": -2.0, "lin_vel_z": -0.25, "orientation": -0.3, "foot_clearance": -3.0}
    for name, weight in weights.items():
        cfg.rewards[name].weight = weight
    cfg.rewards["foot_clearance"].params["target"] = 0.1
    return cfg


go2_rough, go1_rough, a1_rough, anymal_c_rough = (
    partial(quadruped_rough, robot) for robot in (GO2, GO1, A1, ANYMAL_C)
)
go2_blind = partial(quadruped_rough, GO2, sees=False)


def biped_rough(robot: RobotCfg) -> TaskCfg:
    """A biped walks over gentler ground, which it sees; steps and spikes go with its height, those of the G1 are 12 cm
    and 6 cm high at the highest level."""
    size = robot.base_height / G1.base_height
    low: dict[str, Any] = {"height": (round(0.02 * size, 3), round(0.12 * size, 3))}
    spikes: dict[str, Any] = {"spread": (round(0.02 * size, 3), round(0.06 * size, 3))}
    kinds = {"slope_up": 0.2, "slope_down": 0.2, "rough": KindCfg(0.2, spikes)}
    kinds |= {name: KindCfg(0.2, low) for name in ("stairs_up", "stairs_down")}
    cfg = on_terrain(biped(robot), TerrainCfg(kinds, first_levels=(0, 1)))
    cfg.rewards["base_height"].weight *= 0.2
    cfg.rewards["lin_vel_z"].weight = -0.5
    return cfg


g1_rough, k1_rough, tron1_pf_rough = (partial(biped_rough, robot) for robot in (G1, K1, TRON1_PF))


def go2_nav() -> TaskCfg:
    """Go2 reaches a pose on rough ground in 8 s, how it likes (Rudin et al. 2022, LeggedGym-Ex ``go2_nav``)."""
    cfg = go2_rough()
    cfg.episode_length_s, cfg.only_positive_rewards = 8.0, False
    cfg.commands = {"goal": GoalCommandCfg()}
    cfg.curriculum = {"terrain_levels": CurriculumTermCfg(curricula.goal_levels)}
    scale = (0.2, 0.2, 0.2, 1 / math.pi, 0.25)
    goal = ObservationTermCfg(
        observations.command, params={"name": "goal"}, scale=scale, mirror="goal"
    )
    for group in cfg.observations.values():
        group.terms = {
            "goal": copy.deepcopy(goal),
            **{n: t for n, t in group.terms.items() if n != "command"},
        }
    kept = (
        "lin_vel_z",
        "action_rate",
        "action_smoothness",
        "collision",
        "dof_acc",
        "dof_pos_limits",
        "torques",
    )
    cfg.rewards = {name: cfg.rewards[name] for name in kept} | {
        "goal_position": RewardTermCfg(rewards.goal_position, 10.0),
        "goal_heading": RewardTermCfg(rewards.goal_heading, 5.0),
        "move_in_direction": RewardTermCfg(rewards.move_in_direction, 0.5),
        "stall": RewardTermCfg(rewards.stall, -1.0),
        "stand_still": RewardTermCfg(rewards.goal_stand_still, -1.0),
        "termination": RewardTermCfg(rewards.termination, -200.0),
    }
    return cfg
