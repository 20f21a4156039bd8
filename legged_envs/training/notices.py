"""Notices that a training prints about itself."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from legged_envs.runs.checkpoint_file import CHECKPOINT
from legged_envs.runs.run_folder import EVALUATION
from legged_envs.training import processes
from legged_envs.training.command import import_words
from legged_envs.training.options import TrainCfg

RESULTS = ("policy.safetensors", "policy.onnx", EVALUATION, "learning_curve.png", "video.mp4")
"""Files of a run folder that a user looks at first."""

MOST_BAD_PHYSICS = 0.5
"""Part of the episodes of the first update above which bad physics as their end is reported."""


def print_notice(console: Console, text: str) -> None:
    """Print a sentence in yellow, in one line."""
    console.print(text, style="yellow", markup=False, highlight=False, soft_wrap=True)


def report_bad_physics(console: Console, row: Mapping[str, float], robot: str) -> None:
    """Say so if bad physics ended most episodes of the first update: nothing is learnt from them.

    Args:
        console: Console that the sentence is printed to.
        row: Numbers of an update, from :meth:`~legged_envs.training.trainer.Trainer.iterate`.
        robot: Name of the robot.
    """
    episodes = row.get("episodes", 0.0)
    bad = row.get("termination/bad_physics", 0.0)
    if row["iteration"] == 1 and bad > MOST_BAD_PHYSICS * episodes:
        print_notice(
            console,
            f"bad physics ended {bad:.0f} of {episodes:.0f} episodes, because robot {robot!r} "
            "explodes: legged-envs check names the gains, torque_limits and armatures to change",
        )


def print_next_step(console: Console, cfg: TrainCfg, run_dir: Path) -> None:
    """Print where the results of a finished training are, and the command that shows its policy.

    Args:
        console: Console that the lines are printed to.
        cfg: Options of the training.
        run_dir: Folder of the training.
    """
    results = [file for file in RESULTS if (run_dir / file).exists()]
    words = ["legged-envs", "play", cfg.task_id, "--policy", str(run_dir)]
    command = shlex.join(words + import_words(cfg.imports))
    for line in (f"{run_dir} contains {', '.join(results)}", f"watch the policy: {command}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_how_to_resume(console: Console, cfg: TrainCfg, run_dir: Path, is_wrapped: bool) -> None:
    """Print the command that continues an interrupted training, if it has a checkpoint.

    Args:
        console: Console that the command is printed to.
        cfg: Options of the training.
        run_dir: Folder of the training.
        is_wrapped: True if the training has custom wrappers, which only Python can add.
    """
    if not (run_dir / CHECKPOINT).exists():
        return
    if is_wrapped:
        command = f"TrainCfg({cfg.task_id!r}, resume=Path({str(run_dir)!r})) and the same wrappers"
    else:
        words = ["legged-envs", "train", cfg.task_id, "--resume", str(run_dir)]
        command = shlex.join(words + import_words(cfg.imports))
    if processes.count() > 1:
        command += f", in {processes.count()} processes of torchrun"
    console.print(f"interrupted; continue with: {command}", markup=False, soft_wrap=True)
