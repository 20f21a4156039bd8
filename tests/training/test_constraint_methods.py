"""Constraint methods: each loss and update against its paper in float64, and toys with known constrained optima."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch.distributions import Normal, kl_divergence

from legged_envs.training.learner.constraint_methods import METHODS
from legged_envs.training.learner.constraint_methods.method import ConstraintMethod, Sample
from legged_envs.training.learner.lagrange import Lagrange
from legged_envs.training.learner.method_constraints import MethodConstraints
from legged_envs.training.learner.parts import make_method_constraints
from legged_envs.training.learner_options import ConstraintCfg, LagrangeCfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.standing_check import check_standing
from legged_envs.training.trainer import Trainer

CLIP = 0.2
CPU = torch.device("cpu")


def method_of(name: str, num_costs: int = 2, **cfg: Any) -> ConstraintMethod:
    return METHODS[name](num_costs, ConstraintCfg(**cfg), CPU)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def sample_of(ratio: np.ndarray, advantages: np.ndarray, costs: np.ndarray, **more: Any) -> Sample:
    tensors = [torch.tensor(values) for values in (ratio, advantages, costs)]
    return Sample(
        ratio=tensors[0], advantages=tensors[1], cost_advantages=tensors[2], clip=CLIP, **more
    )


RATIO = np.exp(0.3 * numbers(40, seed=1))
ADVANTAGES = numbers(40, seed=2)
COSTS = numbers(40, 2, seed=3) * [3.0, 0.7]
COSTS -= COSTS.mean(0)
EXCESS = np.array([0.4, -0.9])


def reward_loss() -> float:
    """PPO's clipped surrogate loss, one transition after the other."""
    gains = []
    for ratio, advantage in zip(RATIO, ADVANTAGES, strict=True):
        clipped = min(max(ratio, 1 - CLIP), 1 + CLIP)
        gains.append(min(ratio * advantage, clipped * advantage))
    return -sum(gains) / len(gains)


def pessimistic_costs(costs: np.ndarray) -> np.ndarray:
    """E[max(r A, clip(r) A)] of each cost."""
    clipped = np.clip(RATIO, 1 - CLIP, 1 + CLIP)
    return np.maximum(RATIO[:, None] * costs, clipped[:, None] * costs).mean(0)


def loss_of(method: ConstraintMethod, **more: Any) -> float:
    method.excess = torch.tensor(EXCESS)
    return method.loss(sample_of(RATIO, ADVANTAGES, COSTS, **more)).item()


# --- formulas ---------------------------------------------------------------------------------------------------------


def test_p3o_adds_kappa_times_the_limits_that_the_new_policy_breaks() -> None:
    broken = pessimistic_costs(COSTS) + EXCESS
    assert broken[0] > 0.0 > broken[1]
    expected = reward_loss() + 3.0 * broken[0]
    assert loss_of(method_of("p3o", kappa=3.0)) == pytest.approx(expected, rel=1e-12)


def test_np3o_divides_advantages_and_excess_by_the_deviation_and_its_factor_grows() -> None:
    method = method_of("np3o", kappa_initial=0.1, kappa_growth=1.5, kappa_maximum=0.3)
    method.weigh(torch.zeros(10, 4, 1), torch.tensor(COSTS).reshape(10, 4, 2))
    std = COSTS.std(0)
    for expected_kappa in (0.15, 0.225, 0.3, 0.3):
        method.measure(torch.tensor(EXCESS))
        broken = pessimistic_costs(COSTS / std) + EXCESS / std
        expected = reward_loss() + expected_kappa * np.maximum(broken, 0.0).sum()
        assert loss_of(method) == pytest.approx(expected, rel=1e-12)


