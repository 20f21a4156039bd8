"""Feet that are wheels: what slips is the point of a wheel that is next to the ground."""

from dataclasses import replace
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from legged_envs.mdp import costs, rewards
from legged_envs.robots import G1, TRON1_PF, TRON1_WF, RobotCfg
from legged_envs.sim import RobotState, SceneCfg, SimCfg, Simulation, make_simulation
from legged_envs.sim.scene import build_scene
from legged_envs.terrains import TerrainCfg

WHEELS = [TRON1_WF.joint_names.index(f"wheel_{side}_Joint") for side in "LR"]
RADIUS = TRON1_WF.foot_radius
ALL = torch.arange(2)


def make(slope: float = 0.0) -> Simulation:
    """Two TRON1 on wheels, on a plane or on ground that rises along x."""
    heights = slope * np.arange(81)[:, None] * 0.1 * np.ones((1, 81))
    terrain = (
        TerrainCfg(source=heights.astype(np.float32), border=0.0, first_levels=(0, 0))
        if slope
        else None
    )
    return make_simulation(
        "mujoco", TRON1_WF, SimCfg(num_threads=1), 2, "cpu", SceneCfg(terrain=terrain)
    )


def rim_speed(sim: Simulation, env_id: int, normal: np.ndarray) -> list[float]:
    """Speeds along the ground of the points of the rims farthest against ``normal``, by Jacobians of a plain model."""
    model = build_scene(TRON1_WF, sim.cfg)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (sim.batch.bind(name)[env_id] for name in ("qpos", "qvel"))
    mujoco.mj_forward(model, data)
    speeds = []
    for foot in TRON1_WF.foot_names:
        body, angles = data.body(foot), np.linspace(0.0, 2.0 * np.pi, 20_001)[:, None]
        x, _, z = body.xmat.reshape(3, 3).T
        rim = body.xpos + RADIUS * (np.cos(angles) * x + np.sin(angles) * z)
        jacobian = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, jacobian, None, rim[(rim @ normal).argmin()], body.id)
        velocity = jacobian @ data.qvel
        speeds.append(float(np.linalg.norm(velocity - velocity @ normal * normal)))
    return speeds


@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_the_speed_of_a_wheel_is_that_of_its_rim_next_to_the_ground(slope: float) -> None:
    sim, random = make(slope), torch.Generator().manual_seed(0)
    robot = RobotState(sim, sim.cfg.step_dt)
    normal = np.array((-slope, 0.0, 1.0)) / np.hypot(slope, 1.0)

    def some(*shape: int) -> torch.Tensor:
        return 2.0 * torch.rand(shape, generator=random) - 1.0

    for _ in range(5):
        quat = torch.nn.functional.normalize(
            torch.tensor((1.0, 0.0, 0.0, 0.0)) + 0.4 * some(2, 4), dim=1
        )
        sim.write_root_state(ALL, some(2, 3), quat, 2.0 * some(2, 3), 2.0 * some(2, 3))
        sim.write_joint_state(ALL, 0.5 * some(2, 8), 10.0 * some(2, 8))
        sim.forward(ALL)
        robot.refresh(ALL[1:])
        robot.refresh(ALL[:1])
        for i in range(2):
            assert robot.foot_speed[i].tolist() == pytest.approx(
                rim_speed(sim, i, normal), abs=3e-3
            )


