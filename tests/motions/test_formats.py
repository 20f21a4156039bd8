"""Motion files of other projects: the right numbers, or the one thing to do."""

from __future__ import annotations

import io
import json
import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from made_clips import (
    as_motion,
    beyondmimic_arrays,
    dog_file,
    human_positions,
    walk,
    walking_human,
    write_bvh,
    write_csv,
)

from legged_envs import rotation
from legged_envs.motions import (
    G1_LEVEL_BY_LEVEL,
    G1_LIMB_BY_LIMB,
    Motion,
    MotionError,
    MotionFiles,
    MotionLibrary,
    MotionWarning,
    known_orders,
    load_motions,
    resample,
    save_motion,
    shipped_motions,
)
from legged_envs.motions.formats.bvh import read_bvh
from legged_envs.motions.orders import G1_WITHOUT_WRISTS
from legged_envs.robots import G1_29, GO2, H1


def load(path: Path, robot=G1_29, **options) -> Motion:
    """The only clip of a file, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MotionWarning)
        [motion] = MotionFiles([path], **options)(robot)
    return motion


def assert_same(motion: Motion, expected: Motion) -> None:
    assert motion.num_frames == expected.num_frames
    assert motion.frame_rate == pytest.approx(expected.frame_rate, rel=1e-3)
    assert torch.allclose(motion.root_pos_w, expected.root_pos_w, atol=2e-5)
    products = (motion.root_quat_w * expected.root_quat_w).sum(1).abs()
    assert torch.allclose(products, torch.ones_like(products), atol=1e-5)
    assert torch.allclose(motion.joint_pos, expected.joint_pos, atol=2e-5)
    assert torch.allclose(motion.body_pos_w, expected.body_pos_w, atol=1e-4)
    assert torch.allclose(motion.root_lin_vel_w, expected.root_lin_vel_w, atol=2e-2)


# --- text tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [25.0, 60.0, 120.0])
def test_a_table_is_read_at_the_rate_that_is_said(tmp_path, rate):
    clip = walk(rate)
    path = write_csv(tmp_path / "walk.csv", np.hstack(clip))
    assert_same(load(path, rate=rate), as_motion(rate, clip))


def test_a_table_without_a_rate_is_read_at_30_hz_and_says_so(tmp_path):
    path = write_csv(tmp_path / "walk.csv", np.hstack(walk(30.0)))
    with pytest.warns(MotionWarning, match=r"walk\.csv.* 30 Hz.*--motion\.rate"):
        [motion] = MotionFiles([path])(G1_29)
    assert_same(motion, as_motion(30.0, walk(30.0)))


@pytest.mark.parametrize("digits", [3, 7])
def test_a_column_of_times_is_the_rate(tmp_path, digits):
    clip = walk(60.0)
    times = np.round(np.arange(len(clip[0]))[:, None] / 60.0 + 5.0, digits)
    path = write_csv(tmp_path / "walk.csv", np.hstack((times, *clip)))
    assert_same(load(path), as_motion(60.0, clip))


@pytest.mark.parametrize("header", ["# 60 Hz\n# made by hand", "# made by hand, with care"])
def test_comments_above_a_table_are_left_out(tmp_path, header):
    clip = walk()
    path = write_csv(tmp_path / "walk.csv", np.concatenate(clip, axis=1), header=header)
    assert_same(load(path, rate=30.0), as_motion(30.0, clip))


@pytest.mark.parametrize("ending", ["csv", "npz", "pkl", "txt"])
def test_a_pointer_of_git_lfs_is_told(tmp_path, ending):
    path = tmp_path / f"walk.{ending}"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(MotionError, match="git lfs pull"):
        load(path)


@pytest.mark.parametrize("frames", [0, 1])
def test_a_clip_without_frames_is_told(tmp_path, frames):
    pos, quat, joints = walk()
    qpos = np.concatenate((pos, quat[:, [3, 0, 1, 2]], joints), axis=1)
    np.savez(tmp_path / "walk.npz", qpos=qpos[:frames], fps=50)
    with pytest.raises(MotionError, match=f"at least 2 frames, got {frames}"):
        load(tmp_path / "walk.npz")


def test_times_that_are_uneven_or_counted_are_refused(tmp_path):
    clip = np.hstack(walk(60.0))
    times = np.arange(len(clip))[:, None] / 60.0
    times[50:] += 0.2
    path = write_csv(tmp_path / "gap.csv", np.hstack((times, clip)))
    with pytest.raises(MotionError, match=r"gap\.csv: line 51"):
        load(path)
    path = write_csv(tmp_path / "count.csv", np.hstack((np.arange(len(clip))[:, None], clip)))
    with pytest.raises(MotionError, match=r"count\.csv.*--motion\.rate"):
        load(path)
    assert load(path, rate=60.0).frame_rate == 60.0


@pytest.mark.parametrize(
    ("separator", "mark", "header"),
    [
        (",", "\ufeff", False),
        (",", "\ufeff", True),
        ("\t", "", True),
        (";", "", True),
        (" ", "", False),
        (", ", "", True),
        (",", "\n\n# made by hand\n# ", True),
    ],
)
def test_headers_marks_and_separators(tmp_path, separator, mark, header):
    names = separator.strip(" ") or " "
    root = ("root_x", "root_y", "root_z", "root_qx", "root_qy", "root_qz", "root_qw")
    line = mark + names.join((*root, *G1_29.joint_names)) if header else ""
    path = write_csv(tmp_path / "walk.csv", np.hstack(walk()), separator, line)
    if mark and not header:
        path.write_text(mark + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert_same(load(path), as_motion(30.0, walk()))


@pytest.mark.parametrize(
    "spelling",
    [
        *('"{}"', "{}_dof", "{}_pos", "upper", "short", "hyphen", "blank", "camel"),
        *("robot.{}", "joint_pos/{}", "{} [rad]", "{}_rad", "q_{}", "{}_angle"),
    ],
)
def test_a_header_names_joints_as_programs_spell_them(tmp_path, spelling):
    pos, quat, joints = walk()
    names = []
    for joint in reversed(G1_29.joint_names):
        plain = {
            "upper": joint.upper(),
            "short": joint.removesuffix("_joint"),
            "hyphen": joint.replace("_", "-"),
            "blank": joint.replace("_", " "),
            "camel": joint.title().replace("_", ""),
        }
        names.append(plain.get(spelling) or spelling.format(joint))
    root = ("x", "y", "z", "qx", "qy", "qz", "qw")
    table = np.hstack((pos, quat, joints[:, ::-1]))
    path = write_csv(tmp_path / "walk.csv", table, header=",".join((*root, *names)))
    assert_same(load(path), as_motion(30.0, walk()))


def test_a_header_that_names_no_joint_is_refused_unless_the_order_is_given(tmp_path):
    names = [f"column{number}" for number in range(36)]
    path = write_csv(tmp_path / "walk.csv", np.hstack(walk()), header=",".join(names))
    with pytest.raises(MotionError, match=r"no joint of .*column33, column34.*--motion\.order"):
        load(path)
    assert_same(load(path, order=("limbs",)), as_motion(30.0, walk()))


def test_cells_in_quotes_are_numbers(tmp_path):
    path = write_csv(tmp_path / "walk.csv", np.hstack(walk()), '","')
    lines = path.read_text().splitlines()
    path.write_text("\n".join(f'"{line}"' for line in lines))
    assert_same(load(path), as_motion(30.0, walk()))


def test_a_table_of_another_width_says_what_to_do(tmp_path):
    path = write_csv(tmp_path / "walk.csv", np.hstack(walk())[:, :35])
    with pytest.raises(MotionError, match=r"line 1: .*36 columns .*got 35.*--motion\.order"):
        load(path)
    legs = write_csv(tmp_path / "legs.csv", np.hstack(walk())[:, :19])
    standing = load(legs, hold_missing_joints=True)
    assert_same(standing, as_motion(30.0, walk()))


def test_a_file_of_another_robot_says_what_to_do(tmp_path):
    path = write_csv(tmp_path / "walk.csv", np.hstack(walk()))
    with pytest.raises(MotionError, match=r"no joint of robot 'go2'.*--source") as caught:
        load(path, GO2)
    assert len(str(caught.value)) < 400


def test_a_header_gives_the_order_of_joints_and_quaternion(tmp_path):
    pos, quat, joints = walk(50.0)
    order = tuple(reversed(G1_29.joint_names))
    columns = [G1_29.joint_names.index(name) for name in order]
    times = np.arange(len(pos))[:, None] / 50.0
    header = ",".join(("time", "x", "y", "z", "qw", "qx", "qy", "qz", *order))
    table = np.hstack((times, pos, quat[:, [3, 0, 1, 2]], joints[:, columns]))
    path = write_csv(tmp_path / "walk.csv", table, header=header)
    assert_same(load(path), as_motion(50.0, (pos, quat, joints)))


def test_a_quaternion_in_the_other_order_is_refused_and_read_with_the_option(tmp_path):
    pos, quat, joints = walk()
    path = write_csv(tmp_path / "wxyz.csv", np.hstack((pos, quat[:, [3, 0, 1, 2]], joints)))
    with pytest.raises(MotionError, match=r"wxyz\.csv.*--motion\.quaternion wxyz"):
        load(path)
    assert_same(load(path, quaternion="wxyz"), as_motion(30.0, walk()))
    # Whoever says that the order is right gets what the file says.
    upside_down = load(path, quaternion="xyzw")
    up = rotation.rotate(upside_down.root_quat_w, torch.tensor([0.0, 0.0, 1.0]))
    assert up[0, 2] < -0.9


@pytest.mark.parametrize("robot", [H1, GO2], ids=lambda robot: robot.name)
def test_a_table_has_the_width_of_its_robot(tmp_path, robot):
    clip = walk(robot=robot)
    path = write_csv(tmp_path / "walk.csv", np.hstack(clip))
    assert_same(load(path, robot), as_motion(30.0, clip, robot))


def test_degrees_are_refused_and_read_with_the_option(tmp_path):
    pos, quat, joints = walk()
    path = write_csv(tmp_path / "deg.csv", np.hstack((pos, quat, np.degrees(joints))))
    with pytest.raises(MotionError, match=r"deg\.csv.*--motion\.degrees"):
        load(path)
    assert_same(load(path, degrees=True), as_motion(30.0, walk()))


def test_an_order_of_joints_can_be_said_by_a_word_or_by_names(tmp_path):
    pos, quat, joints = walk()
    columns = [G1_29.joint_names.index(name) for name in G1_LEVEL_BY_LEVEL]
    path = write_csv(tmp_path / "isaac.csv", np.hstack((pos, quat, joints[:, columns])))
    for order in (("levels",), G1_LEVEL_BY_LEVEL):
        assert_same(load(path, order=order), as_motion(30.0, walk()))
    with pytest.raises(ValueError, match=r"'level'.*levels"):
        load(path, order=("level",))


def test_words_for_orders_are_those_of_the_simulators():
    orders = known_orders(G1_29)
    assert orders["limbs"] == G1_LIMB_BY_LIMB and orders["levels"] == G1_LEVEL_BY_LEVEL
    parts = ("hip", "thigh", "calf")
    by_leg = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in parts]
    by_part = [f"{leg}_{part}_joint" for part in parts for leg in ("FL", "FR", "RL", "RR")]
    assert known_orders(GO2)["limbs-by-name"] == tuple(by_leg)
    assert known_orders(GO2)["levels-by-name"] == tuple(by_part)


def test_frames_and_height_can_be_chosen(tmp_path):
    path = write_csv(tmp_path / "walk.csv", np.hstack(walk()))
    part = load(path, frames=(11, 40), lift=0.1)
    whole = as_motion(30.0, walk())
    assert torch.allclose(part.joint_pos, whole.joint_pos[10:40], atol=1e-5)
    height = whole.root_pos_w[10:40, 2] + 0.1
    assert torch.allclose(part.root_pos_w[:, 2], height, atol=1e-5)
    with pytest.raises(MotionError, match=r"1 and 91.*\(11, 400\)"):
        load(path, frames=(11, 400))


def test_clips_of_several_rates_get_the_highest(tmp_path):
    for name, rate in (("slow", 30.0), ("fast", 60.0)):
        times = np.arange(len(walk(rate)[0]))[:, None] / rate
        write_csv(tmp_path / f"{name}.csv", np.hstack((times, *walk(rate))))
    motions = MotionFiles([tmp_path / "slow.csv", tmp_path / "fast.csv"])(G1_29)
    assert [motion.frame_rate for motion in motions] == [60.0, 60.0]
    assert torch.allclose(motions[0].joint_pos, motions[1].joint_pos, atol=5e-3)
    MotionLibrary(motions, G1_29)


# --- archives ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [G1_LIMB_BY_LIMB, G1_LEVEL_BY_LEVEL], ids=["mjlab", "isaac"])
def test_the_bodies_of_beyondmimic_tell_the_order_of_its_joints(tmp_path, order):
    expected = as_motion(50.0, walk(50.0))
    np.savez(tmp_path / "dance.npz", **beyondmimic_arrays(expected, order, G1_29))
    assert_same(load(tmp_path / "dance.npz"), expected)


def test_names_settle_the_order_and_other_keys_are_left_alone(tmp_path):
    expected = as_motion(50.0, walk(50.0))
    rng = np.random.default_rng(0)
    order = tuple(rng.permutation(G1_29.joint_names))
    arrays = beyondmimic_arrays(expected, order, G1_29)
    prefixed = np.array([f"robot/{name}" for name in order])
    more = {"body_names": np.array(["pelvis"]), "object_pos_w": np.zeros((3, 3))}
    np.savez(tmp_path / "named.npz", **arrays, joint_names=prefixed, **more)
    assert_same(load(tmp_path / "named.npz"), expected)


def test_holosomas_archive_has_the_base_before_joints_and_the_world_before_bodies(tmp_path):
    expected = as_motion(50.0, walk(50.0))
    arrays = beyondmimic_arrays(expected, G1_LIMB_BY_LIMB, G1_29)
    base = torch.cat((expected.root_pos_w, expected.root_quat_w), dim=1).numpy()
    arrays["joint_pos"] = np.hstack((base, arrays["joint_pos"]))
    arrays["joint_vel"] = np.hstack((np.zeros((len(base), 6)), arrays["joint_vel"]))
    kept = [name for name in expected.body_names if name not in G1_29.foot_names]
    for field in ("pos", "quat", "lin_vel", "ang_vel"):
        values = arrays[f"body_{field}_w"]
        world = np.zeros_like(values[:, :1])
        if field == "quat":
            world[..., 0] = 1.0
        arrays[f"body_{field}_w"] = np.concatenate((world, values), axis=1)
    names = {"joint_names": np.array(G1_LIMB_BY_LIMB), "body_names": np.array(["world", *kept])}
    np.savez(tmp_path / "holosoma.npz", **arrays, **names)
    assert_same(load(tmp_path / "holosoma.npz"), expected)


def test_isaac_labs_amp_archive(tmp_path):
    expected = as_motion(50.0, walk(50.0))
    arrays = beyondmimic_arrays(expected, G1_LEVEL_BY_LEVEL, G1_29)
    kept = [name for name in expected.body_names if name not in G1_29.foot_names]
    np.savez(
        tmp_path / "amp.npz",
        fps=arrays["fps"],
        dof_names=np.array(G1_LEVEL_BY_LEVEL),
        body_names=np.array(kept),
        dof_positions=arrays["joint_pos"],
        dof_velocities=arrays["joint_vel"],
        body_positions=arrays["body_pos_w"],
        body_rotations=arrays["body_quat_w"],
        body_linear_velocities=arrays["body_lin_vel_w"],
        body_angular_velocities=arrays["body_ang_vel_w"],
    )
    assert_same(load(tmp_path / "amp.npz"), expected)


@pytest.mark.parametrize("kind", ["holosoma", "object", "quaternion first", "LocoMuJoCo"])
def test_coordinates_of_mujoco(tmp_path, kind):
    pos, quat, joints = walk(40.0)
    w_first = quat[:, [3, 0, 1, 2]]
    parts = {
        "holosoma": (pos, w_first, joints),
        "object": (pos, w_first, joints, pos + 1.0, w_first),
        "quaternion first": (w_first, pos, joints),
        "LocoMuJoCo": (pos, w_first, joints[:, ::-1]),
    }
    more = {"fps": 40}
    if kind == "LocoMuJoCo":
        names = ["root", *reversed(G1_29.joint_names)]
        more = {
            "frequency": 40.0,
            "joint_names": np.array(names),
            "split_points": np.array([0, len(pos)]),
            "metadata": np.array(None, dtype=object),
        }
    np.savez(tmp_path / "qpos.npz", qpos=np.hstack(parts[kind]), **more)
    assert_same(load(tmp_path / "qpos.npz"), as_motion(40.0, (pos, quat, joints)))


def test_several_trajectories_and_no_rate_are_refused(tmp_path):
    pos, quat, joints = walk(40.0)
    qpos = np.hstack((pos, quat[:, [3, 0, 1, 2]], joints))
    np.savez(tmp_path / "two.npz", qpos=qpos, fps=40, split_points=np.array([0, 50, len(pos)]))
    with pytest.raises(MotionError, match=r"two\.npz.*2 trajectories.*--motion\.frames 1 50"):
        load(tmp_path / "two.npz")
    assert load(tmp_path / "two.npz", frames=(1, 50)).num_frames == 50
    np.savez(tmp_path / "no_rate.npz", qpos=qpos)
    with pytest.raises(MotionError, match=r"no_rate\.npz.*--motion\.rate"):
        load(tmp_path / "no_rate.npz")
    assert load(tmp_path / "no_rate.npz", rate=40.0).frame_rate == 40.0


def test_humans_are_refused_with_what_to_do(tmp_path):
    poses = {"poses": np.zeros((5, 156)), "trans": np.zeros((5, 3)), "mocap_framerate": 120.0}
    np.savez(tmp_path / "amass.npz", **poses)
    with pytest.raises(MotionError, match=r"amass\.npz.*SMPL.*'joints'.*legged-envs motion"):
        load(tmp_path / "amass.npz")
    np.savez(tmp_path / "joints.npz", joints=np.zeros((5, 22, 3)), fps=30)
    with pytest.raises(MotionError, match=r"joints\.npz.*legged-envs motion"):
        load(tmp_path / "joints.npz")
    with pytest.raises(MotionError, match=r"walk\.bvh.*legged-envs motion"):
        load(tmp_path / "walk.bvh")


def test_options_contradict_a_file_that_says_everything(tmp_path):
    save_motion(tmp_path / "own.npz", as_motion(50.0, walk(50.0)))
    with pytest.raises(MotionError, match=r"own\.npz.*--motion"):
        load(tmp_path / "own.npz", rate=60.0)


# --- pickles -------------------------------------------------------------------------------------


def gmr(clip) -> dict:
    pos, quat, joints = clip
    return {
        "fps": 30,
        "root_pos": pos,
        "root_rot": quat,
        "dof_pos": joints,
        "local_body_pos": None,
        "link_body_list": None,
    }


def asap(clip) -> dict:
    pos, quat, joints = clip
    kept = [G1_29.joint_names.index(name) for name in G1_WITHOUT_WRISTS]
    return {
        "0-kick_poses": {
            "root_trans_offset": pos.astype(np.float32),
            "pose_aa": np.zeros((len(pos), 27, 3)),
            "dof": np.asfortranarray(joints[:, kept]),
            "root_rot": quat,
            "fps": np.int64(30),
        }
    }


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_pickle_of_gmr(tmp_path, protocol):
    path = tmp_path / "walk.pkl"
    path.write_bytes(pickle.dumps(gmr(walk()), protocol=protocol))
    assert_same(load(path), as_motion(30.0, walk()))


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 3)])
def test_a_joblib_file_of_asap_lacks_wrists_which_can_be_held(tmp_path, compress):
    joblib = pytest.importorskip("joblib")
    path = tmp_path / "kick.pkl"
    joblib.dump(asap(walk()), path, compress=compress)
    with pytest.raises(MotionError, match=r"kick\.pkl.*'left_wrist_roll_joint'.*hold-missing"):
        load(path)
    assert_same(load(path, hold_missing_joints=True), as_motion(30.0, walk()))


class Shell:
    """Runs a command when it is unpickled."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return (os.mkdir, (str(self.mark),))


