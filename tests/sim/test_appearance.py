"""Robots in the look of another model: where it is drawn, and that physics does not know of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest

import legged_envs  # noqa: F401
from legged_envs import cli
from legged_envs.robots import GO1, GO2, K1, ROBOTS
from legged_envs.sim import PlacedRobot, SceneCfg, SimCfg, ViewerCfg, make_simulation
from legged_envs.sim.render.appearance import MENAGERIE, find_appearance
from legged_envs.sim.scene import build_scene

GO2_TASK = "Legged/Go2-Flat-v0"
WEDGE = "v 0 0 0\nv 0.3 0 0\nv 0 0.06 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
"""A mesh far from symmetric: the compiler moves and turns it into its axes of inertia."""


def menagerie_go2() -> str:
    """A Go2 as mujoco_menagerie writes its models: the bodies of ours, of which the calf's frame is turned, a mesh on
    each, collision shapes, and what else is in its files."""
    legs = ""
    for leg, x, y in (
        ("FL", 0.1934, 1),
        ("FR", 0.1934, -1),
        ("RL", -0.1934, 1),
        ("RR", -0.1934, -1),
    ):
        legs += f"""
      <body name="{leg}_hip" pos="{x} {0.0465 * y} 0">
        <joint name="{leg}_hip_joint" axis="1 0 0"/>
        <geom class="visual" mesh="wedge" material="shell" euler="0.2 0 0.1"/>
        <body name="{leg}_thigh" pos="0 {0.0955 * y} 0">
          <joint name="{leg}_thigh_joint"/>
          <frame pos="0 0 -0.1" euler="0 1.57 0"><geom class="visual" mesh="wedge"/></frame>
          <geom class="collision" type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02"/>
          <body name="{leg}_calf" pos="0 0 -0.213" quat="1 0 0 1">
            <joint name="{leg}_calf_joint" axis="1 0 0"/>
            <geom class="visual" mesh="wedge"/>
            <body name="{leg}_sensor" pos="0 0 -0.1"><geom class="visual" type="sphere" size="0.03"/></body>
            <geom name="{leg}" class="collision" size="0.022" pos="0 0 -0.213"/>
          </body>
        </body>
      </body>"""
    return f"""
<mujoco model="go2">
  <compiler angle="radian" meshdir="assets" autolimits="true"/>
  <option cone="elliptic" impratio="100"/>
  <default>
    <joint axis="0 1 0" range="-2 2" damping="2"/>
    <default class="visual"><geom type="mesh" contype="0" conaffinity="0" group="2"/></default>
    <default class="collision"><geom group="3"/></default>
  </default>
  <asset>
    <texture name="skin" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 1 0" width="8" height="8"/>
    <material name="shell" texture="skin" rgba="0.9 0.8 0.7 1"/>
    <mesh name="wedge" file="wedge.obj" scale="1 2 1"/>
  </asset>
  <worldbody>
    <light mode="targetbodycom" target="base" pos="2 0 2.5"/>
    <geom name="floor" type="plane" size="1 1 0.1" contype="0" conaffinity="0"/>
    <body name="base" pos="0 0 0.7">
      <freejoint/>
      <inertial pos="0 0 0" mass="9" diaginertia="1 1 1"/>
      <site name="imu"/>
      <camera name="track" pos="1 1 1" mode="trackcom"/>
      <geom class="visual" mesh="wedge" material="shell" pos="0.1 0 0.05"/>{legs}
    </body>
  </worldbody>
  <contact><exclude body1="base" body2="FL_thigh"/></contact>
  <actuator><motor name="FL_hip" joint="FL_hip_joint"/></actuator>
  <sensor><gyro name="gyro" site="imu"/></sensor>
  <keyframe><key name="home" qpos="0 0 0.27 1 0 0 0 0 0.9 -1.8 0 0.9 -1.8 0 0.9 -1.8 0 0.9 -1.8"/></keyframe>
