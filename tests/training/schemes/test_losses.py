"""Losses and encoders of the schemes, against float64 by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn import functional

from legged_envs.training.schemes.dreamwaq import divergence_from_normal
from legged_envs.training.schemes.encoders import (
    MixtureOfExperts,
    TemporalConvolution,
    to_unit_length,
)
from legged_envs.training.schemes.him import sinkhorn, swapped_loss
from legged_envs.training.schemes.scheme import velocity_error


def test_divergence_is_that_of_torch_per_entry() -> None:
    mean = torch.randn(7, 4)
    log_variance = torch.randn(7, 4)
    normal = Normal(mean.double(), (0.5 * log_variance.double()).exp())
    expected = kl_divergence(normal, Normal(0.0, 1.0)).mean()
    torch.testing.assert_close(divergence_from_normal(mean, log_variance).double(), expected)


def test_an_assignment_scales_rows_and_columns_in_turns() -> None:
    torch.manual_seed(0)
    scores = to_unit_length(torch.randn(512, 6)) @ to_unit_length(torch.randn(4, 6)).T
    plan = sinkhorn(scores)
    torch.testing.assert_close(plan.sum(dim=1), torch.ones(512))
    # By hand in float64.
    kernel = (scores.double() / 0.05).exp()
    for _ in range(3):
        kernel = kernel / kernel.sum(dim=0, keepdim=True)
        kernel = kernel / kernel.sum(dim=1, keepdim=True)
    torch.testing.assert_close(plan.double(), kernel, rtol=1e-4, atol=1e-6)


def test_views_that_agree_cost_less_than_views_that_do_not() -> None:
    prototypes = torch.eye(8)
    codes = torch.eye(8).repeat(4, 1)
    same = swapped_loss(codes @ prototypes, codes @ prototypes, 0.1)
    other = swapped_loss(codes @ prototypes, codes.roll(1, dims=0) @ prototypes, 0.1)
    assert same < 0.1 < other
    scores = torch.randn(5, 3).clamp(-1, 1)
    target = torch.randn(5, 3).clamp(-1, 1)
    expected = 0.0
    source_plan = sinkhorn(scores).double()
    target_plan = sinkhorn(target).double()
    for row in range(5):
        first = functional.log_softmax(scores[row].double() / 0.2, dim=0)
        second = functional.log_softmax(target[row].double() / 0.2, dim=0)
        expected -= 0.5 * (target_plan[row] @ first + source_plan[row] @ second).item() / 5
    assert swapped_loss(scores, target, 0.2).item() == pytest.approx(expected, rel=1e-5)


def test_velocity_error_is_the_root_mean_square_of_the_length() -> None:
    estimate = torch.tensor([[0.3, 0.4, 0.0, 9.0], [0.0, 0.0, 0.0, 9.0]])
    assert velocity_error(estimate, torch.zeros(2, 4)).item() == pytest.approx(math.sqrt(0.125))


def test_convolutions_see_frames_in_their_order() -> None:
    network = TemporalConvolution(2, 3, outputs=1, channels=(1,), activation="identity")
    convolution = network.layers[0]
    torch.nn.init.zeros_(convolution.weight)
    torch.nn.init.zeros_(convolution.bias)
    torch.nn.init.ones_(network.out.weight)
    torch.nn.init.zeros_(network.out.bias)
    # Second element of the last frame.
    convolution.weight.data[0, 1, 2] = 1.0
    history = torch.arange(6.0).unsqueeze(0)
    assert network(history).item() == 5.0


def test_a_mixture_weighs_its_experts() -> None:
    mixture = MixtureOfExperts(3, 2, (4,), "elu")
    inputs = torch.randn(5, 3)
    weights = torch.softmax(mixture.gate(inputs), dim=1)
    expected = sum(
        weights[:, [index]] * expert(inputs) for index, expert in enumerate(mixture.experts)
    )
    torch.testing.assert_close(mixture(inputs), expected)
