"""Observations: named groups of terms, each with its noise, clip and scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.managers.recorded import Place, Recorded
from legged_envs.managers.term import Term, table
from legged_envs.rng import RandomStreams

OBSERVATION_LIMIT = 100.0
"""Observations are clipped to ±this, so that their space is finite (legged_gym ``clip_observations``)."""


@dataclass
class ObservationTermCfg:
    """An observation term. Order of effects, as Isaac Lab's: value → noise → clip → scale."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs, size) float32."""
    noise: float = 0.0
    """Half-width of uniform noise, in the term's own unit."""
    clip: tuple[float, float] | None = None
    scale: float | tuple[float, ...] = 1.0
    mirror: str | None = None
    """How the term changes in the left-right mirrored world: see :mod:`legged_envs.mdp.symmetry`."""
    params: dict[str, Any] = field(default_factory=dict)


@dataclass
class ObservationGroupCfg:
    """Terms concatenated into one vector."""

    terms: dict[str, ObservationTermCfg]
    noisy: bool = False
    """Whether the terms' noise is added."""


class _Group:
    READS: tuple[str, ...] = ()
    WRITES = ("value",)

    def __init__(self, env: Any, name: str, cfg: ObservationGroupCfg, random: RandomStreams):
        self.cfg = cfg
        self.terms = [Term(f"observation group {name!r}:", n, t.func, t.params) for n, t in cfg.terms.items()]
        values = [term.check(env, shape=None, dtype=torch.float32) for term in self.terms]
        self.sizes = [value.shape[1] for value in values]
        self.size = sum(self.sizes)
        self._env = env
        self.recordable = all(term.recordable for term in self.terms)
        self.value: torch.Tensor
        """The observation. Shape: (num_envs, size)."""
        self._random = random.stream(f"observation_noise/{name}")

        def row(values: list[Any]) -> torch.Tensor:
            parts = []
            for term, value, size in zip(self.terms, values, self.sizes, strict=True):
                part = torch.as_tensor(value, dtype=torch.float32)
                if part.ndim > 1 or part.numel() not in (1, size):
                    raise ValueError(f"observation term {term.name!r}: scale needs 1 or {size} values, got {value}")
                parts.append(part.expand(size))
            return torch.cat(parts).to(env.device)

        cfgs = list(cfg.terms.values())
        scale = row([c.scale for c in cfgs])
        noise = row([c.noise for c in cfgs])
        self._scale = scale if (scale != 1.0).any() else None
        self._low = self._high = None
        if any(c.clip is not None for c in cfgs):
            self._low = row([c.clip[0] if c.clip else -float("inf") for c in cfgs])
            self._high = row([c.clip[1] if c.clip else float("inf") for c in cfgs])
        noisy = noise.nonzero().squeeze(1)
        self._noise = None
        if cfg.noisy and len(noisy):
            # Random numbers are drawn for the span of columns between the first and the last noisy one.
            self._span = slice(int(noisy[0]), int(noisy[-1]) + 1)
            self._noise = noise[self._span] * 2.0**-23
            self.noise_draw = torch.zeros(env.num_envs, len(self._noise), dtype=torch.int32, device=env.device)
            """Random integers for the noise of the next ``compute``. Shape: (num_envs, size of the span)."""
            self.READS = ("noise_draw",)
        self.compute()

    def draw(self) -> None:
        """Draw the noise of the next ``compute``."""
        if self._noise is not None:
            self.noise_draw = self._random.signed_24_bit(len(self._noise))

    def compute(self) -> None:
        """Set ``value``; pure, so that it can be recorded."""
        self.value = self._finish(self._clean(), self.noise_draw if self._noise is not None else None)

    def compute_some(self, env_ids: torch.Tensor) -> torch.Tensor:
        """Draw noise for some environments and return their observation. Shape: (n, size)."""
        draw = None if self._noise is None else self._random.signed_24_bit(len(self._noise), env_ids)
        return self._finish(self._clean()[env_ids], draw)

    def _clean(self) -> torch.Tensor:
        return torch.cat([term(self._env) for term in self.terms], dim=1)

    def _finish(self, value: torch.Tensor, draw: torch.Tensor | None) -> torch.Tensor:
        """Noise, clip and scale, in place."""
        if draw is not None and self._noise is not None:
            value[:, self._span].add_(draw * self._noise)
        if self._low is not None:
            value.clamp_(self._low, self._high)
        if self._scale is not None:
            value.mul_(self._scale)
        return value.clamp_(-OBSERVATION_LIMIT, OBSERVATION_LIMIT)


class ObservationManager:
    """Computes the observation groups."""

    def __init__(self, env: Any, cfg: dict[str, ObservationGroupCfg], random: RandomStreams):
        if "policy" not in cfg:
            raise ValueError(f"observations need a group 'policy', got {list(cfg)}")
        self._env = env
        self.cfg = cfg
        self._groups = {name: _Group(env, name, group, random) for name, group in cfg.items()}

    @property
    def group_sizes(self) -> dict[str, int]:
        """Length of each group's vector."""
        return {name: group.size for name, group in self._groups.items()}

    def term_sizes(self, group: str) -> dict[str, int]:
        """Length of each term of a group, in order."""
        return dict(zip(self.cfg[group].terms, self._groups[group].sizes, strict=True))

    def record(self, names: tuple[str, ...], state: Sequence[Place], compile: bool) -> None:
        """Prepare ``observe`` for the groups ``names``. See :class:`Recorded` for the other arguments."""
        self._observed = {name: self._groups[name] for name in names}
        self._recorded = Recorded(list(self._observed.values()), state, compile)

    def observe(self) -> dict[str, torch.Tensor]:
        """New tensors for the groups that were recorded. Shape of each: (num_envs, size)."""
        for group in self._observed.values():
            group.draw()
        self._recorded()
        return {name: group.value for name, group in self._observed.items()}

    def compute(self, names: tuple[str, ...], env_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """New tensors for the groups ``names`` of some environments. Shape of each: (n, size)."""
        return {name: self._groups[name].compute_some(env_ids) for name in names}

    def __str__(self) -> str:
        parts = []
        for name, group in self._groups.items():
            noise = "noisy" if group.cfg.noisy else "no noise"
            rows = [
                (term_name, size, term.noise, term.scale, term.clip or "")
                for (term_name, term), size in zip(group.cfg.terms.items(), group.sizes, strict=True)
            ]
            title = f"Observations {name!r} ({group.size}, {noise})"
            parts.append(table(title, ("term", "size", "noise ±", "scale", "clip"), rows))
        return "\n\n".join(parts)
