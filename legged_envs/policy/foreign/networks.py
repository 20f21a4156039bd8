"""Networks of other frameworks: functions of one observation, some with a memory for each robot."""

from pathlib import Path
from typing import Any, Protocol

import torch

from legged_envs.policy.foreign.onnx_limits import load_checked, load_graph, read_external_data
from legged_envs.policy.foreign.rows import Memory, RowNetwork, axis_of
from legged_envs.tables import shorten

TIME_STEP = "time_step"
"""Input of networks that also give the motion that they imitate: number of the control step."""

MAIN_INPUTS = ("obs", "policy", "observation", "observations", "input", "actor_obs")
"""Names of the observation among the inputs of an ONNX file, if there are several."""


class ForeignNetwork(Protocol):
    """A network that acts for any number of robots."""

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the actions for observations. Shapes: (n, size) → (n, num_actions)."""

    def reset(self, ended: torch.Tensor | None) -> None:
        """Clear the memory of robots at the start of their episodes.

        Args:
            ended: True for these robots. None: all. Shape: (n,), bool.
        """


class OnnxNetwork:
    """A network in an ONNX file, run by onnxruntime.

    Inputs other than the observation are a memory, if an output continues each of them: `h_in` and
    `h_out`, as rsl_rl exports recurrent networks. `time_step` counts the control steps.

    Most files are for one robot. Their weights are read into the model, also those in another file,
    and its first axis is opened for more robots. If an operation still takes only one row, such as
    a reshape to (1, n), the network is called for one robot after another (`RowNetwork`).

    Args:
        path: ONNX file.

    Raises:
        ValueError: If the file is not ONNX, is too large, has operations that contain others, or an
            input that is neither an observation nor a memory.
    """

    def __init__(self, path: Path):
        model = load_checked(path)
        session = _start_session(path, str(path))
        inputs = session.get_inputs()
        outputs = [output.name for output in session.get_outputs()]
        self._main = _main_input(path, inputs)
        self._memory = _memory_pairs(path, session, self._main.name)
        self._action = "actions" if "actions" in outputs else outputs[0]
        first = {}
        for each in inputs:
            if each.name in self._memory or each.name == TIME_STEP:
                shape = [size if isinstance(size, int) else 1 for size in each.shape]
                first[each.name] = torch.zeros(shape)
        self._session: Any = _open_for_rows(path, model) or session
        self._rows = RowNetwork(self._step, first)

    @property
    def input_size(self) -> int | None:
        """Number of elements of the observation. None: the file does not specify it."""
        size = self._main.shape[-1]
        return size if isinstance(size, int) else None

    @property
    def is_joint(self) -> bool:
        """True if all robots act in one call. False before the first call."""
        return self._rows.is_joint

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the actions for observations. Shapes: (n, size) → (n, num_actions)."""
        return self._rows(observation.detach().cpu().float().contiguous())

    def reset(self, ended: torch.Tensor | None) -> None:
        """Clear the memory of robots at the start of their episodes; see `ForeignNetwork`."""
        self._rows.reset(ended)

    def _step(self, observation: torch.Tensor, memory: Memory) -> tuple[torch.Tensor, Memory]:
        feed = {name: value.numpy() for name, value in memory.items()}
        feed[self._main.name] = observation.numpy()
        outputs = self._session.run([self._action, *self._memory.values()], feed)
        after = dict(memory)
        for name, value in zip(self._memory, outputs[1:], strict=True):
            after[name] = torch.from_numpy(value)
        if TIME_STEP in memory:
            after[TIME_STEP] = memory[TIME_STEP] + 1.0
        actions = torch.from_numpy(outputs[0])
        return actions.reshape(len(observation), -1), after


def open_session(path: Path) -> Any:
    """Return a session of onnxruntime for a file.

    Raises:
        ValueError: If the file is not ONNX, is too large, or has operations that contain others.
    """
    load_checked(path)
    return _start_session(path, str(path))


def _start_session(path: Path, source: str | bytes) -> Any:
    """Return a session for a file, or for the bytes of a model that was made of it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # The robots of a batch are few: threads would only wait for each other.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Errors come as exceptions; the log would repeat them.
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = shorten(" ".join(str(error).split()), 200)
        raise ValueError(f"{str(path)!r} is not a network that runs: {reason}") from error


def _open_for_rows(path: Path, model: Any) -> Any:
    """Return an inference session that takes one row for each of any number of robots.

    None: the model only takes a batch of one.
    """
    # onnxruntime looks for files next to a model's file, and this model has no file.
    read_external_data(path, model)
    weights = {each.name for each in model.graph.initializer}
    for value in model.graph.input:
        sizes = value.type.tensor_type.shape.dim
        if value.name in weights or not sizes:
            continue
        size = sizes[axis_of(len(sizes))]
        if size.dim_value == 1:
            size.dim_param = "robots"
    # These shapes were for one robot.
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        return _start_session(path, model.SerializeToString())
    except ValueError:
        return None


def read_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of an ONNX file, name → text.

    Raises:
        ValueError: If the file is not ONNX, or too large.
    """
    return {entry.key: entry.value for entry in load_graph(path).metadata_props}


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
        """Number of elements of the observation. None: the network does not specify it."""
        self.has_memory = False
        """True if it remembers the past of a robot."""

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
        """Reset the network's memory of robots with a new episode.

        Args:
            ended: True for these robots. None: all. Shape: (n,), bool.
        """
        if ended is None:
            self._state = ()
            return
        if self._state:
            keep = (~ended.cpu()).float()[None, :, None]
            self._state = tuple(part * keep for part in self._state)
