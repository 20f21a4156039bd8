"""Rods and pins of four-bar linkages, which a URDF leaves hanging."""

from pathlib import Path

import pytest
from dogs import dog, draft, joint, link


def linkage(kind: str = "continuous", pin_at: str = "0.05 0 -0.18", axis: str = "0 1 0") -> str:
    """A dog with a motor's horn at a hip, a rod of 0.18 m on it, and a pin of the rod at a calf."""
    rod = link("rod", 0.01, '<box size="0.01 0.01 0.2"/>', "0 0 -0.09", (1e-5,) * 3)
    rod = rod.replace("collision", "visual")
    # The calf's joint is 0.2 m below the thigh's.
    x, y, z = map(float, pin_at.split())
    parts = (
        joint("rod_joint", "FL_thigh", "rod", "0.05 0 0", kind=kind)
        + rod
        + joint("pin_joint", "FL_calf", "pin", f"{x} {y} {z + 0.2}", axis, kind=kind)
        + link("pin", 0.001, inertia=(1e-7,) * 3)
    )
    knee = 'lower="-2.5" upper="-0.5"'
    return dog().replace(knee, 'lower="-2.5" upper="0.5"').replace("</robot>", parts + "</robot>")


def test_a_rod_that_meets_a_pin_closes_a_loop(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="loop") as error:
        draft(linkage(), tmp_path)
    for part in ("'rod'", "'pin'", "'rod_joint'", "'pin_joint'", 'type="fixed"'):
        assert part in str(error.value)
    assert not list((tmp_path / "out").glob("*"))
    robot, _ = draft(linkage(kind="fixed"), tmp_path)
    assert robot.num_joints == 12


@pytest.mark.parametrize(
    "text",
    [
        linkage(pin_at="0.15 0 -0.18"),
        linkage(axis="1 0 0"),
        linkage(pin_at="0.05 0 -0.01"),
    ],
    ids=["elsewhere", "across", "at the same end"],
)
def test_free_links_that_do_not_meet_are_read(tmp_path: Path, text: str) -> None:
    robot, _ = draft(text, tmp_path)
    assert robot.num_joints == 14
