"""Hooks of MkDocs, in addition to ``mkdocs.yml``.

Docstrings become Markdown; the docstring of a term lists the tasks that use the term. Pages get the
help of the command line, the table of ids and the videos of the gallery. Every link of the finished
site is checked.
"""

import io
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import griffe

TASKS_MARK = "<!-- tasks -->"
"""Stands in a page for the table of ids."""
COMMAND_LINE_MARK = "<!-- command line -->"
"""Stands in a page for the help of every command."""
CARDS_MARK = "<!-- model cards -->"
"""Stands in a page for the model cards of the pretrained policies."""
FILMS_MARK = "<!-- films -->"
"""Stands in a page for the films of the gallery."""
BENCHMARK_MARK = "<!-- safe benchmark -->"
"""Stands in a page for tables, figures and commands of the results in benchmarks/safe_results."""
ROBOTS_MARK = "<!-- robots in the browser -->"
"""Stands in a page for the robots that run in the browser, see `tools/browser.py`."""
FILM = (
    '<figure><video src="{0}.mp4" aria-label="{1}" controls loop muted width="480"></video>'
    "<figcaption>{1}</figcaption></figure>"
)
"""HTML of a film: the name of its file, and what it shows."""

TERM_MODULES = (
    "legged_envs.mdp.costs",
    "legged_envs.mdp.curricula",
    "legged_envs.mdp.events",
    "legged_envs.mdp.gait_curriculum",
    "legged_envs.mdp.gait_observations",
    "legged_envs.mdp.gait_rewards",
    "legged_envs.mdp.goal_rewards",
    "legged_envs.mdp.observations",
    "legged_envs.mdp.reference_rewards",
    "legged_envs.mdp.rewards",
    "legged_envs.mdp.scan",
    "legged_envs.mdp.terminations",
)
"""Modules with functions that tasks use as terms."""
MOST_MISSING_TASKS = 4
"""Largest number of missing tasks with which a list of tasks becomes "all tasks except …"."""

_PROMPT = re.compile(r"(?:^>>> .*\n?(?:^(?!>>> )\S.*\n?)*)+", re.MULTILINE)
_ROLE = re.compile(r":\w+:`(?:[^`<>]*<)?(~?)([\w.]+)>?`")
_LINK = re.compile(
    r"""<(?:a|img|link|script|video|source)\b[^>]*?\s(?:href|src)=["']?([^"'\s>]+)"""
)
_ANCHOR = re.compile(r"""\s(?:id|name)=["']?([^"'\s>]+)""")
_STARRED_ARGUMENT = re.compile(r"\s*\*{1,2}\w+: ")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Docstrings(griffe.Extension):
    """Docstrings of this package as Markdown: roles and literals become code, examples blocks."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        """Convert the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
            tasks = describe_tasks(obj.path)
            if obj.is_function and tasks is None and is_term(obj):
                tasks = "No registered task uses this term."
            if tasks is not None:
                obj.docstring.value += f"\n\n{tasks}"


def is_term(function: Any) -> bool:
    """Return True if a function of the package is a term, which tasks can use."""
    is_public = not function.name.startswith("_") and function.module.path in TERM_MODULES
    return is_public and "env" in function.parameters


def describe_tasks(path: str) -> str | None:
    """Return one sentence with the tasks that use a term, and its weights or limits.

    Args:
        path: Path of the term's function, or of the class of a command's or action's configuration,
            such as ``legged_envs.mdp.rewards.trot``.

    Returns:
        The sentence, as Markdown. None: no registered task uses the term.
    """
    settings = tasks_by_term().get(path)
    if settings is None:
        return None
    parts = []
    for setting, names in settings.items():
        listed = _listed(names)
        parts.append(f"{listed} ({setting})" if setting else listed)
    return f"**Used by** {'; '.join(parts)}."


def _listed(names: list[str]) -> str:
    """Return names of tasks in a row, or the names that are missing if these are few."""
    missing = [name for name in map(_short_name, own_tasks()) if name not in names]
    if not missing:
        return "all tasks"
    if len(missing) <= MOST_MISSING_TASKS:
        return f"all tasks except {', '.join(missing)}"
    return ", ".join(dict.fromkeys(names))


def _short_name(task_id: str) -> str:
    return task_id.removeprefix("Legged/").removesuffix("-v0")


def own_tasks() -> list[str]:
    """Return the ids of this package's tasks, without those that others registered."""
    from legged_envs.tasks import TASKS

    return [task_id for task_id, cfg in TASKS.items() if str(cfg).startswith("legged_envs.")]


@cache
def tasks_by_term() -> dict[str, dict[str, list[str]]]:
    """Return the tasks of this package that use each term.

    Returns:
        Path of a term → its weight or limit, empty if it has none → names of tasks, such as
        ``Go2-Flat``.
    """
    from legged_envs.tasks import make_task_cfg

    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for task_id in own_tasks():
        name = _short_name(task_id)
        for term, setting in _terms_of(make_task_cfg(task_id)):
            found[f"{term.__module__}.{term.__qualname__}"][setting].append(name)
    return found


