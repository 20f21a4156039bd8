"""``MujocoSimulation`` against plain MuJoCo: one ``mj_step`` loop per environment, on a model edited by hand."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
import weakref
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from legged_envs.mdp import costs, events, observations, rewards
from legged_envs.rng import RandomStreams
from legged_envs.robots import G1, G1_29, GO2, RobotCfg
from legged_envs.sim import RobotState, SimCfg, Simulation, make_simulation
from legged_envs.sim.engines import ENGINES
from legged_envs.sim.engines.mujoco import MujocoSimulation
from legged_envs.sim.robot_spec import robot_spec
from legged_envs.sim.robot_view import RobotView
from legged_envs.sim.scene import build_scene

ROBOTS = pytest.mark.parametrize("robot", [GO2, G1], ids=lambda robot: robot.name)
NUM_ENVS = 3
ALL = torch.arange(NUM_ENVS)


def make(robot: RobotCfg = GO2, num_envs: int = NUM_ENVS, **cfg: float) -> Simulation:
    return make_simulation("mujoco", robot, SimCfg(**cfg), num_envs, "cpu")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name="imu"', 'name="IMU"', "site 'imu'.*'go2'"),
        ('name="FL_foot"', 'name="FL_toe"', "body 'FL_foot'"),
        ('name="track"', 'name="side"', "camera 'track'"),
        ('conaffinity="1"', 'conaffinity="0"', "conaffinity"),
        (
            'contype="0" conaffinity="1"',
            'contype="1" conaffinity="0"',
            "conaffinity",
        ),
        (
            "</mujoco>",
            '<actuator><motor name="m" joint="FL_hip_joint"/></actuator></mujoco>',
            "actuators.*'m'",
        ),
        (
            "<worldbody>",
            '<worldbody><geom name="floor" type="plane" size="9 9 1"/>',
            "'floor'.*'go2'",
        ),
        (
            "<worldbody>",
            '<worldbody><body pos="1 0 0"><geom name="stone" size="0.1"/></body>',
            "'stone'.*'go2'",
        ),
        (
            'joint name="FL_hip_joint"',
            'joint name="FL_hip_joint_"',
            "joint 'FL_hip_joint'.*'FL_hip_joint_'",
        ),
    ],
)
def test_a_robots_file_that_does_not_fit_names_the_culprit(tmp_path, old, new, message):
    text = GO2.path.read_text()
    assert old in text
    path = tmp_path / "own.xml"
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=rf"own\.xml .*{message}"):
        build_scene(dataclasses.replace(GO2, xml=str(path)), SimCfg())


def test_a_default_pose_outside_of_the_joints_range_is_refused():
    pose = (2.0, *GO2.default_joint_pos[1:])
    with pytest.raises(
        ValueError,
        match=r"default_joint_pos.*'F._hip_joint'.* 2\.0.* 1\.0472",
    ):
        build_scene(dataclasses.replace(GO2, default_joint_pos=pose), SimCfg())


@pytest.mark.parametrize("robot", [GO2, G1, G1_29], ids=lambda robot: robot.name)
def test_a_base_height_at_which_the_robot_falls_or_is_in_the_ground_names_the_right_one(robot):
    for change, place in (
        (0.2, "0.200 m above"),
        (-0.1, "0.100 m inside"),
    ):
        with pytest.raises(ValueError, match=rf"'{robot.name}'.*base_height=.* {place}") as error:
            build_scene(
                dataclasses.replace(robot, base_height=robot.base_height + change), SimCfg()
            )
        assert str(error.value).endswith(f"at {robot.base_height:.4f}")
    for change in (-0.015, 0.1):  # legged_gym drops a Go2 by 8 cm
        build_scene(dataclasses.replace(robot, base_height=robot.base_height + change), SimCfg())


def test_a_file_that_is_missing_or_none_and_parts_that_are_not_there_are_named(tmp_path):
    path = tmp_path / "own.xml"
    with pytest.raises(FileNotFoundError, match=r"'go2'.*own\.xml"):
        make(dataclasses.replace(GO2, xml=str(path)))
    path.write_text("<mujoco><worldbody></mujoco>")
    with pytest.raises(ValueError, match=r"'go2'.*own\.xml.*XML parse error.*worldbody"):
        make(dataclasses.replace(GO2, xml=str(path)))
    for change, culprit in (
        ({"penalized_bodies": ("FR_tihgh",)}, "'FR_tihgh'.*'FR_thigh'"),
        ({"base_body": "FR_hip"}, "base_body 'FR_hip'"),
    ):
        with pytest.raises(ValueError, match=culprit):
            make(dataclasses.replace(GO2, **change))


def random_parameters(sim: Simulation, seed: int = 1) -> dict[str, torch.Tensor]:
    """Set every model parameter to its default times U(0.8, 1.2), centres of mass to theirs ± 2 cm; return them."""
    generator = torch.Generator().manual_seed(seed)
    values = {}
    for name in sim.parameter_names:
        default = sim.default_parameter(name)
        unit = torch.rand(default.shape, generator=generator)
        values[name] = (
            default + 0.04 * (unit - 0.5) if name == "com" else default * (0.8 + 0.4 * unit)
        )
        sim.set_parameter(name, values[name], torch.arange(sim.num_envs))
    return values


def plain_model(
    sim: Simulation, parameters: dict[str, torch.Tensor], env_id: int
) -> mujoco.MjModel:
    """The scene with the parameters of one environment written into it by hand."""
    model = build_scene(sim.robot, sim.cfg)
    value = {name: row[env_id].double().numpy() for name, row in parameters.items()}
    model.geom_friction[(model.geom_bodyid > 0) & (model.geom_conaffinity > 0), 0] = value[
        "friction"
    ]
    model.body_mass[1:] = value["body_mass"]
    model.body_ipos[1:] = value["com"]
    model.dof_armature[6:] = value["armature"]
    model.dof_damping[6:] = value["joint_damping"]
    model.dof_frictionloss[6:] = value["joint_friction"]
    model.actuator_gainprm[:, 0] = value["kp"]
    model.actuator_biasprm[:, 1] = -value["kp"]
    model.actuator_biasprm[:, 2] = -value["kd"]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def throw(sim: Simulation, seed: int = 2, env_ids: torch.Tensor | None = None) -> None:
    """Drop robots from a little height with random speeds and joint positions."""
    env_ids = torch.arange(sim.num_envs) if env_ids is None else env_ids
    generator = torch.Generator().manual_seed(seed)
    n, num_joints = len(env_ids), sim.robot.num_joints

    def uniform(half_width: float, size: int) -> torch.Tensor:
        return (torch.rand(n, size, generator=generator) * 2.0 - 1.0) * half_width

    pos = (
        torch.tensor([0.0, 0.0, sim.robot.base_height])
        + torch.tensor([1.0, 1.0, 0.05]) * uniform(1.0, 3).abs()
    )
    quat = torch.nn.functional.normalize(
        torch.tensor([1.0, 0.0, 0.0, 0.0]) + uniform(0.1, 4), dim=1
    )
    sim.write_root_state(env_ids, pos, quat, uniform(0.5, 3), uniform(1.0, 3))
    joint_pos = torch.tensor(sim.robot.default_joint_pos) + uniform(0.1, num_joints)
    sim.write_joint_state(env_ids, joint_pos, uniform(1.0, num_joints))


def targets(sim: Simulation, num_steps: int, seed: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.rand(num_steps, sim.num_envs, sim.robot.num_joints, generator=generator) - 0.5
    return torch.tensor(sim.robot.default_joint_pos) + noise


def plain_data(sim: Simulation, model: mujoco.MjModel, env_id: int) -> mujoco.MjData:
    """Plain MuJoCo data at the present state of an environment, with the derived quantities computed."""
    data = mujoco.MjData(model)
    data.qpos[:] = sim.batch.bind("qpos")[env_id]
    data.qvel[:] = sim.batch.bind("qvel")[env_id]
    data.ctrl[:] = sim.batch.bind("ctrl")[env_id]
    mujoco.mj_forward(model, data)
    return data


def plain_loop(
    sim: Simulation, parameters: dict[str, torch.Tensor]
) -> list[tuple[mujoco.MjModel, mujoco.MjData]]:
    models = [plain_model(sim, parameters, i) for i in range(sim.num_envs)]
    return [(model, plain_data(sim, model, i)) for i, model in enumerate(models)]


def diverged(sim: Simulation) -> list[int]:
    """The environments that met a bad number since the last call."""
    bad = sim.diverged()
    return [] if bad is None else bad.nonzero().squeeze(1).tolist()


def physics(sim: Simulation) -> tuple[np.ndarray, np.ndarray]:
    return sim.batch.bind("qpos").copy(), sim.batch.bind("qvel").copy()


QUANTITIES = (
    "root_pos_w",
    "root_quat_w",
    "root_lin_vel_w",
    "root_ang_vel_b",
    "joint_pos",
    "joint_vel",
    "joint_acc",
    "joint_torque",
    "body_pos_w",
    "body_quat_w",
    "body_lin_vel_w",
    "body_ang_vel_w",
    "contact_force_w",
    "foot_pos_w",
    "foot_lin_vel_w",
)
CURRENT = QUANTITIES[:6]


def quantities(sim: Simulation) -> dict[str, torch.Tensor]:
    return {name: getattr(sim, name).clone() for name in QUANTITIES}


def plain_quantities(
    robot: RobotCfg, model: mujoco.MjModel, data: mujoco.MjData
) -> dict[str, np.ndarray]:
    """Return the expected quantities of one environment, computed by plain MuJoCo's functions."""
    bodies = range(1, model.nbody)
    forces = np.zeros((model.nbody, 3))
    wrench = np.zeros(6)
    for i, contact in enumerate(data.contact):
        mujoco.mj_contactForce(model, data, i, wrench)
        on_second = (
            contact.frame.reshape(3, 3).T @ wrench[:3]
        )  # the normal points from the first geom to the second
        forces[model.geom_bodyid[contact.geom[1]]] += on_second
        forces[model.geom_bodyid[contact.geom[0]]] -= on_second

    def velocity(kind: mujoco.mjtObj, obj: int) -> np.ndarray:
        twist = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, kind, obj, twist, 0)
        return twist

    body_twist = np.array([velocity(mujoco.mjtObj.mjOBJ_XBODY, body) for body in bodies])
    feet = [model.site(f"{name}_site").id for name in robot.foot_names]
    return {
        "root_pos_w": data.qpos[:3],
        "root_quat_w": data.qpos[3:7],
        "root_lin_vel_w": data.qvel[:3],
        "root_ang_vel_b": data.qvel[3:6],
        "joint_pos": data.qpos[7:],
        "joint_vel": data.qvel[6:],
        "joint_acc": data.qacc[6:],
        "joint_torque": data.qfrc_actuator[6:],
        "body_pos_w": data.xpos[1:],
        "body_quat_w": data.xquat[1:],
        "body_lin_vel_w": body_twist[:, 3:],
        "body_ang_vel_w": body_twist[:, :3],
        "contact_force_w": forces[1:],
        "foot_pos_w": data.site_xpos[feet],
        "foot_lin_vel_w": np.array([velocity(mujoco.mjtObj.mjOBJ_SITE, foot)[3:] for foot in feet]),
    }


