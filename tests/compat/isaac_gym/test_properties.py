"""Properties of bodies and drives while a simulation runs; calls that are refused."""

import mujoco
import numpy as np
import pytest
import torch
from isaac_gym_dogs import INERTIAL, gym, load_dog, make_sim, read, unwrap

from legged_envs.compat.isaac_gym import gymapi
from legged_envs.compat.isaac_gym.speed_limits import find_slice


def engine_model(sim, env_id: int) -> mujoco.MjModel:
    return sim.state.batch.get_model(env_id)


def body_inertia(model: mujoco.MjModel, body: int) -> np.ndarray:
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.body_iquat[body])
    axes = rotation.reshape(3, 3)
    return axes @ np.diag(model.body_inertia[body]) @ axes.T


@pytest.mark.parametrize("change", ["com", "mass"])
def test_states_of_bodies_are_those_of_the_new_centre_of_mass(change: str) -> None:
    sim = make_sim(gravity=0.0)
    root = read(sim, "actor_root_state").clone()
    root[0, 12] = 3.0
    gym.set_actor_root_state_tensor(sim, unwrap(root))
    read(sim, "rigid_body_state")
    props = gym.get_actor_rigid_body_properties(sim.envs[0], 0)
    if change == "com":
        props[0].com = gymapi.Vec3(0.3, 0.0, 0.0)
    else:
        props[1].mass = 20.0
    gym.set_actor_rigid_body_properties(sim.envs[0], 0, props)
    expected = read(sim, "actor_root_state")[0, 7:13]
    assert read(sim, "rigid_body_state")[0, 7:13] == pytest.approx(expected, abs=1e-5)
    if change == "com":
        # The base turned about its old centre of mass.
        lever = 0.3 - float(sim.envs[0].actors[0].asset.com[0, 0])
        assert expected[1] == pytest.approx(3.0 * lever, abs=1e-5)


@pytest.mark.parametrize("is_running", [False, True])
def test_inertias_are_matrices_that_scripts_may_scale(is_running: bool) -> None:
    sim = make_sim(2, prepare=is_running)
    env = sim.envs[1]
    props = gym.get_actor_rigid_body_properties(env, 0)
    before = [prop.inertia.to_array() for prop in props]
    model = load_dog().spec.compile()
    for body, matrix in enumerate(before):
        assert matrix == pytest.approx(body_inertia(model, body + 1), rel=1e-5, abs=1e-9)
    inverse = props[0].invInertia.to_array() @ before[0]
    assert inverse == pytest.approx(np.eye(3), abs=1e-5)
    assert props[0].invMass == pytest.approx(1 / props[0].mass)
    for axis in "xyz":
        setattr(
            getattr(props[0].inertia, axis),
            axis,
            getattr(getattr(props[0].inertia, axis), axis) * 1.3,
        )
    props[1].mass *= 2.0
    props[2].mass *= 2.0
    props[2].inertia = gymapi.Mat33.from_array(before[2] * 3.0)
    gym.set_actor_rigid_body_properties(env, 0, props)
    if not is_running:
        gym.prepare_sim(sim)
    changed, other = engine_model(sim, 1), engine_model(sim, 0)
    expected = before[0] + 0.3 * np.diag(np.diag(before[0]))
    assert body_inertia(changed, 1) == pytest.approx(expected, rel=1e-4, abs=1e-8)
    assert body_inertia(changed, 2) == pytest.approx(2 * before[1], rel=1e-4, abs=1e-8)
    assert body_inertia(changed, 3) == pytest.approx(3 * before[2], rel=1e-4, abs=1e-8)
    assert body_inertia(other, 1) == pytest.approx(before[0], rel=1e-4, abs=1e-8)
    props = gym.get_actor_rigid_body_properties(env, 0)
    assert props[2].inertia.to_array() == pytest.approx(3 * before[2], rel=1e-4, abs=1e-8)
    props[2].mass *= 2.0
    gym.set_actor_rigid_body_properties(env, 0, props, True)
    assert body_inertia(engine_model(sim, 1), 3) == pytest.approx(6 * before[2], rel=1e-4, abs=1e-8)


