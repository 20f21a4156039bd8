"""Force sensors and forces of contacts, against weights and MuJoCo's own contacts."""

import mujoco
import numpy as np
import pytest
import torch
from isaac_gym_dogs import gym, load_dog, make_sim, read, unwrap

from legged_envs.compat.isaac_gym import gymapi

FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
POSE = torch.tensor([0.5, -1.0] * 4)


def standing_sim(asset, steps=400):
    """Two dogs that hold their pose on the ground, by torques as legged_gym has them."""
    sim = make_sim(2, height=0.40, asset=asset)
    dofs = torch.stack((POSE.repeat(2), torch.zeros(16)), dim=1)
    gym.set_dof_state_tensor(sim, unwrap(dofs))
    states = read(sim, "dof_state")
    for _ in range(steps):
        gym.refresh_dof_state_tensor(sim)
        pos, vel = states.view(2, 8, 2).unbind(-1)
        gym.set_dof_actuation_force_tensor(sim, unwrap(60.0 * (POSE - pos) - 0.5 * vel))
        gym.simulate(sim)
    return sim


def sensor_properties(dynamics: bool, contacts: bool, world: bool) -> gymapi.ForceSensorProperties:
    return gymapi.ForceSensorProperties(dynamics, contacts, world)


def test_feet_of_a_standing_robot_carry_its_weight() -> None:
    asset = load_dog()
    for name in FEET:
        index = gym.find_asset_rigid_body_index(asset, name)
        only_contacts = sensor_properties(False, True, True)
        gym.create_asset_force_sensor(asset, index, gymapi.Transform(), only_contacts)
    for name in FEET:
        index = gym.find_asset_rigid_body_index(asset, name)
        gym.create_asset_force_sensor(asset, index, gymapi.Transform())
    sim = standing_sim(asset)
    weight = 9.81 * asset.mass.sum()
    feet = [asset.body_names.index(name) for name in FEET]
    forces = read(sim, "net_contact_force").view(2, -1, 3)[:, feet]
    assert forces[..., 2].sum(1) == pytest.approx(torch.full((2,), weight), rel=0.02)
    sensors = read(sim, "force_sensor").view(2, 8, 6)
    assert sensors[:, :4, :3] == pytest.approx(forces, abs=1e-4)
    # A foot at rest has no net force.
    assert sensors[:, 4:, :3].abs().max() < 0.02 * weight
    assert gym.get_sim_force_sensor_count(sim) == 16
    assert gym.get_actor_force_sensor_count(sim.envs[0], 0) == 8


def test_sensors_turn_with_the_body_and_torques_are_about_their_place() -> None:
    asset = load_dog()
    foot = gym.find_asset_rigid_body_index(asset, "FL_foot")
    pose = gymapi.Transform(gymapi.Vec3(0.1, 0.2, 0.3), gymapi.Quat.from_euler_zyx(0.3, -0.5, 0.8))
    for is_in_world in (True, False):
        gym.create_asset_force_sensor(
            asset, foot, pose, sensor_properties(False, True, is_in_world)
        )
    sim = standing_sim(asset, steps=60)
    batch = sim.state.batch
    model = batch.get_model(0)
    data = mujoco.MjData(model)
    before = batch.state[0].copy()
    gym.set_dof_actuation_force_tensor(sim, unwrap(torch.ones(2, 8)))
    gym.simulate(sim)
    mujoco.mj_setState(model, data, before, mujoco.mjtState.mjSTATE_INTEGRATION)
    data.ctrl[:] = 1.0
    mujoco.mj_step(model, data)
    rotation = data.xmat[foot + 1].reshape(3, 3)
    place = data.xpos[foot + 1] + rotation @ pose.p.values
    force, torque, wrench = np.zeros(3), np.zeros(3), np.zeros(6)
    for i, contact in enumerate(data.contact):
        if foot + 1 not in model.geom_bodyid[contact.geom]:
            continue
        sign = 1.0 if model.geom_bodyid[contact.geom[1]] == foot + 1 else -1.0
        mujoco.mj_contactForce(model, data, i, wrench)
        own = sign * contact.frame.reshape(3, 3).T @ wrench[:3]
        force += own
        torque += np.cross(contact.pos - place, own)
    assert force[2] > 1.0
    world, local = read(sim, "force_sensor").view(2, 2, 6)[0].double().numpy()
    assert world == pytest.approx(np.concatenate((force, torque)), abs=1e-3)
    own_turn = np.zeros(9)
    x, y, z, w = pose.r.values
    mujoco.mju_quat2Mat(own_turn, np.array([w, x, y, z]))
    frame = rotation @ own_turn.reshape(3, 3)
    assert local == pytest.approx(np.concatenate((frame.T @ force, frame.T @ torque)), abs=1e-3)


