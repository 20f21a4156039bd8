"""Isaac Lab's manager-based workflow: a task is a configuration with terms as attributes."""

import math
from dataclasses import MISSING, fields, replace
from typing import Any

import torch

from legged_envs import managers
from legged_envs.compat.adapter import AdapterTask, OwnCfg
from legged_envs.compat.isaac_lab import mdp as isaac_mdp
from legged_envs.compat.isaac_lab.adapted_term import Adapted
from legged_envs.compat.isaac_lab.cfg import SimulationCfg, world
from legged_envs.compat.isaac_lab.environment import IsaacEnv, full_name
from legged_envs.compat.isaac_lab.manager_view import ManagerView
from legged_envs.compat.isaac_lab.noise import UniformNoiseCfg
from legged_envs.compat.isaac_lab.recorder import RecorderManager
from legged_envs.compat.isaac_lab.scene import InteractiveScene
from legged_envs.compat.isaac_lab.scene_entity import resolved
from legged_envs.compat.rows import others_unchanged
from legged_envs.configuration import ConfigClass, configclass
from legged_envs.envs import Evaluation
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.task import Observation
from legged_envs.sim import ViewerCfg


@configclass
class ObservationTermCfg(managers.ObservationTermCfg, ConfigClass):
    """An observation term. Effects act in this order: value, noise, clip, scale, history."""

    noise: Any = None
    """A ``UniformNoiseCfg`` that adds and is symmetric, or None."""
    history_length: int = 0
    """Number of past steps in the observation; 0 shows only the present one."""


@configclass
class ObservationGroupCfg(ConfigClass):
    """A group of observations; a subclass has its terms as fields."""

    concatenate_terms: bool = True
    """True if the terms stand in one vector, false if in a dict."""
    enable_corruption: bool = False
    """True if noise is added."""
    history_length: int | None = None
    """Number of past steps of every term; None: as each term defines."""


@configclass
class EventTermCfg(managers.EventTermCfg, ConfigClass):
    """An event term."""

    interval_range_s: tuple[float, float] | None = None
    """Range of the time between two events of mode ``"interval"``, s."""


@configclass
class ManagerBasedEnvCfg(ConfigClass):
    """Settings of an environment.

    A section that is None has no terms; without ``events`` a reset uses the default pose.
    """

    viewer: ViewerCfg = ViewerCfg()
    """Camera of pictures and windows."""
    sim: SimulationCfg = SimulationCfg()
    """Physics settings."""
    seed: int | None = None
    """Seed of the first reset, if that has none."""
    decimation: Any = MISSING
    """Physics steps per control step."""
    scene: Any = MISSING
    """Entities of every environment: an ``InteractiveSceneCfg``."""
    recorders: object = None
    """Where episodes are recorded: an ``ActionStateRecorderManagerCfg``, or None."""
    observations: object = MISSING
    """Observation groups."""
    actions: object = MISSING
    """Action terms."""
    events: object = None
    """Event terms."""
    rerender_on_reset: bool = False
    """This setting has no effect: all quantities are current after a reset."""
    episode_length_s: Any = math.inf
    """Time limit of an episode, s."""
    is_finite_horizon: bool = False
    """True if the end of the time limit is a termination."""
    only_positive_rewards: bool = False
    """True if the sum of the rewards is floored at 0. An addition of this package."""
    action_limit: float = 1.0
    """Bound of the actions, which are clipped to it. An addition of this package."""


@configclass
class ManagerBasedRLEnvCfg(ManagerBasedEnvCfg):
    """A manager-based task: further sections with terms as attributes."""

    episode_length_s: Any = MISSING
    """Time limit of an episode, s; a term ``time_out`` must stand in the terminations."""
    rewards: object = MISSING
    """Reward terms."""
    terminations: object = MISSING
    """Termination terms."""
    curriculum: object = None
    """Curriculum terms."""
    commands: object = None
    """Command terms."""
    costs: object = None
    """Cost terms, :class:`~legged_envs.managers.CostTermCfg`. An addition of this package."""


TERM_CLASSES: dict[str, type] = {
    "rewards": managers.RewardTermCfg,
    "costs": managers.CostTermCfg,
    "terminations": managers.TerminationTermCfg,
    "curriculum": managers.CurriculumTermCfg,
    "events": EventTermCfg,
    "observations": ObservationGroupCfg,
    "actions": object,
    "commands": object,
}
"""Sections of a configuration mapped to the class of their terms."""
FLOAT_TERMS = (managers.RewardTermCfg, managers.CostTermCfg, managers.ObservationTermCfg)
"""Terms with values that are converted to float32."""