def assert_close(actual: torch.Tensor, expected: np.ndarray, name: str) -> None:
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(
        actual.double().numpy(), expected, rtol=1e-5, atol=1e-5 * scale, err_msg=name
    )


# --- trajectories -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_500_control_steps_are_bit_identical_to_a_plain_mj_step_loop(num_threads):
    sim = make(num_threads=num_threads)
    parameters = random_parameters(sim)
    throw(sim)
    sim.forward(ALL)
    plain = plain_loop(sim, parameters)
    for step, target in enumerate(targets(sim, 500)):
        if step == 250:
            second = torch.tensor([1])
            sim.reset(second)
            throw(sim, 7, second)
            sim.forward(second)
            plain[1] = (plain[1][0], plain_data(sim, plain[1][0], 1))
        sim.set_joint_targets(target)
        sim.step(sim.cfg.decimation)
        for env_id, (model, data) in enumerate(plain):
            data.ctrl[:] = target[env_id].double().numpy()
            mujoco.mj_step(model, data, sim.cfg.decimation)
            assert np.array_equal(sim.batch.bind("qpos")[env_id], data.qpos), (step, env_id)
            assert np.array_equal(sim.batch.bind("qvel")[env_id], data.qvel), (step, env_id)
    assert diverged(sim) == []


PARAMETERS = pytest.mark.parametrize(
    "name",
    ["friction", "body_mass", "com", "kp", "kd", "armature", "joint_damping", "joint_friction"],
)


