"""The gait command, its rewards against their formulas in float64, and its curriculum."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.envs import CoreVectorEnv, make_core
from legged_envs.mdp import gait_observations, gait_rewards
from legged_envs.mdp.gait_command import GAITS, KAPPA, GaitCommand, contact_probability
from legged_envs.mdp.gait_curriculum import widen_gait_commands
from legged_envs.robots import GO2
from legged_envs.tasks.gaits import THRESHOLDS

TASK = "Legged/Go2-Gaits-v0"
NUM_ENVS = 8
FEET = {name: i for i, name in enumerate(GO2.foot_names)}
TOGETHER = {
    "trot": (("FL_foot", "RR_foot"), ("FR_foot", "RL_foot")),
    "pace": (("FL_foot", "RL_foot"), ("FR_foot", "RR_foot")),
    "bound": (("FL_foot", "FR_foot"), ("RL_foot", "RR_foot")),
}


def make_env(num_envs: int = NUM_ENVS, **fields: Any) -> CoreVectorEnv:
    cfg = make_task_cfg(TASK)
    cfg.events = {}
    for name, value in fields.items():
        setattr(cfg.commands["gait"], name, value)
    env = make_core(cfg, num_envs, array="torch", observations="dict")
    env.reset(seed=3)
    return env


def gait_of(env: CoreVectorEnv) -> GaitCommand:
    command = env.commands.terms["gait"]
    assert isinstance(command, GaitCommand)
    return command


def walk(env: CoreVectorEnv, steps: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(steps):
        action = rng.uniform(-1.0, 1.0, (env.num_envs, 12)).astype(np.float32)
        env.step(torch.from_numpy(action))


def contact_oracle(phase: float) -> float:
    def below(x: float) -> float:
        return 0.5 * (1.0 + math.erf(x / KAPPA / math.sqrt(2.0)))

    this_stride = below(phase) * (1.0 - below(phase - 0.5))
    next_stride = below(phase - 1.0) * (1.0 - below(phase - 1.5))
    return this_stride + next_stride


# --- the command --------------------------------------------------------------------------------


def test_the_probability_of_contact_is_its_formula_and_has_no_step():
    phase = torch.linspace(0.0, 0.999, 1000)
    probability = contact_probability(phase).numpy()
    expected = [contact_oracle(float(each)) for each in phase]
    np.testing.assert_allclose(probability, expected, atol=1e-6)
    # In the middle of a stance and of a swing, and when a foot lands and leaves the ground.
    at = contact_probability(torch.tensor((0.25, 0.75, 0.0, 0.5))).numpy()
    np.testing.assert_allclose(at, (1.0, 0.0, 0.5, 0.5), atol=1e-3)
    assert np.abs(np.diff(probability)).max() < 0.01


@pytest.mark.parametrize("gait", GAITS)
def test_the_feet_of_a_pair_have_one_phase_and_pairs_are_half_a_stride_apart(gait):
    env = make_env(2)
    command = gait_of(env)
    command.hold_gait(gait)
    for _ in range(3):
        env.step(torch.zeros(2, 12))
    phase = command.foot_phase
    if gait == "pronk":
        assert torch.allclose(phase, phase[:, :1].expand(-1, 4))
        return
    (a, b), (c, d) = [[FEET[name] for name in pair] for pair in TOGETHER[gait]]
    assert torch.allclose(phase[:, a], phase[:, b], atol=1e-6)
    assert torch.allclose(phase[:, c], phase[:, d], atol=1e-6)
    apart = (phase[:, a] - phase[:, c]).remainder(1.0)
    assert torch.allclose(apart, torch.full((2,), 0.5), atol=1e-5)


def test_a_stride_lasts_its_period_and_goes_on_when_the_gait_changes():
    env = make_env(1)
    command = gait_of(env)
    command.hold_gait("trot", period=0.4)
    start = command.stride_time.item()
    for _ in range(round(0.4 / env.step_dt)):
        env.step(torch.zeros(1, 12))
    assert (command.stride_time.item() - start + 0.5) % 1.0 == pytest.approx(0.5, abs=1e-4)
    before = command.stride_time.item()
    command.hold_gait("bound", period=0.5)
    assert command.stride_time.item() == before


def test_gaits_are_drawn_alike_and_styles_uniformly_in_their_ranges():
    command = gait_of(make_env(2000, level=1.0))
    counts = command.gait_index.bincount(minlength=4)
    assert (counts - 500).abs().max() < 100
    for name in ("period", "clearance", "height", "pitch"):
        low, high = getattr(command.cfg, name)
        values = getattr(command, name)
        assert low <= values.min()
        assert values.max() <= high
        assert values.mean().item() == pytest.approx(0.5 * (low + high), abs=0.03 * (high - low))
        assert values.std().item() == pytest.approx((high - low) / math.sqrt(12.0), rel=0.06)


def test_the_level_narrows_the_styles_around_the_middle():
    command = gait_of(make_env(500, level=0.2))
    low, high = command.cfg.height
    middle = 0.5 * (low + high)
    largest = (command.height - middle).abs().max().item()
    assert largest == pytest.approx(0.1 * (high - low), rel=0.05)


def test_a_held_gait_stays_until_the_reset():
    env = make_env(4, resampling_time_s=(0.1, 0.1))
    command = gait_of(env)
    command.hold_gait("pace", period=0.5, clearance=0.1, height=0.3, pitch=0.1)
    held = command.value.clone()
    expected = torch.tensor((0.0, 0.0, 0.5, 0.5, 0.1, 0.3, 0.1)).expand(4, -1)
    assert torch.allclose(held, expected)
    for _ in range(20):
        env.step(torch.zeros(4, 12))
    assert torch.equal(command.value, held)
    env.reset(seed=0)
    assert not torch.equal(command.value, held)


@pytest.mark.parametrize(
    ("gait", "style", "match"),
    [
        ("canter", {}, "canter"),
        ("trot", {"period": 1.5}, r"period.*1\.5"),
        ("trot", {"height": math.nan}, "height.*nan"),
        ("trot", {"width": 0.3}, "width"),
    ],
)
def test_a_gait_that_does_not_exist_and_a_style_out_of_range_are_named(gait, style, match):
    env = make_env(1)
    command = gait_of(env)
    before = command.value.clone()
    with pytest.raises(ValueError, match=match):
        command.hold_gait(gait, **style)
    assert torch.equal(command.value, before)


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("legs", ("FL_foot", "FR_foot", "RL_foot", "tail"), "legs.*tail"),
        ("gaits", ("trot", "amble"), "amble"),
        ("gaits", (), "gaits"),
        ("period", (0.6, 0.3), r"period.*0\.6"),
        ("level", 1.2, r"level.*1\.2"),
        ("velocity", "speed", "speed"),
    ],
)
def test_a_wrong_field_is_named(field, value, match):
    with pytest.raises(ValueError, match=match):
        make_env(1, **{field: value})


def test_all_feet_should_stand_while_the_velocity_command_is_to_stand_still():
    env = make_env(2)
    env.commands.terms["velocity"].hold(torch.tensor(((0.0, 0.0, 0.0), (0.5, 0.0, 0.0))))
    walk(env, 5)
    command = gait_of(env)
    assert torch.equal(command.contact_schedule[0], torch.ones(4))
    assert command.contact_schedule[1].min() < 0.9
    for observe in (gait_observations.foot_clock_sin, gait_observations.foot_clock_cos):
        assert torch.equal(observe(env)[0], torch.zeros(4))
        assert observe(env)[1].abs().max() > 0.1


def test_a_saved_state_goes_on_with_the_same_commands(assert_same):
    env = make_env(4, resampling_time_s=(0.1, 0.3))
    walk(env, 10)
    state = env.get_state()
    walk(env, 20)
    expected = gait_of(env).state_dict()
    env.set_state(state)
    walk(env, 20)
    assert_same(gait_of(env).state_dict(), expected)


# --- rewards ------------------------------------------------------------------------------------


def as_float64(tensor: torch.Tensor) -> np.ndarray:
    return tensor.double().numpy()


@pytest.fixture(scope="module")
def moved() -> CoreVectorEnv:
    env = make_env(32, level=1.0)
    walk(env, 37)
    return env


def swing_of(env: CoreVectorEnv) -> np.ndarray:
    """Return 1 − C of each foot, computed from the phase only."""
    phases = as_float64(gait_of(env).foot_phase)
    stand = np.vectorize(contact_oracle)(phases)
    still = as_float64(env.commands.terms["velocity"].still)
    return (1.0 - stand) * (1.0 - still[:, None])


def test_force_in_the_swing_is_its_formula(moved):
    force = as_float64(moved.robot.contact_force[:, moved.robot.feet])
    expected = 1.0 - (swing_of(moved) * (1.0 - np.exp(-(force**2) / 80.0))).sum(1) / 4.0
    actual = gait_rewards.tracking_contacts_shaped_force(moved, sigma=80.0)
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert np.ptp(expected) > 0.1


def test_velocity_in_the_stance_is_its_formula(moved):
    speed = np.linalg.norm(as_float64(moved.robot.foot_lin_vel_w), axis=2)
    stand = 1.0 - swing_of(moved)
    expected = 1.0 - (stand * (1.0 - np.exp(-(speed**2) / 3.0))).sum(1) / 4.0
    actual = gait_rewards.tracking_contacts_shaped_vel(moved, sigma=3.0)
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert np.ptp(expected) > 0.1


def test_stance_is_its_formula(moved):
    in_air = ~moved.robot.foot_contact.numpy()
    stand = 1.0 - swing_of(moved)
    expected = 1.0 - (stand * in_air).sum(1) / 4.0
    np.testing.assert_allclose(gait_rewards.tracking_stance(moved), expected, atol=1e-6)
    assert np.ptp(expected) > 0.1


def test_clearance_is_its_formula(moved):
    command = gait_of(moved)
    phase = as_float64(command.foot_phase)
    time = np.clip(2.0 * phase - 1.0, 0.0, 1.0)
    target = as_float64(command.clearance)[:, None] * np.sin(np.pi * time) ** 2
    height = as_float64(moved.robot.foot_height) - GO2.foot_radius
    missed = 1.0 - np.exp(-((height - target) ** 2) / 0.004)
    expected = 1.0 - (swing_of(moved) * missed).sum(1) / 4.0
    actual = gait_rewards.tracking_foot_clearance(moved, sigma=0.004)
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert np.ptp(expected) > 0.1


def test_height_and_orientation_are_their_formulas(moved):
    command = gait_of(moved)
    error = as_float64(moved.robot.base_height) - as_float64(command.height)
    actual = gait_rewards.tracking_base_height(moved, sigma=0.002)
    np.testing.assert_allclose(actual, np.exp(-(error**2) / 0.002), atol=1e-5)
    gravity = as_float64(moved.robot.projected_gravity)
    pitch = as_float64(command.pitch)
    tilt = (gravity[:, 0] - np.sin(pitch)) ** 2 + gravity[:, 1] ** 2
    actual = gait_rewards.tracking_orientation(moved, sigma=0.05)
    np.testing.assert_allclose(actual, np.exp(-tilt / 0.05), atol=1e-5)


def test_a_robot_with_the_commanded_pitch_has_the_whole_reward_and_its_nose_down():
    env = make_env(1)
    gait_of(env).hold_gait(pitch=0.25)
    quat = torch.tensor(((math.cos(0.125), 0.0, math.sin(0.125), 0.0),))
    position = torch.tensor(((0.0, 0.0, 0.5),))
    zero = torch.zeros(1, 3)
    env.sim.write_root_state(torch.tensor((0,)), position, quat, zero, zero)
    env.robot.refresh(torch.tensor((0,)))
    assert gait_rewards.tracking_orientation(env, sigma=0.05).item() == pytest.approx(1.0)
    # Gravity pulls towards the nose.
    assert env.robot.projected_gravity[0, 0] > 0.2


def test_raibert_is_its_formula(moved):
    command = gait_of(moved)
    velocity = as_float64(moved.commands["velocity"])
    still = as_float64(moved.commands.terms["velocity"].still)
    period = as_float64(command.period)
    phase = as_float64(command.foot_phase)
    heading = as_float64(moved.robot.heading())
    feet = as_float64(moved.robot.foot_pos_w) - as_float64(moved.robot.root_pos_w)[:, None]
    expected = np.zeros(len(velocity))
    for i, (vx, vy, turn) in enumerate(velocity):
        stance_time = 0.5 * period[i] * (1.0 - still[i])
        for name, foot in FEET.items():
            hip = np.array((0.2 if name[0] == "F" else -0.2, 0.15 if name[1] == "L" else -0.15))
            speed = np.array((vx - turn * hip[1], vy + turn * hip[0]))
            place = hip + (abs(1.0 - 2.0 * phase[i, foot]) - 0.5) * stance_time * speed
            turned = np.array(
                (
                    (math.cos(heading[i]), math.sin(heading[i])),
                    (-math.sin(heading[i]), math.cos(heading[i])),
                )
            )
            expected[i] += ((turned @ feet[i, foot, :2] - place) ** 2).sum()
    actual = gait_rewards.raibert_heuristic(moved, length=0.4, width=0.3)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
    # Hips of another size are others, and those of one size are not computed in each step.
    assert command.hip_places(0.6, 0.3)[:, 0].abs().tolist() == pytest.approx([0.3] * 4)
    assert command.hip_places(0.4, 0.3) is command.hip_places(0.4, 0.3)


# --- observations and curriculum ----------------------------------------------------------------


def test_the_policy_observes_the_gait_the_style_and_the_time_of_each_foot(moved):
    command = gait_of(moved)
    angle = 2.0 * np.pi * as_float64(command.foot_phase)
    moving = as_float64(command.moving)[:, None]
    actual = gait_observations.foot_clock_sin(moved)
    np.testing.assert_allclose(actual, np.sin(angle) * moving, atol=1e-5)
    actual = gait_observations.foot_clock_cos(moved)
    np.testing.assert_allclose(actual, np.cos(angle) * moving, atol=1e-5)
    signs = np.where(as_float64(command.offsets) == 0.5, -1.0, 1.0)
    np.testing.assert_allclose(gait_observations.gait_offsets(moved), signs, atol=1e-6)
    assert torch.equal(gait_observations.gait_style(moved), command.value[:, 3:])


def test_gaits_that_are_followed_widen_and_others_stay():
    env = make_env(3)
    command = gait_of(env)
    env_ids = torch.arange(3)
    whole = env.max_episode_length_s
    # The first robot succeeds with two gaits, the second fails in one reward, the third ends early.
    command.gait_time = torch.tensor(
        ((0.5 * whole, 0.5 * whole, 0.0, 0.0), (0.0, 0.0, whole, 0.0), (0.0, 0.0, 0.0, 1.0))
    )
    for column, (name, weight) in enumerate(
        zip(env.rewards.names, env.rewards.weights, strict=True)
    ):
        env.rewards.episode_sums[:, column] = weight * whole
        if name == "tracking_contacts_shaped_vel":
            env.rewards.episode_sums[1, column] *= 0.5
    env.rewards.episode_sums[2] *= 0.1
    level = widen_gait_commands(env, env_ids, THRESHOLDS, step=0.1, slowest=0.5)
    assert command.level.tolist() == pytest.approx([0.25, 0.25, 0.2, 0.2])
    assert level.item() == pytest.approx(0.225)
    ranges = env.commands.terms["velocity"].ranges
    assert ranges[0].tolist() == pytest.approx([-0.6125, 0.6125])
    assert ranges[1].tolist() == pytest.approx([-0.30625, 0.30625])


def test_no_level_exceeds_1_and_a_reward_that_does_not_exist_is_named():
    env = make_env(2, level=0.99)
    command = gait_of(env)
    whole = env.max_episode_length_s
    command.gait_time = torch.full((2, 4), 0.25 * whole)
    for column, weight in enumerate(env.rewards.weights):
        env.rewards.episode_sums[:, column] = weight * whole
    widen_gait_commands(env, torch.arange(2), THRESHOLDS, step=0.5)
    assert command.level.tolist() == [1.0] * 4
    with pytest.raises(ValueError, match="tracking_tail"):
        widen_gait_commands(env, torch.arange(2), {"tracking_tail": 0.5})
