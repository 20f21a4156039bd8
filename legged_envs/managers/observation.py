import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.checks import check_number, whole_number
from legged_envs.configuration import Configuration
from legged_envs.managers.manager import Manager, TermColumns
from legged_envs.tables import Table


@dataclass
class ObservationTermCfg(Configuration):
    """An observation term. Order of effects: value → delay → noise, offset, dropout → clip → scale."""

    func: Callable[..., torch.Tensor]
    """``func(env, **params)`` → (num_envs, size) float32."""
    noise: float = 0.0
    """Half-width of uniform noise, in the term's own unit."""
    clip: tuple[float, float] | None = None
    scale: float | tuple[float, ...] = 1.0
    mirror: str | None = None
    """How the term changes in the left-right mirrored world: see :mod:`legged_envs.mdp.symmetry`."""
    delay: int = 0
    """How many control steps late it is seen; an episode's first value stands for those before it."""
    offset: float = 0.0
    dropout: float = 0.0
    """Half-width of what an episode adds to each of its numbers all along, and the probability that a number is lost in
    a step and read as 0. As the noise, only in groups that are ``noisy``."""
    history: int | None = None
    """How many steps of this term its group shows, next to each other (Isaac Lab); None in every term: see the group's
    ``history``."""
    params: dict[str, Any] = field(default_factory=dict)


@dataclass
class ObservationGroupCfg(Configuration):
    """Terms concatenated into one vector."""

    terms: dict[str, ObservationTermCfg]
    noisy: bool = False
    """Whether the terms' noise is added."""
    history: int = 1
    """How many steps' vectors it shows, the oldest first; an episode's first vector stands for those before it."""
    concatenate: bool = True
    """Whether the terms stand in one vector, or in a dict under their names."""


