"""Train with Stable-Baselines3: a Gymnasium vector environment as its ``VecEnv``."""

from typing import Any

import numpy as np
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.plumbing.adapter import AdapterEnv, accept_env, checked_reset, find_layer
from legged_envs.wrappers.plumbing.arrays import Info, map_leaves
from legged_envs.wrappers.plumbing.layers import Env, layers, name_of, whole_keys

_TIME_OUT = "TimeLimit.truncated"
_NOT_HANDED_OUT = ("final_obs", "final_info", "log", _TIME_OUT)


class Sb3VecEnv(AdapterEnv, VecEnv):
    """A vector environment of NumPy arrays that resets in the same step (else a ``ValueError``) as SB3's ``VecEnv``.

    An environment's info dict of a step holds every entry of the batch's info that has a row for it, among them
    ``cost`` and ``costs`` (K,), and whole what has a number for each cost instead, such as ``lagrange_multipliers``
    (K,). Where an episode ended it also holds what its last step reported, ``terminal_observation``, the true last
    observation, and ``episode``: return ``r``, length ``l``, seconds ``t`` and, if the environment counts it, summed
    cost ``c``. On every step it holds ``TimeLimit.truncated``, whether a time limit and no termination ended the
    episode. Each step returns new dicts and a new array of rewards, which Stable-Baselines3 writes to."""

    def __init__(self, env: Env):
        env = accept_env(env, "Stable-Baselines3", "numpy")
        if (
            find_layer(env, EpisodeStatistics) is None
            and find_layer(env, RecordEpisodeStatistics) is None
        ):
            env = RecordEpisodeStatistics(env)
        self.env: Any = env
        self._core: Any = env.unwrapped
        self.spec = env.spec
        self._actions: Any = None
        self._whole_keys = whole_keys(env)
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> VecEnvObs:
        """Start new episodes with the seed and options that were set; a ValueError if options differ."""
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ValueError(
                "a vector environment takes one dict of reset options for all environments, got several"
            )
        observation: VecEnvObs
        observation, info = checked_reset(
            self.env, "Stable-Baselines3", "numpy", self._seeds[0], options or None
        )
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._hand_out(info, dict(enumerate(self.reset_infos)))
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = np.asarray(actions)

    def step_wait(self) -> VecEnvStepReturn:
        observation, reward, terminated, truncated, info = self.env.step(self._actions)
        done = terminated | truncated
        infos: list[Info] = [
            {_TIME_OUT: time_out} for time_out in (truncated & ~terminated).tolist()
        ]
        self._hand_out(info, dict(enumerate(infos)))
        if done.any():
            if "final_obs" not in info:
                raise ValueError(
                    f"{name_of(self.env)} ended an episode without the final_obs that SAME_STEP promises"
                )
            ended = {i: infos[i] for i in np.flatnonzero(done).tolist()}
            # An entry of the batch with a mask tells of the reset in the rows that ended: there the last step counts.
            told = {key for key in info if f"_{key}" not in info and not key.startswith("_")}
            last_step = info.get("final_info", {})
            self._hand_out({key: last_step[key] for key in last_step if key not in told}, ended)
            for i, own in ended.items():
                own["terminal_observation"] = map_leaves(
                    lambda rows, i=i: rows[i], info["final_obs"]
                )
        return observation, np.array(reward, dtype=np.float32), done, infos

    def _hand_out(self, info: Info, infos: dict[int, Info]) -> None:
        """Give the rows of ``infos`` their parts of a batch's info; a mask ``_key`` says which have ``key``."""
        for key, value in info.items():
            if key.startswith("_") or key in _NOT_HANDED_OUT:
                continue
            takers = infos
            if f"_{key}" in info:
                flags = info[f"_{key}"].tolist()
                takers = {i: taker for i, taker in infos.items() if flags[i]}
            parts: Any
            if isinstance(value, dict):
                parts = [{} for _ in takers]
                self._hand_out(value, dict(zip(takers, parts, strict=True)))
            elif key in self._whole_keys:
                parts = [value] * len(takers)
            elif getattr(value, "ndim", 0) > 0 and len(value) == self.num_envs:
                parts = value if len(takers) == self.num_envs else value[list(takers)]
                parts = parts.tolist() if value.ndim == 1 else parts
            else:
                continue
            for taker, part in zip(takers.values(), parts, strict=True):
                taker[key] = part

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of each environment; one of the batch, such as ``cost_limits``, is given for each alike."""
        of_each = getattr(self._core, "get_attr", None)
        values = (
            of_each(attr_name)
            if of_each
            else [getattr(self._owner(attr_name), attr_name)] * self.num_envs
        )
        return [values[i] for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of environments, or of the batch; a ValueError if ``indices`` are a part of such a batch."""
        if hasattr(self._core, "set_attr"):
            chosen = set(self._get_indices(indices))
            others = [] if len(chosen) == self.num_envs else self._core.get_attr(attr_name)
            self._core.set_attr(
                attr_name, [value if i in chosen else others[i] for i in range(self.num_envs)]
            )
        else:
            self._check_all(indices, f"set_attr({attr_name!r})")
            setattr(
                self._owner(attr_name) if self.has_attr(attr_name) else self._core, attr_name, value
            )

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call each environment's method, or once the batch's, whose result is split if a sequence of num_envs."""
        if hasattr(self._core, "envs"):
            methods = [
                self._core.envs[i].get_wrapper_attr(method_name) for i in self._get_indices(indices)
            ]
            return [method(*method_args, **method_kwargs) for method in methods]
        self._check_all(indices, f"env_method({method_name!r})")
        if hasattr(self._core, "call"):
            return list(self._core.call(method_name, *method_args, **method_kwargs))
        result = getattr(self._owner(method_name), method_name)(*method_args, **method_kwargs)
        split = isinstance(result, (list, tuple, np.ndarray)) and len(result) == self.num_envs
        return list(result) if split else [result] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Whether a wrapper is in the stack or around its environments; ``Monitor`` is, as infos hold ``episode``."""
        whole = (
            issubclass(wrapper_class, Monitor) or find_layer(self.env, wrapper_class) is not None
        )
        envs = getattr(self._core, "envs", None)
        return [
            whole or (envs is not None and is_wrapped(envs[i], wrapper_class))
            for i in self._get_indices(indices)
        ]

    def get_images(self) -> list[np.ndarray]:
        """Pictures of the environments that the batch draws, each (height, width, 3) uint8."""
        return list(self.env.render() or ())

    def _owner(self, name: str) -> Any:
        for layer in layers(self.env):
            if hasattr(layer, name):
                return layer
        raise AttributeError(f"{name_of(self.env)} and its wrappers have no attribute {name!r}")

    def _check_all(self, indices: VecEnvIndices, call: str) -> None:
        if len(set(self._get_indices(indices))) != self.num_envs:
            raise ValueError(
                f"{call} concerns all {self.num_envs} environments of this batch: leave out indices"
            )
