"""The examples without a library of their own run as they stand, with few robots; those with one are in its adapter's
tests."""

import runpy
import sys
from pathlib import Path

import gymnasium as gym
import pytest

FEW = 16
"""Most environments of a batch."""
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["quickstart", "custom_term", "mimic_go2"])
def test_the_example_runs(name, monkeypatch, capsys):
    make_vec = gym.make_vec
    monkeypatch.setattr(
        gym,
        "make_vec",
        lambda task, num_envs, **kwargs: make_vec(task, min(num_envs, FEW), **kwargs),
    )
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out
