"""Policies as files: networks as data, which say the same as the module and run no code."""

from __future__ import annotations

import copy
import json
import math
import re
from contextlib import closing
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from legged_envs.envs import unwrap
from legged_envs.mdp import observations
from legged_envs.policy.header import headline, read_evaluation, record_evaluation
from legged_envs.policy.network import Network, describe
from legged_envs.policy.policy import (
    SHIPPED,
    SINCE,
    Policy,
    contract,
    load_policy,
    load_shipped_policy,
    save_policy,
)

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
    with pytest.raises(TypeError, match="takes observation, memory, got 1 arguments"):
        read_back(Memory())(torch.zeros(1, 8))


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0.0 else -x


@pytest.mark.parametrize(
    ("module", "message"),
    [(Branch(), "Branch.*without branches"), (nn.Conv1d(1, 1, 1), "Conv1d.*operation.*conv1d")],
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
            "operation 'from_file'",
        ),
        (
            {"inputs": ["x"], "steps": [step("__import__", "os")], "outputs": ["y"]},
            "operation '__import__'",
        ),
        (
            {"inputs": ["x"], "steps": [step("tanh", {"of": "z"})], "outputs": ["y"]},
            "'z' is used before",
        ),
        ({"inputs": ["x"], "steps": [], "outputs": ["y"]}, "'y' is used before"),
        ({"inputs": ["x"]}, "steps"),
        ([1], "list"),
    ],
    ids=str,
)
def test_a_file_with_a_network_that_nobody_knows_is_refused(network, message, tmp_path):
    path = tmp_path / "policy.safetensors"
    save_file({"w": torch.zeros(1)}, path, {"network": json.dumps(network), "contract": "{}"})
    with pytest.raises(
        ValueError, match=rf"is not a policy as legged-envs train writes it.*{message}"
    ):
        load_policy(path)


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


def test_a_policy_of_before_contracts_named_joints_of_actions_is_played_on():
    shipped = load_shipped_policy(GO2)
    older = Policy(
        shipped, {name: value for name, value in shipped.contract.items() if name not in SINCE}
    )
    with closing(gym.make_vec(GO2, num_envs=1, observations="dict")) as env:
        older.check(unwrap(env))
    clipped = gym.make_vec(GO2, num_envs=1, cfg={"actions.joint_position.clip": (-1.0, 1.0)})
    with (
        closing(clipped),
        pytest.raises(ValueError, match=r"with target_clip = .*, this environment has \[\[-1"),
    ):
        shipped.check(unwrap(clipped))


@pytest.mark.parametrize(
    ("task_id", "changes"),
    [
        ("Legged/Tron1-WF-Flat-v0", {}),
        (GO2, {"action_limit": 2.0}),
        (GO2, {"observations.policy.terms.joint_vel.clip": (-math.inf, 20.0)}),
    ],
    ids=str,
)
def test_what_earlier_versions_wrote_of_wheels_limits_and_bounds_is_the_same_policy(
    task_id, changes
):
    with closing(gym.make_vec(task_id, num_envs=1, cfg=changes, observations="dict")) as envs:
        meaning = contract(task_id, core := unwrap(envs))
        for term in meaning["inputs"]["policy"]:
            term["scale"] = core.cfg.observations["policy"].terms[term["name"]].scale
            term["clip"] = core.cfg.observations["policy"].terms[term["name"]].clip
        meaning["action"] = "joint target = default_joint_pos + action_scale * clip(action, -1, 1)"
        older = {name: value for name, value in meaning.items() if name not in SINCE}
        Policy(torch.nn.Identity(), json.loads(json.dumps(older))).check(core)
        older["inputs"] = {
            "policy": [{**term, "scale": 3.0} for term in meaning["inputs"]["policy"]]
        }
        with pytest.raises(ValueError, match="was trained with observation = "):
            Policy(torch.nn.Identity(), older).check(core)


@dataclass(frozen=True)
class Called:
    function: Any

    def __call__(self, env: Any) -> torch.Tensor:
        return self.function(env)


