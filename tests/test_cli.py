"""The command line: policies bring the changes to their task, and what cannot work is refused before any work."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import tyro
from rich.console import Console

from legged_envs import cli, make_task_cfg
from legged_envs.envs import LeggedVectorEnv
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.mdp.commands import VelocityCommandCfg
from legged_envs.rl import bench
from legged_envs.rl.config import PPOCfg, TrainCfg
from legged_envs.rl.evaluate import Evaluator
from legged_envs.rl.metrics import COMMAND_RANGES, command_ranges, evaluation_cfg
from legged_envs.rl.mimic_config import ACTOR_GROUPS, LagrangeCfg, MimicPPOCfg
from legged_envs.rl.policy import Policy, contract, load_policy, load_shipped_policy, save_onnx, save_policy
from legged_envs.rl.watch import film_policy, scenes
from legged_envs.tasks import TASKS
from legged_envs.tasks.mimic import imitating

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

    def forward(self, observation: torch.Tensor, reference: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return 0.0 * observation[:, :12]


def write_run(folder: Path, task_id: str = GO2, changes: dict[str, Any] | None = None, **entries: Any) -> Path:
    """A run folder with a policy for ``task_id`` with ``changes``; ``entries`` replace those of its contract."""
    folder.mkdir()
    core = LeggedVectorEnv(override(make_task_cfg(task_id), changes or {}), 1)
    groups = ACTOR_GROUPS if task_id == MIMIC else ("policy",)
    module = MimicStill() if task_id == MIMIC else Still()
    save_policy(folder / "policy.safetensors", module, contract(task_id, core, groups, changes) | entries)
    core.close()
    return folder


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment can be made: what a command refuses, it refuses before any work."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("an environment was made")

    monkeypatch.setattr("gymnasium.make_vec", fail)


# --- changes ----------------------------------------------------------------------------------------------------------


def test_an_evaluation_is_of_the_task_that_the_policy_was_trained_on(tmp_path):
    run = write_run(tmp_path / "run", changes=CHANGES)
    cli.evaluate(GO2, run / "policy.safetensors", episodes=2, json=tmp_path / "eval.json")
    report = json.loads((tmp_path / "eval.json").read_text())
    assert report["changes"] == CHANGES
    assert report["cost_limits"]["joint_torque"] == 0.5


def test_changes_of_the_command_line_come_on_top_of_the_policys(tmp_path):
    run = write_run(tmp_path / "run", changes=CHANGES)
    changes = {"costs.joint_torque.limit": 0.7, "costs.foot_slip.limit": 0.1}
    cli.evaluate(GO2, run, episodes=2, changes=changes, json=tmp_path / "eval.json")
    report = json.loads((tmp_path / "eval.json").read_text())
    assert report["changes"] == CHANGES | changes
    assert report["cost_limits"]["joint_torque"] == 0.7
    assert report["cost_limits"]["foot_slip"] == 0.1


@pytest.mark.parametrize("task_id", [GO2, MIMIC])
def test_a_policy_is_played_on_the_task_that_it_was_trained_on(task_id, tmp_path, monkeypatch):
    run = write_run(tmp_path / "run", task_id, CHANGES)
    played = []
    monkeypatch.setattr("legged_envs.rl.watch.play", lambda *args: played.append(args))
    cli.play(task_id, run, changes={"actions.joint_position.scale": 0.9}, seconds=0.1)
    cfg = next(arg for arg in played[0] if isinstance(arg, TaskCfg))
    expected = override(make_task_cfg(task_id), CHANGES | {"actions.joint_position.scale": 0.9})
    assert cfg == (expected if task_id == GO2 else imitating(expected, load_policy(run).clips))


def test_a_contract_carries_its_changes_and_shipped_policies_have_none(tmp_path):
    import onnx

    core = LeggedVectorEnv(make_task_cfg(GO2), 1)
    assert contract(GO2, core)["changes"] == {}
    meaning = contract(GO2, core, changes=CHANGES)
    save_policy(tmp_path / "policy.safetensors", Still(), meaning)
    save_onnx(tmp_path / "policy.onnx", Still(), meaning)
    assert load_policy(tmp_path / "policy.safetensors").changes == CHANGES
    metadata = {entry.key: entry.value for entry in onnx.load(str(tmp_path / "policy.onnx")).metadata_props}
    assert json.loads(metadata["changes"]) == CHANGES
    assert load_shipped_policy(GO2).changes == load_shipped_policy(MIMIC).changes == {}


def test_a_policy_with_tuples_in_its_observations_fits_its_own_task(tmp_path):
    changes = {"observations.policy.terms.command.scale": (2.0, 2.0, 0.25)}
    policy = load_policy(write_run(tmp_path / "run", changes=changes))
    for same in (changes, policy.changes):
        policy.check(LeggedVectorEnv(override(make_task_cfg(GO2), same), 1))


@pytest.mark.parametrize("command", [cli.evaluate, cli.play])
def test_changes_are_any_values(command, monkeypatch):
    """Numbers, ranges, switches and None, as Python writes them."""
    taken = []
    where = "legged_envs.rl.policy.policy_and_task"
    monkeypatch.setattr(where, lambda *args: taken.append(args[2]) or 1 / 0)
    flags = ["sim.decimation", "2", "events.push", "None", "commands.velocity.lin_vel_x", "(0.0, 0.5)"]
    flags += ["only_positive_rewards", "False", "actions.joint_position.scale", "-0.5"]
    with pytest.raises(ZeroDivisionError):
        tyro.cli(command, args=[GO2, "--changes", *flags])
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
    ("words", "algo"),
    [
        ([], None),
        (["ppo", "--no-mirror", "--hidden", "64", "64"], PPOCfg(mirror=False, hidden=(64, 64))),
        (["mmppo", "--lagrange.enabled"], MimicPPOCfg(lagrange=LagrangeCfg(enabled=True))),
    ],
    ids=str,
)
def test_options_of_an_algorithm_follow_its_name_and_those_of_the_run_stand_anywhere(words, algo, monkeypatch):
    given = []
    monkeypatch.setattr("legged_envs.rl.train.train", given.append)
    for before, after in (["--seed", "3"], []), ([], ["--seed", "3"]):
        monkeypatch.setattr("sys.argv", ["legged-envs", "train", GO2, *before, *words, *after])
        cli.main()
    assert given == [TrainCfg(GO2, seed=3, algo=algo)] * 2


@pytest.mark.parametrize(
    "words", [["--no-mirror"], ["ppo", "--lagrange.enabled"], ["mmppo", "--no-mirror"], ["distillation", "--clip", "1"]]
)
def test_a_flag_of_another_algorithm_does_not_exist(words, monkeypatch, capsys):
    monkeypatch.setattr("legged_envs.rl.train.train", lambda cfg: pytest.fail("it was taken"))
    monkeypatch.setattr("sys.argv", ["legged-envs", "train", GO2, *words])
    with pytest.raises(SystemExit):
        cli.main()
    assert "Unrecognized" in capsys.readouterr().err


# --- policies ---------------------------------------------------------------------------------------------------------


def test_a_policy_that_does_not_fit_hints_at_changes(tmp_path):
    policy = load_policy(write_run(tmp_path / "run", changes={"actions.joint_position.scale": 0.8}))
    with pytest.raises(ValueError, match=r"of 'Legged/Go2-Flat-v0' .*action_scale = .*0\.8.*0\.6.*--changes"):
        policy.check(LeggedVectorEnv(make_task_cfg(GO2), 1))


def test_policies_of_the_other_kind_of_task_are_refused_with_their_task():
    with pytest.raises(ValueError, match=r"takes policy, reference") as mimic:
        load_shipped_policy(MIMIC).check(LeggedVectorEnv(make_task_cfg(GO2), 1), ("policy",))
    with pytest.raises(ValueError, match=r"reference = None") as velocity:
        load_shipped_policy(GO2).check(LeggedVectorEnv(make_task_cfg(MIMIC), 1))
    assert MIMIC in str(mimic.value)
    assert GO2 in str(velocity.value)


@pytest.mark.parametrize("command", [cli.evaluate, cli.play])
@pytest.mark.parametrize(
    ("trained", "task_id", "message"),
    [
        (MIMIC, GO2, "one of 'Legged/Go2-Mimic-v0', which imitates motions, and 'Legged/Go2-Flat-v0' follows"),
        (GO2, MIMIC, "one of 'Legged/Go2-Flat-v0', which follows velocity commands, and 'Legged/Go2-Mimic-v0' imit"),
        (GO2, G1, "of 'Legged/Go2-Flat-v0' was trained with robot = go2, 'Legged/G1-Flat-v0' has g1"),
    ],
)
def test_a_policy_of_another_kind_of_task_or_robot_is_refused_before_its_changes_are_made(
    command, trained, task_id, message, tmp_path, never
):
    changes = {"commands.motion.window": [1, 2]} if trained == MIMIC else {"rewards.trot.weight": 1.0}
    run = write_run(tmp_path / "run", trained, changes)
    with pytest.raises(ValueError, match=message):
        command(task_id, run)


@pytest.mark.parametrize("command", [cli.evaluate, cli.play])
def test_clips_that_the_task_has_not_got_hint_at_motions(command, tmp_path, never):
    run = write_run(tmp_path / "run", MIMIC, clips=["trot", "kick"])
    with pytest.raises(ValueError, match=r"no clip 'kick'; clips: bound.*--motions"):
        command(MIMIC, run)


def test_a_run_folder_stands_for_its_policy(tmp_path):
    run = write_run(tmp_path / "run")
    assert load_policy(run).contract == load_policy(run / "policy.safetensors").contract
    cli.evaluate(GO2, run, episodes=1)
    with pytest.raises(FileNotFoundError, match=r"empty/policy\.safetensors"):
        (tmp_path / "empty").mkdir()
        load_policy(tmp_path / "empty")


# --- options that cannot work -----------------------------------------------------------------------------------------


def test_an_evaluation_has_episodes(never):
    with pytest.raises(ValueError, match="--episodes must be a positive integer, got 0"):
        cli.evaluate(GO2, episodes=0)


@pytest.mark.parametrize("place", ["", "text.txt", "text.txt/eval.json", "list.json"])
def test_numbers_that_could_not_be_written_are_refused_before_they_are_measured(place, tmp_path, never):
    (tmp_path / "text.txt").write_text("no JSON")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"--json must name"):
        cli.evaluate(GO2, episodes=1, json=tmp_path / place)


def test_numbers_are_written_into_folders_that_are_made(tmp_path):
    cli.evaluate(GO2, episodes=1, json=tmp_path / "a" / "b" / "eval.json")
    assert json.loads((tmp_path / "a" / "b" / "eval.json").read_text())["changes"] == {}


def test_figures_that_could_not_be_written_are_refused_before_they_are_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "main", lambda *args: pytest.fail("something was measured"))
    with pytest.raises(ValueError, match=r"--json must name a file that can be written"):
        cli.bench(GO2, json=tmp_path)


@pytest.mark.parametrize("task_id", [GO2, MIMIC])
@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.001, float("nan"), float("inf")])
def test_a_time_without_a_control_step_is_refused(task_id, seconds, tmp_path, never):
    with pytest.raises(ValueError, match=rf"--seconds must be at least a control step of 0\.02 s, got {seconds}"):
        cli.play(task_id, video=tmp_path / "play.mp4", seconds=seconds)


def test_a_film_of_no_length_is_refused_before_a_file_is_made(tmp_path):
    cfg = make_task_cfg(GO2)
    with pytest.raises(ValueError, match=r"seconds must be at least a control step of 0\.02 s, got -1\.0"):
        film_policy(GO2, cfg, load_shipped_policy(GO2), tmp_path / "play.mp4", scenes(cfg, seconds=-1.0))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["noext", "folder.mp4", "file/play.mp4"])
def test_a_video_that_could_not_be_written_is_refused_before_the_robot_moves(place, tmp_path, never):
    (tmp_path / "folder.mp4").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=rf"--video must name a file that .*{place}"):
        cli.play(GO2, video=tmp_path / place, seconds=0.1)


@pytest.mark.parametrize("rounds", [0, -1])
def test_a_benchmark_has_rounds(rounds):
    with pytest.raises(ValueError, match=f"rounds must be a positive integer, got {rounds}"):
        cli.bench(GO2, rounds)


def test_the_benchmark_measures_steps_beside_the_engine_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "SIZES", (2, 3, 5))
    monkeypatch.setattr(bench, "ROUND_ENV_STEPS", 12)
    cli.bench(GO2, quick=True, json=tmp_path / "new" / "bench.json")
    printed = capsys.readouterr().out
    assert "env-steps/s" in printed and "step, ms" in printed and "alone, ms" in printed
    result = json.loads((tmp_path / "new" / "bench.json").read_text())
    assert result["task_id"] == GO2 and [row["num_envs"] for row in result["sizes"]] == [2, 3]
    for row in result["sizes"]:
        assert row["env_ms"] > row["batch_ms"] > 0.0 and row["ratio"] > 1.0
        assert row["env_steps_per_s"] == pytest.approx(1e3 * row["num_envs"] / row["env_ms"])


# --- the evaluation's commands ----------------------------------------------------------------------------------------


def test_a_robot_is_evaluated_on_commands_that_it_was_trained_on():
    assert command_ranges(make_task_cfg(GO2)) == COMMAND_RANGES
    trained = {"lin_vel_x": (-0.8, 0.8), "lin_vel_y": (-0.4, 0.4), "ang_vel_z": (-0.8, 0.8)}
    assert command_ranges(make_task_cfg(G1)) == command_ranges(make_task_cfg("Legged/G1-Mimic-v0")) == trained
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
    assert "lin_vel_x in [-0.8, 0.8], lin_vel_y in [-0.4, 0.4], ang_vel_z in [-0.8, 0.8]" in console.export_text()


# --- the list ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 200])
def test_ids_are_listed_whole(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    cli.list_tasks()
    text = capsys.readouterr().out
    assert all(task_id in text for task_id in TASKS)


def test_a_policy_file_says_its_task_and_old_ones_no_changes():
    policy = Policy(Still(), {"task_id": GO2})
    assert (policy.task_id, policy.changes, policy.clips) == (GO2, {}, ())
