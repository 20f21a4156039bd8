"""``Legged/Go2-Flat-v0`` as a task of several agents, of which there is one: the same numbers bit for bit."""

import gymnasium as gym
import torch

import legged_envs
from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg, SimulationCfg
from legged_envs.compat.isaac_lab.multi_agent import DirectMARLEnv, DirectMARLEnvCfg
from legged_envs.compat.isaac_lab.noise import NoiseCfg, NoiseModelCfg
from legged_envs.configuration import configclass
from legged_envs.managers import EventTermCfg
from legged_envs.mdp import costs, events, observations, rewards, terminations
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.robots import GO2

TASK_ID = "Example/Go2-Flat-Multi-Agent-v0"
AGENT = "policy"  # its noise is drawn from the stream "observation_noise/policy", as for the group of this name
HIPS = tuple(i for i, name in enumerate(GO2.joint_names) if "hip" in name)
DIAGONALS = tuple(tuple(map(GO2.foot_names.index, pair)) for pair in GO2.diagonals)
WIDTHS = (
    3,
    3,
    3,
    12,
    12,
    12,
)  # command, gravity, angular velocity, joint positions and velocities, action
SCALE = torch.tensor(
    [scale for scale, n in zip((1, 1, 0.25, 1, 0.05, 1), WIDTHS, strict=True) for _ in range(n)]
)
NOISE = torch.tensor(
    [
        noise
        for noise, n in zip((0.05, 0.2, 0.01, 0.5), (3, 3, 12, 12), strict=True)
        for _ in range(n)
    ]
)
REWARDS = {
    rewards.tracking_lin_vel: (2.5, {"sigma": 0.25}),
    rewards.tracking_ang_vel: (2.25, {"sigma": 0.25}),
    rewards.lin_vel_z: (-1.0, {}),
    rewards.ang_vel_xy: (-0.05, {}),
    rewards.orientation: (-2.0, {}),
    rewards.base_height: (-10.0, {"target": 0.30}),
    rewards.joint_torque: (-1e-4, {}),
    rewards.joint_acc: (-1e-7, {}),
    rewards.action_rate: (-0.02, {}),
    rewards.action_smoothness: (-0.005, {}),
    rewards.collision: (-0.5, {}),
    rewards.foot_air_time: (3.0, {"target": 0.2, "longest": 0.2}),
    rewards.foot_clearance: (-10.0, {"target": 0.06}),
    rewards.foot_slip: (-0.2, {}),
    rewards.joint_pos_stand_still: (-1.0, {}),
    rewards.joint_vel_stand_still: (-0.02, {}),
    rewards.foot_contact_stand_still: (1.5, {}),
    rewards.joint_pos_limits: (-1.0, {}),
    rewards.trot: (1.5, {"pairs": DIAGONALS, "phase_time": 0.16}),
    rewards.joint_deviation: (-0.3, {"joints": HIPS}),
}


def noisy_and_scaled(data, cfg, uniform):
    """Uniform noise in the units of the sensors, before the scales that networks like."""
    data[:, 3:33] += uniform(-(2.0**23), 2.0**23, 30) * (NOISE * 2.0**-23)
    return (data * SCALE).clamp(-100.0, 100.0)


@configclass
class EventCfg:
    base_mass = EventTermCfg(events.randomize_base_mass, "startup", params={"range": (-1.0, 2.0)})
    base_com = EventTermCfg(events.randomize_base_com, "startup", params={"range": (-0.03, 0.03)})
    friction = EventTermCfg(
        events.randomize_friction, "reset", purpose="randomize", params={"range": (0.5, 1.25)}
    )
    gains = EventTermCfg(
        events.randomize_gains, "reset", purpose="randomize", params={"range": (0.9, 1.1)}
    )
    root = EventTermCfg(events.reset_root, "reset", params={"velocity": 0.3})
    joints = EventTermCfg(events.reset_joints, "reset", params={"range": 0.2})
    push = EventTermCfg(events.push, "interval", interval_s=(8.0, 12.0), params={"velocity": 0.7})


