"""Networks of other frameworks: functions of one observation, some with a memory for each robot."""

from pathlib import Path
from typing import Any, Protocol

import torch

from legged_envs.tables import shorten

LOOPS = ("Loop", "Scan", "If")
"""Operations of ONNX that contain other operations, and may never end."""

TIME_STEP = "time_step"
"""Input of networks that also give the motion that they imitate: number of the control step."""

MAIN_INPUTS = ("obs", "policy", "observation", "observations", "input", "actor_obs")
"""Names of the observation among the inputs of an ONNX file, if there are several."""


class ForeignNetwork(Protocol):
    """A network that acts for any number of robots."""

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the actions for observations. Shapes: (n, size) → (n, num_actions)."""

    def reset(self, ended: torch.Tensor | None) -> None:
        """Clear the memory of robots whose episode starts.

        Args:
            ended: True for these robots. None: all. Shape: (n,), bool.
        """


class OnnxNetwork:
    """A network in an ONNX file, run by onnxruntime.

    Inputs other than the observation are a memory, if an output continues each of them: `h_in` and
    `h_out`, as rsl_rl exports recurrent networks. `time_step` counts the control steps.

    Args:
        path: ONNX file.

    Raises:
        ValueError: If the file is not ONNX, has operations that contain others, or an input that is
            neither an observation nor a memory.
    """

    def __init__(self, path: Path):
        self._session: Any = open_session(path)
        inputs = self._session.get_inputs()
        self._main = _main_input(path, inputs)
        self._memory = _memory_pairs(path, self._session, self._main.name)
        outputs = [output.name for output in self._session.get_outputs()]
        self._action = "actions" if "actions" in outputs else outputs[0]
        # One input of any number of rows. Otherwise each robot has its turn.
        self._is_batched = len(inputs) == 1 and not isinstance(self._main.shape[0], int)
        self._states: list[dict[str, Any]] = []

    @property
    def input_size(self) -> int | None:
        """Number of elements of the observation. None: the file does not say."""
        size = self._main.shape[-1]
        return size if isinstance(size, int) else None

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the actions for observations. Shapes: (n, size) → (n, num_actions)."""
        rows = observation.detach().cpu().float().contiguous().numpy()
        if self._is_batched:
            outputs = self._session.run([self._action], {self._main.name: rows})
            return torch.from_numpy(outputs[0])
        while len(self._states) < len(rows):
            self._states.append(self._first_state())
        actions = [self._act(rows[i : i + 1], self._states[i]) for i in range(len(rows))]
        return torch.cat(actions)

    def _act(self, row: Any, state: dict[str, Any]) -> torch.Tensor:
        names = [self._action, *self._memory.values()]
        outputs = self._session.run(names, {self._main.name: row, **state})
        if TIME_STEP in state:
            state[TIME_STEP] = state[TIME_STEP] + 1.0
        for name, value in zip(self._memory, outputs[1:], strict=True):
            state[name] = value
        return torch.from_numpy(outputs[0]).reshape(1, -1)

    def _first_state(self) -> dict[str, Any]:
        import numpy as np

        state = {}
        for each in self._session.get_inputs():
            if each.name in self._memory or each.name == TIME_STEP:
                shape = [size if isinstance(size, int) else 1 for size in each.shape]
                state[each.name] = np.zeros(shape, np.float32)
        return state

    def reset(self, ended: torch.Tensor | None) -> None:
        """Reset the network's memory of robots whose episode starts.

        Args:
            ended: True for these robots. None: all. Shape: (n,), bool.
        """
        if ended is None:
            self._states = []
            return
        for i in ended.nonzero().flatten().tolist():
            if i < len(self._states):
                self._states[i] = self._first_state()


def open_session(path: Path) -> Any:
    """Return a session of onnxruntime for a file.

    Raises:
        ValueError: If the file is not ONNX, or has operations that contain others.
    """
    import onnxruntime

    _check_operations(path)
    options = onnxruntime.SessionOptions()
    # The robots of a batch are few: threads would only wait for each other.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = shorten(" ".join(str(error).split()), 200)
        raise ValueError(f"{str(path)!r} is not a network that runs: {reason}") from error


