"""Tries the robot files of other people: each is drafted, stands, and trains two updates.

    pip install robot_descriptions mujoco_menagerie xacro trimesh pycollada
    python -m tools.robot_files                       # legged robots of both packages
    python -m tools.robot_files spot.urdf my_robots/  # these files, and those in the folders

A robot passes if ``draft_robot`` reads it, 64 robots act 0 for 5 s in ``velocity_task`` with its
events without a fall and without bad physics, and two updates of a training meet no bad physics.
The last line says how many pass if the falls of robots with fewer than four feet, which need a
policy to balance, do not count. The table is Markdown. Robots whose repository is not in the cache
of robot_descriptions or mujoco_menagerie are downloaded by these packages; without network they are
listed as not present. ``ROBOT_DESCRIPTION_COMMIT=HEAD`` takes the repositories of the cache as they
are.
"""

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LEGGED_TAGS = {"quadruped", "biped", "humanoid"}
"""Tags of robot_descriptions and categories of mujoco_menagerie of robots with legs."""

NUM_ENVS = 64
"""Number of robots that are simulated."""

STAND_DURATION = 5.0
"""Time for which the robots stand, s."""

TIME_LIMIT = 300.0
"""Time after which a robot is given up, s."""

PATH_NAMES = ("MJCF_PATH", "URDF_PATH", "XACRO_PATH")
"""Names of the path of the file in a module of robot_descriptions, in the order of preference."""


def described_files() -> Iterator[tuple[str, Path | None]]:
    """Yield the name and the file of each legged robot of robot_descriptions and of the menagerie.

    The file is None if the robot is not present and cannot be downloaded.
    """
    descriptions = importlib.import_module("robot_descriptions._descriptions").DESCRIPTIONS
    for name, description in sorted(descriptions.items()):
        # The menagerie's robots follow, from its own package.
        if description.tags & LEGGED_TAGS and description.repository != "mujoco_menagerie":
            yield name, _path_of_description(name)
    menagerie = importlib.import_module("mujoco_menagerie")
    for robot in menagerie.robots():
        if robot.category in LEGGED_TAGS:
            yield f"menagerie/{robot.name}", _path_of_menagerie(robot)


def _path_of_description(name: str) -> Path | None:
    code = (
        f"import robot_descriptions.{name} as d; "
        f"print([getattr(d, n) for n in {PATH_NAMES} if hasattr(d, n)][0])"
    )
    # In a process of its own: a download that fails can end the interpreter.
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        return None
    path = Path(done.stdout.splitlines()[-1])
    return path if path.is_file() else None


def _path_of_menagerie(robot: Any) -> Path | None:
    try:
        folder = robot.path()
    except Exception:  # Of any kind: there is no network, or a checksum is wrong.
        return None
    return Path(folder) / robot.entry_points[robot.default_model].file


def given_files(places: list[Path]) -> Iterator[tuple[str, Path | None]]:
    """Yield the name and path of each file, and of the robot files in each folder."""
    for place in places:
        if place.is_file():
            yield place.name, place
            continue
        for path in sorted(place.rglob("*")):
            if path.suffix in (".urdf", ".xacro"):
                yield str(path.relative_to(place)), path


def try_robot(path: Path) -> dict[str, Any]:
    """Draft a robot, let it stand and train two updates; return what happened, by name."""
    from legged_envs.robot_check import raise_gains
    from legged_envs.robots.reading.draft import draft_robot
    from legged_envs.tasks.velocity import velocity_task

    result: dict[str, Any] = {}
    with TemporaryDirectory() as folder:
        try:
            robot, gaps = draft_robot(path, "robot", Path(folder))
        except ValueError as error:
            return {"refused": str(error)}
        result["feet"] = len(robot.foot_names)
        result["told"] = list(gaps)
        robot = raise_gains(robot)
        fell, bad = stand(velocity_task(robot))
        result["fell"] = fell
        result["bad"] = bad
        result["bad_in_training"] = train_two_updates(velocity_task(robot), Path(folder))
    return result


