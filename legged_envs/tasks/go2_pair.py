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
"""Agents, and on which side of the beam's middle each walks: along y."""
ROBOTS = {"left": "robot", "right": "right"}
APART = 0.7
BACK = (0.06, 0.07)
"""Distance of the robots, and where the beam lies on a back from the base's origin, ahead and up, m: further back the
hind legs sag under it."""
BEAM = (0.13, 0.55, 0.015)
"""Half lengths of the beam, m: 26 cm wide, 1.1 m long, 3 cm thick."""
DROPPED, LOW = 0.12, 0.16
"""Height of the beam's lowest point below which it has dropped, m, and of a base below which its robot has fallen."""
CARRIER = replace(GO2, termination_bodies=())
"""A Go2 whose back something may touch."""


class Carrier:
    """The environment as terms see it for one agent: ``robot``, ``sim``, ``actions`` and ``commands`` are its own."""

    actions: managers.ActionManager

    def __init__(self, env: "Go2Pair", agent: str, partner: str):
        self._env, self.side = env, SIDES[agent]
        self.robot, self.sim = env.robots[ROBOTS[agent]], env.sim.robots[ROBOTS[agent]]
        self.partner, self.beam = env.robots[ROBOTS[partner]], env.sim.objects["beam"]
        middle = (BACK[0], -self.side * APART / 2, BACK[1] + BEAM[2])
        self.places = self.robot.root_pos_w.new_tensor((middle, (0.0, -self.side * APART, 0.0)))
        """Where beam and partner should be in the base frame, m. Shape: (2, 3)."""

    @property
    def commands(self) -> "Commands":
        """The velocity at which the robot moves where the pair, as a rigid body about the beam's middle, follows the
        command: vx − ωz y, vy and ωz."""
        velocity = self._env.core.commands["velocity"].clone()
        velocity[:, 0] -= velocity[:, 2] * (self.side * APART / 2)
        return Commands(self._env.core.commands.terms, velocity=velocity)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)


class Commands(dict[str, torch.Tensor]):
    """The commands of one agent by name, and the ``terms`` that they are made from."""

    def __init__(self, terms: dict[str, Any], **values: torch.Tensor):
        super().__init__(values)
        self.terms = terms


def of_agent(env: Any, agent: str, term: Callable[..., torch.Tensor]) -> torch.Tensor:
    """``term`` for one agent."""
    return term(env.task.user.carriers[agent])


def on_each(
    env: Any, env_ids: torch.Tensor, random: Any, event: Callable[..., None], **params: Any
) -> None:
    """Apply ``event`` to one robot after the other, each with draws of its own."""
    for carrier in env.task.user.carriers.values():
        event(carrier, env_ids, random, **params)


def beam_and_partner(env: Carrier) -> torch.Tensor:
    """In the base frame: the way to the beam's middle and to the partner from where they should be, m, the beam's
    velocity, m/s, and angular velocity, rad/s, the partner's velocity, and the directions of the beam's width and
    length and of the partner's x axis. Shape: (num_envs, 24)."""
    robot, partner, beam = env.robot, env.partner, env.beam
    axes = torch.eye(3, device=env.device)
    vectors = (
        *(beam.root_pos_w - robot.root_pos_w, partner.root_pos_w - robot.root_pos_w),
        *(
            beam.root_lin_vel_w,
            rotation.rotate(beam.root_quat_w, beam.root_ang_vel_b),
            partner.root_lin_vel_w,
        ),
        *(rotation.rotate(beam.root_quat_w, axis) for axis in axes[:2]),
        rotation.rotate(partner.root_quat_w, axes[0]),
    )
    seen = rotation.rotate_inverse(robot.root_quat_w, torch.stack(vectors, 1))
    seen[:, :2] -= env.places
    return seen.flatten(1)


def formation(env: Carrier, sigma: float) -> torch.Tensor:
    """(exp(−‖b‖² / σ) + exp(−‖p‖² / σ)) / 2, b and p how far beam and partner are from their places over the ground."""
    error = beam_and_partner(env).unflatten(1, (8, 3))[:, :2, :2].square().sum(2)
    return torch.exp(error / -sigma).mean(1)


def beam_motion(env: Carrier) -> torch.Tensor:
    """v_z² + 0.1 ‖ω‖² of the beam."""
    return env.beam.root_lin_vel_w[:, 2].square() + 0.1 * env.beam.root_ang_vel_b.square().sum(1)


def parallel(env: Carrier) -> torch.Tensor:
    """sin² of the angles of the partner's heading and of the beam's width with the robot's, over the ground."""
    return beam_and_partner(env).unflatten(1, (8, 3))[:, (5, 7), 1].square().sum(1)


def low(env: Carrier) -> torch.Tensor:
    """The base is so low that the robot lies."""
    return env.robot.base_height < LOW


@configclass
class PairSceneCfg(InteractiveSceneCfg):
    robot = PlacedRobot(CARRIER, (0.0, APART / 2, 0.0))
    right = PlacedRobot(CARRIER, (0.0, -APART / 2, 0.0))
    beam = ObjectCfg(
        "box", BEAM, mass=2.5, friction=1.0, pos=(BACK[0], 0.0, GO2.base_height + BACK[1] + BEAM[2])
    )


