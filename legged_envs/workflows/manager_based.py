"""Tasks as Isaac Lab's manager-based workflow writes them: configuration classes whose attributes are terms."""

import copy
import math
from dataclasses import MISSING, fields, replace
from functools import partial
from inspect import signature
from typing import Any

import torch

from legged_envs import managers
from legged_envs.checks import check_known
from legged_envs.configuration import configclass
from legged_envs.envs import Evaluation
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.manager_env import MANAGERS
from legged_envs.managers.adapted import Adapted
from legged_envs.managers.recorder import RecorderManager
from legged_envs.mdp import isaac_lab
from legged_envs.mdp.context import is_pure
from legged_envs.mdp.noise import UniformNoiseCfg
from legged_envs.mdp.scene_entity import resolved
from legged_envs.sim import ViewerCfg
from legged_envs.state import put_back_rows, rows_of
from legged_envs.workflows.isaac import IsaacCore, IsaacEnv, full_name
from legged_envs.workflows.isaac_cfg import SimulationCfg, world
from legged_envs.workflows.scene import InteractiveScene
from legged_envs.workflows.workflow import WorkflowCore, others_unchanged


def _term_cfg(manager: Any, name: str) -> Any:
    """A copy of the configuration of a term; ValueError if there is no such."""
    check_known(f"{type(manager).__name__} has no term, or none with a weight,", (name,), manager.names, "terms")
    return replace(manager.cfg[name], params=copy.deepcopy(manager.cfg[name].params))


def _set_term_cfg(task: Any, manager: Any, name: str, cfg: Any) -> None:
    """Set the weight of a reward term; ValueError if anything else differs from what the term was made with."""
    now, given = _term_cfg(manager, name), replace(cfg, params=resolved(copy.deepcopy(cfg.params), task.scene))
    if given.func is getattr(now.func, "func", None):
        given.func = now.func
    changes = [key for key, value in vars(now).items() if getattr(given, key, value) != value]
    if {*changes} - {"weight"}:
        how = "only the weight of a reward can: set it in the configuration, and make another environment"
        raise ValueError(f"{type(manager).__name__}: {changes} of the term {name!r} cannot change, {how}")
    if changes:
        manager.set_weight(name, cfg.weight)


def _term(task: Any, manager: Any, name: str) -> Any:
    """Whose episode a termination term ended, (num_envs,), or the term of another manager."""
    name = task.renamed.get(name, name)
    check_known(f"{type(manager).__name__} has no term", (name,), manager.names, "terms")
    reasons = isinstance(manager, managers.TerminationManager)
    return manager.reasons[:, manager.names.index(name)] if reasons else manager.terms[name]


VIEWS = {f"{name.removesuffix('s')}_manager": name for name in MANAGERS}
NAMES: dict[str, Any] = {
    "active_terms": lambda task, manager: list(manager.names),
    "get_term_cfg": lambda task, manager: partial(_term_cfg, manager),
    "set_term_cfg": lambda task, manager: partial(_set_term_cfg, task, manager),
    "get_term": lambda task, manager: partial(_term, task, manager),
    "get_command": lambda task, manager: lambda name: manager[task.renamed.get(name, name)],
    "action": lambda task, manager: manager.current,
    "prev_action": lambda task, manager: manager.previous,
    "total_action_dim": lambda task, manager: manager.size,
    "group_obs_dim": lambda task, manager: {name: (group.size,) for name, group in manager.groups.items()},
}
"""Isaac Lab's names of the managers, and what it calls parts of them, beside their own names."""


@configclass
class ObservationTermCfg(managers.ObservationTermCfg):
    """value → ``noise`` → ``clip`` → ``scale`` → history."""

    noise: Any = None
    history_length: int = 0


@configclass
class ObservationGroupCfg:
    """A group; a subclass has its terms as fields."""

    concatenate_terms: bool = True
    enable_corruption: bool = False
    history_length: int | None = None


@configclass
class EventTermCfg(managers.EventTermCfg):
    interval_range_s: tuple[float, float] | None = None


@configclass
class ManagerBasedEnvCfg:
    """Settings of an environment; sections of None have no terms, and a reset begins in the default pose."""

    viewer: ViewerCfg = ViewerCfg()
    sim: SimulationCfg = SimulationCfg()
    ui_window_class_type: Any = None
    seed: int | None = None
    decimation: Any = MISSING
    scene: Any = MISSING
    recorders: Any = None
    observations: Any = MISSING
    actions: Any = MISSING
    events: Any = None
    rerender_on_reset: bool = False
    """Is accepted: nothing is stale after a reset."""
    episode_length_s: Any = math.inf
    is_finite_horizon: bool = False
    only_positive_rewards: bool = False
    action_limit: float = 1.0
    """Whether the sum of the rewards is floored at 0, and bounds of the actions, which are clipped to ±this (ours)."""