def test_ipo_is_a_logarithmic_barrier_to_thresholds_that_adapt() -> None:
    method = method_of("ipo", barrier=20.0, margin=0.3)
    # The first limit is broken by 0.4: its threshold is J + 0.3. The second has 0.9 left.
    change = ((RATIO - 1.0)[:, None] * COSTS).mean(0)
    room = np.array([0.3, 0.9]) - change
    assert (room > 0.15).all()
    expected = reward_loss() - np.log(room).sum() / 20.0
    assert loss_of(method) == pytest.approx(expected, rel=1e-12)
    expected_multipliers = [1 / (20.0 * 0.3), 1 / (20.0 * 0.9)]
    assert method.report()["multiplier"].tolist() == pytest.approx(expected_multipliers)


def test_ipo_continues_its_barrier_by_a_tangent_beyond_the_threshold() -> None:
    method = method_of("ipo", num_costs=1, barrier=1.0, margin=0.2)
    method.excess = torch.tensor([0.5], dtype=torch.float64)
    ratio = torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
    sample = Sample(
        ratio=ratio,
        advantages=torch.zeros(1, dtype=torch.float64),
        cost_advantages=torch.ones(1, 1, dtype=torch.float64),
        clip=CLIP,
    )
    loss = method.loss(sample)
    loss.backward()
    # The room is 0.2 − 0.5 = −0.3; the tangent touches the logarithm at half the margin, 0.1.
    assert loss.item() == pytest.approx(-(math.log(0.1) + (-0.3 - 0.1) / 0.1))
    assert ratio.grad is not None and ratio.grad.item() == pytest.approx(1 / 0.1)


def test_crpo_lowers_the_most_broken_cost_and_else_raises_the_reward() -> None:
    method = method_of("crpo", num_costs=3, tolerance=0.1)
    advantages = torch.tensor(numbers(5, 4, 1))
    costs = torch.tensor(numbers(5, 4, 3, seed=4)) * torch.tensor([2.0, 3.0, 4.0])
    method.measure(torch.tensor([0.09, -1.0, 0.05]))
    assert torch.equal(method.weigh(advantages, costs), advantages)
    assert method.report()["lowered"].tolist() == [0.0, 0.0, 0.0]
    method.measure(torch.tensor([0.2, 0.5, 0.11]))
    column = costs[..., 1:2].numpy()
    expected = -column / column.std()
    np.testing.assert_allclose(method.weigh(advantages, costs), expected, rtol=1e-12)
    assert method.report()["lowered"].tolist() == [0.0, 1.0, 0.0]


def test_focops_is_the_divergence_minus_the_gain_over_the_states_that_are_near() -> None:
    generator = torch.Generator().manual_seed(0)
    old_mean, new_mean = torch.randn(2, 40, 3, dtype=torch.float64, generator=generator) * 0.1
    old, new = Normal(old_mean, 0.5), Normal(new_mean, 0.45)
    kl = kl_divergence(new, old).sum(1)
    # The closed form of KL(new ‖ old), by hand.
    by_hand = (
        np.log(0.5 / 0.45) + (0.45**2 + (new_mean - old_mean).numpy() ** 2) / (2 * 0.5**2) - 0.5
    ).sum(1)
    near = by_hand <= 0.1
    assert 5 < near.sum() < 35
    expected = ((by_hand - RATIO * ADVANTAGES / 1.3) * near).mean()
    method = method_of("focops", temperature=1.3, kl_limit=0.1)
    assert loss_of(method, kl=kl) == pytest.approx(expected, rel=1e-10)


def test_multipliers_of_focops_follow_the_excess_and_weigh_the_advantages() -> None:
    method = method_of("focops", nu_rate=0.1, nu_maximum=0.25)
    for expected in ([0.1, 0.0], [0.2, 0.0], [0.25, 0.0]):
        method.measure(torch.tensor([7.0, -0.5]))
        assert method.report()["multiplier"].tolist() == pytest.approx(expected)
    method.measure(torch.tensor([-0.5, 0.3]))
    nu = np.array([0.2, 0.03])
    advantages = numbers(10, 4, 1)
    costs = COSTS.reshape(10, 4, 2)
    deviations = np.maximum(COSTS.std(0), 1.0)  # never amplified: the second is below 1
    expected_advantages = advantages[..., 0] - (costs / deviations) @ nu
    weighed = method.weigh(torch.tensor(advantages).float(), torch.tensor(costs).float())
    np.testing.assert_allclose(weighed[..., 0], expected_advantages, atol=1e-6)


