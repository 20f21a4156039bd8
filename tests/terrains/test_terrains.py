"""Terrains: every kind is its formula, tiles do not depend on the field around them, and sources keep their heights."""

from __future__ import annotations

import re
import resource
import struct
import time
import zlib
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from legged_envs import cli
from legged_envs.robots import GO2
from legged_envs.sim import SceneCfg, SimCfg
from legged_envs.sim.scene import build_scene
from legged_envs.terrains import (
    GENERATORS,
    Grid,
    KindCfg,
    TerrainCfg,
    check_terrain,
    kinds,
    make_terrain,
    register_kind,
)

UNIT = 0.005
GRID = Grid(8.0, 0.1, UNIT)
KINDS = (
    "slope_up",
    "slope_down",
    "rough_slope",
    "rough",
    "stairs_up",
    "stairs_down",
    "obstacles",
    "stones",
    "gap",
)
KINDS += ("pit", "wave", "boxes", "rubble", "flat")
PLATFORMS = {
    "flat": 8.0,
    "rubble": 1.0,
    "rough": 1.0,
    "wave": 1.0,
    "boxes": 2.0,
    "stones": 4.0,
    "pit": 4.0,
}
"""Side of the platform, m; the others' is 3 m."""


def tile(kind, difficulty, seed=0, grid=GRID, **params):
    return GENERATORS[kind](difficulty, np.random.default_rng(seed), grid, **params)


def at(heights, x, y=0.0):
    """Height at a place relative to the middle of a tile of 8 m."""
    return float(heights[round((x + 4.0) / 0.1), round((y + 4.0) / 0.1)])


def steps_from_edge(ring, width=0.4, platform=1.5, half=4.0):
    return np.floor((half - max(ring, platform)) / width + 1e-9)


# --- formulas ---------------------------------------------------------------------------------------------------------


def test_all_kinds_are_there():
    assert {*KINDS} == {*GENERATORS}


