"""Rough terrain in Isaac Lab's configuration classes: heights and levels are as their fields define them."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import legged_envs
from legged_envs import rotation
from legged_envs.compat.isaac_lab import mdp as mdp
from legged_envs.compat.isaac_lab import terrain as terrain_gen
from legged_envs.compat.isaac_lab.cfg import InteractiveSceneCfg, SimulationCfg
from legged_envs.compat.isaac_lab.direct import DirectRLEnv, DirectRLEnvCfg
from legged_envs.compat.isaac_lab.manager_based import (
    EventTermCfg,
    ManagerBasedRLEnv,
    ManagerBasedRLEnvCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
)
from legged_envs.compat.isaac_lab.scene import TerrainImporterCfg
from legged_envs.compat.isaac_lab.scene_entity import SceneEntityCfg
from legged_envs.compat.isaac_lab.terrain import RayCasterCfg, TerrainGeneratorCfg, patterns
from legged_envs.compat.legged_gym import LeggedRobot, LeggedRobotCfg
from legged_envs.compat.legged_gym.terrain import terrain_of
from legged_envs.configuration import configclass
from legged_envs.managers import CurriculumTermCfg, RewardTermCfg, TerminationTermCfg
from legged_envs.robots import GO2
from legged_envs.sim import PlacedRobot
from legged_envs.terrains import TerrainCfg, make_terrain

N, K = 4, 187


class RoughCfg(LeggedRobotCfg):
    class env(LeggedRobotCfg.env):
        num_envs, num_observations = N, 48 + K

    class terrain(LeggedRobotCfg.terrain):
        mesh_type, curriculum, measure_heights = "trimesh", True, True
        num_rows, num_cols, terrain_length, terrain_width, border_size = 3, 5, 4.0, 4.0, 2.0
        platform_size = 1.5

    class asset(LeggedRobotCfg.asset):
        name = "go2"

    class domain_rand(LeggedRobotCfg.domain_rand):
        push_robots = False

    class rewards(LeggedRobotCfg.rewards):
        class scales(LeggedRobotCfg.rewards.scales):
            tracking_lin_vel = 1.0
            clear = 1.0
            clear_pure = 1.0


class Rough(LeggedRobot):
    """Rewards height above the measured ones, with and without a recording."""

    def _reward_clear(self) -> torch.Tensor:
        return (self.root_states[:, 2].unsqueeze(1) - self.measured_heights).mean(1)

    def _reward_clear_pure(self) -> torch.Tensor:
        return (self.simulator.base_pos[:, 2].unsqueeze(1) - self.simulator.measured_heights).mean(
            1
        )


legged_envs.register("Test/RoughLeggedRobot-v0", Rough, RoughCfg)


def rough(cls: Any = Rough, **fields: Any) -> Any:
    cfg = RoughCfg()
    vars(cfg.terrain).update(fields)
    robot = cls(cfg, {}, "cpu", True)
    robot.reset(seed=0)
    return robot


def lowest_of_three(terrain: Any, x: float, y: float) -> float:
    """legged_gym's look-up, from the array of heights."""
    i, j = (
        int((value - low) / terrain.horizontal_scale)
        for value, low in zip((x, y), terrain.low, strict=True)
    )
    nx, ny = terrain.heights.shape
    i, j = min(max(i, 0), nx - 2), min(max(j, 0), ny - 2)
    return float(min(terrain.heights[i, j], terrain.heights[i + 1, j], terrain.heights[i, j + 1]))


def test_heights_are_those_of_the_field_at_points_that_turn_with_the_heading() -> None:
    robot = rough()
    for _ in range(5):
        robot.step(torch.rand(N, 12))
    points = [
        (x, y)
        for x in robot.cfg.terrain.measured_points_x
        for y in robot.cfg.terrain.measured_points_y
    ]
    terrain, heights = robot.ground.terrain, robot.measured_heights
    assert heights.shape == (N, K)
    assert torch.equal(heights, robot.simulator.measured_heights)
    near = 0
    for i in range(N):
        x0, y0, _, qx, qy, qz, qw = robot.root_states[i, :7].tolist()
        yaw = math.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))
        for k, (x, y) in enumerate(points):
            place = (
                x0 + math.cos(yaw) * x - math.sin(yaw) * y,
                y0 + math.sin(yaw) * x + math.cos(yaw) * y,
            )
            near += abs(float(heights[i, k]) - lowest_of_three(terrain, *place)) > 1e-6
    assert near <= 2  # a point on the line between two cells
    assert torch.equal(robot._get_heights(torch.tensor([3, 1])), heights[[3, 1]])