def memo_bomb() -> bytes:
    """Lists of lists, each twice in the next, which are 2^60 when they are written out."""
    nested: list = []
    for _ in range(60):
        nested = [nested, nested]
    return pickle.dumps({"root_pos": nested, "root_rot": 0, "dof_pos": 0})


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_pickle_runs_nothing(tmp_path, protocol):
    path = tmp_path / "evil.pkl"
    path.write_bytes(pickle.dumps({**gmr(walk()), "x": Shell(tmp_path / "x")}, protocol=protocol))
    with pytest.raises(MotionError, match=r"evil\.pkl.*\.mkdir"):
        load(path)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        b"cbuiltins\neval\n(S'1+1'\ntR.",
        b"cnumpy\nload\n(S'/etc/passwd'\ntR.",
        # numpy.core.multiarray.zeros would take any memory.
        b"cnumpy.core.multiarray\nzeros\n((I100000000000\ntR.",
        # A number for the memo that would make a table of 64 GB.
        b"\x80\x02]r\xff\xff\xff\x7f.",
        # Eight bytes that claim to be a text of 2^60.
        b"\x80\x04\x8e" + (2**60).to_bytes(8, "little") + b"abc.",
        pickle.dumps(np.array([{1: 2}], dtype=object)),
        pickle.dumps([1.0, 2.0]),
        memo_bomb(),
    ],
)
def test_damaged_and_hostile_pickles_are_one_line(tmp_path, content):
    path = tmp_path / "bad.pkl"
    path.write_bytes(content)
    with pytest.raises(MotionError, match=r"bad\.pkl") as error:
        load(path)
    assert "\n" not in str(error.value)


