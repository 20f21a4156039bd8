"""Controls and plots of the page.

No control calls back. Each frame looks at the values of all controls and applies what changed: so
everything happens in one thread, between two control steps.
"""

import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import viser

from legged_envs.envs.cfg import TaskCfg
from legged_envs.errors import is_mistake
from legged_envs.mdp.gait_command import STYLE, GaitChoice
from legged_envs.tasks.kind import kind_of
from legged_envs.viewing.film import FRAMES_PER_SECOND
from legged_envs.viewing.scenes import Scene, find_command_ranges, find_gait_cfg
from legged_envs.viewing.web.camera import Camera
from legged_envs.viewing.web.controls import Controls
from legged_envs.viewing.web.curves import Curves
from legged_envs.viewing.web.policy_menu import PolicyMenu
from legged_envs.viewing.web.scene_stream import SceneStream
from legged_envs.viewing.web.session import Session

COMMAND_LABELS = ("vx [m/s]", "vy [m/s]", "wz [rad/s]")
"""Labels of the sliders of a velocity command."""
PUSH = "push [m/s]"
"""Label of the slider of the velocity that a push adds."""
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
        run: Run folder whose checkpoints can be chosen. None: there is none.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        session: Session,
        cfg: TaskCfg,
        scenes: Sequence[Scene],
        folder: Path | None = None,
        run: Path | None = None,
    ):
        self.server = server
        """Server of the page."""
        self.session = session
        """The session that the controls drive."""
        self.stream = SceneStream(server, session)
        """The robots on the page."""
        self._status = server.gui.add_markdown("")
        self._controls = Controls(server.gui)

        self.controls: dict[str, Any] = self._controls.handles
        """Handle of each control, by its name."""
        self._add_time_controls()
        self._add_robot_controls()
        self._command_labels = self._add_command_sliders(cfg)
        self._has_gaits = self._add_gaits(cfg)
        self._add_clips(scenes)
        self._add_tiles()

        self.menu = PolicyMenu(self._controls, session, folder, run)
        """Controls of the policy."""
        self._add_pictures()
        self._default_weights = self._add_weights()

        self.curves = Curves(self._controls, session)
        """Plots of the followed robot."""
        self._time_due = 0.0
        self._num_frames = 0

    def _add_time_controls(self) -> None:
        controls = self._controls
        controls.add_checkbox("pause")
        controls.add_button("single step")
        controls.add_slider("speed", low=0.05, high=2.0, step=0.05, value=1.0)
        controls.add_button("restart")

    def _add_robot_controls(self) -> None:
        controls = self._controls
        last = self.session.core.num_envs - 1
        controls.add_slider("follow robot", low=0, high=last, step=1, value=0)
        controls.add_button("reset robot")
        controls.add_button("push robot")
        controls.add_slider(PUSH, low=0.1, high=2.0, step=0.1, value=1.0)
        controls.gui.add_markdown("Drag a robot to pull it.")

    def _add_pictures(self) -> None:
        """Add the controls of the camera, and the checkboxes of arrows and points."""
        controls = self._controls
        core = self.session.core
        with controls.gui.add_folder("camera", expand_by_default=False):
            controls.add_checkbox("camera follows", True)
            base_height = core.cfg.robot.base_height
            self._camera = Camera(self.server, controls, base_height, self.stream.width)
        with controls.gui.add_folder("arrows and points"):
            controls.add_checkbox("velocity arrows", self.stream.overlays.has_commands)
            controls.add_checkbox("contact forces")
            controls.add_checkbox("contact points")
            controls.add_checkbox("height scan", visible=core.sim.ground is not None)

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
            low = min(low, value)
            self._controls.add_slider(label, low, max(high, value), step=0.05, value=value)
        return COMMAND_LABELS

    def _add_gaits(self, cfg: TaskCfg) -> bool:
        """Add the controls of gait and style, and return True, if the task has a gait command."""
        choice = self.session.scene.gait
        if choice is None:
            return False
        gait_cfg = find_gait_cfg(cfg)
        first = choice.gait or gait_cfg.gaits[0]
        self._controls.add_dropdown("gait", gait_cfg.gaits, first)
        for name in STYLE:
            low, high = getattr(gait_cfg, name)
            self._controls.add_slider(name, low, high, step=0.01, value=getattr(choice, name))
        return True

    def _add_clips(self, scenes: Sequence[Scene]) -> None:
        clips = [scene.clip for scene in scenes if scene.clip is not None]
        if clips:
            self._controls.add_dropdown("clip", clips, self.session.scene.clip)

    def _add_tiles(self) -> None:
        ground = self.session.core.sim.ground
        if ground is None:
            return
        kinds = list(dict.fromkeys(ground.terrain.kinds))
        self._controls.add_dropdown("terrain", kinds)
        highest = len(ground.tile_origins) - 1
        first = ground.terrain.first_levels[0]
        self._controls.add_slider("level", low=0, high=highest, step=1, value=first)

    def _add_weights(self) -> dict[str, float]:
        """Add a slider for each reward term, and return the weight that 1 stands for."""
        rewards = self.session.core.rewards
        defaults = {}
        # The folder is closed at first, because many weights may be 0.
        with self.server.gui.add_folder("reward weights / the task's", expand_by_default=False):
            for name, weight in zip(rewards.names, rewards.weights, strict=True):
                value = 1.0 if weight != 0.0 else 0.0
                label = f"weight of {name}"
                self._controls.add_slider(label, low=0.0, high=2.0, step=0.02, value=value)
                # A term that the task does not weigh can be tried: its slider begins at 0, and 1
                # is a weight of 1.
                defaults[name] = weight or 1.0
        return defaults

    def show_frame(self, figures: str = "") -> None:
        """Let the time of one frame pass, and show it.

        A mistake, such as a policy that does not fit, is shown on the page and in the terminal.

        Args:
            figures: Text below the measured velocity, which is renewed with the plots.
        """
        is_single_step = self._apply_controls()
        followed = int(self._controls.values["follow robot"])
        self.stream.update_pull()
        if is_single_step:
            self._run_step(followed)
        else:
            self._run_steps(followed)
        self.stream.draw(followed)
        if self._num_frames % FRAMES_PER_PLOT == 0:
            vx, vy, wz = self.curves.velocity
            self._status.content = (
                f"vx {vx:+.2f}, vy {vy:+.2f} m/s, wz {wz:+.2f} rad/s  \n{figures}"
            )
            self.curves.draw()
        self._num_frames += 1

    def _run_steps(self, followed: int) -> None:
        """Run the control steps of one frame."""
        values = self._controls.values
        if not values["pause"]:
            self._time_due += values["speed"] / FRAMES_PER_SECOND
        step_dt = self.session.core.step_dt
        # Rounded to whole steps. A frame of 0.04 s has always two steps of 0.02 s, also if the
        # sums are a little off.
        while self._time_due > 0.5 * step_dt:
            self._time_due -= step_dt
            self._run_step(followed)

    def _run_step(self, followed: int) -> None:
        self.session.step()
        self.curves.record(followed)

    def _apply_controls(self) -> bool:
        """Apply all changes, and return True if a single step was asked for."""
        changed = self._controls.read()
        is_single_step = "single step" in changed
        if is_single_step:
            self._controls.show("pause", True)
        try:
            self._apply_pictures(changed)
            self._apply_scene(changed)
            self._apply_to_robot(changed)
            self.menu.apply(changed)
        # Nothing that a browser sends ends the page.
        except Exception as error:
            if not is_mistake(error):
                traceback.print_exc()
            self._show_mistake(str(error) or type(error).__name__)
        return is_single_step

    def _show_mistake(self, message: str) -> None:
        print(f"legged-envs: {message}", flush=True)
        for client in self.server.get_clients().values():
            client.add_notification(
                "That cannot be", message, color="red", auto_close_seconds=NOTIFICATION_SECONDS
            )

    def _apply_pictures(self, changed: set[str]) -> None:
        values = self._controls.values
        overlays = self.stream.overlays
        overlays.forces.visible = values["contact forces"]
        overlays.contacts.visible = values["contact points"]
        overlays.points.visible = values["height scan"]
        overlays.velocities.visible = values["velocity arrows"]
        overlays.commands.visible = values["velocity arrows"] and overlays.has_commands
        self.stream.follows = values["camera follows"]
        self._camera.update(changed)
        self.curves.choose(changed)

    def _apply_scene(self, changed: set[str]) -> None:
        """Apply commands, gait, weights, clip and ground."""
        values = self._controls.values
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

    def _apply_to_robot(self, changed: set[str]) -> None:
        """Reset or push the followed robot, if its button was pressed."""
        followed = int(self._controls.values["follow robot"])
        if "reset robot" in changed:
            self.session.restart_robot(followed)
        if "push robot" in changed:
            self.session.push_robot(followed, self._controls.values[PUSH])
