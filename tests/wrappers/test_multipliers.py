"""The multipliers of both constraint paths, against the published controller in a float64 loop."""

from __future__ import annotations

import copy
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch

from legged_envs.wrappers.plumbing.multipliers import PIDMultipliers, relative_excess


def controller(
    excesses: np.ndarray, k_i: float, k_p: float, k_d: float, maximum: float, initial: float
) -> np.ndarray:
    """λ after each excess, of one multiplier, as Stooke et al. 2020 write it."""
    integral, last, values = initial, 0.0, []
    for excess in excesses:
        integral = min(max(integral + k_i * excess, 0.0), maximum)
        values.append(
            min(max(k_p * excess + integral + k_d * max(excess - last, 0.0), 0.0), maximum)
        )
        last = excess
    return np.array(values)


@pytest.mark.parametrize("kind", ["numpy", "torch", "torch float32", "strict"])
def test_multipliers_are_those_of_the_published_controller(kind: str) -> None:
    to_kind: Any = np.asarray
    if kind.startswith("torch"):
        dtype = torch.float32 if kind.endswith("32") else torch.float64
        to_kind = lambda array: torch.tensor(array, dtype=dtype)  # noqa: E731
    elif kind == "strict":
        to_kind = array_api_strict.asarray
    rng = np.random.default_rng(0)
    gains = {"integral": 0.1, "proportional": 0.4, "derivative": 0.3}
    limits, means = (
        np.array([[0.5, 2.0], [0.1, 0.0]]),
        3.0 * rng.random((40, 2, 2)) * [[0.5, 2.0], [0.1, 0.3]],
    )
    multipliers = PIDMultipliers(to_kind(np.full((2, 2), 0.2)), **gains, maximum=0.9)
    seen = []
    for mean in means:
        multipliers.update(relative_excess(to_kind(mean), to_kind(limits)))
        assert (
            type(multipliers.values) is type(to_kind(mean))
            and multipliers.values.dtype == to_kind(mean).dtype
        )
        seen.append(np.asarray(multipliers.values))
    excess = np.minimum(
        np.where(limits > 0.0, means / np.where(limits > 0.0, limits, 1.0) - 1.0, means), 1.0
    )
    for row in np.ndindex(2, 2):
        expected = controller(excess[:, *row], *gains.values(), 0.9, 0.2)
        assert 0.0 < expected.mean() < 0.9
        atol = 1e-12 if "64" in str(multipliers.values.dtype) else 1e-6
        np.testing.assert_allclose(np.array(seen)[:, *row], expected, rtol=0, atol=atol)


def test_float32_multipliers_are_the_exact_sums_rounded_once() -> None:
    """As a fused multiply-add gives them, so that they do not depend on the processor's vector instructions."""
    rng = np.random.default_rng(1)
    initial, excess = (rng.random(10_000).astype(np.float32) for _ in range(2))
    multipliers = PIDMultipliers(initial, integral=0.02)
    multipliers.update(excess)
    exact = initial.astype(np.float64) + np.float64(np.float32(0.02)) * excess.astype(np.float64)
    assert (
        np.array_equal(multipliers.values, exact.astype(np.float32))
        and multipliers.values.dtype == np.float32
    )
    assert not np.array_equal(multipliers.values, initial + np.float32(0.02) * excess)


def test_what_was_not_measured_moves_nothing_and_an_excess_can_be_noted_without_following_it() -> (
    None
):
    first, nothing = np.array([0.5, 0.5]), np.array([0.5, np.nan])
    multipliers = PIDMultipliers(np.zeros(2), integral=0.1, derivative=1.0)
    multipliers.update(first)
    multipliers.update(nothing)
    np.testing.assert_allclose(multipliers.values, [0.1, 0.55])
    multipliers.update(np.array([0.7, 0.7]), follow=False)
    multipliers.update(np.array([0.7, 0.8]))  # only the second has risen since
    np.testing.assert_allclose(multipliers.values, [0.17, 0.05 + 0.08 + 0.1])


def test_a_state_is_a_copy_that_goes_on_from_where_it_was() -> None:
    gains = {"integral": 0.1, "proportional": 0.2, "derivative": 0.3}
    multipliers, other = (PIDMultipliers(torch.zeros(2, 3), **gains) for _ in range(2))
    multipliers.update(torch.rand(2, 3))
    state = multipliers.state_dict()
    kept = copy.deepcopy(state)
    other.load_state_dict(state)
    for excess in torch.rand(3, 2, 3):
        multipliers.update(excess)
        other.update(excess)
    assert torch.equal(multipliers.values, other.values)
    assert all(torch.equal(state[name], kept[name]) for name in kept)
    with pytest.raises(ValueError, match=r"'integral'.*\(2, 3\).*\(3,\)"):
        other.load_state_dict({**kept, "integral": torch.zeros(3)})
    with pytest.raises(
        ValueError,
        match=r"'last_excess'.*\(2, 3\).*\['integral', 'multipliers'\]",
    ):
        other.load_state_dict({name: kept[name] for name in ("multipliers", "integral")})
    assert torch.equal(multipliers.values, other.values)


@pytest.mark.parametrize("name", ["integral", "proportional", "derivative", "maximum"])
@pytest.mark.parametrize("value", [-0.1, float("nan")])
def test_gains_and_bound_are_checked(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        PIDMultipliers(np.zeros(1), **{"integral": 0.1, name: value})
