"""Tasks as Isaac Lab's manager-based workflow writes them: configuration classes whose attributes are terms."""

import copy
import math
from dataclasses import MISSING, fields, replace
from operator import attrgetter
from typing import Any

import torch

from legged_envs import managers
from legged_envs.checks import check_known
from legged_envs.compat.adapter import others_unchanged
from legged_envs.compat.isaac_lab import mdp as isaac_lab
from legged_envs.compat.isaac_lab.adapted_term import Adapted
from legged_envs.compat.isaac_lab.cfg import SimulationCfg, world
from legged_envs.compat.isaac_lab.environment import IsaacCore, IsaacEnv, full_name
from legged_envs.compat.isaac_lab.noise import UniformNoiseCfg
from legged_envs.compat.isaac_lab.recorder import RecorderManager
from legged_envs.compat.isaac_lab.scene import InteractiveScene
from legged_envs.compat.isaac_lab.scene_entity import resolved
from legged_envs.configuration import configclass
from legged_envs.envs import Evaluation, LeggedVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.manager_task import MANAGERS
from legged_envs.mdp.context import is_pure
from legged_envs.sim import ViewerCfg


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
    """A manager-based task: sections whose attributes are terms, beside those of :class:`ManagerBasedEnvCfg`."""

    episode_length_s: Any = MISSING
    rewards: Any = MISSING
    terminations: Any = MISSING
    curriculum: Any = None
    commands: Any = None
    costs: Any = None
    """Terms :class:`~legged_envs.managers.CostTermCfg` (our addition)."""


KINDS: dict[str, Any] = {"rewards": managers.RewardTermCfg, "costs": managers.CostTermCfg}
KINDS |= {"terminations": managers.TerminationTermCfg, "curriculum": managers.CurriculumTermCfg}
KINDS |= {
    "events": EventTermCfg,
    "observations": ObservationGroupCfg,
    "actions": object,
    "commands": object,
}
"""Sections of a configuration → the class of their terms."""
FLOATS = (managers.RewardTermCfg, managers.CostTermCfg, managers.ObservationTermCfg)
"""Terms whose values are converted to float32."""


def _terms(where: str, section: Any, kind: Any) -> dict[str, Any]:
    """The terms that a section has as attributes or entries, functions adapted; TypeError if one is of another kind."""
    given = section if isinstance(section, dict) else getattr(section, "__dict__", {})
    options = {each.name for each in fields(ObservationGroupCfg)}
    terms = {name: term for name, term in given.items() if term is not None and name not in options}
    for name, term in terms.items():
        if not isinstance(term, kind):
            raise TypeError(
                f"{where}.{name} must be a {full_name(kind)} or None, got a {full_name(type(term))}"
            )
        if hasattr(term, "func") and not is_pure(term.func):
            dtype = torch.float32 if isinstance(term, FLOATS) else None
            terms[name] = replace(
                term, func=Adapted(term.func, term, dtype, event=isinstance(term, EventTermCfg))
            )
    return terms


def _group(where: str, group: Any) -> managers.ObservationGroupCfg:
    terms = _terms(where, group, ObservationTermCfg)
    for key, term in terms.items():
        noise = term.noise or UniformNoiseCfg(n_min=0.0, n_max=0.0)
        if (
            not isinstance(noise, UniformNoiseCfg)
            or noise.operation != "add"
            or noise.n_min != -noise.n_max
        ):
            raise ValueError(
                f"{where}.{key}.noise must be a UniformNoiseCfg that adds, n_min = -n_max, got {noise!r}"
            )
        steps = (
            term.history_length if group.history_length is None else group.history_length
        ) or None
        terms[key] = replace(term, noise=noise.n_max, history=steps)
    return managers.ObservationGroupCfg(
        terms, group.enable_corruption, concatenate=group.concatenate_terms
    )


def _renamed(cfg: Any) -> dict[str, str]:
    """The name of the velocity command, where there is one → the name by which evaluations find it."""
    commands = _terms("commands", getattr(cfg, "commands", None), object).items()
    return {
        name: "velocity"
        for name, term in commands
        if isinstance(term, isaac_lab.UniformVelocityCommandCfg)
    }


class ManagerBasedCore(IsaacCore):
    """The environment of a :class:`ManagerBasedEnv`, which its terms see as ``env``."""

    def finish(self) -> None:
        """Nothing: the constructor has loaded the managers, which have evaluated each term."""

    def _build(self) -> Any:
        self._evaluate_and_observe(self.task.context)
        return self._spaces()

    def _sources(self) -> list[object]:
        return [sensor.data for sensor in self.task.scene.sensors.values()]

    def _evaluate(self) -> Evaluation:
        self.task.common_step_counter += 1
        self.task.scene.update(self.step_dt)
        evaluation = super()._evaluate()
        if self.task.recorder_manager:
            self.task.recorder_manager.end_step(evaluation)
        return evaluation

    def _observe(self, env_ids: torch.Tensor | None) -> dict[str, torch.Tensor]:
        if env_ids is None:
            return super()._observe(None)
        terms = {name: term.attributes for name, term in self.task.class_terms.items()}
        with others_unchanged(self.task, env_ids, **terms):
            return super()._observe(env_ids)

    def _choose_start(self, env_ids: torch.Tensor) -> None:
        self.task._reset_idx(env_ids)

    def close_extras(self, **kwargs: Any) -> None:
        if self.task.recorder_manager:
            self.task.recorder_manager.flush()
        super().close_extras(**kwargs)


