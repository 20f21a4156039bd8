"""The documentation: the code of its pages runs, its reference has every public name, and its tables are right."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import shlex
import shutil
import sys
import textwrap
import zlib
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import gymnasium as gym
import pytest
import torch
from safetensors import safe_open
from terminal import HAS_TESTED_VERSIONS, make_terminal, same_on_every_page

from legged_envs import cli
from legged_envs.policy.header import read_evaluation
from legged_envs.policy.policy import SHIPPED
from legged_envs.sim.quantities import ROBOT_QUANTITIES
from legged_envs.sim.robot_state import RobotState
from legged_envs.tasks import TASKS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *ROOT.glob("examples/*/*.md"),
    *sorted(DOCS.rglob("*.md")),
]
BLOCK = re.compile(r"^```(\w+)(?: title=\"(.+?)\")?\n(.*?)^```$", re.DOTALL | re.M)
"""The language of a block, the file that it is, and its text."""
INLINE = re.compile(r"`(legged-envs [^`]+)`")
INDICES = ("feet", "penalized_bodies", "termination_bodies", "undesired_bodies")
"""Attributes of a robot that are indices of its bodies."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def terminal(tmp_path, monkeypatch):
    yield from make_terminal(tmp_path, monkeypatch)


def run_python(text: str, page: Path, names: dict[str, Any]) -> None:
    exec(compile(text, name_of(page), "exec", dont_inherit=True), names)


