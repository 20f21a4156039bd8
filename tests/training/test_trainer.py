"""Training, evaluation, export and the command line, with tiny budgets."""

import io
import json
import os
import re
import shlex
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import mujoco
import mujoco.viewer
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from forms import register_form
from rich.console import Console
from safetensors.torch import load_file, save_file

from legged_envs import cli, make_task_cfg
from legged_envs.cli.evaluate import EvaluateCfg, evaluate
from legged_envs.cli.list_tasks import ListCfg, list_tasks
from legged_envs.cli.play import PlayCfg, play
from legged_envs.envs import CoreVectorEnv, make_core, unwrap
from legged_envs.evaluation.conditions import combine_logs, command_ranges, evaluation_cfg
from legged_envs.evaluation.evaluator import EVALUATION_SEED, Evaluator
from legged_envs.evaluation.metrics.velocity import hold_velocity
from legged_envs.policy.header import read_evaluation
from legged_envs.policy.policy import load_policy, load_shipped_policy
from legged_envs.runs.checkpoint_file import CHECKPOINT
from legged_envs.runs.progress import showing
from legged_envs.runs.run_folder import lock_run_folder
from legged_envs.storage import MiniBatch
from legged_envs.tasks.mimic import imitating
from legged_envs.training.checkpoint import read_checkpoint, run_folder
from legged_envs.training.learner.mirror import MirroredHalf
from legged_envs.training.notices import print_how_to_resume
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.threads import limit_threads
from legged_envs.training.trainer import Trainer, train
from legged_envs.viewing import film
from legged_envs.viewing.film import film_policy
from legged_envs.viewing.labels import LABEL_HEIGHT
from legged_envs.viewing.play import play as play_locally
from legged_envs.viewing.scenes import Scene, make_scenes, make_tour
from legged_envs.viewing.watch import make_watched_envs
from legged_envs.wrappers.adapters.rsl_rl import BootstrapPPO, RslRlVecEnv

pytestmark = pytest.mark.usefixtures("short_evaluations")
walking = pytest.mark.usefixtures("walking_evaluations")
GO2 = "Legged/Go2-Flat-v0"
G1 = "Legged/G1-Flat-v0"
GO2_MIMIC = "Legged/Go2-Mimic-v0"


def tiny(run_dir, task=GO2, **kwargs):
    ppo = PPOCfg(steps_per_env=4, epochs=1, mini_batches=2, hidden=(16,))
    return TrainCfg(task, num_envs=8, run_dir=run_dir, algo=ppo, episodes=4, video=False, **kwargs)


@pytest.fixture(scope="module")
def run(tmp_path_factory, short_evaluations):
    """A finished run of two updates."""
    return train(tiny(tmp_path_factory.mktemp("runs") / "two", iterations=2))


def parameters(trainer):
    return {name: value.clone() for name, value in trainer.algorithm.save()["actor"].items()}


def test_the_threads_of_a_training_are_also_those_of_its_physics(tmp_path):
    trainer = Trainer(prepare(tiny(tmp_path, iterations=4, threads=1)), Console(quiet=True))
    trainer.save()
    assert trainer.core.sim.batch.nthread == trainer.goal.evaluator.core.sim.batch.nthread == 1
    assert trainer.task.sim.num_threads == 0  # the configuration of the run says nothing of it
    resumed = Trainer(
        prepare(TrainCfg(GO2, resume=tmp_path, threads=3)), console=Console(quiet=True)
    )
    assert resumed.core.sim.batch.nthread == 3
    assert limit_threads(resumed.core.cfg, 2).sim.num_threads == 3  # that of a task comes first


def test_a_run_folder_holds_what_is_promised(run):
    assert {
        "policy.safetensors",
        "policy.onnx",
        "eval.json",
        "learning_curve.png",
        "config.json",
        CHECKPOINT,
    } <= {path.name for path in run.iterdir()}
    assert any(path.name.startswith("events.out.tfevents") for path in run.iterdir())
    report = json.loads((run / "eval.json").read_text())
    assert report["env_steps"] == 2 * 4 * 8
    assert set(report["costs"]) == set(make_task_cfg(GO2).costs)
    recorded = read_evaluation(run / "policy.safetensors")
    assert recorded.pop("seed") == EVALUATION_SEED and recorded["episodes"] == 4
    assert recorded == {name: report[name] for name in recorded}
    config = json.loads((run / "config.json").read_text())
    assert config["training"]["num_envs"] == 8
    assert (
        config["task"]["rewards"]["joint_torque"]["func"] == "legged_envs.mdp.rewards.joint_torque"
    )


def test_a_curve_tells_what_the_episodes_of_an_update_report(tmp_path, monkeypatch):
    logs = [
        {
            "/episodes": torch.tensor(1.0),
            "/cost/slip": torch.tensor(0.4),
            "/termination/fall": torch.tensor(1.0),
        }
    ]
    logs += [
        {"/episodes": 3.0, "/cost/slip": 0.2, "/termination/fall": 2.0, "own": torch.tensor(7)}
    ]
    assert combine_logs([]) == {}
    told = pytest.approx({"episodes": 4.0, "cost/slip": 0.25, "termination/fall": 3.0, "own": 7.0})
    assert combine_logs(logs) == told
    seen: list[dict] = []
    step = RslRlVecEnv.step
    monkeypatch.setattr(
        RslRlVecEnv, "step", lambda self, actions: seen.append(step(self, actions)) or seen[-1]
    )
    changes = {"episode_length_s": 0.06}
    row = read_checkpoint(train(tiny(tmp_path, iterations=1, changes=changes)), GO2)["curve"][0]
    ended = [extras["log"] for *_, extras in seen[:4] if "log" in extras]
    assert row["episodes"] == sum(log["/episodes"] for log in ended) > 0
    slips = [float(log["/cost/foot_slip"] * log["/episodes"]) for log in ended]
    assert row["cost/foot_slip"] == pytest.approx(sum(slips) / row["episodes"])


def test_safetensors_and_onnx_are_the_trained_network_and_carry_the_contract(run):
    policy = load_policy(run / "policy.safetensors")
    trainer = Trainer(prepare(tiny(run, iterations=2, resume=run)), Console(quiet=True))
    observation = torch.randn(5, 45)
    expected = trainer.algorithm.get_policy()(observation).detach()
    torch.testing.assert_close(policy(observation), expected)
    session = onnxruntime.InferenceSession(str(run / "policy.onnx"))
    np.testing.assert_allclose(
        session.run(None, {"obs": observation.numpy()})[0], expected, atol=1e-5
    )
    metadata = {
        entry.key: entry.value for entry in onnx.load(str(run / "policy.onnx")).metadata_props
    }
    robot = make_task_cfg(GO2).robot
    assert (
        json.loads(metadata["joint_names"])
        == list(robot.joint_names)
        == policy.contract["joint_names"]
    )
    assert json.loads(metadata["default_joint_pos"]) == list(robot.default_joint_pos)
    assert float(metadata["control_dt"]) == 0.02
    assert [(t["name"], t["size"]) for t in json.loads(metadata["observation"])][:2] == [
        ("command", 3),
        ("gravity", 3),
    ]


