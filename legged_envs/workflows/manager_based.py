"""Tasks as Isaac Lab's manager-based workflow writes them: configuration classes whose attributes are terms."""

import math
from collections.abc import Callable
from dataclasses import MISSING, field, fields, replace
from functools import partial
from inspect import isroutine, signature
from typing import Any, ClassVar

import torch
from torch import Tensor

from legged_envs import managers
from legged_envs.envs import Evaluation
from legged_envs.envs.cfg import TaskCfg
from legged_envs.managers import CostTermCfg, CurriculumTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.managers.adapted import Adapted
from legged_envs.mdp import observations
from legged_envs.mdp.context import is_pure
from legged_envs.sim import ViewerCfg
from legged_envs.workflows import isaac_mdp
from legged_envs.workflows.configclass import SceneEntityCfg, SimulationCfg, configclass, world
from legged_envs.workflows.isaac import IsaacEnv
from legged_envs.workflows.recorder import RecorderManager, RecorderManagerBaseCfg, RecorderTermCfg
from legged_envs.workflows.scene import InteractiveScene
from legged_envs.workflows.workflow import WorkflowCore

KINDS: dict[str, tuple[Any, Any]] = {"rewards": (RewardTermCfg, torch.float32), "costs": (CostTermCfg, torch.float32)}
KINDS |= {"terminations": (TerminationTermCfg, torch.bool), "curriculum": (CurriculumTermCfg, None)}
"""Sections of a configuration → the class of their terms, and the type of what those return."""
NAMES: dict[str, Callable[[Any, Any], Any]] = {
    "active_terms": lambda task, manager: list(manager.names),
    "get_term_cfg": lambda task, manager: manager.cfg.__getitem__,
    "get_term": lambda task, manager: partial(_term, task, manager),
    "get_command": lambda task, manager: lambda name: manager[task.renamed.get(name, name)],
    "action": lambda task, manager: manager.current,
    "prev_action": lambda task, manager: manager.previous,
    "total_action_dim": lambda task, manager: manager.size,
    "set_weight": lambda task, manager: task.core.set_weight,
    "set_term_cfg": lambda task, manager: lambda name, cfg: task.core.set_weight(name, cfg.weight),
    "time_outs": lambda task, manager: manager.time_outs | (task.episode_length_buf >= task.core.limit),
    "dones": lambda task, manager: manager.terminated | NAMES["time_outs"](task, manager),
    "group_obs_dim": lambda task, manager: {name: (group.size,) for name, group in manager.groups.items()},
    "compute": lambda task, manager: task.core._export_observation,
}
"""What Isaac Lab calls parts of the managers, beside their own names."""


@configclass
class ObservationTermCfg:
    """value → ``modifiers``, each ``func(value, **params)`` → ``noise`` → ``clip`` → ``scale`` → history."""

    func: Any = MISSING
    params: Any = field(default_factory=dict)
    modifiers: Any = None
    noise: Any = None
    clip: Any = None
    scale: Any = None
    history_length: int = 0
    flatten_history_dim: bool = True
    mirror: str | None = None
    """How it changes in the left-right mirrored world, for a training that uses that (our addition)."""


@configclass
class ObservationGroupCfg:
    """A group; a subclass has its terms as fields."""

    concatenate_terms: bool = True
    concatenate_dim: int = -1
    enable_corruption: bool = False
    history_length: int | None = None
    flatten_history_dim: bool = True


@configclass
class EventTermCfg:
    func: Any = MISSING
    params: Any = field(default_factory=dict)
    mode: Any = MISSING
    interval_range_s: tuple[float, float] | None = None
    is_global_time: bool = False
    min_step_count_between_reset: int = 0
    purpose: Any = None
    """As in :class:`legged_envs.managers.EventTermCfg`; of a function ``randomize_…`` it is to randomise."""


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


def _terms(where: str, section: Any, kind: Any = object) -> dict[str, Any]:
    """The terms that a section has as attributes or entries; TypeError if one is of another kind."""
    options = {each.name for cls in (ObservationGroupCfg, RecorderManagerBaseCfg) for each in fields(cls)}
    given = section if isinstance(section, dict) else {}
    if section is not None and not isinstance(section, dict):
        names = [*(name for cls in reversed(type(section).__mro__) for name in vars(cls)), *vars(section)]
        given = {name: getattr(section, name) for name in dict.fromkeys(names) if not name.startswith("_")}
    no_terms = {name for name, term in given.items() if term is None or isroutine(term) or isinstance(term, type)}
    terms = {name: term for name, term in given.items() if name not in no_terms | options}
    for name, term in terms.items():
        if not isinstance(term, kind):
            raise TypeError(f"{where}.{name} must be a {kind.__name__} or None, got {term!r}")
    return terms


