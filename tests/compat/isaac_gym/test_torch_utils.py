"""``isaacgym.torch_utils`` in float64 against rotation matrices, star imports, NumPy's old names."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from legged_envs.compat.isaac_gym import terrain_utils, torch_utils

RANDOM = np.random.default_rng(1)
VECTORS = RANDOM.normal(size=(40, 3))


def to_tensor(values) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values))


def make_rotations(vectors: np.ndarray) -> np.ndarray:
    """Rotation matrices of rotation vectors, by Rodrigues' formula: no quaternion is in it."""
    matrices = []
    for vector in vectors:
        angle = np.linalg.norm(vector)
        x, y, z = vector / angle
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        matrices.append(np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross)
    return np.array(matrices)


def make_quaternions(vectors: np.ndarray) -> torch.Tensor:
    """Quaternions (x, y, z, w) of rotation vectors."""
    angles = np.linalg.norm(vectors, axis=1, keepdims=True)
    return to_tensor(np.hstack((vectors / angles * np.sin(angles / 2), np.cos(angles / 2))))


FIRST, SECOND = RANDOM.uniform(-2, 2, (2, 40, 3))
A, B = make_rotations(FIRST), make_rotations(SECOND)
Q, P, V = make_quaternions(FIRST), make_quaternions(SECOND), to_tensor(VECTORS)


def apply(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("nij,nj->ni", matrices, vectors)


def is_rotation(quat: torch.Tensor, matrices: np.ndarray) -> bool:
    """Whether quaternions move the axes as matrices do."""
    errors = []
    for axis in np.eye(3):
        vectors = np.tile(axis, (len(quat), 1))
        moved = torch_utils.quat_apply(quat, to_tensor(vectors)).numpy()
        errors.append(abs(moved - apply(matrices, vectors)).max())
    return max(errors) < 1e-12


def test_rotations_of_vectors_and_products_are_those_of_matrices() -> None:
    forward, back = apply(A, VECTORS), apply(A.transpose(0, 2, 1), VECTORS)
    for function in ("quat_apply", "quat_rotate", "get_basis_vector", "tf_vector"):
        rotated = getattr(torch_utils, function)(Q, V).numpy()
        assert abs(rotated - forward).max() < 1e-12, function
    assert abs(torch_utils.quat_rotate_inverse(Q, V).numpy() - back).max() < 1e-12
    assert is_rotation(torch_utils.quat_mul(Q, P), A @ B)
    assert is_rotation(torch_utils.quat_conjugate(Q), A.transpose(0, 2, 1))
    assert abs(torch_utils.quat_unit(3.0 * Q) - Q).max() < 1e-15
    angle = np.linspace(-3.0, 3.0, 40)
    turn = make_rotations(angle[:, None] * VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True))
    assert is_rotation(torch_utils.quat_from_angle_axis(to_tensor(angle), V), turn)


def test_euler_angles_are_turns_about_fixed_axes_and_come_back_in_a_full_turn() -> None:
    angles = RANDOM.uniform(-math.pi, math.pi, (40, 3)) * [1.0, 0.49, 1.0]
    quat = torch_utils.quat_from_euler_xyz(*to_tensor(angles).unbind(1))
    about_x, about_y, about_z = (
        make_rotations(angles[:, i : i + 1] * np.eye(3)[i]) for i in range(3)
    )
    assert is_rotation(quat, about_z @ about_y @ about_x)
    found = torch.stack(torch_utils.get_euler_xyz(quat), dim=1).numpy()
    assert found.min() >= 0.0 and found.max() < 2 * math.pi
    assert abs(np.exp(1j * found) - np.exp(1j * angles)).max() < 1e-9
    # A quarter turn about y, where rounding leads beyond the arcsine's range.
    steep = torch.tensor([[0.0, 0.7071068, 0.0, 0.7071068]])
    assert float(torch_utils.get_euler_xyz(steep)[1]) == pytest.approx(math.pi / 2, abs=1e-3)
    single = torch_utils.quat_from_euler_xyz(*torch.zeros(3))
    assert single.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_poses_combine_invert_and_move_points() -> None:
    t, s = to_tensor(RANDOM.normal(size=(40, 3))), to_tensor(RANDOM.normal(size=(40, 3)))
    moved = torch_utils.tf_apply(Q, t, V).numpy()
    assert abs(moved - apply(A, VECTORS) - t.numpy()).max() < 1e-12
    back = torch_utils.tf_apply(*torch_utils.tf_inverse(Q, t), to_tensor(moved))
    assert abs(back - V).max() < 1e-12
    both = torch_utils.tf_apply(*torch_utils.tf_combine(Q, t, P, s), V)
    assert abs(both - torch_utils.tf_apply(Q, t, torch_utils.tf_apply(P, s, V))).max() < 1e-12


