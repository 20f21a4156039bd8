"""Unpickles NumPy arrays and plain types, and nothing else, so that no file can run code.

It also reads the files of joblib, which puts the bytes of each array behind its description.
"""

import io
import math
import pickle
import zlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from legged_envs.motions.motion import MotionError

LARGEST_CONTENT = 4 * 1024**3
"""Largest size of a decompressed file, bytes."""
COMPRESSED = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda", b"\x1f\x8b")
"""First bytes of files that joblib has compressed with zlib or gzip."""
DTYPE_KINDS = "biufSU"
"""Codes ``numpy.dtype.kind`` of arrays that are read: numbers, bools and texts."""
ALIGNMENT = "numpy_array_alignment_bytes"
"""Field of joblib's arrays. With it, a byte and padding stand before the bytes of an array."""


class JoblibArray:
    """An array of a joblib file. Its bytes follow the description in the file."""

    def __init__(self) -> None:
        self.array = np.zeros(0)
        """The array, after :meth:`read`."""

    def read(self, state: dict[str, Any], file: io.BytesIO) -> None:
        """Read the bytes of the array.

        Args:
            state: Description of the array by joblib: shape, order and dtype.
            file: The file; its next byte belongs to the array.
        """
        dtype = np.dtype(state["dtype"])
        shape = tuple(int(size) for size in state["shape"])
        if dtype.kind not in DTYPE_KINDS or min(shape, default=0) < 0:
            raise pickle.UnpicklingError(f"an array has dtype {dtype} and shape {shape}")
        if state.get(ALIGNMENT) is not None:
            padding = file.read(1)
            file.read(padding[0] if padding else 0)
        # The file, not the description, bounds the memory.
        content = file.read(math.prod(shape) * dtype.itemsize)
        self.array = _shaped(content, dtype, shape, state.get("order") == "F")


class ArrayKind:
    """Stands for ``numpy.ndarray`` in the arguments of a pickle. It makes no arrays."""


def _empty_array(kind: type, shape: object, code: object) -> np.ndarray:
    """Return an array without elements, which the next instruction of a pickle fills."""
    return np.zeros(0)


def _array_of_buffer(content: bytes, dtype: Any, shape: Any, order: str) -> np.ndarray:
    return _shaped(content, dtype, shape, order == "F")


def _shaped(content: bytes, dtype: Any, shape: tuple[int, ...], is_fortran: bool) -> np.ndarray:
    """Return the array in some bytes, in Fortran's or C's order."""
    array = np.frombuffer(content, dtype)
    if is_fortran:
        return array.reshape(shape[::-1]).T
    return array.reshape(shape)


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """Return the bytes that old pickles hold as a text."""
    return text.encode("latin1")


def _scalar(dtype: np.dtype, content: bytes) -> Any:
    return np.frombuffer(content, dtype)[0]


ALLOWED = {
    "_reconstruct": _empty_array,
    "_frombuffer": _array_of_buffer,
    "scalar": _scalar,
    "ndarray": ArrayKind,
    "dtype": np.dtype,
}
"""Names of NumPy's modules that a pickle of arrays has, and what stands for each here."""


class SafeUnpickler(pickle._Unpickler):  # The other one, in C, lets a file take any memory.
    """An unpickler that makes plain types, arrays and dtypes, and calls nothing else.

    Args:
        file: The whole file.
    """

    stack: list[Any]
    """Values that instructions of the pickle have put down."""
    memo: dict[int, Any]
    """Values that later instructions refer to, by number."""

    def __init__(self, file: io.BytesIO):
        super().__init__(file)
        self.content = file
        """The file."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a global name of a pickle.

        Raises:
            UnpicklingError: A pickle of arrays does not need the name.
        """
        if module.partition(".")[0] == "numpy" and name in ALLOWED:
            return ALLOWED[name]
        if (module, name) == ("_codecs", "encode"):
            return _encode
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("joblib.numpy_pickle", "NumpyArrayWrapper"):
            return JoblibArray
        raise pickle.UnpicklingError(
            f"it needs {module}.{name}, but only NumPy arrays and plain types are read"
        )

    def persistent_load(self, pid: Any) -> Any:
        """Refuse references to things outside of the file.

        Raises:
            UnpicklingError: Always.
        """
        raise pickle.UnpicklingError("it refers to something outside of the file")

    def load_build(self) -> None:
        """Fill the array or dtype below the topmost value with that value."""
        state = self.stack.pop()
        target = self.stack[-1]
        if isinstance(target, JoblibArray):
            target.read(state, self.content)
        elif isinstance(target, np.ndarray):
            # version, shape, dtype, is Fortran's order, bytes
            _, shape, dtype, is_fortran, content = state
            if np.dtype(dtype).kind not in DTYPE_KINDS:
                raise pickle.UnpicklingError(f"an array has dtype {dtype}")
            data = content.encode("latin1") if isinstance(content, str) else content
            self._replace(target, _shaped(data, dtype, shape, is_fortran))
        elif isinstance(target, np.dtype):
            target.__setstate__(state)  # type: ignore[attr-defined]
        else:
            raise pickle.UnpicklingError(f"it changes a {type(target).__name__}")

    dispatch: ClassVar[dict[int, Callable[..., None]]] = {
        **pickle._Unpickler.dispatch,
        pickle.BUILD[0]: load_build,
    }
    """Method of each instruction of a pickle."""

    def _replace(self, old: np.ndarray, new: np.ndarray) -> None:
        self.stack[-1] = new
        # Later references to the array find it by its number.
        for number, value in self.memo.items():
            if value is old:
                self.memo[number] = new


def load_plain(path: Path) -> Any:
    """Return the content of a pickle or joblib file of plain types and NumPy arrays.

    Raises:
        MotionError: The file is damaged, or holds anything else.
    """
    data = path.read_bytes()
    try:
        if data[:2] in COMPRESSED:
            # The largest window, and zlib's or gzip's header.
            decompressor = zlib.decompressobj(wbits=47)
            data = decompressor.decompress(data, LARGEST_CONTENT)
            if not decompressor.eof:
                raise pickle.UnpicklingError("it is cut off, or larger than 4 GB")
        return _without_wrappers(SafeUnpickler(io.BytesIO(data)).load(), {})
    # Damaged bytes make pickle and NumPy raise any kind of error.
    except Exception as error:
        raise MotionError(
            f"{path}: not a pickle of NumPy arrays and plain types: "
            f"{error or type(error).__name__}: save the arrays with numpy.savez instead"
        ) from error


def _without_wrappers(value: Any, done: dict[int, Any]) -> Any:
    """Return a value with the arrays instead of joblib's descriptions of them.

    Args:
        value: The value.
        done: Results by ``id``: a small file can refer to one list very often.
    """
    if isinstance(value, JoblibArray):
        return value.array
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, dict):
        result: Any = {key: _without_wrappers(item, done) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        result = [_without_wrappers(item, done) for item in value]
    else:
        return value
    done[id(value)] = result
    return result
