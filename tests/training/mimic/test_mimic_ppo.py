"""Motion-mimic PPO and distillation on a toy task: learning, formulas, and contents of a checkpoint."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import tyro
from chase import (
    COSTS,
    ENCODERS,
    ENVS,
    EVERYTHING,
    FRAMES,
    STEPS,
    Chase,
    chase_by_hand,
    disagreement,
    distillation,
    iterate,
    make,
    mean_actions,
    policy_error,
    roll,
    with_everything,
)
from tensordict import TensorDict

from legged_envs.training.learner.bonus import Novelty
from legged_envs.training.learner_options import AmpCfg, LagrangeCfg, RndCfg
from legged_envs.training.mimic.ppo import make_mimic_ppo
from legged_envs.training.mimic_options import DaggerCfg, MimicDistillationCfg, MimicPPOCfg


@ENCODERS
def test_ppo_learns_to_follow(encoder: Any) -> None:
    torch.manual_seed(0)
    env = Chase(48)
    algorithm = make(env, encoder=encoder, learning_rate=2e-3, epochs=4)
    before = policy_error(algorithm, Chase(128))
    iterate(algorithm, env, 16)
    after = policy_error(algorithm, Chase(128))
    assert before > 0.8 and after < 0.45, (before, after)


def test_a_policy_without_the_reference_cannot_follow_as_well() -> None:
    """The learning test measures the use of the reference."""
    torch.manual_seed(0)
    blind = Chase(256)
    obs, error = blind.get_observations(), 0.0
    for _ in range(60):
        obs, *_ = blind.step(
            chase_by_hand(obs["critic"], obs["critic_reference"], torch.zeros(256, 1))
        )
        error += blind.error.mean().item() / 60
    assert error > 0.6


def test_returns_bootstrap_time_outs_from_final_observations_as_a_float64_loop() -> None:
    torch.manual_seed(1)
    env, limits = Chase(6), torch.tensor([0.3, 0.8])
    options = {"lagrange": LagrangeCfg(enabled=True), "gamma": 0.9, "gae_lambda": 0.8}
    algorithm = make(env, EVERYTHING, **options)
    obs, rows = env.get_observations(), []
    seen: list[int] = []
    for critic in (algorithm.critic, algorithm.cost_critic):
        critic.head.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    with torch.inference_mode():
        for _ in range(STEPS):
            before = obs
            obs, rewards, dones, extras = env.step(2.0 * algorithm.act(obs))
            algorithm.process_env_step(obs, rewards, dones, extras)
            rows.append((before, extras.get("final_obs", obs), rewards, dones, extras))
        assert seen == [6] * (2 * STEPS)
        algorithm.compute_returns(obs)
    timed_out = sum(int(row[4]["time_outs"].sum()) for row in rows)
    assert (
        timed_out > 3 and seen[-2:] == [6 + timed_out] * 2
    )  # only rows that timed out are evaluated

    def values(of: TensorDict) -> torch.Tensor:
        inputs = [of[group] for group in ("critic", "critic_reference", "critic_reference_mask")]
        with torch.no_grad():
            return torch.cat(
                [critic(*inputs) for critic in (algorithm.critic, algorithm.cost_critic)], dim=1
            ).double()

    advantage, advantages, targets = torch.zeros(6, 3).double(), [], []
    for before, final, rewards, dones, extras in reversed(rows):
        terminal = (dones & ~extras["time_outs"]).double()[:, None]
        scaled = (1.0 - 0.9 * 0.8) * extras["costs"] / limits
        signal = torch.cat((rewards[:, None], scaled), dim=1).double()
        delta = signal + 0.9 * (1.0 - terminal) * values(final) - values(before)
        advantage = delta + 0.9 * 0.8 * (1.0 - dones.double())[:, None] * advantage
        advantages.insert(0, advantage)
        targets.insert(0, advantage + values(before))
    raw, expected, storage = torch.stack(advantages), torch.stack(targets), algorithm.storage
    reward = raw[..., :1]
    np.testing.assert_allclose(storage.returns, expected[..., :1], atol=1e-5)
    np.testing.assert_allclose(storage.cost_returns, expected[..., 1:], atol=1e-5)
    np.testing.assert_allclose(
        storage.advantages, (reward - reward.mean()) / reward.std(), atol=1e-4
    )
    np.testing.assert_allclose(storage.cost_advantages, raw[..., 1:], atol=1e-5)


def test_the_loss_is_ppos() -> None:
    torch.manual_seed(0)
    env = Chase(8)
    algorithm = make(env, entropy=0.1, value_loss=0.5, clip=0.05)
    iterate(algorithm, env, 1)
    roll(algorithm, env)
    batch = next(algorithm.storage.mini_batches(1))
    with torch.no_grad():
        algorithm.actor.distribution.log_std_param.add_(0.05)
        algorithm.actor.distribution.log_free_std_param.add_(-0.3)
        loss = algorithm._loss(batch, *algorithm._normalized(batch))[0].item()
    mean = mean_actions(algorithm, batch_as_obs(batch)).double().numpy()
    distribution, has_reference = (
        algorithm.actor.distribution,
        batch.reference_observations_mask[:, None].numpy(),
    )
    log_stds = (
        p.detach().double().numpy()
        for p in (distribution.log_std_param, distribution.log_free_std_param)
    )
    std = np.exp(np.where(has_reference, *log_stds))
    actions, old = (
        batch.actions.double().numpy(),
        batch.actions_log_prob.squeeze(1).double().numpy(),
    )
    log_prob = (-0.5 * ((actions - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(
        axis=1
    )
    ratio, advantages = np.exp(log_prob - old), batch.advantages.squeeze(1).double().numpy()
    surrogate = np.minimum(ratio * advantages, np.clip(ratio, 0.95, 1.05) * advantages).mean()
    assert ((ratio < 0.95) | (ratio > 1.05)).mean() > 0.1
    with torch.no_grad():
        values = algorithm.critic(
            batch.critic_observations,
            batch.critic_reference_observations,
            batch.critic_reference_observations_mask,
        )
    value = ((values - batch.returns).double().numpy() ** 2).mean()
    entropy = (0.5 + 0.5 * np.log(2 * np.pi) + np.log(std)).sum(axis=1).mean()
    assert loss == pytest.approx(-surrogate + 0.5 * value - 0.1 * entropy, abs=1e-5)


def batch_as_obs(batch: Any) -> TensorDict:
    parts = {
        "policy": batch.observations,
        "reference": batch.reference_observations,
        "reference_mask": batch.reference_observations_mask[:, None].float(),
    }
    return TensorDict(parts, batch_size=[len(batch.observations)])


@pytest.mark.parametrize(("desired", "rate"), [(1e-9, 1e-5), (1e3, 1e-2)])
def test_an_adaptive_learning_rate_follows_the_kl_divergence(desired: float, rate: float) -> None:
    torch.manual_seed(0)
    env = Chase(8)
    algorithm = make(env, schedule="adaptive", desired_kl=desired)
    iterate(algorithm, env, 1)
    assert (
        algorithm.learning_rate == algorithm.optimizer.param_groups[0]["lr"] == pytest.approx(rate)
    )
    fixed = make(env)
    iterate(fixed, env, 1)
    assert fixed.learning_rate == fixed.optimizer.param_groups[0]["lr"] == 1e-3


def test_a_privileged_actor_sees_what_the_critic_sees_and_can_teach() -> None:
    torch.manual_seed(0)
    env = Chase(16)
    algorithm = make(env, privileged_actor=True, epochs=1)
    assert algorithm.storage.privileged_observations is None  # nothing is kept twice
    iterate(algorithm, env, 1)
    obs = env.get_observations()
    before = mean_actions(algorithm, obs)
    obs["policy"], obs["reference"] = torch.randn(16, 3), torch.randn(16, 2 * FRAMES)
    assert torch.equal(mean_actions(algorithm, obs), before)
    obs["critic"] = torch.randn(16, 5)
    assert not torch.equal(mean_actions(algorithm, obs), before)
    teacher = torch.jit.script(algorithm.get_policy().as_jit())
    student = make(env, {"teacher": teacher}, dagger=DaggerCfg(1.0), epochs=1)
    roll(student, env)
    storage = student.storage
    inputs = (storage.privileged_observations, storage.privileged_reference_observations)
    mask = storage.privileged_reference_observations_mask
    with torch.no_grad():
        expected = teacher(inputs[0][3], inputs[1][3], mask[3].float()[:, None])
    torch.testing.assert_close(storage.dagger_actions[3], expected, rtol=0, atol=1e-6)


# --- teachers ---------------------------------------------------------------------------------------------------------


class Unrewarded(Chase):
    def step(
        self, actions: torch.Tensor
    ) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        obs, rewards, dones, extras = super().step(actions)
        return obs, torch.zeros_like(rewards), dones, extras


def test_dagger_alone_makes_the_student_agree_with_the_teacher() -> None:
    torch.manual_seed(0)
    env, held_out = Unrewarded(), Chase(128)
    algorithm = make(env, {"teacher": chase_by_hand}, dagger=DaggerCfg(5.0), epochs=4)
    before = disagreement(algorithm, held_out)
    losses = iterate(algorithm, env, 12)
    assert losses[-1]["dagger"] < losses[0]["dagger"]
    assert disagreement(algorithm, held_out) < 0.25 * before


def test_dagger_fades_linearly_and_then_asks_nobody() -> None:
    torch.manual_seed(0)
    env, calls = Chase(4), []

    def teacher(*inputs: torch.Tensor) -> torch.Tensor:
        calls.append(len(inputs))
        return chase_by_hand(*inputs)

    algorithm = make(
        env,
        {"teacher": teacher},
        dagger=DaggerCfg(0.8, decay_iterations=4),
        steps_per_env=3,
        epochs=1,
        mini_batches=1,
    )
    coefficients = []
    for _ in range(6):
        coefficients.append(algorithm.parts[0].weight(algorithm.iteration))
        losses = iterate(algorithm, env, 1)[0]
        assert ("dagger" in losses) == (coefficients[-1] > 0.0)
    assert coefficients == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.0, 0.0])
    assert len(calls) == 4 * 3


@ENCODERS
def test_distillation_teaches_the_student_on_states_that_it_has_not_seen(encoder: Any) -> None:
    torch.manual_seed(0)
    env, held_out = Chase(), Chase(128)
    algorithm = distillation(env, encoder=encoder, learning_rate=2e-3)
    before = disagreement(algorithm, held_out)
    losses = iterate(algorithm, env, 15)
    assert losses[-1]["distillation"] < losses[0]["distillation"]
    assert disagreement(algorithm, held_out) < 0.4 * before
    assert policy_error(algorithm, Chase(128)) < 0.4
    assert algorithm.actor.output_std.tolist() == pytest.approx([0.1, 0.1])


# --- RND --------------------------------------------------------------------------------------------------------------


def test_rnd_rewards_what_is_new() -> None:
    torch.manual_seed(0)
    env = Chase()
    algorithm = make(env, rnd=RndCfg(0.5), epochs=3)
    losses = iterate(algorithm, env, 6)
    assert losses[-1]["rnd"] < 0.5 * losses[0]["rnd"]
    (bonus,) = algorithm.parts
    assert isinstance(bonus, Novelty)
    known = env.get_observations()
    new = known.clone()
    new["critic"] += 5.0
    novelty = [bonus.network.get_intrinsic_reward(obs).mean() for obs in (known, new)]
    assert novelty[1] > 3.0 * novelty[0]
    obs = env.get_observations()
    algorithm.act(obs)
    end = torch.ones(ENVS, dtype=torch.bool)
    algorithm.process_env_step(known, torch.ones(ENVS), end, {"time_outs": end, "final_obs": new})
    expected = 1.0 + bonus.network.get_intrinsic_reward(
        new
    )  # of where the episode ended, not of the next one
    torch.testing.assert_close(algorithm.storage.rewards[0, :, 0], expected.detach())


# --- checkpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [make, with_everything, distillation], ids=["plain", "everything", "distillation"]
)
def test_a_resumed_run_is_the_run_that_never_stopped(
    kind: Any, assert_same: Callable[..., None]
) -> None:
    torch.manual_seed(0)
    env = Chase(16)
    algorithm = kind(env, epochs=2)
    iterate(algorithm, env, 2)
    file = io.BytesIO()
    torch.save({"algorithm": algorithm.save(), "rng": torch.get_rng_state()}, file)
    other_env = copy.deepcopy(env)
    losses = iterate(algorithm, env, 2)
    expected = algorithm.save()

    torch.manual_seed(99)
    fresh = kind(Chase(16), epochs=2)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    assert fresh.load(state["algorithm"], None, strict=True)
    torch.set_rng_state(state["rng"])
    assert iterate(fresh, other_env, 2) == losses
    assert_same(fresh.save(), expected)
    assert expected["iteration"] == 4


def test_a_state_is_a_copy_and_loading_leaves_it_alone(assert_same: Callable[..., None]) -> None:
    torch.manual_seed(0)
    env = Chase(8)
    algorithm = with_everything(env, epochs=1)
    iterate(algorithm, env, 1)
    state = algorithm.save()
    kept = copy.deepcopy(state)
    algorithm.load(state)
    iterate(algorithm, env, 1)
    assert_same(state, kept)


def test_parts_of_a_state_can_be_loaded() -> None:
    torch.manual_seed(0)
    env = Chase(8)
    algorithm, student = make(env), distillation(env)
    iterate(algorithm, env, 1)
    state = algorithm.save()
    assert not student.load(state, {"actor": True, "optimizer": False})
    obs = env.get_observations()
    assert (
        torch.equal(mean_actions(student, obs), mean_actions(algorithm, obs))
        and student.iteration == 0
    )
    with pytest.raises(
        ValueError, match=r"\['amp', 'amp_optimizer', .*must be in the state, which has \['act"
    ):
        with_everything(env).load(state)
    with pytest.raises(ValueError, match=r"\['aktor'\] must be in the state"):
        algorithm.load(state, {"aktor": True})
    with pytest.raises(RuntimeError, match="size mismatch"):
        make(env, hidden=(16,)).load(state)


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cfg", "arguments", "message"),
    [
        ({"dagger": DaggerCfg(1.0)}, {}, "coefficient = 1.0 needs a teacher"),
        ({"amp": AmpCfg(1.0)}, {}, "amp_reward_weight = 1.0 needs an expert, got None"),
        (
            {"amp": AmpCfg(1.0, group="radar")},
            EVERYTHING,
            r"amp.group must be one of \('amp', .*'radar'",
        ),
        ({"rnd": RndCfg(1.0, group="camera")}, {}, r"rnd.group must be one of \('amp', .*'camera'"),
        ({"lagrange": LagrangeCfg(True)}, {}, r"positive limit .*cost_limits = \(\)"),
        (
            {"lagrange": LagrangeCfg(True)},
            {"cost_names": COSTS, "cost_limits": (1.0, 0.0)},
            r"the cost 'distance' .*0\.0",
        ),
        (
            {"lagrange": LagrangeCfg(True)},
            {"cost_names": COSTS, "cost_limits": (1.0,)},
            "cost_names = .*effort",
        ),
        (
            {"lagrange": LagrangeCfg(True), "gamma": 1.0, "gae_lambda": 1.0},
            EVERYTHING,
            "below 1, got 1.0",
        ),
        (
            {"encoder": "transformer", "encoder_heads": 3},
            {},
            "must divide encoder_size = 16, got 3",
        ),
    ],
)
def test_arguments_are_checked(
    cfg: dict[str, Any], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(Chase(4), arguments, **cfg)


def test_observations_are_checked() -> None:
    obs = Chase(4).get_observations()
    with pytest.raises(
        ValueError, match=r"frames must divide the 6 numbers of 'reference' .*got 4"
    ):
        make_mimic_ppo(obs, 2, 4, MimicPPOCfg())
    with pytest.raises(ValueError, match=r"has no critic_reference"):
        make_mimic_ppo(obs.exclude("critic_reference"), 2, FRAMES, MimicPPOCfg())


def test_a_step_without_what_is_needed_is_refused() -> None:
    env = Chase(4)
    algorithm = make(env, EVERYTHING, lagrange=LagrangeCfg(enabled=True))
    obs, never = env.get_observations(), torch.zeros(4, dtype=torch.bool)
    algorithm.act(obs)
    with pytest.raises(ValueError, match="must have final_obs"):
        algorithm.process_env_step(
            obs, torch.zeros(4), ~never, {"time_outs": never, "costs": torch.zeros(4, 2)}
        )
    with pytest.raises(ValueError, match="must have costs"):
        algorithm.process_env_step(obs, torch.zeros(4), never, {"time_outs": never, "costs": None})


@pytest.mark.parametrize("weight", ["--amp.weight", "--amp.amp-reward-weight"])
def test_the_configuration_makes_flags(weight: str) -> None:
    flags = [
        weight,
        "0.5",
        "--encoder",
        "transformer",
        "--hidden",
        "8",
        "4",
        "--lagrange.enabled",
    ]
    cfg = tyro.cli(MimicPPOCfg, args=flags)
    expected = MimicPPOCfg(
        encoder="transformer",
        hidden=(8, 4),
        amp=AmpCfg(0.5),
        lagrange=replace(LagrangeCfg(), enabled=True),
    )
    assert cfg == expected
    assert tyro.cli(MimicDistillationCfg, args=["--epochs", "3"]).epochs == 3
