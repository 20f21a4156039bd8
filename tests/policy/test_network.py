"""Networks as data: they give the same as the module, and run no code."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from legged_envs.policy.network import Network, describe
from legged_envs.policy.policy import load_policy, save_policy

ACTIVATIONS = (
    nn.ELU,
    nn.SELU,
    nn.ReLU,
    nn.CELU,
    nn.LeakyReLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
    nn.GELU,
    nn.SiLU,
    nn.Mish,
)


def read_back(module: nn.Module) -> Network:
    description, weights = describe(copy.deepcopy(module).eval())
    return Network(json.loads(json.dumps(description)), weights)


class Memory(nn.Module):
    """A policy with a memory, which it takes and gives."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.GRUCell(8, 16), nn.Linear(16, 4)

    def forward(
        self, observation: torch.Tensor, memory: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        cell = self.cell
        memory = torch.gru_cell(
            observation, memory, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
        )
        return self.out(memory).clamp(-1.0, 1.0)[:, :3], memory


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda cls: cls.__name__)
def test_networks_of_every_activation_give_the_same_bits(activation):
    module = nn.Sequential(nn.Linear(5, 8), activation(), nn.LayerNorm(8), nn.Linear(8, 3))
    network = read_back(module)
    for n in (1, 7, 300):
        observation = torch.randn(n, 5)
        assert torch.equal(network(observation), module(observation))


def test_a_network_with_a_memory_gives_action_and_memory():
    module = Memory()
    network, memory = read_back(module), torch.randn(6, 16)
    for _ in range(3):
        observation = torch.randn(6, 8)
        (action, after), expected = network(observation, memory), module(observation, memory)
        assert torch.equal(action, expected[0]) and torch.equal(after, expected[1])
        memory = after


def test_a_network_says_which_arguments_it_takes():
    with pytest.raises(TypeError, match=r"observation, memory.* 1 "):
        read_back(Memory())(torch.zeros(1, 8))


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0.0 else -x


@pytest.mark.parametrize(
    ("module", "message"),
    [(Branch(), "Branch"), (nn.Conv2d(1, 1, 1), "Conv2d.*conv2d")],
)
def test_a_module_that_is_more_than_known_operations_is_refused_when_it_is_written(
    module, message, tmp_path
):
    with pytest.raises(ValueError, match=message):
        save_policy(tmp_path / "policy.safetensors", module, {})
    assert list(tmp_path.iterdir()) == []


def step(operation: str, *arguments: Any) -> dict[str, Any]:
    return {"name": "y", "operation": operation, "arguments": list(arguments), "options": {}}


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            {"inputs": ["x"], "steps": [step("from_file", "/etc/passwd")], "outputs": ["y"]},
            "from_file",
        ),
        (
            {"inputs": ["x"], "steps": [step("__import__", "os")], "outputs": ["y"]},
            "__import__",
        ),
        (
            {"inputs": ["x"], "steps": [step("tanh", {"of": "z"})], "outputs": ["y"]},
            "'z'",
        ),
        ({"inputs": ["x"], "steps": [], "outputs": ["y"]}, "'y'"),
        ({"inputs": ["x"]}, "steps"),
        ([1], "list"),
    ],
    ids=str,
)
def test_a_file_with_a_network_that_nobody_knows_is_refused(network, message, tmp_path):
    path = tmp_path / "policy.safetensors"
    save_file({"w": torch.zeros(1)}, path, {"network": json.dumps(network), "contract": "{}"})
    with pytest.raises(ValueError, match=rf"policy\.safetensors.*{message}"):
        load_policy(path)
