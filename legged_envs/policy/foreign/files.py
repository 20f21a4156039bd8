"""Networks as ONNX and TorchScript files, as control loops of other frameworks load them."""

import warnings
from collections.abc import Mapping
from pathlib import Path

import torch


def write_onnx(
    path: Path, network: torch.nn.Module, size: int, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a network as ONNX, with the input `obs` and the output `actions` of one robot.

    Loops in C++ take the sizes from the file, so none is left open.

    Args:
        path: File to write.
        network: Function of one observation.
        size: Number of elements of the observation.
        metadata: Name → text.
    """
    import onnx

    path.parent.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        network.eval(),
        (torch.zeros(1, size),),
        str(path),
        input_names=["obs"],
        output_names=["actions"],
        opset_version=18,
        dynamo=False,
    )
    if metadata:
        model = onnx.load(str(path))
        onnx.helper.set_model_props(model, dict(metadata))
        onnx.save(model, str(path))


def write_torchscript(path: Path, network: torch.nn.Module, size: int) -> None:
    """Write a network as TorchScript.

    Args:
        path: File to write.
        network: Function of one observation.
        size: Number of elements of the observation.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with torch.no_grad(), warnings.catch_warnings():
        # TorchScript is deprecated in PyTorch, and what these loops load.
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(network.eval(), torch.zeros(1, size))
    traced.save(str(path))
