"""MuJoCo's window, which shows one environment of a simulation."""

from collections.abc import Callable

import mujoco


class Window:
    """A window that shows the state of one environment. The mouse moves its camera.

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

        self._viewer = mujoco.viewer.launch_passive(model, data, key_callback=on_key)
        self._last_aim = ""

    @property
    def scene(self) -> mujoco.MjvScene:
        """Scene to which shapes can be added, which the window draws in addition to the model."""
        return self._viewer.user_scn

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