def test_observations_have_the_heights_and_their_noise() -> None:
    robot = rough()
    assert robot.noise_scale_vec.shape == (48 + K,)
    assert (robot.noise_scale_vec[48:] == 0.5).all()
    robot.add_noise = False
    obs = robot.step(torch.zeros(N, 12))[0]
    heights = (
        torch.clip(robot.root_states[:, 2].unsqueeze(1) - 0.5 - robot.measured_heights, -1, 1.0)
        * 5.0
    )
    torch.testing.assert_close(obs[:, 48:], heights)


def test_rewards_may_read_heights_recorded_or_not() -> None:
    robot = rough()
    for _ in range(3):
        robot.step(torch.rand(N, 12))
        expected = (robot.simulator.base_pos[:, 2:] - robot.measured_heights).mean(1)
        torch.testing.assert_close(robot._reward_clear(), expected)
    torch.testing.assert_close(robot.episode_sums["clear"], robot.episode_sums["clear_pure"])


def test_a_users_points_are_measured() -> None:
    class Own(LeggedRobot):
        def _init_height_points(self) -> torch.Tensor:
            return torch.tensor([[0.3, 0.1, 0.0], [0.0, 0.0, 0.0]]).repeat(self.num_envs, 1, 1)

    cfg = RoughCfg()
    cfg.env.num_observations = 50
    del cfg.rewards.scales.clear, cfg.rewards.scales.clear_pure
    robot = Own(cfg, {}, "cpu", True)
    robot.reset(seed=0)
    assert robot.step(torch.zeros(N, 12))[0].shape == (N, 50)
    assert robot.measured_heights.shape == (N, 2)


def test_root_states_are_of_the_simulation() -> None:
    robot = rough()
    sim = robot.core.sim
    turn = rotation.rotate(sim.root_quat_w, sim.root_ang_vel_b)
    parts = (sim.root_pos_w, sim.root_quat_w[:, [1, 2, 3, 0]], sim.root_lin_vel_w, turn)
    assert torch.equal(robot.root_states, torch.cat(parts, 1))


def test_robots_begin_on_their_tiles_with_the_levels_of_the_curriculum() -> None:
    robot = rough()
    ground = robot.ground
    assert (robot.terrain_levels <= 1).all()
    assert robot.max_terrain_level == 3
    assert robot.custom_origins
    assert robot.simulator._terrain.env_length == robot.terrain.env_width == 4.0
    assert torch.equal(robot.terrain_levels, ground.levels)
    assert torch.equal(robot.simulator.terrain_types, ground.columns)
    expected = torch.from_numpy(ground.terrain.origins)[ground.levels, ground.columns]
    assert torch.equal(robot.env_origins, expected)
    assert torch.equal(
        robot.terrain_origins[robot.terrain_levels, robot.terrain_types],
        robot.simulator.env_origins,
    )
    way = robot.simulator.base_pos - expected
    assert (way[:, :2].abs() <= 0.5).all()
    assert (way[:, :2].abs().amax(0) > 0.01).all()
    torch.testing.assert_close(way[:, 2], torch.full((N,), GO2.base_height), atol=0.01, rtol=0)


def test_levels_follow_what_was_walked() -> None:
    robot = rough()
    end, half = 20.0, 2.0
    commands = torch.tensor([[1.0, 0.0], [0.2, 0.0], [0.05, 0.0], [1.0, 0.0]])
    away = torch.tensor([2.5, 1.8, 1.0, 2.5])
    robot.commands[:, :2] = commands
    robot.ground.levels = torch.tensor([0, 1, 1, 2])
    robot.core.robot.root_pos_w = robot.env_origins + torch.nn.functional.pad(away[:, None], (0, 2))
    robot.episode_length_buf[:] = 5
    up = away > half
    down = ~up & (away < 0.5 * end * commands.norm(dim=1))
    assert up.tolist() == [True, False, False, True]
    assert down.tolist() == [False, True, False, False]
    robot.init_done = True
    robot._update_terrain_curriculum(torch.arange(N))
    assert robot.terrain_levels[:3].tolist() == [1, 0, 1]
    assert 0 <= robot.terrain_levels[3] < 3  # above the last: any
    robot.simulator.update_terrain_curriculum(
        torch.tensor([0, 1]), torch.tensor([False, True]), torch.tensor([True] * 2)
    )
    assert robot.terrain_levels[:3].tolist() == [0, 1, 1]


