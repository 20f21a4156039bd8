"""Numbers on README.md and the start page: those of policies are in the headers of their files, others on the page that
is linked next to them."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean

import pytest

from legged_envs.policy.header import read_evaluation
from legged_envs.policy.shipped import SHIPPED
from legged_envs.tasks import TASKS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
INDEX = ROOT / "docs" / "index.md"
NO_POLICY = "no policy yet"
NUMBER = re.compile(r"(?<![\w.])\d+(?:[,\N{NO-BREAK SPACE} ]\d{3})*(?:\.\d+)?(?![\w.]*\d)")
"""A number, with separators of thousands."""


def expand(cell: str) -> list[str]:
    """The ids of a cell such as `Legged/{Go1,A1}-Rough-v0`."""
    text = cell.strip("`")
    found = re.search(r"\{(.+?)\}", text)
    if found is None:
        return [text]
    return [text.replace(found[0], name) for name in found[1].split(",")]


def rows_of_readme() -> dict[str, list[str]]:
    """The cells of the table of tasks, by id."""
    (table,) = re.findall(r"^\| id \|.*\n\|[-|]+\n((?:\|.*\n)+)", README.read_text(), re.M)
    rows = {}
    for row in table.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        for task_id in expand(cells[0]):
            rows[task_id] = cells
    return rows


def error_of(task_id: str) -> str:
    """The main error in the header of a policy, as in the table of tasks."""
    evaluation = read_evaluation(SHIPPED[task_id])
    clips = evaluation.get("clips")
    if clips:
        return f"{fmean(clip['joint_error'] for clip in clips.values()):.3f} rad"
    return f"{evaluation['lin_vel_error']:.3f} m/s"


def test_the_table_has_every_task_once():
    ids = [task_id for task_id in TASKS if task_id.startswith("Legged/")]
    assert sorted(rows_of_readme()) == sorted(ids)


@pytest.mark.parametrize("task_id", sorted(rows_of_readme()))
def test_errors_are_those_of_the_policies(task_id):
    error = rows_of_readme()[task_id][-1]
    assert error == (error_of(task_id) if task_id in SHIPPED else NO_POLICY)


def linked_numbers(page: Path) -> list[tuple[str, Path]]:
    """Each number of a paragraph, item or row that links a page, and this page."""
    found = []
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for part in re.split(r"\n\n|\n(?=[-|] |\| )", text):
        links = re.findall(r"\]\((?!http)([\w/.-]+\.md)", part)
        if len(links) == 1:
            plain = re.sub(r"\]\(.*?\)|`.*?`", "", part)
            found += [(number, page.parent / links[0]) for number in NUMBER.findall(plain)]
    return [(number, target) for number, target in found if len(number) > 1]


def numbers_of(page: Path) -> set[str]:
    """The numbers of a page, without separators of thousands."""
    return {re.sub(r"[^\d.]", "", number) for number in NUMBER.findall(page.read_text())}


@pytest.mark.parametrize("page", [README, INDEX], ids=lambda page: page.name)
def test_numbers_are_on_the_page_that_proves_them(page):
    claims = linked_numbers(page)
    assert len(claims) >= 4
    unproven = [
        f"{number} is not in {target.relative_to(ROOT)}"
        for number, target in claims
        if re.sub(r"[^\d.]", "", number) not in numbers_of(target)
    ]
    assert not unproven


def test_numbers_are_found(tmp_path):
    (tmp_path / "a.md").write_text("Two cores make 34,600 steps, 0.90 of `x 12`. [A](b.md)\n\n99")
    (tmp_path / "b.md").write_text("| 34 600 | 0.9 |")
    claims = linked_numbers(tmp_path / "a.md")
    assert [number for number, _ in claims] == ["34,600", "0.90"]
    assert numbers_of(tmp_path / "b.md") == {"34600", "0.9"}
