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
"""Agents, in the order of the robot's joints."""

JOINTS = 3
"""Number of joints of each agent."""

OBSERVATION_SIZE = 30
"""Size of each agent's observation."""

STATE_SIZE = 68
"""Size of the state, the observation of Go2-Flat's critic."""


def of_leg(env: Env, leg: int, term: Callable[[Env], torch.Tensor]) -> torch.Tensor:
    """Return the columns of one leg of a term with one per joint. Shape: (num_envs, 3)."""
    return term(env)[:, JOINTS * leg : JOINTS * (leg + 1)]


def of_other_legs(env: Env, leg: int, term: Callable[[Env], torch.Tensor]) -> torch.Tensor:
    """Return the columns of the other legs of a term with one per joint. Shape: (num_envs, 9)."""
    joints = term(env)
    before = joints[:, : JOINTS * leg]
    after = joints[:, JOINTS * (leg + 1) :]
    return torch.cat((before, after), 1)


@configclass
class Go2LegsCfg(DirectMARLEnvCfg):
    """Configuration of the task, as of an Isaac Lab environment with several agents."""

    robot = GO2
    sim: SimulationCfg = SimulationCfg(dt=0.005)
    decimation = 4
    possible_agents = LEGS
    action_spaces = dict.fromkeys(LEGS, JOINTS)
    observation_spaces = dict.fromkeys(LEGS, gym.spaces.Box(-100.0, 100.0, (OBSERVATION_SIZE,)))
    state_space = gym.spaces.Box(-100.0, 100.0, (STATE_SIZE,))


def go2_legs() -> Go2LegsCfg:
    """Make the configuration of four agents that walk one Go2.

    Each agent drives the three joints of its leg. It sees the command, the body (gravity, velocity,
    angular velocity), its own joints with their last action, and the positions of the other legs'
    joints: MaMuJoCo's ``agent_obsk=1`` with the torso as global category. Commands, events,
    terminations, costs and reward are those of Go2-Flat; each agent gets a quarter of the reward.
    The state is the observation of Go2-Flat's critic.
    """
    flat = go2_flat()
    cfg = Go2LegsCfg()
    cfg.actions = flat.actions
    cfg.commands = flat.commands
    cfg.events = flat.events
    cfg.terms = {
        "observations": flat.observations,
        "rewards": flat.rewards,
        "terminations": flat.terminations,
        "costs": flat.costs,
    }
    terms: dict[str, ObservationTermCfg] = {}
    for leg, agent in enumerate(LEGS):
        for name, term in _leg_observations(leg).items():
            terms[f"{agent}_{name}"] = term
    # The agents' observations are this group's, which is split in equal parts.
    cfg.terms["observations"]["policy"] = ObservationGroupCfg(terms, noisy=True)
    return cfg


def _leg_observations(leg: int) -> dict[str, ObservationTermCfg]:
    """Make the observations of one agent. Noise and scales are those of Go2-Flat."""
    pos = {"leg": leg, "term": observations.joint_pos}
    vel = {"leg": leg, "term": observations.joint_vel}
    action = {"leg": leg, "term": observations.last_action}
    return {
        "command": ObservationTermCfg(observations.command),
        "gravity": ObservationTermCfg(observations.projected_gravity, noise=0.05),
        "lin_vel": ObservationTermCfg(observations.base_lin_vel, noise=0.1),
        "ang_vel": ObservationTermCfg(observations.base_ang_vel, noise=0.2, scale=0.25),
        "joint_pos": ObservationTermCfg(of_leg, noise=0.01, params=pos),
        "joint_vel": ObservationTermCfg(of_leg, noise=0.5, scale=0.05, params=vel),
        "action": ObservationTermCfg(of_leg, params=action),
        "other_joint_pos": ObservationTermCfg(of_other_legs, noise=0.01, params=pos),
    }


class Go2Legs(DirectMARLEnv):
    """The task of :func:`go2_legs`. Its terms define everything; the methods hand out their values."""

    def _get_observations(self) -> dict[str, torch.Tensor]:
        return self.split(self.core.observations.groups["policy"].value, self.observation_spaces)

    def _get_states(self) -> torch.Tensor:
        return self.core.observations.groups["critic"].value

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        reward = self.core.rewards.total / len(LEGS)
        return dict.fromkeys(LEGS, reward)

    def _get_dones(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        terminated = self.core.terminations.terminated
        truncated = torch.zeros_like(terminated)
        return dict.fromkeys(LEGS, terminated), dict.fromkeys(LEGS, truncated)


def go2_legs_task() -> TaskCfg:
    """Make the task ``Legged/Go2-Legs-v0``."""
    return Go2Legs.task_cfg(go2_legs())