def test_arrays_that_share_memory_and_texts_are_read(tmp_path):
    clip = walk()
    content = {**gmr(clip), "joint_names": np.array(G1_29.joint_names), "again": clip[0]}
    content["copy"] = content["root_pos"]
    buffer = io.BytesIO()
    pickle.Pickler(buffer, protocol=3).dump(content)
    path = tmp_path / "walk.pkl"
    path.write_bytes(buffer.getvalue())
    assert_same(load(path), as_motion(30.0, clip))


# --- AMP and Peng et al. -------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [0.0, 0.2, -0.3])
def test_a_loop_that_turns_back_ends_with_its_first_heading_at_its_speed(tmp_path, turn):
    motion = load(dog_file(tmp_path / "pace.txt", turn, rotates=False), GO2)
    heading = rotation.heading(motion.root_quat_w)
    assert motion.loop and abs(heading[-1] - heading[0]) < 1e-5
    straight = load(dog_file(tmp_path / "straight.txt", 0.0, rotates=True), GO2)
    # The frames of the file drift; their speed, in the frame of the base, does not change.
    drifting = load(dog_file(tmp_path / "drift.txt", turn, rotates=True), GO2)
    in_base = []
    for clip in (motion, drifting):
        to_base = rotation.conjugate(clip.root_quat_w)
        in_base.append(rotation.rotate(to_base, clip.root_lin_vel_w)[5:-5])
    assert torch.allclose(in_base[0], in_base[1], atol=0.02)
    again = MotionLibrary([motion], GO2).sample(
        torch.tensor([0, 0]), torch.tensor([0.0, 3.0 * motion.duration])
    )
    assert torch.allclose(again.root_quat_w[1], again.root_quat_w[0], atol=1e-4)
    assert torch.equal(motion.joint_pos, straight.joint_pos)


