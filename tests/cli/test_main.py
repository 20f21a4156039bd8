"""The command line: policies bring the changes to their task, and what cannot work is refused before any work."""

from __future__ import annotations

import io
import itertools
import json
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

import legged_envs
from legged_envs import cli, make_task_cfg, registration, robots
from legged_envs.cli.bench import BenchCfg
from legged_envs.cli.bench import bench as run_bench
from legged_envs.cli.columns import format_columns
from legged_envs.cli.command_line import stop
from legged_envs.cli.evaluate import EvaluateCfg, evaluate
from legged_envs.cli.list_tasks import ListCfg, list_tasks
from legged_envs.cli.play import PlayCfg, play
from legged_envs.envs import make_core
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.evaluation import bench
from legged_envs.evaluation.conditions import COMMAND_RANGES, command_ranges, evaluation_cfg
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.policy.header import HARSH_KEY, read_evaluation
from legged_envs.policy.metadata import contract
from legged_envs.policy.policy import (
    Policy,
    load_policy,
    load_shipped_policy,
    save_onnx,
    save_policy,
)
from legged_envs.tasks import TASKS
from legged_envs.tasks.mimic import ACTOR_GROUPS, imitating
from legged_envs.tasks.summaries import summarize_task
from legged_envs.training.learner_options import LagrangeCfg
from legged_envs.training.mimic_options import MimicPPOCfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.viewing.film import film_policy
from legged_envs.viewing.scenes import make_scenes

pytestmark = pytest.mark.usefixtures("short_evaluations")
GO2 = "Legged/Go2-Flat-v0"
G1 = "Legged/G1-Flat-v0"
MIMIC = "Legged/Go2-Mimic-v0"
CHANGES = {"actions.joint_position.scale": 0.8, "costs.joint_torque.limit": 0.5}


class Still(torch.nn.Module):
    """A policy that keeps the robot at the centre of its actions."""

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return 0.0 * observation[:, :12]


