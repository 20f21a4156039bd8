"""Archives of motions with arrays that contradict their headers or sizes."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy

from legged_envs.motions import MotionError
from legged_envs.motions.formats.archives import archive_names, read_arrays


def header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


def pack(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


@pytest.mark.parametrize("shape", [(10**6, 10**6), (2**40, 2**40), (100, 3)])
def test_an_array_that_claims_more_than_its_bytes_is_named(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    path = pack(tmp_path / "clip.npz", joint_pos=header(shape) + bytes(2392))
    with pytest.raises(MotionError, match=rf"clip\.npz.*joint_pos.*{shape[0]}.*2,392"):
        read_arrays(path, ["joint_pos"])


def test_gigabytes_of_packed_zeros_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "clip.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("joint_pos.npy", "w", force_zip64=True) as file,
    ):
        file.write(header((2**27 + 10,)))
        for _ in range(65):
            file.write(bytes(2**24))
    assert path.stat().st_size < 2**24
    with pytest.raises(MotionError, match=r"clip\.npz.*1,090,519,\d+ bytes"):
        archive_names(path)


def test_arrays_of_all_versions_of_the_header_and_other_members_are_read(tmp_path: Path) -> None:
    path = tmp_path / "clip.npz"
    arrays = {"fps": np.array(50.0), "joint_pos": np.arange(6.0).reshape(2, 3)}
    np.savez(path, **arrays)
    long = io.BytesIO()
    npy.write_array_header_2_0(long, {"descr": "<f8", "fortran_order": False, "shape": (2,)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("names.npy", long.getvalue() + np.array([1.0, 2.0]).tobytes())
        archive.writestr("readme.txt", "no array")
    read = read_arrays(path, ["fps", "joint_pos", "names"])
    assert read["fps"] == 50.0 and read["names"].tolist() == [1.0, 2.0]
    assert read["joint_pos"].tolist() == arrays["joint_pos"].tolist()
