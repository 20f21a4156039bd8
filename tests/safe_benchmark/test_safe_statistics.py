"""Statistics against values by hand, rows of the table, and the page."""

from __future__ import annotations

import itertools
import math
import shlex
from importlib.metadata import version

import numpy as np
import pytest
from results_by_hand import result, seeds_of

from legged_envs.cli.command_line import parse_options
from legged_envs.safe_benchmark import statistics
from legged_envs.safe_benchmark.figures import pareto_front
from legged_envs.safe_benchmark.page import page
from legged_envs.safe_benchmark.rows import column, make_rows
from legged_envs.safe_benchmark.statistics import estimate, improvement, profile
from legged_envs.safe_benchmark.table import improvement_table, main_table

SETTING = ("Go2-Flat", "medium")


def test_the_interquartile_mean_leaves_out_the_outer_quarters():
    assert statistics.interquartile_mean(column([100.0, 1.0, 2.0, 3.0, -50.0])) == 2.0
    # Over all runs of two tasks: of 1, 2, 3, 4, 5, 6, 7, 8 the middle four.
    scores = np.array([[1.0, 8.0], [2.0, 7.0], [3.0, 6.0], [4.0, 5.0]])
    assert statistics.interquartile_mean(scores) == 4.5


def test_the_interval_is_that_of_all_resamples():
    """Of three seeds there are 27 resamples: their exact distribution gives the percentiles."""
    values = [1.0, 2.0, 4.0]
    found = estimate(column(values))
    # Of three runs, no whole one is left out at either end.
    means = [np.mean(drawn) for drawn in itertools.product(values, repeat=3)]
    assert found.value == pytest.approx(7.0 / 3.0)
    low, high = np.percentile(means, [2.5, 97.5])
    assert found.low == pytest.approx(low, abs=0.34)
    assert found.high == pytest.approx(high, abs=0.67)
    assert found == estimate(column(values))


def test_resamples_stay_in_their_task():
    scores = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    drawn = statistics.resamples(scores)
    assert set(np.unique(drawn[..., 0])) == {1.0, 2.0, 3.0}
    assert set(np.unique(drawn[..., 1])) == {10.0, 20.0, 30.0}
    # Tasks are drawn independently: a run need not keep its seed.
    assert (drawn[..., 1] != 10.0 * drawn[..., 0]).any()
    assert drawn.mean(axis=(0, 1)) == pytest.approx([2.0, 20.0], rel=0.02)


def test_one_seed_has_no_interval():
    found = estimate(column([3.0]))
    assert found.value == 3.0
    assert math.isnan(found.low) and math.isnan(found.high)


@pytest.mark.skipif(version("pandas") >= "3", reason="the bootstrap of rliable needs pandas < 3")
def test_intervals_are_those_of_the_library_where_it_can_be_imported():
    from rliable import library

    scores = np.random.default_rng(1).normal(size=(5, 3))

    def iqm(drawn: np.ndarray) -> np.ndarray:
        return np.array([statistics.interquartile_mean(drawn)])

    values, intervals = library.get_interval_estimates({"a": scores}, iqm, reps=4000)
    found = estimate(scores)
    assert found.value == pytest.approx(values["a"][0])
    assert [found.low, found.high] == pytest.approx(intervals["a"][:, 0], abs=0.05)


def test_probability_of_improvement_counts_pairs_and_half_of_ties():
    better = column([1.0, 2.0, 3.0])
    other = column([2.0, 4.0])
    # Pairs with a lower score: (1,2) (1,4) (2,4) (3,4), and (2,2) is a tie.
    assert improvement(better, other) == pytest.approx(4.5 / 6.0)
    assert improvement(other, better) == pytest.approx(1.5 / 6.0)
    assert improvement(better, better) == 0.5


def test_a_profile_is_the_share_of_seeds_at_or_below_each_threshold():
    found = profile(column([0.5, 1.0, 1.0, 2.0]), np.array([0.4, 0.5, 1.0, 1.5, 2.0]))
    assert found.shares.tolist() == [0.0, 0.25, 0.75, 0.75, 1.0]
    assert (found.low <= found.shares).all() and (found.shares <= found.high).all()
    assert found.low[0] == found.high[0] == 0.0
    assert found.low[-1] == found.high[-1] == 1.0


