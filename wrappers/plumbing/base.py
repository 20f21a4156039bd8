"""What the wrappers share: the base class with its state, and the helper that knows whose episode is over."""

import inspect
import re
from abc import ABCMeta
from collections import deque
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from array_api_compat import device as device_of
from gymnasium.vector import AutoresetMode, VectorWrapper
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from legged_envs.checks import whole_number
from legged_envs.tables import Table, TableRepr
from legged_envs.wrappers.plumbing import arrays
from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.foreign_env import ForeignEnv, put_in_order
from legged_envs.wrappers.plumbing.layers import Env, Step, autoreset_mode, layers, state_below

__all__ = [
    "Env",
    "Episodes",
    "Info",
    "Options",
    "Seed",
    "StatefulWrapper",
    "Step",
    "Tree",
    "layers",
    "whole_number",
]

Seed: TypeAlias = int | list[int] | None
"""A seed for all environments, one for each, or none."""
Options: TypeAlias = dict[str, Any] | None
"""Options of a reset, such as ``{"reset_mask": mask}``."""
Shape: TypeAlias = tuple[str | int, ...]  # names are attributes of a wrapper, as in ("num_envs",)


class Episodes:
    """Which rows have no running episode: it is over, and they are not reset yet. Such rows count nothing.

    Masks (num_envs,) come in any array kind and go out in the kind asked for. By the ``mode`` of what is below, an
    ended episode is over during the next step alone (NEXT_STEP), until its reset (DISABLED) or never (SAME_STEP)."""

    def __init__(self, mode: AutoresetMode):
        self.mode = mode
        self.some_over = False
        self._over: Any = None  # None until a row's episode was over

    def over(self, example: Array) -> Array:
        """The mask of rows whose episode is over, of the kind of ``example``, an array with rows."""
        if self._over is None:
            self._over = np.zeros(example.shape[0], bool)
        self._over = arrays.as_kind_of(self._over, example)
        return cast(Array, self._over)

    def running(self, example: Array) -> Array:
        """The mask of rows whose episode runs, (num_envs,) bool, of the kind of ``example``."""
        return cast(Array, ~self.over(example))

    def begin(self, begun: Array) -> None:
        """Note that the rows ``begun`` (num_envs,) were reset."""
        if self.some_over:
            self._set(self.over(begun) & ~begun)

    def end(self, ended: Array) -> None:
        """Note that the episodes of the rows ``ended`` (num_envs,) are over."""
        self._set(
            arrays.as_kind_of(ended, self._over) | self._over
            if self.some_over
            else arrays.copied(ended)
        )

    def step(self, ended: Array | None) -> None:
        """Note whose episodes a step has ended, None if nobody's; those before are reset if the environment does so."""
        if self.mode is AutoresetMode.DISABLED:
            if ended is not None:
                self.end(ended)
        elif self.mode is AutoresetMode.NEXT_STEP and (ended is not None or self.some_over):
            self._over, self.some_over = (
                None if ended is None else arrays.copied(ended),
                ended is not None,
            )

    def _set(self, over: Array) -> None:
        self._over, self.some_over = over, arrays.any_row(over)

    def state_dict(self) -> Array | None:
        """The mask of rows whose episode is over, copied; None if there is none."""
        return arrays.copied(self._over) if self.some_over else None

    def check_state(self, state: Any) -> None:
        """Raise a ValueError unless this is such a mask or None, and of the same mode."""
        if state is not None and "bool" not in str(getattr(state, "dtype", None)):
            raise ValueError(f"the mask of episodes that are over must be boolean, got {state!r}")
        if state is not None and self.mode is AutoresetMode.SAME_STEP and arrays.any_row(state):
            raise ValueError(
                f"the state is of another autoreset mode than {self.mode}: episodes wait for their reset"
            )

    def load_state_dict(self, state: Array | None) -> None:
        """Return to a state from :meth:`state_dict`."""
        self.some_over = False
        if state is not None:
            self._set(arrays.copied(state))


class _TakesDevice(ABCMeta):
    """Lets constructors take the ``device`` of OmniSafe's wrappers, by name or anywhere; resets only check it."""

    def __call__(cls, env: Any, *args: Any, **kwargs: Any) -> Any:
        if "device" in inspect.signature(cls).parameters:
            return super().__call__(env, *args, **kwargs)
        devices = [
            *filter(_is_device, args),
            *([kwargs.pop("device")] if "device" in kwargs else []),
        ]
        wrapper = super().__call__(
            env, *(value for value in args if not _is_device(value)), **kwargs
        )
        if len(devices) > 1 or not all(map(_is_device, devices)):
            raise TypeError(f"{cls.__name__} takes one device, such as 'cpu', got {devices}")
        wrapper._expected_device = str(devices[0]) if devices else None
        return wrapper