def walked(robot: Any, steps: int = 3) -> list[list[int]]:
    levels = []
    for _ in range(steps):
        robot.step(torch.zeros(robot.num_envs, 12))
        robot.episode_length_buf[:] = 10_000
        extras = robot.step(torch.zeros(robot.num_envs, 12))[-1]
        assert extras["episode"]["terrain_level"] == robot.terrain_levels.float().mean()
        levels.append(robot.terrain_levels.tolist())
    return levels


def test_levels_change_when_episodes_are_over_and_only_then() -> None:
    robot = rough()
    first = robot.terrain_levels.clone()
    for _ in range(3):
        robot.reset()
        assert torch.equal(robot.terrain_levels, first)  # nobody has walked
    robot.ground.levels = torch.full((N,), 2)
    assert walked(robot)[-1] == [0] * N
    for _ in range(3):
        robot.step(torch.zeros(N, 12))
    robot.reset(seed=0)
    assert torch.equal(robot.terrain_levels, first)  # drawn anew, whatever has been walked before


def test_a_users_curriculum_writes_the_levels() -> None:
    class Own(Rough):
        def _update_terrain_curriculum(self, env_ids: torch.Tensor) -> None:
            if not self.init_done:
                return
            distance = torch.norm(
                self.root_states[env_ids, :2] - self.env_origins[env_ids, :2], dim=1
            )
            move_up = distance < self.terrain.env_length / 2
            self.terrain_levels[env_ids] = (
                self.terrain_levels[env_ids] + 1 * move_up
            ) % self.max_terrain_level
            self.env_origins[env_ids] = self.terrain_origins[
                self.terrain_levels[env_ids], self.terrain_types[env_ids]
            ]

    robot = rough(Own)
    first = robot.terrain_levels.clone()
    levels = walked(robot)
    assert levels == [((first + i) % 3).tolist() for i in (1, 2, 3)]
    assert (torch.norm((robot.simulator.base_pos - robot.env_origins)[:, :2], dim=1) < 1.0).all()


@pytest.mark.parametrize("task", ["Test/RoughLeggedRobot-v0", "Test/RoughManagers-v0"])
def test_environment_i_does_the_same_whatever_num_envs_is(
    task: str, make_vec: Any, assert_same: Any
) -> None:
    limit = {"Test/RoughLeggedRobot-v0": "env.episode_length_s"}.get(task, "episode_length_s")
    few, many = (make_vec(n, task, cfg={limit: 1.0}) for n in (2, 5))
    assert_same(few.reset(seed=5)[0], many.reset(seed=5)[0][:2])
    seen = set()
    for _ in range(110):
        assert_same(
            few.step(np.ones((2, 12), np.float32))[0],
            many.step(np.ones((5, 12), np.float32))[0][:2],
        )
        assert_same(few.unwrapped.ground.levels, many.unwrapped.ground.levels[:2])
        assert_same(few.unwrapped.ground.columns, many.unwrapped.ground.columns[:2])
        seen.add(tuple(many.unwrapped.ground.levels.tolist()))
    assert len(seen) > 1


