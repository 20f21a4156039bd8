"""The managers of a task: building them, saving them and changing their terms."""

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import gymnasium as gym
import torch

from legged_envs import managers
from legged_envs.checks import check_choice
from legged_envs.envs.arguments import check_same_structure
from legged_envs.envs.changes import RENAMED_REWARDS, Changes, apply_changes
from legged_envs.envs.task import Space, Spaces
from legged_envs.mdp.context import Env
from legged_envs.state import State, copy_state, restore_state, state_template

if TYPE_CHECKING:
    from legged_envs.envs.cfg import TaskCfg
    from legged_envs.envs.core import CoreVectorEnv

OBSERVATION_LIMIT = 100.0
"""Bound of observations, so that their space is finite (legged_gym: ``clip_observations``)."""
CHANGEABLE = (
    "actions",
    "observations",
    "rewards",
    "costs",
    "terminations",
    "events",
    "sim",
)
"""First parts of the paths that :meth:`ManagerSet.reconfigure` takes."""
MANAGERS = (
    "actions",
    "commands",
    "observations",
    "rewards",
    "costs",
    "terminations",
    "events",
    "curriculum",
)
"""Names of the managers; each is an attribute of :class:`ManagerSet`."""


class ManagerSet:
    """All managers of a task.

    The managers are built in two steps, because evaluating terms may need an object that a user's
    constructor makes: :meth:`build_motion`, then :meth:`build_evaluation`.

    Args:
        env: The environment.
        context: Object that the terms get as ``env``; by default the environment.
    """

    actions: managers.ActionManager
    """Manager of the actions."""
    commands: managers.CommandManager
    """Manager of the commands."""
    events: managers.EventManager
    """Manager of the events."""
    terminations: managers.TerminationManager
    """Manager of the terminations."""
    rewards: managers.RewardManager
    """Manager of the rewards."""
    costs: managers.CostManager
    """Manager of the costs."""
    curriculum: managers.CurriculumManager
    """Manager of the curricula."""
    observations: managers.ObservationManager
    """Manager of the observation groups."""

    def __init__(self, env: "CoreVectorEnv", context: Env | None = None):
        self.env = env
        """The environment."""
        self.context = env if context is None else context
        """Object that the terms get as ``env``."""
        self.observation_limit = OBSERVATION_LIMIT
        """Bound that observations are clipped to."""
        self.changes: Changes = {}
        """Changes made by :meth:`reconfigure`, keyed by dotted path."""

    @property
    def by_name(self) -> dict[str, managers.Manager]:
        """All managers by name, in the order of :data:`MANAGERS`."""
        return {
            "actions": self.actions,
            "commands": self.commands,
            "observations": self.observations,
            "rewards": self.rewards,
            "costs": self.costs,
            "terminations": self.terminations,
            "events": self.events,
            "curriculum": self.curriculum,
        }

    @property
    def logging(self) -> list[managers.Manager]:
        """Managers that log values of finished episodes, in the order of the log."""
        return [self.commands, self.rewards, self.costs, self.curriculum, self.terminations]

    @property
    def log_names(self) -> tuple[str, ...]:
        """Names of the logged values."""
        names: list[str] = []
        for manager in self.logging:
            names += manager.log_names
        return tuple(names)

    @property
    def shown_groups(self) -> list[managers.ObservationGroup]:
        """Observation groups that the environment shows."""
        groups = self.observations.groups
        if self.env.shows_groups:
            return list(groups.values())
        return [groups["policy"]] if "policy" in groups else []

    def build_motion(self, cfg: "TaskCfg") -> None:
        """Build the managers that evaluate no terms: commands, actions and events."""
        self.commands = managers.CommandManager(self.context, cfg.commands)
        self._build_actions_and_events(cfg)
        # Terms are evaluated while their managers are built: what they read must exist by then.
        for robot in self.env.robots.values():
            robot.reset(self.env.all_ids)

    def _build_actions_and_events(self, cfg: "TaskCfg") -> None:
        self.actions = managers.ActionManager(
            self.context, cfg.actions, cfg.max_action_delay, cfg.action_limit
        )
        self.events = managers.EventManager(self.context, cfg.events)

    def build_evaluation(self, cfg: "TaskCfg") -> None:
        """Build the managers that evaluate terms; each term is evaluated once."""
        context = self.context
        self.terminations = managers.TerminationManager(context, cfg.terminations)
        self.rewards = managers.RewardManager(context, cfg.rewards, cfg.only_positive_rewards)
        self.costs = managers.CostManager(context, cfg.costs)
        self.curriculum = managers.CurriculumManager(context, cfg.curriculum)
        self.observations = managers.ObservationManager(
            context, cfg.observations, self.observation_limit
        )

    def spaces(self, cfg: "TaskCfg") -> Spaces:
        """Return the spaces of one environment."""
        spaces: dict[str, Space] = {}
        for name, group in self.observations.groups.items():
            if group.concatenate:
                spaces[name] = self._observation_box(group.size)
            else:
                parts: dict[str, Space] = {}
                for term, width in zip(group.names, group.widths, strict=True):
                    parts[term] = self._observation_box(width)
                spaces[name] = gym.spaces.Dict(parts)
        return Spaces(observations=spaces, action=self.action_space(cfg))

    def action_space(self, cfg: "TaskCfg") -> gym.spaces.Box:
        """Return the action space of one environment."""
        return gym.spaces.Box(-cfg.action_limit, cfg.action_limit, (self.actions.size,))

    def _observation_box(self, size: int) -> gym.spaces.Box:
        return gym.spaces.Box(-self.observation_limit, self.observation_limit, (size,))

    def begin_episodes(self, env_ids: torch.Tensor) -> None:
        """Begin the histories of ``env_ids`` (n,); their robots stand in the first pose."""
        # Commands are reset after the placing, because some depend on where the robot stands.
        self.actions.reset(env_ids)
        self.commands.on_placed(env_ids)
        self.terminations.reset(env_ids)
        self.rewards.reset(env_ids)
        self.costs.reset(env_ids)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Return the logged values of the finished episodes, shape (n, len(log_names))."""
        parts = [manager.end_episodes(env_ids, steps) for manager in self.logging]
        return torch.cat(parts, dim=1)

    def state(self) -> State:
        """Return a copy of the state of all managers, and of the changes."""
        # A namespace is compared as a whole, because there may be any number of changes.
        return {**copy_state(self.by_name), "changes": SimpleNamespace(**self.changes)}

    def state_template(self) -> State:
        """Return what a state must look like, with None for what is None at some times."""
        return {**state_template(self.by_name), "changes": SimpleNamespace()}

    def load_changes(self, state: State) -> None:
        """Build the managers again if ``state`` was saved with other changes.

        Raises:
            ValueError: If the state does not fit the managers; nothing is changed then.
        """
        changes = vars(state["changes"])
        if changes != self.changes:
            own = {name: part for name, part in state.items() if name in MANAGERS}
            self._rebuild(changes, apply_changes(self.env.cfg, changes), own)

    def load_state(self, state: State) -> None:
        """Return to a state from :meth:`state`."""
        restore_state(self.by_name, state)

    def reconfigure(self, changes: Changes) -> None:
        """Change terms from now on: see ``CoreVectorEnv.reconfigure``."""
        if not self.env.cfg.is_reconfigurable:
            raise ValueError(
                "reconfigure: a task in the words of another framework changes its own attributes"
            )
        for path in changes:
            first = str(path).partition(".")[0]
            check_choice(f"reconfigure: the first part of {path!r}", first, CHANGEABLE)
        # Changes apply in their order, so that a path that is changed again comes last.
        kept = {path: value for path, value in self.changes.items() if path not in changes}
        merged = {**kept, **changes}
        # env.cfg stays as it was made.
        cfg = apply_changes(self.env.cfg, merged)
        # Loading the state sets the weights too, so that it must hold the changed ones.
        state = copy_state(self.by_name)
        state["rewards"]["weights"] = self._changed_weights(cfg, changes)
        self._rebuild(merged, cfg, state)
        restore_state(self.by_name, state)

    def _changed_weights(self, cfg: "TaskCfg", changes: Changes) -> tuple[float, ...]:
        """Return the weights of rewards after ``changes``.

        A weight that no path of ``changes`` sets stays at its present value, which a curriculum may
        have set.

        Args:
            cfg: Configuration of the task with all changes.
            changes: The new changes.
        """
        weights = dict(zip(self.rewards.names, self.rewards.weights, strict=True))
        for path in changes:
            for name in self._weighted(path):
                # A term that was removed is refused later, by its name.
                if name in cfg.rewards:
                    weights[name] = cfg.rewards[name].weight
        return tuple(weights.values())

    def _weighted(self, path: str) -> tuple[str, ...]:
        """Return the names of the rewards whose weight a path of changes sets."""
        kind, *names = path.split(".")
        if kind != "rewards":
            return ()
        if not names:
            return self.rewards.names
        head, *rest = names
        name = head if head in self.rewards.names else RENAMED_REWARDS.get(head, head)
        sets_weight = rest in ([], ["weight"])
        return (name,) if sets_weight and name in self.rewards.names else ()

    def _rebuild(self, changes: Changes, cfg: "TaskCfg", state: State) -> None:
        """Build the managers of a task, which ``state`` is to be loaded into.

        Args:
            changes: All changes of the task since the environment was made.
            cfg: Configuration of the task with these changes.
            state: State of all managers.

        Raises:
            ValueError: If the state does not fit the managers; nothing is changed then.
        """
        env = self.env
        self._check_physics(cfg)
        # Terms are evaluated once more, which must not advance the random streams.
        random = env.random.state_dict()
        try:
            with torch.inference_mode(False):
                rebuilt = ManagerSet(env, self.context)
                rebuilt.observation_limit = self.observation_limit
                # Commands are not among CHANGEABLE: their present terms continue.
                rebuilt.commands = self.commands
                rebuilt._build_actions_and_events(cfg)
                rebuilt.build_evaluation(cfg)
            self._check_same_terms(rebuilt)
            self._check_same_sizes(rebuilt)
            check_same_structure(
                state,
                state_template(rebuilt.by_name),
                "reconfigure: state",
                "has {}, but now needs {}",
            )
        finally:
            env.random.load_state_dict(random)
        # All checks are done: from here on nothing may fail, or half of the managers were new.
        self.actions = rebuilt.actions
        self.events = rebuilt.events
        self.terminations = rebuilt.terminations
        self.rewards = rebuilt.rewards
        self.costs = rebuilt.costs
        self.curriculum = rebuilt.curriculum
        self.observations = rebuilt.observations
        self.changes = dict(changes)
        env.task.cost_limits = self.costs.limits
        env.cost_limits = self.costs.limits
        # Equal control steps and decimations mean equal physics steps: nothing to set then.
        if cfg.sim.decimation != env.decimation:
            env.sim.set_timestep(cfg.sim.dt)
            env.decimation = cfg.sim.decimation

    def _check_physics(self, cfg: "TaskCfg") -> None:
        env = self.env
        if replace(cfg.sim, dt=env.cfg.sim.dt, decimation=env.cfg.sim.decimation) != env.cfg.sim:
            raise ValueError("reconfigure: of sim only dt and decimation can change")
        # Rewards, commands and episode lengths are in seconds: their scale is the control step.
        if abs(cfg.sim.step_dt - env.step_dt) > 1e-9:
            raise ValueError(
                f"reconfigure: {cfg.sim.decimation} physics steps of {cfg.sim.dt:g} s "
                f"must take as long as a control step, {env.step_dt:g} s"
            )

    def _check_same_terms(self, rebuilt: "ManagerSet") -> None:
        names = self._term_names()
        for kind, terms in rebuilt._term_names().items():
            if terms != names[kind]:
                differing = ", ".join(sorted(set(terms) ^ set(names[kind])))
                raise ValueError(
                    f"reconfigure: terms of {kind} would be added or removed: {differing}"
                )

    def _check_same_sizes(self, rebuilt: "ManagerSet") -> None:
        sizes = {name: group.size for name, group in rebuilt.observations.groups.items()}
        own = {name: group.size for name, group in self.observations.groups.items()}
        if sizes != own or rebuilt.actions.size != self.actions.size:
            raise ValueError(
                f"reconfigure: observations {own} and {self.actions.size} actions would change "
                f"to {sizes} and {rebuilt.actions.size}"
            )

    def _term_names(self) -> dict[str, tuple[str, ...]]:
        names = {kind: tuple(manager.names) for kind, manager in self.by_name.items()}
        for name, group in self.observations.groups.items():
            names[f"observations.{name}"] = tuple(group.names)
        return names