@pytest.mark.parametrize("d", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("kind", KINDS)
def test_a_tile_has_a_flat_platform_and_ends_at_zero_in_multiples_of_the_vertical_scale(kind, d):
    heights = tile(kind, d, seed=3)
    assert heights.shape == (81, 81) and heights.dtype == np.float32
    assert np.abs(heights).max() <= (1.2 if "stairs" in kind or "slope" in kind else 1.0) + 1e-6
    platform = heights[GRID.ring < PLATFORMS.get(kind, 3.0) / 2 - 0.01]
    assert (platform == platform[0]).all()
    edge = GRID.ring > 3.95
    assert (heights[edge] == 0.0).all() and not np.signbit(heights[heights == 0.0]).any()
    units = heights.astype(np.float64) / UNIT
    assert np.abs(units - np.round(units)).max() < 1e-4


@pytest.mark.parametrize("d", [0.3, 0.8])
@pytest.mark.parametrize("place", [(0.0, 0.0), (2.0, 0.5), (-1.0, 2.7), (3.9, -3.9), (-3.3, 0.0)])
def test_slopes_rise_by_two_fifths_of_the_difficulty(d, place):
    ring = max(1.5, *map(abs, place))
    expected = 0.4 * d * (4.0 - ring)
    assert at(tile("slope_down", d), *place) == pytest.approx(expected, abs=UNIT / 2 + 1e-6)
    assert at(tile("slope_up", d), *place) == pytest.approx(-expected, abs=UNIT / 2 + 1e-6)
    other = at(tile("slope_down", d, slope=(0.1, 0.2), platform=0.5), *place)
    assert other == pytest.approx((0.1 + 0.1 * d) * (4.0 - max(2.0, ring)), abs=UNIT / 2 + 1e-6)


@pytest.mark.parametrize(("d", "step"), [(0.0, 0.05), (0.6, 0.14)])
def test_stairs_have_steps_of_their_height_and_width(d, step):
    down, up = tile("stairs_down", d), tile("stairs_up", d)
    for x in (0.0, 1.3, 1.6, 1.7, 2.0, 2.1, 2.8, 2.9, 3.6, 3.7, 4.0):
        assert at(down, x, 0.2) == pytest.approx(step * steps_from_edge(x), abs=1e-6), x
        assert at(up, -0.1, -x) == pytest.approx(-step * steps_from_edge(x), abs=1e-6), x
    assert at(down, 0.0) == pytest.approx(6 * step, abs=1e-6)
    risers = np.diff(down[:, 40].astype(np.float64))
    assert np.allclose(risers[np.abs(risers) > 1e-6], [step] * 6 + [-step] * 6, atol=1e-6)
    assert (np.diff(np.flatnonzero(risers[:40] > 1e-6)) == 4).all()  # 0.4 m
    wide = tile("stairs_down", d, width=1.0, height=(0.1, 0.3), platform=0.25)
    assert at(wide, 0.0) == pytest.approx(3 * (0.1 + 0.2 * d), abs=UNIT)


def test_steps_are_alike_where_the_vertical_scale_does_not_divide_them():
    heights = tile("stairs_down", 1 / 3, height=(0.05, 0.076))
    risers = np.diff(heights[:41, 40].astype(np.float64))
    assert np.allclose(risers[risers > 1e-6], 0.06, atol=1e-6)


@pytest.mark.parametrize(("d", "units"), [(0.25, 4), (0.75, 8)])
def test_noise_is_multiples_of_the_vertical_scale_at_every_second_point_and_linear_between(
    d, units
):
    noise = np.round(tile("rough", d, seed=5).astype(np.float64) / UNIT)
    free = (np.abs(GRID.x) > 0.5) & (GRID.ring < 3.75)
    drawn = noise[::2, ::2][free[::2, ::2]]
    assert set(drawn) == set(range(-units, units + 1))  # ± (0.02 + 0.08 d) / 2
    assert (
        np.abs(np.bincount((drawn + units).astype(int)) / len(drawn) - 1 / (2 * units + 1)).max()
        < 0.05
    )
    between = (noise[0:-2:2, ::2] + noise[2::2, ::2]) / 2 - noise[1::2, ::2]
    assert np.abs(between[:, 2:-2][(free[0:-2:2, ::2] & free[2::2, ::2])[:, 2:-2]]).max() <= 0.5


def test_noise_is_linear_between_points_that_are_far_apart():
    noise = tile("rough", 0.5, spread=(1.0, 1.0), spacing=0.8).astype(np.float64) / UNIT
    corner = noise[8:25:8, 8:25:8]  # three points, away from edge and platform
    assert np.abs(corner).max() > 20
    for quarter in (2, 4, 6):
        expected = corner[:-1] + (corner[1:] - corner[:-1]) * quarter / 8
        assert np.abs(noise[8 + quarter : 24 : 8, 8:25:8] - expected).max() <= 0.51
    middle = (corner[:-1, :-1] + corner[1:, :-1] + corner[:-1, 1:] + corner[1:, 1:]) / 4
    assert np.abs(noise[12:24:8, 12:24:8] - middle).max() <= 0.51


@pytest.mark.parametrize("d", [0.0, 0.5])
def test_a_rough_slope_is_a_slope_with_noise_of_five_centimetres(d):
    noise = tile("rough_slope", d, seed=1).astype(np.float64) - tile("slope_down", d)
    around = noise[(GRID.ring > 1.55) & (GRID.ring < 3.95)]
    assert 0.045 < around.max() <= 0.05 + UNIT and -0.05 - UNIT <= around.min() < -0.045
    assert np.abs(noise[GRID.ring < 1.45]).max() < 1e-6


@pytest.mark.parametrize(("d", "height"), [(0.0, 0.05), (0.6, 0.14)])
def test_obstacles_are_rectangles_of_four_heights(d, height):
    heights = tile("obstacles", d, seed=2)
    assert set(np.round(heights[heights != 0.0] / height, 4)) == {-1.0, -0.5, 0.5, 1.0}
    one = tile("obstacles", d, seed=4, count=1, side=(1.0, 1.0))
    assert 1 <= (one != 0.0).sum() <= 100  # 1 m × 1 m; less under the platform or at the edge
    assert not tile("obstacles", d, count=0).any()
    many = tile("obstacles", d, count=400, side=(1.0, 1.0))[1:-1, 1:-1] != 0.0
    assert many.any(axis=0).all() and many.any(axis=1).all()  # they reach every edge


@pytest.mark.parametrize(("d", "stone"), [(0.2, 12), (0.5, 8)])
def test_stones_are_as_large_as_the_formula_says_and_a_cell_apart(d, stone):
    holes = tile("stones", d, seed=7) == -1.0
    assert holes[2].sum() > 0
    lines = (
        np.flatnonzero(holes[1:-1, 1:-1].all(axis=1)) + 1
    )  # beside the platform a gap crosses the whole tile
    assert (lines % (stone + 1) == stone).all() and len(lines) >= 2
    first = np.flatnonzero(holes[2, 1:-1])
    assert (np.diff(first) == stone + 1).all()
    between = np.setdiff1d(np.arange(1, 20), lines)
    assert (
        len({int(np.flatnonzero(holes[line, 1:-1])[0]) for line in between}) > 1
    )  # each line has its own shift
    assert not tile("stones", 0.0).any()
    assert tile("stones", d, depth=0.4, gap=0.2).min() == np.float32(-0.4)


@pytest.mark.parametrize(("d", "cells"), [(0.3, 3), (0.8, 8)])
def test_a_gap_is_as_wide_as_the_difficulty_in_metres(d, cells):
    line = tile("gap", d)[40:, 40]
    assert (
        (line == -1.0).sum() == cells
        and (line[: 15 + 1] == 0.0).all()
        and (line[16 : 16 + cells] == -1.0).all()
    )
    assert (line[16 + cells :] == 0.0).all()
    assert not tile("gap", 0.0).any()


@pytest.mark.parametrize(("d", "depth"), [(0.2, 0.06), (0.9, 0.27)])
def test_a_pit_is_a_sunk_platform(d, depth):
    heights = tile("pit", d)
    assert np.allclose(heights, np.where(GRID.ring < 2.05, -depth, 0.0), atol=1e-6)


@pytest.mark.parametrize("d", [0.3, 0.9])
def test_waves_are_a_cosine_and_a_sine_of_two_metres_where_they_have_risen(d):
    heights = tile("wave", d)
    for x, y in ((1.5, 0.3), (-2.0, -2.7), (3.1, 0.0), (0.4, 3.4)):
        expected = 0.2 * d / 2 * (np.cos(np.pi * y) + np.sin(np.pi * x))
        assert at(heights, x, y) == pytest.approx(expected, abs=UNIT / 2 + 1e-6)
    half_risen = 0.2 * d / 2 * (np.cos(0.0) + np.sin(0.75 * np.pi)) * 0.5
    assert at(tile("wave", d, grid=Grid(8.0, 0.05, UNIT))[::2, ::2], 0.0) == 0.0
    fine = tile("wave", d, grid=Grid(8.0, 0.05, UNIT))
    assert fine[80 + 15, 80] == pytest.approx(
        half_risen, abs=UNIT / 2 + 1e-6
    )  # 0.25 m beyond the platform
    slopes = np.abs(np.diff(heights.astype(np.float64), axis=0)) / 0.1
    assert slopes.max() < 0.2 * d / 2 * np.pi + 0.2 * d / 0.5 + 2 * UNIT / 0.1  # nowhere a wall


@pytest.mark.parametrize(("d", "most"), [(0.0, 0.05), (0.8, 0.17)])
def test_boxes_are_flat_squares_of_forty_five_centimetres(d, most):
    heights = tile("boxes", d, seed=9)
    box = np.floor((GRID.x[:, 0] + 17 * 0.45 / 2) / 0.45 + 1e-9).astype(
        int
    )  # 17 fit, 0.175 m remain on each side
    values = []
    for i in range(17):
        for j in range(17):
            if min(abs(i - 8), abs(j - 8)) > 2:
                values.append(set(heights[np.ix_(box == i, box == j)].ravel().tolist()))
    assert all(len(each) == 1 for each in values)
    values = np.array([each.pop() for each in values])
    assert (
        np.abs(values).max() <= most + UNIT / 2
        and values.min() < -0.9 * most
        and values.max() > 0.9 * most
    )
    assert not heights[box < 0].any() and not heights[:, box > 16].any()


def test_rubble_is_boxes_with_noise():
    rubble, random = tile("rubble", 0.5, seed=3), np.random.default_rng(3)
    boxes = GENERATORS["boxes"](0.5, random, GRID, height=(0.02, 0.1), width=0.3)
    assert np.allclose(rubble, boxes + GENERATORS["rough"](0.5, random, GRID), atol=UNIT + 1e-6)


def test_kinds_are_other_with_another_stream_unless_nothing_in_them_is_random():
    for kind in KINDS:
        same = np.array_equal(tile(kind, 0.5, seed=1), tile(kind, 0.5, seed=2))
        assert same == (
            kind
            in ("slope_up", "slope_down", "stairs_up", "stairs_down", "gap", "pit", "wave", "flat")
        ), kind


# --- fields -----------------------------------------------------------------------------------------------------------


def field_tile(terrain, row, column):
    """Heights of a tile, found by its origin."""
    spacing, n = terrain.horizontal_scale, round(terrain.size / terrain.horizontal_scale)
    i, j = (
        round(float(o - low) / spacing - n / 2)
        for o, low in zip(terrain.origins[row, column, :2], terrain.low, strict=True)
    )
    return terrain.heights[i : i + n + 1, j : j + n + 1]


def test_a_field_is_its_tiles_around_the_middle_of_the_world():
    cfg = TerrainCfg(rows=4, columns=6, size=4.0, border=1.0, seed=11)
    terrain = make_terrain(cfg)
    assert terrain.heights.shape == (181, 261) and terrain.heights.dtype == np.float32
    assert terrain.low == (-9.0, -13.0) and terrain.size == 4.0 and terrain.horizontal_scale == 0.1
    assert terrain.origins.shape == (4, 6, 3) and terrain.origins.dtype == np.float32
    grid = Grid(4.0, 0.1, UNIT)
    for row in range(4):
        for column in range(6):
            expected = GENERATORS[terrain.kinds[column]](
                row / 4, np.random.default_rng((11, row, column)), grid
            )
            assert np.array_equal(field_tile(terrain, row, column), expected)
            assert np.allclose(
                terrain.origins[row, column, :2], ((row - 1.5) * 4.0, (column - 2.5) * 4.0)
            )
            assert terrain.origins[row, column, 2] == expected[grid.ring < 1.05].max()
    for margin in (
        terrain.heights[:11],
        terrain.heights[-11:],
        terrain.heights[:, :11],
        terrain.heights[:, -11:],
    ):
        assert not margin.any()


def test_a_field_is_the_same_again_and_another_with_another_seed():
    cfg = TerrainCfg({"rough": 1, "boxes": 1}, rows=2, columns=2, border=0.0)
    first, again = make_terrain(cfg), make_terrain(cfg)
    assert np.array_equal(first.heights, again.heights) and np.array_equal(
        first.origins, again.origins
    )
    assert not np.array_equal(
        first.heights,
        make_terrain(TerrainCfg({"rough": 1, "boxes": 1}, 2, 2, border=0.0, seed=1)).heights,
    )


def test_a_tile_does_not_depend_on_the_number_of_rows_and_columns():
    constant = {"rough": KindCfg(1.0, {"spread": (0.1, 0.1)})}
    small = make_terrain(TerrainCfg(constant, rows=2, columns=3, border=0.0))
    large = make_terrain(TerrainCfg(constant, rows=5, columns=7, border=2.0))
    for row, column in np.ndindex(2, 3):
        assert np.array_equal(field_tile(small, row, column), field_tile(large, row, column))
    assert not np.array_equal(field_tile(small, 0, 0), field_tile(small, 1, 0))
    assert not np.array_equal(field_tile(small, 0, 0), field_tile(small, 0, 1))


@pytest.mark.parametrize(
    ("kinds", "columns", "counts"),
    [
        (None, 20, [2, 2, 2, 5, 5, 4]),
        ({"gap": 1, "pit": 1}, 5, [3, 2]),
        ({"gap": 3.0, "pit": KindCfg(1.0)}, 8, [6, 2]),
        ({"gap": 0.0, "pit": 2}, 3, [0, 3]),
        ({"gap": 1e-6, "pit": 1e-6, "wave": 1e-6}, 3, [1, 1, 1]),
    ],
)
def test_columns_are_shared_out_by_proportion_in_the_order_of_the_kinds(kinds, columns, counts):
    cfg = (
        TerrainCfg(rows=1, columns=columns)
        if kinds is None
        else TerrainCfg(kinds, rows=1, columns=columns)
    )
    terrain = make_terrain(cfg)
    assert [terrain.kinds.count(kind) for kind in cfg.kinds] == counts
    assert list(terrain.kinds) == sorted(terrain.kinds, key=[*cfg.kinds].index)


def test_a_number_is_a_share_whenever_it_is_given():
    cfg = TerrainCfg({"gap": 1.0}, rows=1, columns=4)
    assert cfg.kinds == {"gap": KindCfg(1.0)}
    cfg.kinds["pit"] = 3.0
    assert make_terrain(cfg).kinds == ("gap", "pit", "pit", "pit")


@pytest.mark.parametrize(("size", "radius"), [(6.0, 1.0), (3.0, 0.5)])
def test_robots_start_at_the_highest_point_near_the_middle(size, radius):
    terrain = make_terrain(
        TerrainCfg({"boxes": KindCfg(1.0, {"height": (0.3, 0.3)})}, 1, 1, size, 0.0, seed=5)
    )
    grid = Grid(size, 0.1, UNIT)
    assert terrain.origins[0, 0, 2] == terrain.heights[grid.ring < radius + 0.01].max()
    assert make_terrain(TerrainCfg({"stairs_up": 1}, 2, 1)).origins[1, 0, 2] == pytest.approx(
        -6 * 0.125
    )
    assert make_terrain(TerrainCfg({"stairs_down": 1}, 2, 1)).origins[1, 0, 2] == pytest.approx(
        6 * 0.125
    )


def test_the_default_field_is_made_in_less_than_three_seconds():
    cfg = TerrainCfg()
    start = time.perf_counter()
    terrain = make_terrain(cfg)
    assert time.perf_counter() - start < 3.0
    assert terrain.heights.shape == (1201, 2001) and terrain.origins.shape == (10, 20, 3)


def test_a_finer_field_has_the_same_formulas():
    coarse, fine = (
        make_terrain(TerrainCfg({"slope_down": 1}, 2, 1, horizontal_scale=s)) for s in (0.1, 0.05)
    )
    assert np.allclose(fine.heights[::2, ::2], coarse.heights, atol=UNIT)


# --- own kinds --------------------------------------------------------------------------------------------------------


def surface_of(terrain):
    """Return a function that casts a ray at the ground of a scene with MuJoCo: distance, m."""
    model = build_scene(GO2, SimCfg(), None, terrain)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    ground = np.array([0, 1, 0, 0, 0, 0], np.uint8)

    def cast(start, direction):
        return mujoco.mj_ray(
            model, data, np.array(start), np.array(direction), ground, 1, -1, np.zeros(1, np.int32)
        )

    return cast


STAIRS = TerrainCfg(
    {"stairs_up": KindCfg(params={"width": 0.31}), "stairs_down": KindCfg()},
    rows=3,
    columns=2,
    border=1.0,
    vertical_risers=True,
)


@pytest.mark.parametrize("cell", [0.1, 0.05])
@pytest.mark.parametrize(("column", "sign", "width"), [(0, -1.0, 0.31), (1, 1.0, 0.4)])
def test_stairs_of_boxes_are_flat_up_to_their_vertical_faces(column, sign, width, cell):
    terrain = make_terrain(replace(STAIRS, horizontal_scale=cell))
    cast = surface_of(terrain)
    for row in range(3):
        middle_x, middle_y, _ = terrain.origins[row, column].tolist()
        step = round((0.05 + row / 3 * 0.15) / UNIT) * UNIT
        for x, y in np.random.default_rng(row).uniform(-3.999, 3.999, (500, 2)):
            ring = max(abs(x), abs(y), 1.5)
            height = sign * step * np.floor((4.0 - ring) / width + 1e-9)
            fall = cast((middle_x + x, middle_y + y, 5.0), (0.0, 0.0, -1.0))
            assert 5.0 - fall == pytest.approx(height, abs=1e-6)
        # A ray at half of a step's height from the flat ground: from outside for stairs down, from
        # the platform in the middle for stairs up.
        count = int(2.5 / width + 1e-9)
        if sign > 0.0:
            way = cast((middle_x - 3.999, middle_y, 0.5 * step), (1.0, 0.0, 0.0))
            assert way == pytest.approx(width - 0.001, abs=1e-6)
        else:
            way = cast((middle_x, middle_y, (0.5 - count) * step), (0.0, 1.0, 0.0))
            assert way == pytest.approx(4.0 - count * width, abs=1e-6)


def test_boxes_change_neither_observed_heights_nor_tiles_and_equal_columns_are_one():
    cfg = TerrainCfg(rows=3, columns=10, border=2.0)
    plain = make_terrain(cfg)
    boxed = make_terrain(replace(cfg, vertical_risers=True))
    assert boxed.kinds == plain.kinds
    assert np.array_equal(boxed.origins[..., 2], plain.origins[..., 2])
    for column, kind in enumerate(plain.kinds):
        for row in range(3):
            tiles = []
            for terrain in (plain, boxed):
                i, j = np.round((terrain.origins[row, column, :2] - terrain.low) / 0.1).astype(int)
                tiles.append(terrain.heights[i - 40 : i + 41, j - 40 : j + 41])
            assert np.array_equal(*tiles), (kind, row)
    stairs = [i for i, kind in enumerate(plain.kinds) if kind == "stairs_up"]
    assert len(stairs) == 3
    assert (boxed.origins[:, stairs] == boxed.origins[:, stairs[:1]]).all()
    # Six steps of a box or of four boxes, on each of three levels.
    assert boxed.boxes.shape == (3 * 6 * (1 + 4), 6)
    # Columns of random tiles are all different.
    assert len(np.unique(boxed.origins[0, :, 1])) == len(plain.kinds) - 2 - 1


def test_stairs_of_boxes_need_no_platform():
    without = {kind: KindCfg(params={"platform": 0.0}) for kind in ("stairs_up", "stairs_down")}
    terrain = make_terrain(replace(STAIRS, kinds=without))
    cast = surface_of(terrain)
    for column, sign in ((0, -1.0), (1, 1.0)):
        x, y, _ = terrain.origins[2, column].tolist()
        assert 5.0 - cast((x + 0.2, y, 5.0), (0.0, 0.0, -1.0)) == pytest.approx(sign * 9 * 0.15)


def test_a_kind_of_a_user_replaces_the_boxes_too(monkeypatch):
    monkeypatch.setattr(kinds, "GENERATORS", dict(GENERATORS))
    monkeypatch.setattr(kinds, "BOXES", dict(kinds.BOXES))
    register_kind("stairs_up", lambda difficulty, random, grid: np.zeros(grid.x.shape))
    terrain = make_terrain(TerrainCfg({"stairs_up": 1.0}, 2, 2, vertical_risers=True))
    assert len(terrain.boxes) == 0
    assert np.array_equal(terrain.collision_heights, terrain.heights)


def test_a_user_adds_a_kind(monkeypatch):
    monkeypatch.setitem(GENERATORS, "ridge", None)  # gone afterwards

    def ridge(difficulty, random, grid, height=0.5):
        return np.where(np.abs(grid.x) < 0.25, height * difficulty, 0.0)

    register_kind("ridge", ridge)
    terrain = make_terrain(TerrainCfg({"ridge": KindCfg(1.0, {"height": 0.3})}, 2, 1, border=0.0))
    middle = terrain.heights[120, 1:-1]
    assert np.allclose(middle, 0.15) and terrain.heights[120, 0] == 0.0
    with pytest.raises(
        ValueError,
        match=r"kinds\['ridge'\].*'hight'.*'height'",
    ):
        make_terrain(TerrainCfg({"ridge": KindCfg(1.0, {"hight": 0.3})}))
    for wrong, message in (
        (np.zeros((3, 3)), r"\(81, 81\).*\(3, 3\)"),
        (np.nan * GRID.x, "nan"),
    ):
        register_kind("ridge", lambda difficulty, random, grid, wrong=wrong: wrong)
        with pytest.raises(ValueError, match=rf"TerrainCfg.kinds\['ridge'\].*{message}"):
            make_terrain(TerrainCfg({"ridge": 1.0}))
    register_kind("ridge", lambda difficulty, random, grid: 20.0 + 0.0 * grid.x)
    with pytest.raises(ValueError, match=r"'ridge'.* 10 m"):  # down to the edge
        make_terrain(TerrainCfg({"ridge": 1.0}))


# --- sources ----------------------------------------------------------------------------------------------------------


def hills(nx=41, ny=61):
    x, y = np.meshgrid(np.arange(nx) * 0.1, np.arange(ny) * 0.1, indexing="ij")
    return (0.3 * np.sin(x) + 0.2 * np.cos(2 * y)).astype(np.float32)


def test_an_array_keeps_its_heights_above_the_middle_of_the_world(tmp_path):
    heights = hills()
    terrain = make_terrain(TerrainCfg(source=heights, border=1.0))
    assert terrain.kinds == ("source",) and terrain.origins.shape == (1, 1, 3)
    assert terrain.size == pytest.approx(4.0) and np.allclose(terrain.low, (-3.0, -4.0))
    assert np.array_equal(terrain.heights[10:-10, 10:-10], heights)
    assert (terrain.heights[:10, 10:-10] == heights[:1]).all() and terrain.heights[
        0, -1
    ] == heights[0, -1]
    assert np.allclose(terrain.origins[0, 0], (0.0, 0.0, heights[10:31, 20:41].max()))
    np.save(tmp_path / "hills.npy", heights.astype(np.float64))
    for path in (tmp_path / "hills.npy", str(tmp_path / "hills.npy")):
        assert np.array_equal(make_terrain(TerrainCfg(source=path, border=0.0)).heights, heights)
    other = make_terrain(TerrainCfg(source=heights, horizontal_scale=0.3, border=0.0, size=8.0))
    assert np.allclose(other.low, (-6.0, -9.0))  # the size of tiles does not matter


@pytest.mark.parametrize(("dtype", "white"), [(np.uint8, 255), (np.uint16, 65535)])
@pytest.mark.parametrize("ending", ["png", "tif"])
def test_an_image_is_seen_from_above(dtype, white, ending, tmp_path):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, white, (40, 30), endpoint=True).astype(dtype)
    Image.fromarray(pixels).save(tmp_path / f"image.{ending}")
    terrain = make_terrain(
        TerrainCfg(source=tmp_path / f"image.{ending}", source_height=0.5, border=0.0)
    )
    assert terrain.heights.shape == (30, 40)
    assert np.allclose(terrain.heights, pixels.astype(np.float64)[::-1].T * 0.5 / white, atol=1e-6)


