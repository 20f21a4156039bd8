"""Write pictures as a video file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

RENDER_SIZE = (1280, 720)
VIDEO_WIDTH = 720
"""Frames are rendered larger than the video and scaled down: the cheapest antialiasing without a GPU."""
FRAMES_PER_SECOND = 25


def steps_per_frame(step_dt: float) -> int:
    """Control steps from one frame to the next."""
    return max(1, round(1.0 / (step_dt * FRAMES_PER_SECOND)))


def write_video(path: Path, frames: Iterator[np.ndarray], step_dt: float) -> None:
    """Write an mp4 of ``frames`` of ``RENDER_SIZE``, (720, 1280, 3) uint8, ``steps_per_frame(step_dt)`` steps apart.

    Raises:
        RuntimeError: If this machine cannot render the first frame; there is no file then.
    """
    import imageio_ffmpeg

    first = next(frames)
    path.parent.mkdir(parents=True, exist_ok=True)
    fps, scaled = 1.0 / (step_dt * steps_per_frame(step_dt)), ["-vf", f"scale={VIDEO_WIDTH}:-2:flags=area"]
    writer = imageio_ffmpeg.write_frames(str(path), RENDER_SIZE, fps=fps, quality=6, output_params=scaled)
    writer.send(None)
    try:
        for frame in chain((first,), frames):
            writer.send(frame.tobytes())
    finally:
        writer.close()
