"""Triangle meshes as ground: grids of any size, unions of boxes, parts with free room under them."""

import warnings

import mujoco
import numpy as np
import pytest
from isaac_gym_dogs import gym, load_dog, make_params, make_sim

from legged_envs.compat.isaac_gym import gymapi, terrain_utils
from legged_envs.compat.isaac_gym.ground import triangle_mesh
from legged_envs.compat.isaac_gym.mesh_ground import _label_parts, approximate_mesh

trimesh = pytest.importorskip("trimesh")
RANDOM = np.random.default_rng(5)


def box(low, high):
    """A closed box between two corners."""
    low, high = np.array(low, float), np.array(high, float)
    made = trimesh.creation.box(high - low)
    made.apply_translation((low + high) / 2)
    return made


def join(*meshes):
    return trimesh.util.concatenate(list(meshes))


def rays_from_above(model: mujoco.MjModel, points, height=20.0) -> np.ndarray:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    found = []
    geom = np.zeros(1, np.int32)
    for x, y in points:
        args = (np.array([x, y, height]), np.array([0.0, 0.0, -1.0]), None, 1, -1, geom)
        distance = mujoco.mj_ray(model, data, *args)
        found.append(height - distance if distance >= 0 else np.nan)
    return np.array(found)


def scene_with(mesh, robot_at=(100.0, 100.0, 5.0)):
    """A simulation on a mesh, with the dog out of the way."""
    sim = make_sim(0, ground=False, prepare=False)
    params = gymapi.TriangleMeshParams()
    params.nb_vertices, params.nb_triangles = len(mesh.vertices), len(mesh.faces)
    gym.add_triangle_mesh(
        sim, mesh.vertices.astype(np.float32).ravel(), mesh.faces.astype(np.uint32).ravel(), params
    )
    env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
    gym.create_actor(env, load_dog(), gymapi.Transform(gymapi.Vec3(*robot_at)))
    gym.prepare_sim(sim)
    return sim


@pytest.mark.parametrize("side", [300, 2100])
def test_grids_of_any_size_are_their_height_fields(side: int) -> None:
    heights = np.zeros((side, side), np.int16)
    heights[50:100, 50:100] = 100
    vertices, triangles = terrain_utils.convert_heightfield_to_trimesh(heights, 0.1, 0.005, 0.75)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ground = triangle_mesh(vertices.ravel(), triangles.ravel(), gymapi.TriangleMeshParams())
    assert abs(ground.terrain.heights - heights * 0.005).max() < 1e-6
    scale = ground.terrain.horizontal_scale
    assert scale * side == pytest.approx(0.1 * side, abs=1e-3)


def test_unions_of_boxes_are_height_fields_whose_error_is_told() -> None:
    steps = [box((0, 0, -1), (12, 12, 0))]
    for i in range(6):
        steps.append(box((2 + i, 2, -1), (3 + i, 8, 0.1 * (i + 1))))
    mesh = join(*steps)
    with pytest.warns(UserWarning, match=r"0\.05 m cells.*0\.000 m at 95 %.*at most 0\.\d+ m"):
        sim = scene_with(mesh)
    x, y = RANDOM.uniform(0.1, 11.9, (2, 400))
    is_clear = (abs(x - np.rint(x)) > 0.06) & (abs(y - 2) > 0.06) & (abs(y - 8) > 0.06)
    expected = np.where((x > 2) & (x < 8) & (y > 2) & (y < 8), 0.1 * (np.floor(x) - 1), 0.0)
    found = rays_from_above(sim.state.model, np.stack((x, y), axis=1))
    assert found[is_clear] == pytest.approx(expected[is_clear], abs=2e-3)
    assert not sim.ground.pieces