def _terms(where: str, section: object, term_class: type) -> dict[str, Any]:
    """Return the terms that a section has as attributes or entries, with adapted functions.

    Raises:
        TypeError: If a term is of another class.
    """
    given = section if isinstance(section, dict) else getattr(section, "__dict__", {})
    options = {field.name for field in fields(ObservationGroupCfg)}
    terms = {}
    for name, term in given.items():
        if term is None or name in options:
            continue
        if not isinstance(term, term_class):
            raise TypeError(
                f"{where}.{name} must be a {full_name(term_class)} or None, "
                f"got a {full_name(type(term))}"
            )
        terms[name] = _with_adapted_function(term)
    return terms


def _with_adapted_function(term: Any) -> Any:
    func = getattr(term, "func", None)
    is_event = isinstance(term, EventTermCfg)
    if func is None or _is_builtin(func, is_event):
        return term
    dtype = torch.float32 if isinstance(term, FLOAT_TERMS) else None
    return replace(term, func=Adapted(func, term, dtype, event=is_event))


def _is_builtin(func: object, is_event: bool) -> bool:
    """Return True for a function of this package that has the types and arguments of its terms."""
    module = getattr(func, "__module__", None) or ""
    if module == isaac_mdp.__name__:
        return not is_event  # events in Isaac Lab's words take no random stream
    return module.startswith("legged_envs.mdp.")


def _group(where: str, group: Any) -> managers.ObservationGroupCfg:
    """Translate an observation group."""
    terms = _terms(where, group, ObservationTermCfg)
    for name, term in terms.items():
        noise = term.noise or UniformNoiseCfg(n_min=0.0, n_max=0.0)
        if (
            not isinstance(noise, UniformNoiseCfg)
            or noise.operation != "add"
            or noise.n_min != -noise.n_max
        ):
            raise ValueError(
                f"{where}.{name}.noise must be a UniformNoiseCfg that adds, with n_min = -n_max, "
                f"got {noise!r}"
            )
        history = term.history_length if group.history_length is None else group.history_length
        terms[name] = replace(term, noise=noise.n_max, history=history or None)
    return managers.ObservationGroupCfg(
        terms=terms, noisy=group.enable_corruption, concatenate=group.concatenate_terms
    )


def _velocity_command(cfg: OwnCfg) -> dict[str, str]:
    """Return the name of the velocity command, if there is one, mapped to ``"velocity"``.

    Evaluations find the command by that name.
    """
    renamed = {}
    for name, term in _terms("commands", getattr(cfg, "commands", None), object).items():
        if isinstance(term, isaac_mdp.UniformVelocityCommandCfg):
            renamed[name] = "velocity"
    return renamed


