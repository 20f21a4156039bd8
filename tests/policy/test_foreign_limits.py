"""Networks of other frameworks: many robots in one call, and files that would fill the memory."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from legged_envs.policy.foreign.checkpoint import read_checkpoint
from legged_envs.policy.foreign.networks import OnnxNetwork
from legged_envs.policy.foreign.torchscript import TorchScriptNetwork

SIZE, ACTIONS, HIDDEN = 6, 3, 4


class Remembers(nn.Module):
    """An LSTM with its state in the module, as exported by unitree_rl_gym."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(SIZE, HIDDEN)
        self.head = nn.Linear(HIDDEN, ACTIONS)
        self.register_buffer("hidden_state", torch.zeros(1, 1, HIDDEN))
        self.register_buffer("cell_state", torch.zeros(1, 1, HIDDEN))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, (h, c) = self.rnn(x.unsqueeze(0), (self.hidden_state, self.cell_state))
        self.hidden_state[:] = h
        self.cell_state[:] = c
        return self.head(out.squeeze(0))


class OneRow(Remembers):
    """An LSTM with the number of rows in an operation: it acts for only one robot."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, (h, c) = self.rnn(x.reshape(1, 1, 6), (self.hidden_state, self.cell_state))
        self.hidden_state[:] = h
        self.cell_state[:] = c
        return self.head(out.reshape(1, 4))


class Step(nn.Module):
    """An LSTM with its state as input and output, as exported to ONNX by rsl_rl."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(SIZE, HIDDEN)
        self.head = nn.Linear(HIDDEN, ACTIONS)

    def forward(
        self, obs: torch.Tensor, h_in: torch.Tensor, c_in: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        out, (h, c) = self.rnn(obs.unsqueeze(0), (h_in, c_in))
        return self.head(out.squeeze(0)), h, c


def expected(module: Remembers | Step, seen: torch.Tensor) -> torch.Tensor:
    """Actions of a robot by PyTorch's own LSTM over the whole sequence. Shape: (steps, actions)."""
    with torch.no_grad():
        return module.head(module.rnn(seen.unsqueeze(1))[0].squeeze(1))


def assert_remembers(
    network: OnnxNetwork | TorchScriptNetwork, module: Remembers | Step, is_joint: bool
) -> None:
    """Each of four robots gets the actions of a single robot, also after one of them is reset."""
    seen = torch.randn(7, 4, SIZE, generator=torch.Generator().manual_seed(3))
    actions = []
    for step, rows in enumerate(seen):
        if step == 4:
            network.reset(torch.tensor([False, True, False, False]))
        actions.append(network(rows))
    together = torch.stack(actions).detach()
    for robot in (0, 2, 3):
        alone = expected(module, seen[:, robot])
        torch.testing.assert_close(together[:, robot], alone, atol=1e-5, rtol=0.0)
    again = expected(module, seen[4:, 1])
    torch.testing.assert_close(together[4:, 1], again, atol=1e-5, rtol=0.0)
    assert network.is_joint == is_joint


@pytest.mark.parametrize(("kind", "is_joint"), [(Remembers, True), (OneRow, False)])
def test_robots_of_torchscript_act_in_one_call_where_its_operations_allow_it(
    kind: type[Remembers], is_joint: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    module = kind().eval()
    torch.jit.script(module).save(tmp_path / "policy.pt")
    assert_remembers(TorchScriptNetwork(tmp_path / "policy.pt"), module, is_joint)


def save_step(path: Path) -> Step:
    torch.manual_seed(0)
    module = Step().eval()
    state = torch.zeros(1, 1, HIDDEN)
    torch.onnx.export(
        module,
        (torch.zeros(1, SIZE), state, state),
        str(path),
        input_names=["obs", "h_in", "c_in"],
        output_names=["actions", "h_out", "c_out"],
        dynamo=False,
    )
    return module


def test_robots_of_onnx_for_one_robot_act_in_one_call(tmp_path: Path) -> None:
    module = save_step(tmp_path / "policy.onnx")
    assert_remembers(OnnxNetwork(tmp_path / "policy.onnx"), module, is_joint=True)


def save_graph(
    path: Path, nodes: list[onnx.NodeProto], weights: list[TensorProto], size: int = SIZE
) -> Path:
    inputs = [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, size])]
    outputs = [helper.make_tensor_value_info("actions", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "policy", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())
    return path


def numbers(name: str, values: list[int]) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def claim(name: str, shape: list[int]) -> TensorProto:
    """A tensor that claims a shape and holds no numbers."""
    return TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)


