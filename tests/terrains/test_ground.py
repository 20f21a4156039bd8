"""Height fields under robots: look-ups against the engine, observations, levels, and goals."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from matplotlib.image import imread

import legged_envs
from legged_envs import cli, rotation
from legged_envs.cli.tiles import choose_tiles
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.evaluation.plots import plot_crossings
from legged_envs.managers import CurriculumTermCfg, EventTermCfg, ObservationTermCfg
from legged_envs.mdp import costs, curricula, events, observations, rewards, scan, terminations
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.mdp.symmetry import Mirror
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import Policy, load_shipped_policy
from legged_envs.robots import GO2
from legged_envs.sim import SceneCfg, SimCfg
from legged_envs.sim.ground import Ground
from legged_envs.sim.scene import build_scene
from legged_envs.tasks import make_task_cfg
from legged_envs.terrains import KindCfg, TerrainCfg, make_terrain

ROUGH = "Legged/Go2-Rough-v0"
SMALL = TerrainCfg(rows=3, columns=4, size=4.0, border=3.0, first_levels=(0, 2))
N = 5


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def rough_on(terrain: TerrainCfg) -> TaskCfg:
    cfg = make_task_cfg(ROUGH)
    cfg.scene.terrain = terrain
    return cfg


legged_envs.register(
    "Test/Hill-v0", partial(rough_on, TerrainCfg(source=np.zeros((9, 9), np.float32)))
)


@pytest.fixture(scope="module")
def ground() -> Ground:
    heights = np.round(rng().uniform(-0.3, 0.3, (61, 41)), 3).astype(np.float32)
    return Ground(
        make_terrain(TerrainCfg(source=heights, border=0.0, first_levels=(0, 0))),
        4,
        torch.device("cpu"),
    )


@pytest.fixture(scope="module")
def engine(ground: Ground) -> Any:
    return compiled(ground)


def compiled(ground: Ground) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = build_scene(GO2, SimCfg(), None, ground.terrain)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def inside(ground: Ground, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = (
        torch.from_numpy(rng().uniform(-0.99, 0.99, (2, count))[i] * half).float()
        for i, half in enumerate(ground.half_extent)
    )
    return x, y


def cast(engine: Any, start: Any, way: Any) -> float:
    group, geom = np.array((0, 1, 0, 0, 0, 0), np.uint8), np.zeros(1, np.int32)
    return mujoco.mj_ray(*engine, np.array(start, float), np.array(way, float), group, 1, -1, geom)


def test_heights_are_those_of_the_surface_that_the_engine_collides_with(
    ground: Ground, engine: Any
) -> None:
    x, y = inside(ground, 400)
    hits = [
        5.0 - cast(engine, (a, b, 5.0), (0.0, 0.0, -1.0))
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    assert np.allclose(ground.height(x, y), hits, atol=3e-5)


def test_heights_below_a_millimetre_are_not_stretched_to_one() -> None:
    heights = rng().uniform(-2e-4, 2e-4, (21, 21)).astype(np.float32)
    terrain = make_terrain(TerrainCfg(source=heights, border=0.0, first_levels=(0, 0)))
    ground = Ground(terrain, 1, torch.device("cpu"))
    engine = compiled(ground)
    x, y = inside(ground, 50)
    hits = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        hits.append(0.1 - cast(engine, (a, b, 0.1), (0.0, 0.0, -1.0)))
    assert np.std(hits) > 5e-5
    assert np.allclose(ground.height(x, y), hits, atol=1e-6)


def test_look_ups_are_what_is_computed_by_hand(ground: Ground) -> None:
    x, y = inside(ground, 200)
    heights, scale = ground.terrain.heights.astype(float), ground.terrain.horizontal_scale
    for a, b, bilinear, lowest in zip(
        x, y, ground.bilinear(x[None], y[None])[0], ground.lowest(x, y), strict=True
    ):
        u, v = (
            (a.item() - ground.terrain.low[0]) / scale,
            (b.item() - ground.terrain.low[1]) / scale,
        )
        i, j = int(u), int(v)
        u, v, corners = u - i, v - j, heights[i : i + 2, j : j + 2]
        by_hand = (1 - u) * ((1 - v) * corners[0, 0] + v * corners[0, 1]) + u * (
            (1 - v) * corners[1, 0] + v * corners[1, 1]
        )
        assert bilinear.item() == pytest.approx(by_hand, abs=1e-4)
        assert lowest.item() == pytest.approx(
            min(corners[0, 0], corners[1, 0], corners[0, 1]), abs=1e-6
        )


def test_normals_are_perpendicular_to_the_surface(ground: Ground) -> None:
    x, y = inside(ground, 200)
    step, normal = 1e-3, ground.normal(x, y)
    slopes = [
        (ground.height(*moved) - ground.height(x, y)) / step
        for moved in ((x + step, y), (x, y + step))
    ]
    along_x = torch.stack((torch.ones_like(x), torch.zeros_like(x), slopes[0]), 1)
    along_y = torch.stack((torch.zeros_like(x), torch.ones_like(x), slopes[1]), 1)
    smooth = ((normal * along_x).sum(1).abs() < 0.01) & ((normal * along_y).sum(1).abs() < 0.01)
    assert smooth.float().mean() > 0.95  # the others have an edge between both points
    assert torch.allclose(normal.norm(dim=1), torch.ones(200), atol=1e-6)


def test_outside_of_the_field_the_ground_is_as_at_its_end(ground: Ground) -> None:
    x, y = (
        torch.tensor([sign * (half + 3.0) for sign in (-1.0, 1.0)]) for half in ground.half_extent
    )
    ends = torch.from_numpy(ground.terrain.heights[[0, -1], [0, -1]])
    for look in (ground.height, lambda *at: ground.bilinear(*(part[None] for part in at))[0]):
        assert torch.allclose(look(x, y), ends, atol=1e-5)


def test_edges_are_as_far_as_by_brute_force() -> None:
    heights = np.zeros((40, 30), np.float32)
    heights[10:20, 10:] = 0.5
    ground = Ground(
        make_terrain(TerrainCfg(source=heights, border=0.0, first_levels=(0, 0))),
        1,
        torch.device("cpu"),
    )
    drop = np.stack([heights[i : 39 + i, j : 29 + j] for i in (0, 1) for j in (0, 1)])
    edges = np.argwhere(drop.max(0) - drop.min(0) > 0.075)
    cells = np.stack(np.meshgrid(np.arange(39), np.arange(29), indexing="ij"), -1)
    expected = 0.1 * np.linalg.norm(cells[:, :, None] - edges, axis=-1).min(-1).clip(max=10.0)
    x, y = (
        torch.from_numpy(ground.terrain.low[i] + 0.1 * cells[..., i] + 0.05).float() for i in (0, 1)
    )
    assert np.allclose(ground.edge_distance(x, y), expected, atol=1e-5)


def test_rays_end_where_the_engines_do() -> None:
    x, y = np.meshgrid(np.arange(61) * 0.1, np.arange(41) * 0.1, indexing="ij")
    heights = (0.2 * np.sin(2.0 * x) * np.cos(3.0 * y) + 0.3 * (x > 4.0)).astype(np.float32)
    ground = Ground(
        make_terrain(TerrainCfg(source=heights, border=0.0, first_levels=(0, 0))),
        4,
        torch.device("cpu"),
    )
    engine = compiled(ground)
    ways = np.array([(1.0, 0.2, -0.3), (-0.5, 0.5, -0.6), (0.1, -0.9, -0.2), (0.0, 0.3, -1.0)])
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    starts = np.array([(0.3 * i - 1.0, 0.1 * i - 0.7, 0.8) for i in range(8)])
    expected = np.array([[cast(engine, start, way) for way in ways] for start in starts])
    expected = np.where(expected < 0, 3.0, expected).clip(max=3.0)
    origins = torch.from_numpy(starts).float().unsqueeze(1).expand(-1, 4, -1)
    found = ground.cast(origins, torch.from_numpy(ways).float().expand(8, -1, -1), 3.0)
    errors = np.sort(np.abs(found.numpy() - expected), axis=None)
    assert (
        np.median(errors) < 1e-3 and errors[-3] < 0.01
    )  # two rays graze a crest, and slip past it


def rough(**changes: Any) -> TaskCfg:
    cfg = make_task_cfg(ROUGH)
    cfg.scene.terrain = SMALL
    for name, value in changes.items():
        setattr(cfg, name, value)
    return cfg


def test_physics_is_that_of_a_plain_loop(make_vec: Any) -> None:
    env = make_vec(N, ROUGH, cfg=rough(), array="torch")
    env.reset(seed=3)
    sim, action = env.unwrapped.sim, torch.from_numpy(rng().uniform(-1, 1, (N, 12))).float()
    models = [sim.batch.get_model(i) for i in range(N)]
    states, size = sim.batch.state.copy(), mujoco.mjtState.mjSTATE_INTEGRATION
    env.step(action)
    for i, model in enumerate(models):
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, states[i], size)
        data.ctrl[:] = sim.batch.bind("ctrl")[i]
        for _ in range(4):
            mujoco.mj_step(model, data)
        assert np.array_equal(data.qpos, sim.batch.bind("qpos")[i])


def test_robots_begin_on_their_tiles_whatever_num_envs_is(make_vec: Any) -> None:
    few, many = (make_vec(n, ROUGH, cfg=rough(), array="torch") for n in (3, 9))
    action = torch.from_numpy(rng().uniform(-1, 1, (9, 12))).float()
    for env in (few, many):
        env.reset(seed=1)
    for _ in range(25):
        one, other = few.step(action[:3]), many.step(action)
        assert torch.equal(one[0], other[0][:3]) and torch.equal(one[1], other[1][:3])
    ground = many.unwrapped.ground
    assert len({*ground.levels.tolist()}) == 3 and len({*ground.columns.tolist()}) > 2
    many.reset(seed=1)
    away = (many.unwrapped.robot.root_pos_w - ground.origins)[:, :2].abs()
    assert away.max() <= 1.0 and (many.unwrapped.robot.base_height - GO2.base_height).min() > -0.01


def test_two_robots_on_a_tile_do_not_see_each_other(make_vec: Any) -> None:
    cfg = rough()
    cfg.scene = SceneCfg(
        terrain=TerrainCfg(rows=1, columns=1, size=4.0, border=2.0, first_levels=(0, 0))
    )
    cfg.events = {}
    pair, single = (
        make_vec(2, ROUGH, cfg=cfg, array="torch"),
        make_vec(1, ROUGH, cfg=cfg, array="torch"),
    )
    for env in (pair, single):
        env.reset(seed=0)
    for _ in range(20):
        pair.step(torch.full((2, 12), 0.3)), single.step(torch.full((1, 12), 0.3))
    assert torch.equal(pair.unwrapped.robot.joint_pos[:1], single.unwrapped.robot.joint_pos)
    assert torch.equal(pair.unwrapped.robot.root_pos_w[0], pair.unwrapped.robot.root_pos_w[1])


def test_a_scan_is_what_is_computed_by_hand(make_vec: Any) -> None:
    env = make_vec(N, ROUGH, cfg=rough(), array="torch").unwrapped
    env.reset(seed=2)
    heights = observations.height_scan(env, lookup="height")
    x, y, z = env.robot.root_pos_w.unbind(1)
    for i in range(N):
        yaw, column = env.robot.heading()[i], 0
        for ahead in scan.SCAN_X:
            for left in scan.SCAN_Y:
                at_x, at_y = (
                    x[i] + ahead * yaw.cos() - left * yaw.sin(),
                    y[i] + ahead * yaw.sin() + left * yaw.cos(),
                )
                by_hand = (z[i] - env.ground.height(at_x, at_y) - 0.5).clamp(-1.0, 1.0)
                assert heights[i, column].item() == pytest.approx(by_hand.item(), abs=2e-5)
                column += 1
    assert heights.shape == (N, 187) and observations.foot_scan(env).shape == (N, 36)
    normals = observations.foot_ground_normal(env).view(N, 4, 3)
    feet = env.robot.foot_pos_w
    turned = rotation.rotate(rotation.from_yaw(env.robot.heading())[:, None], normals)
    assert torch.allclose(turned, env.ground.normal(feet[..., 0], feet[..., 1]), atol=1e-5)


def test_on_a_plane_there_is_nothing_to_see(make_vec: Any) -> None:
    env = make_vec(N, array="torch").unwrapped
    env.reset(seed=2)
    z = env.robot.root_pos_w[:, 2:]
    assert torch.allclose(observations.height_scan(env), (z - 0.5).expand(-1, 187))
    assert torch.equal(
        observations.foot_ground_normal(env), torch.tensor([0.0, 0.0, 1.0] * 4).expand(N, -1)
    )
    assert (
        observations.foot_edge_distance(env).eq(0.5).all()
        and not terminations.left_terrain(env).any()
    )
    assert torch.equal(observations.foot_scan(env).view(N, 4, 9)[..., 0], env.robot.foot_height)
    assert (
        observations.foot_scan(env, limit=0.001).abs().max()
        <= 0.001
        < env.robot.foot_height.abs().max()
    )


def test_scans_take_lists_and_arrays_and_name_what_does_not_exist(make_vec: Any) -> None:
    for task in (ROUGH, "Legged/Go2-Flat-v0"):
        env = make_vec(2, task, array="torch").unwrapped
        env.reset(seed=0)
        expected = observations.height_scan(env, (0.0, 0.5), (-0.1, 0.1))
        given = observations.height_scan(env, [0.0, 0.5], np.array([-0.1, 0.1]))
        assert torch.equal(expected, given)
        down = scan.ray_distances(env, [[0.0, 0.0, -1.0]])
        assert torch.equal(down, scan.ray_distances(env, ((0.0, 0.0, -1.0),)))
        with pytest.raises(ValueError, match=r"foot_scan: lookup must be.*'nearest'"):
            observations.foot_scan(env, lookup="nearest")
        with pytest.raises(ValueError, match=r"foot_edge_distance: limit.*2\.0"):
            observations.foot_edge_distance(env, limit=2.0)


def test_rays_pass_through_robots_without_groups_of_shapes(make_vec: Any, tmp_path: Path) -> None:
    cfg = make_task_cfg("Legged/Go2-Flat-v0")
    cfg.events = {}
    text = re.sub(r' group="\d"', "", GO2.path.read_text())
    assert text != GO2.path.read_text()
    (tmp_path / "go2.xml").write_text(text)
    cfg.robot = replace(GO2, xml=str(tmp_path / "go2.xml"))
    env = make_vec(1, "Legged/Go2-Flat-v0", cfg=cfg, array="torch").unwrapped
    env.reset(seed=0)
    down = scan.ray_distances(env, ((0.0, 0.0, -1.0),), (0.0, 0.0, 0.0))
    assert down.item() == pytest.approx(env.robot.root_pos_w[0, 2].item(), abs=1e-3)


def test_rays_see_the_ground_and_objects(make_vec: Any) -> None:
    env = make_vec(2, array="torch", cfg={"events": {}}).unwrapped
    env.reset(seed=0)
    down = scan.ray_distances(
        env, ((0.0, 0.0, -1.0), (1.0, 0.0, -1.0), (1.0, 0.0, 0.0)), (0.0, 0.0, 0.0)
    )
    height = env.robot.root_pos_w[0, 2].item()
    assert down[0].tolist() == pytest.approx([height, height * 2.0**0.5, 5.0], abs=1e-3)
    assert len(scan.lidar(16)) == 16 and len(scan.depth_camera(16, 12)) == 192
    left = scan.lidar(4)[1]
    assert left == pytest.approx((0.0, 1.0, 0.0), abs=1e-9)
    top_left, bottom_right = (scan.depth_camera()[i] for i in (0, -1))
    assert top_left[1] > 0.0 > bottom_right[1] and top_left[2] > bottom_right[2]


def test_who_leaves_the_field_is_cut_off(make_vec: Any) -> None:
    env = make_vec(3, ROUGH, cfg=rough(), array="torch", autoreset_mode="Disabled")
    env.reset(seed=0)
    core = env.unwrapped
    far = core.robot.root_pos_w[:1].clone()
    far[0, 0] = core.ground.half_extent[0] - 0.3
    zeros = torch.zeros(1, 3)
    core.sim.write_root_state(
        torch.tensor([0]), far, core.robot.root_quat_w[:1].clone(), zeros, zeros
    )
    _, _, terminated, truncated, _ = env.step(torch.zeros(3, 12))
    assert truncated.tolist() == [True, False, False] and not terminated.any()


@pytest.mark.parametrize(
    ("by", "done", "asked", "away", "moves"),
    [
        ("path", 5.0, 6.0, 0.0, 1),
        ("path", 1.5, 1.6, 9.0, 0),  # good, but too short a way to say anything
        ("path", 2.0, 6.0, 9.0, -1),
        ("path", 4.0, 6.0, 0.0, 0),
        ("path", 0.0, 0.0, 0.0, 0),
        ("distance", 0.0, 0.0, 2.1, 1),
        ("distance", 0.0, 0.0, 1.9, -1),
    ],
)
def test_levels_follow_what_was_walked(
    make_vec: Any, by: str, done: float, asked: float, away: float, moves: int
) -> None:
    cfg = rough(curriculum={"levels": CurriculumTermCfg(curricula.terrain_levels, {"by": by})})
    env = make_vec(3, ROUGH, cfg=cfg, array="torch").unwrapped
    env.reset(seed=0)
    env.ground.levels = torch.ones_like(env.ground.levels)
    term = env.commands.terms["velocity"]
    term.path, term.progress = torch.full((3,), asked), torch.full((3,), done)
    term.value = torch.tensor((1.0, 0.0, 0.0)).expand(3, -1)
    env.robot.root_pos_w = env.ground.origins + torch.tensor((away, 0.0, 0.0))
    mean = curricula.terrain_levels(env, torch.tensor([0, 2]), by)
    assert env.ground.levels.tolist() == [1 + moves, 1, 1 + moves] and mean.item() == pytest.approx(
        1 + moves * 2 / 3
    )


def test_who_has_done_the_hardest_level_goes_to_any(make_vec: Any) -> None:
    env = make_vec(64, ROUGH, cfg=rough(), array="torch").unwrapped
    env.reset(seed=0)
    env.ground.levels = torch.full((64,), 2)
    term = env.commands.terms["velocity"]
    term.path = term.progress = torch.full((64,), 6.0)
    curricula.terrain_levels(env, torch.arange(64))
    assert {*env.ground.levels.tolist()} == {0, 1, 2}
    term.progress, env.ground.levels = torch.zeros(64), torch.zeros_like(env.ground.levels)
    curricula.terrain_levels(env, torch.arange(64))
    assert not env.ground.levels.any()


def test_the_way_of_a_command_is_that_of_the_robot_along_it(make_vec: Any) -> None:
    env = make_vec(2, ROUGH, cfg=rough(curriculum={}), array="torch", autoreset_mode="Disabled")
    env.reset(seed=0)
    core, path, progress = env.unwrapped, np.zeros(2), np.zeros(2)
    term = core.commands.terms["velocity"]
    for _ in range(12):
        command = term.value[:, :2].double().numpy().copy()
        env.step(torch.zeros(2, 12))
        speed = np.linalg.norm(command, axis=1)
        path += speed * core.step_dt
        along = (command * core.robot.lin_vel_b[:, :2].double().numpy()).sum(1) / np.maximum(
            speed, 1e-6
        )
        progress += np.minimum(along, speed) * core.step_dt
    assert np.allclose(term.path, path, atol=1e-5) and np.allclose(
        term.progress, progress, atol=1e-5
    )


def test_levels_are_saved_and_resumed(make_vec: Any) -> None:
    envs = [make_vec(4, ROUGH, cfg=rough(), array="torch", max_episode_steps=6) for _ in range(2)]
    actions = torch.from_numpy(rng().uniform(-1, 1, (30, 4, 12))).float()
    for env in envs:
        env.reset(seed=0)
    for action in actions[:10]:
        envs[0].step(action)
    ground = envs[0].unwrapped.ground
    ground.levels = ground.levels.index_fill(0, torch.tensor([2]), 2)
    envs[1].unwrapped.set_state(envs[0].unwrapped.get_state())
    for action in actions[10:20]:
        one, other = (env.unwrapped.step(action) for env in envs)
        assert torch.equal(one[0], other[0])
    assert (
        torch.equal(*(env.unwrapped.ground.levels for env in envs))
        and envs[1].unwrapped.ground.levels[2] == 2
    )


def test_stumbling_is_a_force_from_the_side(make_vec: Any) -> None:
    env = make_vec(3, array="torch").unwrapped
    env.reset(seed=0)
    force = torch.zeros_like(env.robot.contact_force_w)
    foot = env.sim.body_ids(GO2.foot_names)[1]
    force[0, foot], force[1, foot] = torch.tensor((4.1, 0.0, 1.0)), torch.tensor((2.0, 3.0, -1.0))
    env.robot.contact_force_w = force
    assert costs.stumble(env).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("groups", ["policy", "critic"])
def test_terms_come_late_with_an_offset_and_losses(make_vec: Any, groups: str) -> None:
    cfg = make_task_cfg("Legged/Go2-Flat-v0")
    plain = ObservationTermCfg(observations.joint_pos)
    late = ObservationTermCfg(observations.joint_pos, delay=2)
    shifted = ObservationTermCfg(observations.joint_pos, offset=0.3)
    lossy = ObservationTermCfg(observations.joint_pos, dropout=0.4)
    cfg.observations[groups].terms = {
        "now": plain,
        "late": late,
        "shifted": shifted,
        "lossy": lossy,
    }
    env = make_vec(6, cfg=cfg, array="torch", observations="dict", autoreset_mode="Disabled")
    seen = [env.reset(seed=0)[0][groups].view(6, 4, 12)]
    actions = torch.from_numpy(rng().uniform(-1, 1, (9, 6, 12))).float()
    for i, action in enumerate(actions):
        if i == 5:  # environments 0 and 3 begin anew
            mask = torch.tensor([True, False, False] * 2)
            start = env.reset(options={"reset_mask": mask})[0][groups].view(6, 4, 12)
            seen = [torch.where(mask[:, None, None], start, each) for each in seen]
        seen.append(env.step(action)[0][groups].view(6, 4, 12))
    now, late_, shifted_, lossy_ = torch.stack(seen[6:]).unbind(2)
    before = torch.stack([each[:, 0] for each in seen])[4:-2]
    kept = torch.tensor([False, True, True] * 2)
    assert torch.equal(late_[:, kept], before[:, kept])
    offset = shifted_ - now
    noisy = groups == "policy"
    assert (
        (offset.abs() <= 0.3 + 1e-6).all()
        and (offset.std(0) < 1e-6).all()
        and bool(offset.any()) == noisy
    )
    lost = (lossy_ == 0.0) & (now != 0.0)
    assert (
        torch.equal(lossy_[~lost], now[~lost]) and bool(0.25 < lost.float().mean() < 0.55) == noisy
    )


def test_goals_are_reached_when_one_stands_on_them(make_vec: Any) -> None:
    env = make_vec(4, "Legged/Go2-Nav-v0", cfg={"scene.terrain": SMALL}, array="torch")
    env.reset(seed=0)
    core = env.unwrapped
    term: Any = core.commands.terms["goal"]
    still = torch.zeros(4, 3)
    core.sim.write_root_state(
        torch.arange(4), term.goal_w, rotation.from_yaw(term.heading), still, still
    )
    core.robot.reset(torch.arange(4))
    term.on_placed(torch.arange(4))
    assert (
        term.value[:, :4].abs().max() < 1e-3
        and term.value[:, 4].eq(8.0).all()
        and not term.moving.any()
    )
    env.step(torch.zeros(4, 12))
    assert term.value[:, 4].tolist() == pytest.approx([7.98] * 4)


def test_soles_walk_on_a_flat_field_as_on_a_plane(make_vec: Any) -> None:
    task, falls, rewards = "Legged/G1-Flat-v0", [], []
    policy = load_shipped_policy(task)
    flat = SceneCfg(terrain=TerrainCfg(source=np.zeros((201, 201), np.float32), border=0.0))
    for cfg in ({}, {"scene": flat}):
        env = make_vec(48, task, cfg=cfg, array="torch")
        (observation, _), fell, total = env.reset(seed=3), 0, torch.zeros(())
        for _ in range(200):
            observation, reward, terminated, _, _ = env.step(policy(observation))
            fell, total = fell + int(terminated.sum()), total + reward.mean()
        falls.append(fell)
        rewards.append(total.item())
    assert falls[1] <= falls[0] + 1 and rewards[1] == pytest.approx(rewards[0], rel=0.02)


def test_contacts_are_as_stiff_as_configured(make_vec: Any) -> None:
    soft = {"sim.solref": (0.02, 1.0), "sim.solimp": (0.9, 0.95, 0.001, 0.5, 2.0)}
    depths = []
    for cfg in ({}, soft):
        env = make_vec(1, cfg={"events": {}, **cfg}, array="torch")
        env.reset(seed=0)
        for _ in range(50):
            env.step(torch.zeros(1, 12))
        assert np.allclose(env.unwrapped.sim.model.geom_solref, env.unwrapped.cfg.sim.solref)
        depths.append(GO2.foot_radius - env.unwrapped.robot.foot_height.min().item())
    assert 0.0 < 2.5 * depths[0] < depths[1] < 0.005


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sim.solref": (0.02,)}, "solref"),
        ({"sim.solimp": (0.9, 0.95, 0.001, 0.5, float("nan"))}, "solimp"),
        ({"observations.policy.terms.joint_pos.delay": -1}, "delay"),
        ({"observations.policy.terms.joint_pos.dropout": 1.5}, "dropout"),
        ({"observations.policy.terms.joint_pos.offset": -0.1}, "offset"),
        (
            {"curriculum": {"levels": CurriculumTermCfg(curricula.terrain_levels, {"by": "luck"})}},
            "by",
        ),
    ],
)
def test_mistakes_are_named(make_vec: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        env = make_vec(1, cfg=changes)
        env.reset(seed=0)
        curricula.terrain_levels(
            env.unwrapped, torch.tensor([0]), **env.unwrapped.cfg.curriculum["levels"].params
        )


def test_dropped_robots_start_just_above_the_ground_anywhere_on_their_tile(make_vec: Any) -> None:
    cfg = rough()
    cfg.scene.terrain = TerrainCfg({"stairs_up": 1.0}, rows=1, columns=2, border=2.0)
    cfg.events["drop"] = EventTermCfg(
        events.drop, "reset", params={"fraction": 0.5, "distance": 3.0, "height": (0.02, 0.06)}
    )
    # Robots that stand for another reason start elsewhere.
    cfg.commands["velocity"].standing_fraction = 0.0
    env = make_vec(200, ROUGH, cfg=cfg, array="torch").unwrapped
    env.reset(seed=0)
    offset = (env.sim.root_pos_w - env.sim.ground.origins)[:, :2].abs().amax(1)
    still = env.commands.terms["velocity"].still > 0.0
    far = offset > 1.0
    assert still[far].all() and still.float().mean() == pytest.approx(0.5, abs=0.1)
    assert 2.5 < offset.max() <= 3.0
    clearance = env.robot.foot_height.amin(1)[still] - GO2.foot_radius
    # Ground next to a foot may be higher than below it, but by no more than two steps of 5 cm.
    assert clearance.min() > 0.02 - 1e-4 and clearance.max() < 0.06 + 0.15
    assert env.robot.contact_force.max() == 0.0 or not env.robot.foot_contact[still].any()


@pytest.mark.parametrize(("kind", "size"), [("stairs_up", 3.0), ("pit", 4.0), ("boxes", 8.0)])
def test_robots_start_above_ground_that_rises_beside_the_middle(
    make_vec: Any, kind: str, size: float
) -> None:
    terrain = TerrainCfg({kind: 1.0}, rows=3, columns=2, size=size, border=3.0, first_levels=(2, 2))
    env = make_vec(64, ROUGH, cfg={"scene.terrain": terrain}, array="torch").unwrapped
    env.reset(seed=0)
    x, y, z = env.robot.foot_pos_w.unbind(-1)
    above = (z - GO2.foot_radius - env.sim.ground.height(x, y)).amin(1)
    # Drawn joint positions lower a foot by up to 3.5 cm, as on a plane.
    assert above.min() > -0.035 and above.max() < 0.25
    raised = env.sim.root_pos_w[:, 2] - env.sim.ground.origins[:, 2] - GO2.base_height > 1e-4
    assert raised.any()


def test_kinds_of_a_task_with_a_generator_can_be_chosen() -> None:
    low = KindCfg(1.0, {"height": (0.02, 0.1)}, generator="stairs_up")

    legged_envs.register("Test/LowStairs-v0", partial(rough_on, TerrainCfg({"low_stairs": low})))
    changes = choose_tiles("Test/LowStairs-v0", "low_stairs", None)
    assert changes == {"scene.terrain.kinds": {"low_stairs": low}}


def test_headings_turn_robots_within_the_range_of_their_kind(make_vec: Any) -> None:
    cfg = rough()
    cfg.scene.terrain = TerrainCfg(
        {"flat": 1.0, "rough": 1.0}, rows=1, columns=4, size=4.0, border=2.0
    )
    cfg.commands["velocity"] = VelocityCommandCfg(
        standing_fraction=0.0, heading=True, kind_ranges={"flat": {"ang_vel_z": (-0.1, 0.2)}}
    )
    env = make_vec(200, ROUGH, cfg=cfg, array="torch").unwrapped
    env.reset(seed=0)
    for _ in range(2):
        flat = env.sim.ground.columns < 2
        turn = env.commands["velocity"][:, 2]
        assert turn[flat].min() == pytest.approx(-0.1) and turn[flat].max() == pytest.approx(0.2)
        assert turn[~flat].abs().max() > 0.5
        env.step(torch.zeros(200, 12))


def test_robots_on_tiles_of_a_kind_have_commands_of_its_ranges(make_vec: Any) -> None:
    cfg = rough()
    cfg.scene.terrain = TerrainCfg(
        {"flat": 1.0, "rough": 1.0}, rows=1, columns=4, size=4.0, border=2.0
    )
    cfg.commands["velocity"] = VelocityCommandCfg(
        standing_fraction=0.0, kind_ranges={"flat": {"lin_vel_x": (2.0, 3.0)}, "moon": {}}
    )
    env = make_vec(200, ROUGH, cfg=cfg, array="torch").unwrapped
    env.reset(seed=0)
    flat = env.sim.ground.columns < 2
    forwards, sideways, _ = env.commands["velocity"].unbind(1)
    assert 2.0 <= forwards[flat].min() < 2.1 and 2.9 < forwards[flat].max() <= 3.0
    assert -1.0 <= forwards[~flat].min() < -0.9 and 0.9 < forwards[~flat].max() <= 1.0
    assert sideways.abs().max() <= 0.5 and sideways[flat].std() > 0.2
    # A range that is set later is that of all kinds without their own.
    term = env.commands.terms["velocity"]
    term.set_range("lin_vel_x", 0.1, 0.2)
    term.set_range("lin_vel_y", 0.4, 0.45)
    env.reset(seed=0)
    forwards, sideways, _ = env.commands["velocity"].unbind(1)
    assert forwards[flat].min() >= 2.0 and forwards[~flat].max() <= 0.2
    assert sideways.min() >= 0.4 and sideways.max() <= 0.45


def test_slip_is_along_the_slope(make_vec: Any) -> None:
    x = np.arange(81)[:, None] * 0.1 * np.ones((1, 81))
    cfg = rough()
    cfg.scene.terrain = TerrainCfg(
        source=(0.5 * x).astype(np.float32), border=0.0, first_levels=(0, 0)
    )
    env = make_vec(1, ROUGH, cfg=cfg, array="torch").unwrapped
    env.reset(seed=0)
    robot, up = env.robot, torch.tensor((-0.5, 0.0, 1.0)) / 1.25**0.5
    along, across = torch.tensor((1.0, 0.0, 0.5)), torch.tensor((0.0, 2.0, 0.0))
    robot.foot_lin_vel_w = torch.stack((up, along, across, 0.0 * up))[None]
    with torch.inference_mode():
        robot.compute()
    assert robot.foot_speed[0].tolist() == pytest.approx([0.0, 1.25**0.5, 2.0, 0.0], abs=1e-5)


def test_a_scan_mirrors_left_to_right(make_vec: Any) -> None:
    env = make_vec(1, ROUGH, cfg=rough(), array="torch").unwrapped
    env.reset(seed=0)
    whole = observations.height_scan(env)
    left, right = (
        observations.height_scan(env, y=sign) for sign in (scan.SCAN_Y, scan.SCAN_Y[::-1])
    )
    mirror = Mirror(GO2, [("scan", "scan", 187)])
    assert torch.equal(whole, left) and torch.equal(mirror(whole), right)


def test_the_way_to_a_goal_mirrors_left_to_right(make_vec: Any) -> None:
    env = make_vec(2, "Legged/Go2-Nav-v0", array="torch").unwrapped
    env.reset(seed=0)
    term, still = env.commands.terms["goal"], torch.zeros(2, 3)
    position, yaw = torch.tensor([[0.5, 0.2, 0.4], [0.5, -0.2, 0.4]]), torch.tensor([0.7, -0.7])
    env.sim.write_root_state(torch.arange(2), position, rotation.from_yaw(yaw), still, still)
    env.robot.reset(torch.arange(2))
    term.goal_w, term.heading = (
        torch.tensor([[2.0, -1.0, 0.3], [2.0, 1.0, 0.3]]),
        torch.tensor([1.5, -1.5]),
    )
    term.advance()
    one, other = observations.command(env, "goal")
    mirror = Mirror(GO2, [("goal", env.cfg.observations["policy"].terms["goal"].mirror, 5)])
    assert (
        torch.allclose(mirror(one), other, atol=1e-5) and one[1].abs() > 0.5 and one[3].abs() > 0.5
    )


def test_a_policy_of_another_scan_is_refused(make_vec: Any) -> None:
    env, other = (make_vec(1, ROUGH, cfg=rough(), observations="dict").unwrapped for _ in range(2))
    other.cfg.observations["policy"].terms["height_scan"].params["offset"] = 0.3
    policy = Policy(lambda observation: observation[:, :12], contract(ROUGH, env))
    policy.check(env)
    with pytest.raises(ValueError, match=r"scan.*'offset': 0\.5.*'offset': 0\.3"):
        policy.check(other)


@pytest.mark.usefixtures("log_elsewhere")
def test_who_crosses_what_is_counted() -> None:
    cfg = make_task_cfg("Legged/Go2-Blind-v0")
    cfg.scene.terrain = TerrainCfg(
        {"slope_up": 1.0, "gap": 1.0}, rows=2, columns=4, size=4.0, border=4.0
    )
    evaluator = Evaluator("Legged/Go2-Blind-v0", cfg, 24)
    levels, columns = evaluator.core.ground.levels, evaluator.core.ground.columns
    values = {
        name: value[None].repeat(3, *[1] * value.ndim)
        for name, value in standing_measures(evaluator).items()
    }
    values["has_left_tile"] = torch.zeros(3, 24)
    values["has_left_tile"][1, ::2] = 1.0  # every other robot is away in the second step,
    alive = torch.ones(3, 24, dtype=torch.bool)
    alive[1:, :4] = False  # when the first four have fallen
    result = evaluator.metrics.result(values, alive)
    crossed = [i % 2 == 0 and i >= 4 for i in range(24)]
    assert result.crossed == pytest.approx(sum(crossed) / 24)
    for kind, own in {"slope_up": (0, 1), "gap": (2, 3)}.items():
        for level, fraction in enumerate(result.crossings[kind]):
            here = [crossed[i] for i in range(24) if columns[i] in own and levels[i] == level]
            assert fraction == pytest.approx(sum(here) / len(here))
    assert (
        evaluator.core.cfg.scene.terrain.first_levels == (0, 1)
        and not evaluator.core.cfg.curriculum
    )
    plot_crossings(result.crossings, Path("crossings.png"))
    assert imread("crossings.png").shape[1] > 200
    evaluator.close()


def standing_measures(evaluator: Evaluator) -> dict[str, torch.Tensor]:
    evaluator.metrics.start(evaluator._envs, 0, False)
    *_, info = evaluator._envs.step(torch.zeros(24, 12))
    return evaluator.metrics.measures(info)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "eval Legged/Go2-Flat-v0 --level 3",
            "'Legged/Go2-Flat-v0' is on flat ground: it takes no --level",
        ),
        ("play Legged/Go2-Flat-v0 --terrain gap", "is on flat ground: it takes no --terrain"),
        ("eval Legged/Go2-Flat-v0 --picture a.png", "is on flat ground: it takes no --picture"),
        (
            "play Legged/Go2-Rough-v0 --terrain stairs",
            "unknown kind of terrain 'stairs'; did you mean 'stairs_",
        ),
        (
            "eval Legged/Go2-Rough-v0 --level 10",
            "--level must be an integer of at least 0 and at most 9, got 10",
        ),
        ("eval Legged/Go2-Rough-v0 --picture a.jpg", "the ending of --picture"),
        ("play Legged/Go2-Flat-v0 --scan", "observes no heights"),
        (
            "eval Test/Hill-v0 --level 0",
            "TerrainCfg.source, which has no tiles: it takes no --level",
        ),
    ],
)
def test_mistakes_about_tiles_are_one_line(capsys: Any, words: str, message: str) -> None:
    with pytest.raises(SystemExit):
        cli.main(words.split())
    assert message in " ".join(capsys.readouterr().err.split())


def test_rewards_of_goals_are_their_formulas(make_vec: Any) -> None:
    env = make_vec(200, "Legged/Go2-Nav-v0", cfg={"scene.terrain": SMALL}, array="torch").unwrapped
    env.reset(seed=0)
    way = rng().uniform(-2.0, 2.0, (200, 5)) * (1.5, 1.5, 0.3, 1.0, 2.0) + (0.0, 0.0, 0.0, 0.0, 3.0)
    way[:60, :2] *= 0.1
    lin, ang = rng().normal(size=(2, 200, 3)) * rng().choice((0.05, 1.0), (1, 200, 1))
    env.commands.terms["goal"].value = torch.from_numpy(way).float()
    env.robot.lin_vel_b, env.robot.root_ang_vel_b = (
        torch.from_numpy(part).float() for part in (lin, ang)
    )
    flat, speed, left = (
        np.linalg.norm(way[:, :2], axis=1),
        np.linalg.norm(lin[:, :2], axis=1),
        way[:, 4],
    )
    there = (left < 1.0) & (flat < 0.25) & (abs(way[:, 3]) < 0.5)
    expected = {
        "goal_position": ((left < 4.0) & (left > -0.01)) / 4.0 / (1.0 + (way[:, :3] ** 2).sum(1)),
        "goal_heading": ((left < 6.0) & (left > -0.01))
        / 6.0
        * (flat < 2.0)
        / (1.0 + way[:, 3] ** 2),
        "stall": (flat > 1.0) & (speed < 0.1),
        "move_in_direction": (way[:, :2] * lin[:, :2]).sum(1) / np.maximum(flat * speed, 0.05),
        "goal_stand_still": (2.5 * np.linalg.norm(lin, axis=1) + np.linalg.norm(ang, axis=1))
        * there,
    }
    for name, values in expected.items():
        values = values.astype(float)
        assert (
            np.allclose(getattr(rewards, name)(env), values, atol=1e-5) and np.ptp(values) > 0.0
        ), name


def test_an_evaluation_of_goals_ends_with_the_time_for_them() -> None:
    cfg = make_task_cfg("Legged/Go2-Nav-v0")
    cfg.scene.terrain = SMALL
    evaluator = Evaluator("Legged/Go2-Nav-v0", cfg, 2)
    rollout = evaluator.rollout(lambda policy: torch.zeros(2, 12), seed=0)
    assert len(rollout.alive) == 400  # 8 s
    time_left = evaluator.core.commands["goal"][:, 4]
    assert time_left.tolist() == pytest.approx([0.0, 0.0], abs=1e-3)
    evaluator.close()


def test_a_schedule_moves_a_weight_and_a_range_and_is_resumed(make_vec: Any) -> None:
    weight = {"path": "rewards.joint_torque.weight", "steps": (2, 6), "values": (-1e-4, -3e-4)}
    speed = {"path": "commands.velocity.lin_vel_x", "steps": (0, 8), "values": (0.2, 1.0)}
    curriculum = {
        name: CurriculumTermCfg(curricula.schedule, params)
        for name, params in {"w": weight, "v": speed}.items()
    }
    envs = [
        make_vec(2, cfg={"curriculum": curriculum}, array="torch", max_episode_steps=2)
        for _ in range(2)
    ]
    for env in envs:
        env.reset(seed=0)
    seen = []
    for _ in range(10):
        info = envs[0].step(torch.ones(2, 12))[4]
        core = envs[0].unwrapped
        seen.append(
            (
                core.rewards.weights[core.rewards.names.index("joint_torque")],
                core.commands.terms["velocity"].ranges[0, 1].item(),
            )
        )
        if "log" in info:
            assert info["log"]["curriculum/w"].item() == pytest.approx(seen[-1][0])
    weights, speeds = np.array(seen)[1::2].T  # episodes end after steps 2, 4, …
    assert np.allclose(weights, [-1e-4, -2e-4, -3e-4, -3e-4, -3e-4]) and np.allclose(
        speeds, [0.4, 0.6, 0.8, 1.0, 1.0]
    )
    envs[1].unwrapped.set_state(envs[0].unwrapped.get_state())
    one, other = (env.unwrapped.step(torch.ones(2, 12)) for env in envs)
    assert torch.equal(one[1], other[1]) and envs[1].unwrapped.num_steps == 11


@pytest.mark.parametrize(
    "params",
    [
        {"path": "rewards.joint_torque.sigma", "steps": (0,), "values": (1.0,)},
        {"path": "rewards.torque.weight", "steps": (0,), "values": (1.0,)},
        {"path": "commands.velocity.vx", "steps": (0,), "values": (1.0,)},
        {"path": "sim.dt", "steps": (0,), "values": (1.0,)},  # no longer as long as a control step
        {"path": "rewards.joint_torque.weight", "steps": (2, 1), "values": (1.0, 2.0)},
        {"path": "rewards.joint_torque.weight", "steps": (1, 2), "values": (1.0,)},
    ],
)
def test_a_schedule_that_cannot_be_is_named(make_vec: Any, params: dict[str, Any]) -> None:
    env = make_vec(1).unwrapped
    with pytest.raises(
        ValueError,
        match=r"schedule|torque|set_range|reconfigure: (the first|4 physics steps of 1 s)",
    ):
        curricula.schedule(env, torch.tensor([0]), **params)


def test_pictures_are_as_near_as_on_a_plane(make_vec: Any) -> None:
    flat, field = (
        make_vec(1, **kwargs).unwrapped.sim.model
        for kwargs in ({}, {"task": ROUGH, "cfg": rough()})
    )
    assert (
        field.stat.extent == flat.stat.extent
    )  # of which the planes are parts between which is drawn
    assert field.nhfield == 1 and flat.nhfield == 0


def test_the_policy_that_ships_crosses_rough_ground() -> None:
    cfg = make_task_cfg(ROUGH)
    cfg.scene.terrain = TerrainCfg(
        {"rough": 1.0, "slope_up": 1.0}, rows=10, columns=4, first_levels=(3, 3)
    )
    evaluator = Evaluator(ROUGH, cfg, 16)
    result = evaluator.run(load_shipped_policy(ROUGH))
    evaluator.close()
    assert result.crossed >= 0.8


def test_goals_are_relative_to_the_start_of_the_scene(make_vec: Any) -> None:
    cores = []
    for start in ((0.0, 0.0, 0.0), (2.0, -1.0, 0.0)):
        env = make_vec(8, task="Legged/Go2-Nav-v0", array="torch", cfg={"scene.start": start})
        env.reset(seed=2)
        cores.append(env.unwrapped)
    goals = [core.commands.terms["goal"].goal_w for core in cores]
    shift = (goals[1] - goals[0])[:, :2]
    assert torch.allclose(shift, torch.tensor([2.0, -1.0]), atol=1e-5)