@ROBOTS
@PARAMETERS
def test_a_parameter_changes_the_model_of_its_environment_and_the_constants_that_depend_on_it(
    robot, name
):
    sim = make(robot)
    default = {each: sim.default_parameter(each) for each in sim.parameter_names}
    changed = {**default, name: default[name] * 1.25 + 0.01}
    sim.set_parameter(name, changed[name][[0, 2]], torch.tensor([0, 2]))
    sim.step(1)
    fields = (
        "body_mass",
        "body_subtreemass",
        "body_ipos",
        "body_invweight0",
        "dof_armature",
        "dof_damping",
        "dof_frictionloss",
        "dof_invweight0",
        "actuator_gainprm",
        "actuator_biasprm",
        "actuator_acc0",
    )
    for env_id, parameters in enumerate((changed, default, changed)):
        model, expected = sim.batch.get_model(env_id), plain_model(sim, parameters, env_id)
        for field in fields:
            np.testing.assert_allclose(
                getattr(model, field), getattr(expected, field), rtol=1e-6, err_msg=field
            )
        touching = (model.geom_contype > 0) | (model.geom_conaffinity > 0)
        np.testing.assert_allclose(
            model.geom_friction[touching], expected.geom_friction[touching], rtol=1e-6
        )


# --- what the quantities are and when they are current ----------------------------------------------------------------


@ROBOTS
def test_quantities_after_a_step_are_those_of_plain_mujoco_on_the_last_physics_step(robot):
    sim = make(robot)
    plain = plain_loop(sim, random_parameters(sim))
    throw(sim)
    sim.forward(ALL)
    plain = [(model, plain_data(sim, model, i)) for i, (model, _) in enumerate(plain)]
    most_contacts = 0
    for target in targets(sim, 40):
        sim.set_joint_targets(target)
        sim.step(4)
        for env_id, (model, data) in enumerate(plain):
            data.ctrl[:] = target[env_id].double().numpy()
            mujoco.mj_step(model, data, 4)
            for name, expected in plain_quantities(robot, model, data).items():
                assert_close(getattr(sim, name)[env_id], expected, name)
            most_contacts = max(most_contacts, data.ncon)
    assert most_contacts >= 2


@ROBOTS
def test_body_quantities_lag_by_exactly_one_physics_step_and_root_and_joints_do_not(robot):
    sim = make(robot)
    models = [plain_model(sim, random_parameters(sim), i) for i in range(NUM_ENVS)]
    throw(sim)
    sim.step(50)
    sim.push(ALL, torch.tensor([[0.3, 0.1, 0.0]] * NUM_ENVS))
    before = [plain_data(sim, model, i) for i, model in enumerate(models)]
    sim.step(1)
    after = [plain_data(sim, model, i) for i, model in enumerate(models)]
    for env_id, model in enumerate(models):
        lagging = plain_quantities(robot, model, before[env_id])
        current = plain_quantities(robot, model, after[env_id])
        for name in QUANTITIES:
            expected, other = (current, lagging) if name in CURRENT else (lagging, current)
            assert_close(getattr(sim, name)[env_id], expected[name], name)
            assert not np.allclose(expected[name], other[name], rtol=1e-5, atol=1e-6), (
                f"{name} did not change"
            )


@ROBOTS
def test_everything_is_current_after_forward(robot):
    sim = make(robot)
    models = [plain_model(sim, random_parameters(sim), i) for i in range(NUM_ENVS)]
    sim.step(4)
    throw(sim)
    sim.forward(ALL)
    for env_id, model in enumerate(models):
        expected = plain_quantities(robot, model, plain_data(sim, model, env_id))
        for name in QUANTITIES:
            assert_close(getattr(sim, name)[env_id], expected[name], name)


@ROBOTS
def test_a_reset_puts_the_robot_at_rest_in_its_default_pose(robot):
    sim = make(robot)
    throw(sim)
    sim.set_joint_targets(targets(sim, 1)[0])
    sim.step(20)
    sim.reset(ALL)
    sim.forward(ALL)
    expected_pos = torch.tensor([0.0, 0.0, robot.base_height]).expand(NUM_ENVS, 3)
    assert torch.equal(sim.root_pos_w, expected_pos)
    assert torch.equal(sim.root_quat_w, torch.tensor([[1.0, 0.0, 0.0, 0.0]] * NUM_ENVS))
    assert torch.equal(sim.joint_pos, torch.tensor([robot.default_joint_pos] * NUM_ENVS))
    for velocity in (sim.root_lin_vel_w, sim.root_ang_vel_b, sim.joint_vel):
        assert not velocity.any()
    assert torch.allclose(sim.foot_pos_w[..., 2], torch.tensor(robot.foot_radius), atol=2e-3)
    assert torch.allclose(sim.joint_torque, torch.zeros(1), atol=1e-4), (
        "the PD targets are the default pose"
    )


def test_bodies_are_named_and_joints_in_the_order_of_the_robot():
    sim = make()
    assert sim.body_names[0] == GO2.base_body
    assert [sim.body_names[i] for i in sim.body_ids(GO2.foot_names)] == list(GO2.foot_names)
    sim.write_joint_state(
        ALL, torch.arange(12.0).mul(0.01).expand(NUM_ENVS, 12), torch.zeros(NUM_ENVS, 12)
    )
    sim.forward(ALL)
    model = sim.model
    for i, name in enumerate(GO2.joint_names):
        address = model.joint(name).qposadr[0]
        assert (
            sim.batch.bind("qpos")[0, address]
            == np.float32(0.01) * np.float32(i)
            == sim.joint_pos[0, i].item()
        )
        assert np.array_equal(sim.joint_pos_limits[i], model.joint(name).range.astype(np.float32))
    feet = sim.body_pos_w[:, sim.body_ids(GO2.foot_names)]
    assert torch.allclose(feet, sim.foot_pos_w, atol=1e-6)


def test_push_adds_to_the_base_velocity_of_the_named_environments():
    sim = make()
    throw(sim)
    before = quantities(sim)
    sim.push(torch.tensor([0, 2]), torch.tensor([[1.0, 0.0, 0.0], [0.0, -2.0, 0.5]]))
    change = sim.root_lin_vel_w - before["root_lin_vel_w"]
    expected = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, -2.0, 0.5]])
    assert torch.allclose(change, expected, atol=1e-6)
    for name in ("root_pos_w", "root_quat_w", "root_ang_vel_b", "joint_pos", "joint_vel"):
        assert torch.equal(getattr(sim, name), before[name])


