"""The task as managers evaluate it: dicts of terms under names."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv

from legged_envs import managers
from legged_envs.checks import check_choice
from legged_envs.envs.arguments import check_same_structure
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.envs.core import CoreVectorEnv
from legged_envs.envs.task import Evaluation
from legged_envs.managers import Piece, Program
from legged_envs.state import copy_state, restore_state
from legged_envs.tables import Table

OBSERVATION_LIMIT = 100.0
"""Observations are clipped to ±this, so that their space is finite (legged_gym ``clip_observations``)."""
CHANGEABLE = ("actions", "observations", "rewards", "costs", "terminations", "events", "sim")
"""What :meth:`LeggedVectorEnv.reconfigure` changes: terms of these managers, and the steps of physics."""
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


class LeggedVectorEnv(CoreVectorEnv):
    """``num_envs`` robots with a task of terms: see :class:`CoreVectorEnv` for arguments and lifecycle. Managers
    evaluate terminations, rewards, costs → commands, events → observations. The log holds the mean over the ended
    episodes of each reward term (per second), cost term (per step) and curriculum."""

    observation_limit = OBSERVATION_LIMIT
    changes: Mapping[str, Any] = {}
    """What :meth:`reconfigure` has changed in ``cfg`` since the environment was made, by path."""

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        self._move_and_command(self)
        self._evaluate_and_observe(self)
        return self._spaces()

    def _spaces(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        box = functools.partial(gym.spaces.Box, -self.observation_limit, self.observation_limit)
        spaces: dict[str, gym.Space[Any]] = {
            n: box((group.size,)) for n, group in self.observations.groups.items()
        }
        for name, group in self.observations.groups.items():
            if not group.concatenate:
                parts = zip(group.names, group.widths, strict=True)
                spaces[name] = gym.spaces.Dict({term: box((width,)) for term, width in parts})
        return spaces, gym.spaces.Box(
            -self.cfg.action_limit, self.cfg.action_limit, (self.actions.size,)
        )

    def _move_and_command(self, env: Any) -> None:
        """Make the managers that evaluate no terms; ``env`` is what their terms see."""
        self.commands = managers.CommandManager(env, self.cfg.commands)
        self._act_and_happen(env, self.cfg)
        for robot in self.robots.values():
            robot.reset(self._all_ids)

    def _act_and_happen(self, env: Any, cfg: TaskCfg) -> None:
        self.actions = managers.ActionManager(
            env, cfg.actions, cfg.max_action_delay, cfg.action_limit
        )
        self.events = managers.EventManager(env, cfg.events)

    def _evaluate_and_observe(self, env: Any, cfg: TaskCfg | None = None) -> None:
        """Make the other managers, which evaluate each term once, and record them; ``env`` is what the terms see."""
        cfg = cfg or self.cfg
        self.terminations = managers.TerminationManager(env, cfg.terminations)
        self.rewards = managers.RewardManager(env, cfg.rewards, cfg.only_positive_rewards)
        self.costs = managers.CostManager(env, cfg.costs)
        self.curriculum = managers.CurriculumManager(env, cfg.curriculum)
        self.observations = managers.ObservationManager(
            env, cfg.observations, self.observation_limit
        )
        self.managers: dict[str, managers.Manager] = {
            name: getattr(self, name) for name in MANAGERS
        }
        self.cost_names, self.cost_limits = self.costs.names, self.costs.limits
        self._evaluated = (self.terminations, self.rewards, self.costs)
        self._logging = (
            self.commands,
            self.rewards,
            self.costs,
            self.curriculum,
            self.terminations,
        )
        self.log_names = tuple(name for manager in self._logging for name in manager.log_names)
        groups = self.observations.groups
        self._groups = [
            group for name, group in groups.items() if self._dict_observations or name == "policy"
        ]
        self._checked = [group for group in self._groups if not group.own]
        owners: list[object] = [self.sim.ground] if self.sim.ground is not None else []
        owners += [*self.robots.values(), *self.sim.robots.values()]
        owners += [part for robot in self.robots.values() for part in robot._bodies.values()]
        owners += [
            owner for manager in self.managers.values() for owner in manager.owners()
        ] + self._sources()
        self._record([Piece(robot.compute, False) for robot in self.robots.values()], owners)

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

    @property
    def acts_by_terms(self) -> bool:
        """Whether joint targets are what the action terms of ``cfg`` make of an action."""
        return True

    def _act(self, action: torch.Tensor) -> None:
        self.sim.set_joint_targets(self.actions.process(action))
        self.sim.step(self.decimation)

    def _evaluate(self) -> Evaluation:
        self._evaluation()
        self.rewards.check_values(self._recovered)
        self.costs.check_values(self._recovered)
        ended, costs = self.terminations, self.costs
        return Evaluation(
            ended.terminated, self.rewards.total, costs.total, costs.values, ended.time_outs
        )

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
        self.commands.on_placed(env_ids)
        for manager in self._evaluated:
            manager.reset(env_ids)

    def _end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return torch.cat([manager.end_episodes(env_ids, steps) for manager in self._logging], dim=1)

    def _own_state(self) -> dict[str, Any]:
        return {
            **copy_state(self.managers),
            "changes": SimpleNamespace(**self.changes),
        }  # of which there may be any

    def _load_own_changes(self, state: dict[str, Any]) -> None:
        own = {name: part for name, part in state.items() if name in self.managers}
        if (changes := vars(state["changes"])) != self.changes:
            self._make_anew(changes, own)

    def _load_own_state(self, state: dict[str, Any]) -> None:
        restore_state(
            self.managers, {name: part for name, part in state.items() if name != "changes"}
        )

    def _forget_this_moment(self) -> None:
        for group in self.observations.groups.values():
            group.forget_last()

    def reconfigure(self, changes: Mapping[str, Any]) -> None:
        """Change the task from now on, by paths as in ``cfg`` of make_vec, in the terms that it has of what
        :data:`CHANGEABLE` names: ``{"events.push.params.velocity": 1.0}``, or as many physics steps of another length
        in a control step: ``{"sim.dt": 0.01, "sim.decimation": 2}``. Managers are made anew, which takes as long as
        tens of steps; their state stays, and the state of the environment has the changes. Limits of costs reach the
        wrappers that are made later. Raises what ``cfg`` does, ValueError for other paths or if terms would come, go or
        change their sizes; nothing is changed then."""
        if self.cfg.workflow is not None:
            raise ValueError(
                "reconfigure: a task in the words of another framework changes its own attributes"
            )
        for path in changes:
            check_choice(
                f"reconfigure: the first part of {path!r}", str(path).partition(".")[0], CHANGEABLE
            )
        state = copy_state(self.managers)
        weights = dict(zip(self.rewards.names, self.rewards.weights, strict=True))
        for path, value in changes.items():
            if path.startswith("rewards.") and path.endswith(".weight") and path.count(".") == 2:
                weights[path.split(".")[1]] = value
        state["rewards"]["weights"] = tuple(map(weights.get, self.rewards.names))
        self._make_anew({**self.changes, **changes}, state)
        restore_state(self.managers, state)

    def _make_anew(self, changes: Mapping[str, Any], state: dict[str, Any]) -> None:
        """Make the managers of :data:`CHANGEABLE` of the task with ``changes``; ValueError, and nothing changed, unless
        what they are to have of a ``state`` fits them."""
        before, random, names = dict(vars(self)), self.random.state_dict(), self._term_names()
        with torch.inference_mode(False):
            try:
                cfg = override(self.cfg, changes)
                if (
                    replace(cfg.sim, dt=self.cfg.sim.dt, decimation=self.cfg.sim.decimation)
                    != self.cfg.sim
                ):
                    raise ValueError("reconfigure: of sim only dt and decimation can change")
                if abs(cfg.sim.step_dt - self.step_dt) > 1e-9:
                    wrong = f"reconfigure: {cfg.sim.decimation} physics steps of {cfg.sim.dt:g} s"
                    raise ValueError(
                        f"{wrong} must take as long as a control step, {self.step_dt:g} s"
                    )
                self._act_and_happen(self, cfg)
                self._evaluate_and_observe(self, cfg)
                for kind, terms in self._term_names().items():
                    if terms != names[kind]:
                        differing = ", ".join(sorted({*terms} ^ {*names[kind]}))
                        raise ValueError(
                            f"reconfigure: terms of {kind} would come or go: {differing}"
                        )
                sizes = {name: group.size for name, group in self.observations.groups.items()}
                check_same_structure(
                    state,
                    copy_state(self.managers),
                    "reconfigure: state",
                    "has {}, but now needs {}",
                )
                if (sizes, self.actions.size) != (self.group_sizes, before["actions"].size):
                    raise ValueError(
                        f"reconfigure: observations {self.group_sizes} would get other sizes, {sizes}"
                    )
            except Exception:
                vars(self).clear()
                vars(self).update(before)
                raise
            finally:
                self.random.load_state_dict(random)  # terms were evaluated once more
        self.changes = dict(changes)
        if cfg.sim.decimation != self.decimation:
            self.sim.set_timestep(cfg.sim.dt)
            self.decimation = cfg.sim.decimation

    def _term_names(self) -> dict[str, tuple[str, ...]]:
        groups = {
            f"observations.{name}": tuple(group.names)
            for name, group in self.observations.groups.items()
        }
        return {**{kind: tuple(manager.names) for kind, manager in self.managers.items()}, **groups}

    def close_extras(self, **kwargs: Any) -> None:
        """Free what is large at once: a circle of references would wait for the garbage collector."""
        super().close_extras(**kwargs)
        self._evaluation = self._observation = Program([], [])
        owners = [
            owner for manager in self.managers.values() for owner in (manager, *manager.owners())
        ]
        for names in map(vars, owners):
            names.update({name: None for name, value in names.items() if value is self})

    def _as_tables(self) -> Iterator[Table]:
        facts = {
            "robot": self.cfg.robot.name,
            "step [s]": self.step_dt,
            "episode [s]": self.max_episode_length_s,
        }
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
