"""An evaluation in which nothing could be measured is valid JSON, and has the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest

from legged_envs import cli
from legged_envs.evaluation.plots import draw_crossings
from legged_envs.policy.header import headline

pytestmark = pytest.mark.usefixtures("short_evaluations")


def refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("task", ["Legged/Go2-Flat-v0", "Legged/Go2-Mimic-v0"])
def test_robots_that_all_fall_at_once_leave_null_and_a_reason(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "numbers.json"
    # Every pose counts as fallen.
    fall = "terminations.fallen.params.max_projected_gravity"
    words = ["eval", task, "--episodes", "2", "--json", str(file), "--changes", fall, "-1.1"]
    cli.main(words)
    printed = capsys.readouterr().out
    numbers = json.loads(file.read_text(), parse_constant=refuse)
    errors = numbers.get("command", numbers)
    assert [value for name, value in errors.items() if name.endswith("lin_vel_error")] == [None]
    assert "nan" not in printed
    assert "-: no episode lasted longer than the 1 s" in printed
    assert headline(numbers)[0] == "-"


def test_a_level_without_an_episode_is_no_crossing() -> None:
    figure = draw_crossings({"stairs": [0.5, None]})
    assert [text.get_text() for text in figure.axes[0].texts] == ["50", "–"]
    evaluation = {"crossings": {"a": [0.0, 0.0, 0.0, 0.5], "b": [0.0, 0.0, 0.0, None]}}
    assert headline(evaluation)[3] == "50% cross level 3"
    clips = {"a": {"falls": 0.5, "joint_error": None}, "b": {"falls": 0.0, "joint_error": 0.25}}
    assert headline({"clips": clips})[2:] == ("25.0%", "joints 0.250 rad off, 2 clips")