def stand(cfg: Any) -> tuple[int, int]:
    """Let robots act 0 with all events; return how many fell, and how many met bad physics."""
    import torch

    from legged_envs.envs import make_core

    core = make_core(cfg, NUM_ENVS, array="torch")
    core.reset(seed=0)
    action = torch.zeros(NUM_ENVS, len(cfg.robot.joint_names))
    fell = torch.zeros(NUM_ENVS, dtype=torch.bool)
    bad = torch.zeros(NUM_ENVS, dtype=torch.bool)
    for _ in range(round(STAND_DURATION / core.step_dt)):
        terminated = core.step(action)[2]
        fell |= terminated
        bad |= core.had_bad_physics
        if terminated.any():
            core.reset(options={"reset_mask": terminated})
    core.close()
    return int((fell & ~bad).sum()), int(bad.sum())


def train_two_updates(cfg: Any, folder: Path) -> int:
    """Make two updates of a training; return how many episodes bad physics ended."""
    from rich.console import Console

    import legged_envs
    from legged_envs.training.options import TrainCfg
    from legged_envs.training.prepare import prepare
    from legged_envs.training.trainer import Trainer

    task_id = "Robots/File-v0"
    legged_envs.register(task_id, lambda: cfg)
    options = TrainCfg(
        task_id, num_envs=NUM_ENVS, iterations=2, run_dir=folder / "run", video=False
    )
    trainer = Trainer(prepare(options), Console(quiet=True))
    rows = []
    for _ in range(2):
        trainer.set_schedule()
        rows.append(trainer.iterate())
    return int(sum(row.get("termination/bad_physics", 0.0) for row in rows))


def passes(result: dict[str, Any]) -> bool:
    """Return True if a robot was drafted, stood and trained without bad physics.

    The falls of robots with fewer than four feet do not count.
    """
    if "refused" in result or "crashed" in result:
        return False
    # Two feet need a policy to balance on.
    is_up = result["feet"] < 4 or result["fell"] == 0
    return bool(is_up and result["bad"] == 0 and result["bad_in_training"] == 0)


def stands(result: dict[str, Any]) -> bool:
    """Return True if a robot passes and none of its 64 copies fell, with any number of feet."""
    return passes(result) and result["fell"] == 0


def row_of(name: str, result: dict[str, Any]) -> str:
    """Return the line of a robot in the table."""
    if "refused" in result:
        return f"| {name} | – | – | – | – | refused: {result['refused']} |"
    if "crashed" in result:
        return f"| {name} | – | – | – | – | {result['crashed']} |"
    verdict = "passes" if stands(result) else "**fails**"
    numbers = (result["feet"], result["fell"], result["bad"], result["bad_in_training"])
    return f"| {name} | {' | '.join(map(str, numbers))} | {verdict} |"


def run_in_process(path: Path) -> dict[str, Any]:
    """Try a robot in a separate process, which may crash or hang."""
    words = [sys.executable, "-m", "tools.robot_files", "--one", str(path)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return {"crashed": f"not finished after {TIME_LIMIT:g} s"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        return {"crashed": f"crashed with status {done.returncode}: {last[:200]}"}
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def main() -> None:
    """Try the robots that the command line names, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="*", type=Path)
    parser.add_argument("--one", type=Path, help="one file, whose result is printed as JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(try_robot(options.one)))
        return
    files = given_files(options.places) if options.places else described_files()
    print("| robot | feet | of 64 fell in 5 s | bad physics | in two updates | |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    results = []
    absent = []
    for name, path in files:
        if path is None:
            absent.append(name)
            continue
        result = run_in_process(path)
        print(row_of(name, result), flush=True)
        results.append(result)
    passed = sum(passes(result) for result in results)
    stood = sum(stands(result) for result in results)
    print(f"\n{stood} of {len(results)} pass, {passed} if the falls of bipeds do not count")
    print(f"not present: {', '.join(absent) or 'none'}")


if __name__ == "__main__":
    main()