@configclass
class ManagerBasedRLEnvCfg(ManagerBasedEnvCfg):
    episode_length_s: Any = MISSING
    rewards: Any = MISSING
    terminations: Any = MISSING
    curriculum: Any = None
    commands: Any = None
    costs: Any = None
    """Terms :class:`~legged_envs.managers.CostTermCfg` (our addition)."""


KINDS: dict[str, Any] = {"rewards": managers.RewardTermCfg, "costs": managers.CostTermCfg}
KINDS |= {"terminations": managers.TerminationTermCfg, "curriculum": managers.CurriculumTermCfg}
KINDS |= {"events": EventTermCfg, "observations": ObservationGroupCfg, "actions": object, "commands": object}
DTYPES = {"rewards": torch.float32, "costs": torch.float32, "terminations": None, "curriculum": None}
"""Sections of a configuration → the class of their terms, and the type that what those return is converted to."""


def _terms(where: str, section: Any, kind: Any) -> dict[str, Any]:
    """The terms that a section has as attributes or entries; TypeError if one is of another kind."""
    given = section if isinstance(section, dict) else getattr(section, "__dict__", {})
    options = {each.name for each in fields(ObservationGroupCfg)}
    terms = {name: term for name, term in given.items() if term is not None and name not in options}
    for name, term in terms.items():
        if not isinstance(term, kind):
            raise TypeError(f"{where}.{name} must be a {full_name(kind)} or None, got a {full_name(type(term))}")
    return terms


def _function(term: Any, dtype: torch.dtype | None) -> Any:
    return term.func if is_pure(term.func) else Adapted(term.func, term, dtype)


def _group(name: str, group: Any) -> managers.ObservationGroupCfg:
    terms = _terms(f"observations.{name}", group, ObservationTermCfg)
    for key, term in terms.items():
        noise = term.noise if group.enable_corruption and term.noise else UniformNoiseCfg(n_min=0.0, n_max=0.0)
        if not isinstance(noise, UniformNoiseCfg) or noise.operation != "add" or noise.n_min != -noise.n_max:
            wrong = f"observation term {key!r} of group {name!r}: noise must be a UniformNoiseCfg that adds"
            raise ValueError(f"{wrong}, and n_min must be -n_max, got {noise!r}")
        steps = (term.history_length if group.history_length is None else group.history_length) or None
        terms[key] = replace(term, func=_function(term, torch.float32), noise=noise.n_max, history=steps)
    return managers.ObservationGroupCfg(terms, group.enable_corruption, concatenate=group.concatenate_terms)


def _event(term: Any) -> managers.EventTermCfg:
    ours = [*signature(term.func).parameters][2:3] == ["random"]
    randomises = getattr(term.func, "__name__", "").startswith("randomize")
    changes = {"purpose": "randomise" if randomises else term.purpose, "interval_s": term.interval_range_s}
    return replace(term, func=term.func if ours else Adapted(term.func, term, event=True), **changes)


def _renamed(cfg: Any) -> dict[str, str]:
    """The name of the velocity command, where there is one → the name by which evaluations find it."""
    commands = _terms("commands", getattr(cfg, "commands", None), object).items()
    return {name: "velocity" for name, term in commands if isinstance(term, isaac_lab.UniformVelocityCommandCfg)}


class ManagerBasedCore(IsaacCore):
    """The environment of a :class:`ManagerBasedEnv`, which its terms see as ``env``."""

    task: Any
    recorder: RecorderManager | None = None

    def finish(self) -> None:
        """Nothing: the constructor has loaded the managers, which have evaluated each term."""

    def _try_out(self) -> None:
        pass

    def _build(self) -> Any:
        self._evaluate_and_observe(self.task.context)
        return self._spaces()

    def _sources(self) -> list[object]:
        return [sensor.data for sensor in self.task.scene.sensors.values()]

    def _evaluate(self) -> Evaluation:
        self.task.common_step_counter += 1
        self.task.scene.update(self.step_dt)
        evaluation = super()._evaluate()
        if self.recorder:
            self.recorder.end_step(evaluation)
        return evaluation

    def _observe(self, env_ids: torch.Tensor | None) -> dict[str, torch.Tensor]:
        if env_ids is None:
            return super()._observe(None)
        terms = {name: term.attributes for name, term in self.task.class_terms.items()}
        before, others = rows_of(terms, self.num_envs), torch.ones(self.num_envs, dtype=torch.bool)
        with others_unchanged(self.task, env_ids):
            rows = super()._observe(env_ids)
        put_back_rows(terms, before, others.index_fill(0, env_ids.cpu(), False))
        return rows

    def _choose_start(self, env_ids: torch.Tensor) -> None:
        self.task._reset_idx(env_ids)

    def close_extras(self, **kwargs: Any) -> None:
        if self.recorder:
            self.recorder.flush()
        super().close_extras(**kwargs)