def lines_of(page: Path) -> list[str]:
    """The lines of the blocks of commands of a page."""
    blocks = BLOCK.findall(page.read_text())
    return [
        line for language, _, text in blocks if language == "bash" for line in text.splitlines()
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_runs(page, terminal, request, capsys):
    names: dict[str, Any] = {"__name__": "page", "__file__": str(terminal.folder / "page.py")}
    text = page.read_text()
    if page.name == "omnisafe.md":
        pytest.importorskip(
            "legged_envs.wrappers.adapters.omnisafe", reason="make omnisafe", exc_type=ImportError
        )
    if "legged-envs sweep" in text:
        pytest.importorskip("ray", reason="pip install 'legged-envs[ray]'")
    if page.name == "isaacgym.md":
        names["task"] = request.getfixturevalue("legacy").Task(4)
    if page.parent != ROOT and page.parent.parent == ROOT / "examples":
        terminal.run(f"cd {name_of(page.parent)}")
    earlier = PAGES[: PAGES.index(page)]
    terminal.elsewhere = same_on_every_page(line for each in earlier for line in lines_of(each))
    for language, file, block in BLOCK.findall(text):
        if file:
            (terminal.folder / file).write_text(block)
        if language == "python":
            run_python(block, page, names)
        elif language == "bash":
            for line in block.splitlines():
                terminal.run(line)
        elif language == "sh" and shutil.which("c++"):
            terminal.script(block)
        elif language == "toml":
            terminal.entry_points(block)
    for words in map(shlex.split, INLINE.findall(text)):
        if words[1:2] == ["--version"] or words[2:]:
            with suppress(SystemExit) if "--help" in words else nullcontext():
                assert cli.parse(words[1:]), words
        else:
            assert words[1] in cli.VERBS, words


@pytest.mark.parametrize(
    "line",
    [
        "legged-envs train --minuts 3",
        "legged-envs eval Legged/Go2-Flat-v0 --policy nothing",
        "make nothing",
        "python -m benchmarks.nothing",
        "python examples/sb3_ppo.py --fast",
        "python3 -c 'raise SystemExit(1)'",
        "pip install 'legged-envs[nothing]'",
        "pip install nothing-like-this",
        "pytest tests/nothing.py",
        "rm nothing",
    ],
)
def test_a_command_that_is_wrong_is_found(line, terminal):
    if line.startswith("pip ") and not HAS_TESTED_VERSIONS:
        pytest.skip("pip is tried with the versions of constraints.txt")
    with pytest.raises((AssertionError, ImportError)):
        terminal.run(line)


def test_a_command_that_uses_nothing_of_its_page_runs_for_one_page():
    lines = [
        ".venv/bin/python -m benchmarks.storage  # and why",
        "make play && legged-envs crosscheck Legged/Go2-Flat-v0",
        "legged-envs crosscheck Legged/Go2-Flat-v0 --policy runs/mine",
    ]
    expected = {"python -m benchmarks.storage", "legged-envs crosscheck Legged/Go2-Flat-v0"}
    assert same_on_every_page(lines) == expected


def test_code_that_is_wrong_is_found():
    with pytest.raises(ZeroDivisionError):
        run_python("1 / 0", PAGES[0], {})


# --- tables -----------------------------------------------------------------------------------------------------------


def table(page: str, head: str) -> list[list[str]]:
    """The cells of the rows of the table that begins with ``head``, without backticks."""
    (rows,) = re.findall(
        rf"^\| {re.escape(head)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", (DOCS / page).read_text(), re.M
    )
    return [
        [cell.strip().replace("`", "") for cell in row.strip("|").split(" | ")]
        for row in rows.splitlines()
    ]


def test_robot_tensors_have_the_shapes_of_their_table(make_vec):
    core = make_vec(5, array="torch").unwrapped
    core.reset(seed=0)
    sizes = {"N": 5, "J": 12, "F": 4, "B": len(core.sim.body_names)}
    listed = {}
    for name, shape, unit, _ in (row[:4] for row in table("reference/robot.md", "tensor")):
        value = getattr(core.robot, name)
        listed[name] = tuple(
            sizes[size] if size in sizes else int(size) for size in re.findall(r"\w+", shape)
        )
        assert tuple(value.shape) == listed[name], name
        assert (value.dtype == torch.bool) == (unit == "bool"), name
    own = {
        name
        for name, value in vars(core.robot).items()
        if isinstance(value, torch.Tensor) and name[0] != "_"
    }
    assert {*ROBOT_QUANTITIES, *RobotState.__annotations__, *own} - {"STATE"} <= {
        *listed,
        *INDICES,
    }


def test_keys_of_info_are_those_of_their_table(make_vec):
    env = make_vec(2, max_episode_steps=2)
    env.reset(seed=0)
    keys: set[str] = set()
    log: dict[str, Any] = {}
    for _ in range(3):
        *_, info = env.step(env.action_space.sample())
        keys |= info.keys()
        log = info.get("log", log)
    with closing(gym.make_vec("Legged/Go2-Legs-v0", num_envs=2)) as agents:
        agents.reset(seed=0)
        keys |= agents.step(agents.action_space.sample())[4].keys()
    listed = {key.strip() for row in table("reference/info.md", "key") for key in row[0].split(",")}
    assert (
        listed - keys == {"original_obs", "original_reward", "original_cost", "…"}
        and keys <= listed
    )
    rows = [row[0].split(",") for row in table("reference/info.md", "key of the log")]
    kinds = {key.strip().partition("/")[0] for row in rows for key in row}
    assert {key.partition("/")[0] for key in log} == kinds - {"curriculum"}


def test_every_entry_of_a_policy_is_documented():
    listed = {
        key.strip() for row in table("reference/files.md", "entry") for key in row[0].split(",")
    }
    heads = {row[0] for row in table("reference/files.md", "key of the header")}
    used: set[str] = set()
    for path in SHIPPED.values():
        with safe_open(path, "numpy") as file:
            about = file.metadata()
            assert about.keys() | {"harsh_evaluation"} == heads
            used |= json.loads(about["contract"]).keys()
    assert used <= listed and listed - used <= {"clips", "memory"}


def test_every_key_of_a_checkpoint_is_documented():
    source = (ROOT / "legged_envs" / "training" / "trainer.py").read_text()
    saved = source[source.index("def checkpoint_state(self)") : source.index("def save(self)")]
    listed = {
        key.strip() for row in table("reference/files.md", "key") for key in row[0].split(",")
    }
    assert listed == set(re.findall(r'"(\w+)":', saved))


# --- the site ---------------------------------------------------------------------------------------------------------


OTHERS_NAMES = {
    "legged_envs.compat.isaac_gym.gymapi",
    "legged_envs.compat.isaac_gym.gymutil",
    "legged_envs.compat.isaac_gym.namespace",
    "legged_envs.compat.isaac_gym.terrain_utils",
    "legged_envs.compat.isaac_gym.torch_utils",
}
"""Modules with the names of Isaac Gym's documentation; docs/isaacgym.md lists them."""


def public_modules() -> list[ModuleType]:
    """Public modules: modules with ``__all__``, and the module of the wrappers, where all imports are public."""
    files = [
        path for folder in ("legged_envs", "wrappers") for path in (ROOT / folder).rglob("*.py")
    ]
    public = [path.relative_to(ROOT) for path in files if "__all__ =" in path.read_text()]
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in public}
    names = {name if name.startswith("legged_envs") else f"legged_envs.{name}" for name in names}
    names = (names | {"legged_envs.wrappers"}) - OTHERS_NAMES
    return [importlib.import_module(name) for name in sorted(names)]


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module by the rule in docs/reference/index.md; of a package without ``__all__``, the classes that it imports."""
    public = {name: value for name, value in vars(module).items() if name[0] != "_"}
    classes = [name for name, value in public.items() if inspect.isclass(value)]
    own = [
        name
        for name, value in public.items()
        if getattr(value, "__module__", None) == module.__name__
    ]
    return list(getattr(module, "__all__", classes if hasattr(module, "__path__") else own))


def is_ours(thing: Any) -> bool:
    """Whether something is made by this package, and not another name of what a library has."""
    return getattr(thing, "__module__", "legged_envs").startswith("legged_envs")


def build_site(folder: Path) -> None:
    """Build as ``make docs`` does, which refuses dead links and pages that no link leads to."""
    pytest.importorskip("mkdocs", reason="pip install 'legged-envs[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder)))


def test_the_site_builds_and_every_public_name_is_in_its_reference(tmp_path, monkeypatch):
    pytest.importorskip(
        "legged_envs.wrappers.adapters.omnisafe", reason="make omnisafe", exc_type=ImportError
    )
    # Without Node.js it builds sooner; tests/docs/test_browser.py is the test of what that makes.
    monkeypatch.setenv("PATH", str(tmp_path))
    build_site(site := tmp_path / "site")
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    documented = {line.split()[0] for line in inventory.splitlines()}
    modules = public_modules()
    assert len(modules) > 12
    missing = [
        f"{module.__name__}.{name}"
        for module in modules
        for name in public_names(module)
        if is_ours(getattr(module, name))
    ]
    lazy = {
        f"legged_envs.terrains.{path.split('.')[-1]}" for path in documented if ".terrains." in path
    }
    # A module may hold an object of its own name.
    modules_shown = {path.rpartition(".")[0] for path in documented}
    missing = [path for path in missing if path not in documented | lazy | modules_shown]
    assert not missing, "no docstring, or on no page of docs/reference"
    check_pages(site)


def check_pages(site: Path) -> None:
    """Return docstrings and help texts as they stand on their pages."""
    robot = (site / "reference" / "robot.html").read_text()
    for name in ("lin_vel_b", "projected_gravity"):
        assert f'id="legged_envs.sim.RobotState.{name}"' in robot
    cards = (site / "reference" / "policies.html").read_text()
    sections = cards.split("trained on the task <code>")[1:]
    assert len(sections) == len(SHIPPED)
    for section in sections:
        costs = read_evaluation(SHIPPED[section.partition("</code>")[0]])["costs"]
        assert costs and all(f"<td>{value:.4f}</td>" in section for value in costs.values())
    help_text = (site / "reference" / "cli.html").read_text()
    assert all(f"usage: legged-envs {verb}" in help_text for verb in cli.VERBS)
    assert "install Node.js 20" in (site / "demo.html").read_text()
    costs = (site / "reference" / "costs.html").read_text()
    assert "all tasks except Go2-Pair" in costs
    assert costs.count("No registered task uses this term.") >= 5
    assert "\\&lt;" not in costs and "def joint_torque" in re.sub(r"<[^>]+>", "", costs)
    wrappers = (site / "reference" / "wrappers.html").read_text()
    assert ":class:" not in wrappers and "&gt;&gt;&gt;" in re.sub(r"<[^>]+>", "", wrappers)


def test_docstrings_become_markdown():
    pytest.importorskip("griffe")
    from tools.docs import as_markdown

    assert as_markdown("z* < [0, 1], ``*x* < y``: :class:`~a.B`") == (
        r"z\* &lt; \[0, 1], ``*x* < y``: ``B``"
    )
    arguments = "Args:\n    *names: Names.\n    **params: Others."
    assert as_markdown(arguments) == arguments
    assert as_markdown(">>> 1 * 2\n2") == "\n```pycon\n>>> 1 * 2\n2\n```\n"
    example = "Examples:\n    >>> [1 * 2]\n    [2]"
    assert as_markdown(example) == example


def test_the_reference_names_the_tasks_that_use_a_term(monkeypatch):
    pytest.importorskip("griffe")
    from tools.docs import describe_tasks, own_tasks

    monkeypatch.setitem(TASKS, "Legged/Mine-v0", "my_tasks:mine")
    assert "Legged/Mine-v0" not in own_tasks()
    terms = "legged_envs.mdp"
    assert describe_tasks(f"{terms}.rewards.no_progress") == "**Used by** Go2-Robust (weight -1)."
    all_but_one = "**Used by** all tasks except Go2-Pair (limit 0.05)."
    assert describe_tasks(f"{terms}.costs.foot_slip") == all_but_one
    assert describe_tasks(f"{terms}.commands.VelocityCommandCfg") == (
        "**Used by** all tasks except Go2-Nav."
    )
    # The trot of mimic tasks is a parameter of another term.
    trot = describe_tasks(f"{terms}.rewards.trot")
    assert trot is not None and "Go2-Mimic" in trot and "G1" not in trot
    assert describe_tasks(f"{terms}.costs.energy") is None


def modules_on_pages() -> Iterator[ModuleType]:
    """The modules that pages show, without adapters to libraries that are not installed."""
    for name in sorted(
        {name for page in PAGES for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)}
    ):
        try:
            yield importlib.import_module(name)
        except ImportError as error:
            if str(error.name).startswith("legged_envs"):
                raise


@cache
def assignments(path: Path) -> list[tuple[str, ast.AST, str | None]]:
    """The assignments of a module and of its classes: where they stand, and the docstring directly below, if any."""
    found = []
    for owner in ast.walk(ast.parse(path.read_text())):
        if not isinstance(owner, ast.Module | ast.ClassDef):
            continue
        for i, node in enumerate(owner.body):
            if isinstance(node, ast.Assign | ast.AnnAssign):
                below = owner.body[i + 1] if i + 1 < len(owner.body) else None
                text = below.value if isinstance(below, ast.Expr) else None
                told = text.value if isinstance(text, ast.Constant) else None
                found.append((getattr(owner, "name", ""), node, told))
    return found


def names_of(node: Any) -> list[str]:
    """The names that an assignment gives values to."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    ]


