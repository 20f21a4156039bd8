"""Make what the gallery of the documentation shows, ``docs/gallery/``: pictures of robots and terrains, and films of
each policy that ships and of each kind of terrain. ``python -m tools.gallery``, or ``--pictures`` for these alone."""

import argparse
from pathlib import Path

from PIL import Image

from legged_envs import cli
from legged_envs.rl.policy import SHIPPED
from legged_envs.terrains.cfg import MIXTURE

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"
WIDTH, COLOURS = 1000, 128
"""Of the pictures, pixels and colours: a few hundred kilobytes each."""
SECONDS = "2.5"
LEVEL = "5"
"""For which each command or motion of a film holds, s; and how hard the ground of a terrain's film is, 0 to 9."""


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
            cli.main(["play", task_id, "--video", str(FOLDER / f"{policy.stem}.mp4"), "--seconds", SECONDS])
        for kind in (*MIXTURE, "rubble"):
            ground = ["--terrain", kind, "--level", LEVEL, "--seconds", SECONDS]
            cli.main(["play", "Legged/Go2-Rough-v0", *ground, "--video", str(FOLDER / f"terrain_{kind}.mp4")])


if __name__ == "__main__":
    main()
