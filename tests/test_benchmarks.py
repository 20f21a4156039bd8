"""The benchmarks of a checkout: they measure the documented quantities, refuse impossible options, and leave no files behind."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import mujoco
import mujoco.batch
import numpy as np
import pytest
import torch
from rich.console import Console

from benchmarks import ab, isaacgym, loops, physics, storage, throughput
from benchmarks.ab import Tree, measure
from benchmarks.overlap import LaggedUpdate
from benchmarks.scaling.model import fit
from benchmarks.scaling.traffic import traffic_of
from legged_envs.envs import make_core
from legged_envs.tasks import make_task_cfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer

GO2 = "Legged/Go2-Flat-v0"
MIMIC = "Legged/Go2-Mimic-v0"
ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("rounds", [0, -1])
def test_a_benchmark_has_rounds(rounds: int) -> None:
    for run in (
        lambda: storage.main(rounds),
        lambda: throughput.main(GO2, rounds),
        lambda: physics.main(GO2, rounds=rounds),
        lambda: measure(ROOT, rounds=rounds),
    ):
        with pytest.raises(ValueError, match=f"rounds .*{rounds}"):
            run()
    with pytest.raises(ValueError, match=f"round_steps .*{rounds}"):
        measure(ROOT, round_steps=rounds)


def test_tables_that_could_not_be_written_are_refused_before_they_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throughput, "bench", lambda *args: pytest.fail("something was measured"))
    monkeypatch.setattr(
        physics, "measure_times", lambda *args: pytest.fail("something was measured")
    )
    with pytest.raises(ValueError, match="--json"):
        throughput.main(GO2, json=tmp_path)
    with pytest.raises(ValueError, match="--markdown"):
        physics.main(GO2, markdown=tmp_path)


# --- throughput -------------------------------------------------------------------------------------------------------


def test_a_mimic_task_is_benchmarked_in_the_middle_of_a_long_run() -> None:
    """Commands fall due one after another, as on a velocity task; the motion has none that does."""
    loop = loops.EnvLoop(MIMIC, 64)
    timer = loop.core.commands.state_dict()["terms"]["velocity"]["resampling"]
    assert len((timer["due"] - timer["now"]).unique()) > 20
    loop.run(loop.next_actions())
    loop.envs.close()


def test_raw_physics_goes_the_way_of_the_environment() -> None:
    """It starts from the same states and has the same joint targets, but the robot's own masses and friction."""
    loop = loops.EnvLoop(GO2, 16)
    batch, raw = loop.sim.batch, loops.BatchLoop(loop)
    ours, theirs = batch.bind("qpos"), raw.batch.bind("qpos")
    before = ours.copy()
    loop.run(loop.next_actions()[:10])
    raw.run(*loop.stretch)
    moved, apart = (np.median(np.abs(a[:, 7:] - ours[:, 7:])) for a in (before, theirs))
    assert 0.0 < apart < 0.5 * moved
    loop.envs.close()


# --- physics ----------------------------------------------------------------------------------------------------------


def test_physics_are_not_compared_on_a_mimic_task() -> None:
    with pytest.raises(ValueError, match="Legged/Go2-Mimic-v0"):
        physics.main(MIMIC, rounds=1, episodes=1)


def test_bad_physics_is_counted_and_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MuJoCo would append each warning to MUJOCO_LOG.TXT in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(physics, "SETTLING_STEPS", 1)
    monkeypatch.setattr(physics, "CHUNKS", 1)

    unstable = physics.Variant("unstable", option={"gravity": (0.0, 0.0, -1e12)}, walks=False)
    monkeypatch.setattr(
        physics, "variants", lambda: [physics.Variant("default", walks=False), unstable]
    )
    before = mujoco.get_mju_user_warning()
    physics.main(GO2, rounds=1, episodes=1, num_envs=4, markdown=tmp_path / "table.md")
    assert [path.name for path in tmp_path.iterdir()] == ["table.md"]
    assert "MuJoCo warned" in (tmp_path / "table.md").read_text()
    assert mujoco.get_mju_user_warning() is before


# --- storage ----------------------------------------------------------------------------------------------------------


def test_the_benchmark_reports_both_comparisons() -> None:
    rows = storage.bench_storage(rounds=2, num_envs=32, num_steps=4)
    assert [row["setting"] for row in rows] == ["PPO", "everything"]
    for row in rows:
        assert all(
            row[key] > 0.0 for key in ("batches_ms", "indexing_ms", "batches_ratio", "add_ratio")
        )


# --- Isaac Gym's API --------------------------------------------------------------------------------------------------


def test_the_price_of_isaac_gyms_api_is_that_of_the_same_physics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = isaacgym.measure(num_envs=3, steps=4)
    assert all(found[name] > 0 for name in ("creation", "API", "engine", "own code", "ratio"))
    with pytest.raises(ValueError, match=r"steps .*0"):
        isaacgym.measure(3, steps=0)
    with monkeypatch.context() as patch:
        # Joints that are faster than their limit are not driven on. The engine alone does the same.
        patch.setattr(isaacgym, "ACTION_SCALE", 40.0)
        isaacgym.measure(3, steps=8)
    apply = mujoco.batch.Batch.step
    monkeypatch.setattr(
        mujoco.batch.Batch, "step", lambda self, **given: given and apply(self, **given)
    )
    with pytest.raises(RuntimeError, match="engine"):  # it stands still
        isaacgym.measure(3, steps=1)


