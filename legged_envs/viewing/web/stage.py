"""What the page shows: robots, the ground, contact forces and the points of a height scan."""

import math
from collections import deque
from typing import Any

import mujoco
import numpy as np
import torch
import trimesh
import viser
from trimesh.creation import box, capsule, cylinder, icosphere
from trimesh.transformations import quaternion_matrix

from legged_envs.mdp.scan import scan_points
from legged_envs.terrains import Terrain
from legged_envs.viewing.watch import scan_of
from legged_envs.viewing.web.play import Session

SPACING = 2.0
"""Distance of neighbours on a plane, where each has a world of its own, m."""
WINDOW, SNAP = 150, 50
"""Points of a field to each side of a robot that are drawn, and how far they move at once."""
WEIGHT_LENGTH, LEAST_FORCE = 0.5, 1.0
"""How long the arrow of a force is that carries the robot, m, and the least force that has one, N."""
LIFT = 0.015
"""How far the points of a scan are above the ground, m, which would hide a half of each."""
EASE = 0.3
"""Part of the way to the robot that it follows which the picture moves in a frame."""
_SHOWN_GROUPS, _DEFAULT_RGBA = 3, (0.5, 0.5, 0.5, 1.0)
_SHAPES: dict[str, Any] = {
    "BOX": lambda size: box(extents=2.0 * size),
    "CYLINDER": lambda size: cylinder(radius=size[0], height=2.0 * size[1], sections=24),
    "CAPSULE": lambda size: capsule(height=2.0 * size[1], radius=size[0], count=[16, 12]),
    "SPHERE": lambda size: icosphere(subdivisions=2, radius=size[0]),
    "ELLIPSOID": lambda size: icosphere(subdivisions=2).apply_scale(size),
}


def body_mesh(model: mujoco.MjModel, body: int) -> trimesh.Trimesh | None:
    """The shapes of a body that MuJoCo's pictures show, in its frame, in their colours; None if it has none. Planes and
    height fields are left out."""
    meshes: list[Any] = []
    for i in np.flatnonzero((model.geom_bodyid == body) & (model.geom_group < _SHOWN_GROUPS)):
        kind = mujoco.mjtGeom(model.geom_type[i]).name.removeprefix("mjGEOM_")
        material, rgba, pose = model.geom_matid[i], model.geom_rgba[i], np.eye(4)
        if kind == "MESH":
            part = model.mesh(model.geom_dataid[i])
            (point,), (points,), (face,), (faces,) = (
                part.vertadr,
                part.vertnum,
                part.faceadr,
                part.facenum,
            )
            mesh: Any = trimesh.Trimesh(
                model.mesh_vert[point : point + points], model.mesh_face[face : face + faces]
            )
        elif kind in _SHAPES and rgba[3] > 0.0:
            mesh = _SHAPES[kind](model.geom_size[i])
        else:
            continue
        if kind in ("BOX", "CYLINDER"):
            mesh.unmerge_vertices()  # which keeps edges sharp
        pose[:3, :3], pose[:3, 3] = quaternion_matrix(model.geom_quat[i])[:3, :3], model.geom_pos[i]
        has_default = material >= 0 and np.allclose(rgba, _DEFAULT_RGBA)
        mesh.visual.vertex_colors = np.uint8(
            255.0 * (model.mat_rgba[material] if has_default else rgba)
        )
        meshes.append(mesh.apply_transform(pose))
    if not meshes:
        return None
    whole: Any = trimesh.util.concatenate(meshes)
    normals, corners = (
        np.zeros_like(whole.vertices),
        np.asarray(whole.triangles),
    )  # trimesh's own want SciPy
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    np.add.at(normals, whole.faces.ravel(), np.repeat(across, 3, axis=0))
    whole.vertex_normals = normals / np.linalg.norm(normals, axis=1, keepdims=True).clip(1e-12)
    return whole


