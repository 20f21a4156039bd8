"""The robot models against an independent rigid-body computation from the manufacturers' published figures."""

import csv
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from legged_envs.robots import GO2, ROBOTS, RobotCfg

each_robot = pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
GRAVITY = 9.81


@dataclass(frozen=True)
class Link:
    """One row of a published table: placement in the parent, mass properties, and the joint that moves the link."""

    name: str
    parent: str | None
    pos: tuple[float, float, float]
    quat: tuple[float, float, float, float]
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, float, float]
    inertia_quat: tuple[float, float, float, float]
    axis: tuple[float, float, float]
    armature: float
    low: float
    high: float
    torque: float
    velocity: float


_NUMBERS = (3, 4, 1, 3, 3, 4, 3, 1, 1, 1, 1, 1)
"""How many numbers each field of :class:`Link` has, from ``pos`` on."""


# --- Published figures ------------------------------------------------------------------------------------------------


def read_links(name: str) -> list[Link]:
    """The links of ``facts/<name>.csv``, the base first, then in the order of the joints that move them. Cells are the
    fields of :class:`Link` one after another; an empty one is 0. Lines that begin with # are comments."""
    lines = (Path(__file__).parents[1] / "facts" / f"{name}.csv").read_text().splitlines()
    links: list[Link] = []
    for link, parent, *cells in list(
        csv.reader(line for line in lines if not line.startswith("#"))
    )[1:]:
        numbers = iter([float(cell or 0.0) for cell in cells])
        values = [next(numbers) if n == 1 else tuple(islice(numbers, n)) for n in _NUMBERS]
        assert len(cells) == sum(_NUMBERS), f"{name}.csv has {len(cells)} numbers for {link}"
        links.append(Link(link, parent if links else None, *values))
    return links


Points = tuple[tuple[float, float, float], ...]


BALL_OF_A_SOLE = 0.02
"""Smaller balls, as published, catch on the inner edges of a height field."""


@dataclass(frozen=True)
class Published:
    """Published facts about one robot, in addition to its table of links."""

    total_mass: float
    contact_link: str
    """Link that carries a foot, with ``{}`` for the foot's prefix."""
    contact_centres: dict[str, Points]
    """Centres of each foot's contact shapes in the frame of that link."""
    contact_size: tuple[float, ...]
    """Size of each of these shapes as MuJoCo has it: the radius of a sphere, that and half the width of a wheel."""
    asymmetry: tuple[float, float, float] = (2e-4, 2e-3, 1e-2)
    """By how much the mass matrix and its mirror image differ at most, in the joints of the limbs, in all joints, and
    in these and the base: the published figures are not quite symmetric."""


_TRUNK = (3e-4, 2e-3, 2.5e-2)  # whose centre of mass is up to 2 mm off the middle
_UNITREE_FEET = ("FR_foot", "FL_foot", "RR_foot", "RL_foot")
_ANYMAL_FEET = {"LF_FOOT": (1, 1), "RF_FOOT": (1, -1), "LH_FOOT": (-1, 1), "RH_FOOT": (-1, -1)}


def _soles(*centres: tuple[float, float, float]) -> dict[str, Points]:
    return dict.fromkeys(("left_foot", "right_foot"), centres)


_G1_FEET = _soles(
    (-0.05, 0.025, -0.03), (-0.05, -0.025, -0.03), (0.12, 0.03, -0.03), (0.12, -0.03, -0.03)
)
_TRON1_FEET = ("L_foot", "R_foot")
_TRON1_SOLE = (
    (-0.075, 0.021, -0.0499),
    (-0.075, -0.021, -0.0499),
    (0.09, 0.021, -0.0499),
    (0.09, -0.021, -0.0499),
)

