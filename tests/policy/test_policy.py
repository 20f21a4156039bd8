"""Policies as files: valid files are read, others refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from legged_envs.envs import unwrap
from legged_envs.policy.policy import SHIPPED, load_policy, load_shipped_policy, save_policy

GO2 = "Legged/Go2-Flat-v0"


def rewritten(path: Path, contract: Any = None, **weights: Any) -> Path:
    """The policy of Go2 at ``path``, with other entries in its contract, or another contract, and each of ``weights``,
    by the end of its name, as a function makes it."""
    with safe_open(SHIPPED[GO2], "pt") as file:
        about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    given = json.loads(about["contract"]) | contract if isinstance(contract, dict) else contract
    about["contract"] = about["contract"] if contract is None else json.dumps(given)
    made = [(name, make) for name in tensors for end, make in weights.items() if name.endswith(end)]
    assert len(made) >= len(weights)
    save_file(tensors | {name: make(tensors[name]) for name, make in made}, path, about)
    return path


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ([], r"contract.*: \[\]"),
        ("x", "contract.*: x"),
        (5, "contract.*: 5"),
        ({"inputs": [1]}, r"inputs.*dict: \[1\]"),
        (
            {"inputs": {"policy": 3}},
            "'policy'.*name, a size and a scale",
        ),
        (
            {"inputs": {"policy": [{"name": "a", "size": "3", "scale": 1}]}},
            "'policy'.*name, a size and a scale",
        ),
        (
            {"inputs": {"policy": [{"name": "a", "size": 3, "scale": 1}]}},
            "mat1 and mat2|size of tensor",
        ),
        ({"changes": [1]}, "changes.*dict"),
        ({"clips": "trot"}, "clips.*list"),
        ({"task_id": 3}, "task_id.*str"),
        ({"action_size": 1}, r"\(2, 1\).*\(2, 12\)"),
    ],
    ids=str,
)
def test_a_contract_of_other_kinds_is_told(contract, message, tmp_path):
    with pytest.raises(ValueError, match=rf"policy\.safetensors.*: .*({message})"):
        load_policy(rewritten(tmp_path / "policy.safetensors", contract))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda bias: bias[:-1].contiguous(), "must match|shape"),
        (
            lambda bias: bias.new_full(bias.shape, float("nan")),
            r"finite.*\(2, 12\)",
        ),
        (lambda bias: bias.reshape(1, 1, -1), r"finite|must match|shape|dim"),
    ],
    ids=["too few", "NaN", "too many axes"],
)
def test_weights_that_do_not_fit_are_told(make, message, tmp_path):
    with pytest.raises(ValueError, match=rf"policy\.safetensors.*: .*({message})"):
        load_policy(rewritten(tmp_path / "policy.safetensors", **{"bias": make}))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_weights_of_any_precision_are_read(dtype, tmp_path):
    file = rewritten(tmp_path / "policy.safetensors", **{"weight": lambda weight: weight.to(dtype)})
    observation = torch.randn(5, 45)
    actions, expected = load_policy(file)(observation), load_shipped_policy(GO2)(observation)
    assert actions.dtype == torch.float32
    torch.testing.assert_close(actions, expected, atol=0.1, rtol=0.0)


@pytest.mark.parametrize("task_id", SHIPPED)
def test_shipped_policies_fit_their_task(task_id):
    policy = load_shipped_policy(task_id)
    env = gym.make_vec(task_id, num_envs=1, cfg=policy.changes, observations="dict")
    policy.check(unwrap(env))
    env.close()


@pytest.mark.parametrize("task_id", SHIPPED)
def test_shipped_policies_take_the_groups_of_their_contract(task_id):
    policy = load_shipped_policy(task_id)
    sizes = [sum(term["size"] for term in terms) for terms in policy.inputs.values()]
    actions = policy(*(torch.zeros(2, size) for size in sizes))
    assert actions.shape == (2, len(policy.contract["joint_names"])) and actions.isfinite().all()


def test_weights_are_read_as_they_were_written(tmp_path):
    module = nn.Linear(3, 2)
    save_policy(tmp_path / "policy.safetensors", module, {"task_id": "Mine-v0"})
    with safe_open(tmp_path / "policy.safetensors", "pt") as file:
        assert torch.equal(file.get_tensor("weight"), module.weight) and set(file.keys()) == {
            "weight",
            "bias",
        }
    assert (
        tmp_path / "policy.safetensors"
    ).stat().st_mode & 0o044  # others may read it, as the rest of a run folder
