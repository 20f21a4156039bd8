"""Cameras and the window, on the package's renderer.

Their model has the robots as in their files, with the shapes that are only seen.
"""

import math
import os
import sys
from typing import Any

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.records import CameraProperties, Vec3
from legged_envs.compat.isaac_gym.sim import Sim
from legged_envs.sim.cfg import ViewerCfg
from legged_envs.sim.render.renderer import SceneRenderer

LARGEST_PICTURE = 4096
"""Largest width and height of a picture, pixels."""


class Camera:
    """A camera that looks at one environment.

    Args:
        sim: The simulation.
        properties: Size of pictures and field of view.
        env_id: Environment that it looks at.
    """

    def __init__(self, sim: Sim, properties: CameraProperties, env_id: int = 0):
        self.sim = sim
        """The simulation."""
        self.env_id = env_id
        """Environment that it looks at."""
        self.properties = properties
        """Size of pictures and field of view."""
        self.eye = (3.0, 3.0, 2.0)
        """Position of the camera, m."""
        self.target = (0.0, 0.0, 0.5)
        """Place that it looks at, m."""
        self._renderer: SceneRenderer | None = None

    def look_at(self, eye: Vec3, target: Vec3) -> None:
        """Move to a position and look at a target, m."""
        self.eye = eye.values
        self.target = target.values

    def picture(self) -> np.ndarray:
        """Return a picture of the present state. Shape: (height, width, 3), uint8."""
        width = int(self.properties.width)
        height = int(self.properties.height)
        return self._get_aimed_renderer().render(self.env_id, width, height, None)

    def close(self) -> None:
        """Release the renderer."""
        if self._renderer is not None:
            self._renderer.close()

    def _get_aimed_renderer(self) -> SceneRenderer:
        # Scripts without a window often create cameras and never use them. Meshes and a context of
        # OpenGL are made for the first picture.
        if self._renderer is None:
            self._renderer = self._make_renderer()
        self._renderer.viewer = ViewerCfg(eye=self.eye, lookat=self.target)
        return self._renderer

    def _make_renderer(self) -> SceneRenderer:
        state = self.sim.running("get_camera_image")
        model = self.sim.compile(visuals=True)
        model.vis.global_.offwidth = LARGEST_PICTURE
        model.vis.global_.offheight = LARGEST_PICTURE
        # Isaac Gym has the horizontal field of view, MuJoCo the vertical one.
        half_width = math.tan(math.radians(self.properties.horizontal_fov) / 2)
        half_height = half_width * int(self.properties.height) / int(self.properties.width)
        model.vis.global_.fovy = math.degrees(2 * math.atan(half_height))

        def get_data(env_id: int, data: mujoco.MjData) -> None:
            # The drawn model has more shapes than the simulated one, and the same joints, so that
            # one's state fits the other.
            env_state = state.batch.state[env_id]
            mujoco.mj_setState(model, data, env_state, mujoco.mjtState.mjSTATE_INTEGRATION)

        # A RobotCfg and its view, which the renderer needs for ghosts only.
        no_ghost: Any = None
        return SceneRenderer(model, no_ghost, no_ghost, len(self.sim.envs), get_data)


class Viewer(Camera):
    """The window of ``create_viewer``, which shows environment 0.

    Args:
        sim: The simulation.
        properties: Size of pictures and field of view.

    Raises:
        RuntimeError: If this machine has no display.
    """

    def __init__(self, sim: Sim, properties: CameraProperties):
        has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
        # The window opens with the first picture, much later. A script must hear of it here.
        if sys.platform == "linux" and not has_display:
            raise RuntimeError(
                "create_viewer needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set: "
                "run with --headless"
            )
        super().__init__(sim, properties)
        self.open = True
        """False after the user closed the window."""

    def draw(self) -> None:
        """Draw the present state, unless the user closed the window."""
        # A closed window must not open again.
        if self.open:
            self.open = self._get_aimed_renderer().show(0, "environment 0")

    def write(self, path: str) -> None:
        """Write a picture into a file. Its suffix decides the format."""
        # Pillow takes 0.1 s to import, and few scripts write pictures.
        from PIL import Image

        Image.fromarray(np.ascontiguousarray(self.picture())).save(path)
