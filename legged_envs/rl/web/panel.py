"""What can be set on the page, and what is plotted there. Nothing here is called back: the loop asks what was set."""

from collections import deque
from collections.abc import Sequence
from colorsys import hls_to_rgb
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import viser

from legged_envs.checks import is_mistake
from legged_envs.mdp.commands import RANGES
from legged_envs.rl.policy import SHIPPED, Policy, shipped_file
from legged_envs.rl.web.session import SMOOTHING, Session
from legged_envs.rl.web.stage import Stage

COMMANDS = ("vx [m/s]", "vy [m/s]", "wz [rad/s]")
STAND = "none: hold the pose of action 0"
HISTORY = 150
"""Moments that a plot shows."""


class Plot:
    """Lines over the last :data:`HISTORY` moments, and dashed a ``limit`` of all of them."""

    def __init__(self, gui: viser.GuiApi, title: str, names: Sequence[str], limit: float | None = None):
        self._rows: deque[tuple[float, ...]] = deque([(0.0,) * (len(names) + 1)], HISTORY)
        self._limit = limit
        lines: list[Any] = [{}]
        for i, name in enumerate(names):
            red, green, blue = hls_to_rgb(i / len(names), 0.4 + 0.15 * (i % 2), 0.75)
            stroke = f"rgb({255 * red:.0f},{255 * green:.0f},{255 * blue:.0f})"
            lines.append({"label": name, "stroke": stroke, "width": 1.5})
        if limit is not None:
            lines.append({"label": "limit", "stroke": "black", "width": 1.5, "dash": (6, 4)})
        scales: Any = {"x": {"time": False}}
        self._handle = gui.add_uplot(self._data(), tuple(lines), title=title, scales=scales, height=230)

    def _data(self) -> tuple[np.ndarray, ...]:
        columns = np.array(self._rows).T
        return (*columns, *([] if self._limit is None else [np.full(len(self._rows), self._limit)]))

    def add(self, time: float, values: Sequence[float]) -> None:
        self._rows.append((time, *values))

    def show(self) -> None:
        self._handle.data = self._data()


