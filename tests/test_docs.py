"""The documentation: what its pages show runs, its reference has every public name, its tables say what is so."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import shlex
import sys
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import pytest
import torch
from safetensors import safe_open
from test_check import quadruped

from legged_envs import cli
from legged_envs.rl.config import check_run
from legged_envs.rl.policy import SHIPPED
from legged_envs.sim.quantities import ROBOT_QUANTITIES
from legged_envs.sim.robot_state import RobotState
from legged_envs.tasks import TASKS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"(<!-- not run here: [^>]+ -->\n)?\n```(\w+)(?: title=\"(.+?)\")?\n(.*?)^```$", re.DOTALL | re.M)
"""Whether only to compile it, its language, the file that it is, and its text."""
INLINE = re.compile(r"`(legged-envs [^`]+)`")
FAST = {"list": "", "terrain": "", "check": "", "record": "--num-envs 2 --episodes 2 --changes episode_length_s 0.4"}
FAST |= {"eval": "--episodes 1", "export": ""}
"""Commands of ``legged-envs`` that are run, with what makes them fast, unless they leave a name to the reader, "…"; the
others are parsed."""
ELSEWHERE = ("docs/workflows/legged_robot.md",)
"""Pages whose code another test runs."""
FEW = 16
"""Most environments of a batch."""
INDICES = ("feet", "penalized_bodies", "termination_bodies", "undesired_bodies")
"""Attributes of a robot that are indices of its bodies."""
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
"""What ``pip install 'legged-envs[…]'`` can name."""
OTHERS = ("sudo", "git", "source", "python3", "pytest", ".venv/bin/pytest")
_run: set[str] = set()


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with what pages speak of: the clone's package, and the file of a robot. Few robots are made, and what
    is registered or imported from here is forgotten."""
    (tmp_path / "legged_envs").symlink_to(ROOT / "legged_envs")
    (tmp_path / "spot.urdf").write_text(quadruped())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    monkeypatch.setattr("legged_envs.rl.evaluate.SECONDS", 1.2)
    made, tasks, ids, threads = [], dict(TASKS), set(gym.registry), torch.get_num_threads()
    make_vec = gym.make_vec

    def make_few(task: str, num_envs: int = 1, *args: Any, **kwargs: Any) -> Any:
        made.append(make_vec(task, min(num_envs, FEW), *args, **kwargs))
        return made[-1]

    monkeypatch.setattr(gym, "make_vec", make_few)
    monkeypatch.setitem(sys.modules, "legged_envs.rl.train", ModuleType("train"))
    sys.modules["legged_envs.rl.train"].train = check_run  # a training as far as its options tell
    yield tmp_path
    for env in made:
        env.close()
    torch.set_num_threads(threads)
    TASKS.clear()
    TASKS.update(tasks)
    for task_id in gym.registry.keys() - ids:
        del gym.registry[task_id]
    for module in [name for name in sys.modules if name.split(".")[0] in ("my_robots", "my_tasks")]:
        del sys.modules[module]


def run_python(text: str, page: Path, names: dict[str, Any], only_compile: bool) -> None:
    code = compile(text, name_of(page), "exec", dont_inherit=True)
    if not only_compile:
        exec(code, names)


def check_command(line: str) -> None:
    """Run a command line, or look whether what it names is there."""
    words = shlex.split(line, comments=True)
    if words[:3] == ["python", "-m", "legged_envs"]:
        words = ["legged-envs", *words[3:]]
    if words[0] == "legged-envs":
        if words[1] in FAST and "…" not in "".join(words) and line not in _run:
            _run.add(line)
            try:
                cli.main([*words[1:], *FAST[words[1]].split()])
            except SystemExit as stop:
                assert stop.code in (None, 0, 1), line
        assert cli._parse(words[1:]), line
    elif words[:2] == ["python", "-m"]:
        spec = importlib.util.find_spec(words[2])
        assert spec is not None and spec.origin, line
        check_options(words[3:], Path(spec.origin), line)
    elif words[0] == "python":
        check_options(words[2:], ROOT / words[1], line)
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}.*:|^[\w ]*\b{words[1]}\b[\w ]*:", (ROOT / "Makefile").read_text(), re.M), line
    elif words[:2] == ["pip", "install"]:
        assert set(re.findall(r"[\w-]+", "".join(re.findall(r"\[(.+?)\]", line)))) <= set(EXTRAS), line
    else:
        assert words[0] in OTHERS, line