# --- two checkouts ----------------------------------------------------------------------------------------------------


def test_a_checkout_is_like_itself(capsys: pytest.CaptureFixture[str]) -> None:
    trees = Tree(ROOT), Tree(ROOT)
    for tree in trees:
        tree.call("open", GO2, 12, True, 240)
    figures = ab.take_turns(trees, "12 envs: ", 2, lambda tree: tree.call("round"))
    for tree in trees:
        tree.call("close")
        tree.stop()
    before, after = figures["12 envs: sum of observations"]
    assert before == after and before[0] != before[1]
    for name in ("step, ms", "wrappers alone, ms", "step / batch engine alone"):
        assert all(len(values) == 2 and min(values) > 0.0 for values in figures[f"12 envs: {name}"])
    ab.print_figures("title", figures)
    assert "same" in capsys.readouterr().out
    start = trees[0].start_ms(GO2)
    assert 0.0 < start["import legged_envs, ms"] < start["import, make_vec and reset, ms"]


LEAKING = """
import numpy as np
from benchmarks import ab_worker

leaked = []
make_vec = ab_worker.gym.make_vec


def leaking(*args, **kwargs):
    leaked.append(np.ones(32 << 20))  # 256 MB
    return make_vec(*args, **kwargs)


ab_worker.gym.make_vec = leaking
print(ab_worker.Worker().growth(["Legged/Go2-Flat-v0"], 2, 1))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_memory_is_that_of_the_environments_that_are_not_given_back() -> None:
    # In a process of its own: other tests may give back memory meanwhile.
    words = [sys.executable, "-c", LEAKING]
    told = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert 384.0 < float(told) < 560.0


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="checkout"):
        Tree(tmp_path)


# --- scaling ----------------------------------------------------------------------------------------------------------


def test_the_model_of_a_training_finds_the_times_that_measurements_were_made_of() -> None:
    algo = PPOCfg()
    traffic = {"parameters": 1000, "messages": 4, "size": 16_000}
    rows = []
    for processes, robots in ((1, 100), (2, 800), (64, 6400)):
        each = robots // processes
        rollout = algo.steps_per_env * (2e-3 + 80e-6 * each)
        samples = algo.epochs * algo.steps_per_env * each
        update = algo.epochs * algo.mini_batches * 5e-3 + 7e-6 * samples
        if processes == 64:
            # More processes than cores take turns: they are left out.
            update *= 32.0
        row = {"processes": processes, "robots": robots, "rollout": rollout, "update": update}
        rows.append({**row, "spread": 0.1})
    machine = {"cores": 2}
    contents = {"machine": machine, "noise": 0.0, "spread": 0.0, "traffic": traffic}
    model = fit({**contents, "measurements": rows}, algo)
    found = (model.step, model.robot, model.fixed, model.sample)
    assert found == pytest.approx((2e-3, 80e-6, 5e-3, 7e-6))
    alone = 400 * algo.steps_per_env / (rows[1]["rollout"] + rows[1]["update"])
    assert model.speed(1, 400, algo) == pytest.approx(alone)
    # Each of 4 sums takes 2 · 7 rounds; 8 processes send 7/8 of the bytes twice.
    sums = model.seconds(8, 400, algo)["sums"]
    assert sums == pytest.approx(4 * 14 * 50e-6 + 2 * 7 / 8 * 16_000 / 125e6)
    with pytest.raises(ValueError, match=r"\[100\]"):
        fit({**contents, "measurements": rows[:1]}, algo)


def test_a_lagged_update_collects_with_the_policy_from_before_the_last_update(
    tmp_path: Path,
) -> None:
    ppo = PPOCfg(steps_per_env=2, epochs=1, mini_batches=1, hidden=(16,))
    cfg = TrainCfg(GO2, num_envs=8, iterations=4, run_dir=tmp_path / "run", algo=ppo, video=False)
    trainer = Trainer(prepare(cfg), Console(quiet=True))
    actor = trainer.algorithm.get_policy()
    update = LaggedUpdate(trainer)
    trainer.algorithm.update = update
    collected, learnt = [], []
    for _ in range(3):
        collected.append({name: value.clone() for name, value in actor.state_dict().items()})
        trainer.iterate()
        learnt.append(update.learner[0])
    trainer.env.env.close()
    weight = "mlp.0.weight"
    assert torch.equal(collected[1][weight], collected[0][weight])
    assert torch.equal(collected[2][weight], learnt[0][weight])
    assert not torch.equal(learnt[0][weight], collected[0][weight])
    assert not torch.equal(learnt[1][weight], learnt[0][weight])


def test_an_update_sends_the_gradients_once_for_each_step_of_the_optimizer() -> None:
    algo = PPOCfg(steps_per_env=4, epochs=2, mini_batches=2, hidden=(16,))
    found = traffic_of(GO2, algo)
    with contextlib.closing(make_core(make_task_cfg(GO2), 1)) as core:
        sizes = core.group_sizes
        actions = core.actions.size
    actor = 16 * (sizes["policy"] + 1) + 17 * actions + actions
    critic = 16 * (sizes.get("critic", sizes["policy"]) + 1) + 17
    assert found.parameters == actor + critic
    gradients = 4 * 4 * found.parameters
    assert gradients < found.size < gradients + 4000
