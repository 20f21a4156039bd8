"""What can be set on the page, and what is plotted there. Nothing here is called back: each frame asks what was set."""

from collections.abc import Sequence
from colorsys import hls_to_rgb
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import viser

from legged_envs.envs.cfg import TaskCfg
from legged_envs.errors import is_mistake
from legged_envs.mdp.commands import VELOCITY_RANGES
from legged_envs.policy.policy import SHIPPED, Policy
from legged_envs.tasks.kind import kind_of
from legged_envs.viewing.watch import FRAMES_PER_SECOND, SMOOTHING, Scene
from legged_envs.viewing.web.play import PLOT_EVERY, Session
from legged_envs.viewing.web.stage import Stage

COMMANDS = ("vx [m/s]", "vy [m/s]", "wz [rad/s]")
PRESSED: dict[str, Any] = {"restart": False, "load policy": False}
"""Buttons, and how they are before they are pressed."""
HISTORY = 150
"""Control steps that a plot shows."""


class Plot:
    """Lines over the last :data:`HISTORY` control steps; ``rows`` have their time and values. Without ``names`` nothing
    is on the page."""

    def __init__(self, gui: viser.GuiApi, title: str, names: Sequence[str]):
        self.rows = np.zeros((HISTORY, len(names) + 1))
        lines: list[Any] = [{}]
        for i, name in enumerate(names):
            color = ",".join(
                f"{255 * part:.0f}"
                for part in hls_to_rgb(i / len(names), 0.45, 0.8 * (name != "limit"))
            )
            lines.append({"label": name, "stroke": f"rgb({color})", "width": 1.5})
        look: dict[str, Any] = {"title": title, "scales": {"x": {"time": False}}, "height": 230}
        self._handle = gui.add_uplot(tuple(self.rows.T), tuple(lines), **look) if names else None

    def draw(self) -> None:
        """Show ``rows`` on the page."""
        if self._handle is not None:
            self._handle.data = tuple(self.rows.T)