def test_numbers_are_scaled_clipped_signed_and_wrapped() -> None:
    low, high = torch.tensor([-1.0, 2.0]), torch.tensor([3.0, 6.0])
    assert torch_utils.scale(torch.tensor([-1.0, 1.0]), low, high).tolist() == [-1.0, 6.0]
    assert torch_utils.unscale(torch.tensor([1.0, 6.0]), low, high).tolist() == [0.0, 1.0]
    assert torch_utils.unscale_np(np.array(2.0), np.array(0.0), np.array(4.0)) == 0.0
    assert torch_utils.tensor_clamp(torch.tensor([9.0, 0.0]), low, high).tolist() == [3.0, 2.0]
    assert torch_utils.copysign(-2.0, torch.tensor([-3.0, 0.0, 5.0])).tolist() == [-2.0, 0.0, 2.0]
    wrapped = torch_utils.normalize_angle(torch.tensor([4.0, -4.0, 1.0]))
    assert wrapped.tolist() == pytest.approx([4 - 2 * math.pi, 2 * math.pi - 4, 1.0], abs=1e-6)
    directions = torch_utils.torch_random_dir_2((2000, 1), "cpu")
    assert directions.shape == (2000, 2) and directions.norm(dim=1) == pytest.approx(1.0)
    assert directions.mean(dim=0).abs().max() < 0.08


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_functions_of_tensors_can_be_scripted() -> None:
    for name in ("quat_from_euler_xyz", "get_euler_xyz", "tf_combine", "tensor_clamp", "scale"):
        torch.jit.script(getattr(torch_utils, name))


SCRIPT = """
from isaacgym.torch_utils import *
from isaacgym.terrain_utils import *
from isaacgym.gymapi import *
print(np.float(1), np.Inf, torch.float, len(get_euler_xyz(to_torch([[0, 0, 0, 1]], device="cpu"))))
print(wave_terrain.__name__, sqrt(4.0), choice([3]), int(KEY_W), Vec3(1, 2, 3).y, np.int is int)
print([name for name in ("Tensor_", "Sequence", "NoReturn", "present_device") if name in dir()])
"""


def test_star_imports_bring_what_isaac_gyms_bring_and_numpys_old_names_are_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "old.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "legged_envs.compat.isaac_gym", str(tmp_path / "old.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "1.0 inf torch.float32 3",
        "wave_terrain 2.0 3 87 2.0 True",
        "[]",
    ]
    told = [line for line in run.stderr.splitlines() if "np.float" in line]
    assert len(told) == 1 and np.__version__ in told[0]


def test_slopes_waves_and_stairs_have_their_heights() -> None:
    def tile():
        return terrain_utils.SubTerrain(
            width=40, length=60, vertical_scale=0.005, horizontal_scale=0.1
        )

    slope = terrain_utils.sloped_terrain(tile(), slope=0.5).height_field_raw * 0.005
    assert slope[:, 0] == pytest.approx(0.5 * 0.1 * np.arange(40), abs=0.005)
    assert (slope == slope[:, :1]).all()
    assert terrain_utils.sloped_terrain(tile(), -0.5).height_field_raw.min() < -350
    wave = terrain_utils.wave_terrain(tile(), num_waves=2, amplitude=0.4).height_field_raw * 0.005
    phase = 2 * np.pi * 2 / 60
    expected = 0.2 * np.cos(phase * np.arange(60)) + 0.2 * np.sin(phase * np.arange(40))[:, None]
    assert wave == pytest.approx(expected, abs=0.006)
    assert not terrain_utils.wave_terrain(tile(), num_waves=0).height_field_raw.any()
    stairs = terrain_utils.stairs_terrain(tile(), 0.55, 0.1).height_field_raw * 0.005
    assert stairs[:, 7] == pytest.approx(0.1 * (np.arange(40) // 5 + 1))
    with pytest.raises(ValueError, match=r"step_width=0\.05.*0\.1"):
        terrain_utils.stairs_terrain(tile(), 0.05, 0.1)
    assert terrain_utils.SubTerrain().height_field_raw.shape == (256, 256)