@pytest.mark.parametrize("saved", [1, 3])
@pytest.mark.parametrize("task", [GO2, "Legged/Go2-Rough-v0", "direct", "legged_robot"])
@pytest.mark.filterwarnings("ignore:left and right are not treated equally")
def test_a_resumed_run_continues_bit_for_bit(task, saved, tmp_path):
    task = task if "/" in task else register_form(task)
    coarse = (
        0.5 if task == GO2 else None
    )  # one checkpoint is before physics becomes finer, the other after that

    def iterate(trainer, times):
        for _ in range(times):
            trainer.set_schedule()
            trainer.iterate()
        return trainer

    begun, going_on = (
        tiny(tmp_path, iterations=4, coarse=coarse),
        tiny(None, iterations=4, resume=tmp_path),
    )
    whole = iterate(Trainer(prepare(replace(begun, task_id=task)), Console(quiet=True)), 4)
    iterate(Trainer(prepare(replace(begun, task_id=task)), Console(quiet=True)), saved).save()
    resumed = iterate(
        Trainer(prepare(replace(going_on, task_id=task)), Console(quiet=True)), 4 - saved
    )
    assert resumed.core.decimation == resumed.task.sim.decimation
    assert resumed.iteration == whole.iteration == 4
    expected, got = parameters(whole), parameters(resumed)
    assert all(torch.equal(expected[name], got[name]) for name in expected)


def test_physics_is_coarse_for_most_of_a_training_on_flat_ground_and_fine_at_its_end(tmp_path):
    trainer, steps = Trainer(prepare(tiny(tmp_path, iterations=5)), Console(quiet=True)), []
    for _ in range(5):
        trainer.set_schedule()
        trainer.iterate()
        steps.append(trainer.core.decimation)
    assert steps == [2, 2, 2, 2, 4]
    assert (
        Trainer(
            prepare(tiny(None, task="Legged/Go2-Rough-v0")), Console(quiet=True)
        ).prepared.coarse
        == 0.0
    )


@pytest.mark.parametrize(
    ("algo", "discounts"),
    [(PPOCfg(), [0.98, 0.985, 0.99]), (PPOCfg(gamma=0.9, final_gamma=0.8), [0.9, 0.85, 0.8])],
)
def test_the_discount_moves_linearly_over_a_run(algo, discounts):
    trainer, got = (
        Trainer(prepare(replace(tiny(None, task=G1), algo=algo)), Console(quiet=True)),
        [],
    )
    for done in (0.0, 0.5, 1.0):
        trainer.schedule.apply(done, trainer.env_steps)
        got.append(trainer.algorithm.gamma)
    assert got == pytest.approx(discounts)


def test_a_biped_takes_steps_for_its_height():
    tasks = {
        name: make_task_cfg(f"Legged/{name}-Flat-v0")
        for name in ("G1", "K1", "Tron1-SF", "Tron1-PF")
    }
    periods = {name: task.commands["gait"].period for name, task in tasks.items()}
    height = tasks["G1"].robot.base_height
    froude = {name: 0.6 * (task.robot.base_height / height) ** 0.5 for name, task in tasks.items()}
    assert periods == pytest.approx(froude, abs=0.005)


@pytest.mark.parametrize(("task_id", "arms"), [(G1, 0), ("Legged/K1-Flat-v0", 10)])
def test_arms_and_heads_begin_with_less_noise(task_id, arms):
    trainer = Trainer(
        prepare(replace(tiny(None, task=task_id), algo=PPOCfg(init_std=0.3))), Console(quiet=True)
    )
    names, std = (
        make_task_cfg(task_id).robot.joint_names,
        trainer.algorithm.actor.distribution.std_param.detach(),
    )
    quieter = {
        name
        for name, value in zip(names, std.tolist(), strict=True)
        if value == pytest.approx(0.12)
    }
    assert quieter == {
        name for name in names if not re.search("hip|knee|ankle", name, re.IGNORECASE)
    }
    assert len(quieter) == arms and {round(value, 6) for value in std.tolist()} == (
        {0.12, 0.3} if arms else {0.3}
    )


def test_a_warm_start_begins_with_the_networks_of_a_run_and_nothing_else(run):
    before = read_checkpoint(run, GO2)["algorithm"]
    trainer = Trainer(
        prepare(tiny(None, iterations=1, warm_start=run, seed=5)), Console(quiet=True)
    )
    after = trainer.algorithm.save()
    for part in ("actor", "critic"):
        assert all(torch.equal(value, before[part][name]) for name, value in after[part].items())
    assert (trainer.iteration, after["optimizer"]["state"]) == (0, {})
    trainer.iterate()


@pytest.mark.parametrize(
    ("first", "second"), [("rsl_rl", "legged_envs"), ("legged_envs", "rsl_rl")]
)
def test_a_learner_begins_with_the_networks_of_the_other(tmp_path, first, second):
    begun = Trainer(prepare(tiny(tmp_path, iterations=1, learner=first)), Console(quiet=True))
    begun.iterate()
    begun.save()
    cfg = tiny(None, iterations=1, warm_start=tmp_path, learner=second)
    trainer = Trainer(prepare(cfg), Console(quiet=True))
    for name in ("actor", "critic"):
        before = getattr(begun.algorithm, name).state_dict()
        after = getattr(trainer.algorithm, name).state_dict()
        assert all(torch.equal(value, before[key]) for key, value in after.items())


def test_a_run_of_rsl_rl_is_resumed_by_rsl_rl_also_if_its_options_do_not_say_so(tmp_path):
    begun = Trainer(prepare(tiny(tmp_path, iterations=2, learner="rsl_rl")), Console(quiet=True))
    begun.iterate()
    # Earlier versions had no such option.
    begun.cfg.learner = "legged_envs"
    begun.save()
    again = Trainer(prepare(TrainCfg(GO2, resume=tmp_path)), Console(quiet=True))
    assert isinstance(again.algorithm, BootstrapPPO)


def test_a_warm_start_keeps_a_part_of_the_noise(run):
    cfg = tiny(None, iterations=1, warm_start=run)
    quiet = Trainer(
        prepare(replace(cfg, algo=replace(cfg.algo, noise_kept=0.6))), Console(quiet=True)
    )
    stds = [
        parameters(each)["distribution.std_param"]
        for each in (quiet, Trainer(prepare(cfg), Console(quiet=True)))
    ]
    assert torch.allclose(stds[0], 0.6 * stds[1])
    with pytest.raises(ValueError, match=r"--noise-kept is for a --warm-start, got 0\.6 without"):
        Trainer(
            prepare(replace(cfg, warm_start=None, algo=replace(cfg.algo, noise_kept=0.6))),
            Console(quiet=True),
        )
    with pytest.raises(ValueError, match=r"--init-std is for new networks, got 0\.3 with"):
        prepare(replace(cfg, algo=replace(cfg.algo, init_std=0.3)))
    with pytest.raises(ValueError, match=r"--noise-kept must be .* above 0"):
        Trainer(prepare(replace(cfg, algo=replace(cfg.algo, noise_kept=0.0))), Console(quiet=True))


