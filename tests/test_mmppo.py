"""Motion-mimic PPO and distillation on a toy: a point that follows a moving target where there is one."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tyro
from tensordict import TensorDict

from legged_envs.rl.mimic_config import (
    AmpCfg,
    DaggerCfg,
    LagrangeCfg,
    MimicDistillationCfg,
    MimicNetworkCfg,
    MimicPPOCfg,
    RndCfg,
)
from legged_envs.rl.mmppo import Discriminator, Lagrange, MimicDistillation, MimicNetwork, MimicPPO

ENVS, FRAMES, STEPS, LIMIT = 32, 3, 24, 15
SIZES = {"policy": 3, "critic": 5, "reference": 2 * FRAMES, "critic_reference": 3 * FRAMES}
COSTS = ("effort", "distance")
NETWORK: dict[str, Any] = {"hidden": (32,), "encoder_hidden": (32,), "encoder_size": 16, "encoder_heads": 2}


class Chase:
    """A point x in the plane moves by 0.3 · clip(a, ±1); its target circles, and is the origin without a reference.

    The interface of ``RslRlVecEnv``. Reward 0.1 · (1 − |x' − target'|²), at least −0.1; time-out after 15 steps, a fall
    beyond |x| = 2. The frames are the target's next positions, for the critic with the number of the frame.
    """

    def __init__(self, num_envs: int = ENVS):
        self.num_envs = num_envs
        self.x, self.phase = torch.zeros(num_envs, 2), torch.zeros(num_envs)
        self.has_reference, self.age = torch.zeros(num_envs, dtype=torch.bool), torch.randint(0, LIMIT, (num_envs,))
        self._reset(torch.ones(num_envs, dtype=torch.bool))

    def _reset(self, rows: torch.Tensor) -> None:
        n = int(rows.sum())
        self.x[rows] = torch.rand(n, 2) * 2.0 - 1.0
        self.phase[rows] = torch.rand(n) * 6.28
        self.has_reference[rows] = torch.rand(n) < 0.7

    def target(self, ahead: int = 0) -> torch.Tensor:
        angle = self.phase + 0.2 * ahead
        return torch.stack((angle.cos(), angle.sin()), dim=1) * self.has_reference[:, None]

    def get_observations(self) -> TensorDict:
        frames = [self.target(ahead) for ahead in range(1, FRAMES + 1)]
        number = self.has_reference[:, None].float()
        mask = self.has_reference[:, None].float()
        groups = {
            "policy": torch.cat((self.x + 0.01 * torch.randn_like(self.x), torch.rand(self.num_envs, 1)), dim=1),
            "critic": torch.cat((self.x, self.x.square(), self.age[:, None] / LIMIT), dim=1),
            "reference": torch.cat(frames, dim=1),
            "critic_reference": torch.cat([torch.cat((f, i * number), dim=1) for i, f in enumerate(frames)], dim=1),
            "reference_mask": mask,
            "critic_reference_mask": mask.clone(),
        }
        return TensorDict(groups, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        self.x = self.x + 0.3 * actions.clamp(-1.0, 1.0)
        self.phase, self.age = self.phase + 0.2, self.age + 1
        self.error = (self.x - self.target()).norm(dim=1)
        fallen = self.x.norm(dim=1) > 2.0
        time_outs = (self.age >= LIMIT) & ~fallen
        dones = fallen | time_outs
        extras = {"time_outs": time_outs, "costs": torch.stack((actions.abs().mean(1), self.x.norm(dim=1)), dim=1)}
        obs = self.get_observations()
        if dones.any():
            extras["final_obs"] = obs
            self.age = self.age.masked_fill(dones, 0)
            self._reset(dones)
            obs = torch.where(dones, self.get_observations(), obs)
        return obs, 0.1 * (1.0 - self.error.square()).clamp(min=-1.0), dones, extras


def chase_by_hand(critic: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """What moves the point onto its target, as far as it reaches: a teacher."""
    return ((reference[:, :2] * mask - critic[:, :2]) / 0.3).clamp(-1.0, 1.0)


def amp_obs(observations: torch.Tensor) -> torch.Tensor:
    return observations[..., :2]


def amp_ref_obs(reference: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    return reference[0][..., :2], reference[1]


EXTRACTORS = {"amp_obs_extractor": amp_obs, "amp_ref_obs_extractor": f"{__name__}:amp_ref_obs"}
EVERYTHING: dict[str, Any] = {
    "cost_names": COSTS,
    "cost_limits": (0.3, 0.8),
    "teacher": chase_by_hand,
    "amp_cfg": EXTRACTORS,
}


def make(env: Chase, arguments: dict[str, Any] | None = None, **cfg: Any) -> MimicPPO:
    made = MimicPPO(env.get_observations(), 2, env.num_envs, FRAMES, MimicPPOCfg(**NETWORK | cfg), **arguments or {})
    made.train_mode()
    return made


def with_everything(env: Chase, **cfg: Any) -> MimicPPO:
    options = {
        "amp": AmpCfg(0.5, hidden=(16,)),
        "dagger": DaggerCfg(0.3, decay_iterations=10),
        "rnd": RndCfg(0.1),
        "lagrange": LagrangeCfg(enabled=True),
    }
    return make(env, EVERYTHING, **options | {"encoder": "transformer", "schedule": "adaptive"} | cfg)


def roll(algorithm: MimicPPO | MimicDistillation, env: Chase) -> float:
    """One rollout, as the trainer makes it. Returns the mean tracking error."""
    obs, error = env.get_observations(), 0.0
    with torch.inference_mode():
        for _ in range(algorithm.cfg.steps_per_env):
            obs, rewards, dones, extras = env.step(algorithm.act(obs))
            algorithm.process_env_step(obs, rewards, dones, extras)
            error += env.error.mean().item()
        algorithm.compute_returns(obs)
    return error / algorithm.cfg.steps_per_env


def iterate(algorithm: MimicPPO | MimicDistillation, env: Chase, iterations: int) -> list[dict[str, float]]:
    return [{"error": roll(algorithm, env)} | algorithm.update() for _ in range(iterations)]


def policy_error(algorithm: MimicPPO | MimicDistillation, env: Chase, steps: int = 60) -> float:
    """Mean tracking error of the mean action."""
    policy, groups, error = algorithm.get_policy().as_jit(), algorithm.groups, 0.0
    obs = env.get_observations()
    with torch.inference_mode():
        for _ in range(steps):
            obs, *_ = env.step(policy(*(obs[group] for group in groups)))
            error += env.error.mean().item()
    return error / steps


def mean_actions(algorithm: MimicPPO | MimicDistillation, obs: TensorDict) -> torch.Tensor:
    with torch.no_grad():
        return algorithm.actor(*(obs[group] for group in algorithm.groups))


def disagreement(algorithm: MimicPPO | MimicDistillation, env: Chase, steps: int = 20) -> float:
    """Mean squared difference to the teacher's actions, in the states of an environment that nobody has learnt from."""
    obs, total = env.get_observations(), 0.0
    for _ in range(steps):
        actions = mean_actions(algorithm, obs)
        teacher = chase_by_hand(obs["critic"], obs["critic_reference"], obs["critic_reference_mask"])
        total += (actions - teacher).square().mean().item() / steps
        obs, *_ = env.step(actions)
    return total