def _function(term: Any, dtype: torch.dtype | None, shift: float = 0.0) -> Any:
    recorded = is_pure(term.func) and not shift and not getattr(term, "modifiers", None)
    return term.func if recorded else Adapted(term.func, term, dtype, shift)


def _group(name: str, group: Any, renamed: dict[str, str]) -> managers.ObservationGroupCfg:
    terms = {}
    for key, term in _terms(f"observations.{name}", group, ObservationTermCfg).items():
        where = f"observation term {key!r} of group {name!r}"
        noise: Any = term.noise if group.enable_corruption else None
        bounds = {"n_min", "n_max", "bias"} & {*vars(noise or object)}
        if noise is not None and (noise.operation != "add" or not bounds):
            raise ValueError(f"{where}: noise must be a UniformNoiseCfg or ConstantNoiseCfg that adds, got {noise!r}")
        low, high = (noise.n_min, noise.n_max) if "n_min" in bounds else (getattr(noise, "bias", 0.0),) * 2
        steps = term.history_length if group.history_length is None else group.history_length
        if steps and not (term.flatten_history_dim and group.flatten_history_dim):
            raise ValueError(f"{where}: flatten_history_dim must be True, a history stands in one vector")
        func, params = _function(term, torch.float32, (high + low) / 2), term.params
        if func is isaac_mdp.generated_commands:  # so that evaluations find it
            command = params["command_name"]
            func, params = observations.command, {"name": renamed.get(command, command)}
        more = {"mirror": term.mirror, "history": steps or None, "params": params}
        scale = 1.0 if term.scale is None else term.scale
        terms[key] = managers.ObservationTermCfg(func, (high - low) / 2, term.clip, scale, **more)
    return managers.ObservationGroupCfg(terms, group.enable_corruption, concatenate=group.concatenate_terms)


def _event(name: str, term: Any) -> managers.EventTermCfg:
    for option in ("is_global_time", "min_step_count_between_reset"):
        if getattr(term, option):
            why = "each environment has a time of its own, whatever the others do"
            raise ValueError(f"event term {name!r}: {option} must be off, got {getattr(term, option)!r}: {why}")
    ours = [*signature(term.func).parameters][2:3] == ["random"]
    purpose: Any = term.purpose or ("randomise" if getattr(term.func, "__name__", "").startswith("randomize") else None)
    func, mode = term.func if ours else Adapted(term.func, term, event=True), term.mode.removeprefix("pre")
    return managers.EventTermCfg(func, mode, term.interval_range_s, term.params, purpose)


def _renamed(cfg: Any) -> dict[str, str]:
    """The name of the velocity command, where there is one → the name by which evaluations find it."""
    commands = _terms("commands", getattr(cfg, "commands", None)).items()
    names = [name for name, term in commands if isinstance(term, isaac_mdp.UniformVelocityCommandCfg)]
    return {names[0]: "velocity"} if len(names) == 1 else {}


