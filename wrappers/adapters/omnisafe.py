"""Train with OmniSafe 0.5: every registered id as an environment of OmniSafe.

See docs/coming-from/omnisafe.md. Import this module before anything imports ``omnisafe``: without
Safety-Gymnasium, OmniSafe can be imported only through this module.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

import gymnasium as gym
import torch
from torch import Tensor

from legged_envs.wrappers.cost_reduce import CostReduce
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
from legged_envs.wrappers.plumbing.layers import Env, Space, cost_attribute, name_of
from legged_envs.wrappers.time_limit import TimeLimit

INSTALL = """OmniSafe cannot be imported ({error}). Its requirements pin package versions from 2023.
Install it by `make omnisafe`, or by
    pip install --no-deps omnisafe==0.5.0
    pip install pyyaml rich typer tensorboard wandb seaborn pandas matplotlib gdown moviepy"""


class _NoSafetyGymnasium(ModuleType):
    """Stand-in for ``safety_gymnasium``, which only OmniSafe's own environments use."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"safety_gymnasium.{name}: Safety-Gymnasium cannot be imported, "
            "so its ids cannot be made"
        )


@contextmanager
def missing_safety_gymnasium() -> Iterator[None]:
    """Satisfy ``import safety_gymnasium`` where it fails, only inside the ``with`` block."""
    name = "safety_gymnasium"
    # It is missing, or it is 1.0.0, which present Gymnasium and Python break in several ways.
    with suppress(Exception):
        __import__(name)
    missing = name not in sys.modules
    if missing:
        _forget(name)
        sys.modules[name] = _NoSafetyGymnasium(name)
    try:
        yield
    finally:
        if missing:
            del sys.modules[name]


def _forget(package: str) -> None:
    """Remove the modules that an unfinished import has left behind."""
    if package in sys.modules:
        return
    leftovers = [name for name in sys.modules if name.startswith(f"{package}.")]
    for name in leftovers:
        del sys.modules[name]


_forget("omnisafe")
with missing_safety_gymnasium():
    try:
        from omnisafe.envs.core import CMDP, env_register, env_unregister, support_envs
        from omnisafe.envs.core import make as make  # exported by this module too
    except ImportError as error:
        raise ImportError(INSTALL.format(error=error)) from error

INFO_NAMES = {"costs": "costs", **FINAL_NAMES}
"""Keys of ``info`` that OmniSafe gets, mapped to OmniSafe's names of them."""

LOGGED_KINDS = {"Cost": "costs", "Reward": "rewards", "Termination": "terminations"}
"""First parts of names in OmniSafe's log, mapped to the managers that name the terms."""


