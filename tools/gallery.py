"""Make the images and videos of the documentation's gallery, ``docs/gallery/``.

There are images of robots and terrains, a moving image of all robots, and videos of each pretrained
policy and of each kind of terrain. ``python -m tools.gallery`` makes everything, ``--pictures``
only the images, ``--walking`` only the moving one.
"""

import argparse
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from imageio_ffmpeg import get_ffmpeg_exe
from PIL import Image

from legged_envs import cli
from legged_envs.policy.policy import SHIPPED
from legged_envs.terrains.cfg import MIXTURE
from tools.walking_robots import draw_walking_robots

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"
"""Where pictures and films are written."""
WIDTH = 1000
"""Width of a picture, pixels."""
COLOURS = 128
"""Colours of a picture, which then has a few hundred kilobytes."""
RESOLUTION = "(560, 360)"
"""Size of a film's pictures, pixels."""
SECONDS = "1.5"
"""Time of each command or motion in a film of a policy, s."""
TERRAIN_SECONDS = "6"
"""Time of a film of a terrain, s."""
TERRAIN_LEVEL = "5"
"""Difficulty of the terrains in films."""
SMALL_VIDEO = ("-crf", "32", "-preset", "slow", "-movflags", "+faststart")
"""Options of ffmpeg with which a film has about a hundred kilobytes."""


def main() -> None:
    """Make everything that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", action="store_true", help="only images, no videos")
    parser.add_argument("--walking", action="store_true", help="only the moving image")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    draw_walking_robots(FOLDER / "walking.webp")
    if options.walking:
        return
    draw("robots", "list")
    draw("terrains", "terrain")
    if options.pictures:
        return
    for task_id, policy in SHIPPED.items():
        film(task_id, policy.stem, "--seconds", SECONDS)
    for kind in (*MIXTURE, "rubble"):
        film_terrain(kind)


def draw(name: str, command: str) -> None:
    """Save the picture that a command of ``legged-envs`` draws, smaller and with few colours."""
    path = FOLDER / f"{name}.png"
    cli.main([command, "--picture", str(path)])
    picture = Image.open(path).convert("RGB")
    picture.thumbnail((WIDTH, WIDTH * 4))
    picture.quantize(COLOURS).save(path, optimize=True)


def film_terrain(kind: str) -> None:
    """Film the shipped policy of rough ground on one kind of terrain."""
    film(
        "Legged/Go2-Rough-v0",
        f"terrain_{kind}",
        "--terrain",
        kind,
        "--level",
        TERRAIN_LEVEL,
        "--seconds",
        TERRAIN_SECONDS,
    )


def film(task_id: str, name: str, *options: str) -> None:
    """Film the shipped policy of a task.

    Args:
        task_id: Id of the task.
        name: Name of the film.
        options: Further options of ``legged-envs play``.
    """
    path = FOLDER / f"{name}.mp4"
    with TemporaryDirectory() as folder:
        large = f"{folder}/film.mp4"
        size = ["--changes", "viewer.resolution", RESOLUTION]
        cli.main(["play", task_id, "--video", large, *size, *options])
        command = [get_ffmpeg_exe(), "-y", "-loglevel", "error", "-i", large]
        subprocess.run([*command, *SMALL_VIDEO, str(path)], check=True)


if __name__ == "__main__":
    main()
