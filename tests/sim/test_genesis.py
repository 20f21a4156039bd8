"""``sim="genesis"`` on a CPU, where it is installed. The first run on a machine compiles for minutes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import pytest
import torch

pytest.importorskip(
    "genesis", reason="Genesis is not installed: pip install 'legged-envs[genesis]'"
)

from gpu_engines import CONFORMANCE_TESTS, assert_near, run_conformance_test, simulations

from legged_envs import cli
from legged_envs.conformance.motions import seen, trot
from legged_envs.robots import GO2
from legged_envs.sim import ObjectCfg, PlacedRobot, SceneCfg, Simulation

pytestmark = pytest.mark.slow
TOLERANCES = {
    "root_pos_w": 1e-5,
    "joint_pos": 1e-5,
    "joint_vel": 1e-3,
    "joint_torque": 1e-3,
    "foot_pos_w": 1e-5,
    "contact_force_w": 0.05,
    "body_lin_vel_w": 1e-3,
    "body_ang_vel_w": 1e-3,
    "foot_lin_vel_w": 1e-3,
}


@pytest.fixture
def make() -> Iterator[Callable[..., Simulation]]:
    yield from simulations("genesis")


@pytest.mark.parametrize("test", CONFORMANCE_TESTS, ids=lambda test: test.__name__)
def test_the_conformance_tests_pass(test, make):
    run_conformance_test(test, make)


def test_half_a_second_of_trot_is_within_a_hundredth_of_a_millimetre_of_the_cpu_engine(make):
    own, reference = seen(trot(make(), 0.5)), seen(trot(make(reference=True), 0.5))
    assert_near(own, reference, TOLERANCES)


def test_a_robot_does_the_same_but_for_rounding_however_many_there_are(make):
    one, many = seen(trot(make(1), 0.3)), seen(trot(make(5), 0.3))
    for name, atol in TOLERANCES.items():
        torch.testing.assert_close(
            one[name][0], many[name][3], atol=atol, rtol=0.0, msg=f"{name}: {{}}".format
        )


def test_a_pair_with_a_beam_is_as_on_the_cpu_engine(make):
    beam = ObjectCfg(size=(0.1, 0.6, 0.04), mass=2.0, pos=(0.0, 0.4, 0.6))
    scene = SceneCfg(robots={"left": PlacedRobot(GO2, (0.0, 0.8, 0.5))}, objects={"beam": beam})
    sims = [make(scene=scene), make(reference=True, scene=scene)]
    for sim in sims:
        left, ids = sim.robots["left"], torch.tensor([1])
        left.set_parameter("body_mass", 1.5 * left.default_parameter("body_mass")[1:], ids)
        sim.objects["beam"].push(ids, torch.tensor([[0.3, 0.0, 0.0]]))
        sim.step(60)
    for one, two in zip(*([sim, sim.robots["left"]] for sim in sims), strict=True):
        for name, value in seen(one).items():
            if name in ("root_pos_w", "root_quat_w", "joint_pos", "body_pos_w"):
                torch.testing.assert_close(
                    value, seen(two)[name], atol=0.02, rtol=0.0, msg=f"{name}: {{}}".format
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


def test_more_contacts_than_there_is_room_for_are_an_error(make):
    sim = make(3, nconmax=2)
    sim.step(200)
    with pytest.raises(RuntimeError, match=r"environment 0 and 2 others.*SimCfg\.nconmax=2"):
        sim.diverged()


def test_what_it_has_not_is_named(make_vec):
    with pytest.raises(ValueError, match=r"sim='genesis'.*SceneCfg\.terrain"):
        make_vec(2, "Legged/Go2-Rough-v0", sim="genesis")
    with pytest.raises(ValueError, match=r"sim='genesis'.*device='mps'"):
        make_vec(2, sim="genesis", device="mps")


def test_an_environment_resumes_bit_for_bit(make_vec, random_actions, assert_same):
    envs = make_vec(3, sim="genesis")
    envs.reset(seed=1)
    actions = random_actions(12, 3)
    for action in actions[:6]:
        envs.step(action)
    again = pickle.loads(pickle.dumps(envs.unwrapped))
    for action in actions[6:]:
        assert_same(envs.unwrapped.step(action), again.step(action))
    again.close()


def test_the_shipped_policy_walks_as_on_the_cpu_engine(tmp_path, capsys):
    words = f"crosscheck Legged/Go2-Flat-v0 --sims mujoco genesis --robots 3 --seconds 2 --picture {tmp_path}/a.png"
    cli.main(words.split())
    told = capsys.readouterr().out
    parted = next(line for line in told.splitlines() if line.strip("│ ").startswith("parted"))
    assert parted.count("0.0%") == 3
