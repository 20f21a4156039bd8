"""Aggregates over tasks, limit sweeps and multiplier profiles of results whose answers are known."""

from __future__ import annotations

import itertools
import math
import shlex
from dataclasses import replace

import numpy as np
import pytest
from results_by_hand import result, seeds_of

from legged_envs import cli, make_task_cfg
from legged_envs.cli.command_line import parse_options
from legged_envs.envs.cfg import override
from legged_envs.envs.cost_suites import level_name
from legged_envs.safe_benchmark.aggregate import (
    aggregate,
    aggregate_improvement_table,
    aggregate_table,
)
from legged_envs.safe_benchmark.benchmark import summary_tables
from legged_envs.safe_benchmark.method import command_of
from legged_envs.safe_benchmark.methods import profile_methods
from legged_envs.safe_benchmark.options import BenchmarkCfg
from legged_envs.safe_benchmark.plan import plan_runs
from legged_envs.safe_benchmark.run import run_in
from legged_envs.safe_benchmark.statistics import improvement_estimate, profile
from legged_envs.safe_benchmark.summary_page import profile_figures, summaries
from legged_envs.safe_benchmark.sweep_rows import (
    limit_sweeps,
    limit_table,
    multiplier_profiles,
    profile_table,
    share_of_unconstrained,
)

TASKS = ("Go2-Flat", "G1-Flat")


def column(values: list[float]) -> np.ndarray:
    return np.array(values)[:, None]


# --- over tasks and levels --------------------------------------------------------------------------------------------


@pytest.fixture
def results():
    """Two tasks. Errors are relative to 0.08 m/s, the error of the unconstrained seeds of each task."""
    found = []
    for task in TASKS:
        for seed in (1, 2, 3, 4):
            found.append(result("none", seed, ratio=2.0 + 0.1 * seed, error=0.08, task=task))
    ratios = {"Go2-Flat": [0.5, 0.7, 0.9, 1.1], "G1-Flat": [0.6, 0.8, 1.0, 1.2]}
    for task, values in ratios.items():
        for seed, ratio in enumerate(values, start=1):
            found.append(result("p3o", seed, ratio, error=0.08 * ratio, task=task))
            found.append(result("ipo", seed, ratio + 0.05, error=0.16, task=task))
    return found


def test_the_aggregate_pools_the_runs_of_all_tasks(results):
    found = aggregate(results)
    assert found.settings == (("Go2-Flat", "medium"), ("G1-Flat", "medium"))
    assert found.notices == []
    none, p3o, ipo = found.methods
    assert [none.method, p3o.method, ipo.method] == ["none", "p3o", "ipo"]
    assert (p3o.n, p3o.seeds, p3o.feasible, ipo.feasible) == (8, (1, 2, 3, 4), 6, 5)
    # Of 0.5, 0.6, … 1.2 the middle four.
    assert p3o.ratio.value == pytest.approx(np.mean([0.7, 0.8, 0.9, 1.0]))
    assert p3o.error.value == pytest.approx(p3o.ratio.value)
    assert none.error.value == pytest.approx(1.0)
    # Resamples stay in their task: the interval is that of 4 × 4 draws, not of 8.
    assert 0.6 < p3o.ratio.low < p3o.ratio.value < p3o.ratio.high < 1.1
    cells = aggregate_table(found)[2]
    assert cells[1][:3] == ["p3o", "4 × 2", "6 of 8"]


def test_the_profile_counts_the_runs_of_all_tasks(results):
    p3o = aggregate(results).methods[1]
    found = profile(p3o.ratios, np.array([0.45, 0.55, 0.95, 1.3]))
    assert found.shares.tolist() == [0.0, 1 / 8, 5 / 8, 1.0]


def test_the_probability_of_improvement_is_a_mean_over_tasks(results):
    found = aggregate(results)
    _, header, cells = aggregate_improvement_table(found, "ratio")
    assert list(header) == ["method", "none", "p3o", "ipo"]
    assert cells[1][1] == "1.00 [1.00, 1.00]"
    # In each task, of 16 pairs: run i beats runs i, i + 1, … of the other method.
    assert cells[1][3].startswith("0.62 [") or cells[1][3].startswith("0.63 [")
    assert cells[2][2].startswith("0.38 [") or cells[2][2].startswith("0.37 [")
    assert aggregate_improvement_table(found, "error")[2][0][3] == "1.00 [1.00, 1.00]"


