from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch

from legged_envs.checks import check_choice, check_range
from legged_envs.configuration import Configuration
from legged_envs.managers.manager import Manager, check_function
from legged_envs.mdp.timer import Timer

MODES = {"startup": "randomise", "reset": "place", "interval": "disturb"}
"""When an event happens → what it is for unless its configuration says."""


@dataclass
class EventTermCfg(Configuration):
    """What happens to the robots besides the policy."""

    func: Callable[..., None]
    """``func(env, env_ids, random, **params)``; ``random`` is the term's own :class:`~legged_envs.rng.Stream`."""
    mode: Literal["startup", "reset", "interval"]
    """``startup``: whenever an environment is seeded. ``reset``: at each reset. ``interval``: at random times."""
    interval_s: tuple[float, float] | None = None
    """Range of the time between two events of mode ``interval``, s."""
    params: dict[str, Any] = field(default_factory=dict)
    purpose: Literal["randomise", "place", "disturb"] | None = None
    """``randomise``: to vary the robot; left out when a policy is watched. ``place``: to put the robot where an episode
    starts. ``disturb``: to make it harder; left out when a policy is watched or evaluated. None: as :data:`MODES`."""

    def __post_init__(self) -> None:
        if self.purpose is None:
            self.purpose = MODES.get(self.mode)  # type: ignore[assignment]


class EventManager(Manager):
    """Applies event terms, each with a random stream of its own; ValueError, naming the term, if a field makes no
    sense."""

    title = "Events"
    COLUMNS: ClassVar[dict[str, str]] = {
        "mode": "mode",
        "interval [s]": "interval_s",
        "parameters": "params",
    }
    STATE = ("_timers",)

    def __init__(self, env: Any, cfg: dict[str, EventTermCfg]):
        super().__init__(env, cfg)
        self._streams = {name: env.random.stream(f"event/{name}") for name in cfg}
        self._timers: dict[str, Timer] = {}
        for name, term in cfg.items():
            where = f"event term {name!r}:"
            check_choice(f"{where} mode", term.mode, MODES)
            check_choice(f"{where} purpose", term.purpose, MODES.values())
            if (term.mode == "interval") != (term.interval_s is not None):
                raise ValueError(
                    f"{where} interval_s goes with mode 'interval', got mode {term.mode!r}"
                )
            if term.interval_s is not None:
                check_range(f"{where} interval_s", term.interval_s, above=0.0)
                self._timers[name] = Timer(env.num_envs, env.step_dt, env.device)
            check_function(where[:-1], term.func, ("env", "env_ids", "random"), term.params)
            if isinstance(span := term.params.get("range"), (tuple, list)):
                check_range(f"{where} range", span)

    def apply(self, mode: Literal["startup", "reset"], env_ids: torch.Tensor) -> None:
        """Apply the terms of a ``mode`` to ``env_ids`` (n,)."""
        for name, term in self.cfg.items():
            if term.mode == mode:
                term.func(self._env, env_ids, self._streams[name], **term.params)

    def reset(self, env_ids: torch.Tensor) -> None:
        self.apply("reset", env_ids)
        for name in self._timers:
            self._restart(name, env_ids)

    def advance(self) -> list[torch.Tensor]:
        """Let one control step pass; apply the interval terms that are due. Returns to which environments, (n,)
        each."""
        applied = []
        for name, timer in self._timers.items():
            if (env_ids := timer.advance()) is not None:
                self.cfg[name].func(
                    self._env, env_ids, self._streams[name], **self.cfg[name].params
                )
                self._restart(name, env_ids)
                applied.append(env_ids)
        return applied

    def _restart(self, name: str, env_ids: torch.Tensor) -> None:
        low, high = self.cfg[name].interval_s
        self._timers[name].start(
            env_ids, self._streams[name].uniform(low, high, 1, env_ids).squeeze(1)
        )
