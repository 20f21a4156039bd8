"""Reads the JSON of AMP's files, and checks all of it but the numbers in the frames."""

import json
import reprlib
from pathlib import Path
from typing import Any

from legged_envs.motions.formats.loops import CYCLE_POSITION, CYCLE_ROTATION
from legged_envs.motions.formats.tables import is_finite
from legged_envs.motions.motion import MotionError, check_keys, require

REQUIRED = ("LoopMode", "FrameDuration", "Frames")
"""Keys that a file must have."""


def read_content(path: Path) -> dict[str, Any]:
    """Read a file, and check its keys and values, but not the numbers in its frames.

    Raises:
        MotionError: The text is not JSON, or a key is wrong.
    """
    origin = str(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    # Deeply nested brackets are a RecursionError.
    except (ValueError, RecursionError) as error:
        raise MotionError(
            f"{origin}: not JSON: {error}: a table of numbers must end in .csv"
        ) from error
    require(isinstance(content, dict), origin, "the text", "a JSON object", type(content).__name__)
    if "Loop" in content and "LoopMode" not in content:
        raise MotionError(
            f"{origin}: is a clip of DeepMimic ('Loop') for a character that is not a robot: "
            "export it as "
            ".bvh, which `legged-envs motion` turns into the motion of a robot"
        )
    optional = ("MotionWeight", CYCLE_POSITION, CYCLE_ROTATION)
    check_keys(content, REQUIRED, origin, optional=optional)
    mode = content["LoopMode"]
    frames = content["Frames"]
    require(mode in ("Wrap", "Clamp"), origin, "LoopMode", "'Wrap' or 'Clamp'", reprlib.repr(mode))
    for key in ("FrameDuration", "MotionWeight"):
        value = content.get(key, 1.0)
        is_positive = is_finite(value) and value > 0.0
        require(is_positive, origin, key, "a positive number and finite", reprlib.repr(value))
    for key in (CYCLE_POSITION, CYCLE_ROTATION):
        value = content.get(key, True)
        require(isinstance(value, bool), origin, key, "true or false", reprlib.repr(value))
    has_frames = isinstance(frames, list) and len(frames) >= 2
    require(has_frames, origin, "Frames", "a list of at least 2 frames", reprlib.repr(frames))
    return content