def test_methods_and_seeds_that_are_not_everywhere_are_left_out_by_name(results):
    fewer = [one for one in results if (one.method, one.task) != ("ipo", "G1-Flat")]
    fewer = [one for one in fewer if (one.method, one.task, one.seed) != ("p3o", "G1-Flat", 3)]
    found = aggregate(fewer)
    assert [each.method for each in found.methods] == ["none", "p3o"]
    assert found.methods[1].seeds == (1, 2, 4)
    assert found.methods[1].n == 6
    assert found.notices == [
        "all tasks, p3o: seeds left out, because not all tasks and levels have them: 3",
        "all tasks, ipo: left out, because they lack G1-Flat medium",
    ]


def test_one_task_needs_no_aggregate_and_a_sweep_is_none(results):
    go2 = [one for one in results if one.task == "Go2-Flat"]
    assert aggregate(go2) is None
    # A factor is a point of a limit sweep.
    assert aggregate([*go2, result(level="2.5"), result("none", level="2.5")]) is None
    # A setting with unconstrained runs alone says nothing about methods.
    assert aggregate([*go2, result("none", level="tight")]) is None


def test_the_interval_of_an_improvement_is_that_of_all_resamples():
    scores, others = [1.0, 2.0, 3.0], [1.5, 2.5]
    found = improvement_estimate(column(scores), column(others))
    assert found.value == pytest.approx(3 / 6)
    exact = []
    for drawn in itertools.product(scores, repeat=3):
        for drawn_others in itertools.product(others, repeat=2):
            exact.append(np.mean([x < y for x in drawn for y in drawn_others]))
    low, high = np.percentile(exact, [2.5, 97.5])
    assert found.low == pytest.approx(low, abs=0.17)
    assert found.high == pytest.approx(high, abs=0.17)
    # Both are resampled independently, also two that are equal.
    same = improvement_estimate(column(scores), column(scores))
    assert same.value == 0.5
    assert same.high - same.low > 0.4
    assert math.isnan(improvement_estimate(column([1.0]), column(others)).low)


# --- limit sweeps -----------------------------------------------------------------------------------------------------


def test_a_factor_is_a_level():
    assert [level_name(level) for level in ("tight", "2", 2.0, "2.50", 1.3)] == [
        "tight",
        "medium",
        "medium",
        "2.5",
        "loose",
    ]
    for wrong in ("hard", "0", "-1", "nan", "inf"):
        with pytest.raises(ValueError, match=f"'{wrong}'.*loose, medium, tight, or a factor"):
            level_name(wrong)


def test_a_factor_divides_the_binding_limits():
    costs = override(make_task_cfg("Legged/Go2-Flat-v0"), {"costs": "SafeLegged-v1/Go2-Flat/2.5"})
    limits = {name: cost.limit for name, cost in costs.costs.items()}
    # 24.8 W and 0.2 body weights of the unconstrained policy, and a limit that does not bind.
    assert limits["energy"] == 9.92
    assert limits["foot_contact_force"] == 0.08
    assert limits["body_contact"] == 0.025


def test_a_limit_sweep_is_planned_from_factors(tmp_path):
    cfg = BenchmarkCfg(
        "safe", tasks=("Go2-Flat",), levels=("1.5", "2.0", "4"), seeds=1, folder=tmp_path
    )
    methods = profile_methods((0.2,))
    runs = plan_runs(cfg, methods)
    assert [run.level for run in runs] == ["1.5", "medium", "4"]
    options = parse_options("train", shlex.split(command_of(methods[runs[0].method], runs[0]))[2:])
    assert options.constraints == 1.5
    assert run_in(runs[0].folder).costs == "SafeLegged-v1/Go2-Flat/1.5"
    with pytest.raises(ValueError, match="is medium: rename it"):
        run_in(tmp_path / "Go2-Flat_2.0_p3o_1")


@pytest.fixture
def sweep_results():
    """p3o spends the whole limit, ipo half of it; the error rises as the limit falls."""
    found = []
    for level, factor in (("loose", 1.3), ("medium", 2.0), ("4", 4.0)):
        for seed in (1, 2, 3):
            found.append(result("none", seed, ratio=factor, error=0.08, level=level))
            found.append(result("p3o", seed, ratio=1.0, error=0.02 * factor, level=level))
            found.append(result("ipo", seed, ratio=0.5, error=0.03 * factor, level=level))
    return found


