"""Scenes of several robots and objects: against plain MuJoCo, against each robot in a separate scene, and as environments."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
import torch

from legged_envs.envs import CoreVectorEnv, make_core
from legged_envs.envs.cfg import override
from legged_envs.robots import G1, GO2
from legged_envs.sim import (
    ObjectCfg,
    PlacedRobot,
    RobotState,
    SceneCfg,
    SimCfg,
    Simulation,
    make_simulation,
)
from legged_envs.tasks import make_task_cfg

NUM_ENVS = 3
ALL = torch.arange(NUM_ENVS)
ROOT = ("root_pos_w", "root_quat_w", "root_lin_vel_w", "root_ang_vel_b")
ROBOT = (
    *ROOT,
    "joint_pos",
    "joint_vel",
    "joint_torque",
    "joint_acc",
    "contact_force_w",
    "foot_pos_w",
)
ROBOT += ("body_pos_w", "body_lin_vel_w", "foot_lin_vel_w")


def pair(apart: float = 1.0, robot=GO2) -> SceneCfg:
    """The first robot ahead, another behind it, and a beam on both."""
    beam = ObjectCfg("box", (0.6, 0.15, 0.015), 2.5, 1.0, (0.0, 0.0, 0.43))
    rear = PlacedRobot(robot, (-apart / 2, 0.0, 0.0))
    return SceneCfg(start=(apart / 2, 0.0, 0.0), robots={"rear": rear}, objects={"beam": beam})


def make(scene: SceneCfg | None = None, num_envs: int = NUM_ENVS) -> Simulation:
    return make_simulation("mujoco", GO2, SimCfg(num_threads=1), num_envs, "cpu", scene or pair())


def disturb(sim: Simulation, seed: int = 0) -> None:
    """Give all that is in the scene another velocity in each environment, and the robots other joint angles."""
    generator = torch.Generator().manual_seed(seed)
    n = sim.num_envs
    for body in (*sim.robots.values(), *sim.objects.values()):
        twist = torch.rand(64, 6, generator=generator)[:n] - 0.5
        body.write_root_state(
            torch.arange(n), body.root_pos_w, body.root_quat_w, *twist.split(3, 1)
        )
    for robot in sim.robots.values():
        joints = torch.rand(64, 2, robot.robot.num_joints, generator=generator)[:n] - 0.5
        robot.write_joint_state(torch.arange(n), robot.joint_pos + 0.2 * joints[:, 0], joints[:, 1])


def drive(sim: Simulation, seed: int) -> None:
    for i, robot in enumerate(sim.robots.values()):
        generator = torch.Generator().manual_seed(1000 * i + seed)
        noise = torch.rand(64, robot.robot.num_joints, generator=generator)[: sim.num_envs] - 0.5
        robot.set_joint_targets(torch.tensor(robot.robot.default_joint_pos) + noise)


def everything(sim: Simulation) -> dict[str, torch.Tensor]:
    found = {
        f"{name}.{q}": getattr(each, q).clone() for name, each in sim.robots.items() for q in ROBOT
    }
    names = (*ROOT, "contact_force_w")
    return found | {
        f"{name}.{q}": getattr(each, q).clone() for name, each in sim.objects.items() for q in names
    }


def test_two_robots_and_a_box_are_a_plain_mj_step_loop_bit_for_bit(assert_same):
    sim = make()
    disturb(sim)
    rear, beam = sim.robots["rear"], sim.objects["beam"]
    rear.set_parameter("friction", torch.tensor([0.3, 0.6, 0.9]), ALL)
    sim.set_parameter("kp", torch.full((NUM_ENVS, 12), 35.0), ALL)
    assert (
        rear.get_parameter("kp").unique().tolist() == [40.0]
        and sim.get_parameter("friction").unique() == 0.8
    )
    loops = []
    for i in range(NUM_ENVS):
        model = copy.copy(sim.model)
        for geom in range(model.ngeom):
            if (
                model.body(model.geom_bodyid[geom]).name.startswith("rear/")
                and model.geom_conaffinity[geom]
            ):
                model.geom_friction[geom, 0] = np.float32([0.3, 0.6, 0.9])[i]
        model.actuator_gainprm[:12, 0], model.actuator_biasprm[:12, 1] = 35.0, -35.0
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = sim.batch.bind("qpos")[i], sim.batch.bind("qvel")[i]
        loops.append((model, data))
    touched = False
    for step in range(50):
        drive(sim, step)
        for i, (model, data) in enumerate(loops):
            for name in ("", "rear/"):
                for joint in GO2.joint_names:
                    data.actuator(name + joint).ctrl = sim.batch.bind("ctrl")[
                        i, model.actuator(name + joint).id
                    ]
            for _ in range(4):
                mujoco.mj_step(model, data)
        sim.step(4)
        assert_same(sim.batch.bind("qpos").copy(), np.stack([data.qpos for _, data in loops]))
        for i, (model, data) in enumerate(loops):
            row = {
                name: torch.tensor(data.body(f"{name}base").cfrc_ext[3:]).float()
                for name in ("", "rear/")
            }
            assert_same(sim.contact_force_w[i, 0], row[""])
            assert_same(rear.contact_force_w[i, 0], row["rear/"])
            assert_same(rear.root_pos_w[i], torch.tensor(data.joint("rear/root").qpos[:3]).float())
            assert_same(
                rear.joint_vel[i],
                torch.tensor(
                    [data.joint(f"rear/{name}").qvel[0] for name in GO2.joint_names]
                ).float(),
            )
            assert_same(
                rear.foot_pos_w[i, 1], torch.tensor(data.site("rear/FL_foot_site").xpos).float()
            )
            assert_same(beam.root_quat_w[i], torch.tensor(data.joint("beam/root").qpos[3:]).float())
            assert_same(
                beam.root_ang_vel_b[i], torch.tensor(data.joint("beam/root").qvel[3:]).float()
            )
            assert_same(
                beam.contact_force_w[i], torch.tensor(data.body("beam/body").cfrc_ext[3:]).float()
            )
            names = {model.body(model.geom_bodyid[g]).name for g in data.contact.geom.ravel()}
            touched |= {"base", "rear/base", "beam/body"} <= names
    assert touched  # the beam and what carries it


def test_a_robot_far_from_the_others_moves_as_alone():
    """Equal to the rounding of sums over all robots: 1e-15 in float64 after 200 physics steps."""
    far = SceneCfg(robots={"rear": PlacedRobot(GO2, (20.0, 0.0, 1.0))})
    both, first, second = make(far), make(SceneCfg()), make(SceneCfg(start=(20.0, 0.0, 1.0)))
    for step in range(25):
        generator = torch.Generator().manual_seed(step)
        targets = torch.tensor(GO2.default_joint_pos) + 0.6 * (
            torch.rand(2, NUM_ENVS, 12, generator=generator) - 0.5
        )
        for name, own in (("robot", first), ("rear", second)):
            both.robots[name].set_joint_targets(targets[int(name == "rear")])
            own.set_joint_targets(targets[int(name == "rear")])
        for sim in (both, first, second):
            sim.step(4)
    for quantity in ROBOT[:7]:
        for name, own in (("robot", first), ("rear", second)):
            torch.testing.assert_close(
                getattr(both.robots[name], quantity), getattr(own, quantity), msg=quantity
            )
    torch.testing.assert_close(
        both.root_quat_w[0], torch.tensor([1.0, 0.0, 0.0, 0.0]), atol=0.2, rtol=0.0
    )
    assert both.robots["rear"].root_pos_w[0, 0] > 19.5


def test_resets_writes_and_pushes_reach_their_robot_in_their_environments_alone(assert_same):
    sim = make()
    start = everything(sim)
    disturb(sim)
    sim.step(20)
    before = everything(sim)
    sim.reset(torch.tensor([1]))
    sim.forward(torch.tensor([1]))
    after = everything(sim)
    for name in after:
        assert_same(after[name][[0, 2]], before[name][[0, 2]])
        if not any(part in name for part in ("acc", "torque", "force")):
            assert_same(after[name][1], start[name][1])
    sim.robots["rear"].push(torch.tensor([2]), torch.tensor([[0.5, 0.0, 0.0]]))
    sim.objects["beam"].push(torch.tensor([0]), torch.tensor([[0.0, 0.25, 0.0]]))
    pushed = everything(sim)
    changed = {name for name in pushed if not torch.equal(pushed[name], after[name])}
    assert changed == {"rear.root_lin_vel_w", "beam.root_lin_vel_w"}
    torch.testing.assert_close(
        pushed["rear.root_lin_vel_w"][2, 0], after["rear.root_lin_vel_w"][2, 0] + 0.5
    )


def test_a_saved_state_holds_the_whole_scene_and_each_robots_parameters(assert_same):
    sim, other = make(), make()
    disturb(sim)
    sim.robots["rear"].set_parameter("kd", torch.full((NUM_ENVS, 12), 1.5), ALL)
    other.robots["rear"].get_parameter("kd")
    sim.step(8)
    other.set_state(sim.get_state())
    assert_same(everything(other), everything(sim))
    assert other.robots["rear"].get_parameter("kd").unique() == 1.5
    for each in (sim, other):
        drive(each, 5)
        each.step(40)
    assert_same(everything(other), everything(sim))
    with pytest.raises(ValueError, match="shape"):
        make(SceneCfg()).set_state(sim.get_state())


def test_an_environment_does_the_same_whatever_num_envs_is(assert_same):
    one, five = make(num_envs=1), make(num_envs=5)
    for sim in (one, five):
        disturb(sim)
        for step in range(10):
            drive(sim, step)
            sim.step(4)
    assert_same(everything(one), {name: value[:1] for name, value in everything(five).items()})


@pytest.mark.parametrize("collide", [True, False])
def test_robots_side_by_side_touch_where_the_scene_says_so(collide):
    scene = SceneCfg(robots={"right": PlacedRobot(GO2, (0.0, -0.6, 0.0))}, robots_collide=collide)
    sim = make(scene)
    assert sim.contact_force_w[:, 0].abs().max() == 0.0
    sim.push(ALL, torch.tensor([[0.0, -2.5, 0.0]]).expand(NUM_ENVS, 3))
    sideways = torch.zeros(NUM_ENVS)
    for _ in range(80):
        sim.step(1)
        sideways = torch.maximum(sideways, -sim.robots["right"].root_lin_vel_w[:, 1])
    assert (sideways > 0.3).all() if collide else (sideways < 0.05).all()
    assert sim.diverged() is None


def test_an_objects_own_friction_decides_on_the_ground_and_on_a_robot():
    slid = []
    for friction in (0.02, 0.4):
        box = ObjectCfg("box", (0.1, 0.1, 0.1), 1.0, friction, (3.0, 0.0, 0.1))
        sim = make(SceneCfg(objects={"box": box}))
        box = sim.objects["box"]
        box.push(ALL, torch.tensor([[1.0, 0.0, 0.0]]).expand(NUM_ENVS, 3))
        sim.step(100)
        slid.append(box.root_pos_w[0, 0].item() - 3.0)
    assert slid[0] == pytest.approx(
        0.5 * 1.0 - 0.5 * 0.02 * 9.81 * 0.25, rel=0.05
    )  # v t − ½ μ g t²
    assert slid[1] == pytest.approx(1.0 / (2 * 0.4 * 9.81), rel=0.1)  # v² / 2 μ g
    sim = make()  # a beam of friction 1
    sim.step(40)
    sim.batch.get_data(0, data := mujoco.MjData(sim.model))
    mujoco.mj_forward(sim.model, data)
    frictions = {0.0: set(), 1.0: set()}
    for contact in data.contact:
        names = {sim.model.geom(geom).name for geom in contact.geom}
        frictions["beam/shape" in names].add(contact.friction[0])
    assert (
        frictions == {0.0: {0.8}, 1.0: {1.0}} and sim.objects["beam"].contact_force_w[0, 2] > 10.0
    )


def test_robots_of_two_kinds_keep_their_joints_bodies_and_limits_apart():
    sim = make(pair(3.0, G1))
    rear, alone = sim.robots["rear"], make_simulation("mujoco", G1, SimCfg(), 1, "cpu")
    assert rear.body_names == alone.body_names and torch.equal(
        rear.joint_pos_limits, alone.joint_pos_limits
    )
    assert rear.joint_pos.shape == (NUM_ENVS, G1.num_joints) and sim.joint_pos.shape == (
        NUM_ENVS,
        12,
    )
    torch.testing.assert_close(
        rear.get_parameter("body_mass")[:1], alone.get_parameter("body_mass")
    )
    torch.testing.assert_close(rear.root_pos_w[0], torch.tensor([-1.5, 0.0, G1.base_height]))
    state = RobotState(rear, 0.02)
    assert state.bodies(G1.foot_names).pos_b.shape == (NUM_ENVS, 2, 3)
    torch.testing.assert_close(state.joint_offset, torch.zeros(NUM_ENVS, G1.num_joints))
    sim.close()
    with pytest.raises(RuntimeError, match=r"close\(\)"):
        _ = rear.joint_pos


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        (SceneCfg(robots={"robot": PlacedRobot(GO2)}), "cannot have a part named 'robot'"),
        (
            SceneCfg(robots={"a/b": PlacedRobot(GO2)}),
            "'a/b'",
        ),
        (
            SceneCfg(objects={"box": ObjectCfg("cube")}),
            r"box\.shape.*'cube'",
        ),
        (
            SceneCfg(objects={"ball": ObjectCfg("sphere")}),
            r"ball\.size.* 1 ",
        ),
        (
            SceneCfg(objects={"box": ObjectCfg(mass=0.0)}),
            r"box\.mass",
        ),
        (SceneCfg(start=(1.0, 2.0)), r"SceneCfg\.start.*\(1\.0, 2\.0\)"),
    ],
    ids=str,
)
def test_a_scene_that_cannot_be_is_refused_by_name(scene, message):
    with pytest.raises(ValueError, match=message):
        make(scene)


# --- environments -----------------------------------------------------------------------------------------------------


def env_of(scene: SceneCfg, num_envs: int = NUM_ENVS, **changes) -> CoreVectorEnv:
    cfg = override(
        make_task_cfg("Legged/Go2-Flat-v0"), {"scene": scene, "sim.num_threads": 1, **changes}
    )
    return make_core(cfg, num_envs)


def test_an_environment_reads_resets_and_saves_every_robot(assert_same, random_actions):
    env = env_of(pair(1.2))
    env.reset(seed=0)
    rear = env.robots["rear"]
    assert env.robots["robot"] is env.robot and rear.sim is env.sim.robots["rear"]
    torch.testing.assert_close(
        env.robot.root_pos_w[:, :2], torch.tensor([[0.6, 0.0]]).expand(NUM_ENVS, 2)
    )
    actions = random_actions(30, NUM_ENVS)
    for action in actions[:10]:
        env.step(action)
    assert_same(rear.base_height, env.sim.robots["rear"].root_pos_w[:, 2])
    assert (rear.foot_contact_time > 0.1).any() and not torch.equal(
        rear.joint_vel, rear.previous_joint_vel
    )
    state = env.get_state()
    ends = []
    for _ in range(2):
        env.set_state(state)
        for action in actions[10:]:
            step = env.step(action)
        _, again = (
            env.reset(options={"reset_mask": np.array([False, True, False])}),
            env.get_state(),
        )
        ends.append(
            (
                step,
                {name: getattr(rear, name).clone() for name in RobotState.STATE},
                again["robots"]["rear"],
            )
        )
    assert_same(ends[0], ends[1])
    assert rear.foot_contact_time[1].max() <= env.step_dt < rear.foot_contact_time[0].max()
    env.close()


def test_one_robot_alone_in_its_scene_is_the_task_without_a_scene(assert_same, random_actions):
    plain = make_core(
        override(make_task_cfg("Legged/Go2-Flat-v0"), {"sim.num_threads": 1}), NUM_ENVS
    )
    beside = env_of(SceneCfg(objects={"ball": ObjectCfg("sphere", (0.1,), pos=(9.0, 9.0, 0.1))}))
    for env in (plain, beside):
        env.reset(seed=3)
    for action in random_actions(20, NUM_ENVS):
        one, other = plain.step(action), beside.step(action)
        np.testing.assert_allclose(one[0], other[0], atol=2e-3)
