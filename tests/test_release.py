"""Files of a release: versions, the wheel's size, its smoke tests, and the files that hosting services read."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import legged_envs
from legged_envs.runs.trackers import TRACKERS
from tools import smoke

ROOT = Path(__file__).parents[1]


def read_yaml(name: str) -> dict:
    return yaml.safe_load((ROOT / name).read_text())


def test_the_version_and_the_licence_are_the_same_everywhere() -> None:
    project, citation = (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"],
        read_yaml("CITATION.cff"),
    )
    assert legged_envs.__version__ == project["version"] == citation["version"]
    assert (project["name"], project["license"]) == (
        citation["title"].split(":")[0],
        citation["license"],
    )
    assert {"cff-version", "message", "authors", "type"} <= citation.keys()


def test_before_a_commit_runs_what_make_lint_runs_with_versions_that_are_pinned() -> None:
    (repo,) = read_yaml(".pre-commit-config.yaml")["repos"]
    (lint,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    hooks = [hook["entry"].replace(" --fix", "") for hook in repo["hooks"]]
    commands = [
        line.replace("$(BIN)", ".venv/bin").removesuffix(" .").replace(" --check", "")
        for line in lint.split("\n\t")
    ]
    assert repo["repo"] == "local" and hooks == [command.strip() for command in commands]
    pins = (ROOT / "constraints.txt").read_text()
    assert all(
        re.search(rf"^{tool}==", pins, re.MULTILINE)
        for tool in ("build", "hatchling", "mypy", "ruff")
    )


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_forms_of_issues_have_what_github_needs(name: str) -> None:
    form = read_yaml(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert {"name", "description", "body"} <= form.keys()
    ids = [part["id"] for part in form["body"]]
    assert len({*ids}) == len(ids) and all(
        part["type"] == "textarea" and part["attributes"]["label"] for part in form["body"]
    )
    assert any(part.get("validations", {}).get("required") for part in form["body"])


def windows_clone(folder: Path) -> Path:
    """Copy the files of the archives, with a text file instead of the link, as Git on Windows writes it."""
    for name in ("legged_envs", "wrappers"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    link = folder / "legged_envs" / "wrappers"
    if link.is_symlink():
        link.unlink()
    link.write_text("../wrappers")
    return folder


def files_of(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_the_wheel_of_every_clone_has_all_files_and_is_smaller_than_five_megabytes(
    tmp_path: Path,
) -> None:
    builders = pytest.importorskip("hatchling.builders.wheel")
    own = files_of(ROOT / "legged_envs") - {"wrappers"}
    own = {f"legged_envs/{name}" for name in own if not name.startswith("wrappers/")}
    own |= {f"legged_envs/wrappers/{name}" for name in files_of(ROOT / "wrappers")}
    for root in (ROOT, windows_clone(tmp_path / "clone")):
        (wheel,) = builders.WheelBuilder(str(root)).build(
            directory=str(tmp_path / "dist"), versions=["standard"]
        )
        assert 5e5 < Path(wheel).stat().st_size < smoke.LARGEST_WHEEL
        names = zipfile.ZipFile(wheel).namelist()
        assert {name for name in names if ".dist-info/" not in name} == own
        assert len({*names}) == len(names)


def test_the_wheel_can_be_made_of_the_sdist(tmp_path: Path) -> None:
    builders = pytest.importorskip("hatchling.builders.sdist")
    (archive,) = builders.SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {f"wrappers/{name}" for name in files_of(ROOT / "wrappers")} <= names
    assert {"CHANGELOG.md", "legged_envs/__init__.py", "tests/test_release.py"} <= names


def test_a_clone_on_windows_finds_its_wrappers(tmp_path: Path) -> None:
    clone = windows_clone(tmp_path / "clone")
    script = (
        "import gymnasium, legged_envs; "
        "env = gymnasium.make_vec('Legged/Go2-Flat-v0', num_envs=1); env.reset(seed=0); "
        "from legged_envs.wrappers import TimeLimit; import legged_envs.wrappers as found; "
        "print(found.__path__[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(clone)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == clone / "wrappers"


def test_smoke_tests_see_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(smoke.sys, "prefix", str(ROOT))
    wheel = tmp_path / "legged_envs-0.0.9-py3-none-any.whl"
    wheel.write_bytes(b"")
    with pytest.raises(AssertionError, match=r"0\.0\.9"):
        smoke.check_wheel(wheel)
    wheel.write_bytes(bytes(5_000_001))
    with pytest.raises(AssertionError, match=r"has 5.0 MB, more than 5 MB"):
        smoke.check_wheel(wheel)
    wheel.write_bytes(b"")
    monkeypatch.setattr(smoke.sys, "prefix", str(tmp_path))
    with pytest.raises(AssertionError, match="is not the installed package"):
        smoke.check_wheel(wheel)
    monkeypatch.setattr(smoke, "TASKS", {"Legged/Go2-Flat-v0": ""})
    smoke.check_flat_tasks()
    smoke.check_shipped_policies()
    assert (
        "Legged/Go2-Flat-v0: steps" in (told := capsys.readouterr().out)
        and "its policy acts" in told
    )
    monkeypatch.setattr(smoke, "SHIPPED", {})
    with pytest.raises(AssertionError, match="no policy ships"):
        smoke.check_shipped_policies()


def test_the_checklist_names_what_holds_the_version_and_the_command() -> None:
    page = (ROOT / "docs" / "how-to" / "release.md").read_text()
    for name in (
        "legged_envs/__init__.py",
        "pyproject.toml",
        "CITATION.cff",
        "CHANGELOG.md",
        "tools/smoke.py",
    ):
        assert f"`{name}`" in page and (ROOT / name).is_file()
    assert "`make release`" in page and "\nrelease:\n" in (ROOT / "Makefile").read_text()


def dry_run(target: str) -> str:
    """The commands of a target in a clone in which nothing is installed."""
    command = ["make", "--dry-run", "--always-make", target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("target", ["train", "play", "bench"])
def test_users_install_no_tools_of_developers(target: str) -> None:
    commands = dry_run(target)
    assert "-e '.[train]'" in commands and "dev]" not in commands
    assert "--index-url https://download.pytorch.org/whl/cpu" in commands


def test_the_tests_install_them() -> None:
    commands = dry_run("test")
    assert commands.index("-e '.[train]'") < commands.index("-e '.[train,dev]'")


def test_extras_of_extras_exist_and_all_leaves_out_those_that_pin_other_packages() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    used = {
        name: set(re.findall(r"[\w-]+", re.sub(r"^legged-envs", "", requirement)))
        for name, requirements in extras.items()
        for requirement in requirements
        if requirement.startswith("legged-envs[")
    }
    assert set().union(*used.values()) <= extras.keys()
    assert {*extras} - used["all"] - used["track"] == {"all", "dev", "docs", "genesis", "rllib"}
    assert {*TRACKERS} - {"tensorboard"} == used["track"]
