"""Falling, standing, sliding and trotting: by the laws of physics, and as on the CPU engine from the same state."""

from collections.abc import Callable

import pytest
import torch

from legged_envs.conformance.motions import distance, seen, trot
from legged_envs.sim import Simulation

G = 9.81
Make = Callable[..., Simulation]


def test_a_robot_in_the_air_falls_freely(make: Make) -> None:
    sim, ids = make(2), torch.arange(2)
    ids, seconds = ids.to(sim.device), 0.3
    start = sim.root_pos_w.clone() + torch.tensor((0.0, 0.0, 2.0), device=sim.device)
    still = torch.zeros(2, 3, device=sim.device)
    sim.write_root_state(ids, start, sim.root_quat_w.clone(), still, still)
    sim.forward(ids)
    sim.step(round(seconds / sim.cfg.dt))
    fallen, speed = (start - sim.root_pos_w)[:, 2].cpu(), sim.root_lin_vel_w[:, 2].cpu()
    torch.testing.assert_close(fallen, torch.full((2,), 0.5 * G * seconds**2), atol=0.01, rtol=0.0)
    torch.testing.assert_close(speed, torch.full((2,), -G * seconds), atol=0.02, rtol=0.0)
    assert not sim.contact_force_w.any()


def test_a_robot_tumbles_as_on_the_cpu_engine(make: Make) -> None:
    sims, quat = [make(2), make(2, reference=True)], (0.8, 0.3, -0.4, 0.3317)
    for steps in (0, 10):
        for sim in sims:
            if not steps:
                row = [torch.tensor([part], device=sim.device) for part in ((0.4, -0.3, 2.0), quat)]
                row += [torch.tensor([part], device=sim.device) for part in ((0.5, 0.2, 0.1), (1.0, -2.0, 3.0))]
                second, size = torch.tensor([1], device=sim.device), sim.robot.num_joints
                sim.write_root_state(second, *row)
                sim.write_joint_state(second, sim.joint_pos[second] + 0.1, torch.ones(1, size, device=sim.device))
                sim.forward(second)
            else:
                sim.step(steps)
        own, reference = map(seen, sims)
        for name in own.keys() - {"joint_acc", "joint_torque", "contact_force_w"}:
            torch.testing.assert_close(own[name], reference[name], atol=0.02, rtol=0.0, msg=f"{name}: {{}}".format)
    assert own["root_quat_w"][1, 2] < -0.3 and own["root_ang_vel_b"][1].norm() > 3.0
    torch.testing.assert_close(own["joint_acc"], reference["joint_acc"], atol=5.0, rtol=0.05)
    torch.testing.assert_close(own["joint_torque"], reference["joint_torque"], atol=0.5, rtol=0.05)


def test_a_robot_that_stands_weighs_what_its_bodies_do(make: Make) -> None:
    sim, reference = make(2), make(2, reference=True)
    for each in (sim, reference):
        each.step(400)
    force = seen(sim)["contact_force_w"].sum(1)
    weight = G * sim.get_parameter("body_mass").sum(1).cpu()
    torch.testing.assert_close(force[:, 2], weight, atol=0.0, rtol=0.02)
    assert (force[:, :2].norm(dim=1) < 0.05 * weight).all()
    feet = seen(sim)["contact_force_w"][:, sim.body_ids(sim.robot.foot_names), 2]
    torch.testing.assert_close(feet.sum(1), weight, atol=0.0, rtol=0.02)
    assert distance(sim, reference).max() < 1.0
    torch.testing.assert_close(seen(sim)["joint_torque"], seen(reference)["joint_torque"], atol=1.0, rtol=0.0)


@pytest.mark.parametrize("seconds", [0.1, 0.3])
def test_a_robot_slides_as_far_as_its_friction_lets_it(make: Make, seconds: float) -> None:
    sims, friction = [make(3), make(3, reference=True)], torch.tensor((0.1, 0.3, 0.6))
    for sim in sims:
        ids = torch.arange(3, device=sim.device)
        sim.set_parameter("friction", friction.to(sim.device), ids)
        sim.step(100)
        sim.push(ids, torch.tensor((1.0, 0.0, 0.0), device=sim.device).expand(3, 3))
        sim.forward(ids)
        sim.step(round(seconds / sim.cfg.dt))
    speed = seen(sims[0])["root_lin_vel_w"][:, 0]
    assert speed[0] > speed[1] + 0.03 and speed[1] > speed[2] + 0.03
    assert distance(*sims).max() < 1.0


def test_a_trot_is_that_of_the_cpu_engine(make: Make) -> None:
    sim, reference = trot(make(2), 0.5), trot(make(2, reference=True), 0.5)
    assert distance(sim, reference).max() < 1.0
    assert (seen(sim)["foot_pos_w"] - seen(reference)["foot_pos_w"]).abs().max() < 0.03
    assert (seen(sim)["body_lin_vel_w"] - seen(reference)["body_lin_vel_w"]).abs().mean() < 0.1
    assert (seen(sim)["body_ang_vel_w"] - seen(reference)["body_ang_vel_w"]).abs().mean() < 0.3


CHANGES = {"friction": 0.2, "body_mass": 1.6, "com": 0.05, "kp": 0.5, "kd": 4.0, "armature": 4.0}
"""What each parameter is multiplied with, in an environment of its own; the centre of mass of the base is moved, m."""


def test_every_parameter_acts_in_its_environment_alone_as_on_the_cpu_engine(make: Make) -> None:
    sims = [make(len(CHANGES) + 2), make(len(CHANGES) + 2, reference=True)]
    for sim in sims:
        for i, (name, change) in enumerate(CHANGES.items(), 1):
            default = sim.default_parameter(name)
            values = default[i : i + 1] * (1.0 if name == "com" else change)
            if name == "com":
                values[:, 0] += change  # of the first body, the base
            sim.set_parameter(name, values, torch.tensor([i], device=sim.device))
            assert torch.equal(sim.get_parameter(name)[i], values[0])
            assert torch.equal(sim.get_parameter(name)[0], default[0])
        ids = torch.arange(sim.num_envs, device=sim.device)
        sim.forward(ids)
        sim.push(ids, torch.tensor((0.5, 0.3, 0.0), device=sim.device).expand(len(ids), 3))
        trot(sim, 0.2)
    apart = distance(*sims)
    _, reference = sims
    for i, name in enumerate(CHANGES, 1):
        state = {key: value[i] - value[0] for key, value in seen(reference).items()}
        effect = (state["root_lin_vel_w"].norm() + state["joint_pos"].abs().mean()).item()
        own = {key: value[i] - seen(reference)[key][i] for key, value in seen(sims[0]).items()}
        error = (own["root_lin_vel_w"].norm() + own["joint_pos"].abs().mean()).item()
        assert error < 0.5 * effect, f"{name}: {error} off, its effect is {effect}"
    assert apart.max() < 1.0
    first, last = seen(sims[0])["joint_pos"][0], seen(sims[0])["joint_pos"][-1]
    torch.testing.assert_close(first, last, atol=1e-4, rtol=0.0)