class MimicStill(torch.nn.Module):
    """The same for a mimic task."""

    def forward(
        self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        return 0.0 * observation[:, :12]


def write_run(
    folder: Path, task_id: str = GO2, changes: dict[str, Any] | None = None, **entries: Any
) -> Path:
    """A run folder with a policy for ``task_id`` with ``changes``; ``entries`` replace entries of its metadata."""
    folder.mkdir()
    core = make_core(override(make_task_cfg(task_id), changes or {}), 1)
    groups = ACTOR_GROUPS if task_id == MIMIC else ("policy",)
    module = MimicStill() if task_id == MIMIC else Still()
    save_policy(
        folder / "policy.safetensors", module, contract(task_id, core, groups, changes) | entries
    )
    core.close()
    return folder


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the creation of environments fail: a command must refuse bad options before any work."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("an environment was made")

    monkeypatch.setattr("gymnasium.make_vec", fail)


# --- changes ----------------------------------------------------------------------------------------------------------


def test_an_evaluation_is_of_the_task_that_the_policy_was_trained_on(tmp_path):
    run = write_run(tmp_path / "run", changes=CHANGES)
    evaluate(EvaluateCfg(GO2, run / "policy.safetensors", episodes=2, json=tmp_path / "eval.json"))
    report = json.loads((tmp_path / "eval.json").read_text())
    assert report["changes"] == CHANGES
    assert report["cost_limits"]["joint_torque"] == 0.5


def test_changes_of_the_command_line_come_on_top_of_the_policys(tmp_path):
    run = write_run(tmp_path / "run", changes=CHANGES)
    changes = {"costs.joint_torque.limit": 0.7, "costs.foot_slip.limit": 0.1}
    evaluate(EvaluateCfg(GO2, run, episodes=2, changes=changes, json=tmp_path / "eval.json"))
    report = json.loads((tmp_path / "eval.json").read_text())
    assert report["changes"] == CHANGES | changes
    assert report["cost_limits"]["joint_torque"] == 0.7
    assert report["cost_limits"]["foot_slip"] == 0.1


@pytest.mark.parametrize("task_id", [GO2, MIMIC])
def test_a_policy_is_played_on_the_task_that_it_was_trained_on(task_id, tmp_path, monkeypatch):
    run = write_run(tmp_path / "run", task_id, CHANGES)
    played = []
    monkeypatch.setattr("legged_envs.viewing.play.play", lambda *args: played.append(args))
    play(PlayCfg(task_id, run, changes={"actions.joint_position.scale": 0.9}, seconds=0.1))
    cfg = next(arg for arg in played[0] if isinstance(arg, TaskCfg))
    expected = override(make_task_cfg(task_id), CHANGES | {"actions.joint_position.scale": 0.9})
    assert cfg == (expected if task_id == GO2 else imitating(expected, load_policy(run).clips))


def test_a_contract_carries_its_changes(tmp_path):
    import onnx

    core = make_core(make_task_cfg(GO2), 1)
    assert contract(GO2, core)["changes"] == {}
    meaning = contract(GO2, core, changes=CHANGES)
    save_policy(tmp_path / "policy.safetensors", Still(), meaning)
    save_onnx(tmp_path / "policy.onnx", Still(), meaning)
    assert load_policy(tmp_path / "policy.safetensors").changes == CHANGES
    metadata = {
        entry.key: entry.value for entry in onnx.load(str(tmp_path / "policy.onnx")).metadata_props
    }
    assert json.loads(metadata["changes"]) == CHANGES
    assert load_shipped_policy(GO2).changes["max_action_delay"] == 1
    assert load_shipped_policy(MIMIC).changes == {}


def test_a_policy_with_tuples_in_its_observations_fits_its_own_task(tmp_path):
    changes = {"observations.policy.terms.command.scale": (2.0, 2.0, 0.25)}
    policy = load_policy(write_run(tmp_path / "run", changes=changes))
    for same in (changes, policy.changes):
        policy.check(make_core(override(make_task_cfg(GO2), same), 1))


@pytest.mark.parametrize("verb", ["eval", "play"])
def test_changes_are_any_values(verb, monkeypatch):
    """Numbers, ranges, switches and None, as Python writes them."""
    taken = []
    where = "legged_envs.policy.lookup.policy_and_task"
    monkeypatch.setattr(where, lambda *args: taken.append(args[2]) or 1 / 0)
    flags = [
        "sim.decimation",
        "2",
        "events.push",
        "None",
        "commands.velocity.lin_vel_x",
        "(0.0, 0.5)",
    ]
    flags += ["only_positive_rewards", "False", "actions.joint_position.scale", "-0.5"]
    with pytest.raises(ZeroDivisionError):
        cli.main([verb, GO2, "--changes", *flags])
    assert taken == [
        {
            "sim.decimation": 2,
            "events.push": None,
            "commands.velocity.lin_vel_x": (0.0, 0.5),
            "only_positive_rewards": False,
            "actions.joint_position.scale": -0.5,
        }
    ]
    assert isinstance(taken[0]["sim.decimation"], int)


# --- algorithms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task_id", "words", "algo"),
    [
        (GO2, [], None),
        (
            GO2,
            ["ppo", "--symmetry", "off", "--hidden", "64", "64"],
            PPOCfg(symmetry="off", hidden=(64, 64)),
        ),
        (MIMIC, ["mmppo", "--lagrange.enabled"], MimicPPOCfg(lagrange=LagrangeCfg(enabled=True))),
    ],
    ids=["default", "ppo", "mmppo"],
)
def test_options_of_an_algorithm_follow_its_name_and_those_of_the_run_stand_anywhere(
    task_id, words, algo, monkeypatch
):
    given = []
    monkeypatch.setattr("legged_envs.training.trainer.train", given.append)
    for before, after in (["--seed", "3"], []), ([], ["--seed", "3"]):
        monkeypatch.setattr("sys.argv", ["legged-envs", "train", task_id, *before, *words, *after])
        cli.main()
    assert given == [TrainCfg(task_id, seed=3, algo=algo)] * 2


@pytest.mark.parametrize(
    "words",
    [
        ["--symmetry", "off"],
        ["ppo", "--dagger.coefficient", "1"],
        ["mmppo", "--symmetry", "off"],
        ["distillation", "--clip", "1"],
    ],
)
def test_a_flag_of_another_algorithm_does_not_exist(words, monkeypatch, capsys):
    monkeypatch.setattr(
        "legged_envs.training.trainer.train", lambda cfg: pytest.fail("it was taken")
    )
    monkeypatch.setattr("sys.argv", ["legged-envs", "train", GO2, *words])
    with pytest.raises(SystemExit):
        cli.main()
    assert re.search("is an option of|must follow|unexpected", capsys.readouterr().err)


# --- policies ---------------------------------------------------------------------------------------------------------


def test_a_policy_that_does_not_fit_hints_at_changes(tmp_path):
    policy = load_policy(write_run(tmp_path / "run", changes={"actions.joint_position.scale": 0.8}))
    with pytest.raises(
        ValueError, match=r"Legged/Go2-Flat-v0.*action_scale.*0\.8.*0\.6.*--changes"
    ):
        policy.check(make_core(make_task_cfg(GO2), 1))


def test_policies_of_the_other_kind_of_task_are_refused_with_their_task():
    with pytest.raises(ValueError, match=r"policy.*reference") as mimic:
        load_shipped_policy(MIMIC).check(make_core(make_task_cfg(GO2), 1), ("policy",))
    with pytest.raises(ValueError, match=r"reference.*None") as velocity:
        load_shipped_policy(GO2).check(make_core(make_task_cfg(MIMIC), 1))
    assert MIMIC in str(mimic.value)
    assert GO2 in str(velocity.value)


