"""Observations: named groups of terms, each with its noise, clip and scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.checks import whole_number
from legged_envs.managers.manager import Manager, Term, TermColumns, table
from legged_envs.managers.recorded import Piece
from legged_envs.state import Stateful


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
    history: int = 1
    """How many control steps it shows: the vectors of the last ``history`` steps one after another, the oldest first.
    When an episode begins, its first vector stands for those before it (Isaac Lab ``history_length``)."""


class ObservationGroup(Stateful):
    """One group of observation terms.

    Raises:
        ValueError: If a field of the configuration makes no sense, naming it.
    """

    def __init__(self, env: Any, name: str, cfg: ObservationGroupCfg, limit: float):
        kind = f"observation group {name!r}:"
        whole_number(f"{kind} history", cfg.history)
        self.name, self.cfg = name, cfg
        terms = [Term(kind, term_name, term.func, term.params) for term_name, term in cfg.terms.items()]
        self.columns = TermColumns(env, terms, torch.float32, scalar=False)
        self._limit = limit
        self._random = env.random.stream(f"observation_noise/{name}")
        width = sum(self.columns.sizes)
        self.size = width * cfg.history
        """Length of the vector."""
        cfgs = list(cfg.terms.values())
        scale = self._row("scale", [c.scale for c in cfgs], env.device)
        noise = self._row("noise", [c.noise for c in cfgs], env.device)
        self._scale = scale if (scale != 1.0).any() else None
        self._low = self._high = None
        if any(c.clip is not None for c in cfgs):
            bounds = zip(*(c.clip or (-math.inf, math.inf) for c in cfgs), strict=True)
            self._low, self._high = (self._row("clip", list(values), env.device) for values in bounds)
        noisy = noise.nonzero().squeeze(1)
        self._noise = None
        if cfg.noisy and len(noisy):
            # Random numbers are drawn for the span of columns between the first and the last noisy one.
            self._span = slice(int(noisy[0]), int(noisy[-1]) + 1)
            self._noise = noise[self._span] * 2.0**-23
            self.noise_draw = torch.zeros(env.num_envs, len(self._noise), dtype=torch.int32, device=env.device)
            """Random integers for the noise of the next ``compute``. Shape: (num_envs, size of the span)."""
        if cfg.history > 1:
            self.STATE = ("past",)
            self.past = torch.zeros(env.num_envs, cfg.history, width, dtype=torch.float32, device=env.device)
            """The vectors of the last steps, the oldest first. Shape: (num_envs, history, width)."""
        self.value = torch.zeros(env.num_envs, self.size, dtype=torch.float32, device=env.device)
        """The observation. Shape: (num_envs, size)."""

    def _row(self, field: str, values: list[Any], device: torch.device) -> torch.Tensor:
        """Values of the terms, one or one for each column, as a row. Shape: (width,)."""
        parts = []
        for term, value, size in zip(self.columns.terms, values, self.columns.sizes, strict=True):
            part = torch.as_tensor(value, dtype=torch.float32)
            if part.ndim > 1 or part.numel() not in (1, size):
                raise ValueError(f"observation term {term.name!r}: {field} needs 1 or {size} values, got {value}")
            parts.append(part.expand(size))
        return torch.cat(parts).to(device)

    def pieces(self) -> list[Piece]:
        """How ``value`` is computed."""
        return self.columns.pieces(self.compute)

    def draw(self) -> None:
        """Draw the noise of the next ``compute``."""
        if self._noise is not None:
            self.noise_draw = self._random.signed_24_bit(len(self._noise))

    def compute(self) -> None:
        """Set ``value``, and remember it if the group shows the past; pure."""
        value = self._finish(self.columns.values(), self.noise_draw if self._noise is not None else None)
        if self.cfg.history > 1:
            self.past = torch.cat((self.past[:, 1:], value.unsqueeze(1)), dim=1)
            value = self.past.flatten(1)
        self.value = value

    def compute_rows(self, env_ids: torch.Tensor) -> torch.Tensor:
        """Draw noise for environments whose episode begins, and return their observation. Shape: (n, size)."""
        draw = None if self._noise is None else self._random.signed_24_bit(len(self._noise), env_ids)
        rows = self._finish(self.columns.evaluate()[env_ids], draw)
        if self.cfg.history > 1:
            past = rows.unsqueeze(1).expand(-1, self.cfg.history, -1)
            self.past = self.past.index_copy(0, env_ids, past)
            rows = past.flatten(1)
        return rows

    def _finish(self, value: torch.Tensor, draw: torch.Tensor | None) -> torch.Tensor:
        """Noise, clip and scale, in place."""
        if draw is not None and self._noise is not None:
            value[:, self._span].add_(draw * self._noise)
        if self._low is not None:
            value.clamp_(self._low, self._high)
        if self._scale is not None:
            value.mul_(self._scale)
        return value.clamp_(-self._limit, self._limit)

    def __str__(self) -> str:
        noise = "noisy" if self.cfg.noisy else "no noise"
        history = f", {self.cfg.history} steps" if self.cfg.history > 1 else ""
        terms = zip(self.cfg.terms.items(), self.columns.sizes, strict=True)
        rows = [(name, size, term.noise, term.scale, term.clip) for (name, term), size in terms]
        title = f"Observations {self.name!r} ({self.size}, {noise}{history})"
        return table(title, ("term", "size", "noise ±", "scale", "clip"), rows)


class ObservationManager(Manager):
    """Holds the observation groups of ``cfg``, ``"policy"`` among them, which are clipped to ±``limit``."""

    STATE = ("groups",)

    def __init__(self, env: Any, cfg: dict[str, ObservationGroupCfg], limit: float):
        if "policy" not in cfg:
            raise ValueError(f"observations need a group 'policy', got {list(cfg)}")
        super().__init__(env, cfg)
        self.groups = {name: ObservationGroup(env, name, group, limit) for name, group in cfg.items()}

    @property
    def group_sizes(self) -> dict[str, int]:
        """Length of each group's vector."""
        return {name: group.size for name, group in self.groups.items()}

    def term_sizes(self, group: str) -> dict[str, int]:
        """Length of each term of a group, in order, in the vector of one step."""
        return dict(zip(self.cfg[group].terms, self.groups[group].columns.sizes, strict=True))

    def owners(self) -> list[object]:
        groups = self.groups.values()
        return [*groups, *(group.columns for group in groups)]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.groups.values()))