def values(trainer, observation):
    with torch.inference_mode():
        algorithm = trainer.algorithm
        return algorithm.actor(observation["policy"]), algorithm.critic(observation["critic"])


@pytest.mark.parametrize("task", ["Legged/Go2-Rough-v0", "Legged/Go2-Blind-v0"])
def test_a_task_that_shows_more_begins_with_the_actions_and_values_of_a_run(run, task):
    cfg = tiny(None, task=task, iterations=1, warm_start=run, seed=5)
    trainer = Trainer(
        prepare(replace(cfg, algo=replace(cfg.algo, hidden=(24,)))), Console(quiet=True)
    )
    there = Trainer(prepare(tiny(None, iterations=1, warm_start=run)), Console(quiet=True))
    scale, theirs_scale = trainer.core.actions.scale, there.core.actions.scale
    assert scale.tolist() == pytest.approx(
        [0.6, 0.6, 1.1] * 4
    ) and theirs_scale.tolist() == pytest.approx([0.6] * 12)
    shown = trainer.env.get_observations()
    flat = shown.clone()
    for name in ("policy", "critic"):
        shown[name][:, 33:45].uniform_(-0.4, 0.4)  # the last action, in units of its scale
        flat[name] = shown[name][:, : there.core.group_sizes[name]].clone()
        flat[name][:, 33:45] *= scale / theirs_scale
    (action, value), (their_action, their_value) = values(trainer, shown), values(there, flat)
    assert (
        torch.allclose(action * scale, their_action * theirs_scale, atol=1e-6)
        and action.abs().max() > 1e-3
    )
    assert torch.allclose(value, their_value, atol=1e-6) and value.abs().max() > 1e-3
    noise, their_noise = (
        each.algorithm.get_policy().distribution.std_param for each in (trainer, there)
    )
    assert torch.allclose(noise * scale, their_noise * theirs_scale)
    trainer.iterate()
    after = values(trainer, shown)[0]
    blank = shown.clone()
    blank["policy"][:, there.core.group_sizes["policy"] :] = 0.0
    seen = not torch.equal(after, values(trainer, blank)[0])
    assert seen == (task == "Legged/Go2-Rough-v0")  # what is new to see is learnt


def test_observations_in_another_order_find_their_weights(run, monkeypatch):
    def turned(task_id):
        cfg = make_task_cfg(task_id)
        for group in cfg.observations.values():
            group.terms = dict(reversed(group.terms.items()))
        return cfg

    there = Trainer(prepare(tiny(None, iterations=1, warm_start=run)), Console(quiet=True))
    monkeypatch.setattr("legged_envs.training.prepare.make_task_cfg", turned)
    trainer = Trainer(prepare(tiny(None, iterations=1, warm_start=run)), Console(quiet=True))
    shown = trainer.env.get_observations()
    pieces = shown["policy"].split([12, 12, 12, 3, 3, 3], dim=1)
    before = shown.clone()
    before["policy"] = torch.cat(pieces[::-1], dim=1)
    ours = trainer.algorithm.actor(shown["policy"])
    theirs = there.algorithm.actor(before["policy"])
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_what_a_task_no_longer_shows_counts_as_at_its_mean(tmp_path):
    rough, begun = (
        tmp_path,
        Trainer(
            prepare(tiny(tmp_path, task="Legged/Go2-Rough-v0", iterations=2)), Console(quiet=True)
        ),
    )
    for _ in range(2):
        begun.iterate()
    begun.save()
    there = Trainer(
        prepare(tiny(None, task="Legged/Go2-Rough-v0", warm_start=rough)), Console(quiet=True)
    )
    blind = Trainer(
        prepare(tiny(None, task="Legged/Go2-Blind-v0", warm_start=rough)), Console(quiet=True)
    )
    shown, size = there.env.get_observations(), blind.core.group_sizes["policy"]
    seen = shown.clone()
    seen["policy"] = shown["policy"][:, :size]
    shown["policy"][:, size:] = there.algorithm.actor.obs_normalizer.mean[size:]
    expected, got = values(there, shown), values(blind, seen)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(expected, got, strict=True))


@pytest.mark.parametrize(
    "task, hidden, wrong",
    [
        (G1, (16,), "robot go2; 'Legged/G1-Flat-v0' has g1"),
        (GO2, (8,), r"must have the sizes of the run's layers, \[16, 12\], got \[8, 12\]"),
        (GO2, (16, 16), r"got \[16, 16, 12\]"),
    ],
)
def test_a_run_whose_networks_do_not_fit_is_refused(run, task, hidden, wrong):
    cfg = tiny(None, task=task, warm_start=run)
    with pytest.raises(ValueError, match=wrong):
        Trainer(prepare(replace(cfg, algo=replace(cfg.algo, hidden=hidden))), Console(quiet=True))


def test_the_same_seed_trains_the_same_policy_and_another_seed_another(tmp_path):
    def trained(seed, name):
        trainer = Trainer(
            prepare(tiny(tmp_path / name, iterations=1, seed=seed)), Console(quiet=True)
        )
        trainer.iterate()
        return parameters(trainer)

    one, same, other = trained(3, "a"), trained(3, "b"), trained(4, "c")
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_a_whole_run_writes_the_same_policy_however_often_the_goal_is_checked(
    tmp_path, monkeypatch
):
    trained = []
    monkeypatch.setattr("legged_envs.training.goal.GOAL_MARGIN", 1e9)
    for name, interval in (("never", 1e9), ("always", 0.0)):
        monkeypatch.setattr("legged_envs.training.goal.GOAL_INTERVAL", interval)
        folder = train(tiny(tmp_path / name, iterations=3, checkpoint_minutes=1e-6))
        trained.append((load_file(folder / "policy.safetensors"), read_checkpoint(folder)["rng"]))
    (weights, rng), (same_weights, same_rng) = trained
    assert weights.keys() == same_weights.keys() and torch.equal(rng, same_rng)
    assert all(torch.equal(value, same_weights[name]) for name, value in weights.items())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_run_with_a_policy_and_a_checkpoint_to_resume(number, tmp_path):
    folder, handlers = (
        tmp_path / "run",
        [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)],
    )
    trainer = Trainer(prepare(tiny(folder, minutes=5.0)), Console(quiet=True))
    threading.Timer(1.0, os.kill, (os.getpid(), number)).start()
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert trainer.seconds < 60.0
    assert load_policy(folder / "policy.safetensors")(torch.zeros(1, 45)).shape == (1, 12)
    resumed = Trainer(prepare(tiny(None, iterations=10**6, resume=folder)), Console(quiet=True))
    assert resumed.iteration == trainer.iteration > 0
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_of_the_evaluation_ends_it_and_leaves_what_was_trained(
    number, tmp_path, monkeypatch
):
    steps, step = [], CoreVectorEnv.step

    def interrupted_step(core, actions):
        steps.append(core.num_envs == 3)  # one of the evaluation
        if sum(steps) == 5:
            os.kill(os.getpid(), number)
        return step(core, actions)

    monkeypatch.setattr(CoreVectorEnv, "step", interrupted_step)
    console = Console(record=True, width=200)
    trainer = Trainer(prepare(replace(tiny(tmp_path, iterations=1), episodes=3)), console)
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert sum(steps) < 100
    assert load_policy(tmp_path).task_id == GO2 and not (tmp_path / "eval.json").exists()
    assert (
        f"interrupted; continue with: legged-envs train {GO2} --resume {tmp_path}"
        in console.export_text()
    )