@pytest.mark.parametrize(("options", "command"), [(EvaluateCfg, evaluate), (PlayCfg, play)])
@pytest.mark.parametrize(
    ("trained", "task_id", "message"),
    [
        (
            MIMIC,
            GO2,
            "Legged/Go2-Mimic-v0.*Legged/Go2-Flat-v0",
        ),
        (
            GO2,
            MIMIC,
            "Legged/Go2-Flat-v0.*Legged/Go2-Mimic-v0",
        ),
        (
            GO2,
            G1,
            "Legged/Go2-Flat-v0.*robot.*go2.*Legged/G1-Flat-v0.*g1",
        ),
    ],
)
def test_a_policy_of_another_kind_of_task_or_robot_is_refused_before_its_changes_are_made(
    options, command, trained, task_id, message, tmp_path, never
):
    changes = (
        {"commands.motion.window": [1, 2]} if trained == MIMIC else {"rewards.trot.weight": 1.0}
    )
    run = write_run(tmp_path / "run", trained, changes)
    with pytest.raises(ValueError, match=message):
        command(options(task_id, run))


@pytest.mark.parametrize(("options", "command"), [(EvaluateCfg, evaluate), (PlayCfg, play)])
def test_clips_that_the_task_has_not_got_hint_at_motions(options, command, tmp_path, never):
    run = write_run(tmp_path / "run", MIMIC, clips=["trot", "kick"])
    with pytest.raises(ValueError, match=r"'kick'.*bound.*--motions"):
        command(options(MIMIC, run))


def test_a_run_folder_stands_for_its_policy(tmp_path):
    run = write_run(tmp_path / "run")
    assert load_policy(run).contract == load_policy(run / "policy.safetensors").contract
    evaluate(EvaluateCfg(GO2, run, episodes=1))
    with pytest.raises(FileNotFoundError, match=r"empty/policy\.safetensors"):
        (tmp_path / "empty").mkdir()
        load_policy(tmp_path / "empty")


# --- options that cannot work -----------------------------------------------------------------------------------------


def test_an_evaluation_has_episodes(never):
    with pytest.raises(ValueError, match=r"--episodes.*0"):
        evaluate(EvaluateCfg(GO2, episodes=0))


@pytest.mark.parametrize("place", ["", "text.txt", "text.txt/eval.json", "list.json"])
def test_numbers_that_could_not_be_written_are_refused_before_they_are_measured(
    place, tmp_path, never
):
    (tmp_path / "text.txt").write_text("no JSON")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ValueError, match="--json"):
        evaluate(EvaluateCfg(GO2, episodes=1, json=tmp_path / place))


def test_numbers_are_written_into_folders_that_are_made(tmp_path):
    evaluate(EvaluateCfg(GO2, episodes=1, json=tmp_path / "a" / "b" / "eval.json"))
    numbers = json.loads((tmp_path / "a" / "b" / "eval.json").read_text())
    assert numbers["changes"] == load_shipped_policy(GO2).changes


def test_figures_that_could_not_be_written_are_refused_before_they_are_measured(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(bench, "main", lambda *args: pytest.fail("something was measured"))
    with pytest.raises(ValueError, match="--json"):
        run_bench(BenchCfg(GO2, json=tmp_path))


@pytest.mark.parametrize("task_id", [GO2, MIMIC])
@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.001, float("nan"), float("inf")])
def test_a_time_without_a_control_step_is_refused(task_id, seconds, tmp_path, never):
    with pytest.raises(ValueError, match=rf"--seconds.*0\.02 s.*{seconds}"):
        play(PlayCfg(task_id, video=tmp_path / "play.mp4", seconds=seconds))


def test_a_film_of_no_length_is_refused_before_a_file_is_made(tmp_path):
    cfg = make_task_cfg(GO2)
    with pytest.raises(ValueError, match=r"seconds.*0\.02 s.*-1\.0"):
        film_policy(
            GO2,
            cfg,
            load_shipped_policy(GO2),
            tmp_path / "play.mp4",
            make_scenes(cfg, seconds=-1.0),
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["noext", "folder.mp4", "file/play.mp4"])
def test_a_video_that_could_not_be_written_is_refused_before_the_robot_moves(
    place, tmp_path, never
):
    (tmp_path / "folder.mp4").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=rf"--video.*{place}"):
        play(PlayCfg(GO2, video=tmp_path / place, seconds=0.1))


@pytest.mark.parametrize("rounds", [0, -1])
def test_a_benchmark_has_rounds(rounds):
    with pytest.raises(ValueError, match=rf"rounds.*{rounds}"):
        run_bench(BenchCfg(GO2, rounds))


