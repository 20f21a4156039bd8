"""Configurations of observation groups and their terms."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from legged_envs.configuration import Configuration


@dataclass
class ObservationTermCfg(Configuration):
    """An observation term.

    The effects act in this order: value, delay, noise, offset, dropout, clip, scale.
    """

    func: Callable[..., torch.Tensor]
    """``func(env, **params)``, which returns shape (num_envs, size), float32."""
    noise: float = 0.0
    """Half-width of uniform noise, in the unit of the term."""
    clip: tuple[float, float] | None = None
    """Bounds that the noisy value is clipped to, in the unit of the term."""
    scale: float | tuple[float, ...] = 1.0
    """Factor of the value, or one factor per element."""
    mirror: str | None = None
    """How the term changes when the world is mirrored: see :mod:`legged_envs.mdp.symmetry`."""
    delay: int = 0
    """Delay of the value, control steps. The first value of an episode stands for earlier ones."""
    offset: float = 0.0
    """Bound of a constant bias, in the unit of the term, drawn once per episode and element.

    Only in noisy groups.
    """
    dropout: float = 0.0
    """Probability per step that an element reads 0. Only in noisy groups."""
    history: int | None = None
    """Number of past steps of this term in the observation, next to each other (Isaac Lab).

    None in every term: use the group's ``history``.
    """
    params: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of ``func``."""


@dataclass
class ObservationGroupCfg(Configuration):
    """Observation terms that are concatenated into one vector."""

    terms: dict[str, ObservationTermCfg]
    """Name of each term mapped to its configuration."""
    noisy: bool = False
    """True if noise, offsets and dropout of the terms are applied."""
    history: int = 1
    """Number of steps in the observation, the oldest first.

    The first vector of an episode stands for the steps before it.
    """
    concatenate: bool = True
    """True if the terms stand in one vector, false if they stand in a dict under their names."""
