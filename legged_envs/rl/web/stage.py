"""What the page shows: robots, the ground, contact forces and the points of a height scan."""

import math
from functools import partial
from typing import Any

import mujoco
import numpy as np
import torch
import trimesh
import viser
from trimesh.creation import box, capsule, cylinder, icosphere
from trimesh.transformations import quaternion_matrix

from legged_envs.mdp.scan import scan_points
from legged_envs.rl.watch import scan_of
from legged_envs.rl.web.session import Session
from legged_envs.terrains import Terrain

SPACING = 2.0
"""Distance of neighbours on a plane, where each has a world of its own, m."""
MOST_POINTS, WINDOW, SNAP = 100_000, 120, 40
"""Points of the ground as it is far away; how many of its points to each side of a robot are all drawn, and by how many
it moves until that part is drawn anew."""
LEAST_FORCE = 1.0
"""Contact force with an arrow, N."""
ARROW: dict[str, Any] = {"shaft_radius": 0.008, "head_radius": 0.02, "head_length": 0.05}
EASE = 0.3
"""Part of the way to the robot that it follows which the picture moves in a frame."""
_SHOWN_GROUPS, _DEFAULT_RGBA = 3, (0.5, 0.5, 0.5, 1.0)
Array = np.ndarray
_Kind = mujoco.mjtGeom
_SHAPES: dict[int, Any] = {
    int(_Kind.mjGEOM_SPHERE): lambda size: icosphere(subdivisions=2).apply_scale(size[0]),
    int(_Kind.mjGEOM_ELLIPSOID): lambda size: icosphere(subdivisions=2).apply_scale(size),
    int(_Kind.mjGEOM_CAPSULE): lambda size: capsule(height=2.0 * size[1], radius=size[0], count=[16, 12]),
    int(_Kind.mjGEOM_CYLINDER): lambda size: cylinder(radius=size[0], height=2.0 * size[1], sections=24),
    int(_Kind.mjGEOM_BOX): lambda size: box(extents=2.0 * size),
}
_FLAT = (int(_Kind.mjGEOM_CYLINDER), int(_Kind.mjGEOM_BOX))
"""Shapes with sharp edges, which normals averaged over faces would blur."""


def body_mesh(model: mujoco.MjModel, body: int) -> trimesh.Trimesh | None:
    """The shapes of a body that MuJoCo's pictures show, in its frame, in their colours; None if it has none. Planes and
    height fields are no shapes of a body."""
    shown = np.flatnonzero((model.geom_bodyid == body) & (model.geom_group < _SHOWN_GROUPS))
    shapes = [(mesh, i) for i in shown if (mesh := _shape(model, int(i))) is not None]
    if not shapes:
        return None
    firsts = np.cumsum([0, *(len(mesh.vertices) for mesh, _ in shapes)])
    faces = np.concatenate([mesh.faces + first for (mesh, _), first in zip(shapes, firsts, strict=False)])
    vertices, colors = np.concatenate([mesh.vertices for mesh, _ in shapes]), np.empty((firsts[-1], 4), np.uint8)
    for (_, i), first, end in zip(shapes, firsts, firsts[1:], strict=False):
        material, rgba = model.geom_matid[i], model.geom_rgba[i]
        default = material >= 0 and np.allclose(rgba, _DEFAULT_RGBA)
        colors[first:end] = 255.0 * (model.mat_rgba[material] if default else rgba)
    normals = np.zeros_like(vertices)  # trimesh's own ask for SciPy
    corners = vertices[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    np.add.at(normals, faces.ravel(), np.repeat(across, 3, axis=0))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True).clip(1e-12)
    return trimesh.Trimesh(vertices, faces, vertex_normals=normals, vertex_colors=colors, process=False)