def test_a_surface_that_is_no_grid_is_as_high_as_its_triangles() -> None:
    side = 61
    ids = np.arange(side * side).reshape(side, side)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 8, side)] * 2, indexing="ij"), axis=-1)
    grid[1:-1, 1:-1] += RANDOM.uniform(-0.04, 0.04, (side - 2, side - 2, 2))
    points = grid.reshape(-1, 2)
    a, b, c, d = (part.ravel() for part in (ids[:-1, :-1], ids[1:, :-1], ids[1:, 1:], ids[:-1, 1:]))
    faces = np.concatenate((np.stack((a, b, c), axis=1), np.stack((a, c, d), axis=1)))
    # Vertices in any order are no grid.
    order = RANDOM.permutation(len(points))
    faces = np.argsort(order)[faces]
    points = points[order]
    z = 0.3 * np.sin(points[:, 0]) * np.cos(points[:, 1])
    mesh = trimesh.Trimesh(np.column_stack((points, z)), faces, process=False)
    for flipped in (False, True):
        if flipped:
            mesh.invert()
        ground = approximate_mesh(np.array(mesh.vertices), np.array(mesh.faces))
        assert not ground.pieces
        rows, columns = np.indices(ground.heights.shape) * 0.05
        inside = (slice(4, -4), slice(4, -4))
        expected = 0.3 * np.sin(rows) * np.cos(columns)
        assert ground.heights[inside] == pytest.approx(expected[inside], abs=0.02)


def find_parts(num_vertices, triangles) -> list[int]:
    """The lowest vertex of each vertex's part, by joining one triangle after the other."""
    parts = list(range(num_vertices))
    for corners in triangles.tolist():
        joined = {parts[corner] for corner in corners}
        parts = [min(joined) if part in joined else part for part in parts]
    return parts


@pytest.mark.parametrize("num_triangles", [1, 10, 25, 60])
def test_parts_are_what_triangles_connect(num_triangles: int) -> None:
    triangles = RANDOM.integers(0, 60, (num_triangles, 3))
    assert _label_parts(60, triangles).tolist() == find_parts(60, triangles)


def test_a_long_band_in_any_order_is_one_part() -> None:
    # Passing labels from neighbor to neighbor would take hundreds of rounds.
    order = RANDOM.permutation(200_000)
    triangles = np.stack((order[:-2], order[1:-1], order[2:]), axis=1)
    assert not _label_parts(len(order), triangles).any()


@pytest.mark.parametrize("has_undersides", [False, True])
def test_heights_are_those_of_the_triangles_however_steep(has_undersides: bool) -> None:
    # A roof: 5 m up within 2 cm, then slowly down; below it a floor, in the second case.
    rise, length, width = 5.0, 3.0, 2.0
    ridge = 0.02
    points = [(0, 0, 0), (0, width, 0), (ridge, 0, rise), (ridge, width, rise)]
    points += [(length, 0, 0), (length, width, 0)]
    faces = [(0, 2, 1), (2, 3, 1), (2, 4, 3), (4, 5, 3)]
    if has_undersides:
        faces += [(0, 1, 5), (0, 5, 4), (0, 4, 2), (1, 3, 5)]
    ground = approximate_mesh(np.array(points, float), np.array(faces))
    assert not ground.pieces
    x = np.arange(1, ground.heights.shape[0]) * ground.lattice.cell
    expected = rise * (length - x) / (length - ridge)
    # The lines are 1e-4 cells from the points of the lattice.
    assert ground.heights[1:, 1:-1] == pytest.approx(
        np.repeat(expected[:, None], ground.heights.shape[1] - 2, axis=1), abs=1e-4
    )


def test_bars_above_the_ground_are_pieces_under_which_there_is_room() -> None:
    floor = box((0, 0, -1), (6, 4, 0))
    bar = box((2, 0.5, 0.3), (2.1, 3.5, 0.5))
    slanted = box((-0.5, -0.05, -0.05), (0.5, 0.05, 0.05))
    slanted.apply_transform(trimesh.transformations.rotation_matrix(0.7, (0, 1, 0), (0, 0, 0)))
    slanted.apply_translation((4.0, 2.0, 0.9))
    with pytest.warns(UserWarning, match=r"2 convex parts above free room are exact"):
        sim = scene_with(join(floor, bar, slanted))
    model = sim.state.model
    assert rays_from_above(model, [(2.05, 2.0), (1.5, 2.0)]) == pytest.approx([0.5, 0.0], abs=1e-4)
    assert rays_from_above(model, [(2.05, 2.0)], height=0.29) == pytest.approx([0.0], abs=1e-4)
    sine, cosine = np.sin(0.7), np.cos(0.7)
    top = 0.9 - (0.2 - 0.05 * sine) / cosine * sine + 0.05 * cosine
    assert rays_from_above(model, [(4.2, 2.0)]) == pytest.approx([top], abs=1e-3)


