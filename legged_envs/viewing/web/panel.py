"""Controls and plots of the page.

No control calls back. Each frame looks at the values of all controls and applies what changed: so
everything happens in one thread, between two control steps.
"""

import math
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import viser

from legged_envs.envs.cfg import TaskCfg
from legged_envs.errors import is_mistake
from legged_envs.mdp.gait_command import STYLE, GaitChoice
from legged_envs.policy.policy import SHIPPED, Policy
from legged_envs.tables import shorten
from legged_envs.tasks.kind import kind_of
from legged_envs.viewing.film import FRAMES_PER_SECOND
from legged_envs.viewing.labels import SmoothedVelocity
from legged_envs.viewing.scenes import Scene, find_command_ranges, find_gait_cfg
from legged_envs.viewing.web.plots import LIMIT, Plot
from legged_envs.viewing.web.scene_stream import SceneStream
from legged_envs.viewing.web.session import Session

COMMAND_LABELS = ("vx [m/s]", "vy [m/s]", "wz [rad/s]")
"""Labels of the sliders of a velocity command."""
BUTTONS = ("restart", "load policy")
"""Labels of the buttons. The value of a button is True after it was pressed."""
FIRST_POLICY = "as begun"
"""Name of the policy that acts first."""
FRAMES_PER_PLOT = 5
"""Number of frames from one drawing of the plots to the next."""
NOTIFICATION_SECONDS = 20.0
"""Time for which a mistake is shown on the page, s."""