def test_a_big_endian_image_has_the_same_heights(tmp_path):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 65535, (40, 30), endpoint=True).astype(">u2")
    # Pillow writes TIFF files only in the order of this machine's bytes.
    data = pixels.tobytes()
    tags = {256: 30, 257: 40, 258: 16, 259: 1, 262: 1, 273: 122, 277: 1, 278: 40, 279: len(data)}
    entries = b"".join(struct.pack(">HHII", tag, 4, 1, value) for tag, value in tags.items())
    start = b"MM" + struct.pack(">HIH", 42, 8, len(tags))
    path = tmp_path / "big.tif"
    path.write_bytes(start + entries + bytes(4) + data)
    with Image.open(path) as image:
        assert image.mode == "I;16B"
    terrain = make_terrain(TerrainCfg(source=path, source_height=0.5, border=0.0))
    expected = pixels.astype(np.float64)[::-1].T * 0.5 / 65535
    assert np.allclose(terrain.heights, expected, atol=1e-6)


def test_colours_are_grey_and_elevations_are_metres(tmp_path):
    from PIL import Image

    heights = 512.0 + hills()
    Image.fromarray(heights).save(tmp_path / "elevation.tiff")
    terrain = make_terrain(
        TerrainCfg(source=tmp_path / "elevation.tiff", source_height=3.0, border=0.0)
    )
    assert np.array_equal(terrain.heights, heights[::-1].T)
    Image.new("RGBA", (30, 30), (255, 255, 255, 0)).save(tmp_path / "white.png")
    assert (
        make_terrain(TerrainCfg(source=tmp_path / "white.png", source_height=2.0)).heights == 2.0
    ).all()
    Image.fromarray(np.full((30, 30), 7, np.int32)).save(tmp_path / "whole.tif")
    assert (make_terrain(TerrainCfg(source=tmp_path / "whole.tif")).heights == 7.0).all()


