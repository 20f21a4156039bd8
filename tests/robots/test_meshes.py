"""Meshes as people have them: moved, flat, huge, pointers of Git LFS, COLLADA; and inertias."""

import re
import struct
from pathlib import Path

import mujoco
import numpy as np
import pytest
from dogs import SPHERE, dog, draft

from legged_envs.robots.reading.draft import draft_robot
from legged_envs.robots.reading.inertia import possible_moments
from legged_envs.robots.reading.meshes import find_mesh, mend_meshes

BOX = '<box size="0.03 0.03 0.2"/>'
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "7" * 64 + "\nsize 164128\n"
TETRAHEDRON = ((0, 0, 0), (0.02, 0, 0), (0, 0.02, 0), (0, 0, 0.02))
FACES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


def stl(corners, faces) -> bytes:
    parts = [b"\0" * 80 + struct.pack("<I", len(faces))]
    for face in faces:
        places = [value for corner in face for value in corners[corner]]
        parts.append(struct.pack("<12fH", 0, 0, 0, *places, 0))
    return b"".join(parts)


def with_visual(name: str) -> str:
    visual = f'<visual><geometry><mesh filename="{name}"/></geometry></visual>'
    return dog().replace('<link name="FL_thigh">', f'<link name="FL_thigh">{visual}', 1)


def test_a_flat_visual_is_drawn_and_one_that_cannot_be_drawn_is_told(tmp_path: Path) -> None:
    flat = ((0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0.1, 0.1, 0))
    (tmp_path / "label.stl").write_bytes(stl(flat, ((0, 1, 2), (1, 3, 2))))
    robot, gaps = draft(with_visual("label.stl"), tmp_path)
    model = mujoco.MjModel.from_xml_path(robot.xml)
    told = gaps.get("xml", "")
    assert model.nmesh == 1 or "label.stl" in told
    assert model.body("FL_thigh").mass[0] == pytest.approx(0.8)
    line = ((0, 0, 0), (0.1, 0, 0), (0.2, 0, 0))
    (tmp_path / "label.stl").write_bytes(stl(line, ((0, 1, 2),)))
    robot, gaps = draft(with_visual("label.stl"), tmp_path)
    assert mujoco.MjModel.from_xml_path(robot.xml).nmesh == 0 and "label.stl" in gaps["xml"]


