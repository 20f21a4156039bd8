"""The interface: shapes, what a call leaves alone, exact states, bad physics."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from legged_envs.conformance.conftest import begin
from legged_envs.conformance.motions import seen, trot
from legged_envs.sim import Simulation

Make = Callable[..., Simulation]
NAN = float("nan")


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor], rows: list[int], atol: float = 0.0) -> None:
    for name in one:
        torch.testing.assert_close(one[name][rows], other[name][rows], atol=atol, rtol=0.0, msg=f"{name}: {{}}".format)


def repeats(sim: Simulation) -> float:
    """How far two runs from one state may be apart: not at all on a CPU; on a GPU sums run in any order."""
    return 0.0 if sim.device.type == "cpu" else 1e-2


def test_quantities_are_float32_of_every_environment(make: Make) -> None:
    sim = make(3)
    joints, bodies, feet = sim.robot.num_joints, len(sim.body_names), len(sim.robot.foot_names)
    sizes: dict[str, tuple[int, ...]] = {"root_pos_w": (3,), "root_quat_w": (4,), "root_lin_vel_w": (3,)}
    sizes |= {
        "root_ang_vel_b": (3,),
        **dict.fromkeys(("joint_pos", "joint_vel", "joint_acc", "joint_torque"), (joints,)),
    }
    sizes |= {f"body_{name}_w": (bodies, 3) for name in ("pos", "lin_vel", "ang_vel")}
    sizes |= {"body_quat_w": (bodies, 4), "contact_force_w": (bodies, 3)}
    sizes |= {"foot_pos_w": (feet, 3), "foot_lin_vel_w": (feet, 3)}
    for name, size in sizes.items():
        value = getattr(sim, name)
        assert (value.shape, value.dtype, value.device) == ((3, *size), torch.float32, sim.device), name
        assert value.isfinite().all(), name
    assert sim.joint_pos_limits.shape == (joints, 2) and sim.body_names[0] == sim.robot.base_body
    default = torch.tensor(sim.robot.default_joint_pos, device=sim.device)
    torch.testing.assert_close(sim.joint_pos, default.expand(3, -1))
    torch.testing.assert_close(sim.root_pos_w[:, 2], torch.full((3,), sim.robot.base_height, device=sim.device))


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


def test_a_state_is_exact_with_its_parameters(make: Make) -> None:
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


def test_a_state_of_another_simulation_is_refused_and_nothing_changes(make: Make) -> None:
    sim = trot(make(2), 0.1)
    before = seen(sim)
    with pytest.raises(ValueError):
        sim.set_state(make(3).get_state())
    assert_same(seen(sim), before, [0, 1])


def test_an_environment_that_diverges_is_told_and_begins_anew(make: Make) -> None:
    sim, undisturbed = make(3), make(3)
    assert sim.diverged() is None
    ids = torch.tensor([1], device=sim.device)
    sim.write_joint_state(ids, sim.joint_pos[ids] * NAN, sim.joint_vel[ids])
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
    torch.testing.assert_close(sim.cast_rays(above, down, 5.0).cpu(), torch.tensor((1.5, 0.4)).expand(2, 2))
    assert (sim.cast_rays(above, down, 1.0)[:, 0] == 1.0).all() and (sim.cast_rays(above, up, 5.0) == 5.0).all()


def test_what_cannot_be_is_refused(make: Make) -> None:
    sim = make(2)
    ids = torch.arange(2, device=sim.device)
    with pytest.raises(ValueError, match="stickiness"):
        sim.get_parameter("stickiness")
    with pytest.raises(ValueError, match="shape"):
        sim.set_parameter("friction", torch.ones(3, device=sim.device), ids)
    with pytest.raises(ValueError, match="negative"):
        sim.set_parameter("friction", -torch.ones(2, device=sim.device), ids)
    sim.close()
    with pytest.raises(RuntimeError, match="after close"):
        sim.step(1)
