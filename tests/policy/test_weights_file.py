"""Bytes of policy files: the same every time, bounded before they are read, and written in one piece."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save
from torch import nn

from legged_envs.policy.header import read_evaluation, record_evaluation, without_nan
from legged_envs.policy.network import Network
from legged_envs.policy.network_size import check_network_size
from legged_envs.policy.policy import SHIPPED, load_policy, load_shipped_policy, save_policy
from legged_envs.policy.weights_file import write_whole

GO2 = "Legged/Go2-Flat-v0"
MEANING = {
    "task_id": "Mine-v0",
    "action_size": 2,
    "inputs": {"policy": [{"name": "a", "size": 3, "scale": 1.0}]},
}


def policy_of(path: Path, steps: list[dict[str, Any]], output: str, **weights: Any) -> Path:
    """A policy file with the steps of a network that nobody trained."""
    network = {"inputs": ["x"], "steps": steps, "outputs": [output]}
    texts = {"contract": json.dumps(MEANING), "network": json.dumps(network)}
    path.write_bytes(save({"w": torch.ones(2, 3), **weights}, texts))
    return path


def step(name: str, operation: str, *arguments: Any) -> dict[str, Any]:
    return {"name": name, "operation": operation, "arguments": list(arguments), "options": {}}


def of(name: str) -> dict[str, str]:
    return {"of": name}


DOUBLED = [step("v0", "cat", [of("x"), of("x")], 1)]
for i in range(1, 40):
    DOUBLED.append(step(f"v{i}", "cat", [of(f"v{i - 1}"), of(f"v{i - 1}")], 1))
LONG = [step("v0", "neg", of("x"))]
for i in range(1, 20_000):
    LONG.append(step(f"v{i}", "neg", of(f"v{i - 1}")))
OUTER = [
    step("row", "reshape", of("big"), [1, -1]),
    step("column", "reshape", of("big"), [-1, 1]),
    step("v", "add", of("row"), of("column")),
]
APART = [step("v", "unbind", of("none"))]


@pytest.mark.parametrize(
    ("steps", "weights", "number"),
    [
        (DOUBLED, {}, "cat"),
        (LONG, {}, "20,000"),
        (OUTER, {"big": torch.zeros(100_000)}, "add"),
        (APART, {"none": torch.zeros(10**9, 0)}, "unbind"),
    ],
    ids=["doubled", "long", "outer product", "taken apart"],
)
def test_a_network_without_end_is_refused(
    steps: list[dict[str, Any]], weights: dict[str, Any], number: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=number):
        load_policy(policy_of(tmp_path / "p.safetensors", steps, steps[-1]["name"], **weights))


def test_only_files_of_others_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch takes a second to start the count, which pretrained policies do not need."""
    counted: list[Any] = []
    monkeypatch.setattr(
        "legged_envs.policy.policy.check_network_size", lambda *given: counted.append(given)
    )
    load_shipped_policy(GO2)
    assert not counted
    load_policy(shutil.copy(SHIPPED[GO2], tmp_path / "p.safetensors"))
    assert len(counted) == 1


def test_a_network_is_counted_as_it_computes() -> None:
    steps = [step("v", "linear", of("x"), of("w")), step("r", "tanh", of("v"))]
    network = Network({"inputs": ["x"], "steps": steps, "outputs": ["r"]}, {"w": torch.ones(2, 3)})
    check_network_size(network, [3])
    expected = torch.tanh(torch.tensor([[3.0, 3.0]]))
    torch.testing.assert_close(network(torch.ones(1, 3)), expected)


@pytest.mark.parametrize("missing", ["action_size"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_policy_is_tried_whatever_its_contract_leaves_out(
    missing: str, value: float, tmp_path: Path
) -> None:
    meaning = {name: entry for name, entry in MEANING.items() if name != missing}
    save_policy(tmp_path / "p.safetensors", nn.Linear(3, 2), meaning)
    assert load_policy(tmp_path / "p.safetensors")(torch.zeros(1, 3)).shape == (1, 2)
    broken = nn.Linear(3, 2)
    nn.init.constant_(broken.weight, value)
    nn.init.constant_(broken.bias, value)
    save_policy(tmp_path / "p.safetensors", broken, meaning)
    with pytest.raises(ValueError, match=r"finite.*\(2, 2\)"):
        load_policy(tmp_path / "p.safetensors")


@pytest.mark.parametrize("size", [2**63, 2**40, 2**24 + 1])
def test_a_header_of_any_claimed_size_is_refused_before_it_is_read(
    size: int, tmp_path: Path
) -> None:
    path = tmp_path / "p.safetensors"
    path.write_bytes(size.to_bytes(8, "little") + b"{}")
    for read in (read_evaluation, load_policy):
        with pytest.raises(ValueError, match=f"{size:,}"):
            read(path)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[]", b'{"__metadata__": 3}', b"{"])
def test_a_header_that_is_no_object_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    for read in (read_evaluation, load_policy):
        with pytest.raises(ValueError, match=r"p\.safetensors"):
            read(path)


def test_a_term_of_a_billion_numbers_is_refused(tmp_path: Path) -> None:
    inputs = {"policy": [{"name": "a", "size": 10**9, "scale": 1.0}]}
    save_policy(tmp_path / "p.safetensors", nn.Linear(3, 2), {**MEANING, "inputs": inputs})
    with pytest.raises(ValueError, match="'policy'"):
        load_policy(tmp_path / "p.safetensors")


def test_equal_policies_are_equal_files(tmp_path: Path) -> None:
    """In another process too, where the texts of safetensors had another order."""
    code = (
        "import sys, torch; from pathlib import Path\n"
        "from legged_envs.policy.policy import save_policy\n"
        "torch.manual_seed(0)\n"
        f"save_policy(Path(sys.argv[1]), torch.nn.Linear(3, 2), {MEANING!r})\n"
    )
    files = [tmp_path / f"{i}.safetensors" for i in range(2)]
    subprocess.run([sys.executable, "-c", code, str(files[0])], check=True, timeout=120)
    torch.manual_seed(0)
    save_policy(files[1], torch.nn.Linear(3, 2), MEANING)
    assert files[0].read_bytes() == files[1].read_bytes()
    torch.manual_seed(0)
    expected = nn.Linear(3, 2)
    weights = load_file(files[0])
    assert {tuple(weight.shape) for weight in weights.values()} == {(2, 3), (2,)}
    observation = torch.randn(4, 3)
    torch.testing.assert_close(load_policy(files[0])(observation), expected(observation))


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.safetensors"
    write_whole(path, b"old")

    def fill_disk(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill_disk)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_evaluation_in_a_header_is_json(tmp_path: Path) -> None:
    path = tmp_path / "p.safetensors"
    save_policy(path, nn.Linear(3, 2), MEANING)
    record_evaluation(path, {"a": float("nan"), "b": {"c": [1.0, float("inf")]}, "d": 0.5})
    assert read_evaluation(path) == {"a": None, "b": {"c": [1.0, None]}, "d": 0.5}
    assert without_nan((1, float("-inf"), "nan")) == [1, None, "nan"]
    load_policy(path)