class Panel:
    """The controls and plots of a session on the page of ``server``. ``ranges`` are those of the velocity command that
    sliders give, by the names of its configuration; empty without one."""

    def __init__(
        self,
        server: viser.ViserServer,
        session: Session,
        stage: Stage,
        ranges: dict[str, tuple[float, float]],
        clips: Sequence[str],
        policies: dict[str, Policy | Path | None],
    ):
        gui, core = server.gui, session.core
        self._server, self._session, self._stage = server, session, stage
        self._status = gui.add_markdown("")
        self.paused = gui.add_checkbox("pause", False)
        self.speed = gui.add_slider("speed", 0.05, 2.0, 0.05, 1.0)
        robots = ("no robot", *(f"robot {i}" for i in range(core.num_envs)))
        self._follow = gui.add_dropdown("follow", robots, initial_value="robot 0")
        self._restart: Any = gui.add_button("restart episodes")
        self._forces = gui.add_checkbox("contact forces", False)
        self._scan = gui.add_checkbox("height scan", stage.points.visible, visible=stage.has_scan)
        gui.add_markdown("Drag a robot to pull it.")
        self._command = []
        for label, (low, high), value in zip(COMMANDS, ranges.values(), session.scene.command or (), strict=False):
            step = 0.05 if high > low else 1.0
            self._command.append(gui.add_slider(label, low, high, step, float(np.clip(value, low, high))))
        self._clip = gui.add_dropdown("clip", tuple(clips) or ("",), visible=bool(clips))
        if core.sim.ground is not None:
            kinds = tuple(dict.fromkeys(core.sim.ground.terrain.kinds))
            self._kind = gui.add_dropdown("terrain", kinds)
            self._level = gui.add_slider("level", 0, len(core.sim.ground.tile_origins) - 1, 1, 0)
        self._place: tuple[Any, ...] | None = None
        with gui.add_folder("policy"):
            self._policies = policies | {STAND: None}
            self._policy: Any = gui.add_dropdown("policy", tuple(self._policies))
            self._file = gui.add_text("file or run", "")
            self._load: Any = gui.add_button("load")
        self._acting = self._policy.value
        self._weights: dict[str, Any] = {}
        with gui.add_folder("reward weights [1/s]", expand_by_default=False):
            for name, weight in zip(core.rewards.names, core.rewards.weights, strict=True):
                low, high = sorted((0.0, 2.0 * weight or 1.0))
                self._weights[name] = gui.add_slider(name, low, high, abs(weight) / 50.0 or 0.02, weight)
        panel = gui.add_panel()
        with panel.add_tab("plots"):
            self._plots = (
                Plot(gui, "reward terms, 1/s", core.rewards.names),
                Plot(gui, "cost terms, parts of their limits", core.cost_names, 1.0),
                Plot(gui, "joint torques, parts of their limits", core.cfg.robot.joint_names),
            )
        panel.dock_left()
        self._limits = np.array([limit or 1.0 for limit in core.cost_limits])
        self._time, self._speed = 0.0, np.zeros(3)

    @property
    def followed(self) -> int | None:
        name = self._follow.value
        return None if name == "no robot" else int(name.removeprefix("robot "))

    def apply(self) -> None:
        """Let the session be as the page says. What it refuses is told there and in the terminal."""
        try:
            self._apply()
        except Exception as error:
            if not is_mistake(error):
                raise
            self.tell(str(error))

    def tell(self, mistake: str) -> None:
        print(f"legged-envs: {mistake}")
        for client in self._server.get_clients().values():
            client.add_notification("That cannot be", mistake, color="red", auto_close_seconds=20.0)

    def _apply(self) -> None:
        session, core = self._session, self._session.core
        self._stage.forces.visible, self._stage.points.visible = self._forces.value, self._scan.value
        if self._command:
            vx, vy, wz = (slider.value for slider in self._command)
            session.command((vx, vy, wz))
        if self._clip.value and self._clip.value != session.scene.clip:
            session.restart(replace(session.scene, clip=self._clip.value))
        if core.sim.ground is not None and (place := (self._kind.value, self._level.value)) != self._place:
            self._place = place
            session.place(*place)
        for name, weight in zip(core.rewards.names, core.rewards.weights, strict=True):
            if (value := self._weights[name].value) != weight:
                core.rewards.set_weight(name, value)
        if self._restart.value:
            self._restart.value = False
            session.restart()
        if self._load.value:
            self._load.value, path = False, self._file.value
            session.take_policy(Path(path))
            self._policies[path] = Path(path)
            self._policy.options = tuple(self._policies)
            self._policy.value = self._acting = path
        if (name := self._policy.value) != self._acting:
            self._acting = name
            session.take_policy(self._policies[name])

    def record(self, seconds: float) -> None:
        """Take in how the robot that is followed has done for ``seconds`` more."""
        session, core, i = self._session, self._session.core, self.followed or 0
        self._time += seconds
        torque = core.robot.joint_torque[i].cpu().numpy() / np.array(core.cfg.robot.torque_limits)
        costs = session.costs[i].cpu().numpy() / self._limits
        measured = (*core.robot.lin_vel_b[i, :2].tolist(), core.robot.ang_vel_b[i, 2].item())
        self._speed += (np.array(measured) - self._speed) * seconds / SMOOTHING
        for plot, values in zip(self._plots, (session.rewards[i].tolist(), costs, torque), strict=True):
            plot.add(self._time, values)

    def show(self, figures: str) -> None:
        """Draw the plots, and write how fast the robot is and what else there is to say."""
        vx, vy, wz = self._speed
        self._status.content = f"vx {vx:+.2f}, vy {vy:+.2f} m/s, wz {wz:+.2f} rad/s  \n{figures}"
        for plot in self._plots:
            plot.show()


def policies_of(task_id: str, policy: Policy, path: Path | None) -> dict[str, Policy | Path | None]:
    """What can be chosen from: the policy that was asked for first, and the one that ships for the task."""
    chosen: dict[str, Policy | Path | None] = {"shipped" if path is None else str(path): policy}
    return chosen | ({"shipped": shipped_file(task_id)} if path is not None and task_id in SHIPPED else {})


def ranges_of(velocity: Any) -> dict[str, tuple[float, float]]:
    """The ranges of a velocity command that sliders have, m/s and rad/s."""
    return {name: getattr(velocity, name) for name in RANGES}
