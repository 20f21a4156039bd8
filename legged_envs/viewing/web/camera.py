"""Camera of the page: distance and angles, which sliders set."""

import math

import numpy as np
import viser

from legged_envs.viewing.web.controls import Controls

DISTANCE = "camera distance [m]"
"""Name of the slider of the distance."""
AZIMUTH = "camera azimuth [deg]"
"""Name of the slider of the angle around the vertical: 0 is the world's x axis."""
ELEVATION = "camera elevation [deg]"
"""Name of the slider of the angle above the ground."""
NEAREST = 1.2
"""First distance of the camera from a single robot without height, m."""
HEIGHTS_AWAY = 2.5
"""Increase of this distance per height of the robot's base."""
WIDTHS_AWAY = 0.7
"""Increase of this distance per distance of the outermost robots."""
FARTHEST = 30.0
"""Largest distance of the slider, m."""
FIRST_AZIMUTH = -55.0
"""First angle of the camera around the vertical, deg."""
FIRST_ELEVATION = 23.0
"""First angle of the camera above the ground, deg."""
TARGET_HEIGHT = 0.6
"""Height of the point that the camera looks at, as a fraction of the height of the base."""
NARROW_SHIFT = 0.45
"""Shift of that point downwards on a narrow screen, in distances of the camera. The controls cover
the lower half of such a screen, so the robot moves to the upper half."""


class Camera:
    """Sliders that place the camera of every browser.

    The mouse moves the camera of one browser, without effect on the sliders.

    Args:
        server: Server of the page.
        controls: Controls of the page.
        base_height: Height of the base of a standing robot, m.
        width: Distance of the outermost robots, m.
    """

    def __init__(
        self, server: viser.ViserServer, controls: Controls, base_height: float, width: float
    ):
        self._server = server
        self._controls = controls
        self._target = np.array((0.0, 0.0, TARGET_HEIGHT * base_height))
        self._aimed: set[int] = set()
        distance = min(NEAREST + HEIGHTS_AWAY * base_height + WIDTHS_AWAY * width, FARTHEST)
        controls.add_slider(DISTANCE, low=0.3, high=FARTHEST, step=0.1, value=round(distance, 1))
        controls.add_slider(AZIMUTH, low=-180.0, high=180.0, step=1.0, value=FIRST_AZIMUTH)
        controls.add_slider(ELEVATION, low=-5.0, high=89.0, step=1.0, value=FIRST_ELEVATION)
        position, target = self.find_view(is_narrow=False)
        server.initial_camera.position = tuple(position)
        server.initial_camera.look_at = tuple(target)

    def find_view(self, is_narrow: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the position of the camera and the point that it looks at, m.

        Args:
            is_narrow: True for a screen that is higher than wide.
        """
        values = self._controls.values
        distance = values[DISTANCE]
        azimuth = math.radians(values[AZIMUTH])
        elevation = math.radians(values[ELEVATION])
        forward = np.array((math.cos(azimuth), math.sin(azimuth), 0.0))
        up = np.array((0.0, 0.0, 1.0))
        direction = math.cos(elevation) * forward + math.sin(elevation) * up
        position = self._target + distance * direction
        if not is_narrow:
            return position, self._target
        upwards = math.cos(elevation) * up - math.sin(elevation) * forward
        return position, self._target - NARROW_SHIFT * distance * upwards

    def update(self, changed: set[str]) -> None:
        """Place the cameras of new browsers, and of all browsers if a slider was moved.

        Args:
            changed: Names of the controls that were changed.
        """
        clients = self._server.get_clients()
        if changed & {DISTANCE, AZIMUTH, ELEVATION}:
            self._aimed.clear()
        # A browser that left does not come back with the same number.
        self._aimed &= clients.keys()
        for client_id, client in clients.items():
            if client_id in self._aimed:
                continue
            self._aimed.add(client_id)
            camera = client.camera
            position, target = self.find_view(camera.aspect < 1.0)
            with client.atomic():
                # In this order: a change of the position moves the target too.
                camera.position = tuple(position)
                camera.look_at = tuple(target)