class LeggedCMDP(AdapterEnv, CMDP):
    """A vector environment as OmniSafe's ``CMDP``.

    OmniSafe makes this environment from an id that :func:`register` was called with. The
    environment resets by itself in the same step and has its own time limit. Tensors are float32
    (flags bool) and belong to the caller. Tensors are on ``device``, which may differ from the
    environment's device. With ``num_envs=1`` tensors have no batch dimension.

    ``info`` holds ``costs`` and, on steps that end episodes, ``final_observation`` and
    ``_final_observation``. An episode that is terminated on its very last step is not truncated as
    well: OmniSafe's off-policy algorithms would bootstrap from it as from a time-out.

    OmniSafe's log gets means over the episodes that ended: ``Cost/…`` per step, as limits are,
    ``Reward/…`` per second and ``Termination/…``, a fraction.

    Args:
        env_id: A registered id.
        num_envs: Number of environments.
        device: Device of the tensors that OmniSafe gets.
        env_cfgs: Keywords of ``gymnasium.make_vec``, which among OmniSafe's algorithms only PPOLag
            passes on, and OmniSafe's camera. The camera is ``camera_name`` None or ``"track"`` and
            ``camera_id`` None; ``width`` and ``height`` change nothing.

    Raises:
        ValueError: If another camera is asked for, the environment is not in mode SAME_STEP or has
            a ``VectorCMDP``, or its spaces are not a Box.
    """

    need_time_limit_wrapper = False
    """False: the environment has a time limit."""
    need_auto_reset_wrapper = False
    """False: the environment resets by itself."""
    makers: ClassVar[dict[str, Callable[..., Env]]] = {}
    """Functions that make the environments, by id."""
    _support_envs = makers  # OmniSafe reads the ids from here

    def __init__(
        self, env_id: str, num_envs: int = 1, device: torch.device | str = "cpu", **env_cfgs: Any
    ):
        super().__init__(env_id)
        _take_camera(env_cfgs)
        env_cfgs.setdefault("render_mode", None)
        made = self.makers[env_id](num_envs=num_envs, **env_cfgs)
        self.env = accept_env(made, "OmniSafe", "torch")
        self._num_envs = num_envs
        self._metadata = self.env.metadata
        self._device = torch.device(device)
        self._env_device = torch.device("cpu")  # until the first reset
        self._observation_space = self.env.single_observation_space
        self._action_space = self.env.single_action_space
        _check_box("observations", self._observation_space, env_id)
        _check_box("actions", self._action_space, env_id)
        self._seeded = False
        self._log: dict[str, Any] | None = None

        self.env_spec_log: dict[str, float] = _logged_names(self.env)
        """Names that :meth:`spec_log` adds to OmniSafe's log; empty without managers."""
        self.cost_names: tuple[str, ...] = tuple(cost_attribute(self.env, "cost_names") or ())
        """Names of the columns of ``info["costs"]``."""
        self.cost_limits: tuple[float, ...] = tuple(cost_attribute(self.env, "cost_limits") or ())
        """Limit of each cost, an average per step."""

    @property
    def max_episode_steps(self) -> int | None:
        """Control steps of a full episode; None without a ``TimeLimit``."""
        limit = find_layer(self.env, TimeLimit)
        return None if limit is None else limit.time_limit

    def set_seed(self, seed: int) -> None:
        """Start new episodes with the random numbers of ``seed``."""
        self.reset(seed=seed)

    def reset(self, seed: int | None = None, options: Options = None) -> tuple[Tensor, Info]:
        """Start new episodes.

        Args:
            seed: Seed. None continues the present random streams; the first reset then draws a
                seed from torch's generator.
            options: Options of the environment's reset.

        Returns:
            Observations (num_envs, size), and an empty ``info``.
        """
        if seed is None and not self._seeded:
            seed = int(torch.randint(2**31, ()))
        self._seeded = True  # later resets continue the random streams
        observation, _ = checked_reset(self.env, "OmniSafe", "torch", seed, options)
        self._env_device = observation.device
        return self._handed_out(observation), {}

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Info]:
        """Advance by one step.

        Args:
            action: Shape: (num_envs, A), or (A,) for all environments.

        Returns:
            Observation, reward, cost, terminated, truncated and ``info``.

        Raises:
            ValueError: If the environment reports no cost.
        """
        # OmniSafe gives one environment's action without a batch dimension.
        action = torch.as_tensor(action).detach().expand(self._num_envs, -1).to(self._env_device)
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info.get("cost") is None:
            raise ValueError(
                "OmniSafe needs a cost on every step, "
                f"but {name_of(self.env)} reports no info['cost']"
            )
        self._log = info.get("log")
        infos: Info = {}
        for key, name in INFO_NAMES.items():
            if info.get(key) is not None:
                infos[name] = self._handed_out(info[key])
        return (
            self._handed_out(observation),
            self._handed_out(reward),
            self._handed_out(info["cost"]),
            self._handed_out(terminated),
            self._handed_out(truncated & ~terminated),
            infos,
        )

    def _handed_out(self, value: Tensor) -> Tensor:
        """Return a tensor on OmniSafe's device, float32 or bool, without a batch of one."""
        if value.dtype == torch.bool:
            value = value.to(self._device)
        else:
            # OmniSafe writes into observations, and keeps them until after the next step.
            value = value.to(self._device, torch.float32, copy=True)
        return value[0] if self._num_envs == 1 else value

    def spec_log(self, logger: Any) -> None:
        """Add the means over the episodes that the last step ended.

        OmniSafe calls this method once for each ended episode.

        Args:
            logger: OmniSafe's logger.
        """
        if self._log is None:
            return
        values: dict[str, float] = {}
        for name in self.env_spec_log:
            value = self._log[name[0].lower() + name[1:]]
            if name.startswith("Termination/"):  # the environment logs a number of episodes
                value = value / self._log["episodes"]
            values[name] = value
        logger.store(values)

    def render(self) -> Any:
        """Return a picture of the first environment, (height, width, 3) uint8."""
        return self.env.render()[0]