PUBLISHED = {
    # URDF of legged_gym without `imu_link`, 0.001 kg, and its like.
    "a1": Published(
        12.453, "{}_calf", dict.fromkeys(_UNITREE_FEET, ((0.0, 0.0, -0.2),)), (0.02,), _TRUNK
    ),
    "anymal_c": Published(  # URDF of legged_gym
        52.13487,
        "{}_SHANK",
        {foot: ((0.08795 * x, 0.01305 * y, -0.31547),) for foot, (x, y) in _ANYMAL_FEET.items()},
        (0.03,),
        _TRUNK,
    ),
    "g1": Published(32.1069, "{}_ankle_roll_link", _G1_FEET, (0.005,)),  # MJCF of unitree_rl_gym
    # MJCF of unitree_ros `g1_29dof_rev_1_0` and mujoco_menagerie (soles).
    "g1_29": Published(33.34114, "{}_ankle_roll_link", _G1_FEET, (0.005,)),
    # MJCF of mjlab.
    "go1": Published(
        12.74345, "{}_calf", dict.fromkeys(_UNITREE_FEET, ((0.0, 0.0, -0.213),)), (0.023,), _TRUNK
    ),
    # MJCF of unitree_mujoco.
    "go2": Published(
        15.20641, "{}_calf", dict.fromkeys(_UNITREE_FEET, ((-0.002, 0.0, -0.213),)), (0.022,)
    ),
    # MJCF of mujoco_menagerie: where the capsules of a sole meet the ground. The torso's mass is 3 mm off centre.
    "h1": Published(
        51.437,
        "{}_ankle_link",
        _soles(
            (-0.035, 0.0, -0.056), (0.115, 0.0, -0.056), (0.14, 0.03, -0.056), (0.14, -0.03, -0.056)
        ),
        (0.014,),
        (2e-4, 2e-3, 0.11),
    ),
    # MJCF of booster_assets: the corners of a sole's box of 0.18 x 0.07 x 0.036 m about (0.026, 0, -0.02).
    "k1": Published(
        19.666,
        "{}_foot_link",
        _soles(
            (-0.059, 0.03, -0.033),
            (-0.059, -0.03, -0.033),
            (0.111, 0.03, -0.033),
            (0.111, -0.03, -0.033),
        ),
        (0.005,),
        (2e-4, 2e-3, 1.1e-2),
    ),
    # MJCF of booster_assets (mass) and mujoco_menagerie (the corners of a sole's box of 0.223 x 0.1 x 0.03 m about
    # (0.01, 0, -0.015)). The mass of a shank is at 124 mm below the knee on the left, at 123 mm on the right.
    "t1": Published(
        31.73996,
        "{}_foot_link",
        _soles(
            (-0.0965, 0.045, -0.025),
            (-0.0965, -0.045, -0.025),
            (0.1165, 0.045, -0.025),
            (0.1165, -0.045, -0.025),
        ),
        (0.005,),
        (2e-3, 3e-3, 1e-2),
    ),
    # URDF (points) and MJCF (wheels) of LimX's robot-description; the corners of the mesh's sole there.
    "tron1_pf": Published(
        18.593002, "knee_{}_Link", dict.fromkeys(_TRON1_FEET, ((0.15, 0.0, -0.25981),)), (0.032,)
    ),
    "tron1_sf": Published(
        20.813, "ankle_{}_Link", dict.fromkeys(_TRON1_FEET, _TRON1_SOLE), (0.01,)
    ),
    "tron1_wf": Published(
        22.273,
        "wheel_{}_Link",
        {"L_foot": ((0.0, 0.008, 0.0),), "R_foot": ((0.0, -0.008, 0.0),)},
        (0.127, 0.005),
    ),
}
TIPS = ("tron1_pf", "tron1_sf", "tron1_wf")
"""Robots that tip over unless their base is kept upright: on two points, on short soles that give, on two wheels."""
LINKS = {name: read_links(name) for name in ROBOTS}
SINKS = {"anymal_c": (0.02, 0.06), "tron1_pf": (0.015, 0.04)}
"""By how much robots sink, held stiffly and on their own gains, m, where it is more than 0.01 and 0.04: ANYmal C stands
wide and is heavy for its gains, TRON1 stands on two points."""


# --- Independent rigid-body computation -------------------------------------------------------------------------------


