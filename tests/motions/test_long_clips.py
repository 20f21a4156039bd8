"""Clips of 30 s and more with 29 joints: they load, are sampled, and segments that fail come more often."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from made_clips import as_motion, walk, write_csv

from legged_envs.envs import unwrap
from legged_envs.evaluation.metrics.mimic import motion_of
from legged_envs.motions import (
    MotionFiles,
    MotionLibrary,
    StartCfg,
    StartSampler,
    inspect_motion,
    suspicions,
)
from legged_envs.rng import RandomStreams
from legged_envs.robots import G1_29
from tools.motions.long_walk import WALK, Tour, default_stance, long_walk, write_table

SECONDS = 40.0


@pytest.fixture(scope="module")
def long_clip(tmp_path_factory):
    """A clip of 40 s in LAFAN1's form."""
    path = tmp_path_factory.mktemp("clips") / "walk1_subject1.csv"
    return write_csv(path, np.hstack(walk(30.0, SECONDS, speed=0.3)))


def test_a_long_clip_is_sampled_at_any_time(long_clip):
    [motion] = MotionFiles([long_clip], rate=30.0)(G1_29)
    expected = as_motion(30.0, walk(30.0, SECONDS, speed=0.3))
    library = MotionLibrary([motion], G1_29)
    times = torch.rand(500, dtype=torch.float64) * SECONDS
    sample = library.sample(torch.zeros(500, dtype=torch.long), times)
    for column in (3, 5):
        frames = np.arange(expected.num_frames) / 30.0
        plain = np.interp(times.numpy(), frames, expected.joint_pos[:, column].numpy())
        assert np.allclose(sample.joint_pos[:, column], plain, atol=1e-4)
    assert torch.allclose(sample.root_pos_w[:, 0].double(), 0.3 * times, atol=1e-4)


def test_segments_that_fail_are_drawn_as_beyondmimic_draws_them(long_clip):
    """Its formula: failures of the bins ahead, weighted by an exponential kernel, and a uniform floor."""
    library = MotionLibrary(MotionFiles([long_clip], rate=30.0)(G1_29), G1_29)
    cfg = StartCfg(adaptive=True, bin_length=1.0, uniform_fraction=0.1, bins_ahead=3, decay=0.8)
    sampler = StartSampler(library, cfg)
    assert len(sampler.failures) == 40
    rng = np.random.default_rng(0)
    mean = np.zeros(40)
    for _ in range(50):
        times = rng.uniform(0.0, SECONDS, 64)
        failed = (times > 12.0) & (times < 14.0)
        sampler.record(
            torch.zeros(64, dtype=torch.long), torch.from_numpy(times), torch.from_numpy(failed)
        )
        mean += cfg.smoothing * (np.bincount(times[failed].astype(int), minlength=40) - mean)
    padded = np.concatenate((mean, [mean[-1]] * 2))
    drawn = sum(0.8**ahead * padded[ahead : ahead + 40] for ahead in range(3))
    expected = 0.9 * drawn / drawn.sum() + 0.1 / 40
    assert np.allclose(sampler.probabilities, expected, atol=1e-12)
    random = RandomStreams(4000, torch.device("cpu"))
    random.seed(1, torch.arange(4000))
    _, starts = sampler.draw(random.stream("starts"), torch.arange(4000))
    share = np.histogram(starts.numpy(), bins=40, range=(0.0, SECONDS))[0] / 4000
    assert np.allclose(share, expected, atol=5 * np.sqrt(0.25 / 4000))
    # Before the segment, in it, and still everywhere.
    assert expected[10:14].sum() > 0.85 and expected.min() == pytest.approx(0.1 / 40)


def test_a_task_imitates_a_long_clip_from_where_it_fails(long_clip):
    changes = {
        "commands.motion.motions": MotionFiles([long_clip], rate=30.0),
        "commands.motion.reference_fraction": 1.0,
        "commands.motion.starts.adaptive": True,
    }
    envs = gym.make_vec("Legged/G1-Mimic-v0", num_envs=8, cfg=changes)
    envs.reset(seed=0)
    sampler = motion_of(unwrap(envs))._sampler
    uniform = sampler.probabilities.clone()
    for _ in range(60):
        envs.step(np.ones(envs.action_space.shape, dtype=np.float32))
    assert sampler.failures.sum() > 0.0
    assert not torch.equal(sampler.probabilities, uniform)
    assert sampler.probabilities.sum().item() == pytest.approx(1.0)
    envs.close()


def test_the_long_walk_is_a_table_that_a_robot_can_walk(tmp_path):
    """Its first seconds; the whole way is that of its plan."""
    made = long_walk(2.0)
    write_table(tmp_path / "walk.csv", made)
    table = np.loadtxt(tmp_path / "walk.csv", delimiter=",")
    assert table.shape == (61, 36)
    [motion] = MotionFiles([tmp_path / "walk.csv"], rate=30.0)(G1_29)
    assert torch.allclose(motion.joint_pos, made.joint_pos, atol=1e-5)
    assert not inspect_motion(motion, G1_29).problems() and not suspicions(motion, G1_29)
    tour = Tour(WALK, default_stance(G1_29))
    times = torch.linspace(0.0, 20.0, 2001, dtype=torch.float64)
    place, yaw = tour._course(times)
    speed = place.diff(dim=0).norm(dim=1) / 0.01
    assert speed.min() > 0.54 and speed.max() < 0.71 and 11.5 < speed.mean() * 20.0 < 13.0
    assert yaw[1000] == pytest.approx(1.6, abs=0.01) and yaw[-1] == pytest.approx(0.0, abs=0.01)