def _take_camera(env_cfgs: dict[str, Any]) -> None:
    """Remove OmniSafe's camera from the keywords of an environment, after a look at it."""
    names = ("camera_name", "camera_id", "width", "height")
    camera = {name: env_cfgs.pop(name, None) for name in names}
    if camera["camera_id"] is not None or camera["camera_name"] not in (None, "track"):
        raise ValueError(
            f"the camera must be camera_name='track' without a camera_id, got {camera}"
        )


def _check_box(content: str, space: Space, env_id: str) -> None:
    if not isinstance(space, gym.spaces.Box):
        raise ValueError(f"OmniSafe needs {content} in a Box, {env_id!r} has {space}")


def _logged_names(env: Env) -> dict[str, float]:
    """Return the names that an environment's managers log, as OmniSafe writes them, each with 0."""
    names: dict[str, float] = {}
    for kind, attribute in LOGGED_KINDS.items():
        manager = getattr(env.unwrapped, attribute, None)
        for term in getattr(manager, "names", ()):
            names[f"{kind}/{term}"] = 0.0
    return names


def register(env_id: str, make: Callable[..., Env]) -> str:
    """Make an environment with your own settings or wrappers known to OmniSafe.

    An id that was registered here before is replaced.

    Args:
        env_id: Any name.
        make: A function such as ``partial(gym.make_vec, "Legged/Go2-Flat-v0", array="torch",
            max_episode_steps=200)``. The function gets ``num_envs`` and ``render_mode`` (and
            ``env_cfgs`` of PPOLag) as keywords. The function returns a vector environment of torch
            tensors that resets in the same step and reports ``info["cost"]``.

    Returns:
        The id.

    Raises:
        TypeError: If ``make`` is not callable.
        ValueError: If another environment of OmniSafe has the id.
    """
    if not callable(make):
        raise TypeError(f"make must be a function that makes a vector environment, got {make!r}")
    if env_id in support_envs() and env_id not in LeggedCMDP.makers:
        raise ValueError(
            f"{env_id!r} is an id of another environment of OmniSafe: choose another name"
        )
    LeggedCMDP.makers[env_id] = make
    return env_id


def episode_cost_limit(env_id: str, **env_cfgs: Any) -> float:
    """Return OmniSafe's ``cost_limit`` of an environment.

    The result is the sum of the limits of all costs × the steps of a full episode. This package's
    limits are averages per step of each cost; OmniSafe's ``cost_limit`` is a limit on the sum of
    all costs over an episode. An episode that ends early costs less: compare with the mean length
    in the log.

    Args:
        env_id: A registered id.
        env_cfgs: Keywords of the environment.

    Raises:
        ValueError: If the environment has no costs or no time limit, or reduces its costs to their
            largest one.
    """
    with closing(make(env_id, **env_cfgs)) as env:
        if not env.cost_limits or env.max_episode_steps is None:
            raise ValueError(
                f"{env_id!r} needs cost_limits and a TimeLimit to derive a limit for an episode"
            )
        limits = env.cost_limits
        reduce = find_layer(env.env, CostReduce)
        if reduce is not None and reduce.how in ("max", "any"):
            raise ValueError(
                f"{env_id!r} has CostReduce({reduce.how!r}), which has no limit that follows from "
                "the limits of its costs: choose a cost_limit, or take CostReduce out"
            )
        if reduce is not None and reduce.how == "weighted":
            # Each cost counts in units of its limit.
            limits = (1.0,) * len(limits)
        return float(sum(limits) * env.max_episode_steps)


try:
    env_register(LeggedCMDP)
except ValueError:  # OmniSafe knows the class of an earlier import of this module
    env_unregister(LeggedCMDP)
    env_register(LeggedCMDP)
for _id, _spec in gym.registry.items():
    if is_of_this_package(_spec):
        register(_id, partial(gym.make_vec, _id, array="torch"))