def test_a_loop_that_turns_far_and_claims_not_to_is_refused(tmp_path):
    path = dog_file(tmp_path / "spin.txt", 2.0, rotates=False)
    with pytest.raises(MotionError, match=r"spin\.txt.*EnableCycleOffsetRotation.*2\.00 rad"):
        load(path, GO2)
    assert not load(dog_file(tmp_path / "once.txt", 2.0, False, mode="Clamp"), GO2).loop


def test_a_clip_with_velocities_and_no_feet(tmp_path):
    content = json.loads(dog_file(tmp_path / "a.txt", 0.0, rotates=True).read_text())
    for frame in content["Frames"]:
        frame += [0.5, 0.0, 0.0, 0.0, 0.0, 0.1, *([0.25] * 12)]
    path = tmp_path / "amp.json"
    path.write_text(json.dumps(content))
    motion = load(path, GO2)
    assert torch.allclose(motion.joint_vel, torch.full_like(motion.joint_vel, 0.25))
    assert torch.allclose(motion.root_ang_vel_b[:, 2], torch.tensor(0.1))


def test_a_clip_of_deepmimic_is_refused_with_what_to_do(tmp_path):
    path = tmp_path / "humanoid3d_walk.txt"
    path.write_text(json.dumps({"Loop": "wrap", "Frames": [[0.033] + [0.0] * 43] * 3}))
    with pytest.raises(MotionError, match=r"humanoid3d_walk\.txt.*DeepMimic.*\.bvh"):
        load(path, GO2)


