"""Comparison of the runs of a crosscheck: numbers, a table and a plot."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from rich.table import Column, Table

from legged_envs.evaluation.conditions import SETTLING_SECONDS
from legged_envs.evaluation.crosscheck_costs import add_cost_rows, mean_costs
from legged_envs.evaluation.plain_loop import Recording
from legged_envs.robots import RobotCfg

LARGEST_TILT = 1.0
"""Angle between the base's z axis and the vertical above which a robot counts as fallen, rad."""

LEAST_HEIGHT_FRACTION = 0.5
"""Base height below which a robot counts as fallen, as a fraction of the height in the default
pose."""

BASE_APART = 0.05
"""Distance between the bases of a robot in two runs above which the runs have diverged, m."""

JOINT_APART = 0.1
"""Difference of a joint position in two runs above which the runs have diverged, rad."""

UNITS = {
    "lin_vel_error": "m/s",
    "ang_vel_error": "rad/s",
    "falls": "%",
    "torque_rms": "N·m",
    "duty_factor": "%",
    "same_contact": "%",
    "parted": "%",
    "parts_after": "s",
}
"""Units of the numbers of a run, in the order of the table. % marks a fraction that is printed as a
percentage."""

Numbers = dict[str, Any]
"""Numbers of a run, by the names in `UNITS`, the dict `costs` and the text `where`. None: not
defined for the run."""


class Survival(NamedTuple):
    """Steps in which the robots of a run have not fallen. Shapes: (steps, robots), bool."""

    alive: np.ndarray
    """True in the steps before the robot falls. Shape: (steps, robots)."""
    counted: np.ndarray
    """`alive`, but False in the first second: the steps of the means. Shape: (steps, robots)."""


class Distance(NamedTuple):
    """Distance between the robots of a run and the same robots of the first run."""

    bases: np.ndarray
    """Distance between the bases, m. Shape: (steps, robots)."""
    apart: np.ndarray
    """True where base (column 0) or joints (other columns) have diverged: see `BASE_APART` and
    `JOINT_APART`. Shape: (steps, robots, 1 + joints)."""


def compare(
    runs: Mapping[str, Recording],
    robot: RobotCfg,
    step_dt: float,
    limits: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Numbers]:
    """Compute how well robots walk in each run of a crosscheck, and where runs diverge.

    Args:
        runs: Recordings by name of the run. The first run is the reference for the others.
        robot: Robot of all runs.
        step_dt: Duration of a control step, s.
        limits: Limit of each cost of the recordings, by name.

    Returns:
        Numbers of each run, by name of the run. Those in `UNITS` are means over robots and over the
        time from the first second until a robot falls. `where` is a text: the robot and the joint
        or base at which the run first diverges from the reference, and the distance of the bases.
    """
    first_name, first = next(iter(runs.items()))
    survival = {name: _survival(run, robot, step_dt) for name, run in runs.items()}
    numbers = {}
    for name, run in runs.items():
        # After a fall in either run, equal contacts would mean nothing.
        both = survival[name].counted & survival[first_name].counted
        same_contact = (run["contact"] == first["contact"]).mean(2)
        distance = _distance(run, first)
        row = _run_numbers(run, survival[name])
        row["same_contact"] = _mean(same_contact, both)
        row["parted"] = float(distance.apart.any((0, 2)).mean())
        row["parts_after"] = _parting_time(distance, step_dt)
        # JSON has no NaN.
        present: Numbers = {}
        for key, value in row.items():
            present[key] = None if np.isnan(value) else value
        present["costs"] = mean_costs(run, survival[name].counted, limits)
        present["where"] = _parting_place(distance, robot, is_first=run is first)
        numbers[name] = present
    return numbers


def _survival(run: Recording, robot: RobotCfg, step_dt: float) -> Survival:
    is_upright = run["gravity"][..., 2] < -np.cos(LARGEST_TILT)
    is_high = run["height"] > LEAST_HEIGHT_FRACTION * robot.base_height
    # A robot that stands up again has fallen all the same.
    alive = np.logical_and.accumulate(is_upright & is_high)
    step = np.arange(len(alive))[:, None]
    has_settled = step >= round(SETTLING_SECONDS / step_dt)
    return Survival(alive, alive & has_settled)


def _distance(run: Recording, first: Recording) -> Distance:
    bases = _base_distance(run, first)
    joints = abs(run["joints"] - first["joints"])
    near = np.concatenate((bases[..., None] <= BASE_APART, joints <= JOINT_APART), axis=2)
    # Not near, rather than far: what is NaN has parted too.
    return Distance(bases, ~near)


def _base_distance(run: Recording, first: Recording) -> np.ndarray:
    """Return how far each base is from that of the first run, m. Shape: (steps, robots)."""
    position = run["root"][..., :3]
    first_position = first["root"][..., :3]
    return np.linalg.norm(position - first_position, axis=2)


