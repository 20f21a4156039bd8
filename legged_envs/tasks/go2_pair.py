"""Multi-agent task: two Go2 walk side by side and carry a beam that lies on their backs."""

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
"""Side of the beam's middle on which each agent walks: 1 for +y (left), −1 for −y (right)."""

ROBOTS = {"left": "robot", "right": "right"}
"""Name of each agent's robot in the simulation, by agent."""

APART = 0.7
"""Sideways distance between the bases of the two robots, m."""

BACK = (0.06, 0.07)
"""Position (x, z) of the beam's lower side relative to the origin of a base, m.

x is ahead and z is up. If the beam lies further back, the hind legs sag under it.
"""

BEAM = (0.13, 0.55, 0.015)
"""Half lengths of the beam along its x, y and z axes, m: 26 cm wide, 1.1 m long, 3 cm thick."""

BEAM_DROPPED = 0.12
"""Height above the ground, m. If the beam's lowest point is below it, the beam has dropped."""

BASE_LOW = 0.16
"""Height above the ground, m. If a base is below it, the robot has fallen."""

CARRIER = replace(GO2, termination_bodies=())
"""Configuration of a Go2 that may touch something with its back without the end of its episode."""

VECTORS = 8
"""Number of 3D vectors in the observation :func:`beam_and_partner`, which has 3 · 8 columns."""


class Carrier:
    """View of the pair's environment that is passed to the terms of one agent.

    ``robot``, ``sim``, ``actions`` and ``commands`` belong to the agent. All other attributes
    are read from the environment of the pair. Terms for a single robot thus work unchanged.

    Args:
        env: The environment of the pair.
        agent: Name of the agent.
        partner: Name of the other agent.
    """

    actions: managers.ActionManager
    """Action manager of the agent. It is set after construction, because it needs the carrier."""

    def __init__(self, env: "Go2Pair", agent: str, partner: str):
        self._env = env

        self.side = SIDES[agent]
        """Side of the beam's middle on which the agent walks: 1 for +y, −1 for −y."""
        self.robot = env.robots[ROBOTS[agent]]
        """State of the agent's robot."""

        self.sim = env.sim.robots[ROBOTS[agent]]
        """View of the simulation with the quantities of the agent's robot."""
        self.partner = env.robots[ROBOTS[partner]]
        """State of the partner's robot."""
        self.beam = env.sim.objects["beam"]
        """State of the beam."""

        beam_place = (BACK[0], -self.side * APART / 2, BACK[1] + BEAM[2])
        partner_place = (0.0, -self.side * APART, 0.0)

        self.places = self.robot.root_pos_w.new_tensor((beam_place, partner_place))
        """Target positions of the beam's middle and of the partner's base in the agent's base
        frame, m. Shape: (2, 3)."""

    @property
    def commands(self) -> "Commands":
        """Commands of the agent, by name.

        The command of the pair is for the beam's middle. If the pair follows it as a rigid body, an
        agent at y moves with velocity (vx − ωz y, vy) and yaw rate ωz, which is its command.
        """
        velocity = self._env.core.commands["velocity"].clone()
        velocity[:, 0] -= velocity[:, 2] * (self.side * APART / 2)
        return Commands(self._env.core.commands.terms, velocity=velocity)

    def __getattr__(self, name: str) -> Any:
        # Only called for names that the carrier itself does not define.
        return getattr(self._env, name)


class Commands(dict[str, torch.Tensor]):
    """Commands of one agent by name, with the interface of the command manager.

    Args:
        terms: Command terms of the pair, by name.
        **values: Commands of the agent. Shape of each: (num_envs, size).
    """

    def __init__(self, terms: dict[str, Any], **values: torch.Tensor):
        super().__init__(values)
        self.terms = terms
        """Command terms of the pair, by name."""


