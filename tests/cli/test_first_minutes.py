"""The first minutes of a user: suggestions for wrong options, the demo, views of `play`, completion, other names."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from legged_envs import cli, make_task_cfg, robots
from legged_envs.cli.help_text import shorten_help, wrap_help
from legged_envs.cli.play import VIEWS, PlayCfg, choose_view
from legged_envs.cli.unknown_words import OTHER_NAMES, all_option_names
from legged_envs.envs import make_core

pytestmark = pytest.mark.usefixtures("short_evaluations")
GO2 = "Legged/Go2-Flat-v0"
G1 = "Legged/G1-Flat-v0"


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the creation of environments fail: a command must refuse bad options before any work."""
    monkeypatch.setattr("gymnasium.make_vec", lambda *args, **kwargs: pytest.fail("it was made"))


def refused(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line of error that ``legged-envs`` prints."""
    with pytest.raises(SystemExit) as stop:
        cli.main(words.split())
    printed = capsys.readouterr().err
    assert stop.value.code == 2 and printed.count("\n") == 1
    return printed


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        (f"train {GO2} --lr 1e-3", "'--learning-rate', an option that follows the word ppo"),
        (f"train {GO2} ppo --lambda 0.9", "'--gae-lambda'"),
        (f"train {GO2} --checkpoint run", "'--resume'"),
        (f"play {GO2} --checkpoint run", "'--policy'"),
        (f"eval {GO2} --load-run run", "'--policy'"),
        (f"train {GO2} --max-iterations 3", "'--iterations'"),
        (f"train {GO2} --n-envs 3", "'--num-envs'"),
        (f"train --task {GO2}", "legged-envs train TASK_ID"),
        (f"train {GO2} --headless", "leave it out"),
        (f"play {GO2} --browser", "'--web'"),
        (f"play {GO2} --camera side", "'left', 'right'"),
        (f"play {GO2} --web --camera top", "--camera top"),
        (f"play {GO2} --video a.mp4 --fps 51", "--fps .* 50, got 51"),
        ("demo go3", "'go3'.*'go2'"),
    ],
)
def test_options_of_other_programs_lead_to_those_of_this_one(words, proposed, capsys, never):
    assert re.search(proposed, refused(words, capsys))


def test_names_of_other_programs_lead_to_options_that_there_are():
    known = {name for verb in cli.VERBS.values() for name in all_option_names(verb.options)}
    assert {name for names in OTHER_NAMES.values() for name in names} <= known


def test_a_gpu_is_refused_with_the_engines_and_extras_that_use_one(capsys):
    with pytest.raises(ValueError, match=r"'cuda:0'.*mujoco_warp.*legged-envs\[warp\]"):
        make_core(make_task_cfg(GO2), 1, device="cuda:0")


def test_sim2sim_is_another_name_of_crosscheck(capsys):
    assert cli.parse(["sim2sim", GO2]).args == cli.parse(["crosscheck", GO2]).args
    cli.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:1] == ["sim2sim"] and "crosscheck" in line for line in lines)


def test_a_shell_completes_commands_tasks_and_options(capsys):
    cli.main(["completion"])
    script = capsys.readouterr().out
    cli.main(["completion", "zsh"])
    assert capsys.readouterr().out == script
    with pytest.raises(SystemExit):
        cli.main(["completion", "fish"])
    assert "('bash', 'zsh'), got 'fish'" in capsys.readouterr().err
    script += """
complete_words() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _legged_envs; echo "${COMPREPLY[@]}"
}
complete_words legged-envs cro
complete_words legged-envs play Legged/Tron1-P
complete_words legged-envs train Legged/Go2-Flat-v0 --learning-
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [
        "crosscheck",
        "Legged/Tron1-PF-Flat-v0 Legged/Tron1-PF-Rough-v0",
        "--learning-rate",
    ]
    assert not done.stderr


def test_the_camera_of_a_view_moves_with_the_robot_and_keeps_its_distance():
    assert choose_view(PlayCfg(GO2)) == {}
    for robot, task_id in (("go2", GO2), ("g1", G1)):
        views = {name: choose_view(PlayCfg(task_id, camera=name)) for name in VIEWS}
        eyes = np.array([view["viewer.eye"] for view in views.values()])
        distance = 1.0 + 2.5 * robots.ROBOTS[robot].base_height
        np.testing.assert_allclose(np.linalg.norm(eyes, axis=1), distance, rtol=0.01)
        assert all(view["viewer.origin_type"] == "asset_root" for view in views.values())


@pytest.mark.parametrize("display", [True, False])
def test_a_demo_shows_a_robot_in_the_first_way_that_works(display, monkeypatch, capsys):
    monkeypatch.setattr("legged_envs.cli.demo.has_display", lambda: display)
    played = []

    def fail(cfg):
        played.append(cfg.video)
        raise RuntimeError("no OpenGL")

    monkeypatch.setattr("legged_envs.cli.demo.play", fail)
    monkeypatch.setattr("legged_envs.cli.demo.DEMO_EPISODES", 2)
    cli.main(["demo", "GO2"])
    printed = capsys.readouterr().out
    assert played == ([None] if display else []) + [Path("demo.mp4")]
    assert "a video is not possible here: no OpenGL" in printed
    assert re.search(r"2 robots walked .*: 0 fell, .* 0\.\d\d m/s", printed)
    assert f"legged-envs play {GO2}" in printed
    monkeypatch.setattr("legged_envs.cli.demo.play", lambda cfg: played.append(cfg.task_id))
    cli.main(["demo", "g1", "--video", "robot.mp4"])
    assert played[-1] == G1 and "not possible" not in capsys.readouterr().out


def test_the_help_names_values_and_only_defaults_that_say_something(capsys):
    for verb in cli.VERBS:
        with pytest.raises(SystemExit):
            cli.main([verb, "--help"])
        text = capsys.readouterr().out
        assert f"usage: legged-envs {verb}" in text
        assert "{None}" not in text
        assert not re.search(r"\(default:[\s│|]*(None)?[\s│|]*\)", text)
    framed = "│ a (default:  │\n│ None)        │\n│ b (default: 3) │\n\n│ c (default: ) │"
    assert shorten_help(framed) == "│ a            │\n│ b (default: 3) │\n\n│ c             │"
    rule = " " + 29 * "-"
    ragged = (
        f"{rule}\n  -h, --help  show this\n  --vx FLOAT  Speed of\n              the robot, m/s.\n"
    )
    wrapped = (
        f"{rule}\n  -h, --help  show this\n  --vx FLOAT  Speed of the\n              robot, m/s."
    )
    assert wrap_help(ragged) == wrapped
    call = cli.parse(["train", GO2, "--minutes", "None", "ppo", "--gamma", "0.9", "--hidden", "3"])
    (cfg,) = call.args
    assert (cfg.minutes, cfg.algo.gamma, cfg.algo.hidden) == (None, 0.9, (3,))
