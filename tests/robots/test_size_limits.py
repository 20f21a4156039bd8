"""Robot files that describe more than fits in memory are refused from their text."""

from __future__ import annotations

import resource
import struct
import zlib
from pathlib import Path

import pytest

from legged_envs import cli
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.robots.reading.meshes import find_mesh
from legged_envs.robots.reading.size_limits import check_model_size


def png(width: int, height: int) -> bytes:
    """A picture of zeros, which unpacks to ``width`` × ``height`` bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(width + 1)) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


BODY = '<body><freejoint/><geom size="0.1"/></body>'
ROBOTS = {
    "replicate": f'<mujoco><worldbody><replicate count="1000000">{BODY}</replicate></worldbody></mujoco>',
    "nested replicate": (
        '<mujoco><worldbody><replicate count="1000"><replicate count="1e3">'
        f"{BODY}</replicate></replicate></worldbody></mujoco>"
    ),
    "composite": '<mujoco><worldbody><body><composite count="300 300 300"/></body></worldbody></mujoco>',
    "hfield": '<mujoco><asset><hfield name="h" nrow="100000" ncol="100000"/></asset></mujoco>',
    "texture": '<mujoco><asset><texture name="t" width="99999" height="99999"/></asset></mujoco>',
    "size": '<mujoco><size memory="900G"/></mujoco>',
    "nuserdata": '<mujoco><size nuserdata="9000000000"/></mujoco>',
    "include": '<mujoco><include file="other.xml"/></mujoco>',
    "hfield file": '<mujoco><asset><hfield name="h" file="h.hf"/></asset></mujoco>',
    "picture": '<mujoco><asset><texture name="t" file="t.png"/></asset></mujoco>',
    "deep": '<robot name="x">' + '<link name="a">' * 20_000 + "</link>" * 20_000 + "</robot>",
    "many": '<robot name="x">' + "<a/>" * 200_001 + "</robot>",
    "word": '<mujoco><worldbody><replicate count="many"/></worldbody></mujoco>',
}
NAMED = {
    "replicate": "1,000,000",
    "nested replicate": "1,000,000",
    "composite": "27,000,000",
    "hfield": "hfield.*10,000,000,000",
    "texture": "texture.*9,999,800,001",
    "size": "memory='900G'",
    "nuserdata": "nuserdata",
    "include": r"other\.xml.*1,000,000",
    "hfield file": r"h\.hf.*10,000,000,000",
    "picture": r"t\.png.*169,000,000",
    "deep": "201",
    "many": "200,000",
    "word": "count.*many",
}


@pytest.mark.parametrize("case", ROBOTS)
def test_a_robot_that_fills_the_memory_is_one_line(case: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "other.xml").write_text(ROBOTS["replicate"])
    (tmp_path / "h.hf").write_bytes(struct.pack("<ii", 100_000, 100_000))
    (tmp_path / "t.png").write_bytes(png(13_000, 13_000)[:1000])
    path = tmp_path / ("robot.urdf" if case in ("deep", "many") else "robot.xml")
    path.write_text(ROBOTS[case])
    with pytest.raises(ValueError, match=NAMED[case]):
        check_model_size(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SystemExit, match="2"):
        cli.main(["check", str(path)])
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    # KiB: nothing of what the file asks for was made.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_robots_of_the_package_are_far_below_the_bounds() -> None:
    from legged_envs.robots import ROBOTS as SHIPPED

    for robot in SHIPPED.values():
        check_model_size(Path(robot.path))


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.xml").write_text(f'<mujoco><include file="{other}.xml"/></mujoco>')
    check_model_size(tmp_path / "a.xml")


@pytest.mark.parametrize("is_loop", [False, True])
def test_a_chain_of_links_without_an_end_is_refused(is_loop: bool, tmp_path: Path) -> None:
    count = 3000
    text = "".join(f'<link name="l{i}"/>' for i in range(count))
    for i in range(count if is_loop else count - 1):
        ends = f'<parent link="l{i}"/><child link="l{(i + 1) % count}"/>'
        text += f'<joint name="j{i}" type="fixed">{ends}</joint>'
    path = tmp_path / "chain.urdf"
    path.write_text(f'<robot name="chain">{text}</robot>')
    with pytest.raises(ValueError, match=r"'l\d+' is at the end of a chain of more than 200 links"):
        draft_robot(path, "chain", tmp_path / "out")


@pytest.mark.parametrize("option", ["meshdir", "assetdir"])
def test_meshes_in_the_folders_of_the_compiler_are_checked(option: str, tmp_path: Path) -> None:
    folder = tmp_path / "assets"
    folder.mkdir()
    with (folder / "large.stl").open("wb") as file:
        file.truncate(2**30)
    robot = tmp_path / "robot.xml"
    robot.write_text(
        f'<mujoco><asset><mesh name="m" file="large.stl"/></asset><compiler {option}="assets"/></mujoco>'
    )
    with pytest.raises(ValueError, match=r"large\.stl' has 1,073,741,824 bytes"):
        check_model_size(robot)
    with pytest.raises(ValueError, match=r"large\.stl' has 1,073,741,824 bytes"):
        find_mesh("package://robot/assets/large.stl", tmp_path, "")
    # The folder of one file holds for all, and MuJoCo may leave out the folder of a name.
    part = '<mujocoinclude><asset><mesh name="m" file="other/large.stl"/></asset></mujocoinclude>'
    (tmp_path / "part.xml").write_text(part)
    robot.write_text(
        f'<mujoco><compiler {option}="assets" strippath="true"/><include file="part.xml"/></mujoco>'
    )
    with pytest.raises(ValueError, match=r"large\.stl' has 1,073,741,824 bytes"):
        check_model_size(robot)
