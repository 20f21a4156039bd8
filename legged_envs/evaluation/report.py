"""Runs, finished or still going, beside each other: as a table, and as a page in one file that needs no network."""

import base64
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from html import escape
from io import StringIO
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from string import Template
from typing import Any

from legged_envs import __version__, system_checks
from legged_envs.runs.checkpoint_file import read_checkpoint_file
from legged_envs.runs.run_folder import ABOUT, CONFIG, CURVE, EVALUATION, as_json, numbers
from legged_envs.tables import Table, format_cell, format_html, shorten

DefaultConfig = Callable[[str], Mapping[str, Any]]
"""Id of a task → the ``training`` and ``task`` configurations of a training with default options."""
APART = (
    "seed",
    "run_dir",
    "resume",
    "keep",
    "threads",
    "video",
    "video_seconds",
    "checkpoint_minutes",
    "tracker",
)
"""Options of a training in which runs of one configuration may differ; the first is their seed."""
TAGS = {
    "video.mp4": "video controls loop muted src='data:video/mp4",
    "tracking.png": "object data='data:image/png",
}
"""Pictures of a run → how the page begins to show them."""
ABSENT = "–"
NOT_RECORDED = {"started": "not recorded"}
PAUSE = 300.0
"""What stands for a value that is not there, and for the session of a run of an older version; time without a new word
after which an unfinished run counts as stopped, s."""


class Run:
    """A run as its folder tells it at this moment. FileNotFoundError if there is none, ValueError if a file is not what
    a training writes."""

    def __init__(self, path: Path):
        if not (path / CONFIG).is_file():
            raise FileNotFoundError(
                f"there is no run in {str(path)!r}: it has no {CONFIG} of legged-envs train"
            )
        self.path = path
        self.config = self._read(CONFIG, {"training", "task"})
        self.evaluation = self._read(EVALUATION, {"env_steps", "costs", "cost_limits"})
        self.sessions = self._read(ABOUT, set())
        training = self.config["training"]
        if (
            not isinstance(training, dict)
            or not {"task_id", "iterations", "minutes"} <= training.keys()
        ):
            raise ValueError(
                f"{str(path / CONFIG)!r} has no training with task_id, iterations and minutes"
            )
        self.task_id = str(training["task_id"])
        self.curve = self._read_curve()
        """A row for each update."""
        self.last: dict[str, float] = self.curve[-1] if self.curve else {}
        now = (
            {"env_steps": self.last["env_steps"], "training_seconds": self.last["seconds"]}
            if self.last
            else {}
        )
        self.results = numbers({**self.evaluation, **now, "cost_limits": None})
        """Numbers of the last update; and what there is to tell of the run, with names such as ``costs/foot_slip``."""

    def _read(self, name: str, needed: Collection[str]) -> Any:
        """What is in a file, an empty dict without one."""
        if not (path := self.path / name).is_file():
            return {}
        try:
            values = json.loads(path.read_text())
        except ValueError as error:
            raise ValueError(
                f"{str(path)!r} is not JSON as legged-envs train writes it: {error}"
            ) from error
        if missing := [key for key in needed if not isinstance(values, dict) or key not in values]:
            raise ValueError(
                f"{str(path)!r} is not what legged-envs train writes: it has no {', '.join(missing)}"
            )
        return values

    def _read_curve(self) -> list[dict[str, float]]:
        if (path := self.path / CURVE).is_file():
            rows = list[dict[str, float]]()
            for i, line in enumerate(path.read_text().splitlines(keepends=True), 1):
                try:
                    rows += (
                        [json.loads(line)] if line.endswith("\n") else []
                    )  # the last may be half written
                except ValueError as error:
                    raise ValueError(
                        f"{str(path)!r}, line {i}, is no row of a curve: {error}"
                    ) from error
            return rows
        with suppress(
            FileNotFoundError, ValueError
        ):  # a run without the file has the rows in its checkpoint
            return list(read_checkpoint_file(self.path, self.task_id)["curve"])
        return []

    @property
    def status(self) -> str:
        """How far the run is, "finished" if its evaluation is not from before it went on."""
        if self.evaluation and self.evaluation["env_steps"] >= self.last.get("env_steps", 0):
            return "finished"
        updates, seconds = (self.config["training"][name] for name in ("iterations", "minutes"))
        done = (
            self.last.get("iteration", 0) / updates
            if updates
            else self.last.get("seconds", 0) / (60 * seconds)
        )
        age = time.time() - max(
            file.stat().st_mtime for file in self.path.iterdir() if file.is_file()
        )
        return f"{'still going' if age < PAUSE else 'stopped'} at {min(done, 1.0):.0%}, last written {age:.0f} s ago"

    def differences(self, default_config: DefaultConfig) -> dict[str, list[Any]] | None:
        """Options that are not those of a training of the task by the installed version → the run's and the default;
        None if this installation does not know the task."""
        with suppress(Exception):  # the module of another package may raise anything
            default = json.loads(json.dumps(default_config(self.task_id), default=as_json))
            return differences([without(self.config, APART), without(default, APART)])
        return None


