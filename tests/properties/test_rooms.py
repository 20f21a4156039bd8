"""The rooms of the package: imports point down, make no circle, and need nothing that a room must not import."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import legged_envs
from legged_envs.envs.task import Task

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
    "errors": ("gymnasium", "torch", "mujoco", "numpy"),
    "tables": ("gymnasium", "torch", "mujoco", "numpy"),
    "configuration": ("gymnasium", "torch", "mujoco", "numpy"),
    "system_checks": ("gymnasium", "torch", "mujoco", "numpy"),
    "motion_reading": ("gymnasium", "torch", "mujoco", "numpy"),
    "state": ("gymnasium", "mujoco"),
    "rng": ("gymnasium", "mujoco"),
    "rotation": ("gymnasium", "mujoco"),
    "robots": ("gymnasium", "torch", "mujoco", "legged_envs.sim", "legged_envs.mdp"),
    "terrains": ("gymnasium", "torch", "mujoco", "legged_envs.sim", "legged_envs.mdp"),
    "terrains.cfg": ("gymnasium", "torch", "mujoco", "numpy"),
    "storage": ("gymnasium", "mujoco", "legged_envs.envs", *RL_LIBRARIES),
    "datasets.episodes": ("gymnasium", "mujoco", "legged_envs.envs"),
    "wrappers": (
        "torch",
        "mujoco",
        "legged_envs.sim",
        "legged_envs.mdp",
        "legged_envs.envs",
        *RL_LIBRARIES,
    ),
    "sim": ("gymnasium", "mujoco", "legged_envs.mdp", "legged_envs.managers", *RL_LIBRARIES),
    "motions": ("gymnasium", "mujoco", "legged_envs.mdp", *RL_LIBRARIES),
    "robot_check": ("gymnasium", "legged_envs.mdp", "legged_envs.envs", *RL_LIBRARIES),
    "mdp": ("gymnasium", "mujoco", *RL_LIBRARIES),
    "mdp.rewards": ("gymnasium", "mujoco", *RL_LIBRARIES),
    "managers": ("gymnasium", "mujoco", *RL_LIBRARIES),
    "envs": (
        "mujoco",
        "legged_envs.compat",
        "legged_envs.tasks",
        "legged_envs.wrappers",
        *RL_LIBRARIES,
    ),
    "compat.user_task": ("mujoco", "legged_envs.tasks", *RL_LIBRARIES),
    "compat.isaac_gym": ("gymnasium", "torch", "mujoco", "numpy", *RL_LIBRARIES),
    "compat.isaac_lab": ("mujoco", "legged_envs.tasks", *RL_LIBRARIES),
    "compat.legged_gym": ("mujoco", *RL_LIBRARIES),
    "compat.omni_isaac_gym": ("mujoco", "legged_envs.tasks", *RL_LIBRARIES),
    "tasks": ("gymnasium", "torch", "mujoco"),
    "registration": ("torch", "mujoco", "legged_envs.compat", "legged_envs.envs"),
    "runs.run_folder": ("torch", "mujoco", *RL_LIBRARIES),
    "policy.policy": RL_LIBRARIES,
    "evaluation.evaluator": RL_LIBRARIES,
    "viewing.play": RL_LIBRARIES,
    "training.options": ("mujoco", *RL_LIBRARIES),
    "training.prepare": RL_LIBRARIES,
    "sweeps.plan": ("torch", "mujoco", "ray", *RL_LIBRARIES),
    "safe_benchmark.options": ("torch", "mujoco", "ray", *RL_LIBRARIES),
    "safe_benchmark.evaluation": ("ray", "stable_baselines3", "skrl", "omnisafe"),
    "safe_benchmark.page": ("ray", "stable_baselines3", "skrl", "omnisafe"),
    "cli": ("torch", "mujoco", "ray", *RL_LIBRARIES),
}
"""Modules that may be missing, or must not be imported, when a room or one of its modules is imported."""

FLOORS = (
    {"checks", "errors", "tables"},
    {"state", "system_checks", "configuration", "motion_reading"},
    {"rotation", "rng", "robots", "terrains", "storage", "datasets", "wrappers"},
    {"sim", "motions"},
    {"conformance", "robot_check", "mdp"},
    {"managers"},
    {"envs"},
    {"compat"},
    {"tasks"},
    {"registration"},
    {"runs", "policy"},
    {"evaluation"},
    {"viewing"},
    {"training"},
    {"sweeps"},
    {"safe_benchmark"},
    {"cli"},
)
"""The rooms from the ground up: each may import rooms of lower floors only."""

ABOVE_COMPAT = {
    "tasks",
    "registration",
    "runs",
    "policy",
    "evaluation",
    "viewing",
    "training",
    "sweeps",
    "safe_benchmark",
    "cli",
}
"""Rooms that may import ``compat``."""

USES_REGISTER = {"legged_envs.compat.legged_gym.task_registry"}
"""Modules below ``registration`` that call ``legged_envs.register``, as their users do."""

BLOCK = """
import importlib, importlib.abc, sys
import legged_envs
from legged_envs.envs.task import Task
for name in [n for n in sys.modules if n.startswith("legged_envs.") or n.split(".")[0] in {blocked!r}]:
    del sys.modules[name]
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == b or name.startswith(b + ".") for b in {blocked!r}):
            raise ImportError(f"{{name}} is out of bounds here")
