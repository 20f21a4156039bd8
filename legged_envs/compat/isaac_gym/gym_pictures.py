"""Functions of Isaac Gym for cameras and the window."""

import time

import numpy as np

from legged_envs.compat.isaac_gym.camera_matrices import projection_matrix, view_matrix
from legged_envs.compat.isaac_gym.enums import CameraFollowMode, ImageType
from legged_envs.compat.isaac_gym.gymtorch import Descriptor
from legged_envs.compat.isaac_gym.records import CameraProperties
from legged_envs.compat.isaac_gym.sim import Env, Sim
from legged_envs.compat.isaac_gym.vectors import Transform, Vec3
from legged_envs.compat.isaac_gym.viewer import (
    ActionEvent,
    Camera,
    Mount,
    Viewer,
    add_alpha,
    write_picture,
)

LONGEST_WAIT = 1.0
"""Longest time that ``sync_frame_time`` waits, s."""

DRAWN_KINDS = (ImageType.IMAGE_COLOR, ImageType.IMAGE_DEPTH, ImageType.IMAGE_SEGMENTATION)
"""Kinds of pictures that cameras give."""


class PictureFunctions:
    """Functions that draw pictures, when they are asked for."""

    def create_camera_sensor(self, env: Env, properties: CameraProperties) -> Camera:
        """Return a camera that looks at one environment."""
        camera = Camera(env.sim, properties.copy(), env.index)
        env.sim.cameras.append(camera)
        return camera

    def destroy_camera_sensor(self, sim: Sim, env: Env, camera: Camera) -> None:
        """Release a camera."""
        if camera in sim.cameras:
            sim.cameras.remove(camera)
        camera.close()

    def set_camera_location(self, camera: Camera, env: Env, position: Vec3, target: Vec3) -> None:
        """Move a camera to a position, m, and let it look at a target, m."""
        camera.look_at(position, target)

    def set_camera_transform(self, camera: Camera, env: Env, pose: Transform) -> None:
        """Move a camera to a pose. It looks along its axis x, with z up."""
        camera.mount = None
        camera.pose = pose.copy()

    def get_camera_transform(self, sim: Sim, env: Env, camera: Camera) -> Transform:
        """Return the present pose of a camera."""
        return camera.get_pose().copy()

    def attach_camera_to_body(
        self,
        camera: Camera,
        env: Env,
        body: int,
        pose: Transform,
        mode: int = CameraFollowMode.FOLLOW_TRANSFORM,
    ) -> None:
        """Let a camera move with a body.

        Args:
            camera: The camera.
            env: The environment.
            body: Index of the body in the environment.
            pose: Pose of the camera in the frame of the body.
            mode: FOLLOW_TRANSFORM, or FOLLOW_POSITION, in which it does not turn with the body.

        Raises:
            ValueError: If there is no such body.
        """
        if not 0 <= body < env.count_bodies():
            raise ValueError(
                f"attach_camera_to_body: the body must be 0 to {env.count_bodies() - 1}, "
                f"got {body}: take it from find_actor_rigid_body_handle"
            )
        camera.mount = Mount(body, pose.copy(), int(mode))

    def get_camera_view_matrix(self, sim: Sim, env: Env, camera: Camera) -> np.ndarray:
        """Return the matrix from the world to the camera, for points as rows (x, y, z, 1).

        The camera looks along its axis −z, with y up. Shape: (4, 4), float32.
        """
        return view_matrix(camera.get_pose())

    def get_camera_proj_matrix(self, sim: Sim, env: Env, camera: Camera) -> np.ndarray:
        """Return the matrix of the projection, for points as rows. Shape: (4, 4), float32."""
        return projection_matrix(camera.properties)

    def write_camera_image_to_file(
        self, sim: Sim, env: Env, camera: Camera, type: int, filename: str
    ) -> None:
        """Write a picture of a camera into a file.

        Raises:
            NotImplementedError: If ``type`` is not IMAGE_COLOR, the only type with colours.
        """
        if type != ImageType.IMAGE_COLOR:
            raise NotImplementedError(
                f"write_camera_image_to_file writes IMAGE_COLOR, got {type!r}: "
                "save the array of get_camera_image with numpy.save"
            )
        write_picture(filename, camera.picture(type))

    def get_camera_image(self, sim: Sim, env: Env, camera: Camera, type: int) -> np.ndarray:
        """Return a picture of the present state.

        Returns:
            IMAGE_COLOR: red, green, blue and 255 of each pixel, (height, 4 · width), uint8.
            IMAGE_DEPTH: the distance along the axis of view times −1, m, (height, width), float32,
            which is −∞ where there is nothing.
            IMAGE_SEGMENTATION: the number of the body, (height, width), uint32, 0 for the ground.

        Raises:
            NotImplementedError: If ``type`` is another one.
        """
        _check_image_type("get_camera_image", type)
        picture = camera.picture(type)
        if type == ImageType.IMAGE_SEGMENTATION:
            return picture.astype(np.uint32)
        if type == ImageType.IMAGE_DEPTH:
            return picture
        # Isaac Gym's pictures have an alpha channel, and pixels in one row of bytes.
        return add_alpha(picture).reshape(len(picture), -1)

    def get_camera_image_gpu_tensor(
        self, sim: Sim, env: Env, camera: Camera, type: int
    ) -> Descriptor:
        """Return a tensor of pictures on the device of the simulation.

        ``render_all_camera_sensors`` fills it again.

        Returns:
            IMAGE_COLOR: (height, width, 4), uint8. IMAGE_DEPTH: (height, width), float32.
            IMAGE_SEGMENTATION: (height, width), int32.

        Raises:
            NotImplementedError: If ``type`` is another one.
        """
        _check_image_type("get_camera_image_gpu_tensor", type)
        return Descriptor(camera.get_tensor(type))

    def render_all_camera_sensors(self, sim: Sim) -> None:
        """Draw the present state into the tensors of all cameras."""
        for camera in sim.cameras:
            camera.update_tensors()

    def set_rigid_body_segmentation_id(
        self, env: Env, handle: int, body: int, segmentation_id: int
    ) -> None:
        """Set the number of one body of an actor in pictures of segmentation."""
        actor = env.actor(handle)
        numbers = list(actor.segmentation_ids)
        numbers[body] = int(segmentation_id)
        actor.segmentation_ids = tuple(numbers)

    def get_rigid_body_segmentation_id(self, env: Env, handle: int, body: int) -> int:
        """Return the number of one body of an actor in pictures of segmentation."""
        return env.actor(handle).segmentation_ids[body]

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

    def subscribe_viewer_keyboard_event(self, viewer: Viewer, key: int, action: str) -> bool:
        """Give a key a name, under which ``query_viewer_action_events`` reports that it is pressed.

        MuJoCo's window uses some keys itself; they keep their meaning.
        """
        viewer.actions.setdefault(int(key), []).append(action)
        return True

    def query_viewer_action_events(self, viewer: Viewer) -> list[ActionEvent]:
        """Return the events of keys since the last call."""
        return viewer.take_events()

    def get_viewer_camera_transform(self, viewer: Viewer, env: Env | None) -> Transform:
        """Return the pose of the camera of a window, as it was put."""
        return viewer.get_pose()

    def get_viewer_camera_handle(self, viewer: Viewer) -> Viewer:
        """Return the window, which is its own camera."""
        return viewer

    def write_viewer_image_to_file(self, viewer: Viewer, filename: str) -> None:
        """Write a picture of environment 0 into a file."""
        viewer.write(filename)

    def viewer_camera_look_at(
        self, viewer: Viewer | None, env: Env | None, position: Vec3, target: Vec3
    ) -> None:
        """Move the camera of a window to a position, m, and let it look at a target, m.

        Scripts that run without a window call this with None, which has no effect.
        """
        if viewer is not None:
            viewer.look_at(position, target)

    def sync_frame_time(self, sim: Sim) -> None:
        """Wait until as much time has passed as was simulated since the last call."""
        # The time counts from the last call, so that a slow step is followed by a shorter wait.
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

    def start_access_image_tensors(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def end_access_image_tensors(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def set_light_parameters(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def add_lines(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def set_rigid_body_color(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def step_graphics(self, *args: object) -> bool:
        """Do nothing."""
        return True

    def subscribe_viewer_mouse_event(self, *args: object) -> bool:
        """Do nothing: MuJoCo's window keeps the mouse for its camera."""
        return True


def _check_image_type(function: str, kind: int) -> None:
    if kind not in DRAWN_KINDS:
        names = ", ".join(drawn.name for drawn in DRAWN_KINDS)
        raise NotImplementedError(f"{function} draws {names}, got {kind!r}: ask for one of these")
