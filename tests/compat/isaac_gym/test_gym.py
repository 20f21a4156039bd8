"""``legged_envs.compat.isaac_gym``: its engine against plain ``mj_step`` loops, its names and meanings, bad input."""

import math
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

import legged_envs.compat.isaac_gym as package
from legged_envs import rotation
from legged_envs.compat.isaac_gym import gymapi, gymtorch, gymutil, terrain_utils, torch_utils
from legged_envs.compat.isaac_gym.ground import height_field, plane, triangle_mesh

HERE = Path(__file__).parents[2]
gym = gymapi.acquire_gym()
LEGS = ("FL", "FR", "RL", "RR")
BODIES = ["base"] + [f"{leg}_{part}" for leg in LEGS for part in ("thigh", "shin", "foot")]
DOFS = [f"{leg}_{part}_joint" for leg in LEGS for part in ("hip", "knee")]
POSE = torch.tensor([0.5, -1.0] * 4)


def sim_params(**values) -> gymapi.SimParams:
    return gymapi.SimParams(dt=0.005, substeps=1, gravity=gymapi.Vec3(0.0, 0.0, -9.81), **values)


def make_sim(num_envs=2, ground=True, params=None, prepare=True, mode=3, filter=0, **options):
    """A simulation with dogs on a plane, before or after ``prepare_sim``."""
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params or sim_params())
    if ground:
        gym.add_ground(sim, gymapi.PlaneParams(normal=gymapi.Vec3(0.0, 0.0, 1.0)))
    asset = load(sim, default_dof_drive_mode=mode, **options)
    for i in range(num_envs):
        env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
        gym.create_actor(
            env, asset, gymapi.Transform(gymapi.Vec3(0.0, 0.1 * i, 0.42)), "dog", i, filter, 0
        )
    if prepare:
        assert gym.prepare_sim(sim)
    return sim


def load(sim=None, file="legacy_dog.urdf", folder=HERE, **options):
    defaults = {
        "collapse_fixed_joints": True,
        "replace_cylinder_with_capsule": True,
        "density": 0.001,
    }
    return gym.load_asset(sim, str(folder), file, gymapi.AssetOptions(**{**defaults, **options}))


def tensor(sim, name):
    wrapped = gymtorch.wrap_tensor(getattr(gym, f"acquire_{name}_tensor")(sim))
    getattr(gym, f"refresh_{name}_tensor")(sim)
    return wrapped


def unwrap(values, dtype=torch.float32):
    return gymtorch.unwrap_tensor(torch.as_tensor(values, dtype=dtype))


def put_to_pose(sim):
    states = torch.stack((POSE.repeat(len(sim.envs)), torch.zeros(8 * len(sim.envs))), dim=1)
    gym.set_dof_state_tensor(sim, unwrap(states))


# --- Assets -----------------------------------------------------------------------------------------------------------


def test_a_urdf_has_isaac_gyms_bodies_and_joints_with_inertias_that_exist() -> None:
    asset = load()
    assert gym.get_asset_rigid_body_names(asset) == BODIES
    assert gym.get_asset_dof_names(asset) == DOFS
    assert (gym.get_asset_rigid_body_count(asset), gym.get_asset_dof_count(asset)) == (13, 8)
    assert asset.mass.sum() == pytest.approx(4.2 + 4 * 0.75, abs=1e-4)
    assert asset.com[0] == pytest.approx([0.2 * 0.2 / 4.2, 0.0, 0.05 * 0.2 / 4.2], abs=1e-5)
    assert np.all(asset.inertia.sum(1, keepdims=True) >= 2 * asset.inertia - 1e-12)
    geoms = asset.spec.compile().geom_type.tolist()
    kinds = mujoco.mjtGeom
    assert (
        geoms
        == [kinds.mjGEOM_BOX, kinds.mjGEOM_SPHERE] + [kinds.mjGEOM_CAPSULE, kinds.mjGEOM_SPHERE] * 4
    )
    assert len(gym.get_asset_rigid_shape_properties(asset)) == 10


def test_dof_properties_are_those_of_the_file_and_shins_without_limits_have_none() -> None:
    props = gym.get_asset_dof_properties(load(default_dof_drive_mode=3, armature=0.01))
    assert props["hasLimits"].tolist() == [True, False] * 4
    assert props["lower"][0].item() == pytest.approx(-1.2) and props["upper"][1].item() > 1e38
    assert props["effort"].tolist() == [30, 25] * 4 and props["velocity"].tolist() == [20, 15] * 4
    assert props["damping"][1] == pytest.approx(0.01) and props["friction"][1] == pytest.approx(
        0.02
    )
    assert (props["armature"] == np.float32(0.01)).all() and (
        props["driveMode"] == gymapi.DOF_MODE_EFFORT
    ).all()


def test_fixed_joints_and_cylinders_stay_unless_asked() -> None:
    asset = load(collapse_fixed_joints=False, replace_cylinder_with_capsule=False)
    assert gym.get_asset_rigid_body_names(asset)[:4] == ["base", "FL_thigh", "FL_shin", "FL_foot"]
    assert {"camera", "frame"} < {*asset.body_names}
    assert mujoco.mjtGeom.mjGEOM_CYLINDER in asset.spec.compile().geom_type


def test_an_mjcf_asset_keeps_its_order_and_loses_its_floor_motors_and_free_joint(
    tmp_path: Path,
) -> None:
    (
        tmp_path / "arm.xml"
    ).write_text("""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
        <body name="torso" pos="0 0 1"><freejoint/><geom size=".1" friction=".3"/>
          <body name="b"><joint name="jb" axis="0 1 0" range="-30 30"/><geom type="capsule" size=".02 .1"/></body>
          <body name="a"><joint name="ja" axis="1 0 0" damping="2"/><geom size=".05"/></body></body></worldbody>
        <actuator><motor joint="ja"/></actuator></mujoco>""")
    asset = load(file="arm.xml", folder=tmp_path)
    assert (asset.body_names, asset.dof_names) == (["torso", "b", "a"], ["jb", "ja"])
    frictions = [shape.friction for shape in gym.get_asset_rigid_shape_properties(asset)]
    assert frictions == pytest.approx([0.3, 1.0, 1.0])
    props = gym.get_asset_dof_properties(asset)
    assert props["hasLimits"].tolist() == [True, False] and props["damping"].tolist() == [0.0, 2.0]


def test_pairs_of_shapes_with_rules_of_their_own_are_refused(tmp_path: Path) -> None:
    shapes = '<body name="a"><geom name="x" size=".1"/><body name="b"><joint/><geom name="y" size=".1"/></body></body>'
    contact = '<contact><pair geom1="x" geom2="y"/></contact>'
    (tmp_path / "two.xml").write_text(f"<mujoco><worldbody>{shapes}</worldbody>{contact}</mujoco>")
    with pytest.raises(ValueError, match=r"two\.xml.*<contact><pair>"):
        load(file="two.xml", folder=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            (
                "</robot>",
                '<joint name="x" type="floating"><parent link="base"/><child link="y"/></joint></robot>',
            ),
            "floating",
        ),
        (("</robot>", '<link name="lost"/></robot>'), "one link.*2"),
        (('type="revolute">', 'type="revolute"><mimic joint="FL_hip_joint"/>'), "FL_hip_joint"),
        (('<box size="0.4 0.2 0.1"/>', '<mesh filename="gone.stl"/>'), "gone.stl"),
        (("<robot", "<<robot"), "not well-formed"),
    ],
)
def test_a_file_that_cannot_be_kept_is_refused_by_the_name_of_the_part(
    tmp_path: Path, change, message: str
) -> None:
    (tmp_path / "dog.urdf").write_text((HERE / "legacy_dog.urdf").read_text().replace(*change, 1))
    with pytest.raises(ValueError, match=message) as error:
        load(file="dog.urdf", folder=tmp_path)
    assert "dog.urdf" in str(error.value)


def test_missing_files_and_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.urdf"):
        load(file="nothing.urdf")
    (tmp_path / "dog.usd").write_text("")
    with pytest.raises(ValueError, match=r"\.urdf and \.xml"):
        load(file="dog.usd", folder=tmp_path)


# --- Physics and tensors against MuJoCo -------------------------------------------------------------------------------