@pytest.mark.parametrize("ending", ["stl", "obj", "ply"])
def test_a_mesh_has_the_heights_of_its_upper_surface(ending, tmp_path):
    import trimesh

    heights = hills().astype(np.float64)
    nx, ny = heights.shape
    i, j = (
        each.ravel() for each in np.meshgrid(np.arange(nx - 1), np.arange(ny - 1), indexing="ij")
    )
    corner = i * ny + j
    faces = np.concatenate(
        [
            np.stack([corner, corner + ny, corner + 1], 1),
            np.stack([corner + 1, corner + ny, corner + ny + 1], 1),
        ]
    )
    x, y = np.meshgrid(np.arange(nx) * 0.1 + 5.0, np.arange(ny) * 0.1 - 2.0, indexing="ij")
    mesh = trimesh.Trimesh(np.stack([x, y, heights], -1).reshape(-1, 3), faces, process=False)
    mesh.export(tmp_path / f"mesh.{ending}")
    terrain = make_terrain(TerrainCfg(source=tmp_path / f"mesh.{ending}", border=0.0))
    assert terrain.heights.shape == heights.shape
    assert np.abs(terrain.heights - heights).max() < 1e-4
    between = make_terrain(
        TerrainCfg(source=tmp_path / f"mesh.{ending}", border=0.0, horizontal_scale=0.05)
    )
    expected = (heights[1:, :-1] + heights[:-1, 1:]) / 2  # the middle of each diagonal
    assert np.abs(between.heights[1::2, 1::2] - expected).max() < 1e-4


