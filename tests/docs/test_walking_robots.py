"""The moving image at the top of README.md and of the documentation shows every robot, and is small."""

import re
from pathlib import Path

import pytest
from PIL import Image

from legged_envs.policy.shipped import SHIPPED
from legged_envs.tasks import make_task_cfg

walking_robots = pytest.importorskip("tools.walking_robots", reason="the tools are in a checkout")

ROOT = Path(__file__).parents[2]
IMAGE = ROOT / "docs" / "gallery" / "walking.webp"
LARGEST = 1_500_000
"""Bytes of the image: a page with it loads quickly."""


def test_every_robot_with_a_pretrained_policy_is_in_the_image():
    tiles = walking_robots.find_tiles()
    shown = {make_task_cfg(tile.task_id).robot.name for tile in tiles}
    flat = {make_task_cfg(task_id).robot.name for task_id in SHIPPED if "-Flat-" in task_id}
    assert shown == flat and len(shown) == 11
    assert len({tile.name for tile in tiles}) == len(tiles) == 12


def test_the_image_is_small_and_moves():
    assert IMAGE.stat().st_size <= LARGEST
    with Image.open(IMAGE) as image:
        width, height = walking_robots.TILE
        assert image.size == (6 * width, 2 * height)
        assert image.n_frames >= 20


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/gallery/index.md"])
def test_images_of_these_pages_are_there_and_have_a_text(page):
    path = ROOT / page
    images = re.findall(r"!\[(.*?)\]\((.+?)\)", path.read_text())
    assert images
    for text, file in images:
        assert len(text) > 15, file
        assert (path.parent / file).is_file()