@pytest.mark.parametrize(
    ("speed", "spin", "slip"),
    [
        (1.5, 1.5 / RADIUS, 0.0),
        (1.5, 0.0, 1.5),
        (0.0, 4.0, 4.0 * RADIUS),
        (-1.0, 1.0 / RADIUS, 2.0),
    ],
    ids=["rolling", "locked", "spinning", "reversing"],
)
def test_slip_of_a_wheel(speed: float, spin: float, slip: float) -> None:
    sim = make()
    robot = RobotState(sim, sim.cfg.step_dt)
    joint_vel = torch.zeros(2, 8).index_fill(1, torch.tensor(WHEELS), spin)
    sim.write_root_state(
        ALL,
        sim.root_pos_w,
        sim.root_quat_w,
        torch.tensor([[speed, 0.0, 0.0]] * 2),
        torch.zeros(2, 3),
    )
    sim.write_joint_state(ALL, sim.joint_pos, joint_vel)
    sim.forward(ALL)
    robot.refresh(ALL)
    robot.foot_contact = torch.ones(2, 2, dtype=torch.bool)
    env = SimpleNamespace(sim=sim, robot=robot)
    assert robot.foot_lin_vel_w[0, :, 0].tolist() == pytest.approx([speed] * 2, abs=1e-5)
    assert costs.foot_slip(env, max_speed=0.1).tolist() == pytest.approx(
        [max(0.0, slip - 0.1)] * 2, abs=1e-5
    )
    assert rewards.foot_slip(env).tolist() == pytest.approx([2.0 * slip**2] * 2, abs=1e-5)


def test_a_robot_that_rolls_does_not_slip() -> None:
    """Half a second at 1 m/s, while it begins to tip."""
    sim = make()
    robot, targets = RobotState(sim, sim.cfg.step_dt), torch.zeros(2, 8)
    targets[:, WHEELS] = 1.0 / RADIUS
    sim.write_root_state(
        ALL, sim.root_pos_w, sim.root_quat_w, torch.tensor([[1.0, 0.0, 0.0]] * 2), torch.zeros(2, 3)
    )
    sim.write_joint_state(ALL, sim.joint_pos, targets)
    sim.set_joint_targets(targets)
    for _ in range(25):
        sim.step(4)
        robot.read()
        robot.compute()
        assert robot.foot_contact.all()
        assert (robot.foot_lin_vel_w[..., 0] > 0.8).all() and (robot.foot_speed < 0.05).all()
        assert torch.allclose(robot.foot_height, torch.tensor(RADIUS), atol=0.01)


def test_the_turns_of_a_wheel_are_no_way_off_the_default_pose() -> None:
    sim = make()
    robot, turned = (
        RobotState(sim, sim.cfg.step_dt),
        torch.tensor([0.1, 0.2, 0.3, 50.0, -0.1, -0.2, -0.3, -70.0]),
    )
    sim.write_joint_state(ALL, turned.expand(2, 8), torch.zeros(2, 8))
    robot.refresh(ALL)
    assert torch.equal(robot.joint_pos[0], turned)
    assert torch.equal(robot.joint_offset[0], turned.index_fill(0, torch.tensor(WHEELS), 0.0))
    env = SimpleNamespace(sim=sim, robot=robot)
    assert rewards.joint_deviation(env).tolist() == pytest.approx([0.28] * 2)
    assert not rewards.joint_pos_limits(env).any()


def _renamed(tmp_path, old: str, new: str) -> RobotCfg:
    text = TRON1_WF.path.read_text()
    assert old in text
    (path := tmp_path / "other.xml").write_text(text.replace(old, new))
    return replace(TRON1_WF, xml=str(path))


def test_feet_that_are_no_wheels_are_refused(tmp_path) -> None:
    wrong = r"'.*' has wheels.*'.*_foot'.*\.xml"
    for robot in (replace(TRON1_PF, wheels=True), replace(G1, wheels=True)):
        with pytest.raises(ValueError, match=wrong):
            build_scene(robot, SimCfg())
    axis, foot = '<joint axis="0 1 0"/>', '<body name="R_foot" pos="0 -0.008 0"'
    for old, new in {
        axis: axis.replace("/>", ' range="-9 9"/>'),
        foot: foot.replace("0 -0", "0.01 -0"),
    }.items():
        with pytest.raises(ValueError, match=wrong):
            build_scene(_renamed(tmp_path, old, new), SimCfg())
    with pytest.raises(ValueError, match=wrong):
        build_scene(_renamed(tmp_path, axis, '<joint axis="0 1 0.1"/>'), SimCfg())
    build_scene(_renamed(tmp_path, axis, '<joint axis="0 -1 0"/>'), SimCfg())
