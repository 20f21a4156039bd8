"""The evaluation of gaits, for robots that move their feet exactly as commanded."""

import io

import numpy as np
import pytest
import torch
from rich.console import Console

from legged_envs import make_task_cfg
from legged_envs.evaluation.evaluator import Evaluator, metrics_of
from legged_envs.evaluation.metrics.gaits import GaitMetrics, mean_stride_time
from legged_envs.mdp.gait_command import GAITS, STYLE

TASK = "Legged/Go2-Gaits-v0"
DT = 0.02


def test_the_time_of_a_stride_is_that_between_landings_of_one_foot():
    rng = np.random.default_rng(0)
    landed = torch.zeros(400, 3, 4, dtype=torch.bool)
    expected = []
    for robot in range(2):
        times = []
        for foot in range(4):
            steps = np.cumsum(rng.integers(15, 30, 12))
            landed[torch.from_numpy(steps), robot, foot] = True
            times.extend(np.diff(steps) * DT)
        expected.append(np.mean(times))
    # One landing is no stride.
    landed[7, 2, 0] = True
    actual = mean_stride_time(landed, DT).tolist()
    assert actual[:2] == pytest.approx(expected)
    assert np.isnan(actual[2])


@pytest.fixture(scope="module")
def evaluator():
    evaluator = Evaluator(TASK, make_task_cfg(TASK), episodes=24)
    yield evaluator
    evaluator.close()


def test_each_gait_is_evaluated_over_its_whole_ranges(evaluator):
    assert metrics_of(make_task_cfg(TASK)) is GaitMetrics
    evaluator.metrics.EPISODE_SECONDS = 1.4
    result = evaluator.run(lambda obs: torch.zeros(len(obs), 12), still=False)
    assert set(result.gaits) == set(GAITS)
    assert sum(gait.episodes for gait in result.gaits.values()) == 24
    height = sum(gait.measured["height"] * gait.episodes for gait in result.gaits.values()) / 24
    assert height == pytest.approx(result.base_height, abs=1e-3)
    pitches = [gait.errors["pitch"] for gait in result.gaits.values()]
    # Robots that only stand miss their pitch, which is drawn from ±0.3 rad, by 0.15 on average.
    assert np.mean(pitches) == pytest.approx(0.15, abs=0.06)
    for gait in result.gaits.values():
        assert set(gait.commanded) == set(STYLE)
        # They never land.
        assert np.isnan(gait.measured["period"])
        assert np.isnan(gait.period_error)
    page = io.StringIO()
    result.print(Console(file=page, width=80))
    assert all(name in page.getvalue() for name in GAITS)


def test_contacts_are_compared_with_the_schedule_that_the_step_began_with(evaluator, monkeypatch):
    core, metrics = evaluator.core, evaluator.metrics
    metrics.start(evaluator._envs, seed=3, still=False)
    pitch = 0.25
    gravity = torch.tensor((np.sin(pitch), 0.0, -np.cos(pitch))).expand(core.num_envs, 3)
    for _ in range(6):
        # The contacts that the rewards of this step ask for.
        expected = core.commands.terms["gait"].contact_schedule > 0.5
        info = core.step(torch.zeros(core.num_envs, 12))[-1]
        with monkeypatch.context() as patch:
            patch.setattr(core.robot, "foot_contact", expected)
            patch.setattr(core.robot, "projected_gravity", gravity)
            measures = metrics.measures(info)
        assert (measures["on_schedule"] == 1.0).all()
        assert measures["pitch"].tolist() == pytest.approx([pitch] * core.num_envs)


def test_landings_and_heights_of_feet_become_period_and_clearance(evaluator):
    metrics = evaluator.metrics
    steps = 300
    n = evaluator.core.num_envs
    landed = torch.zeros(steps, n, 4)
    landed[::20] = 1.0
    # A bounce: two steps after each landing.
    landed[2::20] = 1.0
    swing_time = torch.full((steps, n, 4), 0.2)
    swing_time[2::20] = DT
    swing_height = torch.full((steps, n, 4), 0.07)
    swing_height[2::20] = 0.001
    values = {
        "landed": landed,
        "swing_time": swing_time,
        "swing_height": swing_height,
        "base_height": torch.full((steps, n), 0.29),
        "pitch": torch.full((steps, n), 0.1),
    }
    style = metrics._measured_style(values, torch.ones(steps, n, dtype=torch.bool))
    measured = {name: value[0].item() for name, value in style.items()}
    assert measured == pytest.approx(
        {"period": 0.4, "clearance": 0.07, "height": 0.29, "pitch": 0.1}, abs=1e-6
    )
