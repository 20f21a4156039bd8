"""Film of the policy at the end of a training."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.policy import load_policy
from legged_envs.runs.progress import Show
from legged_envs.training.notices import print_notice
from legged_envs.viewing.film import film_policy
from legged_envs.viewing.scenes import Scene


class Film:
    """Film of a trained policy. A machine that cannot render trains without one.

    Args:
        scenes: Commands, clips or grounds to show, in order. Empty: no video.
        console: Console that errors of rendering are printed to.
    """

    def __init__(self, scenes: Sequence[Scene], console: Console):
        self._scenes = list(scenes)
        self._console = console

    def try_to_render(self, core: CoreVectorEnv) -> None:
        """Render a picture, so that a machine without rendering raises an error before the
        training."""
        with self._reporting():
            if self._scenes:
                core.sim.render(0, 16, 16)

    def write(self, task_id: str, task: TaskCfg, run_dir: Path, show: Show) -> None:
        """Film the policy of a run folder."""
        with self._reporting():
            if self._scenes:
                policy = load_policy(run_dir)
                path = run_dir / "video.mp4"
                film_policy(task_id, task, policy, path, self._scenes, show)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Report an error of rendering and turn the video off, so that the training continues."""
        try:
            yield
        except (RuntimeError, OSError) as error:
            print_notice(self._console, f"no video: {error}")
            self._scenes = []
