"""Crosschecks: one policy on several engines and in a plain loop, from nothing but its ONNX file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from legged_envs import cli
from legged_envs.envs import make_core
from legged_envs.envs.cfg import override
from legged_envs.evaluation.crosscheck import PLAIN, crosscheck
from legged_envs.evaluation.crosscheck_comparison import compare
from legged_envs.evaluation.crosscheck_costs import engine_differences
from legged_envs.evaluation.crosscheck_options import CrosscheckCfg
from legged_envs.evaluation.plain_loop import PlainLoop
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import SHIPPED, Policy, load_shipped_policy, save_onnx
from legged_envs.robots import GO2 as ROBOT
from legged_envs.sim import SimCfg
from legged_envs.sim.engines import ENGINES
from legged_envs.sim.engines.mujoco import MujocoSimulation
from legged_envs.tasks import make_task_cfg

GO2, G1 = "Legged/Go2-Flat-v0", "Legged/G1-Flat-v0"


def untrained(task_id: str) -> Policy:
    core = make_core(make_task_cfg(task_id), 1)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(core.group_sizes["policy"], core.actions.size), nn.Tanh())
    return Policy(network, contract(task_id, core))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Policy, Path]]:
    """``exported(task_id, **changes)``: a policy, and its ONNX file with entries of the contract changed."""

    def export(task_id: str, **changes: Any) -> tuple[Policy, Path]:
        policy = untrained(task_id) if task_id == G1 else load_shipped_policy(task_id)
        path = tmp_path_factory.mktemp("onnx") / "policy.onnx"
        save_onnx(path, policy, {"inputs": policy.inputs, **policy.contract, **changes})
        return policy, path

    return export


@pytest.mark.parametrize("task_id", [GO2, G1, "Legged/Tron1-WF-Flat-v0"])
def test_a_plain_loop_walks_as_the_environment_by_the_contract_alone(task_id, exported):
    options = CrosscheckCfg(task_id, sims=("mujoco",), robots=2, seconds=0.6)
    runs, remark = crosscheck(options, make_task_cfg(task_id), *exported(task_id))
    np.testing.assert_allclose(runs[PLAIN]["root"], runs["mujoco"]["root"], atol=1e-5)
    np.testing.assert_allclose(runs[PLAIN]["joints"], runs["mujoco"]["joints"], atol=1e-4)
    np.testing.assert_allclose(runs[PLAIN]["torque"], runs["mujoco"]["torque"], atol=0.05)
    for name in ("lin_vel", "gravity", "height", "twist"):
        np.testing.assert_allclose(runs[PLAIN][name], runs["mujoco"][name], atol=1e-3, err_msg=name)
    assert (runs[PLAIN]["contact"] == runs["mujoco"]["contact"]).all()
    assert float(remark.split(" is off by ")[1].split()[0]) < 1e-5


def test_sensors_that_are_late_in_training_are_not_in_a_crosscheck(exported):
    cfg = override(make_task_cfg(GO2), {"observations.policy.terms.joint_pos.delay": 2})
    options = CrosscheckCfg(GO2, sims=("mujoco",), robots=2, seconds=0.6)
    runs, _ = crosscheck(options, cfg, *exported(GO2))
    np.testing.assert_allclose(runs[PLAIN]["root"], runs["mujoco"]["root"], atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"kp": [20.0] * 12},
        {"default_joint_pos": [0.1, 0.9, -1.6] * 4},
        {"action_scale": [0.3] * 12},
        {"joint_names": [*ROBOT.joint_names[3:6], *ROBOT.joint_names[:3], *ROBOT.joint_names[6:]]},
        {"torque_limits": [8.0] * 12},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_contract_that_says_something_else_parts_the_runs(change, exported):
    options = CrosscheckCfg(GO2, sims=("mujoco",), robots=2, seconds=0.6)
    runs, _ = crosscheck(options, make_task_cfg(GO2), *exported(GO2, **change))
    numbers = compare(runs, ROBOT, 0.02)
    assert numbers[PLAIN]["parted"] == 1.0 and numbers[PLAIN]["parts_after"] < 0.6
    assert numbers["mujoco"]["parted"] == 0.0 and numbers["mujoco"]["where"] == ""


def test_what_a_plain_loop_cannot_observe_is_told(exported):
    policy, path = exported("Legged/Go2-Rough-v0")
    with pytest.raises(ValueError, match=r"'height_scan'.*command, gravity"):
        PlainLoop(path, ROBOT, SimCfg())
    bare, other = onnx.load(str(exported(GO2)[1])), path.with_name("bare.onnx")
    del bare.metadata_props[:]
    onnx.save(bare, str(other))
    with pytest.raises(
        ValueError,
        match=r"bare.onnx.*'joint_names'",
    ):
        PlainLoop(other, ROBOT, SimCfg())
    terms = [
        dict(term, size=6) if term["name"] == "gravity" else term
        for term in policy.inputs["policy"]
    ]
    loop = PlainLoop(exported(GO2, observation=terms[:6])[1], ROBOT, SimCfg())
    pose = np.array([[0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0]])
    state = {
        "root": pose,
        "twist": np.zeros((1, 6)),
        "joints": loop.default_joint_pos[None],
        "joint_vel": np.zeros((1, 12)),
    }
    loop.start(state, np.zeros((1, 3)), np.zeros(1))
    with pytest.raises(ValueError, match=r"'gravity'.* 6 .* 3 "):
        loop.observe()


def recording(steps: int = 100, robots: int = 2) -> dict[str, Any]:
    """Robots that stand still, their command (1, 0, 0.5)."""
    root, gravity = np.zeros((steps, robots, 7)), np.zeros((steps, robots, 3))
    root[..., 2], gravity[..., 2] = ROBOT.base_height, -1.0
    run = {
        "root": root,
        "twist": np.zeros((steps, robots, 6)),
        "lin_vel": np.zeros((steps, robots, 3)),
    }
    run |= {
        "gravity": gravity,
        "height": root[..., 2],
        "contact": np.ones((steps, robots, 4), dtype=bool),
    }
    run |= {"joints": np.zeros((steps, robots, 12)), "torque": np.full((steps, robots, 12), 3.0)}
    return run | {"command": np.tile((1.0, 0.0, 0.5), (robots, 1))}


def test_runs_are_compared_in_numbers_that_can_be_worked_out():
    first, other = recording(), recording()
    other["lin_vel"][..., 0], other["twist"][..., 5] = 0.6, 0.4
    other["joints"][70:, 1, 4] = 0.2
    other["contact"][60:, :, :2] = False
    other["torque"] *= 2.0
    other["gravity"][80:, 0] = (1.0, 0.0, 0.0)
    still, moved = compare({"a": first, "b": other}, ROBOT, 0.02).values()
    assert (
        still["lin_vel_error"],
        still["ang_vel_error"],
        still["falls"],
        still["torque_rms"],
    ) == (1.0, 0.5, 0.0, 3.0)
    np.testing.assert_allclose((moved["lin_vel_error"], moved["ang_vel_error"]), (0.4, 0.1))
    assert (moved["falls"], moved["torque_rms"], moved["parted"]) == (0.5, 6.0, 0.5)
    np.testing.assert_allclose(moved["parts_after"], 71 * 0.02)
    assert moved["where"].startswith(f"robot 1, {ROBOT.joint_names[4]};")
    # From step 50 on, 30 steps of the robot that falls and 50 of the other; half of the feet are up from step 60 on.
    np.testing.assert_allclose(moved["same_contact"], 1.0 - 0.5 * (20 + 40) / 80)
    np.testing.assert_allclose(moved["duty_factor"], moved["same_contact"])
    other["joints"][30:, 0] = np.nan
    _, lost = compare({"a": first, "b": other}, ROBOT, 0.02).values()
    assert lost["parted"] == 1.0 and lost["parts_after"] == pytest.approx(31 * 0.02)


def test_costs_are_means_until_a_robot_falls_and_limits_that_break_elsewhere_are_named() -> None:
    limits = {"heat": 0.25, "noise": 0.5, "slip": 0.1}
    first, other, plain = recording(), recording(), recording()
    first["costs"] = np.zeros((100, 2, 3), np.float32)
    first["costs"][..., 2] = 0.2
    first["costs"][:50] = 9.0  # the first second does not count
    other["costs"] = np.zeros((100, 2, 3), np.float32)
    other["gravity"][80:, 0] = (1.0, 0.0, 0.0)
    other["costs"][80:, 0] = 9.0  # after a fall
    other["costs"][60:, 1] = (0.5, 0.5, 0.5)
    numbers = compare({"a": first, "b": other, "plain": plain}, ROBOT, 0.02, limits)
    assert numbers["a"]["costs"] == pytest.approx({"heat": 0.0, "noise": 0.0, "slip": 0.2})
    # 40 of the 30 + 50 steps that count cost 0.5.
    assert numbers["b"]["costs"] == pytest.approx(dict.fromkeys(limits, 0.25))
    assert numbers["plain"]["costs"] == dict.fromkeys(limits)
    costs = {name: row["costs"] for name, row in numbers.items()}
    assert engine_differences(costs, limits) == []
    tight = {**limits, "heat": 0.2}
    # The limit of slip is broken on the first engine too.
    (sentence,) = engine_differences(costs, tight)
    assert re.search(r"heat.* 0\.2 on a \(0\.0000\).* on b \(0\.2500\)", sentence)


def test_crosscheck_prints_draws_and_writes(tmp_path, monkeypatch, capsys):
    class SoftKnees(MujocoSimulation):
        def step(self, num_steps: int) -> None:
            self.batch.expand("actuator_gainprm")[:, :, 0] = 30.0
            super().step(num_steps)

    monkeypatch.setitem(ENGINES, "soft", SoftKnees)
    picture, numbers = tmp_path / "new" / "runs.png", tmp_path / "runs.json"
    words = f"crosscheck {GO2} --sims mujoco soft --robots 2 --seconds 1.4 --picture {picture} --json {numbers}"
    cli.main(words.split())
    told = capsys.readouterr().out
    assert picture.stat().st_size > 10_000 and str(picture) in told.replace("\n", "")
    report = json.loads(numbers.read_text())
    assert list(report["runs"]) == ["mujoco", "soft", PLAIN] and report["robots"] == 2
    assert report["runs"][PLAIN]["parted"] == 0.0 and report["runs"]["soft"]["parted"] == 1.0
    assert (
        report["runs"]["mujoco"]["same_contact"] == 1.0 and report["runs"]["mujoco"]["falls"] == 0.0
    )
    costs = report["runs"]["soft"]["costs"]
    assert set(costs) == set(report["cost_limits"]) == set(make_task_cfg(GO2).costs)
    for word in (
        "cost foot_slip",
        "lin vel error",
        "torque rms",
        "duty factor",
        "parts after",
        "soft",
        PLAIN,
    ):
        assert word in told, word


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"{GO2} --robots 0", "--robots.* 0"),
        (
            f"{GO2} --seconds 0.5",
            "--seconds.* 3600.* 0.5",
        ),
        (
            f"{GO2} --seconds 1.005",
            "--seconds.* 1.02.* 1.005",
        ),
        (
            f"{GO2} --seconds 1e12",
            "--seconds.* 3600.* 10000",
        ),
        (
            f"{GO2} --picture runs.jpg",
            "--picture.*'.png'.*'.jpg'",
        ),
        (f"{GO2} --policy nowhere", "'nowhere'"),
        (
            f"{GO2} --sims bullet",
            "sim='bullet'.*'mujoco', 'mujoco_warp'",
        ),
        (f"{GO2} --device toaster", "'toaster'"),
        (
            "Legged/Go2-Mimic-v0",
            "'Legged/Go2-Mimic-v0'",
        ),
        (f"{GO2} --seed -1", "--seed.*-1"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        cli.main(["crosscheck", *words.split()])
    assert stop.value.code == 2
    assert re.search(message, capsys.readouterr().err)
    assert not [*tmp_path.iterdir()]


def test_the_file_of_a_run_is_the_one_that_is_checked(tmp_path, exported, capsys):
    """Not what this package would export today."""
    _, path = exported(GO2, action_scale=[0.1] * 12)
    entries = {entry.key: entry.value for entry in onnx.load(str(path)).metadata_props}
    assert json.loads(entries["action_scale"]) == [0.1] * 12
    run = tmp_path / "run"
    run.mkdir()
    (run / "policy.onnx").write_bytes(path.read_bytes())
    (run / "policy.safetensors").write_bytes(SHIPPED[GO2].read_bytes())
    numbers = tmp_path / "runs.json"
    words = f"crosscheck {GO2} --policy {run} --sims mujoco --robots 1 --seconds 1.1"
    cli.main([*words.split(), "--picture", str(tmp_path / "a.png"), "--json", str(numbers)])
    assert json.loads(numbers.read_text())["runs"][PLAIN]["parted"] == 1.0
    (run / "policy.safetensors").rename(
        run / "other.safetensors"
    )  # of which policy.onnx is not the file
    words = words.replace(str(run), f"{run}/other.safetensors")
    cli.main([*words.split(), "--picture", str(tmp_path / "b.png"), "--json", str(numbers)])
    assert json.loads(numbers.read_text())["runs"][PLAIN]["parted"] == 0.0