def check_options(words: list[str], script: Path, line: str) -> None:
    if words and words[0].endswith(".py"):  # a script of others, and its options
        return
    for option in (word for word in words if word.startswith("--")):
        text, parameter = script.read_text(), f"{option[2:].replace('-', '_')}: "  # as tyro reads it
        assert f'"{option}"' in text or ("tyro" in text and parameter in text), f"{script.name} has no {option}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_runs(page, place, capsys):
    names: dict[str, Any] = {"__name__": "page", "__file__": str(place / "page.py")}
    text = page.read_text()
    for only_compile, language, file, block in BLOCK.findall(text):
        if file:
            (place / file).write_text(block)
        if language == "python" and name_of(page) not in ELSEWHERE:
            run_python(block, page, names, bool(only_compile))
        if language in ("bash", "sh"):  # "sh" needs what is not here: only what is of this package is looked at
            for line in filter(str.strip, block.splitlines()):
                for command in line.split(" && "):
                    if language == "bash":
                        check_command(command)
                    elif command.startswith("legged-envs "):
                        assert cli._parse(shlex.split(command, comments=True)[1:]), command
    for words in map(shlex.split, INLINE.findall(text)):
        if words[1:2] == ["--version"] or words[2:]:
            with suppress(SystemExit) if "--help" in words else nullcontext():
                assert cli._parse(words[1:]), words
        else:
            assert words[1] in cli.VERBS, words


def test_few_blocks_are_not_run():
    skipped = [name_of(page) for page in PAGES for block in BLOCK.findall(page.read_text()) if block[0]]
    assert len(skipped) <= 5, skipped


def test_a_page_that_is_wrong_is_found(place):
    for line in ("legged-envs train --minuts 3", "make nothing", "python -m benchmarks.nothing", "pip install 'x[y]'"):
        with pytest.raises((AssertionError, ValueError)):
            check_command(line)
    with pytest.raises(AssertionError, match="has no --fast"):
        check_command("python examples/sb3_ppo.py --fast")
    with pytest.raises(ZeroDivisionError):
        run_python("1 / 0", PAGES[0], {}, only_compile=False)


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


# --- tables -----------------------------------------------------------------------------------------------------------


