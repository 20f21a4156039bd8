"""Trackers of the numbers of a training: TensorBoard, Weights & Biases and MLflow."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from legged_envs.runs.run_folder import CONFIG

Track = Callable[[Mapping[str, float], int], None]
"""``track(numbers, update)`` records numbers after an update, by names such as ``train/reward``."""

Tracker = Callable[[Path, dict[str, Any], int], AbstractContextManager[Track]]
"""``tracker(folder, config, done)`` opens a tracker.

``folder`` is the run folder, ``config`` the configuration as JSON holds it, and ``done`` the number
of updates of a run that is continued, which then keeps its name.
"""

REWARD = "train/reward"
"""Name of a number that every update has."""


@contextmanager
def tensorboard(folder: Path, config: dict[str, Any], done: int) -> Iterator[Track]:
    """Track in TensorBoard's files in the run folder."""
    from torch.utils.tensorboard import SummaryWriter

    # What a run wrote after its checkpoint, before it was killed, is dropped.
    purge_step = done + 1 if done else None
    with SummaryWriter(str(folder), purge_step=purge_step) as writer:

        def track(numbers: Mapping[str, float], update: int) -> None:
            for name, value in numbers.items():
                writer.add_scalar(name, value, update)

        yield track


@contextmanager
def wandb(folder: Path, config: dict[str, Any], done: int) -> Iterator[Track]:
    """Track in Weights & Biases, which writes into the run folder.

    ``WANDB_MODE=offline`` needs no login.

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
    """Track in MLflow, at ``MLFLOW_TRACKING_URI`` or in a database in the working directory.

    Raises:
        ValueError: If the run to continue is not there.
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
            # MLflow keeps what a run wrote after its checkpoint, before it was killed.
            is_repeated = update <= last_update and REWARD in numbers
            if not is_repeated:
                library.log_metrics(dict(numbers), step=update)

        yield track


def _tracked_id(file: Path, done: int) -> str | None:
    """Return the id by which a tracker knows a run that is continued; None for a new run."""
    if done and file.is_file():
        return file.read_text()
    return None


TRACKERS: dict[str, Tracker] = {
    "tensorboard": tensorboard,
    "wandb": wandb,
    "mlflow": mlflow,
}
"""Name of a tracker on the command line → the function that opens it."""