class Panel:
    """Controls and plots of a session, on a page that shows its robots.

    Args:
        server: Server of the page.
        session: The session that the controls drive.
        cfg: The task.
        scenes: Scenes with clips that can be chosen.
        folder: Folder below which policies can be loaded. None: they can be anywhere.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        session: Session,
        cfg: TaskCfg,
        scenes: Sequence[Scene],
        folder: Path | None = None,
    ):
        self.server = server
        """Server of the page."""
        self.session = session
        """The session that the controls drive."""
        self.stream = SceneStream(server, session)
        """The robots on the page."""
        self.controls: dict[str, Any] = {}
        """Handle of each control, by its label."""
        self._ranges: dict[str, tuple[float, float]] = {}
        self._folder = folder
        self._status = server.gui.add_markdown("")
        self._add_general_controls()
        self._command_labels = self._add_command_sliders(cfg)
        self._has_gaits = self._add_gaits(cfg)
        self._add_clips(scenes)
        self._add_tiles()
        self._policies: dict[str, Policy | Path] = {FIRST_POLICY: session.policy}
        self._acting_policy = FIRST_POLICY
        self._add_policies()
        self._default_weights = self._add_weights()
        self._plots = self._add_plots()
        # A limit of 0 allows no cost at all. The plot then shows the cost itself.
        self._cost_limits = np.array([limit or 1.0 for limit in session.core.cost_limits])
        self._applied: dict[str, Any] = {"policy": FIRST_POLICY, "clip": session.scene.clip}
        self._release_buttons()
        self._values = {label: control.value for label, control in self.controls.items()}
        self._time_due = 0.0
        self._velocity = SmoothedVelocity()
        self._num_frames = 0

    def _add_slider(self, label: str, low: float, high: float, step: float, value: float) -> None:
        self.controls[label] = self.server.gui.add_slider(label, low, high, step, value)
        self._ranges[label] = (low, high)

    def _add_general_controls(self) -> None:
        gui = self.server.gui
        core = self.session.core
        self.controls["pause"] = gui.add_checkbox("pause", False)
        self._add_slider("speed", low=0.05, high=2.0, step=0.05, value=1.0)
        self._add_slider("follow robot", low=0, high=core.num_envs - 1, step=1, value=0)
        self.controls["restart"] = gui.add_button("restart")
        self.controls["contact forces"] = gui.add_checkbox("contact forces", False)
        has_ground = core.sim.ground is not None
        self.controls["height scan"] = gui.add_checkbox("height scan", False, visible=has_ground)
        gui.add_markdown("Drag a robot to pull it.")

    def _add_command_sliders(self, cfg: TaskCfg) -> tuple[str, ...]:
        """Add the sliders of the velocity command, and return their labels, if the task has one."""
        scene = self.session.scene
        if not kind_of(cfg).has_velocity_command or scene.clip is not None:
            return ()
        if scene.command is None:
            return ()
        ranges = find_command_ranges(cfg)
        for label, span, value in zip(COMMAND_LABELS, ranges, scene.command, strict=True):
            low, high = span
            # The first command may lie outside of the range: 0 always may be asked for.
            self._add_slider(label, min(low, value), max(high, value), step=0.05, value=value)
        return COMMAND_LABELS

    def _add_gaits(self, cfg: TaskCfg) -> bool:
        """Add the controls of gait and style, and return True, if the task has a gait command."""
        choice = self.session.scene.gait
        if choice is None:
            return False
        gait_cfg = find_gait_cfg(cfg)
        dropdown = self.server.gui.add_dropdown(
            "gait", gait_cfg.gaits, initial_value=choice.gait or gait_cfg.gaits[0]
        )
        self.controls["gait"] = dropdown
        for name in STYLE:
            low, high = getattr(gait_cfg, name)
            self._add_slider(name, low, high, step=0.01, value=getattr(choice, name))
        return True

    def _add_clips(self, scenes: Sequence[Scene]) -> None:
        clips = [scene.clip for scene in scenes if scene.clip is not None]
        if clips:
            self.controls["clip"] = self.server.gui.add_dropdown("clip", clips)

    def _add_tiles(self) -> None:
        ground = self.session.core.sim.ground
        if ground is None:
            return
        kinds = list(dict.fromkeys(ground.terrain.kinds))
        self.controls["terrain"] = self.server.gui.add_dropdown("terrain", kinds)
        highest = len(ground.tile_origins) - 1
        first = ground.terrain.first_levels[0]
        self._add_slider("level", low=0, high=highest, step=1, value=first)

    def _add_policies(self) -> None:
        gui = self.server.gui
        task_id = self.session.policy.task_id
        if task_id in SHIPPED:
            self._policies["shipped"] = SHIPPED[task_id]
        self.controls["policy"] = gui.add_dropdown("policy", tuple(self._policies))
        self.controls["file or run"] = gui.add_text("file or run", "")
        self.controls["load policy"] = gui.add_button("load policy")

    def _add_weights(self) -> dict[str, float]:
        """Add a slider for each reward term, and return the weight that 1 stands for."""
        rewards = self.session.core.rewards
        defaults = {}
        # The folder is closed at first, because many weights may be 0.
        with self.server.gui.add_folder("reward weights / the task's", expand_by_default=False):
            for name, weight in zip(rewards.names, rewards.weights, strict=True):
                value = 1.0 if weight != 0.0 else 0.0
                self._add_slider(f"weight of {name}", low=0.0, high=2.0, step=0.02, value=value)
                # A term that the task does not weigh can be tried: its slider begins at 0, and 1
                # is a weight of 1.
                defaults[name] = weight or 1.0
        return defaults

    def _add_plots(self) -> tuple[Plot, Plot, Plot]:
        """Add the plots of reward terms, cost terms and joint torques."""
        gui = self.server.gui
        core = self.session.core
        cost_curves = (*core.cost_names, LIMIT) if core.cost_names else ()
        side = gui.add_panel()
        with side.add_tab("plots"):
            rewards = Plot(gui, "reward terms, 1/s", core.rewards.names)
            costs = Plot(gui, "cost terms / their limits", cost_curves)
            torques = Plot(gui, "joint torques / their limits", core.cfg.robot.joint_names)
        side.dock_left()
        return rewards, costs, torques

    def _release_buttons(self) -> None:
        for button in BUTTONS:
            self._applied[button] = False

    def show_frame(self, figures: str = "") -> None:
        """Let the time of one frame pass, and show it.

        A mistake, such as a policy that does not fit, is shown on the page and in the terminal.

        Args:
            figures: Text below the measured velocity, which is renewed with the plots.
        """
        self._apply_controls()
        followed = int(self._values["follow robot"])
        self.stream.update_pull()
        self._run_steps(followed)
        self.stream.draw(followed)
        if self._num_frames % FRAMES_PER_PLOT == 0:
            vx, vy, wz = self._velocity.value
            self._status.content = (
                f"vx {vx:+.2f}, vy {vy:+.2f} m/s, wz {wz:+.2f} rad/s  \n{figures}"
            )
            for plot in self._plots:
                plot.draw()
        self._num_frames += 1

    def _run_steps(self, followed: int) -> None:
        """Run the control steps of one frame."""
        if not self._values["pause"]:
            self._time_due += self._values["speed"] / FRAMES_PER_SECOND
        step_dt = self.session.core.step_dt
        # Rounded to whole steps. A frame of 0.04 s has always two steps of 0.02 s, also if the
        # sums are a little off.
        while self._time_due > 0.5 * step_dt:
            self._time_due -= step_dt
            self.session.step()
            self._record_step(followed)

    def _record_step(self, env_id: int) -> None:
        """Add the values of a robot after one more control step to the plots."""
        core = self.session.core
        self._velocity.update(core, env_id)
        time = core.num_steps * core.step_dt
        rewards, costs, torques = self._plots
        rewards.add(time, self.session.rewards[env_id].tolist())
        if core.cost_names:
            relative_costs = self.session.costs[env_id].numpy() / self._cost_limits
            costs.add(time, (*relative_costs, 1.0))
        torque_limits = np.array(core.cfg.robot.torque_limits)
        torques.add(time, core.robot.joint_torque[env_id].numpy() / torque_limits)

    def _apply_controls(self) -> None:
        self._values = {label: self._read_control(label) for label in self.controls}
        values = self._values
        changed = set()
        for label, value in values.items():
            if value != self._applied.get(label):
                changed.add(label)
        # Remembered before it is applied, so that a mistake is not tried again in each frame.
        self._applied = dict(values)
        self._release_buttons()
        for button in BUTTONS:
            if button in changed:
                self.controls[button].value = False
        try:
            self._apply_scene(values, changed)
            self._apply_policy(values, changed)
        # Nothing that a browser sends ends the page.
        except Exception as error:
            if not is_mistake(error):
                traceback.print_exc()
            self._show_mistake(str(error) or type(error).__name__)

    def _read_control(self, label: str) -> Any:
        """Return the value of a control. One that the page cannot send is replaced, and shown."""
        control = self.controls[label]
        value = control.value
        # A program may send any value, instead of the page.
        if label in self._ranges:
            allowed = self._clip(label, value)
        else:
            options = getattr(control, "options", None)
            is_allowed = options is None or value in options
            allowed = value if is_allowed else self._values[label]
        if allowed != value or value != value:
            control.value = allowed
        return allowed

    def _clip(self, label: str, value: Any) -> Any:
        """Return the value of a slider within its range, its last one instead of NaN."""
        low, high = self._ranges[label]
        if not math.isfinite(value):
            return self._values[label]
        return min(max(value, low), high)

    def _show_mistake(self, message: str) -> None:
        print(f"legged-envs: {message}", flush=True)
        for client in self.server.get_clients().values():
            client.add_notification(
                "That cannot be", message, color="red", auto_close_seconds=NOTIFICATION_SECONDS
            )

    def _apply_scene(self, values: dict[str, Any], changed: set[str]) -> None:
        """Apply everything but the policy."""
        self.stream.forces.visible = values["contact forces"]
        self.stream.points.visible = values["height scan"]
        if self._command_labels:
            vx, vy, wz = (values[label] for label in self._command_labels)
            self.session.hold_command((vx, vy, wz))
        if self._has_gaits:
            style = {name: values[name] for name in STYLE}
            self.session.hold_gait(GaitChoice(values["gait"], **style))
        for name, default in self._default_weights.items():
            label = f"weight of {name}"
            if label in changed:
                self.session.core.rewards.set_weight(name, values[label] * default)
        if "clip" in changed:
            self.session.restart(replace(self.session.scene, clip=values["clip"]))
        # Placing robots restarts them, so a restart in the same frame is done by it.
        if "terrain" in changed or "level" in changed:
            self.session.place_robots(values["terrain"], int(values["level"]))
        elif "restart" in changed:
            self.session.restart()

    def _apply_policy(self, values: dict[str, Any], changed: set[str]) -> None:
        if "policy" in changed:
            chosen = values["policy"]
            # The page shows the old policy until the new one is known to fit.
            self._show_policy(self._acting_policy)
            self.session.change_policy(self._policies[chosen])
            self._show_policy(chosen)
        if "load policy" in changed:
            path = values["file or run"]
            found = self._find_policy(path)
            self.session.change_policy(found)
            self._policies[path] = found
            self.controls["policy"].options = tuple(self._policies)
            self._show_policy(path)

    def _find_policy(self, text: str) -> Path:
        """Return the path of a policy below the folder of policies.

        Raises:
            ValueError: If it is elsewhere. Whether there is such a file is not told.
        """
        if self._folder is None:
            return Path(text)
        try:
            path = Path(text).resolve()
        # A text may hold what no path can.
        except (OSError, ValueError, RuntimeError):
            path = Path("/")
        # Links are followed first: one of them may lead out of the folder.
        if not path.is_relative_to(self._folder.resolve()):
            raise ValueError(
                f"the page loads policies below {str(self._folder)!r}, "
                f"got {shorten(text, 200)!r}: start it with --folder to use another folder"
            )
        return path

    def _show_policy(self, name: str) -> None:
        self._acting_policy = name
        self._applied["policy"] = name
        self.controls["policy"].value = name
