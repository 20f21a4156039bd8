"""Evaluate a policy of the Go2 with RoboGauge, from a checkout of https://github.com/wty-yy/RoboGauge.

    python -m tools.robogauge RoboGauge --policy Legged/Go2-Blind-v0
    python -m tools.robogauge RoboGauge --policy exported/ --whole --processes 16 --out scores.md

Its packages may be in another environment than ours: `--python` is the interpreter that runs it.
An evaluation that was stopped goes on with the cells that are missing.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tools.robogauge.protocol import SUBSET, TERRAINS, WHOLE, Cell, Protocol, cells_of

ROOT = Path(__file__).parents[2]
"""Folder of `tools`, which the processes of the cells import."""

PIPELINE = Path("robogauge/tasks/pipeline/stress_pipeline.py")
"""File of a checkout that is used."""

MODULES = (
    "dm_control",
    "imageio",
    "matplotlib",
    "onnxruntime",
    "pygame",
    "tensorboard",
    "torch",
    "tqdm",
    "yaml",
)
"""Modules that a cell imports."""

INSTALL = (
    "python -m venv robogauge-env && robogauge-env/bin/pip install dm_control 'mujoco<4' torch "
    "onnxruntime tensorboard pygame matplotlib tqdm PyYAML 'imageio[ffmpeg]', "
    "then add --python robogauge-env/bin/python"
)
"""How to get an interpreter that has them."""

PROBE = """
import importlib.util, json, sys
missing = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
wrong = ""
if not missing:
    from dm_control import mjcf
    try:
        mjcf.Physics.from_mjcf_model(mjcf.RootElement())
    except Exception as error:
        wrong = str(error)
