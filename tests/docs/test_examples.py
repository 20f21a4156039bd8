"""The examples without an RL library run unchanged, with few robots. Examples of a library are tested with the adapter of that library."""

import re
import runpy
import sys
from pathlib import Path

import gymnasium as gym
import pytest
import torch

from legged_envs.policy.policy import shipped_file

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


def test_a_pair_of_another_task_is_refused_in_one_line(tmp_path, monkeypatch, capsys):
    pytest.importorskip("skrl")
    torch.save({f"leg{i}": [{}, {}] for i in range(4)}, tmp_path / "policy.pt")
    for words, message in (
        ([], "--policy"),
        (["--policy", str(tmp_path / "none.pt")], "none.pt"),
        (["--policy", str(tmp_path / "policy.pt")], "leg0.*Legged/Go2-Pair-v0.*left, right"),
    ):
        monkeypatch.setattr(sys, "argv", ["go2_pair_carry", *words])
        with pytest.raises(SystemExit) as stop:
            runpy.run_path(str(EXAMPLES / "go2_pair_carry.py"), run_name="__main__")
        assert stop.value.code == 2 and re.search(message, capsys.readouterr().err)


def test_a_run_of_another_task_is_refused_with_what_differs(monkeypatch):
    words = [str(shipped_file("Legged/Go2-Flat-v0")), "--episodes", "2"]
    monkeypatch.setattr(sys, "argv", ["constrained_rough", *words])
    with pytest.raises(ValueError, match=r"'Legged/Go2-Flat-v0'.* trained with .* has"):
        runpy.run_path(str(EXAMPLES / "constrained_rough.py"), run_name="__main__")