def test_a_mesh_is_seen_from_above_with_its_lowest_point_around(tmp_path):
    import trimesh

    slab = trimesh.creation.box((4.0, 3.0, 0.2))
    block = trimesh.creation.box((1.0, 1.0, 1.0)).apply_translation((0.05, 0.05, 0.5))
    tower = trimesh.creation.box((0.5, 0.5, 0.4)).apply_translation((1.77, 1.77, 0.0))
    trimesh.util.concatenate([slab, block, tower]).export(tmp_path / "blocks.stl")
    heights = make_terrain(TerrainCfg(source=tmp_path / "blocks.stl", border=0.0)).heights
    x, y = np.meshgrid(np.arange(41) * 0.1 - 2.0, np.arange(36) * 0.1 - 1.5, indexing="ij")
    expected = np.where((np.abs(x) < 2.01) & (np.abs(y) < 1.51), 0.1, -0.2)
    expected[(np.abs(x - 1.77) < 0.25) & (np.abs(y - 1.77) < 0.25)] = 0.2
    expected[(np.abs(x - 0.05) < 0.5) & (np.abs(y - 0.05) < 0.5)] = 1.0
    assert heights.shape[0] == 41 and np.allclose(
        heights, expected[: heights.shape[0], : heights.shape[1]], atol=1e-6
    )


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"kinds": {"stair_up": 1.0}}, "'stair_up'.*'stairs_up'"),
        ({"kinds": {}}, "TerrainCfg.kinds: sum of proportions.* 0"),
        ({"kinds": {"gap": 0.0, "pit": 0}}, "TerrainCfg.kinds: sum of proportions"),
        ({"kinds": {"gap": -1.0}}, r"TerrainCfg.kinds\['gap'\].proportion.*-1"),
        ({"kinds": {"gap": np.nan}}, r"TerrainCfg.kinds\['gap'\].proportion"),
        ({"kinds": {"gap": "much"}}, r"TerrainCfg.kinds\['gap'\].proportion.*'much'"),
        ({"rows": 0}, "TerrainCfg.rows.* 0"),
        ({"rows": 2.5}, "TerrainCfg.rows.*2.5"),
        ({"columns": -3}, "TerrainCfg.columns.*-3"),
        ({"rows": 10**6}, "TerrainCfg.rows × columns"),
        ({"seed": -1}, "TerrainCfg.seed.*-1"),
        ({"first_levels": 3}, "TerrainCfg.first_levels.*3"),
        ({"first_levels": (3, 2)}, r"TerrainCfg.first_levels.*\(3, 2\)"),
        ({"first_levels": (0, 1.5)}, "TerrainCfg.first_levels.*1.5"),
        ({"size": 1.9}, "TerrainCfg.size.* 2, .*1.9"),
        ({"size": np.inf}, "TerrainCfg.size.*inf"),
        ({"size": 8.04}, "TerrainCfg.size.*horizontal_scale.*8.04"),
        ({"border": -1.0}, "TerrainCfg.border.*-1"),
        ({"border": 0.25}, "TerrainCfg.border.*horizontal_scale.*0.25"),
        ({"horizontal_scale": 0.0}, "TerrainCfg.horizontal_scale.* 0 .* 1, .* 0"),
        ({"vertical_scale": -0.005}, "TerrainCfg.vertical_scale.* 0 .* 1, .*-0.005"),
        ({"slope_threshold": 0.0}, "TerrainCfg.slope_threshold.* 0"),
        ({"source_height": np.nan}, "TerrainCfg.source_height.*nan"),
    ],
)
def test_a_field_that_cannot_be_is_named(fields, named):
    with pytest.raises(ValueError, match=named):
        check_terrain(TerrainCfg(**fields))


