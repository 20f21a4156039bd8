"""Robot files in other units, and names and frames with a meaning of their own."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from dogs import MASSLESS_ROOT, WELD, dog, draft


def scale_lengths(factor: float) -> str:
    """Return the text of a dog with all lengths in another unit."""

    def scale(match: re.Match[str]) -> str:
        numbers = [str(factor * float(number)) for number in match[2].split()]
        return f'{match[1]}="{" ".join(numbers)}"'

    text = dog()
    for attribute in ("<origin xyz", "size", "radius", "length"):
        text = re.sub(f'({attribute})="([^"]*)"', scale, text)
    return text


@pytest.mark.parametrize("factor", [1000.0, 100.0, 39.37])
def test_a_robot_whose_lengths_are_not_in_metres_is_refused(tmp_path: Path, factor: float) -> None:
    with pytest.raises(ValueError, match="metres"):
        draft(scale_lengths(factor), tmp_path)


def test_a_range_in_degrees_that_excludes_0_is_named(tmp_path: Path) -> None:
    text = dog().replace('lower="-2.5" upper="-0.5"', 'lower="-143" upper="-29"')
    with pytest.raises(ValueError, match=r"'FL_calf_joint'.*degrees"):
        draft(text, tmp_path)


@pytest.mark.parametrize("height", [0.402, 0.5, 0.39])
def test_a_footprint_on_the_ground_is_not_the_base(tmp_path: Path, height: float) -> None:
    plain, _ = draft(dog(), tmp_path)
    (tmp_path / "other").mkdir()
    weld = WELD.replace("</joint>", f'<origin xyz="0 0 {height}" rpy="0 0 0"/></joint>')
    robot, gaps = draft(dog(root=MASSLESS_ROOT + weld), tmp_path / "other")
    assert robot.base_height == pytest.approx(plain.base_height, abs=1e-4)
    assert len(robot.foot_names) == 4 and robot.kp == plain.kp
    assert f"{height:g}) m to 'trunk'" in gaps["xml"]


def test_a_root_above_the_trunk_stays_where_it_is(tmp_path: Path) -> None:
    weld = WELD.replace("</joint>", '<origin xyz="0 0 -0.1"/></joint>')
    robot, gaps = draft(dog(root=MASSLESS_ROOT + weld), tmp_path)
    assert robot.base_height == pytest.approx(0.5021, abs=1e-3)
    assert "without mass" not in gaps["xml"]


def test_a_trunk_called_world_is_no_ground(tmp_path: Path) -> None:
    robot, gaps = draft(dog(base="world"), tmp_path)
    assert robot.base_body == "world_link" and robot.num_joints == 12
    assert "'world_link'" in gaps["xml"]


@pytest.mark.parametrize(
    "rename",
    [
        lambda leg, part: f"{part}{['FL', 'FR', 'RL', 'RR'].index(leg)}",
        lambda leg, part: f"/robot/{leg}/{part}",
        lambda leg, part: f"{leg}.*[{part}](+",
        lambda leg, part: f"{leg}&quot;&#10;import os&#10;{part} ü",
        lambda leg, part: ("vorne_" if leg[0] == "F" else "hinten_") + f"{leg[1].lower()}_{part}",
        lambda leg, part: f"{leg.translate(str.maketrans('LR', 'RL'))}_{part}",
    ],
    ids=["numbers", "paths", "regular expressions", "code", "German", "wrong sides"],
)
def test_odd_names_are_names(tmp_path: Path, rename: Callable[[str, str], str]) -> None:
    plain, _ = draft(dog(), tmp_path)
    (tmp_path / "other").mkdir()
    robot, _ = draft(dog(name=rename), tmp_path / "other")
    partners = [robot.joint_names.index(partner) for partner, _ in robot.mirror]
    expected = [plain.joint_names.index(partner) for partner, _ in plain.mirror]
    assert partners == expected
    assert [sign for _, sign in robot.mirror] == [sign for _, sign in plain.mirror]
    assert robot.default_joint_pos == plain.default_joint_pos


def test_a_joint_called_root_must_have_another_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="joint 'root' of body 'FL_hip'"):
        draft(dog().replace('"FL_hip_joint"', '"root"'), tmp_path)