def test_a_check_for_the_goal_does_not_keep_an_interrupt_waiting(tmp_path):
    trainer = Trainer(prepare(tiny(tmp_path, iterations=1)), Console(quiet=True))
    trainer.seconds = 100.0
    trainer.stop.request()
    measured = []
    trainer.goal.quick_evaluator.metrics.measures = lambda info: measured.append(info) or {}
    trainer.check_goal(dict.fromkeys(trainer.metrics.ERRORS, 0.0))
    assert len(measured) == 1 and trainer.time_to_walk is None


def test_all_episodes_are_evaluated_for_the_goal_only_where_a_few_walk(tmp_path, monkeypatch):
    monkeypatch.setattr("legged_envs.training.goal.QUICK_EPISODES", 2)
    trainer, asked = (
        Trainer(prepare(replace(tiny(tmp_path, iterations=1), episodes=3)), Console(quiet=True)),
        [],
    )
    assert (trainer.goal.quick_evaluator.core.num_envs, trainer.goal.evaluator.core.num_envs) == (
        2,
        3,
    )
    for scouts_walk, all_walk in [(False, True), (True, False), (True, True)]:
        for evaluator, walk in (
            (trainer.goal.quick_evaluator, scouts_walk),
            (trainer.goal.evaluator, all_walk),
        ):
            result = SimpleNamespace(
                walks=lambda walk=walk, **goal: walk,
                lin_vel_error=0.2,
                ang_vel_error=0.1,
                falls=0.0,
            )
            evaluator.run = lambda *_, result=result, n=evaluator.core.num_envs, **options: (
                asked.append(n) or result
            )
        trainer.seconds += 20.0
        trainer.check_goal(dict.fromkeys(trainer.metrics.ERRORS, 0.0) | {"env_steps": 9})
        assert (trainer.time_to_walk is not None) == (scouts_walk and all_walk)
    assert asked == [2, 2, 3, 2, 3]


def test_checks_for_the_goal_take_a_sixth_of_the_time_at_most(tmp_path, monkeypatch):
    trainer, asked = Trainer(prepare(tiny(tmp_path, iterations=1)), Console(quiet=True)), []
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(
        "legged_envs.training.goal.time", SimpleNamespace(perf_counter=lambda: clock.now)
    )
    result = SimpleNamespace(walks=lambda **goal: False)

    def run(*_, **options):
        asked.append(clock.now)
        clock.now += 20.0
        return result

    trainer.goal.quick_evaluator.run = run
    while clock.now < 1200.0:  # updates of a second, and checks between them
        clock.now += 1.0
        trainer.seconds = clock.now
        trainer.check_goal(dict.fromkeys(trainer.metrics.ERRORS, 0.0))
    assert asked[0] == 15.0 and len(asked) == 10


def test_numbered_checkpoints_are_kept_and_each_can_be_gone_on_from_elsewhere(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "checkpoint_best.pt").touch()
    trainer = Trainer(prepare(tiny(folder, iterations=4, keep=2)), Console(quiet=True))
    for _ in range(3):
        trainer.iterate()
        trainer.save()
    names = ["checkpoint.pt", "checkpoint_000002.pt", "checkpoint_000003.pt", "checkpoint_best.pt"]
    assert sorted(path.name for path in folder.iterdir()) == names
    before = {path: path.read_bytes() for path in folder.iterdir()}

    second = folder / "checkpoint_000002.pt"
    resumed = Trainer(prepare(TrainCfg(GO2, resume=second)), Console(quiet=True))
    assert (resumed.iteration, resumed.cfg.keep) == (2, 2)
    assert resumed.run_dir.parent == Path("runs/Go2-Flat-v0")
    assert (
        Trainer(prepare(TrainCfg(GO2, resume=folder / CHECKPOINT)), Console(quiet=True)).run_dir
        == folder
    )
    with pytest.raises(FileExistsError, match=r"there is a run in .*another --run-dir"):
        Trainer(prepare(TrainCfg(GO2, resume=second, run_dir=folder)), Console(quiet=True))
    warm = Trainer(
        prepare(tiny(tmp_path / "warm", iterations=1, warm_start=second)), Console(quiet=True)
    )
    assert warm.iteration == 0
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_run_without_a_terminal_says_how_far_it_is_and_first_of_all_if_it_cannot_film(
    tmp_path, monkeypatch
):
    class NoDisplay:
        def __init__(self, *args, **kwargs):
            raise OSError("cannot open libEGL.so.1")

    monkeypatch.setattr(mujoco, "Renderer", NoDisplay)
    monkeypatch.setattr("legged_envs.training.trainer.LINE_INTERVAL", 0.0)
    console = Console(record=True, width=60)
    Trainer(prepare(replace(tiny(tmp_path, iterations=2), video=True)), console).run()
    text = console.export_text()
    numbers = r"update 2  0\.00 M steps  \d+ steps/s  reward -?\d+\.\d\d/s  error \d\.\d\d m/s  \d\.\d\d rad/s"
    training = re.search(rf"^training 100% after 0:00:\d\d  {numbers}$", text, re.M)
    assert training and text.count("training") == text.count("no video: ") == 1
    assert text.index("no video: ") < training.start()
    for part in ("exporting", "evaluating", "standing", "drawing"):
        assert re.search(rf"^{part} 100% after 0:00:\d\d$", text, re.M)
    assert (tmp_path / "eval.json").is_file()


