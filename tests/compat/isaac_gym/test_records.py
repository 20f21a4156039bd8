"""Records of Isaac Gym: floats of C, vectors, quaternions, matrices and poses, enumerations."""

import copy
import math

import numpy as np
import pytest

from legged_envs.compat.isaac_gym import gymapi, gymutil

RANDOM = np.random.default_rng(0)


def matrix_of(quat: gymapi.Quat) -> np.ndarray:
    """Rotation matrix, by Rodrigues' formula and not by products of quaternions."""
    axis = np.array(quat.values[:3])
    sine = np.linalg.norm(axis)
    angle = 2 * math.atan2(sine, quat.w)
    x, y, z = axis / sine
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross


def random_quat() -> gymapi.Quat:
    return gymapi.Quat(*RANDOM.normal(size=4)).normalize()


def random_vector() -> gymapi.Vec3:
    return gymapi.Vec3(*RANDOM.normal(size=3))


def test_time_steps_are_floats_of_c_and_episode_lengths_follow() -> None:
    params = gymapi.SimParams()
    params.dt = 0.005
    assert params.dt == 0.004999999888241291
    assert math.ceil(20.0 / (4 * params.dt)) == 1001
    assert math.ceil(0.020 / params.dt) == 5
    assert gymapi.SimParams().dt == float(np.float32(1 / 60))


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (gymapi.Vec3(), "x"),
        (gymapi.Quat(), "w"),
        (gymapi.RigidShapeProperties(), "friction"),
        (gymapi.RigidBodyProperties(), "mass"),
        (gymapi.AssetOptions(), "armature"),
        (gymapi.PlaneParams(), "static_friction"),
        (gymapi.HeightFieldParams(), "row_scale"),
        (gymapi.TriangleMeshParams(), "restitution"),
        (gymapi.PhysXParams(), "contact_offset"),
        (gymapi.CameraProperties(), "horizontal_fov"),
    ],
)
def test_every_float_of_a_record_is_a_float_of_c(record, name: str) -> None:
    setattr(record, name, 0.1)
    assert getattr(record, name) == float(np.float32(0.1)) != 0.1
    default = getattr(type(record)(), name)
    assert default == float(np.float32(default))
    with pytest.raises(ValueError, match=f"{name}.*1e\\+39"):
        setattr(record, name, 1e39)


def test_sim_configs_that_are_refused_change_nothing() -> None:
    params = gymapi.SimParams()
    with pytest.raises(ValueError, match="contact_offset"):
        gymutil.parse_sim_config({"dt": 0.01, "physx": {"contact_offset": math.inf}}, params)
    assert params.dt == float(np.float32(1 / 60)) and params.physx.contact_offset < 1.0


def test_vectors_have_their_arithmetic() -> None:
    for _ in range(10):
        a, b = random_vector(), random_vector()
        x, y = np.array(a.values), np.array(b.values)
        assert (a + b).values == pytest.approx(x + y, abs=1e-6)
        assert (a - b).values == pytest.approx(x - y, abs=1e-6)
        assert (-a).values == pytest.approx(-x)
        assert (a * 2.5).values == (2.5 * a).values == pytest.approx(2.5 * x, abs=1e-6)
        assert (a / 4.0).values == pytest.approx(x / 4)
        assert a.dot(b) == pytest.approx(x @ y, abs=1e-6)
        assert a.cross(b).values == pytest.approx(np.cross(x, y), abs=1e-6)
        assert (a.length(), a.length_sq()) == pytest.approx((np.linalg.norm(x), x @ x))
        assert a.normalize().values == pytest.approx(x / np.linalg.norm(x), abs=1e-6)
    with pytest.raises(TypeError):
        gymapi.Vec3() * gymapi.Vec3()