class ManagerBasedTask(AdapterTask):
    """Calls the terms of a :class:`ManagerBasedEnv`, which they see as ``env``."""

    @property
    def context(self) -> Any:
        return self.user

    def verify(self) -> None:
        """Do nothing: the managers have evaluated each term when they were built."""

    def evaluate(self) -> Evaluation:
        user = self.user
        user.common_step_counter += 1
        user.scene.update(self.env.step_dt)
        evaluation = self.terms.evaluate()
        if user.recorder_manager is not None:
            user.recorder_manager.end_step(evaluation)
        return evaluation

    def observe(self, env_ids: torch.Tensor | None) -> dict[str, Observation]:
        if env_ids is None:
            return self.terms.observe(None)
        terms = {name: term.attributes for name, term in self.user.class_terms.items()}
        with others_unchanged(self.user, env_ids, **terms):
            return self.terms.observe(env_ids)

    def choose_start(self, env_ids: torch.Tensor) -> None:
        self.user._reset_idx(env_ids)

    def begin_episodes(self, env_ids: torch.Tensor) -> None:
        super().begin_episodes(env_ids)
        self.user.scene.reset(env_ids)
        for term in self.user.class_terms.values():
            term.reset(env_ids)
        if self.user.recorder_manager is not None:
            self.user.recorder_manager.reset(env_ids)

    def end_episodes(self, env_ids: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        values = super().end_episodes(env_ids, steps)
        if self.user.recorder_manager is not None:
            self.user.recorder_manager.end_episodes(env_ids, steps)
        return values

    def close(self) -> None:
        if self.user.recorder_manager is not None:
            self.user.recorder_manager.flush()
        super().close()


class ManagerBasedEnv(IsaacEnv):
    """An environment of terms, without rewards and terminations.

    A step returns observations and ``extras``, and no episode ends by itself.

    Args:
        cfg: The configuration.
        render_mode: None or ``"rgb_array"``.
        kwargs: Keyword arguments of :class:`~legged_envs.envs.CoreVectorEnv`.

    Raises:
        ValueError: If a field of ``cfg`` is missing or not valid.
        TypeError: If ``cfg``, or a term of it, is of another kind.
    """

    ADAPTER = ManagerBasedTask
    CFG = ManagerBasedEnvCfg

    def __init__(self, cfg: OwnCfg, render_mode: str | None = None, **kwargs: Any):
        self.common_step_counter = 0
        """Control steps since the environment was made."""
        self.renamed = _velocity_command(cfg)
        """Names of terms in ``cfg`` mapped to other names in the managers."""
        self.class_terms: dict[str, Adapted] = {}
        """Terms that are objects or functions of the user."""
        self.recorder_manager: RecorderManager | None = None
        """Manager that records episodes; None without ``cfg.recorders``."""
        self.action_manager = ManagerView(self, "actions")
        """Manager of the actions."""
        self.command_manager = ManagerView(self, "commands")
        """Manager of the commands."""
        self.observation_manager = ManagerView(self, "observations")
        """Manager of the observation groups."""
        self.reward_manager = ManagerView(self, "rewards")
        """Manager of the rewards."""
        self.cost_manager = ManagerView(self, "costs")
        """Manager of the costs."""
        self.termination_manager = ManagerView(self, "terminations")
        """Manager of the terminations."""
        self.event_manager = ManagerView(self, "events")
        """Manager of the events."""
        self.curriculum_manager = ManagerView(self, "curriculum")
        """Manager of the curricula."""
        options = {"device": cfg.sim.device, "render_mode": render_mode, **kwargs}
        self.make_core(cfg, cfg.scene.num_envs, **options)
        self.load_managers()

    @classmethod
    def _translate(cls, cfg: OwnCfg) -> TaskCfg:
        where = type(cfg).__name__
        for field in fields(cfg):
            if getattr(cfg, field.name) is MISSING:
                raise ValueError(f"{where}.{field.name} is missing: give it a value")
        sections: dict[str, Any] = {}
        for name, term_class in TERM_CLASSES.items():
            sections[name] = _terms(f"{where}.{name}", getattr(cfg, name, None), term_class)
        for name, event in sections["events"].items():
            sections["events"][name] = replace(event, interval_s=event.interval_range_s)
        for name, group in sections["observations"].items():
            sections["observations"][name] = _group(f"{where}.observations.{name}", group)
        for name, new_name in _velocity_command(cfg).items():
            sections["commands"][new_name] = sections["commands"].pop(name).translated()
        # The wrapper TimeLimit ends an episode instead of a term.
        limits = []
        for name, term in list(sections["terminations"].items()):
            if term.func is isaac_mdp.time_out:
                limits.append(sections["terminations"].pop(name))
        facts = world(cfg)
        facts["episode_length_s"] = cfg.episode_length_s if limits else math.inf
        facts["is_finite_horizon"] = any(
            cfg.is_finite_horizon or not limit.time_out for limit in limits
        )
        facts["only_positive_rewards"] = cfg.only_positive_rewards
        facts["action_limit"] = cfg.action_limit
        return TaskCfg(**facts, **sections)

    @property
    def reset_terminated(self) -> torch.Tensor:
        """Environments that a term terminated in this step. Shape: (num_envs,), bool."""
        return self.core.terminations.terminated

    @property
    def reset_time_outs(self) -> torch.Tensor:
        """Environments that a term truncated in this step. Shape: (num_envs,), bool.

        The time limit is not a term.
        """
        return self.core.terminations.time_outs

    def load_managers(self) -> None:
        """Make the scene, and the managers, which evaluate each term once."""
        core = self.core

        self.scene = InteractiveScene(self.cfg.scene, core)
        """Robots, objects and sensors."""
        sections: list[dict[str, Any]] = [getattr(core.cfg, name) for name in TERM_CLASSES]
        for group in core.cfg.observations.values():
            sections.append(group.terms)
        for section in sections:
            for term in section.values():
                if hasattr(term, "func"):
                    self._load_term(term)
        # Only now: scene entities in the parameters had to be resolved before terms are evaluated.
        core.build()
        if self.cfg.recorders:
            self.recorder_manager = RecorderManager(self.cfg.recorders, self)

    def _load_term(self, term: Any) -> None:
        resolved(term.params, self.scene)
        if isinstance(term.func, Adapted):
            self.class_terms[str(len(self.class_terms))] = term.func.make(self)

    def _reset_idx(self, env_ids: torch.Tensor) -> None:
        """Begin the episodes of ``env_ids`` (n,): draw commands, apply events of mode "reset"."""
        self.extras.setdefault("log", {})
        self.core.commands.reset(env_ids)
        self.core.events.reset(env_ids)

    def step(self, action: torch.Tensor) -> Any:
        """Advance by one control step; returns observations and extras."""
        observation, _, _, _, info = self.core.step(action)
        return observation, {**self.extras, **info}


class ManagerBasedRLEnv(ManagerBasedEnv):
    """An environment of terms with rewards and terminations.

    A step, in order: actions, physics, terminations, rewards, commands and interval events,
    observations. Ended episodes restart afterwards.
    """

    CFG = ManagerBasedRLEnvCfg

    def step(self, action: torch.Tensor) -> Any:
        """Advance by one control step: see :meth:`IsaacEnv.step`."""
        return IsaacEnv.step(self, action)
