"""Shapes of URDF files that have no size, and files of xacro."""

import re
from pathlib import Path

import pytest
from robot_models import quadruped, shape, write_models

from legged_envs.cli.check import check_model_file
from legged_envs.robots.reading.draft import draft_robot


def with_shape(text: str, tag: str, kind: str, link: str = "FL_thigh") -> str:
    extra = f"<{tag}>{shape(kind)}</{tag}>"
    return text.replace(f'<link name="{link}">', f'<link name="{link}">{extra}')


@pytest.mark.parametrize(
    "kind",
    [
        'box size="0 0 0"',
        'box size="0.1 0.1"',
        'sphere radius="0"',
        'sphere radius="-1"',
        'cylinder radius="0" length="1"',
        'cylinder radius="0.1"',
    ],
)
def test_a_shape_without_size_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "dog.urdf"
    path.write_text(with_shape(quadruped(), "collision", kind))
    element = kind.split()[0]
    with pytest.raises(ValueError, match=rf"dog\.urdf.*'FL_thigh'.*<{element} .*take.*out"):
        draft_robot(path, "dog", tmp_path)
    path.write_text(quadruped())
    expected, _ = draft_robot(path, "dog", tmp_path)
    # In a visual it stands for no visual.
    text = with_shape(quadruped(), "visual", kind)
    path.write_text(with_shape(text, "visual", kind, link="FR_thigh"))
    robot, told = draft_robot(path, "dog", tmp_path)
    assert robot == expected
    assert re.search(r"'FL_thigh' \(.*'FR_thigh' \(", told["xml"])


def test_a_file_of_xacro_is_the_robot_that_it_expands_to(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    write_models(tmp_path)
    expected, notes = draft_robot(tmp_path / "dog.urdf", "dog", tmp_path / "a")
    text = quadruped().replace(
        '<robot name="dog">',
        '<robot name="dog" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:property name="trunk_mass" value="${2 * 4.0}"/>'
        '<xacro:include filename="rest.xacro"/>',
    )
    text = text.replace('<mass value="8.0"/>', '<mass value="${trunk_mass}"/>')
    # The axle of every hip comes from a macro of another file.
    text = text.replace('<axis xyz="1 0 0"/>', "<xacro:hip_axis/>")
    assert text.count("xacro:hip_axis") == 4 and "${trunk_mass}" in text
    rest = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="hip_axis">'
    rest += '<axis xyz="1 0 0"/></xacro:macro></robot>'
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "rest.xacro").write_text(rest)
    (folder / "dog.urdf.xacro").write_text(text)
    robot, gaps = draft_robot(folder / "dog.urdf.xacro", "dog", tmp_path / "b")
    assert set(gaps) == set(notes) and robot.kp == expected.kp and robot.mirror == expected.mirror
    assert Path(robot.xml).read_text() == Path(expected.xml).read_text()
    # By its name on the command line too.
    problems = check_model_file(folder / "dog.urdf.xacro", tmp_path / "dog_robot.py")
    expected_problems = check_model_file(tmp_path / "dog.urdf", None)
    assert problems == [text.replace(".urdf", ".urdf.xacro") for text in expected_problems]
    assert "FL_hip_joint" in (tmp_path / "dog_robot.py").read_text()
    (folder / "dog.urdf.xacro").write_text(text.replace("trunk_mass}", "no_mass}"))
    with pytest.raises(ValueError, match=r"dog\.urdf\.xacro.*no_mass"):
        draft_robot(folder / "dog.urdf.xacro", "dog", tmp_path / "c")


NAMESPACE = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
SUBCLASSES = "().__class__.__base__.__subclasses__()"


@pytest.mark.parametrize(
    "expression",
    [
        f"${{(lambda: {SUBCLASSES})()}}",
        f"${{[each for each in {SUBCLASSES}]}}",
        "${python.vars(python.type(python.type(1)))}",
        "${(each for each in [1]).gi_frame}",
        "${'%s'.format(1)}",
        "$(eval open('made', 'w').write('code ran'))",
    ],
)
def test_an_expression_of_xacro_only_calculates(
    expression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xacro")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "dog.urdf.xacro"
    path.write_text(f'<robot {NAMESPACE}><link name="{expression}"/></robot>')
    with pytest.raises(ValueError, match=r"xacro cannot expand it.*(could run code|uses)"):
        draft_robot(path, "dog", tmp_path / "a")
    assert not (tmp_path / "made").exists()


def test_values_of_xacro_are_expanded_without_its_elements(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    write_models(tmp_path)
    plain, _ = draft_robot(tmp_path / "dog.urdf", "dog", tmp_path / "a")
    path = tmp_path / "sum.urdf"
    masses = ('<mass value="8.0"/>', '<mass value="${5.0 + max(3.0, 1)}"/>')
    path.write_text(quadruped().replace(*masses))
    summed, _ = draft_robot(path, "dog", tmp_path / "b")
    assert Path(summed.xml).read_text() == Path(plain.xml).read_text()
    path.write_text(quadruped().replace(masses[0], '<mass value="$(arg mass)"/>'))
    with pytest.raises(ValueError, match=r"xacro cannot expand it.*mass"):
        draft_robot(path, "dog", tmp_path / "c")


def test_xacro_has_bounded_memory(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    path = tmp_path / "dog.urdf.xacro"
    path.write_text(f"<robot {NAMESPACE}><link name=\"${{len('a' * 10**10)}}\"/></robot>")
    with pytest.raises(ValueError, match="bytes of memory"):
        draft_robot(path, "dog", tmp_path / "a")