def told_below(module: str) -> set[str]:
    """``Class.name`` of each attribute with a docstring under it."""
    path = Path(inspect.getsourcefile(sys.modules[module]))
    return {
        f"{owner}.{name}"
        for owner, node, told in assignments(path)
        if told
        for name in names_of(node)
    }


def source_files() -> list[Path]:
    return sorted(
        path for folder in ("legged_envs", "wrappers") for path in (ROOT / folder).rglob("*.py")
    )


SHARED_STILL = ("legged_envs/compat/",)
"""Folders in which docstrings may still stand under several names. It shrinks."""


def shared_docstrings(path: Path) -> Iterator[str]:
    """The names above a docstring that stands under more than one: in one assignment, or on lines without a gap."""
    before = None
    for _, node, told in assignments(path):
        names = names_of(node)
        if told and len(names) > 1:
            yield " and ".join(names)
        is_type = isinstance(node.value, ast.Call) and "TypeVar" in ast.unparse(node.value.func)
        if told and before is not None and node.lineno - before.end_lineno == 1:
            yield f"{' and '.join(names_of(before))} above {names[0]}"
        before = node if not told and not is_type else None


def test_no_docstring_stands_under_several_names():
    shared = {str(path.relative_to(ROOT)): [*shared_docstrings(path)] for path in source_files()}
    assert len(shared) > 200
    assert not {
        path: names for path, names in shared.items() if names and not path.startswith(SHARED_STILL)
    }