print(json.dumps([missing, wrong]))
"""
"""Program that prints the modules that an interpreter lacks, and whether dm_control supports its
MuJoCo.
"""

ABOUT_FILE = "about.txt"
"""File in a folder of results that names their policy and options."""


def check_checkout(checkout: Path) -> None:
    """Check that a folder is a checkout of RoboGauge.

    Raises:
        FileNotFoundError: If it is not.
    """
    if not (checkout / PIPELINE).is_file():
        raise FileNotFoundError(
            f"{str(checkout)!r} has no {PIPELINE}: "
            "git clone https://github.com/wty-yy/RoboGauge.git, and name its folder"
        )


def check_packages(python: str) -> None:
    """Check that an interpreter has what RoboGauge imports.

    Args:
        python: Path of the interpreter.

    Raises:
        ValueError: If it lacks a package, or has versions that do not fit.
    """
    words = [python, "-c", PROBE, *MODULES]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=True, env=make_environment()
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(
            f"--python {python!r} does not run: name an interpreter of Python"
        ) from error
    missing, wrong = json.loads(done.stdout.splitlines()[-1])
    if missing:
        raise ValueError(f"{python!r} has no {', '.join(missing)} for RoboGauge: {INSTALL}")
    if wrong:
        raise ValueError(f"dm_control of {python!r} does not know its MuJoCo ({wrong}): {INSTALL}")


def find_policy(policy: str, folder: Path) -> tuple[str, Path]:
    """Return the name of a policy and its ONNX file.

    Args:
        policy: Folder that `legged-envs export` wrote, or the id of a task that has a trained
            policy in this package.
        folder: Where to export the policy of a task.

    Returns:
        The name of the policy in the table, and the path of its ONNX file.

    Raises:
        FileNotFoundError: If a folder has no such file.
        ValueError: If there is no such policy, or RoboGauge cannot drive it.
    """
    from legged_envs.policy.export import export
    from legged_envs.policy.policy import SHIPPED

    place = Path(policy)
    if place.is_dir():
        name = place.resolve().name
        path = place / "policy.onnx"
        if not path.is_file():
            raise FileNotFoundError(
                f"{policy!r} has no policy.onnx: write it with legged-envs export --folder {policy}"
            )
    elif policy in SHIPPED:
        name = policy
        path = export(policy, None, folder)[0]
    else:
        ours = [task_id for task_id in SHIPPED if task_id.startswith("Legged/Go2-")]
        raise ValueError(
            f"--policy {policy!r} is neither a folder nor a task whose policy ships: "
            f"name a folder that legged-envs export wrote, or one of {', '.join(ours)}"
        )
    check_policy(path)
    return name, path


def check_policy(path: Path) -> None:
    """Run a policy once with the observation of a standing robot.

    RoboGauge counts an exception as a fall of the robot. A policy that does not run must therefore
    be found before the evaluation starts.

    Args:
        path: ONNX file.

    Raises:
        ValueError: If RoboGauge cannot drive the policy.
    """
    from tools.robogauge.driver import Driver, Senses
    from tools.robogauge.robot import check_joints

    driver = Driver(path)
    check_joints(driver.contract)
    grid = driver.contract.get("scan", {"x": (), "y": ()})
    senses = Senses(
        command=np.zeros(3),
        quat=np.array([1.0, 0.0, 0.0, 0.0]),
        ang_vel=np.zeros(3),
        joint_pos=driver.default_joint_pos,
        joint_vel=np.zeros(len(driver.default_joint_pos)),
        height_scan=np.zeros(len(grid["x"]) * len(grid["y"])),
    )
    driver.act(senses)


def claim_folder(folder: Path, path: Path, protocol: Protocol, options: argparse.Namespace) -> Path:
    """Copy a policy into a folder of results, which must not hold results of another policy or
    other options.

    Args:
        folder: Folder of results.
        path: ONNX file of the policy.
        protocol: Seeds of the cells.
        options: Options of the command line.

    Returns:
        The copy of the ONNX file in the folder.

    Raises:
        ValueError: If it has results of another policy, or under other conditions.
    """
    about = f"{hashlib.sha256(path.read_bytes()).hexdigest()} --{protocol.name}"
    about += " --raw-commands" if options.raw_commands else " limited commands"
    noted = folder / ABOUT_FILE
    if noted.is_file() and noted.read_text() != about:
        raise ValueError(
            f"{str(folder)!r} has results of another policy or with other options: "
            "name another folder with --folder"
        )
    # Not the name of a policy that `legged-envs export` wrote into the same folder.
    kept = folder.resolve() / "judged.onnx"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, kept)
    noted.write_text(about)
    return kept


def make_environment() -> dict[str, str]:
    """Return the environment variables of the processes that run RoboGauge."""
    own = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), own] if own else [str(ROOT)]),
        # Many processes of one robot each: threads of NumPy and PyTorch would only disturb them.
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def run_cell(
    cell: Cell, protocol: Protocol, path: Path, folder: Path, options: argparse.Namespace
) -> Path:
    """Run a cell in a separate process, if it has no result yet.

    Args:
        cell: The cell.
        protocol: Its seeds.
        path: ONNX file of the policy.
        folder: Folder of results.
        options: Options of the command line.

    Returns:
        The file of its result.

    Raises:
        RuntimeError: If RoboGauge gave no result.
    """
    result = folder / f"{cell.name}.yaml"
    if result.is_file():
        return result
    logs = folder / "logs" / cell.name
    logs.mkdir(parents=True, exist_ok=True)
    words = [options.python, "-m", "tools.robogauge.cell", str(options.checkout.resolve())]
    words += [str(path), str(result.resolve()), "--logs", str(logs.resolve())]
    words += ["--terrain", cell.terrain, "--friction", str(cell.friction)]
    words += [f"--payload={cell.payload}"]
    words += ["--seeds", *map(str, protocol.seeds)]
    words += ["--search-seeds", *map(str, protocol.search_seeds)]
    if options.raw_commands:
        words.append("--raw-commands")
    start = time.perf_counter()
    output = logs / "output.txt"
    with output.open("w") as file:
        done = subprocess.run(
            words, stdout=file, stderr=subprocess.STDOUT, env=make_environment(), check=False
        )
    if done.returncode:
        raise RuntimeError(f"RoboGauge gave no result of {cell.name}: {str(output)!r} says why")
    print(f"{cell.name}: {time.perf_counter() - start:.0f} s", flush=True)
    return result


def evaluate(options: argparse.Namespace) -> str:
    """Run all cells, and return the table.

    Args:
        options: Options of the command line.

    Returns:
        The table in Markdown.
    """
    from tools.robogauge.table import make_table, read_summary

    check_checkout(options.checkout)
    check_packages(options.python)
    protocol = WHOLE if options.whole else SUBSET
    if options.payloads:
        protocol = replace(protocol, payloads=tuple(options.payloads))
    short = options.policy.strip("/").rpartition("/")[2]
    folder = options.folder or Path("runs/robogauge") / f"{short}-{protocol.name}"
    with TemporaryDirectory() as exported:
        name, path = find_policy(options.policy, Path(exported))
        path = claim_folder(folder, path, protocol, options)
    cells = cells_of(protocol, tuple(options.terrains))
    with ThreadPoolExecutor(options.processes) as pool:
        waiting = []
        for cell in cells:
            waiting.append(pool.submit(run_cell, cell, protocol, path, folder, options))
        try:
            files = [each.result() for each in waiting]
        except BaseException:
            # The cells that run come to their end, and are there in the next evaluation.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    scored = []
    for file in files:
        scored += read_summary(file)
    return make_table(name, scored)


def read_options(words: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line.

    Args:
        words: The words after the program; None for those of this process.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="folder of RoboGauge")
    parser.add_argument("--policy", required=True, help="exported folder, or id of a task")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--subset", action="store_true", help="7 cells (the default)")
    which.add_argument("--whole", action="store_true", help="63 cells, the published benchmark")
    parser.add_argument("--out", type=Path, help="Markdown file for the table")
    parser.add_argument("--folder", type=Path, help="results of the cells; runs/robogauge/… if not")
    parser.add_argument("--terrains", nargs="+", choices=TERRAINS, default=TERRAINS)
    parser.add_argument("--payloads", nargs="+", type=float, help="kg; 0 if not given")
    parser.add_argument("--processes", type=int, default=1, help="cells at the same time")
    parser.add_argument("--python", default=sys.executable, help="interpreter of RoboGauge")
    parser.add_argument(
        "--raw-commands",
        action="store_true",
        help="pass commands on that are beyond those of the training; examples/deploy.py does not",
    )
    options = parser.parse_args(words)
    if options.processes < 1:
        parser.error(f"--processes must be at least 1, got {options.processes}")
    if options.out is not None and not options.out.absolute().parent.is_dir():
        parser.error(f"--out: {str(options.out.parent)!r} is not a folder: make it first")
    return options


def main() -> None:
    """Evaluate the policy that the command line names, and print the table."""
    options = read_options()
    try:
        table = evaluate(options)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"tools.robogauge: {error}")
    print(table)
    if options.out is not None:
        options.out.write_text(table + "\n")


if __name__ == "__main__":
    main()
