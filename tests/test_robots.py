"""The robot models against an independent rigid-body computation from the manufacturers' published figures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
import pytest

from legged_envs.robots import G1, G1_29, GO2, RobotCfg

ROBOTS = pytest.mark.parametrize("robot", [GO2, G1, G1_29], ids=lambda robot: robot.name)
GRAVITY = 9.81


@dataclass(frozen=True)
class Link:
    """One row of a published table: placement in the parent, mass properties, and the joint that moves the link."""

    name: str
    parent: str | None
    pos: tuple[float, float, float]
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, float, float]
    inertia_quat: tuple[float, float, float, float]
    axis: tuple[float, float, float] = (0.0, 0.0, 0.0)
    armature: float = 0.0
    range: tuple[float, float] = (0.0, 0.0)
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)


# --- Published figures ------------------------------------------------------------------------------------------------


def go2_links() -> list[Link]:
    """Go2: MJCF of unitree_mujoco / mujoco_menagerie; armature 0.01 from there, calf 0.02 from unitree_rl_mjlab."""
    hip_quat = {
        "FR": (0.49823689, 0.50546189, 0.49924489, 0.49701389),
        "FL": (0.49701389, 0.49924489, 0.50546189, 0.49823689),
        "RR": (0.49924489, 0.49701389, 0.49823689, 0.50546189),
        "RL": (0.50546189, 0.49823689, 0.49701389, 0.49924489),
    }
    thigh_quat = {
        "R": (0.55162291, -0.020063197, 0.084763487, 0.82953287),
        "L": (0.82953287, 0.084763487, -0.020063197, 0.55162291),
    }
    calf_quat = {
        "R": (0.70350771, -0.0045008681, 0.0015409894, 0.71067171),
        "L": (0.71067171, 0.0015409894, -0.0045008681, 0.70350771),
    }
    thigh_range = {"F": (-1.5708, 3.4907), "R": (-0.5236, 4.5379)}
    x, y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    links = [
        Link(
            "base",
            None,
            (0.0, 0.0, 0.0),
            6.921,
            (0.021112, 0.0, -0.005366),
            (0.107027, 0.0980771, 0.0244531),
            (-0.00054347102, 0.71343502, -0.0017376901, 0.70071902),
        )
    ]
    for leg in ("FR", "FL", "RR", "RL"):
        end, side = leg
        f, s = (1.0 if end == "F" else -1.0), (1.0 if side == "L" else -1.0)
        hip, thigh, calf = f"{leg}_hip", f"{leg}_thigh", f"{leg}_calf"
        hip_com, hip_inertia = (-0.0054 * f, 0.00194 * s, -0.000105), (0.00088403, 0.000596003, 0.000479967)
        thigh_com, thigh_inertia = (-0.00374, -0.0223 * s, -0.0327), (0.00594973, 0.00584149, 0.000878787)
        calf_com, calf_inertia = (0.00629595, -0.000622121 * s, -0.141417), (0.0014901, 0.00146356, 5.31397e-05)
        hip_pos, thigh_pos, calf_pos = (0.1934 * f, 0.0465 * s, 0.0), (0.0, 0.0955 * s, 0.0), (0.0, 0.0, -0.213)
        hip_range, calf_range = (-1.0472, 1.0472), (-2.7227, -0.83776)
        links += [
            Link(hip, "base", hip_pos, 0.678, hip_com, hip_inertia, hip_quat[leg], x, 0.01, hip_range),
            Link(thigh, hip, thigh_pos, 1.152, thigh_com, thigh_inertia, thigh_quat[side], y, 0.01, thigh_range[end]),
            Link(calf, thigh, calf_pos, 0.241352, calf_com, calf_inertia, calf_quat[side], y, 0.02, calf_range),
        ]
    return links


def g1_legs() -> list[Link]:
    """G1's legs: MJCF `g1_12dof` of unitree_rl_gym, `g1_29dof_rev_1_0` of unitree_ros has the same; armature from
    LeggedGym-Ex `G1RoughCfg`."""
    roll_quat = {
        "left": (0.97780777, -1.9711895e-05, 0.20557595, -0.040379291),
        "right": (0.97780777, 1.9711895e-05, 0.20557595, 0.040379291),
    }
    yaw_quat = {
        "left": (0.60059792, 0.15831998, 0.22348197, 0.7511809),
        "right": (0.7511809, 0.22348197, 0.15831998, 0.60059792),
    }
    knee_inertia = {"left": (0.0113804, 0.0112778, 0.00146458), "right": (0.011374, 0.0112843, 0.00146452)}
    knee_quat = {
        "left": (0.92341787, -0.032769895, 0.015824598, 0.38206695),
        "right": (0.92343889, 0.034527596, 0.011633299, -0.38201195),
    }
    roll_range = {"left": (-0.5236, 2.9671), "right": (-2.9671, 0.5236)}
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    links = []
    for side in ("left", "right"):
        s = 1.0 if side == "left" else -1.0
        names = [f"{side}_{part}_link" for part in ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch")]
        hip_pitch, hip_roll, hip_yaw, knee, ankle_pitch = names
        links += [
            Link(
                hip_pitch,
                "pelvis",
                (0.0, 0.064452 * s, -0.1027),
                1.35,
                (0.002741, 0.047791 * s, -0.02606),
                (0.00181517, 0.00153422, 0.00116212),
                (0.95486247, 0.29396415 * s, 0.030255615, 0.030122015 * s),
                y,
                0.0101775,
                (-2.5307, 2.8798),
            ),
            Link(
                hip_roll,
                hip_pitch,
                (0.0, 0.052 * s, -0.030465),
                1.52,
                (0.029812, -0.001045 * s, -0.087934),
                (0.00254986, 0.00241169, 0.00148755),
                roll_quat[side],
                x,
                0.0251019,
                roll_range[side],
                quat=(0.99617869, 0.0, -0.087338572, 0.0),
            ),
            Link(
                hip_yaw,
                hip_roll,
                (0.025001, 0.0, -0.12412),
                1.702,
                (-0.057709, -0.010981 * s, -0.15078),
                (0.00776166, 0.00717575, 0.00160139),
                yaw_quat[side],
                z,
                0.0101775,
                (-2.7576, 2.7576),
            ),
            Link(
                knee,
                hip_yaw,
                (-0.078273, 0.0021489 * s, -0.17734),
                1.932,
                (0.005457, 0.003964 * s, -0.12074),
                knee_inertia[side],
                knee_quat[side],
                y,
                0.0251019,
                (-0.087267, 2.8798),
                quat=(0.99617869, 0.0, 0.087338572, 0.0),
            ),
            Link(
                ankle_pitch,
                knee,
                (0.0, -9.4445e-05 * s, -0.30001),
                0.074,
                (-0.007269, 0.0, 0.011137),
                (1.89e-05, 1.40805e-05, 6.9195e-06),
                (0.60305299, 0.36922499, 0.36922499, 0.60305299),
                y,
                0.00721945,
                (-0.87267, 0.5236),
            ),
            Link(
                f"{side}_ankle_roll_link",
                ankle_pitch,
                (0.0, 0.0, -0.017558),
                0.608,
                (0.026505, 0.0, -0.016425),
                (0.00167218, 0.0016161, 0.000217621),
                (-0.00048109183 * s, 0.72848175, -0.00061896679 * s, 0.68506476),
                x,
                0.00721945,
                (-0.2618, 0.2618),
            ),
        ]
    return links


def g1_links() -> list[Link]:
    """G1 with 12 joints: MJCF `g1_12dof` of unitree_rl_gym."""
    pelvis = Link(
        "pelvis",
        None,
        (0.0, 0.0, 0.0),
        17.7349,
        (0.0144905, 0.000151462, 0.144068),
        (0.552723, 0.454092, 0.211762),
        (0.99988081, -0.0005055429, -0.015427597, 0.00032840794),
    )
    return [pelvis, *g1_legs()]


def g1_29_links() -> list[Link]:
    """G1 with 29 joints: MJCF `g1_29dof_rev_1_0` of unitree_ros; armature from LeggedGym-Ex `G1MimicCfg`."""
    pelvis = Link(
        "pelvis",
        None,
        (0.0, 0.0, 0.0),
        3.813,
        (0.0, 0.0, -0.07605),
        (0.010549, 0.0093089, 0.0079184),
        (0.99999992, 0.0, -0.00039914797, 0.0),
    )
    waist = [
        Link(
            "waist_yaw_link",
            "pelvis",
            (0.0, 0.0, 0.0),
            0.214,
            (0.003494, 0.000233, 0.018034),
            (0.000163531, 0.000107714, 0.000102205),
            (0.28969699, 0.59100097, -0.33779498, 0.67282097),
            (0.0, 0.0, 1.0),
            0.0101775,
            (-2.618, 2.618),
        ),
        Link(
            "waist_roll_link",
            "waist_yaw_link",
            (-0.0039635, 0.0, 0.044),
            0.086,
            (0.0, 2.3e-05, 0.0),
            (8.245e-06, 7.079e-06, 6.339e-06),
            (0.5, 0.5, -0.5, 0.5),
            (1.0, 0.0, 0.0),
            0.00721945,
            (-0.52, 0.52),
        ),
        Link(
            "torso_link",
            "waist_roll_link",
            (0.0, 0.0, 0.0),
            7.818,
            (0.00203158, 0.000339683, 0.184568),
            (0.121847, 0.109825, 0.0273735),
            (0.99980258, -6.0331875e-05, 0.019825592, 0.0013198594),
            (0.0, 1.0, 0.0),
            0.00721945,
            (-0.52, 0.52),
        ),
    ]
    return [pelvis, *g1_legs(), *waist, *g1_arm("left"), *g1_arm("right")]


def g1_arm(side: str) -> list[Link]:
    """One arm of G1: where the two sides differ by more than the sign of y, both figures are there."""
    left = side == "left"
    s = 1.0 if left else -1.0
    joints = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
    names = [f"{side}_{joint}_link" for joint in joints]
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    rows: list[tuple[Any, ...]] = [
        (
            (0.0039563, 0.10022 if left else -0.10021, 0.24778),
            0.718,
            (0.0, 0.035892 * s, -0.011628),
            (0.000465864, 0.000432842, 0.000406394),
            (0.65415192, 0.013045798, -0.32626696, 0.68224991),
            y,
            0.00360972,
            (-3.0892, 2.6704),
            (0.99026414, 0.13920102 * s, 1.3872202e-05, -9.8686814e-05 * s),
        ),
        (
            (0.0, 0.038 * s, -0.013831),
            0.643,
            (-0.000227, 0.00727 * s, -0.063243),
            (0.000691311, 0.000618011, 0.000388977),
            (0.70125603, -0.019622301, -0.0071031703, 0.71260403),
            x,
            0.00360972,
            (-1.5882, 2.2515) if left else (-2.2515, 1.5882),
            (0.99026822, -0.13917203 * s, 0.0, 0.0),
        ),
        (
            (0.0, 0.00624 * s, -0.1032),
            0.734,
            (0.010773, -0.002949 * s, -0.072009),
            (0.00106187, 0.00103217, 0.000400661),
            (0.71687871, -0.096482862, -0.067994173, 0.68713373),
            z,
            0.00360972,
            (-2.618, 2.618),
        ),
        (
            (0.015783, 0.0, -0.080518),
            0.6,
            (0.064956, 0.004454 * s, -0.010062),
            (0.000443035, 0.000421612, 0.000259353),
            (0.54176524, 0.63613228, 0.38882117, 0.38812917),
            y,
            0.00360972,
            (-1.0472, 2.0944),
        ),
        (
            (0.1, 0.00188791 * s, -0.01),
            0.085445,
            (0.0171394, 0.000537591 * s, 4.8864e-07),
            (5.48211e-05, 4.96646e-05, 3.57798e-05),
            (0.57533837, 0.41166726, -0.57490637, 0.41109426),
            x,
            0.00360972,
            (-1.97222, 1.97222),
        ),
        (
            (0.038, 0.0, 0.0),
            0.48405,
            (0.0229999, -0.00111685 * s, -0.00111658),
            (0.000430353, 0.000429873, 0.000164648),
            (0.24999783, 0.66136255, 0.2930358, 0.64360756),
            y,
            0.00425,
            (-1.61443, 1.61443),
        ),
        (
            (0.046, 0.0, 0.0),
            0.254576,
            (0.0708244, 0.000191745 * s, 0.00161742),
            (0.000646113, 0.000559993, 0.000147566),
            (0.51057085, 0.52629484, 0.46807786, 0.49318785),
            z,
            0.00425,
            (-1.61443, 1.61443),
        ),
    ]
    links = []
    for name, parent, row in zip(names, ["torso_link", *names], rows, strict=False):
        pos, mass, com, inertia, quat, *rest = row
        # The right side's principal frame is that of the left mirrored at y = 0, (w, -x, y, -z), with its first and
        # its third axis exchanged: the tables write the numbers of the left side in reverse.
        links.append(Link(name, parent, pos, mass, com, inertia, quat if left else quat[::-1], *rest))
    return links


@dataclass(frozen=True)
class Published:
    """Everything published about one robot."""

    links: list[Link]
    total_mass: float
    torque_limits: tuple[float, ...]
    velocity_limits: tuple[float, ...]
    contact_link: str
    """Link that carries a foot, with ``{}`` for the foot's prefix."""
    contact_spheres: tuple[tuple[float, float, float], ...]
    """Centres of a foot's contact spheres in the frame of that link."""
    sphere_radius: float


