"""Display of a policy in MuJoCo's window, or in a film."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.policy import Policy
from legged_envs.runs.progress import LINE_INTERVAL, showing
from legged_envs.viewing.film import film_policy
from legged_envs.viewing.keys import Keys
from legged_envs.viewing.labels import label_scenes
from legged_envs.viewing.scenes import Scene
from legged_envs.viewing.watch import make_watched_envs, watch


def play(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    video: Path | None,
    scenes: Sequence[Scene],
    scan: bool = False,
    fps: int | None = None,
) -> None:
    """Show a robot under a policy: live in a window, or in an mp4 video.

    Args:
        task_id: Registered id of the task.
        cfg: Configuration of the task.
        policy: Policy that controls the robot.
        video: Path of the mp4 file to write. None: open a window, which needs a display.
        scenes: Velocity commands or clips to show one after the other, each for a time.
        scan: True: also draw the points of the ground whose heights the policy observes.
        fps: Frames per second of the video. None: 25.
    """
    if video is None:
        play_in_window(task_id, cfg, policy, scenes, scan)
        return
    console = Console()
    with showing(console, LINE_INTERVAL) as show:
        film_policy(task_id, cfg, policy, video, scenes, show, scan, fps)
    # rich would take brackets in a path for its markup.
    console.print(f"wrote {video}", markup=False)


def play_in_window(
    task_id: str, cfg: TaskCfg, policy: Policy, scenes: Sequence[Scene], scan: bool
) -> None:
    """Show a robot under a policy in a window in real time.

    The window stays open until the scenes end or the user closes it. If the task has a velocity
    command, the keys in :data:`~legged_envs.viewing.keys.KEYS` change it.

    Args:
        task_id: Registered id of the task.
        cfg: Configuration of the task.
        policy: Policy that controls the robot.
        scenes: Velocity commands or clips to show one after the other, each for a time.
        scan: True: also draw the points of the ground whose heights the policy observes.
    """
    envs = make_watched_envs(task_id, cfg, policy, scan)
    core = unwrap(envs)
    keys = Keys(cfg)
    shown: Iterable[Scene] = scenes
    # A robot that imitates motions takes no command from keys.
    if scenes[0].command is not None:
        shown = keys.drive(scenes, core.step_dt)
    moments = watch(envs, policy, tuple(policy.inputs), shown)
    next_frame = time.perf_counter()
    for _, label in label_scenes(core, moments):
        window_is_open = core.sim.view(0, label, keys.press)
        if not window_is_open:
            break
        # Due times add up: after a slow frame the next ones catch up, so that time stays real.
        next_frame += core.step_dt
        time.sleep(max(0.0, next_frame - time.perf_counter()))
    envs.close()