# --- networks ---------------------------------------------------------------------------------------------------------

ENCODERS = pytest.mark.parametrize("encoder", ["mlp", "transformer"])


@ENCODERS
@pytest.mark.parametrize("garbage", [7.0, 1e30, float("inf"), float("nan")])
def test_what_is_under_the_mask_influences_nothing(encoder: Any, garbage: float) -> None:
    torch.manual_seed(0)
    network = MimicNetwork((4, 6), 3, 2, MimicNetworkCfg(**NETWORK | {"encoder": encoder}))
    observation, reference = torch.randn(9, 4), torch.randn(9, 6)
    mask = (torch.arange(9) % 3 > 0).float()[:, None]
    network.update_normalizers(observation, reference, mask)
    results = []
    for content in (0.0, garbage):
        filled = torch.where(mask > 0.5, reference, content)
        other = copy.deepcopy(network)
        output = other(observation, filled, mask)
        output.square().sum().backward()
        other.update_normalizers(observation, filled, mask)
        gradients = [parameter.grad for parameter in other.parameters()]
        results.append([output.detach(), *gradients, *other.state_dict().values()])
    for one, two in zip(*results, strict=True):
        assert one is not None and one.isfinite().all() and torch.equal(one, two)
    assert not torch.equal(network(observation, reference, mask), network(observation, reference + 1.0, mask))
    flags = network(observation, reference, mask.squeeze(1) > 0.5)  # as the storage keeps them
    assert torch.equal(flags, network(observation, reference, mask))


