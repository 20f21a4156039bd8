"""A dog of 12 joints as URDF text, with the variations that other people's files have."""

import struct
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

from legged_envs.robots import RobotCfg
from legged_envs.robots.reading.draft import draft_robot

LEGS = {"FL": (0.18, 0.1), "FR": (0.18, -0.1), "RL": (-0.18, 0.1), "RR": (-0.18, -0.1)}
MASSLESS_ROOT = '<link name="base"/>'
WELD = '<joint name="weld" type="fixed"><parent link="base"/><child link="trunk"/></joint>'
BOX = '<box size="0.4 0.2 0.1"/>'
SPHERE = '<sphere radius="0.02"/>'


def link(name: str, mass: float, shape: str = "", at: str = "0 0 0", inertia=(1e-3,) * 3) -> str:
    xx, yy, zz = inertia
    tensor = f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
    own = f'<inertial><origin xyz="{at}"/><mass value="{mass}"/>{tensor}</inertial>'
    if shape:
        own += f'<collision><origin xyz="{at}"/><geometry>{shape}</geometry></collision>'
    return f'<link name="{name}">{own}</link>\n'


def joint(name, parent, child, at, axis="0 1 0", low=-1.0, high=2.0, kind="revolute") -> str:
    limit = f'<limit lower="{low}" upper="{high}" effort="30" velocity="20"/>'
    if kind == "continuous":
        limit = '<limit effort="30" velocity="20"/>'
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}<axis xyz="{axis}"/>{limit}</joint>\n'


def leg_names(leg: str, part: str) -> str:
    return f"{leg}_{part}"


def dog(
    root: str = "",
    base: str = "trunk",
    base_mass: float = 6.0,
    thigh_inertia=(0.004, 0.004, 5e-4),
    thigh_kind: str = "revolute",
    name: Callable[[str, str], str] = leg_names,
    foot: str = SPHERE,
    foot_kind: str = "fixed",
) -> str:
    """The dog: a trunk and four legs of hip, thigh, calf and foot."""
    text = root + link(base, base_mass, BOX, inertia=(0.05, 0.1, 0.1))
    for leg, (x, y) in LEGS.items():
        hip, thigh, calf, sole = (name(leg, part) for part in ("hip", "thigh", "calf", "foot"))
        out = 0.08 if y > 0 else -0.08
        text += joint(f"{hip}_joint", base, hip, f"{x} {y} 0", "1 0 0", -0.8, 0.8)
        text += link(hip, 0.5)
        text += joint(f"{thigh}_joint", hip, thigh, f"0 {out} 0", kind=thigh_kind)
        text += link(thigh, 0.8, '<box size="0.03 0.03 0.2"/>', "0 0 -0.1", thigh_inertia)
        text += joint(f"{calf}_joint", thigh, calf, "0 0 -0.2", low=-2.5, high=-0.5)
        rod = '<cylinder radius="0.01" length="0.2"/>'
        text += link(calf, 0.2, rod, "0 0 -0.1", (1e-3, 1e-3, 1e-4))
        text += joint(f"{sole}_joint", calf, sole, "0 0 -0.2", kind=foot_kind)
        text += link(sole, 0.05, foot, inertia=(1e-5,) * 3)
    return f'<robot name="dog">{text}</robot>'


def draft(text: str, folder: Path, ending: str = "urdf") -> tuple[RobotCfg, dict[str, str]]:
    """The robot of a file with this text, and its gaps."""
    path = folder / f"file.{ending}"
    path.write_text(text)
    return draft_robot(path, "mine", folder / "out")


def stl_box(*size: float) -> bytes:
    """A box around the origin as a binary STL file."""
    corners = np.array(list(product((-0.5, 0.5), repeat=3))) * size
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
    faces += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
    data = bytes(80) + struct.pack("<I", len(faces))
    for face in faces:
        data += struct.pack("<12f2x", 0.0, 0.0, 0.0, *corners[list(face)].ravel())
    return data