@pytest.mark.parametrize(
    ("kind", "params", "named"),
    [
        ("stairs_up", {"hight": (0.1, 0.2)}, "'stairs_up'.*'hight'.*'height'"),
        ("stairs_up", {"height": 0.1}, r"height.*\(0.05, 0.2\).*0.1"),
        ("rough", {"spread": (0.1, -0.1)}, r"spread.*\(0.02, 0.1\)"),
        ("rough", {"spacing": "wide"}, "spacing.*0.2.*'wide'"),
        ("obstacles", {"count": 2.5}, "count.*20.*2.5"),
        ("obstacles", {"side": (1.0, 9.0)}, "side.*0.1.*8.*9"),
        ("stairs_down", {"width": 0.0}, "width.*0.1.*2.5.*0"),
        ("slope_up", {"platform": 3.0}, "platform.*0.*1.*3"),
        ("boxes", {"width": 0.01}, "width.*0.1.*8.*0.01"),
        ("gap", {"width": (0.0, 9.0)}, "width.*0.*2.4.*8.1"),
        ("gap", {"depth": 11.0}, "'gap'.* 10 m.* 11 m"),
        ("wave", {"amplitude": (0.0, np.inf)}, r"amplitude.*\(0.0, 0.2\)"),
    ],
)
def test_parameters_that_a_kind_has_not_got_or_cannot_take_are_named(kind, params, named):
    with pytest.raises(ValueError, match=rf"TerrainCfg.kinds\['{kind}'\].*{named}"):
        check_terrain(TerrainCfg({kind: KindCfg(1.0, params)}))


