"""The record of runs, as a page and as a table, trackers, and datasets of what policies do."""

from __future__ import annotations

import ast
import base64
import json
import os
import re
import shutil
import struct
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from rich.console import Console

import legged_envs.runs.trackers
from legged_envs import cli
from legged_envs.evaluation.curve_labels import common_bounds, make_bounds, read_cost_limits
from legged_envs.evaluation.plots import draw_curves
from legged_envs.evaluation.report import _bounds_of, comparison, page
from legged_envs.evaluation.run_results import Run, read_runs
from legged_envs.runs.run_folder import describe_session
from legged_envs.runs.trackers import TRACKERS
from legged_envs.training.checkpoint import read_checkpoint
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import default_config, prepare
from legged_envs.training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("short_evaluations")
GO2 = "Legged/Go2-Flat-v0"
FILM = b"not much of a film"
DATASET = "go2/short-v0"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, short_evaluations: None) -> Path:
    """A run that was interrupted after one update and went on for another, followed by W&B offline."""
    wandb = pytest.importorskip("wandb")
    folder = tmp_path_factory.mktemp("runs") / "one"
    ppo = PPOCfg(steps_per_env=4, epochs=1, mini_batches=2, hidden=(16,))
    options = {"iterations": 2, "episodes": 1, "video": False, "tracker": "wandb"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        patch.setenv("WANDB_SILENT", "true")
        first = Trainer(
            prepare(TrainCfg(GO2, num_envs=4, run_dir=folder, algo=ppo, **options)), Console()
        )
        patch.setattr(first, "check_goal", lambda row: first.stop.request())
        with pytest.raises(KeyboardInterrupt):
            first.run()
        Trainer(prepare(TrainCfg(GO2, resume=folder)), Console()).run()
        wandb.teardown()  # its service still writes
    (folder / "video.mp4").write_bytes(FILM)
    return folder


@pytest.mark.parametrize(
    ("path", "program"),
    [
        ("/site-packages/legged_envs/__main__.py", "legged-envs"),
        ("/bin/legged-envs", "legged-envs"),
        ("mine/__main__.py", "__main__.py"),
    ],
)
def test_a_run_knows_the_command_that_began_it(path, program, monkeypatch):
    monkeypatch.setattr(sys, "argv", [path, "train", GO2, "--run-dir", "my runs"])
    assert describe_session()["command"] == f"{program} train {GO2} --run-dir 'my runs'"


def altered(run: Path, folder: Path, rise: float = 0.0, **training: object) -> Path:
    """Return a copy of a run with other options, higher rewards and higher errors."""
    shutil.copytree(run, folder)
    config = json.loads((folder / "config.json").read_text())
    config["training"] |= training
    (folder / "config.json").write_text(json.dumps(config))
    rows = [row | {"reward": row["reward"] + rise} for row in Run(run).curve]
    (folder / "curve.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluation = json.loads((folder / "eval.json").read_text())
    evaluation["lin_vel_error"] += rise
    (folder / "eval.json").write_text(json.dumps(evaluation))
    return folder


# --- what a training writes -------------------------------------------------------------------------------------------


def test_a_run_tells_its_curve_and_what_made_it(run):
    rows = [json.loads(line) for line in (run / "curve.jsonl").read_text().splitlines()]
    assert rows == read_checkpoint(run, GO2)["curve"] and [row["iteration"] for row in rows] == [
        1,
        2,
    ]
    first, second = json.loads((run / "about.json").read_text())
    assert (first["update"], second["update"]) == (0, 1)
    # torch.__version__ may also name a build, which the version of the installed package has not.
    assert first["versions"]["torch"] == version("torch")
    assert torch.__version__.startswith(version("torch"))
    assert f"{os.cpu_count()} cores" in first["hardware"]
    assert all(
        re.fullmatch(r"[0-9a-f]{40}(-dirty)?", commit) for commit in first["commits"].values()
    )


def records(path: Path) -> Iterator[bytes]:
    """Those of a LevelDB log, blocks of 32 KiB, behind W&B's 7 bytes: checksum, length, kind, part of a record."""
    data, place, whole = path.read_bytes(), 7, b""
    while place + 7 < len(data):
        if (left := 32768 - place % 32768) < 7:
            place += left
            continue
        length, kind = struct.unpack_from("<4xHB", data, place)
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # all of it, or its last part
            yield whole
            whole = b""


def test_weights_and_biases_has_the_numbers_and_one_run_goes_on(run):
    from wandb.proto.wandb_internal_pb2 import Record

    logged, ids = {}, set()
    for path in sorted(
        run.glob("wandb/offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime_ns
    ):
        ids.add(path.stem.removeprefix("run-"))
        for data in records(path):
            for item in Record.FromString(data).history.item:
                logged.setdefault(item.key or "/".join(item.nested_key), []).append(
                    json.loads(item.value_json)
                )
    rows, evaluation = Run(run).curve, Run(run).evaluation
    assert logged["train/reward"] == [row["reward"] for row in rows]
    assert logged["evaluation/lin_vel_error"] == [evaluation["lin_vel_error"]]
    assert logged["evaluation/costs/foot_slip"] == [evaluation["costs"]["foot_slip"]]
    assert ids == {(run / "wandb.id").read_text()}, "both parts are of one run"


def test_weights_and_biases_without_a_login_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "NETRC", "WANDB_CONFIG_DIR"):  # where a login is kept
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.raises(
        RuntimeError, match=r"--tracker wandb: .*`wandb login`.* WANDB_MODE=offline"
    ):
        TRACKERS["wandb"](tmp_path, {"training": {"task_id": GO2}}, 0).__enter__()
    wandb.teardown()


def test_mlflow_has_the_numbers_and_one_run_goes_on(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    config = {"training": {"task_id": GO2, "algo": {"clip": 0.2}}, "task": {}}
    with TRACKERS["mlflow"](tmp_path, config, 0) as track:
        track({"train/reward": 1.5, "train/level": float("nan")}, 1)
    with TRACKERS["mlflow"](
        tmp_path, config | {"training": {"task_id": GO2, "minutes": 1.0}}, 1
    ) as track:
        track({"train/reward": 2.5}, 2)
    client, name = mlflow.MlflowClient(), (tmp_path / "mlflow.id").read_text()
    history = client.get_metric_history(name, "train/reward")
    assert [(each.step, each.value) for each in history] == [(1, 1.5), (2, 2.5)]
    assert client.get_run(name).data.params == {"task_id": GO2, "algo": "{'clip': 0.2}"}
    assert client.get_run(name).info.status == "FINISHED" and client.get_experiment_by_name(GO2)


@pytest.mark.parametrize("name", ["tensorboard", "mlflow"])
def test_a_run_that_was_killed_has_one_value_for_each_update(name, tmp_path, monkeypatch):
    """The run wrote more lines after its checkpoint of update 2, from which it continues."""
    module = pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    for done, updates in ((0, (1, 2, 3, 4)), (2, (3, 4, 5))):
        with TRACKERS[name](tmp_path, {"training": {"task_id": GO2}}, done) as track:
            for update in updates:
                track({"train/reward": 10.0 * done + update}, update)
            track({"evaluation/falls": 0.5}, updates[-1])
    if name == "mlflow":
        client, run_id = module.MlflowClient(), (tmp_path / "mlflow.id").read_text()
        history = client.get_metric_history(run_id, "train/reward")
        assert [(each.step, each.value) for each in history] == [
            (1, 1.0),
            (2, 2.0),
            (3, 3.0),
            (4, 4.0),
            (5, 25.0),
        ]
        assert [each.step for each in client.get_metric_history(run_id, "evaluation/falls")] == [
            4,
            5,
        ]
    else:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(tmp_path)).Reload().Scalars("train/reward")
        assert [(each.step, each.value) for each in events] == [
            (1, 1.0),
            (2, 2.0),
            (3, 23.0),
            (4, 24.0),
            (5, 25.0),
        ]


def test_a_tracker_is_imported_when_it_is_asked_for():
    tree = ast.parse(Path(str(legged_envs.runs.trackers.__file__)).read_text())

    def imported(nodes) -> set[str]:
        names = set()
        for node in nodes:
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module).split(".")[0])
        return names

    libraries = {"wandb", "mlflow", "torch"}
    assert libraries <= imported(ast.walk(tree)) and not libraries & imported(tree.body)


