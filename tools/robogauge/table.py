"""Scores of a policy, from the summaries that RoboGauge's stress pipeline writes."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.robogauge.protocol import TERRAINS

CELL_KEY = re.compile(
    r"(?P<terrain>[a-z_]+)_(?P<level>\d+|None)"
    r"_baseMass(?P<payload>-?[\d.]+)_friction(?P<friction>[\d.]+)"
)
"""Key of a cell in a summary. The level of flat ground is None."""

SCORE = "mean@50"
"""The mean of the worse half of all moments, which RoboGauge's benchmark uses."""


@dataclass(frozen=True)
class Scored:
    """Result of a cell."""

    terrain: str
    """Name of the terrain."""
    level: int | None
    """Highest level that was reached, 0 if none was; None on flat ground, which has no levels."""
    friction: float
    """Coefficient of friction."""
    payload: float
    """Mass that was added to the base, kg."""
    score: float
    """RoboGauge's score, 0 to 1."""


def read_summary(path: Path) -> list[Scored]:
    """Read the cells of a `stress_benchmark_results.yaml`.

    Args:
        path: The file, of one cell or of many.

    Returns:
        The results of its cells.

    Raises:
        ValueError: If there is no cell in the file.
    """
    summary = yaml.safe_load(path.read_text(encoding="utf-8"))
    scored = []
    for key, value in (summary if isinstance(summary, dict) else {}).items():
        match = CELL_KEY.fullmatch(str(key))
        if match:
            scored.append(_scored(match, value))
    if not scored:
        raise ValueError(
            f"{str(path)!r} has no cell of RoboGauge's stress benchmark: delete it, and run again"
        )
    return scored


def _scored(match: re.Match[str], value: dict[str, Any] | None) -> Scored:
    level = match["level"]
    # RoboGauge reports no score if the robot passed no level of the terrain.
    score = 0.0
    if value is not None:
        # A text such as "0.652 ± 0.031".
        mean_and_deviation = value["summary"]["terrain_quality_score"][SCORE]
        score = float(mean_and_deviation.split(" ")[0])
    return Scored(
        terrain=match["terrain"],
        level=None if level == "None" else int(level),
        friction=float(match["friction"]),
        payload=float(match["payload"]),
        score=score,
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def make_table(name: str, scored: list[Scored]) -> str:
    """Return the table of a policy in Markdown.

    Args:
        name: Name of the policy.
        scored: Results of its cells. Score and mean level need all terrains.

    Returns:
        The table. A terrain has its score and the level that was reached, means over its cells.
    """
    columns = []
    scores = []
    levels = []
    for terrain in TERRAINS:
        cells = [cell for cell in scored if cell.terrain == terrain]
        if not cells:
            columns.append("–")
            continue
        score = _mean([cell.score for cell in cells])
        text = f"{score:.3f}"
        reached = [float(cell.level) for cell in cells if cell.level is not None]
        if reached:
            level = _mean(reached)
            text += f" L{level:.0f}" if len(reached) == 1 else f" L{level:.1f}"
            levels.append(level)
        scores.append(score)
        columns.append(text)
    is_complete = len(scores) == len(TERRAINS)
    total = f"**{_mean(scores):.3f}**" if is_complete else "–"
    mean_level = f"{_mean(levels):.2f}" if is_complete else "–"
    return "\n".join(
        (
            f"| policy | score | mean level | {' | '.join(TERRAINS)} |",
            f"|---|---|---|{'---|' * len(TERRAINS)}",
            f"| {name} | {total} | {mean_level} | {' | '.join(columns)} |",
        )
    )
