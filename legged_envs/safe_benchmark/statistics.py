"""Statistics over seeds: interquartile means, bootstrap intervals, profiles and improvement.

The formulas follow Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the
Statistical Precipice". Interquartile mean and probability of improvement come from their library
rliable. Its bootstrap needs arch < 8, which cannot be imported with pandas 3, so the resampling of
its class StratifiedBootstrap stands here, with the percentile intervals that it has by default.
"""

import math
from dataclasses import dataclass

import numpy as np
from rliable import metrics
from scipy.stats import trim_mean

TRIMMED = 0.25
"""Share of the runs that an interquartile mean leaves out at each end."""

RESAMPLES = 2000
"""Number of resamples of a bootstrap."""

CONFIDENCE = 95.0
"""Coverage of an interval, %."""

BOOTSTRAP_SEED = 1
"""Seed of the resamples, so that a table can be made again."""


@dataclass(frozen=True)
class Estimate:
    """A number over several runs, with its interval."""

    value: float
    """The number."""
    low: float
    """Lower end of the 95 % interval. NaN with a single seed."""
    high: float
    """Upper end of the 95 % interval. NaN with a single seed."""


def interquartile_mean(scores: np.ndarray) -> float:
    """Return the mean without the lowest and the highest quarter of the runs.

    Args:
        scores: Shape: (seeds, tasks).
    """
    return float(metrics.aggregate_iqm(scores))


def resamples(scores: np.ndarray, seed: int = BOOTSTRAP_SEED) -> np.ndarray:
    """Return stratified resamples: in each task as many seeds as there are, with replacement.

    Args:
        scores: Shape: (seeds, tasks).
        seed: Seed of the resamples.

    Returns:
        Shape: (:data:`RESAMPLES`, seeds, tasks).
    """
    generator = np.random.default_rng(seed)
    num_seeds, num_tasks = scores.shape
    chosen = generator.integers(num_seeds, size=(RESAMPLES, num_seeds, num_tasks))
    drawn: np.ndarray = scores[chosen, np.arange(num_tasks)]
    return drawn


def percentile_interval(values: np.ndarray) -> np.ndarray:
    """Return the ends of the central 95 % of values, along their first axis. Shape: (2, …)."""
    tail = 0.5 * (100.0 - CONFIDENCE)
    ends: np.ndarray = np.percentile(values, [tail, 100.0 - tail], axis=0)
    return ends


def estimate(scores: np.ndarray) -> Estimate:
    """Return the interquartile mean of scores with the interval of its bootstrap.

    Args:
        scores: Shape: (seeds, tasks).
    """
    value = interquartile_mean(scores)
    if len(scores) < 2:
        # All resamples of one seed are equal, which is no certainty.
        return Estimate(value, math.nan, math.nan)
    drawn = resamples(scores).reshape(RESAMPLES, -1)
    # As in the library, for all resamples at once.
    means = trim_mean(drawn, TRIMMED, axis=1)
    low, high = percentile_interval(means)
    return Estimate(value, float(low), float(high))


def improvement(scores: np.ndarray, others: np.ndarray) -> float:
    """Return the probability that a run of one method has a lower score than one of another.

    Args:
        scores: Shape: (seeds, tasks).
        others: Scores of the other method. Shape: (seeds, tasks), of the same tasks.
    """
    # The library takes large scores as good ones.
    return float(metrics.probability_of_improvement(-scores, -others))


def improvement_estimate(scores: np.ndarray, others: np.ndarray) -> Estimate:
    """Return :func:`improvement`, for which lower scores are better, with a bootstrap interval.

    Both methods are resampled. The interval is NaN if a method has fewer than two seeds.

    Args:
        scores: Shape: (seeds, tasks).
        others: Scores of the other method. Shape: (seeds, tasks), of the same tasks.
    """
    value = improvement(scores, others)
    if min(len(scores), len(others)) < 2:
        return Estimate(value, math.nan, math.nan)
    drawn = resamples(scores)[:, :, None]
    # Other random numbers, because the two methods are resampled independently.
    drawn_others = resamples(others, BOOTSTRAP_SEED + 1)[:, None]
    wins = (drawn < drawn_others) + 0.5 * (drawn == drawn_others)
    low, high = percentile_interval(wins.mean(axis=(1, 2, 3)))
    return Estimate(value, float(low), float(high))


@dataclass(frozen=True)
class Profile:
    """Share of the runs with a score of at most τ, for several τ."""

    thresholds: np.ndarray
    """The τ, rising."""
    shares: np.ndarray
    """Share of the runs at each τ."""
    low: np.ndarray
    """Lower ends of the 95 % intervals."""
    high: np.ndarray
    """Upper ends of the 95 % intervals."""


def profile(scores: np.ndarray, thresholds: np.ndarray) -> Profile:
    """Return the performance profile of a score of which less is better.

    Args:
        scores: Shape: (seeds, tasks).
        thresholds: The τ, rising. Shape: (n,).
    """
    drawn = resamples(scores)
    # Shape of the comparison: (resamples, seeds, tasks, n).
    shares = (drawn[..., None] <= thresholds).mean(axis=(1, 2))
    low, high = percentile_interval(shares)
    own = (scores[..., None] <= thresholds).mean(axis=(0, 1))
    return Profile(thresholds, own, low, high)
