"""The task as managers evaluate it: dicts of terms under names."""

import functools
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv

from legged_envs import managers
from legged_envs.envs.core import CoreVectorEnv
from legged_envs.envs.hooks import Evaluation
from legged_envs.managers import Piece, Program
from legged_envs.state import copied, restored
from legged_envs.tables import Table

OBSERVATION_LIMIT = 100.0
"""Observations are clipped to ±this, so that their space is finite (legged_gym ``clip_observations``)."""
MANAGERS = ("actions", "commands", "observations", "rewards", "costs", "terminations", "events", "curriculum")


class LeggedVectorEnv(CoreVectorEnv):
    """``num_envs`` robots with a task of terms: see :class:`CoreVectorEnv` for arguments and lifecycle. Managers
    evaluate terminations, rewards, costs → commands, events → observations. The log holds the mean over the ended
    episodes of each reward term (per second), cost term (per step) and curriculum."""

    observation_limit = OBSERVATION_LIMIT

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        self._move_and_command(self)
        self._evaluate_and_observe(self)
        return self._spaces()

    def _spaces(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        box = functools.partial(gym.spaces.Box, -self.observation_limit, self.observation_limit)
        spaces: dict[str, gym.Space[Any]] = {n: box((group.size,)) for n, group in self.observations.groups.items()}
        for name, group in self.observations.groups.items():
            if not group.concatenate:
                parts = zip(group.names, group.widths, strict=True)
                spaces[name] = gym.spaces.Dict({term: box((width,)) for term, width in parts})
        return spaces, gym.spaces.Box(-self.cfg.action_limit, self.cfg.action_limit, (self.actions.size,))

    def _move_and_command(self, env: Any) -> None:
        """Make the managers that evaluate no terms; ``env`` is what their terms see."""
        cfg = self.cfg
        self.commands = managers.CommandManager(env, cfg.commands)
        self.actions = managers.ActionManager(env, cfg.actions, cfg.max_action_delay, cfg.action_limit)
        self.events = managers.EventManager(env, cfg.events)
        for robot in self.robots.values():
            robot.reset(self._all_ids)

    def _evaluate_and_observe(self, env: Any) -> None:
        """Make the other managers, which evaluate each term once, and record them; ``env`` is what the terms see."""
        cfg = self.cfg
        self.terminations = managers.TerminationManager(env, cfg.terminations)
        self.rewards = managers.RewardManager(env, cfg.rewards, cfg.only_positive_rewards)
        self.costs = managers.CostManager(env, cfg.costs)
        self.curriculum = managers.CurriculumManager(env, cfg.curriculum)
        self.observations = managers.ObservationManager(env, cfg.observations, self.observation_limit)
        self.managers: dict[str, managers.Manager] = {name: getattr(self, name) for name in MANAGERS}
        self.cost_names, self.cost_limits = self.costs.names, self.costs.limits
        self._evaluated = (self.terminations, self.rewards, self.costs)
        self._logging = (self.commands, self.rewards, self.costs, self.curriculum, self.terminations)
        self.log_names = tuple(name for manager in self._logging for name in manager.log_names)
        groups = self.observations.groups
        self._groups = [group for name, group in groups.items() if self._dict_observations or name == "policy"]
        self._checked = [group for group in self._groups if not group.own]
        parts = [part for robot in self.robots.values() for part in robot.owners()]
        owners: list[object] = [self.sim.ground] if self.sim.ground is not None else []
        owners += [*parts, *(owner for sim in self.sim.robots.values() for owner in (sim, sim.parameters))]
        owners += [owner for manager in self.managers.values() for owner in manager.owners()] + self._sources()
        self._record([Piece(part.compute, True) for part in parts], owners)

    def _record(self, robots: list[Piece], owners: list[object]) -> None:
        """Record a step's maths, ``robots`` first, which reads and sets attributes of the ``owners``."""
        self._evaluation = Program(robots + self._evaluation_pieces(), owners, self._compile)
        self._observation = Program(self._observation_pieces(), owners, self._compile)

    def _sources(self) -> list[object]:
        """Whose tensors terms read beside those of robots, simulation and managers."""
        return []

    def _evaluation_pieces(self) -> list[Piece]:
        return [piece for manager in self._evaluated for piece in manager.pieces()]

    def _observation_pieces(self) -> list[Piece]:
        return [piece for group in self._groups for piece in group.pieces()]

    def _act(self, action: torch.Tensor) -> None:
        self.sim.set_joint_targets(self.actions.process(action))
        self.sim.step(self.cfg.sim.decimation)

    def _evaluate(self) -> Evaluation:
        self._evaluation()
        self.rewards.check_values(self._recovered)
        self.costs.check_values(self._recovered)
        ended, costs = self.terminations, self.costs
        return Evaluation(ended.terminated, self.rewards.total, costs.total, costs.values, ended.time_outs)

    def _advance(self) -> None:
        self.commands.advance()
        for env_ids in self.events.advance():
            for robot in self.robots.values():
                robot.refresh(env_ids)

    def _observe(self, env_ids: torch.Tensor | None) -> dict[str, torch.Tensor]:
        if env_ids is not None:
            return {group.name: group.shown(group.compute_rows(env_ids)) for group in self._groups}
        for group in self._groups:
            group.draw()
        self._observation()
        for group in self._checked:
            group.check_values()
        return {group.name: group.shown(group.value) for group in self._groups}

    def _place(self, env_ids: torch.Tensor, seeded: bool) -> None:
        if seeded:
            if self.sim.ground is not None:
                self.sim.ground.choose_tiles(env_ids, self.random.stream("terrain"))
            self.events.apply("startup", env_ids)
        self._choose_start(env_ids)

    def _choose_start(self, env_ids: torch.Tensor) -> None:
        """Draw commands and first poses."""
        self.commands.reset(env_ids)
        self.events.reset(env_ids)

    def _begin_episodes(self, env_ids: torch.Tensor) -> None:
        self.actions.reset(env_ids)
        self.commands.placed(env_ids)
        for manager in self._evaluated:
            manager.reset(env_ids)

    def _end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return torch.cat([manager.end_episodes(env_ids, steps) for manager in self._logging], dim=1)

    def _own_state(self) -> dict[str, Any]:
        return dict(copied(self.managers))

    def _load_own_state(self, state: dict[str, Any]) -> None:
        restored(self.managers, state)

    def close_extras(self, **kwargs: Any) -> None:
        """Free what is large at once: a circle of references would wait for the garbage collector."""
        super().close_extras(**kwargs)
        self._evaluation = self._observation = Program([], [])
        owners = [owner for manager in self.managers.values() for owner in (manager, *manager.owners())]
        for names in map(vars, owners):
            names.update({name: None for name, value in names.items() if value is self})

    def _as_tables(self) -> Iterator[Table]:
        facts = {"robot": self.cfg.robot.name, "step [s]": self.step_dt, "episode [s]": self.max_episode_length_s}
        facts |= {"observations": self.group_sizes, "actions": self.actions.size}
        yield f"{self}", tuple(facts), [tuple(facts.values())]
        for manager in self.managers.values():
            if manager.cfg:
                yield from manager._as_tables()


def unwrap(env: VectorEnv) -> LeggedVectorEnv:
    """The :class:`LeggedVectorEnv` under a stack of wrappers; TypeError if there is another environment."""
    core: object = env.unwrapped
    if not isinstance(core, LeggedVectorEnv):
        raise TypeError(f"expected a LeggedVectorEnv under the wrappers, got {type(core).__name__}")
    return core