def test_a_run_with_garbage_under_the_mask_is_the_same_run(assert_same: Callable[..., None]) -> None:
    class Garbage(Chase):
        def get_observations(self) -> TensorDict:
            obs = super().get_observations()
            for kind in ("", "critic_"):
                obs[f"{kind}reference"].masked_fill_(obs[f"{kind}reference_mask"] < 0.5, 1e9)
            return obs

    states = []
    for cls in (Chase, Garbage):
        torch.manual_seed(3)
        env = cls(16)
        algorithm = with_everything(env, mini_batches=2, epochs=2)
        algorithm.teacher = lambda critic, reference, mask: critic[:, :2]  # reads no reference
        iterate(algorithm, env, 2)
        states.append(algorithm.save())
    assert_same(*states)


def test_normalizers_are_of_the_rollouts_and_move_only_at_the_end_of_an_update() -> None:
    torch.manual_seed(0)
    env = Chase()
    algorithm = make(env, epochs=1)
    roll(algorithm, env)
    normalizers = algorithm.actor.network.normalizer, algorithm.critic.reference_normalizer
    assert all(normalizer.count == 0 for normalizer in normalizers)
    storage = algorithm.storage
    mask = storage.privileged_reference_observations_mask
    seen = storage.observations.flatten(0, 1).double(), storage.privileged_reference_observations[mask].double()
    algorithm.update()
    for normalizer, rows in zip(normalizers, seen, strict=True):
        assert normalizer.count == len(rows)
        np.testing.assert_allclose(normalizer.mean, rows.mean(dim=0), atol=1e-5)
        np.testing.assert_allclose(normalizer.std, rows.std(dim=0, correction=0), atol=1e-5)
    assert 0 < len(seen[1]) < len(seen[0])


def test_normalizers_of_discriminator_and_novelty_count_states_and_references() -> None:
    torch.manual_seed(0)
    env = Chase(8)
    algorithm = with_everything(env, epochs=1)
    roll(algorithm, env)
    states, mask = algorithm.storage.observations.flatten(0, 1), algorithm.storage.reference_observations_mask.flatten()
    expert = algorithm.storage.reference_observations.flatten(0, 1)[mask]
    rows = torch.cat((states[:, :2], expert[:, :2])).double()
    novel = algorithm.storage.rnd_state.flatten(0, 1).double()
    algorithm.update()
    normalizers = algorithm.discriminator.normalizer, algorithm.rnd.state_normalizer
    for normalizer, expected in zip(normalizers, (rows, novel), strict=True):
        assert normalizer.count == len(expected)
        np.testing.assert_allclose(normalizer.mean, expected.mean(dim=0), atol=1e-5)


def test_each_networks_gradient_is_clipped_by_itself() -> None:
    torch.manual_seed(0)
    env = Chase(8)
    algorithm = make(env, EVERYTHING, max_grad_norm=1e-3, lagrange=LagrangeCfg(enabled=True))
    iterate(algorithm, env, 1)
    for network in (algorithm.actor, algorithm.critic, algorithm.cost_critic):
        norm = torch.cat([parameter.grad.flatten() for parameter in network.parameters()]).norm()
        assert norm.item() == pytest.approx(1e-3, rel=1e-3)


@ENCODERS
@pytest.mark.parametrize("privileged", [False, True])
def test_exports_give_the_mean_action(encoder: Any, privileged: bool, tmp_path: Path) -> None:
    import onnxruntime

    torch.manual_seed(0)
    env = Chase()
    algorithm = make(env, encoder=encoder, privileged_actor=privileged, epochs=1)
    iterate(algorithm, env, 1)  # with statistics that are not the initial ones
    obs = Chase(11).get_observations()
    inputs = [obs[group] for group in algorithm.groups]
    expected = mean_actions(algorithm, obs)
    torch.jit.save(torch.jit.script(algorithm.get_policy().as_jit()), str(tmp_path / "policy.pt"))
    torch.testing.assert_close(torch.jit.load(str(tmp_path / "policy.pt"))(*inputs), expected, rtol=0, atol=1e-5)
    module = algorithm.get_policy().as_onnx(verbose=False)
    torch.onnx.export(
        module,
        module.dummy_inputs(),
        str(tmp_path / "policy.onnx"),
        input_names=list(module.input_names),
        output_names=list(module.output_names),
        dynamic_axes={name: {0: "n"} for name in (*module.input_names, *module.output_names)},
        opset_version=18,
        dynamo=False,
    )
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"))
    feed = {name: part.numpy() for name, part in zip(module.input_names, inputs, strict=True)}
    np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=0, atol=1e-5)
    assert algorithm.get_policy().output_std.shape == (2,)