def test_lines_come_once_in_their_interval(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("legged_envs.runs.progress.time.monotonic", lambda: now[0])
    console = Console(record=True, width=60)
    with showing(console, 60.0) as show:
        for now[0] in range(0, 200):
            show("training", now[0] / 200, f"update {now[0]}\nreward 1")
        show("training", 1.0, "the end")
    assert console.export_text().splitlines() == [
        "training  30% after 0:01:00  update 60  reward 1",
        "training  60% after 0:02:00  update 120  reward 1",
        "training  90% after 0:03:00  update 180  reward 1",
        "training 100% after 0:03:19  the end",
    ]


def test_a_terminal_shows_a_bar_for_each_part_that_fits_into_80_columns(tmp_path):
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    Trainer(prepare(tiny(tmp_path, iterations=1)), console).run()
    text = console.file.getvalue()
    for part in ("training", "exporting", "evaluating", "standing", "drawing"):
        assert re.search(rf"{part} +━{{12}} 100% 0:00:\d\d left 0:00:00", text)
    assert "reward" in text and "…" not in text


@pytest.mark.render
def test_a_film_beside_the_evaluation_changes_none_of_its_figures(tmp_path, capsys):
    changes = {"actions.joint_position.scale": 0.05}  # the robots stand
    folder = train(
        replace(
            tiny(tmp_path / "run", iterations=1, video_seconds=0.3, changes=changes), video=True
        )
    )
    assert (folder / "video.mp4").is_file()
    report = json.loads((folder / "eval.json").read_text())
    evaluate(EvaluateCfg(GO2, folder, episodes=4, json=tmp_path / "alone.json"))
    alone = json.loads((tmp_path / "alone.json").read_text())
    common = report.keys() & alone.keys()
    assert {"lin_vel_error", "still_contact", "costs"} <= common and report["falls"] < 1.0
    assert all(report[name] == alone[name] for name in common)


def test_a_film_too_short_for_its_scenes_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(
        ValueError,
        match=r"--video-seconds must be at least .* 0\.02 s for each of 6 scenes, got 0\.1",
    ):
        Trainer(
            prepare(replace(tiny(tmp_path / "run", video_seconds=0.1), video=True)),
            Console(quiet=True),
        )
    assert list(tmp_path.iterdir()) == []


def test_a_tour_stays_within_the_commands_of_its_task():
    go2 = [(1.0, 0.0, 0.0), (0.6, 0.0, 0.9), (0.0, 0.4, 0.0), (0.0, 0.0, -0.9), (-0.6, 0.0, 0.0)]
    assert make_tour(make_task_cfg(GO2)) == [*go2, (0.0, 0.0, 0.0)]
    for task_id, ranges in (
        (G1, {}),
        (GO2, {"lin_vel_y": (0.0, 0.0)}),
        (GO2, {"lin_vel_x": (0.0, 0.3), "ang_vel_z": (0.0, 0.0)}),
        (GO2, {"lin_vel_x": (1.5, 2.0), "lin_vel_y": (0.0, 0.0), "ang_vel_z": (-0.1, 0.1)}),
    ):
        cfg = make_task_cfg(task_id)
        velocity = cfg.commands["velocity"] = replace(cfg.commands["velocity"], **ranges)
        commands = make_tour(cfg)
        assert len(commands) == len(set(commands)) > 1
        for low_high, values in zip(
            command_ranges(cfg).values(), zip(*commands, strict=True), strict=True
        ):
            assert low_high[0] <= min(values) and max(values) <= low_high[1]
        assert 0.0 in velocity.lin_vel_x or all(
            vx >= velocity.lin_vel_x[0] for vx, _, _ in commands
        )
    assert [scene.command for scene in make_scenes(cfg)] == commands


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ({"vx": 99.0}, r"--vx must be within the commands of this task, -1.3 to 1.3, got 99"),
        ({"vx": 1.0, "vy": -0.8}, r"--vy must be within .*, -0\.7 to 0\.7, got -0\.8"),
        ({"wz": float("nan")}, r"--wz must be"),
    ],
)
def test_a_command_that_the_task_does_not_know_is_refused(command, message, tmp_path, monkeypatch):
    monkeypatch.setattr("legged_envs.viewing.play.play", lambda *args: pytest.fail("it was played"))
    with pytest.raises(ValueError, match=message):
        play(PlayCfg(GO2, video=tmp_path / "play.mp4", **command))


def test_a_film_shows_the_command_and_how_fast_the_robot_is(monkeypatch, tmp_path):
    envs = make_watched_envs(GO2, make_task_cfg(GO2), load_shipped_policy(GO2))
    core, pictures, labels = unwrap(envs), [], []
    monkeypatch.setattr(
        type(core.sim), "render", lambda sim, env, w, h, ghost: np.full((h, w, 3), 200, np.uint8)
    )
    draw = film.draw_label
    monkeypatch.setattr(
        film, "draw_label", lambda picture, text: labels.append(text) or draw(picture, text)
    )
    frame = film.render_frame
    monkeypatch.setattr(
        film, "render_frame", lambda *args: pictures.append(frame(*args)) or pictures[-1]
    )
    shown = [Scene(2.0, (0.5, 0.0, 0.0)), Scene(0.1, (0.0, 0.3, -0.9))]
    film.film(envs, load_shipped_policy(GO2), ("policy",), shown, tmp_path / "walk.mp4")
    envs.close()
    row = r"  vx ([+-]\d\.\d\d)  vy ([+-]\d\.\d\d) m/s  wz ([+-]\d\.\d\d) rad/s"
    values = [re.fullmatch(rf"command{row}\nspeed  {row}", label).groups() for label in labels]
    assert values[0][:3] == ("+0.50", "+0.00", "+0.00") and values[-1][:3] == (
        "+0.00",
        "+0.30",
        "-0.90",
    )
    assert abs(float(values[0][3])) < 0.1  # it has hardly started
    assert [float(value) for value in values[49][3:]] == pytest.approx([0.5, 0.0, 0.0], abs=0.12)
    for picture in pictures:
        band, rest = picture[:LABEL_HEIGHT], picture[LABEL_HEIGHT:]
        assert (rest == 200).all() and band.min() == 70 and (band > 230).sum() > 1000


class Window:
    """A window in which the arrow up is pressed after two frames, and which is closed after three."""

    def __init__(self):
        self.texts, self.user_scn = [], SimpleNamespace(ngeom=0)
        self.cam = SimpleNamespace()

    def listen(self, on_key):
        self.on_key = on_key
        return self

    def set_texts(self, texts):
        self.texts.append(texts)

    def sync(self):
        if len(self.texts) == 2:
            self.on_key(265)

    def is_running(self):
        return len(self.texts) < 3

    def close(self):
        pass


def test_a_window_shows_the_command_and_how_fast_the_robot_is(monkeypatch):
    window = Window()
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(
        "mujoco.viewer.launch_passive",
        lambda model, data, key_callback, **_: window.listen(key_callback),
    )
    play_locally(
        GO2, make_task_cfg(GO2), load_shipped_policy(GO2), None, [Scene(1.0, (0.5, 0.0, 0.0))]
    )
    assert len(window.texts) == 3 and all("\nspeed" in text[2] for text in window.texts)
    commands = [text[2].split()[:3] for text in window.texts]
    assert commands == [["command", "vx", "+0.50"]] * 2 + [
        ["command", "vx", "+0.60"]
    ]  # after the key


def test_what_an_interrupted_run_prints_goes_on_with_it_as_it_was_begun(tmp_path, monkeypatch):
    folder = (
        tmp_path
        / "a long name, with spaces [and more] that does not fit on a line of eighty columns of text"
    )
    changes = {"rewards.joint_torque.weight": 0.0, "sim.decimation": 2, "events.push": None}
    cfg = tiny(folder, minutes=0.02, changes=changes, seed=7)
    console = Console(record=True, width=80)
    trainer = Trainer(prepare(cfg), console)
    trainer.stop.request()
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    begun = json.loads((folder / "config.json").read_text())
    command = console.export_text().split("continue with: ")[1].splitlines()[0]

    monkeypatch.setattr(sys, "argv", shlex.split(command))
    cli.main()
    went_on = json.loads((folder / "config.json").read_text())
    assert went_on["task"] == begun["task"]
    assert went_on["training"] == begun["training"] | {"resume": str(folder), "run_dir": None}
    report = json.loads((folder / "eval.json").read_text())
    assert report["env_steps"] > 0 and report["training_seconds"] >= 1.2 and report["episodes"] == 4