def test_limit_sweeps_have_cost_return_and_error_over_the_limit(sweep_results):
    sweeps = limit_sweeps(sweep_results)
    assert [(sweep.task, sweep.name, sweep.n) for sweep in sweeps] == [
        ("Go2-Flat", "p3o", "3"),
        ("Go2-Flat", "ipo", "3"),
    ]
    p3o, ipo = sweeps
    assert p3o.values == pytest.approx([1 / 4, 1 / 2, 1 / 1.3])
    # On the line J = d, up to the three digits of a limit, and at half of it.
    assert [share_of_unconstrained(row).value for row in p3o.rows] == pytest.approx(
        p3o.values, rel=0.01
    )
    assert [share_of_unconstrained(row).value for row in ipo.rows] == pytest.approx(
        [0.5 * value for value in ipo.values], rel=0.01
    )
    assert [row.error.value for row in p3o.rows] == pytest.approx([1.0, 0.5, 0.325])
    assert [row.returns.value for row in p3o.rows] == pytest.approx([8.0, 4.0, 2.6])
    cells = limit_table(p3o)[2]
    assert cells[1][:3] == ["0.50", "3", "3"]
    assert cells[1][5] == "4.00 [4.00, 4.00]"
    # The table of one level is no sweep.
    assert limit_sweeps([one for one in sweep_results if one.level == "medium"]) == []


# --- multiplier profiles ----------------------------------------------------------------------------------------------


@pytest.fixture
def profile_results():
    found = seeds_of("none", [2.0, 2.0], [0.08, 0.08])
    for penalty, ratio, error in ((0.05, 1.5, 0.09), (0.2, 1.0, 0.12), (1.0, 0.5, 0.2)):
        found += seeds_of(f"fixed,constraint.penalty={penalty}", [ratio, ratio], [error, error])
    found += seeds_of("fixed", [0.8, 0.8], [0.16, 0.16])
    found += seeds_of("p3o", [0.9, 0.9], [0.1, 0.1])
    for options in ("constraint.start=0.0", "constraint.start=0.0,constraint.penalty=0.1"):
        found += seeds_of(f"fixed,{options}", [0.9, 0.9], [0.1, 0.1])
    return found


def test_a_multiplier_profile_has_return_and_costs_over_the_penalty(profile_results):
    found, other = multiplier_profiles(profile_results)
    assert (found.task, found.name, found.n) == ("Go2-Flat", "medium", "2")
    # The unconstrained policy has penalty 0, and the method fixed alone its usual penalty.
    assert found.values == [0.0, 0.05, 0.2, 0.5, 1.0]
    assert [row.ratio.value for row in found.rows] == pytest.approx([2.0, 1.5, 1.0, 0.8, 0.5])
    assert [row.returns.value for row in found.rows] == pytest.approx([8.0, 9.0, 12.0, 16.0, 20.0])
    _, header, cells = profile_table(found)
    assert header[:4] == ("penalty", "n", "feasible", "return [95 %]")
    assert header[5] == "J/d energy"
    assert cells[2][0] == "0.2"
    assert cells[2][5] == "1.00"
    assert other.name == "medium,constraint.start=0.0"
    # One penalty is no profile.
    assert (
        multiplier_profiles(seeds_of("none", [2.0], [0.1]) + seeds_of("fixed", [1.0], [0.1])) == []
    )


def test_penalties_are_methods_of_their_own(tmp_path, capsys):
    methods = profile_methods((0.05, 0.5, 2))
    assert list(methods) == [
        "fixed,constraint.penalty=0.05",
        "fixed",
        "fixed,constraint.penalty=2.0",
    ]
    for words, message in (
        (["0.1", "0.10"], "--penalties has 0.1 twice"),
        (["-1"], "--constraint.penalty"),
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main(["benchmark", "safe", "--tasks", "Go2-Flat", "--penalties", *words])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err


def test_figures_of_sweeps_and_profiles_have_units_and_n(sweep_results, profile_results, results):
    profiled = [one for one in profile_results if "start" not in one.method]
    found = list({one.name: one for one in (*sweep_results, *profiled, *results)}.values())
    html = "\n".join(summaries(found, "h2"))
    for text in (
        "Over all tasks and levels",
        "Go2-Flat: limit sweeps",
        "Go2-Flat, medium: multiplier profile",
        "limit d / cost of the unconstrained policy",
        "return of an episode (sum of rewards)",
        "constant multiplier of each cost (0: unconstrained)",
        "energy, n = 2",
        "p3o, n = ",
    ):
        assert text in html, text
    # As many captions as figures.
    assert html.count("<figcaption>") == html.count("<figure>") == html.count("<svg")
    assert len(summary_tables(found)) >= 4


def test_results_of_version_0_2_have_no_figure_of_the_return(profile_results):
    (sweep, _) = multiplier_profiles([replace(one, episode_return=None) for one in profile_results])
    assert list(profile_figures(sweep)) == [
        "Tracking error over fixed multipliers",
        "Costs over fixed multipliers; the dotted line is the limit",
    ]
