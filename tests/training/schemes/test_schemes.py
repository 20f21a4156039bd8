"""Every training scheme trains its policy, writes it, and resumes to the bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from legged_envs.envs import make_core
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.policy import load_policy
from legged_envs.training.checkpoint import read_checkpoint
from legged_envs.training.learner_options import AmpCfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.scheme_options import (
    SCHEME_CONFIGS,
    CTSCfg,
    DreamWaQCfg,
    EECfg,
    HIMCfg,
    SchemeCfg,
    TSCfg,
)
from legged_envs.training.schemes.cts import ROLE
from legged_envs.training.schemes.scheme import LABELS
from legged_envs.training.trainer import Trainer

BLIND = "Legged/Go2-Blind-v0"
FRAME = 45
HISTORY = 5
NUM_ENVS = 16


def options_of(name: str, **options: Any) -> Any:
    small: dict[str, Any] = {
        "steps_per_env": 4,
        "epochs": 2,
        "mini_batches": 2,
        "hidden": (16,),
        "history": HISTORY,
        "encoder_hidden": (16,),
    }
    return SCHEME_CONFIGS[name](**{**small, **options})


def trainer_of(algo: SchemeCfg, folder: Path | None = None, task_id: str = BLIND) -> Trainer:
    cfg = TrainCfg(task_id, num_envs=NUM_ENVS, run_dir=folder, iterations=9, video=False)
    return Trainer(prepare(replace(cfg, algo=algo)), Console(quiet=True))


def iterate(trainer: Trainer, times: int) -> Trainer:
    for _ in range(times):
        trainer.set_schedule()
        trainer.iterate()
    return trainer


def scheme_of(trainer: Trainer) -> Any:
    return trainer.algorithm.parts[-1]


@pytest.mark.parametrize(
    ("name", "encoder"),
    [("ts", "tcn"), ("cts", "moe"), ("ee", "mlp"), ("dreamwaq", "mlp"), ("him", "mlp")],
)
def test_the_policy_in_the_file_is_the_student_and_its_task_has_its_history(
    name: str, encoder: str, tmp_path: Path
) -> None:
    trainer = iterate(trainer_of(options_of(name, encoder=encoder), tmp_path), 1)
    trainer.export()
    policy, cfg, _ = policy_and_task(BLIND, tmp_path / "policy.safetensors")
    assert tuple(policy.inputs) == ("policy",)
    assert cfg.observations["policy"].history == HISTORY
    core = make_core(cfg, 3)
    policy.check(core)
    core.reset(seed=0)
    histories = torch.randn(3, HISTORY * FRAME)
    expected = trainer.algorithm.get_policy().network(histories)
    torch.testing.assert_close(policy(histories), expected)
    assert core.observations.groups["policy"].value.shape == (3, HISTORY * FRAME)


@pytest.mark.parametrize("name", SCHEME_CONFIGS)
def test_a_resumed_run_is_the_run_that_never_stopped(
    name: str, tmp_path: Path, assert_same: Callable[..., None]
) -> None:
    algo = options_of(name)
    whole = iterate(trainer_of(algo, tmp_path), 3)
    iterate(trainer_of(algo, tmp_path), 2).save()
    cfg = TrainCfg(BLIND, resume=tmp_path)
    resumed = iterate(Trainer(prepare(cfg), Console(quiet=True)), 1)
    assert_same(whole.algorithm.save(), resumed.algorithm.save())


def warm_started(algo: PPOCfg, folder: Path, task_id: str, **options: Any) -> Trainer:
    cfg = TrainCfg(task_id, num_envs=8, iterations=9, video=False, warm_start=folder, algo=algo)
    return Trainer(prepare(replace(cfg, **options)), Console(quiet=True))


@pytest.mark.parametrize("name", SCHEME_CONFIGS)
def test_a_scheme_starts_with_all_networks_of_a_run_on_another_task(
    name: str, tmp_path: Path, assert_same: Callable[..., None]
) -> None:
    iterate(trainer_of(options_of(name), tmp_path), 1).save()
    before = read_checkpoint(tmp_path, BLIND)["algorithm"]
    trainer = warm_started(options_of(name, noise_kept=2.0), tmp_path, "Legged/Go2-Robust-v0")
    after = trainer.algorithm.save()
    networks = {"dreamwaq": ["decoder"], "him": ["target", "prototypes"]}.get(name, [])
    before["actor"]["distribution.std_param"] *= 2.0
    for part in ("actor", "critic", *networks):
        assert_same(before[part], after[part])
    assert trainer.iteration == 0
    assert after["optimizer"]["state"] == after["scheme_optimizer"]["state"] == {}
    iterate(trainer, 1)


def test_a_scheme_starts_only_with_networks_that_mean_the_same(tmp_path: Path) -> None:
    iterate(trainer_of(options_of("ee"), tmp_path), 1).save()
    refused: list[tuple[SchemeCfg, dict[str, Any], str]] = [
        (options_of("cts"), {}, "is a run of ee, and cts starts only"),
        (options_of("ee", history=6), {}, "observation group 'policy' of the run"),
        (options_of("ee"), {"task_id": "Legged/Go2-Rough-v0"}, "observation group 'policy'"),
        (options_of("ee"), {"task_id": "Legged/AnymalC-Flat-v0"}, "AnymalC-Flat"),
        (options_of("ee", hidden=(32,)), {}, "size mismatch"),
    ]
    for algo, options, message in refused:
        with pytest.raises(ValueError, match=message):
            warm_started(algo, tmp_path, **{"task_id": BLIND, **options})
    with pytest.raises(
        ValueError, match=r"is a run of ee on .*, whose networks ppo cannot use: .* train with ee"
    ):
        warm_started(PPOCfg(hidden=(16,)), tmp_path, task_id=BLIND)
    # No network of the scheme reads the observations of a style.
    styled = replace(options_of("ee"), amp=AmpCfg(amp_reward_weight=0.02))
    warm_started(styled, tmp_path, task_id=BLIND, clips=("trot",))


@pytest.mark.parametrize("name", SCHEME_CONFIGS)
def test_ppo_and_scheme_train_networks_of_their_own(name: str) -> None:
    trainer = trainer_of(options_of(name))
    scheme = scheme_of(trainer)
    actor = scheme.actor
    own = {
        id(parameter) for group in scheme.optimizer.param_groups for parameter in group["params"]
    }
    assert {id(parameter) for parameter in actor.network.encoder.parameters()} <= own
    inputs = actor.normalize(*trainer.algorithm.actor_inputs.read(trainer.env.get_observations()))
    actor.zero_grad()
    actor.evaluate(*inputs).square().sum().backward()
    assert all(parameter.grad is None for parameter in actor.network.encoder.parameters())
    assert all(parameter.grad is not None for parameter in actor.network.mlp.parameters())
    if isinstance(scheme.cfg, TSCfg):
        # PPO trains the teacher.
        gradients = [parameter.grad for parameter in actor.teacher.parameters()]
        assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients)


@pytest.mark.parametrize("name", SCHEME_CONFIGS)
def test_what_a_scheme_learns_gets_better_on_the_same_robots(name: str) -> None:
    torch.manual_seed(0)
    algo = options_of(name, encoder_hidden=(64,), encoder_epochs=2)
    trainer = trainer_of(algo)
    key = f"loss_{scheme_of(trainer).name}"
    # Physics and policy stay as they are: the encoder alone learns.
    losses = []
    for _ in range(12):
        trainer.algorithm.learning_rate = 0.0
        for group in trainer.algorithm.optimizer.param_groups:
            group["lr"] = 0.0
        losses.append(trainer.iterate()[key])
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])


@pytest.mark.parametrize("epochs", [1, 2])
def test_the_encoder_learns_in_the_first_passes(epochs: int) -> None:
    trainer = trainer_of(options_of("ee", encoder_epochs=epochs))
    scheme = scheme_of(trainer)
    seen = []
    loss = scheme.loss
    scheme.loss = lambda done: (seen.append(done.epoch), loss(done))[1]
    trainer.iterate()
    assert seen == [0, 0, 1, 1][: 2 * epochs]


def test_encoders_of_earlier_versions_learn_in_all_passes(tmp_path: Path) -> None:
    iterate(trainer_of(options_of("ee"), tmp_path), 1).save()
    checkpoint = read_checkpoint(tmp_path)
    del checkpoint["cfg"].algo.encoder_epochs
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    assert read_checkpoint(tmp_path)["cfg"].algo.encoder_epochs == 2


def test_the_learning_rate_of_an_encoder_falls_linearly() -> None:
    algo = options_of("ee", encoder_learning_rate=4e-3, encoder_final_learning_rate=1e-3)
    trainer = trainer_of(algo)
    rates = []
    for done in (0.0, 1 / 3, 1.0, 1.2):
        trainer.schedule.apply(done, env_steps=0)
        rates.append(scheme_of(trainer).optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([4e-3, 3e-3, 1e-3, 1e-3])


def test_encoders_of_earlier_versions_keep_their_learning_rate(tmp_path: Path) -> None:
    iterate(trainer_of(options_of("ee", encoder_learning_rate=2e-3), tmp_path), 1).save()
    checkpoint = read_checkpoint(tmp_path)
    del checkpoint["cfg"].algo.encoder_final_learning_rate
    torch.save(checkpoint, tmp_path / "checkpoint.pt")
    assert read_checkpoint(tmp_path)["cfg"].algo.encoder_final_learning_rate == 2e-3


@pytest.mark.parametrize("name", ["ee", "dreamwaq", "him", "cts"])
def test_the_policy_learns_with_the_codes_that_robots_acted_on(name: str) -> None:
    """The encoder learns beside the policy. New codes would look like a change of the policy."""
    trainer = trainer_of(options_of(name, symmetry="off", encoder_epochs=2))
    encoder = scheme_of(trainer).actor.network.encoder
    before = [parameter.clone() for parameter in encoder.parameters()]
    for group in trainer.algorithm.optimizer.param_groups:
        group["lr"] = 0.0
    assert trainer.iterate()["loss_kl"] == pytest.approx(0.0, abs=1e-6)
    assert not torch.equal(before[0], next(encoder.parameters()))


def test_labels_are_velocity_contacts_and_heights_before_the_step() -> None:
    trainer = trainer_of(options_of("ee"))
    scheme = scheme_of(trainer)
    core = trainer.core
    observation = trainer.env.get_observations()
    before = observation[LABELS].clone()
    torch.testing.assert_close(before[:, :3], core.robot.lin_vel_b)
    assert before.shape[1] == 3 + 4 + 4
    with torch.inference_mode():
        actions = trainer.algorithm.act(observation)
        trainer.algorithm.process_env_step(*trainer.env.step(actions))
    torch.testing.assert_close(scheme.labels.values[0], before)


def test_mirrored_rows_have_mirrored_labels() -> None:
    trainer = trainer_of(options_of("ee"))
    scheme = scheme_of(trainer)
    scheme.labels.values.normal_()
    storage = trainer.algorithm.storage
    iterate(trainer, 1)
    scheme.labels.values.normal_()
    indices = torch.arange(8)

    class Rows:
        pass

    rows: Any = Rows()
    rows.indices = indices
    labels = scheme.labels.rows(rows)
    plain = scheme.labels.values.flatten(0, 1)[indices]
    torch.testing.assert_close(labels[4:], plain[4:])
    # y of the velocity changes its sign; left and right feet change places.
    sides = trainer.core.cfg.robot.foot_mirror
    torch.testing.assert_close(labels[:4, :3], plain[:4, :3] * torch.tensor([1.0, -1.0, 1.0]))
    torch.testing.assert_close(labels[:4, 3:7], plain[:4, 3:7][:, list(sides)])
    torch.testing.assert_close(labels[:4, 7:], plain[:4, 7:][:, list(sides)])
    assert storage.num_envs == NUM_ENVS


@pytest.mark.parametrize("name", ["dreamwaq", "him"])
def test_the_next_observation_of_an_episode_that_ends_is_its_true_last_one(name: str) -> None:
    trainer = trainer_of(options_of(name))
    scheme = scheme_of(trainer)
    observation = trainer.env.get_observations()
    last = trainer.env.max_episode_length - 1
    trainer.env.episode_length_buf = torch.full((NUM_ENVS,), last)
    with torch.inference_mode():
        actions = trainer.algorithm.act(observation)
        after, rewards, dones, extras = trainer.env.step(actions)
        trainer.algorithm.process_env_step(after, rewards, dones, extras)
    assert dones.all()
    kept = scheme.following.values[0]
    torch.testing.assert_close(kept, extras["final_obs"]["policy"])
    assert not torch.equal(kept, after["policy"])


def test_teachers_and_students_are_spread_evenly_and_act_on_codes_of_their_own() -> None:
    trainer = trainer_of(options_of("cts"))
    actor = scheme_of(trainer).actor
    observation = trainer.env.get_observations()
    role = observation[ROLE].squeeze(1)
    assert role.tolist() == [0.0, 1.0, 1.0, 1.0] * 4
    seen = actor.normalize(*trainer.algorithm.actor_inputs.read(observation))
    history, privileged = seen[:2]
    code = actor.code(*seen)
    torch.testing.assert_close(code[role == 1], actor.teacher_code(privileged)[role == 1])
    torch.testing.assert_close(code[role == 0], actor.network.code(history)[role == 0])
    torch.testing.assert_close(code.norm(dim=1), torch.ones(NUM_ENVS), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("algo", "options", "message"),
    [
        (EECfg(history=1), {}, r"--history.*1"),
        (EECfg(history=4), {"changes": {"observations.policy.history": 6}}, r"4.*6"),
        (EECfg(), {"task_id": "Legged/Go2-Mimic-v0"}, "mmppo"),
        (EECfg(), {"learner": "rsl_rl"}, "--learner rsl_rl"),
        (CTSCfg(teacher_share=1.0), {}, r"--teacher-share 1 of --num-envs 16"),
        (CTSCfg(teacher_share=0.05), {}, r"--teacher-share 0\.05.*0 teachers"),
        (EECfg(), {"changes": {"observations.policy.history": 1}}, r"10.*1"),
        (EECfg(), {"changes": {"observations.policy.terms.joint_pos.history": 3}}, "joint_pos"),
        (EECfg(encoder="tcn", history=5), {}, r"--history of at least 7, got 5"),
        (TSCfg(), {"changes": {"observations.critic": None}}, "'critic'"),
        (DreamWaQCfg(latent=0), {}, "--latent"),
        (HIMCfg(temperature=0.0), {}, "--temperature"),
        (EECfg(encoder_learning_rate=0.0), {}, "--encoder-learning-rate"),
        (EECfg(encoder_epochs=0), {}, "--encoder-epochs"),
        (EECfg(encoder_epochs=6), {}, "--encoder-epochs 6.*--epochs 5"),
    ],
)
def test_what_does_not_fit_is_refused(
    algo: SchemeCfg, options: dict[str, Any], message: str
) -> None:
    cfg: dict[str, Any] = {"task_id": BLIND, "num_envs": NUM_ENVS, **options}
    with pytest.raises(ValueError, match=message):
        prepare(TrainCfg(algo=algo, **cfg))


def test_a_policy_of_a_scheme_is_loaded_as_any_other(tmp_path: Path) -> None:
    trainer = iterate(trainer_of(options_of("ee"), tmp_path), 1)
    trainer.export()
    assert load_policy(tmp_path).changes == {"observations.policy.history": HISTORY}
