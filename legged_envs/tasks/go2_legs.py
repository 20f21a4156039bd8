"""Go2-Flat for one agent per leg: MaMuJoCo's factorisation of a quadruped, "4x3"."""

from collections.abc import Callable

import gymnasium as gym
import torch

from legged_envs.compat.isaac_lab.cfg import SimulationCfg
from legged_envs.compat.isaac_lab.multi_agent import DirectMARLEnv, DirectMARLEnvCfg
from legged_envs.configuration import configclass
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import observations
from legged_envs.mdp.context import Env
from legged_envs.robots import GO2
from legged_envs.tasks.velocity import go2_flat

LEGS = ("FR", "FL", "RR", "RL")
JOINTS = 3
"""Agents, in the order of the robot's joints, and joints of each."""


def of_leg(env: Env, leg: int, term: Callable[[Env], torch.Tensor]) -> torch.Tensor:
    """The columns of ``term``, which has one per joint, that are of a leg. Shape: (num_envs, 3)."""
    return term(env)[:, JOINTS * leg : JOINTS * (leg + 1)]


def of_other_legs(env: Env, leg: int, term: Callable[[Env], torch.Tensor]) -> torch.Tensor:
    """The columns of ``term``, which has one per joint, that are of the other legs. Shape: (num_envs, 9)."""
    joints = term(env)
    return torch.cat((joints[:, : JOINTS * leg], joints[:, JOINTS * (leg + 1) :]), 1)


@configclass
class Go2LegsCfg(DirectMARLEnvCfg):
    robot = GO2
    sim: SimulationCfg = SimulationCfg(dt=0.005)
    decimation = 4
    possible_agents = LEGS
    action_spaces = dict.fromkeys(LEGS, JOINTS)
    observation_spaces = dict.fromkeys(LEGS, gym.spaces.Box(-100.0, 100.0, (30,)))
    state_space = gym.spaces.Box(-100.0, 100.0, (68,))


def go2_legs() -> Go2LegsCfg:
    """Four agents walk one Go2. Each drives the three joints of its leg, and sees the command, the body (gravity,
    velocity, angular velocity), its own joints with their last action, and the positions of the other legs' joints:
    MaMuJoCo's ``agent_obsk=1`` with the torso as global category. Commands, events, terminations and costs are those
    of Go2-Flat, and so is the reward, of which each agent gets a quarter. The state is what Go2-Flat's critic sees."""
    cfg, flat = Go2LegsCfg(), go2_flat()
    cfg.actions, cfg.commands, cfg.events = flat.actions, flat.commands, flat.events
    cfg.terms = {
        name: getattr(flat, name) for name in ("observations", "rewards", "terminations", "costs")
    }
    terms: dict[str, ObservationTermCfg] = {}
    for i, leg in enumerate(LEGS):
        pos, vel, action = (
            {"leg": i, "term": term}
            for term in (observations.joint_pos, observations.joint_vel, observations.last_action)
        )
        seen = {
            "command": ObservationTermCfg(observations.command),
            "gravity": ObservationTermCfg(observations.projected_gravity, noise=0.05),
            "lin_vel": ObservationTermCfg(observations.base_lin_vel, noise=0.1),
            "ang_vel": ObservationTermCfg(observations.base_ang_vel, noise=0.2, scale=0.25),
            "joint_pos": ObservationTermCfg(of_leg, noise=0.01, params=pos),
            "joint_vel": ObservationTermCfg(of_leg, noise=0.5, scale=0.05, params=vel),
            "action": ObservationTermCfg(of_leg, params=action),
            "other_joint_pos": ObservationTermCfg(of_other_legs, noise=0.01, params=pos),
        }
        terms |= {f"{leg}_{name}": term for name, term in seen.items()}
    cfg.terms["observations"]["policy"] = ObservationGroupCfg(terms, noisy=True)
    return cfg


class Go2Legs(DirectMARLEnv):
    """The task of :func:`go2_legs`, whose terms say all."""

    def _get_observations(self) -> dict[str, torch.Tensor]:
        return self.split(self.core.observations.groups["policy"].value, self.observation_spaces)

    def _get_states(self) -> torch.Tensor:
        return self.core.observations.groups["critic"].value

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        return dict.fromkeys(LEGS, self.core.rewards.total / len(LEGS))

    def _get_dones(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        terminated = self.core.terminations.terminated
        return dict.fromkeys(LEGS, terminated), dict.fromkeys(LEGS, torch.zeros_like(terminated))


def go2_legs_task() -> TaskCfg:
    return Go2Legs.task_cfg(go2_legs())