def test_quaternions_and_poses_agree_with_rotation_matrices() -> None:
    for _ in range(10):
        a, b, v = random_quat(), random_quat(), random_vector()
        x = np.array(v.values)
        assert a.rotate(v).values == pytest.approx(matrix_of(a) @ x, abs=1e-5)
        assert (a * b).rotate(v).values == pytest.approx(matrix_of(a) @ matrix_of(b) @ x, abs=1e-5)
        assert a.inverse().rotate(a.rotate(v)).values == pytest.approx(x, abs=1e-5)
        angles = RANDOM.uniform(-1.4, 1.4, 3).tolist()
        turned = gymapi.Quat.from_euler_zyx(*angles)
        axes = [
            gymapi.Quat.from_axis_angle(gymapi.Vec3(*e), t)
            for e, t in zip(np.eye(3), angles, strict=True)
        ]
        expected = matrix_of(axes[2]) @ matrix_of(axes[1]) @ matrix_of(axes[0])
        assert matrix_of(turned) == pytest.approx(expected, abs=1e-5)
        assert turned.to_euler_zyx() == pytest.approx(angles, abs=1e-5)
        pose, inner = gymapi.Transform(random_vector(), a), gymapi.Transform(random_vector(), b)
        point = pose.transform_point(v)
        assert point.values == pytest.approx(matrix_of(a) @ x + pose.p.values, abs=1e-5)
        assert pose.inverse().transform_point(point).values == pytest.approx(x, abs=1e-5)
        both = (pose * inner).transform_point(v).values
        assert both == pytest.approx(
            pose.transform_point(inner.transform_point(v)).values, abs=1e-5
        )
        assert pose.transform_vector(v).values == pytest.approx(matrix_of(a) @ x, abs=1e-5)
    many = RANDOM.normal(size=(7, 3)).astype(np.float32)
    fields = np.ascontiguousarray(many).view(gymapi.Vec3.dtype)[:, 0]
    moved = pose.transform_points(fields)
    assert moved.dtype == gymapi.Vec3.dtype
    assert moved["y"] == pytest.approx(pose.transform_points(many)[:, 1], abs=1e-6)
    expected = many @ matrix_of(a).T + pose.p.values
    assert pose.transform_points(many) == pytest.approx(expected, abs=1e-5)


def test_records_come_from_buffers_and_copies_are_their_own() -> None:
    row = np.arange(7, dtype=np.float32).view(gymapi.Transform.dtype)[0]
    pose = gymapi.Transform.from_buffer(row)
    assert (pose.p.values, pose.r.values) == ((0.0, 1.0, 2.0), (3.0, 4.0, 5.0, 6.0))
    assert gymapi.Vec3.from_buffer(np.ones(3, np.float32)).z == 1.0
    with pytest.raises(ValueError, match=r"4 numbers.*3"):
        gymapi.Quat.from_buffer(np.ones(3))
    other = copy.deepcopy(pose)
    other.p.x = 9.0
    assert pose.p.x == 0.0
    matrix = gymapi.Mat33(gymapi.Vec3(1, 2, 3), gymapi.Vec3(4, 5, 6), gymapi.Vec3(7, 8, 9))
    assert matrix.to_array()[:, 0].tolist() == [1, 2, 3]
    assert gymapi.Mat33.from_array(matrix.to_array()).z.x == 7.0
    matrix.x.x *= 2
    assert matrix.to_array()[0, 0] == 2.0


def test_members_of_enumerations_have_names_of_their_own_and_numbers() -> None:
    assert gymapi.DOMAIN_SIM is gymapi.IndexDomain.DOMAIN_SIM
    assert [int(mode) for mode in gymapi.DofDriveMode] == [0, 1, 2, 3]
    assert (gymapi.KEY_ESCAPE, gymapi.KEY_V, gymapi.KEY_SPACE, gymapi.KEY_LEFT) == (
        256,
        86,
        32,
        263,
    )
    assert gymapi.SimType.SIM_PHYSX == gymapi.SIM_PHYSX == 0
    assert (gymapi.IMAGE_COLOR, gymapi.IMAGE_DEPTH, gymapi.INVALID_HANDLE) == (0, 1, -1)
    assert {"Vec3", "KEY_W", "DOMAIN_ENV", "acquire_gym"} < set(gymapi.__all__)
    with pytest.raises(AttributeError, match=r"gymapi\.KEY_NONE"):
        gymapi.KEY_NONE  # noqa: B018