</mujoco>"""


@pytest.fixture
def menagerie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like mujoco_menagerie with only a Go2, named by the variable."""
    folder = tmp_path / "menagerie" / "unitree_go2"
    (folder / "assets").mkdir(parents=True)
    (folder / "go2.xml").write_text(menagerie_go2())
    (folder / "assets" / "wedge.obj").write_text(WEDGE)
    monkeypatch.setenv("MENAGERIE_ROOT", str(folder.parent))
    return folder.parent


def test_shapes_are_where_the_other_model_has_them_in_any_pose_of_the_joints(
    menagerie: Path,
) -> None:
    theirs = mujoco.MjModel.from_xml_path(str(menagerie / "unitree_go2" / "go2.xml"))
    dressed, own = build_scene(GO2, SimCfg(), appearance="menagerie"), build_scene(GO2, SimCfg())
    one, other = mujoco.MjData(dressed), mujoco.MjData(theirs)
    one.qpos[:7] = other.qpos[:7] = [1.0, 2.0, 3.0, *np.array([0.9, 0.1, 0.3, 0.3])]
    for i, joint in enumerate(GO2.joint_names):
        one.joint(joint).qpos = other.joint(joint).qpos = 0.1 * i - 0.5
    for model, data in (dressed, one), (theirs, other):
        mujoco.mj_kinematics(model, data)
    shown = [
        i for i in range(dressed.ngeom) if dressed.geom_group[i] < 3 and dressed.geom_bodyid[i] > 0
    ]
    their_shown = [i for i in range(1, theirs.ngeom) if theirs.geom_group[i] < 3]
    assert len(shown) == len(their_shown) == 17
    np.testing.assert_allclose(
        sorted(corners(dressed, one, i) for i in shown),
        sorted(corners(theirs, other, i) for i in their_shown),
        atol=1e-6,
    )
    materials = [
        dressed.mat(dressed.geom_matid[i]).name for i in shown if dressed.geom_matid[i] >= 0
    ]
    assert (
        len(materials) == 5
        and len(set(materials)) == 1
        and dressed.mat(materials[0]).texid.max() >= 0
    )
    for name in (
        "body_mass",
        "body_inertia",
        "body_ipos",
        "qpos0",
        "dof_armature",
        "jnt_range",
        "actuator_gainprm",
    ):
        assert np.array_equal(getattr(dressed, name), getattr(own, name)), name
    collides = (dressed.geom_contype | dressed.geom_conaffinity) > 0
    assert collides.sum() == ((own.geom_contype | own.geom_conaffinity) > 0).sum()


