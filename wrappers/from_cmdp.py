"""Environments whose steps have six values (OmniSafe's ``CMDP``, Safety-Gymnasium's) under the whole stack."""

from typing import Any, cast

import numpy as np
from array_api_compat import is_array_api_obj
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.layers import Step, name_of, state_below

FINAL_NAMES = {
    "final_obs": "final_observation",
    "_final_obs": "_final_observation",
}  # Gymnasium's → OmniSafe's


class FromCMDP(VectorEnv[Any, Any, Any]):
    """A vector environment with five values per step from an environment with six, whose cost becomes ``info["cost"]``.

    It takes a ``CMDP`` of OmniSafe (0.5), a single environment of Safety-Gymnasium, or any object with ``reset``,
    ``step``, ``observation_space`` and ``action_space`` (else a TypeError) whose steps return (observation, reward,
    cost, terminated, truncated, info) (else a ValueError). One that has ``num_envs`` 1, or none, and is no batch
    becomes a batch of one: all values, numbers and arrays within ``info`` too, get a first dimension of 1. Arrays keep
    their kind and device, and numbers become arrays of the observation's; flags become bool. Actions stay as they are.

    ``autoreset_mode`` is SAME_STEP where ``need_auto_reset_wrapper`` is false: ``info["final_observation"]`` becomes
    ``final_obs``, a full batch. It is DISABLED where that is true or missing: put :class:`AutoReset` above, and
    :class:`TimeLimit` where ``need_time_limit_wrapper`` is true: ``AutoReset(TimeLimit(FromCMDP(cmdp), 1000))``. A
    partial reset of several environments passes its mask on in ``options``: that environment has to know it.

    >>> import numpy as np
    >>> from gymnasium.spaces import Box
    >>> class Line:
    ...     observation_space, action_space = Box(-9.0, 9.0, (1,)), Box(-1.0, 1.0, (1,))
    ...     def reset(self, seed=None, options=None):
    ...         self.x = np.zeros(1, np.float32)
    ...         return self.x.copy(), {}
    ...     def step(self, action):
    ...         self.x += action
    ...         return self.x.copy(), 1.0, float(self.x[0] > 0.5), False, False, {}
    >>> env = FromCMDP(Line())
    >>> _ = env.reset()
    >>> observation, reward, terminated, truncated, info = env.step(np.ones((1, 1), np.float32))
    >>> observation, reward, terminated, info
    (array([[1.]], dtype=float32), array([1.], dtype=float32), array([False]), {'cost': array([1.], dtype=float32)})
    """

    def __init__(self, env: Any):
        for name in ("reset", "step", "observation_space", "action_space"):
            if not hasattr(env, name):
                raise TypeError(
                    f"FromCMDP needs an environment with {name}, got {type(env).__name__}"
                )
        self.cmdp = env
        self.num_envs = getattr(env, "num_envs", 1)
        self._is_single = self.num_envs == 1 and not isinstance(env, VectorEnv)
        self.single_observation_space = getattr(
            env, "single_observation_space", env.observation_space
        )
        self.single_action_space = getattr(env, "single_action_space", env.action_space)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        own = (
            AutoresetMode.DISABLED
            if getattr(env, "need_auto_reset_wrapper", True)
            else AutoresetMode.SAME_STEP
        )
        metadata = getattr(env, "metadata", {})
        self.metadata = {
            **metadata,
            "autoreset_mode": AutoresetMode(metadata.get("autoreset_mode", own)),
        }
        self.render_mode, self.spec = getattr(env, "render_mode", None), getattr(env, "spec", None)
        for name in ("cost_names", "cost_limits"):
            owner = env if hasattr(env, name) else getattr(env, "unwrapped", None)
            if hasattr(owner, name):
                setattr(self, name, getattr(owner, name))
        self._observation: Any = None

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Tree, Info]:
        """Start new episodes; none where a mask leaves a single environment out, at first a RuntimeError."""
        options = dict(options or {})
        if self._is_single:
            mask = options.pop("reset_mask", None)
            if mask is not None and not arrays.any_row(mask):
                return reset_of_none(self._observation)
            seed = seed[0] if isinstance(seed, (list, tuple, np.ndarray)) else seed
        observation, info = self.cmdp.reset(seed=seed, **({"options": options} if options else {}))
        return self._remember(observation), self._rows_of(info, arrays.first_array(observation))

    def step(self, actions: Tree) -> Step:
        values = self.cmdp.step(
            arrays.map_arrays(lambda action: action[0], actions) if self._is_single else actions
        )
        if len(values) != 6:
            raise ValueError(
                f"{type(self.cmdp).__name__}.step must return six values, got {len(values)}"
            )
        observation, reward, cost, terminated, truncated, info = values
        example = arrays.first_array(observation)
        observation = self._remember(observation)
        reward, cost = (self._row_of(value, example) for value in (reward, cost))
        terminated, truncated = (
            self._row_of(flag, example) > 0 for flag in (terminated, truncated)
        )
        for name, value in (
            ("reward", reward),
            ("cost", cost),
            ("terminated", terminated),
            ("truncated", truncated),
        ):
            if tuple(value.shape) != (self.num_envs,):
                needs = f"{name_of(self)} needs a {name} of shape ({self.num_envs},) from {type(self.cmdp).__name__}"
                raise ValueError(f"{needs}, got {tuple(value.shape)}")
        final = {ours: info[theirs] for ours, theirs in FINAL_NAMES.items() if theirs in info}
        info = self._rows_of(
            {key: info[key] for key in info if key not in FINAL_NAMES.values()}, example
        )
        ended, same_step = (
            terminated | truncated,
            self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP,
        )
        if same_step and "final_obs" in final and arrays.any_row(ended):
            rows = self._row_of(final.get("_final_obs", ended), example) > 0
            rows = rows & ended if tuple(rows.shape) == (self.num_envs,) else ended
            last = arrays.map_arrays(lambda array: self._row_of(array, example), final["final_obs"])
            info |= {"final_obs": arrays.where_rows(rows, last, observation), "_final_obs": rows}
        return observation, reward, terminated, truncated, {**info, "cost": cost}

    def _remember(self, observation: Tree) -> Tree:
        """The observation as a batch, of which a copy is kept: a reset of no environment returns it."""
        if not self._is_single:
            return observation
        self._observation = arrays.map_arrays(
            lambda array: arrays.copied(array)[None, ...], observation
        )
        return cast(Tree, arrays.map_arrays(arrays.copied, self._observation))

    def _row_of(self, value: Any, example: Array) -> Any:
        if not is_array_api_obj(value) or isinstance(value, np.generic):
            value = np.asarray(value, np.float32 if isinstance(value, float) else None)
        value = arrays.as_kind_of(value, example)
        return value[None, ...] if self._is_single else value

    def _rows_of(self, part: Any, example: Array) -> Any:
        """``info``, or a part of it, in which a single environment's numbers and arrays have a first dimension of 1."""
        if isinstance(part, dict):
            return {key: self._rows_of(value, example) for key, value in part.items()}
        is_numeric = isinstance(part, (bool, int, float, *arrays.NUMPY)) or is_array_api_obj(part)
        return self._row_of(part, example) if self._is_single and is_numeric else part

    def render(self) -> tuple[Any, ...] | None:
        """Pictures of the environments, one of a batch of one; None if it draws none."""
        picture = self.cmdp.render()
        return picture if picture is None or isinstance(picture, tuple) else (picture,)

    def close_extras(self, **kwargs: Any) -> None:
        self.cmdp.close()

    def save(self) -> dict[str, Any]:
        """What ``save`` of an OmniSafe environment returns, nothing for others."""
        return dict(self.cmdp.save()) if hasattr(self.cmdp, "save") else {}

    def get_state(self) -> dict[str, Any]:
        """The environment's own state and its last observation; TypeError if it has none to give."""
        return {
            "env": state_below(self.cmdp),
            "observation": arrays.map_arrays(arrays.copied, self._observation),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from :meth:`get_state`."""
        self.cmdp.set_state(state["env"])
        self._observation = arrays.map_arrays(arrays.copied, state["observation"])


def reset_of_none(observation: Any) -> tuple[Tree, Info]:
    """What a reset of no environment returns: a copy of the last observation; a ``RuntimeError`` without one."""
    if observation is None:
        raise RuntimeError(
            "the first reset must be of all environments: call reset() without a reset_mask"
        )
    return arrays.map_arrays(arrays.copied, observation), {}