def rotation(quat: Any) -> np.ndarray:
    """Rotation matrix of a (w, x, y, z) quaternion."""
    w, x, y, z = np.asarray(quat, dtype=float) / np.linalg.norm(quat)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def axis_rotation(axis: Any, angle: float) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def link_frames(links: list[Link], qpos: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """World position and rotation of every link."""
    frames = {}
    angles = iter(qpos[7:])
    for link in links:
        if link.parent is None:
            frames[link.name] = qpos[:3].copy(), rotation(qpos[3:7])
        else:
            pos, rot = frames[link.parent]
            frames[link.name] = (
                pos + rot @ np.asarray(link.pos),
                rot @ rotation(link.quat) @ axis_rotation(link.axis, next(angles)),
            )
    return frames


def mass_matrix(links: list[Link], qpos: np.ndarray) -> np.ndarray:
    """M(q) = Σ m JᵥᵀJᵥ + JωᵀIJω + armature, with MuJoCo's free joint (world linear, base-frame angular velocity)."""
    frames = link_frames(links, qpos)
    column = {link.name: 5 + i for i, link in enumerate(links) if link.parent is not None}
    parent = {link.name: link.parent for link in links}
    by_name = {link.name: link for link in links}
    total = np.diag([0.0] * 6 + [link.armature for link in links[1:]])
    for link in links:
        pos, rot = frames[link.name]
        com = pos + rot @ np.asarray(link.com)
        linear, angular = np.zeros((3, len(total))), np.zeros((3, len(total)))
        base_pos, base_rot = frames[links[0].name]
        linear[:, :3] = np.eye(3)
        angular[:, 3:6] = base_rot
        linear[:, 3:6] = np.cross(base_rot.T, com - base_pos).T
        moving: str | None = link.name
        while moving in column:
            joint_pos, joint_rot = frames[moving]
            axis = joint_rot @ np.asarray(by_name[moving].axis)
            angular[:, column[moving]] = axis
            linear[:, column[moving]] = np.cross(axis, com - joint_pos)
            moving = parent[moving]
        principal = rot @ rotation(link.inertia_quat)
        inertia = principal @ np.diag(link.inertia) @ principal.T
        total += link.mass * linear.T @ linear + angular.T @ inertia @ angular
    return total


# --- Model under test -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=ROBOTS.values(), ids=ROBOTS)
def loaded(request: pytest.FixtureRequest) -> tuple[RobotCfg, mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_path(str(request.param.path))
    return request.param, model, mujoco.MjData(model)


def random_qpos(model: mujoco.MjModel, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    quat = rng.normal(size=4)
    ranges = np.where(model.jnt_limited[1:, None], model.jnt_range[1:], (-np.pi, np.pi))
    joints = rng.uniform(ranges[:, 0], ranges[:, 1])
    return np.concatenate([rng.normal(size=3), quat / np.linalg.norm(quat), joints])


def standing_qpos(robot: RobotCfg) -> np.ndarray:
    return np.array([0.0, 0.0, robot.base_height, 1.0, 0.0, 0.0, 0.0, *robot.default_joint_pos])


def full_mass_matrix(model: mujoco.MjModel, data: mujoco.MjData, qpos: np.ndarray) -> np.ndarray:
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    matrix = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, matrix)
    return matrix


def collision_geoms(model: mujoco.MjModel) -> list[int]:
    return [g for g in range(model.ngeom) if model.geom_contype[g] or model.geom_conaffinity[g]]


def lowest_point(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> float:
    """Height of the lowest point of a sphere, a capsule, a cylinder or a box."""
    size, (x, y, z) = model.geom_size[geom], abs(data.geom_xmat[geom].reshape(3, 3)[2])
    depths = {
        mujoco.mjtGeom.mjGEOM_SPHERE: size[0],
        mujoco.mjtGeom.mjGEOM_CAPSULE: size[0] + size[1] * z,
        mujoco.mjtGeom.mjGEOM_CYLINDER: size[0] * np.hypot(x, y) + size[1] * z,
        mujoco.mjtGeom.mjGEOM_BOX: size @ (x, y, z),
    }
    return float(data.geom_xpos[geom, 2] - depths[mujoco.mjtGeom(model.geom_type[geom])])


def mirrored_joints(robot: RobotCfg, joints: np.ndarray) -> np.ndarray:
    index = [robot.joint_names.index(partner) for partner, _ in robot.mirror]
    return joints[index] * np.array([sign for _, sign in robot.mirror])


def test_masses_are_the_published_ones(loaded) -> None:
    robot, model, _ = loaded
    masses = {model.body(b).name: model.body_mass[b] for b in range(1, model.nbody)}
    assert masses == pytest.approx(
        {link.name: link.mass for link in LINKS[robot.name]} | dict.fromkeys(robot.foot_names, 0)
    )
    assert sum(masses.values()) == pytest.approx(PUBLISHED[robot.name].total_mass, abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_mass_matrix_at_random_poses(loaded, seed: int) -> None:
    robot, model, data = loaded
    qpos = random_qpos(model, seed)
    expected = mass_matrix(LINKS[robot.name], qpos)
    np.testing.assert_allclose(full_mass_matrix(model, data, qpos), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_feet_are_where_the_published_contact_points_are(loaded, seed: int) -> None:
    robot, model, data = loaded
    published = PUBLISHED[robot.name]
    data.qpos[:] = random_qpos(model, seed)
    mujoco.mj_forward(model, data)
    frames = link_frames(LINKS[robot.name], data.qpos)
    for foot in robot.foot_names:
        pos, rot = frames[published.contact_link.format(foot.rpartition("_")[0])]
        centres = pos + np.asarray(published.contact_centres[foot]) @ rot.T
        geoms = [g for g in collision_geoms(model) if model.body(model.geom_bodyid[g]).name == foot]
        sizes = (BALL_OF_A_SOLE,) if len(centres) > 1 else published.contact_size
        raised = (sizes[0] - published.contact_size[0]) * rot[
            :, 2
        ]  # so that they end where the published ones end
        np.testing.assert_allclose(data.geom_xpos[geoms], centres + raised, atol=1e-8)
        for size in model.geom_size[geoms]:
            assert size[size > 0] == pytest.approx(sizes)
        np.testing.assert_allclose(data.body(foot).xpos, centres.mean(axis=0), atol=1e-8)
        np.testing.assert_allclose(data.site(f"{foot}_site").xpos, centres.mean(axis=0), atol=1e-8)


def test_limits_are_the_published_ones(loaded) -> None:
    robot, model, _ = loaded
    links = LINKS[robot.name][1:]
    assert list(model.jnt_limited[1:]) == [link.low < link.high for link in links]
    np.testing.assert_allclose(model.jnt_range[1:], [(link.low, link.high) for link in links])
    assert robot.torque_limits == pytest.approx([link.torque for link in links])
    assert robot.velocity_limits == pytest.approx([link.velocity for link in links])
    for link, position in zip(links, robot.default_joint_pos, strict=True):
        assert link.low < position < link.high or not link.low < link.high


def test_names_agree_with_the_model(loaded) -> None:
    robot, model, _ = loaded
    assert tuple(model.joint(j).name for j in range(model.njnt)) == ("root", *robot.joint_names)
    assert model.body(model.joint("root").bodyid[0]).name == robot.base_body
    assert model.body(model.site("imu").bodyid[0]).name == robot.base_body
    touching = {model.body(model.geom_bodyid[g]).name for g in collision_geoms(model)}
    assert {*robot.foot_names, *robot.penalized_bodies, *robot.termination_bodies} == touching
    assert model.camera("track").mode[0] == mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM


def test_feet_are_welded(loaded) -> None:
    robot, model, _ = loaded
    for foot in robot.foot_names:
        assert model.body(foot).jntnum[0] == 0


def test_only_cheap_collision_shapes_that_meet_the_ground_alone(loaded) -> None:
    robot, model, _ = loaded
    geoms = collision_geoms(model)
    wheels = {mujoco.mjtGeom.mjGEOM_CYLINDER} if robot.wheels else set()
    cheap = {mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE} | wheels
    assert {int(model.geom_type[g]) for g in geoms} <= cheap
    assert len(geoms) <= (15 if robot.num_joints <= 12 else 22), "three on each arm"
    assert not model.geom_contype.any(), "self collision"
    assert (model.geom_group[geoms] == 3).all()
    assert set(model.geom_group[[g for g in range(model.ngeom) if g not in geoms]]) == {2}
    assert model.nmesh == 0
    assert not model.dof_frictionloss.any(), "dry friction costs constraint rows"


def test_base_height_puts_the_feet_on_the_ground(loaded) -> None:
    robot, model, data = loaded
    data.qpos[:] = standing_qpos(robot)
    mujoco.mj_forward(model, data)
    lowest = {model.geom(g).name: lowest_point(model, data, g) for g in collision_geoms(model)}
    feet = [
        z
        for name, z in lowest.items()
        if model.body(model.geom(name).bodyid[0]).name in robot.foot_names
    ]
    others = [
        z
        for name, z in lowest.items()
        if model.body(model.geom(name).bodyid[0]).name not in robot.foot_names
    ]
    np.testing.assert_allclose(feet, 0.0, atol=1e-3)
    assert min(others) > 0.02
    for foot in robot.foot_names:
        assert data.body(foot).xpos[2] == pytest.approx(robot.foot_radius, abs=1e-3)
    assert model.body(robot.base_body).pos[2] == robot.base_height


@pytest.mark.parametrize("seed", range(3))
def test_mirror_swaps_left_and_right(loaded, seed: int) -> None:
    robot, model, data = loaded
    reflect = np.array([1.0, -1.0, 1.0])
    upright = standing_qpos(robot)[:7]
    joints = random_qpos(model, seed)[7:]
    mirrored = mirrored_joints(robot, joints)

    matrix = full_mass_matrix(model, data, np.concatenate([upright, joints]))
    feet = np.array([data.body(foot).xpos for foot in robot.foot_names])
    mirrored_matrix = full_mass_matrix(model, data, np.concatenate([upright, mirrored]))
    mirrored_feet = np.array([data.body(foot).xpos for foot in robot.foot_names])

    np.testing.assert_allclose(mirrored_feet, feet[list(robot.foot_mirror)] * reflect, atol=1e-8)
    sign = np.concatenate([reflect, -reflect, [s for _, s in robot.mirror]])
    index = [*range(6), *(6 + robot.joint_names.index(partner) for partner, _ in robot.mirror)]
    expected = sign[:, None] * matrix[np.ix_(index, index)] * sign
    asymmetry = PUBLISHED[robot.name].asymmetry
    limbs = [6 + i for i, joint in enumerate(robot.joint_names) if robot.mirror[i][0] != joint]
    within = np.ix_(limbs, limbs)  # between these and the base is the waist
    np.testing.assert_allclose(mirrored_matrix[within], expected[within], atol=asymmetry[0])
    np.testing.assert_allclose(mirrored_matrix[6:, 6:], expected[6:, 6:], atol=asymmetry[1])
    np.testing.assert_allclose(mirrored_matrix, expected, atol=asymmetry[2])


@each_robot
def test_pose_gains_and_limits_are_symmetric(robot: RobotCfg) -> None:
    np.testing.assert_array_equal(
        mirrored_joints(robot, np.asarray(robot.default_joint_pos)), robot.default_joint_pos
    )
    partner = [robot.joint_names.index(name) for name, _ in robot.mirror]
    for values in (robot.kp, robot.kd, robot.torque_limits, robot.velocity_limits):
        assert [values[j] for j in partner] == list(values)


def on_ground(
    robot: RobotCfg, kp: Sequence[float], kd: Sequence[float], upright: bool = False
) -> mujoco.MjModel:
    """The robot with PD actuators on flat ground; ``upright`` lets its base move up and down only."""
    spec = mujoco.MjSpec.from_file(str(robot.path))
    spec.option.timestep = 0.005
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    floor = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    floor.contype, floor.conaffinity = 1, 0
    if upright:
        spec.joint("root").type, spec.joint("root").axis = mujoco.mjtJoint.mjJNT_SLIDE, [0, 0, 1]
    for joint, p, d in zip(robot.joint_names, kp, kd, strict=True):
        spec.add_actuator(target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT).set_to_position(
            kp=p, kv=d
        )
    return spec.compile()


@each_robot
def test_weight_rests_on_the_foot_bodies(robot: RobotCfg) -> None:
    """Held stiffly in its standing pose the robot stands for 2 s, and the contact forces on its feet carry it."""
    model = on_ground(
        robot, [1000.0] * robot.num_joints, [50.0] * robot.num_joints, upright=robot.name in TIPS
    )
    data = mujoco.MjData(model)
    data.qpos[-robot.num_joints :] = robot.default_joint_pos
    data.ctrl[:] = robot.default_joint_pos
    mujoco.mj_step(model, data, 400)
    mujoco.mj_rnePostConstraint(model, data)
    forces = np.array([data.body(foot).cfrc_ext[5] for foot in robot.foot_names])
    assert data.body(robot.base_body).xpos[2] == pytest.approx(
        robot.base_height, abs=SINKS.get(robot.name, (0.01, 0.04))[0]
    )
    assert data.body(robot.base_body).xmat[8] > 0.99
    assert (forces > 0).all()
    assert forces.sum() == pytest.approx(PUBLISHED[robot.name].total_mass * GRAVITY, rel=0.01)


@each_robot
def test_own_gains_and_torques_carry_the_weight(robot: RobotCfg) -> None:
    """Kept from tipping, the robot stands for 2 s on its own gains: it sags a little, far from its torque limits.

    Free, G1 tips over: 2 · 40 N m/rad in the ankles are less than the m g h of 220 N m/rad that balance would take.
    """
    model = on_ground(robot, robot.kp, robot.kd, upright=True)
    data = mujoco.MjData(model)
    data.qpos[:] = [0.0, *robot.default_joint_pos]
    data.ctrl[:] = robot.default_joint_pos
    mujoco.mj_step(model, data, 400)
    assert -SINKS.get(robot.name, (0.01, 0.04))[1] < data.qpos[0] < 0.0
    assert abs(data.qpos[1:] - robot.default_joint_pos)[np.asarray(robot.kp) > 0.0].max() < 0.2
    assert abs(data.qvel).max() < 0.05
    assert (abs(data.actuator_force) < 0.5 * np.asarray(robot.torque_limits)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joint_names": ()}, "joint_names"),
        ({"kp": (20.0,) * 11}, "kp.* 11 .*joint_names.* 12"),
        ({"foot_mirror": (1, 0, 3)}, "foot_mirror.* 3 .*foot_names.* 4"),
        ({"joint_names": ("FR_hip_joint",) * 12}, "joint_names.*'FR_hip_joint'"),
        ({"foot_names": ("FR_foot", "FL_foot", "RR_foot", "FR_foot")}, "foot_names.*'FR_foot'"),
        ({"mirror": (("nose_joint", 1.0), *GO2.mirror[1:])}, "'FR_hip_joint'.*'nose_joint'"),
        ({"mirror": (("FL_hip_joint", 0.5), *GO2.mirror[1:])}, "sign.*'FR_hip_joint'.* 0.5"),
        ({"mirror": (("RL_hip_joint", -1.0), *GO2.mirror[1:])}, "mirror.*inverse.*'FR_hip_joint'"),
        ({"mirror": (("FL_hip_joint", 1.0), *GO2.mirror[1:])}, "mirror.*inverse.*'FR_hip_joint'"),
        ({"foot_mirror": (1, 2, 3, 0)}, "foot_mirror.*'FR_foot'"),
        ({"foot_mirror": (4, 0, 3, 2)}, "foot_mirror.*'FR_foot'"),
        (
            {"torque_limits": (0.0, *GO2.torque_limits[1:])},
            "torque_limits.*'FR_hip_joint'.* 0, got 0.0",
        ),
        ({"kd": (-0.5, *GO2.kd[1:])}, "kd.*'FR_hip_joint'.* 0, got -0.5"),
        ({"default_joint_pos": (float("nan"),) * 12}, "default_joint_pos.*'FR_hip_joint'.*nan"),
        ({"actuators": ("position",) * 11}, "actuators.* 11 .*joint_names.* 12"),
        (
            {"actuators": ("muscle",) * 12},
            "actuators.*'FR_hip_joint'.*'position', 'velocity', 'torque'.*'muscle'",
        ),
        (
            {"actuators": ("position", "velocity", *("position",) * 10)},
            "kp.*'FR_thigh_joint'.*velocity.* 0, got 40.0",
        ),
        (
            {"actuators": ("torque", *("position",) * 11), "kp": (0.0, *GO2.kp[1:])},
            "kd.*'FR_hip_joint'.*torque.* 0, got 1.0",
        ),
        (
            {
                "actuators": ("velocity", *("position",) * 11),
                "kp": (0.0, *GO2.kp[1:]),
                "kd": (0.0, *GO2.kd[1:]),
            },
            "kd.*'FR_hip_joint'.*velocity.*positive, got 0.0",
        ),
        ({"kp": 20.0}, r"kp.*\(20.0,\) \* 12, got 20.0"),
        ({"default_joint_pos": None}, r"default_joint_pos.*\(None,\) \* 12, got None"),
        ({"termination_bodies": "base"}, r"termination_bodies.*\('base',\), got 'base'"),
        ({"base_height": 0.0}, "base_height.* 0, got 0.0"),
    ],
)
def test_a_contradictory_description_names_the_culprit(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"'go2'.*{message}"):
        replace(GO2, **change)


def test_importing_the_robots_is_light() -> None:
    code = "import sys, legged_envs.robots; print(sorted({'mujoco', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_lists_become_tuples():
    robot = replace(GO2, kp=[40.0] * 12, mirror=[list(pair) for pair in GO2.mirror])
    assert robot == replace(GO2, kp=(40.0,) * 12) and hash(robot) == hash(
        replace(GO2, kp=(40.0,) * 12)
    )
