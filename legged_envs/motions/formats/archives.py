"""Reads arrays from NumPy archives (.npz) without running code, and checks their kinds."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib import format as npy

from legged_envs.motion_reading import MotionReading
from legged_envs.motions.formats.array_sizes import check_array_sizes
from legged_envs.motions.motion import MotionError, check_keys, require

DTYPE_KINDS = {"number": "fiu", "bool": "b", "text": "U"}
"""Kind of a value → the codes ``numpy.dtype.kind`` that arrays of it can have."""


def archive_names(path: str | Path) -> tuple[str, ...]:
    """Return the names of the arrays in an archive.

    Raises:
        MotionError: The file is not a NumPy archive.
    """
    with open(path, "rb") as file:
        try:
            if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
                raise ValueError("it holds a single array without a name, as an .npy file does")
            check_array_sizes(path)
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            return tuple(archive.files)
        # Damaged bytes make zipfile and NumPy raise more kinds of errors than can be named.
        except Exception as error:
            raise MotionError(f"{path}: not a NumPy archive of plain arrays: {error}") from error


def read_arrays(path: str | Path, names: Collection[str]) -> dict[str, npt.NDArray[Any]]:
    """Read some arrays of an archive. The others are not looked at.

    Raises:
        MotionError: An array is damaged, or would need a pickle, which could run code.
    """
    return _read_present(path, archive_names(path), names)


def _read_present(
    path: str | Path, present: Collection[str], names: Collection[str]
) -> dict[str, npt.NDArray[Any]]:
    """Read those arrays of an archive with the names ``present`` that are among ``names``."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    with open(path, "rb") as file:
        archive = np.load(file, allow_pickle=False)
        for key in present:
            if key not in names:
                continue
            try:
                array = archive[key]
                if not isinstance(array, np.ndarray):
                    raise ValueError("it is not an array")
            except Exception as error:
                raise MotionError(
                    f"{path}: not a NumPy archive of plain arrays: field {key!r}: {error}"
                ) from error
            arrays[key] = array
    return arrays


def read_archive(path: str | Path, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Read an archive with exactly the keys of ``kinds``.

    Returns:
        Key → a float, bool, text, list of texts, or tensor. Tensors of numbers are float64.
    """
    # Every look at the names reads the headers of all arrays: one is enough.
    present = archive_names(path)
    arrays = _read_present(path, present, kinds)
    check_keys(present, tuple(kinds), str(path))
    content: dict[str, Any] = {}
    for key, kind in kinds.items():
        content[key] = convert_entry(arrays[key], key, kind, str(path))
    return content


def convert_entry(array: npt.NDArray[Any], key: str, kind: str, origin: str) -> Any:
    """Check an array and convert it to one value, a list of texts or a tensor.

    Args:
        array: The array.
        key: Its name in the file.
        kind: ``"number"``, ``"bool"`` or ``"text"`` for single values, plurals for arrays of them.
        origin: The file, for error messages.
    """
    # Only the kinds of single values are keys; a plural, such as "numbers", is an array.
    is_one = kind in DTYPE_KINDS
    if is_one:
        has_shape = array.size == 1
        expected = f"one {kind}"
    else:
        has_shape = array.ndim == 1 or kind == "numbers"
        expected = f"an array of {kind}"
    has_dtype = array.dtype.kind in DTYPE_KINDS[kind.removesuffix("s")]
    got = repr(array.item()) if array.size == 1 else f"{array.dtype} of shape {array.shape}"
    require(has_shape and has_dtype, origin, key, expected, got)
    if kind == "texts":
        return array.tolist()
    if kind in ("number", "numbers"):
        array = array.astype(np.float64)
    if is_one:
        return array.item()
    return torch.from_numpy(array)


def read_table(
    array: npt.NDArray[Any], key: str, origin: str, width: int | None = None
) -> torch.Tensor:
    """Convert an array with a row for each frame to a tensor. Shape: (T, width), float64.

    Args:
        array: The array.
        key: Its name in the file.
        origin: The file, for error messages.
        width: Number of columns. None: any.

    Raises:
        MotionError: The array has another shape, or does not hold numbers.
    """
    values: torch.Tensor = convert_entry(array, key, "numbers", origin)
    is_table = values.ndim == 2 and width in (None, values.shape[1])
    expected = f"of shape (T, {'J' if width is None else width})"
    require(is_table, origin, key, expected, tuple(values.shape))
    return values


def rate_of_user(reading: MotionReading, origin: str, keys: Collection[str]) -> float:
    """Return the frame rate of a file that does not contain it.

    Args:
        reading: Options of the user.
        origin: The file, for error messages.
        keys: Fields of which files of this format have one.

    Raises:
        MotionError: The user does not give it either.
    """
    if reading.rate is None:
        raise MotionError(
            f"{origin}: lacks field {' or '.join(map(repr, keys))}: give the frames per second "
            "with --motion.rate (rate=…)"
        )
    return reading.rate


def read_names(array: npt.NDArray[Any] | None) -> tuple[str, ...]:
    """Return the names in an array of texts. Empty: there is none.

    Programs put the name of the robot before a name, such as ``robot/left_knee_joint``.
    """
    if array is None or array.ndim != 1 or array.dtype.kind not in "US":
        return ()
    names = []
    for value in array.tolist():
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        names.append(text.rpartition("/")[2])
    return tuple(names)
