"""OmniIsaacGymEnvs' way to write a task: methods that fill buffers, ``obs_buf``, ``rew_buf``, ``reset_buf``."""

import copy
import math
from dataclasses import fields, replace
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs.checks import check_spelling, whole_number
from legged_envs.compat.adapter import _GIVEN, Workflow, WorkflowCore
from legged_envs.compat.isaac_lab.direct import ACTIONS
from legged_envs.compat.omni_isaac_gym.vec_env import VecEnvBase, World
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.task import Evaluation
from legged_envs.managers import Piece, Program
from legged_envs.mdp.context import is_pure
from legged_envs.robots import GO2, RobotCfg
from legged_envs.sim import SimCfg
from legged_envs.state import preserve_contents

_TERMS = {field.name for field in fields(TaskCfg)} - {"sim", "workflow"}
_ENV = (
    "numEnvs",
    "episodeLength",
    "controlFrequencyInv",
    "clipObservations",
    "clipActions",
    "costLimits",
)


class SimConfig:
    """The configuration of a run, a dict like OmniIsaacGymEnvs' YAML files, copied. ``config["task"]`` has ``env``:
    ``numEnvs``, ``episodeLength`` [control steps], ``controlFrequencyInv`` [physics steps per control step],
    ``clipObservations``, ``clipActions``, ``costLimits`` {name: limit}, and whatever the task wants; ``sim``: the
    fields of :class:`SimCfg`, of which ``dt`` [s] is one; and any field of :class:`TaskCfg`: ``robot`` (without one it
    is Go2) and the terms of managers. ``sim_device`` and ``rl_device`` are torch devices. ValueError for a name in the
    task, its ``env`` or ``sim`` that is nearly one of these, and for a part of the task outside it."""

    def __init__(self, config: dict[str, Any] | None = None):
        self.config = {
            "headless": True,
            "seed": -1,
            "sim_device": "cpu",
            **copy.deepcopy(dict(config or {})),
        }
        self.task_config = task = self.config["task"] = {
            "env": {},
            "sim": {},
            **self.config.get("task", {}),
        }
        for part, known in {"task": _TERMS, "env": _ENV, "sim": vars(SimCfg())}.items():
            check_spelling(f"SimConfig: {part}", {"task": task, **task}[part], known)
        if outside := ({"env", "sim"} | _TERMS) & self.config.keys():
            raise ValueError(
                f"SimConfig: what config[{min(outside)!r}] says belongs in config['task']"
            )


class RLTaskCore(WorkflowCore):
    """The vector environment of an :class:`RLTask`."""

    task: Any

    def __init__(self, task: "RLTask", cfg: TaskCfg, num_envs: int, **arguments: Any):
        steps = vars(task).get("_max_episode_length", vars(task).get("max_episode_length"))
        if steps is not None and math.isinf(cfg.episode_length_s):
            cfg = replace(cfg, episode_length_s=steps * cfg.sim.step_dt)
        self._cfg, self._task_cfg = task.cfg.config, task.cfg.task_config
        self.control_frequency_inv = cfg.sim.decimation
        super().__init__(task, cfg, num_envs, **arguments)

    def _build(self) -> tuple[dict[str, gym.Space[Any]], gym.Space[Any]]:
        task, limits = self.task, self.task._limits
        task.set_up_scene(task.world)
        task.post_reset()
        self._evaluate_and_observe(self)
        self.cost_names, self.cost_limits = (
            (*self.cost_names, *limits),
            (*self.cost_limits, *limits.values()),
        )
        states = {"critic": task.state_space} if task.num_states else {}
        return {"policy": task.observation_space, **states}, task.action_space

    def _record(self, robots: list[Piece], owners: list[object]) -> None:
        """Record also the task's methods that are marked pure, after a step. What that changed is put back, attributes
        that it made stay: recordings read them, and so may an observation before the first step."""
        super()._record(robots, owners)
        task, state, sim = self.task, self._own_state(), self.sim.get_state()
        with preserve_contents([*vars(task).values()]):
            self._choose_start(self._all_ids)
            self._act(torch.zeros(self.num_envs, task.num_actions, device=self.device))
            self._evaluate()
        self._load_own_state(state)
        self.sim.set_state(sim)
        for name in ("get_observations", "calculate_metrics", "calculate_costs", "is_done"):
            if is_pure(method := getattr(task, name)):
                vars(task)[name] = Program([Piece(method, True)], [task, *owners], self._compile)

    @property
    def acts_by_terms(self) -> bool:
        return False

    def _act(self, action: Tensor) -> None:
        self.task.pre_physics_step(action.clamp(-self.task.clip_actions, self.task.clip_actions))
        self.sim.step(self.cfg.sim.decimation)

    def _evaluate(self) -> Evaluation:
        task, limits = self.task, self.task._limits
        super()._evaluate()
        super()._observe(None)
        vars(task)["reset_idx"] = lambda env_ids: (
            None
        )  # a task that resets here is reset after it, in every mode
        task.post_physics_step()
        del vars(task)["reset_idx"]
        self.check("get_observations", "obs_buf", task.obs_buf, *task.observation_space.shape)
        self.check("get_states", "states_buf", task.states_buf, *task.state_space.shape)
        reward = self.check("calculate_metrics", "rew_buf", task.rew_buf)
        costs = self.check(
            "calculate_costs",
            "cost_buf",
            task.cost_buf,
            len(self.costs.names) + len(limits),
            least=0.0,
        )
        ended = self.check("is_done", "reset_buf", task.reset_buf, flags=True) > 0
        late = self.check("is_timeout", "flags", task.is_timeout(), flags=True) > 0
        task.reset_buf = task.reset_buf.long()  # of whatever type the task makes it
        return Evaluation(ended & ~late, reward, costs.sum(1), costs, ended & late)

    def _observe(self, env_ids: Tensor | None) -> dict[str, Tensor]:
        task, chosen = self.task, slice(None) if env_ids is None else env_ids
        if env_ids is not None:
            self._observe_new(env_ids, task._look)
        groups = {"policy": task.obs_buf[chosen], "critic": task.states_buf[chosen]}
        return {name: value.clamp(-task.clip_obs, task.clip_obs) for name, value in groups.items()}

    def _choose_start(self, env_ids: Tensor) -> None:
        super()._choose_start(env_ids)
        self.task.world.robots.reset(env_ids)
        self.task.progress_buf[env_ids] = self.task.reset_buf[env_ids] = 0
        type(self.task).reset_idx(self.task, env_ids)


