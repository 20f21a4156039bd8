"""What MkDocs is told beside ``mkdocs.yml``: docstrings as Markdown, the command line's own help, films of the gallery,
and a look at every link of the finished site."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import griffe

_PROMPT = re.compile(r"(?:^>>> .*\n?(?:^(?!>>> )\S.*\n?)*)+", re.MULTILINE)
_ROLE = re.compile(r":\w+:`(?:[^`<>]*<)?(~?)([\w.]+)>?`")
_LINK = re.compile(
    r"""<(?:a|img|link|script|video|source)\b[^>]*?\s(?:href|src)=["']?([^"'\s>]+)"""
)
_ANCHOR = re.compile(r"""\s(?:id|name)=["']?([^"'\s>]+)""")


class Docstrings(griffe.Extension):
    """Docstrings of this package as Markdown: roles and literals become code, examples blocks. Attributes that stand
    together have one docstring, under the last of them: the others are shown above it, without text."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_members(self, *, obj: Any, **kwargs: Any) -> None:
        below: Any = None
        own = [
            member for member in obj.members.values() if not member.is_alias and member.is_attribute
        ]
        for member in sorted(own, key=lambda member: -member.lineno):
            if (
                member.docstring is None
                and below is not None
                and below.lineno - member.endlineno == 1
            ):
                member.docstring = griffe.Docstring("&#8203;", parent=member)
            below = (
                member if member.docstring is not None and member.endlineno is not None else None
            )


def as_markdown(text: str) -> str:
    """A docstring, reStructuredText as this package writes it, as Markdown."""
    text = _PROMPT.sub(lambda block: f"\n```pycon\n{block[0].rstrip()}\n```\n", text)
    parts = re.split(r"(```pycon\n.*?\n```)", text, flags=re.DOTALL)
    return "".join(part if part.startswith("```pycon") else _prose(part) for part in parts)


def _prose(text: str) -> str:
    text = _ROLE.sub(lambda role: f"``{role[2].split('.')[-1] if role[1] else role[2]}``", text)
    text = re.sub(r"(?<=:):$", "", text, flags=re.MULTILINE)
    pieces = re.split(r"(``.+?``)", text, flags=re.DOTALL)
    return "".join(
        piece if piece.startswith("``") else re.sub(r"([*<\[])", r"\\\1", piece) for piece in pieces
    )


def on_page_markdown(markdown: str, page: Any, config: Any, **kwargs: Any) -> str:
    """Put the help of every command in place of ``<!-- command line -->``, the table of ids in README.md in place of
    ``<!-- tasks -->``, and the films that ``make gallery`` has made in place of ``<!-- films -->``."""
    if "<!-- tasks -->" in markdown:
        readme = Path(config["docs_dir"], "..", "README.md").read_text()
        (table,) = re.findall(r"^\| id \|.*?\n(?=\n)", readme, re.M | re.S)
        markdown = markdown.replace("<!-- tasks -->\n", table)
    if "<!-- command line -->" in markdown:
        markdown = markdown.replace("<!-- command line -->", command_line())
    films = sorted(Path(config["docs_dir"], "gallery").glob("*.mp4"))
    video = '<figure><video src="{0}.mp4" controls loop muted width="480"></video><figcaption>{0}</figcaption></figure>'
    return markdown.replace("<!-- films -->", "\n".join(video.format(film.stem) for film in films))


def command_line() -> str:
    """The help of ``legged-envs`` and of each of its commands, as its parser prints it."""
    os.environ |= {"COLUMNS": "84", "NO_COLOR": "1"}
    from legged_envs import cli

    pages: list[tuple[str, list[str]]] = [("legged-envs", [])]
    pages += [(f"legged-envs {verb}", [verb]) for verb in cli.VERBS]
    pages += [
        (f"legged-envs train TASK_ID {name}", ["train", "Legged/Go2-Mimic-v0", name])
        for name in _algorithms()
    ]
    return "\n\n".join(
        f"## {title}\n\n```text\n{_help(cli.main, words)}\n```" for title, words in pages
    )


def _algorithms() -> tuple[str, ...]:
    from legged_envs.training.options import ALGORITHMS

    return tuple(ALGORITHMS)


def _help(main: Any, words: list[str]) -> str:
    with redirect_stdout(io.StringIO()) as text, suppress(SystemExit):
        main([*words, "--help"])
    return re.sub(r"\x1b\[[0-9;]*m", "", text.getvalue()).strip()


def on_post_build(config: Any, **kwargs: Any) -> None:
    """SystemExit, which says them, if links within the site are dead or pages are not reached from the front page."""
    if wrong := [*broken(Path(config["site_dir"]))]:
        raise SystemExit("the site has\n" + "\n".join(wrong))


def broken(site: Path) -> Iterator[str]:
    """What is wrong with the links of a site: targets and anchors that are not there, pages that no link leads to."""
    site = site.resolve()
    texts = {path: path.read_text() for path in site.rglob("*.html") if path.name != "404.html"}
    anchors = {
        path: {unescape(name) for name in _ANCHOR.findall(text)} for path, text in texts.items()
    }
    reached, waiting = {site / "index.html"}, [site / "index.html"]
    while waiting:
        page = waiting.pop()
        for link in map(unescape, _LINK.findall(texts[page])):
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            address, anchor = urldefrag(link)
            target = (page.parent / unquote(urlsplit(address).path)).resolve() if address else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{page.relative_to(site)}: no file {link!r}"
                continue
            if anchor and target in anchors and unquote(anchor) not in anchors[target]:
                yield f"{page.relative_to(site)}: no place {link!r}"
            if target in texts and target not in reached:
                reached.add(target)
                waiting.append(target)
    yield from (
        f"{page.relative_to(site)}: no link leads there" for page in texts if page not in reached
    )
