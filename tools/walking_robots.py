"""Draw a moving image of all robots of the package that walk with their pretrained policies.

It is the image at the top of README.md and of the documentation. ``python -m tools.gallery
--walking`` makes it.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

from legged_envs.cli.tiles import choose_tiles
from legged_envs.envs import unwrap
from legged_envs.evaluation.conditions import command_ranges
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.shipped import SHIPPED
from legged_envs.rotation import heading
from legged_envs.tasks import make_task_cfg
from legged_envs.viewing.film_strip import CAMERA_AZIMUTH, aim_camera
from legged_envs.viewing.scenes import Command, make_scenes
from legged_envs.viewing.watch import make_watched_envs, watch

COLUMNS = 6
"""Number of robots in a row."""
TILE = (160, 150)
"""Width and height of the image of one robot, pixels. It is rendered twice as large."""
NAME_SIZE = 13
"""Size of the letters of a name, pixels."""
NAME_POSITION = (7, 130)
"""Position of a name in its image, pixels: on the ground, where it covers no robot."""
NAME_COLOUR = (255, 255, 255)
"""Colour of a name."""
OUTLINE_COLOUR = (40, 44, 52)
"""Colour around the letters of a name, which makes them readable on bright ground."""
FIRST_SECONDS = 1.5
"""Time before the first image, in which a robot starts to walk, s."""
SECONDS = 2.4
"""Duration of the moving image, s."""
STEPS_PER_IMAGE = 4
"""Control steps between two images."""
SPEED = 0.8
"""Forward velocity command, as a fraction of the largest one of the task."""
QUALITY = 55
"""Quality of the WebP file, 0 to 100, with which it has about a megabyte."""
MAKERS = {
    "go2": "Unitree Go2",
    "g1": "Unitree G1",
    "go1": "Unitree Go1",
    "a1": "Unitree A1",
    "anymal_c": "ANYmal C",
    "h1": "Unitree H1",
    "k1": "Booster K1",
    "t1": "Booster T1",
    "tron1_pf": "LimX TRON1, points",
    "tron1_sf": "LimX TRON1, soles",
    "tron1_wf": "LimX TRON1, wheels",
}
"""Names of the robots of this package, as their makers write them."""
STAIRS_TASK = "Legged/Go2-Rough-v0"
"""Task of the last image, on stairs."""
STAIRS_LEVEL = 4
"""Level of difficulty of these stairs."""


class Tile(NamedTuple):
    """Contents of one part of the image."""

    task_id: str
    """Task with a pretrained policy."""
    name: str
    """Text in the image."""
    changes: dict[str, Any]
    """Changes to the task."""


def draw_walking_robots(path: Path) -> None:
    """Draw the moving image.

    Args:
        path: The WebP file to write.
    """
    columns = [list(_images_of(tile)) for tile in find_tiles()]
    sheets = []
    for images in zip(*columns, strict=True):
        sheets.append(_join(images))
    duration = round(1000 * SECONDS / len(sheets))
    first = sheets[0]
    first.save(
        path,
        save_all=True,
        append_images=sheets[1:],
        duration=duration,
        loop=0,
        quality=QUALITY,
        method=4,
    )


def find_tiles() -> list[Tile]:
    """Return the robots with a pretrained policy for flat ground, and one on stairs."""
    tiles = []
    for task_id in SHIPPED:
        if task_id.endswith("-Flat-v0"):
            robot = make_task_cfg(task_id).robot
            tiles.append(Tile(task_id, MAKERS[robot.name], {}))
    stairs = choose_tiles(STAIRS_TASK, "stairs_up", STAIRS_LEVEL)
    tiles.append(Tile(STAIRS_TASK, "Go2 on stairs", stairs))
    return tiles


def _images_of(tile: Tile) -> Iterator[Image.Image]:
    """Yield the images of a robot that walks ahead."""
    policy, cfg, _ = policy_and_task(tile.task_id, changes=tile.changes)
    _, fastest = command_ranges(cfg)["lin_vel_x"]
    command: Command = (SPEED * fastest, 0.0, 0.0)
    scenes = make_scenes(cfg, command, seconds=FIRST_SECONDS + SECONDS)
    first_step = round(FIRST_SECONDS / cfg.sim.step_dt)
    with closing(make_watched_envs(tile.task_id, cfg, policy)) as envs:
        sim = unwrap(envs).sim
        for step, _ in enumerate(watch(envs, policy, tuple(policy.inputs), scenes)):
            if step < first_step:
                continue
            if step == first_step:
                azimuth = heading(sim.root_quat_w)[0].item() + CAMERA_AZIMUTH
                sim.viewer = aim_camera(sim.robot, azimuth)
            if (step - first_step) % STEPS_PER_IMAGE == 0:
                picture = sim.render(0, 2 * TILE[0], 2 * TILE[1])
                image = Image.fromarray(picture).resize(TILE, Image.Resampling.LANCZOS)
                _write_name(image, tile.name)
                yield image


def _write_name(image: Image.Image, name: str) -> None:
    font = ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", NAME_SIZE)
    ImageDraw.Draw(image).text(
        NAME_POSITION, name, NAME_COLOUR, font, stroke_width=1, stroke_fill=OUTLINE_COLOUR
    )


def _join(images: tuple[Image.Image, ...]) -> Image.Image:
    """Return one image that joins the images of all robots, in rows."""
    num_rows = -(-len(images) // COLUMNS)
    width, height = TILE
    sheet = Image.new("RGB", (COLUMNS * width, num_rows * height))
    for index, image in enumerate(images):
        column = index % COLUMNS
        row = index // COLUMNS
        sheet.paste(image, (column * width, row * height))
    return sheet