@pytest.mark.parametrize(
    ("func", "name"),
    [
        (Called(observations.command), "tests.test_policy_files.Called|test_policy_files.Called"),
        (partial(observations.command), "legged_envs.mdp.observations.command"),
        (lambda env: env.commands["velocity"], r".*test_policy_files.<lambda>"),
    ],
    ids=["callable", "partial", "lambda"],
)
def test_a_term_that_is_no_plain_function_has_a_name_that_stays(func, name):
    with closing(
        gym.make_vec(GO2, num_envs=1, cfg={"observations.policy.terms.command.func": func})
    ) as envs:
        first = contract(GO2, unwrap(envs))["inputs"]["policy"][0]
    assert re.fullmatch(name, first["own"]) and first["name"] == "command"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"robot.default_joint_pos": (0.1, 0.85, -1.6) * 4}, "default_joint_pos"),
        ({"observations.policy.terms.ang_vel.clip": (-0.01, 0.01)}, "observation"),
    ],
    ids=str,
)
def test_a_policy_is_not_for_another_pose_or_other_clips(changes, name):
    envs = gym.make_vec(GO2, num_envs=1, cfg=changes)
    with closing(envs), pytest.raises(ValueError, match=f"was trained with {name} = "):
        load_shipped_policy(GO2).check(unwrap(envs))


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ([], r"its contract is no JSON object: \[\]"),
        ("x", "its contract is no JSON object: x"),
        (5, "its contract is no JSON object: 5"),
        ({"inputs": [1]}, r"inputs of its contract is no dict: \[1\]"),
        (
            {"inputs": {"policy": 3}},
            "'policy' of its contract is no list of terms, each with a name",
        ),
        (
            {"inputs": {"policy": [{"name": "a", "size": "3", "scale": 1}]}},
            "'policy' of its contract is no list of",
        ),
        (
            {"inputs": {"policy": [{"name": "a", "size": 3, "scale": 1}]}},
            "mat1 and mat2|size of tensor",
        ),
        ({"changes": [1]}, "changes of its contract is no dict"),
        ({"clips": "trot"}, "clips of its contract is no list"),
        ({"task_id": 3}, "task_id of its contract is no str"),
        ({"action_size": 1}, r"finite actions of shape \(2, 1\), and gives \(2, 12\)"),
    ],
    ids=str,
)
def test_a_contract_of_other_kinds_is_told(contract, message, tmp_path):
    with pytest.raises(
        ValueError, match=rf"is not a policy as legged-envs train writes it.*: .*({message})"
    ):
        load_policy(rewritten(tmp_path / "policy.safetensors", contract))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda bias: bias[:-1].contiguous(), "must match|shape"),
        (
            lambda bias: bias.new_full(bias.shape, float("nan")),
            r"must give finite actions of shape \(2, 12\)",
        ),
        (lambda bias: bias.reshape(1, 1, -1), r"finite actions|must match|shape|dim"),
    ],
    ids=["too few", "NaN", "too many axes"],
)
def test_weights_that_do_not_fit_are_told(make, message, tmp_path):
    with pytest.raises(
        ValueError, match=rf"is not a policy as legged-envs train writes it.*: .*({message})"
    ):
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


@pytest.mark.parametrize(
    ("task_id", "place"),
    [
        ("Legged/G1-Flat-v0", ("gait", "swing", 0, "left_knee_joint")),
        ("Legged/Go2-Rough-v0", ("action_scale", 3)),
    ],
)
def test_a_policy_fits_where_numbers_differ_in_their_last_digits_alone(task_id, place):
    """What follows from a model, such as a foot's lift, is rounded by each processor in its own way."""
    policy = load_shipped_policy(task_id)
    env = unwrap(gym.make_vec(task_id, num_envs=1, cfg=policy.changes, observations="dict"))
    *way, last = place
    part = reduce(lambda value, key: value[key], way, policy.contract)
    true = part[last]
    for change, fits in ((1e-8, True), (1e-3, False)):
        part[last] = true + change
        if fits:
            policy.check(env)
            continue
        with pytest.raises(ValueError, match=f"was trained with {place[0]} = "):
            policy.check(env)
    part[last] = true
    env.close()


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


# --- evaluations in the header ----------------------------------------------------------------------------------------


def test_a_record_changes_the_header_and_not_a_bit_of_weights_network_and_contract(tmp_path):
    path, module = (
        tmp_path / "policy.safetensors",
        nn.Sequential(nn.Linear(5, 7), nn.ELU(), nn.Linear(7, 3)),
    )
    save_policy(path, module, {"task_id": "Mine-v0"})
    before, contents = load_policy(path), path.read_bytes()
    assert read_evaluation(path) == {}
    for evaluation in ({"falls": 0.25, "crossings": {"läufer": [1.0, None]}}, {"falls": 0.5}):
        record_evaluation(path, evaluation)
        assert read_evaluation(path) == evaluation
        with safe_open(path, "pt") as file:
            assert {**file.metadata(), "evaluation": ""}.keys() == {
                "contract",
                "network",
                "evaluation",
            }
        size = int.from_bytes(path.read_bytes()[:8], "little")
        assert (
            size % 8 == 0
            and path.read_bytes()[8 + size :]
            == contents[8 + int.from_bytes(contents[:8], "little") :]
        )
        observation, again = torch.randn(4, 5), load_policy(path)
        assert (
            torch.equal(again(observation), before(observation))
            and again.contract == before.contract
        )
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


VELOCITY = {"lin_vel_error": 0.0671, "ang_vel_error": 0.0584, "falls": 0.001, "crossings": None}
NAN = float("nan")
TILES = {
    "crossings": {
        "stairs_up": [1, 1, 1, 0.8, 1, 1, 0.5],
        "slope": [1, 1, 1, 1.0, 1, 1, NAN],
        "gaps": [1.0],
    }
}
CLIPS = {"trot": {"joint_error": 0.05, "falls": 0.0}, "turn": {"joint_error": 0.07, "falls": 0.1}}
COMMAND = {"command_lin_vel_error": 0.2, "command_ang_vel_error": 0.3, "falls": 0.7}


@pytest.mark.parametrize(
    ("evaluation", "cells"),
    [
        ({}, ("-", "-", "-", "")),
        (VELOCITY, ("0.067", "0.058", "0.1%", "")),
        (VELOCITY | TILES, ("0.067", "0.058", "0.1%", "90% cross level 3, 50% cross level 6")),
        (
            {"clips": CLIPS, "command": COMMAND},
            ("0.200", "0.300", "5.0%", "joints 0.060 rad off, 2 clips"),
        ),
        ({"reward": 2.34, "falls": 0.5}, ("-", "-", "50.0%", "reward 2.3/s")),
    ],
)
def test_a_headline_has_what_was_measured(evaluation, cells):
    assert headline(json.loads(json.dumps(evaluation))) == cells
