"""The task Legged/Go2-Flat-v0 as Isaac Lab's manager-based workflow writes one."""

import gymnasium as gym

import legged_envs
from legged_envs.compat.isaac_lab import mdp as mdp
from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg
from legged_envs.compat.isaac_lab.manager_based import EventTermCfg as EventTerm
from legged_envs.compat.isaac_lab.manager_based import ManagerBasedRLEnv, ManagerBasedRLEnvCfg
from legged_envs.compat.isaac_lab.manager_based import ObservationGroupCfg as ObsGroup
from legged_envs.compat.isaac_lab.manager_based import ObservationTermCfg as ObsTerm
from legged_envs.compat.isaac_lab.noise import UniformNoiseCfg as Unoise
from legged_envs.configuration import configclass
from legged_envs.managers import CostTermCfg as CostTerm
from legged_envs.managers import RewardTermCfg as RewTerm
from legged_envs.managers import TerminationTermCfg as DoneTerm
from legged_envs.mdp import costs, events, observations, rewards, terminations
from legged_envs.robots import GO2

VelocityCfg = mdp.UniformVelocityCommandCfg
HIPS = tuple(i for i, name in enumerate(GO2.joint_names) if "hip" in name)
DIAGONALS = tuple(tuple(map(GO2.foot_names.index, pair)) for pair in GO2.diagonals)


@configclass
class SceneCfg(InteractiveSceneCfg):
    robot = GO2


@configclass
class CommandsCfg:
    base_velocity = VelocityCfg(
        resampling_time_range=(10.0, 10.0),
        rel_standing_envs=0.15,
        ranges=VelocityCfg.Ranges(
            lin_vel_x=(-1.0, 1.0), lin_vel_y=(-0.5, 0.5), ang_vel_z=(-1.0, 1.0)
        ),
    )


@configclass
class ActionsCfg:
    joint_position = mdp.JointPositionActionCfg(asset_name="robot", joint_names=[".*"], scale=0.6)


@configclass
class PolicyCfg(ObsGroup):
    command = ObsTerm(func=mdp.generated_commands, params={"command_name": "base_velocity"})
    gravity = ObsTerm(func=mdp.projected_gravity, noise=Unoise(n_min=-0.05, n_max=0.05))
    ang_vel = ObsTerm(func=mdp.base_ang_vel, noise=Unoise(n_min=-0.2, n_max=0.2), scale=0.25)
    joint_pos = ObsTerm(func=mdp.joint_pos_rel, noise=Unoise(n_min=-0.01, n_max=0.01))
    joint_vel = ObsTerm(func=mdp.joint_vel_rel, noise=Unoise(n_min=-0.5, n_max=0.5), scale=0.05)
    action = ObsTerm(func=mdp.last_action)

    def __post_init__(self):
        self.enable_corruption = True


@configclass
class CriticCfg(PolicyCfg):
    lin_vel = ObsTerm(func=mdp.base_lin_vel)
    height = ObsTerm(func=mdp.base_pos_z)
    foot_contact = ObsTerm(func=observations.foot_contact)
    foot_height = ObsTerm(func=observations.foot_height, scale=5.0)
    foot_air_time = ObsTerm(func=observations.foot_air_time)
    friction = ObsTerm(func=observations.friction)
    base_mass = ObsTerm(func=observations.base_mass_offset)
    base_com = ObsTerm(func=observations.base_com_offset, scale=20.0)
    gains = ObsTerm(func=observations.gain_scale)

    def __post_init__(self):
        self.enable_corruption = False


@configclass
class ObservationsCfg:
    policy: PolicyCfg = PolicyCfg()
    critic: CriticCfg = CriticCfg()


@configclass
class EventsCfg:
    base_mass = EventTerm(
        func=events.randomize_base_mass, mode="startup", params={"range": (-1.0, 2.0)}
    )
    base_com = EventTerm(
        func=events.randomize_base_com, mode="startup", params={"range": (-0.03, 0.03)}
    )
    friction = EventTerm(
        events.randomize_friction, "reset", purpose="randomize", params={"range": (0.5, 1.25)}
    )
    gains = EventTerm(
        events.randomize_gains, "reset", purpose="randomize", params={"range": (0.9, 1.1)}
    )
    root = EventTerm(func=events.reset_root, mode="reset", params={"velocity": 0.3})
    joints = EventTerm(func=events.reset_joints, mode="reset", params={"range": 0.2})
    push = EventTerm(
        func=events.push, mode="interval", interval_range_s=(8.0, 12.0), params={"velocity": 0.7}
    )


