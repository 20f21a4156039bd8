"""Serves a page on which robots act, until it is interrupted."""

import io
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from legged_envs.checks import check_port
from legged_envs.envs.cfg import TaskCfg, replaced
from legged_envs.rl.policy import Policy
from legged_envs.rl.watch import FRAMES_PER_SECOND, Scene, make_watched
from legged_envs.tasks import follows_velocity

if TYPE_CHECKING:
    import viser

PLOTS_PER_SECOND = 5


@contextmanager
def serving(host: str, port: int) -> "Iterator[viser.ViserServer]":
    """A server that tells in one line of each browser that comes or goes. ValueError if the port is taken."""
    import viser

    check_port(host, port)
    with redirect_stdout(io.StringIO()):  # it has a box to say what is said below
        server = viser.ViserServer(host, port, label="legged-envs", verbose=False)
    server.gui.configure_theme(show_logo=False, show_share_button=False)  # sharing goes over the network
    server.on_client_connect(lambda client: print(f"browser {client.client_id} is there"))
    server.on_client_disconnect(lambda client: print(f"browser {client.client_id} has gone"))
    try:
        if server.get_port() != port:  # someone was faster
            raise ValueError(f"cannot serve at --port {port}: it has just been taken; choose another --port")
        yield server
    finally:
        with redirect_stdout(io.StringIO()):
            server.stop()


def play(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    path: Path | None,
    shown: Sequence[Scene],
    scan: bool,
    num_envs: int,
    host: str,
    port: int,
    seconds: float | None,
) -> None:
    """Show ``num_envs`` robots in the first of the scenes ``shown`` on a page at ``host`` and ``port``. Nothing moves
    without a browser, unless it is for ``seconds``. Prints in the end how many frames there were, and their cost."""
    from legged_envs.rl.web.panel import Panel, policies_of, ranges_of
    from legged_envs.rl.web.session import Session
    from legged_envs.rl.web.stage import Stage

    check_port(host, port)
    envs = make_watched(task_id, replaced(cfg, {"curriculum": {}}), policy, num_envs=num_envs)
    with closing(envs), serving(host, port) as server:
        session = Session(envs, policy, shown[0])
        ranges = ranges_of(cfg.commands["velocity"]) if follows_velocity(cfg) else {}
        clips = [scene.clip for scene in shown if scene.clip is not None]
        stage = Stage(server, session, scan)
        panel = Panel(server, session, stage, ranges, clips, policies_of(task_id, policy, path))
        there = f"localhost:{port}"
        print(f"{task_id} at http://{there} (from elsewhere: ssh -L {port}:{there} this machine); Ctrl-C ends")
        sys.stdout.flush()
        Loop(server, session, stage, panel).run(seconds)


class Loop:
    """Lets a session's time pass as fast as its panel says, and draws it :data:`FRAMES_PER_SECOND` times a second, or
    as often as the machine can."""

    def __init__(self, server: Any, session: Any, stage: Any, panel: Any):
        self._server, self._session, self._stage, self._panel = server, session, stage, panel
        self.frames = 0
        self.seconds = self.cpu_seconds = 0.0
        """Frames so far, their time and that of all processors."""
        self._due = 0.0

    def run(self, seconds: float | None = None) -> None:
        """Go on until an interruption or for ``seconds``, then print how many frames a second there were."""
        period = 1.0 / FRAMES_PER_SECOND
        try:
            while seconds is None or self.seconds < seconds:
                if seconds is None and not self._server.get_clients():
                    time.sleep(period)
                    continue
                begun, cpu = time.perf_counter(), time.process_time()
                self.frame()
                time.sleep(max(0.0, begun + period - time.perf_counter()))
                self.seconds += time.perf_counter() - begun
                self.cpu_seconds += time.process_time() - cpu
        finally:
            print(self.figures)

    def frame(self) -> None:
        session, panel, step_dt = self._session, self._panel, self._session.core.step_dt
        panel.apply()
        if not panel.paused.value:
            self._due += panel.speed.value / FRAMES_PER_SECOND
            while self._due > 0.5 * step_dt:
                self._due -= step_dt
                session.step()
                panel.record(step_dt)
        self._stage.draw(panel.followed)
        if self.frames % (FRAMES_PER_SECOND // PLOTS_PER_SECOND) == 0:
            panel.show(self.figures)
        self.frames += 1

    @property
    def figures(self) -> str:
        rate, cost = self.frames / (self.seconds or 1.0), 1000.0 * self.cpu_seconds / (self.frames or 1)
        return f"{self.frames} frames, {rate:.1f} a second, {cost:.0f} ms of a processor each"
