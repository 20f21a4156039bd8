"""Draws robots and ground on the page."""

import math
from collections import deque
from typing import Any

import numpy as np
import viser

from legged_envs.terrains import Terrain
from legged_envs.viewing.web.meshes import make_body_mesh, make_field_mesh
from legged_envs.viewing.web.overlays import Overlays
from legged_envs.viewing.web.session import Session

SPACING = 2.0
"""Distance of neighbouring environments on a plane, m. Each has a world of its own."""
WINDOW_HALF_WIDTH = 150
"""Number of points of a height field that are drawn to each side of a robot."""
WINDOW_STEP = 50
"""Number of points by which the drawn part of a height field moves at once."""
LEASH = 0.8
"""Largest distance of a robot from its place next to the followed robot along each axis, m."""
EASING = 0.3
"""Fraction of the way to the followed robot that the picture moves in a frame, and of the way back
to its place that a robot moves."""
GROUND_COLOR = (150, 155, 150)
"""Color of a height field."""

MOST_DRAG_EVENTS = 1000
"""Number of events of the mouse that wait for the next frame. Older ones are dropped."""

DragEvent = tuple[str, int, np.ndarray]
"""Phase of a drag, index of the environment, and displacement of the mouse, m."""


class SceneStream:
    """The robots of a session on the page.

    Each body of the model is one batch of meshes. The environments stand next to each other if the
    ground is a plane.

    Args:
        server: Server of the page.
        session: The session.
    """

    def __init__(self, server: viser.ViserServer, session: Session):
        self._server = server
        self._session = session
        self._core: Any = session.core
        self._ground = self._core.sim.ground
        # Shadows take a browser without a GPU most of its time.
        server.scene.configure_default_lights(cast_shadow=False)
        self._world = server.scene.add_frame("/world", show_axes=False)
        self._places = self._arrange_worlds()

        self.offsets = self._places.copy()
        """Position of the world of each environment on the page, m. Shape: (num_envs, 3)."""
        self.bodies = self._add_bodies()
        """Handle of the meshes of each body, by its index in the model."""
        self.overlays = Overlays(server.scene, session)
        """Arrows and points on the robots."""
        self.follows = True
        """True: the picture follows a robot. False: it stays where it is."""
        self._field_window: list[int] = []
        self._center = np.zeros(3)
        self._drag_events: deque[DragEvent] = deque(maxlen=MOST_DRAG_EVENTS)
        self._hand: tuple[int, np.ndarray] | None = None
        if self._ground is None:
            self._add_floor()

    @property
    def width(self) -> float:
        """Distance of the outermost robots that stand next to each other, m."""
        low = self._places.min(axis=0)
        high = self._places.max(axis=0)
        return float((high - low).max())

    def _arrange_worlds(self) -> np.ndarray:
        """Return the positions of the worlds on a grid, m. The first one is in the middle."""
        num_envs = self._core.num_envs
        # On a height field, all environments share one world.
        if self._ground is not None:
            return np.zeros((num_envs, 3))
        reach = math.ceil(math.sqrt(num_envs))
        steps = range(-reach, reach + 1)
        points = [(x, y, 0.0) for x in steps for y in steps]
        points.sort(key=lambda point: math.hypot(*point))
        return SPACING * np.array(points[:num_envs])

    def _add_bodies(self) -> dict[int, viser.BatchedGlbHandle]:
        model, poses = self._core.sim.drawn()
        bodies = {}
        for body in range(model.nbody):
            mesh = make_body_mesh(model, body)
            if mesh is None:
                continue
            # One batch for all robots: the browser draws it in one call.
            bodies[body] = self._server.scene.add_batched_meshes_trimesh(
                f"/world/{body}",
                mesh,
                batched_positions=poses[:, body, :3],
                batched_wxyzs=poses[:, body, 3:],
            )
            # Only the first robot of a scene can be pulled.
            if model.body(body).name in self._core.sim.body_names:
                bodies[body].on_drag(self._collect_drag)
        return bodies

    def _add_floor(self) -> None:
        self._server.scene.add_grid(
            "/world/ground",
            infinite_grid=True,
            section_color=(195, 200, 206),
            plane_color=(232, 234, 237),
            plane_opacity=1.0,
            fade_distance=40.0,
        )

    async def _collect_drag(self, event: Any) -> None:
        # The server calls this in a thread of its own, so the event waits for the next frame.
        displacement = np.subtract(event.end_position, event.start_position)
        is_vector = displacement.shape == (3,) and bool(np.isfinite(displacement).all())
        env_id = event.instance_index
        # A program may send anything instead of the page.
        if is_vector and isinstance(env_id, int) and 0 <= env_id < self._core.num_envs:
            self._drag_events.append((event.phase, env_id, displacement))

    def update_pull(self) -> None:
        """Tell the session where the mouse wants the base of the robot that it holds."""
        if self._session.pull is None:
            # The session let go of the robot, because its episode started again.
            self._hand = None
        while self._drag_events:
            phase, env_id, displacement = self._drag_events.popleft()
            if phase == "start" or self._hand is not None:
                position = self._core.robot.root_pos_w[env_id].cpu().numpy()
                self._hand = (env_id, position + self._page_offset(env_id) + displacement)
            if phase == "end":
                self._hand = None
        if self._hand is None:
            self._session.pull = None
        else:
            env_id, target_on_page = self._hand
            self._session.pull = (env_id, target_on_page - self._page_offset(env_id))

    def _page_offset(self, env_id: int) -> np.ndarray:
        """Return the present position of the world of an environment on the page, m."""
        offset: np.ndarray = self.offsets[env_id] - self._center
        return offset

    def draw(self, followed: int) -> None:
        """Show this moment.

        Args:
            followed: Environment of the robot that the picture follows.
        """
        _, poses = self._core.sim.drawn()
        root = self._core.robot.root_pos_w[followed].cpu().numpy()
        if self._ground is None:
            self._keep_together(followed)
        if self.follows:
            self._follow(root + self.offsets[followed])
        # All changes of a frame arrive together.
        with self._server.atomic():
            positions = poses[..., :3] + self.offsets[:, None]
            for body, handle in self.bodies.items():
                handle.batched_positions = positions[:, body]
                handle.batched_wxyzs = poses[:, body, 3:]
            self.overlays.draw(followed, self.offsets)
            if self._ground is not None:
                self._draw_field(self._ground.terrain, root)
            self._world.position = -self._center

    def _follow(self, position: np.ndarray) -> None:
        """Move the center of the picture towards a robot.

        Args:
            position: Position of the robot's base, m.
        """
        target = position - (0.0, 0.0, self._core.cfg.robot.base_height)
        way = target - self._center
        # A robot that starts again, or another robot, may be far away. Then the picture jumps.
        is_far = np.abs(way).max() > SPACING
        self._center = self._center + way * (1.0 if is_far else EASING)

    def _keep_together(self, followed: int) -> None:
        """Move the worlds of robots that have left their places next to the followed robot.

        Robots in separate worlds walk apart, and would leave the picture.
        """
        shown = self._core.robot.root_pos_w.cpu().numpy() + self.offsets
        places = self._places - self._places[followed]
        drift = shown - shown[followed] - places
        excess = drift - drift.clip(-LEASH, LEASH)
        # Robots stay on the ground.
        excess[:, 2] = 0.0
        if self._session.pull is not None:
            # The mouse decides where this robot is.
            env_id, _ = self._session.pull
            excess[env_id] = 0.0
        is_far = np.abs(excess).max(axis=1, keepdims=True) > SPACING
        self.offsets -= excess * np.where(is_far, 1.0, EASING)

    def _draw_field(self, terrain: Terrain, root: np.ndarray) -> None:
        """Draw the part of a height field around a robot.

        Args:
            terrain: The terrain.
            root: Position of the robot's base, m.
        """
        indices = (root[:2] - terrain.low) / terrain.horizontal_scale
        window = [round(index / WINDOW_STEP) * WINDOW_STEP for index in indices]
        # A mesh of the whole field would be too large to send, and one around each position too
        # many.
        if window == self._field_window:
            return
        self._field_window = window
        rows = _window_around(window[0], terrain.heights.shape[0])
        columns = _window_around(window[1], terrain.heights.shape[1])
        points, triangles = make_field_mesh(terrain, rows, columns)
        self._server.scene.add_mesh_simple(
            "/world/ground", points, triangles, color=GROUND_COLOR, flat_shading=True
        )


def _window_around(center: int, size: int) -> np.ndarray:
    """Return the indices around ``center`` that lie within 0 to ``size``, at least two."""
    first = max(0, min(center - WINDOW_HALF_WIDTH, size - 2))
    end = max(2, min(center + WINDOW_HALF_WIDTH + 1, size))
    return np.arange(first, end)
