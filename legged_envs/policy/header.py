"""How well a policy did in its evaluation, as its file says it: in the header, which is read without the weights."""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

HEADS = ("m/s", "rad/s", "falls", "what else")
LEVELS = (3, 6)
"""What :func:`headline` gives, and the levels of rough ground whose crossings are among it; the first is 0."""
_METADATA, _EVALUATION = "__metadata__", "evaluation"


def read_evaluation(path: Path) -> dict[str, Any]:
    """The evaluation in the header of a safetensors file; empty if there is none."""
    evaluation: dict[str, Any] = json.loads(
        _header(path)[0].get(_METADATA, {}).get(_EVALUATION, "{}")
    )
    return evaluation


def record_evaluation(path: Path, evaluation: Mapping[str, Any]) -> None:
    """Write an evaluation, as JSON has it, into the header of a safetensors file in place of another; all else in the
    file stays as it is."""
    header, end = _header(path)
    header[_METADATA][_EVALUATION] = json.dumps(evaluation)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8 bytes
    whole = path.with_name(f"{path.name}.new")
    whole.write_bytes(len(text).to_bytes(8, "little") + text + path.read_bytes()[end:])
    whole.replace(path)


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The header and where it ends: a length in 8 bytes, least significant first, and as many bytes of JSON."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(size)), 8 + size


def headline(evaluation: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of :data:`HEADS`: errors of the velocity command and falls, "-" where they were not measured, and how
    well motions were imitated, tiles crossed, or else what reward was earned."""
    errors = {
        name.removeprefix("command_"): value
        for name, value in evaluation.get("command", evaluation).items()
    }
    clips, tiles = (
        [*evaluation.get("clips", {}).values()],
        (evaluation.get("crossings") or {}).values(),
    )
    if clips:
        errors["falls"] = fmean(clip["falls"] for clip in clips)
    cells = [
        f"{errors[name]:.3f}" if name in errors else "-"
        for name in ("lin_vel_error", "ang_vel_error")
    ]
    beside = (
        [f"joints {fmean(clip['joint_error'] for clip in clips):.3f} rad off, {len(clips)} clips"]
        if clips
        else []
    )
    for level in LEVELS:
        crossed = [row[level] for row in tiles if row[level:] and row[level] == row[level]]
        beside += [f"{fmean(crossed):.0%} cross level {level}"] if crossed else []
    beside += [f"reward {evaluation['reward']:.1f}/s"] if "reward" in evaluation else []
    return *cells, f"{errors['falls']:.1%}" if "falls" in errors else "-", ", ".join(beside)
