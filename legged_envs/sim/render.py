import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
import torch

from legged_envs.robots import RobotCfg
from legged_envs.sim.scene import RobotView
from legged_envs.sim.simulation import Pose

_GHOST_RGBA = (0.1, 0.55, 0.35, 0.35)
_NO_SHADOW = mujoco.mjtCatBit.mjCAT_DECOR.value  # decoration is all that the renderer lets cast no shadow


@dataclass(eq=False)
class SceneRenderer:
    """Draws environments with MuJoCo's renderer, whichever engine simulates them."""

    model: mujoco.MjModel
    robot: RobotCfg
    view: RobotView
    num_envs: int
    get_data: Callable[[int, mujoco.MjData], object]
    """``get_data(env_id, data)`` writes the state of an environment to ``data``."""
    renderer: mujoco.Renderer | None = None
    """MuJoCo's renderer of the last picture, of that picture's size."""
    _window: Any = None
    _data: dict[str, mujoco.MjData] = field(default_factory=dict)

    def render(self, env_id: int, width: int, height: int, ghost: Pose | None) -> np.ndarray:
        if ghost is not None:
            ghost.check(self.robot)
        data = self._load("picture", env_id)
        if self.renderer is None or (self.renderer.width, self.renderer.height) != (width, height):
            if self.renderer is not None:
                self.renderer.close()
            self.renderer = self._start(width, height)
        self.renderer.update_scene(data, camera="track")
        if ghost is not None:
            self._add_ghost(self.renderer.scene, data, ghost)
        return self.renderer.render()

    def show(self, env_id: int, label: str) -> bool:
        data = self._load("window", env_id)
        if self._window is None:
            import mujoco.viewer

            self._window = mujoco.viewer.launch_passive(self.model, data)
        self._window.set_texts((None, None, label, None))
        self._window.sync()
        return bool(self._window.is_running())

    def close(self) -> None:
        for part in (self._window, self.renderer):
            if part is not None:
                part.close()
        self._window = self.renderer = None

    def _load(self, use: str, env_id: int) -> mujoco.MjData:
        if not 0 <= env_id < self.num_envs:
            raise ValueError(f"env_id={env_id} is not in [0, {self.num_envs})")
        if use not in self._data:
            self._data[use] = mujoco.MjData(self.model)
        data = self._data[use]
        self.get_data(env_id, data)
        mujoco.mj_forward(self.model, data)
        return data

    def _add_ghost(self, scene: mujoco.MjvScene, data: mujoco.MjData, ghost: Pose) -> None:
        """Append the shapes of the robot in a pose, overwriting ``data``."""
        if self.view.root_qpos is not None:
            data.qpos[self.view.root_qpos] = torch.cat((ghost.root_pos_w, ghost.root_quat_w)).cpu().numpy()
        data.qpos[self.view.joint_qpos] = ghost.joint_pos.cpu().numpy()
        mujoco.mj_kinematics(self.model, data)
        first = scene.ngeom
        dynamic = mujoco.mjtCatBit.mjCAT_DYNAMIC.value  # the robot; the ground is static
        mujoco.mjv_addGeoms(self.model, data, mujoco.MjvOption(), mujoco.MjvPerturb(), dynamic, scene)
        for geom in scene.geoms[first : scene.ngeom]:
            geom.rgba, geom.emission, geom.category = _GHOST_RGBA, 0.0, _NO_SHADOW

    def _start(self, width: int, height: int) -> mujoco.Renderer:
        try:
            return mujoco.Renderer(self.model, height=height, width=width)
        except Exception as error:
            wrong = f"rendering failed to start with MUJOCO_GL={os.environ.get('MUJOCO_GL', '')!r}: {error}"
            how = "install EGL (Debian: apt-get install libegl1 libgl1-mesa-dri libopengl0)"
            how = f"Without a display, set MUJOCO_GL=egl before mujoco is first imported and {how}"
            raise RuntimeError(f"{wrong}. {how}") from error