def without(config: dict[str, Any], options: Sequence[str]) -> dict[str, Any]:
    """A configuration but for some options of its training."""
    return {
        **config,
        "training": {
            name: value for name, value in config["training"].items() if name not in options
        },
    }


def differences(values: Sequence[Any], path: str = "") -> dict[str, list[Any]]:
    """Where nested dicts, as JSON has them, are not the same: name, such as ``task.sim.dt`` → the value in each."""
    if not all(isinstance(value, dict) for value in values):
        return {path: [*values]} if len({json.dumps(value) for value in values}) > 1 else {}
    found: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for value in values for name in value):
        found |= differences(
            [value.get(name, ABSENT) for value in values], f"{path}.{name}".strip(".")
        )
    return found


def write_report(runs: Sequence[Path], out: Path, default_config: DefaultConfig) -> None:
    """Write a page about one or several runs to the file ``out``, and print its place and size."""
    system_checks.check_output("--out", out, endings=(".html",))
    system_checks.check_installed("matplotlib")
    with _as_written(*runs):
        text = page(_read("report", runs), default_config)
    out.parent.mkdir(parents=True, exist_ok=True)
    print(f"wrote {out}, {out.write_text(text, encoding='utf-8') / 1e6:.1f} MB")


def compare(runs: Sequence[Path]) -> None:
    """Print runs beside each other: the options in which they differ, how far they are, when they walked, and how well
    they did in their evaluations."""
    from rich import console, table

    with _as_written(*runs):
        _, header, rows = comparison(_read("compare", runs))
    grid = table.Table(*(table.Column(head, overflow="fold") for head in header))
    for row in rows:
        grid.add_row(*map(format_cell, row))
    console.Console().print(grid, markup=False)


def _read(verb: str, paths: Sequence[Path]) -> list[Run]:
    if not paths:
        raise ValueError(f"{verb} needs at least one RUN, a folder that legged-envs train wrote")
    loaded = []
    for path in {path.resolve(): path for path in paths}.values():  # one run has several names
        with _as_written(path):
            loaded.append(Run(path))
    return loaded


@contextmanager
def _as_written(*paths: Path) -> Iterator[None]:
    """A ValueError that names the runs for anything in their files that no training writes."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, UnicodeError, ArithmeticError) as error:
        places = ", ".join(repr(str(path)) for path in paths)
        reason = shorten(f"{type(error).__name__}: {error}", 200)
        raise ValueError(
            f"a file of {places} is not what legged-envs train writes: {reason}"
        ) from error


def seeds(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs of one configuration each, by the folder of the first."""
    alike: dict[str, list[Run]] = {}
    for run in runs:
        alike.setdefault(json.dumps(without(run.config, APART), sort_keys=True), []).append(run)
    return {
        f"{group[0].path}{f' and {len(group) - 1} more' * (len(group) > 1)}": group
        for group in alike.values()
    }


def comparison(runs: Sequence[Run]) -> Table:
    """A column for each run and, where some differ in their seed alone, one for their mean ± standard deviation."""
    from legged_envs.evaluation.metrics.velocity import UNITS

    several = {label: group for label, group in seeds(runs).items() if len(group) > 1}
    units = {name: f", {unit}" for name, unit in UNITS.items() if unit != "%"}
    differing = differences([without(run.config, APART[1:]) for run in runs])
    alike = len({run.task_id for run in runs}) == 1  # else the whole of the tasks differs
    rows = [
        (name, *map(_shown, values))
        for name, values in differing.items()
        if alike or "task." not in name
    ]
    rows.append(("status", *(run.status for run in runs)))
    named = (
        name
        for run in runs
        for name, value in run.results.items()
        if isfinite(value) and name != APART[0]
    )
    for name in dict.fromkeys(named):
        groups = [
            [run.results[name] for run in group if name in run.results]
            for group in several.values()
        ]
        spreads = [
            _spread(own, len(group)) for own, group in zip(groups, several.values(), strict=True)
        ]
        values = [_shown(run.results.get(name, ABSENT)) for run in runs]
        rows.append((name.replace("_", " ") + units.get(name, ""), *values, *spreads))
    return (
        "",
        (
            "",
            *(str(run.path) for run in runs),
            *(f"mean ± deviation of {label}" for label in several),
        ),
        rows,
    )


