"""Tests that a physics engine must pass.

Robots must fall, stand, slide and trot by the laws of physics, and as on the CPU engine from the
same state. The engine must behave as :class:`Simulation` documents it: shapes, resets, saved states
and divergence.
"""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from legged_envs.conformance.conftest import begin
from legged_envs.conformance.motions import (
    distance,
    indices,
    lift_all,
    push_all,
    seen,
    trot,
)
from legged_envs.sim import Simulation

GRAVITY = 9.81
"""Acceleration of gravity, m/s²."""
Make = Callable[..., Simulation]


def test_a_robot_in_the_air_falls_freely(make: Make) -> None:
    sim = make(2)
    seconds = 0.3
    lift_all(sim, 2.0)
    start = sim.root_pos_w.clone()
    sim.step(round(seconds / sim.cfg.dt))
    # Tolerances leave room for the order of an integrator, and none for a missing or doubled step.
    fallen = (start - sim.root_pos_w)[:, 2]
    speed = sim.root_lin_vel_w[:, 2]
    assert_near(fallen, 0.5 * GRAVITY * seconds**2, atol=0.01)
    assert_near(speed, -GRAVITY * seconds, atol=0.02)
    assert not sim.contact_force_w.any()


def test_a_time_step_can_be_longer_and_a_state_remembers_it(make: Make) -> None:
    sim = make(2)
    state_of_short_steps = sim.get_state()
    start = sim.root_pos_w[0, 2].item()
    num_steps = 20
    sim.set_timestep(0.01)
    for dt in (0.01, 0.005):
        push_all(sim, (0.0, 0.0, 2.0))
        sim.step(num_steps)
        time = num_steps * dt
        height = start + 2.0 * time - 0.5 * GRAVITY * time**2
        assert_near(sim.root_pos_w[:, 2], height, atol=0.02)
        # Back to the start, and to the time step that was saved with it.
        sim.set_state(state_of_short_steps)


def test_a_robot_tumbles_as_on_the_cpu_engine(make: Make) -> None:
    sim = make(2)
    reference = make(2, reference=True)
    for each in (sim, reference):
        throw_second_robot(each)
    for num_steps in (1, 10):
        sim.step(num_steps)
        reference.step(num_steps)
        own = seen(sim)
        expected = seen(reference)
        for name in ("joint_acc", "joint_torque"):
            # Large numbers, which small differences of the state change much.
            torch.testing.assert_close(own.pop(name), expected.pop(name), atol=5.0, rtol=0.05)
        assert_same(own, expected, [0, 1], 0.02)
    # The test is empty if the robot does not tumble.
    pitch_part = own["root_quat_w"][1, 2]
    turning = own["root_ang_vel_b"][1]
    assert pitch_part < -0.3
    assert turning.norm() > 3.0


def throw_second_robot(sim: Simulation) -> None:
    """Place robot 1 in the air with a tilt, a rotation and moving joints."""
    ids = indices(sim, [1])
    sim.write_root_state(
        ids,
        torch.tensor([(0.4, -0.3, 2.0)], device=sim.device),
        torch.tensor([(0.8, 0.3, -0.4, 0.3317)], device=sim.device),
        torch.tensor([(0.5, 0.2, 0.1)], device=sim.device),
        torch.tensor([(1.0, -2.0, 3.0)], device=sim.device),
    )
    joint_pos = sim.joint_pos[ids] + 0.1
    joint_vel = torch.ones_like(joint_pos)
    sim.write_joint_state(ids, joint_pos, joint_vel)
    sim.forward(ids)


def test_a_robot_that_stands_weighs_what_its_bodies_do(make: Make) -> None:
    sim = make(2)
    reference = make(2, reference=True)
    for each in (sim, reference):
        each.step(400)  # until the impact of the first contact has died away
    own = seen(sim)
    expected = seen(reference)
    weight = GRAVITY * sim.get_parameter("body_mass").sum(1).cpu()
    feet = sim.body_ids(sim.robot.foot_names)
    force = own["contact_force_w"][:, feet, 2].sum(1)
    torch.testing.assert_close(force, weight, atol=0.0, rtol=0.02)
    assert_alike(sim, reference)
    assert_near(own["joint_torque"], expected["joint_torque"], atol=1.0)


