"""Experiment trackers that log the numbers of a training: TensorBoard, W&B and MLflow."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from legged_envs.runs.run_folder import CONFIG

Track = Callable[[Mapping[str, float], int], None]
"""Function ``track(numbers, update)`` that logs numbers, by names such as ``train/reward``.

``update`` is the number of updates so far.
"""

Tracker = Callable[[Path, dict[str, Any], int], AbstractContextManager[Track]]
"""Function ``tracker(folder, config, done)`` that opens a tracker as a context manager.

``folder`` is the run folder and ``config`` the configuration as JSON data. ``done`` is the number
of updates that the run already has. If it is above 0, the tracker continues its earlier record.
"""

REWARD = "train/reward"
"""Name of the reward in the numbers of an update. Every update logs it."""


@contextmanager
def tensorboard(folder: Path, config: dict[str, Any], done: int) -> Iterator[Track]:
    """Log to TensorBoard files in the run folder.

    Args:
        folder: The run folder.
        config: Not used.
        done: Number of updates that the run already has. Later entries are dropped.
    """
    from torch.utils.tensorboard import SummaryWriter

    # A run that was killed may have logged updates after its last checkpoint. They are made again.
    purge_step = done + 1 if done else None
    with SummaryWriter(str(folder), purge_step=purge_step) as writer:

        def track(numbers: Mapping[str, float], update: int) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name, value, update)

        yield track


@contextmanager
def wandb(folder: Path, config: dict[str, Any], done: int) -> Iterator[Track]:
    """Log to Weights & Biases, with its local files in the run folder.

    The environment variable ``WANDB_MODE=offline`` makes a login unnecessary.

    Args:
        folder: The run folder. Its name is the name of the run.
        config: Configuration of the run, as JSON data.
        done: Number of updates that the run already has. Above 0: continue the earlier record.

    Raises:
        RuntimeError: If Weights & Biases refuses the run.
    """
    import wandb as library

    arguments: dict[str, Any] = {
        "name": folder.name,
        "dir": folder,
        "config": config,
        "project": os.environ.get("WANDB_PROJECT", "legged-envs"),
        "group": config["training"]["task_id"],
    }
    run_id = _tracked_id(folder / "wandb.id", done)
    if run_id:
        arguments["id"] = run_id
        # "allow" and not "must": in offline mode the earlier record is not on a server.
        arguments["resume"] = "allow"
    try:
        started = library.init(**arguments)
    except library.errors.UsageError as error:
        raise RuntimeError(
            f"--tracker wandb: {error} WANDB_MODE=offline needs no login."
        ) from error
    with started as run:
        (folder / "wandb.id").write_text(run.id)

        def track(numbers: Mapping[str, float], update: int) -> None:
            run.log(dict(numbers), step=update)

        yield track


@contextmanager
def mlflow(folder: Path, config: dict[str, Any], done: int) -> Iterator[Track]:
    """Log to MLflow, at ``MLFLOW_TRACKING_URI`` or in a database in the working directory.

    Args:
        folder: The run folder. Its name is the name of the run.
        config: Configuration of the run, as JSON data.
        done: Number of updates that the run already has. Above 0: continue the earlier record.

    Raises:
        ValueError: If the earlier record is not in that place.
    """
    import mlflow as library

    run_id = _tracked_id(folder / "mlflow.id", done)
    last_update = 0
    if run_id is None:
        task_id = config["training"]["task_id"]
        library.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", task_id))
    else:
        try:
            library.get_run(run_id)
        except library.MlflowException as error:
            raise ValueError(
                f"--tracker mlflow: there is no run {run_id} in {library.get_tracking_uri()}; "
                "continue where it was begun, or set MLFLOW_TRACKING_URI to where it is"
            ) from error
        for metric in library.MlflowClient().get_metric_history(run_id, REWARD):
            last_update = max(last_update, metric.step)
    with library.start_run(run_id, run_name=folder.name) as run:
        (folder / "mlflow.id").write_text(run.info.run_id)
        if run_id is None:  # the options of an MLflow run cannot change
            library.log_params(config["training"])
            library.log_dict(config, CONFIG)

        def track(numbers: Mapping[str, float], update: int) -> None:
            # A run that was killed may have logged updates after its last checkpoint. MLflow cannot
            # delete them, so the same updates are not logged twice.
            is_repeated = update <= last_update and REWARD in numbers
            if not is_repeated:
                library.log_metrics(dict(numbers), step=update)

        yield track


def _tracked_id(file: Path, done: int) -> str | None:
    """Return the tracker's id of the earlier record of a resumed run. None for a new run."""
    if done and file.is_file():
        return file.read_text()
    return None


TRACKERS: dict[str, Tracker] = {
    "tensorboard": tensorboard,
    "wandb": wandb,
    "mlflow": mlflow,
}
"""Functions that open the trackers, by the tracker's name on the command line."""
