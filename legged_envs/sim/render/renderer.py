"""Pictures, window and body poses of a simulation, with MuJoCo's renderer on every engine."""

import threading
from collections.abc import Callable

import mujoco
import numpy as np

from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import Pose, ViewerCfg
from legged_envs.sim.render.camera import find_camera
from legged_envs.sim.render.offscreen import OffscreenRenderer
from legged_envs.sim.render.shapes import draw_ghost
from legged_envs.sim.render.window import Window
from legged_envs.sim.robot_view import RobotView

Decoration = Callable[[mujoco.MjvScene, int], None]
"""Type of a function ``draw(scene, env_id)`` that adds shapes, such as arrows, to a picture."""


class SceneRenderer:
    """Draws pictures of the environments of a simulation, and shows them in a window.

    It uses MuJoCo's renderer with every engine. A ghost is a transparent second robot in a given
    pose, such as the pose of a reference motion.

    Args:
        model: MuJoCo model of the simulated scene.
        robot: Robot with the shapes of a ghost.
        view: Indices of this robot's parts in the arrays of ``model``.
        num_envs: Number of environments.
        get_data: Function ``get_data(env_id, data)`` that writes the state of an environment to
            an ``MjData`` of ``model``.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        robot: RobotCfg,
        view: RobotView,
        num_envs: int,
        get_data: Callable[[int, mujoco.MjData], object],
    ):
        self.simulated_model = model
        """MuJoCo model of the simulated scene."""
        self.model = model
        """MuJoCo model that is drawn. It has more shapes than ``simulated_model`` if the viewer has
        an appearance of the robots."""
        self.robot = robot
        """Robot with the shapes of a ghost."""
        self.view = view
        """Indices of the parts of ``robot`` in the arrays of the model."""
        self.num_envs = num_envs
        """Number of environments."""
        self.get_data = get_data
        """Function ``get_data(env_id, data)`` that writes the state of an environment to an
        ``MjData`` of ``simulated_model``."""
        self.roots: dict[str, slice] = {}
        """Columns in ``qpos`` of the free joint of each robot and object, by name."""
        self.viewer = ViewerCfg()
        """Camera settings of pictures and of the window."""
        self.decorations: list[Decoration] = []
        """Functions ``draw(scene, env_id)`` that add shapes to every picture and to the window."""
        self.compile_with: Callable[[str], mujoco.MjModel] | None = None
        """Function that compiles the scene with an appearance of the robots, a value of
        ``ViewerCfg.appearance``. None: appearances are not supported."""
        self._appearance: str | None = None
        self._offscreen = OffscreenRenderer()
        self._window: Window | None = None
        self._lock = threading.Lock()
        self._data: dict[str, mujoco.MjData] = {}

    @property
    def renderer(self) -> mujoco.Renderer | None:
        """MuJoCo's renderer of the last picture. None before the first picture."""
        return self._offscreen.renderer

    def render(self, env_id: int, width: int, height: int, ghost: Pose | None) -> np.ndarray:
        """Draw a picture of one environment.

        It can be called from any thread. A call waits until the calls of other threads are
        finished.

        Args:
            env_id: Index of the environment.
            width: Width, pixels.
            height: Height, pixels.
            ghost: Pose of a transparent second robot in the picture. None: there is none.

        Returns:
            Picture. Shape: (height, width, 3), uint8.

        Raises:
            ValueError: ``env_id``, the viewer or the ghost is wrong.
            RuntimeError: OpenGL does not start.
        """
        if ghost is not None:
            ghost.check(self.robot)
        with self._lock:
            data = self._load("picture", env_id)
            with self._offscreen.open(self.model, width, height) as renderer:
                camera = self._find_camera(data)
                if isinstance(camera, mujoco.MjvCamera):
                    # Without this the ground and the lights would lag by one picture.
                    mujoco.mjv_updateCamera(self.model, data, camera, renderer.scene)
                renderer.update_scene(data, camera)
                for draw in self.decorations:
                    draw(renderer.scene, env_id)
                if ghost is not None:
                    draw_ghost(renderer.scene, self.model, data, self.view, ghost)
                return renderer.render()

    def drawn(self) -> tuple[mujoco.MjModel, np.ndarray]:
        """Return the model that is drawn, and the present poses of its bodies.

        A pose is a position, m, and an orientation (w, x, y, z) in the world. Shape of the poses:
        (num_envs, number of bodies, 7).
        """
        poses = []
        # Poses need only mj_kinematics, which takes a small part of the time of mj_forward.
        for env_id in range(self.num_envs):
            data = self._load("poses", env_id, mujoco.mj_kinematics)
            poses.append(np.concatenate((data.xpos, data.xquat), axis=1))
        return self.model, np.stack(poses)

    def contact_points(self, env_id: int) -> np.ndarray:
        """Return where shapes touch in an environment, m, world frame. Shape: (n, 3)."""
        model = self.simulated_model
        data = self._data_of("contacts", model)
        self.get_data(env_id, data)
        # Bounding volumes of collisions need the centres of mass, too.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        # Shapes within their margin, but apart, do not touch.
        is_touching = data.contact.dist <= 0.0
        return data.contact.pos[is_touching]

    def show(self, env_id: int, label: str, on_key: Callable[[int], None] | None = None) -> bool:
        """Show an environment in a window, which the first call opens.

        Args:
            env_id: Index of the environment that is shown.
            label: Text in the window.
            on_key: Function that is called with GLFW's number of each key that is pressed.

        Returns:
            True if the window is open.
        """
        data = self._load("window", env_id)
        if self._window is None:
            self._window = Window(self.model, data, on_key)
            if self.viewer.eye is None:
                # An appearance has other numbers of bodies, but the same names.
                base = self.simulated_model.body(self.view.bodies.start).name
                self._window.follow(self.model.body(base).id, self.robot.base_height)
        if self.viewer.eye is not None:
            camera = self._find_camera(data)
            if isinstance(camera, mujoco.MjvCamera):
                self._window.aim(camera)
        # The window keeps added shapes: shapes of the last call are removed.
        self._window.scene.ngeom = 0
        for draw in self.decorations:
            draw(self._window.scene, env_id)
        return self._window.update(label)

    def close(self) -> None:
        """Close the window and the renderer. The next picture opens a new renderer."""
        if self._window is not None:
            self._window.close()
        self._window = None
        self._offscreen.close()

    def _find_camera(self, data: mujoco.MjData) -> str | mujoco.MjvCamera:
        return find_camera(self.viewer, self.model, data, self.roots)

    def _load(
        self,
        use: str,
        env_id: int,
        forward: Callable[[mujoco.MjModel, mujoco.MjData], None] = mujoco.mj_forward,
    ) -> mujoco.MjData:
        """Return data of the drawn model with the state of an environment.

        Args:
            use: ``"picture"``, ``"poses"`` or ``"window"``: each has separate data.
            env_id: Environment that is loaded.
            forward: Function of MuJoCo that computes what is drawn.

        Raises:
            ValueError: There is no such environment, or the appearance is wrong.
        """
        if not 0 <= env_id < self.num_envs:
            raise ValueError(f"env_id={env_id} is not in [0, {self.num_envs})")
        # The viewer may be changed at any time, so it is compared here.
        if self._appearance != self.viewer.appearance:
            self._change_appearance(self.viewer.appearance)
        data = self._data_of(use, self.model)
        if self.model is self.simulated_model:
            self.get_data(env_id, data)
        else:
            # Appearances have the same joints, but more bodies and shapes.
            simulated = self._data_of("simulated", self.simulated_model)
            self.get_data(env_id, simulated)
            data.qpos[:] = simulated.qpos
        forward(self.model, data)
        return data

    def _data_of(self, use: str, model: mujoco.MjModel) -> mujoco.MjData:
        if use not in self._data:
            self._data[use] = mujoco.MjData(model)
        return self._data[use]

    def _change_appearance(self, appearance: str | None) -> None:
        """Draw the robots in another appearance from the next picture on."""
        if self.compile_with is None:
            raise ValueError(
                f"ViewerCfg.appearance={appearance!r} needs a simulation of make_simulation"
            )
        model = self.simulated_model if appearance is None else self.compile_with(appearance)
        # Window, renderer and data are of the old model, so they are made again.
        self.close()
        self._data.clear()
        self.model = model
        self._appearance = appearance