@pytest.mark.parametrize(
    "ground",
    [
        TerrainCfg({"gap": KindCfg(1.0, {"depth": 11.0})}),
        TerrainCfg({"stair_up": 1.0}),
        TerrainCfg(source=np.zeros(50)),
    ],
)
def test_a_scene_checks_the_tiles_of_its_terrain(ground):
    with pytest.raises(ValueError, match="TerrainCfg"):
        SceneCfg(terrain=ground).check()


@pytest.mark.parametrize("difficulty", [-0.1, 1.0, np.nan, "hard"])
@pytest.mark.parametrize("kind", ["stairs_up", "rough"])
def test_difficulties_are_from_zero_to_below_one(kind, difficulty):
    with pytest.raises(ValueError, match="difficulty"):
        tile(kind, difficulty)


def changed(value, place=(5, 7)):
    heights = hills()
    heights[place] = value
    return heights


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (changed(np.nan), r"\[5, 7\].*nan"),
        (changed(-np.inf), r"\[5, 7\].*-inf"),
        (changed(50.0), " 10 m"),
        (np.zeros(50), r"float64 \(50,\)"),
        (np.zeros((30, 30, 3)), r"float64 \(30, 30, 3\)"),
        (np.zeros((30, 30), bool), "bool"),
        (np.zeros((30, 30), complex), "complex128"),
        (np.zeros((20, 30)), "2.*1.9"),
        (np.zeros((0, 30)), "shorter side"),
        (3.0, r"\(nx, ny\)"),
        ("hills.xyz", "'hills.xyz'.*'.xyz'.*.npy, .png"),
    ],
)
def test_a_source_that_is_no_field_of_heights_is_refused(source, named):
    cfg = TerrainCfg(source=source)
    for refuse in (check_terrain, make_terrain):
        with pytest.raises(ValueError, match=rf"TerrainCfg.source.*{named}"):
            refuse(cfg)


