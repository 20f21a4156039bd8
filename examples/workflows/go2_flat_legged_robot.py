"""Legged/Go2-Flat-v0 as LeggedGym-Ex's users write a task: a configuration of nested classes, and a robot class with a
``_reward_<name>`` for each reward that LeggedGym-Ex has not got or has in another form."""

import math
from typing import ClassVar

import gymnasium as gym
import torch

import legged_envs
from legged_envs.compat.legged_gym import LeggedRobot, LeggedRobotCfg
from legged_envs.mdp import observations, rewards
from legged_envs.robots import GO2

POLICY = (
    observations.command,
    observations.projected_gravity,
    observations.base_ang_vel,
    observations.joint_pos,
)
POLICY = (*POLICY, observations.joint_vel, observations.last_action)
PRIVILEGED = (
    observations.base_lin_vel,
    observations.base_height,
    observations.foot_contact,
    observations.foot_height,
)
PRIVILEGED = (
    *PRIVILEGED,
    observations.foot_air_time,
    observations.friction,
    observations.base_mass_offset,
)
PRIVILEGED = (*PRIVILEGED, observations.base_com_offset, observations.gain_scale)
NOISE = torch.tensor(
    [0.05] * 3 + [0.2] * 3 + [0.01] * 12 + [0.5] * 12
)  # of gravity, turning, joints
SCALES = torch.tensor([1.0] * 6 + [0.25] * 3 + [1.0] * 12 + [0.05] * 12 + [1.0] * 12)
PRIVILEGED_SCALES = torch.tensor([1.0] * 8 + [5.0] * 4 + [1.0] * 6 + [20.0] * 3 + [1.0] * 2)


class Go2Cfg(LeggedRobotCfg):
    class env(LeggedRobotCfg.env):
        num_observations = 45
        num_privileged_obs = 68

    class commands(LeggedRobotCfg.commands):
        heading_command = False
        num_commands = 3
        zero_cmd_prob = 0.15
        small_command = 0.0

        class ranges(LeggedRobotCfg.commands.ranges):
            lin_vel_y = (-0.5, 0.5)

    class init_state(LeggedRobotCfg.init_state):
        yaw_random_scale = math.pi
        velocity_random_scale = 0.3

    class control(LeggedRobotCfg.control):
        action_scale = 0.6

    class asset(LeggedRobotCfg.asset):
        name = "go2"

    class rewards(LeggedRobotCfg.rewards):
        base_height_target = 0.30
        soft_dof_pos_limit = 0.9

        class scales(LeggedRobotCfg.rewards.scales):
            tracking_lin_vel = 2.5
            tracking_ang_vel = 2.25
            lin_vel_z = -1.0
            ang_vel_xy = -0.05
            orientation = -2.0
            base_height = -10.0
            torques = -1e-4
            dof_acc = -1e-7
            action_rate = -0.02
            action_smoothness = -0.005
            collision = -0.5
            feet_air_time = 3.0
            foot_clearance = -10.0
            feet_slip = -0.2
            dof_pos_stand_still = -1.0
            dof_vel_stand_still = -0.02
            feet_contact_stand_still = 1.5
            dof_pos_limits = -1.0
            trot = 1.5
            hip_pos = -0.3

        class params(LeggedRobotCfg.rewards.params):
            feet_air_time: ClassVar = {"target": 0.2, "longest": 0.2}
            foot_clearance: ClassVar = {"target": 0.06}

    class costs(LeggedRobotCfg.costs):
        class limits:
            joint_position = joint_velocity = joint_torque = body_contact = base_orientation = 0.025
            foot_slip = 0.05

        class params:
            joint_position: ClassVar = {"soft_limit": 0.95}
            joint_velocity: ClassVar = {"soft_limit": 0.8}
            joint_torque: ClassVar = {"soft_limit": 0.8}

    class domain_rand(LeggedRobotCfg.domain_rand):
        added_mass_range = (-1.0, 2.0)
        com_pos_x_range = com_pos_y_range = com_pos_z_range = (-0.03, 0.03)
        randomize_pd_gain = True
        kp_range = kd_range = (0.9, 1.1)
        push_interval_s = (8.0, 12.0)
        max_push_vel_xy = 0.7

    class normalization(LeggedRobotCfg.normalization):
        clip_actions = 1.0


DIAGONALS = tuple(tuple(map(GO2.foot_names.index, pair)) for pair in GO2.diagonals)
HIPS = tuple(i for i, name in enumerate(GO2.joint_names) if "hip" in name)


class Go2(LeggedRobot):
    def _reward_trot(self) -> torch.Tensor:
        return rewards.trot(self.core, DIAGONALS, phase_time=0.16)

    def _reward_hip_pos(self) -> torch.Tensor:
        return rewards.joint_deviation(self.core, HIPS)

    def compute_observations(self) -> None:
        policy = torch.cat([term(self.core) for term in POLICY], dim=1)
        privileged = torch.cat([term(self.core) for term in PRIVILEGED], dim=1)
        self.privileged_obs_buf = torch.cat(
            (policy * SCALES, privileged * PRIVILEGED_SCALES), dim=1
        )
        if self.add_noise:
            policy[:, 3:33] += self._noise(30) * NOISE
        self.obs_buf = policy * SCALES


legged_envs.register("Example/Go2-Flat-LeggedRobot-v0", Go2, Go2Cfg)


def main() -> None:
    envs = gym.make_vec("Example/Go2-Flat-LeggedRobot-v0", num_envs=4)
    print(envs.reset(seed=0)[0].shape)
    cfg = Go2Cfg()
    cfg.env.num_envs = 4
    robot = Go2(cfg, {"dt": 0.005, "substeps": 1}, "cpu", headless=True)
    robot.reset()
    for _ in range(50):
        obs, privileged_obs, reward, _, extras = robot.step(torch.zeros(4, robot.num_actions))
    print(
        obs.shape,
        privileged_obs.shape,
        reward.mean().item(),
        robot.commands[0],
        extras["cost"].mean().item(),
    )


if __name__ == "__main__":
    main()