@pytest.mark.parametrize("seconds", [0.1, 0.3])
def test_a_robot_slides_as_far_as_its_friction_lets_it(make: Make, seconds: float) -> None:
    sim = make(3)
    reference = make(3, reference=True)
    for each in (sim, reference):
        ids = indices(each)
        friction = torch.tensor((0.1, 0.3, 0.6), device=each.device)
        each.set_parameter("friction", friction, ids)
        each.step(100)
        push_all(each, (1.0, 0.0, 0.0))
        each.forward(ids)
        each.step(round(seconds / each.cfg.dt))
    speeds = seen(sim)["root_lin_vel_w"][:, 0].tolist()
    # The order first: friction that acts nowhere would still agree with another such engine.
    slippery, medium, rough = speeds
    assert slippery > medium + 0.03
    assert medium > rough + 0.03
    assert_alike(sim, reference)


def test_a_trot_is_that_of_the_cpu_engine(make: Make) -> None:
    sim = trot(make(2), 0.5)
    reference = trot(make(2, reference=True), 0.5)
    own = seen(sim)
    expected = seen(reference)
    assert_alike(sim, reference)
    apart = {name: (own[name] - expected[name]).abs() for name in own}
    assert apart["foot_pos_w"].max() < 0.03
    assert apart["body_lin_vel_w"].mean() < 0.1
    assert apart["body_ang_vel_w"].mean() < 0.3


SHIFT = 0.05
"""Distance by which a test moves the base's centre of mass, m."""
FACTORS = {"friction": 0.2, "body_mass": 1.6, "com": 1.0, "kp": 0.5, "kd": 4.0, "armature": 4.0}
"""Factor of each parameter, each in a separate environment; ``com`` is shifted instead."""


def test_every_parameter_acts_in_its_environment_alone_as_on_the_cpu_engine(make: Make) -> None:
    # The first and the last environment keep the defaults.
    num_envs = len(FACTORS) + 2
    sim = make(num_envs)
    reference = make(num_envs, reference=True)
    for each in (sim, reference):
        change_parameters(each)
        each.forward(indices(each))
        push_all(each, (0.5, 0.3, 0.0))
        trot(each, 0.2)
    own = seen(sim)
    expected = seen(reference)
    for env_id, name in enumerate(FACTORS, 1):
        effect = 0.0
        error = 0.0
        for key in ("root_lin_vel_w", "joint_pos"):
            changed = expected[key][env_id]
            effect += (changed - expected[key][0]).norm().item()
            error += (own[key][env_id] - changed).norm().item()
        assert error < 0.5 * effect, f"{name}: {error} off, its effect is {effect}"
    assert_alike(sim, reference)
    first = own["joint_pos"][0]
    last = own["joint_pos"][-1]
    assert_near(first, last, atol=1e-4)


def change_parameters(sim: Simulation) -> None:
    """Change one parameter in each environment but the first and the last."""
    for env_id, (name, factor) in enumerate(FACTORS.items(), 1):
        default = sim.default_parameter(name)
        values = default[env_id : env_id + 1] * factor
        if name == "com":
            values[:, 0] += SHIFT  # of the first body, the base
        sim.set_parameter(name, values, indices(sim, [env_id]))
        present = sim.get_parameter(name)
        assert torch.equal(present[env_id], values[0])
        assert torch.equal(present[0], default[0])


def test_torques_end_at_their_limits_and_joints_at_the_ends_of_their_ranges(make: Make) -> None:
    sim = make(2)
    limits = torch.tensor(sim.robot.torque_limits)
    low, high = sim.joint_pos_limits.unbind(1)
    for end, direction in ((low, -1.0), (high, 1.0)):
        begin(sim, [0, 1])
        lift_all(sim, 3.0)
        sim.set_joint_targets((end + direction * 9.0).expand(2, -1))
        sim.step(1)
        torque = seen(sim)["joint_torque"]
        expected = (direction * limits).expand(2, -1)
        assert_near(torque, expected, atol=1e-3)
        sim.step(60)
        joint_pos = seen(sim)["joint_pos"]
        assert (joint_pos - end.cpu()).abs().max() < 0.1


def test_quantities_are_float32_of_every_environment(make: Make) -> None:
    sim = make(3)
    reference = seen(make(3, reference=True))
    for name, expected in reference.items():
        value = getattr(sim, name)
        assert value.shape == expected.shape, name
        assert value.dtype == torch.float32, name
        assert value.device == sim.device, name
    own = seen(sim)
    own["joint_acc"] = reference["joint_acc"]  # values of a robot at its start are not compared
    assert_same(own, reference, [0, 1, 2], 0.01)
    robot = sim.robot
    assert sim.joint_pos_limits.shape == (robot.num_joints, 2)
    assert sim.body_names[0] == robot.base_body


