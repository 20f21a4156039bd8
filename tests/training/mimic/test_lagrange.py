"""Constraints of motion-mimic PPO: multipliers, advantages, and that training keeps the limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from chase import (
    COSTS,
    STEPS,
    Chase,
    iterate,
    make,
)

from legged_envs.training.learner.lagrange import Lagrange
from legged_envs.training.learner_options import LagrangeCfg


def lagrange(**cfg: Any) -> Lagrange:
    options = LagrangeCfg(**{"enabled": True, "proportional": 0.0, **cfg})
    cpu = torch.device("cpu")
    return Lagrange(("one", "two"), (0.5, 0.01), 0.9, options, cpu, with_reference=True)


def integral_part(constraint: Lagrange) -> torch.Tensor:
    return constraint.state_dict()["integral"]


def set_multipliers(constraint: Lagrange, values: torch.Tensor) -> None:
    constraint.load_state_dict(constraint.state_dict() | {"multipliers": values})


def with_reference(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.bool)


def test_multipliers_rise_above_the_limit_fall_below_it_and_keep_their_bounds() -> None:
    constraint = lagrange(integral=0.1, maximum=0.55)
    costs = torch.tensor([1.0, 0.005]).expand(4, 3, 2)  # twice and half of the limit
    present = with_reference(4, 3)
    for expected in (0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.55):
        np.testing.assert_allclose(
            constraint.ascend(constraint.scaled(costs), present)[1], [1.0, 0.005], rtol=1e-5
        )
        assert constraint.multipliers.values[1].tolist() == pytest.approx([expected, 0.0])
    for expected in (0.5, 0.45, 0.4):
        constraint.ascend(constraint.scaled(0.25 * costs), present)
        assert constraint.multipliers.values[1].tolist() == pytest.approx([expected, 0.0])
    for _ in range(10):
        constraint.ascend(constraint.scaled(0.0 * costs), present)
    assert constraint.multipliers.values.tolist() == [[0.0, 0.0]] * 2


def test_the_proportional_part_of_a_multiplier_answers_at_once_and_is_not_summed_up() -> None:
    constraint = lagrange(integral=0.1, proportional=0.4, initial=0.2)
    present = with_reference(4, 3)
    for fraction, integral, expected in (
        (1.5, 0.25, 0.45),
        (1.5, 0.30, 0.50),
        (0.5, 0.25, 0.05),
        (0.1, 0.16, 0.0),
    ):
        constraint.ascend(
            constraint.scaled(torch.tensor([fraction * 0.5, 0.0]).expand(4, 3, 2)), present
        )
        assert integral_part(constraint)[1, 0].item() == pytest.approx(integral)
        assert constraint.multipliers.values[1, 0].item() == pytest.approx(expected, abs=1e-6)
    assert integral_part(constraint)[0].tolist() == pytest.approx([0.2, 0.2])


def test_steps_with_and_without_a_reference_have_multipliers_of_their_own() -> None:
    constraint = lagrange(integral=0.1)
    costs, present = (
        torch.zeros(2, 4, 2),
        torch.tensor([[True, False, True, True], [True, False, False, True]]),
    )
    costs[present], costs[~present] = torch.tensor([0.75, 0.02]), torch.tensor([0.25, 0.015])
    means = constraint.ascend(constraint.scaled(costs), present)
    np.testing.assert_allclose(means, [[0.25, 0.015], [0.75, 0.02]], rtol=1e-5)
    np.testing.assert_allclose(constraint.multipliers.values, [[0.0, 0.05], [0.05, 0.1]], atol=1e-6)
    kept = constraint.multipliers.values[0].clone()
    means = constraint.ascend(constraint.scaled(costs), with_reference(2, 4))
    assert means[0].isnan().all() and torch.equal(
        constraint.multipliers.values[0], kept
    )  # nothing was learnt about it

    advantages = torch.zeros(2, 4, 1)
    cost_advantages = torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(0))
    set_multipliers(constraint, torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
    constraint.combine_(advantages, cost_advantages, present)
    assert (
        torch.equal(advantages[~present], torch.zeros(3, 1)) and (advantages[present] != 0.0).all()
    )


def test_an_excess_counts_as_twice_the_limit_at_most_and_only_the_chosen_costs_count() -> None:
    constraint = lagrange(costs=("two",), integral=0.1)
    assert constraint.names == ("two",)
    costs = torch.tensor(
        [[9.0, 0.05], [9.0, 0.15]]
    )  # of the chosen one on average ten times the limit
    scaled = constraint.scaled(costs)
    assert scaled.shape == (2, 1)
    assert constraint.ascend(scaled.unsqueeze(0), with_reference(1, 2))[
        1
    ].tolist() == pytest.approx([0.1])
    assert constraint.multipliers.values[1].tolist() == pytest.approx([0.1])
    with pytest.raises(
        ValueError, match=r"lagrange.costs must be one of \('one', 'two'\), got 'three'"
    ):
        lagrange(costs=("three",))
    cfg, cpu = LagrangeCfg(enabled=True, costs=("two",)), torch.device("cpu")
    Lagrange(("one", "two"), (0.0, 0.01), 0.9, cfg, cpu, with_reference=True)
    with pytest.raises(ValueError, match=r"the limit of the cost 'two' .*0\.0"):
        Lagrange(("one", "two"), (0.5, 0.0), 0.9, cfg, cpu, with_reference=True)


def test_advantages_are_those_of_the_lagrangian_in_units_of_the_limits() -> None:
    rng = np.random.default_rng(0)
    advantages = rng.normal(size=(6, 4, 1))
    costs = rng.random((6, 4, 2)) * [0.5, 0.01] * [20.0, 0.05]  # far over the limit, far inside it
    constraint = lagrange()
    set_multipliers(constraint, torch.tensor([[9.0, 9.0], [0.7, 0.2]]))
    scaled = constraint.scaled(torch.tensor(costs, dtype=torch.float32))
    np.testing.assert_allclose(scaled, costs * 0.1 / [0.5, 0.01], rtol=1e-5)
    combined = torch.tensor(advantages, dtype=torch.float32)
    constraint.combine_(combined, scaled, with_reference(6, 4))
    standard = (costs[..., 0] - costs[..., 0].mean()) / costs[..., 0].std()
    in_limits = (costs[..., 1] - costs[..., 1].mean()) / 0.01
    assert np.abs(in_limits).max() < 0.05
    expected = (advantages[..., 0] - 0.7 * standard - 0.2 * in_limits) / 1.9
    np.testing.assert_allclose(combined[..., 0], expected, atol=1e-5)
    set_multipliers(constraint, torch.zeros(2, 2))
    before = combined.clone()
    constraint.combine_(combined, scaled, with_reference(6, 4))
    assert torch.equal(combined, before)  # terms inside their limits leave the policy alone


def test_the_multipliers_listen_to_robots_without_noise_which_teach_the_policy_nothing() -> None:
    torch.manual_seed(0)
    env = Chase(16)
    arguments = {"cost_names": COSTS, "cost_limits": (1.0, 1.0)}
    algorithm = make(env, arguments, lagrange=LagrangeCfg(enabled=True, calm_fraction=0.1))
    obs = env.get_observations()
    for _ in range(STEPS):
        actions = algorithm.act(obs)
        mean = algorithm.actor.distribution.mean
        assert torch.equal(actions[:2], mean[:2]) and (actions[2:] != mean[2:]).all()
        obs, rewards, dones, extras = env.step(actions)
        extras["costs"][:2], extras["costs"][2:] = 0.25, 100.0
        algorithm.process_env_step(obs, rewards, dones, extras)
    algorithm.compute_returns(obs)
    batches = list(algorithm.storage.mini_batches(3, 1))
    report = algorithm.parts[0].prepare(algorithm.storage, batches)
    assert report["cost/effort"] == pytest.approx(0.25) and report["multiplier/effort"] == 0.0
    advantages = algorithm.storage.advantages
    assert not advantages[:, :2].any() and advantages[:, 2:].all()
    for batch in batches:  # what was gathered before has the changed advantages
        assert torch.equal(batch.advantages, advantages.flatten(0, 1)[batch.indices])
    assert (
        make(Chase(1), arguments, lagrange=LagrangeCfg(enabled=True)).calm_envs == 0
    )  # somebody has to explore
    with pytest.raises(
        ValueError, match=r"calm_fraction must be .*at least 0 and below 1, got 1.0"
    ):
        make(env, arguments, lagrange=LagrangeCfg(enabled=True, calm_fraction=1.0))


def test_a_constraint_is_kept_by_training() -> None:
    distances = {}
    for enabled in (True, False):
        torch.manual_seed(0)
        env = Chase()
        constraint = LagrangeCfg(enabled=True, integral=0.3 if enabled else 0.0, calm_fraction=0.25)
        arguments = {"cost_names": COSTS, "cost_limits": (10.0, 0.4)}
        options = {"learning_rate": 3e-3, "init_std": 0.3, "epochs": 3}
        algorithm = make(env, arguments, lagrange=constraint, **options)
        losses = iterate(algorithm, env, 24)
        assert all(row["multiplier/effort"] == 0.0 for row in losses)
        distances[enabled] = np.mean([row["cost/distance"] for row in losses[-6:]])
    assert distances[True] < 0.52 < 0.57 < distances[False], distances
