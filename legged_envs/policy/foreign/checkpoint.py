"""Checkpoints of rsl_rl (`model_1500.pt`): weights are read, and no code.

The layers are rebuilt from the names and shapes of the weights. Their activation is not in the
file: it is read from `agent.yaml` in the folder of the description; without this file it is ELU.
"""

import pickle
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from legged_envs.checks import check_choice
from legged_envs.policy.foreign.archive_size import check_archive_size
from legged_envs.policy.foreign.fields import read_yaml
from legged_envs.policy.foreign.networks import (
    ForeignNetwork,
    RecurrentNetwork,
    TorchNetwork,
)
from legged_envs.policy.network_size import MOST_NUMBERS
from legged_envs.tables import shorten

ACTIVATIONS: dict[str, type[torch.nn.Module]] = {
    "elu": torch.nn.ELU,
    "selu": torch.nn.SELU,
    "relu": torch.nn.ReLU,
    "lrelu": torch.nn.LeakyReLU,
    "tanh": torch.nn.Tanh,
    "sigmoid": torch.nn.Sigmoid,
    "gelu": torch.nn.GELU,
    "silu": torch.nn.SiLU,
    "swish": torch.nn.SiLU,
    "mish": torch.nn.Mish,
    "softplus": torch.nn.Softplus,
}
"""Names of activations in rsl_rl → modules."""

DEFAULT_ACTIVATION = "elu"
"""Activation of checkpoints without an `agent.yaml`: the usual activation of tasks for legged
robots."""

AGENT_FILE = "agent.yaml"
"""File in which Isaac Lab and its relatives keep the options of the training."""

EPSILON = 1e-2
"""Added to the standard deviation by the normalizer of rsl_rl."""

KNOWN_PARTS = (
    *("mlp.", "rnn.", "critic", "std", "log_std", "distribution.", "obs_normalizer."),
    *("actor_obs_normalizer.", "student_obs_normalizer.", "teacher", "memory_"),
)
"""First words of the names of weights that are understood, or that a policy does not need."""

Weights = Mapping[str, torch.Tensor]
"""Name → tensor."""