def test_net_forces_are_mass_times_acceleration() -> None:
    asset = load_dog()
    base = gym.find_asset_rigid_body_index(asset, "base")
    for dynamics, contacts in ((True, True), (True, False), (False, True), (False, False)):
        props = sensor_properties(dynamics, contacts, True)
        gym.create_asset_force_sensor(asset, base, gymapi.Transform(), props)
    sim = make_sim(1, height=3.0, asset=asset)
    push = torch.zeros(13, 3)
    push[0, 0] = 12.0
    # Every body is pushed in proportion to its mass: the robot moves like one body.
    push[:, 0] = torch.from_numpy(asset.mass) * 3.0
    gym.apply_rigid_body_force_tensors(sim, unwrap(push), None, gymapi.ENV_SPACE)
    gym.simulate(sim)
    sensors = read(sim, "force_sensor")[:, :3]
    net = torch.tensor([3.0, 0.0, -9.81]) * float(asset.mass[0])
    assert sensors[0] == pytest.approx(net, abs=1e-3)
    assert sensors[1] == pytest.approx(net, abs=1e-3)
    assert sensors[2:].abs().max() < 1e-3


def test_a_sensor_on_no_body_is_refused() -> None:
    with pytest.raises(ValueError, match=r"body_idx.*0 to 12.*-1"):
        gym.create_asset_force_sensor(load_dog(), -1, gymapi.Transform())


# --- Friction and writes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "ground"), [(1.0, 0.2), (0.2, 1.0), (0.6, 0.6)])
def test_friction_holds_a_robot_up_to_the_mean_of_both_coefficients(
    shape, ground, tmp_path
) -> None:
    (tmp_path / "box.urdf").write_text(
        '<robot name="b"><link name="box"><inertial><mass value="2"/>'
        '<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<collision><geometry><box size="0.4 0.4 0.1"/></geometry></collision></link></robot>'
    )
    asset = gym.load_asset(None, str(tmp_path), "box.urdf", gymapi.AssetOptions())
    props = gym.get_asset_rigid_shape_properties(asset)
    props[0].friction = shape
    gym.set_asset_rigid_shape_properties(asset, props)
    sim = make_sim(asset=asset, height=0.05, ground=False, prepare=False)
    plane = gymapi.PlaneParams(
        normal=gymapi.Vec3(0.0, 0.0, 1.0), static_friction=ground, dynamic_friction=ground
    )
    gym.add_ground(sim, plane)
    gym.prepare_sim(sim)
    for _ in range(40):
        gym.simulate(sim)
    limit = 0.5 * (shape + ground) * 2.0 * 9.81
    for part, does_slide in ((0.95, False), (1.1, True)):
        before = float(read(sim, "actor_root_state")[0, 0])
        for _ in range(60):
            push = torch.tensor([[part * limit, 0.0, 0.0]])
            gym.apply_rigid_body_force_tensors(sim, unwrap(push), None, gymapi.ENV_SPACE)
            gym.simulate(sim)
        moved = float(read(sim, "actor_root_state")[0, 0]) - before
        # 10 % more than friction holds moves it by 0.1 μ g t² / 2, and less does not move it.
        assert moved == pytest.approx(0.05 * limit / 2.0 * 0.3**2 if does_slide else 0.0, abs=4e-3)