def _spread(values: Sequence[float], runs: int) -> str:
    """Mean ± standard deviation of ``values``, and of how many of the ``runs`` if not of all."""
    some = f" ({len(values)} of {runs})" * (len(values) < runs)
    return f"{_shown(fmean(values))} ± {_shown(stdev(values))}{some}" if len(values) > 1 else ""


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return (
            ABSENT if value != value else f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
        )
    return "None" if value is None else shorten(format_cell(value), 80)


def page(runs: Sequence[Run], default_config: DefaultConfig) -> str:
    """The HTML of a page about runs."""
    from legged_envs.evaluation.plots import draw_curves

    groups, unfinished = seeds(runs), [run for run in runs if run.status != "finished"]
    curves = {
        label: own
        for label, group in groups.items()
        if (own := [run.curve for run in group if run.curve])
    }
    heads = ("started", "update", "command", "hardware", "commits", "versions")
    sessions = [
        (str(run.path), *map(each.get, heads))
        for run in runs
        for each in run.sessions or [NOT_RECORDED]
    ]
    sections = {
        "Results": format_html(comparison(runs)),
        "Learning curves": _drawn(draw_curves(curves)) if curves else "There is no curve yet.",
        "Costs": "".join(_costs(*group) for group in groups.items()),
        "Pictures": "".join(map(_pictures, runs)),
        "Configuration": "".join(
            _configuration(label, group, default_config) for label, group in groups.items()
        ),
        "Made with": format_html(("", ("run", *heads), sessions)),
    }
    notices = [f"<p class='notice'>{escape(f'{run.path}: {run.status}')}</p>" for run in unfinished]
    body = [
        *notices,
        *(f"<h2>{title}</h2>\n<div>{part}</div>" for title, part in sections.items() if part),
    ]
    title = escape(", ".join(dict.fromkeys(run.task_id for run in runs)))
    subtitle = time.strftime(f"As of %Y-%m-%d %H:%M %z, by legged-envs {__version__}")
    template = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    return template.substitute(title=title, subtitle=subtitle, body="\n".join(body))


def _drawn(figure: Any) -> str:
    figure.savefig(text := StringIO(), format="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]


def _costs(label: str, group: Sequence[Run]) -> str:
    """Means over the seeds beside their limits, with bars whose colour changes at the limit."""
    ended, rows = [run.evaluation for run in group if run.evaluation], ""
    for name, limit in (ended[0]["cost_limits"] if ended else {}).items():
        mean = fmean(evaluation["costs"][name] for evaluation in ended)
        bar = f"<meter max='{3 * limit}' high='{limit}' optimum='0' value='{mean}'></meter>"
        rows += f"<tr><td>{escape(name)}<td>{mean:.4f}<td>≤ {limit:g}<td>{bar}</tr>"
    some = f", {len(ended)} of them evaluated" * (len(ended) < len(group))
    return f"<table><caption>{escape(label)}{some}</caption>{rows}</table>" if rows else ""


def _pictures(run: Run) -> str:
    from legged_envs.evaluation.plots import draw_crossings

    crossings, html = run.evaluation.get("crossings"), ""
    for name, tag in TAGS.items():
        if (path := run.path / name).is_file():
            html += (
                f"<{tag};base64,{base64.b64encode(path.read_bytes()).decode()}'></{tag.split()[0]}>"
            )
    html += _drawn(draw_crossings(crossings)) if crossings else ""
    return (
        f"<figure><figcaption>{escape(str(run.path))}</figcaption>{html}</figure>" if html else ""
    )


def _configuration(label: str, group: Sequence[Run], default_config: DefaultConfig) -> str:
    differing = group[0].differences(default_config)
    rows = [(name, *map(_shown, values)) for name, values in (differing or {}).items()]
    html = format_html(
        (label, ("not as by default", "run", f"default of legged-envs {__version__}"), rows)
    )
    if differing is None:
        html = f"<p>{escape(label)}: this installation does not know the task, nor what its defaults are.</p>"
    whole = escape(json.dumps(group[0].config, indent=1))
    return f"{html}<details><summary>the whole configuration</summary><pre>{whole}</pre></details>"