@configclass
class Go2PairCfg(DirectMARLEnvCfg):
    """The pair's task; ``agent_…`` are the terms of each agent, whose ``env`` is a :class:`Carrier`."""

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
    """Go2-Flat for each robot (observations, rewards, costs, randomisation), with commands up to 0.4 m/s ahead, 0.2 m/s
    aside and 0.3 rad/s, that also sees beam and partner and is rewarded for staying under the one, beside the other."""
    flat = go2_flat()
    policy = flat.observations["policy"].terms
    seen = {**policy, "beam_and_partner": ObservationTermCfg(beam_and_partner)}
    terms = {
        f"{agent}_{name}": replace(
            term, func=of_agent, mirror=None, params={"agent": agent, "term": term.func}
        )
        for agent in SIDES
        for name, term in seen.items()
    }
    events = {
        name: replace(event, func=on_each, params={"event": event.func, **event.params})
        for name, event in flat.events.items()
    }
    events["root"].params |= {"yaw": (0.0, 0.0), "velocity": 0.1}
    events["joints"].params["range"] = 0.05
    events["push"].params["velocity"] = 0.2
    for name, weight in {"tracking_lin_vel": 5.0, "tracking_ang_vel": 2.5}.items():
        flat.rewards[name] = managers.RewardTermCfg(
            flat.rewards[name].func, weight, {"sigma": 0.06}
        )
    flat.rewards["base_height"].weight = -20.0
    flat.rewards |= {
        "alive": managers.RewardTermCfg(rewards.alive, 0.5),
        "formation": managers.RewardTermCfg(formation, 1.0, {"sigma": 0.1}),
        "parallel": managers.RewardTermCfg(parallel, -1.0),
        "beam_motion": managers.RewardTermCfg(beam_motion, -0.5),
    }
    limits = {f"{agent}/{name}": cost.limit for agent in SIDES for name, cost in flat.costs.items()}
    return Go2PairCfg(
        actions=flat.actions,
        commands={
            "velocity": VelocityCommandCfg(
                (-0.4, 0.4), (-0.2, 0.2), (-0.3, 0.3), standing_fraction=0.15
            )
        },
        terms={"observations": {"policy": ObservationGroupCfg(terms, noisy=True)}},
        events=events,
        agent_rewards=flat.rewards,
        agent_costs=flat.costs,
        agent_terminations={
            "fallen": managers.TerminationTermCfg(terminations.fallen, grace_s=0.1),
            "low": managers.TerminationTermCfg(low, grace_s=0.1),
        },
        cost_limits=limits,
    )


class Go2Pair(DirectMARLEnv):
    """An agent that falls ends its own episode only; a beam that drops ends that of both."""

    cfg: Go2PairCfg

    def _setup_scene(self) -> None:
        cfg, agents = self.core.cfg, tuple(SIDES)
        self.carriers = {
            one: Carrier(self, one, two) for one, two in zip(agents, reversed(agents), strict=True)
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
        self.targets = {
            agent: carrier.actions.process(actions[agent])
            for agent, carrier in self.carriers.items()
        }

    def _apply_action(self) -> None:
        for agent, carrier in self.carriers.items():
            carrier.sim.set_joint_targets(self.targets[agent])

    def beam_height(self) -> torch.Tensor:
        """Height of the beam's lowest point above the ground, m. Shape: (num_envs,)."""
        beam, half = self.sim.objects["beam"], torch.diag(torch.tensor(BEAM, device=self.device))
        reach = rotation.rotate(beam.root_quat_w.unsqueeze(1), half)[..., 2].abs().sum(1)
        return beam.root_pos_w[:, 2] - reach

    def _get_observations(self) -> dict[str, torch.Tensor]:
        return self.split(self.core.observations.groups["policy"].value, self.observation_spaces)

    def _evaluate(self, kind: str) -> dict[str, Any]:
        of_kind = {agent: each[kind] for agent, each in self.managers_of.items()}
        for manager in of_kind.values():
            manager.compute()
        return of_kind

    def _get_dones(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        dropped = self.beam_height() < DROPPED
        terminated = {
            a: manager.terminated | dropped for a, manager in self._evaluate("terminations").items()
        }
        return terminated, dict.fromkeys(SIDES, torch.zeros_like(dropped))

    def _get_rewards(self) -> dict[str, torch.Tensor]:
        return {agent: manager.total for agent, manager in self._evaluate("rewards").items()}

    def _get_costs(self) -> dict[str, torch.Tensor]:
        costs = self._evaluate("costs").items()
        return {
            f"{a}/{n}": cost
            for a, own in costs
            for n, cost in zip(own.names, own.values.unbind(1), strict=True)
        }

    def _reset_idx(self, env_ids: torch.Tensor) -> None:
        super()._reset_idx(env_ids)
        for own in self.managers_of.values():
            for manager in own.values():
                manager.reset(env_ids)


def go2_pair_task() -> TaskCfg:
    return Go2Pair.task_cfg(go2_pair())
