"""The runs of a sweep: every combination once, values in their ranges, and one line for what cannot be read."""

from __future__ import annotations

import math

import pytest

from legged_envs.sweeps.options import SweepCfg
from legged_envs.sweeps.plan import plan_runs, split_values

GO2 = "Legged/Go2-Flat-v0"
TORQUES = "rewards.joint_torque.weight"


def plan(**options):
    return plan_runs(SweepCfg(GO2, **options))


def test_every_setting_is_trained_with_every_seed_and_the_first_seed_first():
    runs = plan(seeds=(1, 7), grid=(f"{TORQUES}=-1e-4,-2e-4", "events.push=None"))
    wanted = [
        (seed, {TORQUES: weight, "events.push": None})
        for seed in (1, 7)
        for weight in (-1e-4, -2e-4)
    ]
    assert [(run.seed, run.changes) for run in runs] == wanted
    assert runs[0].name == "joint_torque.weight=-0.0001_events.push=None_seed=1"
    assert len({run.name for run in runs}) == 4


def test_without_a_grid_there_is_a_run_for_each_seed():
    assert [(run.name, run.changes) for run in plan(seeds=(1, 2))] == [
        ("seed=1", {}),
        ("seed=2", {}),
    ]


def test_values_are_split_at_commas_outside_of_brackets():
    (first, second) = plan(grid=("commands.velocity.lin_vel_x=(-1, 1),(0.0, 2.0)",))
    assert first.changes == {"commands.velocity.lin_vel_x": (-1, 1)}
    assert second.changes == {"commands.velocity.lin_vel_x": (0.0, 2.0)}
    assert split_values("[1,{2,3}],x") == ["[1,{2,3}]", "x"]


def test_names_that_a_folder_cannot_have_stay_distinct():
    runs = plan(grid=("a.b='x/y','x?y'", f"c.d={'z' * 300}"))
    names = [run.name for run in runs]
    assert len(set(names)) == 2
    assert all("/" not in name and len(name) < 255 for name in names)


def test_drawn_values_are_in_their_ranges_and_the_same_for_every_seed_and_every_time():
    options = {
        "seeds": (1, 2),
        "random": (f"{TORQUES}=-1e-2,-1e-4,log", "rewards.trot.weight=1,2"),
        "samples": 400,
    }
    runs = plan(**options)
    assert runs == plan(**options)
    assert [run.changes for run in runs[:400]] == [run.changes for run in runs[400:]]
    torques = [run.changes[TORQUES] for run in runs[:400]]
    trot = [run.changes["rewards.trot.weight"] for run in runs[:400]]
    assert all(-1e-2 <= weight <= -1e-4 for weight in torques)
    assert all(1.0 <= weight <= 2.0 for weight in trot)
    # Half of the values are on each side of the middle: of the logarithm, and of the value.
    logarithms = [math.log10(-weight) for weight in torques]
    assert sum(logarithm < -3.0 for logarithm in logarithms) == pytest.approx(200, abs=40)
    assert sum(weight < 1.5 for weight in trot) == pytest.approx(200, abs=40)
    assert len({run.name for run in runs}) == 800


def test_each_draw_is_combined_with_the_whole_grid():
    runs = plan(grid=(f"{TORQUES}=-1e-4,-2e-4",), random=("rewards.trot.weight=1,2",), samples=3)
    drawn = [run.changes["rewards.trot.weight"] for run in runs]
    assert len(runs) == 6 and len(set(drawn)) == 3
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": ()}, "--seeds"),
        ({"seeds": (1, 2, 1)}, "--seeds has 1 twice"),
        ({"seeds": (-1,)}, "--seeds must .* got -1"),
        ({"grid": ("a.b",)}, "--grid .*'a.b'"),
        ({"grid": ("=1",)}, "--grid .*'=1'"),
        ({"grid": ("a.b=",)}, "--grid .*'a.b='"),
        ({"grid": ("a.b=1,,2",)}, "--grid .*'a.b=1,,2'"),
        ({"grid": ("a.b=1,2,1",)}, "--grid a.b has 1 twice"),
        ({"grid": ("a.b=1", "a.b=2")}, "a.b is given twice"),
        ({"grid": ("a.b=1",), "changes": {"a.b": 2}}, "a.b is given twice"),
        ({"grid": ("a.b=1",), "random": ("a.b=1,2",)}, "a.b is given twice"),
        ({"random": ("a.b=1",)}, "--random .*'a.b=1'"),
        ({"random": ("a.b=1,x",)}, "--random .*'a.b=1,x'"),
        ({"random": ("a.b=False,2",)}, "--random .*'a.b=False,2'"),
        ({"random": ("a.b=1,1e999",)}, "--random .*'a.b=1,1e999'"),
        ({"random": ("a.b=1,2,lin",)}, "--random .*'a.b=1,2,lin'"),
        ({"random": ("a.b=2,1",)}, "LOW must be below HIGH, got 2 and 1"),
        ({"random": ("a.b=-1,1,log",)}, "'a.b=-1,1,log'.* logarithm"),
        ({"random": ("a.b=0,1,log",)}, "'a.b=0,1,log'.* logarithm"),
        ({"random": ("a.b=1,2",), "samples": 0}, "--samples .*got 0"),
        ({"samples": 3}, "--samples 3 .*--random"),
    ],
)
def test_what_cannot_be_planned_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        plan(**options)
