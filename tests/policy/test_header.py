"""Evaluations in the header of a policy file."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open
from torch import nn

from legged_envs.policy.header import headline, read_evaluation, record_evaluation
from legged_envs.policy.policy import load_policy, save_policy


def test_a_record_changes_the_header_and_not_a_bit_of_weights_network_and_contract(tmp_path):
    path, module = (
        tmp_path / "policy.safetensors",
        nn.Sequential(nn.Linear(5, 7), nn.ELU(), nn.Linear(7, 3)),
    )
    save_policy(path, module, {"task_id": "Mine-v0"})
    before, contents = load_policy(path), path.read_bytes()
    assert read_evaluation(path) == {}
    for evaluation in ({"falls": 0.25, "crossings": {"läufer": [1.0, None]}}, {"falls": 0.5}):
        record_evaluation(path, evaluation)
        assert read_evaluation(path) == evaluation
        with safe_open(path, "pt") as file:
            assert {**file.metadata(), "evaluation": ""}.keys() == {
                "contract",
                "network",
                "evaluation",
            }
        size = int.from_bytes(path.read_bytes()[:8], "little")
        assert (
            size % 8 == 0
            and path.read_bytes()[8 + size :]
            == contents[8 + int.from_bytes(contents[:8], "little") :]
        )
        observation, again = torch.randn(4, 5), load_policy(path)
        assert (
            torch.equal(again(observation), before(observation))
            and again.contract == before.contract
        )
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


VELOCITY = {"lin_vel_error": 0.0671, "ang_vel_error": 0.0584, "falls": 0.001, "crossings": None}
NAN = float("nan")
TILES = {
    "crossings": {
        "stairs_up": [1, 1, 1, 0.8, 1, 1, 0.5],
        "slope": [1, 1, 1, 1.0, 1, 1, NAN],
        "gaps": [1.0],
    }
}
CLIPS = {"trot": {"joint_error": 0.05, "falls": 0.0}, "turn": {"joint_error": 0.07, "falls": 0.1}}
COMMAND = {"command_lin_vel_error": 0.2, "command_ang_vel_error": 0.3, "falls": 0.7}


@pytest.mark.parametrize(
    ("evaluation", "cells"),
    [
        ({}, ("-", "-", "-", "")),
        (VELOCITY, ("0.067", "0.058", "0.1%", "")),
        (VELOCITY | TILES, ("0.067", "0.058", "0.1%", "90% cross level 3, 50% cross level 6")),
        (
            {"clips": CLIPS, "command": COMMAND},
            ("0.200", "0.300", "5.0%", "joints 0.060 rad off, 2 clips"),
        ),
        ({"reward": 2.34, "falls": 0.5}, ("-", "-", "50.0%", "reward 2.3/s")),
    ],
)
def test_a_headline_has_what_was_measured(evaluation, cells):
    assert headline(json.loads(json.dumps(evaluation))) == cells


def test_a_policy_of_clips_alone_has_no_errors_of_commands():
    clip = {"joint_error": 0.05, "falls": 0.25}
    cells = headline({"clips": {"march": clip}, "command": None})
    assert cells == ("-", "-", "25.0%", "joints 0.050 rad off, 1 clips")
