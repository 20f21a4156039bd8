"""Reading and writing of a policy's evaluation in the header of its file, without its weights."""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from legged_envs.policy.weights_file import METADATA_KEY, join_header, read_header, write_whole

Facts: TypeAlias = dict[str, Any]
"""Results of an evaluation: name → value that JSON can represent."""

HEADLINE_LEVELS = (3, 6)
"""Levels of rough ground that `headline` gives the crossings of. The first level of a task is 0."""

EVALUATION_KEY = "evaluation"
"""Name of the text entry that holds the evaluation, as JSON."""

HARSH_KEY = "harsh_evaluation"
"""Name of the text entry that holds the evaluation under harsh conditions, as JSON."""


def read_evaluation(path: Path, key: str = EVALUATION_KEY) -> Facts:
    """Return an evaluation in the header of a safetensors file, empty if there is none.

    Args:
        path: Policy file.
        key: Name of the text entry, ``EVALUATION_KEY`` or ``HARSH_KEY``.
    """
    header, _ = read_header(path)
    metadata = header.get(METADATA_KEY, {})
    evaluation: Facts = json.loads(metadata.get(key, "{}"))
    return evaluation


def record_evaluation(
    path: Path, evaluation: Mapping[str, object], key: str = EVALUATION_KEY
) -> None:
    """Write an evaluation into the header of a safetensors file.

    It replaces an earlier one. Everything else in the file stays as it is, byte for byte.

    Args:
        path: Policy file.
        evaluation: Values that JSON can represent.
        key: Name of the text entry, ``EVALUATION_KEY`` or ``HARSH_KEY``.
    """
    header, end = read_header(path)
    # safetensors allows free text entries: other programs still read the file.
    texts = header.setdefault(METADATA_KEY, {})
    texts[key] = json.dumps(without_nan(evaluation))
    tensors = path.read_bytes()[end:]
    write_whole(path, join_header(header, tensors))


def without_nan(values: object) -> Any:
    """Return values as JSON values, with None instead of NaN and infinity.

    JSON has no such numbers, and other programs do not read a file that holds them.

    Args:
        values: Nested dicts, lists and tuples of texts and numbers.
    """
    if isinstance(values, Mapping):
        return {name: without_nan(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [without_nan(value) for value in values]
    if isinstance(values, float) and not isfinite(values):
        return None
    return values


def headline(evaluation: Facts) -> tuple[str, ...]:
    """Return the main results of an evaluation as texts: m/s, rad/s, falls, and what else.

    The first three are errors of the velocity command and falls, "-" if they were not measured. The
    last one describes how well clips were imitated, how many tiles were crossed and which reward
    was earned.
    """
    clips = list(evaluation.get("clips", {}).values())
    # In the evaluation of a mimic task, the errors of the velocity command stand apart. They are
    # None if the policy follows no commands.
    errors = {}
    for name, value in (evaluation.get("command", evaluation) or {}).items():
        errors[name.removeprefix("command_")] = value
    if clips:
        errors["falls"] = _known_mean([clip["falls"] for clip in clips])
    # Trainings are compared at a glance: three decimals are enough.
    lin_vel = _error_cell(errors, "lin_vel_error")
    ang_vel = _error_cell(errors, "ang_vel_error")
    falls = "-"
    if errors.get("falls") is not None:
        falls = f"{errors['falls']:.1%}"
    remarks = []
    if clips:
        joint_error = _known_mean([clip["joint_error"] for clip in clips])
        known = "-" if joint_error is None else f"{joint_error:.3f}"
        remarks.append(f"joints {known} rad off, {len(clips)} clips")
    crossings = evaluation.get("crossings") or {}
    for level in HEADLINE_LEVELS:
        crossed = _crossings_of_level(crossings, level)
        if crossed:
            mean = fmean(crossed)
            remarks.append(f"{mean:.0%} cross level {level}")
    # Only tasks with neither commands nor motions are judged by their reward.
    reward = evaluation.get("reward")
    if reward is not None:
        remarks.append(f"reward {reward:.1f}/s")
    return lin_vel, ang_vel, falls, ", ".join(remarks)


def harsh_headline(evaluation: Facts) -> str:
    """Return the main results of an evaluation under harsh conditions as a text.

    They are the error of the velocity, the share of episodes with a fall, the share of crossed
    tiles, and after the command to stop the fraction of time that a foot is on the ground. The text
    is empty if there is no evaluation.
    """
    if not evaluation:
        return ""
    error = _error_cell(evaluation, "lin_vel_error")
    parts = [f"{error} m/s", f"{evaluation['falls']:.0%} fall"]
    crossed = evaluation.get("crossed")
    if crossed is not None:
        parts.append(f"{crossed:.0%} cross their tile")
    contact = evaluation.get("still_contact")
    if contact is not None:
        parts.append(f"feet {contact:.0%} down at a stop")
    return ", ".join(parts)


def _known_mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that were measured, None if none was."""
    known = [value for value in values if value is not None and isfinite(value)]
    return fmean(known) if known else None


def _error_cell(errors: Mapping[str, float | None], name: str) -> str:
    error = errors.get(name)
    return "-" if error is None or not isfinite(error) else f"{error:.3f}"


def _crossings_of_level(crossings: Mapping[str, Sequence[float | None]], level: int) -> list[float]:
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
        # A level without a single start has None, or NaN in files of earlier versions.
        if fraction is not None and isfinite(fraction):
            fractions.append(fraction)
    return fractions
