"""What a training tells of itself as it runs: files in its run folder, and trackers, each through its own library."""

import fcntl
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from legged_envs import __version__

CONFIG, CURVE, EVALUATION, ABOUT = "config.json", "curve.jsonl", "eval.json", "about.json"
"""Files of a run: options and task, a line of JSON for each update, the evaluation at the end, and a list of what
:func:`describe_session` gives, for its start and for each time that it went on."""
PACKAGES = ("mujoco", "torch", "gymnasium", "numpy", "rsl-rl-lib", "mujoco-warp", "warp-lang")
Track = Callable[[Mapping[str, float], int], None]
"""``track(numbers, update)``: names such as ``train/reward`` → numbers after an update."""


def as_json(value: Any) -> Any:
    """What JSON is to write of a configuration: its fields; of a function: its name; of other values: their text."""
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    names = [
        str(getattr(value, name, "")) for name in ("__module__", "__qualname__")
    ]  # not every callable has both
    return ".".join(names) if callable(value) and all(names) else str(value)


def write_json(path: Path, values: Any) -> None:
    """Write a file, in a folder that is made if it has to be. Who reads it meanwhile finds the old one or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(values, indent=1, default=as_json) + "\n")
    part.replace(path)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a run folder, which is made if it has to be, until this is over or the process has ended. FileExistsError if
    a training holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            how = "wait until it is over, or choose another --run-dir"
            raise FileExistsError(
                f"another training is writing to {str(folder)!r}: {how}"
            ) from error
        yield
    finally:
        os.close(handle)


def numbers(values: Any, path: str = "") -> dict[str, float]:
    """The numbers in nested dicts, with names such as ``costs/foot_slip``."""
    if not isinstance(values, dict):
        return {path: float(values)} if isinstance(values, (int, float)) else {}
    parts = [numbers(value, f"{path}/{name}".strip("/")) for name, value in values.items()]
    return {name: number for part in parts for name, number in part.items()}


def describe_session(update: int = 0) -> dict[str, Any]:
    """When, from which ``update`` on, by which command, on what, with which versions and commits this process works.
    Commits are those of a checkout of the package and of the working directory, ``-dirty`` if files differ."""
    import torch

    cpus = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    processor = (
        found[1] if (found := re.search(r"model name\s*: (.+)", cpus)) else platform.machine()
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    places = {"legged-envs": Path(__file__).parents[2], "working directory": Path.cwd()}
    versions = {"legged-envs": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "update": update,
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "hardware": ", ".join(
            [processor, f"{os.cpu_count()} cores, {memory:.0f} GiB", platform.platform(), *gpus]
        ),
        "versions": versions,
        "commits": {name: commit for name, place in places.items() if (commit := _commit(place))},
    }


def _commit(folder: Path) -> str:
    words = [
        "git",
        "-C",
        str(folder),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    known = (folder / ".git").exists() and shutil.which(
        "git"
    )  # else it might be the repository around a .venv
    return subprocess.run(words, capture_output=True, text=True).stdout.strip() if known else ""


@contextmanager
def _tensorboard(folder: Path, config: dict[str, Any], done: int) -> Iterator[Track]:
    from torch.utils.tensorboard import SummaryWriter

    # What a run wrote after its checkpoint, before it was killed, is dropped.
    with SummaryWriter(str(folder), purge_step=done + 1 if done else None) as writer:

        def track(numbers: Mapping[str, float], update: int) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name, value, update)

        yield track


@contextmanager
def _wandb(folder: Path, config: dict[str, Any], done: int) -> Iterator[Track]:
    import wandb

    again: dict[str, Any] = (
        {"id": known, "resume": "allow"} if (known := _known(folder / "wandb.id", done)) else {}
    )
    names = {
        "project": os.environ.get("WANDB_PROJECT", "legged-envs"),
        "group": config["training"]["task_id"],
    }
    try:
        started = wandb.init(name=folder.name, dir=folder, config=config, **names, **again)
    except wandb.errors.UsageError as error:
        raise RuntimeError(
            f"--tracker wandb: {error} WANDB_MODE=offline needs no login."
        ) from error
    with started as run:
        (folder / "wandb.id").write_text(run.id)
        yield lambda numbers, update: run.log(dict(numbers), step=update)


@contextmanager
def _mlflow(folder: Path, config: dict[str, Any], done: int) -> Iterator[Track]:
    import mlflow

    if (known := _known(folder / "mlflow.id", done)) is None:
        mlflow.set_experiment(
            os.environ.get("MLFLOW_EXPERIMENT_NAME", config["training"]["task_id"])
        )
    else:
        try:
            mlflow.get_run(known)
        except mlflow.MlflowException as error:
            how = "go on where it was begun, or set MLFLOW_TRACKING_URI to where it is"
            raise ValueError(
                f"--tracker mlflow: there is no run {known} in {mlflow.get_tracking_uri()}; {how}"
            ) from error
    written = mlflow.MlflowClient().get_metric_history(known, "train/reward") if known else []
    last = max((each.step for each in written), default=0)
    with mlflow.start_run(known, run_name=folder.name) as run:
        (folder / "mlflow.id").write_text(run.info.run_id)
        if known is None:  # the options of an MLflow run cannot change
            mlflow.log_params(config["training"])
            mlflow.log_dict(config, CONFIG)

        def track(numbers: Mapping[str, float], update: int) -> None:
            if (
                update > last or "train/reward" not in numbers
            ):  # what it has it keeps, if the run was killed
                mlflow.log_metrics(dict(numbers), step=update)

        yield track


def _known(file: Path, done: int) -> str | None:
    """By what name the tracker knows a run that goes on; None for a new one."""
    return file.read_text() if done and file.is_file() else None


TRACKERS: dict[str, Callable[[Path, dict[str, Any], int], AbstractContextManager[Track]]]
TRACKERS = {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow}
"""Name → what gives a :data:`Track` for a run folder, a configuration as JSON has it, and how many updates a run has
that goes on, and then keeps its name. W&B writes into the run folder, offline with ``WANDB_MODE=offline``; MLflow where
``MLFLOW_TRACKING_URI`` says, by default into a database file in the working directory."""
