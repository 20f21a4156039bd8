"""The base class of the wrappers, and the preparation of the environment below them."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from legged_envs.tables import Table, TableRepr
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.device import Device, check_device, device_name
from legged_envs.wrappers.plumbing.episodes import Episodes
from legged_envs.wrappers.plumbing.foreign_env import ForeignEnv, wrap_foreign
from legged_envs.wrappers.plumbing.layers import (
    AnyEnv,
    Env,
    Layer,
    State,
    Wrapper,
    autoreset_mode,
    layers,
    state_below,
)
from legged_envs.wrappers.plumbing.saved_state import check_value, load_value, saved_value

Seed: TypeAlias = int | list[int] | None
"""A seed for all environments, a list with one for each, or None."""
Options: TypeAlias = dict[str, Any] | None
"""Options of a reset, such as ``{"reset_mask": mask}``."""
Shape: TypeAlias = tuple[str | int, ...]
"""Shape of an array in a state. A name stands for an attribute, as in ``("num_envs",)``."""


class ShowsEnv(TableRepr):
    """An object around an environment ``env`` that prints the environment's tables."""

    env: Layer

    def _describe(self) -> str:
        return f"{self.env}"

    def _as_tables(self) -> list[Table]:
        core = self.env.unwrapped
        if not isinstance(core, TableRepr):
            return []
        title: Table = (repr(self), (), ())
        return [title, *core._as_tables()]


