"""Environments with six values per step (OmniSafe, Safety-Gymnasium) as vector environments."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.layers import (
    Env,
    Layer,
    SixValueEnv,
    State,
    Step,
    name_of,
    state_below,
)

FINAL_NAMES = {"final_obs": "final_observation", "_final_obs": "_final_observation"}
"""Gymnasium's keys of the last observations, with OmniSafe's."""


class FromCMDP(Env):
    """A vector environment with five values per step from an environment with six.

    The cost of a step becomes ``info["cost"]``. Arrays keep their kind and device, and numbers
    become arrays of the observation's kind. Flags become bool. Actions stay as they are.

    An environment that is not a batch, with ``num_envs`` 1 or missing, becomes a batch of one: all
    values, numbers and arrays within ``info`` too, get a first dimension of 1.

    ``autoreset_mode`` is SAME_STEP where the environment's ``need_auto_reset_wrapper`` is false:
    ``info["final_observation"]`` becomes ``final_obs``, a full batch. ``autoreset_mode`` is
    DISABLED where ``need_auto_reset_wrapper`` is true or missing: put ``AutoReset`` above, and
    ``TimeLimit`` where ``need_time_limit_wrapper`` is true, as in
    ``AutoReset(TimeLimit(FromCMDP(cmdp), 1000))``.

    A partial reset of several environments passes its mask on in ``options``, which the environment
    has to know.

    Args:
        env: A ``CMDP`` of OmniSafe (0.5), a single environment of Safety-Gymnasium, or any object
            with ``reset``, ``step``, ``observation_space`` and ``action_space`` and steps that
            return (observation, reward, cost, terminated, truncated, info).

    Raises:
        TypeError: ``env`` lacks one of these attributes.

    Examples:
        >>> import numpy as np
        >>> from gymnasium.spaces import Box
        >>> class Line:
        ...     observation_space = Box(-9.0, 9.0, (1,))
        ...     action_space = Box(-1.0, 1.0, (1,))
        ...     def reset(self, seed=None, options=None):
        ...         self.x = np.zeros(1, np.float32)
        ...         return self.x.copy(), {}
        ...     def step(self, action):
        ...         self.x += action
        ...         return self.x.copy(), 1.0, float(self.x[0] > 0.5), False, False, {}
        >>> env = FromCMDP(Line())
        >>> _ = env.reset()
        >>> observation, reward, terminated, truncated, info = env.step(np.ones((1, 1), np.float32))
        >>> observation, reward, terminated
        (array([[1.]], dtype=float32), array([1.], dtype=float32), array([False]))
        >>> info
        {'cost': array([1.], dtype=float32)}
    """

    cost_names: Sequence[str]
    """Names of the cost terms, if the environment has them."""
    cost_limits: Sequence[float]
    """Limits of the cost terms, if the environment has them."""

    def __init__(self, env: SixValueEnv):
        for name in ("reset", "step", "observation_space", "action_space"):
            if not hasattr(env, name):
                raise TypeError(
                    f"FromCMDP needs an environment with {name}, got {type(env).__name__}"
                )
        cmdp: Layer = env

        self.cmdp = cmdp
        """The environment with six values."""
        self.num_envs = getattr(cmdp, "num_envs", 1)
        self._is_single = self.num_envs == 1 and not isinstance(cmdp, VectorEnv)
        self.single_observation_space = getattr(
            cmdp, "single_observation_space", cmdp.observation_space
        )
        self.single_action_space = getattr(cmdp, "single_action_space", cmdp.action_space)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._mode = _autoreset_mode(cmdp)
        self.metadata = {**getattr(cmdp, "metadata", {}), "autoreset_mode": self._mode}
        self.render_mode = getattr(cmdp, "render_mode", None)
        self.spec = getattr(cmdp, "spec", None)
        # Those of the environment itself come last, so that they count.
        core: Layer = getattr(cmdp, "unwrapped", None)
        for owner in (core, cmdp):
            if hasattr(owner, "cost_names"):
                self.cost_names = owner.cost_names
            if hasattr(owner, "cost_limits"):
                self.cost_limits = owner.cost_limits
        # The last observation of a single environment, which a reset of no environment returns.
        self._observation: Tree | None = None

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Tree, Info]:
        """Start new episodes.

        Args:
            seed: Seed of the environment. Of a list of one, its element.
            options: Options of the environment. ``"reset_mask"`` [False] resets nothing and returns
                the last observation.

        Returns:
            Observation and info.

        Raises:
            RuntimeError: The first reset resets nothing.
        """
        options = dict(options or {})
        if self._is_single:
            mask = options.pop("reset_mask", None)
            if mask is not None and not arrays.any_row(mask):
                return reset_of_none(self._observation)
            if isinstance(seed, (list, tuple, np.ndarray)):
                seed = seed[0]
        # Without options the argument is left out: not every environment takes it.
        if options:
            observation, info = self.cmdp.reset(seed=seed, options=options)
        else:
            observation, info = self.cmdp.reset(seed=seed)
        example = arrays.first_array(observation)
        return self._remember(observation), self._batch_info(info, example)

    def step(self, actions: Tree) -> Step:
        """Step the environment.

        Returns:
            Observation, reward, terminated, truncated and info.

        Raises:
            ValueError: The environment does not return six values, or one has a wrong shape.
        """
        if self._is_single:
            actions = arrays.map_arrays(lambda action: action[0], actions)
        values = self.cmdp.step(actions)
        if len(values) != 6:
            raise ValueError(
                f"{type(self.cmdp).__name__}.step must return six values, got {len(values)}"
            )
        observation, reward, cost, terminated, truncated, info = values
        example = arrays.first_array(observation)
        observation = self._remember(observation)
        reward = self._checked_batch("reward", reward, example)
        cost = self._checked_batch("cost", cost, example)
        terminated = self._checked_batch("terminated", terminated, example) > 0
        truncated = self._checked_batch("truncated", truncated, example) > 0
        ended = terminated | truncated
        final = self._final_keys(info, ended, observation, example)
        rest = {key: info[key] for key in info if key not in FINAL_NAMES.values()}
        info = {**self._batch_info(rest, example), **final, "cost": cost}
        return observation, reward, terminated, truncated, info

    def _final_keys(self, info: Info, ended: Array, observation: Tree, example: Array) -> Info:
        """Return the last observations of ended episodes under Gymnasium's keys."""
        key = FINAL_NAMES["final_obs"]
        mask_key = FINAL_NAMES["_final_obs"]
        same_step = self._mode is AutoresetMode.SAME_STEP
        if not same_step or key not in info or not arrays.any_row(ended):
            return {}
        rows = self._batch(info.get(mask_key, ended), example) > 0
        # A mask of another shape is not one of environments.
        rows = rows & ended if tuple(rows.shape) == (self.num_envs,) else ended
        last = arrays.map_arrays(lambda array: self._batch(array, example), info[key])
        return {"final_obs": arrays.where_rows(rows, last, observation), "_final_obs": rows}

    def _remember(self, observation: Tree) -> Tree:
        """Return the observation as a batch, and keep a copy for a reset of no environment."""
        if not self._is_single:
            return observation
        self._observation = arrays.map_arrays(
            lambda array: arrays.copied(array)[None, ...], observation
        )
        return arrays.map_arrays(arrays.copied, self._observation)

    def _batch(self, value: Any, example: Array) -> Array:
        """Return a value as an array of the kind of ``example`` with a row per environment."""
        if not is_array_api_obj(value) or isinstance(value, np.generic):
            value = np.asarray(value, np.float32 if isinstance(value, float) else None)
        array = arrays.as_kind_of(value, example)
        return array[None, ...] if self._is_single else array

    def _checked_batch(self, name: str, value: Any, example: Array) -> Array:
        array = self._batch(value, example)
        if tuple(array.shape) != (self.num_envs,):
            raise ValueError(
                f"{name_of(self)} needs a {name} of shape ({self.num_envs},) "
                f"from {type(self.cmdp).__name__}, got {tuple(array.shape)}"
            )
        return array

    def _batch_info(self, info: Any, example: Array) -> Any:
        """Return an ``info``, or a part of it, with a row per environment in every array."""
        if isinstance(info, dict):
            return {key: self._batch_info(value, example) for key, value in info.items()}
        if not self._is_single:
            return info
        is_number = isinstance(info, (bool, int, float, *arrays.NUMPY_TYPES))
        return self._batch(info, example) if is_number or is_array_api_obj(info) else info

    def render(self) -> tuple[Any, ...] | None:
        """Return pictures of the environments, one for a batch of one. None without pictures."""
        picture = self.cmdp.render()
        if picture is None or isinstance(picture, tuple):
            return picture
        return (picture,)

    def close_extras(self, **kwargs: object) -> None:
        # Gymnasium 1.2 also closes wrappers that could not be made.
        if hasattr(self, "cmdp"):
            self.cmdp.close()

    def save(self) -> State:
        """Return the result of ``save`` of an OmniSafe environment; an empty dict for others."""
        return dict(self.cmdp.save()) if hasattr(self.cmdp, "save") else {}

    def get_state(self) -> State:
        """Return the state of the environment and its last observation.

        Raises:
            TypeError: The environment has no ``get_state``.
        """
        return {
            "env": state_below(self.cmdp),
            "observation": arrays.map_arrays(arrays.copied, self._observation),
        }

    def set_state(self, state: State) -> None:
        """Return to a state from :meth:`get_state`."""
        self.cmdp.set_state(state["env"])
        self._observation = arrays.map_arrays(arrays.copied, state["observation"])


def _autoreset_mode(cmdp: Layer) -> AutoresetMode:
    metadata = getattr(cmdp, "metadata", {})
    if "autoreset_mode" in metadata:
        return AutoresetMode(metadata["autoreset_mode"])
    if getattr(cmdp, "need_auto_reset_wrapper", True):
        return AutoresetMode.DISABLED
    return AutoresetMode.SAME_STEP


def reset_of_none(observation: Tree | None) -> tuple[Tree, Info]:
    """Return the result of a reset of no environment: a copy of the last observation.

    Raises:
        RuntimeError: There is no last observation.
    """
    if observation is None:
        raise RuntimeError(
            "the first reset must be of all environments: call reset() without a reset_mask"
        )
    return arrays.map_arrays(arrays.copied, observation), {}