def test_shared_docstrings_are_found(tmp_path):
    (tmp_path / "a.py").write_text(
        'a = 1\nb = 2\n"""Both."""\nc = 3\n"""c."""\nd = 4\n\ne = 5\n"""e."""\nf, g = 1, 2\n"""Two."""\n'
    )
    assert [*shared_docstrings(tmp_path / "a.py")] == ["a above b", "f and g"]


def bare_names(name: str, thing: Any) -> Iterator[str]:
    """Which of a public class or function and the methods and properties that are written for it have no docstring."""
    text = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    if not text or text.startswith(f"{thing.__name__}("):  # dataclasses write such a one
        yield name
    ours = [
        cls for cls in getattr(thing, "__mro__", ()) if cls.__module__.startswith("legged_envs.")
    ]
    for cls in (
        cls for cls in ours if cls.__qualname__ == thing.__qualname__
    ):  # configclass makes two of one
        for part, value in vars(cls).items():
            method = inspect.isroutine(value) or isinstance(value, property)
            below = any(f"{base.__name__}.{part}" in told_below(base.__module__) for base in ours)
            if method and part[0] != "_" and not (below or inspect.getdoc(getattr(thing, part))):
                yield f"{name}.{part}"


def test_every_public_name_has_a_docstring():
    things = [
        (f"{each.__name__}.{n}", getattr(each, n))
        for each in modules_on_pages()
        for n in public_names(each)
    ]
    code = {
        name: thing
        for name, thing in things
        if (inspect.isclass(thing) or inspect.isroutine(thing)) and is_ours(thing)
    }
    assert len(code) > 300
    bare = {part for name, thing in code.items() for part in bare_names(name, thing)}
    assert not bare


