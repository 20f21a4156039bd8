"""Checks the sizes of arrays in a NumPy archive before any of them is read.

An archive of some kilobytes can hold gigabytes of zeros, and the header of an array can claim any
shape.
"""

import math
import zipfile
from pathlib import Path
from typing import IO

from numpy.lib import format as npy

LARGEST_ARCHIVE = 2**30
"""Largest size of all arrays of an archive, bytes. Half an hour of a G1 with its bodies has a third
of it."""


def check_array_sizes(path: str | Path) -> None:
    """Check that the arrays of an archive are as large as they claim, and small enough to be read.

    Raises:
        ValueError: If the file is not an archive, or an array is too large.
    """
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a zip file of arrays, as numpy.savez writes it")
    with zipfile.ZipFile(path) as archive:
        size = sum(info.file_size for info in archive.infolist())
        if size > LARGEST_ARCHIVE:
            raise ValueError(
                f"its arrays have {size:,} bytes, and at most {LARGEST_ARCHIVE:,} are read: "
                "cut the clip"
            )
        for info in archive.infolist():
            try:
                with archive.open(info) as member:
                    _check_array(info, member)
            # Damaged bytes make zipfile and NumPy raise more kinds of errors than can be named.
            except Exception as error:
                field = info.filename.removesuffix(".npy")
                raise ValueError(f"field {field!r}: {error}") from error


def _check_array(info: zipfile.ZipInfo, member: IO[bytes]) -> None:
    """Raise a ValueError if an array claims more elements than its bytes hold."""
    # NumPy reads a file that starts like an array, whatever its ending is.
    if member.read(len(npy.MAGIC_PREFIX)) != npy.MAGIC_PREFIX:
        return
    member.seek(0)
    is_first_version = npy.read_magic(member) == (1, 0)
    read_header = npy.read_array_header_1_0 if is_first_version else npy.read_array_header_2_0
    shape, _, dtype = read_header(member)
    # Python's integers: NumPy's integers have 64 bits, and a claim may have more.
    claimed = math.prod(shape) * dtype.itemsize
    held = info.file_size - member.tell()
    # Arrays of objects are refused later, with the reason.
    if claimed > held and not dtype.hasobject:
        raise ValueError(
            f"array {info.filename!r} claims the shape {shape} of {dtype}, {claimed:,} bytes, and "
            f"holds {held:,}: write the file again"
        )
