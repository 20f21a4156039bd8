"""Events: what happens to the robots besides the actions of the policy."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch

from legged_envs.checks import check_choice, check_range
from legged_envs.configuration import Configuration
from legged_envs.managers.manager import Manager
from legged_envs.managers.term import check_function
from legged_envs.mdp.context import Env
from legged_envs.mdp.timer import Timer

Mode = Literal["startup", "reset", "interval"]
Purpose = Literal["randomize", "place", "disturb"]

DEFAULT_PURPOSES: dict[Mode, Purpose] = {
    "startup": "randomize",
    "reset": "place",
    "interval": "disturb",
}
"""Default of :attr:`EventTermCfg.purpose` for each mode.

The purpose decides when an event is left out: while a policy is watched or evaluated.
"""


@dataclass
class EventTermCfg(Configuration):
    """Something that happens to the robots in addition to the actions of the policy."""

    func: Callable[..., None]
    """``func(env, env_ids, random, **params)``.

    ``random`` is the random stream of this term, a :class:`~legged_envs.rng.Stream`.
    """
    mode: Mode
    """When the event happens.

    ``startup``: whenever an environment is seeded. ``reset``: at each reset. ``interval``: at
    random times.
    """
    interval_s: tuple[float, float] | None = None
    """Range of the time between two events of mode ``interval``, s."""
    params: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of ``func``."""
    purpose: Purpose | None = None
    """Purpose of the event. None: as in :data:`DEFAULT_PURPOSES`.

    ``randomize``: vary the robot; left out when a policy is watched. ``place``: put the robot
    where an episode starts. ``disturb``: make the task harder; left out when a policy is watched
    or evaluated.
    """

    def __post_init__(self) -> None:
        if self.purpose is None:
            self.purpose = DEFAULT_PURPOSES.get(self.mode)  # an unknown mode is refused later


class EventManager(Manager):
    """Applies event terms, each with its own random stream.

    Args:
        env: The environment that the terms see.
        cfg: Name of each term mapped to its configuration.

    Raises:
        ValueError: If a field of a term is not valid; the error names the term.
        TypeError: If the function of a term cannot be called with its parameters.
    """

    title = "Events"
    COLUMNS: ClassVar[dict[str, str]] = {
        "mode": "mode",
        "interval [s]": "interval_s",
        "parameters": "params",
    }
    STATE = ("_timers",)

    def __init__(self, env: Env, cfg: dict[str, EventTermCfg]):
        super().__init__(env, cfg)
        # A stream for each term: adding a term leaves the draws of all others as they are.
        self._streams = {name: env.random.stream(f"event/{name}") for name in cfg}
        self._timers: dict[str, Timer] = {}
        for name, term in cfg.items():
            _check_term(f"event term {name!r}", term)
            if term.mode == "interval":
                self._timers[name] = Timer(env.num_envs, env.step_dt, env.device)

    def apply(self, mode: Literal["startup", "reset"], env_ids: torch.Tensor) -> None:
        """Apply the terms of a mode to the environments ``env_ids``, shape (n,)."""
        for name, term in self.cfg.items():
            if term.mode == mode:
                self.call(name, env_ids)

    def reset(self, env_ids: torch.Tensor) -> None:
        # Timers start at a reset too, so that an episode does not start in the middle of a wait.
        self.apply("reset", env_ids)
        for name in self._timers:
            self._restart_timer(name, env_ids)

    def advance(self) -> list[torch.Tensor]:
        """Advance by one control step, and apply the interval terms that are due.

        Returns:
            For each term that was applied, the environments that it was applied to, (n,).
        """
        applied = []
        for name, timer in self._timers.items():
            env_ids = timer.advance()
            if env_ids is not None:
                # The event draws before the timer does: both use the stream of the term.
                self.call(name, env_ids)
                self._restart_timer(name, env_ids)
                applied.append(env_ids)
        return applied

    def call(self, name: str, env_ids: torch.Tensor) -> None:
        """Apply one term to the environments ``env_ids``, shape (n,), whatever its mode is."""
        term = self.cfg[name]
        term.func(self._env, env_ids, self._streams[name], **term.params)

    def _restart_timer(self, name: str, env_ids: torch.Tensor) -> None:
        low, high = self.cfg[name].interval_s
        interval_s = self._streams[name].uniform(low, high, 1, env_ids).squeeze(1)
        self._timers[name].start(env_ids, interval_s)


def _check_term(where: str, term: EventTermCfg) -> None:
    check_choice(f"{where}: mode", term.mode, DEFAULT_PURPOSES)
    check_choice(f"{where}: purpose", term.purpose, DEFAULT_PURPOSES.values())
    if (term.mode == "interval") != (term.interval_s is not None):
        raise ValueError(
            f"{where}: interval_s belongs to mode 'interval' and to no other, "
            f"got interval_s={term.interval_s!r} with mode {term.mode!r}"
        )
    if term.interval_s is not None:
        check_range(f"{where}: interval_s", term.interval_s, above=0.0)
    check_function(where, term.func, ("env", "env_ids", "random"), term.params)
    span = term.params.get("range")
    if isinstance(span, (tuple, list)):
        check_range(f"{where}: range", span)
