"""Implements `legged-envs demo`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from legged_envs.checks import check_known
from legged_envs.cli.play import PlayCfg, check_web_options, play
from legged_envs.policy.shipped import SHIPPED
from legged_envs.system_checks import has_display

DEMO_VIDEO = Path("demo.mp4")
"""Video that is written on a machine without a display."""

DEMO_EPISODES = 8
"""Number of robots that walk where nothing can be drawn."""


@dataclass
class DemoCfg:
    """Options of `legged-envs demo`."""

    robot: Annotated[str, Positional, arg(metavar="[ROBOT]")] = "go2"
    """Robot that walks, such as go2, g1 or anymalc."""
    web: bool = False
    """Show the robot in a browser, with controls, until Ctrl-C."""
    video: Path | None = None
    """Write this .mp4 instead of opening a window. Without a display, demo.mp4 is written."""
    seconds: float | None = None
    """Duration of each command that the robot follows, s."""
    port: int | None = None
    """Port of the page for the browser. Default: 8080."""


def demo(cfg: DemoCfg) -> None:
    """Watch a robot walk, with its pretrained policy.

    A window opens, or a page for a browser with --web. Without a display, a video is written.
    """
    robots = find_robots()
    name = cfg.robot.lower()
    check_known("demo: there is no robot", [name], robots, "robots with a pretrained policy")
    shown = PlayCfg(robots[name], seconds=cfg.seconds, web=cfg.web, port=cfg.port)
    if cfg.web:
        check_web_options(replace(shown, video=cfg.video))
        play(shown)
        return
    # In this order: what needs most of the machine comes first.
    ways: dict[str, Callable[[], None]] = {}
    if cfg.video is None and has_display():
        ways["a window"] = partial(play, shown)
    elif cfg.video is None:
        print(f"no display: {DEMO_VIDEO} is written; --web shows the robot in a browser")
    ways["a video"] = partial(play, replace(shown, video=cfg.video or DEMO_VIDEO))
    ways["numbers only"] = partial(walk_unseen, shown.task_id)
    show_first_possible(ways)
    print(f"drive it:      legged-envs play {shown.task_id} --vx 0.5")
    print("other tasks:   legged-envs list")


def find_robots() -> dict[str, str]:
    """Return the task on flat ground of each robot with a pretrained policy, by its short name."""
    robots = {}
    for task_id in SHIPPED:
        if task_id.endswith("-Flat-v0"):
            name = task_id.removeprefix("Legged/").removesuffix("-Flat-v0")
            robots[name.lower()] = task_id
    return robots


def show_first_possible(ways: dict[str, Callable[[], None]]) -> None:
    """Show the robot in the first way that this machine can, and print why others failed.

    Args:
        ways: Functions that show the robot, by the name of the way, the best one first.
    """
    *_, last = ways
    for name, show in ways.items():
        if name == last:
            show()
            return
        try:
            show()
            return
        # MuJoCo without a graphics library, a missing extra, a window that does not open.
        except (RuntimeError, OSError, ImportError) as error:
            print(f"{name} is not possible here: {error}")


def walk_unseen(task_id: str) -> None:
    """Let some robots walk without any picture, and print how well they did.

    Args:
        task_id: Task with a pretrained policy.
    """
    from legged_envs.evaluation.evaluator import Evaluator
    from legged_envs.policy.policy import load_shipped_policy
    from legged_envs.tasks import make_task_cfg

    policy = load_shipped_policy(task_id)
    groups = tuple(policy.inputs)
    evaluator = Evaluator(task_id, make_task_cfg(task_id), DEMO_EPISODES, groups=groups)
    result = evaluator.run(policy, still=False)
    evaluator.close()
    fallen = round(result.falls * DEMO_EPISODES)
    seconds = evaluator.metrics.episode_seconds
    print(
        f"{DEMO_EPISODES} robots walked for {seconds:g} s: {fallen} fell, their velocity differed "
        f"from the command by {result.lin_vel_error:.2f} m/s on average"
    )