def test_what_hovers_and_is_not_convex_becomes_boxes() -> None:
    floor = box((0, 0, -1), (6, 4, 0))
    tunnel = trimesh.Trimesh(*_make_tunnel(), process=False)
    with pytest.warns(UserWarning, match=r"others are \d+ boxes, to within 0\.05 m"):
        sim = scene_with(join(floor, tunnel))
    model = sim.state.model
    # Roof at 1.0 m, 0.2 m thick; walls from y = 1 to 1.2 and 2.8 to 3.
    assert rays_from_above(model, [(2.5, 2.0), (2.5, 1.1)]) == pytest.approx([1.0, 1.0], abs=0.02)
    assert rays_from_above(model, [(2.5, 2.0)], height=0.75) == pytest.approx([0.0], abs=1e-3)


def _make_tunnel() -> tuple[np.ndarray, np.ndarray]:
    """A closed tunnel along x from 2 m to 3 m: two walls and a roof in one piece."""
    outline = [(1, 0), (1, 1), (3, 1), (3, 0), (2.8, 0), (2.8, 0.8), (1.2, 0.8), (1.2, 0)]
    count = len(outline)
    points = [(x, y, z) for x in (2.0, 3.0) for y, z in outline]
    sides = []
    for i in range(count):
        j = (i + 1) % count
        sides += [(i, j, count + j), (i, count + j, count + i)]
    caps = [(0, 1, 6), (0, 6, 7), (1, 2, 5), (1, 5, 6), (2, 3, 4), (2, 4, 5)]
    ends = [tuple(reversed(face)) for face in caps]
    ends += [tuple(count + i for i in face) for face in caps]
    return np.array(points), np.array(sides + ends)


def test_several_meshes_and_a_plane_are_one_ground() -> None:
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, make_params())
    gym.add_ground(sim, gymapi.PlaneParams(normal=gymapi.Vec3(0.0, 0.0, 1.0)))
    for x in (0.0, 5.0):
        mesh = box((0, 0, 0), (2, 2, 0.4))
        params = gymapi.TriangleMeshParams()
        params.transform.p = gymapi.Vec3(x, 1.0, 0.0)
        gym.add_triangle_mesh(sim, mesh.vertices.ravel(), mesh.faces.ravel(), params)
    env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
    gym.create_actor(env, load_dog(), gymapi.Transform(gymapi.Vec3(50.0, 0.0, 5.0)))
    with pytest.warns(UserWarning, match=r"24 triangles.*of the area has no surface"):
        gym.prepare_sim(sim)
    points = [(1.0, 2.0), (6.0, 2.0), (3.5, 2.0), (20.0, 20.0)]
    assert rays_from_above(sim.state.model, points) == pytest.approx([0.4, 0.4, 0, 0], abs=1e-3)


def test_arrays_that_are_no_mesh_are_refused_and_leave_no_ground() -> None:
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, make_params())
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
    for points, triangles, message in (
        (corners, [0, 1, 3], "0 to 2.*0 to 3"),
        (corners * np.nan, [0, 1, 2], "NaN"),
        (corners.ravel()[:-1], [0, 1, 2], "8 coordinates"),
        (corners, [], "0 indices"),
    ):
        with pytest.raises(ValueError, match=message):
            gym.add_triangle_mesh(sim, points, np.array(triangles), gymapi.TriangleMeshParams())
        assert sim.ground is None and not sim.meshes