def test_what_is_read_and_written_back_changes_no_digit() -> None:
    sim = make_sim(2)
    before = engine_model(sim, 1)
    env = sim.envs[1]
    gym.set_actor_rigid_body_properties(env, 0, gym.get_actor_rigid_body_properties(env, 0))
    gym.set_actor_rigid_shape_properties(env, 0, gym.get_actor_rigid_shape_properties(env, 0))
    gym.set_actor_dof_properties(env, 0, gym.get_actor_dof_properties(env, 0))
    after = engine_model(sim, 1)
    for field in ("body_mass", "body_ipos", "body_iquat", "body_inertia", "geom_friction"):
        assert (getattr(before, field) == getattr(after, field)).all(), field
        assert sim.state.batch.expanded(field) is None, field


def test_any_iterable_sets_all_bodies_and_a_refused_one_none() -> None:
    sim = make_sim(2)
    env = sim.envs[1]

    def masses():
        return [prop.mass for prop in gym.get_actor_rigid_body_properties(env, 0)]

    before = masses()
    props = gym.get_actor_rigid_body_properties(env, 0)
    props[0].mass += 5.0
    wrong = [prop.copy() for prop in props]
    wrong[3].mass = -1.0
    gone = [prop.copy() for prop in props]
    gone[3].inertia = gymapi.Mat33.from_array(-np.eye(3))
    for refused in (props[:-1], wrong, gone, iter(props[1:])):
        with pytest.raises(ValueError, match=r"set_actor_rigid_body_properties"):
            gym.set_actor_rigid_body_properties(env, 0, refused)
        assert masses() == before and sim.state.batch.expanded("body_mass") is None
    gym.set_actor_rigid_body_properties(env, 0, iter(props))
    assert masses()[0] == pytest.approx(before[0] + 5.0)
    shapes = gym.get_actor_rigid_shape_properties(env, 0)
    shapes[0].friction = 0.25
    with pytest.raises(ValueError, match=r"9|10"):
        gym.set_actor_rigid_shape_properties(env, 0, iter(shapes[1:]))
    assert gym.get_actor_rigid_shape_properties(env, 0)[0].friction == 1.0
    gym.set_actor_rigid_shape_properties(env, 0, iter(shapes))
    assert gym.get_actor_rigid_shape_properties(env, 0)[0].friction == 0.25


def test_a_negative_friction_counts_by_its_mean_with_the_ground() -> None:
    sim = make_sim(2)
    env = sim.envs[1]
    shapes = gym.get_actor_rigid_shape_properties(env, 0)
    for shape in shapes:
        shape.friction = -0.2
    gym.set_actor_rigid_shape_properties(env, 0, shapes)
    model = engine_model(sim, 1)
    robot_geoms = sim.state.parts[0].geoms
    assert model.geom_friction[robot_geoms, 0] == pytest.approx(0.4)
    # The ground has 1: below −1 the mean is negative.
    for shape in shapes:
        shape.friction = -1.5
    with pytest.raises(ValueError, match=r"-1\.5 .* -1$"):
        gym.set_actor_rigid_shape_properties(env, 0, shapes)
    assert gym.get_actor_rigid_shape_properties(env, 0)[0].friction == pytest.approx(-0.2)


def test_only_consecutive_columns_are_a_slice() -> None:
    values = torch.arange(10)
    for columns in ([], [4], [6, 7, 8], [6, 8, 7], [1, 3], [2, 2]):
        selected = find_slice(torch.tensor(columns, dtype=torch.long))
        assert values[selected].tolist() == columns
        is_slice = (
            columns == list(range(columns[0], columns[0] + len(columns))) if columns else True
        )
        assert isinstance(selected, slice) == is_slice


