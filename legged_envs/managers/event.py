"""Events: what happens to the robots besides the policy, at seeding, at resets and at random intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from legged_envs.managers.manager import Manager, format_params, table
from legged_envs.mdp.timer import Timer

MODES = {"startup": "randomise", "reset": "place", "interval": "disturb"}
"""When an event happens → what it is for unless its configuration says."""


@dataclass
class EventTermCfg:
    """An event term."""

    func: Callable[..., None]
    """``func(env, env_ids, random, **params)``; ``random`` is the term's own :class:`~legged_envs.rng.Stream`."""
    mode: Literal["startup", "reset", "interval"]
    """``startup``: whenever an environment is seeded. ``reset``: at each reset. ``interval``: at random times."""
    interval_s: tuple[float, float] | None = None
    """Range of the time between two events of mode ``interval``, s."""
    params: dict[str, Any] = field(default_factory=dict)
    purpose: Literal["randomise", "place", "disturb"] | None = None
    """What it is for. ``randomise``: to vary the robot; left out when a policy is watched. ``place``: to put the robot
    where an episode starts. ``disturb``: to make it harder; left out when a policy is watched or evaluated. None stands
    for what its mode is mostly for: startup randomises, reset places, interval disturbs."""

    def __post_init__(self) -> None:
        if self.purpose is None and self.mode in MODES:
            self.purpose = MODES[self.mode]  # type: ignore[assignment]


class EventManager(Manager):
    """Applies event terms, each with a random stream of its own."""

    def __init__(self, env: Any, cfg: dict[str, EventTermCfg]):
        self._env = env
        self.cfg = cfg
        self.names = tuple(cfg)
        for name, term in cfg.items():
            if term.mode not in MODES:
                raise ValueError(f"event term {name!r}: mode must be one of {tuple(MODES)}, got {term.mode!r}")
            if term.purpose not in MODES.values():
                raise ValueError(
                    f"event term {name!r}: purpose must be one of {tuple(MODES.values())}, got {term.purpose!r}"
                )
            if (term.mode == "interval") != (term.interval_s is not None):
                raise ValueError(f"event term {name!r}: interval_s goes with mode 'interval', got mode {term.mode!r}")
            if term.interval_s is not None and not 0.0 < term.interval_s[0] <= term.interval_s[1]:
                raise ValueError(f"event term {name!r}: interval_s must be positive and rise, got {term.interval_s}")
            span = term.params.get("range")
            if isinstance(span, (tuple, list)) and not (len(span) == 2 and span[0] <= span[1]):
                raise ValueError(f"event term {name!r}: range must be (low, high), got {span}")
        self._streams = {name: env.random.stream(f"event/{name}") for name in cfg}
        self._timers = {
            name: Timer(env.num_envs, env.step_dt, env.device) for name, term in cfg.items() if term.mode == "interval"
        }

    def apply(self, mode: Literal["startup", "reset"], env_ids: torch.Tensor) -> None:
        """Apply every term of ``mode`` to ``env_ids``."""
        for name, term in self.cfg.items():
            if term.mode == mode:
                term.func(self._env, env_ids, self._streams[name], **term.params)

    def reset(self, env_ids: torch.Tensor) -> None:
        """Apply the reset terms and start the interval timers of ``env_ids`` afresh."""
        self.apply("reset", env_ids)
        for name in self._timers:
            self._restart(name, env_ids)

    def advance(self) -> list[torch.Tensor]:
        """Let one control step pass; apply the interval terms that are due. Returns to which environments."""
        applied = []
        for name, timer in self._timers.items():
            env_ids = timer.advance()
            if env_ids is not None:
                self.cfg[name].func(self._env, env_ids, self._streams[name], **self.cfg[name].params)
                self._restart(name, env_ids)
                applied.append(env_ids)
        return applied

    def _restart(self, name: str, env_ids: torch.Tensor) -> None:
        interval = self.cfg[name].interval_s
        assert interval is not None
        self._timers[name].start(env_ids, self._streams[name].uniform(*interval, 1, env_ids).squeeze(1))

    def state_dict(self) -> dict[str, Any]:
        return {name: timer.state_dict() for name, timer in self._timers.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, timer in self._timers.items():
            timer.load_state_dict(state[name])

    def __str__(self) -> str:
        rows = [
            (name, t.mode, "" if t.interval_s is None else t.interval_s, format_params(t.params))
            for name, t in self.cfg.items()
        ]
        return table("Events", ("term", "mode", "interval [s]", "parameters"), rows)