class ManagerBasedCore(WorkflowCore):
    """The environment of a :class:`ManagerBasedEnv`, which its terms see as ``env``."""

    task: Any
    _loaded = _seeded = False

    def _move_and_command(self, env: Any) -> None:
        task, cfg = self.task, self.cfg
        task.scene, task.renamed, task.class_terms = InteractiveScene(task.cfg.scene, self), _renamed(task.cfg), {}
        sections = {name: getattr(cfg, name) for name in (*KINDS, "events")}
        sections |= {name: group.terms for name, group in cfg.observations.items()}
        for path, term in (
            (f"{section}/{n}", term) for section, terms in sections.items() for n, term in terms.items()
        ):
            for entity in term.params.values():
                if isinstance(entity, SceneEntityCfg):
                    entity.resolve(task.scene)
            if isinstance(term.func, Adapted):
                task.class_terms[path] = term.func
        self._errors = {ours: own for own, ours in task.renamed.items()}
        task.command_errors = torch.zeros(self.num_envs, 2 * len(self._errors), device=self.device)
        self.limit, recorded = self.max_episode_length or math.inf, task.cfg.recorders
        terms = _terms("recorders", recorded, RecorderTermCfg)
        self.recorder = RecorderManager(recorded, terms, task) if recorded else None
        super()._move_and_command(env)

    def finish(self) -> None:
        if not self._loaded:
            self._loaded = True
            self.task.load_managers()

    def load(self) -> None:
        for term in self.task.class_terms.values():
            term.make(self.task)
        super().finish()
        self._log_counted |= torch.tensor([n.startswith("Episode_Term") for n in self._log_names], device=self.device)
        self.task.weights = torch.tensor(self.rewards.weights, dtype=torch.float64)

    def _build(self) -> Any:
        self._evaluate_and_observe(self.task.context)
        names = [f"Episode_Reward/{name}" for name in self.rewards.names]
        names += [f"Episode_Termination/{name}" for name in (*self.terminations.names, "time_out")]
        names += [f"Metrics/{name}/error_vel_{part}" for name in self._errors.values() for part in ("xy", "yaw")]
        self.log_names = (*self.log_names, *names)
        return self._spaces()

    def _end_episodes(self, env_ids: Tensor, steps: Tensor) -> Tensor:
        if self.recorder:
            self.recorder.end_episodes(env_ids)
        rows, reasons = super()._end_episodes(env_ids, steps), self.terminations.reasons[env_ids].float()
        late, count = (steps >= self.limit) & ~reasons.any(1), steps.float().unsqueeze(1)
        sums = self.rewards.episode_sums[env_ids] / (min(self.limit, 1e9) * self.step_dt)
        return torch.cat((rows, sums, reasons, late.float().unsqueeze(1), self.task.command_errors[env_ids] / count), 1)

    def _report_log(self) -> dict[str, Any]:
        info = super()._report_log()
        curricula = {n: v for n, v in info.get("log", {}).items() if n.startswith("curriculum/")}
        info.get("log", {}).update({name.capitalize(): value for name, value in curricula.items()})
        return info

    def set_weight(self, name: str, weight: float) -> None:
        self.rewards.set_weight(name, weight)
        self.task.weights[self.rewards.names.index(name)] = self.rewards.cfg[name].weight = weight

    def _load_own_state(self, state: dict[str, Any]) -> None:
        super()._load_own_state(state)
        for name, weight in zip(self.rewards.names, self.task.weights.tolist(), strict=True):
            self.set_weight(name, weight)

    def _sources(self) -> list[object]:
        return [sensor.data for sensor in self.task.scene.sensors.values()]

    def _start_episodes(self, env_ids: Tensor, seed: Any) -> None:
        super()._start_episodes(env_ids, self.task.cfg.seed if seed is None and not self._begun else seed)

    def _act(self, action: Tensor) -> None:
        targets = self.actions.process(action)
        if self.recorder:
            self.recorder.record("record_pre_step")
        self.sim.set_joint_targets(targets)
        self.sim.step(self.cfg.sim.decimation)

    def _evaluate(self) -> Evaluation:
        self.task.common_step_counter += 1
        self.task.scene.update(self.step_dt)
        evaluation, robot = super()._evaluate(), self.robot
        for name in self._errors:
            way = self.commands[name][:, :2] - robot.lin_vel_b[:, :2]
            self.task.command_errors[:, 0] += torch.linalg.vector_norm(way, dim=1)
            self.task.command_errors[:, 1] += (self.commands[name][:, 2] - robot.ang_vel_b[:, 2]).abs()
        if self.recorder:
            self.recorder.end_step(evaluation.costs)
        return evaluation

    def _observe(self, env_ids: Tensor | None) -> dict[str, Tensor]:
        if self.recorder and env_ids is not None:
            self.recorder.begin_episodes(env_ids)
        return super()._observe(env_ids)

    def _place(self, env_ids: Tensor, seeded: bool) -> None:
        self._seeded = seeded
        self.task._reset_idx(env_ids)

    def place(self, env_ids: Tensor) -> None:
        super()._place(env_ids, self._seeded)

    def _begin_episodes(self, env_ids: Tensor) -> None:
        super()._begin_episodes(env_ids)
        for part in (self.task.scene, *self.task.class_terms.values()):
            part.reset(env_ids)
        self.task.command_errors[env_ids] = 0.0

    def close_extras(self, **kwargs: Any) -> None:
        if self.recorder:
            self.recorder.flush()
        super().close_extras(**kwargs)


def _term(task: Any, manager: Any, name: str) -> Any:
    """A term of commands or actions; of terminations where it holds, (num_envs,) bool."""
    if isinstance(manager, managers.TerminationManager):
        return manager.reasons[:, manager.names.index(name)]
    return manager.terms[task.renamed.get(name, name)]


