"""The template of an own package: it is copied under a name, installed, and its tasks are known by their ids."""

import re
import runpy
import site
import subprocess
import sys
import sysconfig
from dataclasses import fields, replace
from pathlib import Path

import gymnasium as gym
import pytest

from legged_envs import cli, registration
from legged_envs.robots import GO2
from legged_envs.robots.reading.draft import draft_robot
from legged_envs.tasks import TASKS
from legged_envs.tasks.velocity import quadruped_flat

ROOT = Path(__file__).parents[2]
TEMPLATE, PAGE = (
    ROOT / "examples" / "own_robot",
    (ROOT / "docs" / "how-to" / "own-package.md").read_text(),
)
TASK = "my_robot/Flat-v0"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "my-robot",
            "must be an identifier, a to z, 0 to 9 and _, got 'my-robot'; did you mean 'my_robot'?",
        ),
        ("Ünïtree 2", "got 'Ünïtree 2'; did you mean 'unitree_2'?"),
        ("3 Dogs!", "got '3 Dogs!'; did you mean 'dogs'?"),
        ("class", "must be an identifier, a to z, 0 to 9 and _, got 'class'"),
        ("", "got ''"),
        ("json", "there is a Python package 'json' already"),
        ("legged_envs", "there is a Python package 'legged_envs' already"),
        ("my_robot taken", "'taken' exists and is not empty: nothing is overwritten"),
    ],
)
def test_a_name_that_no_package_can_have_is_one_line_and_nothing_is_written(
    name: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").touch()
    name, *folder = name.rsplit(" ", 1) if name.endswith("taken") else [name]
    monkeypatch.setattr(sys, "path", [*sys.path])
    copy_project = runpy.run_path(str(TEMPLATE / "__main__.py"))["copy_project"]
    with pytest.raises(SystemExit) as stop:
        copy_project(name, Path(*folder or ["new"]))
    assert told in stop.value.code and "\n" not in stop.value.code
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "taken", tmp_path / "taken" / "mine.txt"]


def test_the_robot_is_the_draft_of_its_urdf_but_for_what_the_page_says_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(TEMPLATE / "src")
    from own_robot import OWN_ROBOT

    first, gaps = draft_robot(TEMPLATE / "own_robot.urdf", "own_robot", tmp_path)
    changed = {
        each.name
        for each in fields(first)
        if getattr(first, each.name) != getattr(OWN_ROBOT, each.name)
    }
    assert set(gaps) == {"xml"} and "armature" in gaps["xml"]
    assert changed == {"xml", "default_joint_pos", "base_height", "kp", "kd"}
    assert all(f"`{name}`" in PAGE for name in changed - {"xml"})
    finished = (TEMPLATE / "src" / "own_robot" / "own_robot.xml").read_text()
    for by_hand in (r"<!--.*?-->\n", r"  <default>.*?</default>\n\n"):
        finished, times = re.subn(by_hand, "", finished, flags=re.DOTALL)
        assert times == 1
    height = '<body name="trunk" pos="0 0 {}">'.format
    drafted, knees = re.subn(r' armature="0.0035"', "", Path(first.xml).read_text())
    assert knees == 4
    assert finished.replace(height(0.2275), height(first.base_height)) == drafted


def test_a_quadruped_without_diagonals_is_told_what_to_write() -> None:
    with pytest.raises(
        ValueError,
        match=r"'go2': diagonals is \(\)",
    ):
        quadruped_flat(replace(GO2, diagonals=()))


def test_a_copy_is_installed_and_every_verb_knows_its_task_by_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, str(TEMPLATE), "my_robot"], check=True, timeout=60)
    texts = [path.read_text() for path in Path("my_robot").rglob("*") if path.is_file()]
    assert len(texts) == 8 and not [
        text for text in texts if re.search("own.robot", text, re.IGNORECASE)
    ]
    options = [
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--prefix",
        "venv",
        "--editable",
    ]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "./my_robot"], check=True, timeout=120
    )
    # Found although a folder of the same name, that of the project, is in the working directory.
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    site.addsitedir(sysconfig.get_path("purelib", vars={"base": str(tmp_path / "venv")}))
    try:
        registration.register_tasks()
        assert TASK in gym.registry and "my_robot" not in sys.modules
        for name, test in runpy.run_path("my_robot/tests/test_my_robot.py").items():
            if name.startswith("test_"):
                test()
        assert Path(sys.modules["my_robot"].__file__).is_relative_to(tmp_path / "my_robot" / "src")
        cli.main(["check", "my_robot:MY_ROBOT"])
        cli.main(["list", TASK])
        assert "my_robot" in (listed := capsys.readouterr().out) and "power" in listed
        trained = []
        monkeypatch.setattr("legged_envs.training.trainer.train", trained.append)
        cli.main(["train", TASK])
        assert trained[0].task_id == TASK
        for verb in ("eval", "play"):
            with pytest.raises(SystemExit):
                cli.main([verb, TASK])
            assert f"there is no pretrained policy for '{TASK}'" in capsys.readouterr().err
        for line in re.findall(r"^legged-envs ([^#\n]+)", PAGE, re.MULTILINE):
            cli.parse(line.split())
    finally:
        TASKS.pop(TASK, None), gym.registry.pop(TASK, None)
        for name in [name for name in sys.modules if name.partition(".")[0] == "my_robot"]:
            del sys.modules[name]