def test_a_fixed_penalty_weighs_every_cost_with_one_constant() -> None:
    method = method_of("fixed", penalty=0.4)
    advantages = numbers(10, 4, 1)
    costs = COSTS.reshape(10, 4, 2)
    standard = costs / np.maximum(COSTS.std(0), 1.0)
    expected = (advantages[..., 0] - 0.4 * standard.sum(2)) / (1.0 + 2 * 0.4)
    weighed = method.weigh(torch.tensor(advantages), torch.tensor(costs))
    np.testing.assert_allclose(weighed[..., 0], expected, rtol=1e-10)
    assert loss_of(method) == pytest.approx(reward_loss(), rel=1e-12)


def test_cat_discounts_rewards_by_the_worst_cost_and_its_probabilities_follow_the_excess() -> None:
    numbers_of_cat = {"initial_probability": 0.1, "min_probability": 0.02, "max_probability": 0.5}
    adaptation = {"probability_rate": 0.3, "probability_gain": 2.0, "tau": 0.75}
    method = method_of("cat", **numbers_of_cat, **adaptation)
    base = np.full(2, 0.1)
    probabilities = base
    maxima = None
    excesses = [[3.0, -0.5], [1.0, -0.9], [-0.2, 0.1]]
    for step, excess in enumerate(excesses):
        costs = np.abs(numbers(6, 2, seed=step)) * [2.0, 0.1]
        rewards = np.linspace(-0.5, 2.0, 6)
        largest = costs.max(0)
        maxima = largest if maxima is None else 0.75 * maxima + 0.25 * largest
        delta = (probabilities * np.clip(costs / maxima, 0.0, 1.0)).max(1)
        shaped, continuation = method.shape(torch.tensor(rewards), torch.tensor(costs))
        np.testing.assert_allclose(shaped, np.maximum(rewards * (1.0 - delta), 0.0), rtol=1e-12)
        np.testing.assert_allclose(continuation, 1.0 - delta, rtol=1e-12)
        method.measure(torch.tensor(excess, dtype=torch.float64))
        bounded = np.minimum(excess, 1.0)
        base = np.clip(base * np.exp(0.3 * bounded), 0.02, 0.5)
        probabilities = np.clip(base * np.exp(2.0 * bounded), 0.02, 0.5)
        np.testing.assert_allclose(method.report()["probability"], probabilities, rtol=1e-12)
    # The lower bound holds, and the second cost, which is above its limit, is ahead of its base.
    assert probabilities[0] == pytest.approx(base[0] * np.exp(-0.4))
    assert probabilities[1] > base[1]


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_method_continues_as_if_it_had_never_stopped(name: str) -> None:
    whole, resumed = method_of(name), method_of(name)
    whole.shape(torch.ones(4), torch.tensor(COSTS[:4]))
    whole.measure(torch.tensor([0.3, -0.2]))
    resumed.load_state_dict(whole.state_dict())
    for method in (whole, resumed):
        method.shape(torch.ones(4), torch.tensor(COSTS[4:8]))
        method.measure(torch.tensor([0.1, 0.2]))
    saved, loaded = whole.state_dict(), resumed.state_dict()
    assert saved.keys() == loaded.keys()
    assert all(torch.equal(saved[key], loaded[key]) for key in saved)


# --- toys -------------------------------------------------------------------------------------------------------------


