"""Networks of motion-mimic learning: masks, normalizers, exports."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from chase import (
    ENCODERS,
    EVERYTHING,
    NETWORK,
    Chase,
    circling,
    iterate,
    make,
    mean_actions,
    roll,
    with_everything,
)
from tensordict import TensorDict

from legged_envs.training.learner.bonus import Novelty
from legged_envs.training.learner.dagger import Dagger
from legged_envs.training.learner.style_prior import StylePrior
from legged_envs.training.learner_options import LagrangeCfg
from legged_envs.training.mimic.networks import MimicNetwork
from legged_envs.training.mimic_options import MimicNetworkCfg


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
    assert not torch.equal(
        network(observation, reference, mask), network(observation, reference + 1.0, mask)
    )
    flags = network(observation, reference, mask.squeeze(1) > 0.5)  # as the storage keeps them
    assert torch.equal(flags, network(observation, reference, mask))


def test_a_run_with_garbage_under_the_mask_is_the_same_run(
    assert_same: Callable[..., None],
) -> None:
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
        (dagger,) = (part for part in algorithm.parts if isinstance(part, Dagger))
        dagger.teacher = lambda critic, reference, mask: critic[:, :2]  # reads no reference
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
    seen = (
        storage.observations.flatten(0, 1).double(),
        storage.privileged_reference_observations[mask].double(),
    )
    algorithm.update()
    for normalizer, rows in zip(normalizers, seen, strict=True):
        assert normalizer.count == len(rows)
        np.testing.assert_allclose(normalizer.mean, rows.mean(dim=0), atol=1e-5)
        np.testing.assert_allclose(normalizer.std, rows.std(dim=0, correction=0), atol=1e-5)
    assert 0 < len(seen[1]) < len(seen[0])


def test_normalizers_of_discriminator_and_novelty_count_states_and_the_experts() -> None:
    torch.manual_seed(0)
    env = Chase(8)
    algorithm = with_everything(env, epochs=1)
    roll(algorithm, env)
    style, novelty = algorithm.parts[-2:]
    assert isinstance(style, StylePrior) and isinstance(novelty, Novelty)
    draws = []
    style.expert = lambda n: draws.append(circling(n)) or draws[-1]
    states, novel = (bonus.after.flatten(0, 1).clone() for bonus in (style, novelty))
    algorithm.update()
    # The first draw is for the statistics, the others are for the mini-batches.
    rows = torch.cat((states, draws[0][1]))
    assert len(draws[0][1]) == len(states)
    normalizers = style.network.normalizer, novelty.network.state_normalizer
    for normalizer, expected in zip(normalizers, (rows.double(), novel.double()), strict=True):
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


NAMES = ("observation", "reference", "mask")


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
    torch.testing.assert_close(
        torch.jit.load(str(tmp_path / "policy.pt"))(*inputs), expected, rtol=0, atol=1e-5
    )
    module = algorithm.get_policy().as_onnx(verbose=False)
    torch.onnx.export(
        module,
        tuple(part[:1] for part in inputs),
        str(tmp_path / "policy.onnx"),
        input_names=list(NAMES),
        output_names=["actions"],
        dynamic_axes={name: {0: "n"} for name in (*NAMES, "actions")},
        opset_version=18,
        dynamo=False,
    )
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"))
    feed = {name: part.numpy() for name, part in zip(NAMES, inputs, strict=True)}
    np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=0, atol=1e-5)
    assert algorithm.get_policy().output_std.shape == (2,)