def test_a_partial_reset_leaves_the_others_alone(make: Make) -> None:
    """A reset of some environments does not change the state or the future of the others."""
    sim = make(4)
    undisturbed = make(4)
    for each in (sim, undisturbed):
        trot(each, 0.2)
    before = seen(sim)
    begin(sim, [0, 2])
    after = seen(sim)
    fresh = seen(make(4))
    assert_same(after, before, [1, 3])
    assert_same(after, fresh, [0, 2], 1e-4)
    for each in (sim, undisturbed):
        trot(each, 0.1)
    assert_same(seen(sim), seen(undisturbed), [1, 3], repeat_tolerance(sim))


def test_a_state_is_exact_with_its_parameters_and_one_of_another_simulation_refused(
    make: Make,
) -> None:
    sim = make(3)
    rows = [0, 1, 2]
    second = indices(sim, [1])
    mass = sim.default_parameter("body_mass")[1:2]
    kp = sim.default_parameter("kp")[1:2]
    sim.set_parameter("body_mass", 1.2 * mass, second)
    trot(sim, 0.2)
    state = sim.get_state()
    at_state = seen(sim)
    later = seen(trot(sim, 0.2))
    sim.set_parameter("body_mass", mass, second)
    sim.set_parameter("kp", 0.5 * kp, second)
    begin(sim)
    sim.set_state(state)
    assert_same(seen(sim), at_state, rows)
    assert torch.equal(sim.get_parameter("kp"), sim.default_parameter("kp"))
    assert_same(seen(trot(sim, 0.2)), later, rows, repeat_tolerance(sim))
    with pytest.raises(ValueError):
        sim.set_state(make(4).get_state())
    assert_same(seen(sim), later, rows, repeat_tolerance(sim))


def test_an_environment_that_diverges_is_told_and_begins_anew(make: Make) -> None:
    """An environment with a state that is not finite is reported, and a reset repairs it."""
    sim = make(3)
    undisturbed = make(3)
    assert sim.diverged() is None
    ids = indices(sim, [1])
    not_finite = torch.full_like(sim.joint_pos[ids], float("nan"))
    sim.write_joint_state(ids, not_finite, sim.joint_vel[ids])
    for each in (sim, undisturbed):
        trot(each, 0.1)
    bad = sim.diverged()
    assert bad is not None
    assert bad.tolist() == [False, True, False]
    assert_same(seen(sim), seen(undisturbed), [0, 2], repeat_tolerance(sim))
    begin(sim, [1])
    assert sim.diverged() is None
    trot(sim, 0.1)
    assert sim.diverged() is None
    assert all(value.isfinite().all() for value in seen(sim).values())


def test_rays_find_the_ground(make: Make) -> None:
    sim = make(2)
    device = sim.device
    origins = torch.tensor(((0.3, 0.1, 1.5), (2.0, 0.0, 0.4)), device=device)
    origins = origins.expand(2, 2, 3)
    down = torch.tensor((0.0, 0.0, -1.0), device=device)
    down = down.expand(2, 2, 3)
    heights = torch.tensor((1.5, 0.4)).expand(2, 2)
    torch.testing.assert_close(sim.cast_rays(origins, down, 5.0).cpu(), heights)
    # A ray that meets nothing has its greatest length.
    assert (sim.cast_rays(origins, down, 1.0)[:, 0] == 1.0).all()
    assert (sim.cast_rays(origins, -down, 5.0) == 5.0).all()


def assert_alike(sim: Simulation, reference: Simulation) -> None:
    """Raise unless two simulations are within the tolerances of each other."""
    assert distance(sim, reference).max() < 1.0


def assert_near(values: Tensor, expected: Tensor | float, atol: float) -> None:
    """Raise unless every number is within ``atol`` of ``expected``."""
    values = values.cpu()
    expected = torch.as_tensor(expected).expand(values.shape)
    torch.testing.assert_close(values, expected, atol=atol, rtol=0.0)


def assert_same(
    one: dict[str, Tensor], other: dict[str, Tensor], rows: Sequence[int], atol: float = 0.0
) -> None:
    """Raise unless quantities of the environments ``rows`` are within ``atol`` of each other."""
    rows = list(rows)
    for name in one:
        values = one[name][rows]
        expected = other[name][rows]
        message = f"{name}: {{}}".format
        torch.testing.assert_close(values, expected, atol=atol, rtol=0.0, msg=message)


def repeat_tolerance(sim: Simulation) -> float:
    """Return the allowed difference of two runs from the same state.

    It is 0 on a CPU. On a GPU it is larger, because the order of sums varies.
    """
    return 0.0 if sim.device.type == "cpu" else 1e-2