@pytest.mark.parametrize("task", ["Test/RoughLeggedRobot-v0", "Test/RoughManagers-v0"])
def test_states_and_pickles_continue_bit_for_bit(
    task: str, make_vec: Any, assert_same: Any
) -> None:
    limit = {"Test/RoughLeggedRobot-v0": "env.episode_length_s"}.get(task, "episode_length_s")
    env = make_vec(N, task, cfg={limit: 0.2})
    env.reset(seed=3)
    actions = [
        np.random.default_rng(t).uniform(-1, 1, (N, 12)).astype(np.float32) for t in range(40)
    ]
    for action in actions[:12]:
        env.step(action)
    core = env.unwrapped
    state, twin = core.get_state(), pickle.loads(pickle.dumps(core))
    mask, runs = np.array([True, False, True, False]), []
    for each in (core, twin, core):
        if runs and each is core:
            each.set_state(state)
        run: list[Any] = []
        for t, action in enumerate(actions[12:]):
            run += [each.step(action), each.ground.levels.clone()]
            if t % 7 == 6:
                run.append(each.reset(options={"reset_mask": mask}))
        runs.append(run)
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2])
    twin.close()


def test_who_leaves_the_field_is_cut_off() -> None:
    robot = rough()
    pos = robot.core.sim.root_pos_w.clone()
    pos[1, 0] = robot.ground.half_extent[0] - 0.2
    zeros, upright = torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    robot.core.sim.write_root_state(torch.tensor([1]), pos[1:2], upright, zeros, zeros)
    done, extras = robot.step(torch.zeros(N, 12))[3:]
    assert done.tolist() == extras["time_outs"].tolist() == [False, True, False, False]


def test_shares_and_sizes_are_those_of_our_terrain() -> None:
    cfg = RoughCfg().terrain
    vars(cfg).update(
        terrain_proportions=[0.2, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1], num_cols=10, platform_size=1.0
    )
    terrain = terrain_of(cfg)
    assert isinstance(terrain, TerrainCfg)
    shares = {name: kind.proportion for name, kind in terrain.kinds.items()}
    assert shares == {
        **{
            "slope_up": 0.1,
            "slope_down": 0.1,
            "rough": 0.1,
            "stairs_up": 0.1,
            "stairs_down": 0.2,
            "obstacles": 0.1,
        },
        **{"stones": 0.1, "gap": 0.1, "pit": 0.1},
    }
    assert (terrain.rows, terrain.columns, terrain.size, terrain.border, terrain.first_levels) == (
        3,
        10,
        4,
        2,
        (0, 1),
    )
    heights, middle = make_terrain(terrain).heights, 20 + 20
    noise = heights[20:60, 20 + 2 * 40 : 60 + 2 * 40]
    assert 0.03 < abs(noise).max() <= np.float32(0.05)  # of LeggedGym-Ex at any level
    line = heights[20 + 80 : 60 + 80 + 1, middle]  # the last level of slopes up, d = 2 / 3
    ring = np.maximum(abs(np.arange(41) - 20) * 0.1, 0.5)
    np.testing.assert_allclose(
        line, -np.round(0.4 * 2 / 3 * (2.0 - ring) / 0.005) * 0.005, atol=1e-6
    )
    cfg.curriculum = False
    assert terrain_of(cfg).first_levels == (0, 2)  # type: ignore[union-attr]
    cfg.mesh_type = "plane"
    assert terrain_of(cfg) is None


def test_on_a_plane_there_are_points_but_no_levels() -> None:
    robot = rough(mesh_type="plane")
    assert torch.equal(robot.measured_heights, torch.zeros(N, K))
    assert torch.equal(robot.env_origins, torch.zeros(N, 3))
    assert not robot.custom_origins
    robot._update_terrain_curriculum(torch.arange(N))
    for name in ("terrain_levels", "terrain"):
        with pytest.raises(AttributeError, match=name):
            getattr(robot, name)


