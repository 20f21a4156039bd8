"""Counts, names, handles, indices and dictionaries of assets, actors and environments."""

from itertools import pairwise

import numpy as np
import pytest
from isaac_gym_dogs import gym, load_dog, make_params, make_sim

from legged_envs.compat.isaac_gym import gymapi

LEGS = ("FL", "FR", "RL", "RR")
BODIES = ["base"] + [f"{leg}_{part}" for leg in LEGS for part in ("thigh", "shin", "foot")]
DOFS = [f"{leg}_{part}_joint" for leg in LEGS for part in ("hip", "knee")]


def two_dogs():
    """Three environments with two dogs each."""
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, make_params())
    asset = load_dog()
    for _ in range(3):
        env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
        gym.begin_aggregate(env, 26, 26, True)
        for name in ("rex", "ada"):
            gym.create_actor(env, asset, gymapi.Transform(), name, 0, 1)
        gym.end_aggregate(env)
    return sim


def test_assets_say_what_is_in_them() -> None:
    asset = load_dog()
    assert gym.get_asset_rigid_body_dict(asset) == {name: i for i, name in enumerate(BODIES)}
    assert gym.get_asset_dof_dict(asset) == {name: i for i, name in enumerate(DOFS)}
    assert [gym.find_asset_rigid_body_index(asset, name) for name in ("RR_foot", "tail")] == [
        12,
        -1,
    ]
    assert [gym.find_asset_dof_index(asset, name) for name in ("RR_knee_joint", "x")] == [7, -1]
    assert (gym.get_asset_rigid_body_name(asset, 3), gym.get_asset_dof_name(asset, 2)) == (
        "FL_foot",
        "FR_hip_joint",
    )
    assert gym.get_asset_dof_type(asset, 0) == gymapi.DOF_ROTATION
    ranges = gym.get_asset_rigid_body_shape_indices(asset)
    shapes = gym.get_asset_rigid_shape_count(asset)
    spans = [(span.start, span.count) for span in ranges]
    assert sum(count for _, count in spans) == shapes == 10
    assert spans[0] == (0, 2) and all(span.count for span in ranges[3::3]), "base and feet"
    assert all(a + n == b for (a, n), (b, _) in pairwise(spans))


def test_indices_count_in_the_actor_the_environment_or_the_simulation() -> None:
    sim = two_dogs()
    env = sim.envs[2]
    domains = (gymapi.DOMAIN_ACTOR, gymapi.DOMAIN_ENV, gymapi.DOMAIN_SIM)
    body = [gym.find_actor_rigid_body_index(env, 1, "FL_thigh", domain) for domain in domains]
    assert body == [1, 13 + 1, 2 * 26 + 13 + 1]
    assert [gym.get_actor_rigid_body_index(env, 1, 1, domain) for domain in domains] == body
    dof = [gym.find_actor_dof_index(env, 1, "FR_hip_joint", domain) for domain in domains]
    assert dof == [2, 8 + 2, 2 * 16 + 8 + 2]
    assert [gym.get_actor_dof_index(env, 1, 2, domain) for domain in domains] == dof
    assert gym.find_actor_rigid_body_index(env, 1, "tail", gymapi.DOMAIN_SIM) == -1
    assert [gym.get_actor_index(env, 1, domain) for domain in domains] == [1, 1, 5]
    assert gym.find_actor_index(env, "ada", gymapi.DOMAIN_SIM) == 5
    assert gym.find_actor_index(env, "tom", gymapi.DOMAIN_SIM) == -1
    assert gym.get_actor_root_rigid_body_handle(env, 1) == 13
    assert gym.find_actor_dof_handle(env, 1, "FL_hip_joint") == 8
    with pytest.raises(ValueError, match=r"DOMAIN_ACTOR.*7"):
        gym.find_actor_rigid_body_index(env, 1, "base", 7)
    with pytest.raises(ValueError, match="index=13"):
        gym.get_actor_rigid_body_index(env, 0, 13, gymapi.DOMAIN_ENV)


def test_counts_and_names_of_actors_environments_and_the_simulation() -> None:
    sim = two_dogs()
    env = gym.get_env(sim, 1)
    assert env is sim.envs[1] and gym.get_env_count(sim) == 3
    counts = [
        gym.get_sim_actor_count(sim),
        gym.get_sim_rigid_body_count(sim),
        gym.get_sim_dof_count(sim),
        gym.get_env_rigid_body_count(env),
        gym.get_env_dof_count(env),
        gym.get_actor_dof_count(env, 0),
        gym.get_actor_joint_count(env, 0),
        gym.get_actor_tendon_count(env, 0),
    ]
    assert counts == [6, 78, 48, 26, 16, 8, 8, 0]
    assert gym.get_actor_dof_names(env, 1) == DOFS
    assert gym.get_actor_rigid_body_names(env, 1) == BODIES
    assert gym.get_actor_dof_dict(env, 0)["FR_knee_joint"] == 3
    assert gym.get_actor_rigid_body_dict(env, 0)["RR_foot"] == 12
    assert gym.get_env_origin(env).values == (0.0, 0.0, 0.0)


