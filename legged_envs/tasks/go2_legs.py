"""Multi-agent variant of Go2-Flat, in which each leg is an agent: MaMuJoCo's factorization
"4x3"."""

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
"""Names of the agents, one per leg, in the order of the legs' joints in the robot."""

JOINTS = 3
"""Number of joints that each agent drives."""

OBSERVATION_SIZE = 30
"""Size of each agent's observation."""

STATE_SIZE = 68
"""Size of the global state, which is the critic's observation of Go2-Flat."""


def of_leg(env: Env, leg: int, term: Callable[[Env], torch.Tensor]) -> torch.Tensor:
    """Return the columns of one leg of an observation term.

    Args:
        env: The environment.
        leg: Index of the leg in :data:`LEGS`.
        term: Observation term with one column per joint.

    Returns:
        Shape: (num_envs, 3).
    """
    return term(env)[:, JOINTS * leg : JOINTS * (leg + 1)]


def of_other_legs(env: Env, leg: int, term: Callable[[Env], torch.Tensor]) -> torch.Tensor:
    """Return the columns of all legs except one of an observation term.

    Args:
        env: The environment.
        leg: Index in :data:`LEGS` of the leg to omit.
        term: Observation term with one column per joint.

    Returns:
        Shape: (num_envs, 9).
    """
    joints = term(env)
    before = joints[:, : JOINTS * leg]
    after = joints[:, JOINTS * (leg + 1) :]
    return torch.cat((before, after), 1)


@configclass
class Go2LegsCfg(DirectMARLEnvCfg):
    """Configuration of the task in the form of Isaac Lab's ``DirectMARLEnvCfg``."""

    robot = GO2
    sim: SimulationCfg = SimulationCfg(dt=0.005)
    decimation = 4
    possible_agents = LEGS
    action_spaces = dict.fromkeys(LEGS, JOINTS)
    observation_spaces = dict.fromkeys(LEGS, gym.spaces.Box(-100.0, 100.0, (OBSERVATION_SIZE,)))
    state_space = gym.spaces.Box(-100.0, 100.0, (STATE_SIZE,))


def go2_legs() -> Go2LegsCfg:
    """Make the configuration of one Go2 that four agents control together.

    Each agent drives the three joints of its leg. It observes the command, the body (gravity,
    velocity, angular velocity), its own joints and their last actions, and the joint positions of
    the other legs. This is MaMuJoCo's ``agent_obsk=1`` with the torso as global category. Commands,
    events, terminations, costs and reward are equal to Go2-Flat's. Each agent receives a quarter of
    the reward. The global state is the critic's observation of Go2-Flat.
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
    # One group holds the observations of all agents. `Go2Legs` splits it into equal parts.
    cfg.terms["observations"]["policy"] = ObservationGroupCfg(terms, noisy=True)
    return cfg


def _leg_observations(leg: int) -> dict[str, ObservationTermCfg]:
    """Make the observations of one agent. Noise and scales are the same as in Go2-Flat."""
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
    """Environment of four agents that control one Go2; see :func:`go2_legs`.

    Managers compute all quantities from the terms. The methods only split them among the agents.
    """

    def _get_observations(self) -> dict[str, torch.Tensor]:
        return self.split(self.core.observations.groups["policy"].value, self.observation_spaces)

    def _get_states(self) -> torch.Tensor:
        return self.core.observations.groups["critic"].value

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        reward = self.core.rewards.total / len(LEGS)
        return dict.fromkeys(LEGS, reward)

    def _get_dones(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        terminated = self.core.terminations.terminated
        # Episodes are truncated by the TimeLimit wrapper, not here.
        truncated = torch.zeros_like(terminated)
        return dict.fromkeys(LEGS, terminated), dict.fromkeys(LEGS, truncated)


def go2_legs_task() -> TaskCfg:
    """Make the configuration of the registered task ``Legged/Go2-Legs-v0``."""
    return Go2Legs.task_cfg(go2_legs())
