"""Bytes of policy files: bounds of their sizes before they are read, and writing in one piece."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

LARGEST_HEADER = 2**24
"""Largest size of the header of a policy file, bytes. It holds the contract and the network, some
kilobytes each."""

LARGEST_FILE = 2**28
"""Largest size of a policy file, bytes. The weights of a robot's policy have some megabytes."""

SIZE_BYTES = 8
"""Number of bytes at the start of a safetensors file that hold the size of its header."""

METADATA_KEY = "__metadata__"
"""Key of the free text entries in a safetensors header."""


def check_file_size(path: Path) -> None:
    """Check that a policy file is small enough to be read, before memory is taken.

    Raises:
        ValueError: If it is too large.
    """
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ValueError(
            f"{str(path)!r} has {size:,} bytes, but a policy has at most {LARGEST_FILE:,}: name "
            "another file"
        )


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a safetensors file and the position where it ends.

    A length in 8 bytes, the least significant first, precedes that many bytes of JSON.

    Raises:
        ValueError: If the header is too large, or no JSON object.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(SIZE_BYTES), "little")
        # Before memory is taken: a stranger's file may claim any size.
        if size > LARGEST_HEADER:
            raise ValueError(
                f"the header of {str(path)!r} has {size:,} bytes, but the header of a policy has "
                "at most "
                f"{LARGEST_HEADER:,}: name a safetensors file that legged-envs train wrote"
            )
        text = file.read(size)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"the header of {str(path)!r} is not JSON: name a safetensors file that legged-envs "
            "train wrote"
        ) from error
    if not isinstance(header, dict) or not isinstance(header.get(METADATA_KEY, {}), dict):
        raise ValueError(
            f"the header of {str(path)!r} is not a JSON object: name a safetensors file that "
            "legged-envs train wrote"
        )
    return header, SIZE_BYTES + size


def join_header(header: Mapping[str, Any], tensors: bytes) -> bytes:
    """Return the bytes of a safetensors file with a header and the bytes of its tensors."""
    text = json.dumps(header, separators=(",", ":")).encode()
    # Tensors start at a multiple of 8 bytes.
    text += b" " * (-len(text) % SIZE_BYTES)
    return len(text).to_bytes(SIZE_BYTES, "little") + text + tensors


def serialize(weights: "Mapping[str, torch.Tensor]", metadata: Mapping[str, str]) -> bytes:
    """Return the bytes of a safetensors file. Equal weights and texts give equal bytes.

    Args:
        weights: Tensors by name.
        metadata: Free text entries by name.
    """
    # Commands read headers before they need PyTorch, which takes seconds to import.
    from safetensors.torch import save

    # safetensors writes its own text entries in another order in each process.
    plain = save(dict(weights))
    end = SIZE_BYTES + int.from_bytes(plain[:SIZE_BYTES], "little")
    header = {METADATA_KEY: dict(metadata), **json.loads(plain[SIZE_BYTES:end])}
    return join_header(header, plain[end:])


def write_whole(path: Path, data: bytes) -> None:
    """Write a file in one piece: a reader sees the old file or the new one, and no part of it."""
    part = path.with_name(f"{path.name}.new")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