class ManagerView:
    """A manager of ``task`` under the names of :data:`NAMES`; what that lacks is looked up in the manager."""

    def __init__(self, task: Any, manager: Any):
        self._task, self._manager = task, manager

    def __getattr__(self, name: str) -> Any:
        return NAMES[name](self._task, self._manager) if name in NAMES else getattr(self._manager, name)


class ManagerBasedEnv(IsaacEnv):
    """An environment of terms without rewards and terminations: a step returns observations and ``extras``, and no
    episode ends by itself. ``cfg`` as in Isaac Lab; ``kwargs`` are arguments of ``CoreVectorEnv``."""

    CORE, CFG = ManagerBasedCore, ManagerBasedEnvCfg
    core: ManagerBasedCore

    def __init__(self, cfg: Any, render_mode: str | None = None, **kwargs: Any):
        if cfg.seed is not None:
            self.seed(cfg.seed)
        self.common_step_counter, self.renamed, self.class_terms = 0, _renamed(cfg), dict[str, Adapted]()
        """Control steps since the environment was made."""
        self._make_core(cfg, cfg.scene.num_envs, **{"device": cfg.sim.device, "render_mode": render_mode, **kwargs})
        self.load_managers()

    @classmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        where, facts = type(cfg).__name__, world(cfg)
        if missing := [each.name for each in fields(cfg) if getattr(cfg, each.name) is MISSING]:
            raise ValueError(f"{where}.{missing[0]} is missing: give it a value")
        own: dict[str, Any] = {
            name: _terms(f"{where}.{name}", getattr(cfg, name, None), kind) for name, kind in KINDS.items()
        }
        limit = next((n for n, term in own["terminations"].items() if term.func is isaac_lab.time_out), None)
        time_out = own["terminations"].pop(limit, None)
        facts["episode_length_s"] = cfg.episode_length_s if time_out else math.inf
        facts["is_finite_horizon"] = bool(time_out) and (cfg.is_finite_horizon or not time_out.time_out)
        for section, dtype in DTYPES.items():
            own[section] = {n: replace(term, func=_function(term, dtype)) for n, term in own[section].items()}
        own["events"] = {n: _event(term) for n, term in own["events"].items()}
        own["observations"] = {n: _group(n, group) for n, group in own["observations"].items()}
        for name, ours in _renamed(cfg).items():
            own["commands"][ours] = own["commands"].pop(name).translated()
        facts |= {name: getattr(cfg, name) for name in ("only_positive_rewards", "action_limit")}
        return TaskCfg(**facts, **own)

    reset_terminated = property(lambda self: self.core.terminations.terminated)
    reset_time_outs = property(lambda self: self.core.terminations.time_outs)
    """Whose episode terms ended in this step, and whose they cut off; the time limit is no term. Shape: (num_envs,)."""
    recorder_manager = property(lambda self: self.core.recorder)

    def __getattr__(self, name: str) -> Any:
        manager = super().__getattr__(VIEWS.get(name, name))
        return ManagerView(self, manager) if name in VIEWS else manager

    def load_managers(self) -> None:
        """Make the scene, and the managers, which evaluate each term once."""
        core: Any = self.core
        self.scene = InteractiveScene(self.cfg.scene, core)
        sections = [getattr(core.cfg, name) for name in (*DTYPES, "events")]
        sections += [group.terms for group in core.cfg.observations.values()]
        for term in (term for section in sections for term in section.values()):
            resolved(term.params, self.scene)
            if isinstance(term.func, Adapted):
                self.class_terms[str(len(self.class_terms))] = term.func.make(self)
        WorkflowCore.finish(core)
        core.rewards.STATE = (*core.rewards.STATE, "weights")
        core._evaluated += (self.scene, *self.class_terms.values())
        if self.cfg.recorders:
            core.recorder = RecorderManager(self.cfg.recorders, self)
            core._evaluated, core._logging = (*core._evaluated, core.recorder), (*core._logging, core.recorder)

    def _reset_idx(self, env_ids: torch.Tensor) -> None:
        """Begin the episodes of ``env_ids``: commands are drawn and the events of mode ``"reset"`` happen."""
        self.extras.setdefault("log", {})
        self.core.commands.reset(env_ids)
        self.core.events.reset(env_ids)

    def step(self, action: torch.Tensor) -> Any:
        """Observations and extras."""
        observation, *_, info = self.core.step(action)
        return observation, {**self.extras, **info}


class ManagerBasedRLEnv(ManagerBasedEnv):
    """An environment of terms with rewards and terminations. A step: actions → physics → terminations → rewards →
    commands, interval events → observations; episodes that ended begin anew after it."""

    CFG, step = ManagerBasedRLEnvCfg, IsaacEnv.step
