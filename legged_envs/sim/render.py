import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
import torch

from legged_envs.checks import check_known
from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import ViewerCfg
from legged_envs.sim.scene import RobotView
from legged_envs.sim.simulation import Pose, rendering_error

_GHOST_RGBA = (0.1, 0.55, 0.35, 0.35)
_NO_SHADOW = (
    mujoco.mjtCatBit.mjCAT_DECOR.value
)  # decoration is all that the renderer lets cast no shadow


@dataclass(eq=False)
class SceneRenderer:
    """Draws environments with MuJoCo's renderer, whichever engine simulates them."""

    model: mujoco.MjModel
    """What is simulated, and what is drawn unless robots have another appearance."""
    robot: RobotCfg
    view: RobotView
    num_envs: int
    get_data: Callable[[int, mujoco.MjData], object]
    """``get_data(env_id, data)`` writes the state of an environment to ``data``."""
    roots: dict[str, slice] = field(default_factory=dict)
    """Where the free joint of each robot and object is in ``qpos``."""
    viewer: ViewerCfg = field(default_factory=ViewerCfg)
    decorations: list[Callable[[mujoco.MjvScene, int], None]] = field(default_factory=list)
    dressed: Callable[[str], mujoco.MjModel] | None = None
    """Makes the model in which the robots have the appearance of that name."""
    renderer: mujoco.Renderer | None = None
    """MuJoCo's renderer of the last picture, of that picture's size."""
    _appearance: str | None = None
    _window: Any = None
    _aimed: str | None = None
    _of_thread: threading.local = field(default_factory=threading.local)
    _lock: Any = field(default_factory=threading.Lock)
    _data: dict[str, mujoco.MjData] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.simulated = self.model

    def render(self, env_id: int, width: int, height: int, ghost: Pose | None) -> np.ndarray:
        if ghost is not None:
            ghost.check(self.robot)
        with self._lock:
            data = self._load("picture", env_id)
            with self._start(width, height) as renderer:
                if not isinstance(
                    camera := self._camera(data), str
                ):  # else ground and lights lag by one picture
                    mujoco.mjv_updateCamera(self.model, data, camera, renderer.scene)
                renderer.update_scene(data, camera)
                for decorate in self.decorations:
                    decorate(renderer.scene, env_id)
                if ghost is not None:
                    self._add_ghost(renderer.scene, data, ghost)
                return renderer.render()

    def drawn(self) -> tuple[mujoco.MjModel, np.ndarray]:
        poses = []
        for i in range(self.num_envs):
            data = self._load("poses", i, mujoco.mj_kinematics)
            poses.append(np.concatenate((data.xpos, data.xquat), axis=1))
        return self.model, np.stack(poses)

    def show(self, env_id: int, label: str, on_key: Callable[[int], None] | None = None) -> bool:
        data = self._load("window", env_id)
        if self._window is None:
            import mujoco.viewer

            self._window = mujoco.viewer.launch_passive(self.model, data, key_callback=on_key)
            self._aimed = None
        self._aim_window(data)
        self._window.user_scn.ngeom = 0
        for decorate in self.decorations:
            decorate(self._window.user_scn, env_id)
        self._window.set_texts((None, None, label, None))
        self._window.sync()
        return bool(self._window.is_running())

    def _aim_window(self, data: mujoco.MjData) -> None:
        """Point the window's camera where ``viewer`` says when that changes; the mouse moves it in between."""
        if self.viewer.eye is not None and (aim := self._camera(data)) and str(aim) != self._aimed:
            for name in ("type", "lookat", "distance", "azimuth", "elevation"):
                setattr(self._window.cam, name, getattr(aim, name))
            self._aimed = str(aim)

    def _camera(self, data: mujoco.MjData) -> "str | mujoco.MjvCamera":
        """The camera of ``viewer``; ValueError if it, or the asset it is about, does not exist."""
        viewer = self.viewer
        viewer.check()
        if viewer.eye is None:
            known = [self.model.camera(i).name for i in range(self.model.ncam)]
            check_known(
                "ViewerCfg.cam_prim_path: there is no camera",
                (viewer.cam_prim_path,),
                known,
                "cameras",
            )
            return viewer.cam_prim_path
        target = np.array(viewer.lookat or (0.0, 0.0, 0.0))
        way, camera = target - viewer.eye, mujoco.MjvCamera()
        camera.distance = np.linalg.norm(way)
        camera.azimuth = math.degrees(math.atan2(way[1], way[0]))
        camera.elevation = math.degrees(math.asin(way[2] / camera.distance))
        camera.lookat = target
        if viewer.origin_type == "asset_root":
            asset = viewer.asset_name or "robot"
            check_known(
                "ViewerCfg.asset_name: there is no", (asset,), self.roots, "robots and objects"
            )
            camera.lookat += data.qpos[self.roots[asset]][:3]
        return camera

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
        self._close_renderer()
        self._window = None

    def _load(
        self, use: str, env_id: int, forward: Callable[..., None] = mujoco.mj_forward
    ) -> mujoco.MjData:
        if not 0 <= env_id < self.num_envs:
            raise ValueError(f"env_id={env_id} is not in [0, {self.num_envs})")
        if self._appearance != self.viewer.appearance:
            self._dress(self.viewer.appearance)
        data = self._kept(use, self.model)
        if self.model is self.simulated:
            self.get_data(env_id, data)
        else:
            self.get_data(env_id, simulated := self._kept("simulated", self.simulated))
            data.qpos[:] = simulated.qpos
        forward(self.model, data)
        return data

    def _kept(self, use: str, model: mujoco.MjModel) -> mujoco.MjData:
        if use not in self._data:
            self._data[use] = mujoco.MjData(model)
        return self._data[use]

    def _dress(self, appearance: str | None) -> None:
        """Draw the robots in another appearance from the next picture on."""
        if self.dressed is None:
            raise ValueError(
                f"ViewerCfg.appearance={appearance!r} needs a simulation of make_simulation"
            )
        model = self.simulated if appearance is None else self.dressed(appearance)
        self.close()
        self._data.clear()
        self.model, self._appearance = model, appearance

    def _add_ghost(self, scene: mujoco.MjvScene, data: mujoco.MjData, ghost: Pose) -> None:
        """Append the shapes of the robot in a pose, overwriting ``data``."""
        if self.view.root_qpos is not None:
            data.qpos[self.view.root_qpos] = (
                torch.cat((ghost.root_pos_w, ghost.root_quat_w)).cpu().numpy()
            )
        data.qpos[self.view.joint_qpos] = ghost.joint_pos.cpu().numpy()
        mujoco.mj_kinematics(self.model, data)
        first = scene.ngeom
        dynamic = mujoco.mjtCatBit.mjCAT_DYNAMIC.value  # the robot; the ground is static
        mujoco.mjv_addGeoms(
            self.model, data, mujoco.MjvOption(), mujoco.MjvPerturb(), dynamic, scene
        )
        for geom in scene.geoms[first : scene.ngeom]:
            geom.rgba, geom.emission, geom.category = _GHOST_RGBA, 0.0, _NO_SHADOW

    @contextmanager
    def _start(self, width: int, height: int) -> Iterator[mujoco.Renderer]:
        """The renderer, which afterwards is of no thread, so that any can draw next."""
        try:
            if not hasattr(self._of_thread, "context"):  # returning to it lets go of the renderer's
                self._of_thread.context = mujoco.GLContext(1, 1)
            with self._of_thread.context.as_current():
                if self.renderer is None or (self.renderer.width, self.renderer.height) != (
                    width,
                    height,
                ):
                    self._close_renderer()
                    self.renderer = mujoco.Renderer(self.model, height=height, width=width)
        except Exception as error:
            raise rendering_error("rendering failed to start", error) from error
        with self._of_thread.context.as_current():
            yield self.renderer

    def _close_renderer(self) -> None:
        renderer, self.renderer = self.renderer, None
        if renderer is not None:
            renderer.close()


def draw_points(scene: mujoco.MjvScene, points: torch.Tensor, radius: float = 0.012) -> None:
    """Add small balls at ``points`` (n, 3), m in the world, as far as there is room in the scene."""
    rgba, shape = np.array((0.95, 0.35, 0.1, 1.0), np.float32), mujoco.mjtGeom.mjGEOM_SPHERE
    for point in points.double().cpu().numpy()[: scene.maxgeom - scene.ngeom]:
        mujoco.mjv_initGeom(
            scene.geoms[scene.ngeom], shape, np.full(3, radius), point, np.eye(3).ravel(), rgba
        )
        scene.geoms[scene.ngeom].category = _NO_SHADOW
        scene.ngeom += 1