# --- humans --------------------------------------------------------------------------------------


def test_a_frame_time_with_few_digits_is_a_whole_rate(tmp_path):
    path = write_bvh(tmp_path / "march.bvh", walking_human(5))
    path.write_text(path.read_text().replace("0.0333333", "0.033333"))
    assert read_bvh(path)[2] == 30.0


def test_joints_of_a_bvh_file_are_where_trigonometry_puts_them(tmp_path):
    angles = walking_human()
    names, positions, rate = read_bvh(write_bvh(tmp_path / "march.bvh", angles))
    assert rate == pytest.approx(30.0, rel=1e-4)
    for joint, place in human_positions(angles).items():
        # The file is in cm, y up and z ahead.
        got = 0.01 * positions[:, names.index(joint)][:, [2, 0, 1]]
        assert np.allclose(got, place, atol=1e-4), joint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("MOTION", "MOTIONS"), "MOTION"),
        (lambda text: text.replace("OFFSET 10 -2 0", "OFFSET 10 x 0"), "line 8.*'x'"),
        (lambda text: text.rstrip() + " 7.0\n", "line .*54.*55"),
        (lambda text: text.rstrip().rpartition("\n")[0], "Frames: 5, but has 4"),
        (lambda text: text.replace("Frame Time: 0.0333333", "Frame Time: 0"), "Frame Time"),
        (lambda text: text.replace("CHANNELS 3 Z", "CHANNELS many Z"), "'CHANNELS many"),
        (lambda text: text.replace("3 Zrotation", "3 Wrotation"), "line 9.*'Wrotation'"),
    ],
)
def test_errors_in_a_bvh_file_name_the_line(tmp_path, change, message):
    path = write_bvh(tmp_path / "march.bvh", walking_human(5))
    path.write_text(change(path.read_text()))
    with pytest.raises(MotionError, match=rf"march\.bvh: .*{message}"):
        read_bvh(path)


