"""Make the images and videos of the documentation's gallery, ``docs/gallery/``.

There are images of robots and terrains, a moving image of all robots, and videos of each pretrained
policy and of each kind of terrain. ``python -m tools.gallery`` makes everything, ``--pictures``
only the images, ``--walking`` only the moving one, and ``--films go2_rough terrain_rubble`` only
these videos.
"""

import argparse
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from imageio_ffmpeg import get_ffmpeg_exe
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

from legged_envs import cli
from legged_envs.checks import check_known
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.policy import SHIPPED
from legged_envs.tasks import make_task_cfg
from legged_envs.terrains.cfg import MIXTURE
from legged_envs.viewing.scenes import make_scenes
from tools.walking_robots import MAKERS, OUTLINE_COLOUR, draw_walking_robots

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"
"""Where pictures and films are written."""
WIDTH = 1000
"""Width of a picture, pixels."""
COLOURS = 128
"""Colours of a picture, which then has a few hundred kilobytes."""
RESOLUTION = "(560, 360)"
"""Size of a film's pictures, pixels."""
SECONDS = 10.0
"""Time of a film, s."""
SHORTEST_SCENE = 1.5
"""Shortest time of a command or motion in a film, s. Films with many of them are longer."""
ROUGH_TASK = "Legged/Go2-Rough-v0"
"""Task of the films of terrains."""
SMALL_FIELD = ("scene.terrain.rows", "4", "scene.terrain.border", "8.0")
"""Changes to the terrain of a film. Each point of a field is drawn in each picture, so a field of
all levels takes ten times the time."""
TERRAIN_LEVEL = "2"
"""Level of the terrains in films. Of four levels, its difficulty is 0.5."""
SMALL_VIDEO = ("-crf", "32", "-preset", "slow", "-movflags", "+faststart")
"""Options of ffmpeg with which a film has some hundred kilobytes."""
ALL_KINDS = 8
"""Number of tiles next to each other in a film of all kinds of tiles."""
ONE_KIND = 3
"""Number of tiles next to each other in a film of one kind of tiles."""
NAME_SIZE = 17
"""Size of the letters of the text in a film, pixels."""
NAME_FILTER = "overlay=10:main_h-overlay_h-8"
"""Filter of ffmpeg that puts the text into the lower left corner."""


def main() -> None:
    """Make everything that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", action="store_true", help="only images, no videos")
    parser.add_argument("--walking", action="store_true", help="only the moving image")
    parser.add_argument("--films", nargs="+", metavar="NAME", help="only these videos")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    films = find_films()
    if options.films:
        check_known("--films: there is no", options.films, films, "videos")
        for name in options.films:
            films[name].write(FOLDER / f"{name}.mp4")
        return
    draw_walking_robots(FOLDER / "walking.webp")
    if options.walking:
        return
    draw("robots", "list")
    draw("terrains", "terrain")
    if options.pictures:
        return
    for name, film in films.items():
        film.write(FOLDER / f"{name}.mp4")


def draw(name: str, command: str) -> None:
    """Save the picture that a command of ``legged-envs`` draws, smaller and with few colours."""
    path = FOLDER / f"{name}.png"
    cli.main([command, "--picture", str(path)])
    picture = Image.open(path).convert("RGB")
    picture.thumbnail((WIDTH, WIDTH * 4))
    picture.quantize(COLOURS).save(path, optimize=True)


@dataclass(frozen=True)
class Film:
    """A film of a pretrained policy."""

    task_id: str
    """Id of the task."""
    text: str
    """Text in the film."""
    columns: int | None = None
    """Number of tiles next to each other. None: the ground is flat."""
    terrain: str | None = None
    """Kind of all tiles. None: the mixture of the task."""

    def write(self, path: Path) -> None:
        """Write the film to an mp4 file."""
        num_scenes = len(make_scenes(policy_and_task(self.task_id)[1]))
        seconds = max(SECONDS / num_scenes, SHORTEST_SCENE)
        with TemporaryDirectory() as folder:
            large = f"{folder}/film.mp4"
            options = ["--seconds", str(seconds), "--changes", "viewer.resolution", RESOLUTION]
            if self.columns is not None:
                options += [*SMALL_FIELD, "scene.terrain.columns", str(self.columns)]
                options += ["--level", TERRAIN_LEVEL]
            if self.terrain is not None:
                options += ["--terrain", self.terrain]
            cli.main(["play", self.task_id, "--video", large, *options])
            name = f"{folder}/name.png"
            draw_text(self.text).save(name)
            inputs = ["-i", large, "-i", name, "-filter_complex", NAME_FILTER]
            command = [get_ffmpeg_exe(), "-y", "-loglevel", "error", *inputs]
            subprocess.run([*command, *SMALL_VIDEO, str(path)], check=True)


def find_films() -> dict[str, Film]:
    """Return the films of all pretrained policies and of all kinds of terrain, by file name."""
    films = {}
    for task_id, policy in SHIPPED.items():
        has_terrain = make_task_cfg(task_id).scene.terrain is not None
        columns = ALL_KINDS if has_terrain else None
        films[policy.stem] = Film(task_id, describe_task(task_id), columns)
    robot = find_robot_name(ROUGH_TASK)
    for kind in (*MIXTURE, "rubble"):
        text = f"{robot}, {kind.replace('_', ' ')}"
        films[f"terrain_{kind}"] = Film(ROUGH_TASK, text, ONE_KIND, kind)
    return films


def describe_task(task_id: str) -> str:
    """Return the name of the robot of a task, and what it does, such as "Unitree Go2, rough"."""
    # An id is Legged/Robot-Kind-v0.
    kind = task_id.split("-")[-2]
    return f"{find_robot_name(task_id)}, {kind.lower()}"


def find_robot_name(task_id: str) -> str:
    """Return the name of the robot of a task, as its maker writes it."""
    robot = make_task_cfg(task_id).robot.name
    # A variant with more joints has their number at its end, such as g1_29.
    name = robot if robot in MAKERS else robot.rpartition("_")[0]
    return MAKERS[name]


def draw_text(text: str) -> Image.Image:
    """Return a picture of a text in white with a dark outline, on a transparent background."""
    font = ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", NAME_SIZE)
    width = round(font.getlength(text)) + 4
    picture = Image.new("RGBA", (width, 2 * NAME_SIZE), (0, 0, 0, 0))
    ImageDraw.Draw(picture).text(
        (2, 2), text, "white", font, stroke_width=1, stroke_fill=OUTLINE_COLOUR
    )
    return picture


if __name__ == "__main__":
    main()
