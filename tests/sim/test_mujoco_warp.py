"""``sim="mujoco_warp"`` on a CPU. The first run on a machine compiles for two minutes."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

pytest.importorskip("mujoco_warp")

from gpu_engines import CONFORMANCE_TESTS, assert_near, run_conformance_test, simulations

from legged_envs import cli
from legged_envs.conformance.conftest import begin
from legged_envs.conformance.motions import seen, trot
from legged_envs.robots import GO2
from legged_envs.sim import ObjectCfg, PlacedRobot, SceneCfg, Simulation
from legged_envs.tasks import make_task_cfg

pytestmark = pytest.mark.slow
CONSTANTS = ("body_subtreemass", "body_invweight0", "dof_invweight0")


@pytest.fixture
def make() -> Iterator[Callable[..., Simulation]]:
    yield from simulations("mujoco_warp")


@pytest.mark.parametrize("test", CONFORMANCE_TESTS, ids=lambda test: test.__name__)
def test_the_conformance_tests_pass(test, make):
    run_conformance_test(test, make)


def test_half_a_second_of_trot_is_within_a_hundredth_of_a_millimetre_of_the_cpu_engine(make):
    own, reference = seen(trot(make(), 0.5)), seen(trot(make(reference=True), 0.5))
    tolerances = {
        "root_pos_w": 1e-5,
        "joint_pos": 1e-5,
        "joint_vel": 1e-3,
        "joint_torque": 1e-3,
        "foot_pos_w": 1e-5,
        "contact_force_w": 0.02,
        "body_lin_vel_w": 1e-4,
        "body_ang_vel_w": 1e-3,
        "foot_lin_vel_w": 1e-4,
    }
    assert_near(own, reference, tolerances)


def test_quantities_are_the_engines_own_arrays_and_stay_where_they_are(make):
    sim = make(3)
    before = {
        name: getattr(sim, name)
        for name in ("joint_pos", "root_pos_w", "contact_force_w", "foot_lin_vel_w")
    }
    trot(sim, 0.1)
    for name, array in before.items():
        assert getattr(sim, name).data_ptr() == array.data_ptr() and torch.equal(
            getattr(sim, name), array
        ), name
    assert sim.joint_pos.untyped_storage().data_ptr() == sim._data.qpos.ptr
    assert (sim.joint_pos[0] != torch.tensor(GO2.default_joint_pos)).any()


def test_a_robot_does_the_same_however_many_there_are(make):
    one, many = seen(trot(make(1), 0.3)), seen(trot(make(5), 0.3))
    for name in one:
        assert torch.equal(one[name][0], many[name][3]), name


class Waits(TorchDispatchMode):
    """Counts operations for which a CPU would wait for a GPU."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += any(
            name in str(func)
            for name in ("_local_scalar_dense", "is_nonzero", ".nonzero", "masked_select")
        )
        return func(*args, **(kwargs or {}))


def test_a_step_waits_once_and_resets_and_writes_never(make):
    sim, ids = make(4), torch.tensor([1, 3])
    sim.get_parameter("body_mass")
    with Waits() as step:
        sim.set_joint_targets(torch.zeros(4, 12))
        sim.step(4)
        assert sim.diverged() is None
    with Waits() as rest:
        begin_rows(sim, ids)
    assert (step.count, rest.count) == (1, 0)
    with Waits() as control:
        assert bool(ids.any()) and len(ids.nonzero())
    assert control.count >= 2


def begin_rows(sim: Simulation, ids: torch.Tensor) -> None:
    sim.reset(ids)
    zero = torch.zeros(len(ids), 3)
    sim.write_root_state(
        ids, zero + 1.0, torch.tensor((1.0, 0.0, 0.0, 0.0)).expand(2, 4), zero, zero
    )
    sim.write_joint_state(ids, torch.zeros(2, 12), torch.zeros(2, 12))
    sim.push(ids, zero)
    sim._write_parameter("body_mass", torch.ones(2, len(sim.body_names)), ids)
    sim.forward(ids)


@pytest.mark.parametrize(
    ("room", "message"),
    [
        (
            {"nconmax": 2},
            r"(BROADPHASE|NARROWPHASE).*SimCfg\.nconmax=2 ",
        ),
        (
            {"njmax": 8},
            r"NEFC.* environment 0 and 2 others.*SimCfg\.nconmax=23.*SimCfg\.njmax=8",
        ),
    ],
)
def test_more_contacts_than_there_is_room_for_are_an_error(room, message, make):
    sim = make(3, **room)
    sim.step(200)
    with pytest.raises(RuntimeError, match=message):
        sim.diverged()
    with pytest.raises(ValueError, match=r"njmax.*-1"):
        make(njmax=-1)


def test_there_is_room_for_a_robot_that_lies_on_its_back(make):
    sim = make(2)
    ids, zero = torch.arange(2), torch.zeros(2, 3)
    upside_down = torch.tensor((0.0, 1.0, 0.0, 0.0)).expand(2, 4)
    sim.write_root_state(ids, torch.tensor((0.0, 0.0, 0.3)).expand(2, 3), upside_down, zero, zero)
    sim.write_joint_state(ids, torch.zeros(2, 12), torch.zeros(2, 12))
    sim.step(200)
    assert sim.diverged() is None and sim.contact_force_w.norm(dim=2).sum() > 100.0