@configclass
class RewardsCfg:
    tracking_lin_vel = RewTerm(func=rewards.tracking_lin_vel, weight=2.5, params={"sigma": 0.25})
    tracking_ang_vel = RewTerm(func=rewards.tracking_ang_vel, weight=2.25, params={"sigma": 0.25})
    lin_vel_z = RewTerm(func=mdp.lin_vel_z_l2, weight=-1.0)
    ang_vel_xy = RewTerm(func=mdp.ang_vel_xy_l2, weight=-0.05)
    orientation = RewTerm(func=mdp.flat_orientation_l2, weight=-2.0)
    base_height = RewTerm(func=mdp.base_height_l2, weight=-10.0, params={"target_height": 0.30})
    joint_torque = RewTerm(func=mdp.joint_torques_l2, weight=-1e-4)
    joint_acc = RewTerm(func=rewards.joint_acc, weight=-1e-7)
    action_rate = RewTerm(func=mdp.action_rate_l2, weight=-0.02)
    action_smoothness = RewTerm(func=rewards.action_smoothness, weight=-0.005)
    collision = RewTerm(func=rewards.collision, weight=-0.5)
    foot_air_time = RewTerm(
        func=rewards.foot_air_time, weight=3.0, params={"target": 0.2, "longest": 0.2}
    )
    foot_clearance = RewTerm(func=rewards.foot_clearance, weight=-10.0, params={"target": 0.06})
    foot_slip = RewTerm(func=rewards.foot_slip, weight=-0.2)
    joint_pos_stand_still = RewTerm(func=rewards.joint_pos_stand_still, weight=-1.0)
    joint_vel_stand_still = RewTerm(func=rewards.joint_vel_stand_still, weight=-0.02)
    foot_contact_stand_still = RewTerm(func=rewards.foot_contact_stand_still, weight=1.5)
    joint_pos_limits = RewTerm(func=rewards.joint_pos_limits, weight=-1.0)
    trot = RewTerm(func=rewards.trot, weight=1.5, params={"pairs": DIAGONALS, "phase_time": 0.16})
    hip_pos = RewTerm(func=rewards.joint_deviation, weight=-0.3, params={"joints": HIPS})


@configclass
class CostsCfg:
    joint_position = CostTerm(func=costs.joint_position, limit=0.025, params={"soft_limit": 0.95})
    joint_velocity = CostTerm(func=costs.joint_velocity, limit=0.025, params={"soft_limit": 0.8})
    joint_torque = CostTerm(func=costs.joint_torque, limit=0.025, params={"soft_limit": 0.8})
    body_contact = CostTerm(func=costs.body_contact, limit=0.025)
    base_orientation = CostTerm(func=costs.base_orientation, limit=0.025)
    foot_slip = CostTerm(func=costs.foot_slip, limit=0.05)


@configclass
class TerminationsCfg:
    time_out = DoneTerm(func=mdp.time_out, time_out=True)
    fallen = DoneTerm(func=terminations.fallen, grace_s=0.1)
    illegal_contact = DoneTerm(func=terminations.illegal_contact, grace_s=0.1)


@configclass
class Go2FlatCfg(ManagerBasedRLEnvCfg):
    scene: SceneCfg = SceneCfg(num_envs=64)
    observations: ObservationsCfg = ObservationsCfg()
    actions: ActionsCfg = ActionsCfg()
    commands: CommandsCfg = CommandsCfg()
    rewards: RewardsCfg = RewardsCfg()
    costs: CostsCfg = CostsCfg()
    terminations: TerminationsCfg = TerminationsCfg()
    events: EventsCfg = EventsCfg()

    def __post_init__(self):
        self.sim.dt, self.decimation, self.episode_length_s = 0.005, 4, 20.0
        self.only_positive_rewards = True


legged_envs.register("Example/Go2-Flat-ManagerBased-v0", ManagerBasedRLEnv, Go2FlatCfg)

if __name__ == "__main__":
    envs = gym.make_vec("Example/Go2-Flat-ManagerBased-v0", num_envs=64)
    print(envs.unwrapped.task.user, envs.reset(seed=0)[0].shape)
