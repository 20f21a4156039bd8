"""The rooms of the house: what each may import, and that imports point down."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import legged_envs

ROOT = Path(legged_envs.__file__).parent
RL_LIBRARIES = (
    "stable_baselines3",
    "rsl_rl",
    "skrl",
    "rl_games",
    "omnisafe",
    "pettingzoo",
    "torchrl",
    "tensordict",
)
FORBIDDEN = {
    "checks": ("gymnasium", "torch", "mujoco", "numpy"),
    "configuration": ("gymnasium", "torch", "mujoco", "numpy"),
    "state": ("gymnasium", "mujoco"),
    "rng": ("gymnasium", "mujoco"),
    "rotation": ("gymnasium", "mujoco"),
    "robots": ("gymnasium", "torch", "mujoco", "legged_envs.sim", "legged_envs.mdp"),
    "terrains": ("gymnasium", "torch", "mujoco", "legged_envs.sim", "legged_envs.mdp"),
    "terrains.cfg": ("gymnasium", "torch", "mujoco", "numpy"),
    "storage": ("gymnasium", "mujoco", "legged_envs.envs", *RL_LIBRARIES),
    "sim": ("gymnasium", "mujoco", "legged_envs.mdp", "legged_envs.managers", *RL_LIBRARIES),
    "motions": ("gymnasium", "mujoco", "legged_envs.mdp", *RL_LIBRARIES),
    "isaacgym": ("gymnasium", "torch", "mujoco", "numpy", *RL_LIBRARIES),
    "mdp": ("gymnasium", "mujoco", *RL_LIBRARIES),
    "managers": ("gymnasium", "mujoco", *RL_LIBRARIES),
    "envs": ("mujoco", "legged_envs.tasks", "legged_envs.wrappers", *RL_LIBRARIES),
    "tasks": ("gymnasium", "torch", "mujoco"),
    "wrappers": (
        "torch",
        "mujoco",
        "legged_envs.sim",
        "legged_envs.mdp",
        "legged_envs.envs",
        *RL_LIBRARIES,
    ),
    "registration": ("torch", "mujoco"),
}
"""What may be missing, or must not be reached, when a room is imported."""

FLOORS = (
    {"checks", "errors", "state", "tables"},
    {"configuration", "system_checks"},
    {"rotation", "rng", "robots", "terrains", "storage", "wrappers"},
    {"sim", "motions"},
    {"conformance", "robot_check"},
    {"mdp"},
    {"managers"},
    {"envs"},
    {"workflows", "isaacgym"},
    {"tasks"},
    {"registration"},
    {"rl"},
    {"cli"},
)
"""The rooms from the ground up: one imports from its own floor's other rooms nothing, from lower floors anything."""

BLOCK = """
import importlib.abc, sys
import legged_envs
for name in [n for n in sys.modules if n.startswith("legged_envs.") or n.split(".")[0] in {blocked!r}]:
    del sys.modules[name]
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == b or name.startswith(b + ".") for b in {blocked!r}):
            raise ImportError(f"{{name}} is out of bounds here")
sys.meta_path.insert(0, Block())
import legged_envs.{room}
"""


IN_FORKS = """
import json, os, sys, traceback
import gymnasium, mujoco, torch  # once for all rooms; each forgets what it must not have
told = {}
for room, code in json.loads(sys.argv[1]).items():
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            exec(code, {})
            result = "imported"
        except BaseException:
            result = traceback.format_exc()[-1500:]
        os.write(writer, result.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        told[room] = file.read()
    os.wait()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def imports() -> dict[str, str]:
    """Room → "imported", or what went wrong, in a process of its own."""
    codes = {room: BLOCK.format(blocked=blocked, room=room) for room, blocked in FORBIDDEN.items()}
    words = [sys.executable, "-c", IN_FORKS, json.dumps(codes)]
    return json.loads(
        subprocess.run(words, capture_output=True, text=True, timeout=300, check=True).stdout
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_is_imported_without_what_it_must_not_import(room, imports):
    assert imports[room] == "imported"


def rooms_imported_by(path: Path) -> set[str]:
    """The rooms that a file imports anywhere, also inside of functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "legged_envs"
        ):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("legged_envs.")}
    floors = set().union(*FLOORS)
    return {name.split(".")[1] for name in names if name.split(".")[1] in floors}


def files() -> list[tuple[str, Path]]:
    """Every file of the package with its room."""
    found = []
    for path in sorted([*ROOT.rglob("*.py"), *(ROOT / "wrappers").glob("*.py")]):
        parts = path.relative_to(ROOT).parts
        found.append((parts[0].removesuffix(".py"), path))
    return [(room, path) for room, path in dict.fromkeys(found) if room != "__init__"]


@pytest.mark.parametrize("room", sorted(set().union(*FLOORS) - {"workflows"}))
def test_imports_point_down(room):
    floor = next(i for i, rooms in enumerate(FLOORS) if room in rooms)
    below = set().union(*FLOORS[:floor])
    mine = [path for r, path in files() if r == room]
    assert mine
    for path in mine:
        assert rooms_imported_by(path) <= below | {room}, path


def test_every_room_has_a_floor():
    assert {room for room, _ in files()} <= set().union(*FLOORS) | {"__main__"}