def test_a_resumed_run_imports_the_modules_that_its_task_needs(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_tasks.py").write_text(
        "import legged_envs\n"
        "legged_envs.register('Own/Go2-v0', 'legged_envs.tasks.velocity:go2_flat')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    given = []
    monkeypatch.setattr("legged_envs.training.trainer.train", given.append)
    folder = tmp_path / "run"
    cli.main(["train", "Own/Go2-v0", "--import", "own_tasks", "--run-dir", str(folder)])
    folder.mkdir()
    (folder / CHECKPOINT).touch()
    print_how_to_resume(Console(width=300), given[0], folder, is_wrapped=False)
    command = capsys.readouterr().out.split("continue with: ")[1].split()
    assert command[-2:] == ["--import", "own_tasks"]
    cli.main(command[1:])
    assert given[1].resume == folder and given[1].imports == ("own_tasks",)


def test_what_a_trot_earns_beyond_its_weight_fades(tmp_path, monkeypatch):
    trainer = Trainer(
        prepare(tiny(tmp_path, iterations=4, changes={"rewards.trot.weight": 2.0})),
        Console(quiet=True),
    )
    samples = trainer.cfg.num_envs * trainer.prepared.algo.steps_per_env
    monkeypatch.setattr("legged_envs.training.schedule.TROT_FADES", (samples, 3 * samples))
    weights = []
    for trainer.iteration in range(5):
        trainer.schedule.apply(0.0, trainer.env_steps)
        weights.append(trainer.core.rewards.cfg["trot"].weight)
    assert weights == pytest.approx([5.0, 5.0, 3.5, 2.0, 2.0])
    assert (
        trainer.task.rewards["trot"].weight == 2.0
    )  # what the run folder and the evaluation are told


def test_a_wrapped_run_that_is_interrupted_names_its_wrappers(tmp_path):
    console = Console(record=True, width=300)
    trainer = Trainer(prepare(tiny(tmp_path, iterations=1)), console, wrap=lambda env: env)
    trainer.stop.request()
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert (
        f"TrainCfg('{GO2}', resume=Path('{tmp_path}')) and the same wrappers"
        in console.export_text()
    )


def test_a_resumed_run_takes_the_options_that_may_differ_and_refuses_the_others_by_name(tmp_path):
    begun = tiny(
        tmp_path, iterations=4, checkpoint_minutes=7.0, changes={"rewards.joint_torque.weight": 0.0}
    )
    trainer = Trainer(prepare(begun), Console(quiet=True))
    trainer.save()
    cfg = trainer.cfg

    def resume(**options):
        return Trainer(prepare(TrainCfg(GO2, resume=tmp_path, **options)), Console(quiet=True)).cfg

    assert resume() == replace(cfg, run_dir=None, resume=tmp_path)
    free = {
        "iterations": 9,
        "threads": 1,
        "checkpoint_minutes": 1.0,
        "episodes": 8,
        "run_dir": tmp_path / "copy",
    }
    assert resume(**free) == replace(cfg, resume=tmp_path, **free)
    assert resume(minutes=3.0) == replace(
        cfg, run_dir=None, resume=tmp_path, minutes=3.0, iterations=None
    )
    assert resume(num_envs=8, changes=cfg.changes) == resume(algo=PPOCfg(epochs=1)) == resume()
    for option, options in {
        "num-envs is 8 .*, got 16": {"num_envs": 16},
        "seed is 1 .*, got 2": {"seed": 2},
        "changes is .*joint_torque.*, got .*joint_acc": {
            "changes": {"rewards.joint_acc.weight": 0.0}
        },
        r"learning-rate is 0\.001 .*, got 9": {"algo": PPOCfg(learning_rate=9.0)},
        "warm-start is None .*, got elsewhere": {"warm_start": Path("elsewhere")},
    }.items():
        with pytest.raises(ValueError, match=f"--{option}"):
            resume(**options)


def test_two_trainings_do_not_share_a_folder(tmp_path):
    with (
        lock_run_folder(tmp_path),
        pytest.raises(
            FileExistsError, match=r"another training is writing to .*: wait .* --run-dir"
        ),
    ):
        Trainer(prepare(tiny(tmp_path, iterations=1)), Console(quiet=True)).run()
    assert not [*tmp_path.iterdir()]
    with lock_run_folder(tmp_path):
        pass


@pytest.mark.parametrize("less", [{"iterations": 1}, {"minutes": 1e-5}])
def test_a_run_does_not_go_on_to_less_than_it_has(less, run):
    with pytest.raises(
        ValueError, match=r"start of the run, which has completed 2 and 0\.\d: give more"
    ):
        Trainer(prepare(TrainCfg(GO2, resume=run, **less)), Console(quiet=True))


def test_a_checkpoint_without_the_options_of_its_run_is_refused(tmp_path):
    Trainer(prepare(tiny(tmp_path, iterations=1)), Console(quiet=True)).save()
    state = read_checkpoint(tmp_path, GO2)
    del state["cfg"]
    torch.save(state, tmp_path / CHECKPOINT)
    with pytest.raises(
        ValueError, match=r"checkpoint '.*' cannot be resumed.*of an older version.*--warm-start"
    ):
        Trainer(prepare(tiny(None, resume=tmp_path)), Console(quiet=True))


def test_a_resumed_run_does_not_need_the_run_that_it_was_warmed_by(run, tmp_path):
    began = Trainer(prepare(tiny(tmp_path, iterations=2, warm_start=run)), Console(quiet=True))
    began.cfg.warm_start = tmp_path / "gone"
    began.save()
    assert (
        Trainer(prepare(TrainCfg(GO2, resume=tmp_path)), Console(quiet=True)).cfg.warm_start
        == tmp_path / "gone"
    )


def test_a_run_is_not_written_over_another(run, tmp_path):
    before = {path: path.read_bytes() for path in run.iterdir()}
    for resume in (None, tmp_path):
        Trainer(prepare(tiny(tmp_path, iterations=2, resume=resume)), Console(quiet=True)).save()
        with pytest.raises(FileExistsError, match=r"two'.*another --run-dir, or --resume it"):
            Trainer(prepare(tiny(run, iterations=2, resume=resume)), Console(quiet=True))
    assert {path: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "--num-envs must be a positive integer, got 0"),
        ({"episodes": 0}, "--episodes must be a positive integer, got 0"),
        ({"threads": -1}, "--threads must be an integer of at least 0, got -1"),
        ({"algo": PPOCfg(steps_per_env=0)}, r"--steps-per-env must be a positive integer, got 0"),
        ({"algo": PPOCfg(epochs=0)}, r"--epochs must be a positive integer, got 0"),
        ({"algo": PPOCfg(mini_batches=0)}, r"--mini-batches must be a positive integer, got 0"),
        ({"algo": PPOCfg(mini_batches=49)}, r"--mini-batches must be at most .* = 48, got 49"),
        (
            {"changes": {"rewards.joint_torque.func": lambda env: 0.0}},
            "changes must be values that a checkpoint can hold",
        ),
        (
            {"changes": {"rewards.joint_torque.params": {"power": [np.float64(1.0)]}}},
            r"\['power'\]\[0\] = .*checkpoint",
        ),
        ({"iterations": 0}, "--iterations must be a positive integer, got 0"),
        ({"keep": 0}, "--keep must be a positive integer, got 0"),
        *(
            (
                {name: value},
                rf"--{name.replace('_', '-')} must be a finite number above 0, got {value}",
            )
            for name in ("minutes", "checkpoint_minutes")
            for value in (float("nan"), float("inf"), -1.0, 0.0)
        ),
    ],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", str(value)),
)
def test_options_without_meaning_are_refused_by_name_before_anything_is_written(
    options, message, tmp_path
):
    with pytest.raises(ValueError, match=message):
        train(TrainCfg(GO2, run_dir=tmp_path / "run", **{"num_envs": 2, **options}))
    assert list(tmp_path.iterdir()) == []