def _terms_of(task: Any) -> Iterator[tuple[Any, str]]:
    """Yield the functions and classes of a task's terms, each with its weight or limit."""
    terms: list[tuple[Any, str]] = []
    for reward in task.rewards.values():
        terms.append((reward, f"weight {reward.weight:.3g}"))
    for cost in task.costs.values():
        terms.append((cost, "no limit" if cost.limit is None else f"limit {cost.limit:.3g}"))
    for group in task.observations.values():
        terms.extend((term, "") for term in group.terms.values())
    for others in (task.terminations, task.events, task.curriculum):
        terms.extend((term, "") for term in others.values())
    for term, setting in terms:
        yield term.func, setting
        # A term may evaluate another one, for example only for some robots.
        for value in term.params.values():
            if callable(value):
                yield value, setting
    for others in (task.commands, task.actions):
        for term in others.values():
            yield type(term), ""


def as_markdown(text: str) -> str:
    """Return a docstring, reStructuredText as in this package, as Markdown."""
    text = _PROMPT.sub(_as_block, text)
    # mkdocstrings itself makes blocks of indented examples, which stand in a section Examples.
    block = r"(```pycon\n.*?\n```|^ +>>> .*?(?=\n\s*\n|\Z))"
    parts = re.split(block, text, flags=re.DOTALL | re.MULTILINE)
    for i, part in enumerate(parts):
        if not part.lstrip().startswith(("```pycon", ">>> ")):
            parts[i] = _prose_as_markdown(part)
    return "".join(parts)


def _as_block(prompt: re.Match[str]) -> str:
    """Return an example as a block of code."""
    return f"\n```pycon\n{prompt[0].rstrip()}\n```\n"


def _prose_as_markdown(text: str) -> str:
    text = _ROLE.sub(_as_code, text)
    # A paragraph that announces a block ends with two colons.
    text = re.sub(r"(?<=:):$", "", text, flags=re.MULTILINE)
    pieces = re.split(r"(``.+?``)", text, flags=re.DOTALL)
    for i, piece in enumerate(pieces):
        if not piece.startswith("``"):
            pieces[i] = _escape(piece)
    return "".join(pieces)


