"""One group of observation terms: values, delays, noise, clipping, scaling and history."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from legged_envs.checks import check_number, whole_number
from legged_envs.managers.manager import TermManager
from legged_envs.managers.observation_cfg import ObservationGroupCfg
from legged_envs.mdp.context import Env
from legged_envs.tables import Table

# Random numbers are integers in [-2^23, 2^23), which float32 holds exactly.
DRAW_HALF_WIDTH = 2.0**23
"""Half-width of the drawn random integers."""


class ObservationGroup(TermManager):
    """One group of observation terms.

    Args:
        env: The environment that the terms see.
        name: Name of the group.
        cfg: Configuration of the group.
        limit: Observations are clipped to ±``limit``.

    Raises:
        ValueError: If a field of the configuration is not valid; the error names it.
    """

    def __init__(self, env: Env, name: str, cfg: ObservationGroupCfg, limit: float):
        kind = f"observation group {name!r}:"
        whole_number(f"{kind} history", cfg.history)
        super().__init__(env, kind, cfg.terms, torch.float32, scalar=False)
        self.name = name
        """Name of the group."""
        self.noisy = cfg.noisy
        """True if noise, offsets and dropout are applied."""
        self.concatenate = cfg.concatenate
        """True if the terms stand in one vector, false if in a dict."""
        self._limit = limit
        self._term_cfgs = list(cfg.terms.values())
        self._check_terms()
        self._prepare_history(kind, cfg)
        self._prepare_scaling()
        self._prepare_noise()
        self._prepare_delays()
        self.value = torch.zeros(env.num_envs, self.size, dtype=torch.float32, device=env.device)
        """Observation of the last step. Shape: (num_envs, size)."""

    def _check_terms(self) -> None:
        for term, cfg in zip(self.terms, self._term_cfgs, strict=True):
            whole_number(f"{term.where}: delay", cfg.delay, 0)
            check_number(f"{term.where}: offset", cfg.offset, 0.0)
            check_number(f"{term.where}: dropout", cfg.dropout, 0.0, 1.0)
            check_number(f"{term.where}: noise", cfg.noise, 0.0)
            if cfg.clip is not None:
                low, high = cfg.clip
                # Written with "not", so that NaN is refused too.
                if not low <= high:
                    raise ValueError(
                        f"{term.where}: clip must be (low, high), low at most high, "
                        f"got {cfg.clip!r}"
                    )

    def _prepare_history(self, kind: str, cfg: ObservationGroupCfg) -> None:
        by_term = any(term.history is not None for term in self._term_cfgs)
        if by_term:
            steps = [
                whole_number(f"{kind} history of {name!r}", term.history or 1)
                for name, term in cfg.terms.items()
            ]
        else:
            steps = [cfg.history] * len(self.terms)
        self.history = max(steps) if by_term else cfg.history
        """Largest number of steps that the observation shows of a term."""
        widths = []
        for size, count in zip(self.sizes, steps, strict=True):
            widths.append(size * count)

        self.widths = widths
        """Number of elements of each term in the observation."""
        self.size = sum(self.widths)
        """Number of elements of the observation."""
        self.layout = self._layout(steps, by_term)
        """Parts of the vector in order: name of a term, its size, and its age in steps."""
        self._order: torch.Tensor | None = None
        if self.history > 1:
            self.STATE += ("past",)
            shape = (self._env.num_envs, self.history, sum(self.sizes))

            self.past = torch.zeros(shape, dtype=torch.float32, device=self._env.device)
            """Vectors of the last steps, the oldest first. Shape: (num_envs, history, width)."""
            if by_term:
                self._order = self._columns_by_term(steps)

    def _layout(self, steps: Sequence[int], by_term: bool) -> list[tuple[str, int, int]]:
        layout = []
        if by_term:
            for name, size, count in zip(self.names, self.sizes, steps, strict=True):
                for age in reversed(range(count)):
                    layout.append((name, size, age))
        else:
            for age in reversed(range(self.history)):
                for name, size in zip(self.names, self.sizes, strict=True):
                    layout.append((name, size, age))
        return layout

    def _columns_by_term(self, steps: Sequence[int]) -> torch.Tensor:
        """Return the columns of all past vectors, ordered so that each term's steps adjoin."""
        width = sum(self.sizes)
        columns = torch.arange(self.history * width).view(self.history, width)
        parts = []
        for part, count in zip(columns.split(self.sizes, dim=1), steps, strict=True):
            parts.append(part[self.history - count :].flatten())
        return torch.cat(parts).to(self._env.device)

    def _prepare_scaling(self) -> None:
        scale = self._field_row("scale")
        has_scale = bool((scale != 1.0).any())
        self._scale = scale if has_scale else None
        self._clip: tuple[torch.Tensor, torch.Tensor] | None = None
        if any(cfg.clip is not None for cfg in self._term_cfgs):
            lows = []
            highs = []
            for cfg in self._term_cfgs:
                low, high = cfg.clip or (-math.inf, math.inf)
                lows.append(low)
                highs.append(high)
            self._clip = (self._row("clip", lows), self._row("clip", highs))

    def _prepare_noise(self) -> None:
        env = self._env
        noise = self._field_row("noise")
        offset = self._field_row("offset")
        dropout = self._field_row("dropout")
        if not self.noisy:
            for row in (noise, offset, dropout):
                row.zero_()
        # Random numbers are drawn only for these columns.
        self._noisy_columns = _span_of_nonzero(noise)
        self._noise = noise[self._noisy_columns] / DRAW_HALF_WIDTH
        self._lossy_columns = _span_of_nonzero(dropout)
        # A number drawn below this is lost.
        probability = dropout[self._lossy_columns]
        self._kept_from = probability * 2.0 * DRAW_HALF_WIDTH - DRAW_HALF_WIDTH
        self._num_draws = len(self._noise) + len(self._kept_from)
        self._random = env.random.stream(f"observation_noise/{self.name}")

        self.noise_draw = torch.zeros(
            env.num_envs, self._num_draws, dtype=torch.int32, device=env.device
        )
        """Random integers of the next observation. Shape: (num_envs, draws)."""
        self._offset_bound = offset if offset.any() else None

        self.offsets = torch.zeros(
            env.num_envs, len(offset), dtype=torch.float32, device=env.device
        )
        """Bias of each element in this episode. Shape: (num_envs, width)."""
        if self._offset_bound is not None:
            self.STATE += ("offsets",)

    def _prepare_delays(self) -> None:
        delays = self._field_row("delay").long()
        self._max_delay = int(delays.max()) if len(delays) else 0
        self._delay_index = self._max_delay - delays
        if self._max_delay:
            self.STATE += ("before",)
            self.before = self.offsets.unsqueeze(1).repeat(1, self._max_delay, 1)
            """Values of the last steps, the oldest first. Shape: (num_envs, max delay, width)."""

    def _field_row(self, field: str) -> torch.Tensor:
        """Return the values of a field of the configurations for every column, shape (width,)."""
        return self._row(field, [getattr(cfg, field) for cfg in self._term_cfgs])

    def _row(self, field: str, values: Iterable[Any]) -> torch.Tensor:
        """Return the values of a field for every column, shape (width,).

        ``values`` has one number or one number per element for each term.
        """
        parts = [torch.zeros(0, dtype=torch.float32)]
        for term, value, size in zip(self.terms, values, self.sizes, strict=True):
            part = torch.as_tensor(value, dtype=torch.float32)
            if part.ndim > 1 or part.numel() not in (1, size):
                raise ValueError(f"{term.where}: {field} needs 1 or {size} values, got {value}")
            parts.append(part.expand(size))
        return torch.cat(parts).to(self._env.device)

    def draw(self) -> None:
        """Draw the random numbers of the next observation of all environments."""
        if self._num_draws:
            self.noise_draw = self._random.signed_24_bit(self._num_draws)

    def compute(self) -> None:
        """Make the observation of this step, and remember it if the group has a history."""
        value = self._evaluate()
        if self._max_delay:
            # Delays come before noise: a late measurement gets the noise of when it is seen.
            seen = torch.cat((self.before, value.unsqueeze(1)), dim=1)
            self.before = seen[:, 1:]
            index = self._delay_index.expand(len(seen), 1, -1)
            value = seen.gather(1, index)
            value = value.squeeze(1)
        value = self._apply_effects(value, self.offsets, self.noise_draw)
        if self.history > 1:
            # A new tensor: the observation of the last step may be a view of the old one.
            newest = value.unsqueeze(1)
            self.past = torch.cat((self.past[:, 1:], newest), dim=1)
            value = self._flatten(self.past)
        self.value = value

    def compute_rows(self, env_ids: torch.Tensor) -> torch.Tensor:
        """Make the first observation of new episodes.

        Args:
            env_ids: Environments with a new episode, shape (n,).

        Returns:
            Their observations, shape (n, size).

        Raises:
            ValueError: If a term returned a number that is not finite.
        """
        draw = self.noise_draw
        if self._num_draws:
            draw = self._random.signed_24_bit(self._num_draws, env_ids)
        value = self._evaluate()
        if not self.is_builtin:
            self.check_values()
        rows = value[env_ids]
        # An episode has no past yet: its first values stand for all earlier ones.
        if self._max_delay:
            repeated = rows.unsqueeze(1).repeat(1, self._max_delay, 1)
            self.before = self.before.index_copy(0, env_ids, repeated)
        if self._offset_bound is not None:
            stream = self._env.random.stream(f"observation_offset/{self.name}")
            drawn = stream.uniform(-1.0, 1.0, rows.shape[1], env_ids)
            self.offsets = self.offsets.index_copy(0, env_ids, drawn * self._offset_bound)
        rows = self._apply_effects(rows, self.offsets[env_ids], draw)
        if self.history > 1:
            past = rows.unsqueeze(1).expand(-1, self.history, -1)
            self.past = self.past.index_copy(0, env_ids, past)
            rows = self._flatten(past)
        return rows

    def _evaluate(self) -> torch.Tensor:
        value = self.evaluate_terms()
        if not self.is_builtin:
            self.columns = value.clone()  # the effects change the value in place
        return value

    def check_sum(self) -> torch.Tensor:
        """Return a number that is finite if all values of the last step are. Shape: ()."""
        return self.columns.sum()

    def arrange(self, value: torch.Tensor) -> torch.Tensor | dict[str, torch.Tensor]:
        """Return an observation as the environment shows it: a vector, or a dict of terms.

        Args:
            value: The vectors of the group. Shape: (n, size).
        """
        if self.concatenate:
            return value
        parts = value.split(self.widths, dim=1)
        return dict(zip(self.names, parts, strict=True))

    def forget_last(self) -> None:
        """Remove the last step from the history, because it will be observed again.

        The oldest entry is doubled in its place; the next observation pushes it out.
        """
        if self.history > 1:
            oldest = self.past[:, :1]
            self.past = torch.cat((oldest, self.past[:, :-1]), dim=1)
        if self._max_delay:
            oldest = self.before[:, :1]
            self.before = torch.cat((oldest, self.before[:, :-1]), dim=1)

    def overwrite(self, observation: torch.Tensor, term: str, value: torch.Tensor) -> None:
        """Replace a term in an observation of this step, and in the history.

        Args:
            observation: Observation to change in place, shape (num_envs, size).
            term: Name of the term.
            value: New value of the term, shape (num_envs, size of the term).
        """
        first = sum(self.sizes[: self.names.index(term)])
        last = first + value.shape[-1]
        if self.history > 1:
            past = self.past.clone()  # only a step may change in place what a step made
            past[:, -1, first:last] = value
            self.past = past
            observation[:] = self._flatten(past)
        else:
            observation[:, first:last] = value

    def _flatten(self, past: torch.Tensor) -> torch.Tensor:
        flat = past.flatten(1)
        if self._order is None:
            return flat
        return flat[:, self._order]

    def _apply_effects(
        self, value: torch.Tensor, offsets: torch.Tensor, draw: torch.Tensor
    ) -> torch.Tensor:
        """Apply noise, offset, dropout, clip and scale in place."""
        num_noisy = len(self._noise)
        if num_noisy:
            noise = draw[:, :num_noisy].float() * self._noise
            value[:, self._noisy_columns].add_(noise)
        if self._offset_bound is not None:
            value.add_(offsets)
        if len(self._kept_from):
            # Multiplied by a flag: 0 replaces a lost value, after noise and offset were added to
            # it.
            is_kept = draw[:, num_noisy:].float() >= self._kept_from
            value[:, self._lossy_columns].mul_(is_kept)
        if self._clip is not None:
            low, high = self._clip
            value.clamp_(low, high)
        if self._scale is not None:
            value.mul_(self._scale)
        # Last, so that every observation lies in the bounds of the observation space.
        return value.clamp_(-self._limit, self._limit)

    def _as_tables(self) -> Iterable[Table]:
        facts = [str(self.size), "noisy" if self.noisy else "no noise"]
        if self.history > 1:
            by_term = " by term" if self._order is not None else ""
            facts.append(f"{self.history} steps{by_term}")
        rows = []
        for name, size, cfg in zip(self.names, self.sizes, self._term_cfgs, strict=True):
            rows.append((name, size, cfg.noise, cfg.scale, cfg.clip))
        title = f"Observations {self.name!r} ({', '.join(facts)})"
        return [(title, ("term", "size", "noise ±", "scale", "clip"), rows)]


def _span_of_nonzero(row: torch.Tensor) -> slice:
    """Return the slice from the first to the last element that is not 0."""
    columns = row.nonzero().flatten().tolist()
    if not columns:
        return slice(0)
    return slice(columns[0], columns[-1] + 1)