class RLTask(Workflow):
    """A task whose methods are called in every control step: ``pre_physics_step`` → physics → ``post_physics_step``,
    which calls ``get_observations``, ``get_states``, ``calculate_metrics``, ``calculate_costs``, ``is_done`` and
    ``get_extras``. A subclass's constructor takes (name, sim_config, env, offset=None), sets ``_num_observations`` and
    ``_num_actions``, and calls ``RLTask.__init__(self, name, env)``, which takes the :class:`SimConfig`, dict or None
    that the subclass was given, unless that sets ``_sim_config``. Episodes begin by ``reset_idx(env_ids)``: in the step
    after the one that flagged them where :class:`VecEnvBase` steps, as the autoreset mode says in Gymnasium.
    Views are made in ``set_up_scene`` and show the robots from ``scene.add(view)`` on. ValueError for a configuration
    that cannot be."""

    CORE = RLTaskCore

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        task, given = super().__new__(cls), (*arguments, *named.values())
        vars(task)["_sim_config"] = next(
            (each for each in given if isinstance(each, (SimConfig, dict))), None
        )
        return task

    def __init__(self, name: str, env: VecEnvBase, offset: Any = None):
        own, given = vars(self), vars(self)["_sim_config"]
        self._sim_config = sim_config = given if isinstance(given, SimConfig) else SimConfig(given)
        config, settings = sim_config.config, sim_config.task_config["env"]
        self.name, self._env, self._offset = name, env, offset
        self.rl_device, self._limits = (
            config.get("rl_device", config["sim_device"]),
            settings.get("costLimits", {}),
        )
        self.clip_obs, self.clip_actions = (
            settings.get(f"clip{k}", math.inf) for k in ("Observations", "Actions")
        )
        for kind, least, end in (
            ("observation", 1, self.clip_obs),
            ("action", 1, 1.0),
            ("state", 0, self.clip_obs),
        ):
            given = own.get(f"_num_{kind}s", None if least else 0)
            size = whole_number(
                f"{type(self).__name__}: self._num_{kind}s, set before RLTask.__init__,",
                given,
                least,
            )
            own[f"_num_{kind}s"] = own[f"num_{kind}s"] = size
            own[f"{kind}_space"] = getattr(
                self, f"{kind}_space", gym.spaces.Box(-end, end, (size,))
            )
        self._make_core(
            sim_config,
            own.get("_num_envs", settings.get("numEnvs", 1)),
            device=config["sim_device"],
        )
        self._num_envs, self._device, self.world = (
            self.core.num_envs,
            self.core.device,
            World(self.core),
        )
        zeros = torch.zeros(self._num_envs, device=self._device)
        sizes = self.num_observations, self.num_states, len(self.core.cfg.costs) + len(self._limits)
        self.obs_buf, self.states_buf, self.cost_buf = (
            zeros.new_zeros(self._num_envs, size) for size in sizes
        )
        self.rew_buf, self.progress_buf, self.reset_buf = zeros, zeros.long(), zeros.long() + 1

    @classmethod
    def task_cfg(cls, cfg: Any) -> TaskCfg:
        return super().task_cfg(cfg if isinstance(cfg, SimConfig) else SimConfig(cfg))

    @classmethod
    def _translate(cls, cfg: SimConfig) -> TaskCfg:
        task = {"robot": GO2, "advance_first": True, **cfg.task_config}
        known = {name: task["sim"][name] for name in vars(SimCfg()).keys() & task["sim"].keys()}
        for name in {"controlFrequencyInv", "episodeLength"} & task["env"].keys():
            whole_number(f"SimConfig: env.{name}", task["env"][name])
        if not isinstance(task["robot"], RobotCfg):
            raise TypeError(
                f"SimConfig: config['task']['robot'] must be a RobotCfg, got {task['robot']!r}"
            )
        sim = SimCfg(**{**known, "decimation": task["env"].get("controlFrequencyInv", 1)})
        joints = list(zip(task["robot"].actuators, task["robot"].joint_names, strict=True))
        actions = {
            k: ACTIONS[k](joints=tuple(name for kind, name in joints if kind == k))
            for k, _ in joints
        }
        length = task["env"].get("episodeLength", math.inf) * sim.step_dt
        own = {name: task[name] for name in _TERMS & task.keys()}
        return TaskCfg(sim=sim, **{"actions": actions, "episode_length_s": length, **own})

    @classmethod
    def _construct(cls, cfg: Any) -> Workflow:
        given = _GIVEN.get() or {}  # of make_core
        cfg.task_config["sim"] |= (
            sim := vars(given["cfg"].sim)
        )  # so that the task reads there what is so
        cfg.task_config["env"] |= {
            "numEnvs": given["num_envs"],
            "controlFrequencyInv": sim["decimation"],
        }
        return cls(cls.__name__, cfg, VecEnvBase())

    context = property(
        lambda self: self.core
    )  # a task may well have tensors ``actions`` and ``commands``

    def set_up_scene(self, scene: Any, *cloning: Any, **options: Any) -> None:
        """Called once, before :meth:`post_reset`. Ground and copies of the robot exist already, each copy in a world of
        its own, whatever the arguments for cloning and collision filters say. A subclass adds its views after it has
        called this."""
        self._env_pos = torch.zeros(self._num_envs, 3, device=self._device)

    def post_reset(self) -> None:
        """Called once, when the robots stand in their default pose and the views show them."""

    def pre_physics_step(self, actions: Tensor) -> None:
        """Apply actions (num_envs, num_actions), clipped to ±clip_actions, by a view's targets."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a method pre_physics_step(self, actions)"
        )

    def reset_idx(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids`` (n,), whose robots stand in the default pose. By default these are flagged,
        for a ``pre_physics_step`` that resets whoever is."""
        self.reset_buf[env_ids] = 1

    def get_observations(self) -> Any:
        """Fill ``obs_buf``; what it returns is not used."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a method get_observations(self) that fills obs_buf"
        )

    def calculate_metrics(self) -> None:
        """Fill ``rew_buf`` (num_envs,)."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a method calculate_metrics(self) that fills rew_buf"
        )

    def is_done(self) -> None:
        """Fill ``reset_buf`` (num_envs,): whose episode is over."""
        raise NotImplementedError(
            f"{type(self).__name__} needs a method is_done(self) that fills reset_buf"
        )

    def is_timeout(self) -> Tensor:
        """Of whom ``is_done`` flagged, whose episode is cut off and no failure: by default who has come to the end,
        ``progress_buf`` ≥ ``_max_episode_length`` or ``max_episode_length`` − 1. Shape: (num_envs,)."""
        return (
            self.progress_buf
            >= (vars(self).get("_max_episode_length", self.max_episode_length) or math.inf) - 1
        )

    def calculate_costs(self) -> None:
        """Fill ``cost_buf``, at least 0, (num_envs, K): first the cost terms of the configuration, as is done here,
        then the costs that ``costLimits`` names."""
        self.cost_buf[:, : len(self.core.cfg.costs)] = self.core.costs.values

    def get_states(self) -> Any:
        """Return the observations of an asymmetric critic, (num_envs, num_states): the next ``states_buf``."""
        return self.states_buf

    def get_extras(self) -> None:
        """Write to ``extras``; ``extras["episode"]`` of a ``reset_idx`` joins ``info["log"]``."""

    def reset(self) -> None:
        """Flag every environment for reset."""
        self.reset_buf = torch.ones_like(self.reset_buf)

    def post_physics_step(self) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        """Let the step count and evaluate it. Returns ``obs_buf``, ``rew_buf``, ``reset_buf`` and ``extras``."""
        self.progress_buf += 1
        self._look()
        self.calculate_metrics()
        self.calculate_costs()
        self.is_done()
        self.get_extras()
        return self.obs_buf, self.rew_buf, self.reset_buf, self.extras

    def _look(self) -> None:
        self.get_observations()
        self.states_buf = self.get_states()
