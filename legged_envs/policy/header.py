"""Reading and writing of a policy's evaluation in the header of its file, without its weights."""

import json
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

Facts: TypeAlias = dict[str, Any]
"""Results of an evaluation: name → value that JSON can represent."""

HEADLINE_COLUMNS = ("m/s", "rad/s", "falls", "what else")
"""Titles of the table columns for the main results of an evaluation, which `headline` returns."""

HEADLINE_LEVELS = (3, 6)
"""Levels of rough ground that `headline` gives the crossings of. The first level of a task is 0."""

METADATA_KEY = "__metadata__"
"""Key of the free text entries in a safetensors header."""

EVALUATION_KEY = "evaluation"
"""Name of the text entry that holds the evaluation, as JSON."""


def read_evaluation(path: Path) -> Facts:
    """Return the evaluation in the header of a safetensors file, empty if there is none."""
    header, _ = _read_header(path)
    metadata = header.get(METADATA_KEY, {})
    evaluation: Facts = json.loads(metadata.get(EVALUATION_KEY, "{}"))
    return evaluation


def record_evaluation(path: Path, evaluation: Mapping[str, object]) -> None:
    """Write an evaluation into the header of a safetensors file.

    It replaces an earlier one. Everything else in the file stays as it is, byte for byte.

    Args:
        path: Policy file.
        evaluation: Values that JSON can represent.
    """
    header, end = _read_header(path)
    # safetensors allows free text entries: other programs still read the file.
    header[METADATA_KEY][EVALUATION_KEY] = json.dumps(evaluation)
    text = json.dumps(header, separators=(",", ":")).encode()
    # Tensors begin at a multiple of 8 bytes.
    text += b" " * (-len(text) % 8)
    size = len(text).to_bytes(8, "little")
    tensors = path.read_bytes()[end:]
    # The file is replaced at once: a reader sees the old one or the new one.
    written = path.with_name(f"{path.name}.new")
    written.write_bytes(size + text + tensors)
    written.replace(path)


def _read_header(path: Path) -> tuple[Facts, int]:
    """Return the header of a safetensors file and the position where it ends.

    A length in 8 bytes, the least significant first, precedes that many bytes of JSON.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    return header, 8 + size


def headline(evaluation: Facts) -> tuple[str, ...]:
    """Return the main results of an evaluation as texts, one for each of `HEADLINE_COLUMNS`.

    The first three are errors of the velocity command and falls, "-" if they were not measured. The
    last one says how well clips were imitated, how many tiles were crossed and which reward was
    earned.
    """
    clips = list(evaluation.get("clips", {}).values())
    # In the evaluation of a mimic task, the errors of the velocity command stand apart.
    errors = {}
    for name, value in evaluation.get("command", evaluation).items():
        errors[name.removeprefix("command_")] = value
    if clips:
        errors["falls"] = fmean(clip["falls"] for clip in clips)
    # Trainings are compared at a glance: three decimals are enough.
    lin_vel = _error_cell(errors, "lin_vel_error")
    ang_vel = _error_cell(errors, "ang_vel_error")
    falls = "-"
    if "falls" in errors:
        falls = f"{errors['falls']:.1%}"
    remarks = []
    if clips:
        joint_error = fmean(clip["joint_error"] for clip in clips)
        remarks.append(f"joints {joint_error:.3f} rad off, {len(clips)} clips")
    crossings = evaluation.get("crossings") or {}
    for level in HEADLINE_LEVELS:
        crossed = _crossings_of_level(crossings, level)
        if crossed:
            mean = fmean(crossed)
            remarks.append(f"{mean:.0%} cross level {level}")
    # Only tasks with neither commands nor motions are judged by their reward.
    if "reward" in evaluation:
        reward = evaluation["reward"]
        remarks.append(f"reward {reward:.1f}/s")
    return lin_vel, ang_vel, falls, ", ".join(remarks)


def _error_cell(errors: Mapping[str, float], name: str) -> str:
    if name not in errors:
        return "-"
    return f"{errors[name]:.3f}"


def _crossings_of_level(crossings: Mapping[str, Sequence[float]], level: int) -> list[float]:
    """Return the fractions of episodes in which robots crossed a tile of one level of difficulty.

    Args:
        crossings: Fractions of an evaluation at each level from 0 on, by kind of terrain.
        level: Level of the tiles.

    Returns:
        One fraction for each kind of terrain that was evaluated at this level.
    """
    fractions = []
    for levels in crossings.values():
        # A task may have fewer levels.
        if len(levels) <= level:
            continue
        fraction = levels[level]
        # A level without a single start is NaN.
        if not isnan(fraction):
            fractions.append(fraction)
    return fractions
