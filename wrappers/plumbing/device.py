"""The ``device`` that OmniSafe's wrappers take, which this package's wrappers check."""

import re
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, Union

from array_api_compat import device as device_of

from legged_envs.wrappers.plumbing.arrays import NUMPY_TYPES, Array

if TYPE_CHECKING:
    import torch

# Not with "|", which a name in quotes does not have. The quotes keep torch from being imported.
Device: TypeAlias = Union[str, "torch.device"]
"""A device, or its name in PyTorch."""


def is_device(value: object) -> TypeGuard[Device]:
    """Return True if a value is a ``torch.device`` or the name of one, such as ``"cuda:0"``."""
    if isinstance(value, str):
        return re.fullmatch(r"(cpu|cuda|mps|xpu|meta)(:\d+)?", value) is not None
    # Compared by name, so that torch is not imported for environments of NumPy arrays.
    kind = type(value)
    return kind.__module__ == "torch" and kind.__name__ == "device"


def device_name(owner: str, device: Device | None) -> str | None:
    """Return the name of a device that was passed to a wrapper, or None if none was passed.

    Args:
        owner: Name of the wrapper, for the error.
        device: The argument that was passed.

    Raises:
        TypeError: ``device`` is something else.
    """
    if device is None:
        return None
    if not is_device(device):
        raise TypeError(f"{owner} takes a torch.device such as 'cpu', got device={device!r}")
    return str(device)


def split_device(owner: str, argument: object, device: Device | None) -> tuple[Any, Device | None]:
    """Sort the argument after the environment, which is the device in OmniSafe's order.

    Args:
        owner: Name of the wrapper, for the error.
        argument: A device, or the first argument in this package's order, or None.
        device: The keyword ``device``.

    Returns:
        The argument, None if it was a device; and the device, None if there was none.

    Raises:
        TypeError: Two devices were passed.
    """
    if not is_device(argument):
        return argument, device
    if device is not None:
        raise TypeError(f"{owner} takes one device, got {argument!r} and {device!r}")
    return None, argument


def check_device(owner: str, expected: str, example: Array) -> None:
    """Compare the device of an environment's arrays with the device that a wrapper was given.

    Args:
        owner: Name of the wrapper, for the error.
        expected: Name of the device. Without a number it stands for every device of its type.
        example: An array of the environment.

    Raises:
        ValueError: The array is on another device.
    """
    given = "cpu" if isinstance(example, NUMPY_TYPES) else str(device_of(example))
    device_type = given.partition(":")[0]
    if expected not in (given, device_type):
        raise ValueError(
            f"{owner} was given device={expected!r}, "
            f"but the arrays of the environment are on {given!r}. "
            f"Make the environment there, or put ToTorch(env, device={expected!r}) below."
        )