def _shape(model: mujoco.MjModel, i: int) -> trimesh.Trimesh | None:
    """A geom in the frame of its body; None if it is a plane, a height field or clear."""
    kind = int(model.geom_type[i])
    if kind == int(_Kind.mjGEOM_MESH):
        j = model.geom_dataid[i]
        first, triangle = model.mesh_vertadr[j], model.mesh_faceadr[j]
        points = model.mesh_vert[first : first + model.mesh_vertnum[j]]
        faces = model.mesh_face[triangle : triangle + model.mesh_facenum[j]]
        mesh = trimesh.Trimesh(points, faces, process=False)
    elif kind in _SHAPES and model.geom_rgba[i, 3] > 0.0:
        mesh = _SHAPES[kind](model.geom_size[i])
        if kind in _FLAT:
            mesh.unmerge_vertices()
    else:
        return None
    pose = quaternion_matrix(model.geom_quat[i])
    pose[:3, 3] = model.geom_pos[i]
    return mesh.apply_transform(pose)


def field_mesh(terrain: Terrain, rows: Array, columns: Array) -> tuple[Array, Array]:
    """The surface through the points of a field in ``rows`` and ``columns``, with the triangles that the engine has.
    Shapes: (n, 3), m, and (cells · 2, 3), the first triangles of all cells, then the second."""
    x, y = (low + each * terrain.horizontal_scale for low, each in zip(terrain.low, (rows, columns), strict=True))
    vertices = np.stack((*np.meshgrid(x, y, indexing="ij"), terrain.heights[np.ix_(rows, columns)]), axis=-1)
    corner = (np.arange(len(rows) - 1)[:, None] * len(columns) + np.arange(len(columns) - 1)).reshape(-1, 1)
    along = len(columns)
    faces = np.concatenate([corner + np.array(each) for each in ((0, along, along + 1), (0, along + 1, 1))])
    return vertices.reshape(-1, 3), faces