def test_the_front_has_what_nothing_beats():
    points = [(1.0, 3.0), (2.0, 1.0), (3.0, 2.0), (0.5, 4.0), (2.0, 5.0)]
    assert pareto_front(points) == [(0.5, 4.0), (1.0, 3.0), (2.0, 1.0)]


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def results():
    return [
        *seeds_of("none", [3.0, 4.0], [0.06, 0.10]),
        *seeds_of("slow", [0.5, 0.6], [0.16, 0.24]),
        *seeds_of("p3o", [0.9, 0.7, 0.8], [0.08, 0.088, 0.096]),
        *seeds_of("ipo", [1.2, 0.8], [0.07, 0.08]),
    ]


def test_rows_are_in_order_and_have_their_numbers(results):
    rows = make_rows(results)[SETTING]
    # The baseline, then all feasible ones by their error, then the others.
    assert [row.method for row in rows] == ["none", "p3o", "slow", "ipo"]
    none, p3o, _, ipo = rows
    assert (none.feasible, p3o.feasible, ipo.feasible) == (0, 3, 1)
    # Relative to the mean of the unconstrained seeds, 0.08 m/s and 0.16 rad/s.
    assert none.errors == pytest.approx([0.75, 1.25])
    assert p3o.errors == pytest.approx([1.0, 1.1, 1.2])
    assert p3o.error.value == pytest.approx(1.1)
    assert p3o.ratio.value == pytest.approx(0.8)
    assert p3o.ratio.low == pytest.approx(0.7, abs=0.04)
    assert p3o.ratios["energy"] == pytest.approx(0.8)
    assert p3o.ratios["touchdown_speed"] == pytest.approx(0.4)
    assert p3o.worst == "energy"
    assert p3o.exceeded == pytest.approx(0.08)
    assert p3o.cvar == pytest.approx(1.6)
    cells = main_table(rows)
    assert cells[2][1][:2] == ["p3o", "3 of 3"]


def test_the_command_of_a_row_is_one_of_the_command_line(results):
    rows = make_rows(results)[SETTING]
    options = parse_options("benchmark", shlex.split(rows[1].command)[2:])
    assert (options.tasks, options.levels) == (("Go2-Flat",), ("medium",))
    assert (options.methods, options.seeds) == (("none", "p3o"), 3)
    assert "--methods none --seeds" in rows[0].command


def test_the_command_of_a_row_has_the_size_of_its_runs():
    command = "legged-envs train Legged/Go2-Flat-v0 --num-envs 16 --iterations 2 ppo"
    (rows,) = make_rows([result(command=command, episodes=8)]).values()
    options = parse_options("benchmark", shlex.split(rows[0].command)[2:])
    assert (options.num_envs, options.iterations, options.episodes) == (16, 2, 8)


def test_without_an_unconstrained_run_there_is_no_relative_error(results):
    (rows,) = make_rows([one for one in results if one.method != "none"]).values()
    assert all(math.isnan(error) for row in rows for error in row.errors)
    assert main_table(rows)[2][0][4] == "–"
    html = page("SafeLegged-v1", [one for one in results if one.method != "none"])
    assert "no unconstrained run" in html


def test_levels_and_tasks_are_not_mixed():
    tables = make_rows([result(), result(level="tight"), result(task="G1-Flat")])
    assert list(tables) == [SETTING, ("Go2-Flat", "tight"), ("G1-Flat", "medium")]
    assert all(row.n == 1 for rows in tables.values() for row in rows)


def test_the_table_of_improvement_compares_every_pair(results):
    _, header, cells = improvement_table(make_rows(results)[SETTING])
    assert list(header) == ["method", "none", "p3o", "slow", "ipo"]
    assert cells[1] == ["p3o", "1.00", "–", "0.00", "0.75"]


def test_the_page_shows_every_row_its_figures_and_its_command(results):
    html = page("SafeLegged-v1", results)
    assert html.count("<figure>") == html.count("<svg") == 3
    assert html.count("<meter") == 4 * 6
    for method in ("none", "slow", "p3o", "ipo"):
        assert f"{method}, n = " in html
    assert (
        "legged-envs benchmark safe --tasks Go2-Flat --levels medium --methods none p3o --seeds 3"
        in html
    )
    assert "Go2-Flat medium, none; slow; ipo: missing seeds: 3" in html
    # One file that needs no network.
    assert 'src="http' not in html and "@import" not in html
    # A name of a stranger's result is text.
    assert "<b>" not in page("SafeLegged-v1", [result(hardware="<b>")])
