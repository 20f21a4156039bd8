"""Files of strangers: nothing in them runs, and what is wrong in them is one line."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from legged_envs import cli
from legged_envs.evaluation.run_results import Run
from legged_envs.runs import checkpoint_file
from legged_envs.runs.checkpoint_file import write_checkpoint
from legged_envs.runs.interruption import Terminated, holding_interrupts
from legged_envs.tasks import registered_id
from legged_envs.training.checkpoint import read_checkpoint, resolve_resume
from legged_envs.training.options import PPOCfg, TrainCfg

GO2 = "Legged/Go2-Flat-v0"
STATE = {
    "task_id": GO2,
    "algorithm": {},
    "iteration": 1,
    "seconds": 1.0,
    "curve": [],
    "time_to_walk": None,
    "env": {},
    "rng": torch.get_rng_state(),
    "cfg": TrainCfg(GO2),
}


def checkpoint(folder: Path, **entries: Any) -> Path:
    folder.mkdir(exist_ok=True)
    torch.save({**STATE, **entries}, folder / "checkpoint.pt")
    return folder


def run_folder(folder: Path, **training: Any) -> Path:
    folder.mkdir()
    config = {"task_id": GO2, "iterations": 1, "minutes": None, **training}
    (folder / "config.json").write_text(json.dumps({"training": config, "task": {}}))
    return folder


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    error = capsys.readouterr().err
    assert (stop.value.code, error.count("\n")) == (2, 1), error
    return error


# --- modules that a file names --------------------------------------------------------------------


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A task of a module that leaves a trace where it is imported."""
    (tmp_path / "strange_tasks.py").write_text(
        "import pathlib, legged_envs\n"
        "pathlib.Path(__file__).with_name('RAN').touch()\n"
        "legged_envs.register('Strange/Go2-v0', 'legged_envs.tasks.velocity:go2_flat')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "strange_tasks", raising=False)
    return "strange_tasks:Strange/Go2-v0"


def test_a_task_of_a_file_is_registered_or_refused() -> None:
    assert registered_id(GO2, "a file") == registered_id(f"evil:{GO2}", "a file") == GO2
    for recorded in ("evil:Other-v0", "Other-v0", 5, None, ["a"]):
        with pytest.raises(ValueError, match=r"the file 'x'.*--import"):
            registered_id(recorded, "the file 'x'")


def test_a_warm_start_names_the_module_and_does_not_import_it(
    stranger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    algorithm = {"actor_state_dict": {}, "critic_state_dict": {}}
    folder = checkpoint(tmp_path / "run", task_id=stranger, algorithm=algorithm)
    words = ["train", GO2, "--num-envs", "2", "--iterations", "1", "--no-video"]
    words += ["--warm-start", str(folder), "--run-dir", str(tmp_path / "new")]
    assert "--import strange_tasks" in refused(words, capsys)
    assert not (tmp_path / "RAN").exists()


def test_a_resumed_run_is_of_the_task_of_the_command(stranger: str, tmp_path: Path) -> None:
    folder = checkpoint(
        tmp_path / "run", task_id=f"strange_tasks:{GO2}", cfg=TrainCfg(f"strange_tasks:{GO2}")
    )
    merged, _ = resolve_resume(TrainCfg(GO2, resume=folder, iterations=5))
    assert merged.task_id == GO2
    assert not (tmp_path / "RAN").exists()


def test_a_report_imports_what_the_command_names_alone(
    stranger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder(tmp_path / "run", task_id=stranger)
    page = tmp_path / "page.html"
    cli.main(["report", str(folder), "--out", str(page)])
    assert not (tmp_path / "RAN").exists()
    assert "--import strange_tasks" in page.read_text()
    cli.main(["report", str(folder), "--out", str(page), "--import", "strange_tasks"])
    assert (tmp_path / "RAN").exists()
    assert "does not know the task" not in page.read_text()


@pytest.mark.parametrize("words", [["--import"], ["--import", "--out"], ["--import", "a-b"]])
def test_a_module_has_a_name(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "module" in refused(["report", "run", *words], capsys)


# --- checkpoints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        ({"task_id": 5}, "task_id"),
        ({"algorithm": 3}, "algorithm"),
        ({"iteration": "1"}, "iteration"),
        ({"iteration": -1}, "iteration"),
        ({"iteration": True}, "iteration"),
        ({"seconds": float("nan")}, "seconds"),
        ({"curve": {}}, "curve"),
        ({"curve": [3]}, "curve"),
        ({"curve": [{}]}, "steps_per_second"),
        ({"rng": 3}, "rng"),
        ({"env": None}, "env"),
        ({"cfg": 3}, "cfg.*TrainCfg"),
        ({"cfg": TrainCfg(GO2, num_envs="many")}, "num_envs"),  # type: ignore[arg-type]
        ({"cfg": TrainCfg(GO2, motions=(3,))}, "motions"),  # type: ignore[arg-type]
        ({"cfg": TrainCfg(GO2, changes=[1])}, "changes"),  # type: ignore[arg-type]
        ({"cfg": TrainCfg(GO2, algo=PPOCfg(hidden=3))}, "hidden"),  # type: ignore[arg-type]
        ({"cfg": TrainCfg(GO2, algo=3)}, "algo"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_checkpoint_of_wrong_kinds_is_named(
    entries: dict[str, Any], named: str, tmp_path: Path
) -> None:
    folder = checkpoint(tmp_path / "run", **entries)
    with pytest.raises(ValueError, match=rf"{named}"):
        resolve_resume(TrainCfg(GO2, resume=folder, iterations=5))


@pytest.mark.parametrize("name", sorted(STATE.keys() - {"task_id", "algorithm", "cfg"}))
def test_a_checkpoint_without_an_entry_is_named(name: str, tmp_path: Path) -> None:
    entries = {key: value for key, value in STATE.items() if key != name}
    (tmp_path / "run").mkdir()
    torch.save(entries, tmp_path / "run" / "checkpoint.pt")
    with pytest.raises(ValueError, match=f"no {name}.*--warm-start"):
        resolve_resume(TrainCfg(GO2, resume=tmp_path / "run", iterations=5))


def test_wrong_networks_and_states_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkpoint(tmp_path / "run", algorithm={"actor_state_dict": 3}, cfg=TrainCfg(GO2, 2))
    words = ["train", GO2, "--iterations", "3", "--no-video", "--resume", str(folder)]
    assert str(folder) in refused(words, capsys)


def test_a_checkpoint_that_unpacks_to_more_is_refused(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "run", env={"a": torch.zeros(1000)})
    packed = tmp_path / "packed.pt"
    with (
        zipfile.ZipFile(folder / "checkpoint.pt") as given,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        for entry in given.namelist():
            made.writestr(entry, given.read(entry))
    read_checkpoint(folder)
    with pytest.raises(ValueError, match=r"packed\.pt"):
        read_checkpoint(packed)


def test_a_full_disk_is_told_and_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path, STATE)

    def fail(state: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 128 vs 22")

    monkeypatch.setattr(checkpoint_file.torch, "save", fail)
    with pytest.raises(OSError, match=r"checkpoint\.pt.* MB free"):
        write_checkpoint(tmp_path, {**STATE, "iteration": 2})
    monkeypatch.undo()
    assert read_checkpoint(tmp_path)["iteration"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]


# --- reports --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["video.mp4", "tracking.png"])
def test_a_picture_outside_of_the_run_is_not_in_its_page(name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not to be passed on" * 3)
    folder = run_folder(tmp_path / "run")
    (folder / name).symlink_to(secret)
    cli.main(["report", str(folder), "--out", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text()
    assert base64.b64encode(secret.read_bytes()).decode()[:20] not in page
    assert f"{name}&#x27; is a link" in page
    (folder / name).unlink()
    (folder / "own").write_bytes(secret.read_bytes())
    (folder / name).symlink_to("own")
    cli.main(["report", str(folder), "--out", str(tmp_path / "page.html")])
    assert base64.b64encode(secret.read_bytes()).decode() in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", ["eval.json", "about.json", "curve.jsonl", "config.json"])
def test_numbers_outside_of_the_run_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder(tmp_path / "run")
    (tmp_path / "other.json").write_text((folder / "config.json").read_text())
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "other.json")
    assert name in refused(["report", str(folder), "--out", str(tmp_path / "p.html")], capsys)
    assert not (tmp_path / "p.html").exists()


ROW = {"iteration": 1, "env_steps": 100, "seconds": 1.0, "reward": 1.0}
EVALUATION = {"env_steps": 100, "costs": {"a": 0.5}, "cost_limits": {"a": 1.0}}


@pytest.mark.parametrize(
    ("curve", "evaluation"),
    [
        ({"cost/$\\alpha_{bad$": 1.0, "$\\bad{$": 2.0, "$$": 3.0, "\\": 4.0}, {}),
        ({}, {"costs": {"$x{$": 0.5}, "cost_limits": {"$x{$": 1.0}}),
        ({}, {"crossings": {"$stairs{$": [0.5, None]}}),
        ({}, {"costs": {"a": None}}),
    ],
    ids=str,
)
def test_odd_names_and_missing_numbers_are_in_the_page(
    curve: dict[str, float], evaluation: dict[str, Any], tmp_path: Path
) -> None:
    folder = run_folder(tmp_path / "run")
    (folder / "curve.jsonl").write_text(json.dumps(ROW | curve) + "\n")
    (folder / "eval.json").write_text(json.dumps(EVALUATION | evaluation))
    cli.main(["report", str(folder), "--out", str(tmp_path / "page.html")])
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("eval.json", json.dumps(EVALUATION | {"cost_limits": {"a": "x'><script>"}})),
        ("eval.json", json.dumps(EVALUATION | {"costs": {"a": []}})),
        ("eval.json", "[" * 100_000),
        ("curve.jsonl", '{"reward": "x"}\n'),
        ("curve.jsonl", "3\n"),
        ("curve.jsonl", json.dumps(ROW | {"cost/\ud800": 1.0}) + "\n"),
        ("curve.jsonl", "[" * 100_000 + "\n"),
        ("curve.jsonl", json.dumps(ROW | {f"n{i}": 1.0 for i in range(2000)}) + "\n"),
    ],
    ids=lambda text: text[:30],
)
def test_a_broken_value_is_one_line(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder(tmp_path / "run")
    (folder / name).write_text(text)
    assert "run" in refused(["report", str(folder), "--out", str(tmp_path / "p.html")], capsys)
    assert not (tmp_path / "p.html").exists()


def test_a_curve_with_a_name_that_no_file_can_hold_is_refused_by_its_line(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    rows = [ROW, ROW | {"cost/\ud800": 1.0}]
    (folder / "curve.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=r"curve\.jsonl', line 2, must be numbers by name"):
        Run(folder).last  # noqa: B018


def test_a_name_with_a_line_separator_does_not_end_a_row(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    row = json.dumps(ROW | {"cost/\u2028": 1.0}, ensure_ascii=False)
    (folder / "curve.jsonl").write_text(row + "\n", encoding="utf-8")
    assert Run(folder).last["cost/\u2028"] == 1.0


def test_a_curve_of_earlier_versions_is_read(tmp_path: Path) -> None:
    folder = checkpoint(run_folder(tmp_path / "run"), curve=[ROW | {"steps_per_second": 1.0}])
    assert Run(folder).last["reward"] == 1.0


# --- interruptions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_waits_until_it_is_asked_for(number: int, error: type[BaseException]) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    done = []
    with pytest.raises(error), holding_interrupts() as raise_if_interrupted:
        os.kill(os.getpid(), number)
        done.append("written")
        raise_if_interrupted()
        done.append("never")
    assert done == ["written"]
    # Also one that comes last.
    with pytest.raises(error), holding_interrupts():
        os.kill(os.getpid(), number)
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_sigterm_before_a_command_does_anything_is_a_word_and_a_status() -> None:
    code = (
        "import os, signal, sys\n"
        "from legged_envs.cli import command_line\n"
        "sys.argv[1:] = ['list']\n"
        "def end(words, modules): os.kill(os.getpid(), signal.SIGTERM)\n"
        "command_line.parse = end\n"
        "command_line.main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (143, "legged-envs: terminated\n")