class StatefulWrapper(Wrapper, ShowsEnv):
    """A vector wrapper with a state that can be saved.

    A subclass overrides :meth:`step` for its effect and :meth:`_begin` to learn of resets. A
    subclass names the attributes to save in ``STATE``.

    ``state_dict`` and ``load_state_dict`` hold the state of only this wrapper. ``get_state`` and
    ``set_state`` hold the state of the whole stack down to the environment: a run continues from
    this state bit for bit, even over arrays of another kind.

    Args:
        env: A vector environment. A plain ``gymnasium.Env`` becomes a batch of one, and an
            environment of OmniSafe, with six values per step, goes through ``FromCMDP``.
        device: Device on which the environment's arrays must be, which each reset checks.
            None: any device.

    Raises:
        TypeError: ``env`` is not an environment, or ``device`` not a device.
        ValueError: ``env`` contains a layer that must be outermost, or two layers that report
            ``info["episode"]``.
    """

    env: Layer

    outermost: ClassVar[bool] = False
    """True if no wrapper can go above, because ``step`` does not return Gymnasium's five values."""
    reports_episodes: ClassVar[bool] = False
    """True if the wrapper adds ``info["episode"]``."""
    whole_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys that the wrapper adds to ``info`` and that have no row for each environment."""
    STATE: ClassVar[Mapping[str, Shape | None]] = {}
    """Attributes that are saved, with the shape of attributes that are arrays or None.

    An underscore in front of the attribute may be left out.
    """
    REQUIRED: ClassVar[frozenset[str]] = frozenset()
    """Keys of ``STATE`` with arrays that exist from the start: they are never None."""
    # Set by a wrapper that counts nothing of environments without a running episode.
    _over: Episodes | None = None

    def __init__(self, env: AnyEnv, device: Device | None = None):
        owner = type(self).__name__
        super().__init__(prepare_env(env, owner))
        self._expected_device = device_name(owner, device)

    def __del__(self) -> None:
        """Leave the environment below open; before Gymnasium 1.3 a wrapper closes it at its end."""

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """Autoreset mode of the stack. TorchRL reads this attribute."""
        return autoreset_mode(self)

    def reset(self, *, seed: Seed = None, options: Options = None) -> tuple[Tree, Info]:
        """Reset all environments, or the environments of a mask.

        Args:
            seed: A seed for all environments, a list with one for each, or None.
            options: Options of the environment. ``"reset_mask"`` (num_envs,) bool selects the
                environments to reset. The dict stays as it is.

        Returns:
            Observations of all environments, and ``info``.
        """
        mask = None
        options_below = None
        if options is not None:
            mask = options.get("reset_mask")
            # A copy, because Gymnasium's vector environments remove the mask from their dict.
            options_below = dict(options)
        observation, info = self.env.reset(seed=seed, options=options_below)
        example = arrays.first_array(observation)
        if self._expected_device is not None:
            check_device(type(self).__name__, self._expected_device, example)
        begun = arrays.as_kind_of(np.ones(self.num_envs, bool) if mask is None else mask, example)
        if self._over is not None:
            self._over.begin(begun)
        return self._begin(observation, info, begun, partial=mask is not None)

    def end_episodes(self, mask: Array) -> None:
        """Count nothing more of the environments of a mask (num_envs,) until their reset."""
        if self._over is not None:
            self._over.end(mask)

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        """Change what a reset returns.

        Args:
            observation: Observations of all environments.
            info: Info of the reset.
            begun: Environments that were reset. Shape: (num_envs,), bool.
            partial: False if all environments were reset because no mask was given.

        Returns:
            Observation and info that the wrapper returns.
        """
        return observation, info

    # --- state ------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Return a copy of the state of only this wrapper, by the keys of ``STATE``."""
        state = {}
        for key in self.STATE:
            state[key] = saved_value(getattr(self, self._attribute(key)))
        return state

    def load_state_dict(self, state: State) -> None:
        """Return to a state from :meth:`state_dict`, of any array kind.

        Raises:
            ValueError: The state is of another wrapper or other environments. Nothing changes.
        """
        self._check_state(state)
        for key in self.STATE:
            attribute = self._attribute(key)
            current = getattr(self, attribute)
            loaded = load_value(current, state[key])
            # A value that was loaded in place may be a property without a setter.
            if loaded is not current:
                setattr(self, attribute, loaded)

    def _attribute(self, key: str) -> str:
        if hasattr(type(self), key) or key in vars(self):
            return key
        return f"_{key}"

    def _check_state(self, state: State) -> None:
        name = type(self).__name__
        if not isinstance(state, Mapping):
            raise ValueError(f"{name} needs a state by name, got {type(state).__name__}")
        if state and not self.STATE:
            raise ValueError(f"{name} has no state, got {list(state)}")
        for key in self.STATE:
            if key not in state:
                raise ValueError(
                    f"{name} needs a state with {key!r}, got a state with {list(state)}"
                )
        for key, shape in self.STATE.items():
            if state[key] is None and key in self.REQUIRED:
                raise ValueError(f"{name} needs a state with an array {key!r}, got None")
            if shape is not None and state[key] is not None:
                self._check_shape(key, shape, state[key])
            try:
                check_value(getattr(self, self._attribute(key)), state[key])
            except KeyError as error:
                raise ValueError(
                    f"{name} needs a state like its own: the state has no {error}"
                ) from error
            except (ValueError, TypeError, AttributeError) as error:
                raise ValueError(f"{name} needs a state like its own: {key!r}: {error}") from error

    def _check_shape(self, key: str, shape: Shape, saved: Any) -> None:
        expected = tuple(getattr(self, str(size), size) for size in shape)
        given = np.shape(saved) if hasattr(saved, "dtype") else ()
        fits = False
        if len(given) == len(expected):
            # A size of None is not known yet.
            fits = all(own in (None, size) for size, own in zip(given, expected, strict=True))
        if not fits:
            raise ValueError(
                f"{type(self).__name__} needs a state with {key!r} of shape {expected}, "
                f"got {tuple(given)} of a {type(saved).__name__}. "
                "Load a state with the same number of environments and costs."
            )

    def save(self) -> State:
        """Return the running statistics of the stack.

        Returns:
            The statistics ``obs_normalizer``, ``reward_normalizer`` and ``cost_normalizer`` that
            the stack has, to be pickled or passed to a wrapper as ``norm``. Of two wrappers of one
            kind, the statistics of the outer wrapper.
        """
        saved = {}
        # From the inside out, so that the outer one of two overwrites the inner one.
        inside_out = reversed(list(layers(self)))
        for layer in inside_out:
            if hasattr(type(layer), "saved_as"):
                saved[layer.saved_as] = layer.normalizer
        return saved

    def get_state(self) -> State:
        """Return the state of this wrapper and of everything below it.

        Raises:
            TypeError: A layer below has no ``get_state``.
        """
        return {
            "wrapper": type(self).__name__,
            "own": self.state_dict(),
            "env": state_below(self.env),
        }

    def set_state(self, state: State) -> None:
        """Return to a state from :meth:`get_state` of the same stack.

        Raises:
            ValueError: The state is of another stack. Nothing changes.
        """
        # The whole stack is checked before anything is loaded.
        self._check_stack(state)
        before = self._present_state()
        core: Any = self.env.unwrapped
        has_begun = getattr(core, "has_begun", True)
        try:
            self._load_stack(state)
        # Of any kind: a layer below may refuse what its own checks do not know.
        except Exception as error:
            if before is not None:
                self._load_stack(before)
            if not has_begun:
                core.has_begun = False
            if isinstance(error, ValueError):
                raise
            raise ValueError(
                f"{type(self).__name__}.set_state cannot load the state, and nothing is changed: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _present_state(self) -> State | None:
        """Return the state of the stack, also before a reset, None if a layer has none then."""
        below: State | None
        if isinstance(self.env, StatefulWrapper):
            below = self.env._present_state()
        elif hasattr(self.env, "collect_state"):
            below = self.env.collect_state()
        else:
            try:
                below = state_below(self.env)
            # Of any kind: an environment of somebody else may have no state before its reset.
            except Exception:
                below = None
        if below is None:
            return None
        return {"wrapper": type(self).__name__, "own": self.state_dict(), "env": below}

    def _load_stack(self, state: State) -> None:
        if isinstance(self.env, StatefulWrapper):
            self.env._load_stack(state["env"])
        else:
            self.env.set_state(state["env"])
        self.load_state_dict(state["own"])

    def _check_stack(self, state: State) -> None:
        name = type(self).__name__
        if not isinstance(state, Mapping) or not {"wrapper", "own", "env"} <= state.keys():
            raise ValueError(
                f"{name}.set_state needs a state with 'wrapper', 'own' and 'env', as get_state "
                f"returns it, got {type(state).__name__}"
            )
        if state["wrapper"] != name:
            raise ValueError(f"{name}.set_state got the state of {state['wrapper']!r}")
        self._check_state(state["own"])
        if isinstance(self.env, StatefulWrapper):
            self.env._check_stack(state["env"])


def prepare_env(env: Layer, owner: str) -> Layer:
    """Return an environment in the form in which wrappers and adapters need it.

    Args:
        env: The environment that a wrapper or adapter was given.
        owner: Name of the wrapper or adapter, for errors.

    Returns:
        ``env`` itself if it is made of this package's layers. At the bottom of other stacks there
        is a ``ForeignEnv`` or ``FromCMDP`` if they need one.

    Raises:
        ValueError: A layer of ``env`` must be outermost, or two layers report ``info["episode"]``.
    """
    if hasattr(env, "unwrapped"):
        _check_five_values(env, owner)
        _check_one_report(env)
        if any(isinstance(layer, (StatefulWrapper, ForeignEnv)) for layer in layers(env)):
            return env
    return wrap_foreign(env)


def _check_five_values(env: Layer, owner: str) -> None:
    for layer in layers(env):
        if getattr(type(layer), "outermost", False):
            name = type(layer).__name__
            raise ValueError(
                f"{owner} needs the five values of Gymnasium's step, "
                f"but {name} below it returns others. "
                f"Leave {name} out, or put {name} outermost."
            )


def _check_one_report(env: Layer) -> None:
    # Gymnasium's wrapper fails when the first episode ends if info["episode"] is there already. Our
    # own above Gymnasium's is meant: it replaces the report with a report that includes the costs.
    recorder: str | None = None
    for layer in layers(env):
        if isinstance(layer, RecordEpisodeStatistics):
            if getattr(layer, "_stats_key", "") == "episode":
                recorder = type(layer).__name__
        elif recorder is not None and getattr(type(layer), "reports_episodes", False):
            raise ValueError(
                f"{recorder} and the {type(layer).__name__} below it both report info['episode']. "
                f"Leave {recorder} out, or make the environment with "
                "gymnasium.make_vec(…, statistics=False)."
            )


def not_reset(wrapper: Env) -> RuntimeError:
    """Return the error of a step before the first reset."""
    return RuntimeError(f"{type(wrapper).__name__} has no episodes to step yet: call reset() first")
