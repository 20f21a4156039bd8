"""Suites of costs: limits follow from what the unconstrained policy costs, and names stand for costs in every task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch

from benchmarks.safe_limits import ACCELERATIONS, calibrated, with_standing
from legged_envs import make_task_cfg
from legged_envs.envs.cfg import override
from legged_envs.envs.cost_suites import LEVELS, SUITE, read_suite, suite_costs, suite_name
from legged_envs.training.learner_options import ConstraintCfg, LagrangeCfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.standing_check import check_standing
from legged_envs.training.trainer import train

GO2 = "Legged/Go2-Flat-v0"
MEDIUM = f"{SUITE}/Go2-Flat/medium"
TASKS = read_suite(SUITE)["tasks"]


@pytest.mark.parametrize("task_id", TASKS)
def test_the_unconstrained_policy_breaks_each_binding_limit_by_the_factor_of_the_level(
    task_id: str,
) -> None:
    for level, factor in LEVELS.items():
        terms = override(make_task_cfg(task_id), {"costs": suite_name(task_id, level)}).costs
        assert terms.keys() == TASKS[task_id]["costs"].keys()
        for name, term in terms.items():
            entry = TASKS[task_id]["costs"][name]
            assert term.limit > 0.0
            if entry["binding"]:
                assert entry["unconstrained"] / term.limit == pytest.approx(factor, rel=0.01)
            else:
                assert entry["unconstrained"] < term.limit


def test_a_name_stands_for_the_costs_of_an_environment_and_a_limit_can_still_be_changed() -> None:
    changes = {"costs": MEDIUM, "costs.energy.limit": 7.0}
    envs = gym.make_vec(GO2, num_envs=2, cfg=changes, array="torch")
    envs.reset(seed=0)
    *_, info = envs.step(torch.zeros(2, 12))
    core = envs.unwrapped
    assert info["costs"].shape == (2, len(TASKS[GO2]["costs"]))
    limits = dict(zip(core.cost_names, core.cost_limits, strict=True))
    expected = {name: entry["medium"] for name, entry in TASKS[GO2]["costs"].items()}
    assert limits == {**expected, "energy": 7.0}
    envs.close()
    assert "energy" not in make_task_cfg(GO2).costs


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SafeLegged-v2/Go2-Flat/medium", "SafeLegged-v2"),
        (f"{SUITE}/Go3-Flat/medium", "Go3-Flat"),
        (f"{SUITE}/Go2-Flat/hard", "hard"),
        (f"{SUITE}/Go2-Flat", f"{SUITE}/Go2-Flat'"),
    ],
)
def test_costs_that_do_not_exist_are_named(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gym.make_vec(GO2, num_envs=1, cfg={"costs": name})


def test_limits_of_another_robot_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'go2'.*'g1'"):
        suite_costs(MEDIUM, "g1")


def prepared_with(task_id: str, **options: Any) -> Any:
    return prepare(TrainCfg(task_id, algo=PPOCfg(), video=False, **options))


def test_a_training_with_constraints_has_the_costs_of_the_suite_in_its_changes() -> None:
    prepared = prepared_with(GO2, constraints="medium", changes={"costs.energy.limit": 7.0})
    assert prepared.cfg.changes == {"costs": MEDIUM, "costs.energy.limit": 7.0}
    assert prepared.task.costs["energy"].limit == 7.0
    assert (
        prepared.task.costs["touchdown_speed"].limit
        == TASKS[GO2]["costs"]["touchdown_speed"]["medium"]
    )


def test_constraints_of_a_task_without_limits_or_with_other_costs_are_refused() -> None:
    with pytest.raises(ValueError, match="Legged/A1-Flat-v0"):
        prepared_with("Legged/A1-Flat-v0", constraints="medium")
    with pytest.raises(ValueError, match=r"medium.*Go2-Flat/tight"):
        prepared_with(GO2, constraints="medium", changes={"costs": f"{SUITE}/Go2-Flat/tight"})


def test_a_calibration_counts_what_exceeds_the_median_until_the_episode_ends() -> None:
    # Two robots for four steps; the second falls in its third step.
    counted = torch.tensor([[True, True], [True, True], [True, True], [True, False]])
    energy = torch.tensor([[10.0, 30.0], [20.0, 50.0], [30.0, 40.0], [20.0, 999.0]])
    values = {
        "energy": energy,
        "foot_contact_force": energy / 100.0,
        "touchdown_speed": energy / 10.0,
        "body_contact": torch.zeros(4, 2),
        "base_orientation": torch.zeros(4, 2),
    }
    for largest in ACCELERATIONS:
        values[f"acceleration_{largest:g}"] = torch.full((4, 2), 8.0 / largest)
    entries = calibrated(values, counted)
    # Of 10, 20, 20, 30, 30, 40 and 50 the median is 30. Excesses are 0 of four steps and 20 + 10 of three.
    assert entries["energy"]["params"] == {"allowed": 30.0}
    assert entries["energy"]["unconstrained"] == pytest.approx(5.0)
    assert entries["energy"]["medium"] == pytest.approx(2.5)
    # Means of 1, 2, 3, 2 and of 3, 5, 4.
    assert entries["touchdown_speed"]["tight"] == pytest.approx(1.0)
    # 8 / 150 is above the share of 5 %, 8 / 200 is not.
    assert entries["joint_acceleration"]["params"] == {"max_acceleration": 200.0}
    assert entries["joint_acceleration"]["loose"] == pytest.approx(0.04 / 1.3, rel=0.01)
    assert entries["body_contact"]["loose"] == 0.025


@pytest.mark.parametrize("task_id", TASKS)
def test_a_standing_robot_keeps_every_limit_of_the_suite(task_id: str) -> None:
    entries = TASKS[task_id]["costs"]
    measured = with_standing(task_id, entries)
    for name, entry in entries.items():
        assert entry["standing"] == pytest.approx(measured[name]["standing"], rel=0.01, abs=1e-6)
        for level in LEVELS:
            assert entry["standing"] < entry[level]


def standing_in(changes: dict[str, Any], **options: Any) -> None:
    algo = PPOCfg(**options)
    check_standing(prepare(TrainCfg(GO2, algo=algo, changes=changes, video=False)))


def test_a_limit_that_a_standing_robot_breaks_is_named_before_the_first_update() -> None:
    # Four feet carry the weight: without an allowance, a foot has at least a quarter of it.
    changes = {"costs": MEDIUM, "costs.foot_contact_force.params": {"allowed": 0.0}}
    method = ConstraintCfg(method="p3o")
    with pytest.raises(
        ValueError, match=r"foot_contact_force\.limit is 0\.1,.* 0\.[23]\d+ per step"
    ):
        standing_in(changes, constraint=method)
    with pytest.raises(ValueError, match=r"foot_contact_force"):
        standing_in(changes, lagrange=LagrangeCfg(enabled=True))
    standing_in({**changes, "costs.foot_contact_force.limit": 0.9}, constraint=method)
    standing_in(changes, constraint=replace(method, costs=("energy",)))
    standing_in(changes)


def test_a_training_checks_what_a_standing_robot_has(tmp_path: Path) -> None:
    changes = {"costs": MEDIUM, "costs.foot_contact_force.params": {"allowed": 0.0}}
    algo = PPOCfg(constraint=ConstraintCfg(method="p3o"))
    cfg = TrainCfg(GO2, algo=algo, changes=changes, num_envs=2, run_dir=tmp_path / "run")
    with pytest.raises(ValueError, match="a robot that stands"):
        train(cfg)
    assert not (tmp_path / "run").exists()
