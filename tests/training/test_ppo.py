"""PPO is rsl_rl's, in less time."""

import pytest
import torch
from rsl_rl.algorithms import PPO as TheirPPO
from rsl_rl.models import MLPModel
from rsl_rl.modules import EmpiricalNormalization
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from legged_envs.training.learner.inputs import Inputs
from legged_envs.training.learner.networks import Actor, make_network
from legged_envs.training.learner.normalization import ROWS, Normalization
from legged_envs.training.learner.part import Part
from legged_envs.training.learner.ppo import PPO
from legged_envs.training.learner.settings import PPOSettings

GAUSSIAN = {"class_name": "rsl_rl.modules.distribution:GaussianDistribution", "init_std": 0.5}
GROUPS = {"actor": ["policy"], "critic": ["critic"]}
HIDDEN = (32, 16)
ENVS, STEPS, ACTIONS = 32, 24, 3


def observed(size):
    """Columns of every kind: wide, far from zero, narrow, constant."""
    x = torch.randn(size, 6) * torch.tensor([1.0, 20.0, 0.05, 0.02, 3.0, 0.0])
    return TensorDict(
        {"policy": x + torch.tensor([0.0, 5.0, 0.9, -1.0, 0.0, 1.0]), "critic": x[:, :2]}, [size]
    )


@pytest.mark.parametrize("size", [1, 7, ROWS, 3 * ROWS + 5])
def test_running_mean_and_variance_are_those_of_all_that_was_seen(size):
    torch.manual_seed(0)
    ours, theirs = Normalization(6), EmpiricalNormalization(6)
    parts = [observed(size)["policy"] for _ in range(3)]
    for part in parts:
        ours.update(part)
        theirs.update(part)
    every = torch.cat(parts).double()
    mean, var = every.mean(0, keepdim=True), every.var(0, unbiased=False, keepdim=True)
    torch.testing.assert_close(ours._mean.double(), mean, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours._var.double(), var, rtol=1e-4, atol=1e-8)
    torch.testing.assert_close(ours._var, theirs._var, rtol=1e-4, atol=1e-8)
    torch.testing.assert_close(ours._std, ours._var.sqrt())
    assert ours.count == theirs.count == 3 * size
    before = ours._mean.clone()
    ours.eval().update(parts[0] + 1.0)
    assert torch.equal(ours._mean, before)


class DrawnOnce(RolloutStorage):
    """rsl_rl's storage with the same mini-batches in each pass, as ours has them."""

    def mini_batch_generator(self, num_mini_batches, num_epochs=8):
        batches = list(super().mini_batch_generator(num_mini_batches, 1))
        for _ in range(num_epochs):
            yield from batches


def ours(clip_value=True, parts=()) -> PPO:
    """Return this package's PPO with the seed of :func:`theirs`, and normalizers that have seen observations."""
    torch.manual_seed(1)
    first = observed(ENVS)
    actor = Actor(6, torch.full((ACTIONS,), 0.5), HIDDEN, "elu")
    critic = make_network(2, 1, HIDDEN, "elu")
    settings = PPOSettings(
        steps_per_env=STEPS, mini_batches=3, clip_value=clip_value, entropy=0.01, gamma=0.99
    )
    actor_inputs, critic_inputs = (Inputs.of(first, tuple(groups)) for groups in GROUPS.values())
    algorithm = PPO(first, actor, critic, actor_inputs, critic_inputs, settings, parts=parts)
    algorithm.train_mode()
    seen = observed(500)
    actor.update_normalizers(seen["policy"])
    critic.update_normalizers(seen["critic"])
    return algorithm


