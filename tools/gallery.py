"""Make what the gallery of the documentation shows, ``docs/gallery/``: pictures of robots and terrains, and films of
each policy that ships and of each kind of terrain. ``python -m tools.gallery``, or ``--pictures`` for these alone."""

import argparse
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from imageio_ffmpeg import get_ffmpeg_exe
from PIL import Image

from legged_envs import cli
from legged_envs.policy.policy import SHIPPED
from legged_envs.terrains.cfg import MIXTURE

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"
WIDTH, COLOURS = 1000, 128
"""Of the pictures, pixels and colours: a few hundred kilobytes each."""
SECONDS, RESOLUTION = "1.5", "(560, 360)"
"""For which each command or motion of a film holds, s, and the size of its pictures."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", action="store_true", help="no films")
    FOLDER.mkdir(exist_ok=True)
    for name, command in {"robots": "list", "terrains": "terrain"}.items():
        path = FOLDER / f"{name}.png"
        cli.main([command, "--picture", str(path)])
        picture = Image.open(path).convert("RGB")
        picture.thumbnail((WIDTH, WIDTH * 4))
        picture.quantize(COLOURS).save(path, optimize=True)
    if not parser.parse_args().pictures:
        for task_id, policy in SHIPPED.items():
            film(task_id, policy.stem, "--seconds", SECONDS)
        for kind in (*MIXTURE, "rubble"):
            film(
                "Legged/Go2-Rough-v0",
                f"terrain_{kind}",
                "--terrain",
                kind,
                "--level",
                "5",
                "--seconds",
                "6",
            )


def film(task_id: str, name: str, *options: str) -> None:
    """Film the policy that ships for a task, about a hundred kilobytes."""
    path = FOLDER / f"{name}.mp4"
    with TemporaryDirectory() as folder:
        large = f"{folder}/film.mp4"
        cli.main(
            [
                "play",
                task_id,
                "--video",
                large,
                "--changes",
                "viewer.resolution",
                RESOLUTION,
                *options,
            ]
        )
        small = ("-crf", "32", "-preset", "slow", "-movflags", "+faststart")
        subprocess.run(
            [get_ffmpeg_exe(), "-y", "-loglevel", "error", "-i", large, *small, str(path)],
            check=True,
        )


if __name__ == "__main__":
    main()
