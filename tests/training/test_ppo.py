"""The parts of rsl_rl's PPO that are the package's own compute what rsl_rl's compute, in less time."""

import pytest
import torch
from rsl_rl.algorithms import PPO
from rsl_rl.models import MLPModel
from rsl_rl.modules import EmpiricalNormalization
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from legged_envs.training.ppo import ROWS, Model, Normalization, Rollouts

GAUSSIAN = {"class_name": "rsl_rl.modules.distribution:GaussianDistribution", "init_std": 0.5}
GROUPS = {"actor": ["policy"], "critic": ["policy", "critic"]}
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


def made(model, storage):
    """A PPO of ``model`` and ``storage`` from one seed, with rollouts of another, whose normalisers have seen some."""
    torch.manual_seed(1)
    first = observed(ENVS)
    network = {"hidden_dims": [32, 16], "activation": "elu", "obs_normalization": True}
    actor = model(first, GROUPS, "actor", ACTIONS, distribution_cfg=dict(GAUSSIAN), **network)
    critic = model(first, GROUPS, "critic", 1, **network)
    algorithm = PPO(
        actor,
        critic,
        storage("rl", ENVS, STEPS, first, [ACTIONS]),
        num_mini_batches=3,
        schedule="fixed",
    )
    algorithm.storage.models = actor, critic
    algorithm.train_mode()
    for each in actor, critic:
        each.update_normalization(observed(500))
    return algorithm


def roll(algorithm):
    torch.manual_seed(2)
    for _ in range(STEPS):
        algorithm.act(observed(ENVS))
        rewards, dones = torch.randn(ENVS), (torch.rand(ENVS) < 0.1).float()
        algorithm.process_env_step(observed(ENVS), rewards, dones, {})
    algorithm.compute_returns(observed(ENVS))


def test_an_update_is_rsl_rls():
    ours, theirs = made(Model, Rollouts), made(MLPModel, RolloutStorage)
    for _ in range(3):
        losses = []
        for algorithm in ours, theirs:
            roll(algorithm)
            losses.append(algorithm.update())
        assert losses[0] == pytest.approx(losses[1], rel=1e-4, abs=1e-5)
    for name in "actor", "critic":
        states = getattr(ours, name).state_dict(), getattr(theirs, name).state_dict()
        assert states[0].keys() == states[1].keys()  # a run of one goes on with the other
        for key, value in states[0].items():
            torch.testing.assert_close(value, states[1][key], rtol=1e-4, atol=1e-5)


def test_the_exported_network_is_the_one_that_is_trained():
    algorithm = made(Model, Rollouts)
    seen = observed(100)
    torch.testing.assert_close(
        algorithm.actor.as_jit()(seen["policy"]), algorithm.actor(seen), rtol=1e-4, atol=1e-5
    )
    both = torch.cat((seen["policy"], seen["critic"]), dim=1)
    torch.testing.assert_close(
        algorithm.critic.as_jit()(both), algorithm.critic(seen), rtol=1e-4, atol=1e-5
    )


def test_every_pass_of_an_update_has_the_same_mini_batches_mirrored_once():
    algorithm, mirrored = made(Model, Rollouts), []
    roll(algorithm)
    algorithm.storage.mirror = mirrored.append
    batches = list(algorithm.storage.mini_batch_generator(3, 5))
    assert len(batches) == 15 and len(mirrored) == 3
    assert all(batch is mirrored[i % 3] for i, batch in enumerate(batches))
    rows = torch.cat([batch.actions for batch in mirrored])
    stored = algorithm.storage.actions.flatten(0, 1)
    assert torch.equal(
        rows.sort(0).values, stored.sort(0).values
    )  # each transition is in one of them