@configclass
class Go2FlatCfg(DirectMARLEnvCfg):
    episode_length_s = 20.0
    decimation = 4
    possible_agents = (AGENT,)
    action_spaces = {AGENT: 12}  # noqa: RUF012
    observation_spaces = {AGENT: gym.spaces.Box(-100.0, 100.0, (45,))}  # noqa: RUF012
    state_space = gym.spaces.Box(-100.0, 100.0, (68,))
    sim: SimulationCfg = SimulationCfg(dt=0.005)
    scene: InteractiveSceneCfg = InteractiveSceneCfg(num_envs=64)
    robot = GO2
    actions = {"joint_position": JointPositionCfg(scale=0.6)}  # noqa: RUF012
    commands = {"velocity": VelocityCommandCfg(standing_fraction=0.15)}  # noqa: RUF012
    events: EventCfg = EventCfg()
    observation_noise_model = {AGENT: NoiseModelCfg(noise_cfg=NoiseCfg(func=noisy_and_scaled))}  # noqa: RUF012
    cost_limits = dict.fromkeys(
        ("joint_position", "joint_velocity", "joint_torque", "body_contact", "base_orientation"),
        0.025,
    ) | {"foot_slip": 0.05}


class Go2Flat(DirectMARLEnv):
    cfg: Go2FlatCfg

    def __init__(self, cfg, render_mode=None, **kwargs):
        super().__init__(cfg, render_mode, **kwargs)
        self.weights = torch.tensor([weight for weight, _ in REWARDS.values()]).mul_(self.step_dt)
        self.scale = SCALE.clone()
        self.wrong_steps = torch.zeros(self.num_envs, 2, dtype=torch.int32)
        self.grace_steps = round(0.1 / self.step_dt)

    def _own(self):
        terms = (observations.command, observations.projected_gravity, observations.base_ang_vel)
        terms += (observations.joint_pos, observations.joint_vel, observations.last_action)
        return torch.cat([term(self) for term in terms], dim=1)

    def _get_observations(self):
        return {AGENT: self._own()}

    def _get_states(self):
        terms = (observations.base_lin_vel, observations.base_height, observations.foot_contact)
        feet_and_model = [term(self) for term in terms]
        feet_and_model += [observations.foot_height(self) * 5.0, observations.foot_air_time(self)]
        feet_and_model += [observations.friction(self), observations.base_mass_offset(self)]
        feet_and_model += [observations.base_com_offset(self) * 20.0, observations.gain_scale(self)]
        return torch.cat([self._own() * self.scale, *feet_and_model], dim=1).clamp(-100.0, 100.0)

    def _get_dones(self):
        wrong = torch.stack((terminations.fallen(self), terminations.illegal_contact(self)), dim=1)
        self.wrong_steps = (self.wrong_steps + 1) * wrong
        fallen = (self.wrong_steps > self.grace_steps).any(1)
        return {AGENT: fallen}, {AGENT: self.episode_length_buf >= self.max_episode_length}

    def _get_rewards(self):
        terms = torch.stack([term(self, **params) for term, (_, params) in REWARDS.items()], dim=1)
        return {AGENT: (terms * self.weights).sum(1).clamp_min(0.0)}

    def _get_costs(self):
        return {
            "joint_position": costs.joint_position(self, soft_limit=0.95),
            "joint_velocity": costs.joint_velocity(self, soft_limit=0.8),
            "joint_torque": costs.joint_torque(self, soft_limit=0.8),
            "body_contact": costs.body_contact(self),
            "base_orientation": costs.base_orientation(self),
            "foot_slip": costs.foot_slip(self),
        }

    def _reset_idx(self, env_ids):
        super()._reset_idx(env_ids)
        self.wrong_steps[env_ids] = 0


legged_envs.register(TASK_ID, Go2Flat, Go2FlatCfg)

if __name__ == "__main__":
    envs = gym.make_vec(TASK_ID, num_envs=16)
    envs.reset(seed=0)
    for _ in range(100):
        _, reward, _, _, info = envs.step(envs.action_space.sample())
    print(f"reward {reward.mean():.3f}, cost {info['cost'].mean():.3f}")