CHANGES = {
    "sim.decimation": ("2", 2),
    "actions.joint_position.scale": ("-2e-4", -2e-4),
    "only_positive_rewards": ("False", False),
    "commands.velocity.lin_vel_x": ("(-0.5, 0.5)", (-0.5, 0.5)),
    "events.push": ("None", None),
    "robot.name": ("go2 of mine", "go2 of mine"),
    "actions.joint_position.around": ("(", "("),
}
"""Words of a command line, and the options that they mean."""


def test_the_command_line_gives_changes_their_types(monkeypatch):
    given = []
    monkeypatch.setattr("legged_envs.training.trainer.train", given.append)
    words = [word for path, (text, _) in CHANGES.items() for word in (path, text)]
    monkeypatch.setattr(
        sys, "argv", ["legged-envs", "train", GO2, "--changes", *words, "--seed", "3"]
    )
    cli.main()
    values = {path: value for path, (_, value) in CHANGES.items()}
    assert given == [TrainCfg(GO2, seed=3, changes=values)]
    assert [type(value) for value in given[0].changes.values()] == [
        type(value) for value in values.values()
    ]


def test_a_checkpoint_of_another_task_or_none_is_refused(run, tmp_path):
    cfg = tiny(None, iterations=2, resume=run)
    cfg.task_id = G1
    with pytest.raises(ValueError, match=r"Go2-Flat.*not of.*G1-Flat"):
        Trainer(prepare(cfg), Console(quiet=True))
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        Trainer(prepare(tiny(None, iterations=2, resume=tmp_path)), Console(quiet=True))


def test_a_policy_of_another_robot_is_refused(run):
    core = make_core(make_task_cfg(G1), 1)
    with pytest.raises(ValueError, match=r"robot = go2, this environment has g1"):
        load_policy(run / "policy.safetensors").check(core)


def test_a_file_that_is_no_policy_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.safetensors"):
        load_policy(tmp_path / "nothing.safetensors")
    (tmp_path / "text").write_text("not a policy")
    torch.save({"weights": torch.zeros(3)}, tmp_path / "policy.pt")
    save_file({"weights": torch.zeros(3)}, tmp_path / "bare.safetensors")
    for name in ("text", "policy.pt", "bare.safetensors"):
        with pytest.raises(
            ValueError,
            match=rf"{name}' is not a policy as legged-envs train writes it \(policy\.safe",
        ):
            load_policy(tmp_path / name)