# --- pages and tables -------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Texts of a page, and where its attributes point to."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [
            value
            for name, value in attrs
            if name.split(":")[-1] in ("src", "href", "srcset", "data")
        ]

    def handle_data(self, data):
        self.texts.append(data)


def test_the_report_of_several_seeds_is_one_file_with_all_that_is_promised(
    run, tmp_path, monkeypatch, capsys
):
    from matplotlib.axes import Axes

    other, out, bands = (
        altered(run, tmp_path / "two", 0.5, seed=2),
        tmp_path / "new" / "report.html",
        [],
    )
    monkeypatch.setattr(Axes, "fill_between", lambda axis, *args, **kwargs: bands.append(args))
    cli.main(["report", str(run), str(other), "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    shown = Page(text)
    assert all(link.startswith(("data:", "#")) for link in shown.links), "it needs no network"
    assert not re.search(r"@import|url\((?!#)", text)
    assert f"data:video/mp4;base64,{base64.b64encode(FILM).decode()}" in shown.links
    errors = [Run(folder).evaluation["lin_vel_error"] for folder in (run, other)]
    assert f"{fmean(errors):.4g} ± {stdev(errors):.4g}" in shown.texts
    assert {*Run(run).evaluation["costs"], "falls"} <= {
        each.split("/")[-1] for each in Run(run).results
    }, "zeros too"
    about = Run(run).sessions[0]
    for promised in (
        "training.num_envs",
        "768",
        "foot_slip",
        "≤ 0.05",
        "Made with",
        GO2,
        about["hardware"],
    ):
        assert promised in shown.texts, promised
    assert shown.tags.count("svg") == 1 and shown.tags.count("meter") == len(
        Run(run).evaluation["costs"]
    )
    steps, low, high = bands[0]
    first, last = Run(run).curve
    assert np.allclose(high - low, 0.5), "rewards of the seeds"
    assert np.isclose(low[0], first["reward"]) and np.isclose(steps[-1], last["env_steps"] / 1e6)
    assert str(out) in capsys.readouterr().out


def test_a_run_that_is_still_going_says_so(run, tmp_path):
    going = altered(run, tmp_path / "going", iterations=4)
    (going / "eval.json").unlink()
    with (going / "curve.jsonl").open("a") as file:
        file.write('{"iteration": 3, "env_st')  # the line that is being written
    assert Run(going).status.startswith("still going at 50%")
    for file in going.iterdir():
        os.utime(file, (0, 0))
    assert Run(going).status.startswith("stopped at 50%")
    (going / "curve.jsonl").unlink()
    assert [row["iteration"] for row in Run(going).curve] == [1, 2], "those of the checkpoint"
    (tmp_path / "new").mkdir()
    shutil.copy(run / "config.json", tmp_path / "new")
    text = page([Run(tmp_path / "new")], default_config)
    assert "still going at 0%" in text and "There is no curve yet" in text


def test_a_finished_run_that_goes_on_is_not_finished(run, tmp_path):
    again = altered(run, tmp_path / "again", iterations=4)
    row = Run(again).last
    with (again / "curve.jsonl").open("a") as file:
        file.write(json.dumps(row | {"iteration": 3, "env_steps": 1.5 * row["env_steps"]}) + "\n")
    assert Run(run).status == "finished" and Run(again).status.startswith("still going at 75%")


def test_runs_are_compared_in_what_differs(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    other = altered(run, tmp_path / "two", 0.25, seed=2, num_envs=8)
    cli.main(["compare", str(run), str(other)])
    printed = capsys.readouterr().out
    assert re.search(r"training.num_envs +│ 4 +│ 8 ", printed) and re.search(
        r"training.seed +│ 1 +│ 2 ", printed
    )
    errors = [Run(folder).evaluation["lin_vel_error"] for folder in (run, other)]
    assert re.search(rf"lin vel error, m/s +│ {errors[0]:.4g} +│ {errors[1]:.4g} ", printed)
    assert "training.episodes" not in printed and "mean ±" not in printed


def test_a_run_by_several_of_its_names_is_one(run, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(run)
    monkeypatch.chdir(run.parent)
    assert (
        len(read_runs("compare", [run, tmp_path / "link", Path(run.name), run / ".." / run.name]))
        == 1
    )


def test_a_run_whose_path_begins_with_an_underscore_has_its_place_in_the_legend(run):
    figure = draw_curves({"_own": [Run(run).curve], "other": [Run(run).curve]})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["./_own", "other"]


def test_of_several_tasks_the_tasks_are_not_compared(run, tmp_path):
    other = Run(altered(run, tmp_path / "two", task_id="Other/Task-v0"))  # which is not registered
    other.config["task"]["robot"]["name"] = "other"
    names = [row[0] for row in comparison([Run(run), other])[2]]
    assert "training.task_id" in names and "task.robot.name" not in names
    assert other.differences(default_config) is None
    assert "two: this installation does not know the task" in page([other], default_config)


def constant(updates: int, value: float, spike: int | None = None) -> list[dict[str, float]]:
    return [
        {"env_steps": 1e6 * i, "reward": value + 100.0 * (i == spike)}
        for i in range(1, updates + 1)
    ]


def test_a_curve_of_one_run_is_drawn_whole_and_a_mean_ends_where_one_of_its_runs_does():
    axis = draw_curves({"one": [constant(3000, 5.0, 1501)]}).axes[0]
    (line,) = axis.get_lines()
    assert len(line.get_xdata()) == 3000 and max(line.get_ydata()) == 105.0
    axis = draw_curves({"two": [constant(400, 10.0), constant(200, 0.0, 150)]}).axes[0]
    mean, rest = axis.get_lines()
    assert max(mean.get_xdata()) == pytest.approx(200.0, abs=2.0) and mean.get_linestyle() == "-"
    np.testing.assert_allclose(mean.get_ydata()[:100], 5.0)
    assert rest.get_linestyle() == "--" and max(rest.get_xdata()) == pytest.approx(400.0, abs=2.0)
    np.testing.assert_allclose(rest.get_ydata()[2:], 10.0)
    assert (
        axis.collections[0].get_paths()[0].vertices[:, 1].max() == 100.0
    )  # what one update of one run had


def test_curves_have_units_and_lines_of_goals_and_limits():
    rows = [
        {"env_steps": 1e6 * i, "lin_vel_error": 1.0 / i, "cost/foot_slip": 0.1 * i, "cost/far": 1.0}
        for i in (1, 2, 4)
    ]
    bounds = make_bounds({"lin_vel_error": 0.3, "falls": 0.05}, {"foot_slip": 0.25, "far": 900.0})
    figure = draw_curves({"": [rows]}, bounds, "Legged/Go2-Flat-v0, seed 7")
    error, slip, far = figure.axes
    assert figure.get_suptitle() == "Legged/Go2-Flat-v0, seed 7"
    assert error.get_title() == "lin vel error, m/s (goal 0.3)"
    assert slip.get_title() == "cost/foot slip (limit 0.25)"
    assert far.get_title() == "cost/far (limit 900)"
    for axis, value in ((error, 0.3), (slip, 0.25)):
        assert list(axis.get_lines()[-1].get_ydata()) == [value, value]
        assert axis.get_ylim()[0] < value < axis.get_ylim()[1]
    # A limit that is far away leaves the curve its height.
    assert far.get_ylim()[1] < 2.0


def test_a_cost_is_drawn_that_the_first_and_the_last_update_do_not_have():
    rows = [{"env_steps": 1e6 * i, "reward": 1.0} for i in range(1, 7)]
    for row in rows[1:5]:
        row["cost/foot_slip"] = 0.1
    whole = [{**row, "cost/foot_slip": 0.3} for row in rows]
    for groups in ({"": [rows]}, {"": [rows], "seed 2": [whole]}):
        slip = draw_curves(groups).axes[1]
        assert slip.get_title() == "cost/foot slip"
        assert len(slip.get_lines()) == len(groups)


def test_a_report_has_the_limits_on_which_its_runs_agree(run, tmp_path):
    limits = read_cost_limits(Run(run).config["task"])
    assert limits and set(limits) == set(Run(run).evaluation["cost_limits"])
    one = make_bounds({"lin_vel_error": 0.25}, {"foot_slip": 0.1, "energy": 2.0})
    two = make_bounds({}, {"foot_slip": 0.2, "body_contact": 0.5})
    assert common_bounds([one, two]) == {
        "lin_vel_error": ("goal", 0.25),
        "cost/energy": ("limit", 2.0),
        "cost/body_contact": ("limit", 0.5),
    }
    bounds = _bounds_of(Run(run))
    assert bounds["lin_vel_error"] == ("goal", 0.25)
    for name, limit in limits.items():
        assert bounds[f"cost/{name}"] == ("limit", limit)


def test_plots_titles_numbers_and_legend_of_curves_do_not_cover_each_other():
    """The room around plots is given, not measured: here it is measured."""
    values = {f"loss {i}": -(10.0 ** (i - 3)) for i in range(4)}  # from −0.001 to −1
    values |= {"cost/foot_contact_force": 30.0, "cost/joint_acceleration": -100.0}
    bounds = make_bounds({}, {"foot_contact_force": 0.0668, "joint_acceleration": 0.0178})
    rows = [
        {"env_steps": 1e6 * step, **{k: step * v for k, v in values.items()}} for step in (1, 2)
    ]
    figure = draw_curves({f"run {i}": [rows] for i in range(5)}, bounds, "A title")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    parts = [axis.get_tightbbox(renderer) for axis in figure.axes]
    parts += [figure.legends[0].get_window_extent(renderer)]
    parts += [text.get_window_extent(renderer) for text in figure.texts]
    assert len(parts) == 6 + 3
    for i, part in enumerate(parts):
        assert part.x0 >= 0.0 and part.y0 >= 0.0
        assert part.x1 <= figure.bbox.x1 and part.y1 <= figure.bbox.y1
        assert not any(part.overlaps(other) for other in parts[:i]), i


def test_a_mean_of_some_runs_says_of_how_many(run, tmp_path):
    others = [Run(altered(run, tmp_path / str(seed), seed=seed)) for seed in (2, 3)]
    (others[1].path / "eval.json").unlink()
    runs = [Run(run), others[0], Run(others[1].path)]
    _, _, rows = comparison(runs)
    texts = {row[0]: row[-1] for row in rows}
    assert texts["lin vel error, m/s"].endswith("(2 of 3)") and "of" not in texts["env steps"]
    assert "seed" not in texts and "training.seed" in texts
    assert "and 2 more, 2 of them evaluated</caption>" in page(runs, default_config)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report"], "report.*RUN"),
        (["compare", "nothing"], "'nothing'.*config.json"),
        (["report", "broken"], "broken/config.json"),
        (
            ["report", "foreign"],
            "'foreign/config.json'.*training, task",
        ),
        (
            ["report", "foreign", "--out", "report.pdf"],
            "--out.*'.html'",
        ),
        (
            ["train", GO2, "--tracker", "wand"],
            r"--tracker.* Expected one of \('tensorboard', 'wandb', 'mlflow'\)",
        ),
    ],
)
def test_a_mistake_is_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in (("broken", "{"), ("foreign", '{"model_type": "bert"}')):
        Path(name).mkdir()
        Path(name, "config.json").write_text(text)
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1 and re.search(message, error), error


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "curve.jsonl",
            '{"iteration": 1}\n{"iter\n',
            r"curve.jsonl', line 2",
        ),
        ("eval.json", '{"a": 1}', "eval.json'.*env_steps, costs, cost_limits"),
        ("eval.json", "[]", "eval.json'.*env_steps, costs, cost_limits"),
        (
            "config.json",
            '{"training": {}, "task": {}}',
            "config.json'.*task_id, iterations and",
        ),
        (
            "about.json",
            "[1]",
            "damaged'.*AttributeError",
        ),
        (
            "curve.jsonl",
            "[1]\n",
            "damaged'.*TypeError",
        ),
    ],
)
def test_a_damaged_run_is_told_by_its_file(name, text, message, run, tmp_path, capsys):
    shutil.copytree(run, tmp_path / "damaged")
    (tmp_path / "damaged" / name).write_text(text)
    with pytest.raises(SystemExit) as stop:
        cli.main(["report", str(tmp_path / "damaged"), "--out", str(tmp_path / "page.html")])
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count("\n") == 1 and re.search(message, error), error