def reference(sim, env_id: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The model of an environment with its own parameters, in its state."""
    batch = sim.state.batch
    model = batch.get_model(env_id)
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, batch.state[env_id], mujoco.mjtState.mjSTATE_INTEGRATION)
    return model, data


def randomized(num_envs=3, **options):
    """Dogs with masses, centres of mass and frictions of their own."""
    sim = make_sim(num_envs, prepare=False, **options)
    for i, env in enumerate(sim.envs):
        props = gym.get_actor_rigid_body_properties(env, 0)
        props[0].mass += torch.tensor([0.5 * i])
        props[0].com = gymapi.Vec3(0.02 * i, 0.01, torch.tensor(0.03))
        gym.set_actor_rigid_body_properties(env, 0, props, True)
        shapes = gym.get_actor_rigid_shape_properties(env, 0)
        for shape in shapes:
            shape.friction = torch.tensor([[0.2 + 0.4 * i]])
        gym.set_actor_rigid_shape_properties(env, 0, shapes)
    gym.prepare_sim(sim)
    put_to_pose(sim)
    return sim


def test_steps_equal_a_plain_loop_of_mj_step_bit_for_bit_and_tensors_are_what_mujoco_says() -> None:
    sim = randomized(params=sim_params(physx=gymapi.PhysXParams(num_threads=1)))
    # The engine alone has no limits of speeds.
    for env in sim.envs:
        props = gym.get_actor_dof_properties(env, 0)
        props["velocity"] = 1e3
        gym.set_actor_dof_properties(env, 0, props)
    references = [reference(sim, i) for i in range(3)]
    assert references[2][0].body_mass[1] == pytest.approx(4.2 + 1.0, abs=1e-6)
    assert references[2][0].body_ipos[1] == pytest.approx([0.04, 0.01, 0.03])
    ratio = references[2][0].body_inertia[1] / references[0][0].body_inertia[1]
    assert ratio == pytest.approx(5.2 / 4.2, rel=1e-5)
    assert references[2][0].geom_friction[1:, 0] == pytest.approx(0.5 * (1.0 + 1.0))
    assert references[0][0].geom_friction[1:, 0] == pytest.approx(0.5 * (0.2 + 1.0))
    root, dofs = tensor(sim, "actor_root_state"), tensor(sim, "dof_state")
    forces, bodies = tensor(sim, "net_contact_force"), tensor(sim, "rigid_body_state")
    random = torch.Generator().manual_seed(0)
    for _ in range(40):
        torques = 20.0 * (POSE - dofs[:, 0].view(3, 8)) + torch.randn(3, 8, generator=random)
        gym.set_dof_actuation_force_tensor(sim, gymtorch.unwrap_tensor(torques))
        gym.simulate(sim)
        for kind in ("actor_root_state", "dof_state", "rigid_body_state", "net_contact_force"):
            getattr(gym, f"refresh_{kind}_tensor")(sim)
        for (model, data), row in zip(references, torques, strict=True):
            data.ctrl = row
            mujoco.mj_step(model, data)
    for i, (model, data) in enumerate(references):
        assert (sim.state.batch.qpos[i] == data.qpos).all() and (
            sim.state.batch.qvel[i] == data.qvel
        ).all()
        expected = [contact_force(model, data, body) for body in range(1, model.nbody)]
        assert forces.view(3, -1, 3)[i].numpy() == pytest.approx(np.array(expected), abs=1e-3)
        assert forces.view(3, -1, 3)[i, :, 2].sum() > 10.0
        mujoco.mj_forward(model, data)
        states = np.array([body_state(model, data, body) for body in range(1, model.nbody)])
        assert bodies.view(3, -1, 13)[i].numpy() == pytest.approx(states, abs=1e-5)
        assert root[i].numpy() == pytest.approx(states[0], abs=1e-5)
        assert dofs.view(3, 8, 2)[i].numpy() == pytest.approx(
            np.stack((data.qpos[7:], data.qvel[6:]), 1), abs=1e-6
        )


def body_state(model, data, body: int) -> np.ndarray:
    """Position, quaternion (x, y, z, w), velocities of the centre of mass, by MuJoCo's own functions."""
    velocity = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
    w, x, y, z = data.xquat[body]
    return np.concatenate((data.xpos[body], (x, y, z, w), velocity[3:], velocity[:3]))


def contact_force(model, data, body: int) -> np.ndarray:
    total, wrench = np.zeros(3), np.zeros(6)
    for i, contact in enumerate(data.contact):
        mujoco.mj_contactForce(model, data, i, wrench)
        force = contact.frame.reshape(3, 3).T @ wrench[:3]
        first, second = model.geom_bodyid[contact.geom]
        total += force * ((second == body) * 1.0 - (first == body) * 1.0)
    return total


def test_contact_forces_stay_those_of_the_step_when_bodies_are_refreshed() -> None:
    sim = randomized()
    forces, dof_force = tensor(sim, "net_contact_force"), tensor(sim, "dof_force")
    for _ in range(60):
        gym.set_dof_actuation_force_tensor(sim, unwrap(torch.ones(24)))
        gym.simulate(sim)
    before = tensor(sim, "net_contact_force").clone()
    tensor(sim, "rigid_body_state")
    for name in ("net_contact_force", "dof_force"):
        getattr(gym, f"refresh_{name}_tensor")(sim)
    assert (forces == before).all() and before.abs().sum() > 10.0
    assert dof_force.view(3, 8)[:, 0] == pytest.approx(np.ones(3), abs=1e-6)


def test_tensors_are_filled_in_place_and_never_by_themselves() -> None:
    sim = make_sim()
    root = tensor(sim, "actor_root_state")
    height = root.view(2, 13)[:, 2]
    assert height.tolist() == pytest.approx([0.42, 0.42]) and root[1, 1].item() == pytest.approx(
        0.1
    )
    for _ in range(10):
        gym.simulate(sim)
    assert height.tolist() == pytest.approx([0.42, 0.42])
    gym.refresh_actor_root_state_tensor(sim)
    assert (height < 0.42).all()
    assert gymtorch.wrap_tensor(gym.acquire_actor_root_state_tensor(sim)) is root


def test_setters_write_the_rows_that_they_are_given_and_no_others() -> None:
    sim = randomized()
    root, dofs = tensor(sim, "actor_root_state"), tensor(sim, "dof_state")
    for _ in range(7):
        gym.simulate(sim)
    gym.refresh_actor_root_state_tensor(sim)
    gym.refresh_dof_state_tensor(sim)
    before = sim.state.batch.state.copy()
    wanted = torch.tensor([1.0, 2.0, 3.0, 0.6, 0.0, 0.0, 0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    root[1], dofs.view(3, 8, 2)[1] = wanted, 0.25
    gym.set_actor_root_state_tensor_indexed(sim, unwrap(root), unwrap([1, 0], torch.int32), 1)
    gym.set_dof_state_tensor_indexed(sim, unwrap(dofs), unwrap([1], torch.int32), 1)
    assert (sim.state.batch.state[[0, 2]] == before[[0, 2]]).all()
    assert tensor(sim, "actor_root_state")[1].tolist() == pytest.approx(wanted.tolist(), abs=1e-6)
    assert (tensor(sim, "dof_state").view(3, 8, 2)[1] == 0.25).all()
    assert tensor(sim, "rigid_body_state").view(3, -1, 13)[1, 0].tolist() == pytest.approx(
        wanted.tolist(), abs=1e-5
    )
    before = sim.state.batch.state.copy()
    root[2, 7] += 1.0
    gym.set_actor_root_state_tensor(sim, unwrap(root))  # as legged_gym pushes
    assert (sim.state.batch.state[:2] == before[:2]).all()
    assert tensor(sim, "actor_root_state")[2, 7] == root[2, 7]


def test_environment_i_does_not_depend_on_the_others() -> None:
    rows = []
    for count in (1, 3):
        sim = make_sim(count)
        for i in range(30):
            gym.set_dof_actuation_force_tensor(
                sim, unwrap(torch.full((count, 8), float(i % 5 - 2)))
            )
            gym.simulate(sim)
        rows.append(sim.state.batch.qpos[0].copy())
    assert (rows[0] == rows[1]).all()


# --- Drives and forces ------------------------------------------------------------------------------------------------


def test_efforts_count_for_one_step_are_clipped_and_move_dofs_in_their_mode_alone() -> None:
    sim = make_sim(1, ground=False, fix_base_link=True)
    put_to_pose(sim)
    gym.set_dof_actuation_force_tensor(sim, unwrap(torch.full((1, 8), 100.0)))
    gym.simulate(sim)
    applied = tensor(sim, "dof_force")
    assert applied.view(4, 2)[:, 0].tolist() == pytest.approx([30.0] * 4)
    gym.simulate(sim)
    gym.refresh_dof_force_tensor(sim)
    assert applied.view(4, 2)[:, 0].abs().max() == 0.0
    passive = make_sim(1, ground=False, fix_base_link=True, mode=0)
    put_to_pose(passive)
    gym.set_dof_actuation_force_tensor(passive, unwrap(torch.full((1, 8), 100.0)))
    gym.simulate(passive)
    assert tensor(passive, "dof_force").abs().max() < 1e-6


def test_dofs_at_their_limit_of_velocity_are_braked_and_not_driven_on() -> None:
    sim = make_sim(2, ground=False, prepare=False, fix_base_link=True)
    params = gym.get_sim_params(sim)
    params.gravity = gymapi.Vec3()
    gym.set_sim_params(sim, params)
    props = gym.get_actor_dof_properties(sim.envs[0], 0)
    props["armature"][::2] = 1e4  # hips stand still
    gym.set_actor_dof_properties(sim.envs[0], 0, props)
    gym.prepare_sim(sim)
    props["velocity"] = 25.0
    gym.set_actor_dof_properties(sim.envs[1], 0, props)
    put_to_pose(sim)
    dofs, force = (
        tensor(sim, "dof_state").view(2, 4, 2, 2)[:, :, 1, 1],
        tensor(sim, "dof_force").view(2, 4, 2)[..., 1],
    )
    knees = torch.tensor([0.0, 1.0]).repeat(
        2, 4
    )  # which turn without an end, of up to 15 rad/s by the file
    fastest, idle = torch.zeros(2), torch.zeros(2, dtype=torch.bool)
    for _ in range(150):
        gym.set_dof_actuation_force_tensor(sim, gymtorch.unwrap_tensor(knees))
        gym.simulate(sim)
        before = dofs.abs().amax(1)
        gym.refresh_dof_state_tensor(sim)
        gym.refresh_dof_force_tensor(sim)
        fastest, idle = torch.maximum(fastest, dofs.abs().amax(1)), idle | (force.amax(1) <= 0.0)
        assert (force[before < torch.tensor([14.9, 24.9])] > 0.5).all(), (
            "below the limit they are driven"
        )
    assert fastest.tolist() == pytest.approx([15.0, 25.0]) and idle.all()
    gym.set_dof_state_tensor(
        sim, unwrap(torch.stack((POSE.repeat(2), 30.0 * knees.flatten()), dim=1))
    )
    gym.set_dof_actuation_force_tensor(sim, gymtorch.unwrap_tensor(-knees))
    gym.simulate(sim)
    assert (tensor(sim, "dof_force").view(2, 4, 2)[..., 1] < -0.5).all(), (
        "what brakes acts at any speed"
    )


def test_no_force_makes_a_dof_faster_than_its_limit_of_velocity() -> None:
    sim = make_sim(2, ground=False, fix_base_link=True)
    props = gym.get_actor_dof_properties(sim.envs[0], 0)
    props["armature"] = 1.0
    props["effort"] = 1e4
    props["hasLimits"] = False
    # 2000 N·m would give 10 rad/s within a step of 5 ms.
    props["velocity"] = 2.0
    gym.set_actor_dof_properties(sim.envs[0], 0, props)
    props["velocity"] = 1e3
    gym.set_actor_dof_properties(sim.envs[1], 0, props)
    put_to_pose(sim)
    start = tensor(sim, "dof_state").view(2, 8, 2)[..., 0].clone()
    for sign in (1.0, -1.0):
        forces = torch.full((2, 8), 2000.0 * sign)
        gym.set_dof_actuation_force_tensor(sim, unwrap(forces))
        gym.simulate(sim)
        states = tensor(sim, "dof_state").view(2, 8, 2)
        assert states[0, :, 1].tolist() == pytest.approx([2.0 * sign] * 8)
        if sign > 0:
            way = states[0, :, 0] - start[0]
            assert way.tolist() == pytest.approx([0.01] * 8, abs=1e-6)
            assert (states[1, :, 1] > 5.0).all()
    # It moved to and fro at the same speed.
    assert states[0, :, 0].tolist() == pytest.approx(start[0].tolist(), abs=1e-6)


def test_position_drives_are_implicit_in_both_gains_and_hold_their_targets() -> None:
    sim = make_sim(1, ground=False, prepare=False, fix_base_link=True, params=sim_params())
    env, inertia = sim.envs[0], 50.0  # so large that the links' own does not matter
    props = gym.get_actor_dof_properties(env, 0)
    props["driveMode"], props["stiffness"], props["damping"] = gymapi.DOF_MODE_POS, 900.0, 3.0
    props["armature"], props["effort"], props["friction"] = inertia, 1e6, 0.0
    gym.set_actor_dof_properties(env, 0, props)
    params = gym.get_sim_params(sim)
    params.gravity = gymapi.Vec3()
    gym.set_sim_params(sim, params)
    gym.prepare_sim(sim)
    gym.set_dof_position_target_tensor(sim, unwrap(torch.full((8,), 0.2)))
    q = v = 0.0
    for _ in range(100):  # v' = v + h/I (kp (target − q − h v') − kd v')
        gym.simulate(sim)
        v = (v + 0.005 / inertia * 900.0 * (0.2 - q)) / (
            1 + 0.005 / inertia * (3.0 + 900.0 * 0.005)
        )
        q += 0.005 * v
    assert tensor(sim, "dof_state")[:, 0].tolist() == pytest.approx([q] * 8, rel=5e-3)


def test_body_forces_act_at_the_centre_of_mass_for_one_step_and_are_no_contacts() -> None:
    sim = make_sim(2, ground=False)
    params = gym.get_sim_params(sim)
    params.gravity = gymapi.Vec3(0.0, 0.0, 0.0)
    gym.set_sim_params(sim, params)
    turned = tensor(sim, "actor_root_state")
    turned[1, 3:7] = torch.tensor([0.0, 0.0, 0.5**0.5, 0.5**0.5])  # x of the body is y of the world
    gym.set_actor_root_state_tensor(sim, unwrap(turned))
    force = torch.zeros(2, 13, 3)
    force[:, 0, 0] = 10.0
    contact = tensor(sim, "net_contact_force")
    momentum = []
    for space in (gymapi.CoordinateSpace.GLOBAL_SPACE, gymapi.CoordinateSpace.LOCAL_SPACE):
        gym.apply_rigid_body_force_tensors(sim, unwrap(force), None, space)
        gym.simulate(sim)
        gym.refresh_net_contact_force_tensor(sim)
        assert contact.abs().max() < 1e-6
        bodies = tensor(sim, "rigid_body_state").view(2, 13, 13)[..., 7:10]
        momentum.append((bodies * torch.from_numpy(sim.state.model.body_mass[1:, None])).sum(1))
    impulse = 10.0 * 0.005
    assert momentum[0].flatten().tolist() == pytest.approx([impulse, 0, 0, impulse, 0, 0], abs=1e-5)
    assert momentum[1].flatten().tolist() == pytest.approx(
        [2 * impulse, 0, 0, impulse, impulse, 0], abs=1e-3
    )
    gym.simulate(sim)
    bodies = tensor(sim, "rigid_body_state").view(2, 13, 13)[..., 7:10]
    after = (bodies * torch.from_numpy(sim.state.model.body_mass[1:, None])).sum(1)
    assert after.flatten().tolist() == pytest.approx(momentum[1].flatten().tolist(), abs=1e-3)
    assert gym.get_frame_count(sim) == 3


def test_gravity_changes_for_all_environments_at_any_time() -> None:
    sim = make_sim(2, ground=False)
    params = gym.get_sim_params(sim)
    params.gravity = gymapi.Vec3(*torch.tensor([1.0, 0.0, -2.0]))
    gym.set_sim_params(sim, params)
    gym.simulate(sim)
    assert tensor(sim, "actor_root_state")[:, 7:10].flatten().tolist() == pytest.approx(
        [0.005, 0, -0.01] * 2, abs=1e-5
    )
    params.dt = 0.01
    with pytest.raises(ValueError, match=r"substeps.*\(0\.00499.*, 1\)"):
        gym.set_sim_params(sim, params)


def test_properties_of_actors_change_while_the_simulation_runs_as_those_of_one_environment() -> (
    None
):
    sim = make_sim(2)
    env = sim.envs[1]
    shapes, props = (
        gym.get_actor_rigid_shape_properties(env, 0),
        gym.get_actor_rigid_body_properties(env, 0),
    )
    for shape in shapes:
        shape.friction = 0.0
    props[0].mass *= 2.0
    gym.set_actor_rigid_shape_properties(env, 0, shapes)
    gym.set_actor_rigid_body_properties(env, 0, props, True)
    dofs = gym.get_actor_dof_properties(env, 0)
    dofs["armature"] = 0.02
    gym.set_actor_dof_properties(env, 0, dofs)
    gym.simulate(sim)
    (first, _), (second, _) = reference(sim, 0), reference(sim, 1)
    assert (first.geom_friction[1, 0], second.geom_friction[1, 0]) == (1.0, 0.5)
    assert second.body_subtreemass[1] == pytest.approx(first.body_subtreemass[1] + 4.2, abs=1e-5)
    assert (second.dof_invweight0[6:] < first.dof_invweight0[6:]).all()
    assert gym.get_actor_rigid_body_properties(env, 0)[0].mass == pytest.approx(8.4, abs=1e-5)


# --- Collisions and grounds -------------------------------------------------------------------------------------------


def two_actors(groups=(0, 0), filters=(0, 0)):
    """One dog above another in each of two environments, without a ground."""
    sim = make_sim(0, ground=False, prepare=False)
    asset = load(sim, default_dof_drive_mode=3)
    for _ in range(2):
        env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
        for k in range(2):
            pose = gymapi.Transform(gymapi.Vec3(0.0, 0.0, 1.0 - 0.07 * k))
            gym.create_actor(env, asset, pose, f"dog{k}", groups[k], filters[k])
    gym.prepare_sim(sim)
    return sim


@pytest.mark.parametrize(
    ("groups", "filters", "touch"),
    [
        ((0, 0), (0, 0), True),
        ((0, 1), (0, 0), False),
        ((0, -1), (0, 0), True),
        ((0, 0), (1, 1), False),
        ((0, 0), (1, 2), True),
    ],
)
def test_actors_touch_in_one_group_unless_their_filters_have_a_bit_in_common(
    groups, filters, touch: bool
) -> None:
    sim = two_actors(groups, filters)
    gym.simulate(sim)
    forces = tensor(sim, "net_contact_force").view(2, 2, 13, 3)
    assert bool(forces.abs().sum() > 0.0) is touch
    assert tensor(sim, "actor_root_state").shape == (4, 13)
    assert tensor(sim, "actor_root_state")[1::2, 2].tolist() == pytest.approx([0.93] * 2, abs=0.02)
    assert (
        gym.find_actor_handle(sim.envs[1], "dog1") == 1
        and gym.find_actor_handle(sim.envs[1], "cat") == -1
    )
    assert gym.find_actor_rigid_body_handle(sim.envs[0], 1, "FL_thigh") == 14
    assert gym.find_actor_rigid_body_handle(sim.envs[0], 1, "tail") == -1


def test_the_second_actor_is_set_by_its_own_index() -> None:
    sim = two_actors((0, 1))
    root, dofs = tensor(sim, "actor_root_state"), tensor(sim, "dof_state")
    root[3, 0], dofs.view(2, 2, 8, 2)[1, 1, 3, 0] = 7.0, 0.5
    gym.set_actor_root_state_tensor_indexed(sim, unwrap(root), unwrap([3], torch.int32), 1)
    gym.set_dof_state_tensor_indexed(sim, unwrap(dofs), unwrap([3], torch.int32), 1)
    assert tensor(sim, "actor_root_state")[:, 0].tolist() == [0.0, 0.0, 0.0, 7.0]
    changed = tensor(sim, "dof_state")[:, 0].nonzero().flatten().tolist()
    assert changed == [8 + 8 + 8 + 3]


@pytest.mark.parametrize(("filter", "touch"), [(0, True), (1, False)])
def test_parts_of_a_robot_touch_each_other_with_filter_0_alone(filter: int, touch: bool) -> None:
    sim = make_sim(1, ground=False, filter=filter)
    states = torch.zeros(4, 2, 2)
    states[:, :, 0] = torch.tensor(
        [[1.2, 2.8], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    )  # a foot at the belly
    gym.set_dof_state_tensor(sim, unwrap(states))
    states[0, :, 0] = torch.tensor([0.0, 3.1])
    gym.set_dof_state_tensor(sim, unwrap(states))
    gym.simulate(sim)
    assert bool(tensor(sim, "net_contact_force").abs().sum() > 0.0) is touch


def test_a_fixed_base_stays_where_its_root_state_says() -> None:
    sim = make_sim(2, ground=False, fix_base_link=True)
    put_to_pose(sim)
    root = tensor(sim, "actor_root_state")
    root[1, :7] = torch.tensor([1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0])
    gym.set_actor_root_state_tensor_indexed(sim, unwrap(root), unwrap([1], torch.int32), 1)
    for _ in range(20):
        gym.simulate(sim)
    bodies = tensor(sim, "rigid_body_state").view(2, 13, 13)
    assert bodies[0, 0, :3].tolist() == pytest.approx([0.0, 0.0, 0.42])
    assert bodies[1, 0, :7].tolist() == pytest.approx([1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0])
    assert (tensor(sim, "dof_state")[:, 0] - POSE.repeat(2)).abs().max() > 1e-2


HEIGHTS = np.arange(24, dtype=np.int16).reshape(6, 4) ** 2 // 30


def heights_below(ground) -> np.ndarray:
    """What rays from above find at the points of ``HEIGHTS`` with the corner at (−1, −2, 0.5), 0.5 m apart."""
    sim = make_sim(0, ground=False, prepare=False)
    sim.ground = ground
    env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
    gym.create_actor(env, load(sim), gymapi.Transform(gymapi.Vec3(50.0, 0.0, 0.0)))
    gym.prepare_sim(sim)
    x, y = np.meshgrid(-1 + 0.5 * np.arange(6), -2 + 0.5 * np.arange(4), indexing="ij")
    inside = np.clip(x, -0.999, 1.499), np.clip(y, -1.999, -0.501)
    points = np.stack((*inside, np.full_like(x, 9.0)), axis=-1).reshape(-1, 3)
    distance, _ = sim.state.batch.ray(points, [0.0, 0.0, -1.0])
    return 9.0 - distance.reshape(6, 4)


@pytest.mark.parametrize(
    "samples",
    [lambda h: (h, 4, 6), lambda h: (h.T, 4, 6), lambda h: (h.transpose(), 6, 4)],
    ids=["LG", "WTW", "EX"],
)
def test_a_height_field_lies_as_in_memory(samples) -> None:
    given, rows, columns = samples(HEIGHTS)
    params = gymapi.HeightFieldParams(0.5, 0.5, 0.1, rows, columns)
    params.transform.p = gymapi.Vec3(-1.0, -2.0, 0.5)
    assert heights_below(height_field(given, params)) == pytest.approx(
        HEIGHTS * 0.1 + 0.5, abs=0.02
    )


@pytest.mark.parametrize("threshold", [None, 0.75])
def test_a_mesh_of_a_grid_is_that_height_field(threshold) -> None:
    vertices, triangles = terrain_utils.convert_heightfield_to_trimesh(HEIGHTS, 0.5, 0.1, threshold)
    params = gymapi.TriangleMeshParams(nb_vertices=len(vertices), nb_triangles=len(triangles))
    params.transform.p = gymapi.Vec3(-1.0, -2.0, 0.5)
    ground = triangle_mesh(vertices.flatten(), triangles.flatten(), params)
    assert ground.terrain.heights == pytest.approx(HEIGHTS * 0.1 + 0.5, abs=1e-6)
    assert (ground.terrain.horizontal_scale, *ground.terrain.low) == pytest.approx(
        (0.5, -1.0, -2.0)
    )


def test_steep_walls_of_a_mesh_are_vertical_and_normals_point_up() -> None:
    heights = np.zeros((5, 7), np.int16)
    heights[3:] = 100
    vertices, triangles = terrain_utils.convert_heightfield_to_trimesh(heights, 0.1, 0.005, 0.75)
    assert vertices.dtype == np.float32 and triangles.dtype == np.uint32
    assert vertices.reshape(5, 7, 3)[2, :, 0] == pytest.approx(0.3), (
        "the foot of the wall is below its top"
    )
    flat, _ = terrain_utils.convert_heightfield_to_trimesh(heights, 0.1, 0.005)
    assert flat.reshape(5, 7, 3)[2, :, 0] == pytest.approx(0.2)
    a, b, c = (flat[triangles[:, i]] for i in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0).all() and len(triangles) == 2 * 4 * 6


def test_tiles_are_what_their_names_say() -> None:
    def tile():
        return terrain_utils.SubTerrain(
            "t", width=80, length=80, vertical_scale=0.005, horizontal_scale=0.1
        )

    np.random.seed(0)
    slope = terrain_utils.pyramid_sloped_terrain(
        tile(), slope=0.2, platform_size=2.0
    ).height_field_raw
    assert (
        slope[40, 40] * 0.005 == pytest.approx(0.8 * 0.75**2, abs=0.03)
        and (slope[32:48, 32:48] == slope[40, 40]).all()
    )
    assert slope[40, 20] * 0.005 == pytest.approx(0.4, abs=0.03) and slope[0, 0] == 0
    assert (
        terrain_utils.pyramid_sloped_terrain(tile(), -0.2, 2.0).height_field_raw.min()
        == -slope.max()
    )
    stairs = terrain_utils.pyramid_stairs_terrain(
        tile(), step_width=0.31, step_height=-0.1, platform_size=3.0
    )
    assert np.unique(stairs.height_field_raw).tolist() == list(range(-180, 1, 20))
    assert (stairs.height_field_raw[27:53, 27:53] == stairs.height_field_raw[40, 40]).all()
    rough = terrain_utils.random_uniform_terrain(
        tile(), -0.05, 0.05, step=0.005, downsampled_scale=0.2
    )
    assert abs(rough.height_field_raw).max() == 10 and rough.height_field_raw.std() > 2
    blocks = terrain_utils.discrete_obstacles_terrain(
        tile(), 0.2, 1.0, 2.0, 20, platform_size=3.0
    ).height_field_raw
    assert (
        {*np.unique(blocks)} <= {-40, -20, 0, 20, 40}
        and (blocks[26:54, 26:54] == 0).all()
        and blocks.any()
    )
    stones = terrain_utils.stepping_stones_terrain(
        tile(), 1.0, 0.2, 0.0, platform_size=4.0
    ).height_field_raw
    assert {*np.unique(stones)} == {-2000, -1, 0} and (stones[22:58, 22:58] == 0).all()
    assert 0.1 < (stones < -1).mean() < 0.4


def test_rows_of_stones_lie_across_the_longer_side_of_a_tile() -> None:
    fields = {}
    for width, length in ((60, 90), (90, 60)):
        tile = terrain_utils.SubTerrain("tile", width, length, 0.005, 0.1)
        np.random.seed(0)
        terrain_utils.stepping_stones_terrain(tile, 1.0, 0.4, 0.1)
        fields[width] = tile.height_field_raw
    # Every row has the same place along the long side: a whole line of the bottom lies behind it.
    assert (fields[60][:, 10:14] == -2000).all() and not (fields[60][10:14, :20] == -2000).all()
    assert np.array_equal(fields[90], fields[60].T)


def test_random_heights_have_isaac_gyms_number_of_points() -> None:
    tile = terrain_utils.SubTerrain("tile", 86, 86, 0.005, 0.1)
    np.random.seed(0)
    terrain_utils.random_uniform_terrain(tile, -1.0, 1.0, 0.005, downsampled_scale=0.2)
    np.random.seed(0)
    drawn = np.random.choice(np.arange(-200, 201), (42, 42))  # int(86 * 0.1 / 0.2)
    corners = tile.height_field_raw[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert corners.tolist() == drawn[[0, 0, -1, -1], [0, -1, 0, -1]].tolist()


# --- Words ------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_quaternions_agree_with_the_packages_own_and_are_scriptable() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch_utils.normalize(torch.randn(5, 4, generator=generator)) for _ in range(2))
    v = torch.randn(5, 3, generator=generator)
    first = [3, 0, 1, 2]
    assert torch.allclose(torch_utils.quat_apply(a, v), rotation.rotate(a[:, first], v), atol=1e-6)
    inverse = rotation.rotate_inverse(a[:, first], v[:, None])[:, 0]
    assert torch.allclose(torch_utils.quat_rotate_inverse(a, v), inverse, atol=1e-6)
    both = torch_utils.quat_apply(torch_utils.quat_mul(a, b), v)
    assert torch.allclose(both, torch_utils.quat_apply(a, torch_utils.quat_apply(b, v)), atol=1e-6)
    there = torch_utils.quat_apply(torch_utils.quat_conjugate(a), torch_utils.quat_apply(a, v))
    assert torch.allclose(there, v, atol=1e-6)
    turn = torch_utils.quat_from_angle_axis(
        torch.full((5,), torch.pi / 2), torch.tensor([[0.0, 0.0, 2.0]] * 5)
    )
    assert torch.allclose(torch_utils.quat_apply(turn, v)[:, 0], -v[:, 1], atol=1e-6)
    for name in (
        "quat_apply",
        "quat_mul",
        "quat_rotate_inverse",
        "quat_from_angle_axis",
        "normalize",
    ):
        torch.jit.script(getattr(torch_utils, name))
    assert torch_utils.get_axis_params(-1.0, 2) == [0.0, 0.0, -1.0]
    draws = torch_utils.torch_rand_float(-2.0, 3.0, (1000, 2), device="cpu")
    assert draws.shape == (1000, 2) and -2.0 <= draws.min() < -1.9 and 2.9 < draws.max() < 3.0


def test_devices_of_cuda_are_the_cpu_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gymutil.parse_device_str("cuda:0") == ("cpu", 0) == gymutil.parse_device_str("cpu")
    assert torch_utils.to_torch([1, 2]).device.type == "cpu"
    custom = [
        {"name": "--rl_device", "type": str, "default": "cuda:0"},
        {"name": "--headless", "action": "store_true"},
    ]
    monkeypatch.setattr(sys, "argv", ["x", "--headless", "--num_threads", "2"])
    args = gymutil.parse_arguments("d", custom_parameters=custom)
    assert (args.rl_device, args.sim_device_type, args.use_gpu_pipeline, args.use_gpu) == (
        "cpu",
        "cpu",
        False,
        False,
    )
    assert args.headless and args.num_threads == 2 and args.physics_engine == gymapi.SIM_PHYSX
    monkeypatch.setattr(sys, "argv", ["x", "--nographics", "--pipeline", "CPU"])
    args = gymutil.parse_arguments("d", no_graphics=True)
    assert args.headless and args.pipeline == "cpu"
    monkeypatch.setattr(sys, "argv", ["x"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert gymutil.parse_device_str("cuda:1") == ("cuda", 1)
    assert gymutil.parse_arguments("d", custom_parameters=custom).rl_device == "cuda:0"
    with pytest.raises(ValueError, match="'tpu'"):
        gymutil.parse_device_str("tpu")


def test_sim_configs_are_dicts_or_classes() -> None:
    physx = {"num_threads": 3, "contact_offset": 1}
    for config in (
        {"dt": 0.01, "gravity": [0, 0, -9.8], "up_axis": 1, "physx": physx},
        vars(
            type(
                "cfg",
                (),
                {"dt": 0.01, "gravity": [0, 0, -9.8], "up_axis": 1, "physx": type("p", (), physx)},
            )
        ),
    ):
        gymutil.parse_sim_config(config, params := gymapi.SimParams())
        assert (params.dt, params.gravity.z) == (np.float32(0.01), np.float32(-9.8))
        assert params.up_axis == gymapi.UP_AXIS_Z
        assert (params.physx.num_threads, params.physx.contact_offset) == (3, 1.0)
    gymutil.parse_sim_config(
        {"IK_max_targets": 2, "physx": {"cone": 1}}, gymapi.SimParams()
    )  # of other engines
    with pytest.raises(ValueError, match=r"'substep'.*'substeps'"):
        gymutil.parse_sim_config({"substep": 2}, gymapi.SimParams())


def test_numbers_may_be_tensors_and_records_are_their_own() -> None:
    assert gymapi.Vec3(*torch.tensor([1.0, 2.0, 3.0])).values == (1.0, 2.0, 3.0)
    shape = gymapi.RigidShapeProperties()
    shape.friction = torch.tensor([[0.25]])
    assert shape.friction == 0.25 and isinstance(shape.friction, float)
    shape.friction = np.array([0.5])
    assert shape.friction == 0.5
    pose, other = gymapi.Transform(), gymapi.Transform(r=None)
    pose.p.x = 1.0
    assert other.p.x == 0.0 and other.r.w == 1.0
    with pytest.raises(
        AttributeError,
        match=r"'colapse_fixed_joints'.*'collapse_fixed_joints'",
    ):
        gymapi.AssetOptions().colapse_fixed_joints = True
    with pytest.raises(TypeError, match=r"Vec3.*3.*4"):
        gymapi.Vec3(1, 2, 3, 4)


TABLE = """acquire_actor_root_state_tensor acquire_dof_force_tensor acquire_dof_state_tensor
acquire_net_contact_force_tensor acquire_rigid_body_state_tensor add_ground add_heightfield add_triangle_mesh
apply_rigid_body_force_tensors clear_lines create_actor create_camera_sensor create_env create_sim create_viewer
destroy_sim destroy_viewer draw_viewer enable_actor_dof_force_sensors fetch_results find_actor_handle
find_actor_rigid_body_handle get_actor_count get_actor_dof_properties get_actor_handle get_actor_name
get_actor_rigid_body_count get_actor_rigid_body_properties get_actor_rigid_shape_count
get_actor_rigid_shape_properties get_actor_tendon_properties get_asset_dof_count get_asset_dof_names
get_asset_dof_properties get_asset_rigid_body_count get_asset_rigid_body_names get_asset_rigid_shape_properties
get_camera_image get_frame_count get_sim_params load_asset poll_viewer_events prepare_sim query_viewer_action_events
query_viewer_has_closed refresh_actor_root_state_tensor refresh_dof_force_tensor refresh_dof_state_tensor
refresh_net_contact_force_tensor refresh_rigid_body_state_tensor render_all_camera_sensors set_actor_dof_properties
set_actor_rigid_body_properties set_actor_rigid_shape_properties set_actor_root_state_tensor
set_actor_root_state_tensor_indexed set_actor_scale set_actor_tendon_properties set_asset_rigid_shape_properties
set_camera_location set_dof_actuation_force_tensor set_dof_position_target_tensor set_dof_state_tensor_indexed
set_rigid_body_color set_sim_params simulate step_graphics subscribe_viewer_keyboard_event sync_frame_time
viewer_camera_look_at write_viewer_image_to_file"""
WORDS = {
    gymapi: """AssetOptions CameraProperties ContactCollection CoordinateSpace DOF_MODE_EFFORT DOF_MODE_NONE
        DOF_MODE_POS HeightFieldParams IMAGE_COLOR KEY_ESCAPE KEY_R KEY_V MESH_VISUAL PlaneParams Quat SIM_FLEX
        SIM_PHYSX SimParams Transform TriangleMeshParams UP_AXIS_Y UP_AXIS_Z Vec3 acquire_gym""",
    gymutil: """WireframeBoxGeometry WireframeSphereGeometry draw_lines parse_arguments parse_device_str
        parse_sim_config""",
    gymtorch: "unwrap_tensor wrap_tensor",
    torch_utils: """get_axis_params normalize quat_apply quat_conjugate quat_from_angle_axis quat_mul
        quat_rotate_inverse to_torch torch_rand_float""",
    terrain_utils: """SubTerrain convert_heightfield_to_trimesh discrete_obstacles_terrain pyramid_sloped_terrain
        pyramid_stairs_terrain random_uniform_terrain stepping_stones_terrain""",
    gym: TABLE,
}


def test_every_symbol_of_the_table_is_there_and_any_other_is_refused_by_its_name() -> None:
    for owner, names in WORDS.items():
        for name in names.split():
            assert getattr(owner, name) is not None
    assert sum(len(names.split()) for names in WORDS.values()) >= 119
    others = {
        gymapi: "UsdExportOptions",
        gymutil: "generate_random_samples",
        gymtorch: "x",
        torch_utils: "quat_axis",
        gym: "create_nothing",
    }
    for owner, name in others.items():
        with pytest.raises(AttributeError, match=rf"{name}.*docs/isaacgym\.md"):
            getattr(owner, name)
    with pytest.raises(AttributeError, match="gymdeps"):
        _ = package.gymdeps
    with pytest.raises(ImportError, match="UsdExportOptions"):
        from legged_envs.compat.isaac_gym.gymapi import UsdExportOptions  # noqa: F401
    assert not hasattr(gymapi, "UsdExportOptions")
    instead = {
        "destroy_actor": "destroy",
        "create_rigid_body_attractor": "apply_rigid_body_force_tensors",
        "get_env_rigid_contacts": "acquire_net_contact_force_tensor",
        "set_actor_rigid_body_states": "set_actor_root_state_tensor",
        "create_cloth_grid": "cloth",
    }
    for name, advice in instead.items():
        with pytest.raises(AttributeError, match=rf"gym\.{name} .*{advice}"):
            getattr(gym, name)
    for name in ("get_actor_tendon_properties", "set_actor_tendon_properties"):
        with pytest.raises(NotImplementedError, match="tendon_properties"):
            getattr(gym, name)(None, 0)


# --- Bad input --------------------------------------------------------------------------------------------------------

STATES = torch.zeros(2, 13)
BAD_TENSORS = [
    (
        "set_actor_root_state_tensor",
        (unwrap(torch.zeros(3, 13)),),
        ValueError,
        r"\(3, 13\).*\(2, 13\)",
    ),
    (
        "set_actor_root_state_tensor",
        (unwrap(STATES, torch.float64),),
        TypeError,
        "torch.float64",
    ),
    ("set_actor_root_state_tensor", (unwrap(STATES.to("meta")),), ValueError, "meta"),
    ("set_actor_root_state_tensor", (STATES,), TypeError, "unwrap_tensor.*Tensor"),
    (
        "set_dof_actuation_force_tensor",
        (unwrap(torch.zeros(2, 7)),),
        ValueError,
        r"\(2, 7\).*\(2, 8\).*dofs",
    ),
    (
        "apply_rigid_body_force_tensors",
        (unwrap(torch.zeros(2, 12, 3)),),
        ValueError,
        r"\(2, 12, 3\).*bodies",
    ),
    (
        "apply_rigid_body_force_tensors",
        (unwrap(torch.zeros(2, 13, 3)), None, 7),
        ValueError,
        "CoordinateSpace.*7",
    ),
    ("set_actor_root_state_tensor", (unwrap(torch.zeros(13, 2)),), ValueError, r"\(13, 2\)"),
    (
        "set_dof_state_tensor",
        (unwrap(torch.zeros(2, 16)),),
        ValueError,
        r"\(2, 16\).*\(16, 2\)",
    ),
    ("set_dof_actuation_force_tensor", (unwrap(torch.zeros(8, 2)),), ValueError, r"\(8, 2\)"),
    (
        "set_actor_root_state_tensor_indexed",
        (unwrap(STATES), unwrap([0, 1], torch.int32), -1),
        ValueError,
        "indices.*-1",
    ),
    (
        "set_actor_root_state_tensor_indexed",
        (unwrap(STATES), unwrap([0, 2], torch.int32), 2),
        ValueError,
        "0 to 1.*actor 2",
    ),
    (
        "set_actor_root_state_tensor_indexed",
        (unwrap(STATES), unwrap([-1], torch.int32), 1),
        ValueError,
        "actor -1",
    ),
    (
        "set_actor_root_state_tensor_indexed",
        (unwrap(STATES), unwrap([0], torch.int64), 1),
        TypeError,
        "torch.int64",
    ),
    (
        "set_actor_root_state_tensor_indexed",
        (unwrap(STATES), unwrap([0], torch.int32), 2),
        ValueError,
        "2 indices",
    ),
]


@pytest.mark.parametrize(("function", "arguments", "error", "message"), BAD_TENSORS)
def test_tensors_that_do_not_fit_are_refused_and_nothing_is_written(
    function, arguments, error, message: str
) -> None:
    sim = make_sim()
    before = sim.state.batch.state.copy()
    with pytest.raises(error, match=message):
        getattr(gym, function)(sim, *arguments)
    assert (sim.state.batch.state == before).all()


def test_forces_of_a_call_that_is_refused_do_not_act() -> None:
    sim = make_sim()
    good, bad = unwrap(torch.full((2, 13, 3), 300.0)), unwrap(torch.zeros(2, 12, 3))
    with pytest.raises(ValueError, match=r"\(2, 12, 3\)"):
        gym.apply_rigid_body_force_tensors(sim, good, bad)
    other = make_sim()
    for each in (sim, other):
        gym.simulate(each)
    assert (sim.state.batch.state == other.state.batch.state).all()


def test_tensors_with_gradients_leave_none_behind() -> None:
    sim = make_sim()
    gym.set_dof_actuation_force_tensor(sim, unwrap(torch.ones(2, 8, requires_grad=True)))
    gym.simulate(sim)
    assert not sim.state._ctrl.requires_grad


def test_strided_tensors_and_what_is_no_tensor_are_refused() -> None:
    with pytest.raises(ValueError, match=r"contiguous.*\(2, 12\)"):
        gymtorch.unwrap_tensor(STATES[:, 1:])
    with pytest.raises(TypeError, match="list"):
        gymtorch.unwrap_tensor([1.0])


def test_calls_out_of_order_are_refused_by_their_name() -> None:
    sim = make_sim(prepare=False)
    for name in ("refresh_dof_state_tensor", "acquire_dof_state_tensor", "simulate"):
        with pytest.raises(RuntimeError, match=rf"{name}.*prepare_sim"):
            getattr(gym, name)(sim)
    gym.prepare_sim(sim)
    for call in (lambda: gym.prepare_sim(sim), lambda: gym.create_env(sim, None, None, 1)):
        with pytest.raises(RuntimeError, match="prepare_sim"):
            call()
    with pytest.raises(RuntimeError, match="create_actor"):
        gym.prepare_sim(make_sim(0, prepare=False))
    with pytest.raises(RuntimeError, match="plane"):
        gym.add_ground(make_sim(prepare=False), gymapi.PlaneParams())
    gym.destroy_sim(sim)
    for call in (lambda: gym.simulate(sim), lambda: gym.create_env(sim, None, None, 1)):
        with pytest.raises(RuntimeError, match="destroy_sim"):
            call()


def test_environments_with_other_actors_than_the_first_are_refused() -> None:
    sim = make_sim(2, prepare=False)
    gym.create_actor(sim.envs[1], load(sim), gymapi.Transform(), "dog", 1, 0)
    with pytest.raises(ValueError, match="environment 1"):
        gym.prepare_sim(sim)
    assert sim.state is None
    with pytest.raises(ValueError, match=r"environment 0.*handle=3"):
        gym.get_actor_name(sim.envs[0], 3)


def test_properties_that_do_not_fit_are_refused() -> None:
    sim = make_sim(1)
    env = sim.envs[0]
    props = gym.get_actor_dof_properties(env, 0)
    for field, value, message in (
        ("driveMode", 4, "driveMode"),
        ("effort", -1.0, "effort"),
        ("velocity", np.nan, "velocity"),
        ("stiffness", np.inf, "stiffness"),
        ("lower", np.nan, "lower"),
        ("lower", 9.0, "lower"),
    ):
        wrong = props.copy()
        wrong[field][0] = value
        with pytest.raises(ValueError, match=message):
            gym.set_actor_dof_properties(env, 0, wrong)
    with pytest.raises(ValueError, match=r"\(8,\)"):
        gym.set_actor_dof_properties(env, 0, props[:3])
    bodies = gym.get_actor_rigid_body_properties(env, 0)
    bodies[0].mass = 0.0
    with pytest.raises(ValueError, match="13 bodies"):
        gym.set_actor_rigid_body_properties(env, 0, bodies)
    shapes = gym.get_actor_rigid_shape_properties(env, 0)
    with pytest.raises(ValueError, match="10 shapes"):
        gym.set_actor_rigid_shape_properties(env, 0, shapes[:2])
    shapes[0].restitution = 0.5
    with pytest.warns(UserWarning, match="restitution"):
        gym.set_actor_rigid_shape_properties(env, 0, shapes)
    shapes[0].filter = 1
    with pytest.raises(ValueError, match=r"filters stay.*prepare_sim"):
        gym.set_actor_rigid_shape_properties(env, 0, shapes)
    with pytest.raises(NotImplementedError, match="set_actor_scale"):
        gym.set_actor_scale(env, 0, 1.1)


def test_limits_can_be_given_and_taken_from_each_dof() -> None:
    sim = make_sim(2, prepare=False)
    props = gym.get_actor_dof_properties(sim.envs[0], 0)
    assert props["hasLimits"].tolist() == [True, False] * 4, "those of the file"
    props["hasLimits"], props["lower"], props["upper"] = False, -0.5, 0.5
    gym.set_actor_dof_properties(sim.envs[0], 0, props)
    props["hasLimits"] = True
    gym.set_actor_dof_properties(sim.envs[1], 0, props)
    gym.prepare_sim(sim)
    for _ in range(40):
        gym.set_dof_actuation_force_tensor(sim, unwrap(torch.full((2, 8), 2.0)))
        gym.simulate(sim)
    free, limited = tensor(sim, "dof_state").view(2, 8, 2)[..., 0]
    upper = torch.from_numpy(props["upper"].copy())
    assert (limited < upper + 0.2).all() and (free > upper + 1.0).any()
    gym.set_actor_dof_properties(sim.envs[0], 0, props)  # also while it runs
    for _ in range(40):
        gym.simulate(sim)
    assert (tensor(sim, "dof_state").view(2, 8, 2)[0, :, 0] < upper + 0.2).all()


def test_records_take_finite_numbers_and_records_alone() -> None:
    for make, error, message in (
        (lambda: gymapi.Vec3(np.nan), ValueError, "Vec3.x.*nan"),
        (
            lambda: gymapi.PlaneParams(dynamic_friction=np.inf),
            ValueError,
            "dynamic_friction",
        ),
        (
            lambda: gymapi.SimParams(gravity=[0, 0, -9.81]),
            TypeError,
            r"gravity.*Vec3.*\[0, 0",
        ),
        (lambda: gymapi.Transform(3.0), TypeError, "Transform.p.*Vec3"),
    ):
        with pytest.raises(error, match=message):
            make()
    sim = make_sim(1, prepare=False)
    with pytest.raises(TypeError, match=r"create_actor.*str and Transform"):
        gym.create_actor(sim.envs[0], "dog", gymapi.Transform())
    with pytest.raises(ValueError, match=r"set_sim_params.*substeps"):
        gym.set_sim_params(sim, gymapi.SimParams(substeps=0))
    for options, message in (
        (gymapi.AssetOptions(default_dof_drive_mode=7), "default_dof_drive_mode.*7"),
        (gymapi.AssetOptions(density=-1.0), "density"),
    ):
        with pytest.raises(ValueError, match=message):
            gym.load_asset(sim, str(Path(__file__).parents[2]), "legacy_dog.urdf", options)


def test_a_cropped_height_field_lies_as_its_copy_does() -> None:
    large = np.arange(40 * 50, dtype=np.int16).reshape(40, 50)
    cropped, params = large[10:30, 5:45], gymapi.HeightFieldParams(0.5, 0.5, 0.01, 20, 40)
    assert not (cropped.flags.c_contiguous or cropped.flags.f_contiguous)
    np.testing.assert_array_equal(
        height_field(cropped, params).terrain.heights,
        height_field(cropped.copy(), params).terrain.heights,
    )


def test_grounds_that_are_no_height_field_are_refused() -> None:
    turned = gymapi.HeightFieldParams(
        0.5, 0.5, 0.1, 6, 4, gymapi.Transform(None, gymapi.Quat(0.0, 0.0, 0.7, 0.7))
    )
    with pytest.raises(ValueError, match=r"transform\.r"):
        height_field(HEIGHTS, turned)
    with pytest.raises(ValueError, match="finite"):
        height_field(
            np.where(HEIGHTS > 0, np.nan, HEIGHTS), gymapi.HeightFieldParams(0.5, 0.5, 1, 6, 4)
        )
    with pytest.raises(ValueError, match=r"dynamic_friction.*-3"):
        plane(gymapi.PlaneParams(dynamic_friction=-3.0))
    with pytest.raises(ValueError, match="normal"):
        plane(gymapi.PlaneParams(gymapi.Vec3()))
    triangle = np.array([0, 0, 0, 1, 0, 0, 0, 1, 0], np.float32)
    with pytest.raises(ValueError, match="0 to 2, got 0 to 3"):
        triangle_mesh(triangle, np.array([0, 1, 3], np.uint32), gymapi.TriangleMeshParams())
    with pytest.raises(ValueError, match=r"nbRows=3, nbColumns=4.*\(6, 4\)"):
        height_field(HEIGHTS, gymapi.HeightFieldParams(0.5, 0.5, 0.1, 3, 4))
    with pytest.raises(ValueError, match=r"row_scale=0\.4.*column_scale=0\.5"):
        height_field(HEIGHTS, gymapi.HeightFieldParams(0.5, 0.4, 0.1, 6, 4))


def test_engines_and_displays_that_there_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="SIM_PHYSX"):
        gym.create_sim(0, -1, gymapi.SIM_FLEX, gymapi.SimParams())
    with pytest.raises(ValueError, match=r"create_sim.*dt"):
        gym.create_sim(0, -1, gymapi.SIM_PHYSX, gymapi.SimParams(dt=0.0))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(RuntimeError, match="--headless"):
        gym.create_viewer(make_sim(1), gymapi.CameraProperties())


def test_numbers_that_are_not_finite_are_told_and_do_not_spread() -> None:
    sim = make_sim(3)
    forces = torch.zeros(3, 8)
    forces[1] = float("nan")
    gym.set_dof_actuation_force_tensor(sim, unwrap(forces))
    with pytest.warns(RuntimeWarning, match=r"environments \[1\]"):
        gym.simulate(sim)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gym.simulate(sim)
    assert torch.isfinite(tensor(sim, "actor_root_state")).all()


# --- The name isaacgym ------------------------------------------------------------------------------------------------


def run(*command: str, **options) -> SimpleNamespace:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=120, **options
    )


def test_a_script_for_isaac_gym_runs_as_it_is() -> None:
    script = [
        str(HERE / "legacy_task.py"),
        "--num_envs",
        "8",
        "--steps",
        "20",
        "--headless",
        "--terrain",
        "rough",
    ]
    done = run("-m", "legged_envs.compat.isaac_gym", *script)
    assert done.returncode == 0, done.stderr
    assert "finite True device cpu" in done.stdout and done.stdout.strip().endswith(
        "--headless --terrain rough"
    )
    assert float(done.stdout.split("weight ")[1].split()[0]) > 20.0


def test_without_a_script_there_is_a_usage() -> None:
    done = run("-m", "legged_envs.compat.isaac_gym", "nothing.py")
    assert done.returncode != 0 and "there is no file 'nothing.py'" in done.stderr


def test_the_name_is_not_taken_by_itself_nor_from_a_real_one(tmp_path: Path) -> None:
    (tmp_path / "isaacgym.py").write_text("REAL = True")
    (tmp_path / "downloads" / "isaacgym" / "docs").mkdir(
        parents=True
    )  # a folder without Python in it is no package
    code = """
import importlib.util, sys
import legged_envs, legged_envs.compat.isaac_gym
assert importlib.util.find_spec("isaacgym") is None
sys.path.insert(0, sys.argv[1] + "/downloads")
assert importlib.util.find_spec("isaacgym") is not None
legged_envs.compat.isaac_gym.install()
legged_envs.compat.isaac_gym.install()
import isaacgym, isaacgym.torch_utils
from isaacgym import gymapi, gymutil
from isaacgym.terrain_utils import *
assert gymapi is sys.modules["legged_envs.compat.isaac_gym.gymapi"] and SubTerrain
for words in ("import isaacgym.gymdeps", "import isaacgym.sim", "from isaacgym import gymdeps", "isaacgym.gymdeps"):
    try:
        exec(words)
        raise SystemExit(words)
    except (ImportError, AttributeError) as error:
        assert "isaacgym.sim" in str(error) or "gymdeps" in str(error), error
for name in [name for name in sys.modules if name.startswith("isaacgym")]: del sys.modules[name]
sys.path.insert(0, sys.argv[1])
try: legged_envs.compat.isaac_gym.install()
except ImportError as error: assert "does not replace" in str(error) and sys.argv[1] in str(error), error
else: raise AssertionError
import isaacgym
assert isaacgym.REAL
"""
    done = run("-c", code, str(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.render
def test_a_camera_sees_the_robot(tmp_path: Path) -> None:
    sim = make_sim(2)
    put_to_pose(sim)
    properties = gymapi.CameraProperties(width=64, height=48, horizontal_fov=58.0)
    cameras = [gym.create_camera_sensor(env, properties) for env in sim.envs]
    root = tensor(sim, "actor_root_state")
    root[1, 2] = 50.0
    gym.set_actor_root_state_tensor(sim, unwrap(root))
    pictures = []
    for camera, env in zip(cameras, sim.envs, strict=True):
        gym.set_camera_location(camera, env, gymapi.Vec3(1.0, 1.0, 0.6), gymapi.Vec3(0.0, 0.0, 0.3))
        gym.render_all_camera_sensors(sim)
        pictures.append(gym.get_camera_image(sim, env, camera, gymapi.IMAGE_COLOR))
    assert pictures[0].shape == (48, 4 * 64) and pictures[0].dtype == np.uint8
    assert (pictures[0].reshape(48, 64, 4)[..., 3] == 255).all()
    assert (pictures[0] != pictures[1]).mean() > 0.02
    narrow = gym.create_camera_sensor(
        sim.envs[0], gymapi.CameraProperties(width=64, height=48, horizontal_fov=30.0)
    )
    gym.set_camera_location(
        narrow, sim.envs[0], gymapi.Vec3(1.0, 1.0, 0.6), gymapi.Vec3(0.0, 0.0, 0.3)
    )
    wide = pictures[0].reshape(48, 64, 4)[:, :, :3].astype(float)
    near = gym.get_camera_image(sim, sim.envs[0], narrow, gymapi.IMAGE_COLOR).reshape(48, 64, 4)[
        :, :, :3
    ]
    part = math.tan(math.radians(15.0)) / math.tan(
        math.radians(29.0)
    )  # of the wide picture, in its middle
    rows, columns = (
        np.rint((n - 1) / 2 + (np.arange(n) - (n - 1) / 2) * part).astype(int) for n in (48, 64)
    )
    assert abs(wide[np.ix_(rows, columns)] - near).mean() < 0.5 * abs(wide - near).mean()
    for camera in (*cameras, narrow):
        camera.close()
    with pytest.raises((NotImplementedError, ValueError), match="7"):
        gym.get_camera_image(sim, sim.envs[0], cameras[0], 7)


class Window:
    """What ``mujoco.viewer.launch_passive`` returns, as far as the renderer uses it, until the third picture."""

    def __init__(self, model, data):
        self.data, self.cam, self.user_scn, self.shown = (
            data,
            mujoco.MjvCamera(),
            SimpleNamespace(ngeom=0),
            0,
        )

    def set_texts(self, texts) -> None:
        self.texts = texts

    def sync(self) -> None:
        self.shown += 1

    def is_running(self) -> bool:
        return self.shown < 3

    def close(self) -> None:
        self.shown = -1


def test_the_window_shows_environment_0_from_where_the_camera_is_put(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    windows: list[Window] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(
        "mujoco.viewer.launch_passive",
        lambda model, data, **_: windows.append(Window(model, data)) or windows[0],
    )
    sim = make_sim(2)
    viewer = gym.create_viewer(sim, gymapi.CameraProperties())
    gym.subscribe_viewer_keyboard_event(viewer, gymapi.KEY_ESCAPE, "QUIT")
    gym.viewer_camera_look_at(viewer, None, gymapi.Vec3(0.0, -2.0, 0.5), gymapi.Vec3(0.0, 0.0, 0.5))
    for i in range(3):
        assert (
            not gym.query_viewer_has_closed(viewer) and gym.query_viewer_action_events(viewer) == []
        )
        gym.simulate(sim)
        gym.step_graphics(sim)
        gym.draw_viewer(viewer, sim, True)
        gym.clear_lines(viewer)
        assert windows[0].shown == i + 1 and windows[0].data.qpos[2] == sim.state.batch.qpos[0, 2]
    assert (windows[0].cam.distance, windows[0].cam.azimuth) == (2.0, 90.0)
    assert gym.query_viewer_has_closed(viewer)
    gym.destroy_viewer(viewer)
    assert windows[0].shown == -1


def test_frames_take_as_long_as_they_simulate() -> None:
    sim = make_sim(1)
    gym.sync_frame_time(sim)
    start = time.monotonic()
    for _ in range(10):
        gym.simulate(sim)
    gym.sync_frame_time(sim)
    assert time.monotonic() - start >= 0.0499


@pytest.mark.parametrize(("width", "slope"), [(80, 0.13), (81, 0.37), (81, -0.4)])
def test_a_pyramid_has_isaac_gyms_heights(width, slope) -> None:
    """The formula of Isaac Gym's documentation, point by point in whole numbers."""
    tile = terrain_utils.SubTerrain(
        "t", width=width, length=width, vertical_scale=0.005, horizontal_scale=0.1
    )
    heights = terrain_utils.pyramid_sloped_terrain(tile, slope, 1.0).height_field_raw
    centre = width // 2
    top = int(slope * (0.1 / 0.005) * (width / 2))
    expected = np.zeros((width, width), np.int16)
    for i in range(width):
        for j in range(width):
            share = ((centre - abs(centre - i)) / centre) * ((centre - abs(centre - j)) / centre)
            expected[i, j] = int(top * share)
    edge = expected[centre - 5, centre - 5]
    assert (heights == expected.clip(min(edge, 0), max(edge, 0))).all()


def test_a_platform_of_an_odd_number_of_points_is_whole() -> None:
    tile = terrain_utils.SubTerrain(
        "t", width=81, length=81, vertical_scale=0.005, horizontal_scale=0.1
    )
    tile.height_field_raw[:] = 9
    tile.flatten_middle(0.5001)
    assert (tile.height_field_raw == 0).sum() == 25