def read_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of an ONNX file, name → text.

    Raises:
        ValueError: If the file is not ONNX.
    """
    return {entry.key: entry.value for entry in load_graph(path).metadata_props}


def load_graph(path: Path) -> Any:
    """Return the model in an ONNX file, without weights in other files.

    Raises:
        ValueError: If the file is not ONNX.
    """
    import onnx

    try:
        # Weights in other files are not needed for the names of operations.
        return onnx.load(str(path), load_external_data=False)
    except Exception as error:
        reason = shorten(" ".join(str(error).split()), 200)
        raise ValueError(f"{str(path)!r} is not an ONNX file: {reason}") from error


def _check_operations(path: Path) -> None:
    strange = []
    for node in load_graph(path).graph.node:
        is_foreign = node.domain not in ("", "ai.onnx")
        if node.op_type in LOOPS or is_foreign:
            strange.append(f"{node.domain}:{node.op_type}" if is_foreign else node.op_type)
    if strange:
        raise ValueError(
            f"{str(path)!r} has the operations {', '.join(sorted(set(strange)))}, which are not "
            "run: export a network of tensor operations without branches and loops"
        )


def _main_input(path: Path, inputs: Any) -> Any:
    if len(inputs) == 1:
        return inputs[0]
    for each in inputs:
        if each.name in MAIN_INPUTS:
            return each
    names = ", ".join(each.name for each in inputs)
    raise ValueError(
        f"{str(path)!r} takes {names}, and none of these is called {', '.join(MAIN_INPUTS)}: "
        "rename the observation"
    )


def _memory_pairs(path: Path, session: Any, main: str) -> dict[str, str]:
    """Return the input of each part of the memory → the output that continues it."""
    outputs = [output.name for output in session.get_outputs()]
    pairs = {}
    strange = []
    for each in session.get_inputs():
        if each.name in (main, TIME_STEP):
            continue
        next_name = each.name.removesuffix("_in") + "_out"
        if each.name.endswith("_in") and next_name in outputs:
            pairs[each.name] = next_name
        else:
            strange.append(each.name)
    if strange:
        raise ValueError(
            f"{str(path)!r} also takes {', '.join(strange)}, which no output continues: "
            "export a network of one observation"
        )
    return pairs


class TorchNetwork:
    """A feed-forward network of PyTorch.

    Args:
        module: Network of one observation, without memory.
    """

    def __init__(self, module: torch.nn.Module):
        self.module = module.eval()
        """The network."""
        self.input_size: int | None = None
        """Number of elements of the observation. None: the network does not say."""

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the actions for observations. Shapes: (n, size) → (n, num_actions)."""
        actions: torch.Tensor = self.module(observation)
        return actions

    def reset(self, ended: torch.Tensor | None) -> None:
        """Do nothing: there is no memory."""


class RecurrentNetwork:
    """A network of PyTorch with an LSTM or GRU before it.

    Args:
        memory: LSTM or GRU, with one step at a time.
        head: Network of its output.
    """

    def __init__(self, memory: torch.nn.RNNBase, head: torch.nn.Module):
        self._memory = memory.eval()
        self._head = head.eval()
        self._state: tuple[torch.Tensor, ...] = ()

        self.input_size: int | None = memory.input_size
        """Number of elements of the observation."""

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the actions for observations. Shapes: (n, size) → (n, num_actions)."""
        if not self._state or self._state[0].shape[1] != len(observation):
            self._state = self._zeros(len(observation))
        is_lstm = isinstance(self._memory, torch.nn.LSTM)
        state: Any = self._state if is_lstm else self._state[0]
        output, after = self._memory(observation.unsqueeze(0), state)
        self._state = tuple(after) if is_lstm else (after,)
        actions: torch.Tensor = self._head(output.squeeze(0))
        return actions

    def _zeros(self, count: int) -> tuple[torch.Tensor, ...]:
        shape = (self._memory.num_layers, count, self._memory.hidden_size)
        parts = 2 if isinstance(self._memory, torch.nn.LSTM) else 1
        return tuple(torch.zeros(shape) for _ in range(parts))

    def reset(self, ended: torch.Tensor | None) -> None:
        """Reset the network's memory of robots whose episode starts.

        Args:
            ended: True for these robots. None: all. Shape: (n,), bool.
        """
        if ended is None:
            self._state = ()
            return
        if self._state:
            keep = (~ended.cpu()).float()[None, :, None]
            self._state = tuple(part * keep for part in self._state)