def test_the_benchmark_measures_steps_beside_the_engine_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "SIZES", (2, 3, 5))
    monkeypatch.setattr(bench, "ROUND_ENV_STEPS", 12)
    run_bench(BenchCfg(GO2, quick=True, json=tmp_path / "new" / "bench.json"))
    printed = capsys.readouterr().out
    assert all(head.split()[0] in printed for head in bench.COLUMN_HEADS)
    assert "ratio: control step divided by physics only" in " ".join(printed.split())
    result = json.loads((tmp_path / "new" / "bench.json").read_text())
    assert result["task_id"] == GO2 and [row["num_envs"] for row in result["sizes"]] == [2, 3]
    for row in result["sizes"]:
        assert (
            min(row["env_ms"], row["batch_ms"], row["ratio"]) > 0.0
        )  # which is longer, so few steps cannot tell
        assert row["env_steps_per_s"] == pytest.approx(1e3 * row["num_envs"] / row["env_ms"])


# --- the evaluation's commands ----------------------------------------------------------------------------------------


def test_a_robot_is_evaluated_on_commands_that_it_was_trained_on():
    assert command_ranges(make_task_cfg(GO2)) == COMMAND_RANGES
    trained = {"lin_vel_x": (-0.8, 0.8), "lin_vel_y": (-0.4, 0.4), "ang_vel_z": (-0.8, 0.8)}
    assert command_ranges(make_task_cfg(G1)) == trained
    runs = VelocityCommandCfg(lin_vel_x=(1.5, 2.0), lin_vel_y=(-0.1, 0.9), ang_vel_z=(-3.0, 3.0))
    cfg = make_task_cfg(GO2)
    cfg.commands["velocity"] = runs
    ranges = {"lin_vel_x": (1.5, 2.0), "lin_vel_y": (-0.1, 0.5), "ang_vel_z": (-1.0, 1.0)}
    assert command_ranges(cfg) == ranges
    evaluated = evaluation_cfg(cfg).commands["velocity"]
    assert {name: getattr(evaluated, name) for name in ranges} == ranges


def test_an_evaluation_says_which_commands_it_gave():
    evaluator = Evaluator(G1, make_task_cfg(G1), episodes=2)
    result = evaluator.run(lambda observation: torch.zeros(len(observation), 12), still=False)
    evaluator.close()
    assert result.commands["lin_vel_x"] == (-0.8, 0.8)
    console = Console(file=io.StringIO(), record=True, width=200)
    result.print(console)
    assert (
        "lin_vel_x in [-0.8, 0.8], lin_vel_y in [-0.4, 0.4], ang_vel_z in [-0.8, 0.8]"
        in console.export_text()
    )


@pytest.mark.parametrize("task_id", ["Legged/Tron1-PF-Flat-v0", "Legged/Tron1-SF-Flat-v0"])
def test_robots_that_see_the_past_are_evaluated_standing_too(task_id, monkeypatch):
    monkeypatch.setattr("legged_envs.evaluation.metrics.task.TaskMetrics.EPISODE_SECONDS", 0.2)
    evaluator, seen = Evaluator(task_id, make_task_cfg(task_id), episodes=2), []
    actions = torch.zeros(2, len(evaluator.core.cfg.robot.joint_names))
    result = evaluator.run(lambda observation: seen.append(observation.clone()) or actions)
    layout = evaluator.core.observations.groups["policy"].layout
    first = [
        sum(size for _, size, _ in layout[:i])
        for i, (name, _, age) in enumerate(layout)
        if name == "command" and not age
    ]
    evaluator.close()
    commands = torch.stack(seen)[:, :, first[0] : first[0] + 3]
    assert len(commands) == 20 and result.falls == 0.0
    assert (commands[:10] != 0.0).any(-1).all() and (commands[10:] == 0.0).all()