class ManagerView:
    """The manager that ``task`` has under a ``kind``, such as ``"rewards"``, with Isaac Lab's names beside its own."""

    def __init__(self, task: Any, kind: str):
        self._task, self._kind = task, kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    _manager = property(lambda self: getattr(self._task.core, self._kind))
    active_terms = property(lambda self: list(self.names))
    action, prev_action = property(attrgetter("current")), property(attrgetter("previous"))
    total_action_dim = property(attrgetter("size"))
    group_obs_dim = property(
        lambda self: {name: (group.size,) for name, group in self.groups.items()}
    )

    def _known(self, name: str) -> str:
        """The name that the manager has for a term; ValueError if there is no such."""
        name = self._task.renamed.get(name, name)
        check_known(
            f"{type(self._manager).__name__} has no term, or none with a weight,",
            (name,),
            self.names,
            "terms",
        )
        return name

    def get_term(self, name: str) -> Any:
        """Whose episode a termination ended, (num_envs,), or the term of actions or commands."""
        name = self._known(name)
        is_termination = isinstance(self._manager, managers.TerminationManager)
        return self.reasons[:, self.names.index(name)] if is_termination else self.terms[name]

    def get_command(self, name: str) -> torch.Tensor:
        return self.get_term(name).value

    def get_term_cfg(self, name: str) -> Any:
        """A copy of the configuration of a term."""
        cfg = self.cfg[self._known(name)]
        return replace(cfg, params=copy.deepcopy(cfg.params))

    def set_term_cfg(self, name: str, cfg: Any) -> None:
        """Set the weight of a reward; ValueError unless the rest is what :meth:`get_term_cfg` returns."""
        now = self.get_term_cfg(name)
        if (cfg.func, cfg.params) != (now.func, now.params):
            raise ValueError(
                f"set_term_cfg({name!r}, …) sets the weight of what get_term_cfg returned, not {cfg}"
            )
        self.set_weight(name, cfg.weight)


class ManagerBasedEnv(IsaacEnv):
    """An environment of terms without rewards and terminations: a step returns observations and ``extras``, and no
    episode ends by itself. ``cfg`` as in Isaac Lab; ``kwargs`` are arguments of ``CoreVectorEnv``."""

    CORE, CFG = ManagerBasedCore, ManagerBasedEnvCfg
    recorder_manager: RecorderManager | None = None

    def __init__(self, cfg: Any, render_mode: str | None = None, **kwargs: Any):
        self.common_step_counter, self.renamed, self.class_terms = (
            0,
            _renamed(cfg),
            dict[str, Adapted](),
        )
        """Control steps since the environment was made."""
        for kind in MANAGERS:
            setattr(self, f"{kind.removesuffix('s')}_manager", ManagerView(self, kind))
        self._make_core(
            cfg,
            cfg.scene.num_envs,
            **{"device": cfg.sim.device, "render_mode": render_mode, **kwargs},
        )
        self.load_managers()

    @classmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        where, facts = type(cfg).__name__, world(cfg)
        if missing := [each.name for each in fields(cfg) if getattr(cfg, each.name) is MISSING]:
            raise ValueError(f"{where}.{missing[0]} is missing: give it a value")
        own: dict[str, Any] = {
            n: _terms(f"{where}.{n}", getattr(cfg, n, None), kind) for n, kind in KINDS.items()
        }
        ends = own["terminations"]
        limits = [
            ends.pop(name) for name, term in [*ends.items()] if term.func is isaac_lab.time_out
        ]
        facts["episode_length_s"] = cfg.episode_length_s if limits else math.inf
        facts["is_finite_horizon"] = any(
            cfg.is_finite_horizon or not limit.time_out for limit in limits
        )
        own["events"] = {
            n: replace(term, interval_s=term.interval_range_s) for n, term in own["events"].items()
        }
        own["observations"] = {
            n: _group(f"{where}.observations.{n}", each) for n, each in own["observations"].items()
        }
        for name, ours in _renamed(cfg).items():
            own["commands"][ours] = own["commands"].pop(name).translated()
        facts |= {name: getattr(cfg, name) for name in ("only_positive_rewards", "action_limit")}
        return TaskCfg(**facts, **own)

    reset_terminated = property(lambda self: self.core.terminations.terminated)
    reset_time_outs = property(lambda self: self.core.terminations.time_outs)
    """Whose episode terms ended in this step, and whose they cut off; the time limit is no term. Shape: (num_envs,)."""

    def load_managers(self) -> None:
        """Make the scene, and the managers, which evaluate each term once."""
        core: Any = self.core
        self.scene = InteractiveScene(self.cfg.scene, core)
        sections = [getattr(core.cfg, name) for name in KINDS]
        sections += [group.terms for group in core.cfg.observations.values()]
        for term in (
            term for section in sections for term in section.values() if hasattr(term, "func")
        ):
            resolved(term.params, self.scene)
            if isinstance(term.func, Adapted):
                self.class_terms[str(len(self.class_terms))] = term.func.make(self)
        with torch.inference_mode(False), torch.no_grad():
            LeggedVectorEnv._set_up(core)
        core._evaluated += (self.scene, *self.class_terms.values())
        if self.cfg.recorders:
            self.recorder_manager = recorder = RecorderManager(self.cfg.recorders, self)
            core._evaluated, core._logging = (
                (*core._evaluated, recorder),
                (*core._logging, recorder),
            )

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