def test_huge_meshes_are_left_out_if_seen_and_hulls_if_collided_with(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    faces = FACES * 50_001
    (tmp_path / "huge.stl").write_bytes(stl(TETRAHEDRON, faces))
    robot, gaps = draft(with_visual("huge.stl"), tmp_path)
    assert mujoco.MjModel.from_xml_path(robot.xml).nmesh == 0 and "'huge.stl'" in gaps["xml"]
    robot, _ = draft(dog().replace(SPHERE, '<mesh filename="huge.stl"/>'), tmp_path)
    model = mujoco.MjModel.from_xml_path(robot.xml)
    assert model.nmesh > 0 and model.mesh_vertnum[0] == 4


@pytest.mark.parametrize("shape", ["visual", "collision"])
def test_pointers_of_git_lfs_are_told(shape: str, tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_text(POINTER)
    if shape == "visual":
        _, gaps = draft(with_visual("part.stl"), tmp_path)
        assert re.search("part.stl.*git lfs pull", gaps["xml"])
        return
    with pytest.raises(ValueError, match=r"'part.stl'.*git lfs pull"):
        draft(dog().replace(BOX, '<mesh filename="part.stl"/>'), tmp_path)
    with pytest.raises(ValueError, match=r"file.urdf.*git lfs pull"):
        draft(POINTER, tmp_path)


def test_collada_is_read_where_the_robot_collides(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("collada")
    box = trimesh.creation.box((0.03, 0.03, 0.2))
    (tmp_path / "part.dae").write_bytes(box.export(file_type="dae"))
    robot, _ = draft(dog().replace(BOX, '<mesh filename="part.dae"/>'), tmp_path)
    model = mujoco.MjModel.from_xml_path(robot.xml)
    extent = np.ptp(model.mesh_vert[: model.mesh_vertnum[0]], axis=0)
    assert sorted(extent) == pytest.approx([0.03, 0.03, 0.2], abs=1e-4)
    (tmp_path / "part.dae").write_text("<COLLADA/>")
    with pytest.raises(ValueError, match=r"part.dae"):
        draft(dog().replace(BOX, '<mesh filename="part.dae"/>'), tmp_path)


def test_collada_is_drawn_from_a_file_next_to_the_model(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    pytest.importorskip("collada")
    box = trimesh.creation.box((3.0, 2.0, 1.0))
    text = box.export(file_type="dae").decode()
    assert text.count("<asset>") == 1
    text = text.replace("<asset>", '<asset><unit name="centimeter" meter="0.01"/>')
    (tmp_path / "part.dae").write_text(text)
    # Two materials of one visual, as in Unitree's B2.
    two = '<material name="a"/><material name="b"/></visual>'
    urdf = with_visual("part.dae").replace("</visual>", two)
    (tmp_path / "dog.urdf").write_text(urdf)
    _, gaps = draft_robot(tmp_path / "dog.urdf", "mine", tmp_path / "out")
    assert "part.dae" not in gaps.get("xml", "")
    assert len(list((tmp_path / "out" / "mine_meshes").glob("*.stl"))) == 1
    # The folder can be moved.
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "elsewhere" / "mine.xml"))
    extent = np.ptp(model.mesh_vert[: model.mesh_vertnum[0]], axis=0)
    assert sorted(extent) == pytest.approx([0.01, 0.02, 0.03], abs=1e-4)
    # Only drawn: the mass is the same, and nothing collides with it.
    plain, _ = draft(dog(), tmp_path)
    without = mujoco.MjModel.from_xml_path(plain.xml)
    assert model.body_subtreemass[1] == pytest.approx(without.body_subtreemass[1])
    assert model.geom_conaffinity.sum() == without.geom_conaffinity.sum()


def test_collada_that_cannot_be_drawn_is_told(tmp_path: Path) -> None:
    pytest.importorskip("collada")
    (tmp_path / "part.dae").write_text("<COLLADA/>")
    _, gaps = draft(with_visual("part.dae"), tmp_path)
    assert "'part.dae'" in gaps["xml"]
    assert not (tmp_path / "mine_meshes").exists()


def test_visuals_that_are_missing_for_one_reason_are_one_sentence(tmp_path: Path) -> None:
    text = dog()
    for leg in ("FL", "FR", "RL", "RR"):
        visual = f'<visual><geometry><mesh filename="{leg}.stl"/></geometry></visual>'
        text = text.replace(f'<link name="{leg}_calf">', f'<link name="{leg}_calf">{visual}')
    _, gaps = draft(text, tmp_path)
    assert gaps["xml"].count("no such file") == 1
    assert all(f"'{leg}.stl'" in gaps["xml"] for leg in ("FL", "FR", "RL", "RR"))


@pytest.mark.parametrize(
    ("filename", "mesh_folder", "place"),
    [
        ("package://robot/meshes/a.stl", "", "meshes/a.stl"),
        ("package://robot/meshes/a.stl", "", "urdf/meshes/a.stl"),
        ("package://robot/meshes/a.stl", "", "urdf/a.stl"),
        ("meshes/a.stl", "meshes", "urdf/meshes/a.stl"),
        ("a.stl", "../meshes", "meshes/a.stl"),
        ("meshes/a.stl", "", "meshes/a.stl"),
        ("/home/me/ws/src/robot/meshes/a.stl", "", "meshes/a.stl"),
        ("..\\meshes\\a.stl", "", "meshes/a.stl"),
        ("file:///home/me/robot/meshes/a.stl", "", "urdf/a.stl"),
    ],
)
def test_meshes_are_found_where_people_put_them(
    filename: str, mesh_folder: str, place: str, tmp_path: Path
) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(stl(TETRAHEDRON, FACES))
    folder = tmp_path / "urdf"
    folder.mkdir(exist_ok=True)
    found = find_mesh(filename, folder, mesh_folder)
    assert found is not None and found.resolve() == file


def test_the_end_of_a_path_is_longer_than_a_name(tmp_path: Path) -> None:
    for kind in ("visual", "collision"):
        (tmp_path / "meshes" / kind).mkdir(parents=True)
        (tmp_path / "meshes" / kind / "a.stl").write_text(kind)
    (tmp_path / "a.stl").write_text("other")
    found = find_mesh("/old/place/meshes/collision/a.stl", tmp_path, "")
    assert found is not None and found.read_text() == "collision"


def test_an_mjcf_with_meshes_that_are_missing(tmp_path: Path) -> None:
    text = Path(draft(dog(), tmp_path)[0].xml).read_text()
    asset = '<asset><mesh name="gone" file="gone.stl"/></asset><worldbody>'
    text = text.replace("<worldbody>", asset, 1)
    seen = '<geom type="mesh" mesh="gone" contype="0" conaffinity="0"/>'
    (tmp_path / "gone.stl").write_text(POINTER)
    body = '<body name="FL_thigh"'
    at = text.index(">", text.index(body)) + 1
    _, gaps = draft(text[:at] + seen + text[at:], tmp_path, "xml")
    assert re.search("gone.stl.*git lfs pull", gaps["xml"])
    collides = seen.replace('contype="0" conaffinity="0"', "")
    with pytest.raises(ValueError, match=r"gone.stl.*git lfs pull"):
        draft(text[:at] + collides + text[at:], tmp_path, "xml")


@pytest.mark.parametrize("ending", ["urdf", "xml"])
def test_an_inertia_that_no_body_has_is_mended_and_told(ending: str, tmp_path: Path) -> None:
    impossible = (0.01, 0.002, 0.003)
    text = dog(thigh_inertia=impossible)
    if ending == "xml":
        text = Path(draft(dog(), tmp_path)[0].xml).read_text()
        at = text.index("diaginertia", text.index('name="FL_thigh"'))
        old = text[at : text.index("/>", at)]
        text = text.replace(old, 'diaginertia="0.01 0.002 0.003"', 1)
    robot, gaps = draft(text, tmp_path, ending)
    assert "'FL_thigh'" in gaps["xml"]
    model = mujoco.MjModel.from_xml_path(robot.xml)
    expected = sorted(possible_moments(np.array(sorted(impossible))))
    assert sorted(model.body("FL_thigh").inertia) == pytest.approx(expected, rel=1e-3)
    assert max(expected) == 0.01 and sum(expected) == pytest.approx(0.02, rel=1e-3)


def test_meshes_that_compile_are_left_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_bytes(stl(TETRAHEDRON, FACES))
    spec = mujoco.MjSpec()
    mesh = spec.add_mesh(name="a", file=str(tmp_path / "a.stl"))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="a")
    before = mesh.inertia
    notes: list[str] = []
    mend_meshes(spec, notes)
    assert notes == [] and spec.meshes[0].inertia == before


def test_a_mesh_without_volume_collides_as_its_hull(tmp_path: Path) -> None:
    # Each face is there from both sides, with normals, as modelling programs write it.
    lines = [f"v {x} {y} {z}" for x, y, z in TETRAHEDRON]
    lines += ["vn 0 0 1", "vn 0 0 -1"]
    for a, b, c in FACES:
        lines.append(f"f {a + 1}//1 {b + 1}//1 {c + 1}//1")
        lines.append(f"f {c + 1}//2 {b + 1}//2 {a + 1}//2")
    (tmp_path / "foot.obj").write_text("\n".join(lines))
    robot, _ = draft(dog(foot='<mesh filename="foot.obj"/>'), tmp_path)
    model = mujoco.MjModel.from_xml_path(robot.xml)
    assert len(robot.foot_names) == 4
    geom = model.body(robot.foot_names[0]).geomadr[0]
    assert model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH
    np.testing.assert_allclose(model.geom_rbound[geom], 0.02, atol=0.006)