def test_a_truncated_policy_is_refused(run, tmp_path):
    data = (run / "policy.safetensors").read_bytes()
    for size in (0, 7, 100, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.safetensors").write_bytes(data[:size])
        with pytest.raises(ValueError, match=r"cut\.safetensors' is not a policy"):
            load_policy(tmp_path / "cut.safetensors")


def test_a_checkpoint_runs_no_code_when_it_is_read(run, tmp_path):
    class Attack:
        def __reduce__(self):
            return Path.touch, (tmp_path / "attacked",)

    state = read_checkpoint(run, GO2)
    torch.save({**state, "curve": Attack()}, tmp_path / CHECKPOINT)
    for options in ({"resume": tmp_path}, {"warm_start": tmp_path}):
        with pytest.raises(ValueError, match=r"checkpoint\.pt"):
            Trainer(prepare(TrainCfg(GO2, num_envs=2, **options)), Console(quiet=True))
    assert not (tmp_path / "attacked").exists()


def test_an_evaluation_measures_the_errors_of_a_robot_that_stands_still():
    evaluator = Evaluator(GO2, make_task_cfg(GO2), episodes=8)
    result = evaluator.run(lambda observation: torch.zeros(len(observation), 12))
    evaluator.core.reset(seed=EVALUATION_SEED)
    command = evaluator.core.commands["velocity"]
    assert result.lin_vel_error == pytest.approx(command[:, :2].norm(dim=1).mean().item(), abs=0.03)
    assert result.ang_vel_error == pytest.approx(command[:, 2].abs().mean().item(), abs=0.03)
    assert result.falls == 0.0
    assert result.duty_factor > 0.99
    assert result.still_contact > 0.99
    assert result.base_height == pytest.approx(0.3, abs=0.03)


@walking
def test_an_evaluation_counts_falls():
    torch.manual_seed(0)
    result = Evaluator(GO2, make_task_cfg(GO2), episodes=4).run(
        lambda obs: torch.randn(len(obs), 12).sign(), still=False
    )
    assert result.falls > 0.5


def test_the_evaluation_has_no_pushes_and_one_command_an_episode():
    core = Evaluator(GO2, make_task_cfg(GO2), episodes=2).core
    core.reset(seed=1)
    before = core.commands["velocity"].clone()
    assert (before != 0.0).all()
    for _ in range(600):
        core.step(torch.zeros(2, 12))
    assert torch.equal(core.commands["velocity"], before)
    assert "push" not in core.cfg.events


def random_batch(policy_size, critic_size):
    column = torch.randn(6, 1)
    return MiniBatch(
        observations=torch.randn(6, policy_size),
        critic_observations=torch.randn(6, critic_size),
        actions=torch.randn(6, 12),
        action_mean=torch.randn(6, 12),
        action_sigma=torch.rand(6, 12),
        values=column,
        advantages=column,
        returns=column,
        actions_log_prob=column,
        indices=torch.arange(6),
    )


def test_half_of_a_mini_batch_is_mirrored_and_mirroring_twice_restores_it():
    env = unwrap(gym.make_vec(GO2, num_envs=2))
    mirror = MirroredHalf(env, ("policy",), ("critic",))
    batch = random_batch(env.group_sizes["policy"], env.group_sizes["critic"])
    changed = ("observations", "critic_observations", "actions", "action_mean", "action_sigma")
    before = {name: getattr(batch, name).clone() for name in changed}
    mirror.prepare(None, [batch])
    for name, value in before.items():
        assert torch.equal(getattr(batch, name)[3:], value[3:])
        assert not torch.equal(getattr(batch, name)[:3], value[:3])
    assert (batch.action_sigma > 0.0).all()
    mirror.prepare(None, [batch])
    for name, value in before.items():
        assert torch.equal(getattr(batch, name), value)


def test_what_actor_and_critic_both_read_is_mirrored_once():
    env = unwrap(gym.make_vec(GO2, num_envs=2))
    size = env.group_sizes["policy"]
    batch = random_batch(size, size)
    batch.critic_observations = batch.observations
    before = batch.observations.clone()
    MirroredHalf(env, ("policy",), ("policy",)).prepare(None, [batch])
    assert not torch.equal(batch.observations[:3], before[:3])


@pytest.mark.render
def test_a_film_is_written(run, tmp_path):
    policy, scenes = load_policy(run / "policy.safetensors"), (Scene(0.2, (0.5, 0.0, 0.0)),)
    film_policy(GO2, make_task_cfg(GO2), policy, tmp_path / "walk.mp4", scenes)
    assert (tmp_path / "walk.mp4").stat().st_size > 2000


@walking
def test_the_shipped_policy_walks_and_stands():
    evaluator = Evaluator(GO2, make_task_cfg(GO2), episodes=16)
    policy = load_shipped_policy(GO2)
    policy.check(evaluator.core)
    result = evaluator.run(policy)
    assert result.walks(lin_vel_error=0.08, ang_vel_error=0.08, falls=0.0)
    assert result.swing_height > 0.03
    assert 0.27 < result.base_height < 0.36
    assert result.diagonal_agreement > 0.8
    assert result.still_joint_speed < 0.5


@walking
def test_the_shipped_g1_policy_walks():
    evaluator = Evaluator(G1, make_task_cfg(G1), episodes=16)
    policy = load_shipped_policy(G1)
    policy.check(evaluator.core)
    result = evaluator.run(policy, still=False)
    assert result.walks(lin_vel_error=0.2, ang_vel_error=0.3, falls=0.05)
    assert result.swing_height > 0.03
    assert 0.68 < result.base_height < 0.8


def test_a_policy_of_another_pace_is_refused():
    cfg = make_task_cfg(G1)
    cfg.commands["gait"].period = 0.7
    with pytest.raises(
        ValueError, match=r"gait = .*'period': 0\.6.*this environment has .*'period': 0\.7"
    ):
        load_shipped_policy(G1).check(make_core(cfg, 1))


@walking
def test_the_shipped_mimic_policy_imitates_and_follows_commands():
    evaluator = Evaluator(
        GO2_MIMIC, imitating(make_task_cfg(GO2_MIMIC), ("trot", "bound", "pronk")), episodes=4
    )
    policy = load_shipped_policy(GO2_MIMIC)
    policy.check(evaluator.core)
    result = evaluator.run(policy, seed=3)
    for clip in result.clips.values():
        assert clip.joint_error < 0.05
        assert clip.lin_vel_error < 0.15
        assert clip.contact_agreement > 0.8
        assert clip.falls == 0.0
    assert result.command["command_lin_vel_error"] < 0.35
    assert result.command["falls"] == 0.0


def test_a_task_without_a_shipped_policy_says_so():
    with pytest.raises(
        ValueError, match=r"there is no pretrained policy for 'Legged/Go2-Nav-v0'.*--policy"
    ):
        load_shipped_policy("Legged/Go2-Nav-v0")


def test_the_command_lists_the_tasks(capsys):
    list_tasks(ListCfg((GO2,)))
    text = capsys.readouterr().out
    assert GO2 in text and G1 not in text
    assert "critic" in text
    assert "foot_slip" in text


def test_the_command_evaluates_a_policy_and_writes_the_numbers_only_to_a_new_file(
    run, tmp_path, capsys
):
    before = {path: path.read_bytes() for path in run.iterdir()}
    evaluate(EvaluateCfg(GO2, run / "policy.safetensors", episodes=4))
    assert "lin vel error" in capsys.readouterr().out
    evaluate(EvaluateCfg(GO2, run / "policy.safetensors", episodes=4, json=tmp_path / "new.json"))
    report = json.loads((tmp_path / "new.json").read_text())
    assert report["episodes"] == 4
    assert report["evaluation_seed"] == EVALUATION_SEED
    for path in (tmp_path / "new.json", run / "eval.json"):
        with pytest.raises(
            ValueError,
            match=rf"--json must name a new file, '{path}' exists: .* overwrites nothing",
        ):
            evaluate(EvaluateCfg(GO2, run, episodes=4, json=path))
    assert {path: path.read_bytes() for path in run.iterdir()} == before


def test_the_zero_command_is_written_where_the_command_is_seen_and_nowhere_else():
    cfg = make_task_cfg(G1)
    policy = cfg.observations["policy"].terms
    policy["again"] = policy.pop("command")  # the last columns in place of the first
    core = make_core(cfg, 3, array="torch", observations="dict")
    observation, _ = core.reset(seed=0)
    before = {group: value.clone() for group, value in observation.items()}
    hold_velocity(core, (0.5, 0.0, -1.0), observation)
    command = torch.tensor((0.5, 0.0, -1.0)).expand(3, 3)
    assert torch.equal(core.commands["velocity"], command)
    assert torch.equal(observation["policy"][:, -3:], command) and torch.equal(
        observation["critic"][:, :3], command
    )
    assert torch.equal(observation["policy"][:, :-3], before["policy"][:, :-3])
    assert torch.equal(observation["critic"][:, 3:], before["critic"][:, 3:])


def test_events_are_left_out_by_what_they_are_for():
    cfg = make_task_cfg(GO2)
    cfg.events["gust"] = replace(cfg.events.pop("push"))
    cfg.events["kick"] = replace(cfg.events["gust"], purpose="place")
    assert set(evaluation_cfg(cfg).events) == set(cfg.events) - {"gust"}
    envs = make_watched_envs(GO2, cfg, load_shipped_policy(GO2))
    assert set(unwrap(envs).cfg.events) == {"root", "joints", "kick"}
    envs.close()
    cfg.events["kick"].purpose = "annoy"
    with pytest.raises(
        ValueError, match=r"event term 'kick': purpose must be one of .*'disturb'.*got 'annoy'"
    ):
        make_core(cfg, 1)


def test_trainings_that_start_in_the_same_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = set()
    for _ in range(3):
        folder = run_folder(TrainCfg(GO2))
        folder.mkdir(parents=True)
        folders.add(folder)
    assert len(folders) == 3
    assert {folder.parent for folder in folders} == {Path("runs/Go2-Flat-v0")}


def test_a_run_with_changes_of_its_own_is_resumed_with_its_options(tmp_path):
    """Limits of costs are a change that the training adds to those of the command."""
    cfg = tiny(
        tmp_path,
        iterations=4,
        changes={"rewards.joint_torque.weight": 0.0},
        constraints="medium",
    )
    Trainer(prepare(cfg), Console(quiet=True)).save()
    resumed = Trainer(prepare(replace(cfg, run_dir=None, resume=tmp_path)), Console(quiet=True))
    assert resumed.cfg.changes.keys() >= cfg.changes.keys() | {"costs"}


def test_a_warm_start_needs_the_activation_of_the_run(run):
    cfg = tiny(None, iterations=1, warm_start=run)
    other = replace(cfg, algo=replace(cfg.algo, activation="tanh"))
    with pytest.raises(ValueError, match=r"--activation is elu in the run .*, got tanh"):
        Trainer(prepare(other), Console(quiet=True))
