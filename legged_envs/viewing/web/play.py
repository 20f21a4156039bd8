"""Serves a page that shows and controls robots."""

import io
import math
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from legged_envs.envs import CoreVectorEnv
from legged_envs.envs.cfg import TaskCfg
from legged_envs.envs.changes import apply_changes
from legged_envs.policy.policy import Policy
from legged_envs.system_checks import check_port
from legged_envs.viewing.film import FRAMES_PER_SECOND
from legged_envs.viewing.scenes import Scene
from legged_envs.viewing.watch import make_watched_envs
from legged_envs.viewing.web.client_mistakes import client_mistakes_told_once
from legged_envs.viewing.web.session import Session

if TYPE_CHECKING:
    import viser

    from legged_envs.viewing.web.panel import Panel

HOST = "127.0.0.1"
"""Address of the page. Only this machine reaches it. Other machines come through SSH."""
TOKEN_BYTES = 16
"""Number of random bytes of the token in the printed address."""
LONGEST_DELAY = 1.0
"""Delay that later frames make up for, s."""
PACE_SECONDS = 1.0
"""Time over which the real-time factor is averaged, s."""


@contextmanager
def serving(port: int, token: str | None = None) -> "Iterator[viser.ViserServer]":
    """Run a server, which prints a line for each browser that connects or leaves.

    Args:
        port: Port of the page.
        token: Secret of the address. Requests without it are refused. None: there is no secret,
            and only requests of other web pages are refused.

    Raises:
        RuntimeError: If the installed version of viser cannot refuse them.
    """
    import viser

    from legged_envs.viewing.web.door import Door

    # viser prints a box with what `play` says in one line.
    with redirect_stdout(io.StringIO()), Door(port, token).installed():
        server = viser.ViserServer(HOST, port, label="legged-envs", verbose=False)
    # The share button would send the page through a server of others.
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    server.on_client_connect(_report_connection)
    server.on_client_disconnect(_report_disconnection)
    try:
        with client_mistakes_told_once():
            yield server
    finally:
        with redirect_stdout(io.StringIO()):
            server.stop()


def _report_connection(client: "viser.ClientHandle") -> None:
    print(f"browser {client.client_id} is there", flush=True)


def _report_disconnection(client: "viser.ClientHandle") -> None:
    print(f"browser {client.client_id} has gone", flush=True)


def play(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    scenes: Sequence[Scene],
    scan: bool,
    num_envs: int,
    port: int,
    end: float,
    folder: Path,
    run: Path | None = None,
) -> None:
    """Show robots on a page.

    Args:
        task_id: Registered id.
        cfg: The task.
        policy: The policy.
        scenes: The first is shown. The page offers the clips of all.
        scan: Draw the points of the height scan that the policy observes.
        num_envs: Number of robots.
        port: Port of the page.
        end: Duration, s. If it is infinite, nothing moves while no browser is connected.
        folder: Folder below which the page can load policies.
        run: Run folder whose checkpoints the page offers. None: there is none.

    Raises:
        ValueError: If the port is in use, or the policy does not fit the task.
    """
    # viser takes a while to import, and only the page needs it.
    from legged_envs.viewing.web.panel import Panel

    # The environments take longer to make than this check, so it comes first.
    check_port(HOST, port)
    # A curriculum would take the robots away from the tiles that the page asks for.
    cfg = apply_changes(cfg, {"curriculum": {}})
    envs = make_watched_envs(task_id, cfg, policy, num_envs=num_envs)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with closing(envs), serving(port, token) as server:
        session = Session(envs, policy, scenes[0])
        panel = Panel(server, session, cfg, scenes, folder, run)
        panel.controls["height scan"].value = scan
        page = f"localhost:{port}"
        print(
            f"{task_id} at http://{page}/?token={token} "
            f"(from elsewhere: ssh -L {port}:{page} here); Ctrl-C ends",
            flush=True,
        )
        _show_frames(server, panel, end)


def _show_frames(server: "viser.ViserServer", panel: "Panel", end: float) -> None:
    """Show frames in real time for ``end`` seconds, and print their number and price at the end."""
    # The price is CPU time: the wall time of a frame is fixed by the frame rate.
    frame_time = 1.0 / FRAMES_PER_SECOND
    seconds = 0.0
    cpu_seconds = 0.0
    frames = 0
    price = ""
    pace = Pace(panel.session.core)
    due = time.perf_counter()
    try:
        while seconds < end:
            # Robots that nobody sees take no time of the CPU.
            if math.isinf(end) and not server.get_clients():
                time.sleep(frame_time)
                continue
            start = time.perf_counter()
            cpu_start = time.process_time()
            panel.show_frame(f"{pace.measure(start)}, {price}")
            # A frame that was late shortens the wait for the next one.
            due = max(due + frame_time, start - LONGEST_DELAY)
            time.sleep(max(0.0, due - time.perf_counter()))
            frames += 1
            seconds += time.perf_counter() - start
            cpu_seconds += time.process_time() - cpu_start
            price = (
                f"{frames / seconds:.1f} frames a second, "
                f"{1000.0 * cpu_seconds / frames:.0f} ms of CPU each"
            )
    finally:
        print(price)


class Pace:
    """Time of the robots, and how fast it passes.

    Args:
        core: The environments.
    """

    def __init__(self, core: CoreVectorEnv):
        self._core = core
        self._steps_before = core.num_steps
        self._measured_at = time.perf_counter()
        self._factor = 0.0

    def measure(self, now: float) -> str:
        """Return the simulated time and the real-time factor, averaged over ``PACE_SECONDS``.

        Args:
            now: Present time of ``time.perf_counter``, s.
        """
        core = self._core
        passed = now - self._measured_at
        if passed >= PACE_SECONDS:
            self._factor = (core.num_steps - self._steps_before) * core.step_dt / passed
            self._steps_before = core.num_steps
            self._measured_at = now
        return f"time {core.num_steps * core.step_dt:.1f} s, real-time factor {self._factor:.2f}"