def of_agent(env: Any, agent: str, term: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Evaluate an observation term for one agent.

    Args:
        env: The environment of the pair.
        agent: Name of the agent.
        term: Observation term for a single robot.

    Returns:
        Value of the term. Shape: (num_envs, size).
    """
    return term(env.task.user.carriers[agent])


def on_each(
    env: Any, env_ids: torch.Tensor, random: Any, event: Callable[..., None], **params: Any
) -> None:
    """Apply an event to one robot after the other, with separate random numbers for each.

    Args:
        env: The environment of the pair.
        env_ids: Indices of the environments.
        random: Random streams of the environments.
        event: Event for a single robot.
        **params: Parameters of the event.
    """
    for carrier in env.task.user.carriers.values():
        event(carrier, env_ids, random, **params)


def beam_and_partner(env: Carrier) -> torch.Tensor:
    """Observation of beam and partner: eight vectors in the agent's base frame.

    In this order: offset of the beam's middle from its target position, m; offset of the partner
    from its target position, m; velocity of the beam, m/s; angular velocity of the beam, rad/s;
    velocity of the partner, m/s; unit vectors along the beam's x axis (its width), along its y axis
    (its length), and along the partner's x axis.

    Returns:
        Shape: (num_envs, 24).
    """
    robot = env.robot
    partner = env.partner
    beam = env.beam
    x_axis, y_axis, _ = torch.eye(3, dtype=torch.float32, device=env.device)
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
    """Reward for keeping the formation: (exp(−‖b‖² / σ) + exp(−‖p‖² / σ)) / 2.

    b and p are the horizontal offsets of beam and partner from their target positions, m.

    Args:
        env: View of the environment for one agent.
        sigma: Width σ of the kernel, m².

    Returns:
        Shape: (num_envs,).
    """
    ways = beam_and_partner(env).unflatten(1, (VECTORS, 3))[:, :2, :2]
    error = ways.square().sum(2)
    return torch.exp(error / -sigma).mean(1)


def beam_motion(env: Carrier) -> torch.Tensor:
    """Penalty for an unsteady beam: v_z² + 0.1 ‖ω‖² of its velocity, m/s, and angular velocity,
    rad/s. Shape: (num_envs,)."""
    return env.beam.root_lin_vel_w[:, 2].square() + 0.1 * env.beam.root_ang_vel_b.square().sum(1)


def parallel(env: Carrier) -> torch.Tensor:
    """Penalty for headings that are not parallel: sin² α + sin² β. Shape: (num_envs,).

    α and β are the yaw angles of the beam's x axis and of the partner relative to the agent.
    """
    vectors = beam_and_partner(env).unflatten(1, (VECTORS, 3))
    beam_width_and_heading = vectors[:, (5, 7), 1]
    return beam_width_and_heading.square().sum(1)


def low(env: Carrier) -> torch.Tensor:
    """Termination: True where the base is below :data:`BASE_LOW`. Shape: (num_envs,), bool."""
    return env.robot.base_height < BASE_LOW


@configclass
class PairSceneCfg(InteractiveSceneCfg):
    """Scene with two robots next to each other and a beam across their backs."""

    robot = PlacedRobot(CARRIER, (0.0, APART / 2, 0.0))
    right = PlacedRobot(CARRIER, (0.0, -APART / 2, 0.0))
    beam = ObjectCfg(
        "box", BEAM, mass=2.5, friction=1.0, pos=(BACK[0], 0.0, GO2.base_height + BACK[1] + BEAM[2])
    )


@configclass
class Go2PairCfg(DirectMARLEnvCfg):
    """Configuration of the task in the form of Isaac Lab's ``DirectMARLEnvCfg``.

    ``agent_rewards``, ``agent_costs`` and ``agent_terminations`` are terms that both agents have.
    Their environment is a :class:`Carrier`.
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
    """Make the configuration of two Go2 that carry a beam.

    Observations, rewards, costs and randomization of each robot are based on Go2-Flat. Commands are
    up to 0.4 m/s forwards, 0.2 m/s sideways and 0.3 rad/s. A robot also observes beam and partner,
    and is rewarded for keeping its place under the beam and next to the partner.
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
            # Not mirrored: the mirror image of one agent is the other agent.
            terms[f"{agent}_{name}"] = replace(term, func=of_agent, mirror=None, params=params)
    return ObservationGroupCfg(terms, noisy=True)


def _events(flat: TaskCfg) -> dict[str, managers.EventTermCfg]:
    """Make the events of the flat task for both robots, gentler, so that the beam stays on the
    backs."""
    events = {}
    for name, event in flat.events.items():
        params = {"event": event.func, **event.params}
        events[name] = replace(event, func=on_each, params=params)
    # The robots start parallel and nearly at rest, so that the beam does not slide off.
    events["root"].params["yaw"] = (0.0, 0.0)
    events["root"].params["velocity"] = 0.1
    events["joints"].params["range"] = 0.05
    events["push"].params["velocity"] = 0.2
    return events


def _rewards(flat: TaskCfg) -> dict[str, managers.RewardTermCfg]:
    """Make the rewards of one agent. Commands are slower than in the flat task, so errors count
    more."""
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
    """Environment of two Go2 that carry a beam.

    An agent that falls ends only its own episode. A beam that drops ends the episodes of both.
    """

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
        """Return the height of the beam's lowest point above the ground below its middle, m.

        Shape: (num_envs,).
        """
        beam = self.sim.objects["beam"]
        x, y, z = beam.root_pos_w.unbind(1)
        half_lengths = torch.diag(torch.tensor(BEAM, dtype=torch.float32, device=self.device))
        half_axes = rotation.rotate(beam.root_quat_w.unsqueeze(1), half_lengths)
        if self.sim.ground is not None:
            z = z - self.sim.ground.height(x, y)
        return z - half_axes[..., 2].abs().sum(1)

    def _get_observations(self) -> dict[str, torch.Tensor]:
        return self.split(self.core.observations.groups["policy"].value, self.observation_spaces)

    def _computed(self, kind: str) -> dict[str, Any]:
        """Compute the terms of one kind, such as "rewards", and return the managers by agent."""
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
    """Make the configuration of the registered task ``Legged/Go2-Pair-v0``."""
    return Go2Pair.task_cfg(go2_pair())
