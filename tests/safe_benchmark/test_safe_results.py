"""Numbers of a run against loops in float64, and files of results that must not be mixed or counted twice."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from results_by_hand import result

from legged_envs.envs.cfg import override
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.policy.policy import load_shipped_policy
from legged_envs.safe_benchmark.benchmark import PUBLISHED
from legged_envs.safe_benchmark.measurement import (
    BENCHMARK_SEED,
    cost_result,
    episode_costs,
    numbers_of,
    steps_per_second,
    violating_updates,
)
from legged_envs.safe_benchmark.results import notices, read_result, read_results, write_result
from legged_envs.tasks import make_task_cfg

GO2 = "Legged/Go2-Flat-v0"
SUITE = "SafeLegged-v1"


def test_numbers_of_a_rollout_are_those_of_loops(monkeypatch):
    """Every number of a small rollout in which one robot falls, one episode and one step after the other."""
    monkeypatch.setattr("legged_envs.evaluation.metrics.task.TaskMetrics.EPISODE_SECONDS", 1.2)
    cfg = override(make_task_cfg(GO2), {"costs": f"{SUITE}/Go2-Flat/medium"})
    evaluator = Evaluator(GO2, cfg, episodes=4)
    rollout = evaluator.rollout(load_shipped_policy(GO2), BENCHMARK_SEED)
    rollout.alive[37:, 2] = False
    numbers = numbers_of(rollout, evaluator)
    dt = evaluator.core.step_dt
    command = evaluator.core.commands["velocity"].double()
    evaluator.close()
    alive = rollout.alive.tolist()
    costs = rollout.measures["costs"].double().tolist()
    speeds = rollout.measures["speed_along_command"].double().tolist()
    for k, (name, cost) in enumerate(numbers["costs"].items()):
        means = []
        for i in range(4):
            counted = []
            for t in range(len(alive)):
                # The step that ends the episode counts.
                if t == 0 or alive[t - 1][i]:
                    counted.append(costs[t][i][k])
            means.append(math.fsum(counted) / len(counted))
        assert len(counted) == 60
        limit = cfg.costs[name].limit
        assert cost.limit == limit
        assert cost.mean == pytest.approx(sum(means) / 4, rel=1e-12)
        assert cost.ratio == pytest.approx(sum(means) / 4 / limit, rel=1e-12)
        assert cost.exceeded == sum(mean > limit for mean in means) / 4
        assert cost.cvar == pytest.approx(max(means), rel=1e-12)
    distances = []
    commanded = []
    for i in range(4):
        steps = [t for t in range(len(alive)) if alive[t][i]]
        distances.append(sum(speeds[t][i] for t in steps) * dt)
        commanded.append(math.hypot(*command[i, :2].tolist()) * len(steps) * dt)
    assert numbers["distance"] == pytest.approx(sum(distances) / 4, rel=1e-12)
    assert numbers["commanded_distance"] == pytest.approx(sum(commanded) / 4, rel=1e-12)
    assert numbers["falls"] == 0.25
    assert (numbers["episodes"], numbers["episode_seconds"]) == (4, pytest.approx(1.2))
    rewards = rollout.measures["reward"].double().tolist()
    returns = []
    for i in range(4):
        # The step that ends the episode has a reward.
        counted = [t for t in range(len(alive)) if t == 0 or alive[t - 1][i]]
        returns.append(math.fsum(rewards[t][i] for t in counted))
    assert numbers["episode_return"] == pytest.approx(sum(returns) / 4, rel=1e-12)
    errors = rollout.measures["lin_vel_error"].double()
    # After the first second, while the robot is upright: the third one fell before.
    assert numbers["lin_vel_error"] == pytest.approx(errors[50:, [0, 1, 3]].mean().item(), rel=1e-5)


def test_steps_after_an_episode_do_not_count():
    costs = torch.tensor([[1.0, 4.0], [3.0, 4.0], [100.0, 4.0]]).unsqueeze(-1)
    alive = torch.tensor([[True, True], [False, True], [False, True]])
    assert episode_costs(costs, alive).tolist() == [[2.0], [4.0]]


def test_the_worst_tenth_of_the_episodes():
    episodes = np.arange(1.0, 21.0)
    found = cost_result(episodes, limit=15.0)
    assert (found.mean, found.cvar, found.exceeded) == (10.5, 19.5, 0.25)
    assert found.ratio == pytest.approx(0.7)
    # At least one episode.
    assert cost_result(np.array([1.0, 3.0]), 1.0).cvar == 3.0


def test_updates_above_a_limit_are_counted_where_costs_were_measured():
    limits = {"a": 1.0, "b": 2.0}
    curve = [
        {"cost/a": 0.5, "cost/b": 2.0},
        {"cost/a": 0.5, "cost/b": 2.1},
        {"cost/a": math.nan, "cost/b": 9.0},
        {"reward": 1.0},
        {"cost/a": 1.5, "cost/b": 9.0},
        {"cost/a": 0.1, "cost/b": 0.1},
    ]
    assert violating_updates(curve, limits) == 0.5
    assert math.isnan(violating_updates([], limits))
    assert steps_per_second([{"steps_per_second": value} for value in (1.0, 5.0, 3.0)]) == 3.0


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_result_is_read_as_it_was_written(tmp_path):
    written = result(violating_updates=math.nan, distance=1.23456789)
    path = write_result(tmp_path, written)
    assert path.name == "Go2-Flat_medium_p3o_1.json"
    read = read_result(path)
    assert math.isnan(read.violating_updates)
    assert read.distance == 1.23457
    assert list(read.costs) == list(written.costs)
    assert vars(read.costs["energy"]) == pytest.approx(vars(written.costs["energy"]))
    assert read.worst == "energy"
    assert read.worst_ratio == 0.9
    assert read.is_feasible
    assert not result(ratio=1.01).is_feasible
    assert path.stat().st_size < 2500


def test_results_of_version_0_2_have_no_return(tmp_path):
    path = write_result(tmp_path, result())
    values = json.loads(path.read_text())
    del values["episode_return"]
    path.write_text(json.dumps(values))
    assert read_result(path).episode_return is None


def changed(path: Path, **entries) -> None:
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, **entries}))


def test_results_of_mixed_versions_are_refused(tmp_path):
    write_result(tmp_path, result(seed=1))
    path = write_result(tmp_path, result(seed=2, ratio=0.8))
    changed(path, suite="SafeLegged-v0")
    with pytest.raises(ValueError, match=r"SafeLegged-v1 and of SafeLegged-v0.*p3o_2"):
        read_results(tmp_path, SUITE)


def test_a_seed_that_is_there_twice_is_refused(tmp_path):
    path = write_result(tmp_path, result(seed=1))
    copy = tmp_path / "Go2-Flat_medium_p3o_2.json"
    shutil.copy(path, copy)
    with pytest.raises(ValueError, match=r"p3o_2\.json.*result of Go2-Flat_medium_p3o_1"):
        read_results(tmp_path, SUITE)
    # Also with the seed changed in the copy: no two seeds have the same numbers.
    changed(copy, seed=2)
    with pytest.raises(ValueError, match="p3o_1 and Go2-Flat_medium_p3o_2 have the same numbers"):
        read_results(tmp_path, SUITE)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("package_version", "0.2.0"),
        ("env_steps", 10),
        ("episodes", 4),
        ("evaluation_seed", 3),
    ],
)
def test_seeds_of_a_method_that_differ_in_more_than_their_seed_are_refused(entry, value, tmp_path):
    write_result(tmp_path, result(seed=1))
    write_result(tmp_path, result("ipo", seed=1, **{entry: value}))
    # Methods may differ; that is a notice.
    assert len(read_results(tmp_path, SUITE)) == 2
    write_result(tmp_path, result(seed=2, ratio=0.8, **{entry: value}))
    named = entry.replace("_", " ")
    with pytest.raises(ValueError, match=f"p3o_1 has {named}.*p3o_2 has {value}"):
        read_results(tmp_path, SUITE)


def test_limits_that_are_not_those_of_the_suite_are_refused(tmp_path):
    path = write_result(tmp_path, result())
    costs = json.loads(path.read_text())["costs"]
    limit = costs["energy"]["limit"]
    costs["energy"]["limit"] = 100.0
    changed(path, costs=costs)
    with pytest.raises(ValueError, match=f"'energy': 100.0.*'energy': {limit}"):
        read_results(tmp_path, SUITE)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"suite": 1}', "null"])
def test_a_damaged_file_is_named(text, tmp_path):
    path = tmp_path / "Go2-Flat_medium_p3o_1.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"p3o_1\.json' is not a result"):
        read_results(tmp_path, SUITE)


def test_an_empty_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no results in"):
        read_results(tmp_path, SUITE)


def test_what_limits_a_comparison_is_listed():
    complete = [result("none", 1), result("none", 2), result("p3o", 1), result("p3o", 2)]
    assert notices(complete) == []
    assert notices(complete[:3]) == ["Go2-Flat medium, p3o: missing seeds: 2"]
    assert notices([*complete[:3], result("ipo", 1)]) == [
        "Go2-Flat medium, p3o; ipo: missing seeds: 2"
    ]
    assert any("no unconstrained run" in line for line in notices(complete[2:]))
    longer = [*complete, result("ipo", 1, env_steps=10), result("ipo", 2)]
    assert notices(longer) == [
        "Go2-Flat medium: different env steps are compared: 10 and 4,976,640"
    ]
    fewer = [*complete[:3], result("p3o", 2, episodes=4)]
    assert notices(fewer) == ["Go2-Flat medium: different episodes are compared: 4 and 1,024"]
    mixed = [*complete[:3], result("p3o", 2, package_version="0.2.0")]
    assert notices(mixed) == ["trained with different versions of legged-envs: 0.1.0, 0.2.0"]


def test_the_published_results_are_complete_and_small():
    found = read_results(PUBLISHED, SUITE)
    assert all(one.episodes == 1024 and one.evaluation_seed == BENCHMARK_SEED for one in found)
    assert sum(path.stat().st_size for path in PUBLISHED.iterdir()) < 300_000
    for path in PUBLISHED.iterdir():
        # No path of the machine of the training.
        assert "/work" not in path.read_text() and "/home" not in path.read_text()