def _escape(text: str) -> str:
    """Return text with escaped Markdown characters; names of ``*args`` stay."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if not _STARRED_ARGUMENT.match(line):
            # Markdown has no backslash before "<".
            lines[i] = re.sub(r"([*\[])", r"\\\1", line).replace("<", "&lt;")
    return "\n".join(lines)


def _as_code(role: re.Match[str]) -> str:
    """Return the target of a role; after a tilde only its last part."""
    name = role[2]
    if role[1]:
        name = name.split(".")[-1]
    return f"``{name}``"


def on_page_markdown(markdown: str, page: Any, config: Any, **kwargs: Any) -> str:
    """Replace marks by the table of ids of README.md, the help of every command and the films.

    Args:
        markdown: Text of the page.
        page: The page.
        config: Configuration of MkDocs.
        kwargs: Not read.

    Returns:
        The text of the page with these parts.
    """
    docs = Path(config["docs_dir"])
    if TASKS_MARK in markdown:
        markdown = markdown.replace(f"{TASKS_MARK}\n", _table_of_ids(docs.parent / "README.md"))
    if COMMAND_LINE_MARK in markdown:
        markdown = markdown.replace(COMMAND_LINE_MARK, command_line())
    if CARDS_MARK in markdown:
        markdown = markdown.replace(CARDS_MARK, model_cards())
    if FILMS_MARK in markdown:
        films = sorted((docs / "gallery").glob("*.mp4"))
        videos = [FILM.format(film.stem, _describe_film(film.stem)) for film in films]
        markdown = markdown.replace(FILMS_MARK, "\n".join(videos))
    return markdown


def model_cards() -> str:
    """Return the model cards of all pretrained policies, as sections of a page."""
    from legged_envs.policy.card import make_card
    from legged_envs.policy.lookup import policy_and_task
    from legged_envs.policy.shipped import SHIPPED

    sections = []
    for task_id, file in SHIPPED.items():
        policy, cfg, _ = policy_and_task(task_id)
        card = make_card(policy.contract, cfg, file, is_shipped=True)
        text = card.split("---\n", 2)[2]
        # A card is a page of its own, here it is a section.
        sections.append(re.sub(r"^#", "##", text, flags=re.MULTILINE))
    return "\n".join(sections)


def _describe_film(stem: str) -> str:
    """Return what a film of the gallery shows: the robot, and its task or kind of terrain.

    Args:
        stem: Name of the file, without its ending.
    """
    from tools.gallery import find_films

    films = find_films()
    if stem in films:
        return f"{films[stem].text} ({films[stem].task_id})"
    raise SystemExit(f"docs/gallery/{stem}.mp4 shows no task with a pretrained policy: remove it")


def on_page_content(html: str, config: Any, **kwargs: Any) -> str:
    """Put the robots that run in the browser, and the results of the benchmark, at their marks.

    Args:
        html: The page, without what all pages have.
        config: Configuration of MkDocs.
        kwargs: Not read.

    Returns:
        The page with the robots, or with one sentence on why they are left out.
    """
    root = Path(config["docs_dir"]).parent
    if BENCHMARK_MARK in html:
        html = html.replace(BENCHMARK_MARK, safe_benchmark(root / "benchmarks" / "safe_results"))
    if ROBOTS_MARK not in html:
        return html
    folder = Path(config["site_dir"]) / "demo"
    # MkDocs reads this file alone, so that it cannot import its neighbour.
    subprocess.run([sys.executable, "-m", "tools.browser", str(folder)], cwd=root, check=True)
    fragment = folder / "page.html"
    robots = fragment.read_text()
    # It is a part of a page, and no page of the site.
    fragment.unlink()
    return html.replace(ROBOTS_MARK, robots)


def safe_benchmark(folder: Path) -> str:
    """Return the leaderboard of the benchmark and the commands of its rows as HTML.

    Args:
        folder: Folder of the published results.
    """
    from legged_envs.envs.cost_suites import SUITE
    from legged_envs.safe_benchmark.page import commands, leaderboard
    from legged_envs.safe_benchmark.results import read_results

    results = read_results(folder, SUITE)
    html = f"{leaderboard(results, 'h3')}<h3>The command of every row</h3>{commands(results)}"
    return f"<div class='leaderboard'>{html}</div>"


def _table_of_ids(readme: Path) -> str:
    """Return the only table of a file that begins with a column of ids."""
    (table,) = re.findall(r"^\| id \|.*?\n(?=\n)", readme.read_text(), re.MULTILINE | re.DOTALL)
    text: str = table
    return text


def command_line() -> str:
    """Return the help of ``legged-envs`` and of each of its commands, as its parser prints it."""
    os.environ["COLUMNS"] = "84"
    os.environ["NO_COLOR"] = "1"
    # Later than the environment variables, which decide how the help is printed.
    from legged_envs import cli
    from legged_envs.training.options import ALGORITHMS

    sections = [_help_section(cli.main, "legged-envs", [])]
    for verb in cli.VERBS:
        sections.append(_help_section(cli.main, f"legged-envs {verb}", [verb]))
    for name in ALGORITHMS:
        words = ["train", "Legged/Go2-Mimic-v0", name]
        sections.append(_help_section(cli.main, f"legged-envs train TASK_ID {name}", words))
    return "\n\n".join(sections)


def _help_section(main: Callable[[list[str]], object], title: str, words: list[str]) -> str:
    """Return the help of one command under its title."""
    with redirect_stdout(io.StringIO()) as text, suppress(SystemExit):
        main([*words, "--help"])
    printed = _COLOUR.sub("", text.getvalue()).strip()
    return f"## {title}\n\n```text\n{printed}\n```"


def on_post_build(config: Any, **kwargs: Any) -> None:
    """Check the finished site.

    Args:
        config: Configuration of MkDocs.
        kwargs: Not read.

    Raises:
        SystemExit: With a list of links within the site that are dead, and of pages that no link
            leads to.
    """
    faults = list(broken(Path(config["site_dir"])))
    if faults:
        raise SystemExit("the site has\n" + "\n".join(faults))


@dataclass
class _Site:
    """The pages of a site, and which of them are reached from its front page."""

    folder: Path
    texts: dict[Path, str]
    anchors: dict[Path, set[str]]
    reached: set[Path] = field(default_factory=set)
    waiting: list[Path] = field(default_factory=list)

    def reach(self, page: Path) -> None:
        """Note that a link leads to a page."""
        if page in self.texts and page not in self.reached:
            self.reached.add(page)
            self.waiting.append(page)

    def check_link(self, page: Path, link: str) -> str | None:
        """Return what is wrong with a link within the site; None if nothing is."""
        address, anchor = urldefrag(link)
        target = page
        if address:
            path = unquote(urlsplit(address).path)
            target = (page.parent / path).resolve()
        if target.is_dir():
            target = target / "index.html"
        if not target.exists():
            return f"no file {link!r}"
        self.reach(target)
        if anchor and target in self.anchors and unquote(anchor) not in self.anchors[target]:
            return f"no place {link!r}"
        return None


def broken(site: Path) -> Iterator[str]:
    """Yield the faults of a site: dead links, missing anchors, and pages that no link leads to.

    Args:
        site: Folder of the site.
    """
    folder = site.resolve()
    texts = {}
    anchors = {}
    for path in folder.rglob("*.html"):
        if path.name == "404.html":
            continue
        text = path.read_text()
        texts[path] = text
        anchors[path] = {unescape(name) for name in _ANCHOR.findall(text)}
    pages = _Site(folder, texts, anchors)
    pages.reach(folder / "index.html")
    while pages.waiting:
        page = pages.waiting.pop()
        for found in _LINK.findall(texts[page]):
            link = unescape(found)
            is_outside = urlsplit(link).scheme or link.startswith("//")
            fault = None if is_outside else pages.check_link(page, link)
            if fault is not None:
                yield f"{page.relative_to(folder)}: {fault}"
    for path in texts:
        if path not in pages.reached:
            yield f"{path.relative_to(folder)}: no link leads there"