def test_velocity_drives_reach_their_targets_and_some_actors_are_driven_alone() -> None:
    asset = load_dog(default_dof_drive_mode=gymapi.DOF_MODE_VEL, fix_base_link=True)
    sim = make_sim(3, asset=asset, ground=False, gravity=0.0)
    for env in sim.envs:
        props = gym.get_actor_dof_properties(env, 0)
        props["damping"], props["effort"], props["hasLimits"] = 50.0, 1e4, False
        gym.set_actor_dof_properties(env, 0, props)
    gym.set_dof_velocity_target_tensor(sim, unwrap(torch.full((3, 8), 1.5)))
    chosen = unwrap([2], torch.int32)
    gym.set_dof_velocity_target_tensor_indexed(sim, unwrap(torch.full((3, 8), -0.5)), chosen, 1)
    for _ in range(60):
        gym.simulate(sim)
    speeds = read(sim, "dof_state").view(3, 8, 2)[..., 1]
    assert speeds[:2] == pytest.approx(torch.full((2, 8), 1.5), abs=0.05)
    assert speeds[2] == pytest.approx(torch.full((8,), -0.5), abs=0.05)


def test_forces_of_some_actors_act_on_them_alone() -> None:
    sim = make_sim(2, asset=load_dog(fix_base_link=True), ground=False, gravity=0.0)
    forces = unwrap(torch.ones(2, 8))
    gym.set_dof_actuation_force_tensor_indexed(sim, forces, unwrap([1], torch.int32), 1)
    gym.simulate(sim)
    applied = read(sim, "dof_force").view(2, 8)
    assert applied.tolist() == [[0.0] * 8, [1.0] * 8]


def test_forces_at_points_turn_a_body_as_the_lever_says() -> None:
    sim = make_sim(2, ground=False, gravity=0.0)
    force, place = torch.zeros(26, 3), read(sim, "rigid_body_state")[:, :3].clone()
    force[13, 2] = 8.0
    place[13] += torch.tensor([0.3, 0.0, 0.0])
    gym.apply_rigid_body_force_at_pos_tensors(sim, unwrap(force), unwrap(place))
    gym.simulate(sim)
    model = engine_model(sim, 1)
    data = mujoco.MjData(model)
    data.qpos[2] = 0.42
    mujoco.mj_forward(model, data)
    torque = np.cross(place[13].numpy() - data.xipos[1], [0.0, 0.0, 8.0])
    data.xfrc_applied[1] = [0.0, 0.0, 8.0, *torque]
    mujoco.mj_step(model, data)
    turned = read(sim, "actor_root_state")[1, 7:13].numpy()
    assert abs(turned).max() > 0.01
    mujoco.mj_forward(model, data)
    velocity = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, 1, velocity, 0)
    assert turned == pytest.approx(np.concatenate((velocity[3:], velocity[:3])), abs=1e-5)
    assert read(sim, "actor_root_state")[0, 7:13].abs().max() == 0.0


# --- Files ------------------------------------------------------------------------------------------------------------


def test_files_with_meshdir_in_both_places_and_mimics_of_fixed_joints_are_read(tmp_path) -> None:
    trimesh = pytest.importorskip("trimesh")
    (tmp_path / "meshes").mkdir()
    trimesh.creation.box((0.2, 0.2, 0.1)).export(tmp_path / "meshes/base.STL")
    (tmp_path / "robot.urdf").write_text(
        '<robot name="r"><mujoco><compiler meshdir="meshes" discardvisual="false"/></mujoco>'
        f'<link name="a">{INERTIAL}<collision><geometry><mesh filename="meshes/base.STL"/>'
        f'</geometry></collision></link><link name="b">{INERTIAL}</link>'
        '<joint name="j" type="fixed"><parent link="a"/><child link="b"/><mimic joint="k"/></joint>'
        "</robot>"
    )
    asset = gym.load_asset(None, str(tmp_path), "robot.urdf", gymapi.AssetOptions())
    assert asset.body_names == ["a", "b"]