class Stage:
    """The robots of a session on the page of ``server``: one batch of meshes for each body of the model, the
    environments side by side where the ground is a plane."""

    def __init__(self, server: viser.ViserServer, session: Session, scan: bool = False):
        self._server, self._session, core = server, session, session.core
        self._core: Any = core
        self._frame = server.scene.add_frame("/world", show_axes=False)
        model, poses = core.sim.drawn()
        ground = core.sim.ground
        side = math.ceil(math.sqrt(core.num_envs))
        places = np.array([(i // side, i % side, 0.0) for i in range(core.num_envs)])
        self.offsets = (places - places.mean(0)) * (SPACING if ground is None else 0.0)
        """Where the world of each environment is on the page, m. Shape: (num_envs, 3)."""
        self.bodies: dict[int, viser.BatchedGlbHandle] = {}
        for body in range(model.nbody):
            if (mesh := body_mesh(model, body)) is not None:
                start = poses[:, body]
                name = model.body(body).name
                handle = server.scene.add_batched_meshes_trimesh(
                    f"/world/{body}", mesh, batched_wxyzs=start[:, 3:], batched_positions=start[:, :3]
                )
                handle.on_drag(partial(self._drag, name.partition("/")[0]))
                self.bodies[body] = handle
        nothing = np.zeros((0, 2, 3), np.float32)
        self.forces = server.scene.add_arrows("/world/forces", nothing, (230, 90, 30), visible=False, **ARROW)
        self._weight = 9.81 * core.sim.default_parameter("body_mass")[0].sum().item()
        self._scan: Any = None
        if ground is not None:
            try:
                self._scan = scan_of(core.cfg)
            except ValueError:  # the policy sees no ground, but there is one
                self._scan = {}
        cloud = partial(server.scene.add_point_cloud, "/world/scan", nothing[:, 0], (250, 60, 20), precision="float32")
        self.points = cloud(point_size=0.025, point_shape="circle", visible=scan)
        self._window: tuple[int, ...] | None = None
        self._anchor = np.zeros(3)
        if ground is None:
            grid = partial(server.scene.add_grid, "/world/ground", infinite_grid=True, section_color=(195, 200, 206))
            grid(plane_color=(232, 234, 237), plane_opacity=1.0, fade_distance=40.0, shadow_opacity=0.25)
        self._server.initial_camera.look_at = (0.0, 0.0, 0.2)
        away = 1.0 + 0.5 * SPACING * (side - 1) * (ground is None)
        self._server.initial_camera.position = (1.1 * away, -1.5 * away, 1.0 * away)

    @property
    def has_scan(self) -> bool:
        return self._scan is not None

    async def _drag(self, name: str, event: Any) -> None:
        session = self._session
        name = name if name in {**self._core.sim.robots, **self._core.sim.objects} else "robot"
        if event.phase == "end":
            session.pulls.pop(name, None)
        else:
            session.pulls[name] = event.instance_index, np.subtract(event.end_position, event.start_position)

    def draw(self, followed: int | None) -> None:
        """Show this moment, with the robot of the environment ``followed`` in the middle."""
        core = self._core
        poses = core.sim.drawn()[1]
        places = poses[..., :3] + self.offsets[:, None]
        with self._server.atomic():
            for body, handle in self.bodies.items():
                handle.batched_positions, handle.batched_wxyzs = places[:, body], poses[:, body, 3:]
            if self.forces.visible:
                self.forces.points = self._arrows()
            shown = 0 if followed is None else followed
            if self.points.visible:
                points = scan_points(core, **self._scan)[shown] + torch.from_numpy(self.offsets[shown])
                self.points.points = points.float().cpu().numpy()
            root = core.robot.root_pos_w[shown].cpu().numpy()
            if core.sim.ground is not None:
                self._lay(core.sim.ground.terrain, root)
            if followed is not None:
                target = root + self.offsets[shown]
                target[2] -= core.cfg.robot.base_height
                far = np.abs(target - self._anchor).max() > SPACING
                self._anchor = self._anchor + (target - self._anchor) * (1.0 if far else EASE)
                self._frame.position = -self._anchor

    def _arrows(self) -> Array:
        """Start and end of the contact force on each body: the weight of the robot is half a metre. (n, 2, 3)."""
        arrows = []
        for robot in self._core.sim.robots.values():
            start = robot.body_pos_w + torch.from_numpy(self.offsets).float()[:, None].to(robot.body_pos_w.device)
            force = robot.contact_force_w
            both = torch.stack((start, start + force * (0.5 / self._weight)), dim=2)
            arrows.append(both[force.norm(dim=-1) > LEAST_FORCE])
        return torch.cat(arrows).cpu().numpy()

    def _lay(self, terrain: Terrain, root: Array) -> None:
        """Draw the field around a robot with all of its points, what is farther away with some."""
        counts = terrain.heights.shape
        stride = math.ceil(math.sqrt(terrain.heights.size / MOST_POINTS))
        reach, snap = (stride * math.ceil(points / stride) for points in (WINDOW, SNAP))
        at = [(place - low) / terrain.horizontal_scale for place, low in zip(root, terrain.low, strict=False)]
        window = tuple(int(np.clip(round(i / snap) * snap, 0, n - 1)) for i, n in zip(at, counts, strict=True))
        if window == self._window or (stride == 1 and self._window is not None):
            return
        self._window = window
        every = [np.unique(np.append(np.arange(0, n, stride), n - 1)) for n in counts]
        vertices, faces = field_mesh(terrain, *every)
        add = partial(self._server.scene.add_mesh_simple, color=(150, 155, 150), flat_shading=True)
        if stride > 1:
            bounds = [(max(0, i - reach), min(n - 1, i + reach)) for i, n in zip(window, counts, strict=True)]
            inside = [(i[:-1] >= low) & (i[1:] <= high) for i, (low, high) in zip(every, bounds, strict=True)]
            faces = faces[np.tile(~np.logical_and.outer(*inside).ravel(), 2)]
            add("/world/near", *field_mesh(terrain, *(np.arange(low, high + 1) for low, high in bounds)))
        add("/world/far", vertices, faces)