# --- the list ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 200])
def test_ids_are_listed_whole(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    list_tasks(ListCfg())
    text = capsys.readouterr().out
    assert all(task_id in text for task_id in TASKS)


def listed(capsys: pytest.CaptureFixture[str], task_id: str, *words: str) -> list[str]:
    """The cells of the row of a task."""
    cli.main(["list", *words])
    row = next(line for line in capsys.readouterr().out.splitlines() if task_id in line)
    return row.split(maxsplit=5)


def test_the_list_has_what_an_evaluation_recorded_in_the_file(tmp_path, capsys, monkeypatch):
    path = write_run(tmp_path / "run") / "policy.safetensors"
    monkeypatch.setattr("legged_envs.policy.policy.shipped_file", lambda task_id: path)
    monkeypatch.setattr("legged_envs.policy.shipped.shipped_file", lambda task_id: path)
    monkeypatch.setattr("legged_envs.policy.shipped.SHIPPED", {GO2: path})
    assert listed(capsys, GO2)[1:5] == ["-", "-", "-", "-"]
    assert listed(capsys, G1) == [G1, "-", "-", "-", "-", "G1 walks on flat ground"]
    cli.main(["eval", GO2, "--policy", str(tmp_path / "run"), "--episodes", "2", "--record"])
    capsys.readouterr()
    errors = [read_evaluation(path)[name] for name in ("lin_vel_error", "ang_vel_error")]
    assert listed(capsys, GO2)[1:5] == [*(f"{error:.3f}" for error in errors), "0.0%", "-"]
    monkeypatch.setattr("legged_envs.evaluation.metrics.harsh.HarshMetrics.EPISODE_SECONDS", 1.5)
    words = ["--episodes", "2", "--record", "--harsh"]
    cli.main(["eval", GO2, "--policy", str(tmp_path / "run"), *words])
    capsys.readouterr()
    error = read_evaluation(path, HARSH_KEY)["lin_vel_error"]
    assert listed(capsys, GO2, "--harsh")[1] == f"{error:.3f}"
    assert read_evaluation(path)["episodes"] == 2 and "costs" in read_evaluation(path)
    cli.main(["list", GO2, "--json"])
    (facts,) = json.loads(capsys.readouterr().out)
    assert facts["id"] == GO2 and facts["robot"] == "go2" and facts["joints"] == 12
    assert facts["evaluation"] == read_evaluation(path)
    assert facts["harsh_evaluation"] == read_evaluation(path, HARSH_KEY)
    cli.main(["list", GO2])
    assert f"{error:.3f} m/s, 0% fall" in capsys.readouterr().out


def test_a_pipe_has_one_plain_line_for_each_task(capsys):
    cli.main(["list"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == list(TASKS)
    assert all(row.isascii() for row in rows)
    start = head.index("WHAT")
    assert [row[start:] for row in rows] == [summarize_task(task_id) for task_id in TASKS]
    cli.main(["list", "--json"])
    # NaN and Infinity are no JSON: other programs do not read them.
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [facts["id"] for facts in found] == list(TASKS)


def test_a_terminal_of_80_columns_shows_each_task(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    cli.main(["list"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    # Long ids, such as those that other tests register, leave less room: texts are then wrapped.
    ids = [line.split()[0] for line in lines[1:] if line and not line.startswith(" ")]
    assert ids[: len(TASKS)] == list(TASKS)
    rows = [["a", "some words in a sentence"], ["bcd", "more"]]
    wrapped = "a    some words in a\n     sentence\nbcd  more"
    assert format_columns(rows, width=21) == wrapped
    assert format_columns(rows) == "a    some words in a sentence\nbcd  more"


def test_a_reader_that_closes_the_pipe_is_no_error():
    command = f"{sys.executable} -m legged_envs list --json | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("[\n", "")


@pytest.mark.parametrize("words", ["--changes sim.dt 0.004", "--changes events.push None"])
def test_a_record_is_of_the_policys_own_task(words, never, capsys):
    with pytest.raises(SystemExit):
        cli.main(["eval", GO2, "--record", *words.split()])
    assert "--record is of the policy's own task: it takes no --changes" in capsys.readouterr().err


def test_help_and_mistakes_in_options_need_neither_pytorch_nor_mujoco():
    code = f"""
import sys
from legged_envs import cli
for words in (["--help"], ["train", "--help"], ["trian"], ["train", "{GO2}", "--num-env", "3"]):
    try:
        cli.main(words)
    except SystemExit:
        pass
    assert not {{"torch", "mujoco"}} & set(sys.modules), words
"""
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=True)


@pytest.mark.render
def test_a_picture_shows_each_robot_in_its_place(tmp_path, monkeypatch, capsys):
    some = {name: robots.ROBOTS[name] for name in ("go2", "k1", "tron1_wf")}
    monkeypatch.setattr("legged_envs.viewing.film_strip.ROBOTS", some)
    monkeypatch.setattr("legged_envs.viewing.film_strip.COLUMNS", 2)
    monkeypatch.setattr("legged_envs.viewing.film_strip.TILE", (96, 72))
    cli.main(["list", GO2, "--picture", str(tmp_path / "new" / "robots.png")])
    sheet = np.asarray(Image.open(tmp_path / "new" / "robots.png")).astype(int)
    assert sheet.shape == (144, 192, 3) and not sheet[72:, 96:].any()
    tiles = [sheet[:72, :96], sheet[:72, 96:], sheet[72:, :96]]
    assert all(tile.std() > 10 for tile in tiles)
    assert all(np.abs(one - other).max() > 60 for one, other in itertools.combinations(tiles, 2))
    with pytest.raises(ValueError, match=r"--picture.*\.png.*\.jpg.*\.gif"):
        list_tasks(ListCfg(picture=tmp_path / "robots.gif"))


def test_a_policy_file_says_its_task_and_old_ones_no_changes():
    policy = Policy(Still(), {"task_id": GO2})
    assert (policy.task_id, policy.changes, policy.clips) == (GO2, {}, ())


# --- a user's mistakes ------------------------------------------------------------------------------------------------


def refused(words: str | list[str], capsys: pytest.CaptureFixture[str], status: int = 2) -> str:
    """Return the one line of error that ``legged-envs`` prints."""
    with pytest.raises(SystemExit) as stop:
        cli.main(words.split() if isinstance(words, str) else words)
    printed = capsys.readouterr()
    assert stop.value.code == status and not printed.out
    assert printed.err.count("\n") == 1 and printed.err.startswith("legged-envs: ")
    return printed.err.strip().removeprefix("legged-envs: error: ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "train, play, .*, export, terrain, check"),
        ("trian", "'trian'.*'train'"),
        ("--verson", "'--verson'.*'--version'"),
        ("--version x", "--version .*'x'"),
        (f"train {GO2} --threads 1000000000", "--threads .* 1000000000"),
        (f"play {GO2} --web --num-envs 1000000000", "--num-envs 1000000000 .* 20,000 GB"),
        (f"play {GO2} --port 9000", "--port 9000 .*--web"),
        ("train", "legged-envs train: TASK_ID"),
        ("train WRONG", f"'WRONG'.*module:Id.*{GO2}, {G1}"),
        ("eval go2-flat", f"'go2-flat'.*'{GO2}'"),
        ("bench nowhere.tasks:Mine/Walk-v0", "'nowhere'"),
        ("play json:Mine/Walk-v0", "'Mine/Walk-v0'"),
        (f"train {GO2} --num-env 3", "'--num-env'.*'--num-envs'.*legged-envs train --help"),
        ("list --pictur a.png", "'--pictur'.*'--picture'.*legged-envs list --help"),
        (f"eval {GO2} walk", "'walk'.*legged-envs eval --help"),
        (f"train {GO2} --num-envs many", "--num-envs: .*'many'.* --num-envs INT"),
        (f"train {GO2} --num-envs", "'--num-envs'"),
        (f"train {GO2} --num-envs 0", "--num-envs .* 0"),
        (f"train {GO2} --num-envs 1000000000", "--num-envs 1000000000 .* 20,000 GB"),
        (f"train {GO2} --minutes nan", "--minutes .* nan"),
        (f"train {GO2} --seed -1", "--seed .* -1"),
        (f"train {GO2} --hidden 64", "--hidden .*ppo, .*mmppo, distillation"),
        (f"train {GO2} ppo --dagger.coefficient 1", "--dagger.coefficient .*mmppo"),
        (f"train {GO2} ppo --symetry off", "'--symetry'.*'--symmetry'"),
        (f"train {GO2} ppo --hidden 0", "--hidden .* 0"),
        (f"train {GO2} ppo --gamma 1.5", "--gamma .* 1.5"),
        (f"train {GO2} ppo --activation elo", "'elo'.*'--activation'.*'elu'"),
        (f"train {GO2} pppo", "'pppo'.*'ppo'"),
        (f"train {GO2} mmppo", f"'{GO2}' .*ppo.* mmppo"),
        (f"train {MIMIC} --clips trott", "'trott'.*'trot'"),
        (f"train {GO2} --changes rewards.torque.weight 1", "rewards.*'torque'.*'joint_torque'"),
        (f"train {GO2} --changes sim.dt 0.004 --seed 2 --changes events.push None", "--changes"),
        (f"train {GO2} --changes rewards.joint_torque.weight", r"--changes: .* --changes \[STR VALUE"),
        (f"train {GO2} --resume empty", "'empty/checkpoint.pt'"),
        (f"train {GO2} --run-dir file", "--run-dir .*'file'"),
        (f"train {GO2} --run-dir old", "'old'.*--run-dir"),
        (f"play {GO2} --policy empty", r"'empty/policy\.safetensors'"),
        (f"play {GO2} --policy file", "'file' .*legged-envs train"),
        (f"play {GO2} --vx nan", "--vx .* nan"),
        (f"play {GO2} --vx fast", "--vx: .*'fast'.* --vx"),
        (f"play {MIMIC} --vx 1", f"'{MIMIC}' .*--clips.*--vx"),
        (f"eval {GO2} --motions nowhere.npz", "--motions .*'nowhere.npz'"),
        ("check go", "'go'.*'go2'"),
        ("check nowhere:SPOT", "'nowhere'"),
        ("check legged_envs.robots:GO3", "'GO3'.*'GO2'.* legged_envs.robots: A1, "),
        ("check nowhere.urdf", "check .*'nowhere.urdf'"),
        ("check go2 --write spot.py", "--write .*'go2'"),
        ("check dog.urdf --write spot.txt", "--write .*'.py'.*'.txt'"),
        (f"eval {GO2} --seed -3", "--seed .* -3"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_status_2_before_anything_is_made(
    words, message, tmp_path, monkeypatch, capsys, never
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("text")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "checkpoint.pt").touch()
    before = sorted(tmp_path.rglob("*"))
    assert re.search(message, refused(words, capsys))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"train {MIMIC} distillation", "--teacher"),
        (f"train {MIMIC} mmppo --lagrange.costs joint_torqe", "lagrange.costs.*'joint_torqe'.*'joint_torque'"),
        (f"train {GO2} --warm-start nowhere", "'nowhere/checkpoint.pt'"),
    ],
)  # fmt: skip
def test_a_mistake_that_the_algorithm_finds_is_one_line_before_anything_is_written(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert re.search(message, refused([*words.split(), "--num-envs", "4"], capsys))
    assert list(tmp_path.iterdir()) == []


def test_an_option_with_two_names_is_proposed_by_the_later_one(capsys, never):
    for misspelt in ("ppo --amp.wieght 1", "ts --amp.wieght 1"):
        assert "did you mean '--amp.weight'" in refused(f"train {GO2} {misspelt}", capsys)
    assert "'ppo': name one algorithm" in refused(f"train {GO2} --changes a 1 -- ppo", capsys)
    assert "--amp.weight is an option of ppo" in refused(f"train {GO2} --amp.weight 1", capsys)


def test_a_name_of_opengl_that_does_not_exist_is_refused(monkeypatch, capsys, never):
    monkeypatch.setenv("MUJOCO_GL", "elg")
    assert "MUJOCO_GL cannot be 'elg'; did you mean 'egl'" in refused(f"play {GO2}", capsys)


@pytest.mark.parametrize(
    ("words", "module"),
    [(f"train {GO2}", "tensorboard"), (f"play {GO2} --video a.mp4", "imageio_ffmpeg")],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    words, module, monkeypatch, capsys, never
):
    monkeypatch.setitem(sys.modules, module, None)
    assert f"no module {module}: pip install 'legged-envs[train]'" in refused(words, capsys)


def test_traceback_shows_where_an_error_comes_from(capsys, never):
    with pytest.raises(SystemExit) as stop:
        cli.main(["train", GO2, "--traceback", "--minutes", "nan"])
    told = capsys.readouterr().err.splitlines()
    assert (
        stop.value.code == 2
        and told[0].startswith("Traceback")
        and "in check_number" in "".join(told)
    )
    assert told[-1].startswith("legged-envs: error: --minutes must be")


def test_errors_of_the_code_are_not_taken_for_mistakes(monkeypatch, capsys):
    def fail(cfg: TrainCfg) -> None:
        int("seven")

    monkeypatch.setattr("legged_envs.training.trainer.train", fail)
    with pytest.raises(ValueError, match="seven"):
        cli.main(["train", GO2])


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device"), 2, "No space left on device"),
        (MemoryError(), 2, "MemoryError"),
        (SystemExit(130), 130, ""),
    ],
)
def test_what_happens_to_a_run_has_its_exit_status(error, status, message, monkeypatch, capsys):
    def fail(cfg: TrainCfg) -> None:
        raise error

    monkeypatch.setattr("legged_envs.training.trainer.train", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main(["train", GO2])
    assert stop.value.code == status and message in capsys.readouterr().err


def test_the_version_is_told_and_help_is_no_mistake(capsys):
    cli.main(["--version"])
    assert capsys.readouterr().out == f"legged-envs {legged_envs.__version__}\n"
    with pytest.raises(SystemExit) as stop:
        cli.main(["bench", "--help"])
    assert stop.value.code == 0
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(head.removesuffix(", ms") in told for head in bench.COLUMN_HEADS)


def test_a_mistake_of_a_module_that_is_run_is_one_line_too(tmp_path):
    words = ["train", GO2, "--changes", "rewards.torque.weight", "1"]
    command = [sys.executable, "-m", "legged_envs", *words]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout) == (2, "")
    assert "did you mean 'joint_torque'" in result.stderr and result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# --- tasks of other packages ------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "own-robot.md").read_text()
WRONG_ENTRY_POINTS = """
Mine/Broken-v0 = my_robots.nothing:here
no id = my_robots.spot:spot_flat
Legged/Go2-Flat-v0 = my_robots.spot:spot_flat
"""
THEIRS = ("Mine/Spot-Flat-v0", "Mine/Broken-v0", "Mine/Spot-Import-v0")


@pytest.fixture
def my_robots(tmp_path, monkeypatch):
    """The package of docs/how-to/own-robot.md, a robot with its model and a task as entry point, here with mistakes,
    and a task that an import registers. Gives the warnings."""
    package, about = tmp_path / "my_robots", tmp_path / "my_robots-1.0.dist-info"
    package.mkdir()
    about.mkdir()
    (code,) = re.findall(r"```python\n((?:(?!```).)*SPOT = .*?)```", PAGE, re.DOTALL)
    code += 'import legged_envs\nlegged_envs.register("Mine/Spot-Import-v0", spot_flat)\n'
    (package / "spot.py").write_text(code)
    shutil.copy(robots.GO2.path, package / "spot.xml")
    (table,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (points,) = tomllib.loads(table)["project"]["entry-points"].values()
    lines = "\n".join(f"{name} = {value}" for name, value in points.items())
    (about / "entry_points.txt").write_text(f"[legged_envs.tasks]\n{lines}{WRONG_ENTRY_POINTS}")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my_robots\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning) as warned:
        registration.register_tasks()
    yield [str(warning.message) for warning in warned]
    for names in (TASKS, gym.registry):
        for name in THEIRS:
            names.pop(name, None)
    for name in [name for name in sys.modules if name.startswith("my_robots")]:
        del sys.modules[name]


@pytest.mark.parametrize("task_id", ["Mine/Spot-Flat-v0", "my_robots.spot:Mine/Spot-Import-v0"])
def test_tasks_and_robots_of_other_packages_work_in_every_verb(
    task_id, my_robots, tmp_path, monkeypatch, capsys
):
    run = tmp_path / "run"
    few = ["--num-envs", "4", "--episodes", "2", "--no-video", "--run-dir", str(run)]
    cli.main(["train", task_id, "--iterations", "1", *few, "ppo", "--steps-per-env", "4"])
    cli.main(
        [
            "train",
            task_id,
            "--iterations",
            "2",
            "--resume",
            str(run),
            "--no-video",
            "--episodes",
            "2",
        ]
    )
    cli.main(["eval", task_id, "--policy", str(run), "--episodes", "2"])
    played = []
    monkeypatch.setattr("legged_envs.viewing.play.play", lambda *args: played.append(args))
    cli.main(["play", task_id, "--policy", str(run)])
    assert played[0][0] == task_id and load_policy(run).contract["robot"] == "spot"
    monkeypatch.setattr(bench, "SIZES", (2, 3))
    monkeypatch.setattr(bench, "ROUND_ENV_STEPS", 12)
    cli.main(["bench", task_id, "--quick"])
    for env in (gym.make(task_id), gym.make_vec(task_id, num_envs=2)):
        env.reset(seed=0)
        env.close()
    capsys.readouterr()


def test_entry_points_are_listed_and_a_broken_one_breaks_nothing_else(my_robots, capsys):
    assert len(my_robots) == 2 and all(
        "of my_robots is left out" in warning for warning in my_robots
    )
    assert "'no id'" in my_robots[0] and "there is another task with its id" in my_robots[1]
    assert "my_robots.spot" not in sys.modules
    cli.main(["list"])
    listed = capsys.readouterr().out
    assert re.search(r"Mine/Spot-Flat-v0 .* spot follows velocity commands on flat", listed)
    assert re.search(r"Mine/Broken-v0 .*cannot be .*No module named 'my_robots.nothing'", listed)
    assert all(task_id in listed for task_id in (GO2, G1, MIMIC))


def test_a_task_is_registered_by_its_function_or_the_name_of_that(my_robots):
    for cfg in (lambda: make_task_cfg(GO2), "my_robots.spot:spot_flat"):
        legged_envs.register("Mine/Broken-v0", cfg)
        robot = make_task_cfg("Mine/Broken-v0").robot.name
        assert robot == ("spot" if isinstance(cfg, str) else "go2")
    for cfg in (make_task_cfg(GO2), "my_robots.spot", None):
        with pytest.raises(
            TypeError,
            match="module:function",
        ):
            legged_envs.register("Mine/Other-v0", cfg)
    with pytest.raises(ValueError, match="CartPole-v1"):
        legged_envs.register("CartPole-v1", "my_robots.spot:spot_flat")
    with pytest.raises(gym.error.Error, match="Malformed"):
        legged_envs.register("no id", "my_robots.spot:spot_flat")
    assert not {"Mine/Other-v0", "CartPole-v1", "no id"} & set(TASKS)


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(
        FileNotFoundError,
        match=r"'cat'.*cat\.xml",
    ):
        make_core(
            override(make_task_cfg(GO2), {"robot": replace(robots.GO2, name="cat", xml="cat.xml")}),
            1,
        )


def test_an_error_is_written_in_one_piece(monkeypatch):
    """Several processes write to one terminal, and their lines must not mix."""
    pieces = []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=pieces.append))
    with pytest.raises(SystemExit) as stopped:
        stop("error: two\nlines", status=2)
    assert stopped.value.code == 2
    assert pieces == ["legged-envs: error: two lines\n"]
