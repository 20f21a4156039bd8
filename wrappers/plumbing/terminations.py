"""Probabilities that costs end an episode, from Chane-Sane et al. 2024, "CaT"."""

from array_api_compat import array_namespace

from legged_envs.wrappers.plumbing.arrays import Array, detached

COST_MAXIMUM_FLOOR = 1e-6
"""Smallest running maximum that a cost is divided by."""


def running_maxima(maxima: Array | None, costs: Array, tau: float) -> Array:
    """Return m_i ← τ m_i + (1 − τ) max over the batch of c_i. Shape: (K,), float64.

    Args:
        maxima: The maxima before this step, m_i. None: there are none, and the result is the
            largest cost of the batch, at least :data:`COST_MAXIMUM_FLOOR`, as in later steps.
        costs: Costs of the step, c_i. Shape: (n, K).
        tau: τ, the share of the maxima that a step keeps.
    """
    xp = array_namespace(costs)
    largest = xp.astype(xp.max(detached(costs), axis=0), xp.float64)
    largest = xp.clip(largest, min=COST_MAXIMUM_FLOOR)
    if maxima is not None:
        largest = tau * maxima + (1.0 - tau) * largest
    result: Array = largest
    return result


def termination_probability(
    costs: Array, maxima: Array, probabilities: Array, combine: str = "max"
) -> Array:
    """Return the probability δ that costs end an episode. Shape: (n,), float64.

    δ is max_i δ_i with δ_i = min(p_i · clip(c_i / m_i, 0, 1), 1).

    Args:
        costs: Costs of a step, c_i. Shape: (n, K).
        maxima: Result of :func:`running_maxima`, m_i. Shape: (K,).
        probabilities: Largest probability p_i of each cost. Shape: (K,).
        combine: ``"max"``, or ``"product"`` for 1 − Π_i (1 − δ_i).
    """
    xp = array_namespace(costs)
    exact = xp.astype(costs, xp.float64)
    # min(c · p / m, p) is p · clip(c / m, 0, 1), with one division for each cost instead of one
    # for each environment and cost.
    slope = xp.astype(probabilities / maxima, xp.float64)
    bound = xp.astype(xp.clip(probabilities, max=1.0), xp.float64)
    each = xp.clip(xp.minimum(exact * slope, bound), min=0.0)
    delta: Array
    if combine == "max":
        delta = xp.max(each, axis=1)
    else:
        delta = 1.0 - xp.prod(1.0 - each, axis=1)
    return delta
