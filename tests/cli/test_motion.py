"""`legged-envs motion`, and the options --motion.… of the verbs that read motion files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from legged_envs import cli
from legged_envs.motions import MotionWarning, load_motion, shipped_motions
from legged_envs.policy.lookup import policy_and_task
from legged_envs.robots import A1, G1_29, GO2
from legged_envs.tasks.mimic import motion_cfg


@pytest.fixture
def table(tmp_path, monkeypatch) -> Path:
    """The wave of the G1 as a table of 50 lines per second, in the folder of the command."""
    monkeypatch.chdir(tmp_path)
    wave = shipped_motions(G1_29, "wave")[0]
    rows = np.hstack((wave.root_pos_w, wave.root_quat_w[:, [1, 2, 3, 0]], wave.joint_pos))
    np.savetxt("wave.csv", rows, delimiter=",")
    return Path("wave.csv")


def refused(words: str, capsys) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(words.split())
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_a_file_is_printed_and_written_for_the_robot_that_it_fits(table, capsys):
    cli.main(
        [
            "motion",
            "wave.csv",
            "--robot",
            "G1",
            "--motion.rate",
            "50",
            "--output",
            "out/my.npz",
            "--video",
            "None",
        ]
    )
    printed = capsys.readouterr().out
    assert "226 at 50 Hz, 4.50 s" in printed and "g1_29" in printed
    again = load_motion("out/my.npz", G1_29)
    expected = shipped_motions(G1_29, "wave")[0]
    assert torch.allclose(again.joint_pos, expected.joint_pos, atol=1e-5)
    assert not Path("motion.mp4").exists()


def test_a_file_that_does_not_say_its_rate_is_warned_of_once(table):
    """G1 is tried with 12 joints first: what does not fit gives no warning."""
    with pytest.warns(MotionWarning) as warned:
        cli.main(["motion", "wave.csv", "--robot", "G1", "--video", "None"])
    assert sum("frame rate" in str(warning.message) for warning in warned) == 1


def test_a_rate_in_the_name_of_a_file_is_the_one_that_is_proposed(table):
    renamed = table.rename("wave_50Hz.csv")
    with pytest.warns(MotionWarning, match=r"read at 30 Hz.* --motion\.rate 50"):
        cli.main(["motion", str(renamed), "--robot", "G1", "--video", "None"])


def test_what_is_wrong_is_printed(table, capsys):
    cli.main(
        [
            "motion",
            "wave.csv",
            "--robot",
            "g1_29",
            "--motion.rate",
            "50",
            "--motion.lift",
            "0.3",
            "--video",
            "None",
        ]
    )
    assert "- it flies: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("motion none.csv --robot G1", "'none.csv'"),
        ("motion wave.csv --robot G7 --video None", "'G7'.*g1"),
        (
            "motion wave.csv --robot go2 --video None",
            "'go2'.*left_hip_pitch_joint",
        ),
        ("motion wave.csv --robot G1 --output a.csv", "--output.*.npz"),
        ("motion wave.csv --robot G1 --motion.rate 0 --video None", "--motion.rate.* 0"),
        ("eval Legged/G1-Mimic-v0 --motion.rate 60", "--motions"),
        ("play Legged/G1-Mimic-v0 --motion.degrees", "--motions"),
        ("train Legged/G1-Mimic-v0 --motion.rate 60", "--motions"),
        ("train Legged/G1-Mimic-v0 --motions wave.csv --motion.lift nan", "--motion.lift.*nan"),
    ],
)
def test_mistakes_are_one_line(table, capsys, words, message):
    assert re.search(message, refused(words, capsys))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--motion.frames 10 30", "--motion.frames has no effect on the motion of a human"),
        ("--motion.hold-missing-joints", "--motion.hold-missing-joints has no effect"),
        ("--source Go2", "--source Go2 .*human"),
    ],
)
def test_options_without_effect_on_the_motion_of_a_human_are_refused(table, capsys, words, message):
    np.savez("march.NPZ", joints=np.zeros((5, 22, 3)), fps=30)
    Path("march.NPZ.npz").rename("march.NPZ")
    error = refused(f"motion march.NPZ --robot G1 --video None {words}", capsys)
    assert re.search(message, error)


def test_a_policy_imitates_files_as_they_are_read_on_the_command_line(table):
    options = cli.parse(
        [
            "eval",
            "Legged/G1-Mimic-v0",
            "--motions",
            "wave.csv",
            "--motion.rate",
            "50",
            "--clips",
            "wave",
        ]
    ).args[0]
    _, task, _ = policy_and_task(
        options.task_id, None, {}, options.clips, options.motions, reading=options.motion
    )
    _, command = motion_cfg(task)
    [clip] = command.load(task.robot)
    expected = shipped_motions(G1_29, "wave")[0]
    assert clip.frame_rate == 50.0
    assert torch.allclose(clip.joint_pos, expected.joint_pos, atol=1e-5)


def test_the_motion_of_another_robot_is_carried_over(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mink")
    monkeypatch.chdir(tmp_path)
    from legged_envs.motions import save_motion

    save_motion("pace.npz", shipped_motions(GO2, "stand")[0])
    with pytest.raises(SystemExit):
        cli.main(["motion", "pace.npz", "--robot", "a1", "--video", "None"])
    assert "--source go2" in capsys.readouterr().err
    cli.main(
        [
            "motion",
            "pace.npz",
            "--robot",
            "a1",
            "--source",
            "Go2",
            "--output",
            "a1.npz",
            "--video",
            "None",
        ]
    )
    motion = load_motion("a1.npz", A1)
    assert motion.joint_names == A1.joint_names and motion.loop


@pytest.mark.render
def test_a_film_shows_the_motion(table):
    words = "motion wave.csv --robot G1 --motion.rate 50 --motion.frames 1 11 --video film.mp4"
    cli.main(words.split())
    assert Path("film.mp4").stat().st_size > 1000
