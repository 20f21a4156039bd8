"""Cameras, and the window with its keys."""

import math
import os
import sys
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
import torch

from legged_envs.compat.isaac_gym.enums import CameraFollowMode, ImageType
from legged_envs.compat.isaac_gym.pictures import (
    LARGEST_PICTURE,
    PictureMaker,
    find_vertical_field_of_view,
)
from legged_envs.compat.isaac_gym.records import CameraProperties
from legged_envs.compat.isaac_gym.sim import Sim
from legged_envs.compat.isaac_gym.vectors import Quat, Transform, Vec3
from legged_envs.sim.cfg import ViewerCfg
from legged_envs.sim.render.renderer import SceneRenderer


@dataclass
class Mount:
    """A body to which a camera is attached."""

    body: int
    """Index of the body in the environment."""
    pose: Transform
    """Pose of the camera in the frame of the body."""
    mode: int
    """Motion that the camera follows, a ``CameraFollowMode``."""


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
        self.pose = look_along(Vec3(3.0, 3.0, 2.0), Vec3(0.0, 0.0, 0.5))
        """Pose of a camera without a mount. It looks along its axis x."""
        self.mount: Mount | None = None
        """Body to which it is attached. None: it stays where it is."""
        self._tensors: dict[int, torch.Tensor] = {}

    def look_at(self, eye: Vec3, target: Vec3) -> None:
        """Move to a position and look at a target, m."""
        self.mount = None
        self.pose = look_along(eye, target)

    def get_pose(self) -> Transform:
        """Return the present pose. The camera looks along its axis x."""
        if self.mount is None:
            return self.pose
        state = self.sim.running("get_camera_image")
        row = state.read("rigid_body_state")[self.env_id, self.mount.body].tolist()
        body = Transform(Vec3(*row[:3]), Quat(*row[3:7]))
        if self.mount.mode == CameraFollowMode.FOLLOW_TRANSFORM:
            return body * self.mount.pose
        return Transform(body.p + self.mount.pose.p, self.mount.pose.r)

    def picture(self, kind: int = ImageType.IMAGE_COLOR) -> np.ndarray:
        """Return a picture of the present state: (height, width, 3), uint8, or depths, (height,
        width), float32."""
        if self.sim.picture_maker is None:
            self.sim.picture_maker = PictureMaker(self.sim)
        return self.sim.picture_maker.draw(self.env_id, self.get_pose(), self.properties, kind)

    def get_tensor(self, kind: int) -> torch.Tensor:
        """Return the tensor of pictures of one kind, which ``update_tensors`` fills."""
        if kind not in self._tensors:
            with torch.inference_mode(False):
                self._tensors[kind] = self._make_tensor(kind).to(self.sim.device)
        return self._tensors[kind]

    def update_tensors(self) -> None:
        """Draw the present state into all tensors that were asked for."""
        for kind, tensor in self._tensors.items():
            tensor.copy_(self._make_tensor(kind))

    def _make_tensor(self, kind: int) -> torch.Tensor:
        picture = self.picture(kind)
        if kind == ImageType.IMAGE_COLOR:
            picture = add_alpha(picture)
        return torch.from_numpy(np.ascontiguousarray(picture))

    def close(self) -> None:
        """Release what the camera keeps."""
        self._tensors = {}


def write_picture(path: str, picture: np.ndarray) -> None:
    """Write a picture into a file; the suffix decides the format.

    Args:
        path: The file.
        picture: Red, green and blue, (height, width, 3), uint8.
    """
    # Pillow takes 0.1 s to import, and few scripts write pictures.
    from PIL import Image

    Image.fromarray(np.ascontiguousarray(picture)).save(path)


def look_along(eye: Vec3, target: Vec3) -> Transform:
    """Return the pose of a camera at a position that looks at a target, without roll."""
    way = target - eye
    yaw = math.atan2(way.y, way.x)
    pitch = -math.atan2(way.z, math.hypot(way.x, way.y))
    return Transform(eye.copy(), Quat.from_euler_zyx(0.0, pitch, yaw))


def add_alpha(picture: np.ndarray) -> np.ndarray:
    """Return a picture with the opacity 255 of each pixel. Shape: (height, width, 4), uint8."""
    return np.dstack((picture, np.full_like(picture[..., :1], 255)))


@dataclass
class ActionEvent:
    """An event of a key that was subscribed to."""

    action: str
    """Name that was given to the key."""
    value: float
    """1 when the key is pressed, 0 when it is released."""


class Viewer:
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
        self.sim = sim
        """The simulation."""
        self.properties = properties
        """Size of pictures and field of view."""
        self.eye = Vec3(3.0, 3.0, 2.0)
        """Position of the camera, m."""
        self.target = Vec3(0.0, 0.0, 0.5)
        """Place that it looks at, m."""
        self.open = True
        """False after the user closed the window."""
        self.actions: dict[int, list[str]] = {}
        """Names of the actions of each key."""
        self._pressed: list[int] = []
        self._released: list[ActionEvent] = []
        self._renderer: SceneRenderer | None = None

    def look_at(self, eye: Vec3, target: Vec3) -> None:
        """Move the camera to a position and look at a target, m."""
        self.eye = eye.copy()
        self.target = target.copy()

    def get_pose(self) -> Transform:
        """Return the pose of the camera, as it was put. It looks along its axis x."""
        return look_along(self.eye, self.target)

    def draw(self) -> None:
        """Draw the present state, unless the user closed the window."""
        # A closed window must not open again.
        if self.open:
            renderer = self._get_aimed_renderer()
            # The window calls this from its own thread.
            self.open = renderer.show(0, "environment 0", self._pressed.append)

    def take_events(self) -> list[ActionEvent]:
        """Return the events since the last call.

        MuJoCo's window reports when a key is pressed. The next call reports that it was released.
        """
        events = self._released
        self._released = []
        while self._pressed:
            for action in self.actions.get(self._pressed.pop(0), []):
                events.append(ActionEvent(action, 1.0))
                self._released.append(ActionEvent(action, 0.0))
        return events

    def write(self, path: str) -> None:
        """Write a picture into a file. Its suffix decides the format."""
        width = int(self.properties.width)
        height = int(self.properties.height)
        picture = self._get_aimed_renderer().render(0, width, height, None)
        write_picture(path, picture)

    def close(self) -> None:
        """Close the window."""
        if self._renderer is not None:
            self._renderer.close()

    def _get_aimed_renderer(self) -> SceneRenderer:
        if self._renderer is None:
            self._renderer = self._make_renderer()
        self._renderer.viewer = ViewerCfg(eye=self.eye.values, lookat=self.target.values)
        return self._renderer

    def _make_renderer(self) -> SceneRenderer:
        state = self.sim.running("draw_viewer")
        model = self.sim.compile(visuals=True)
        model.vis.global_.offwidth = LARGEST_PICTURE
        model.vis.global_.offheight = LARGEST_PICTURE
        model.vis.global_.fovy = find_vertical_field_of_view(self.properties)

        def get_data(env_id: int, data: mujoco.MjData) -> None:
            # The drawn model has more shapes than the simulated one, and the same joints, so that
            # one's state fits the other.
            env_state = state.batch.state[env_id]
            mujoco.mj_setState(model, data, env_state, mujoco.mjtState.mjSTATE_INTEGRATION)

        # A RobotCfg and its view, which the renderer needs for ghosts only.
        no_ghost: Any = None
        return SceneRenderer(model, no_ghost, no_ghost, len(self.sim.envs), get_data)
