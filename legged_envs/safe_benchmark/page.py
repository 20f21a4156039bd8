"""Page of the benchmark: tables, figures and commands in one file that needs no network."""

import time
from collections.abc import Sequence
from html import escape
from math import isnan
from pathlib import Path
from string import Template

from legged_envs import __version__
from legged_envs.evaluation.report import TEMPLATE_FILE
from legged_envs.policy.weights_file import write_whole
from legged_envs.safe_benchmark.figures import draw_front, draw_profiles
from legged_envs.safe_benchmark.results import RunResult, notices
from legged_envs.safe_benchmark.rows import Row, column, make_rows
from legged_envs.safe_benchmark.summary_page import (
    ERROR_PROFILE,
    RATIO_PROFILE,
    labelled,
    summaries,
    with_captions,
)
from legged_envs.safe_benchmark.table import (
    improvement_table,
    main_table,
    number,
    risk_table,
    title_of,
)
from legged_envs.tables import format_html

BAR_END = 3.0
"""J / d at the right end of a bar."""

STYLE = """<style>
th, td { overflow-wrap: normal; }
td { white-space: nowrap; }
th { vertical-align: bottom; }
td:first-child, th:first-child { position: sticky; left: 0; background: #fff; }
@media (max-width: 700px) {
  td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
}
caption { max-width: calc(100vw - 2.4rem); }
body > div:has(> figure) {
  grid-template-columns: repeat(auto-fill, minmax(min(350px, 100%), 1fr));
}
meter { width: 6rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
</style>"""
"""Style of the page in addition to the style of reports: wide tables scroll, and do not break
words."""

EXPLANATION = """
<p>J is the mean of a cost per control step, over an episode, then over episodes; d is its limit. A
seed is feasible if J/d ≤ 1 for every cost. Numbers are interquartile means over n seeds, with 95 %
intervals of a stratified bootstrap (Agarwal et al. 2021); n = 1 has no interval. The relative error
is the mean of the velocity error and of the yaw rate error, each divided by the error of the
unconstrained policy (method none). Policies are evaluated without exploration noise on unseen
episodes. Distance is measured in the commanded direction; the second number is the commanded
distance. The share of episodes above a limit and CVaR₀.₁, the mean over the worst tenth of the
episodes, are given for the cost with the largest values. Updates above a limit count the robots in
training, which have exploration noise. steps/s is the median over updates; it depends on the
machine and its other programs. The return is the sum of the task's reward over an episode. A
probability of improvement is over pairs of runs of two methods; ties count half.</p>
"""
"""HTML that explains the columns of the tables."""

SUBMISSION = """
<p>A method is a class with three methods, derived from
<code>legged_envs.safe_benchmark.methods.Method</code>; examples/benchmark_method.py has one in 30
lines. This command trains, evaluates and compares it:</p>
<pre>legged-envs benchmark safe --tasks Go2-Flat --methods none FILE.py:Class --seeds 5</pre>
<p>Send the class and the files of results/ as a pull request.</p>
"""
"""HTML that explains how to submit a method."""


def write_page(path: Path, suite: str, results: Sequence[RunResult]) -> None:
    """Write the page about results, and print its path and size.

    Args:
        path: File to write, .html. An existing file is replaced.
        suite: Name and version of the suite.
        results: Results of that suite.
    """
    data = page(suite, results).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)
    print(f"wrote {path}, {len(data) / 1e6:.1f} MB")


def page(suite: str, results: Sequence[RunResult]) -> str:
    """Return the HTML of the page about results."""
    machines = ", ".join(sorted({result.hardware for result in results}))
    body = [
        STYLE,
        leaderboard(results, "h2"),
        f"<h2>What the numbers are</h2>{EXPLANATION}",
        f"<h2>The command of every row</h2>\n<div>{commands(results)}</div>",
        f"<h2>Your own method</h2>{SUBMISSION}",
        f"<h2>Trained on</h2><p>{escape(machines)}</p>",
    ]
    template = Template(TEMPLATE_FILE.read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(f"{suite}: constrained legged locomotion"),
        subtitle=time.strftime(f"As of %Y-%m-%d %H:%M %z, by legged-envs {__version__}"),
        body="\n".join(body),
    )


def leaderboard(results: Sequence[RunResult], heading: str) -> str:
    """Return notices, tables and figures about results as HTML.

    Args:
        results: Results of one suite.
        heading: Tag of the heading of each task and level, such as ``h2``.
    """
    html = [f"<p class='notice'>{escape(line)}</p>" for line in notices(results)]
    for setting, rows in make_rows(results).items():
        html.append(f"<{heading}>{escape(title_of(setting, rows))}</{heading}>")
        html.append(f"<div>{format_html(main_table(rows))}</div>")
        html.append(f"<div>{format_html(risk_table(rows))}</div>")
        html.append(f"<div>{''.join(figures(rows))}</div>")
        html.append(f"<div>{ratio_bars(rows)}</div>")
        if len(rows) > 1:
            html.append(f"<div>{format_html(improvement_table(rows))}</div>")
    return "\n".join([*html, *summaries(results, heading)])


def figures(rows: Sequence[Row]) -> list[str]:
    """Return the figures about a task and level as HTML, each with a caption."""
    drawn = {}
    if not any(isnan(row.error.value) for row in rows):
        front = "Error against limits; the dashed line joins what nothing beats in both"
        drawn[front] = draw_front(rows)
        errors = {labelled(row.method, row.n): column(row.errors) for row in rows}
        drawn[ERROR_PROFILE] = draw_profiles(errors, "relative tracking error")
    ratios = {}
    for row in rows:
        ratios[labelled(row.method, row.n)] = column([one.worst_ratio for one in row.results])
    drawn[RATIO_PROFILE] = draw_profiles(ratios, "largest J/d")
    return with_captions(drawn)


def ratio_bars(rows: Sequence[Row]) -> str:
    """Return a table of J / d of each cost as HTML, with bars that change colour above 1."""
    costs = list(rows[0].results[0].costs)
    heads = "".join(f"<th>{escape(name)}</th>" for name in ("method", *costs))
    lines = []
    for row in rows:
        cells = [f"<td>{escape(row.method)}, n = {row.n}</td>"]
        ratios = row.ratios
        for name in costs:
            value = f"value='{ratios[name]:.4g}'"
            bar = f"<meter max='{BAR_END}' high='1' optimum='0' {value}></meter>"
            cells.append(f"<td>{bar} {number(ratios[name], '.2f')}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    caption = f"J/d of each cost; bars end at {BAR_END:g} and change colour above the limit"
    return f"<table><caption>{caption}</caption><tr>{heads}</tr>{''.join(lines)}</table>"


def commands(results: Sequence[RunResult]) -> str:
    """Return the command that makes each row again, and the training of its first seed, as HTML."""
    lines = []
    for rows in make_rows(results).values():
        for row in rows:
            first = row.results[0]
            name = escape(f"{first.task} {first.level} {first.method}")
            command = escape(f"{row.command}\n\n{first.command}")
            lines.append(f"<details><summary>{name}</summary><pre>{command}</pre></details>")
    return "".join(lines)