def corners(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> list[float]:
    """Centre of a shape, and the corner of its mesh that is furthest from that, in the world."""
    mesh, centre = model.geom_dataid[geom], data.geom_xpos[geom]
    if mesh < 0:
        return [*np.round(centre, 4), *centre]
    first = model.mesh_vertadr[mesh]
    vertices = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
    corner = (
        centre
        + data.geom_xmat[geom].reshape(3, 3) @ vertices[np.linalg.norm(vertices, axis=1).argmax()]
    )
    return [*np.round(centre, 4), *corner]


def rollout(appearance: str | None) -> tuple[list[Any], np.ndarray]:
    envs = gym.make_vec(
        GO2_TASK, num_envs=2, render_mode="rgb_array", cfg={"viewer.appearance": appearance}
    )
    envs.reset(seed=3)
    states, pictures = [], []
    for _ in range(8):
        observation, reward, *_ = envs.step(np.full((2, 12), 0.3, np.float32))
        pictures.append(envs.unwrapped.sim.render(1, 160, 120))
        states += [observation, reward, envs.unwrapped.sim.batch.state.copy()]
    envs.close()
    return states, pictures[-1]


@pytest.mark.render
def test_physics_is_bit_for_bit_the_same_and_the_picture_is_not(
    menagerie: Path, assert_same
) -> None:
    (plain, own), (dressed, other) = rollout(None), rollout("menagerie")
    assert_same(dressed, plain)
    differs = np.abs(own.astype(int) - other).max(2) > 20
    assert 0.005 < differs.mean() < 0.3, "the robot differs, ground and sky do not"


@pytest.mark.render
def test_an_appearance_can_be_changed_and_is_that_of_every_robot_of_a_scene(
    menagerie: Path,
) -> None:
    scene = SceneCfg(robots={"rear": PlacedRobot(GO2, (-1.0, 0.0, 0.0))})
    sim = make_simulation("mujoco", GO2, SimCfg(), 1, "cpu", scene)
    own = sim.render(0, 64, 48).copy()
    sim.viewer = ViewerCfg(appearance=str(menagerie / "unitree_go2" / "go2.xml"))
    assert not np.array_equal(sim.render(0, 64, 48), own)
    model = sim._renderer.model
    assert len([i for i in range(model.ngeom) if model.geom_dataid[i] >= 0]) == 2 * 13
    sim.viewer.appearance = None
    assert np.array_equal(sim.render(0, 64, 48), own)
    sim.close()


def dressed(robot: Any = GO2, appearance: str = "menagerie") -> mujoco.MjModel:
    return build_scene(robot, SimCfg(), appearance=appearance)


def test_what_is_missing_is_named_with_what_to_do(
    menagerie: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = menagerie / "unitree_go2"
    with pytest.raises(ValueError, match=r"'k1'.* a1, any"):
        dressed(K1)
    with pytest.raises(FileNotFoundError, match=r"'go1'.*unitree_go1/go1\.xml.*MENAGERIE_ROOT"):
        dressed(GO1)
    with pytest.raises(
        FileNotFoundError,
        match=r"'menagery'.*'go2'.*'menagerie'",
    ):
        dressed(appearance="menagery")
    (folder / "other.xml").write_text(menagerie_go2().replace("RR_calf", "RR_shin"))
    with pytest.raises(ValueError, match=r"'go2'.*other\.xml.*'RR_calf'.* base, FL_hip"):
        dressed(appearance=str(folder / "other.xml"))
    (folder / "assets" / "wedge.obj").unlink()
    with pytest.raises(ValueError, match=r"go2\.xml.*wedge\.obj"):
        dressed()
    monkeypatch.delenv("MENAGERIE_ROOT")
    monkeypatch.setattr("legged_envs.sim.render.appearance.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install mujoco-menagerie.*MENAGERIE_ROOT"):
        dressed()


PACKAGE = """
import os
from pathlib import Path

class MenagerieError(Exception): pass

class get:
    def __init__(self, name): self.name = name

    def path(self):
        if "OFFLINE" in os.environ:
            raise MenagerieError("no network")
        return Path(os.environ["CACHE"]) / self.name
"""


def test_the_package_of_the_menagerie_gives_its_files(
    menagerie: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (menagerie / "mujoco_menagerie.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(menagerie)
    monkeypatch.delenv("MENAGERIE_ROOT")
    monkeypatch.setenv("CACHE", str(menagerie))
    soft = replace(GO2, name="soft", kp=(30.0,) * 12)  # of the same model
    assert find_appearance(soft, "menagerie") == menagerie / "unitree_go2" / "go2.xml"
    monkeypatch.setenv("OFFLINE", "1")
    with pytest.raises(RuntimeError, match=r"'unitree_go2'.*no network"):
        find_appearance(soft, "menagerie")
    assert {*MENAGERIE} <= {*ROBOTS}


def test_play_takes_an_appearance_and_refuses_one_before_anything_is_made(
    menagerie: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    played: list[Any] = []
    monkeypatch.setattr("legged_envs.viewing.play.play", lambda *args: played.append(args))
    cli.main(["play", GO2_TASK, "--appearance", "menagerie", "--video", str(tmp_path / "a.mp4")])
    assert played[0][1].viewer.appearance == "menagerie"
    with pytest.raises(SystemExit) as stop:
        cli.main(
            ["play", GO2_TASK, "--appearance", "meshes.xml", "--video", str(tmp_path / "a.mp4")]
        )
    told = capsys.readouterr().err
    assert stop.value.code == 2 and re.search(r"'meshes\.xml'.*'go2'", told)