PUBLISHED = {
    # URDF of unitree_ros (limits), MJCF of unitree_mujoco (all else).
    "go2": Published(
        go2_links(), 15.20641, (23.7, 23.7, 45.43) * 4, (30.1, 30.1, 15.7) * 4, "{}_calf", ((-0.002, 0, -0.213),), 0.022
    ),
    # URDF (limits) and MJCF (all else) of unitree_rl_gym.
    "g1": Published(
        g1_links(),
        32.1069,
        (88.0, 139.0, 88.0, 139.0, 50.0, 50.0) * 2,
        (32.0, 20.0, 32.0, 20.0, 37.0, 37.0) * 2,
        "{}_ankle_roll_link",
        ((-0.05, 0.025, -0.03), (-0.05, -0.025, -0.03), (0.12, 0.03, -0.03), (0.12, -0.03, -0.03)),
        0.005,
    ),
    # MJCF of unitree_ros `g1_29dof_rev_1_0` and mujoco_menagerie (soles), motors of mjlab `g1_constants` (limits).
    "g1_29": Published(
        g1_29_links(),
        33.34114,
        (*(88.0, 139.0, 88.0, 139.0, 50.0, 50.0) * 2, 88.0, 50.0, 50.0, *(25.0, 25.0, 25.0, 25.0, 25.0, 5.0, 5.0) * 2),
        (*(32.0, 20.0, 32.0, 20.0, 37.0, 37.0) * 2, 32.0, 37.0, 37.0, *(37.0, 37.0, 37.0, 37.0, 37.0, 22.0, 22.0) * 2),
        "{}_ankle_roll_link",
        ((-0.05, 0.025, -0.03), (-0.05, -0.025, -0.03), (0.12, 0.03, -0.03), (0.12, -0.03, -0.03)),
        0.005,
    ),
}


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


