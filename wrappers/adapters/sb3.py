"""Train with Stable-Baselines3: a Gymnasium vector environment as its ``VecEnv``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from legged_envs.wrappers.episode_statistics import EpisodeStatistics
from legged_envs.wrappers.plumbing.adapter import AdapterEnv, accept_env, checked_reset, find_layer
from legged_envs.wrappers.plumbing.arrays import Info, Tree, map_leaves
from legged_envs.wrappers.plumbing.layers import Env, Layer, layers, name_of, whole_keys

TIME_OUT_KEY = "TimeLimit.truncated"
"""SB3's key of an info: True if a time limit and not a termination ended the episode."""
OMITTED_KEYS = ("final_obs", "final_info", "log", TIME_OUT_KEY)
"""Keys of a batch's info that are not copied into the infos of single environments."""


class Sb3VecEnv(AdapterEnv, VecEnv):
    """A vector environment of NumPy arrays as SB3's ``VecEnv``.

    The environment must reset in the same step. Each step returns new dicts and a new array of
    rewards, because SB3 writes to them.

    An environment's info dict of a step holds its row of every entry of the batch's info, among
    them ``cost`` and ``costs`` (K,). Entries with a number for each cost instead of a row for each
    environment, such as ``lagrange_multipliers`` (K,), are in every dict as a whole. Every dict has
    the key ``TimeLimit.truncated``.

    The dict of an environment with an ended episode also holds the entries that the last step
    reported, ``terminal_observation``, the true last observation, and ``episode``: return ``r``,
    length ``l``, seconds ``t`` and, if the environment counts it, summed cost ``c``.

    Args:
        env: The environment.

    Raises:
        ValueError: If the environment does not reset in the same step.
    """

    def __init__(self, env: Env):
        env = accept_env(env, "Stable-Baselines3", "numpy")
        own_statistics = find_layer(env, EpisodeStatistics)
        gymnasium_statistics = find_layer(env, RecordEpisodeStatistics)
        if own_statistics is None and gymnasium_statistics is None:
            # Those of Gymnasium 1.2 leave out the first step after each reset in the same step.
            env = EpisodeStatistics(env)
        self.env: Layer = env
        # Gymnasium's batches of single environments have get_attr, set_attr and call.
        self._core: Layer = env.unwrapped
        self.spec = env.spec
        self._actions: Any = None
        self._whole_keys = whole_keys(env)
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        # SB3 leaves only its render modes: VecVideoRecorder reads the frames per second here.
        self.metadata = dict(env.metadata)

    def reset(self) -> VecEnvObs:
        """Start new episodes with the seed and the options that were set.

        Returns:
            The observation of all environments.

        Raises:
            ValueError: If the environments were given different options.
        """
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ValueError(
                "a vector environment takes one dict of reset options for all environments, "
                "got several: set the same options for each"
            )
        observation: VecEnvObs
        observation, info = checked_reset(
            self.env, "Stable-Baselines3", "numpy", self._seeds[0], options or None
        )
        # SB3: a seed and options hold for one reset.
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._distribute(info, dict(enumerate(self.reset_infos)))
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions of the next :meth:`step_wait`.

        Args:
            actions: Shape: (num_envs, …).
        """
        self._actions = np.asarray(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Advance by one step with the actions that were kept.

        Returns:
            Observations, rewards (num_envs,) float32, dones (num_envs,) bool, and a list of infos.

        Raises:
            ValueError: If an episode ended without a ``final_obs``.
        """
        observation, reward, terminated, truncated, info = self.env.step(self._actions)
        done = terminated | truncated
        time_outs = (truncated & ~terminated).tolist()
        infos: list[Info] = [{TIME_OUT_KEY: time_out} for time_out in time_outs]
        self._distribute(info, dict(enumerate(infos)))
        if done.any():
            ended = {i: infos[i] for i in np.flatnonzero(done).tolist()}
            self._add_last_steps(info, ended)
        # A copy, because SB3 adds to the rewards in place.
        return observation, np.array(reward, dtype=np.float32), done, infos

    def _add_last_steps(self, info: Info, ended: dict[int, Info]) -> None:
        """Complete the infos of the environments that ended an episode.

        Args:
            info: Info of the batch.
            ended: Their infos, by index.
        """
        if "final_obs" not in info:
            raise ValueError(
                f"{name_of(self.env)} ended an episode without the final_obs "
                "that SAME_STEP promises"
            )
        last_step: Info = {}
        for key, value in info.get("final_info", {}).items():
            # An entry without a mask describes the last step already; one with a mask describes
            # the reset in the rows that ended, so there the last step's value replaces it.
            is_unmasked = key in info and f"_{key}" not in info and not key.startswith("_")
            if not is_unmasked:
                last_step[key] = value
        self._distribute(last_step, ended)
        for i, own_info in ended.items():
            own_info["terminal_observation"] = _row(info["final_obs"], i)

    def _distribute(self, info: Info, infos: dict[int, Info]) -> None:
        """Copy entries of a batch's info into the infos of single environments.

        Args:
            info: Info of the batch. A mask ``_key`` marks the environments that have ``key``.
            infos: Infos that get their part, by index of the environment.
        """
        for key, value in info.items():
            if key.startswith("_") or key in OMITTED_KEYS:
                continue
            takers = infos
            # Without a mask every environment has the entry.
            if f"_{key}" in info:
                flags = info[f"_{key}"].tolist()
                takers = {i: own_info for i, own_info in infos.items() if flags[i]}
            if isinstance(value, dict):
                nested: dict[int, Info] = {i: {} for i in takers}
                self._distribute(value, nested)
                parts: Sequence[Any] = list(nested.values())
            elif key in self._whole_keys:
                parts = [value] * len(takers)
            elif getattr(value, "ndim", 0) > 0 and len(value) == self.num_envs:
                parts = self._rows(value, list(takers))
            else:
                continue
            for own_info, part in zip(takers.values(), parts, strict=True):
                own_info[key] = part

    def _rows(self, values: np.ndarray, indices: list[int]) -> Sequence[Any]:
        """Return rows of an array; as Python numbers where a row is one number."""
        if len(indices) < self.num_envs:
            values = values[indices]
        if values.ndim == 1:
            # Python numbers, as in the infos of SB3's own environments.
            numbers: list[Any] = values.tolist()
            return numbers
        return list(values)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of each environment; an attribute of the batch is repeated for each.

        Args:
            attr_name: Name of the attribute, such as ``cost_limits``.
            indices: Environments; None is all.

        Raises:
            AttributeError: If neither the environment nor a wrapper has the attribute.
        """
        if hasattr(self._core, "get_attr"):
            values = self._core.get_attr(attr_name)
        else:
            owner = self._owner(attr_name)
            values = [getattr(owner, attr_name)] * self.num_envs
        return [values[i] for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of environments, or of the batch.

        Args:
            attr_name: Name of the attribute.
            value: New value of the attribute.
            indices: Environments; None is all.

        Raises:
            ValueError: If the attribute belongs to the batch and ``indices`` are only a part of the
                batch.
        """
        if not hasattr(self._core, "set_attr"):
            self._check_all(indices, f"set_attr({attr_name!r})")
            owner = self._owner(attr_name) if self.has_attr(attr_name) else self._core
            setattr(owner, attr_name, value)
            return
        chosen = set(self._get_indices(indices))
        values = [value] * self.num_envs
        if len(chosen) < self.num_envs:
            present = self._core.get_attr(attr_name)
            values = [value if i in chosen else present[i] for i in range(self.num_envs)]
        self._core.set_attr(attr_name, values)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of each environment, or once the method of the batch.

        Args:
            method_name: Name of the method.
            method_args: Positional arguments of the method.
            indices: Environments; None is all.
            method_kwargs: Keyword arguments of the method.

        Returns:
            A result for each environment. A result of the batch is split if it is a sequence of
            length ``num_envs``, and repeated otherwise.

        Raises:
            ValueError: If the method belongs to the batch and ``indices`` are only a part of the
                batch.
        """
        if hasattr(self._core, "envs"):
            results = []
            for i in self._get_indices(indices):
                method = self._core.envs[i].get_wrapper_attr(method_name)
                results.append(method(*method_args, **method_kwargs))
            return results
        self._check_all(indices, f"env_method({method_name!r})")
        if hasattr(self._core, "call"):
            return list(self._core.call(method_name, *method_args, **method_kwargs))
        result = getattr(self._owner(method_name), method_name)(*method_args, **method_kwargs)
        is_sequence = isinstance(result, (list, tuple, np.ndarray))
        if is_sequence and len(result) == self.num_envs:
            return list(result)
        return [result] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Return True if a wrapper is in the stack or around its single environments.

        ``Monitor`` counts as one, because infos hold ``episode``.

        Args:
            wrapper_class: Class of the wrapper.
            indices: Environments; None is all.
        """
        chosen = list(self._get_indices(indices))
        is_monitor = issubclass(wrapper_class, Monitor)
        if is_monitor or find_layer(self.env, wrapper_class) is not None:
            return [True] * len(chosen)
        envs = getattr(self._core, "envs", None)
        if envs is None:
            return [False] * len(chosen)
        return [is_wrapped(envs[i], wrapper_class) for i in chosen]

    def get_images(self) -> list[np.ndarray]:
        """Return pictures of the environments that the batch draws, (height, width, 3) uint8."""
        return list(self.env.render() or ())

    def _owner(self, name: str) -> Any:
        """Return the outermost layer of the stack that has an attribute of this name."""
        # A wrapper's attribute hides the environment's attribute, as in Gymnasium.
        for layer in layers(self.env):
            if hasattr(layer, name):
                return layer
        raise AttributeError(f"{name_of(self.env)} and its wrappers have no attribute {name!r}")

    def _check_all(self, indices: VecEnvIndices, call: str) -> None:
        """Raise a ValueError unless ``indices`` are all environments."""
        if len(set(self._get_indices(indices))) != self.num_envs:
            raise ValueError(
                f"{call} concerns all {self.num_envs} environments of this batch: leave out indices"
            )


def _row(tree: Tree, index: int) -> Any:
    """Return one environment's row of a tree of arrays."""
    return map_leaves(lambda rows: rows[index], tree)
