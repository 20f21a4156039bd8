"""Numbers of pretrained policies on pages are those in the headers of their files. Other numbers on README.md and the
start page are on the page that is linked next to them."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean

import pytest

from legged_envs.policy.header import HARSH_KEY, headline, read_evaluation
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


def rows_of(page: str, text: str) -> dict[str, list[str]]:
    """The cells of the first table below a text, without the first ones, by these."""
    _, below = (ROOT / "docs" / page).read_text().split(text, maxsplit=1)
    table = re.search(r"^\|[-|]+\n((?:\|.*\n)+)", below, re.M)[1]
    rows = {}
    for row in table.splitlines():
        first, *cells = [cell.strip().strip("`") for cell in row.strip("|").split("|")]
        rows[first] = cells
    return rows


def test_trained_policies_of_the_benchmarks():
    rows = rows_of("benchmarks.md", "### Pretrained policies")
    assert {*rows} == {task_id for task_id in SHIPPED if "-Flat-" in task_id}
    for task_id, cells in rows.items():
        velocity, turning, falls, _ = headline(read_evaluation(SHIPPED[task_id]))
        assert cells[-3:-1] == [f"{velocity} m/s", f"{turning} rad/s"], task_id
        assert float(cells[-1].removesuffix(" %")) == float(falls.removesuffix("%")), task_id


def test_lines_of_the_list_on_the_start_page():
    lines = re.findall(r"^(Legged/\S+) (.*)", (ROOT / "docs" / "start.md").read_text(), re.M)
    assert len(lines) > 1
    for task_id, cells in lines:
        expected = headline(read_evaluation(SHIPPED[task_id]))[:3]
        assert tuple(cells.split()[:3]) == expected, task_id


def test_policies_under_harsh_conditions():
    rows = rows_of("how-to/train.md", "| policy | usual:")
    assert len(rows) > 10
    for task_id, (usual, harsh, _, _) in rows.items():
        for cell, key in ((usual, "evaluation"), (harsh, HARSH_KEY)):
            about = read_evaluation(SHIPPED[task_id], key)
            expected = [f"{about['lin_vel_error']:.3f}", f"{about['falls']:.1%}"]
            assert cell.split(", ")[:2] == expected, (task_id, key)


def test_crossings_of_rough_ground():
    """By kind of tile: of two policies, on level 3, on level 6 and on all levels."""
    rows = rows_of("how-to/rough-ground.md", "## Results of the pretrained policies")
    policies = ("Legged/Go2-Rough-v0", "Legged/Go2-Blind-v0")
    levels = (slice(3, 4), slice(6, 7), slice(None))
    crossings = [read_evaluation(SHIPPED[task_id])["crossings"] for task_id in policies]
    *kinds, mean = rows
    assert kinds == list(crossings[0])
    for kind in kinds:
        crossed = [fmean(of_policy[kind][span]) for of_policy in crossings for span in levels]
        assert rows[kind] == [f"{100 * value:.0f} %" for value in crossed], kind
    means = []
    for of_policy in crossings:
        for span in levels:
            means.append(fmean(fmean(of_kind[span]) for of_kind in of_policy.values()))
    assert rows[mean] == [f"{100 * value:.0f} %" for value in means]
    page = (ROOT / "docs" / "how-to" / "rough-ground.md").read_text()
    _, results = " ".join(page.split()).split("## Results of the pretrained policies", 1)
    for task_id in policies:
        crossed = f"{100 * read_evaluation(SHIPPED[task_id])['crossed']:.1f} %"
        name = task_id.removeprefix("Legged/").removesuffix("-v0")
        # The share stands before the name, whatever words are between.
        assert re.search(rf"\b{re.escape(crossed)}[^%]*?`{name}`", results), task_id
    # The same numbers as in the list of tasks.
    remarks = [headline(read_evaluation(SHIPPED[task_id]))[-1] for task_id in policies]
    assert remarks[0].startswith(f"{rows[mean][0].replace(' ', '')} cross level 3")
    assert remarks[1].startswith(f"{rows[mean][3].replace(' ', '')} cross level 3")


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