CONSTRUCTORS = ("__init__", "__post_init__")


class Documented(NamedTuple):
    """A public function, method or property."""

    name: str
    function: Any
    said: tuple[str, str, str]
    """Return the docstrings of an object, its class and its module, which describe common properties."""


@cache
def documented() -> list[Documented]:
    found: dict[Any, Documented] = {}
    for module in modules_on_pages():
        for name in public_names(module):
            thing = getattr(module, name)
            inside = vars(thing).items() if inspect.isclass(thing) else ()
            parts = {
                f"{name}.{part}": value
                for part, value in inside
                if part[0] != "_" or part in CONSTRUCTORS
            }
            for where, part in {name: thing, **parts}.items():
                function = (
                    part.fget if isinstance(part, property) else getattr(part, "__func__", part)
                )
                ours = inspect.isfunction(function) and function.__module__.startswith(
                    "legged_envs."
                )
                if (
                    ours
                    and function.__code__.co_filename != "<string>"
                    and inspect.getsource(function).lstrip().startswith(("def ", "@"))
                ):
                    own = inspect.getdoc(
                        function if where == name else getattr(thing, where.partition(".")[2])
                    )
                    about = module if module.__doc__ else sys.modules[function.__module__]
                    said = (own or "", inspect.getdoc(thing) or "", about.__doc__ or "")
                    found.setdefault(
                        function, Documented(f"{module.__name__}.{where}", function, said)
                    )
    return [*found.values()]


CHECKS = {
    "check_number",
    "check_range",
    "check_choice",
    "check_known",
    "check_inputs",
    "check_output",
    "whole_number",
}
"""Functions of ``legged_envs.checks`` that raise a ValueError."""


