"""``Legged/Go2-Flat-v0`` as OmniIsaacGymEnvs' ``RLTask``: buffers that methods fill, registered, and stepped by
``VecEnvRLGames``. Commands and pushes come before the evaluation, as in the task with ``{"advance_first": True}``."""

from math import pi

import gymnasium as gym
import torch

import legged_envs
from legged_envs.compat.omni_isaac_gym.rl_task import RLTask, SimConfig
from legged_envs.compat.omni_isaac_gym.vec_env import VecEnvRLGames
from legged_envs.managers import CostTermCfg, EventTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.managers import ObservationGroupCfg as Group
from legged_envs.managers import ObservationTermCfg as Observed
from legged_envs.mdp import costs, events, observations, rewards, terminations
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.robots import GO2

DIAGONALS = ((0, 3), (1, 2))  # pairs of feet, of FR, FL, RR, RL
HIPS = (0, 3, 6, 9)
REWARDS = {
    "tracking_lin_vel": (2.5, {"sigma": 0.25}),
    "tracking_ang_vel": (2.25, {"sigma": 0.25}),
    "lin_vel_z": (-1.0, {}),
    "ang_vel_xy": (-0.05, {}),
    "orientation": (-2.0, {}),
    "base_height": (-10.0, {"target": 0.30}),
    "joint_torque": (-1e-4, {}),
    "joint_acc": (-1e-7, {}),
    "action_rate": (-0.02, {}),
    "action_smoothness": (-0.005, {}),
    "collision": (-0.5, {}),
    "foot_air_time": (3.0, {"target": 0.2, "longest": 0.2}),
    "foot_clearance": (-10.0, {"target": 0.06}),
    "foot_slip": (-0.2, {}),
    "joint_pos_stand_still": (-1.0, {}),
    "joint_vel_stand_still": (-0.02, {}),
    "foot_contact_stand_still": (1.5, {}),
    "joint_pos_limits": (-1.0, {}),
    "trot": (1.5, {"pairs": DIAGONALS, "phase_time": 0.16}),
    "joint_deviation": (-0.3, {"joints": HIPS}),
}
COSTS = {
    "joint_position": (0.025, {"soft_limit": 0.95}),
    "joint_velocity": (0.025, {"soft_limit": 0.8}),
    "joint_torque": (0.025, {"soft_limit": 0.8}),
    "body_contact": (0.025, {}),
    "base_orientation": (0.025, {}),
    "foot_slip": (0.05, {}),
}


def config() -> SimConfig:
    policy = {
        "command": Observed(observations.command),
        "gravity": Observed(observations.projected_gravity, noise=0.05),
        "ang_vel": Observed(observations.base_ang_vel, noise=0.2, scale=0.25),
        "joint_pos": Observed(observations.joint_pos, noise=0.01),
        "joint_vel": Observed(observations.joint_vel, noise=0.5, scale=0.05),
        "action": Observed(observations.last_action),
    }
    privileged = {
        "lin_vel": Observed(observations.base_lin_vel),
        "height": Observed(observations.base_height),
        "foot_contact": Observed(observations.foot_contact),
        "foot_height": Observed(observations.foot_height, scale=5.0),
        "foot_air_time": Observed(observations.foot_air_time),
        "friction": Observed(observations.friction),
        "base_mass": Observed(observations.base_mass_offset),
        "base_com": Observed(observations.base_com_offset, scale=20.0),
        "gains": Observed(observations.gain_scale),
    }
    velocity = {"lin_vel_x": (-1.0, 1.0), "lin_vel_y": (-0.5, 0.5), "ang_vel_z": (-1.0, 1.0)}
    task = {
        "env": {
            "numEnvs": 64,
            "episodeLength": 1000,
            "controlFrequencyInv": 4,
            "clipObservations": 100.0,
        },
        "sim": {"dt": 0.005},
        "robot": GO2,
        "actions": {"joint_position": JointPositionCfg(scale=0.6)},
        "commands": {"velocity": VelocityCommandCfg(**velocity, standing_fraction=0.15)},
        "observations": {
            "policy": Group(policy, noisy=True),
            "critic": Group({**policy, **privileged}),
        },
        "rewards": {
            name: RewardTermCfg(getattr(rewards, name), *value) for name, value in REWARDS.items()
        },
        "costs": {name: CostTermCfg(getattr(costs, name), *value) for name, value in COSTS.items()},
        "terminations": {
            "fallen": TerminationTermCfg(terminations.fallen, grace_s=0.1),
            "illegal_contact": TerminationTermCfg(terminations.illegal_contact, grace_s=0.1),
        },
        "events": {
            "base_mass": EventTermCfg(
                events.randomize_base_mass, "startup", params={"range": (-1.0, 2.0)}
            ),
            "base_com": EventTermCfg(
                events.randomize_base_com, "startup", params={"range": (-0.03, 0.03)}
            ),
            "friction": EventTermCfg(
                events.randomize_friction, "reset", params={"range": (0.5, 1.25)}
            ),
            "gains": EventTermCfg(events.randomize_gains, "reset", params={"range": (0.9, 1.1)}),
            "root": EventTermCfg(
                events.reset_root, "reset", params={"yaw": (-pi, pi), "velocity": 0.3}
            ),
            "joints": EventTermCfg(events.reset_joints, "reset", params={"range": 0.2}),
            "push": EventTermCfg(
                events.push, "interval", interval_s=(8.0, 12.0), params={"velocity": 0.7}
            ),
        },
    }
    return SimConfig({"task": task})


class Go2FlatTask(RLTask):
    """The terms of the configuration are evaluated before the methods, which take what they want of them."""

    def __init__(self, name, sim_config, env, offset=None):
        self._sim_config = sim_config
        self._num_observations, self._num_states, self._num_actions = 45, 68, 12
        RLTask.__init__(self, name, env)

    def pre_physics_step(self, actions):
        self.sim.set_joint_targets(self.actions.process(actions))

    def get_observations(self):
        self.obs_buf[:] = self.observations.groups["policy"].value

    def get_states(self):
        return self.observations.groups["critic"].value

    def calculate_metrics(self):
        self.rew_buf[:] = self.rewards.total

    def is_done(self):
        self.reset_buf[:] = self.terminations.terminated

    def is_timeout(self):
        return torch.zeros_like(
            self.reset_buf
        )  # who is flagged has fallen; episodeLength itself cuts the others off


legged_envs.register("Example/Go2-Flat-RLTask-v0", Go2FlatTask, config)

if __name__ == "__main__":
    print(gym.make_vec("Example/Go2-Flat-RLTask-v0", num_envs=64))
    env = VecEnvRLGames(headless=True)
    env.set_task(Go2FlatTask("Go2Flat", config(), env), backend="torch")
    env.seed(0)
    obs, returns = env.reset(), torch.zeros(env.num_envs)
    for _ in range(200):
        obs, reward, resets, extras = env.step(torch.randn(env.num_envs, 12).clamp(-1.0, 1.0))
        returns += reward
    print(
        f"observations {tuple(obs['obs'].shape)}, states {tuple(obs['states'].shape)}, return {returns.mean():.3f}"
    )
