"""The command line of a training gives the options that it was made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from legged_envs.cli.command_line import parse_options
from legged_envs.motion_reading import MotionReading
from legged_envs.training.command import train_words
from legged_envs.training.learner_options import AmpCfg, LagrangeCfg
from legged_envs.training.options import ALGORITHMS, PPOCfg, TrainCfg

CFG = TrainCfg(
    "module:Legged/My-v0",
    seed=3,
    run_dir=Path("my runs/c"),
    threads=1,
    changes={
        "a.weight": -1e-4,
        "a.range": (-1, 2.5),
        "a.name": "go2",
        "a.text": "None",
        "events.push": None,
        "a.params": [1, {"x": True}],
    },
    video=False,
    coarse=0.0,
    minutes=1.5,
    clips=("trot", "pace"),
    motions=(Path("x.npz"),),
    motion=MotionReading(rate=50.0, frames=(1, 2), degrees=True, lift=-0.1),
)
PPO = PPOCfg(
    hidden=(3, 4),
    gamma=0.9,
    amp=AmpCfg(amp_reward_weight=0.5),
    lagrange=LagrangeCfg(enabled=True, costs=("foot_slip",)),
)


@pytest.mark.parametrize(
    "cfg",
    [
        TrainCfg("Legged/Go2-Flat-v0"),
        CFG,
        replace(CFG, algo=PPO),
        *(replace(CFG, algo=options()) for options in ALGORITHMS.values()),
    ],
)
def test_the_words_of_a_training_are_read_as_its_options(cfg):
    verb, *words = train_words(cfg)
    assert verb == "train"
    assert parse_options("train", words) == cfg


def test_options_as_by_default_are_left_out():
    assert train_words(TrainCfg("Legged/Go2-Flat-v0", seed=2)) == [
        "train",
        "Legged/Go2-Flat-v0",
        "--seed",
        "2",
    ]
