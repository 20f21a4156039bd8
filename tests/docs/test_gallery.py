"""Films of the gallery: one for each policy and kind of terrain, small, with the robot's name."""

from __future__ import annotations

import numpy as np
import pytest
from imageio_ffmpeg import read_frames

from tools.docs import _describe_film
from tools.gallery import FOLDER, draw_text, find_films

LARGEST_FILM = 600_000
"""Bytes."""


def test_each_film_is_on_the_page_with_the_name_of_its_robot() -> None:
    films = find_films()
    files = {path.stem: path for path in FOLDER.glob("*.mp4")}
    assert files.keys() == films.keys()
    assert max(path.stat().st_size for path in files.values()) < LARGEST_FILM
    assert _describe_film("g1_rough") == "Unitree G1, rough (Legged/G1-Rough-v0)"
    assert _describe_film("g1_mimic") == "Unitree G1, mimic (Legged/G1-Mimic-v0)"
    assert _describe_film("terrain_stairs_up") == "Unitree Go2, stairs up (Legged/Go2-Rough-v0)"
    with pytest.raises(SystemExit, match="unknown"):
        _describe_film("unknown")


def test_the_name_in_a_film_is_white_on_any_ground() -> None:
    picture = np.asarray(draw_text("Unitree Go2, stairs up"))
    assert picture.shape[1] < 560 / 2 and picture.shape[2] == 4
    ink = picture[picture[..., 3] > 250]
    assert (ink[:, :3] == 255).all(axis=1).any() and (ink[:, :3] < 80).all(axis=1).any()


TEN_SECONDS = (
    *("go2_rough", "g1_rough", "go2_blind"),
    *("terrain_stairs_up", "terrain_stairs_down", "terrain_rubble", "terrain_rough"),
    *("terrain_obstacles", "terrain_slope_up", "terrain_slope_down"),
)


@pytest.mark.parametrize("name", TEN_SECONDS)
def test_a_film_of_rough_ground_shows_ten_seconds(name: str) -> None:
    frames = read_frames(str(FOLDER / f"{name}.mp4"))
    assert next(frames)["duration"] == pytest.approx(10.0, abs=0.1)
    frames.close()
