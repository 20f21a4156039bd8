"""MuJoCo's window, which shows one environment of a simulation."""

from collections.abc import Callable

import mujoco

NEAREST = 1.2
"""First distance of the camera from a robot without height, m."""
HEIGHTS_AWAY = 2.5
"""Increase of this distance per height of the robot's base."""
FIRST_AZIMUTH = 125.0
"""First direction of view of the camera around the vertical: 0 is the world's x axis, deg."""
FIRST_ELEVATION = -20.0
"""First direction of view of the camera, negative downwards, deg."""


class Window:
    """A window that shows the state of one environment. The mouse moves its camera.

    MuJoCo's own panels are hidden at first, because they would cover most of the robot.

    Args:
        model: MuJoCo model that is shown.
        data: MuJoCo data that is shown. ``update`` draws its present content.
        on_key: Function that is called with GLFW's number of each key that is pressed.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        on_key: Callable[[int], None] | None,
    ):
        import mujoco.viewer  # which loads GLFW

        self._viewer = mujoco.viewer.launch_passive(
            model, data, key_callback=on_key, show_left_ui=False, show_right_ui=False
        )
        self._last_aim = ""

    @property
    def scene(self) -> mujoco.MjvScene:
        """Scene to which shapes can be added, which the window draws in addition to the model."""
        return self._viewer.user_scn

    def follow(self, body: int, base_height: float) -> None:
        """Let the camera move with a body, until the mouse or :meth:`aim` gives it another target.

        Args:
            body: Index of the base of a robot in the model.
            base_height: Height of the base of the standing robot, m.
        """
        camera = self._viewer.cam
        camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
        camera.trackbodyid = body
        camera.distance = NEAREST + HEIGHTS_AWAY * base_height
        camera.azimuth = FIRST_AZIMUTH
        camera.elevation = FIRST_ELEVATION

    def aim(self, camera: mujoco.MjvCamera) -> None:
        """Move the window's camera to ``camera``, if that has changed since the last call.

        If it has not changed, the camera stays where the mouse has moved it.
        """
        # Without this comparison each picture would undo what the user has done with the mouse.
        description = str(camera)
        if description == self._last_aim:
            return
        self._last_aim = description
        own = self._viewer.cam
        own.type = camera.type
        own.lookat = camera.lookat
        own.distance = camera.distance
        own.azimuth = camera.azimuth
        own.elevation = camera.elevation

    def update(self, label: str) -> bool:
        """Draw the present content of the data, and a text. Return True if the window is open."""
        self._viewer.set_texts((None, None, label, None))
        self._viewer.sync()
        return bool(self._viewer.is_running())

    def close(self) -> None:
        """Close the window."""
        self._viewer.close()