class Multiplier(ConstraintMethod):
    """The PID-controlled multipliers of ``--constraint.method lagrange``, in the interface of the other methods."""

    def __init__(self) -> None:
        super().__init__(1, ConstraintCfg(), CPU)
        cfg = LagrangeCfg(enabled=True, integral=0.15, proportional=0.5, maximum=8.0)
        self.lagrange = Lagrange(("cost",), (1.0,), 0.0, cfg, CPU, with_reference=False)

    def measure(self, excess: torch.Tensor) -> None:
        self.lagrange.ascend((1.0 + excess).reshape(1, 1, 1).float(), None)

    def weigh(self, advantages: torch.Tensor, cost_advantages: torch.Tensor) -> torch.Tensor:
        combined = advantages.float()
        self.lagrange.combine_(combined, cost_advantages.float(), None)
        return combined.double()


def toy_method(name: str, **cfg: Any) -> ConstraintMethod:
    """A method with numbers for toys, in which a rollout has no noise."""
    if name == "lagrange":
        return Multiplier()
    numbers = {"kappa_initial": 2.0, "kappa_maximum": 2.0, "margin": 5e-3}
    numbers |= {"kl_limit": 0.5, "nu_rate": 0.2, "nu_maximum": 8.0}
    return method_of(name, num_costs=1, **numbers | cfg)


SWITCHING = ("p3o", "np3o", "crpo")
"""Methods with a gradient that jumps at the limit: they converge only as the learning rate falls."""


def shrinking(step: int, steps: float) -> float:
    """Factor on the learning rate of methods of SWITCHING."""
    return 1.0 / (1.0 + step / steps)


def update(
    method: ConstraintMethod,
    log_prob: Any,
    parameter: torch.Tensor,
    rate: float,
    rewards: torch.Tensor,
    costs: torch.Tensor,
    kl: Any,
) -> float:
    """One update of a policy in a problem of one step, with three gradient steps. Returns J, the mean cost / limit.

    ``log_prob`` and ``kl`` return the log-probabilities of the sampled actions and the divergence, as functions of the
    parameter.
    """
    mean_cost = costs.mean()
    rewards, _ = method.shape(rewards, costs.reshape(-1, 1))
    method.measure((mean_cost - 1.0).reshape(1))
    advantages = (rewards - rewards.mean()) / rewards.std(correction=0)
    cost_advantages = costs - mean_cost
    weighed = method.weigh(advantages.reshape(-1, 1, 1), cost_advantages.reshape(-1, 1, 1))
    before = log_prob(parameter).detach()
    old = parameter.detach().clone()
    for _ in range(3):
        sample = Sample(
            ratio=(log_prob(parameter) - before).exp(),
            advantages=weighed.flatten(),
            cost_advantages=cost_advantages.reshape(-1, 1),
            clip=CLIP,
            kl=kl(parameter, old) if method.needs_kl else None,
        )
        (gradient,) = torch.autograd.grad(method.loss(sample), parameter)
        parameter.data -= rate * gradient
    return mean_cost.item()