sys.meta_path.insert(0, Block())
importlib.import_module("legged_envs.{room}")
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
    """Room → "imported", or what went wrong, in a separate process."""
    codes = {room: BLOCK.format(blocked=blocked, room=room) for room, blocked in FORBIDDEN.items()}
    words = [sys.executable, "-c", IN_FORKS, json.dumps(codes)]
    return json.loads(
        subprocess.run(words, capture_output=True, text=True, timeout=300, check=True).stdout
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_is_imported_without_what_it_must_not_import(room, imports):
    assert imports[room] == "imported"


def modules() -> dict[str, Path]:
    """Every module of the package with its file; the wrappers lie behind a link."""
    found = {}
    for path in sorted({*ROOT.rglob("*.py"), *(ROOT / "wrappers").rglob("*.py")}):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(("legged_envs", *parts)).removesuffix(".__init__")
        found[name] = path
    return found


def nodes_that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes of a file, also inside of functions, without code that is only for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from nodes_that_run(node)


def modules_imported_by(path: Path, known: frozenset[str]) -> set[str]:
    """The modules of this package that a file imports anywhere."""
    found = set()
    for node in nodes_that_run(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in known else node.module)
    return found & known


@cache
def import_graph() -> dict[str, frozenset[str]]:
    """Module → the modules of this package that it imports."""
    files = modules()
    known = frozenset(files)
    return {
        name: frozenset(modules_imported_by(path, known) - {name}) for name, path in files.items()
    }


def room_of(module: str) -> str | None:
    """The room of a module; None for the package itself and for ``python -m legged_envs``."""
    room = module.split(".")[1] if "." in module else None
    return None if room == "__main__" else room


def room_graph() -> dict[str, set[str]]:
    """Room → the rooms that it imports."""
    graph: dict[str, set[str]] = {}
    for module, imported in import_graph().items():
        room = room_of(module)
        if room is not None:
            rooms = {room_of(name) for name in imported}
            graph.setdefault(room, set()).update(rooms - {room, None})
    return graph


def circles(graph: dict[str, set[str]] | dict[str, frozenset[str]]) -> list[list[str]]:
    """The groups of two or more nodes that all reach each other: strongly connected components."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for following in graph.get(waiting.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
        reached[start] = seen
    groups = {
        frozenset(other for other in reached[start] if start in reached.get(other, ()))
        for start in graph
    }
    return sorted(sorted(group) for group in groups if len(group) > 1)


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(graph) == [["b", "c"], ["d", "e"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_modules_import_each_other_in_a_circle():
    graph = import_graph()
    assert len(graph) > 200
    assert circles(graph) == []


def test_no_rooms_import_each_other_in_a_circle():
    assert circles(room_graph()) == []


def test_every_room_has_a_floor():
    assert set(room_graph()) == set().union(*FLOORS)


@pytest.mark.parametrize("room", sorted(set().union(*FLOORS)))
def test_imports_point_down(room):
    floor = next(i for i, rooms in enumerate(FLOORS) if room in rooms)
    below = set().union(*FLOORS[:floor])
    upward = {}
    for module, imported in import_graph().items():
        if room_of(module) == room:
            rooms = {room_of(name) for name in imported} - {room, None}
            upward[module] = rooms - below
    assert upward
    assert not {module: rooms for module, rooms in upward.items() if rooms}


def test_only_tasks_and_what_is_above_import_the_words_of_other_frameworks():
    importing = {room for room, imported in room_graph().items() if "compat" in imported}
    assert importing <= ABOVE_COMPAT


def test_only_the_registry_of_a_framework_reaches_up_through_the_package_itself():
    floor = next(i for i, rooms in enumerate(FLOORS) if "registration" in rooms)
    below = set().union(*FLOORS[:floor])
    reaching = {
        module
        for module, imported in import_graph().items()
        if "legged_envs" in imported and room_of(module) in below
    }
    assert reaching == USES_REGISTER


@pytest.mark.parametrize(
    "user_class",
    [
        "isaac_lab:DirectMARLEnv",
        "isaac_lab:ManagerBasedRLEnv",
        "legged_gym:LeggedRobot",
        "omni_isaac_gym:RLTask",
    ],
)
def test_three_steps_of_inheritance_lead_from_the_interface_to_the_task_of_a_users_object(
    user_class,
):
    module, _, name = user_class.partition(":")
    adapter = getattr(import_module(f"legged_envs.compat.{module}"), name).ADAPTER
    ancestors = [base for base in adapter.__mro__ if issubclass(base, Task)]
    assert 1 <= len(ancestors) - 1 <= 3
