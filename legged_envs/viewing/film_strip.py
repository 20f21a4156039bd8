"""A picture of all robots of the package side by side."""

import math
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

from legged_envs.envs import unwrap
from legged_envs.policy.policy import SHIPPED, policy_and_task
from legged_envs.robots import ROBOTS, RobotCfg
from legged_envs.rotation import heading
from legged_envs.runs.progress import Show
from legged_envs.sim import SimCfg, Simulation, ViewerCfg, make_simulation
from legged_envs.sim.gains import stand
from legged_envs.tasks import make_task_cfg
from legged_envs.viewing.watch import make_watched, scenes, watch

COLUMNS, TILE = 4, (480, 360)
"""Pictures in a row, and the pixels of each; they are rendered twice as large."""
SECONDS = 2.1
"""When a robot that walks is pictured, s."""
_AZIMUTH, _ELEVATION = -0.8, 0.2
_WIDE, _TALL = 1.4, 1.4
"""Where the camera is: its angles from the way ahead and from the ground, rad, and its distance, in parts of the
robot's length and height."""


def draw_robots(path: Path, show: Show) -> None:
    """Draw each robot with its name, as it walks with the first policy that ships for it or stands in its default pose,
    into an image file."""
    rows = -(-len(ROBOTS) // COLUMNS)
    sheet, font = (
        Image.new("RGB", (COLUMNS * TILE[0], rows * TILE[1])),
        f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf",
    )
    for i, robot in enumerate(ROBOTS.values()):
        tile = Image.fromarray(_picture(robot)).resize(TILE, Image.Resampling.LANCZOS)
        ImageDraw.Draw(tile).text(
            (16, 12), robot.name.upper().replace("_", " "), "white", ImageFont.truetype(font, 26)
        )
        sheet.paste(tile, (i % COLUMNS * TILE[0], i // COLUMNS * TILE[1]))
        show("drawing", (i + 1) / len(ROBOTS), robot.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)


def _picture(robot: RobotCfg) -> np.ndarray:
    task_id = next((task_id for task_id in SHIPPED if make_task_cfg(task_id).robot == robot), None)
    if task_id is None:
        with closing(make_simulation("mujoco", robot, SimCfg(), 1, "cpu")) as sim:
            sim.forward(torch.tensor([0]))
            return _looked_at(sim)
    policy, cfg, _ = policy_and_task(task_id)
    with closing(make_watched(task_id, cfg, policy)) as envs:
        shown = watch(
            envs, policy, tuple(policy.inputs), [replace(scenes(cfg)[0], seconds=SECONDS)]
        )
        for _ in islice(shown, round(SECONDS / cfg.sim.step_dt)):
            pass
        return _looked_at(unwrap(envs).sim)


def _looked_at(sim: Simulation) -> np.ndarray:
    model, data = stand(sim.robot)
    own = model.geom_bodyid > 0
    length = np.ptp(data.geom_xpos[own, 0]) + 2 * model.geom_rbound[own].mean()
    height = (data.geom_xpos[own, 2] + model.geom_rbound[own]).max()
    distance, azimuth = (
        max(_WIDE * length, _TALL * height),
        heading(sim.root_quat_w)[0].item() + _AZIMUTH,
    )
    middle = 0.5 * height - sim.robot.base_height
    flat, up = distance * math.cos(_ELEVATION), middle + distance * math.sin(_ELEVATION)
    eye = (flat * math.cos(azimuth), flat * math.sin(azimuth), up)
    sim.viewer = ViewerCfg(eye=eye, lookat=(0.0, 0.0, middle), origin_type="asset_root")
    return sim.render(0, 2 * TILE[0], 2 * TILE[1])