def _is_device(value: object) -> bool:
    is_name = isinstance(value, str) and re.fullmatch(r"(cpu|cuda|mps|xpu|meta)(:\d+)?", value)
    return bool(is_name) or (type(value).__module__, type(value).__name__) == ("torch", "device")


class ShowsEnv(TableRepr):
    """What stands around an environment ``env``, whose tables it shows."""

    env: Any

    def _describe(self) -> str:
        return f"{self.env}"

    def _as_tables(self) -> list[Table]:
        core = self.env.unwrapped
        return [(repr(self), (), ()), *core._as_tables()] if isinstance(core, TableRepr) else []


class StatefulWrapper(VectorWrapper[Any, Any, Any, Any, Any], ShowsEnv, metaclass=_TakesDevice):
    """A vector wrapper whose state can be saved. A subclass overrides ``step`` and :meth:`_begin`, and fills ``STATE``.

    ``state_dict``/``load_state_dict`` hold the wrapper's own state, ``get_state``/``set_state`` that of the whole stack
    down to the environment: a run that goes on from it continues bit for bit, also over another array kind. ``env`` is
    a vector environment; a plain ``gymnasium.Env``, made a batch of one; or one whose steps have six values, as
    OmniSafe's, through ``FromCMDP``. Others are a ``TypeError``, a layer that must be outermost a ``ValueError``."""

    env: Any
    outermost: ClassVar[bool] = (
        False  # no wrapper can go above: its step does not return Gymnasium's five values
    )
    reports_episodes: ClassVar[bool] = False  # whether it adds info["episode"]
    whole_keys: ClassVar[frozenset[str]] = (
        frozenset()
    )  # keys of info it adds that have no row for each environment
    STATE: ClassVar[dict[str, Shape | None]] = {}
    """What is saved: attributes (an underscore in front may be left out) and, of arrays or None, the shape."""
    _expected_device: str | None = None
    _over: Any = None  # Episodes of a wrapper that counts nothing of rows without a running one

    def __init__(self, env: Any):
        super().__init__(in_order(env, type(self).__name__))

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata, but for Gymnasium's ``RecordEpisodeStatistics`` around a layer with the same key of ``info`` a
        ValueError. That reads them when it is made, and else would find out when the first episode ends."""
        asking = inspect.currentframe()
        while asking is not None and asking.f_code.co_name == "metadata":  # the layers between
            asking = asking.f_back
        asker = None if asking is None else asking.f_locals.get("self")
        twice = (
            isinstance(asker, RecordEpisodeStatistics)
            and getattr(asker, "_stats_key", "") == "episode"
        )
        if twice and any(getattr(layer, "reports_episodes", False) for layer in layers(self)):
            wrong = "RecordEpisodeStatistics would report info['episode'], which this environment reports itself"
            how = "make it with gymnasium.make_vec(…, statistics=False), or leave RecordEpisodeStatistics out"
            raise ValueError(f"{wrong}: {how}")
        return super().metadata

    @metadata.setter
    def metadata(self, value: dict[str, Any]) -> None:
        self._metadata = value

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When the stack resets; TorchRL asks for it."""
        return autoreset_mode(self)

    def reset(self, *, seed: Seed = None, options: Options = None) -> tuple[Any, Info]:
        mask = None if options is None else options.get("reset_mask")
        # Gymnasium's vector environments take the mask out of the dict that they get.
        observation, info = self.env.reset(
            seed=seed, options=None if options is None else dict(options)
        )
        example = arrays.first_array(observation)
        if self._expected_device is not None:
            self._check_device(example)
        begun = arrays.as_kind_of(np.ones(self.num_envs, bool) if mask is None else mask, example)
        if self._over is not None:
            self._over.begin(begun)
        return self._begin(observation, info, begun, partial=mask is not None)

    def end_episodes(self, mask: Array) -> None:
        """Count nothing more of the episodes of ``mask`` (num_envs,) until their reset."""
        if self._over is not None:
            self._over.end(mask)

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        """Observation and ``info`` to give after a reset of the rows ``begun``, a mask: of all unless ``partial``."""
        return observation, info

    def _check_device(self, example: Array) -> None:
        given = "cpu" if isinstance(example, arrays.NUMPY) else str(device_of(example))
        if self._expected_device not in (given, given.partition(":")[0]):
            wrong = f"device={self._expected_device!r}, but the arrays of the environment are on {given!r}"
            how = f"make the environment there, or put ToTorch(env, device={self._expected_device!r}) below"
            raise ValueError(f"{type(self).__name__} was given {wrong}: {how}")

    def state_dict(self) -> dict[str, Any]:
        """The wrapper's own state by the keys of ``STATE``, copied."""
        return {key: _state_of(getattr(self, self._attribute(key))) for key in self.STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a state from ``state_dict``, of any array kind; another is a ``ValueError`` and changes nothing."""
        self._check_state(state)
        for key in self.STATE:
            own = getattr(self, self._attribute(key))
            loaded = _in_place_of(own, state[key], load=True)
            if loaded is not own:
                setattr(self, self._attribute(key), loaded)

    def _attribute(self, key: str) -> str:
        return key if hasattr(type(self), key) or key in vars(self) else f"_{key}"

    def _check_state(self, state: dict[str, Any]) -> None:
        name = type(self).__name__
        if state and not self.STATE:
            raise ValueError(f"{name} has no state, got {list(state)}")
        if missing := [key for key in self.STATE if key not in state]:
            raise ValueError(f"{name} needs a state with {missing[0]!r}, got one of {list(state)}")
        for key, shape in self.STATE.items():
            given, expected = state[key], [getattr(self, str(size), size) for size in shape or ()]
            sizes = np.shape(given) if hasattr(given, "dtype") else ()
            fits = len(sizes) == len(expected) and all(
                b in (None, a) for a, b in zip(sizes, expected, strict=True)
            )
            if shape is not None and given is not None and not fits:
                wrong = f"got {tuple(sizes)} of a {type(given).__name__}: load one of as many environments and costs"
                raise ValueError(
                    f"{name} needs a state whose {key!r} has shape {tuple(expected)}, {wrong}"
                )
            try:
                _in_place_of(getattr(self, self._attribute(key)), given, load=False)
            except (KeyError, ValueError) as error:
                reason = f"the state has no {error}" if isinstance(error, KeyError) else str(error)
                raise ValueError(f"{name} needs a state like its own: {reason}") from error

    def save(self) -> dict[str, Any]:
        """The stack's ``obs_normalizer``, ``reward_normalizer`` and ``cost_normalizer``, to be pickled or given to a
        wrapper as ``norm``. Of two of one kind the outer one counts."""
        inside_out = reversed([layer for layer in layers(self) if hasattr(type(layer), "saved_as")])
        return {layer.saved_as: layer.normalizer for layer in inside_out}

    def get_state(self) -> dict[str, Any]:
        """The state of this wrapper and of everything below it; a ``TypeError`` if a layer below has none to give."""
        return {
            "wrapper": type(self).__name__,
            "own": self.state_dict(),
            "env": state_below(self.env),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from ``get_state`` of the same stack; another is a ``ValueError`` and changes nothing."""
        self._check_stack(state)
        self.env.set_state(state["env"])
        self.load_state_dict(state["own"])

    def _check_stack(self, state: dict[str, Any]) -> None:
        if state.get("wrapper") != type(self).__name__:
            raise ValueError(
                f"{type(self).__name__}.set_state got the state of {state.get('wrapper')!r}"
            )
        self._check_state(state["own"])
        if isinstance(self.env, StatefulWrapper):
            self.env._check_stack(state["env"])


def in_order(env: Any, owner: str) -> Any:
    """What ``owner`` is given, with a door at the bottom if it needs one; a ValueError above what must be outermost."""
    if hasattr(env, "unwrapped"):
        for layer in layers(env):
            if getattr(type(layer), "outermost", False):
                top = type(layer).__name__
                wrong = f"got those of {top} below it: leave {top} out, or put {top} outermost"
                raise ValueError(f"{owner} needs the five values of Gymnasium's step, {wrong}")
        if any(isinstance(layer, (StatefulWrapper, ForeignEnv)) for layer in layers(env)):
            return env
    return put_in_order(env)


def not_reset(wrapper: Env) -> RuntimeError:
    return RuntimeError(f"{type(wrapper).__name__} has no episodes to step yet: call reset() first")


_LIKE: dict[type, Any] = {
    bool: bool,
    int: (int, np.integer),
    deque: (list, deque),
}  # what may take a type's place


def _state_of(value: Any) -> Any:
    if hasattr(value, "check_state"):
        return value.state_dict()
    if isinstance(value, dict):
        return {key: _state_of(part) for key, part in value.items()}
    return list(value) if isinstance(value, deque) else arrays.map_arrays(arrays.copied, value)


def _in_place_of(own: Any, given: Any, *, load: bool) -> Any:
    """What takes the place of ``own`` when a state is loaded; dicts and what has a state stay, and only ``load``
    changes them. What the state lacks is a ``KeyError``, what does not fit a ``ValueError``."""
    if hasattr(own, "check_state"):
        (own.load_state_dict if load else own.check_state)(given)
        return own
    if isinstance(own, dict):
        parts = {key: _in_place_of(part, given[key], load=load) for key, part in own.items()}
        if load:
            own.update(parts)
        return own
    if not isinstance(given, _LIKE.get(type(own), object)):
        raise ValueError(f"expected a {type(own).__name__} like {own!r}, got {given!r}")
    return (
        deque(given, own.maxlen)
        if isinstance(own, deque)
        else arrays.map_arrays(arrays.copied, given)
    )