@pytest.mark.parametrize(
    "default",
    [
        'limited="true" range="-1 1"',
        'damping="3"',
        'stiffness="9"',
        'armature="2"',
        'frictionloss="4"',
    ],
)
def test_defaults_for_joints_do_not_reach_the_free_base(tmp_path, default: str) -> None:
    (tmp_path / "ant.xml").write_text(
        f"<mujoco><default><joint {default}/></default><worldbody><body name='b'>"
        "<joint type='free' limited='false'/><geom size='.1'/><body name='c' pos='0 0 .3'>"
        "<joint name='j' range='-1 1' limited='true' axis='0 1 0'/><geom size='.1'/></body></body>"
        "</worldbody></mujoco>"
    )
    asset = gym.load_asset(None, str(tmp_path), "ant.xml", gymapi.AssetOptions())
    assert asset.dof_names == ["j"]
    sim = make_sim(asset=asset, ground=False, height=5.0)
    for _ in range(20):
        gym.simulate(sim)
    falling = float(read(sim, "actor_root_state")[0, 9])
    assert falling == pytest.approx(-9.81 * 0.1, rel=1e-3)


# --- Filters of shapes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "touch"), [((1, 2), True), ((2, 2), False), ((3, 6), False)])
def test_filters_of_shapes_keep_two_bodies_from_touching(bits, touch: bool) -> None:
    asset = load_dog()
    props = gym.get_asset_rigid_shape_properties(asset)
    spans = gym.get_asset_rigid_body_shape_indices(asset)
    base, foot = (spans[asset.body_names.index(name)] for name in ("base", "FL_foot"))
    for span, value in ((base, bits[0]), (foot, bits[1])):
        for shape in props[span.start : span.start + span.count]:
            shape.filter = value
    gym.set_asset_rigid_shape_properties(asset, props)
    sim = make_sim(asset=asset, ground=False, gravity=0.0)
    states = torch.zeros(8, 2)
    states[:2, 0] = torch.tensor([0.0, 3.1])  # The front left foot is in the base.
    gym.set_dof_state_tensor(sim, unwrap(states))
    gym.simulate(sim)
    forces = read(sim, "net_contact_force")
    assert bool(forces[asset.body_names.index("FL_foot")].abs().sum() > 0.0) is touch
    found = gym.get_actor_rigid_shape_properties(sim.envs[0], 0)
    assert found[foot.start].filter == bits[1]


def test_filters_that_differ_within_a_body_or_between_environments_are_refused() -> None:
    asset = load_dog()
    props = gym.get_asset_rigid_shape_properties(asset)
    props[0].filter = 1  # The base has two shapes.
    props[2].filter = 1
    gym.set_asset_rigid_shape_properties(asset, props)
    with pytest.raises(ValueError, match="0/base"):
        make_sim(asset=asset)
    sim = make_sim(2, prepare=False)
    props[1].filter = 1
    gym.set_actor_rigid_shape_properties(sim.envs[1], 0, props)
    with pytest.raises(ValueError, match="environment 1"):
        gym.prepare_sim(sim)


def test_a_stiff_drive_of_a_light_link_is_calm_with_the_armature_of_the_manual(tmp_path) -> None:
    stiffness = 1000.0
    (tmp_path / "finger.urdf").write_text(
        f"""<robot name="finger"><link name="palm">{INERTIAL}</link><link name="finger"><inertial>
        <origin xyz="0.05 0 0"/><mass value="0.05"/>
        <inertia ixx="6e-5" iyy="6e-5" izz="6e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="bend" type="revolute"><parent link="palm"/><child link="finger"/>
        <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="10" velocity="100"/></joint></robot>"""
    )
    options = gymapi.AssetOptions(
        fix_base_link=True,
        default_dof_drive_mode=gymapi.DOF_MODE_POS,
        armature=0.1 * stiffness * 0.005**2,
    )
    asset = gym.load_asset(None, str(tmp_path), "finger.urdf", options)
    sim = make_sim(asset=asset, ground=False, prepare=False)
    drives = gym.get_actor_dof_properties(sim.envs[0], 0)
    drives["stiffness"] = stiffness
    drives["damping"] = 10.0
    gym.set_actor_dof_properties(sim.envs[0], 0, drives)
    gym.prepare_sim(sim)
    gym.set_dof_position_target_tensor(sim, unwrap([0.3]))
    for _ in range(300):
        gym.simulate(sim)
    position, velocity = read(sim, "dof_state")[0].tolist()
    assert position == pytest.approx(0.3, abs=1e-3) and abs(velocity) < 1e-3