def test_a_rate_that_would_make_endless_frames_is_named(tmp_path):
    save_motion(tmp_path / "walk.npz", as_motion(25.0, walk(25.0)))
    with pytest.raises(MotionError, match=r"walk.* 25 Hz.*1e\+12 Hz.*--motion\.rate"):
        resample(load(tmp_path / "walk.npz"), G1_29, 1e12)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({}, "paths.*None"),
        ({"paths": "walk.csv"}, r"paths.*'walk\.csv'"),
        ({"paths": []}, r"paths.*\[\]"),
        ({"paths": ["walk.csv"], "speed": 2}, "'speed'.*rate"),
        ({"paths": ["walk.csv"], "rate": "a"}, "rate.*'a'"),
        ({"paths": ["walk.csv"], "frames": [1]}, r"frames.*\[1\]"),
        ({"paths": ["walk.csv"], "order": 3}, "order.*3"),
        ({"paths": ["walk.csv"], "degrees": "yes"}, "degrees.*'yes'"),
    ],
)
def test_files_of_motions_as_json_has_them_are_checked(values, named):
    with pytest.raises(ValueError, match=named):
        load_motions(values, G1_29)


def test_files_of_motions_are_the_same_as_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_motion(tmp_path / "walk.npz", as_motion(25.0, walk(25.0)))
    files = MotionFiles(("walk.npz",), frames=(2, 9))
    again = json.loads(json.dumps(files.as_json()))
    assert again == {"paths": [str(tmp_path / "walk.npz")], "frames": [2, 9]}
    files = MotionFiles(("walk.npz",))
    [motion] = load_motions(json.loads(json.dumps(files.as_json())), G1_29)
    assert_same(motion, as_motion(25.0, walk(25.0)))