def _run_numbers(run: Recording, survival: Survival) -> dict[str, float]:
    """Return the numbers of a run that do not depend on the first one."""
    # The command is forward and sideways velocity in the base frame, and yaw rate.
    lin_vel = run["lin_vel"][..., :2]
    yaw_rate = run["twist"][..., 5:]
    velocity = np.concatenate((lin_vel, yaw_rate), axis=2)
    error = run["command"] - velocity
    counted = survival.counted
    return {
        "lin_vel_error": _mean(np.linalg.norm(error[..., :2], axis=2), counted),
        "ang_vel_error": _mean(abs(error[..., 2]), counted),
        "falls": float((~survival.alive[-1]).mean()),
        "torque_rms": _mean((run["torque"] ** 2).mean(2), counted) ** 0.5,
        "duty_factor": _mean(run["contact"].mean(2), counted),
    }


def _mean(values: np.ndarray, counted: np.ndarray) -> float:
    if not counted.any():
        return float("nan")
    return float(values[counted].mean())


def _parting_time(distance: Distance, step_dt: float) -> float:
    """Return the time after which a run parts from the first one, s; NaN if it does not."""
    places = np.argwhere(distance.apart)
    if not len(places):
        return float("nan")
    # Places are sorted by step. Step 0 is the state after one control step.
    step = places[0][0]
    return float((step + 1) * step_dt)


def _parting_place(distance: Distance, robot: RobotCfg, is_first: bool) -> str:
    """Return where a run parts from the first one, as text."""
    places = np.argwhere(distance.apart)
    if len(places):
        _, i, part = places[0]
        name = ("base", *robot.joint_names)[part]
        most = np.nanmax(distance.bases)
        return f"robot {i}, {name}; bases {most:.2g} m apart at most"
    if is_first:
        return ""
    # The largest distance tells rounding errors from a difference that grows.
    return f"never: bases at most {distance.bases.max():.1g} m apart"


def comparison_table(
    numbers: Mapping[str, Numbers], title: str, limits: Mapping[str, float]
) -> Table:
    """Return a table with a column for each run."""
    columns = [Column(name, justify="right") for name in numbers]
    table = Table("quantity", *columns, title=title)
    for quantity, unit in UNITS.items():
        cells = [_cell(row[quantity], unit) for row in numbers.values()]
        table.add_row(quantity.replace("_", " "), *cells)
    add_cost_rows(table, {name: row["costs"] for name, row in numbers.items()}, limits)
    table.add_row("parts where", *(row["where"] for row in numbers.values()))
    return table


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "%":
        return f"{value:.1%}"
    return f"{value:.3f} {unit}"


def plot_crosscheck(
    runs: Mapping[str, Recording], feet: Sequence[str], step_dt: float, path: Path
) -> None:
    """Draw the runs of a crosscheck as a PNG.

    It shows the speed of the first robot, how far the bases are from those of the first run, the
    torques, and the contacts of the first robot.

    Args:
        runs: What robots did in each run.
        feet: Names of the feet.
        step_dt: Duration of a control step, s.
        path: File to write.
    """
    from matplotlib.figure import Figure

    first = next(iter(runs.values()))
    times = step_dt * np.arange(1, len(first["height"]) + 1)
    # A figure without pyplot needs no display and leaves no state behind.
    figure = Figure((13, 7), layout="constrained")
    axes = figure.subplot_mosaic([["speed", "apart", "torque"], ["contact"] * 3])
    axes["speed"].axhline(
        first["command"][0, 0], color="black", linestyle="--", linewidth=1.0, label="command"
    )
    for i, (name, run) in enumerate(runs.items()):
        # The line of the first run is wide: the others are drawn on top of it.
        style: dict[str, Any] = {
            "label": name,
            "color": f"C{i}",
            "linewidth": 3.5 if run is first else 1.2,
        }
        axes["speed"].plot(times, run["lin_vel"][:, 0, 0], **style)
        torque_rms = np.sqrt((run["torque"] ** 2).mean((1, 2)))
        axes["torque"].plot(times, torque_rms, **style)
        # A red line below the feet of each run.
        axes["contact"].axhline((i + 1) * len(feet) - 0.5, color="tab:red")
        if run is not first:
            median = np.median(_base_distance(run, first), axis=1)
            # A logarithmic axis cannot show 0.
            axes["apart"].plot(times, np.maximum(median, 1e-9), **style)
    axes["apart"].set_yscale("log")
    _draw_contacts(axes["contact"], runs, feet, times)
    names = {
        "speed": "speed ahead, robot 0, m/s",
        "apart": "base, from the first run's, m",
        "torque": "torque, N·m",
    }
    for axis, label in names.items():
        axes[axis].set(xlabel="time, s", ylabel=label)
        axes[axis].grid(alpha=0.3)
    axes["speed"].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _draw_contacts(
    axis: Any, runs: Mapping[str, Recording], feet: Sequence[str], times: np.ndarray
) -> None:
    """Draw the contacts of the first robot, a row for each foot of each run."""
    rows = []
    labels: list[str] = []
    for name, run in runs.items():
        rows.append(run["contact"][:, 0].T)
        labels.extend(f"{name}: {foot}" for foot in feet)
    image = np.concatenate(rows)
    axis.imshow(
        image,
        aspect="auto",
        interpolation="nearest",
        cmap="Greys",
        extent=(0.0, times[-1], len(image) - 0.5, -0.5),
    )
    axis.set(
        yticks=range(len(image)),
        yticklabels=labels,
        ylabel="contact of robot 0",
        xlabel="time, s",
    )