def table(page: str, head: str) -> list[list[str]]:
    """The cells of the rows of the table that begins with ``head``, without backticks."""
    (rows,) = re.findall(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", (DOCS / page).read_text(), re.M)
    return [[cell.strip().replace("`", "") for cell in row.strip("|").split(" | ")] for row in rows.splitlines()]


def test_robot_tensors_have_the_shapes_of_their_table(make_vec):
    core = make_vec(5, array="torch").unwrapped
    core.reset(seed=0)
    sizes = {"N": 5, "J": 12, "F": 4, "B": len(core.sim.body_names)}
    listed = {}
    for name, shape, unit, _ in (row[:4] for row in table("reference/robot.md", "tensor")):
        value = getattr(core.robot, name)
        listed[name] = tuple(sizes[size] if size in sizes else int(size) for size in re.findall(r"\w+", shape))
        assert tuple(value.shape) == listed[name], name
        assert (value.dtype == torch.bool) == (unit == "bool"), name
    own = {name for name, value in vars(core.robot).items() if isinstance(value, torch.Tensor) and name[0] != "_"}
    assert {*ROBOT_QUANTITIES, *RobotState.__annotations__, *own} - {"QUANTITIES", "STATE"} <= {*listed, *INDICES}


def test_keys_of_info_are_those_of_their_table(make_vec):
    env = make_vec(2, max_episode_steps=2)
    env.reset(seed=0)
    keys: set[str] = set()
    log: dict[str, Any] = {}
    for _ in range(3):
        *_, info = env.step(env.action_space.sample())
        keys |= info.keys()
        log = info.get("log", log)
    listed = {key.strip() for row in table("reference/info.md", "key") for key in row[0].split(",")}
    assert listed - keys == {"original_obs", "original_reward", "original_cost", "…"} and keys <= listed
    rows = [row[0].split(",") for row in table("reference/info.md", "key of the log")]
    kinds = {key.strip().partition("/")[0] for row in rows for key in row}
    assert {key.partition("/")[0] for key in log} == kinds - {"curriculum"}


def test_every_entry_of_a_policy_is_documented():
    listed = {key.strip() for row in table("reference/files.md", "entry") for key in row[0].split(",")}
    heads = {row[0] for row in table("reference/files.md", "key of the header")}
    used: set[str] = set()
    for path in SHIPPED.values():
        with safe_open(path, "numpy") as file:
            about = file.metadata()
            assert about.keys() == heads
            used |= json.loads(about["contract"]).keys()
    assert used <= listed and listed - used <= {"clips"}


def test_every_key_of_a_checkpoint_is_documented():
    source = (ROOT / "legged_envs" / "rl" / "train.py").read_text()
    (kept,) = re.findall(r"^OF_A_CHECKPOINT = \((.+)\)$", source, re.M)
    saved = source[source.index("def _save(self)") : source.index("def _load(self")]
    listed = {key.strip() for row in table("reference/files.md", "key") for key in row[0].split(",")}
    assert listed == {*re.findall(r'"(\w+)"', kept), *re.findall(r'"(\w+)":', saved)}


# --- the site ---------------------------------------------------------------------------------------------------------


def public_modules() -> list[ModuleType]:
    """The modules that say in ``__all__`` what is public, and that of the wrappers, whose imports do."""
    files = [path for folder in ("legged_envs", "wrappers") for path in (ROOT / folder).rglob("*.py")]
    public = [path.relative_to(ROOT) for path in files if "__all__ =" in path.read_text()]
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in public}
    names = {name if name.startswith("legged_envs") else f"legged_envs.{name}" for name in names}
    return [importlib.import_module(name) for name in sorted(names | {"legged_envs.wrappers"})]


def public_names(module: ModuleType) -> list[str]:
    """By the rule in docs/reference/index.md; what a package without ``__all__`` has are the classes it imports."""
    public = {name: value for name, value in vars(module).items() if name[0] != "_"}
    classes = [name for name, value in public.items() if inspect.isclass(value)]
    own = [name for name, value in public.items() if getattr(value, "__module__", None) == module.__name__]
    return list(getattr(module, "__all__", classes if hasattr(module, "__path__") else own))


def build_site(folder: Path) -> None:
    """Build as ``make docs`` does, which refuses dead links and pages that no link leads to."""
    pytest.importorskip("mkdocs", reason="pip install 'legged-envs[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder)))


def test_the_site_builds_and_every_public_name_is_in_its_reference(tmp_path):
    build_site(site := tmp_path / "site")
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    documented = {line.split()[0] for line in inventory.splitlines()}
    modules = public_modules()
    assert len(modules) > 12
    missing = [f"{module.__name__}.{name}" for module in modules for name in public_names(module)]
    lazy = {f"legged_envs.terrains.{path.split('.')[-1]}" for path in documented if ".terrains." in path}
    missing = [path for path in missing if path not in documented | lazy]
    assert not missing, "no docstring, or on no page of docs/reference"
    check_pages(site)


def check_pages(site: Path) -> None:
    """What docstrings and help become on their pages."""
    robot = (site / "reference" / "robot.html").read_text()
    for name in ("lin_vel_b", "projected_gravity"):  # which share a docstring
        assert f'id="legged_envs.sim.RobotState.{name}"' in robot
    clearance = (
        (site / "reference" / "rewards.html").read_text().partition('id="legged_envs.mdp.rewards.foot_clearance"')[2]
    )
    assert "(z_f − z*)², z_f the height" in clearance, "an asterisk is no emphasis"
    help_text = (site / "reference" / "cli.html").read_text()
    assert all(f"usage: legged-envs {verb}" in help_text for verb in cli.VERBS)
    wrappers = (site / "reference" / "wrappers.html").read_text()
    assert ":class:" not in wrappers and "&gt;&gt;&gt;" in re.sub(r"<[^>]+>", "", wrappers)


def modules_on_pages() -> Iterator[ModuleType]:
    """The modules that pages show, without adapters to libraries that are not installed."""
    for name in {name for page in PAGES for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)}:
        try:
            yield importlib.import_module(name)
        except ImportError as error:
            if str(error.name).startswith("legged_envs"):
                raise


