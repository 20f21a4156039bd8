"""The command ``legged-envs``."""

import os
import sys
from json import dumps
from pathlib import Path
from typing import Annotated, Any

# Waiting OpenMP threads must not spin on the cores that the physics uses; read once, when torch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import tyro

from legged_envs.checks import whole_number
from legged_envs.rl.config import TrainCfg, Value
from legged_envs.tasks import TASKS, is_mimic, make_task_cfg

TaskId = Annotated[str, tyro.conf.Positional]


def list_tasks() -> None:
    """List the registered tasks: robot, joints, observation groups and costs."""
    from rich.console import Console
    from rich.table import Column, Table

    from legged_envs.envs import LeggedVectorEnv

    heads = ("robot", "joints", "observation groups", "costs (limit)")
    table = Table(Column("id", no_wrap=True), *(Column(head, overflow="fold") for head in heads))
    for task_id in TASKS:
        core = LeggedVectorEnv(make_task_cfg(task_id), 1)
        groups = ", ".join(f"{name} ({size})" for name, size in core.observations.group_sizes.items())
        costs = ", ".join(f"{n} ({x:g})" for n, x in zip(core.cost_names, core.cost_limits, strict=True))
        table.add_row(task_id, core.cfg.robot.name, str(len(core.cfg.robot.joint_names)), groups, costs)
        core.close()
    Console().print(table)


def train(cfg: Annotated[TrainCfg, tyro.conf.arg(name="")]) -> None:
    """Train a policy, evaluate it and write a run folder."""
    from legged_envs.rl.train import train as run

    try:
        run(cfg)
    except KeyboardInterrupt:
        sys.exit(130)  # as shells have it of Ctrl-C, so that `train && deploy` ends


def play(
    task_id: TaskId,
    policy: Path | None = None,
    video: Path | None = None,
    vx: float | None = None,
    vy: float | None = None,
    wz: float | None = None,
    clips: tuple[str, ...] = (),
    motions: tuple[Path, ...] = (),
    changes: dict[str, Value] | None = None,
    seconds: float | None = None,
) -> None:
    """Watch a policy walk, or imitate motions, in a window or as a video.
    Args:
        task_id: Registered id.
        policy: A policy.safetensors, or the run folder with it; by default the one that ships with the package.
        video: Write an mp4 here in place of opening a window; without a display, play.mp4 is written.
        vx: Forward command, m/s. Without any of vx, vy and wz: a tour of the task's commands.
        vy: Sideways command, m/s.
        wz: Turning command, rad/s.
        clips: Motions to imitate, for mimic tasks; by default those that the policy was trained on.
        motions: Files of motions in place of the task's own, for mimic tasks: .npz, .csv, .json or .txt.
        changes: Changes to the task beside the policy's own, e.g. --changes actions.joint_position.scale 0.8
        seconds: How long each command holds or each motion is imitated."""
    if video is not None:
        if video.suffix != ".mp4":
            raise ValueError(f"--video must name a file that ends in .mp4, got {str(video)!r}")
        _check_output("--video", video)
    command = None if vx is None and vy is None and wz is None else (vx or 0.0, vy or 0.0, wz or 0.0)
    if command and is_mimic(make_task_cfg(task_id)):
        raise ValueError(f"{task_id!r} imitates motions: it takes --clips, not --vx, --vy and --wz")
    from legged_envs.rl import watch
    from legged_envs.rl.policy import policy_and_task

    loaded, cfg, _ = policy_and_task(task_id, policy, changes, clips, motions)
    watch.play(task_id, cfg, loaded, video, watch.scenes(cfg, command, clips, seconds))


def evaluate(
    task_id: TaskId,
    policy: Path | None = None,
    episodes: int = 256,
    clips: tuple[str, ...] = (),
    motions: tuple[Path, ...] = (),
    seed: int | None = None,
    changes: dict[str, Value] | None = None,
    json: Path | None = None,
) -> None:
    """Measure how well a policy walks, or imitates motions, on episodes that it was not trained on.
    Args:
        task_id: Registered id.
        policy: A policy.safetensors, or the run folder with it; by default the one that ships with the package.
        episodes: How many; for each clip of a mimic task.
        clips: Motions to imitate, for mimic tasks; by default those that the policy was trained on.
        motions: Files of motions in place of the task's own, for mimic tasks: .npz, .csv, .json or .txt.
        seed: Of the episodes; by default that of a training's own evaluation. Training takes small ones.
        changes: Changes to the task beside the policy's own, e.g. --changes costs.joint_torque.params.soft_limit 0.3
        json: A new file to write the numbers to. The eval.json of a run is its training's own."""
    from rich.console import Console

    from legged_envs.rl.evaluate import EVALUATION_SEED, Evaluator
    from legged_envs.rl.policy import policy_and_task
    from legged_envs.rl.progress import LINE_INTERVAL, showing

    whole_number("--episodes", episodes)
    loaded, cfg, changed = policy_and_task(task_id, policy, changes, clips, motions)
    if json is not None:
        _check_output("--json", json)
        if json.exists():
            raise ValueError(f"--json must name a new file, {str(json)!r} exists: an evaluation overwrites nothing")
    seed = EVALUATION_SEED if seed is None else seed
    evaluator = Evaluator(task_id, cfg, episodes, groups=tuple(loaded.inputs))
    loaded.check(evaluator.core)
    with showing(console := Console(), LINE_INTERVAL) as show:
        result = evaluator.run(loaded, seed=seed, show=show)
    result.print(console)
    if json is not None:
        about = {"task_id": task_id, "policy": str(policy or "shipped"), "evaluation_seed": seed, "changes": changed}
        json.parent.mkdir(parents=True, exist_ok=True)
        json.write_text(dumps(about | result.as_dict(), indent=1, default=str) + "\n")


def _check_output(option: str, path: Path) -> None:
    """Raise a ``ValueError`` unless a file can be written at ``path``, whose folders may be missing."""
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if path.is_dir() or not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise ValueError(f"{option} must name a file that can be written, got {str(path)!r}")


def bench(
    task_id: TaskId, rounds: int = 7, quick: bool = False, compile: bool = False, json: Path | None = None
) -> None:
    """Measure environment steps a second beside those of the physics engine alone.
    Args:
        task_id: Registered id.
        rounds: Paired rounds; medians are reported.
        quick: Two rounds, without the largest size.
        compile: Measure with compile=True.
        json: Where to write the numbers."""
    from legged_envs.rl import bench as module

    if json is not None:
        _check_output("--json", json)
    module.main(task_id, rounds, quick, compile, json)


def main() -> None:
    """Entry point of the command ``legged-envs``."""
    verbs: dict[str, Any] = {"list": list_tasks, "train": train, "play": play, "eval": evaluate, "bench": bench}
    about, config = "Legged robots as vectorized Gymnasium environments.", (tyro.conf.CascadeSubcommandArgs,)
    tyro.extras.subcommand_cli_from_dict(verbs, prog="legged-envs", description=about, config=config)


if __name__ == "__main__":
    main()
