"""Costs of an evaluation as means, as shares of episodes and as discounted sums, against a float64 loop."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import torch
from rich.console import Console

from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.evaluation.metrics.costs import cost_results
from legged_envs.tasks import make_task_cfg, make_training_defaults

NAMES = ("first", "second")
LIMITS = (0.6, 0.2)
GO2 = "Legged/Go2-Flat-v0"


def test_means_shares_and_discounted_sums_are_those_of_a_loop_over_episodes() -> None:
    rng = np.random.default_rng(0)
    costs = rng.random((6, 5, 2)).astype(np.float32) * [1.0, 0.5]
    lengths = [6, 2, 4, 6, 1]
    # The step that terminates an episode is no longer alive.
    alive = np.array(
        [[step < length - 1 or length == 6 for length in lengths] for step in range(6)]
    )
    counted = alive.copy()
    counted[:1] = False
    found = cost_results(
        torch.tensor(costs).float(),
        torch.tensor(alive),
        torch.tensor(counted),
        NAMES,
        LIMITS,
        discount=0.9,
    )
    for k, name in enumerate(NAMES):
        means = []
        sums = []
        for env, length in enumerate(lengths):
            # The step of the termination enters the sum.
            sums.append(math.fsum(0.9**step * costs[step, env, k] for step in range(length)))
            steps = [step for step in range(6) if counted[step, env]]
            if steps:
                means.append(math.fsum(costs[step, env, k] for step in steps) / len(steps))
        assert len(means) == 3
        assert found.costs[name] == pytest.approx(np.mean(means), rel=1e-6)
        share = sum(mean > LIMITS[k] for mean in means) / 3
        assert found.broken_limits[name] == pytest.approx(share)
        assert found.discounted_costs[name] == pytest.approx(np.mean(sums), rel=1e-6)
    assert 0.0 < found.broken_limits["first"] < 1.0
    assert found.cost_limits == dict(zip(NAMES, LIMITS, strict=True))
    assert found.cost_discount == 0.9


def test_an_evaluation_has_all_forms_with_the_discount_of_the_tasks_trainings() -> None:
    evaluator = Evaluator(GO2, make_task_cfg(GO2), episodes=2)
    evaluator.metrics.EPISODE_SECONDS = 0.1  # type: ignore[misc]
    result = evaluator.run(lambda observation: torch.zeros(2, 12), still=False)
    evaluator.close()
    names = set(make_task_cfg(GO2).costs)
    for values in (result.costs, result.broken_limits, result.discounted_costs):
        assert set(values) == names
    assert result.cost_discount == make_training_defaults(GO2).final_gamma
    text = io.StringIO()
    result.print(Console(file=text, width=100))
    assert "discounted sum" in text.getvalue()


def test_the_step_that_ends_an_episode_counts_after_the_first_second() -> None:
    evaluator = Evaluator(GO2, make_task_cfg(GO2), episodes=3)
    evaluator.metrics.EPISODE_SECONDS = 2.0  # type: ignore[misc]
    metrics = evaluator.metrics
    values = metrics.measures(
        evaluator._envs.reset(seed=0)[1] | evaluator._envs.step(torch.zeros(3, 12))[4]
    )
    rows = {name: value[None].repeat(100, *[1] * value.ndim) for name, value in values.items()}
    # The second robot falls in step 70, the third in the first second.
    alive = torch.ones(100, 3, dtype=torch.bool)
    alive[69:, 1] = False
    alive[20:, 2] = False
    rows["costs"] = torch.zeros(100, 3, len(evaluator.core.cost_names))
    rows["costs"][69, 1] = 1.0
    result = metrics.result(rows, alive)
    evaluator.close()
    assert all(cost == pytest.approx(0.5 / 20) for cost in result.costs.values())
    assert set(result.broken_limits.values()) <= {0.0, 0.5}
