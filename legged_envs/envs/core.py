"""The lifecycle that every task shares: arguments, random streams, masked reset, the order of a step, saved state."""

import copy
import ctypes
import dataclasses
import functools
import os
import pickle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, create_empty_array

from legged_envs.checks import check_choice, whole_number
from legged_envs.envs.arguments import (
    check_actions,
    check_reset_options,
    check_same_structure,
    check_seed,
)
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.task import TaskHooks
from legged_envs.rng import RandomStreams
from legged_envs.sim import RobotState, make_simulation
from legged_envs.state import copy_state, map_tree, restore_state
from legged_envs.tables import TableRepr

STATE = {
    "episode_steps": "_episode_steps",
    "bad_physics": "_bad_physics",
    "over": "_over",
    "ended_rows": "_ended_rows",
}
STATE |= {
    "steps": "num_steps",
    "robots": "robots",
    "ground": "ground",
    "observation": "_last_observation",
}
"""Keys of the state of an environment beside simulation, random streams and its task's own → attributes."""


class CoreVectorEnv(VectorEnv, TaskHooks, TableRepr):
    """``num_envs`` robots with one task, without time limit and without autoreset (wrappers add both); a subclass fills
    the hooks of :class:`~legged_envs.envs.task.TaskHooks`. A step: ``_act`` → recovery from bad physics →
    ``_evaluate`` → ``_advance`` → ``_observe``. With ``cfg.advance_first`` commands and pushes advance before the
    evaluation. An environment whose episode ended goes on until ``reset(options={"reset_mask": mask})``. A reset:
    ``_end_episodes`` → seed → default pose → ``_place`` → ``sim.forward`` → ``_begin_episodes`` → ``_observe``; it
    leaves every other environment bit-identical.

    ``info`` holds, as arrays like the observations: on every step ``cost`` (num_envs,) and ``costs`` (num_envs, K) in
    the order of ``cost_names``; from a reset after episodes ended ``log``, a dict of scalars: means over those
    episodes, and under ``termination/…`` how many ended for which reason.

    ``sim`` names the physics engine. ``array``, ``"numpy"`` or ``"torch"``, is the kind of arrays taken and given.
    ``observations`` gives the ``"policy"`` group's vector, or a ``"dict"`` of every group. ``render_mode`` is None or
    ``"rgb_array"``. ``compile`` fuses the maths of a step, but for terms not marked pure, into C++ with TorchInductor:
    a step of one robot takes about 0.6 × the time, and results differ in the last digits; the first call for a task and
    ``num_envs`` takes half a minute and fills ``TORCHINDUCTOR_CACHE_DIR``. ValueError if an argument or a field of
    ``cfg`` is not valid, RuntimeError if ``compile`` finds no C++ compiler."""

    metadata: dict[str, Any] = {  # noqa: RUF012
        "autoreset_mode": AutoresetMode.DISABLED,
        "render_modes": ["rgb_array"],
    }
    INFERENCE = True
    """Whether the hooks run in inference mode, which is faster; else without gradients, so that tensors which they make
    can be changed from outside."""

    def __init__(
        self,
        cfg: TaskCfg,
        num_envs: int,
        *,
        device: str = "cpu",
        sim: str = "mujoco",
        array: str = "numpy",
        observations: str = "policy",
        render_mode: str | None = None,
        compile: bool = False,
    ):
        num_envs = whole_number("num_envs", num_envs)
        check_choice("array", array, ("numpy", "torch"))
        check_choice("observations", observations, ("policy", "dict"))
        check_choice("render_mode", render_mode, (None, "rgb_array"))
        check_choice("compile", compile, (False, True))
        cfg.check()
        choices = {
            "array": array,
            "observations": observations,
            "render_mode": render_mode,
            "compile": compile,
        }
        self._arguments: dict[str, Any] = {"device": device, "sim": sim, **choices}
        self.cfg = copy.deepcopy(
            cfg
        )  # what is changed in it later must not change half of this environment
        self.num_envs, self.array, self.render_mode = num_envs, array, render_mode
        self.step_dt, self.max_episode_length_s = cfg.sim.step_dt, cfg.episode_length_s
        self.decimation, self.max_episode_length = cfg.sim.decimation, cfg.max_episode_length
        """Control time step, s, and how many of physics it has; time limit of the task, s and control steps, which the
        ``TimeLimit`` wrapper keeps."""
        self._compile, self._dict_observations = compile, observations == "dict"
        self._process = os.getpid()
        with torch.inference_mode(
            False
        ):  # buffers are plain tensors: they may be written to from anywhere
            self.sim = make_simulation(
                sim, self.cfg.robot, self.cfg.sim, num_envs, device, self.cfg.scene
            )
            self.sim.viewer = self.cfg.viewer
            self.device = self.sim.device
            self.random = RandomStreams(num_envs, self.device)
            self.robots = {
                name: RobotState(each, self.step_dt) for name, each in self.sim.robots.items()
            }
            """All robots of the scene by name; ``robot`` is the first, ``"robot"``."""
            self.robot = self.robots["robot"]
            self.ground = self.sim.ground
            self._all_ids = torch.arange(num_envs, device=self.device)
            self._episode_steps = torch.zeros(num_envs, dtype=torch.int32, device=self.device)
            self._bad_physics, self._over = self._episode_steps.bool(), self._episode_steps.bool()
        self._recovered: torch.Tensor | None = (
            None  # which environments met bad physics in this step
        )
        self.num_steps = 0
        """Control steps since the environment was made."""
        self._begun = False  # whether there has been a reset or a state
        self.metadata = {**self.metadata, "render_fps": round(1.0 / self.step_dt)}
        self._set_up()

    def _set_up(self) -> None:
        """Build what the task needs, and the spaces."""
        with torch.inference_mode(False):
            spaces, self.single_action_space = self._build()
            if "policy" not in spaces:
                raise ValueError(f"observations need a group 'policy', got {list(spaces)}")
            self.group_sizes = {name: gym.spaces.flatdim(space) for name, space in spaces.items()}
            """Numbers in each observation group of an environment, also of those that are not shown."""
            self._log_names = (
                "episodes",
                "episode_length_s",
                *self.log_names,
                "termination/bad_physics",
            )
            counted = [
                name == "episodes" or name.startswith("termination/") for name in self._log_names
            ]
            self._log_counted = torch.tensor(counted, device=self.device)
            self._ended_rows = torch.zeros(
                0, len(self._log_names), dtype=torch.float32, device=self.device
            )
            spaces = spaces if self._dict_observations else {"policy": spaces["policy"]}
            self.single_observation_space = (
                gym.spaces.Dict(spaces) if self._dict_observations else spaces["policy"]
            )
            self.observation_space = batch_space(self.single_observation_space, self.num_envs)
            self.action_space = batch_space(self.single_action_space, self.num_envs)
            zeros = {
                name: create_empty_array(space, self.num_envs, np.zeros)
                for name, space in spaces.items()
            }
            self._last_observation: dict[str, Any] = map_tree(torch.from_numpy, zeros)
            self._last_observation = map_tree(
                lambda zero: zero.to(self.device), self._last_observation
            )

    @classmethod
    def make_core(cls, cfg: Any, num_envs: int, **arguments: Any) -> "CoreVectorEnv":
        """What ``legged_envs.register`` calls: the environment of a task of this class."""
        return cls(cfg, num_envs, **arguments)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start new episodes, with ``{"reset_mask": mask}``, (num_envs,) bool, only in some environments. A ``seed``
        gives environment i the random streams of (seed, i), a list one seed to each; None goes on with the streams as
        they are (at first the operating system seeds them). ValueError or TypeError if mask, seed or option is not
        valid, RuntimeError if the first reset has a mask, or after ``close``."""
        self._check_usable("reset")
        mask = check_reset_options(options, self.num_envs, self.array, self.device)
        if mask is not None and not self._begun:
            raise RuntimeError(
                "the first reset must be of all environments: call reset() without a reset_mask"
            )
        env_ids = self._all_ids if mask is None else mask.nonzero().squeeze(1)
        seed = check_seed(seed, self.num_envs)
        if len(env_ids) == 0:
            return self._export_observation(), {}
        with _TorchMode(self.INFERENCE):
            self._take_episodes(env_ids)
            self._start_episodes(env_ids, seed)
            rows = self._observe(env_ids)
            last = self._last_observation
            self._last_observation = {
                name: map_tree(
                    lambda old, new: old.index_copy(0, env_ids, new), last[name], rows[name]
                )
                for name in last
            }
        self._begun = True
        return self._export_observation(), self._report_log()

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance every environment by one control step with ``actions`` (num_envs, num_actions), an array or lists of
        finite numbers, as float32 clipped to [−1, 1]; else TypeError or ValueError. RuntimeError before the first
        ``reset`` or after ``close``."""
        self._check_usable("step")
        if not self._begun:
            raise RuntimeError("step() was called before reset()")
        action = check_actions(actions, self.action_space, self.array, self.device)
        with _TorchMode(self.INFERENCE):
            self._act(action)
            bad = self._recovered = self._recover_bad_physics()
            self._episode_steps.add_(1)
            self.num_steps += 1
            for robot in self.robots.values():
                robot.read()
            if self.cfg.advance_first:
                self._advance()
            terminated, reward, cost, costs, truncated = self._evaluate()
            if bad is not None:
                terminated, reward = terminated | bad, reward.masked_fill(bad, 0.0)
                cost, costs = cost.masked_fill(bad, 0.0), costs.masked_fill(bad[:, None], 0.0)
            if not self.cfg.advance_first:
                self._advance()
            observation = self._observe(None)
        self._last_observation = {name: observation[name] for name in self._last_observation}
        if truncated is None:
            truncated = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        info = {"cost": self._export(cost), "costs": self._export(costs)}
        outcome = self._export(reward), self._export(terminated), self._export(truncated)
        return self._export_observation(), *outcome, info

    def end_episodes(self, mask: Any) -> None:
        """End the log of the episodes of ``mask`` (num_envs,); their physics runs on until a next-step autoreset."""
        with _TorchMode(self.INFERENCE):
            self._take_episodes(torch.as_tensor(mask, device=self.device).nonzero().squeeze(1))

    def observe_again(self) -> Any:
        """The observation of this moment, after what it shows was changed from outside; noise is drawn anew."""
        with _TorchMode(self.INFERENCE):
            self._forget_this_moment()
            observation = self._observe(None)
        self._last_observation = {name: observation[name] for name in self._last_observation}
        return self._export_observation()

    def render(self) -> tuple[np.ndarray, ...]:
        """Pictures of four environments (all if there are fewer) from ``cfg.viewer.env_index`` on, each of its
        resolution, (480, 640, 3) uint8 by default."""
        if self.render_mode is None:
            raise RuntimeError(
                "render() needs render_mode='rgb_array' when the environment is made"
            )
        return tuple(
            self.sim.render(i) for i in range(self.num_envs)[self.sim.viewer.env_index :][:4]
        )

    def set_viewer(
        self, eye: tuple[float, float, float], lookat: tuple[float, float, float]
    ) -> None:
        """Look at the point ``lookat`` from ``eye``, m, from the next picture on; ValueError if that cannot be."""
        viewer = dataclasses.replace(self.cfg.viewer, eye=eye, lookat=lookat)
        viewer.check()
        self.cfg.viewer = self.sim.viewer = viewer

    def close_extras(self, **kwargs: Any) -> None:
        self.sim.close()

    def get_state(self) -> dict[str, Any]:
        """Everything that the future of this environment depends on, copied."""
        if not self._begun:
            raise RuntimeError("get_state() was called before reset()")
        return self._whole_state()

    def _whole_state(self) -> dict[str, Any]:
        return {"sim": self.sim.get_state(), "random": self.random.state_dict(), **self._state()}

    def _state(self) -> dict[str, Any]:
        parts = {key: getattr(self, name) for key, name in STATE.items()}
        return {
            "own": self._own_state(),
            **{key: copy_state(part) for key, part in parts.items() if part is not None},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Return exactly to a state of an equal environment; ValueError, and nothing changed, if it has another
        structure. What numbers of the configuration, such as gains, were is not compared."""
        with torch.inference_mode(False):
            # The engine checks its own part; how many streams were made and how many episodes ended may differ.
            ours = {
                "sim": None,
                "random": {**self.random.state_dict(), "streams": None},
                **self._state(),
            }
            ours["ended_rows"] = ours["ended_rows"].new_zeros(
                len(state.get("ended_rows", ())), len(self._log_names)
            )
            check_same_structure(state, ours, "the state")
            self._check_own_state(state["own"])
            own = ours["own"]
            self._load_own_changes(state["own"])
            try:
                self.sim.set_state(state["sim"])
            except ValueError:
                self._load_own_changes(own)
                raise
            self.random.load_state_dict(state["random"])
            for key, name in STATE.items():
                setattr(self, name, restore_state(getattr(self, name), state.get(key)))
            self._load_own_state(state["own"])
        self._begun = True

    def __getstate__(self) -> dict[str, Any]:
        # The state is pickled on its own, so that a spawned process gets it by value and not as shared memory.
        state = pickle.dumps((self._begun, self._whole_state()))
        return {
            "made_from": (self.cfg, self.num_envs, self._arguments),
            "spec": self.spec,
            "state": state,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["made_from"] is not None:  # else it has been made
            cfg, num_envs, arguments = state["made_from"]
            self.__init__(cfg, num_envs, **arguments)  # type: ignore[misc]
        self.spec = state["spec"]
        begun, saved = pickle.loads(state["state"])
        self.set_state(saved)
        self._begun = begun

    def _start_episodes(self, env_ids: torch.Tensor, seed: int | list[int] | None) -> None:
        if seed is None and not self._begun:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        if seed is not None:
            self.random.seed(seed, env_ids)
            self._np_random, self._np_random_seed = seeding.np_random(
                seed if isinstance(seed, int) else seed[0]
            )
        self.sim.reset(env_ids)
        self._episode_steps[env_ids] = 0
        self._over[env_ids] = False
        self._bad_physics[env_ids] = False
        self._place(env_ids, seeded=seed is not None)
        self._take_in_start(env_ids)
        self._begin_episodes(env_ids)

    def _recover_bad_physics(self) -> torch.Tensor | None:
        if (bad := self.sim.diverged()) is None:
            return None
        env_ids = bad.nonzero().squeeze(1)
        self.sim.reset(env_ids)
        self._take_in_start(env_ids)
        self._bad_physics |= bad
        return bad

    def _take_in_start(self, env_ids: torch.Tensor) -> None:
        self.sim.forward(env_ids)
        for robot in self.robots.values():
            robot.reset(env_ids)

    def _take_episodes(self, env_ids: torch.Tensor) -> None:
        """End the episodes of ``env_ids`` that have begun and are not over yet; the next reset reports them."""
        env_ids = env_ids[(self._episode_steps[env_ids] > 0) & ~self._over[env_ids]]
        if len(env_ids) == 0:
            return
        steps = self._episode_steps[env_ids]
        rows = self._end_episodes(env_ids, steps)
        seconds = (steps.float() * self.step_dt).unsqueeze(1)
        bad = self._bad_physics[env_ids].float().unsqueeze(1)
        self._ended_rows = torch.cat(
            (self._ended_rows, torch.cat((torch.ones_like(bad), seconds, rows, bad), 1))
        )
        self._over[env_ids] = True

    def _report_log(self) -> dict[str, Any]:
        rows, self._ended_rows = self._ended_rows, self._ended_rows[:0]
        if not len(rows):
            return {}
        sums = rows.double().sum(
            0
        )  # in float32 the last digit of a column depends on how many there are
        values = torch.where(self._log_counted, sums, sums / len(rows)).float()
        return {"log": dict(zip(self._log_names, self._export(values), strict=True))}

    def _check_usable(self, call: str) -> None:
        if self.closed:
            raise RuntimeError(f"{call}() was called after close()")
        if self._process != os.getpid() and not self.sim.survives_fork:
            wrong = "in a process forked after this environment was made, where the physics' threads do not exist"
            how = "make the environment in the new process, start that by 'spawn', or use cfg={'sim.num_threads': 1}"
            raise RuntimeError(f"{call}() was called {wrong}: {how}")

    def _export(self, value: Any) -> Any:
        # A tensor made in inference mode could not take part in the caller's autograd, its clone can; and what is kept
        # must not keep the memory of other results alive.
        if not isinstance(value, torch.Tensor):
            return map_tree(self._export, value)
        return value.cpu().numpy().copy() if self.array == "numpy" else value.clone()

    def _export_observation(self) -> Any:
        """A copy of the last observation: what the caller does to it cannot reach a later partial reset."""
        observation = {name: self._export(value) for name, value in self._last_observation.items()}
        return observation if self._dict_observations else observation["policy"]


class _TorchMode:
    """Inference mode, or else no gradients, on one thread of PyTorch, for the calling thread alone: one that learns
    keeps its own. More would gain nothing, and OpenMP's waiting threads would spin on the cores of the physics."""

    def __init__(self, inference: bool):
        # Not in inference mode also where the caller is: what is made there could not be changed outside of it.
        self._modes: list[Any] = [torch.inference_mode(inference)]
        if not inference:
            self._modes.append(torch.no_grad())

    def __enter__(self) -> None:
        self._threads = torch.get_num_threads()
        if self._threads != 1:
            _set_threads(1)
        for mode in self._modes:
            mode.__enter__()

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*error)
        if self._threads != 1:
            _set_threads(self._threads)


def _set_threads(threads: int) -> None:
    # torch.set_num_threads would also set what a thread that starts meanwhile takes for itself.
    openmp = _openmp()
    (torch.set_num_threads if openmp is None else openmp.omp_set_num_threads)(threads)


@functools.cache
def _openmp() -> Any:
    """The OpenMP library that came with PyTorch and that it is running on; None if there is no such."""
    library = next(Path(torch.__file__).parent.glob("lib/libgomp*.so*"), None)
    return None if library is None else ctypes.CDLL(str(library))
