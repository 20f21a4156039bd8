"""Comparison of training runs: as a table, and as a page in one file that needs no network."""

import base64
import json
import time
from collections.abc import Sequence
from html import escape
from io import StringIO
from math import isfinite, isnan, nan
from pathlib import Path
from statistics import fmean, stdev
from string import Template
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Column
from rich.table import Table as RichTable

from legged_envs import __version__, system_checks
from legged_envs.evaluation.curve_labels import (
    Bound,
    common_bounds,
    make_bounds,
    read_cost_limits,
)
from legged_envs.evaluation.run_results import (
    ABSENT,
    INCIDENTAL_OPTIONS,
    SEED_OPTION,
    DefaultConfig,
    Run,
    check_own_file,
    explain_damaged_files,
    find_differences,
    group_by_configuration,
    read_runs,
    without_options,
)
from legged_envs.policy.weights_file import write_whole
from legged_envs.tables import Table, format_cell, format_html, shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VIDEO_FILE = "video.mp4"
"""Name of the video in a run folder."""

TRACKING_FILE = "tracking.png"
"""Name of the plot of tracking errors in the run folder of a mimic training."""

LARGEST_PICTURE = 2**28
"""Largest size of a video or picture in the page, bytes."""

SESSION_COLUMNS = ("started", "update", "command", "hardware", "commits", "versions")
"""Names of the entries of a session that the page shows. A session is one process of a run."""

UNKNOWN_SESSION = {"started": "not recorded"}
"""Placeholder for the sessions of a run that was trained with an earlier version."""

TEMPLATE_FILE = Path(__file__).with_name("report.html")
"""HTML template of the page."""


def write_report(runs: Sequence[Path], out: Path, default_config: DefaultConfig) -> None:
    """Write a page about runs, and print its path and size.

    Args:
        runs: Run folders.
        out: File to write, .html. An existing file is replaced.
        default_config: Returns the default configurations of a task.

    Raises:
        FileNotFoundError: If there is no run in a folder.
        ValueError: If there is no run, a file is damaged, or the page cannot be written.
        ModuleNotFoundError: If matplotlib is not installed.
    """
    system_checks.check_output("--out", out, endings=(".html",))
    system_checks.check_installed("matplotlib")
    # The page is complete before a file is touched.
    with explain_damaged_files(*runs):
        text = page(read_runs("report", runs), default_config)
    out.parent.mkdir(parents=True, exist_ok=True)
    # JSON can hold halves of characters, which no text file can.
    data = text.encode("utf-8", errors="xmlcharrefreplace")
    write_whole(out, data)
    print(f"wrote {out}, {len(data) / 1e6:.1f} MB")


def compare(runs: Sequence[Path]) -> None:
    """Print runs next to each other.

    The table shows the options in which they differ, how far they are, and the results of their
    trainings and evaluations.

    Args:
        runs: Run folders.

    Raises:
        FileNotFoundError: If there is no run in a folder.
        ValueError: If there is no run, or a file is damaged.
    """
    with explain_damaged_files(*runs):
        _, header, rows = comparison(read_runs("compare", runs))
    # Names of options are longer than a column: they are folded, and not cut.
    table = RichTable(*(Column(head, overflow="fold") for head in header))
    for row in rows:
        table.add_row(*map(format_cell, row))
    Console().print(table, markup=False)


# --- table ----------------------------------------------------------------------------------------


def comparison(runs: Sequence[Run]) -> Table:
    """Return a table with a column for each run.

    Runs that differ only in their seed also get a column for their mean ± standard deviation.
    """
    groups = group_by_configuration(runs)
    several = {label: group for label, group in groups.items() if len(group) > 1}
    paths = [str(run.path) for run in runs]
    means = [f"mean ± deviation of {label}" for label in several]
    statuses = [run.status for run in runs]
    rows = [
        *_option_rows(runs),
        ("status", *statuses),
        *_result_rows(runs, list(several.values())),
    ]
    return "", ("", *paths, *means), rows


