"""Pictures of the environments of a simulation, from cameras in any pose."""

import math

import mujoco
import numpy as np

from legged_envs.compat.isaac_gym.enums import ImageType
from legged_envs.compat.isaac_gym.records import CameraProperties
from legged_envs.compat.isaac_gym.sim import Sim
from legged_envs.compat.isaac_gym.vectors import Transform
from legged_envs.sim.render.offscreen import OffscreenRenderer

LARGEST_PICTURE = 4096
"""Largest width and height of a picture, pixels."""

CAMERA = "camera"
"""Name of the camera in the drawn model. It is moved before each picture."""

NEAREST_PLANE = 0.01
"""Least distance that is drawn, m. Isaac Gym's default, 0.001, would cost precision of depth."""

FARTHEST_PLANE = 1000.0
"""Largest distance that is drawn, m."""

# Isaac Gym's cameras look along x, with z up. MuJoCo's look along −z, with y up.
CAMERA_AXES = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Axes of MuJoCo's camera in the frame of Isaac Gym's, as columns."""


class PictureMaker:
    """Draws pictures of the environments of a simulation; one object serves all cameras.

    The drawn model also has the visual shapes of the robots' files. The simulation has none.

    Args:
        sim: The simulation.
    """

    def __init__(self, sim: Sim):
        self._sim = sim
        self._model = _compile_model(sim)
        self._data = mujoco.MjData(self._model)
        self._renderers: dict[tuple[int, int], OffscreenRenderer] = {}

    def draw(
        self, env_id: int, pose: Transform, properties: CameraProperties, kind: int
    ) -> np.ndarray:
        """Return a picture of the present state of an environment.

        Args:
            env_id: The environment.
            pose: Pose of the camera, which looks along its axis x.
            properties: Size of the picture, field of view and range of distances.
            kind: IMAGE_COLOR, IMAGE_DEPTH or IMAGE_SEGMENTATION.

        Returns:
            IMAGE_COLOR: red, green and blue, (height, width, 3), uint8. IMAGE_DEPTH: the distance
            along the axis of view times −1, m, (height, width), float32, which is −∞ where there
            is nothing. IMAGE_SEGMENTATION: the number of the body, (height, width), int32, which is
            0 for the ground and where there is nothing.
        """
        width = int(properties.width)
        height = int(properties.height)
        self._aim(pose, properties)
        self._load(env_id)
        if (width, height) not in self._renderers:
            self._renderers[width, height] = OffscreenRenderer()
        with self._renderers[width, height].open(self._model, width, height) as renderer:
            renderer.update_scene(self._data, CAMERA)
            if kind == ImageType.IMAGE_COLOR:
                return renderer.render()
            if kind == ImageType.IMAGE_SEGMENTATION:
                return self._number_bodies(renderer, env_id)
            renderer.enable_depth_rendering()
            try:
                depth = renderer.render()
            finally:
                renderer.disable_depth_rendering()
        farthest = self._model.vis.map.zfar * self._model.stat.extent
        # The depth buffer of the sky is slightly below the farthest distance.
        is_empty = depth >= 0.99 * farthest
        return np.where(is_empty, -np.inf, -depth).astype(np.float32)

    def _number_bodies(self, renderer: mujoco.Renderer, env_id: int) -> np.ndarray:
        """Return the segmentation id of the body at each pixel. Shape: (height, width), int32.

        It is 0 for the ground and where there is nothing.
        """
        renderer.enable_segmentation_rendering()
        try:
            geom_ids = renderer.render()[..., 0]
        finally:
            renderer.disable_segmentation_rendering()
        # In the order of MuJoCo's bodies: first the ground, then actor after actor.
        ids = [0]
        for actor in self._sim.envs[env_id].actors:
            ids += actor.segmentation_ids
        id_of_body = np.array(ids, np.int32)
        id_of_geom = id_of_body[self._model.geom_bodyid]
        # The renderer writes −1 where it draws no geom.
        return np.where(geom_ids < 0, 0, id_of_geom[geom_ids]).astype(np.int32)

    def close(self) -> None:
        """Release the renderers."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers = {}

    def _aim(self, pose: Transform, properties: CameraProperties) -> None:
        """Move the camera of the model, and set its field of view."""
        camera = self._model.camera(CAMERA)
        camera.pos[:] = pose.p.values
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, np.array([pose.r.w, pose.r.x, pose.r.y, pose.r.z]))
        axes = rotation.reshape(3, 3) @ CAMERA_AXES
        mujoco.mju_mat2Quat(camera.quat, axes.ravel())
        camera.fovy[:] = find_vertical_field_of_view(properties)
        extent = self._model.stat.extent
        self._model.vis.map.znear = max(properties.near_plane, NEAREST_PLANE) / extent
        self._model.vis.map.zfar = min(properties.far_plane, FARTHEST_PLANE) / extent

    def _load(self, env_id: int) -> None:
        """Load the present state of an environment into the data that is drawn."""
        state = self._sim.running("get_camera_image")
        # The drawn model has additional shapes and the same joints as the simulated one, so the
        # simulated state can be loaded into it.
        env_state = state.batch.state[env_id]
        kinds = mujoco.mjtState.mjSTATE_INTEGRATION
        mujoco.mj_setState(self._model, self._data, env_state, kinds)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)


def _compile_model(sim: Sim) -> mujoco.MjModel:
    sim.running("get_camera_image")
    spec = sim.make_spec(visuals=True)
    spec.worldbody.add_camera(name=CAMERA)
    model = spec.compile()
    model.vis.global_.offwidth = LARGEST_PICTURE
    model.vis.global_.offheight = LARGEST_PICTURE
    return model


def find_vertical_field_of_view(properties: CameraProperties) -> float:
    """Return the vertical field of view, degrees. Isaac Gym has the horizontal one."""
    half_width = math.tan(math.radians(properties.horizontal_fov) / 2)
    half_height = half_width * int(properties.height) / int(properties.width)
    return math.degrees(2 * math.atan(half_height))