@pytest.fixture(scope="module", params=[GO2, G1, G1_29], ids=lambda robot: robot.name)
def loaded(request: pytest.FixtureRequest) -> tuple[RobotCfg, mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_path(str(request.param.path))
    return request.param, model, mujoco.MjData(model)


def random_qpos(model: mujoco.MjModel, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    quat = rng.normal(size=4)
    joints = rng.uniform(model.jnt_range[1:, 0], model.jnt_range[1:, 1])
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
    half_length = model.geom_size[geom, 1] if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0
    axis_z = data.geom_xmat[geom].reshape(3, 3)[2, 2]
    return float(data.geom_xpos[geom, 2] - half_length * abs(axis_z) - model.geom_size[geom, 0])


def mirrored_joints(robot: RobotCfg, joints: np.ndarray) -> np.ndarray:
    index = [robot.joint_names.index(partner) for partner, _ in robot.mirror]
    return joints[index] * np.array([sign for _, sign in robot.mirror])


def test_masses_are_the_published_ones(loaded) -> None:
    robot, model, _ = loaded
    published = PUBLISHED[robot.name]
    masses = {model.body(b).name: model.body_mass[b] for b in range(1, model.nbody)}
    assert masses == pytest.approx(
        {link.name: link.mass for link in published.links} | dict.fromkeys(robot.foot_names, 0)
    )
    assert sum(masses.values()) == pytest.approx(published.total_mass, abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_mass_matrix_at_random_poses(loaded, seed: int) -> None:
    robot, model, data = loaded
    qpos = random_qpos(model, seed)
    expected = mass_matrix(PUBLISHED[robot.name].links, qpos)
    np.testing.assert_allclose(full_mass_matrix(model, data, qpos), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_feet_are_where_the_published_contact_points_are(loaded, seed: int) -> None:
    robot, model, data = loaded
    published = PUBLISHED[robot.name]
    data.qpos[:] = random_qpos(model, seed)
    mujoco.mj_forward(model, data)
    frames = link_frames(published.links, data.qpos)
    for foot in robot.foot_names:
        pos, rot = frames[published.contact_link.format(foot.removesuffix("_foot"))]
        spheres = pos + np.asarray(published.contact_spheres) @ rot.T
        geoms = [g for g in collision_geoms(model) if model.body(model.geom_bodyid[g]).name == foot]
        np.testing.assert_allclose(data.geom_xpos[geoms], spheres, atol=1e-8)
        np.testing.assert_allclose(model.geom_size[geoms, 0], published.sphere_radius)
        np.testing.assert_allclose(data.body(foot).xpos, spheres.mean(axis=0), atol=1e-8)
        np.testing.assert_allclose(data.site(f"{foot}_site").xpos, spheres.mean(axis=0), atol=1e-8)


def test_limits_are_the_published_ones(loaded) -> None:
    robot, model, _ = loaded
    published = PUBLISHED[robot.name]
    assert model.jnt_limited[1:].all()
    np.testing.assert_allclose(model.jnt_range[1:], [link.range for link in published.links[1:]])
    assert robot.torque_limits == pytest.approx(published.torque_limits)
    assert robot.velocity_limits == pytest.approx(published.velocity_limits)
    pose = np.asarray(robot.default_joint_pos)
    assert ((model.jnt_range[1:, 0] < pose) & (pose < model.jnt_range[1:, 1])).all()


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
    assert {int(model.geom_type[g]) for g in geoms} <= {mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE}
    assert len(geoms) <= (15 if robot.num_joints == 12 else 21), "three more on each arm"
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
    feet = [z for name, z in lowest.items() if model.body(model.geom(name).bodyid[0]).name in robot.foot_names]
    others = [z for name, z in lowest.items() if model.body(model.geom(name).bodyid[0]).name not in robot.foot_names]
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
    # The published trunks are slightly asymmetric, and so are the G1's knees. Between base and limbs is the G1's waist.
    limbs = [6 + i for i, joint in enumerate(robot.joint_names) if robot.mirror[i][0] != joint]
    within = np.ix_(limbs, limbs)
    np.testing.assert_allclose(mirrored_matrix[within], expected[within], atol=2e-4)
    np.testing.assert_allclose(mirrored_matrix[6:, 6:], expected[6:, 6:], atol=2e-3)
    np.testing.assert_allclose(mirrored_matrix, expected, atol=1e-2)


@ROBOTS
def test_pose_gains_and_limits_are_symmetric(robot: RobotCfg) -> None:
    np.testing.assert_array_equal(mirrored_joints(robot, np.asarray(robot.default_joint_pos)), robot.default_joint_pos)
    partner = [robot.joint_names.index(name) for name, _ in robot.mirror]
    for values in (robot.kp, robot.kd, robot.torque_limits, robot.velocity_limits):
        assert [values[j] for j in partner] == list(values)


def on_ground(robot: RobotCfg, kp: Sequence[float], kd: Sequence[float], upright: bool = False) -> mujoco.MjModel:
    """The robot with PD actuators on flat ground; ``upright`` lets its base move up and down only."""
    spec = mujoco.MjSpec.from_file(str(robot.path))
    spec.option.timestep = 0.005
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    floor = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    floor.contype, floor.conaffinity = 1, 0
    if upright:
        spec.joint("root").type, spec.joint("root").axis = mujoco.mjtJoint.mjJNT_SLIDE, [0, 0, 1]
    for joint, p, d in zip(robot.joint_names, kp, kd, strict=True):
        spec.add_actuator(target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT).set_to_position(kp=p, kv=d)
    return spec.compile()


@ROBOTS
def test_weight_rests_on_the_foot_bodies(robot: RobotCfg) -> None:
    """Held stiffly in its standing pose the robot stands for 2 s, and the contact forces on its feet carry it."""
    model = on_ground(robot, [1000.0] * robot.num_joints, [50.0] * robot.num_joints)
    data = mujoco.MjData(model)
    data.qpos[:] = standing_qpos(robot)
    data.ctrl[:] = robot.default_joint_pos
    mujoco.mj_step(model, data, 400)
    mujoco.mj_rnePostConstraint(model, data)
    forces = np.array([data.body(foot).cfrc_ext[5] for foot in robot.foot_names])
    assert data.qpos[2] == pytest.approx(robot.base_height, abs=0.01)
    assert data.body(robot.base_body).xmat[8] > 0.99
    assert (forces > 0).all()
    assert forces.sum() == pytest.approx(PUBLISHED[robot.name].total_mass * GRAVITY, rel=0.01)


@ROBOTS
def test_own_gains_and_torques_carry_the_weight(robot: RobotCfg) -> None:
    """Kept from tipping, the robot stands for 2 s on its own gains: it sags a little, far from its torque limits.

    Free, G1 tips over: 2 · 40 N m/rad in the ankles are less than the m g h of 220 N m/rad that balance would take.
    """
    model = on_ground(robot, robot.kp, robot.kd, upright=True)
    data = mujoco.MjData(model)
    data.qpos[:] = [0.0, *robot.default_joint_pos]
    data.ctrl[:] = robot.default_joint_pos
    mujoco.mj_step(model, data, 400)
    assert -0.04 < data.qpos[0] < 0.0
    assert abs(data.qpos[1:] - robot.default_joint_pos).max() < 0.2
    assert abs(data.qvel).max() < 0.05
    assert (abs(data.actuator_force) < 0.5 * np.asarray(robot.torque_limits)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kp": (20.0,) * 11}, "kp has 11 entries but joint_names has 12"),
        ({"foot_mirror": (1, 0, 3)}, "foot_mirror has 3 entries but foot_names has 4"),
        ({"joint_names": ("FR_hip_joint",) * 12}, "joint_names repeats 'FR_hip_joint'"),
        ({"foot_names": ("FR_foot", "FL_foot", "RR_foot", "FR_foot")}, "foot_names repeats 'FR_foot'"),
        ({"mirror": (("nose_joint", 1.0), *GO2.mirror[1:])}, "'FR_hip_joint' is 'nose_joint', which is not a joint"),
        ({"mirror": (("FL_hip_joint", 0.5), *GO2.mirror[1:])}, "sign of 'FR_hip_joint' must be 1 or -1, got 0.5"),
        ({"mirror": (("RL_hip_joint", -1.0), *GO2.mirror[1:])}, "not its own inverse: 'FR_hip_joint'"),
        ({"mirror": (("FL_hip_joint", 1.0), *GO2.mirror[1:])}, "not its own inverse: 'FR_hip_joint'"),
        ({"foot_mirror": (1, 2, 3, 0)}, "foot_mirror is not its own inverse at 'FR_foot'"),
        ({"foot_mirror": (4, 0, 3, 2)}, "foot_mirror is not its own inverse at 'FR_foot'"),
        (
            {"torque_limits": (0.0, *GO2.torque_limits[1:])},
            "torque_limits of 'FR_hip_joint' must be a finite number above 0, got 0.0",
        ),
        ({"kd": (-0.5, *GO2.kd[1:])}, "kd of 'FR_hip_joint' must be a finite number at least 0, got -0.5"),
        (
            {"default_joint_pos": (float("nan"),) * 12},
            "default_joint_pos of 'FR_hip_joint' must be a finite number, got nan",
        ),
        ({"actuators": ("position",) * 11}, "actuators has 11 entries but joint_names has 12"),
        (
            {"actuators": ("muscle",) * 12},
            "actuators of 'FR_hip_joint' must be one of ('position', 'velocity', 'torque'), got 'muscle'",
        ),
        (
            {"actuators": ("position", "velocity", *("position",) * 10)},
            "kp of 'FR_thigh_joint', a velocity actuator, must be 0, got 40.0",
        ),
        (
            {"actuators": ("torque", *("position",) * 11), "kp": (0.0, *GO2.kp[1:])},
            "kd of 'FR_hip_joint', a torque actuator, must be 0, got 1.0",
        ),
        (
            {"actuators": ("velocity", *("position",) * 11), "kp": (0.0, *GO2.kp[1:]), "kd": (0.0, *GO2.kd[1:])},
            "kd of 'FR_hip_joint', a velocity actuator, must be positive, got 0.0",
        ),
        ({"kp": 20.0}, "kp must be a tuple, such as (20.0,) * 12, got 20.0"),
        ({"default_joint_pos": None}, "default_joint_pos must be a tuple, such as (None,) * 12, got None"),
        ({"termination_bodies": "base"}, "termination_bodies must be a tuple, such as ('base',), got 'base'"),
        ({"base_height": 0.0}, "base_height must be a finite number above 0, got 0.0"),
    ],
)
def test_a_contradictory_description_names_the_culprit(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="RobotCfg 'go2'") as error:
        replace(GO2, **change)
    assert message in str(error.value)


def test_importing_the_robots_is_light() -> None:
    code = "import sys, legged_envs.robots; print(sorted({'mujoco', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
