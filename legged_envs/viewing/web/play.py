"""Robots that act while a page in a browser shows and controls them."""

import io
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from legged_envs.envs import unwrap
from legged_envs.envs.cfg import TaskCfg, replaced
from legged_envs.evaluation.metrics.velocity import hold_velocity
from legged_envs.policy.policy import Policy, load_policy
from legged_envs.system_checks import check_port
from legged_envs.viewing.watch import (
    FRAMES_PER_SECOND,
    SMOOTHING,
    Command,
    Scene,
    begin,
    make_watched,
)

if TYPE_CHECKING:
    import viser

HOST = "127.0.0.1"
"""Only this machine reaches the page, which can load any file as a policy: others come through SSH."""
PLOT_EVERY = 5
"""Frames from one drawing of the plots to the next."""
PULL, DAMPING, MOST_PULL = 20.0, 9.0, 20.0
"""Acceleration that the mouse gives for each metre that it is away from what it holds, 1/s², less for each m/s that
this moves, 1/s, and at most, m/s²: a robot comes to the mouse without passing it."""


class Session:
    """Robots in ``envs``, which have the options ``EVALUATION_ENV_OPTIONS``, with a policy, in a scene without end. A robot whose
    episode ends begins the scene again."""

    def __init__(self, envs: VectorEnv, policy: Policy, scene: Scene):
        self.envs, self.core, self.policy, self.scene = envs, unwrap(envs), policy, scene
        self.rewards = torch.zeros_like(self.core.rewards.episode_sums)
        self.costs = torch.zeros_like(self.core.costs.episode_sums)
        """Weighted reward terms a second and cost terms a step, averaged. Shape: (num_envs, num_terms)."""
        self.pull: tuple[int, np.ndarray] | None = None
        """The environment whose robot the mouse holds, and where that wants its base, m in the world."""
        self.observation = begin(envs, scene, seed=0)

    def restart(self, scene: Scene | None = None) -> None:
        """Begin every episode anew, in another scene if one is given."""
        self.scene, self.pull = scene or self.scene, None
        self.observation = begin(self.envs, self.scene)

    def step(self) -> None:
        """Let one control step pass."""
        core, before, step_dt = self.core, self.core.rewards.episode_sums.clone(), self.core.step_dt
        if (pull := self.pull) is not None:
            place, speed = (
                each[pull[0]].cpu().numpy()
                for each in (core.robot.root_pos_w, core.sim.root_lin_vel_w)
            )
            change = (
                np.clip((pull[1] - place) * PULL - speed * DAMPING, -MOST_PULL, MOST_PULL) * step_dt
            )
            core.sim.push(torch.tensor([pull[0]]), torch.from_numpy(change).float()[None])
        with torch.inference_mode():
            action = self.policy(*(self.observation[group] for group in self.policy.inputs))
        self.observation, _, terminated, truncated, info = self.envs.step(action)
        rewards = (core.rewards.episode_sums - before) / step_dt
        self.rewards += (rewards - self.rewards) * step_dt / SMOOTHING
        self.costs += (info["costs"] - self.costs) * step_dt / SMOOTHING
        if (ended := terminated | truncated).any():
            self.pull = None if pull is None or ended[pull[0]] else pull
            self.observation = begin(self.envs, self.scene, options={"reset_mask": ended})

    def command(self, command: Command) -> None:
        """Ask every robot for a velocity from the next step on."""
        if command != self.scene.command:
            self.scene = replace(self.scene, command=command)
            hold_velocity(self.core, command, self.observation)

    def place(self, kind: str, level: int) -> None:
        """Begin anew on the tiles of one kind and level."""
        ground: Any = self.core.sim.ground
        columns = torch.tensor([i for i, name in enumerate(ground.terrain.kinds) if name == kind])
        ground.levels.fill_(level)
        ground.columns.copy_(columns[torch.arange(self.core.num_envs) % len(columns)])
        self.restart()

    def take_policy(self, policy: Policy | Path) -> None:
        """Act by another policy, perhaps in a file or run folder. ValueError or FileNotFoundError, and the old one
        stays, if there is none or it does not fit."""
        policy = load_policy(policy) if isinstance(policy, Path) else policy
        policy.check(self.core)
        if not policy(*(self.observation[group] for group in policy.inputs)).isfinite().all():
            raise ValueError(f"the policy of {policy.task_id!r} gives no finite actions here")
        self.policy = policy


@contextmanager
def serving(port: int) -> "Iterator[viser.ViserServer]":
    """A server, which tells in one line of each browser that comes or goes."""
    import viser

    with redirect_stdout(io.StringIO()):  # it has a box to say what is said below
        server = viser.ViserServer(HOST, port, label="legged-envs", verbose=False)
    server.gui.configure_theme(
        show_logo=False, show_share_button=False
    )  # sharing goes over the network
    server.on_client_connect(
        lambda client: print(f"browser {client.client_id} is there", flush=True)
    )
    server.on_client_disconnect(
        lambda client: print(f"browser {client.client_id} has gone", flush=True)
    )
    try:
        yield server
    finally:
        with redirect_stdout(io.StringIO()):
            server.stop()


def play(
    task_id: str,
    cfg: TaskCfg,
    policy: Policy,
    shown: Sequence[Scene],
    scan: bool,
    num_envs: int,
    port: int,
    end: float,
) -> None:
    """Show ``num_envs`` robots in the first of the scenes ``shown`` on a page at ``port``, with the points of a height
    scan if ``scan``, for ``end`` seconds. Without an end, nothing moves unless there is a browser."""
    from legged_envs.viewing.web.panel import Panel

    check_port(HOST, port)  # before what takes long
    envs = make_watched(task_id, replaced(cfg, {"curriculum": {}}), policy, num_envs=num_envs)
    with closing(envs), serving(port) as server:
        panel = Panel(server, Session(envs, policy, shown[0]), cfg, shown)
        panel.controls["height scan"].value = scan
        page = f"localhost:{port}"
        print(
            f"{task_id} at http://{page} (from elsewhere: ssh -L {port}:{page} here); Ctrl-C ends",
            flush=True,
        )
        seconds = cpu_seconds = frames = 0.0
        figures, due = "", time.perf_counter()
        try:
            while seconds < end:
                if math.isinf(end) and not server.get_clients():
                    time.sleep(1.0 / FRAMES_PER_SECOND)
                    continue
                begun, cpu = time.perf_counter(), time.process_time()
                panel.frame(figures)
                # A frame that was late shortens the wait for the next; none is made up for after a second.
                due = max(due + 1.0 / FRAMES_PER_SECOND, begun - 1.0)
                time.sleep(max(0.0, due - time.perf_counter()))
                frames, seconds = frames + 1, seconds + time.perf_counter() - begun
                cpu_seconds += time.process_time() - cpu
                figures = f"{frames / seconds:.1f} frames a second, {1000.0 * cpu_seconds / frames:.0f} ms of CPU each"
        finally:
            print(figures)
