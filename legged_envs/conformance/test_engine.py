"""What an engine must do: fall, stand, slide and trot by the laws of physics and as the CPU engine does from the same
state, and keep what :class:`Simulation` promises of shapes, resets, states and bad physics."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from legged_envs.conformance.conftest import begin
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


def test_a_time_step_can_be_longer_and_a_state_remembers_it(make: Make) -> None:
    sim = make(2)
    short, start = sim.get_state(), sim.root_pos_w[0, 2].item()
    sim.set_timestep(0.01)
    for dt in (0.01, 0.005):
        sim.push(
            torch.arange(2, device=sim.device),
            torch.tensor((0.0, 0.0, 2.0), device=sim.device).expand(2, 3),
        )
        sim.step(20)
        expected = start + 2.0 * 20 * dt - 0.5 * G * (20 * dt) ** 2
        torch.testing.assert_close(
            sim.root_pos_w[:, 2].cpu(), torch.full((2,), expected), atol=0.02, rtol=0.0
        )
        sim.set_state(short)


def test_a_robot_tumbles_as_on_the_cpu_engine(make: Make) -> None:
    sims, second = [make(2), make(2, reference=True)], torch.tensor([1])
    state = ((0.4, -0.3, 2.0), (0.8, 0.3, -0.4, 0.3317), (0.5, 0.2, 0.1), (1.0, -2.0, 3.0))
    for sim in sims:
        ids = second.to(sim.device)
        sim.write_root_state(ids, *(torch.tensor([part], device=sim.device) for part in state))
        sim.write_joint_state(ids, sim.joint_pos[ids] + 0.1, torch.ones_like(sim.joint_vel[ids]))
        sim.forward(ids)
    for steps in (1, 10):
        for sim in sims:
            sim.step(steps)
        own, reference = map(seen, sims)
        forces = {
            name: (own.pop(name), reference.pop(name)) for name in ("joint_acc", "joint_torque")
        }
        assert_same(own, reference, [0, 1], 0.02)
        for one, other in forces.values():
            torch.testing.assert_close(one, other, atol=5.0, rtol=0.05)
    assert own["root_quat_w"][1, 2] < -0.3 and own["root_ang_vel_b"][1].norm() > 3.0


def test_a_robot_that_stands_weighs_what_its_bodies_do(make: Make) -> None:
    sim, reference = make(2), make(2, reference=True)
    for each in (sim, reference):
        each.step(400)
    weight = G * sim.get_parameter("body_mass").sum(1).cpu()
    feet = seen(sim)["contact_force_w"][:, sim.body_ids(sim.robot.foot_names), 2]
    torch.testing.assert_close(feet.sum(1), weight, atol=0.0, rtol=0.02)
    assert distance(sim, reference).max() < 1.0
    torch.testing.assert_close(
        seen(sim)["joint_torque"], seen(reference)["joint_torque"], atol=1.0, rtol=0.0
    )


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
    own, reference = map(seen, sims)
    for i, name in enumerate(CHANGES, 1):
        effect, error = (
            sum((one[key][i] - reference[key][j]).norm() for key in ("root_lin_vel_w", "joint_pos"))
            for one, j in ((reference, 0), (own, i))
        )
        assert error < 0.5 * effect, f"{name}: {error} off, its effect is {effect}"
    assert distance(*sims).max() < 1.0
    torch.testing.assert_close(own["joint_pos"][0], own["joint_pos"][-1], atol=1e-4, rtol=0.0)


def test_torques_end_at_their_limits_and_joints_at_the_ends_of_their_ranges(make: Make) -> None:
    sim = make(2)
    ids, limits = torch.arange(2, device=sim.device), torch.tensor(sim.robot.torque_limits)
    still, above = (
        torch.zeros(2, 3, device=sim.device),
        torch.tensor((0.0, 0.0, 3.0), device=sim.device),
    )
    low, high = sim.joint_pos_limits.unbind(1)
    for end, towards in ((low, -1.0), (high, 1.0)):
        begin(sim, [0, 1])
        sim.write_root_state(ids, sim.root_pos_w + above, sim.root_quat_w.clone(), still, still)
        sim.forward(ids)
        sim.set_joint_targets((end + towards * 9.0).expand(2, -1))
        sim.step(1)
        torch.testing.assert_close(
            seen(sim)["joint_torque"], (towards * limits).expand(2, -1), atol=1e-3, rtol=0.0
        )
        sim.step(60)
        assert ((seen(sim)["joint_pos"] - end.cpu()) * towards).abs().max() < 0.1


def assert_same(
    one: dict[str, Tensor], other: dict[str, Tensor], rows: list[int], atol: float = 0.0
) -> None:
    for name in one:
        torch.testing.assert_close(
            one[name][rows], other[name][rows], atol=atol, rtol=0.0, msg=f"{name}: {{}}".format
        )


def repeats(sim: Simulation) -> float:
    """How far two runs from one state may be apart: not at all on a CPU; on a GPU sums run in any order."""
    return 0.0 if sim.device.type == "cpu" else 1e-2


def test_quantities_are_float32_of_every_environment(make: Make) -> None:
    sim, reference = make(3), seen(make(3, reference=True))
    for name, expected in reference.items():
        value = getattr(sim, name)
        assert (value.shape, value.dtype, value.device) == (
            expected.shape,
            torch.float32,
            sim.device,
        ), name
    assert_same({**seen(sim), "joint_acc": reference["joint_acc"]}, reference, [0, 1, 2], 0.01)
    assert (
        sim.joint_pos_limits.shape == (sim.robot.num_joints, 2)
        and sim.body_names[0] == sim.robot.base_body
    )


def test_a_partial_reset_leaves_the_others_alone(make: Make) -> None:
    sim, undisturbed = make(4), make(4)
    for each in (sim, undisturbed):
        trot(each, 0.2)
    before = seen(sim)
    begin(sim, [0, 2])
    after, fresh = seen(sim), seen(make(4))
    assert_same(after, before, [1, 3])
    assert_same(after, fresh, [0, 2], 1e-4)
    trot(sim, 0.1), trot(undisturbed, 0.1)
    assert_same(seen(sim), seen(undisturbed), [1, 3], repeats(sim))


def test_a_state_is_exact_with_its_parameters_and_one_of_another_simulation_refused(
    make: Make,
) -> None:
    sim = make(3)
    second = torch.tensor([1], device=sim.device)
    sim.set_parameter("body_mass", 1.2 * sim.default_parameter("body_mass")[1:2], second)
    trot(sim, 0.2)
    state, shown = sim.get_state(), seen(sim)
    expected = seen(trot(sim, 0.2))
    sim.set_parameter("body_mass", sim.default_parameter("body_mass")[1:2], second)
    sim.set_parameter("kp", 0.5 * sim.default_parameter("kp")[1:2], second)
    begin(sim)
    sim.set_state(state)
    assert_same(seen(sim), shown, [0, 1, 2])
    assert torch.equal(sim.get_parameter("kp"), sim.default_parameter("kp"))
    assert_same(seen(trot(sim, 0.2)), expected, [0, 1, 2], repeats(sim))
    with pytest.raises(ValueError):
        sim.set_state(make(4).get_state())
    assert_same(seen(sim), expected, [0, 1, 2], repeats(sim))


def test_an_environment_that_diverges_is_told_and_begins_anew(make: Make) -> None:
    sim, undisturbed = make(3), make(3)
    assert sim.diverged() is None
    ids = torch.tensor([1], device=sim.device)
    sim.write_joint_state(ids, sim.joint_pos[ids] * float("nan"), sim.joint_vel[ids])
    trot(sim, 0.1), trot(undisturbed, 0.1)
    bad = sim.diverged()
    assert bad is not None and bad.tolist() == [False, True, False]
    assert_same(seen(sim), seen(undisturbed), [0, 2], repeats(sim))
    begin(sim, [1])
    assert sim.diverged() is None
    trot(sim, 0.1)
    assert sim.diverged() is None
    assert all(value.isfinite().all() for value in seen(sim).values())


def test_rays_find_the_ground(make: Make) -> None:
    sim = make(2)
    above = torch.tensor(((0.3, 0.1, 1.5), (2.0, 0.0, 0.4)), device=sim.device).expand(2, 2, 3)
    down, up = (torch.tensor((0.0, 0.0, z), device=sim.device).expand(2, 2, 3) for z in (-1.0, 1.0))
    torch.testing.assert_close(
        sim.cast_rays(above, down, 5.0).cpu(), torch.tensor((1.5, 0.4)).expand(2, 2)
    )
    assert (sim.cast_rays(above, down, 1.0)[:, 0] == 1.0).all() and (
        sim.cast_rays(above, up, 5.0) == 5.0
    ).all()