def _option_rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """Return the options in which runs differ, their seed among them."""
    configs = [without_options(run.config, INCIDENTAL_OPTIONS) for run in runs]
    # Of different tasks, everything in their configurations would differ.
    of_one_task = len({run.task_id for run in runs}) == 1
    rows = []
    for name, values in find_differences(configs).items():
        if of_one_task or "task." not in name:
            rows.append((name, *map(_shown, values)))
    return rows


def _result_rows(runs: Sequence[Run], groups: Sequence[Sequence[Run]]) -> list[tuple[str, ...]]:
    """Return the results of runs, and their spread in each of the groups."""
    from legged_envs.evaluation.metrics.velocity import UNITS

    rows = []
    for name in _result_names(runs):
        head = name.replace("_", " ")
        unit = UNITS.get(name)
        # Fractions are shown without a unit.
        if unit is not None and unit != "%":
            head += f", {unit}"
        values = [_shown(run.results.get(name, ABSENT)) for run in runs]
        spreads = [_spread(name, group) for group in groups]
        rows.append((head, *values, *spreads))
    return rows


def _result_names(runs: Sequence[Run]) -> list[str]:
    """Return the names of results that are finite in one of the runs."""
    names: dict[str, None] = {}
    for run in runs:
        for name, value in run.results.items():
            # The seed of an evaluation is the same for all runs.
            if isfinite(value) and name != SEED_OPTION:
                names[name] = None
    return list(names)


def _spread(name: str, group: Sequence[Run]) -> str:
    """Return mean ± standard deviation of a result, and the number of runs if not all have it."""
    values = [run.results[name] for run in group if name in run.results]
    # One value has no deviation.
    if len(values) < 2:
        return ""
    text = f"{_shown(fmean(values))} ± {_shown(stdev(values))}"
    if len(values) < len(group):
        text += f" ({len(values)} of {len(group)})"
    return text


def _shown(value: object) -> str:
    if value is None:
        return "None"
    if not isinstance(value, float):
        return shorten(format_cell(value), 80)
    if isnan(value):
        return ABSENT
    if abs(value) >= 1e4:
        return f"{value:,.0f}"
    return f"{value:.4g}"


# --- page -----------------------------------------------------------------------------------------


def page(runs: Sequence[Run], default_config: DefaultConfig) -> str:
    """Return the HTML of a page about runs.

    Runs that differ only in their seed are drawn as one curve, with their spread.

    Args:
        runs: Finished or unfinished runs.
        default_config: Returns the default configurations of a task.
    """
    groups = group_by_configuration(runs)
    sections = {
        "Results": format_html(comparison(runs)),
        "Learning curves": _learning_curves(groups),
        "Costs": "".join(_costs(label, group) for label, group in groups.items()),
        "Pictures": "".join(_pictures(run) for run in runs),
        "Configuration": "".join(
            _configuration(label, group, default_config) for label, group in groups.items()
        ),
        "Made with": _sessions(runs),
    }
    body = []
    for run in runs:
        if run.status != "finished":
            notice = escape(f"{run.path}: {run.status}")
            body.append(f"<p class='notice'>{notice}</p>")
    for title, html in sections.items():
        if html:
            body.append(f"<h2>{title}</h2>\n<div>{html}</div>")
    task_ids = dict.fromkeys(run.task_id for run in runs)
    template = Template(TEMPLATE_FILE.read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(", ".join(task_ids)),
        subtitle=time.strftime(f"As of %Y-%m-%d %H:%M %z, by legged-envs {__version__}"),
        body="\n".join(body),
    )


def _learning_curves(groups: dict[str, list[Run]]) -> str:
    from legged_envs.evaluation.plots import draw_curves

    curves = {}
    for label, group in groups.items():
        begun = [run.curve for run in group if run.curve]
        if begun:
            curves[label] = begun
    if not curves:
        return "There is no curve yet."
    bounds = common_bounds(_bounds_of(run) for group in groups.values() for run in group)
    return svg(draw_curves(curves, bounds))