def test_a_file_that_is_missing_broken_or_of_nothing_is_named(tmp_path, monkeypatch):
    with pytest.raises(
        FileNotFoundError,
        match=r"TerrainCfg.source.*'gone.png'",
    ):
        make_terrain(TerrainCfg(source="gone.png"))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    for name in ("broken.png", "broken.npy", "broken.stl", "objects.npy"):
        if name.startswith("broken"):
            (tmp_path / name).write_text("no heights")
        with pytest.raises(ValueError, match=rf"TerrainCfg.source '.*{name}'"):
            make_terrain(TerrainCfg(source=tmp_path / name))
    for module, name in (("trimesh", "broken.stl"), ("PIL", "broken.png")):
        monkeypatch.setattr(
            "legged_envs.system_checks.find_spec",
            lambda asked, module=module: None if asked == module else 1,
        )
        with pytest.raises(
            ModuleNotFoundError, match=rf"{module}: pip install 'legged-envs\[terrain\]'"
        ):
            make_terrain(TerrainCfg(source=tmp_path / name))


def test_a_mesh_in_millimetres_is_refused_before_memory_is(tmp_path):
    import trimesh

    trimesh.creation.box((4000.0, 3000.0, 0.2)).export(tmp_path / "blocks.stl")
    with pytest.raises(ValueError, match=r"blocks.stl'.* 1,200,\d+,\d+ points"):
        make_terrain(TerrainCfg(source=tmp_path / "blocks.stl"))


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_a_row_for_each_kind_and_level(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    cli.main(["terrain", "stairs_up", "gap", "--rows", "4"])
    rows = [
        re.findall(r"[\w.-]+", line) for line in capsys.readouterr().out.splitlines() if "│" in line
    ]
    assert [row[:2] for row in rows] == [
        [kind, str(level)] for kind in ("stairs_up", "gap") for level in range(4)
    ]
    lowest, highest, steepest = ([float(row[i]) for row in rows] for i in (2, 3, 4))
    steps = [0.05, 0.09, 0.125, 0.165]  # 0.05 + 0.15 · level / 4, to the vertical scale
    assert lowest == pytest.approx([-6 * step for step in steps] + [0.0, -1.0, -1.0, -1.0])
    assert highest == [0.0] * 8 and steepest == pytest.approx([*steps, 0.0, 1.0, 1.0, 1.0])
    cli.main(["terrain", "--level", "3"])
    printed = capsys.readouterr().out
    assert all(re.search(rf"{kind} +│ 3 ", printed) for kind in KINDS) and printed.count(
        "│ 3 "
    ) == len(KINDS)


def test_the_command_draws_and_writes_what_is_shown(tmp_path, capsys):
    from PIL import Image

    picture, array = tmp_path / "new" / "terrain.png", tmp_path / "heights.npy"
    cli.main(
        f"terrain boxes rough --columns 3 --seed 4 --level 6 --picture {picture} --array {array}".split()
    )
    heights = np.load(array)
    whole = make_terrain(
        TerrainCfg({"boxes": 1, "rough": 1}, columns=3, border=0.0, seed=4)
    ).heights
    assert heights.shape == (81, 241) and np.array_equal(heights, whole[480:561])
    with Image.open(picture) as image:
        assert min(image.size) > 200 and len(set(image.convert("L").tobytes())) > 50
    assert np.array_equal(make_terrain(TerrainCfg(source=array, border=0.0)).heights, heights)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("stair_up", "'stair_up'.*'stairs_up'"),
        ("gap --level 10", "--level.* 0 .* 9, .*10"),
        ("gap --level deep", "--level.*'deep'"),
        ("gap --rows 0", "--rows.* 0"),
        ("gap pit --columns 1", "--columns.* 2, .*1"),
        ("gap --seed -1", "seed.*-1"),
        ("gap --rows 1000000", "TerrainCfg.rows × columns"),
        ("gap --picture gap.gif", r"--picture.*'.png'.*'.gif'"),
        ("gap --array here.npy", "--array.*'here.npy'"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_and_status_2(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.npy").mkdir()
    with pytest.raises(SystemExit) as stop:
        cli.main(["terrain", *words.split()])
    printed = capsys.readouterr()
    assert stop.value.code == 2 and not printed.out and printed.err.count("\n") == 1
    assert re.search(message, printed.err)
    assert [each.name for each in tmp_path.iterdir()] == ["here.npy"]


def test_a_picture_a_field_and_a_mesh_are_refused_from_their_headers(tmp_path: Path) -> None:
    """A picture of 160 kB unpacks to 169 million points, and a field of 128 bytes may claim any number."""
    rows = zlib.compressobj(9)
    packed = b"".join(rows.compress(bytes(13_001)) for _ in range(13_000)) + rows.flush()
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 13_000, 13_000, 8, 0, 0, 0, 0)), (b"IDAT", packed)]
    picture = b"\x89PNG\r\n\x1a\n"
    for kind, data in [*parts, (b"IEND", b"")]:
        check = struct.pack(">I", zlib.crc32(kind + data))
        picture += struct.pack(">I", len(data)) + kind + data + check
    (tmp_path / "bomb.png").write_bytes(picture)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    claim = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    (tmp_path / "claim.npy").write_bytes(claim)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, number in (("bomb.png", "169,000,000"), ("claim.npy", "size|length|points")):
        with pytest.raises(ValueError, match=rf"{re.escape(name)}.*({number})"):
            make_terrain(TerrainCfg(source=str(tmp_path / name)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
