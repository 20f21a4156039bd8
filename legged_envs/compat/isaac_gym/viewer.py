"""Cameras and the window, on the package's renderer and a model in which the robots look as in their files."""

import math
import os
import sys
from typing import Any

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.assets import Array
from legged_envs.compat.isaac_gym.records import CameraProperties, Vec3
from legged_envs.compat.isaac_gym.sim import Sim
from legged_envs.sim.cfg import ViewerCfg
from legged_envs.sim.render.renderer import SceneRenderer


class Camera:
    """Looks at one environment. The model that it draws is compiled for the first picture."""

    def __init__(self, sim: Sim, properties: CameraProperties, env_id: int = 0):
        self.sim, self.env_id, self.properties = sim, env_id, properties
        self.eye, self.target = (3.0, 3.0, 2.0), (0.0, 0.0, 0.5)
        self._renderer: SceneRenderer | None = None

    def look_at(self, eye: Vec3, target: Vec3) -> None:
        self.eye, self.target = eye.values, target.values

    def picture(self) -> Array:
        """Shape: (height, width, 3), uint8."""
        return self._aimed().render(
            self.env_id, int(self.properties.width), int(self.properties.height), None
        )

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()

    def _aimed(self) -> SceneRenderer:
        if self._renderer is None:
            running, model = self.sim.running("get_camera_image"), self.sim.compile(visuals=True)
            model.vis.global_.offwidth, model.vis.global_.offheight = 4096, 4096
            across = math.tan(math.radians(self.properties.horizontal_fov) / 2)
            tall = across * int(self.properties.height) / int(self.properties.width)
            model.vis.global_.fovy = math.degrees(2 * math.atan(tall))

            def load(env_id: int, data: mujoco.MjData) -> None:
                state = running.batch.state[env_id]
                mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)

            unused: Any = None  # a RobotCfg and its view, for ghosts of it
            self._renderer = SceneRenderer(model, unused, unused, len(self.sim.envs), load)
        self._renderer.viewer = ViewerCfg(eye=self.eye, lookat=self.target)
        return self._renderer


class Viewer(Camera):
    """The window of ``create_viewer``, which shows environment 0. RuntimeError on a machine without a display."""

    def __init__(self, sim: Sim, properties: CameraProperties):
        if sys.platform == "linux" and not (
            os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        ):
            raise RuntimeError(
                "create_viewer needs a display, and DISPLAY is not set: run with --headless"
            )
        super().__init__(sim, properties)
        self.open = True

    def draw(self) -> None:
        self.open = self.open and self._aimed().show(0, "environment 0")

    def write(self, path: str) -> None:
        from PIL import Image

        Image.fromarray(np.ascontiguousarray(self.picture())).save(path)