BAD_FIELDS = {
    "mesh_type": ({"mesh_type": "none"}, r"cfg\.terrain\.mesh_type must be one of"),
    "width": (
        {"terrain_width": 6.0},
        r"cfg\.terrain\.terrain_width must be one of \(4\.0,\), got 6\.0",
    ),
    "points": (
        {"measured_points_y": [0.1, "a"]},
        r"each number of cfg\.terrain\.measured_points_y",
    ),
    "no points": ({"measured_points_x": []}, r"cfg\.terrain\.measured_points_x must be 1 numbers"),
    "too many shares": (
        {"terrain_proportions": [0.1] * 9},
        r"cfg\.terrain\.terrain_proportions must be 8 numbers",
    ),
    "no shares": (
        {"terrain_proportions": []},
        r"cfg\.terrain\.terrain_proportions must be 1 numbers",
    ),
    "nothing": ({"terrain_proportions": [0.0, 0.0]}, "sum of proportions"),
    "rows": ({"num_rows": 0}, r"rows must be a positive integer, got 0"),
    "border": ({"border_size": 0.03}, r"border must be a multiple of horizontal_scale, got 0\.03"),
    "platform": ({"platform_size": 5.0}, r"kinds\['slope_up'\]: platform"),
    "selected": ({"selected": True}, r"cfg\.terrain\.selected.*True"),
    "spelling": ({"slope_threshold": 0.5}, "did you mean 'slope_treshold'"),
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_a_wrong_field_of_a_legged_robots_terrain_is_named(name: str) -> None:
    fields, message = BAD_FIELDS[name]
    with pytest.raises(ValueError, match=message):
        rough(**fields)


# Isaac Lab.


def kinds(**fields: Any) -> dict[str, Any]:
    """Isaac Lab's ROUGH_TERRAINS_CFG on tiles of 4 m."""
    stairs = {
        "proportion": 0.2,
        "step_height_range": (0.05, 0.23),
        "step_width": 0.3,
        "platform_width": 1.5,
    }
    stairs |= {"border_width": 1.0, "holes": False}
    slope = {
        "proportion": 0.1,
        "slope_range": (0.0, 0.4),
        "platform_width": 1.0,
        "border_width": 0.25,
    }
    noise = {
        "proportion": 0.2,
        "noise_range": (0.02, 0.10),
        "noise_step": 0.02,
        "border_width": 0.25,
    }
    boxes = {
        "proportion": 0.2,
        "grid_width": 0.45,
        "grid_height_range": (0.05, 0.2),
        "platform_width": 1.0,
    }
    return {
        "pyramid_stairs": terrain_gen.MeshPyramidStairsTerrainCfg(**stairs | fields),
        "pyramid_stairs_inv": terrain_gen.MeshInvertedPyramidStairsTerrainCfg(**stairs),
        "boxes": terrain_gen.MeshRandomGridTerrainCfg(**boxes),
        "random_rough": terrain_gen.HfRandomUniformTerrainCfg(**noise),
        "hf_pyramid_slope": terrain_gen.HfPyramidSlopedTerrainCfg(**slope),
        "hf_pyramid_slope_inv": terrain_gen.HfInvertedPyramidSlopedTerrainCfg(**slope),
    }


ROUGH = TerrainGeneratorCfg(
    size=(4.0, 4.0),
    border_width=2.0,
    num_rows=3,
    num_cols=10,
    horizontal_scale=0.1,
    vertical_scale=0.005,
    slope_threshold=0.75,
    difficulty_range=(0.0, 1.0),
    use_cache=False,
    curriculum=True,
    sub_terrains=kinds(),
)


@configclass
class SceneCfg(InteractiveSceneCfg):
    terrain = TerrainImporterCfg(
        prim_path="/World/ground",
        terrain_type="generator",
        terrain_generator=ROUGH,
        max_init_terrain_level=1,
    )
    robot = GO2
    height_scanner = RayCasterCfg(
        prim_path="{ENV_REGEX_NS}/Robot/base",
        offset=RayCasterCfg.OffsetCfg(pos=(0.2, 0.0, 20.0)),
        attach_yaw_only=True,
        pattern_cfg=patterns.GridPatternCfg(resolution=0.1, size=[1.6, 1.0]),
        mesh_prim_paths=["/World/ground"],
    )


@configclass
class ObservationsCfg:
    @configclass
    class PolicyCfg(ObservationGroupCfg):
        scan = ObservationTermCfg(
            func=mdp.height_scan,
            params={"sensor_cfg": SceneEntityCfg("height_scanner")},
            clip=(-1.0, 1.0),
        )
        gravity = ObservationTermCfg(func=mdp.projected_gravity)

    policy: PolicyCfg = PolicyCfg()


@configclass
class ActionsCfg:
    legs = mdp.JointPositionActionCfg(joint_names=[".*"], scale=0.25)


RANGES = mdp.UniformVelocityCommandCfg.Ranges((-1.0, 1.0), (-1.0, 1.0), (-1.0, 1.0))


@configclass
class CommandsCfg:
    base_velocity = mdp.UniformVelocityCommandCfg(resampling_time_range=(10.0, 10.0), ranges=RANGES)


@configclass
class RewardsCfg:
    alive = RewardTermCfg(mdp.is_alive, 1.0)


@configclass
class TerminationsCfg:
    time_out = TerminationTermCfg(mdp.time_out, time_out=True)


POSE = {"x": (-0.5, 0.5), "y": (-0.5, 0.5), "yaw": (-3.14, 3.14)}


@configclass
class EventsCfg:
    base = EventTermCfg(
        func=mdp.reset_root_state_uniform,
        mode="reset",
        params={"pose_range": POSE, "velocity_range": {}},
    )


@configclass
class CurriculumCfg:
    terrain_levels = CurriculumTermCfg(func=mdp.terrain_levels_vel)


@configclass
class ManagersCfg(ManagerBasedRLEnvCfg):
    scene: SceneCfg = SceneCfg(num_envs=N)
    observations: ObservationsCfg = ObservationsCfg()
    actions: ActionsCfg = ActionsCfg()
    commands: CommandsCfg = CommandsCfg()
    rewards: RewardsCfg = RewardsCfg()
    terminations: TerminationsCfg = TerminationsCfg()
    events: EventsCfg = EventsCfg()
    curriculum: CurriculumCfg = CurriculumCfg()

    def __post_init__(self) -> None:
        self.sim.dt, self.decimation, self.episode_length_s = 0.005, 4, 20.0


legged_envs.register("Test/RoughManagers-v0", ManagerBasedRLEnv, ManagersCfg)


@pytest.fixture(scope="module")
def managers() -> Any:
    env = ManagerBasedRLEnv(ManagersCfg())
    env.reset(seed=0)
    return env


def test_the_terrain_of_the_scene_is_ours(managers: Any) -> None:
    terrain, ground = managers.scene.terrain, managers.ground
    assert ground.terrain.kinds[::2] == (
        "pyramid_stairs",
        "pyramid_stairs_inv",
        "boxes",
        "random_rough",
        "hf_pyramid_slope",
    )
    assert ground.terrain.kinds[-1] == "hf_pyramid_slope_inv"
    assert terrain.max_terrain_level == 3
    assert terrain.terrain_origins.shape == (3, 10, 3)
    assert (terrain.terrain_levels <= 1).all()
    expected = torch.from_numpy(ground.terrain.origins)[
        terrain.terrain_levels, terrain.terrain_types
    ]
    assert torch.equal(terrain.env_origins, expected)
    assert torch.equal(managers.scene.env_origins, expected)
    # stairs of 0.05 + 0.18 d, of 0.3 m, around a platform of 1.5 m, at level 1
    line = ground.terrain.heights[20 + 40 : 20 + 80, 20 + 20]
    around = 2.0 - np.maximum(abs(np.arange(40) - 20) * 0.1, 0.75)
    np.testing.assert_allclose(line, 0.11 * np.floor(around / 0.3 + 1e-6), atol=1e-6)


def test_robots_begin_on_their_tiles(managers: Any) -> None:
    managers.reset(seed=1)
    data, origins = managers.scene["robot"].data, managers.scene.env_origins
    assert data.default_root_state[:, :2].abs().max() == 0.0
    way = data.root_pos_w - origins
    assert (way[:, :2].abs() <= 0.5).all()
    torch.testing.assert_close(way[:, 2], torch.full((N,), GO2.base_height), atol=1e-5, rtol=0)


def test_a_height_scanner_sees_the_surface_under_its_grid(managers: Any) -> None:
    managers.reset(seed=2)
    scanner = managers.scene.sensors["height_scanner"].data
    for _ in range(3):
        seen = managers.step(torch.rand(N, 12))[0]["policy"][:, :K]
        pos, hits = scanner.pos_w, scanner.ray_hits_w
        assert torch.equal(pos, managers.scene["robot"].data.root_pos_w)
        assert hits.shape == (N, K, 3)
        yaw = managers.robot.heading()
        for k, (x, y) in {
            0: (-0.8, -0.5),
            1: (-0.7, -0.5),
            17: (-0.8, -0.4),
            186: (0.8, 0.5),
        }.items():
            ahead, left = x + 0.2, y
            torch.testing.assert_close(
                hits[:, k, 0], pos[:, 0] + yaw.cos() * ahead - yaw.sin() * left
            )
            torch.testing.assert_close(
                hits[:, k, 1], pos[:, 1] + yaw.sin() * ahead + yaw.cos() * left
            )
        assert torch.equal(hits[..., 2], managers.ground.height(hits[..., 0], hits[..., 1]))
        torch.testing.assert_close(seen, (pos[:, 2:] - hits[..., 2] - 0.5).clamp(-1.0, 1.0))
    again = mdp.height_scan(managers, SceneEntityCfg("height_scanner"), offset=0.0)
    torch.testing.assert_close(again, pos[:, 2:] - hits[..., 2])


def test_a_scanner_may_belong_to_another_robot_and_stand_along_x() -> None:
    grid = patterns.GridPatternCfg(resolution=0.5, size=(1.0, 0.5), ordering="yx")

    @configclass
    class PairCfg(SceneCfg):
        friend = PlacedRobot(GO2, start=(1.0, 0.0, 0.0))
        other = RayCasterCfg(prim_path="{ENV}/Friend/base", ray_alignment="yaw", pattern_cfg=grid)

    env = ManagerBasedRLEnv(ManagersCfg(scene=PairCfg(num_envs=N)))
    env.reset(seed=0)
    other = env.scene.sensors["other"].data
    assert torch.equal(other.pos_w, env.scene["friend"].data.root_pos_w)
    turn = env.core.robots["friend"].heading()
    points = other.ray_hits_w[0, :, :2] - other.pos_w[0, :2]
    expected = [(x, y) for x in (-0.5, 0.0, 0.5) for y in (-0.25, 0.25)]
    assert abs(float(turn[0])) < 1e-6
    torch.testing.assert_close(points, torch.tensor(expected), atol=1e-5, rtol=0)


def test_terrain_levels_vel_is_legged_gyms_rule(managers: Any) -> None:
    managers.reset(seed=0)
    core, ground = managers.core, managers.ground
    ground.levels = torch.tensor([0, 1, 1, 2])
    away, speed = torch.tensor([2.5, 1.8, 1.0, 2.5]), torch.tensor([1.0, 0.2, 0.05, 1.0])
    core.commands.terms["velocity"].hold(torch.stack((speed, 0 * speed, 0 * speed), 1))
    before = core.robot.root_pos_w
    core.robot.root_pos_w = ground.origins + torch.stack((away, 0 * away, 0 * away), 1)
    mean = mdp.terrain_levels_vel(managers, torch.arange(N))
    core.robot.root_pos_w = before
    assert ground.levels[:3].tolist() == [1, 0, 1]
    assert mean == ground.levels.float().mean()
    yes, no = torch.ones(1, dtype=torch.bool), torch.zeros(1, dtype=torch.bool)
    managers.scene.terrain.update_env_origins(torch.tensor([0]), yes, no)
    managers.scene.terrain.update_env_origins(torch.tensor([1]), no, yes)
    assert managers.scene.terrain.terrain_levels[:3].tolist() == [2, 0, 1]
    managers.step(torch.zeros(N, 12))
    managers.episode_length_buf = torch.full((N,), 999)
    log = managers.step(torch.zeros(N, 12))[-1]["log"]
    assert log["curriculum/terrain_levels"] == ground.levels.float().mean()


class Direct(DirectRLEnv):
    """Isaac Lab's way of the anymal_c direct task on rough ground."""

    def _setup_scene(self) -> None:
        self._scanner = terrain_gen.RayCaster(self.cfg.height_scanner)
        self.scene.sensors["height_scanner"] = self._scanner
        self._terrain = self.cfg.terrain.class_type(self.cfg.terrain)

    def _get_observations(self) -> dict[str, Any]:
        scan = (
            self._scanner.data.pos_w[:, 2].unsqueeze(1)
            - self._scanner.data.ray_hits_w[..., 2]
            - 0.5
        )
        return {"policy": scan.clip(-1.0, 1.0)}

    def _get_rewards(self) -> torch.Tensor:
        return self.robot.base_height

    def _get_dones(self) -> Any:
        return self.robot.projected_gravity[
            :, 2
        ] > 0.0, self.episode_length_buf >= self.max_episode_length

    def _reset_idx(self, env_ids: torch.Tensor) -> None:
        super()._reset_idx(env_ids)
        state = self.scene["robot"].data.default_root_state[env_ids]
        state[:, :3] += self._terrain.env_origins[env_ids]
        self.scene["robot"].write_root_state_to_sim(state, env_ids)


@configclass
class DirectSceneCfg(InteractiveSceneCfg):
    num_envs = N
    robot = GO2


@configclass
class DirectCfg(DirectRLEnvCfg):
    scene = DirectSceneCfg()
    decimation, action_space, observation_space = 4, 12, K
    sim = SimulationCfg(dt=0.005)
    terrain = SceneCfg().terrain
    height_scanner = SceneCfg().height_scanner


def test_direct_tasks_stand_on_it_too() -> None:
    env = Direct(DirectCfg())
    env.reset(seed=0)
    for _ in range(3):
        seen = env.step(torch.rand(N, 12))[0]["policy"]
        data = env._scanner.data
        torch.testing.assert_close(
            seen, (data.pos_w[:, 2:] - data.ray_hits_w[..., 2] - 0.5).clamp(-1.0, 1.0)
        )
    assert seen.std() > 0.0
    way = env.robot.root_pos_w - env._terrain.env_origins
    assert (way[:, :2].norm(dim=1) < 0.5).all()


def test_a_terrain_that_is_in_no_configuration_is_not_there() -> None:
    class Late(Direct):
        def _setup_scene(self) -> None:
            super()._setup_scene()
            self._terrain = SceneCfg().terrain.class_type(SceneCfg().terrain)

    cfg = DirectCfg()
    cfg.terrain = TerrainImporterCfg()
    with pytest.raises(
        ValueError,
        match=r"TerrainImporter\.terrain_type must be one of \('plane',\), got 'generator'",
    ):
        Late(cfg)


def importer(generator: Any = None, **fields: Any) -> TerrainImporterCfg:
    made = ROUGH.replace(**generator or {})
    return TerrainImporterCfg(**{"terrain_type": "generator", "terrain_generator": made, **fields})


BAD = {
    "type": (importer(terrain_type="usd"), r"TerrainImporterCfg\.terrain_type must be one of"),
    "none": (importer(terrain_generator=TerrainGeneratorCfg()), "kinds: sum of proportions"),
    "size": (
        importer({"size": (4.0, 6.0)}),
        r"TerrainGeneratorCfg\.size, .* must be one of \(\(4\.0, 4\.0,",
    ),
    "difficulty": (
        importer({"difficulty_range": (0.2, 1.0)}),
        r"TerrainGeneratorCfg\..*difficulty_range must be",
    ),
    "rows": (importer({"num_rows": 0}), "rows must be a positive integer"),
    "holes": (
        importer({"sub_terrains": kinds(holes=True)}),
        r"sub_terrains\['pyramid_stairs'\]\.holes must be",
    ),
    "width": (
        importer({"sub_terrains": kinds(step_width=-1.0)}),
        r"kinds\['pyramid_stairs'\]: width must be",
    ),
    "class": (
        importer({"sub_terrains": {"a": 1.0}}),
        r"sub_terrains\['a'\] cannot be a 'float'; .*MeshPyramidStairs",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_field_of_isaac_labs_terrain_is_named(name: str) -> None:
    cfg = ManagersCfg()
    cfg.scene.terrain, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        ManagerBasedRLEnv(cfg)


def test_a_wrong_field_of_a_scanner_is_named() -> None:
    cfg = ManagersCfg()
    cfg.scene.height_scanner.attach_yaw_only = False
    with pytest.raises(
        ValueError, match=r"RayCasterCfg\.ray_alignment must be one of \('yaw',\), got 'base'"
    ):
        ManagerBasedRLEnv(cfg)
    with pytest.raises(TypeError, match="drift_range"):
        RayCasterCfg(drift_range=(0.0, 1.0))
    with pytest.raises(TypeError, match="wall_height"):
        terrain_gen.HfPyramidSlopedTerrainCfg(wall_height=1.0)