def test_times_are_those_of_the_simulation_and_of_the_clock() -> None:
    sim = make_sim()
    for _ in range(4):
        gym.simulate(sim)
    assert gym.get_sim_time(sim) == pytest.approx(0.02)
    first = gym.get_elapsed_time(sim)
    assert 0.0 < first < gym.get_elapsed_time(sim) < 600.0


def test_states_of_one_actor_are_read_and_written_as_arrays() -> None:
    sim = two_dogs()
    gym.prepare_sim(sim)
    env = sim.envs[1]
    states = gym.get_actor_dof_states(env, 1, gymapi.STATE_ALL)
    assert states.dtype.names == ("pos", "vel") and states.shape == (8,)
    states["pos"] = np.linspace(-0.5, 0.5, 8)
    states["vel"] = 3.0
    gym.set_actor_dof_states(env, 1, states, gymapi.STATE_POS)
    found = gym.get_actor_dof_states(env, 1)
    assert found["pos"] == pytest.approx(np.linspace(-0.5, 0.5, 8)) and not found["vel"].any()
    assert not gym.get_actor_dof_states(env, 0)["pos"].any()
    assert not gym.get_actor_dof_states(sim.envs[2], 1)["pos"].any()
    bodies = gym.get_actor_rigid_body_states(env, 1, gymapi.STATE_ALL)
    assert bodies["pose"]["r"]["w"][0] == 1.0 and len(bodies) == 13
    handle = gym.find_actor_rigid_body_handle(env, 1, "FL_foot")
    foot = gym.get_rigid_transform(env, handle)
    place = bodies["pose"]["p"][3]
    assert foot.p.values == pytest.approx((place["x"], place["y"], place["z"]))
    with pytest.raises(ValueError, match=r"\(7,\).*\(8,\)"):
        gym.set_actor_dof_states(env, 1, states[:7])


MOTORS = """<mujoco><worldbody><body name="base"><freejoint/><geom size="0.1"/>
  <body pos="0.2 0 0"><joint name="hip" axis="0 1 0"/><geom size="0.05"/>
    <body pos="0.2 0 0"><joint name="knee" axis="0 1 0"/><geom size="0.05"/></body></body></body></worldbody>
  <actuator><motor name="knee_motor" joint="knee" gear="15" ctrllimited="true" ctrlrange="-1 1"/>
    <position joint="hip" kp="20" kv="0.5" forcelimited="true" forcerange="-30 40"/></actuator></mujoco>"""


def test_motors_of_a_file_are_read_in_their_order(tmp_path) -> None:
    (tmp_path / "leg.xml").write_text(MOTORS)
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, make_params())
    asset = gym.load_asset(sim, str(tmp_path), "leg.xml")
    knee, hip = gym.get_asset_actuator_properties(asset)
    assert (knee.motor_effort, knee.lower_control_limit, knee.upper_control_limit) == (15, -1, 1)
    assert knee.control_limited and not knee.force_limited and knee.kp == 0.0
    assert (hip.kp, hip.kv, hip.upper_force_limit, hip.force_limited) == (20, 0.5, 40, True)
    assert gym.get_asset_actuator_name(asset, 0) == "knee_motor"
    joints = [gym.get_asset_actuator_joint_name(asset, index) for index in range(2)]
    assert joints == ["knee", "hip"]
    env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
    actor = gym.create_actor(env, asset, gymapi.Transform(), "leg", 0, 1)
    assert gym.get_actor_actuator_count(env, actor) == 2
    assert gym.find_actor_actuator_index(env, actor, "knee_motor") == 0
    assert gym.get_actor_actuator_properties(env, actor)[0].motor_effort == 15
    assert gym.get_asset_actuator_count(load_dog()) == 0
    assert gym.get_asset_actuator_properties(gym.create_box(sim, 1, 1, 1)) == []


