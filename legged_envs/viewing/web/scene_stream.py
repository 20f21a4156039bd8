"""Draws robots, ground, contact forces and height scans on the page."""

import math
from collections import deque
from typing import Any

import numpy as np
import torch
import viser

from legged_envs.mdp.scan import scan_points
from legged_envs.terrains import Terrain
from legged_envs.viewing.watch import find_height_scan
from legged_envs.viewing.web.meshes import make_body_mesh, make_field_mesh
from legged_envs.viewing.web.session import Session

SPACING = 2.0
"""Distance of neighbouring environments on a plane, m. Each has a world of its own."""
WINDOW_HALF_WIDTH = 150
"""Number of points of a height field that are drawn to each side of a robot."""
WINDOW_STEP = 50
"""Number of points by which the drawn part of a height field moves at once."""
WEIGHT_ARROW_LENGTH = 0.5
"""Length of the arrow of a force that carries the robot, m."""
SMALLEST_SHOWN_FORCE = 1.0
"""Smallest contact force that is drawn, N."""
SCAN_HEIGHT = 0.015
"""Height at which points of a scan are drawn above the ground, m. The ground would hide one half of
each point."""
CAMERA_EASING = 0.3
"""Fraction of the way to the followed robot that the picture moves in a frame."""
CAMERA_POSITION = np.array((1.1, -1.5, 1.0))
"""Position of the camera for a single robot, m."""
CAMERA_TARGET = (0.0, 0.0, 0.2)
"""Point that the camera looks at, m."""
HIGHLIGHT_COLOR = (240, 80, 30)
"""Color of forces and scans."""
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
        side = math.ceil(math.sqrt(self._core.num_envs))

        self.offsets = self._arrange_worlds(side)
        """Position of the world of each environment on the page, m. Shape: (num_envs, 3)."""
        self.bodies = self._add_bodies()
        """Handle of the meshes of each body, by its index in the model."""
        self.forces = self._add_forces()
        """Handle of the contact forces."""
        self.points = self._add_scan_points()
        """Handle of the points of the height scan."""
        self._scan = self._find_scan()
        mass = self._core.sim.default_parameter("body_mass")[0].sum().item()
        self._weight = 9.81 * mass
        self._field_window: list[int] = []
        self._center = np.zeros(3)
        self._drag_events: deque[DragEvent] = deque(maxlen=MOST_DRAG_EVENTS)
        self._hand: tuple[int, np.ndarray] | None = None
        distance = 1.0
        if self._ground is None:
            self._add_floor()
            distance += SPACING * (side - 1) / 2
        server.initial_camera.position = tuple(distance * CAMERA_POSITION)
        server.initial_camera.look_at = CAMERA_TARGET

    def _arrange_worlds(self, side: int) -> np.ndarray:
        """Return the positions of the worlds in a square grid with ``side`` columns."""
        places = []
        for env_id in range(self._core.num_envs):
            places.append((env_id // side, env_id % side, 0.0))
        centered = np.array(places) - np.mean(places, axis=0)
        # On a height field, all environments share one world.
        return centered * (SPACING if self._ground is None else 0.0)

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

    def _add_forces(self) -> Any:
        scene: Any = self._server.scene
        return scene.add_arrows(
            "/world/forces",
            np.zeros((0, 2, 3), np.float32),
            HIGHLIGHT_COLOR,
            visible=False,
            shaft_radius=0.008,
            head_radius=0.02,
            head_length=0.05,
        )

    def _add_scan_points(self) -> viser.PointCloudHandle:
        return self._server.scene.add_point_cloud(
            "/world/scan",
            np.zeros((0, 3), np.float32),
            HIGHLIGHT_COLOR,
            point_size=0.025,
            precision="float32",
        )

    def _add_floor(self) -> None:
        self._server.scene.add_grid(
            "/world/ground",
            infinite_grid=True,
            section_color=(195, 200, 206),
            plane_color=(232, 234, 237),
            plane_opacity=1.0,
            fade_distance=40.0,
        )

    def _find_scan(self) -> dict[str, Any]:
        """Return the parameters of the height scan. Without one, no points are drawn."""
        try:
            return find_height_scan(self._core.cfg)
        except ValueError:
            return {}

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
        self._follow(root + self.offsets[followed])
        # All changes of a frame arrive together.
        with self._server.atomic():
            positions = poses[..., :3] + self.offsets[:, None]
            for body, handle in self.bodies.items():
                handle.batched_positions = positions[:, body]
                handle.batched_wxyzs = poses[:, body, 3:]
            if self.forces.visible:
                self._draw_forces()
            if self.points.visible:
                self._draw_scan(followed)
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
        self._center = self._center + way * (1.0 if is_far else CAMERA_EASING)

    def _draw_forces(self) -> None:
        sim = self._core.sim
        start = sim.body_pos_w + torch.from_numpy(self.offsets).float()[:, None]
        force = sim.contact_force_w
        end = start + force * (WEIGHT_ARROW_LENGTH / self._weight)
        # Bodies without contact would have arrows without length.
        is_shown = force.norm(dim=-1) > SMALLEST_SHOWN_FORCE
        self.forces.points = torch.stack((start, end), dim=2)[is_shown].numpy()

    def _draw_scan(self, followed: int) -> None:
        points = scan_points(self._core, **self._scan)[followed].numpy()
        shift = self.offsets[followed] + np.array((0.0, 0.0, SCAN_HEIGHT))
        self.points.points = points + shift.astype(np.float32)

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