def raised_by(function: Any) -> set[str]:
    """Return the errors that a function raises in its own lines and by calls of ``checks``, without errors that it catches and errors of methods that must be overridden."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    caught = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for inner in map(ast.walk, node.body)
        for inner in inner
    }
    raised = [
        node.exc
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and id(node) not in caught
    ]
    names = {
        ast.unparse(error.func if isinstance(error, ast.Call) else error)
        for error in raised
        if error
    }
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names |= {"ValueError"} if called & CHECKS else set()
    return {name.split(".")[-1] for name in names if name[0].isupper()} - {"NotImplementedError"}


def test_docstrings_name_what_is_raised():
    raising = {each.name: (raised_by(each.function), " ".join(each.said)) for each in documented()}
    assert sum(bool(errors) for errors, _ in raising.values()) > 80
    silent = {
        name: [e for e in errors if e not in said] for name, (errors, said) in raising.items()
    }
    assert not {name: errors for name, errors in silent.items() if errors}


NAMED_BY_CONVENTION = {"self", "cls", "env", "env_ids", "random", "args", "kwargs"}
"""Parameters that mean the same everywhere."""
UNNAMED_STILL = ("legged_envs.compat.isaac_lab.",)
"""Beginnings of functions that may still leave out parameters. It shrinks."""


def overrides(function: Any) -> bool:
    """Whether a method has the name of one of a base class, which documents it."""
    owner, _, name = function.__qualname__.rpartition(".")
    cls = getattr(sys.modules[function.__module__], owner, None)
    return inspect.isclass(cls) and any(name in vars(base) for base in cls.__mro__[1:])


def unnamed_parameters(each: Documented) -> list[str]:
    """The parameters that neither a section ``Args:`` nor a sentence about the function has."""
    names = [
        name
        for name in inspect.signature(each.function).parameters
        if name not in NAMED_BY_CONVENTION and name[0] != "_"
    ]
    text = " ".join(each.said)
    own = each.said[0] + (each.said[1] if each.function.__name__ in CONSTRUCTORS else "")
    refers = "with the same parameters" in own  # as another function, which is named
    if len(names) < 2 or "Args:" in own or refers or overrides(each.function):
        return []
    return [name for name in names if not re.search(rf"\b{name}\b", text)]


def test_docstrings_name_the_parameters():
    functions = documented()
    assert len(functions) > 400
    unnamed = {each.name: unnamed_parameters(each) for each in functions}
    assert not {
        name: parameters
        for name, parameters in unnamed.items()
        if parameters and not name.startswith(UNNAMED_STILL)
    }


SHAPE = re.compile(r"\((?:\d|\w+(?: · \w+)*|…)(?:,[^()]*)\)|[Ss]hape|[Ss]ize|\ba number\b")
TENSORS = re.compile(r"\bTensor\b|ndarray|\bArray\b")


def test_docstrings_have_the_shapes_of_tensors_that_are_returned():
    returning = [
        each
        for each in documented()
        if TENSORS.search(str(inspect.get_annotations(each.function).get("return")))
    ]
    assert len(returning) > 100
    bare = [each.name for each in returning if not any(map(SHAPE.search, each.said))]
    assert not bare


KIND = re.compile(
    r"(?<![\w/])(?:m|mm|s|ms|min|rad|kg|N|W|Hz|°|%|m²|m/s²?|rad/s²?|N·m\S*|N m|1/s|\(w, x, y, z\)|0 to 1)(?![\w/])|"
    r"\b(?:weight|factor|times|multiplier|discount|λ|w|probability|fraction|share|part|range|per (?:step|second)|rate|"
    r"friction|coefficient|deviation|divergence|slope|norm|ratio|sign|scaled?|unit|number|threshold|value|action)\w*\b",
    re.IGNORECASE,
)
"""A unit, or what a number without one is."""


def numbers_told(cls: type) -> Iterator[tuple[str, str]]:
    """The fields of a configuration that are numbers and have a docstring, and this."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body
    for node, below in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(below, ast.Expr):
            kind = ast.unparse(node.annotation)
            if re.search(r"\bfloat\b", kind):
                yield ast.unparse(node.target), kind + ast.unparse(below)


def test_numbers_of_configurations_have_a_unit_or_say_what_they_are():
    things = [
        getattr(module, name) for module in modules_on_pages() for name in public_names(module)
    ]
    classes = [each for each in things if inspect.isclass(each) and is_dataclass(each)]
    told: dict[str, str] = {}
    for kind in (each for each in classes if each.__module__.startswith("legged_envs.")):
        with suppress(OSError):  # made by a table
            told |= {f"{kind.__name__}.{name}": text for name, text in numbers_told(kind)}
    assert len(told) > 150
    assert not [name for name, text in told.items() if not KIND.search(text)]


def test_broken_links_are_found(tmp_path):
    pytest.importorskip("griffe")
    from tools.docs import broken

    (tmp_path / "index.html").write_text(
        '<a href="a.html#here">a</a><img src="no.png"><a href="https://x.y">x</a>'
    )
    (tmp_path / "a.html").write_text('<h1 id="there">a</h1><a href="a.html#there">a</a>')
    (tmp_path / "b.html").write_text("alone")
    assert [*broken(tmp_path)] == [
        "index.html: no place 'a.html#here'",
        "index.html: no file 'no.png'",
        "b.html: no link leads there",
    ]