def test_a_run_in_a_folder_with_dollars_is_drawn(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "a$b_$_c")
    cli.main(["report", str(tmp_path / "a$b_$_c"), "--out", str(tmp_path / "page.html")])
    assert "a$b_$_c" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("content", [[1], {"a": 1}, {"task_id": GO2}, b"junk", b"Q\x81"], ids=repr)
def test_a_file_that_is_no_checkpoint_is_one_line(content: object, tmp_path: Path, capsys) -> None:
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    for option in ("--resume", "--warm-start"):
        with pytest.raises(SystemExit) as stop:
            cli.main(
                [
                    "train",
                    GO2,
                    option,
                    str(tmp_path),
                    "--run-dir",
                    str(tmp_path / "new"),
                    "--no-video",
                ]
            )
        error = capsys.readouterr().err
        assert stop.value.code == 2 and "checkpoint.pt" in error and error.count("\n") == 1, error


def test_a_run_that_mlflow_does_not_know_here_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    (tmp_path / "mlflow.id").write_text("0" * 32)
    tracker = TRACKERS["mlflow"](tmp_path, {"training": {"task_id": GO2}}, 1)
    with pytest.raises(ValueError, match=r"there is no run 0+ in .*set MLFLOW_TRACKING_URI"):
        tracker.__enter__()


def test_a_column_without_numbers_is_not_drawn(run):
    curve = [{**row, "reward": None} for row in Run(run).curve]
    figure = draw_curves({"one": [curve], "other": [Run(run).curve]})
    assert any(axis.lines for axis in figure.axes)
