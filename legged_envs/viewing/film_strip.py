"""A picture of all robots of the package side by side."""

import math
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

from legged_envs.envs import unwrap
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.policy import SHIPPED
from legged_envs.robots import ROBOTS, RobotCfg
from legged_envs.rotation import heading
from legged_envs.runs.progress import Show
from legged_envs.sim import SimCfg, Simulation, ViewerCfg, make_simulation
from legged_envs.sim.gains import stand
from legged_envs.tasks import make_task_cfg
from legged_envs.viewing.scenes import make_scenes
from legged_envs.viewing.watch import make_watched_envs, watch

COLUMNS = 4
"""Number of pictures in a row."""
TILE = (480, 360)
"""Width and height of each picture, pixels. It is rendered twice as large, which smooths edges."""
NAME_POSITION = (16, 12)
"""Position of the robot's name in its picture, pixels."""
NAME_SIZE = 26
"""Size of the letters of a name, pixels."""
WALKING_SECONDS = 2.1
"""Time after which a walking robot is pictured, s."""
CAMERA_AZIMUTH = -0.8
"""Angle of the camera from the way ahead, rad."""
CAMERA_ELEVATION = 0.2
"""Angle of the camera above the ground, rad."""
DISTANCE_PER_LENGTH = 1.4
"""Smallest distance of the camera, in lengths of the robot."""
DISTANCE_PER_HEIGHT = 1.4
"""Smallest distance of the camera, in heights of the robot."""


def draw_robots(path: Path, show: Show) -> None:
    """Draw each robot with its name into an image file.

    A robot walks with the first policy that ships for it. Without one it stands in its default
    pose.

    Args:
        path: The image file.
        show: Function that shows the progress.
    """
    width, height = TILE
    num_rows = math.ceil(len(ROBOTS) / COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * width, num_rows * height))
    font = ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", NAME_SIZE)
    for index, robot in enumerate(ROBOTS.values()):
        tile = Image.fromarray(_picture_robot(robot)).resize(TILE, Image.Resampling.LANCZOS)
        name = robot.name.upper().replace("_", " ")
        ImageDraw.Draw(tile).text(NAME_POSITION, name, fill="white", font=font)
        row = index // COLUMNS
        column = index % COLUMNS
        sheet.paste(tile, (column * width, row * height))
        show("drawing", (index + 1) / len(ROBOTS), robot.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)


def _picture_robot(robot: RobotCfg) -> np.ndarray:
    """Return a picture of a robot. Shape: (2 · TILE[1], 2 · TILE[0], 3), uint8."""
    task_id = find_shipped_task(robot)
    if task_id is None:
        with closing(make_simulation("mujoco", robot, SimCfg(), 1, "cpu")) as sim:
            # Before this, the bodies have no poses.
            sim.forward(torch.tensor([0]))
            return _render_robot(sim)
    policy, cfg, _ = policy_and_task(task_id)
    scene = replace(make_scenes(cfg)[0], seconds=WALKING_SECONDS)
    with closing(make_watched_envs(task_id, cfg, policy)) as envs:
        moments = watch(envs, policy, tuple(policy.inputs), [scene])
        for _ in range(round(WALKING_SECONDS / cfg.sim.step_dt)):
            next(moments)
        return _render_robot(unwrap(envs).sim)


def find_shipped_task(robot: RobotCfg) -> str | None:
    """Return the first task of a robot for which a policy ships."""
    for task_id in SHIPPED:
        if make_task_cfg(task_id).robot == robot:
            return task_id
    return None


def _render_robot(sim: Simulation) -> np.ndarray:
    """Render the robot from a distance at which it fills the picture."""
    # Each robot is seen from the same side, whichever way it walked.
    azimuth = heading(sim.root_quat_w)[0].item() + CAMERA_AZIMUTH
    sim.viewer = aim_camera(sim.robot, azimuth)
    return sim.render(0, 2 * TILE[0], 2 * TILE[1])


def aim_camera(robot: RobotCfg, azimuth: float) -> ViewerCfg:
    """Return a camera that moves with a robot, at a distance at which it fills the picture.

    Args:
        robot: The robot.
        azimuth: Direction from the robot to the camera, from the x axis of the world, rad.
    """
    model, data = stand(robot)
    # Body 0 is the world, with the ground.
    is_robot = model.geom_bodyid > 0
    length = np.ptp(data.geom_xpos[is_robot, 0]) + 2 * model.geom_rbound[is_robot].mean()
    height = (data.geom_xpos[is_robot, 2] + model.geom_rbound[is_robot]).max()
    distance = max(DISTANCE_PER_LENGTH * length, DISTANCE_PER_HEIGHT * height)
    # The camera's origin is the base, and it looks at the middle of the robot's height.
    middle = 0.5 * height - robot.base_height
    along_ground = distance * math.cos(CAMERA_ELEVATION)
    eye = (
        along_ground * math.cos(azimuth),
        along_ground * math.sin(azimuth),
        middle + distance * math.sin(CAMERA_ELEVATION),
    )
    return ViewerCfg(eye=eye, lookat=(0.0, 0.0, middle), origin_type="asset_root")
