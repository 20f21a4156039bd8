"""Two Go2 side by side carry a beam that lies loosely across their backs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from legged_envs import managers, rotation
from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg, SimulationCfg
from legged_envs.compat.isaac_lab.multi_agent import DirectMARLEnv, DirectMARLEnvCfg
from legged_envs.configuration import configclass
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import rewards, terminations
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.robots import GO2
from legged_envs.sim import ObjectCfg, PlacedRobot, ViewerCfg
from legged_envs.tasks.velocity import go2_flat

SIDES = {"left": 1.0, "right": -1.0}
"""Agent → the side of the beam's middle on which it walks, a sign along y."""

ROBOTS = {"left": "robot", "right": "right"}
"""Agent → name of its robot in the scene."""

APART = 0.7
"""Distance of the robots, m."""

BACK = (0.06, 0.07)
"""Position of the beam on a back from the base's origin, ahead and up, m.

Further back the hind legs sag under it.
"""

BEAM = (0.13, 0.55, 0.015)
"""Half lengths of the beam, m: 26 cm wide, 1.1 m long, 3 cm thick."""

BEAM_DROPPED = 0.12
"""Height of the beam's lowest point below which it has dropped, m."""

BASE_LOW = 0.16
"""Height of a base below which its robot has fallen, m."""

CARRIER = replace(GO2, termination_bodies=())
"""A Go2 with a back that something may touch."""

VECTORS = 8
"""Number of vectors in :func:`beam_and_partner`."""


class Carrier:
    """The environment as the terms of one agent see it.

    ``robot``, ``sim``, ``actions`` and ``commands`` are the agent's. Everything else is the pair's.

    Args:
        env: The environment of the pair.
        agent: Name of the agent.
        partner: Name of the other agent.
    """

    actions: managers.ActionManager
    """Actions of the agent, set once the carrier exists."""

    def __init__(self, env: "Go2Pair", agent: str, partner: str):
        self._env = env

        self.side = SIDES[agent]
        """Side of the beam's middle on which the agent walks, a sign along y."""
        self.robot = env.robots[ROBOTS[agent]]
        """State of the agent's robot."""
        self.sim = env.sim.robots[ROBOTS[agent]]
        """The simulation, as the agent's robot sees it."""
        self.partner = env.robots[ROBOTS[partner]]
        """State of the other robot."""
        self.beam = env.sim.objects["beam"]
        """State of the beam."""

        beam_place = (BACK[0], -self.side * APART / 2, BACK[1] + BEAM[2])
        partner_place = (0.0, -self.side * APART, 0.0)

        self.places = self.robot.root_pos_w.new_tensor((beam_place, partner_place))
        """Target positions of beam and partner in the base frame, m. Shape: (2, 3)."""

    @property
    def commands(self) -> "Commands":
        """Commands of the agent.

        Its velocity is that of its place while the pair follows the command as a rigid body about
        the beam's middle: vx − ωz y, vy and ωz.
        """
        velocity = self._env.core.commands["velocity"].clone()
        velocity[:, 0] -= velocity[:, 2] * (self.side * APART / 2)
        return Commands(self._env.core.commands.terms, velocity=velocity)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)


class Commands(dict[str, torch.Tensor]):
    """Commands of one agent by name.

    Args:
        terms: The terms that make them.
        **values: The commands.
    """

    def __init__(self, terms: dict[str, Any], **values: torch.Tensor):
        super().__init__(values)
        self.terms = terms
        """The terms that make the commands."""