class ObservationGroup(TermColumns):
    """One group of observation terms; ValueError if a field of the configuration makes no sense, naming it."""

    def __init__(self, env: Any, name: str, cfg: ObservationGroupCfg, limit: float):
        kind = f"observation group {name!r}:"
        steps = [whole_number(f"{kind} history", cfg.history)]
        super().__init__(env, kind, cfg.terms, torch.float32, scalar=False)
        by_term = any(term.history is not None for term in cfg.terms.values())
        if by_term:
            steps = [
                whole_number(f"{kind} history of {n!r}", t.history or 1)
                for n, t in cfg.terms.items()
            ]
        self.name, self.history, self.noisy, self._limit = name, max(steps), cfg.noisy, limit
        ages = [(i, age) for age in reversed(range(self.history)) for i in range(len(self.sizes))]
        if by_term:
            ages = [(i, age) for i, n in enumerate(steps) for age in reversed(range(n))]
        self.layout = [(self.names[i], self.sizes[i], age) for i, age in ages]
        """What the vector is made of, in order: name and size of a term, and how many steps ago that was."""
        self._random = env.random.stream(f"observation_noise/{name}")
        width = sum(self.sizes)
        each = steps if by_term else steps * len(self.sizes)
        self.widths = [size * n for size, n in zip(self.sizes, each, strict=True)]
        """How many numbers each term has in the observation."""
        self.size, self.concatenate = sum(self.widths), cfg.concatenate
        cfgs = cfg.terms.values()
        scale, noise = (
            self._row("scale", [c.scale for c in cfgs]),
            self._row("noise", [c.noise for c in cfgs]),
        )
        self._scale = scale if (scale != 1.0).any() else None
        self._clip: tuple[torch.Tensor, ...] = ()
        if any(c.clip is not None for c in cfgs):
            bounds = zip(*(c.clip or (-math.inf, math.inf) for c in cfgs), strict=True)
            self._clip = tuple(self._row("clip", values) for values in bounds)
        self._span = _span(noise * cfg.noisy)
        self._noise = noise[self._span] * 2.0**-23
        self._take_effects([*cfgs])
        self._num_draws = len(self._noise) + len(self._kept_from)
        self.noise_draw = torch.zeros(
            env.num_envs, self._num_draws, dtype=torch.int32, device=env.device
        )
        self._order = self._by_term(steps) if by_term and self.history > 1 else None
        if self.history > 1:
            self.STATE += ("past",)
            self.past = torch.zeros(
                env.num_envs, self.history, width, dtype=torch.float32, device=env.device
            )
            """The vectors of the last steps, the oldest first. Shape: (num_envs, history, width)."""
        self.value = torch.zeros(env.num_envs, self.size, dtype=torch.float32, device=env.device)
        """The observation. Shape: (num_envs, size)."""
        self._sums = () if self.own else ("sums",)

    def _row(self, field: str, values: Iterable[Any]) -> torch.Tensor:
        """Values of the terms, one or one for each column, as a row. Shape: (width,)."""
        parts = []
        for term, value, size in zip(self.terms, values, self.sizes, strict=True):
            part = torch.as_tensor(value, dtype=torch.float32)
            if part.ndim > 1 or part.numel() not in (1, size):
                raise ValueError(f"{term.where}: {field} needs 1 or {size} values, got {value}")
            parts.append(part.expand(size))
        return torch.cat(parts).to(self._env.device)

    def _take_effects(self, cfgs: list[ObservationTermCfg]) -> None:
        """Prepare delays, offsets and losses of numbers."""
        env = self._env
        for term, cfg in zip(self.terms, cfgs, strict=True):
            whole_number(f"{term.where}: delay", cfg.delay, 0)
            check_number(f"{term.where}: offset", cfg.offset, 0.0)
            check_number(f"{term.where}: dropout", cfg.dropout, 0.0, 1.0)
        loss = self._row("dropout", [cfg.dropout * self.noisy for cfg in cfgs])
        self._lossy = _span(loss)
        self._kept_from = loss[self._lossy] * 2.0**24 - 2.0**23
        offsets = self._row("offset", [cfg.offset * self.noisy for cfg in cfgs])
        self._offset_range = offsets if offsets.any() else None
        self.offsets = torch.zeros(
            env.num_envs, len(offsets), dtype=torch.float32, device=env.device
        )
        """What this episode adds to each number. Shape: (num_envs, width)."""
        delays = self._row("delay", [cfg.delay for cfg in cfgs]).long()
        self._delay = int(delays.max()) if len(delays) else 0
        self._late = self._delay - delays
        if self._offset_range is not None:
            self.STATE += ("offsets",)
        if self._delay:
            self.STATE += ("before",)
            self.before = self.offsets.unsqueeze(1).repeat(1, self._delay, 1)
            """Values of the last steps, the oldest first. Shape: (num_envs, longest delay, width)."""

    def draw(self) -> None:
        if self._num_draws:
            self.noise_draw = self._random.signed_24_bit(self._num_draws)

    def compute(self) -> None:
        """Set ``value``, and remember it if the group shows the past; pure."""
        value = self._columns()
        if self._delay:
            seen = torch.cat((self.before, value.unsqueeze(1)), dim=1)
            self.before = seen[:, 1:]
            value = seen.gather(1, self._late.expand(len(seen), 1, -1)).squeeze(1)
        value = self._finish(value, self.offsets, self.noise_draw)
        if self.history > 1:
            self.past = torch.cat((self.past[:, 1:], value.unsqueeze(1)), dim=1)
            value = self._flat(self.past)
        self.value = value

    def compute_rows(self, env_ids: torch.Tensor) -> torch.Tensor:
        """Draw noise for environments whose episode begins, and return their observation. Shape: (n, size)."""
        draw = (
            self._random.signed_24_bit(self._num_draws, env_ids)
            if self._num_draws
            else self.noise_draw
        )
        self.evaluate_impure()
        value = self._columns()
        self.check_values()
        rows = value[env_ids]
        if self._delay:
            self.before = self.before.index_copy(
                0, env_ids, rows.unsqueeze(1).repeat(1, self._delay, 1)
            )
        if self._offset_range is not None:
            stream = self._env.random.stream(f"observation_offset/{self.name}")
            offsets = stream.uniform(-1.0, 1.0, rows.shape[1], env_ids) * self._offset_range
            self.offsets = self.offsets.index_copy(0, env_ids, offsets)
        rows = self._finish(rows, self.offsets[env_ids], draw)
        if self.history > 1:
            past = rows.unsqueeze(1).expand(-1, self.history, -1)
            self.past = self.past.index_copy(0, env_ids, past)
            rows = self._flat(past)
        return rows

    def shown(self, value: torch.Tensor) -> Any:
        """A ``value`` of the group as the environment gives it: a vector, or a dict of the terms'."""
        return (
            value
            if self.concatenate
            else dict(zip(self.names, value.split(self.widths, dim=1), strict=True))
        )

    def forget_last(self) -> None:
        """Drop the last step of what is remembered, and let the first stand twice, which the next drops."""
        for name in ("past", "before"):
            if (steps := getattr(self, name, None)) is not None and steps.shape[1:2] > (0,):
                setattr(self, name, torch.cat((steps[:, :1], steps[:, :-1]), dim=1))

    def overwrite(self, observation: torch.Tensor, term: str, value: torch.Tensor) -> None:
        """Write the ``value`` of a term to an observation of this moment and to what is remembered of it."""
        first = sum(self.sizes[: self.names.index(term)])
        # What a step leaves, only a step may change in place.
        past = self.past.clone() if self.history > 1 else observation.unsqueeze(1)
        past[:, -1, first : first + value.shape[-1]] = value
        if self.history > 1:
            self.past = past
            observation[:] = self._flat(past)

    def _by_term(self, steps: list[int]) -> torch.Tensor:
        """Which columns of all steps' vectors stand where if each term's ``steps`` stand together."""
        columns = (
            torch.arange(self.history * sum(self.sizes))
            .view(self.history, -1)
            .split(self.sizes, dim=1)
        )
        parts = [part[self.history - n :].flatten() for part, n in zip(columns, steps, strict=True)]
        return torch.cat(parts).to(self._env.device)

    def _flat(self, past: torch.Tensor) -> torch.Tensor:
        flat = past.flatten(1)
        return flat if self._order is None else flat[:, self._order]

    def _columns(self) -> torch.Tensor:
        value = self.columns()
        if self._sums:
            self.sums = value.sum(1)
        return value

    def _finish(
        self, value: torch.Tensor, offsets: torch.Tensor, draw: torch.Tensor
    ) -> torch.Tensor:
        if count := len(self._noise):
            value[:, self._span].add_(draw[:, :count].float() * self._noise)
        if self._offset_range is not None:
            value.add_(offsets)
        if len(self._kept_from):
            value[:, self._lossy].mul_(draw[:, count:].float() >= self._kept_from)
        if self._clip:
            value.clamp_(*self._clip)
        if self._scale is not None:
            value.mul_(self._scale)
        return value.clamp_(-self._limit, self._limit)

    def _as_tables(self) -> Iterable[Table]:
        noise = "noisy" if self.noisy else "no noise"
        history = (
            f", {self.history} steps{' by term' * (self._order is not None)}"
            if self.history > 1
            else ""
        )
        terms = zip(self.cfg.items(), self.sizes, strict=True)
        rows = [(name, size, term.noise, term.scale, term.clip) for (name, term), size in terms]
        title = f"Observations {self.name!r} ({self.size}, {noise}{history})"
        return [(title, ("term", "size", "noise ±", "scale", "clip"), rows)]


def _span(row: torch.Tensor) -> slice:
    """From the first to the last column that is not 0: for these random numbers are drawn."""
    columns = row.nonzero().flatten().tolist()
    return slice(columns[0], columns[-1] + 1) if columns else slice(0)


class ObservationManager(Manager):
    """Holds the observation groups of ``cfg``, which are clipped to ±``limit``."""

    STATE = ("groups",)

    def __init__(self, env: Any, cfg: dict[str, ObservationGroupCfg], limit: float):
        super().__init__(env, cfg)
        self.groups = {
            name: ObservationGroup(env, name, group, limit) for name, group in cfg.items()
        }

    def owners(self) -> list[object]:
        return [owner for group in self.groups.values() for owner in group.owners()]

    def _as_tables(self) -> Iterable[Table]:
        return [table for group in self.groups.values() for table in group._as_tables()]