class Normalizer(torch.nn.Module):
    """Normalizes observations by the mean and standard deviation of a training.

    Args:
        mean: Mean of each element. Shape: (size,).
        std: Standard deviation of each element. Shape: (size,).
    """

    mean: torch.Tensor
    """Mean of each element. Shape: (size,)."""
    std: torch.Tensor
    """Standard deviation of each element, with `EPSILON` added. Shape: (size,)."""

    def __init__(self, mean: torch.Tensor, std: torch.Tensor):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std + EPSILON)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Return normalized observations. Shapes: (n, size) → (n, size)."""
        return (observation - self.mean) / self.std


def is_checkpoint(path: Path) -> bool:
    """Return True if a file can be a checkpoint: an archive of torch, or its older format."""
    with path.open("rb") as file:
        start = file.read(4)
    # A zip archive, or a pickle of protocol 2 and above.
    return start[:2] == b"PK" or start[:1] == b"\x80"


def read_checkpoint(path: Path, folder: Path) -> tuple[ForeignNetwork, list[str]]:
    """Read the actor of a checkpoint.

    Args:
        path: Checkpoint.
        folder: Folder that may have an `agent.yaml`.

    Returns:
        The network, and sentences about what was assumed.

    Raises:
        ValueError: If the file lacks an actor, or the actor cannot be rebuilt.
    """
    content = _load(path)
    weights = _actor_weights(path, content)
    activation, assumed = _find_activation(folder)
    _check_numbers(path, content)
    head = _build_layers(path, weights, activation)
    try:
        normalizer = _find_normalizer(path, content)
        memory = _find_memory(weights)
    except (KeyError, RuntimeError, AttributeError) as error:
        reason = shorten(" ".join(str(error).split()), 200)
        raise ValueError(
            f"{str(path)!r}: its normalizer or recurrent network is not that of rsl_rl ({reason}): "
            "export it as ONNX"
        ) from error
    if memory is not None:
        if normalizer is not None:
            raise ValueError(
                f"{str(path)!r} has a normalizer before a recurrent network, which a checkpoint "
                "does not describe in full: export it as ONNX"
            )
        return RecurrentNetwork(memory, head), assumed
    module = head if normalizer is None else torch.nn.Sequential(normalizer, head)
    return TorchNetwork(module.requires_grad_(False)), assumed


def _load(path: Path) -> Mapping[str, Any]:
    check_archive_size(path)
    try:
        # Only tensors and plain values: a pickle with anything else is refused before it runs.
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError, KeyError) as error:
        reason = shorten(" ".join(str(error).split()), 200)
        raise ValueError(
            f"{str(path)!r} is not a checkpoint with only weights: {reason}"
        ) from error
    if not isinstance(content, dict):
        raise ValueError(f"{str(path)!r} is not a checkpoint of rsl_rl: name model_….pt of a run")
    return content


def _actor_weights(path: Path, content: Mapping[str, Any]) -> Weights:
    """Return the weights of the actor, with the names of rsl_rl 5: `mlp.0.weight`."""
    state = content.get("actor_state_dict", content.get("model_state_dict", content))
    weights = {}
    # Up to rsl_rl 3 the actor stood next to the critic. A distilled policy is called student.
    for name, value in state.items() if isinstance(state, dict) else ():
        if not isinstance(value, torch.Tensor):
            continue
        renamed = re.sub(r"^(actor|student)\.(?=\d)", "mlp.", name)
        renamed = re.sub(r"^memory_[as]\.rnn\.", "rnn.rnn.", renamed)
        weights[renamed] = value
    others = [name for name in weights if not name.startswith(KNOWN_PARTS)]
    if others:
        parts = sorted({name.split(".")[0] for name in others})
        raise ValueError(
            f"{str(path)!r} has {', '.join(parts)} in addition to its actor, which a checkpoint "
            "does not describe in full: export it as ONNX or TorchScript"
        )
    if not any(name.startswith("mlp.") for name in weights):
        raise ValueError(
            f"{str(path)!r} has no actor of rsl_rl, only {shorten(', '.join(content), 200)}: "
            "name model_….pt of a run"
        )
    return weights


def _check_numbers(path: Path, content: Mapping[str, Any]) -> None:
    """Raise a ValueError if tensors claim more numbers than a file can hold.

    A tensor of any shape can stand on one stored number. Layers would take its memory in full.
    """
    groups = [content, *content.values()]
    for group in groups:
        for name, value in group.items() if isinstance(group, dict) else ():
            if isinstance(value, torch.Tensor) and value.numel() > MOST_NUMBERS:
                raise ValueError(
                    f"{str(path)!r}: {shorten(str(name), 80)!r} claims the shape "
                    f"{tuple(value.shape)}, but at most {MOST_NUMBERS:,} numbers are read: name a "
                    "checkpoint of a policy"
                )


def _find_activation(folder: Path) -> tuple[str, list[str]]:
    file = folder / AGENT_FILE
    if file.is_file():
        tree = read_yaml(file)
        for section in (tree.get("policy"), tree.get("actor")):
            if isinstance(section, dict) and "activation" in section:
                name = section["activation"]
                check_choice(f"{str(file)!r}: activation", name, tuple(ACTIVATIONS))
                return name, []
    return DEFAULT_ACTIVATION, [
        f"the activation is {DEFAULT_ACTIVATION}: no {AGENT_FILE} next to the description names "
        "another"
    ]


def _build_layers(path: Path, weights: Weights, activation: str) -> torch.nn.Sequential:
    numbers = sorted(
        int(match[1])
        for match in (re.fullmatch(r"mlp\.(\d+)\.weight", name) for name in weights)
        if match
    )
    if not numbers:
        raise ValueError(
            f"{str(path)!r} has an actor that is not a chain of linear layers: export it as ONNX"
        )
    layers: list[torch.nn.Module] = []
    for number in numbers:
        weight = weights[f"mlp.{number}.weight"]
        bias = weights.get(f"mlp.{number}.bias")
        if weight.ndim != 2 or bias is None or bias.shape != weight.shape[:1]:
            raise ValueError(
                f"{str(path)!r}: layer {number} of its actor is not a linear layer with a bias: "
                "export it as ONNX"
            )
        if layers:
            layers.append(ACTIVATIONS[activation]())
        layers.append(_linear(weight, bias))
    _check_chain(path, layers)
    return torch.nn.Sequential(*layers)


def _linear(weight: torch.Tensor, bias: torch.Tensor) -> torch.nn.Linear:
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight.float(), "bias": bias.float()})
    return layer


def _check_chain(path: Path, layers: list[torch.nn.Module]) -> None:
    linear = [layer for layer in layers if isinstance(layer, torch.nn.Linear)]
    for one, following in pairwise(linear):
        if one.out_features != following.in_features:
            raise ValueError(
                f"{str(path)!r}: layers of its actor do not fit each other, {one.out_features} "
                f"outputs meet {following.in_features} inputs: export it as ONNX"
            )


def _find_normalizer(path: Path, content: Mapping[str, Any]) -> Normalizer | None:
    """Return the normalizer of the observation. None: there is none."""
    sources = [
        ("", content.get("obs_norm_state_dict")),
        ("obs_normalizer.", content.get("actor_state_dict")),
        ("actor_obs_normalizer.", content.get("model_state_dict")),
        ("student_obs_normalizer.", content.get("model_state_dict")),
    ]
    for prefix, state in sources:
        if isinstance(state, dict) and f"{prefix}_mean" in state:
            mean = state[f"{prefix}_mean"]
            std = state.get(f"{prefix}_std")
            if std is None:
                raise ValueError(
                    f"{str(path)!r}: its normalizer has a mean and no standard deviation: "
                    "export it as ONNX"
                )
            return Normalizer(mean.float().flatten(), std.float().flatten())
    return None


def _find_memory(weights: Weights) -> torch.nn.RNNBase | None:
    """Return the LSTM or GRU before the layers. None: there is none."""
    prefix = "rnn.rnn." if "rnn.rnn.weight_ih_l0" in weights else "rnn."
    names = [name for name in weights if name.startswith(prefix)]
    if f"{prefix}weight_ih_l0" not in weights:
        return None
    inputs = weights[f"{prefix}weight_ih_l0"]
    hidden = weights[f"{prefix}weight_hh_l0"].shape[1]
    layers = sum(1 for name in names if name.startswith(f"{prefix}weight_ih_l"))
    # An LSTM has four gates, a GRU three.
    kind = torch.nn.LSTM if inputs.shape[0] == 4 * hidden else torch.nn.GRU
    memory = kind(inputs.shape[1], hidden, layers)
    memory.load_state_dict({name.removeprefix(prefix): weights[name].float() for name in names})
    return memory.requires_grad_(False)