def test_constants_follow_masses_in_the_environments_that_changed_and_no_others(make):
    """Which they do not where only the masses themselves are batched."""
    sims, ids = [make(3), make(3, reference=True)], torch.tensor([1])
    before = {name: sims[0]._fields[name].clone() for name in CONSTANTS}
    for sim in sims:
        sim.set_parameter("body_mass", 2.0 * sim.default_parameter("body_mass")[1:2], ids)
        sim.set_parameter("armature", 3.0 * sim.default_parameter("armature")[1:2], ids)
        sim.forward(ids)
    for name, values in before.items():
        own = sims[0]._fields[name]
        expected = torch.from_numpy(getattr(sims[1].batch.get_model(1), name)).float()
        torch.testing.assert_close(
            own[1], expected, atol=1e-6, rtol=1e-3, msg=f"{name}: {{}}".format
        )
        assert torch.equal(own[[0, 2]], values[[0, 2]]) and not torch.equal(own[1], values[1])


def test_robots_stand_on_a_height_field(make):
    sims = [
        make(4, reference=reference, scene=make_task_cfg("Legged/Go2-Rough-v0").scene)
        for reference in (False, True)
    ]
    for sim in sims:
        sim.ground.levels[:], sim.ground.columns[:] = (
            torch.tensor((0, 3, 5, 9)),
            torch.tensor((0, 4, 8, 12)),
        )
        begin(sim)
        sim.step(200)
        feet, weight = sim.foot_pos_w, 9.81 * sim.get_parameter("body_mass").sum(1)
        height = feet[..., 2] - sim.ground.height(feet[..., 0], feet[..., 1]) - GO2.foot_radius
        assert sim.diverged() is None and height.amin() > -0.01 and height.amin(1).max() < 0.0
        torch.testing.assert_close(sim.contact_force_w[..., 2].sum(1), weight, atol=0.0, rtol=0.1)
    torch.testing.assert_close(sims[0].root_pos_w, sims[1].root_pos_w, atol=0.05, rtol=0.0)


def test_what_was_closed_is_freed_at_once(make):
    sim = make(2)
    model, data = weakref.ref(sim._warp_model), weakref.ref(sim._data)
    sim.close()
    assert model() is None and data() is None


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_cannot_be_is_named(device, make_vec):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ValueError, match=f"'cuda'.*device='{device}'"):
        make_vec(2, sim="mujoco_warp", device=device)


def test_a_pair_with_a_beam_is_as_on_the_cpu_engine(make):
    beam = ObjectCfg(size=(0.1, 0.6, 0.04), mass=2.0, pos=(0.0, 0.4, 0.6))
    scene = SceneCfg(robots={"left": PlacedRobot(GO2, (0.0, 0.8, 0.5))}, objects={"beam": beam})
    sims = [make(2, scene=scene), make(2, reference=True, scene=scene)]
    for sim in sims:
        left, ids = sim.robots["left"], torch.tensor([1])
        left.set_parameter("body_mass", 1.5 * left.default_parameter("body_mass")[1:], ids)
        sim.objects["beam"].push(ids, torch.tensor([[0.3, 0.0, 0.0]]))
        sim.step(60)
    for one, two in zip(*([sim, sim.robots["left"]] for sim in sims), strict=True):
        for name, value in seen(one).items():
            if name in ("root_pos_w", "root_quat_w", "joint_pos", "body_pos_w"):
                torch.testing.assert_close(
                    value, seen(two)[name], atol=5e-3, rtol=0.0, msg=f"{name}: {{}}".format
                )
    beams = [sim.objects["beam"] for sim in sims]
    torch.testing.assert_close(beams[0].root_pos_w, beams[1].root_pos_w, atol=5e-3, rtol=0.0)
    assert (beams[0].root_pos_w[:, 2] < 0.6).all() and beams[0].contact_force_w.norm(
        dim=1
    ).min() > 1.0
    above = beams[0].root_pos_w[:, None] + torch.tensor((0.0, 0.0, 0.5))
    down = torch.tensor((0.0, 0.0, -1.0)).expand(2, 1, 3)
    torch.testing.assert_close(
        *(sim.cast_rays(above, down, 3.0) for sim in sims), atol=0.01, rtol=0.0
    )


def test_observations_rewards_and_costs_are_those_of_the_cpu_engine_through_pushes_and_resets(
    make_vec, random_actions
):
    cfg = {"events.push.interval_s": (0.05, 0.1)}
    both = [make_vec(4, sim=sim, cfg=cfg, max_episode_steps=9) for sim in ("mujoco", "mujoco_warp")]
    first = [envs.reset(seed=5)[0] for envs in both]
    np.testing.assert_allclose(*first, atol=1e-4)
    ended = 0
    for action in random_actions(24, 4):
        (obs, reward, _, truncated, info), (own_obs, own_reward, _, own_truncated, own_info) = (
            envs.step(0.5 * action) for envs in both
        )
        np.testing.assert_allclose(own_obs, obs, atol=0.02)
        np.testing.assert_allclose(own_reward, reward, atol=0.01)
        np.testing.assert_allclose(own_info["costs"], info["costs"], atol=0.02)
        assert (own_truncated == truncated).all() and own_info.keys() == info.keys()
        ended += int(truncated.sum())
    assert ended >= 8


def test_an_environment_resumes_bit_for_bit(make_vec, random_actions, assert_same):
    envs = make_vec(3, sim="mujoco_warp")
    envs.reset(seed=1)
    actions = random_actions(12, 3)
    for action in actions[:6]:
        envs.step(action)
    again = pickle.loads(pickle.dumps(envs.unwrapped))
    for action in actions[6:]:
        assert_same(envs.unwrapped.step(action), again.step(action))
    again.close()


def test_the_shipped_policy_walks_as_on_the_cpu_engine(tmp_path, capsys):
    words = f"crosscheck Legged/Go2-Flat-v0 --sims mujoco mujoco_warp --robots 3 --seconds 2 --picture {tmp_path}/a.png"
    cli.main(words.split())
    told = capsys.readouterr().out
    parted = next(line for line in told.splitlines() if line.strip("│ ").startswith("parted"))
    assert parted.count("0.0%") == 3