@cache
def told_below(module: str) -> set[str]:
    """``Class.name`` of each attribute with a docstring under it, or under those that stand together with it."""
    told: set[str] = set()
    for cls in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        line = 0
        for node in reversed(cls.body) if isinstance(cls, ast.ClassDef) else ():
            if isinstance(node, ast.Expr):
                line = node.lineno
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.end_lineno == line - 1:
                names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
                told |= {f"{cls.name}.{part.id}" for part in names if isinstance(part.ctx, ast.Store)}
                line = node.lineno
    return told


def bare_names(name: str, thing: Any) -> Iterator[str]:
    """Which of a public class or function and the methods and properties that are written for it have no docstring."""
    text = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    if not text or text.startswith(f"{thing.__name__}("):  # dataclasses write such a one
        yield name
    ours = [cls for cls in getattr(thing, "__mro__", ()) if cls.__module__.startswith("legged_envs.")]
    for cls in (cls for cls in ours if cls.__qualname__ == thing.__qualname__):  # configclass makes two of one
        for part, value in vars(cls).items():
            method = inspect.isroutine(value) or isinstance(value, property)
            below = any(f"{base.__name__}.{part}" in told_below(base.__module__) for base in ours)
            if method and part[0] != "_" and not (below or inspect.getdoc(getattr(thing, part))):
                yield f"{name}.{part}"


def test_every_public_name_has_a_docstring():
    things = [(f"{each.__name__}.{n}", getattr(each, n)) for each in modules_on_pages() for n in public_names(each)]
    code = {name: thing for name, thing in things if inspect.isclass(thing) or inspect.isroutine(thing)}
    assert len(code) > 300
    bare = {part for name, thing in code.items() for part in bare_names(name, thing)}
    assert not bare


def test_docstrings_tell_what_is_raised():
    silent = []
    for module in public_modules():
        for name in public_names(module):
            thing = getattr(module, name)
            parts = {name: thing, **{f"{name}.{part}": value for part, value in getattr(thing, "__dict__", {}).items()}}
            for where, function in parts.items():
                shown = "._" not in where or where.endswith(".__init__")
                if not (shown and inspect.isfunction(function) and Path(function.__code__.co_filename).exists()):
                    continue
                if re.search(r"raise (Value|Type|Runtime|FileNotFound|Motion)Error", inspect.getsource(function)):
                    said = f"{inspect.getdoc(thing)} {inspect.getdoc(function)}"
                    silent += [] if "Error" in said else [f"{module.__name__}.{where}"]
    assert not silent


def test_broken_links_are_found(tmp_path):
    pytest.importorskip("griffe")
    from tools.docs import broken

    (tmp_path / "index.html").write_text('<a href="a.html#here">a</a><img src="no.png"><a href="https://x.y">x</a>')
    (tmp_path / "a.html").write_text('<h1 id="there">a</h1><a href="a.html#there">a</a>')
    (tmp_path / "b.html").write_text("alone")
    assert [*broken(tmp_path)] == [
        "index.html: no place 'a.html#here'",
        "index.html: no file 'no.png'",
        "b.html: no link leads there",
    ]