def test_velocities_follow_the_order_of_quaternions_that_is_given(tmp_path):
    turn = shipped_motions(GO2, "turn_left")[0]
    arrays = beyondmimic_arrays(turn, GO2.joint_names, GO2)
    np.savez(tmp_path / "wxyz.npz", **arrays)
    arrays["body_quat_w"] = arrays["body_quat_w"][..., [1, 2, 3, 0]]
    np.savez(tmp_path / "xyzw.npz", **arrays)
    expected = load(tmp_path / "wxyz.npz", GO2)
    motion = load(tmp_path / "xyzw.npz", GO2, quaternion="xyzw")
    for field in ("root_quat_w", "root_ang_vel_b", "body_lin_vel_w", "body_ang_vel_w"):
        assert torch.allclose(getattr(motion, field), getattr(expected, field), atol=1e-5)


def test_a_loop_with_w_first_is_read_with_the_option(tmp_path):
    path = dog_file(tmp_path / "pace.txt", 0.5, rotates=True)
    expected = load(path, GO2)
    content = json.loads(path.read_text())
    rows = np.array(content["Frames"])
    rows[:, 3:7] = rows[:, [6, 3, 4, 5]]
    path.write_text(json.dumps({**content, "Frames": rows.tolist()}))
    motion = load(path, GO2, quaternion="wxyz")
    assert torch.allclose(motion.root_quat_w, expected.root_quat_w, atol=1e-6)
    assert torch.allclose(motion.root_lin_vel_w, expected.root_lin_vel_w, atol=1e-4)
