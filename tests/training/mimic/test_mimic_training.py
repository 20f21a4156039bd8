"""Learning to imitate: run folders, policy files, resuming, teachers and the evaluation, with tiny budgets."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from rich.console import Console

from legged_envs import make_task_cfg
from legged_envs.cli.evaluate import EvaluateCfg
from legged_envs.cli.evaluate import evaluate as run_evaluate
from legged_envs.cli.play import PlayCfg, play
from legged_envs.envs import CoreVectorEnv, make_core
from legged_envs.envs.cfg import override
from legged_envs.evaluation.conditions import mean_over_steps
from legged_envs.evaluation.evaluator import EVALUATION_SEED, Evaluator
from legged_envs.evaluation.metrics.mimic import ClipEvaluation, MimicEvaluation, contact_agreement
from legged_envs.evaluation.metrics.task import TaskMetrics
from legged_envs.mdp.actions import JointPositionCfg
from legged_envs.mdp.motion_command import motion_command
from legged_envs.motions import save_motion, shipped_motions
from legged_envs.policy.policy import Policy, load_policy, load_shipped_policy, save_policy
from legged_envs.robots import GO2 as GO2_ROBOT
from legged_envs.runs.checkpoint_file import CHECKPOINT
from legged_envs.tasks.mimic import ACTOR_GROUPS, CRITIC_GROUPS, imitating
from legged_envs.training.checkpoint import read_checkpoint
from legged_envs.training.learner.distillation import Distillation
from legged_envs.training.learner.mirror import MirroredHalf
from legged_envs.training.learner.networks import Actor
from legged_envs.training.learner.ppo import PPO
from legged_envs.training.learner_options import AmpCfg, ConstraintCfg, LagrangeCfg, RndCfg
from legged_envs.training.mimic.networks import MimicNetwork, MimicPolicy
from legged_envs.training.mimic_options import DaggerCfg, MimicDistillationCfg, MimicPPOCfg
from legged_envs.training.options import ALGORITHMS, PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer, train
from legged_envs.viewing.scenes import Scene
from legged_envs.viewing.watch import make_watched_envs, watch

pytestmark = pytest.mark.usefixtures("short_evaluations")
GO2, G1, FLAT = "Legged/Go2-Mimic-v0", "Legged/G1-Mimic-v0", "Legged/Go2-Flat-v0"
NETWORK: dict[str, Any] = {"hidden": (16,), "encoder_hidden": (16,), "encoder_size": 8}


def tiny(run_dir: Path | None, task: str = GO2, **kwargs: Any) -> TrainCfg:
    """Two updates of a small network; ``mmppo`` holds changes of MimicPPOCfg, ``student`` those for distillation."""
    if (student := kwargs.pop("student", None)) is not None:
        kwargs["algo"] = MimicDistillationCfg(steps_per_env=4, epochs=1, **NETWORK, **student)
    else:
        mmppo = kwargs.pop("mmppo", {})
        kwargs["algo"] = MimicPPOCfg(steps_per_env=4, epochs=1, mini_batches=2, **NETWORK, **mmppo)
    kwargs = {
        "num_envs": 8,
        "iterations": 2,
        "episodes": 2,
        "clips": ("trot",),
        "video": False,
        **kwargs,
    }
    return TrainCfg(task, run_dir=run_dir, **kwargs)


def trainer_of(cfg: TrainCfg) -> Any:
    return Trainer(prepare(cfg), Console(quiet=True))


def iterate(trainer: Any, times: int) -> list[dict[str, float]]:
    rows = []
    for _ in range(times):
        trainer.set_schedule()
        rows.append(trainer.iterate())
    return rows


def export(trainer: Any, folder: Path) -> Path:
    folder.mkdir()
    trainer.prepared = dataclasses.replace(trainer.prepared, run_dir=folder)
    trainer.export()
    return folder


def make_task_core(
    task: str = GO2, changes: dict[str, Any] | None = None, num_envs: int = 2
) -> CoreVectorEnv:
    return make_core(
        override(make_task_cfg(task), changes or {}), num_envs, array="torch", observations="dict"
    )


def inputs_of(policy: Policy, n: int, seed: int = 0) -> list[torch.Tensor]:
    """Random inputs of every group of a policy, with and without a reference."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [sum(term["size"] for term in terms) for terms in policy.inputs.values()]
    observation, reference = (torch.randn(n, size, generator=generator) for size in sizes[:2])
    return [observation, reference, (torch.arange(n) % 2).float()[:, None]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, short_evaluations: None) -> Path:
    """A finished run of two updates."""
    return train(tiny(tmp_path_factory.mktemp("runs") / "two"))


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exported policy of a privileged actor after one update."""
    trainer = trainer_of(tiny(tmp_path_factory.mktemp("runs"), mmppo={"privileged_actor": True}))
    iterate(trainer, 1)
    return export(trainer, trainer.cfg.run_dir / "teacher")


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_folder_holds_what_is_promised(run):
    names = {path.name for path in run.iterdir()}
    pictures = {"tracking.png", "learning_curve.png"}
    assert {
        CHECKPOINT,
        "policy.safetensors",
        "policy.onnx",
        "eval.json",
        "config.json",
        "task.txt",
        *pictures,
    } <= names
    assert any(name.startswith("events.out.tfevents") for name in names)
    report = json.loads((run / "eval.json").read_text())
    assert report["task_id"] == GO2 and report["env_steps"] == 2 * 4 * 8 and report["episodes"] == 2
    assert set(report["clips"]) == {"trot"}
    assert set(report["clips"]["trot"]) == {
        field.name for field in dataclasses.fields(ClipEvaluation)
    }
    assert set(report["command"]) == {"command_lin_vel_error", "command_ang_vel_error", "falls"}
    assert set(report["costs"]) == set(report["cost_limits"]) == set(make_task_cfg(GO2).costs)
    config = json.loads((run / "config.json").read_text())
    assert config["training"]["algo"]["hidden"] == [16]
    assert config["task"]["commands"]["motion"]["clips"] == ["trot"]
    assert (
        config["task"]["commands"]["motion"]["motions"]
        == "legged_envs.motions.shipped.shipped_motions"
    )
    for picture in pictures:
        assert (run / picture).read_bytes().startswith(b"\x89PNG")


def test_safetensors_and_onnx_are_the_trained_network_and_carry_the_contract(run):
    policy = load_policy(run / "policy.safetensors")
    trainer = trainer_of(tiny(None, resume=run))
    network, inputs = trainer.algorithm.get_policy(), inputs_of(policy, 6)
    with torch.inference_mode():
        expected = network.network.eval()(*inputs)
    torch.testing.assert_close(policy(*inputs), expected)
    assert not torch.equal(expected[1], policy(*inputs[:2], torch.zeros(6, 1))[1])
    session = onnxruntime.InferenceSession(str(run / "policy.onnx"))
    names = ["obs", "reference", "reference_mask"]
    assert [entry.name for entry in session.get_inputs()] == names
    fed = {name: value.numpy() for name, value in zip(names, inputs, strict=True)}
    np.testing.assert_allclose(session.run(None, fed)[0], expected, atol=1e-5)
    metadata = {
        entry.key: entry.value for entry in onnx.load(str(run / "policy.onnx")).metadata_props
    }
    decoded = {
        key: value if key in ("task_id", "robot", "action") else json.loads(value)
        for key, value in metadata.items()
    }
    assert decoded == policy.contract
    assert tuple(policy.inputs) == ACTOR_GROUPS
    assert policy.contract["reference"]["control_steps_ahead"] == [1, 2, 4, 8]
    sizes = {group: sum(term["size"] for term in terms) for group, terms in policy.inputs.items()}
    assert sizes == {group: trainer.core.group_sizes[group] for group in ACTOR_GROUPS}
    assert 4 * sum(policy.contract["reference"]["frame"].values()) == sizes["reference"]


@pytest.mark.parametrize(
    "constraints",
    [
        {"lagrange": LagrangeCfg(True)},
        # Its penalty factor grows with each update from the second one on.
        {"constraint": ConstraintCfg(method="np3o", start=0.2)},
    ],
    ids=["multipliers", "np3o"],
)
def test_a_resumed_run_continues_bit_for_bit(constraints, tmp_path, assert_same):
    everything = {
        "amp": AmpCfg(amp_reward_weight=0.5),
        "rnd": RndCfg(weight=0.1),
        **constraints,
    }
    cfg = tiny(tmp_path, iterations=4, mmppo=everything)
    whole = trainer_of(cfg)
    iterate(whole, 4)
    half = trainer_of(cfg)
    iterate(half, 2)
    half.save()
    resumed = trainer_of(dataclasses.replace(cfg, run_dir=None, resume=tmp_path))
    iterate(resumed, 2)
    assert resumed.iteration == whole.iteration == 4
    assert_same(resumed.algorithm.save(), whole.algorithm.save())
    assert torch.equal(resumed.core.sim.joint_pos, whole.core.sim.joint_pos)


def test_the_same_seed_trains_the_same_policy_and_another_seed_another(assert_same):
    def trained(seed: int) -> dict[str, Any]:
        trainer = trainer_of(tiny(None, seed=seed))
        iterate(trainer, 1)
        return trainer.algorithm.save()["actor"]

    one, same, other = trained(3), trained(3), trained(4)
    assert_same(one, same)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_the_learning_rate_falls_linearly_unless_it_adapts():
    for schedule in ("fixed", "adaptive"):
        trainer = trainer_of(tiny(None, iterations=4, mmppo={"schedule": schedule}))
        rates = []
        for done in (0.0, 0.5, 1.0):
            trainer.schedule.apply(done, trainer.env_steps)
            rates.append(trainer.algorithm.optimizer.param_groups[0]["lr"])
        assert rates == pytest.approx([1e-3, 5.5e-4, 1e-4] if schedule == "fixed" else [1e-3] * 3)


# --- algorithms and tasks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "algo"),
    [(GO2, PPOCfg()), (FLAT, MimicPPOCfg()), (FLAT, MimicDistillationCfg())],
    ids=str,
)
def test_an_algorithm_for_other_tasks_is_refused(task, algo):
    known, names = (
        "ppo" if task == FLAT else "mmppo or distillation",
        {cfg: name for name, cfg in ALGORITHMS.items()},
    )
    with pytest.raises(
        ValueError, match=rf"{task}' is trained with {known}.*, got {names[type(algo)]}"
    ):
        trainer_of(TrainCfg(task, algo=algo))


def test_each_task_has_its_algorithm():
    velocity = trainer_of(TrainCfg(FLAT, num_envs=2)).algorithm
    assert isinstance(velocity.actor, Actor) and velocity.actor.images is not None
    assert not velocity.parts
    velocity = trainer_of(TrainCfg(FLAT, num_envs=2, algo=PPOCfg(symmetry="batches"))).algorithm
    assert velocity.actor.images is None
    assert [type(part) for part in velocity.parts] == [MirroredHalf]
    mimic = trainer_of(TrainCfg(GO2, num_envs=2)).algorithm
    assert isinstance(mimic.actor, MimicPolicy) and not mimic.parts
    assert type(velocity) is type(mimic) is PPO


def test_unknown_clips_are_refused():
    with pytest.raises(ValueError, match=r"'walz'.*trot"):
        trainer_of(tiny(None, clips=("walz",)))


def test_a_warm_start_begins_with_the_networks_of_a_run_and_nothing_else(
    run, tmp_path, assert_same
):
    before = read_checkpoint(run, GO2)["algorithm"]
    trainer = trainer_of(
        tiny(tmp_path, warm_start=run, mmppo={"lagrange": LagrangeCfg(enabled=True)})
    )
    after = trainer.algorithm.save()
    for part in ("actor", "critic"):
        assert_same(after[part], before[part])
    assert (trainer.iteration, after["iteration"], after["optimizer"]["state"]) == (0, 0, {})
    iterate(trainer, 1)
    with pytest.raises(FileNotFoundError, match=r"there is no checkpoint .*nowhere"):
        trainer_of(tiny(tmp_path, warm_start=tmp_path / "nowhere"))
    with pytest.raises(
        ValueError, match=r"is a run of mmppo on 'Legged/Go2-Mimic-v0', whose networks ppo cannot"
    ):
        trainer_of(TrainCfg(FLAT, num_envs=2, warm_start=run))


def test_a_warm_start_keeps_a_part_of_the_noise(run):
    before = trainer_of(tiny(None, warm_start=run)).algorithm.get_policy().distribution
    options = {"mmppo": {"noise_kept": 0.5}}
    quiet = trainer_of(tiny(None, warm_start=run, **options)).algorithm.get_policy().distribution
    for name in ("log_std_param", "log_free_std_param"):
        torch.testing.assert_close(
            getattr(quiet, name).exp(), 0.5 * getattr(before, name).exp(), rtol=1e-5, atol=0.0
        )
    with pytest.raises(ValueError, match=r"--noise-kept is for a --warm-start, got 0\.5 without"):
        trainer_of(tiny(None, **options))


def test_clips_of_a_task_without_clips_are_refused():
    with pytest.raises(ValueError, match="clips"):
        trainer_of(TrainCfg(FLAT, num_envs=2, clips=("trot",)))


def test_the_g1_is_trained_too():
    (row,) = iterate(trainer_of(tiny(None, G1, num_envs=4, clips=("squat",))), 1)
    assert all(np.isfinite(value) for value in row.values())


EXTRAS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "amp": (
        {"amp": AmpCfg(amp_reward_weight=0.5)},
        {"amp", "amp_expert", "amp_policy", "style_reward"},
    ),
    "privileged amp": (
        {"amp": AmpCfg(amp_reward_weight=0.5), "privileged_actor": True},
        {"amp", "amp_expert", "amp_policy", "style_reward"},
    ),
    "lagrange": (
        {"lagrange": LagrangeCfg(enabled=True)},
        {
            "cost_value",
            "cost/foot_slip",
            "multiplier/foot_slip",
            "cost/joint_torque",
            "multiplier/joint_torque",
        },
    ),
    "p3o": (
        {"constraint": ConstraintCfg(method="p3o", start=0.0)},
        {"cost_value", "cost/foot_slip", "cost/joint_torque"},
    ),
    "rnd": ({"rnd": RndCfg(weight=0.1)}, {"rnd", "rnd_reward"}),
    "dagger": ({}, {"dagger"}),
    "transformer": ({"encoder": "transformer"}, set()),
}


@pytest.mark.parametrize("name", EXTRAS)
def test_what_is_switched_on_trains_and_reports(name, teacher):
    mmppo, entries = EXTRAS[name]
    if name == "dagger":
        mmppo = {"dagger": DaggerCfg(coefficient=1.0, teacher=teacher)}
    trainer = trainer_of(tiny(None, mmppo=mmppo))
    (row,) = iterate(trainer, 1)
    always = {"surrogate", "value", "entropy", "kl"}
    rest = {"joint_error", "lin_vel_error", "reward", "action_std", "env_steps", "steps_per_second"}
    assert {f"loss_{entry}" for entry in always | entries} | rest <= set(row)
    assert all(np.isfinite(value) for value in row.values())
    if name not in ("lagrange", "p3o"):
        assert {entry for entry in row if entry.startswith("loss_")} == {
            f"loss_{e}" for e in always | entries
        }


def test_a_constraint_method_changes_what_a_mimic_task_learns_once_it_acts(assert_same):
    """With a start of 0.5, the first of two updates is that without constraints."""
    method = ConstraintCfg(method="p3o", kappa=10.0, start=0.5)
    impossible = {"costs.joint_torque.limit": 1e-6}
    constrained = trainer_of(tiny(None, changes=impossible, mmppo={"constraint": method}))
    free = trainer_of(tiny(None, changes=impossible))
    (row,) = iterate(constrained, 1)
    iterate(free, 1)
    assert row["loss_cost/joint_torque"] > 1e-6
    for network in ("actor", "critic"):
        assert_same(*(trainer.algorithm.save()[network] for trainer in (constrained, free)))
    iterate(constrained, 1)
    iterate(free, 1)
    with pytest.raises(AssertionError):
        assert_same(*(trainer.algorithm.save()["actor"] for trainer in (constrained, free)))


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        ({"mmppo": {"constraint": ConstraintCfg(method="cpo")}}, "'cpo'"),
        ({"mmppo": {"constraint": ConstraintCfg(method="p3o", costs=("heat",))}}, "'heat'"),
        (
            {
                "mmppo": {"constraint": ConstraintCfg(method="p3o")},
                "changes": {"costs.foot_slip.limit": 0.0},
            },
            "foot_slip.*0",
        ),
        (
            {
                "mmppo": {
                    "constraint": ConstraintCfg(method="p3o"),
                    "lagrange": LagrangeCfg(enabled=True),
                }
            },
            "lagrange.*p3o",
        ),
    ],
)
def test_wrong_constraints_of_a_mimic_task_are_named(cfg, message):
    with pytest.raises(ValueError, match=message):
        prepare(tiny(None, **cfg))


def test_errors_while_training_are_of_the_robots_with_a_reference():
    trainer = trainer_of(
        tiny(None, num_envs=16, changes={"commands.motion.reference_fraction": 1.0})
    )
    motion, robot = motion_command(trainer.core.commands), trainer.core.robot
    motion.withhold(torch.arange(16) % 2 == 0)
    trainer.core.reset(seed=0)
    near = motion.available > 0.0
    assert near.tolist() == [False, True] * 8
    expected = (robot.joint_pos - motion.target_joint_pos).abs()[near].mean()
    assert trainer.metrics.training_errors(trainer.core)["joint_error"] == pytest.approx(
        expected.item(), rel=1e-5
    )
    expected = (robot.lin_vel_b - motion.target_lin_vel_b)[near].norm(dim=1).mean()
    assert trainer.metrics.training_errors(trainer.core)["lin_vel_error"] == pytest.approx(
        expected.item(), rel=1e-5
    )
    motion.withhold(torch.ones(16, dtype=torch.bool))
    trainer.core.reset(seed=0)
    assert trainer.metrics.training_errors(trainer.core) == {
        "joint_error": 0.0,
        "lin_vel_error": 0.0,
    }


# --- teachers and students --------------------------------------------------------------------------------------------


def test_a_privileged_teacher_is_distilled_into_a_student_of_the_actors_inputs(teacher, tmp_path):
    assert tuple(load_policy(teacher / "policy.safetensors").inputs) == CRITIC_GROUPS
    for path in (teacher, teacher / "policy.safetensors"):
        trainer = trainer_of(tiny(None, student={"teacher": path}))
        (row,) = iterate(trainer, 1)
        assert row["loss_distillation"] > 0.0 and np.isfinite(row["joint_error"])
    student = load_policy(export(trainer, tmp_path / "student") / "policy.safetensors")
    assert tuple(student.inputs) == ACTOR_GROUPS
    student.check(trainer.core, ACTOR_GROUPS)


@pytest.mark.parametrize("algo", ["student", "dagger"])
def test_a_teacher_that_is_missing_or_sees_what_a_student_sees_is_refused(algo, run, tmp_path):
    def taught(teacher: Path | None) -> TrainCfg:
        if algo == "student":
            return tiny(None, student={"teacher": teacher})
        return tiny(None, mmppo={"dagger": DaggerCfg(coefficient=1.0, teacher=teacher)})

    with pytest.raises(ValueError, match=r"--teacher.*mmppo --privileged-actor"):
        trainer_of(taught(None))
    with pytest.raises(
        ValueError, match=r"must take critic, critic_reference.*takes policy, reference"
    ):
        trainer_of(taught(run))
    with pytest.raises(FileNotFoundError, match=r"policy\.safetensors"):
        trainer_of(taught(tmp_path))


def test_options_that_would_not_be_read_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"--dagger\.coefficient"):
        trainer_of(tiny(None, mmppo={"dagger": DaggerCfg(teacher=tmp_path)}))
    with pytest.raises(ValueError, match="--warm-start"):
        trainer_of(tiny(None, student={"teacher": tmp_path}, warm_start=tmp_path))
    with pytest.raises(ValueError, match="--motions"):
        trainer_of(TrainCfg(FLAT, motions=(tmp_path / "kick.npz",)))


@pytest.mark.parametrize(
    ("algo", "message"),
    [
        (MimicPPOCfg(steps_per_env=0), r"--steps-per-env must be a positive integer, got 0"),
        (MimicPPOCfg(epochs=0), r"--epochs must be a positive integer, got 0"),
        (MimicPPOCfg(mini_batches=0), r"--mini-batches must be a positive integer, got 0"),
        (MimicPPOCfg(mini_batches=49), r"--mini-batches must be at most .* = 48, got 49"),
        (
            MimicDistillationCfg(steps_per_env=0),
            r"--steps-per-env must be a positive integer, got 0",
        ),
    ],
    ids=str,
)
def test_options_without_meaning_are_refused_by_name(algo, message):
    with pytest.raises(ValueError, match=message):
        trainer_of(TrainCfg(GO2, num_envs=2, algo=algo))


def test_a_run_that_names_files_is_resumed_from_another_folder(teacher, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_motion("own.npz", shipped_motions(GO2_ROBOT, "trot")[0])
    shutil.copy(teacher / "policy.safetensors", "teacher.safetensors")
    files = {"motions": (Path("own.npz"),), "clips": (), "num_envs": 2}
    for name, options in (
        ("learnt", {}),
        ("student", {"student": {"teacher": Path("teacher.safetensors")}}),
    ):
        (tmp_path / name).mkdir()
        trainer_of(tiny(tmp_path / name, **files, **options)).save()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name in ("learnt", "student"):
        trainer_of(TrainCfg(GO2, resume=tmp_path / name, iterations=5))
        again = TrainCfg(GO2, resume=Path(f"../{name}"), motions=(tmp_path / "own.npz",))
        assert trainer_of(again).cfg.motions == (tmp_path / "own.npz",)


def test_a_resumed_run_has_the_algorithm_clips_and_teacher_that_it_was_begun_with(
    teacher, tmp_path
):
    cfg = tiny(tmp_path, student={"teacher": teacher})
    begun = trainer_of(cfg)
    begun.save()
    resumed = trainer_of(TrainCfg(GO2, resume=tmp_path, iterations=5))
    assert type(resumed.algorithm) is type(begun.algorithm) is Distillation
    assert resumed.cfg == dataclasses.replace(cfg, run_dir=None, resume=tmp_path, iterations=5)
    for option, changes in {
        "algo": {"algo": MimicPPOCfg()},
        "clips": {"clips": ("bound",)},
        "teacher": {"algo": MimicDistillationCfg(teacher=tmp_path)},
        "epochs": {"algo": MimicDistillationCfg(epochs=7)},
    }.items():
        with pytest.raises(ValueError, match=rf"--{option} is .* in the run to resume"):
            trainer_of(TrainCfg(GO2, resume=tmp_path, **changes))


def test_a_machine_that_cannot_render_trains_all_the_same(tmp_path, monkeypatch):
    def fail(*_: Any) -> None:
        raise RuntimeError("no GL here")

    monkeypatch.setattr("legged_envs.training.film.film_policy", fail)
    console = Console(record=True, width=200)
    folder = Trainer(prepare(tiny(tmp_path / "run", iterations=1, video=True)), console).run()
    assert (folder / "eval.json").is_file() and not (folder / "video.mp4").exists()
    assert "no video: no GL here" in console.export_text()


# --- motions from files -----------------------------------------------------------------------------------------------


def test_motions_from_files_are_trained_evaluated_and_played(tmp_path):
    file = tmp_path / "kick.npz"
    save_motion(file, dataclasses.replace(shipped_motions(GO2_ROBOT, "trot")[0], name="kick"))
    trainer = trainer_of(tiny(tmp_path / "run", iterations=1, clips=(), motions=(file,)))
    assert motion_command(trainer.core.commands).player.library.names == ("kick",)
    folder = trainer.run()
    assert load_policy(folder / "policy.safetensors").clips == ("kick",)
    written = json.loads((folder / "config.json").read_text())["task"]["commands"]["motion"]
    assert written["motions"]["paths"] == [str(file)]
    trained = (folder / "eval.json").read_text()
    with pytest.raises(ValueError, match="there is no clip 'kick'; clips: bound"):
        run_evaluate(EvaluateCfg(GO2, folder / "policy.safetensors", episodes=1))
    assert (folder / "eval.json").read_text() == trained
    run_evaluate(
        EvaluateCfg(
            GO2,
            folder / "policy.safetensors",
            episodes=1,
            motions=(file,),
            json=tmp_path / "eval.json",
        )
    )
    assert list(json.loads((tmp_path / "eval.json").read_text())["clips"]) == ["kick"]
    video = tmp_path / "play.mp4"
    play(PlayCfg(GO2, folder / "policy.safetensors", video, motions=(file,), seconds=0.1))
    assert video.is_file()


def test_a_policy_trained_with_changes_is_played_with_them(tmp_path):
    changes = {"actions.joint_position.around": None, "actions.joint_position.scale": 0.8}
    folder = train(tiny(tmp_path / "run", iterations=1, changes=changes))
    video = tmp_path / "play.mp4"
    assert load_policy(folder / "policy.safetensors").changes == changes
    play(PlayCfg(GO2, folder / "policy.safetensors", video, seconds=0.1))
    assert video.is_file()
    with pytest.raises(ValueError, match="action_scale"):
        play(
            PlayCfg(
                GO2,
                folder / "policy.safetensors",
                video,
                changes={"actions.joint_position.scale": 0.5},
                seconds=0.1,
            )
        )


# --- policy files -----------------------------------------------------------------------------------------------------


def test_a_policy_fits_its_own_task_whatever_clips_it_imitates(run):
    policy = load_policy(run / "policy.safetensors")
    policy.check(make_task_core(), ACTOR_GROUPS)
    with pytest.raises(
        ValueError, match=r"must take critic.*takes policy, reference, reference_mask"
    ):
        policy.check(make_task_core(), CRITIC_GROUPS)


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        (G1, {}, r"robot = go2.*g1_29"),
        (FLAT, {}, r"reference = .*control_steps_ahead.*None"),
        (GO2, {"commands.motion.window": (1, 2)}, r"reference = .*\[1, 2, 4, 8\].*\[1, 2\]"),
        (
            GO2,
            {"commands.motion.window": (1, 2, 4, 9)},
            r"reference = .*\[1, 2, 4, 8\].*\[1, 2, 4, 9\]",
        ),
        (GO2, {"actions.joint_position.scale": 0.5}, r"action_scale = .*0\.6.*0\.5"),
        (GO2, {"sim.decimation": 2}, r"control_dt = 0\.02.*0\.01"),
        (GO2, {"observations.policy.terms.ang_vel.scale": 1.0}, r"observation = .*ang_vel"),
        (
            GO2,
            {"actions": {"joint_position": JointPositionCfg(scale=0.6)}},
            r"action = .*reference.*default_joint_pos",
        ),
    ],
    ids=str,
)
def test_a_policy_for_something_else_is_refused_by_what_differs(task, changes, message, run):
    with pytest.raises(ValueError, match=message):
        load_policy(run / "policy.safetensors").check(make_task_core(task, changes))


def test_the_shipped_velocity_policy_fits_its_task_and_no_mimic_task():
    policy = load_shipped_policy(FLAT)
    core = make_task_core(FLAT)
    policy.check(core)
    policy.check(core, ("policy",))
    observation, _ = core.reset(seed=0)
    assert policy(observation["policy"]).shape == (2, 12)
    with pytest.raises(ValueError, match="reference = None"):
        policy.check(make_task_core(GO2))


@pytest.mark.parametrize("encoder", ["mlp", "transformer"])
def test_a_written_policy_is_read_back_bit_for_bit(encoder, tmp_path):
    cfg = MimicPPOCfg(
        encoder=encoder, encoder_heads=2, hidden=(16,), encoder_hidden=(16,), encoder_size=8
    )
    network = MimicNetwork((45, 136), 4, 12, cfg).eval()
    network.update_normalizers(torch.randn(9, 45), torch.randn(9, 136), torch.ones(9, 1))
    sizes = zip(ACTOR_GROUPS, (45, 136, 1), strict=True)
    inputs = {group: [{"name": group, "size": size, "scale": 1.0}] for group, size in sizes}
    meaning = {"task_id": GO2, "action_scale": [1.0] * 12, "inputs": inputs}
    save_policy(tmp_path / "policy.safetensors", network, meaning)
    policy = load_policy(tmp_path / "policy.safetensors")
    assert policy.contract == meaning
    for n in (1, 7, 64):
        inputs = (torch.randn(n, 45), torch.randn(n, 136), (torch.arange(n) % 2).float()[:, None])
        with torch.inference_mode():
            assert torch.equal(policy(*inputs), network(*inputs))


# --- the evaluation ---------------------------------------------------------------------------------------------------


def contacts(steps: int = 200, feet: int = 4) -> torch.Tensor:
    """Feet that stand and swing in turn every 20 steps, each at its own phase."""
    time = torch.arange(steps)[:, None] + 5 * torch.arange(feet)
    return (time // 20 % 2 == 0).unsqueeze(1)


def test_the_agreement_of_contacts_is_in_phase_and_at_the_best_lag():
    should = contacts()
    counted = torch.ones(200, 1, dtype=torch.bool)

    def agreement(stands: torch.Tensor, counts: torch.Tensor = counted) -> tuple[float, float]:
        return tuple(value.item() for value in contact_agreement(stands, should, counts, 0.02))  # type: ignore[return-value]

    assert agreement(should) == (1.0, 1.0)
    opposite, style = agreement(~should)
    assert (opposite, style) == (0.0, 1.0)  # half a period is less than half a second
    for lag in (-7, 7):
        in_phase, style = agreement(should.roll(lag, dims=0))
        assert in_phase == pytest.approx(1.0 - 7 / 20, abs=0.02) and style == 1.0
    never = torch.zeros_like(should)
    assert agreement(never) == pytest.approx((0.5, 0.5), abs=0.1)
    early = counted.clone()
    early[60:] = False
    broken = should.clone()
    broken[60:] = ~broken[60:]
    assert agreement(broken)[0] < 0.5 and agreement(broken, early)[0] == 1.0
    broken[:60] = ~broken[:60]
    assert agreement(broken, early)[0] == 0.0


def test_lags_longer_than_half_a_second_do_not_count():
    slow = (torch.arange(400)[:, None, None] // 100 % 2 == 0).expand(400, 1, 4)
    counted = torch.ones(400, 1, dtype=torch.bool)
    _, style = contact_agreement(slow.roll(60, dims=0), slow, counted, 0.02)
    assert 0.5 < style.item() < 0.8


def test_a_robot_that_falls_early_is_not_compared_with_the_two_steps_that_happen_to_fit():
    generator = torch.Generator().manual_seed(0)
    stands, should = (torch.rand(200, 1, 4, generator=generator) < 0.5 for _ in range(2))
    counted = torch.zeros(200, 1, dtype=torch.bool)
    counted[:27] = True
    stands[25:27] = should[:2]
    assert contact_agreement(stands, should, counted, 0.02)[1].item() < 0.9


def test_means_are_over_the_steps_that_count_and_nan_where_none_does():
    values = torch.tensor([[1.0, 5.0, 2.0], [3.0, torch.nan, 4.0]])
    counted = torch.tensor([[True, True, False], [True, False, False]])
    mean = mean_over_steps(values, counted)
    assert mean[:2].tolist() == [2.0, 5.0] and mean[2].isnan()
    vectors = mean_over_steps(torch.stack((values, 2.0 * values), dim=2), counted)
    assert vectors[:2].tolist() == [[2.0, 4.0], [5.0, 10.0]] and vectors[2].isnan().all()


def test_means_over_clips_are_of_the_clips():
    fields = [field.name for field in dataclasses.fields(ClipEvaluation)]
    clips = {
        name: ClipEvaluation(**dict.fromkeys(fields, float(i)))
        for i, name in enumerate(("a", "b", "c"))
    }
    result = MimicEvaluation(
        1,
        clips,
        None,
        costs={},
        cost_limits={},
        broken_limits={},
        discounted_costs={},
        cost_discount=0.99,
    )
    assert result.mean("joint_error") == result.mean("falls") == 1.0


@pytest.fixture
def evaluator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Evaluator]]:
    """Makes an evaluator of trot and stand over two seconds."""
    made = []

    def make(
        clips: tuple[str, ...] = ("trot", "stand"), episodes: int = 3, **changes: Any
    ) -> Evaluator:
        monkeypatch.setattr(TaskMetrics, "EPISODE_SECONDS", 2.0)
        made.append(
            Evaluator(GO2, imitating(override(make_task_cfg(GO2), changes), clips), episodes)
        )
        return made[-1]

    yield make
    for each in made:
        each.close()


def do_nothing(
    observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    return torch.zeros(len(observation), 12)


def follow_exactly(evaluator: Evaluator, **offset: float) -> None:
    """Put physics out of action: after each step the robots are where the reference is, bodies one physics step late.

    Keywords move what is written, e.g. ``height=0.1``.
    """
    core, player = evaluator.core, evaluator.metrics.motion.player
    everyone = torch.arange(core.num_envs)

    def write(time: torch.Tensor) -> None:
        pose = player.library.sample(player.clip, time)
        pos = pose.root_pos_w + torch.tensor((0.0, 0.0, offset.get("height", 0.0)))
        lin_vel = pose.root_lin_vel_w + torch.tensor((0.0, 0.0, offset.get("speed", 0.0)))
        core.sim.write_root_state(everyone, pos, pose.root_quat_w, lin_vel, pose.root_ang_vel_b)
        core.sim.write_joint_state(
            everyone, pose.joint_pos + offset.get("joints", 0.0), pose.joint_vel
        )

    def step(num_steps: int) -> None:
        write(player.time + core.step_dt - core.sim.cfg.dt)
        core.sim.forward(everyone)
        write(player.time + core.step_dt)

    core.sim.step = step


def test_a_robot_that_is_where_the_reference_is_makes_no_error(evaluator, monkeypatch):
    judge = evaluator(
        **{"terminations.reference_lost.params": {"height": 0.01, "tilt": 0.01, "key_body": 0.01}}
    )
    follow_exactly(judge)
    result = judge.run(do_nothing)
    curves = result.curves
    assert list(result.clips) == list(curves) == ["stand", "trot"] and result.episodes == 3
    for name, clip in result.clips.items():
        errors = [
            clip.joint_error,
            clip.lin_vel_error,
            clip.ang_vel_error,
            clip.height_error,
            clip.key_error,
        ]
        assert max(errors) < 5e-4, name  # bodies are interpolated along lines, not arcs
        assert clip.falls == 0.0 and clip.tracking == pytest.approx(1.0, abs=1e-3)
        assert clip.contact_agreement > 0.9 and clip.style_agreement >= clip.contact_agreement
        rows = curves[name]
        assert {field: tuple(value.shape) for field, value in rows.items()} == {
            field: (100, 3) for field in ("phase", "joint_error", "lin_vel_error")
        }
        phase = rows["phase"]
        assert ((phase >= 0.0) & (phase <= 1.0)).all()
        assert torch.allclose(phase.diff(dim=0) % 1.0, torch.tensor(0.01), atol=1e-4)
    assert result.clips["stand"].contact_agreement == 1.0
    assert set(result.costs) == set(judge.core.cost_names)


def test_errors_are_in_the_units_that_they_are_said_to_be_in(evaluator, monkeypatch):
    judge = evaluator(clips=("stand",), **{"terminations": {}})
    follow_exactly(judge, height=0.02, joints=0.05, speed=0.3)
    clip = judge.run(do_nothing).clips["stand"]
    assert clip.joint_error == pytest.approx(0.05, abs=1e-4)
    assert clip.height_error == pytest.approx(0.02, abs=1e-4)
    assert clip.lin_vel_error == pytest.approx(0.3, abs=1e-3)
    assert clip.ang_vel_error == pytest.approx(0.0, abs=1e-4)
    assert 0.005 < clip.key_error < 0.05


def test_a_robot_that_stays_where_it_is_walks_at_no_speed(evaluator):
    result = evaluator(episodes=8).run(lambda *inputs: torch.zeros(len(inputs[0]), 12))
    assert result.clips["stand"].falls == 0.0
    assert result.clips["stand"].joint_error < 0.15
    assert result.command["falls"] == 0.0
    judge = evaluator(episodes=8)
    judge.metrics.motion.withhold(torch.ones(judge.core.num_envs, dtype=torch.bool))
    judge.core.reset(seed=EVALUATION_SEED)
    command = judge.core.commands["velocity"][-8:]
    assert result.command["command_lin_vel_error"] == pytest.approx(
        command[:, :2].norm(dim=1).mean().item(), abs=0.05
    )
    assert result.command["command_ang_vel_error"] == pytest.approx(
        command[:, 2].abs().mean().item(), abs=0.05
    )


def test_a_task_whose_episodes_all_have_a_reference_is_evaluated_on_its_clips_alone(evaluator):
    judge = evaluator(episodes=3, **{"commands.motion.reference_fraction": 1.0})
    num_clips = judge.metrics.motion.player.library.num_clips
    assert judge.core.num_envs == 3 * num_clips
    result = judge.run(do_nothing)
    assert len(result.clips) == num_clips
    assert result.command is None
    console = Console(record=True, width=100)
    result.print(console)
    assert "without a reference" not in console.export_text()


def test_robots_that_fall_or_lose_the_reference_count_as_fallen_and_until_then(evaluator):
    calls = iter(range(1000))

    def throw_down(observation: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        thrown = next(calls) > 30
        return (
            torch.tensor((1.0, -1.0) * 6).expand(len(observation), 12)
            if thrown
            else torch.zeros(len(observation), 12)
        )

    judge = evaluator(
        **{"terminations.reference_lost.params": {"height": 0.1, "tilt": 0.3, "key_body": 0.1}}
    )
    result = judge.run(throw_down)
    assert result.clips["stand"].falls == 1.0
    errors = result.curves["stand"]["joint_error"]
    assert errors[:30].isfinite().all() and errors[-40:].isnan().all()
    assert result.clips["stand"].joint_error == pytest.approx(
        errors.nanmean(0).mean().item(), rel=1e-4
    )


def test_evaluations_start_anywhere_in_each_clip_the_same_each_time_and_leave_nothing_held(
    evaluator,
):
    judge = evaluator(episodes=8)
    starts: list[tuple[list[int], torch.Tensor, torch.Tensor]] = []

    def look(
        observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        if len(starts) == 0 or judge.core.episode_steps[0] == 0:
            starts.append(
                (
                    judge.metrics.motion.player.clip.tolist(),
                    judge.metrics.motion.player.time.clone(),
                    mask.clone(),
                )
            )
        return torch.zeros(len(observation), 12)

    first, second = judge.run(look), judge.run(look)
    other = judge.run(look, seed=7)
    assert (
        json.dumps(first.as_dict()) == json.dumps(second.as_dict()) != json.dumps(other.as_dict())
    )
    (clips, times, mask), (_, same, _), (_, different, _) = starts
    assert clips[:16] == [0] * 8 + [1] * 8
    assert mask.squeeze(1).tolist() == [1.0] * 16 + [0.0] * 8
    assert torch.equal(times, same) and not torch.isclose(times, different).any()
    assert len(times[:16].unique()) == 16 and times[:8].max() - times[:8].min() > 0.8
    judge.core.reset(seed=0)
    assert not judge.metrics.motion.available.any()


def test_policies_of_other_groups_are_evaluated_on_theirs(evaluator, monkeypatch):
    monkeypatch.setattr(TaskMetrics, "EPISODE_SECONDS", 1.0)
    judge = Evaluator(GO2, imitating(make_task_cfg(GO2), ("trot",)), 2, groups=CRITIC_GROUPS)
    sizes = judge.core.group_sizes
    seen = []

    def look(*inputs: torch.Tensor) -> torch.Tensor:
        seen.append([tuple(value.shape) for value in inputs])
        return torch.zeros(4, 12)

    judge.run(look)
    judge.close()
    assert seen[0] == [(4, sizes[group]) for group in CRITIC_GROUPS]


def test_an_evaluation_of_a_task_without_motions_or_of_unknown_clips_is_refused():
    with pytest.raises(ValueError, match=r"'jump'.*trot"):
        Evaluator(GO2, imitating(make_task_cfg(GO2), ("jump",)), 1)
    cfg = make_task_cfg(GO2)
    cfg.commands["motion"] = cfg.commands["velocity"]
    with pytest.raises(ValueError, match=r"no motion command; its commands: velocity, motion"):
        imitating(cfg, ("trot",))


# --- tasks of one's own -----------------------------------------------------------------------------------------------


def test_a_mimic_task_with_other_events_rewards_and_names_is_evaluated_and_watched(monkeypatch):
    """Nothing is found by the names that the shipped tasks use."""
    cfg = make_task_cfg(GO2)
    cfg.events["start"] = cfg.events.pop("reference")
    del cfg.events["push"]
    cfg.rewards = {
        "imitate": cfg.rewards["reference_joint_pos"],
        "cheap": cfg.rewards["joint_torque"],
    }
    monkeypatch.setattr(TaskMetrics, "EPISODE_SECONDS", 1.0)
    judge = Evaluator(GO2, imitating(cfg, ("trot",)), 2)
    assert 0.0 < judge.run(do_nothing).clips["trot"].tracking <= 1.0
    judge.close()
    envs = make_watched_envs(GO2, cfg, load_shipped_policy(GO2))
    start = cfg.events["start"].params
    assert [
        scene.clip for scene in watch(envs, do_nothing, ACTOR_GROUPS, [Scene(0.04, clip="trot")])
    ] == ["trot"] * 2
    envs.close()
    assert cfg.events["start"].params is start and start  # the caller's configuration is as it was
    del cfg.rewards["imitate"]
    judge = Evaluator(GO2, imitating(cfg, ("trot",)), 2)
    assert np.isnan(judge.run(do_nothing).clips["trot"].tracking)
    judge.close()
