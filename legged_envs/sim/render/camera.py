"""Finds the camera of pictures and window from the settings in a `ViewerCfg`."""

import math
from collections.abc import Mapping

import mujoco
import numpy as np

from legged_envs.checks import check_known
from legged_envs.sim.cfg import ViewerCfg


def find_camera(
    viewer: ViewerCfg, model: mujoco.MjModel, data: mujoco.MjData, roots: Mapping[str, slice]
) -> str | mujoco.MjvCamera:
    """Return the camera for a picture of one environment.

    Args:
        viewer: Camera settings.
        model: Model that is drawn.
        data: State of the environment that is drawn.
        roots: Columns in ``qpos`` of the free joint of each robot and object, by name.

    Returns:
        A free camera if the viewer has an ``eye``, otherwise the name of a camera of the model.

    Raises:
        ValueError: The settings are wrong, or name a camera, robot or object that does not exist.
    """
    viewer.check()
    if viewer.eye is None:
        check_known(
            "ViewerCfg.cam_prim_path: there is no camera",
            (viewer.cam_prim_path,),
            [model.camera(i).name for i in range(model.ncam)],
            "cameras",
        )
        return viewer.cam_prim_path
    camera = _free_camera(viewer)
    if viewer.origin_type == "asset_root":
        asset = viewer.asset_name or "robot"
        check_known("ViewerCfg.asset_name: there is no", (asset,), roots, "robots and objects")
        # The camera moves with the robot or object. Its direction and distance do not change.
        camera.lookat += data.qpos[roots[asset]][:3]
    return camera


def _free_camera(viewer: ViewerCfg) -> mujoco.MjvCamera:
    target = np.array(viewer.lookat or (0.0, 0.0, 0.0))
    # MuJoCo's free camera is given by the point that it looks at, two angles and a distance.
    way = target - viewer.eye
    camera = mujoco.MjvCamera()
    camera.lookat = target
    camera.distance = np.linalg.norm(way)
    camera.azimuth = math.degrees(math.atan2(way[1], way[0]))
    camera.elevation = math.degrees(math.asin(way[2] / camera.distance))
    return camera