def _bounds_of(run: Run) -> dict[str, Bound]:
    """Return the goals and limits of the columns of a run's learning curve."""
    from legged_envs.evaluation.metrics.velocity import VelocityMetrics

    # Only the evaluation of a task with a goal says when it was reached.
    goal = VelocityMetrics.GOAL if "time_to_walk" in run.evaluation else {}
    return make_bounds(goal, read_cost_limits(run.config["task"]))


def svg(figure: "Figure") -> str:
    """Return a figure as an SVG element, without the XML header before it."""
    # Vectors are sharp at any zoom, and smaller than a bitmap.
    file = StringIO()
    figure.savefig(file, format="svg")
    text = file.getvalue()
    return text[text.index("<svg") :]


def _costs(label: str, group: Sequence[Run]) -> str:
    """Return a table of mean costs, their limits, and bars that change colour at the limit."""
    evaluations = [run.evaluation for run in group if run.evaluation]
    if not evaluations:
        return ""
    rows = []
    for name, given in evaluations[0]["cost_limits"].items():
        limit = float(given)
        # A cost that was not measured is None.
        costs = [evaluation["costs"][name] for evaluation in evaluations]
        measured = [cost for cost in costs if cost is not None]
        mean = fmean(measured) if measured else nan
        # The limit is at a third of the bar, so that an excess can be seen.
        bar = f"<meter max='{3 * limit}' high='{limit}' optimum='0' value='{mean}'></meter>"
        cells = f"<td>{escape(name)}<td>{mean:.4f}<td>≤ {limit:g}<td>{bar}"
        rows.append(f"<tr>{cells}</tr>")
    if not rows:
        return ""
    caption = escape(label)
    if len(evaluations) < len(group):
        caption += f", {len(evaluations)} of them evaluated"
    return f"<table><caption>{caption}</caption>{''.join(rows)}</table>"


def _pictures(run: Run) -> str:
    """Return the video and the plots of a run, an empty text if it has none."""
    from legged_envs.evaluation.plots import draw_crossings

    # Everything is embedded: the page can be sent as one file.
    html = ""
    for name, show in ((VIDEO_FILE, _video), (TRACKING_FILE, _image)):
        picture = run.path / name
        if not picture.is_file():
            continue
        try:
            check_own_file(picture, LARGEST_PICTURE)
        except ValueError as error:
            html += f"<p class='notice'>{escape(str(error))}</p>"
        else:
            html += show(picture)
    crossings = run.evaluation.get("crossings")
    if crossings:
        html += svg(draw_crossings(crossings))
    if not html:
        return ""
    return f"<figure><figcaption>{escape(str(run.path))}</figcaption>{html}</figure>"


def _video(path: Path) -> str:
    return f"<video controls loop muted src='data:video/mp4;base64,{_base64(path)}'></video>"


def _image(path: Path) -> str:
    return f"<object data='data:image/png;base64,{_base64(path)}'></object>"


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _configuration(label: str, group: Sequence[Run], default_config: DefaultConfig) -> str:
    """Return the options with changed values, and the whole configuration below them."""
    differences = group[0].differences(default_config)
    if differences is None:
        html = f"<p>{escape(label)}: this installation does not know the task and its defaults.</p>"
        module = group[0].task_id.rpartition(":")[0]
        if module:
            html += (
                f"<p>No file makes this program import a module; if you trust {escape(module)}, "
                f"add --import {escape(module)} to the command.</p>"
            )
    else:
        header = ("changed option", "run", f"default of legged-envs {__version__}")
        rows = [(name, *map(_shown, values)) for name, values in differences.items()]
        html = format_html((label, header, rows))
    whole = escape(json.dumps(group[0].config, indent=1))
    return f"{html}<details><summary>the whole configuration</summary><pre>{whole}</pre></details>"


def _sessions(runs: Sequence[Run]) -> str:
    """Return a table of the processes that trained the runs."""
    rows: list[Sequence[Any]] = []
    for run in runs:
        for session in run.sessions or [UNKNOWN_SESSION]:
            rows.append((str(run.path), *map(session.get, SESSION_COLUMNS)))
    return format_html(("", ("run", *SESSION_COLUMNS), rows))
