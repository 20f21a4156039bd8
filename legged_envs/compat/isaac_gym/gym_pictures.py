"""Functions of Isaac Gym for cameras and the window."""

import time

import numpy as np

from legged_envs.compat.isaac_gym.records import IMAGE_COLOR, CameraProperties, Vec3
from legged_envs.compat.isaac_gym.sim import Env, Sim
from legged_envs.compat.isaac_gym.viewer import Camera, Viewer

LONGEST_WAIT = 1.0
"""Longest time that ``sync_frame_time`` waits, s."""


class PictureFunctions:
    """Functions that draw pictures, when they are asked for."""

    def create_camera_sensor(self, env: Env, properties: CameraProperties) -> Camera:
        """Return a camera that looks at one environment."""
        return Camera(env.sim, properties, env.index)

    def set_camera_location(self, camera: Camera, env: Env, position: Vec3, target: Vec3) -> None:
        """Move a camera to a position, m, and let it look at a target, m."""
        camera.look_at(position, target)

    def get_camera_image(self, sim: Sim, env: Env, camera: Camera, type: int) -> np.ndarray:
        """Return red, green, blue and 255 of each pixel. Shape: (height, 4 · width), uint8.

        Raises:
            NotImplementedError: If ``type`` is not IMAGE_COLOR.
        """
        if type != IMAGE_COLOR:
            raise NotImplementedError(f"get_camera_image draws IMAGE_COLOR alone, got {type!r}")
        picture = camera.picture()
        # Isaac Gym's pictures have an alpha channel, and pixels in one row of bytes.
        opaque = np.full_like(picture[..., :1], 255)
        return np.dstack((picture, opaque)).reshape(len(picture), -1)

    def create_viewer(self, sim: Sim, properties: CameraProperties) -> Viewer:
        """Return a window that shows environment 0.

        Raises:
            RuntimeError: If this machine has no display.
        """
        return Viewer(sim, properties)

    def draw_viewer(self, viewer: Viewer, sim: Sim, render_collision: bool = False) -> None:
        """Draw the present state in a window."""
        viewer.draw()

    def destroy_viewer(self, viewer: Viewer) -> None:
        """Close a window."""
        viewer.close()

    def query_viewer_has_closed(self, viewer: Viewer) -> bool:
        """Return True if the user closed a window."""
        return not viewer.open

    def query_viewer_action_events(self, viewer: Viewer) -> list[object]:
        """Return an empty list: MuJoCo's window keeps its keys."""
        return []

    def write_viewer_image_to_file(self, viewer: Viewer, filename: str) -> None:
        """Write a picture of environment 0 into a file."""
        viewer.write(filename)

    def viewer_camera_look_at(
        self, viewer: Viewer, env: Env | None, position: Vec3, target: Vec3
    ) -> None:
        """Move the camera of a window to a position, m, and let it look at a target, m."""
        viewer.look_at(position, target)

    def sync_frame_time(self, sim: Sim) -> None:
        """Wait until as much time has passed as was simulated since the last call."""
        # Measured from the last call, so that a slow step is followed by a shorter wait.
        shown_at, shown_frame = sim.shown
        frame = sim.state.frame_count if sim.state else 0
        due = shown_at + (frame - shown_frame) * sim.params.dt
        time.sleep(min(max(due - time.monotonic(), 0.0), LONGEST_WAIT))
        sim.shown = (time.monotonic(), frame)

    # A step has ended when `simulate` returns, and a picture is drawn when it is asked for. So the
    # following functions of Isaac Gym have nothing to do.

    def clear_lines(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def fetch_results(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def poll_viewer_events(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def render_all_camera_sensors(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def set_rigid_body_color(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def step_graphics(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def subscribe_viewer_keyboard_event(self, *args: object) -> bool:
        """Do nothing."""
        return True