# --- PPO --------------------------------------------------------------------------------------------------------------


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
    """What the learning test measures is the use of the reference."""
    torch.manual_seed(0)
    blind = Chase(256)
    obs, error = blind.get_observations(), 0.0
    for _ in range(60):
        obs, *_ = blind.step(chase_by_hand(obs["critic"], obs["critic_reference"], torch.zeros(256, 1)))
        error += blind.error.mean().item() / 60
    assert error > 0.6


def test_returns_bootstrap_time_outs_from_final_observations_as_a_float64_loop() -> None:
    torch.manual_seed(1)
    env, limits = Chase(6), torch.tensor([0.3, 0.8])
    options = {"lagrange": LagrangeCfg(enabled=True), "gamma": 0.9, "gae_lambda": 0.8}
    algorithm = make(env, EVERYTHING, **options)
    obs, rows = env.get_observations(), []
    seen: list[int] = []
    for critic in algorithm._critics:
        critic.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    with torch.inference_mode():
        for _ in range(STEPS):
            before = obs
            obs, rewards, dones, extras = env.step(2.0 * algorithm.act(obs))
            algorithm.process_env_step(obs, rewards, dones, extras)
            rows.append((before, extras.get("final_obs", obs), rewards, dones, extras))
        assert seen == [6] * (2 * STEPS)
        algorithm.compute_returns(obs)
    timed_out = sum(int(row[4]["time_outs"].sum()) for row in rows)
    assert timed_out > 3 and seen[-2:] == [6 + timed_out] * 2  # only rows that timed out are evaluated

    def values(of: TensorDict) -> torch.Tensor:
        inputs = [of[group] for group in ("critic", "critic_reference", "critic_reference_mask")]
        with torch.no_grad():
            return torch.cat([critic(*inputs) for critic in algorithm._critics], dim=1).double()

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
    np.testing.assert_allclose(storage.advantages, (reward - reward.mean()) / reward.std(), atol=1e-4)
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
        loss = algorithm._loss(batch).item()
    mean = mean_actions(algorithm, batch_as_obs(batch)).double().numpy()
    distribution, has_reference = algorithm.actor.distribution, batch.reference_observations_mask[:, None].numpy()
    log_stds = (p.detach().double().numpy() for p in (distribution.log_std_param, distribution.log_free_std_param))
    std = np.exp(np.where(has_reference, *log_stds))
    actions, old = batch.actions.double().numpy(), batch.actions_log_prob.squeeze(1).double().numpy()
    log_prob = (-0.5 * ((actions - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(axis=1)
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
    assert algorithm.learning_rate == algorithm.optimizer.param_groups[0]["lr"] == pytest.approx(rate)
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
    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
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
        env, {"teacher": teacher}, dagger=DaggerCfg(0.8, decay_iterations=4), steps_per_env=3, epochs=1, mini_batches=1
    )
    coefficients = []
    for _ in range(6):
        coefficients.append(algorithm.dagger_coefficient)
        losses = iterate(algorithm, env, 1)[0]
        assert ("dagger" in losses) == (coefficients[-1] > 0.0)
    assert coefficients == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.0, 0.0])
    assert len(calls) == 4 * 3


def distillation(env: Chase, **cfg: Any) -> MimicDistillation:
    made = MimicDistillation(
        env.get_observations(), 2, env.num_envs, FRAMES, MimicDistillationCfg(**NETWORK | cfg), teacher=chase_by_hand
    )
    made.train_mode()
    return made


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


# --- AMP --------------------------------------------------------------------------------------------------------------


