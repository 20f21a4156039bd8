"""Train with OmniSafe 0.5: every registered id is an environment of OmniSafe, with costs and in batches; see
docs/coming-from/omnisafe.md. Import this module before anything imports ``omnisafe``, which cannot be imported without
Safety-Gymnasium otherwise."""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs.wrappers.from_cmdp import FINAL_NAMES
from legged_envs.wrappers.plumbing.adapter import (
    AdapterEnv,
    accept_env,
    checked_reset,
    find_layer,
    is_of_this_package,
)
from legged_envs.wrappers.plumbing.arrays import Info
from legged_envs.wrappers.plumbing.base import Options
from legged_envs.wrappers.plumbing.layers import Env, cost_attribute, name_of
from legged_envs.wrappers.time_limit import TimeLimit

INSTALL = """OmniSafe cannot be imported ({error}). Its own requirements ask for versions of 2023, so it is installed by
`make omnisafe`, or by
    pip install --no-deps omnisafe==0.5.0
    pip install pyyaml rich typer tensorboard wandb seaborn pandas matplotlib gdown moviepy"""


class _NoSafetyGymnasium(ModuleType):
    """Stands for ``safety_gymnasium`` while OmniSafe is imported: only OmniSafe's own environments use that one."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"safety_gymnasium.{name}: Safety-Gymnasium cannot be imported, so its ids cannot be made"
        )


@contextmanager
def _safety_gymnasium() -> Iterator[None]:
    """Satisfies ``import safety_gymnasium`` where that fails. Other libraries still find it missing afterwards."""
    name = "safety_gymnasium"
    with suppress(
        Exception
    ):  # it is missing, or 1.0.0, which present Gymnasium and Python break in several ways
        __import__(name)
    if missing := name not in sys.modules:
        _forget(name)
        sys.modules[name] = _NoSafetyGymnasium(name)
    try:
        yield
    finally:
        if missing:
            del sys.modules[name]


def _forget(package: str) -> None:
    """Remove what an import that failed half-way has left."""
    if package not in sys.modules:
        for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
            del sys.modules[name]


_forget("omnisafe")
with _safety_gymnasium():
    try:
        from omnisafe.envs.core import CMDP, env_register, env_unregister, make, support_envs
    except ImportError as error:
        raise ImportError(INSTALL.format(error=error)) from error

INFO_NAMES = {
    "costs": "costs",
    **FINAL_NAMES,
}  # what OmniSafe gets of ``info``, and what it calls it


class LeggedCMDP(AdapterEnv, CMDP):
    """A vector environment as OmniSafe's ``CMDP``. OmniSafe makes it, from an id that :func:`register` knows.

    It resets by itself in the same step and has its own time limit. Tensors are float32 (flags bool) on ``device``,
    where the environment need not live, belong to the caller, and have no batch dimension with ``num_envs=1``. ``info``
    holds ``costs`` and, on steps that end episodes, ``final_observation`` and ``_final_observation``. An episode that
    is terminated on its very last step is not truncated as well: OmniSafe's off-policy algorithms would bootstrap from
    it as from a time-out. Its log gets means over the episodes that ended: ``Cost/…`` per step, as limits are,
    ``Reward/…`` per second and ``Termination/…``, a fraction.

    ``env_cfgs`` are keywords of ``gymnasium.make_vec`` and OmniSafe's camera: ``camera_name`` None or ``"track"``,
    ``camera_id`` None, and ``width`` and ``height``, which change nothing; only PPOLag passes them on. Another camera,
    an environment not in mode SAME_STEP or with a ``VectorCMDP``, and spaces other than Box are a ValueError."""

    need_time_limit_wrapper = False
    need_auto_reset_wrapper = False
    makers: ClassVar[dict[str, Callable[..., Env]]] = {}  # what makes the environment of each id
    _support_envs = makers  # the ids, for OmniSafe

    def __init__(
        self, env_id: str, num_envs: int = 1, device: torch.device | str = "cpu", **env_cfgs: Any
    ):
        super().__init__(env_id)
        camera = {
            name: env_cfgs.pop(name, None)
            for name in ("camera_name", "camera_id", "width", "height")
        }
        if camera["camera_id"] is not None or camera["camera_name"] not in (None, "track"):
            raise ValueError(f"the camera is camera_name='track', got {camera}")
        env_cfgs.setdefault("render_mode", None)
        self.env = accept_env(
            self.makers[env_id](num_envs=num_envs, **env_cfgs), "OmniSafe", "torch"
        )
        self._num_envs, self._metadata = num_envs, self.env.metadata
        self._device, self._env_device = torch.device(device), torch.device("cpu")
        self._observation_space, self._action_space = (
            self.env.single_observation_space,
            self.env.single_action_space,
        )
        for kind, space in (
            ("observations", self._observation_space),
            ("actions", self._action_space),
        ):
            if not isinstance(space, gym.spaces.Box):
                raise ValueError(f"OmniSafe needs {kind} in a Box, {env_id!r} has {space}")
        self._seeded = False
        self._log: dict[str, Any] | None = None
        self.env_spec_log: dict[
            str, float
        ] = {}  # what spec_log adds to OmniSafe's log: nothing without managers
        for kind in ("Cost", "Reward", "Termination"):
            manager = getattr(self.env.unwrapped, f"{kind.lower()}s", None)
            self.env_spec_log |= {f"{kind}/{name}": 0.0 for name in getattr(manager, "names", ())}
        self.cost_names: tuple[str, ...] = tuple(cost_attribute(self.env, "cost_names") or ())
        self.cost_limits: tuple[float, ...] = tuple(cost_attribute(self.env, "cost_limits") or ())
        """Names of the columns of ``info["costs"]``, and what each may be on average per step."""

    @property
    def max_episode_steps(self) -> int | None:
        """Control steps of a full episode; None without a ``TimeLimit``."""
        limit = find_layer(self.env, TimeLimit)
        return None if limit is None else limit.time_limit

    def set_seed(self, seed: int) -> None:
        """Start new episodes with the random numbers of ``seed``."""
        self.reset(seed=seed)

    def reset(self, seed: int | None = None, options: Options = None) -> tuple[Tensor, Info]:
        """Start new episodes; the first ones, where OmniSafe gives no seed, with one from torch's generator. Returns
        observations (num_envs, size) and ``info``."""
        if seed is None and not self._seeded:
            seed = int(torch.randint(2**31, ()))
        self._seeded = True
        observation, _ = checked_reset(self.env, "OmniSafe", "torch", seed, options)
        self._env_device = observation.device
        return self._given(observation), {}

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Info]:
        """Advance by a step with ``action`` (num_envs, A), or (A,) for all; a ValueError if there is no cost."""
        action = torch.as_tensor(action).detach().expand(self._num_envs, -1).to(self._env_device)
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info.get("cost") is None:
            raise ValueError(
                f"OmniSafe needs a cost on every step, but {name_of(self.env)} reports no info['cost']"
            )
        self._log = info.get("log")
        values = observation, reward, info["cost"], terminated, truncated & ~terminated
        observation, reward, cost, terminated, truncated = map(self._given, values)
        infos = {
            name: self._given(info[key])
            for key, name in INFO_NAMES.items()
            if info.get(key) is not None
        }
        return observation, reward, cost, terminated, truncated, infos

    def _given(self, value: Tensor) -> Tensor:
        """Numbers as a copy: OmniSafe writes into observations and keeps them until after the next step."""
        is_mask = value.dtype == torch.bool
        value = (
            value.to(self._device) if is_mask else value.to(self._device, torch.float32, copy=True)
        )
        return value[0] if self._num_envs == 1 else value

    def spec_log(self, logger: Any) -> None:
        """Add the means over the episodes that the last step ended; OmniSafe calls it once for each of them."""
        if self._log is None:
            return
        episodes = self._log["episodes"]
        values = {key: self._log[key[0].lower() + key[1:]] for key in self.env_spec_log}
        logger.store(
            {
                key: values[key] / episodes if key.startswith("Termination/") else values[key]
                for key in values
            }
        )

    def render(self) -> Any:
        """A picture of the first environment. Shape: (height, width, 3), uint8."""
        return self.env.render()[0]


def register(env_id: str, make: Callable[..., Env]) -> str:
    """Let OmniSafe know an environment under any name, with settings or wrappers of its own; returns the id. ``make``
    gets ``num_envs`` and ``render_mode`` (and ``env_cfgs`` of PPOLag) as keywords, and returns a vector environment of
    torch tensors that resets in the same step and reports ``info["cost"]``, such as
    ``partial(gym.make_vec, "Legged/Go2-Flat-v0", array="torch", max_episode_steps=200)``. An id that was registered
    here before is replaced; one of another of OmniSafe's environments is a ``ValueError``, a ``make`` that is no
    function a ``TypeError``."""
    if not callable(make):
        raise TypeError(f"make must be a function that makes a vector environment, got {make!r}")
    if env_id in support_envs() and env_id not in LeggedCMDP.makers:
        raise ValueError(
            f"{env_id!r} is an id of another environment of OmniSafe: choose another name"
        )
    LeggedCMDP.makers[env_id] = make
    return env_id


def episode_cost_limit(env_id: str, **env_cfgs: Any) -> float:
    """Σ of the limits of all costs × steps of a full episode; a ``ValueError`` without costs or a time limit. This
    package's limits are averages per step of each cost; OmniSafe's ``cost_limit`` is one of their sum over an episode.
    An episode that ends early costs less: compare with the mean length in the log."""
    with closing(make(env_id, **env_cfgs)) as env:
        if not env.cost_limits or env.max_episode_steps is None:
            raise ValueError(
                f"{env_id!r} needs cost_limits and a TimeLimit to derive a limit for an episode"
            )
        return float(sum(env.cost_limits) * env.max_episode_steps)


try:
    env_register(LeggedCMDP)
except ValueError:  # it knows the class of an earlier import
    env_unregister(LeggedCMDP)
    env_register(LeggedCMDP)
for _id in filter(lambda name: is_of_this_package(gym.registry[name]), gym.registry):
    register(_id, partial(gym.make_vec, _id, array="torch"))