def of_agent(env: Any, agent: str, term: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Return ``term`` for one agent."""
    return term(env.task.user.carriers[agent])


def on_each(
    env: Any, env_ids: torch.Tensor, random: Any, event: Callable[..., None], **params: Any
) -> None:
    """Apply ``event`` to one robot after the other, each with separate draws."""
    for carrier in env.task.user.carriers.values():
        event(carrier, env_ids, random, **params)


def beam_and_partner(env: Carrier) -> torch.Tensor:
    """Return eight vectors in the base frame. Shape: (num_envs, 24).

    The first two are the ways from their places to the beam's middle and to the partner, m. Then
    come the beam's velocity, m/s, and angular velocity, rad/s, the partner's velocity, m/s, and the
    directions of the beam's width and length and of the partner's x axis.
    """
    robot = env.robot
    partner = env.partner
    beam = env.beam
    x_axis, y_axis, _ = torch.eye(3, device=env.device)
    vectors = (
        beam.root_pos_w - robot.root_pos_w,
        partner.root_pos_w - robot.root_pos_w,
        beam.root_lin_vel_w,
        rotation.rotate(beam.root_quat_w, beam.root_ang_vel_b),
        partner.root_lin_vel_w,
        rotation.rotate(beam.root_quat_w, x_axis),
        rotation.rotate(beam.root_quat_w, y_axis),
        rotation.rotate(partner.root_quat_w, x_axis),
    )
    seen = rotation.rotate_inverse(robot.root_quat_w, torch.stack(vectors, 1))
    seen[:, :2] -= env.places
    return seen.flatten(1)


def formation(env: Carrier, sigma: float) -> torch.Tensor:
    """(exp(−‖b‖² / σ) + exp(−‖p‖² / σ)) / 2 of the ways b to the beam and p to the partner.

    Both are measured from the targets, over the ground.
    """
    ways = beam_and_partner(env).unflatten(1, (VECTORS, 3))[:, :2, :2]
    error = ways.square().sum(2)
    return torch.exp(error / -sigma).mean(1)


def beam_motion(env: Carrier) -> torch.Tensor:
    """v_z² + 0.1 ‖ω‖² of the beam."""
    return env.beam.root_lin_vel_w[:, 2].square() + 0.1 * env.beam.root_ang_vel_b.square().sum(1)


def parallel(env: Carrier) -> torch.Tensor:
    """sin² of the angles of the partner's heading and of the beam's width with the robot's.

    The angles are measured over the ground.
    """
    vectors = beam_and_partner(env).unflatten(1, (VECTORS, 3))
    beam_width_and_heading = vectors[:, (5, 7), 1]
    return beam_width_and_heading.square().sum(1)


def low(env: Carrier) -> torch.Tensor:
    """True if the base is so low that the robot lies."""
    return env.robot.base_height < BASE_LOW


@configclass
class PairSceneCfg(InteractiveSceneCfg):
    """Two robots next to each other, with a beam across their backs."""

    robot = PlacedRobot(CARRIER, (0.0, APART / 2, 0.0))
    right = PlacedRobot(CARRIER, (0.0, -APART / 2, 0.0))
    beam = ObjectCfg(
        "box", BEAM, mass=2.5, friction=1.0, pos=(BACK[0], 0.0, GO2.base_height + BACK[1] + BEAM[2])
    )


@configclass
class Go2PairCfg(DirectMARLEnvCfg):
    """Configuration of the pair.

    ``agent_…`` are the terms of each agent, which get a :class:`Carrier` as their environment.
    """

    scene: InteractiveSceneCfg = PairSceneCfg()
    sim: SimulationCfg = SimulationCfg(dt=0.005)
    viewer = ViewerCfg(
        (2.0, -1.4, 0.8), (0.0, 0.0, -0.1), origin_type="asset_root", asset_name="beam"
    )
    decimation = 4
    episode_length_s = 10.0
    possible_agents = tuple(SIDES)
    action_spaces = dict.fromkeys(SIDES, 12)
    observation_spaces = dict.fromkeys(SIDES, 69)
    state_space = -1
    agent_rewards: Any = {}  # noqa: RUF012
    agent_costs: Any = {}  # noqa: RUF012
    agent_terminations: Any = {}  # noqa: RUF012


def go2_pair() -> Go2PairCfg:
    """Make the configuration of the pair.

    Observations, rewards, costs and randomisation of each robot are those of Go2-Flat. Commands are
    up to 0.4 m/s ahead, 0.2 m/s aside and 0.3 rad/s. A robot also sees beam and partner, and is
    rewarded for staying at its place under the beam and next to the partner.
    """
    flat = go2_flat()
    limits = {}
    for agent in SIDES:
        for name, cost in flat.costs.items():
            limits[f"{agent}/{name}"] = cost.limit
    velocity = VelocityCommandCfg(
        lin_vel_x=(-0.4, 0.4),
        lin_vel_y=(-0.2, 0.2),
        ang_vel_z=(-0.3, 0.3),
        standing_fraction=0.15,
    )
    return Go2PairCfg(
        actions=flat.actions,
        commands={"velocity": velocity},
        terms={"observations": {"policy": _observations(flat)}},
        events=_events(flat),
        agent_rewards=_rewards(flat),
        agent_costs=flat.costs,
        agent_terminations={
            "fallen": managers.TerminationTermCfg(terminations.fallen, grace_s=0.1),
            "low": managers.TerminationTermCfg(low, grace_s=0.1),
        },
        cost_limits=limits,
    )


def _observations(flat: TaskCfg) -> ObservationGroupCfg:
    """Make the observations of both agents, one after the other."""
    seen = {
        **flat.observations["policy"].terms,
        "beam_and_partner": ObservationTermCfg(beam_and_partner),
    }
    terms = {}
    for agent in SIDES:
        for name, term in seen.items():
            params = {"agent": agent, "term": term.func}
            terms[f"{agent}_{name}"] = replace(term, func=of_agent, mirror=None, params=params)
    return ObservationGroupCfg(terms, noisy=True)


def _events(flat: TaskCfg) -> dict[str, managers.EventTermCfg]:
    """Make the events of the flat task for both robots, gentler, so that the beam stays on the backs."""
    events = {}
    for name, event in flat.events.items():
        params = {"event": event.func, **event.params}
        events[name] = replace(event, func=on_each, params=params)
    events["root"].params["yaw"] = (0.0, 0.0)
    events["root"].params["velocity"] = 0.1
    events["joints"].params["range"] = 0.05
    events["push"].params["velocity"] = 0.2
    return events


def _rewards(flat: TaskCfg) -> dict[str, managers.RewardTermCfg]:
    """Make the rewards of one agent. Commands are slower than those of the flat task, so errors count more."""
    terms = dict(flat.rewards)
    for name, weight in (("tracking_lin_vel", 5.0), ("tracking_ang_vel", 2.5)):
        terms[name] = managers.RewardTermCfg(terms[name].func, weight, {"sigma": 0.06})
    terms["base_height"].weight = -20.0
    terms["alive"] = managers.RewardTermCfg(rewards.alive, 0.5)
    terms["formation"] = managers.RewardTermCfg(formation, 1.0, {"sigma": 0.1})
    terms["parallel"] = managers.RewardTermCfg(parallel, -1.0)
    terms["beam_motion"] = managers.RewardTermCfg(beam_motion, -0.5)
    return terms


class Go2Pair(DirectMARLEnv):
    """The pair. An agent that falls ends its own episode only; a beam that drops ends both."""

    cfg: Go2PairCfg

    def _setup_scene(self) -> None:
        cfg = self.core.cfg
        left, right = SIDES
        self.carriers = {
            left: Carrier(self, agent=left, partner=right),
            right: Carrier(self, agent=right, partner=left),
        }
        self.managers_of: dict[str, dict[str, Any]] = {}
        for agent, carrier in self.carriers.items():
            carrier.actions = managers.ActionManager(carrier, cfg.actions, cfg.max_action_delay)
            self.managers_of[agent] = {
                "actions": carrier.actions,
                "terminations": managers.TerminationManager(carrier, self.cfg.agent_terminations),
                "rewards": managers.RewardManager(
                    carrier, self.cfg.agent_rewards, cfg.only_positive_rewards
                ),
                "costs": managers.CostManager(carrier, self.cfg.agent_costs),
            }

    def _pre_physics_step(self, actions: dict[str, torch.Tensor]) -> None:
        self.targets = {}
        for agent, carrier in self.carriers.items():
            self.targets[agent] = carrier.actions.process(actions[agent])

    def _apply_action(self) -> None:
        for agent, carrier in self.carriers.items():
            carrier.sim.set_joint_targets(self.targets[agent])

    def beam_height(self) -> torch.Tensor:
        """Return the height of the beam's lowest point above the ground, m. Shape: (num_envs,)."""
        beam = self.sim.objects["beam"]
        half_lengths = torch.diag(torch.tensor(BEAM, device=self.device))
        half_axes = rotation.rotate(beam.root_quat_w.unsqueeze(1), half_lengths)
        return beam.root_pos_w[:, 2] - half_axes[..., 2].abs().sum(1)

    def _get_observations(self) -> dict[str, torch.Tensor]:
        return self.split(self.core.observations.groups["policy"].value, self.observation_spaces)

    def _computed(self, kind: str) -> dict[str, Any]:
        """Let the managers of one kind compute, and return them by agent."""
        computed = {}
        for agent, own in self.managers_of.items():
            own[kind].compute()
            computed[agent] = own[kind]
        return computed

    def _get_dones(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        dropped = self.beam_height() < BEAM_DROPPED
        terminated = {}
        for agent, manager in self._computed("terminations").items():
            terminated[agent] = manager.terminated | dropped
        return terminated, dict.fromkeys(SIDES, torch.zeros_like(dropped))

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        return {agent: manager.total for agent, manager in self._computed("rewards").items()}

    def _get_costs(self) -> dict[str, torch.Tensor]:
        costs = {}
        for agent, manager in self._computed("costs").items():
            for name, cost in zip(manager.names, manager.values.unbind(1), strict=True):
                costs[f"{agent}/{name}"] = cost
        return costs

    def _reset_idx(self, env_ids: torch.Tensor) -> None:
        super()._reset_idx(env_ids)
        for own in self.managers_of.values():
            for manager in own.values():
                manager.reset(env_ids)


def go2_pair_task() -> TaskCfg:
    """Make the task ``Legged/Go2-Pair-v0``."""
    return Go2Pair.task_cfg(go2_pair())