def test_torques_are_the_pd_law_within_the_limits():
    sim = make(num_envs=1)
    one = torch.arange(1)
    offset = torch.linspace(-1.5, 1.5, 12).unsqueeze(0)
    joint_vel = torch.linspace(2.0, -2.0, 12).unsqueeze(0)
    sim.write_root_state(
        one, torch.tensor([[0.0, 0.0, 3.0]]), torch.tensor([[1.0, 0, 0, 0]]), *torch.zeros(2, 1, 3)
    )
    sim.write_joint_state(one, torch.tensor([GO2.default_joint_pos]), joint_vel)
    sim.set_joint_targets(torch.tensor([GO2.default_joint_pos]) + offset)
    sim.forward(one)
    unlimited = torch.tensor(GO2.kp) * offset - torch.tensor(GO2.kd) * joint_vel
    limits = torch.tensor(GO2.torque_limits)
    assert (unlimited.abs() > limits).any() and (unlimited.abs() < limits).any()
    assert torch.allclose(sim.joint_torque, unlimited.clamp(-limits, limits), atol=1e-4)


# --- kinds of actuators, joints without limits ------------------------------------------------------------------------

WHEELER_XML = """
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <worldbody>
    <body name="base">
      <freejoint name="root"/>
      <geom type="box" size="0.2 0.1 0.05" mass="5" contype="0" conaffinity="1"/>
      <site name="imu"/>
      <camera name="track" mode="trackcom" pos="0 -2 1" xyaxes="1 0 0 0 0.4 0.9"/>
      <body name="thigh" pos="0 0.1 0">
        <joint name="hip" axis="0 1 0" range="-1 1" damping="0.1" armature="0.01"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2" mass="1" contype="0" conaffinity="0"/>
        <body name="rim" pos="0 0 -0.2">
          <joint name="wheel" axis="0 1 0" damping="0.05" armature="0.005"/>
          <geom type="box" size="0.05 0.01 0.03" mass="0.5" contype="0" conaffinity="0"/>
          <body name="foot"><site name="foot_site"/></body>
        </body>
      </body>
      <body name="arm" pos="0.1 0 0.05">
        <joint name="shoulder" axis="1 0 0"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0.2 0" mass="0.3" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def wheeler(tmp_path) -> RobotCfg:
    """A robot with a joint of each kind of actuator, of which only the first has limits."""
    path = tmp_path / "wheeler.xml"
    path.write_text(WHEELER_XML)
    return RobotCfg(
        name="wheeler",
        xml=str(path),
        base_body="base",
        joint_names=("hip", "wheel", "shoulder"),
        default_joint_pos=(0.3, 0.0, 0.2),
        kp=(30.0, 0.0, 0.0),
        kd=(1.0, 0.4, 0.0),
        torque_limits=(6.0, 1.0, 0.7),
        velocity_limits=(20.0, 20.0, 20.0),
        base_height=0.05,
        foot_names=("foot",),
        foot_radius=0.05,
        penalized_bodies=("thigh",),
        termination_bodies=("base",),
        mirror=(("hip", 1.0), ("wheel", 1.0), ("shoulder", -1.0)),
        foot_mirror=(0,),
        actuators=("position", "velocity", "torque"),
    )


class HandDriven:
    """A robot in the air, with its actuators' torques computed by hand and each step integrated in float64 NumPy.

    The integration is that of MuJoCo's ``implicitfast``: (M + h D) (v' − v) = h (τ + passive − bias), where D holds the
    joints' damping and the gains on the velocity of the actuators that are within their limits.
    """

    def __init__(self, robot: RobotCfg, parameters: dict[str, torch.Tensor], dt: float):
        self.model = mujoco.MjModel.from_xml_path(str(robot.path))
        self.data = mujoco.MjData(self.model)
        self.kp, self.kd = (parameters[name][0].double().numpy() for name in ("kp", "kd"))
        self.limits, self.dt = np.array(robot.torque_limits), dt
        self.torque, self.within = np.zeros(3), np.zeros(3, dtype=bool)

    def step(self, target: np.ndarray) -> None:
        model, data = self.model, self.data
        mujoco.mj_forward(model, data)
        (q, speed), (u_pos, u_vel, u_torque) = (data.qpos[7:], data.qvel[6:]), target
        wanted = np.array(
            [
                self.kp[0] * (u_pos - q[0]) - self.kd[0] * speed[0],
                self.kd[1] * (u_vel - speed[1]),
                u_torque,
            ]
        )
        self.torque = np.clip(wanted, -self.limits, self.limits)
        self.within = self.torque == wanted
        mass = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, mass)
        damping = model.dof_damping.copy()
        damping[6:] += np.where(self.within, self.kd, 0.0)
        force = data.qfrc_passive - data.qfrc_bias
        force[6:] += self.torque
        data.qvel += np.linalg.solve(mass + self.dt * np.diag(damping), self.dt * force)
        mujoco.mj_integratePos(model, data.qpos, data.qvel, self.dt)


def test_each_kind_of_actuator_applies_its_law_within_its_limits(wheeler):
    sim = make(wheeler, 1)
    one, still = torch.arange(1), torch.zeros(1, 3)
    sim.write_root_state(
        one, torch.tensor([[0.0, 0.0, 3.0]]), torch.tensor([[1.0, 0.0, 0.0, 0.0]]), still, still
    )
    for name in ("kp", "kd"):
        sim.set_parameter(name, 1.2 * sim.default_parameter(name), one)
    by_hand = HandDriven(
        wheeler, {name: sim.get_parameter(name) for name in ("kp", "kd")}, sim.cfg.dt
    )
    assert sim.get_parameter("kd").tolist() == [pytest.approx([1.2, 0.48, 0.0])]
    by_hand.data.qpos[:], by_hand.data.qvel[:] = (
        sim.batch.bind("qpos")[0],
        sim.batch.bind("qvel")[0],
    )
    generator = torch.Generator().manual_seed(4)
    limited = np.zeros(3, dtype=int)
    for _ in range(40):
        target = (torch.rand(1, 3, generator=generator) * 2.0 - 1.0) * torch.tensor(
            [0.4, 6.0, 1.0]
        ) + torch.tensor([0.0, 3.0, 0.0])
        sim.set_joint_targets(target)
        for _ in range(3):
            sim.step(1)
            by_hand.step(target[0].double().numpy())
            assert_close(sim.joint_torque[0], by_hand.torque, "joint_torque")
            np.testing.assert_allclose(
                sim.batch.bind("qpos")[0], by_hand.data.qpos, rtol=1e-8, atol=1e-9
            )
            np.testing.assert_allclose(
                sim.batch.bind("qvel")[0], by_hand.data.qvel, rtol=1e-7, atol=1e-8
            )
            limited += ~by_hand.within
    assert (limited > 3).all() and (limited < 117).all()
    assert abs(by_hand.data.qpos[8]) > 1.0, "the wheel turned"


def test_a_reset_asks_for_the_default_pose_and_for_no_speed_and_no_torque(wheeler):
    sim = make(wheeler)
    sim.set_joint_targets(torch.ones(NUM_ENVS, 3))
    sim.reset(ALL)
    assert np.array_equal(sim.batch.bind("ctrl"), [[0.3, 0.0, 0.0]] * NUM_ENVS)


def test_a_gain_that_an_actuator_does_not_have_cannot_be_set(wheeler):
    sim = make(wheeler)
    before = sim.get_state()
    for name, culprit in (("kp", "wheel"), ("kd", "shoulder")):
        with pytest.raises(ValueError, match=rf"'{name}'.*'{culprit}'"):
            sim.set_parameter(name, torch.ones(NUM_ENVS, 3), ALL)
    assert repr(sim.get_state()) == repr(before)


def test_the_scale_of_the_gains_is_that_of_a_joint_that_has_them(wheeler):
    gains = {"actuators": ("velocity", "position", "torque"), "kp": (0.0, 30.0, 0.0)}
    sim = make(dataclasses.replace(wheeler, **gains))
    sim.set_parameter("kp", 1.5 * sim.default_parameter("kp"), ALL)
    assert torch.allclose(
        observations.gain_scale(SimpleNamespace(sim=sim)), torch.tensor([1.5, 1.0])
    )
    without = dataclasses.replace(wheeler, kp=(0.0,) * 3, kd=(0.0,) * 3, actuators=("torque",) * 3)
    with pytest.raises(
        ValueError, match="needs a joint with a kp and a kd, and robot 'wheeler' has none"
    ):
        observations.gain_scale(SimpleNamespace(sim=make(without)))


def test_joints_without_limits_are_never_outside_of_them(wheeler):
    sim = make(wheeler)
    robot = RobotState(sim, sim.cfg.step_dt)
    env = SimpleNamespace(sim=sim, robot=robot, num_envs=NUM_ENVS, device=sim.device)
    inf = float("inf")
    assert sim.joint_pos_limits.tolist() == [[-1.0, 1.0], [-inf, inf], [-inf, inf]]
    low, high = robot.soft_joint_pos_limits(0.5)
    assert (low.tolist(), high.tolist()) == ([-0.5, -inf, -inf], [0.5, inf, inf])
    sim.write_joint_state(
        ALL, torch.tensor([[0.7, 30.0, -40.0]]).repeat(NUM_ENVS, 1), torch.zeros(NUM_ENVS, 3)
    )
    robot.refresh(ALL)
    assert torch.allclose(rewards.joint_pos_limits(env, soft_limit=0.5), torch.tensor(0.2))
    assert torch.allclose(costs.joint_position(env, soft_limit=0.5), torch.tensor(1 / 3))
    assert not costs.joint_position(env).any()
    random = RandomStreams(NUM_ENVS, sim.device)
    random.seed(0, ALL)
    events.reset_joints(env, ALL, random.stream("joints"), range=9.0)
    assert (sim.joint_pos[:, 0].abs() <= 1.0).all() and (sim.joint_pos[:, 1:].abs() > 1.0).any()
    assert sim.joint_pos.isfinite().all()


# --- views of robots --------------------------------------------------------------------------------------------------


def test_two_robots_in_a_scene_have_views_of_their_own(wheeler):
    scene = mujoco.MjSpec()
    robots = {"a_": GO2, "b_": wheeler}
    for prefix, robot in robots.items():
        scene.attach(robot_spec(robot), frame=scene.worldbody.add_frame(), prefix=prefix)
    model = scene.compile()
    views = {prefix: RobotView.find(model, robot, prefix) for prefix, robot in robots.items()}
    for prefix, robot in robots.items():
        view, num_joints = views[prefix], robot.num_joints
        root = model.jnt(f"{prefix}root")
        assert view.root_qpos == slice(root.qposadr[0], root.qposadr[0] + 7)
        assert view.root_qvel == slice(root.dofadr[0], root.dofadr[0] + 6)
        named = [f"{prefix}{joint}" for joint in robot.joint_names]
        assert [model.joint(i).name for i in range(model.njnt)[view.joints]] == named
        assert [model.actuator(i).name for i in range(model.nu)[view.actuators]] == named
        for i, joint in enumerate(named):
            assert model.joint(joint).qposadr == view.joint_qpos.start + i
            assert model.joint(joint).dofadr == view.joint_qvel.start + i
        assert (
            view.joint_qpos.stop - view.joint_qpos.start
            == view.joint_qvel.stop - view.joint_qvel.start
            == num_joints
        )
        bodies = [model.body(i).name for i in range(model.nbody)[view.bodies]]
        assert bodies[0] == f"{prefix}{robot.base_body}" and all(
            name.startswith(prefix) for name in bodies
        )
        assert len(bodies) == make(robot).model.nbody - 1
        assert (model.geom_bodyid[view.geoms] >= view.bodies.start).all()
        assert (model.geom_bodyid[view.geoms] < view.bodies.stop).all()
        feet = [model.site(i).name for i in range(model.nsite)[view.foot_sites]]
        assert feet == [f"{prefix}{foot}_site" for foot in robot.foot_names]
        first, last = (
            model.sensor(f"{prefix}{foot}_lin_vel").adr[0]
            for foot in (robot.foot_names[0], robot.foot_names[-1])
        )
        assert view.foot_velocities == slice(first, last + 3)
    for field in dataclasses.fields(RobotView):
        one, other = (getattr(view, field.name) for view in views.values())
        assert one.stop <= other.start, field.name


def test_a_robot_on_a_fixed_base_has_a_view_without_a_root_and_is_not_simulated(wheeler, tmp_path):
    path = tmp_path / "fixed.xml"
    path.write_text(WHEELER_XML.replace('<freejoint name="root"/>', ""))
    fixed = dataclasses.replace(wheeler, xml=str(path))
    view = RobotView.find(build_scene(fixed, SimCfg()), fixed)
    assert view.root_qpos is None and view.root_qvel is None
    assert view.joints == view.joint_qpos == view.joint_qvel == view.actuators == slice(0, 3)
    with pytest.raises(
        ValueError,
        match=r"fixed\.xml.*'base'.*'wheeler'.*<freejoint",
    ):
        make(fixed)


def test_joints_that_are_no_hinges_and_bodies_of_feet_out_of_order_are_refused(wheeler, tmp_path):
    path = tmp_path / "own.xml"
    path.write_text(
        WHEELER_XML.replace('name="shoulder" axis="1 0 0"', 'name="shoulder" type="ball"')
    )
    with pytest.raises(
        ValueError,
        match=r"own\.xml.*hinge",
    ):
        make(dataclasses.replace(wheeler, xml=str(path)))
    order = (1, 0, 2, 3)
    shuffled = dataclasses.replace(GO2, foot_names=tuple(GO2.foot_names[i] for i in order))
    with pytest.raises(
        ValueError,
        match="sites of its feet",
    ):
        make(shuffled)


# --- parameters -------------------------------------------------------------------------------------------------------


@PARAMETERS
def test_a_parameter_is_read_back_only_in_the_environments_where_it_was_set(name):
    sim = make()
    default = sim.default_parameter(name).clone()
    new = default[:2] * 1.5 + 0.01
    sim.set_parameter(name, new, torch.tensor([0, 2]))
    assert torch.equal(sim.get_parameter(name)[[0, 2]], new)
    assert torch.equal(sim.get_parameter(name)[1], default[1])
    assert torch.equal(sim.default_parameter(name), default)
    sim.step(4)
    assert torch.equal(sim.get_parameter(name)[[0, 2]], new)


def test_default_parameters_are_those_of_the_robot():
    sim = make()
    assert torch.equal(sim.default_parameter("kp"), torch.tensor([GO2.kp] * NUM_ENVS))
    assert torch.equal(sim.default_parameter("kd"), torch.tensor([GO2.kd] * NUM_ENVS))
    assert sim.default_parameter("body_mass").sum(1).tolist() == pytest.approx(
        [15.206] * NUM_ENVS, abs=0.001
    )
    assert sim.default_parameter("com").shape == (NUM_ENVS, len(sim.body_names), 3)


def test_twice_the_gains_give_twice_the_torque():
    sim = make()
    second = torch.tensor([1])
    at_rest, moving = torch.zeros(NUM_ENVS, 12), torch.full((NUM_ENVS, 12), 0.5)
    pose = torch.tensor([GO2.default_joint_pos] * NUM_ENVS)
    for name, offset, joint_vel in (("kp", 0.1, at_rest), ("kd", 0.0, moving)):
        sim.set_parameter(name, 2.0 * sim.default_parameter(name)[second], second)
        sim.write_joint_state(ALL, pose, joint_vel)
        sim.set_joint_targets(pose + offset)
        sim.forward(ALL)
        assert sim.joint_torque.abs().min() > 0.1
        assert torch.allclose(sim.joint_torque[1], 2.0 * sim.joint_torque[0], rtol=1e-4)
        assert torch.equal(sim.joint_torque[2], sim.joint_torque[0])


def test_more_armature_slows_the_joints_down():
    sim = make()
    sim.set_parameter("armature", 10.0 * sim.default_parameter("armature")[:1], torch.tensor([1]))
    sim.set_joint_targets(torch.tensor([GO2.default_joint_pos] * NUM_ENVS) + 0.1)
    sim.forward(ALL)
    assert sim.joint_acc[1].abs().sum() < 0.7 * sim.joint_acc[0].abs().sum()
    assert torch.equal(sim.joint_acc[2], sim.joint_acc[0])


def standing(sim: Simulation) -> Simulation:
    sim.step(400)
    assert sim.root_lin_vel_w.abs().max() < 0.05
    return sim


def test_the_feet_carry_the_robot_and_what_is_added_to_its_base():
    sim = make()
    mass = sim.default_parameter("body_mass").clone()
    mass[1, 0] += 1.0
    sim.set_parameter("body_mass", mass, ALL)
    standing(sim)
    on_feet = sim.contact_force_w[:, sim.body_ids(GO2.foot_names)].sum(1)
    weight = mass.sum(1) * 9.81
    assert torch.allclose(on_feet[:, 2], weight, rtol=0.01)
    assert (on_feet[:, :2].abs() < 0.02 * weight[:, None]).all()
    assert (on_feet[1, 2] - on_feet[0, 2]).item() == pytest.approx(9.81, rel=0.2)


def test_the_feet_below_the_centre_of_mass_carry_more():
    sim = make()
    com = sim.default_parameter("com").clone()
    com[1, 0, 0] += 0.05
    com[2, 0, 1] += 0.03
    sim.set_parameter("com", com, ALL)
    force = standing(sim).contact_force_w[:, sim.body_ids(GO2.foot_names), 2]
    front = force[:, [GO2.foot_names.index(name) for name in ("FR_foot", "FL_foot")]].sum(1)
    left = force[:, [GO2.foot_names.index(name) for name in ("FL_foot", "RL_foot")]].sum(1)
    assert front[1] > front[0] + 3.0
    assert left[2] > left[0] + 3.0


@ROBOTS
@pytest.mark.parametrize("friction", [0.1, 0.3, 0.6, 1.2])
def test_contacts_of_the_robot_have_the_friction_that_was_set(robot, friction):
    sim = make(robot)
    sim.set_parameter("friction", torch.tensor([friction]), torch.tensor([1]))
    sim.step(60)
    data = plain_data(sim, sim.batch.get_model(1), 1)
    assert data.ncon >= 2
    sliding = data.contact.friction[:, :2]
    assert np.allclose(sliding, friction, rtol=1e-6)
    unchanged = plain_data(sim, sim.batch.get_model(0), 0).contact.friction[:, :2]
    assert np.allclose(unchanged, sim.default_parameter("friction")[0].item(), rtol=1e-6)


def test_a_slippery_robot_slides_further():
    sim = make()
    sim.set_parameter("friction", torch.tensor([0.1, 0.2, 0.4]), ALL)
    sim.step(200)
    start = sim.foot_pos_w[..., 0].mean(1).clone()
    sim.push(ALL, torch.tensor([[0.6, 0.0, 0.0]] * NUM_ENVS))
    sim.step(80)
    ice, wet, dry = (sim.foot_pos_w[..., 0].mean(1) - start).tolist()
    assert ice > 1.5 * wet and wet > 1.5 * dry > 0.01


# --- state ------------------------------------------------------------------------------------------------------------


@ROBOTS
def test_a_saved_state_continues_exactly_also_in_a_fresh_simulation(robot, assert_same):
    sim = make(robot)
    random_parameters(sim)
    throw(sim)
    sim.forward(ALL)
    drive = targets(sim, 20)
    for target in drive[:10]:
        sim.set_joint_targets(target)
        sim.step(4)
    state, shown = sim.get_state(), quantities(sim)

    def go_on(simulation: Simulation) -> list:
        trace = []
        for target in drive[10:]:
            simulation.set_joint_targets(target)
            simulation.step(4)
            trace.append((*physics(simulation), quantities(simulation)))
        return trace

    expected = go_on(sim)
    for target_sim in (sim, make(robot)):
        target_sim.set_state(state)
        assert_same(quantities(target_sim), shown)
        assert_same(go_on(target_sim), expected)


def test_a_parameter_set_before_the_save_and_not_yet_in_force_acts_after_the_load(assert_same):
    sim, fresh = make(), make()
    sim.set_parameter("body_mass", 1.5 * sim.default_parameter("body_mass"), ALL)
    fresh.set_state(sim.get_state())
    for simulation in (sim, fresh):
        simulation.step(40)
    assert_same(physics(fresh), physics(sim))
    assert np.array_equal(
        fresh.batch.get_model(0).dof_invweight0, sim.batch.get_model(0).dof_invweight0
    )


@PARAMETERS
def test_default_parameters_remain_the_robots_own_in_a_fresh_simulation_that_loads_a_state(name):
    sim, fresh = make(), make()
    default = sim.default_parameter(name).clone()
    sim.set_parameter(name, default * 1.3 + 0.01, ALL)
    fresh.set_state(sim.get_state())
    assert torch.equal(fresh.default_parameter(name), default)
    assert torch.equal(fresh.get_parameter(name), default * 1.3 + 0.01)


@PARAMETERS
def test_a_parameter_set_after_the_save_is_undone_by_the_load(name):
    sim = make()
    state = sim.get_state()
    default = sim.default_parameter(name).clone()
    model = sim.batch.get_model(0)
    sim.set_parameter(name, default * 1.3 + 0.01, ALL)
    sim.step(4)
    sim.set_state(state)
    assert torch.equal(sim.get_parameter(name), default)
    restored = sim.batch.get_model(0)
    for field in (
        "geom_friction",
        "body_mass",
        "body_subtreemass",
        "body_ipos",
        "dof_armature",
        "actuator_gainprm",
    ):
        assert np.array_equal(getattr(restored, field), getattr(model, field)), field
    assert np.array_equal(restored.actuator_biasprm, model.actuator_biasprm)


def test_a_partial_reset_leaves_the_other_environments_bit_identical(assert_same):
    whole, partial = make(), make()
    traces = []
    for sim in (whole, partial):
        random_parameters(sim)
        throw(sim)
        sim.forward(ALL)
        trace = []
        for step, target in enumerate(targets(sim, 20)):
            if sim is partial and step == 8:
                second = torch.tensor([1])
                sim.reset(second)
                sim.set_parameter(
                    "body_mass", 1.1 * sim.default_parameter("body_mass")[second], second
                )
                sim.forward(second)
                assert sim.root_pos_w[1, 2].item() == pytest.approx(GO2.base_height)
            sim.set_joint_targets(target)
            sim.step(4)
            others = {name: value[[0, 2]] for name, value in quantities(sim).items()}
            trace.append((*(x[[0, 2]] for x in physics(sim)), others))
        traces.append(trace)
    assert_same(*traces)
    assert not np.array_equal(physics(whole)[0][1], physics(partial)[0][1])


# --- bad physics ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("log_elsewhere")
@pytest.mark.parametrize("field", ["qpos", "qvel"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e12])
def test_a_bad_number_is_noticed_in_its_environment_alone_and_spreads_to_no_other(
    field, value, assert_same
):
    healthy, sick = make(), make()
    for sim in (healthy, sick):
        throw(sim)
        sim.forward(ALL)
        sim.step(4)
    assert diverged(sick) == []
    sick.batch.bind(field)[1, 9] = value
    for sim in (healthy, sick):
        sim.step(4)
    assert diverged(sick) == [1]
    assert diverged(healthy) == []
    others = torch.tensor([0, 2])
    assert_same([x[others] for x in physics(sick)], [x[others] for x in physics(healthy)])
    sick.reset(torch.tensor([1]))
    sick.forward(torch.tensor([1]))
    sick.step(4)
    assert diverged(sick) == []
    assert all(torch.isfinite(value).all() for value in quantities(sick).values())


# --- rendering --------------------------------------------------------------------------------------------------------


def test_a_picture_shows_its_environment_and_leaves_the_physics_alone(assert_same):
    sim = make(num_envs=2)
    sim.write_root_state(
        torch.tensor([1]),
        torch.tensor([[0.0, 0.0, 0.6]]),
        torch.tensor([[0.0, 1.0, 0.0, 0.0]]),
        torch.zeros(1, 3),
        torch.zeros(1, 3),
    )
    before = sim.get_state()
    upright, upside_down = sim.render(0).copy(), sim.render(1).copy()
    assert_same(sim.get_state(), before)
    for image in (upright, upside_down):
        assert (image.shape, image.dtype) == ((480, 640, 3), np.uint8)
        assert image.std() > 10.0
        assert len(np.unique(image.reshape(-1, 3), axis=0)) > 500
    assert np.abs(upright.astype(int) - upside_down).max() > 50
    assert np.array_equal(sim.render(0), upright)
    assert sim.render(0, width=64, height=48).shape == (48, 64, 3)
    sim.close()
    sim.close()
    for use in (lambda: sim.step(1), lambda: sim.joint_pos, sim.render, sim.get_state):
        with pytest.raises(RuntimeError, match=r"close\(\)"):
            use()


@pytest.mark.render
def test_any_thread_can_draw_and_close():
    sim, other = make(), make()
    expected, failed = sim.render(0), []

    def draw(times: int) -> None:
        try:
            failed.extend(not np.array_equal(sim.render(0), expected) for _ in range(times))
        except Exception as error:
            failed.append(error)

    for times in (1, 3):
        threads = [threading.Thread(target=draw, args=(times,)) for _ in range(times)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        draw(1)
    assert len(failed) == 12 and not any(failed)
    closing = threading.Thread(target=sim.close)
    closing.start()
    closing.join()
    assert np.array_equal(other.render(0), expected)


def test_a_simulation_that_was_closed_frees_its_engine_at_once():
    sim = make()
    model, batch = weakref.ref(sim.model), weakref.ref(sim.batch)
    sim.close()
    assert model() is None and batch() is None and sim.closed
    with pytest.raises(AttributeError, match="'weather'"):
        _ = make().weather


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "device", "culprit"),
    [("bullet", "cpu", "bullet"), ("mujoco", "cuda", "cuda"), ("mujoco", "toaster", "toaster")],
)
def test_unknown_engines_and_devices_are_named(engine, device, culprit):
    with pytest.raises(ValueError, match=culprit):
        make_simulation(engine, GO2, SimCfg(), 2, device)


def test_unknown_parameters_bodies_and_environments_are_named():
    sim = make()
    with pytest.raises(ValueError, match=r"'stickiness'.*friction"):
        sim.get_parameter("stickiness")
    with pytest.raises(ValueError, match="'stickiness'"):
        sim.set_parameter("stickiness", torch.zeros(3), ALL)
    with pytest.raises(ValueError, match=r"'tail'.*FR_hip"):
        sim.body_ids(("base", "tail"))
    for env_id in (-1, NUM_ENVS):
        with pytest.raises(ValueError, match=str(env_id)):
            sim.render(env_id)


def test_a_parameter_of_the_wrong_shape_is_refused_and_nothing_changes():
    sim = make()
    before = sim.get_parameter("kp").clone()
    with pytest.raises(ValueError, match=r"'kp'.*\(2, 12\).*\(2, 11\)"):
        sim.set_parameter("kp", torch.zeros(2, 11), torch.tensor([0, 1]))
    assert torch.equal(sim.get_parameter("kp"), before)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["body_mass", "com", "kp"])
def test_a_parameter_that_is_not_finite_is_refused_and_nothing_changes(name, value):
    sim = make()
    before = sim.get_parameter(name).clone()
    with pytest.raises(ValueError, match=f"'{name}' must be finite"):
        sim.set_parameter(name, torch.full_like(before, value), torch.arange(len(before)))
    assert torch.equal(sim.get_parameter(name), before)


def test_a_state_of_another_batch_is_refused_and_nothing_changes(assert_same):
    sim = make()
    before = sim.get_state()
    for other in (make(num_envs=2), make(G1)):
        with pytest.raises(ValueError, match="shape"):
            sim.set_state(other.get_state())
    assert_same(sim.get_state(), before)


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        (lambda state: state.pop("rows"), "rows"),
        (lambda state: state.pop("outputs"), "outputs"),
        (lambda state: state["outputs"].pop("xpos"), r"outputs\.xpos"),
        (lambda state: state.update(warning=state["warning"][:2]), "warning"),
        (
            lambda state: state.update(constants_changed=np.zeros(2, dtype=bool)),
            r"constants_changed.*\(2,\).*\(3,\)",
        ),
        (
            lambda state: state["parameters"].update(body_mass=np.zeros((3, 2))),
            r"parameters\.body_mass",
        ),
        (
            lambda state: state["parameters"].update(stickiness=np.zeros(3)),
            r"parameters\.stickiness",
        ),
        (lambda state: state.update(weather=np.zeros(3)), "weather"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_by_its_entry_and_nothing_changes(
    change, culprit, assert_same
):
    sim = make()
    random_parameters(sim)
    sim.step(3)
    before = sim.get_state()
    wrong = sim.get_state()
    wrong["rows"] += 1.0
    change(wrong)
    with pytest.raises(ValueError, match=culprit):
        sim.set_state(wrong)
    assert_same(sim.get_state(), before)


class OtherEngine(MujocoSimulation):
    """An engine in a separate module."""


def test_an_engine_is_imported_when_it_is_first_asked_for(monkeypatch):
    code = "import sys, legged_envs.sim; print(sorted(name for name in sys.modules if name.split('.')[0] == 'mujoco'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    for engine in (f"{__name__}:OtherEngine", OtherEngine):
        monkeypatch.setitem(ENGINES, "other", engine)
        assert type(make_simulation("other", GO2, SimCfg(), 1, "cpu")) is OtherEngine
    with pytest.raises(
        ValueError, match=r"sim='bullet'.*'mujoco', 'mujoco_warp', 'genesis', 'other'"
    ):
        make_simulation("bullet", GO2, SimCfg(), 1, "cpu")


def test_a_robot_whose_joints_are_not_those_of_its_model_is_refused():
    names = ("front_left_elbow", *GO2.joint_names[1:])
    mirror = tuple(
        ("front_left_elbow" if name == GO2.joint_names[0] else name, sign)
        for name, sign in GO2.mirror
    )
    with pytest.raises(ValueError, match="front_left_elbow"):
        make(dataclasses.replace(GO2, joint_names=names, mirror=mirror))


def held_by_the_engine(sim: Simulation) -> dict[str, torch.Tensor]:
    """Read all quantities except velocities of bodies from the engine's arrays."""

    def held(field: str) -> torch.Tensor:
        return torch.tensor(np.array(sim.batch.bind(field))).float()

    feet = [sim.model.site(f"{foot}_site").id for foot in sim.robot.foot_names]
    qpos, qvel = held("qpos"), held("qvel")
    velocities = [sim.model.sensor(f"{foot}_lin_vel").adr[0] for foot in sim.robot.foot_names]
    return {
        "root_pos_w": qpos[:, :3],
        "root_quat_w": qpos[:, 3:7],
        "root_lin_vel_w": qvel[:, :3],
        "root_ang_vel_b": qvel[:, 3:6],
        "joint_pos": qpos[:, 7:],
        "joint_vel": qvel[:, 6:],
        "joint_acc": held("qacc")[:, 6:],
        "joint_torque": held("actuator_force"),
        "body_pos_w": held("xpos")[:, 1:],
        "body_quat_w": held("xquat")[:, 1:],
        "body_ang_vel_w": held("cvel")[:, 1:, :3],
        "contact_force_w": held("cfrc_ext")[:, 1:, 3:],
        "foot_pos_w": held("site_xpos")[:, feet],
        "foot_lin_vel_w": torch.stack(
            [held("sensordata")[:, first : first + 3] for first in velocities], dim=1
        ),
    }


def test_after_a_change_of_few_robots_of_many_every_quantity_is_what_the_engine_holds(assert_same):
    sim = make_simulation("mujoco", GO2, SimCfg(), 200, "cpu")
    one, other = torch.tensor([5]), torch.tensor([150, 151])

    def check():
        expected = held_by_the_engine(sim)
        assert_same({name: getattr(sim, name) for name in expected}, expected)

    check()
    sim.step(4)
    check()
    sim.reset(one)
    sim.write_joint_state(one, sim.joint_pos[one] + 0.1, torch.ones(1, 12))
    check()
    sim.forward(one)
    check()
    sim.push(other, torch.ones(2, 3))
    sim.reset(one)
    check()
    sim.forward(one)
    sim.forward(other)
    check()