def test_the_discriminator_tells_two_motions_apart() -> None:
    torch.manual_seed(0)
    discriminator = Discriminator(2, AmpCfg(1.0, hidden=(32,), gradient_penalty=1.0))
    optimizer = torch.optim.Adam(discriminator.parameters(), 3e-3)

    def pairs(angle: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Points on the circle and where they turn to: the states alone are the same for every angle."""
        begin = 6.28 * torch.rand(256)
        return tuple(torch.stack((a.cos(), a.sin()), dim=1) for a in (begin, begin + angle))  # type: ignore[return-value]

    for _ in range(300):
        loss = discriminator.losses(pairs(-0.8), pairs(0.8))["amp"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    expert, policy = discriminator(*pairs(0.8)), discriminator(*pairs(-0.8))
    assert expert.min() > policy.max() and expert.mean() > 0.4 and policy.mean() < -0.4
    assert discriminator.reward(*pairs(0.8)).mean() > discriminator.reward(*pairs(-0.8)).mean() + 0.3


def test_losses_and_reward_of_the_discriminator_are_the_published_ones() -> None:
    torch.manual_seed(0)
    discriminator = Discriminator(3, AmpCfg(1.0, gradient_penalty=4.0))
    discriminator.network = torch.nn.Linear(6, 1)  # its gradient is the same everywhere
    discriminator.normalizer.update(5.0 + 2.0 * torch.randn(1000, 3))
    policy, expert = ((5.0 + torch.randn(7, 3), 5.0 + torch.randn(7, 3)) for _ in range(2))
    weight, bias = (p.detach().double().numpy() for p in discriminator.network.parameters())

    def score(pair: tuple[torch.Tensor, torch.Tensor]) -> np.ndarray:
        mean, std = (x.double().numpy() for x in (discriminator.normalizer.mean, discriminator.normalizer.std))
        return (
            np.concatenate([(part.double().numpy() - mean) / (std + 0.01) for part in pair], axis=1) @ weight[0] + bias
        )

    expected = ((score(expert) - 1) ** 2).mean() + ((score(policy) + 1) ** 2).mean() + 2.0 * (weight**2).sum()
    assert discriminator.losses(policy, expert)["amp"].item() == pytest.approx(expected, rel=1e-5)
    far = tuple(100.0 * part for part in policy)
    for pair in (policy, far):
        reward = np.maximum(0.0, 1.0 - 0.25 * (score(pair) - 1.0) ** 2)  # type: ignore[arg-type]
        np.testing.assert_allclose(discriminator.reward(*pair).detach(), reward, atol=1e-5)


def test_amp_pairs_are_successive_states_of_one_episode() -> None:
    """States are (environment, episode, step); the reference's are the same numbers, with gaps."""
    envs, steps = 5, 12
    episode, age = torch.zeros(envs), torch.zeros(envs)

    def observe() -> TensorDict:
        state = torch.stack((torch.arange(envs).float(), episode, age), dim=1)
        mask = ((episode % 2 == 0) & (age % 4 != 3)).float()[:, None]
        groups = {"policy": state, "reference": state * mask, "reference_mask": mask}
        return TensorDict(groups | {f"critic_{k}": v for k, v in groups.items()} | {"critic": state}, batch_size=[envs])

    states = lambda observations: observations  # noqa: E731
    extractors = {"amp_obs_extractor": states, "amp_ref_obs_extractor": lambda reference: reference}
    cfg = MimicPPOCfg(**NETWORK, amp=AmpCfg(2.0, 3.0), steps_per_env=steps, epochs=1, mini_batches=3)
    algorithm = MimicPPO(observe(), 2, envs, 1, cfg, amp_cfg=extractors)
    discriminator = algorithm.discriminator
    assert discriminator is not None
    at_step, policy, expert = [], [], []
    reward, losses = discriminator.reward, discriminator.losses

    def reward_of(previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        at_step.append(torch.stack((previous, current)))
        return reward(previous, current)

    def losses_of(ours: Any, theirs: Any) -> dict[str, torch.Tensor]:
        policy.append(torch.stack(ours))
        expert.append(torch.stack(theirs))
        return losses(ours, theirs)

    discriminator.reward, discriminator.losses = reward_of, losses_of  # type: ignore[method-assign]
    torch.manual_seed(0)
    obs, ended = observe(), 0
    for _ in range(steps):
        algorithm.act(obs)
        age += 1
        final, dones = observe(), torch.rand(envs) < 0.3
        ended += int(dones.sum())
        episode, age = episode + dones.float(), age.masked_fill(dones, 0.0)
        obs = observe()
        extras = {"time_outs": dones, "final_obs": final}
        algorithm.process_env_step(obs, torch.ones(envs), dones, extras)
        style = reward(*at_step[-1]).detach()
        torch.testing.assert_close(algorithm.storage.rewards[len(at_step) - 1, :, 0], 3.0 + 2.0 * style)
    algorithm.compute_returns(obs)
    algorithm.update()
    assert ended > 5
    for pairs in (torch.cat(at_step, 1), torch.cat(policy, 1), torch.cat(expert, 1)):
        previous, current = pairs
        assert torch.equal(current - previous, torch.tensor([0.0, 0.0, 1.0]).expand_as(current))
    assert torch.cat(at_step, 1).shape[1] == envs * steps
    assert (torch.cat(expert, 1)[..., 1] % 2 == 0).all() and (torch.cat(expert, 1)[..., 2] % 4 != 3).all()
    pairs_inside = torch.cat(policy, 1).shape[1]
    first = ended - int((age == 0).sum())  # episodes that began within the rollout, after their reset
    assert pairs_inside == envs * (steps - 1) - first
    assert 0 < torch.cat(expert, 1).shape[1] < pairs_inside


# --- RND --------------------------------------------------------------------------------------------------------------


def test_rnd_rewards_what_is_new() -> None:
    torch.manual_seed(0)
    env = Chase()
    algorithm = make(env, rnd=RndCfg(0.5), epochs=3)
    losses = iterate(algorithm, env, 6)
    assert losses[-1]["rnd"] < 0.5 * losses[0]["rnd"]
    assert algorithm.rnd is not None
    known = env.get_observations()
    new = known.clone()
    new["critic"] += 5.0
    novelty = [algorithm.rnd.get_intrinsic_reward(obs).mean() for obs in (known, new)]
    assert novelty[1] > 3.0 * novelty[0]
    obs = env.get_observations()
    algorithm.act(obs)
    end = torch.ones(ENVS, dtype=torch.bool)
    algorithm.process_env_step(known, torch.ones(ENVS), end, {"time_outs": end, "final_obs": new})
    expected = 1.0 + algorithm.rnd.get_intrinsic_reward(new)  # of where the episode ended, not of the next one
    torch.testing.assert_close(algorithm.storage.rewards[0, :, 0], expected.detach())


# --- constraints ------------------------------------------------------------------------------------------------------


def lagrange(**cfg: Any) -> Lagrange:
    return Lagrange(("one", "two"), (0.5, 0.01), 0.9, LagrangeCfg(**{"enabled": True, "proportional": 0.0, **cfg}))


def with_reference(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.bool)


def test_multipliers_rise_above_the_limit_fall_below_it_and_keep_their_bounds() -> None:
    constraint = lagrange(rate=0.1, maximum=0.55)
    costs = torch.tensor([1.0, 0.005]).expand(4, 3, 2)  # twice and half of the limit
    present = with_reference(4, 3)
    for expected in (0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.55):
        np.testing.assert_allclose(constraint.ascend(constraint.scaled(costs), present)[1], [1.0, 0.005], rtol=1e-5)
        assert constraint.multipliers[1].tolist() == pytest.approx([expected, 0.0])
    for expected in (0.5, 0.45, 0.4):
        constraint.ascend(constraint.scaled(0.25 * costs), present)
        assert constraint.multipliers[1].tolist() == pytest.approx([expected, 0.0])
    for _ in range(10):
        constraint.ascend(constraint.scaled(0.0 * costs), present)
    assert constraint.multipliers.tolist() == [[0.0, 0.0]] * 2


def test_the_proportional_part_of_a_multiplier_answers_at_once_and_is_not_summed_up() -> None:
    constraint = lagrange(rate=0.1, proportional=0.4, initial=0.2)
    present = with_reference(4, 3)
    for fraction, integral, expected in ((1.5, 0.25, 0.45), (1.5, 0.30, 0.50), (0.5, 0.25, 0.05), (0.1, 0.16, 0.0)):
        constraint.ascend(constraint.scaled(torch.tensor([fraction * 0.5, 0.0]).expand(4, 3, 2)), present)
        assert constraint.integral[1, 0].item() == pytest.approx(integral)
        assert constraint.multipliers[1, 0].item() == pytest.approx(expected, abs=1e-6)
    assert constraint.integral[0].tolist() == pytest.approx([0.2, 0.2])


def test_steps_with_and_without_a_reference_have_multipliers_of_their_own() -> None:
    constraint = lagrange(rate=0.1)
    costs, present = torch.zeros(2, 4, 2), torch.tensor([[True, False, True, True], [True, False, False, True]])
    costs[present], costs[~present] = torch.tensor([0.75, 0.02]), torch.tensor([0.25, 0.015])
    means = constraint.ascend(constraint.scaled(costs), present)
    np.testing.assert_allclose(means, [[0.25, 0.015], [0.75, 0.02]], rtol=1e-5)
    np.testing.assert_allclose(constraint.multipliers, [[0.0, 0.05], [0.05, 0.1]], atol=1e-6)
    kept = constraint.multipliers[0].clone()
    means = constraint.ascend(constraint.scaled(costs), with_reference(2, 4))
    assert means[0].isnan().all() and torch.equal(constraint.multipliers[0], kept)  # nothing was learnt about it

    advantages = torch.zeros(2, 4, 1)
    cost_advantages = torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(0))
    constraint.multipliers = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    constraint.combine_(advantages, cost_advantages, present)
    assert torch.equal(advantages[~present], torch.zeros(3, 1)) and (advantages[present] != 0.0).all()


def test_an_excess_counts_as_twice_the_limit_at_most_and_only_the_chosen_costs_count() -> None:
    constraint = lagrange(costs=("two",), rate=0.1)
    assert constraint.names == ("two",)
    costs = torch.tensor([[9.0, 0.05], [9.0, 0.15]])  # of the chosen one on average ten times the limit
    scaled = constraint.scaled(costs)
    assert scaled.shape == (2, 1)
    assert constraint.ascend(scaled.unsqueeze(0), with_reference(1, 2))[1].tolist() == pytest.approx([0.1])
    assert constraint.multipliers[1].tolist() == pytest.approx([0.1])
    with pytest.raises(ValueError, match=r"costs must be names of cost terms \(one, two\), got 'three'"):
        lagrange(costs=("three",))


def test_advantages_are_those_of_the_lagrangian_in_units_of_the_limits() -> None:
    rng = np.random.default_rng(0)
    advantages = rng.normal(size=(6, 4, 1))
    costs = rng.random((6, 4, 2)) * [0.5, 0.01] * [20.0, 0.05]  # far over the limit, far inside it
    constraint = lagrange()
    constraint.multipliers = torch.tensor([[9.0, 9.0], [0.7, 0.2]])
    scaled = constraint.scaled(torch.tensor(costs, dtype=torch.float32))
    np.testing.assert_allclose(scaled, costs * 0.1 / [0.5, 0.01], rtol=1e-5)
    combined = torch.tensor(advantages, dtype=torch.float32)
    constraint.combine_(combined, scaled, with_reference(6, 4))
    standard = (costs[..., 0] - costs[..., 0].mean()) / costs[..., 0].std()
    in_limits = (costs[..., 1] - costs[..., 1].mean()) / 0.01
    assert np.abs(in_limits).max() < 0.05
    expected = (advantages[..., 0] - 0.7 * standard - 0.2 * in_limits) / 1.9
    np.testing.assert_allclose(combined[..., 0], expected, atol=1e-5)
    constraint.multipliers = torch.zeros(2, 2)
    before = combined.clone()
    constraint.combine_(combined, scaled, with_reference(6, 4))
    assert torch.equal(combined, before)  # terms inside their limits leave the policy alone


def test_the_multipliers_listen_to_robots_without_noise_which_teach_the_policy_nothing() -> None:
    torch.manual_seed(0)
    env = Chase(16)
    arguments = {"cost_names": COSTS, "cost_limits": (1.0, 1.0)}
    algorithm = make(env, arguments, lagrange=LagrangeCfg(enabled=True, calm_fraction=0.1))
    obs = env.get_observations()
    for _ in range(STEPS):
        actions = algorithm.act(obs)
        mean = algorithm.actor.distribution.mean
        assert torch.equal(actions[:2], mean[:2]) and (actions[2:] != mean[2:]).all()
        obs, rewards, dones, extras = env.step(actions)
        extras["costs"][:2], extras["costs"][2:] = 0.25, 100.0
        algorithm.process_env_step(obs, rewards, dones, extras)
    algorithm.compute_returns(obs)
    report = algorithm._constrain()
    assert report["cost/effort"] == pytest.approx(0.25) and report["multiplier/effort"] == 0.0
    advantages = algorithm.storage.advantages
    assert not advantages[:, :2].any() and advantages[:, 2:].all()
    assert make(Chase(1), arguments, lagrange=LagrangeCfg(enabled=True))._calm == 0  # somebody has to explore
    with pytest.raises(ValueError, match=r"calm_fraction must be in \[0, 1\), got 1.0"):
        make(env, arguments, lagrange=LagrangeCfg(enabled=True, calm_fraction=1.0))


def test_a_constraint_is_kept_by_training() -> None:
    distances = {}
    for enabled in (True, False):
        torch.manual_seed(0)
        env = Chase()
        constraint = LagrangeCfg(enabled=True, rate=0.3 if enabled else 0.0, calm_fraction=0.25)
        arguments = {"cost_names": COSTS, "cost_limits": (10.0, 0.4)}
        algorithm = make(env, arguments, lagrange=constraint, learning_rate=3e-3, init_std=0.3)
        losses = iterate(algorithm, env, 30)
        assert all(row["multiplier/effort"] == 0.0 for row in losses)
        distances[enabled] = np.mean([row["cost/distance"] for row in losses[-6:]])
    assert distances[True] < 0.52 < 0.57 < distances[False], distances


# --- checkpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [make, with_everything, distillation], ids=["plain", "everything", "distillation"])
def test_a_resumed_run_is_the_run_that_never_stopped(kind: Any, assert_same: Callable[..., None]) -> None:
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
    assert torch.equal(mean_actions(student, obs), mean_actions(algorithm, obs)) and student.iteration == 0
    with pytest.raises(ValueError, match=r"\['amp_optimizer', 'cost_critic', .*must be in the state, which has \['act"):
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
        ({"amp": AmpCfg(1.0)}, {}, "needs amp_cfg with 'amp_obs_extractor'"),
        ({"amp": AmpCfg(1.0)}, {"amp_cfg": {"amp_obs_extractor": amp_obs}}, "no 'amp_ref_obs_extractor'"),
        ({"rnd": RndCfg(1.0, group="camera")}, {}, r"rnd.group must be one of \['critic', .*'camera'"),
        ({"lagrange": LagrangeCfg(True)}, {}, r"positive limit .*cost_limits = \(\)"),
        ({"lagrange": LagrangeCfg(True)}, {"cost_names": COSTS, "cost_limits": (1.0, 0.0)}, r"\(1.0, 0.0\)"),
        ({"lagrange": LagrangeCfg(True)}, {"cost_names": COSTS, "cost_limits": (1.0,)}, "cost_names = .*effort"),
        ({"lagrange": LagrangeCfg(True), "gamma": 1.0, "gae_lambda": 1.0}, EVERYTHING, "below 1, got 1.0"),
        ({"encoder": "transformer", "encoder_heads": 3}, {}, "must divide encoder_size = 16, got 3"),
    ],
)
def test_arguments_are_checked(cfg: dict[str, Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(Chase(4), arguments, **cfg)


def test_observations_are_checked() -> None:
    obs = Chase(4).get_observations()
    with pytest.raises(ValueError, match=r"frames must divide the 6 numbers of 'reference' .*got 4"):
        MimicPPO(obs, 2, 4, 4, MimicPPOCfg())
    with pytest.raises(ValueError, match=r"must have the groups \('policy', .*\['critic_reference'\] are missing"):
        MimicPPO(obs.exclude("critic_reference"), 2, 4, FRAMES, MimicPPOCfg())


def test_a_step_without_what_is_needed_is_refused() -> None:
    env = Chase(4)
    algorithm = make(env, EVERYTHING, lagrange=LagrangeCfg(enabled=True))
    obs, never = env.get_observations(), torch.zeros(4, dtype=torch.bool)
    algorithm.act(obs)
    with pytest.raises(ValueError, match="must have final_obs"):
        algorithm.process_env_step(obs, torch.zeros(4), ~never, {"time_outs": never, "costs": torch.zeros(4, 2)})
    with pytest.raises(ValueError, match="must have costs"):
        algorithm.process_env_step(obs, torch.zeros(4), never, {"time_outs": never, "costs": None})


def test_the_configuration_makes_flags() -> None:
    flags = ["--amp.amp-reward-weight", "0.5", "--encoder", "transformer", "--hidden", "8", "4", "--lagrange.enabled"]
    cfg = tyro.cli(MimicPPOCfg, args=flags)
    expected = MimicPPOCfg(
        encoder="transformer", hidden=(8, 4), amp=AmpCfg(0.5), lagrange=replace(LagrangeCfg(), enabled=True)
    )
    assert cfg == expected
    assert tyro.cli(MimicDistillationCfg, args=["--epochs", "3"]).epochs == 3