def theirs(clip_value=True) -> TheirPPO:
    """rsl_rl's PPO as it is."""
    torch.manual_seed(1)
    first = observed(ENVS)
    network = {"hidden_dims": list(HIDDEN), "activation": "elu", "obs_normalization": True}
    actor = MLPModel(first, GROUPS, "actor", ACTIONS, distribution_cfg=dict(GAUSSIAN), **network)
    critic = MLPModel(first, GROUPS, "critic", 1, **network)
    algorithm = TheirPPO(
        actor,
        critic,
        DrawnOnce("rl", ENVS, STEPS, first, [ACTIONS]),
        num_mini_batches=3,
        num_learning_epochs=5,
        schedule="fixed",
        learning_rate=1e-3,
        entropy_coef=0.01,
        use_clipped_value_loss=clip_value,
    )
    algorithm.train_mode()
    seen = observed(500)
    for each in actor, critic:
        each.update_normalization(seen)
    return algorithm


def roll(algorithm, seed=2):
    torch.manual_seed(seed)
    for _ in range(STEPS):
        algorithm.act(observed(ENVS))
        rewards, dones = torch.randn(ENVS), (torch.rand(ENVS) < 0.1).float()
        extras = {}
        if isinstance(algorithm, PPO):
            extras = {"time_outs": torch.zeros(ENVS, dtype=torch.bool), "final_obs": observed(0)}
        algorithm.process_env_step(observed(ENVS), rewards, dones.bool(), extras)
    algorithm.compute_returns(observed(ENVS))


@pytest.mark.parametrize("clip_value", [True, False])
def test_an_update_is_rsl_rls(clip_value):
    algorithms = ours(clip_value), theirs(clip_value)
    for seed in range(3):
        losses = []
        for algorithm in algorithms:
            roll(algorithm, seed)
            losses.append(algorithm.update())
        for name, value in losses[1].items():
            assert losses[0][name] == pytest.approx(value, rel=1e-4, abs=1e-5)
    for name in "actor", "critic":
        states = [getattr(algorithm, name).state_dict() for algorithm in algorithms]
        assert states[0].keys() == states[1].keys()  # a run of one goes on with the other
        for key, value in states[0].items():
            torch.testing.assert_close(value, states[1][key], rtol=1e-4, atol=1e-5)


def test_the_exported_network_is_the_one_that_is_trained():
    algorithm = ours()
    seen = observed(100)
    exported = torch.jit.script(algorithm.actor.as_jit())
    torch.testing.assert_close(exported(seen["policy"]), algorithm.actor(seen["policy"]))


class Counted(Part):
    """Counts its calls, and changes what it may change."""

    name = "counted"

    def __init__(self):
        self.steps, self.batches, self.passes = [], [], 0
        self.weight = torch.nn.Linear(1, 1)

    def collect(self, step, rewards):
        self.steps.append(step.index)
        return rewards + 1.0

    def prepare(self, storage, batches):
        self.batches.append(list(batches))
        self.rewards = storage.rewards.clone()
        for batch in batches:
            batch.advantages.zero_()
        return {"counted": 7.0}

    def learn(self, done):
        assert any(done.batch is batch for batch in self.batches[-1])
        self.passes += 1
        return 0.0 * done.mean.sum(), {"counted_loss": done.mean.mean()}

    def state(self):
        return {"counted": self.weight}


def test_a_part_sees_each_step_each_update_and_each_pass_over_a_mini_batch():
    part = Counted()
    algorithm = ours(parts=[part])
    roll(algorithm)
    losses = algorithm.update()
    assert part.steps == list(range(STEPS)) and len(part.batches) == 1
    assert part.passes == 5 * 3
    assert losses["counted"] == 7.0 and "counted_loss" in losses
    assert losses["surrogate"] == 0.0  # the part has taken the advantages away
    rows = torch.cat([batch.actions for batch in part.batches[0]])
    stored = algorithm.storage.actions.flatten(0, 1)
    assert torch.equal(rows.sort(0).values, stored.sort(0).values)
    other = ours()
    roll(other)
    torch.testing.assert_close(part.rewards, other.storage.rewards + 1.0)
    assert "counted" in algorithm.save() and "counted" not in other.save()