def field_mesh(
    terrain: Terrain, rows: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles, those that the engine has, of a part of a field. Shapes: (n, 3), m, and (m, 3)."""
    x, y = (
        low + each * terrain.horizontal_scale
        for low, each in zip(terrain.low, (rows, columns), strict=True)
    )
    vertices = np.stack(
        (*np.meshgrid(x, y, indexing="ij"), terrain.heights[np.ix_(rows, columns)]), axis=-1
    )
    n = len(columns)
    first = (np.arange(len(rows) - 1)[:, None] * n + np.arange(n - 1)).reshape(-1, 1)
    return vertices.reshape(-1, 3), np.concatenate(
        [first + np.array(each) for each in ((0, n, n + 1), (0, n + 1, 1))]
    )


class Stage:
    """The robots of a session on the page of ``server``: one batch of meshes for each body of the model, the
    environments side by side where the ground is a plane."""

    def __init__(self, server: viser.ViserServer, session: Session):
        self._server, self._session = server, session
        self._core: Any = session.core
        core, scene = self._core, server.scene
        scene.configure_default_lights(
            cast_shadow=False
        )  # which take a browser without a GPU most of its time
        self._frame, side = (
            scene.add_frame("/world", show_axes=False),
            math.ceil(math.sqrt(core.num_envs)),
        )
        places = np.array([(i // side, i % side, 0.0) for i in range(core.num_envs)])
        self.offsets = (places - places.mean(0)) * (SPACING if core.sim.ground is None else 0.0)
        """Where the world of each environment is on the page, m. Shape: (num_envs, 3)."""
        self.bodies: dict[int, viser.BatchedGlbHandle] = {}
        model, poses = core.sim.drawn()
        for i in range(model.nbody):
            if (mesh := body_mesh(model, i)) is not None:
                start: dict[str, Any] = {
                    "batched_positions": poses[:, i, :3],
                    "batched_wxyzs": poses[:, i, 3:],
                }
                self.bodies[i] = scene.add_batched_meshes_trimesh(f"/world/{i}", mesh, **start)
                if model.body(i).name in core.sim.body_names:  # of the first robot
                    self.bodies[i].on_drag(self._drag)
        nothing, red = np.zeros((0, 2, 3), np.float32), (240, 80, 30)
        arrow = {"shaft_radius": 0.008, "head_radius": 0.02, "head_length": 0.05}
        self.forces = scene.add_arrows("/world/forces", nothing, red, visible=False, **arrow)  # type: ignore[call-overload]
        self.points = scene.add_point_cloud(
            "/world/scan", nothing[:, 0], red, point_size=0.025, precision="float32"
        )
        try:
            self._scan = scan_of(core.cfg)
        except ValueError:  # the policy sees no ground
            self._scan = {}
        self._weight = 9.81 * core.sim.default_parameter("body_mass")[0].sum().item()
        self._window: list[int] = []
        self._middle = np.zeros(3)
        self._events: deque[tuple[str, int, np.ndarray]] = deque()
        self._hand: tuple[int, np.ndarray] | None = None
        if core.sim.ground is None:
            floor: dict[str, Any] = {
                "plane_color": (232, 234, 237),
                "plane_opacity": 1.0,
                "fade_distance": 40.0,
            }
            scene.add_grid(
                "/world/ground", infinite_grid=True, section_color=(195, 200, 206), **floor
            )
        away = 1.0 + SPACING * (side - 1) / 2 * (core.sim.ground is None)
        server.initial_camera.position, server.initial_camera.look_at = (
            (1.1 * away, -1.5 * away, away),
            (0.0, 0.0, 0.2),
        )

    async def _drag(self, event: Any) -> None:
        way = np.subtract(
            event.end_position, event.start_position
        )  # from where the robot is held now
        self._events.append((event.phase, event.instance_index, way))

    def hold(self) -> None:
        """Tell the session where the mouse wants the base that it holds, until it lets go or the session has."""
        core, session = self._core, self._session
        self._hand = None if session.pull is None else self._hand
        while self._events:
            phase, i, way = self._events.popleft()
            if phase == "start" or self._hand is not None:
                self._hand = (i, core.robot.root_pos_w[i].cpu().numpy() + self._on_page(i) + way)
            self._hand = None if phase == "end" else self._hand
        session.pull = self._hand and (self._hand[0], self._hand[1] - self._on_page(self._hand[0]))

    def _on_page(self, i: int) -> np.ndarray:
        """Where the world of an environment is on the page at this moment, m."""
        place: np.ndarray = self.offsets[i] - self._middle
        return place

    def draw(self, followed: int) -> None:
        """Show this moment, with the robot of the environment ``followed`` in the middle."""
        core, poses = self._core, self._core.sim.drawn()[1]
        places, offset = poses[..., :3] + self.offsets[:, None], self.offsets[followed]
        root = core.robot.root_pos_w[followed].cpu().numpy()
        target = root + offset - (0.0, 0.0, core.cfg.robot.base_height)
        far = np.abs(target - self._middle).max() > SPACING
        self._middle = self._middle + (target - self._middle) * (1.0 if far else EASE)
        with self._server.atomic():
            for i, handle in self.bodies.items():
                handle.batched_positions, handle.batched_wxyzs = places[:, i], poses[:, i, 3:]
            if self.forces.visible:
                start = core.sim.body_pos_w + torch.from_numpy(self.offsets).float()[:, None]
                force = core.sim.contact_force_w
                arrows = torch.stack((start, start + force * (WEIGHT_LENGTH / self._weight)), dim=2)
                self.forces.points = arrows[force.norm(dim=-1) > LEAST_FORCE].numpy()
            if self.points.visible:
                points = scan_points(core, **self._scan)[followed].numpy()
                self.points.points = points + (offset + np.array((0.0, 0.0, LIFT))).astype(
                    np.float32
                )
            if core.sim.ground is not None:
                self._lay(core.sim.ground.terrain, root)
            self._frame.position = -self._middle

    def _lay(self, terrain: Terrain, root: np.ndarray) -> None:
        """Draw the part of the field that is around a robot."""
        at = (root[:2] - terrain.low) / terrain.horizontal_scale
        window = [round(i / SNAP) * SNAP for i in at]
        if window != self._window:
            self._window, parts = window, []
            for i, n in zip(window, terrain.heights.shape, strict=True):
                parts.append(
                    np.arange(max(0, min(i - WINDOW, n - 2)), max(2, min(i + WINDOW + 1, n)))
                )
            look: dict[str, Any] = {"color": (150, 155, 150), "flat_shading": True}
            self._server.scene.add_mesh_simple(
                "/world/ground", *field_mesh(terrain, *parts), **look
            )