class ManagerView:
    """A manager of ``task`` under the names of :data:`NAMES`; what that lacks is looked up in the manager."""

    def __init__(self, task: Any, manager: Any):
        self._task, self._manager = task, manager

    def __getattr__(self, name: str) -> Any:
        return NAMES[name](self._task, self._manager) if name in NAMES else getattr(self._manager, name)


class ManagerBasedEnv(IsaacEnv):
    """An environment of terms without rewards and terminations: a step returns observations and ``extras``, and no
    episode ends by itself. ``cfg`` as in Isaac Lab; ``kwargs`` are arguments of ``CoreVectorEnv``."""

    CORE = ManagerBasedCore
    core: ManagerBasedCore
    MANAGERS: ClassVar[dict[str, str]] = {f"{n}_manager": f"{n}s" for n in ("action", "command", "event", "reward")}
    MANAGERS |= {"observation_manager": "observations", "termination_manager": "terminations"}
    MANAGERS |= {"curriculum_manager": "curriculum"}

    def __init__(self, cfg: Any, render_mode: str | None = None, **kwargs: Any):
        if cfg.seed is not None:
            self.seed(cfg.seed)
        self.common_step_counter = 0
        """Control steps since the environment was made."""
        self._make_core(cfg, cfg.scene.num_envs, **{"device": cfg.sim.device, "render_mode": render_mode, **kwargs})

    @classmethod
    def _translate(cls, cfg: Any) -> TaskCfg:
        name = type(cfg).__name__
        if missing := [each.name for each in fields(cfg) if getattr(cfg, each.name) is MISSING]:
            raise ValueError(f"{name}.{missing[0]} is missing: give it a value")
        sections = {n: _terms(f"{name}.{n}", getattr(cfg, n, None), kind) for n, (kind, _) in KINDS.items()}
        limits = [n for n, term in sections["terminations"].items() if term.func is isaac_mdp.time_out]
        limit = [sections["terminations"].pop(n) for n in limits][:1]
        terms: dict[str, Any] = {
            section: {n: replace(term, func=_function(term, KINDS[section][1])) for n, term in own.items()}
            for section, own in sections.items()
        }
        facts, renamed = world(cfg), _renamed(cfg)
        facts["episode_length_s"] = cfg.episode_length_s if limit else math.inf
        facts["is_finite_horizon"] = bool(limit) and (cfg.is_finite_horizon or not limit[0].time_out)

        def ours(section: str) -> dict[str, Any]:
            own = _terms(f"{name}.{section}", getattr(cfg, section, None)).items()
            here = renamed if section == "commands" else {}
            return {
                here.get(n, n): term.translated(facts["robot"]) if hasattr(term, "translated") else term
                for n, term in own
            }

        events = _terms(f"{name}.events", cfg.events, EventTermCfg).items()
        groups = _terms(f"{name}.observations", cfg.observations, ObservationGroupCfg).items()
        return TaskCfg(
            **facts,
            **terms,
            actions=ours("actions"),
            commands=ours("commands"),
            action_limit=cfg.action_limit,
            only_positive_rewards=cfg.only_positive_rewards,
            observations={n: _group(n, group, renamed) for n, group in groups},
            events={n: _event(n, term) for n, term in events},
        )

    def __getattr__(self, name: str) -> Any:
        if "core" in vars(self):
            if name in self.MANAGERS or name.endswith(("action_space", "observation_space")):
                self.core.finish()
            if name in self.MANAGERS:
                return ManagerView(self, getattr(self.core, self.MANAGERS[name]))
        return super().__getattr__(name)

    def load_managers(self) -> None:
        """Make the managers of all terms: when the constructor has returned, or first asks for one of them."""
        self.core.load()

    def _reset_idx(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids``: commands are drawn and the events of mode ``"reset"`` happen."""
        self.extras.setdefault("log", {})
        self.core.place(env_ids)

    def step(self, action: Tensor) -> Any:
        """Observations and extras."""
        observation, *_, info = self.core.step(action)
        return observation, {**self.extras, **info}

    @property
    def obs_buf(self) -> dict[str, Any]:
        return self.core._last_observation


class ManagerBasedRLEnv(ManagerBasedEnv):
    """An environment of terms with rewards and terminations. A step: actions → physics → terminations → rewards →
    commands, interval events → observations; episodes that ended begin anew after it."""

    step = IsaacEnv.step

    @property
    def max_episode_length_s(self) -> float:
        return float(self.cfg.episode_length_s)

    @property
    def max_episode_length(self) -> int:
        return math.ceil(self.max_episode_length_s / self.step_dt - 1e-6)