@pytest.mark.parametrize("name", ["p3o", "np3o", "ipo", "crpo", "focops", "cat", "lagrange"])
def test_a_two_armed_bandit_is_pulled_as_often_as_its_limit_allows(name: str) -> None:
    """Arm 1 earns 2 and costs 1, arm 0 earns 1. With at most 0.3 of cost, the best policy pulls arm 1 with p = 0.3.

    A fixed penalty prefers one arm or the other: both optima are corners.
    """
    limit = 0.3
    method = toy_method(name, kappa=1.5, barrier=150.0)
    logit = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    # Multipliers that only integrate circle around the optimum: slowly, and in the mean on it.
    steps = {"focops": 500, "ipo": 250}.get(name, 200)
    rate = {"focops": 0.02, "ipo": 0.02}.get(name, 0.3)
    costs = []
    for step in range(steps):
        # As many pulls of each arm as the policy expects: a rollout without noise.
        arm = torch.zeros(1000, dtype=torch.float64)
        arm[: round(1000 * torch.sigmoid(logit).item())] = 1.0
        signs = 2.0 * arm - 1.0

        def log_prob(parameter: torch.Tensor, signs: torch.Tensor = signs) -> torch.Tensor:
            return torch.nn.functional.logsigmoid(parameter * signs)

        def kl(parameter: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
            new_p, old_p = torch.sigmoid(parameter), torch.sigmoid(old)
            pulled = new_p * (new_p / old_p).log()
            return (pulled + (1 - new_p) * ((1 - new_p) / (1 - old_p)).log()).expand(1000)

        factor = shrinking(step, 50) if name in SWITCHING else 1.0
        costs.append(update(method, log_prob, logit, factor * rate, 1.0 + arm, arm / limit, kl))
    assert np.mean(costs[-steps // 2 :]) == pytest.approx(1.0, abs=0.02)


METHODS_OF_LQR = ["fixed", "p3o", "np3o", "ipo", "crpo", "focops", "cat", "lagrange"]


@pytest.mark.parametrize("name", METHODS_OF_LQR)
def test_the_optimum_of_a_constrained_lqr_is_found(name: str) -> None:
    """One step of x' = x + u from x = 1 with u = −k + σ ε: the gain k trades the state's cost x'² for the effort u².

    Reward 2 − x'²; the limit of E[u²] is 0.5. Without it k = 1. With σ = 0.1, E[u²] = k² + 0.01, so that k* = √0.49 = 0.7.
    """
    limit, sigma, steps = 0.5, 0.1, 200
    gain = torch.full((1,), 0.9, dtype=torch.float64, requires_grad=True)
    # Quantiles of the normal distribution, with its variance: a rollout without noise.
    noise = Normal(0.0, 1.0).icdf((torch.arange(200, dtype=torch.float64) + 0.5) / 200)
    noise = noise / noise.std(correction=0)
    # A fixed penalty must be the multiplier of the optimum: slope of the reward, divided by its deviation over the
    # noise, per slope of cost / limit, the deviation of which is below 1.
    slope = 2 * 0.3 / math.sqrt(4 * 0.3**2 * sigma**2 + 2 * sigma**4)
    method = toy_method(name, penalty=slope / (2 * 0.7 / limit), kappa=5.0, barrier=30.0)
    costs = []
    for step in range(steps):
        force = (-gain + sigma * noise).detach()

        def log_prob(parameter: torch.Tensor, force: torch.Tensor = force) -> torch.Tensor:
            return -0.5 * ((force + parameter) / sigma).square()

        def kl(parameter: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
            return ((parameter - old).square() / (2 * sigma**2)).expand(200)

        rate = 5e-4 if name == "ipo" else 5e-3
        if name in SWITCHING:
            rate *= shrinking(step, 20)
        reward = 2.0 - (1.0 + force).square()
        costs.append(update(method, log_prob, gain, rate, reward, force.square() / limit, kl))
    assert np.mean(costs[-steps // 4 :]) == pytest.approx(1.0, abs=0.02)
    assert gain.item() == pytest.approx(0.7, rel=0.02)


# --- in PPO -----------------------------------------------------------------------------------------------------------


def constraint(**cfg: Any) -> ConstraintCfg:
    return ConstraintCfg(**{"method": "p3o", **cfg})


def prepared_with(changes: dict[str, Any] | None = None, **options: Any) -> None:
    algo = PPOCfg(**options)
    prepare(TrainCfg("Legged/Go2-Flat-v0", algo=algo, changes=changes or {}, video=False))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": constraint(method="cpo")}, "constraint.method.*'cpo'"),
        ({"constraint": constraint(costs=("heat",))}, "constraint.costs.*'heat'"),
        ({"constraint": constraint(costs=("foot_slip", "foot_slip"))}, "'foot_slip' twice"),
        ({"constraint": constraint(max_probability=1.5)}, "constraint.max-probability.*1.5"),
        ({"constraint": constraint(barrier=0.0)}, "constraint.barrier.*0"),
        ({"constraint": constraint(start=1.2)}, "constraint.start.*1.2"),
        ({"constraint": constraint(method="none", costs=("foot_slip",))}, "foot_slip"),
        ({"constraint": constraint(), "lagrange": LagrangeCfg(enabled=True)}, "lagrange.*p3o"),
        ({"constraint": constraint(method="none", aim=0.5)}, "constraint.aim needs .*method"),
        (
            {"constraint": ConstraintCfg(start=0.5), "lagrange": LagrangeCfg(enabled=True)},
            "constraint.start needs .*method",
        ),
        ({"lagrange": LagrangeCfg(costs=("foot_slip",))}, "lagrange.costs needs .*enabled"),
        ({"constraint": constraint(), "lagrange": LagrangeCfg(integral=1.0)}, "lagrange.integral"),
        (
            {"constraint": constraint(method="lagrange", calm_fraction=0.5)},
            "constraint.calm-fraction 0.5.*--lagrange.calm-fraction",
        ),
        (
            {
                "constraint": constraint(method="lagrange", costs=("foot_slip",)),
                "lagrange": LagrangeCfg(costs=("joint_torque",)),
            },
            "foot_slip and .*joint_torque",
        ),
    ],
)
def test_a_method_or_a_cost_that_does_not_exist_is_named(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        prepared_with(**options)


@pytest.mark.parametrize("limit", [0.0, -0.1])
def test_a_limit_that_is_not_above_zero_is_named(limit: float) -> None:
    with pytest.raises(ValueError, match=f"foot_slip.*{limit}"):
        prepared_with({"costs.foot_slip.limit": limit}, constraint=constraint())
    with pytest.raises(ValueError, match=f"'two'.*{limit}"):
        make_method_constraints(
            constraint(), ("one", "two"), (0.1, limit), discount=0.9, num_envs=4, device=CPU
        )
    changes = {"costs.foot_slip.limit": limit}
    with pytest.raises(ValueError, match=f"foot_slip.limit with --lagrange.enabled .*{limit}"):
        prepared_with(changes, lagrange=LagrangeCfg(enabled=True))
    prepared_with(changes, lagrange=LagrangeCfg(enabled=True, costs=("joint_torque",)))
    prepared_with(changes, constraint=constraint(method="lagrange", costs=("joint_torque",)))


@pytest.mark.parametrize(
    ("method", "enabled", "chosen", "of_lagrange", "expected"),
    [
        ("none", False, (), ("a",), ()),
        ("none", True, (), ("a",), ("a",)),
        ("none", True, (), (), ("a", "b", "c")),
        ("lagrange", False, (), ("a",), ("a",)),
        ("lagrange", False, ("b",), ("a",), ("b",)),
        ("p3o", False, (), ("a",), ("a", "b", "c")),
        ("p3o", False, ("c", "b"), (), ("c", "b")),
    ],
)
def test_the_costs_that_a_training_constrains(
    method: str, enabled: bool, chosen: Any, of_lagrange: Any, expected: tuple[str, ...]
) -> None:
    algo = PPOCfg(
        constraint=constraint(method=method, costs=chosen),
        lagrange=LagrangeCfg(enabled=enabled, costs=of_lagrange),
    )
    assert algo.constrained_costs(("a", "b", "c")) == expected


def test_methods_see_costs_in_units_of_their_limits_measured_without_noise() -> None:
    part = make_method_constraints(
        constraint(costs=("two", "one"), calm_fraction=0.5),
        ("one", "other", "two"),
        (0.5, 7.0, 0.01),
        discount=0.9,
        num_envs=4,
        device=CPU,
    )
    assert (part.num_costs, part.calm_envs, part.names) == (2, 2, ("two", "one"))
    costs = torch.tensor([[0.25, 9.0, 0.03]]).repeat(4, 1)
    costs[2:] *= 10.0  # by exploration
    storage = SimpleNamespace(
        cost_rewards=torch.stack([stored_costs(part, costs, step) for step in range(3)]),
        cost_advantages=0.1 * torch.tensor(numbers(3, 4, 2)).float(),
        advantages=torch.tensor(numbers(3, 4, 1, seed=1)).float(),
    )
    before = storage.advantages.clone()
    batch = SimpleNamespace(indices=torch.tensor([0, 6, 11]))
    report = part.prepare(storage, [batch])  # type: ignore[arg-type,list-item]
    assert report["cost/two"] == pytest.approx(0.03) and report["cost/one"] == pytest.approx(0.25)
    assert part.method.excess.tolist() == pytest.approx([2.0, -0.5])
    assert batch.advantages.flatten().tolist() == [0.0, *before.flatten()[[6, 11]].tolist()]
    expected = numbers(3, 4, 2) - numbers(3, 4, 2).mean((0, 1))
    np.testing.assert_allclose(
        batch.cost_advantages, [[0.0, 0.0], expected[1, 2], expected[2, 3]], atol=1e-5
    )


def stored_costs(part: MethodConstraints, costs: torch.Tensor, index: int) -> torch.Tensor:
    step = SimpleNamespace(index=index, extras={"costs": costs}, transition=SimpleNamespace())
    part.collect(step, torch.zeros(len(costs)))  # type: ignore[arg-type]
    stored: torch.Tensor = step.transition.cost_rewards
    return stored


def trainer_with(constraints: ConstraintCfg, lagrange: LagrangeCfg) -> Trainer:
    algo = PPOCfg(steps_per_env=4, epochs=2, mini_batches=2, hidden=(16,))
    algo = replace(algo, constraint=constraints, lagrange=lagrange)
    cfg = TrainCfg("Legged/Go2-Flat-v0", num_envs=16, iterations=4, video=False, algo=algo)
    trainer = Trainer(prepare(cfg), Console(quiet=True))
    trainer.set_schedule()
    return trainer


def test_the_method_lagrange_is_the_option_lagrange_to_the_bit(
    assert_same: Callable[..., None],
) -> None:
    costs = ("foot_slip", "joint_torque")
    gains = LagrangeCfg(integral=0.3)
    by_option = trainer_with(ConstraintCfg(), replace(gains, enabled=True, costs=costs))
    by_option.iterate()
    by_method = trainer_with(
        ConstraintCfg(method="lagrange", costs=costs, start=0.0, aim=1.0), gains
    )
    by_method.iterate()
    assert_same(by_option.algorithm.save(), by_method.algorithm.save())


@pytest.mark.parametrize("name", ["crpo", "lagrange"])
def test_a_method_does_not_act_before_its_start(
    name: Any, assert_same: Callable[..., None]
) -> None:
    cfg = ConstraintCfg(method=name, costs=("foot_slip",), start=0.5)
    initial = 0.5 if name == "lagrange" else 0.0
    constrained = trainer_with(cfg, LagrangeCfg(initial=initial))
    free = trainer_with(ConstraintCfg(), LagrangeCfg())
    part = constrained.algorithm.constraints
    for _ in range(2):
        assert not part.is_active and constrained.algorithm.calm_envs == 0
        for trainer in (constrained, free):
            trainer.iterate()
            trainer.set_schedule()
    assert part.is_active and constrained.algorithm.calm_envs == 1
    for network in ("actor", "critic"):
        assert_same(*(trainer.algorithm.save()[network] for trainer in (constrained, free)))
    constrained.iterate()
    free.iterate()
    with pytest.raises(AssertionError):
        assert_same(*(trainer.algorithm.save()["actor"] for trainer in (constrained, free)))


def test_a_run_that_is_resumed_for_longer_goes_on_with_its_constraints(tmp_path: Path) -> None:
    cfg = ConstraintCfg(method="crpo", costs=("foot_slip",), start=0.5)
    algo = PPOCfg(steps_per_env=4, epochs=1, mini_batches=2, hidden=(16,), constraint=cfg)
    options: Any = {"num_envs": 16, "iterations": 4, "video": False, "algo": algo}
    for updates, acts in ((1, False), (3, True)):
        folder = tmp_path / str(updates)
        folder.mkdir()
        prepared = prepare(TrainCfg("Legged/Go2-Flat-v0", run_dir=folder, **options))
        trainer = Trainer(prepared, Console(quiet=True))
        for _ in range(updates):
            trainer.set_schedule()
            trainer.iterate()
        trainer.save()
        longer = TrainCfg("Legged/Go2-Flat-v0", resume=folder, iterations=40)
        resumed = Trainer(prepare(longer), Console(quiet=True))
        resumed.set_schedule()
        assert resumed.algorithm.constraints.is_active == acts
        # Interrupted before the new share of the training, and resumed once more.
        resumed.iterate()
        resumed.save()
        again = Trainer(prepare(TrainCfg("Legged/Go2-Flat-v0", resume=folder)), Console(quiet=True))
        again.set_schedule()
        assert again.algorithm.constraints.is_active == acts


def test_a_limit_whose_aim_is_below_the_cost_of_standing_is_named() -> None:
    changes = {"costs.joint_torque.params.soft_limit": 0.01, "costs.joint_torque.limit": 0.9}
    cfg = TrainCfg("Legged/Go2-Flat-v0", video=False, changes=changes)
    method = PPOCfg(constraint=constraint(costs=("joint_torque",)))
    with pytest.raises(ValueError, match=r"aims at 0\.75 of it.*--constraint\.costs"):
        check_standing(prepare(replace(cfg, algo=method)))
    plain = LagrangeCfg(enabled=True, costs=("joint_torque",))
    check_standing(prepare(replace(cfg, algo=PPOCfg(lagrange=plain))))
    changes["costs.joint_torque.limit"] = 0.5
    with pytest.raises(ValueError, match=r"--lagrange\.costs"):
        check_standing(prepare(replace(cfg, algo=PPOCfg(lagrange=plain))))


@pytest.mark.parametrize(("name", "stride"), [("np3o", 1), ("focops", 3)])
def test_a_method_trains_a_robot_with_a_critic_for_each_cost(name: Any, stride: int) -> None:
    costs = ("foot_slip", "joint_torque")
    constraints = ConstraintCfg(method=name, costs=costs, start=0.0, critic_stride=stride)
    trainer = trainer_with(constraints, LagrangeCfg())
    critic = trainer.algorithm.cost_critic
    sizes: list[int] = []
    critic.mlp.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    row = trainer.iterate()
    # 4 steps of 16 robots, then the last values, then 2 passes over 2 mini-batches of 32 rows. With
    # a stride of 3, the first pass has the steps 0 and 3, the second pass the step 1.
    passes = [sum(sizes[5:7]), sum(sizes[7:9])]
    assert passes == {1: [64, 64], 3: [32, 16]}[stride]
    assert len(sizes) == 9
    assert {"loss_cost/foot_slip", "loss_cost/joint_torque", "loss_cost_value"} <= row.keys()
    assert np.isfinite(list(row.values())).all()
    returns = trainer.algorithm.storage.cost_returns
    assert returns is not None and returns.shape == (4, 16, 2)
    # Both critics share the statistics, which count each observation once.
    assert critic.obs_normalizer.count == trainer.algorithm.critic.obs_normalizer.count == 4 * 16
    saved = trainer.algorithm.save()
    trainer.algorithm.load(saved)


def test_cat_trains_a_robot_without_a_critic_of_costs() -> None:
    costs = ("foot_slip", "joint_torque")
    constraints = ConstraintCfg(method="cat", costs=costs, start=0.0, initial_probability=0.5)
    trainer = trainer_with(constraints, LagrangeCfg())
    row = trainer.iterate()
    assert {"loss_cost/foot_slip", "loss_probability/joint_torque"} <= row.keys()
    assert "loss_cost_value" not in row and trainer.algorithm.storage.cost_returns is None
    continuation = trainer.algorithm.constraints.continuation()
    assert continuation.shape == (4, 16)
    assert 0.5 <= continuation.min() < continuation.max() <= 1.0
    trainer.iterate()
    saved = trainer.algorithm.save()
    trainer.algorithm.load(saved)


def test_probabilities_of_cat_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"max_probability.*0\.2.*0\.1"):
        method_of("cat", min_probability=0.2, max_probability=0.1)