def test_an_effort_counts_for_one_step_of_one_joint_alone() -> None:
    sim = two_dogs()
    props = gym.get_actor_dof_properties(sim.envs[0], 0)
    props["driveMode"] = gymapi.DOF_MODE_EFFORT
    props["damping"] = 0.0
    for each in sim.envs:
        for handle in range(2):
            gym.set_actor_dof_properties(each, handle, props)
    gym.prepare_sim(sim)
    env = sim.envs[1]
    hip = gym.find_actor_dof_handle(env, 0, "FL_hip_joint")
    knee = gym.find_actor_dof_handle(env, 1, "FR_knee_joint")
    # Forces on joints of other modes are refused in silence, as in Isaac Gym.
    gym.set_dof_target_position(env, hip, 0.5)
    gym.apply_dof_effort(env, hip, 3.0)
    gym.simulate(sim)
    assert gym.get_actor_dof_forces(env, 0)[hip] == pytest.approx(3.0)
    assert not gym.get_actor_dof_position_targets(env, 0).any()
    gym.apply_dof_effort(env, knee, 2.0)
    gym.simulate(sim)
    first, second = (gym.get_actor_dof_forces(env, handle) for handle in range(2))
    assert not first.any() and np.count_nonzero(second) == 1 and second.max() == pytest.approx(2.0)
    assert not gym.get_actor_dof_forces(sim.envs[0], 0).any()


def test_single_joints_are_driven_and_read_by_their_handles() -> None:
    sim = two_dogs()
    env = sim.envs[1]
    props = gym.get_actor_dof_properties(env, 0)
    props["driveMode"] = gymapi.DOF_MODE_POS
    props["stiffness"] = 20.0
    props["damping"] = 0.5
    for each in sim.envs:
        gym.set_actor_dof_properties(each, 1, props)
    gym.prepare_sim(sim)
    knee = gym.find_actor_dof_handle(env, 1, "FR_knee_joint")
    hip = gym.find_actor_dof_handle(env, 0, "FL_hip_joint")
    gym.set_dof_target_position(env, knee, 0.25)
    gym.set_dof_target_position(env, hip, 0.5)
    gym.apply_dof_effort(env, hip, 1.0)
    assert gym.get_dof_target_position(env, knee) == 0.25
    assert gym.get_dof_target_position(env, hip) == 0.0, "the joint is not in mode POS"
    assert gym.get_actor_dof_position_targets(env, 1).tolist() == [0, 0, 0, 0.25, 0, 0, 0, 0]
    assert not gym.get_actor_dof_position_targets(sim.envs[0], 1).any()
    for _ in range(40):
        gym.simulate(sim)
    state = gym.get_actor_dof_states(env, 1)[3]
    assert gym.get_dof_position(env, knee) == state["pos"] == pytest.approx(0.25, abs=0.1)
    assert gym.get_dof_velocity(env, knee) == state["vel"]
    with pytest.raises(ValueError, match="0 to 15, got 16"):
        gym.get_dof_position(env, 16)
    with pytest.raises(ValueError, match=r"set_dof_target_position.*nan"):
        gym.set_dof_target_position(env, knee, float("nan"))


def test_states_of_many_are_those_of_each() -> None:
    sim = two_dogs()
    gym.prepare_sim(sim)
    bodies = gym.get_sim_rigid_body_states(sim)
    assert bodies.dtype == gymapi.RigidBodyState.dtype and len(bodies) == 3 * 26
    assert (bodies[26:52] == gym.get_env_rigid_body_states(sim.envs[1])).all()
    dofs = gym.get_vec_actor_dof_states(sim.envs[:2], 1)
    assert dofs.dtype == gymapi.DofState.dtype and len(dofs) == 2 * 8
    assert (dofs[8:] == gym.get_actor_dof_states(sim.envs[1], 1)).all()
    assert np.zeros(3, gymapi.DofState.dtype)["pos"].shape == (3,)


def test_bodies_and_joints_are_found_by_the_name_of_their_actor() -> None:
    sim = two_dogs()
    env = sim.envs[1]
    assert gym.get_rigid_handle(env, "ada", "FL_thigh") == 13 + 1
    assert gym.get_joint_handle(env, "ada", "FR_hip_joint") == 8 + 2
    assert gym.get_rigid_name(env, 13 + 1) == "FL_thigh"
    assert gym.get_joint_name(env, 8 + 2) == "FR_hip_joint"
    assert gym.get_rigid_handle(env, "bob", "FL_thigh") == -1
    assert gym.get_joint_handle(env, "ada", "tail") == -1
    for function in (gym.get_rigid_name, gym.get_joint_name):
        with pytest.raises(ValueError, match=r"the handle of .* got 99"):
            function(env, 99)
    gym.prepare_sim(sim)
    handle = gym.get_joint_handle(env, "ada", "FL_knee_joint")
    assert gym.get_joint_position(env, handle) == gym.get_dof_position(env, handle)
    assert gym.get_joint_velocity(env, handle) == 0.0


def test_a_star_import_of_gymutil_brings_the_modules_that_codebases_use() -> None:
    names: dict[str, object] = {}
    exec("from legged_envs.compat.isaac_gym.gymutil import *", names)
    for name in ("argparse", "bisect", "gymapi", "math", "np", "os", "parse_arguments"):
        assert name in names, name