MATMUL = [helper.make_node("MatMul", ["obs", "w"], ["actions"])]
BOMBS = {
    "claimed weights": (MATMUL, [claim("w", [SIZE, 10**12])], "1000000000000"),
    "expanded": (
        [helper.make_node("Expand", ["obs", "n"], ["actions"])],
        [numbers("n", [10**8, SIZE])],
        "Expand",
    ),
    "constant of a shape": (
        [helper.make_node("ConstantOfShape", ["n"], ["actions"])],
        [numbers("n", [10**6, 10**6])],
        "ConstantOfShape",
    ),
    "of any size": (
        [
            helper.make_node("Cast", ["obs"], ["n"], to=TensorProto.INT64),
            helper.make_node("Flatten", ["n"], ["f"], axis=0),
            helper.make_node("Squeeze", ["f"], ["s"]),
            helper.make_node("Abs", ["s"], ["a"]),
            helper.make_node("ReduceMax", ["a"], ["m"], keepdims=1),
            helper.make_node("ConstantOfShape", ["m"], ["actions"]),
        ],
        [],
        "ConstantOfShape.*any size",
    ),
    "a size of many steps": (
        [
            helper.make_node("Shape", ["obs"], ["s"]),
            helper.make_node("Equal", ["s", "s"], ["e"]),
            helper.make_node("Where", ["e", "n", "s"], ["m"]),
            helper.make_node("Expand", ["obs", "m"], ["actions"]),
        ],
        [numbers("n", [10**8, SIZE])],
        "Expand",
    ),
    "doubled": (
        [helper.make_node("Concat", [f"v{i}"] * 2, [f"v{i + 1}"], axis=1) for i in range(40)]
        + [helper.make_node("Identity", ["v40"], ["actions"])],
        [],
        "Concat",
    ),
}


@pytest.mark.parametrize("case", BOMBS)
def test_onnx_that_would_fill_the_memory_is_refused(case: str, tmp_path: Path) -> None:
    nodes, weights, named = BOMBS[case]
    if case == "doubled":
        nodes = [helper.make_node("Identity", ["obs"], ["v0"]), *nodes]
    path = save_graph(tmp_path / "bomb.onnx", nodes, weights)
    with pytest.raises(ValueError, match=rf"bomb\.onnx.*{named}"):
        OnnxNetwork(path)


def external(location: str) -> TensorProto:
    tensor = claim("w", [SIZE, ACTIONS])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return tensor


def test_weights_in_files_outside_of_the_folder_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.ones((SIZE, ACTIONS), np.float32).tobytes())
    (folder / "link.bin").symlink_to(secret)
    for location in ("../secret.bin", str(secret), "link.bin", "missing.bin"):
        path = save_graph(folder / "policy.onnx", MATMUL, [external(location)])
        with pytest.raises(ValueError, match=rf"policy\.onnx.*{Path(location).name}"):
            OnnxNetwork(path)
    (folder / "own.bin").write_bytes(secret.read_bytes())
    network = OnnxNetwork(save_graph(folder / "policy.onnx", MATMUL, [external("own.bin")]))
    torch.testing.assert_close(network(torch.ones(2, SIZE)), torch.full((2, ACTIONS), 1.0 * SIZE))
    assert network.is_joint
    (folder / "own.bin").write_bytes(secret.read_bytes()[:-4])
    with pytest.raises(ValueError, match=r"policy\.onnx"):
        OnnxNetwork(folder / "policy.onnx")


class Repeats(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.repeat(1000, 1000).repeat(1000, 1000)[:1, :3]


class Zeros(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :3] + torch.zeros([100000, 100000, 3])[0, :1]


@pytest.mark.parametrize(("kind", "named"), [(Repeats, "repeat"), (Zeros, "zeros")])
def test_torchscript_that_would_fill_the_memory_is_refused(
    kind: type[nn.Module], named: str, tmp_path: Path
) -> None:
    torch.jit.script(kind()).save(tmp_path / "bomb.pt")
    network = TorchScriptNetwork(tmp_path / "bomb.pt")
    with pytest.raises(ValueError, match=named):
        network(torch.zeros(1, SIZE))


def test_weights_that_stand_on_one_number_and_packed_zeros_are_refused(tmp_path: Path) -> None:
    huge = torch.zeros(1).expand(10**6, 10**6)
    torch.save({"model_state_dict": {"actor.0.weight": huge}}, tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"model\.pt.*actor\.0\.weight.*1000000"):
        read_checkpoint(tmp_path / "model.pt", tmp_path)
    with (
        zipfile.ZipFile(tmp_path / "packed.pt", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("model/data/0", "w") as file,
    ):
        for _ in range(300):
            file.write(bytes(2**20))
    assert (tmp_path / "packed.pt").stat().st_size < 2**20
    with pytest.raises(ValueError, match=r"packed\.pt.*314,572,800"):
        read_checkpoint(tmp_path / "packed.pt", tmp_path)
