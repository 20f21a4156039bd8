"""MuJoCo's window."""

from collections.abc import Callable

import mujoco


class Window:
    """A window that shows an ``MjData``; the mouse moves its camera between calls of ``aim``.

    Args:
        model: Model that is shown.
        data: Data that is shown, as it is when ``update`` is called.
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
        """Scene of the shapes that decorations add."""
        return self._viewer.user_scn

    def aim(self, camera: mujoco.MjvCamera) -> None:
        """Point the window's camera like ``camera``, if that has changed since the last call."""
        # Between changes of the viewer the mouse moves the camera, which must stay as it is.
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
        """Draw the data and a label; return True if the window is open."""
        self._viewer.set_texts((None, None, label, None))
        self._viewer.sync()
        return bool(self._viewer.is_running())

    def close(self) -> None:
        """Close the window."""
        self._viewer.close()