class Panel:
    """The controls and plots of a session of the task ``cfg`` on the page of ``server``, which they let act; ``shown``
    are its clips."""

    def __init__(
        self, server: viser.ViserServer, session: Session, cfg: TaskCfg, shown: Sequence[Scene]
    ):
        self.server, self.session, self.stage = server, session, Stage(server, session)
        gui, core, ground = server.gui, session.core, session.core.sim.ground
        self._status = gui.add_markdown("")
        self.controls: dict[str, Any] = {"pause": gui.add_checkbox("pause", False)}
        """What can be set, by its label."""
        self._slider("speed", 0.05, 2.0, 0.05, 1.0)
        self._slider("follow robot", 0, core.num_envs - 1, 1, 0)
        self.controls["restart"] = gui.add_button("restart")
        self.controls["contact forces"] = gui.add_checkbox("contact forces", False)
        self.controls["height scan"] = gui.add_checkbox(
            "height scan", False, visible=ground is not None
        )
        gui.add_markdown("Drag a robot to pull it.")
        self._commands = (
            COMMANDS if kind_of(cfg).has_velocity_command and session.scene.clip is None else ()
        )
        for label, name, value in zip(
            self._commands, VELOCITY_RANGES, session.scene.command or (), strict=False
        ):
            low, high = getattr(cfg.commands["velocity"], name)
            self._slider(label, min(low, value), max(high, value), 0.05, value)
        if clips := tuple(scene.clip for scene in shown if scene.clip is not None):
            self.controls["clip"] = gui.add_dropdown("clip", clips)
        if ground is not None:
            self.controls["terrain"] = gui.add_dropdown(
                "terrain", tuple(dict.fromkeys(ground.terrain.kinds))
            )
            self._slider(
                "level", 0, len(ground.tile_origins) - 1, 1, ground.terrain.first_levels[0]
            )
        self._policies: dict[str, Policy | Path] = {"as begun": session.policy}
        self._acting = "as begun"
        if session.policy.task_id in SHIPPED:
            self._policies["shipped"] = SHIPPED[session.policy.task_id]
        self.controls["policy"] = gui.add_dropdown("policy", tuple(self._policies))
        self.controls["file or run"] = gui.add_text("file or run", "")
        self.controls["load policy"] = gui.add_button("load policy")
        weights = dict(zip(core.rewards.names, core.rewards.weights, strict=True))
        self._weights = {name: weight or 1.0 for name, weight in weights.items()}
        with gui.add_folder(
            "reward weights / the task's", expand_by_default=False
        ):  # which may have many zeros
            for name, weight in weights.items():
                self._slider(f"weight of {name}", 0.0, 2.0, 0.02, float(weight != 0.0))
        side = gui.add_panel()
        with side.add_tab("plots"):
            rewards = Plot(gui, "reward terms, 1/s", core.rewards.names)
            costs = Plot(
                gui,
                "cost terms / their limits",
                (*core.cost_names, "limit") if core.cost_names else (),
            )
            self._plots = (
                rewards,
                costs,
                Plot(gui, "joint torques / their limits", core.cfg.robot.joint_names),
            )
        side.dock_left()
        self._limits = np.array([limit or 1.0 for limit in core.cost_limits])
        self._set: dict[str, Any] = {"policy": "as begun", "clip": session.scene.clip, **PRESSED}
        self._due, self._speed, self._frames = 0.0, np.zeros(3), 0

    def _slider(self, label: str, low: float, high: float, step: float, value: float) -> None:
        self.controls[label] = self.server.gui.add_slider(label, low, high, step, value)

    def frame(self, figures: str = "") -> None:
        """Let a frame's time pass in the session, as it is set, and show it, at times with plots and ``figures``. What
        cannot be set is told on the page and in the terminal."""
        try:
            self._apply({label: control.value for label, control in self.controls.items()})
        except Exception as error:
            if not is_mistake(error):
                raise
            print(f"legged-envs: {error}", flush=True)
            for client in self.server.get_clients().values():
                client.add_notification(
                    "That cannot be", str(error), color="red", auto_close_seconds=20.0
                )
        step_dt, followed = self.session.core.step_dt, int(self.controls["follow robot"].value)
        self.stage.hold()
        self._due += (
            (not self.controls["pause"].value) * self.controls["speed"].value / FRAMES_PER_SECOND
        )
        while self._due > 0.5 * step_dt:
            self._due -= step_dt
            self.session.step()
            self._record(followed)
        self.stage.draw(followed)
        if self._frames % PLOT_EVERY == 0:
            vx, vy, wz = self._speed
            self._status.content = (
                f"vx {vx:+.2f}, vy {vy:+.2f} m/s, wz {wz:+.2f} rad/s  \n{figures}"
            )
            for plot in self._plots:
                plot.draw()
        self._frames += 1

    def _apply(self, values: dict[str, Any]) -> None:
        session, core, stage = self.session, self.session.core, self.stage
        new = {label: value for label, value in values.items() if value != self._set.get(label)}
        self._set = {**values, **PRESSED}  # also what cannot be is not tried again
        for button in PRESSED.keys() & new.keys():
            self.controls[button].value = False
        stage.forces.visible, stage.points.visible = values["contact forces"], values["height scan"]
        if self._commands:
            vx, vy, wz = (values[label] for label in self._commands)
            session.command((vx, vy, wz))
        for name in core.rewards.names:
            if (label := f"weight of {name}") in new:
                core.rewards.set_weight(name, new[label] * self._weights[name])
        if "clip" in new:
            session.restart(replace(session.scene, clip=new["clip"]))
        if new.keys() & {"terrain", "level"}:
            session.place(values["terrain"], int(values["level"]))
        elif "restart" in new:
            session.restart()
        if "policy" in new:
            self.controls["policy"].value = self._set["policy"] = (
                self._acting
            )  # until it is known to fit
            session.take_policy(self._policies[new["policy"]])
            self.controls["policy"].value = self._set["policy"] = self._acting = new["policy"]
        if "load policy" in new:
            path = values["file or run"]
            session.take_policy(Path(path))
            self._policies[path] = Path(path)
            self.controls["policy"].options = tuple(self._policies)
            self.controls["policy"].value = self._set["policy"] = self._acting = path

    def _record(self, i: int) -> None:
        """Take in how robot ``i`` is after one more control step."""
        session, core = self.session, self.session.core
        measured = np.array(
            (*core.robot.lin_vel_b[i, :2].tolist(), core.robot.ang_vel_b[i, 2].item())
        )
        self._speed += (measured - self._speed) * core.step_dt / SMOOTHING
        torques = core.robot.joint_torque[i].numpy() / np.array(core.cfg.robot.torque_limits)
        costs = (*session.costs[i].numpy() / self._limits, 1.0) if core.cost_names else ()
        values = session.rewards[i].tolist(), costs, torques
        for plot, row in zip(self._plots, values, strict=True):
            plot.rows = np.vstack((plot.rows[1:], (core.num_steps * core.step_dt, *row)))
