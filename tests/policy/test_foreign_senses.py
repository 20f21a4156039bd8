"""Policies of other frameworks that see the ground or imitate a motion of another file, and their export."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
import yaml
from policy.foreign_loops import LabLoop
from policy.test_foreign import (
    COMMAND,
    G1,
    GO2,
    assert_same_targets,
    core_of,
    deploy_yaml,
    exact,
    lab_size,
    mjlab_metadata,
    motor_keys,
    network,
    old_checkpoint,
    save_network,
    term,
    write,
)

from legged_envs import cli
from legged_envs.envs.cfg import override
from legged_envs.motions import motion_from_coordinates, save_motion
from legged_envs.policy.foreign.scan import grid_lines
from legged_envs.policy.lookup import policy_and_task
from legged_envs.robots import G1_29

ROUGH, H1 = "Legged/Go2-Rough-v0", "Legged/H1-Flat-v0"


# --- the ground ------------------------------------------------------------------------------------


def with_scan(**params: Any) -> dict[str, Any]:
    tree = deploy_yaml()
    scan = term(15, 2.0, clip=[-0.3, 0.25])
    scan["params"] = {"size": [0.8, 0.4], "resolution": 0.2, "offset": 0.3, **params}
    tree["observations"] = {"base_ang_vel": term(3, 0.2), "height_scan": scan}
    return tree


def rays(core: Any, size: tuple[float, float], resolution: float, robot: int) -> np.ndarray:
    """Heights of the ground below a grid as Isaac Lab's rays find them: x varies fastest."""
    ground = core.sim.ground
    pos = core.sim.root_pos_w[robot].double().numpy()
    w, x, y, z = core.sim.root_quat_w[robot].double().numpy()
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    xs = np.arange(-size[0] / 2, size[0] / 2 + 1e-9, resolution)
    ys = np.arange(-size[1] / 2, size[1] / 2 + 1e-9, resolution)
    heights = []
    for left in ys:
        for ahead in xs:
            east = pos[0] + np.cos(yaw) * ahead - np.sin(yaw) * left
            north = pos[1] + np.sin(yaw) * ahead + np.cos(yaw) * left
            point = torch.tensor([[east], [north]], dtype=torch.float32)
            heights.append(float(ground.height(*point)[0]))
    return np.array(heights)


def test_a_height_scan_sees_the_ground_at_the_points_of_the_file_in_their_order(
    tmp_path: Path,
) -> None:
    tree = with_scan()
    path = save_network(tmp_path / "policy.onnx", network(18, 12), 18)
    description = write(tmp_path / "deploy.yaml", tree)
    policy, cfg, _ = policy_and_task(ROUGH, path, description=description)
    hard = {"scene.terrain.first_levels": (8, 10)}
    turned = {"events.root.params.yaw": (0.5, 2.5), "events.root.params.position": 3.0}
    core = core_of(override(cfg, {**turned, **hard}), 4)
    observation = core.reset(seed=1)[0]
    for _ in range(3):
        observation = core.step(policy(observation))[0]
    seen = policy.network.observe(observation)[:, 3:]
    for robot in range(4):
        below = float(core.sim.root_pos_w[robot, 2]) - rays(core, (0.8, 0.4), 0.2, robot) - 0.3
        expected = torch.tensor(np.clip(below, -0.3, 0.25) * 2.0, dtype=torch.float32)
        torch.testing.assert_close(seen[robot], expected, atol=2e-3, rtol=0.0)
    assert seen.std() > 0.05
    core.close()


def test_grids_have_the_points_of_isaac_lab() -> None:
    for size, resolution in ((1.6, 0.1), (1.0, 0.1), (0.8, 0.2), (1.0, 0.3), (0.0, 0.1)):
        expected = np.arange(-size / 2, size / 2 + 1e-9, resolution)
        assert grid_lines(size, resolution) == pytest.approx(expected.tolist())


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"size": [0.8]}, r"size.*2 numbers"),
        ({"size": [1.0, -1.0]}, r"size.*-1\.0"),
        ({"resolution": 0.0}, "resolution.*0"),
        ({"resolution": 1e-5}, r"size.*0\.8"),
        ({"resolution": 0.002}, "resolution.*80,601 points"),
        ({"size": [1.0, 1.0]}, "scale.*36.*15"),
    ],
)
def test_a_grid_that_cannot_be_is_named(params: dict[str, Any], named: str, tmp_path: Path) -> None:
    path = save_network(tmp_path / "policy.onnx", network(18, 12), 18)
    description = write(tmp_path / "deploy.yaml", with_scan(**params))
    with pytest.raises(ValueError, match=named):
        policy_and_task(GO2, path, description=description)


def mjlab_policy(folder: Path, points: int, scan_scale: float = 0.2) -> Path:
    """A policy of mjlab that sees its speed of turning, its last action and heights."""
    size = 15 + points
    texts = {
        **mjlab_metadata(),
        "observation_names": "base_ang_vel,height_scan,actions",
        "observation_terms_scale": f"0.250;0.500;2.000,{scan_scale:.3f},1.0",
        "observation_terms_clip": "-inf;inf,-inf;0.350,-1.000;1.000",
        "observation_terms_history_length": "0,0,0",
    }
    return save_network(folder / "policy.onnx", network(size, 12), size, **texts)


@pytest.mark.parametrize("given", [False, True])
def test_a_policy_of_mjlab_sees_the_ground_where_its_tasks_look(
    given: bool, tmp_path: Path
) -> None:
    size, resolution, offset = (1.6, 1.0), 0.1, 0.0
    description = None
    if given:
        size, resolution, offset = (0.8, 0.4), 0.2, 0.05
        params = {"size": list(size), "resolution": resolution, "offset": offset}
        description = write(tmp_path / "scan.yaml", {"height_scan": {"params": params}})
    points = 15 if given else 187
    path = mjlab_policy(tmp_path, points)
    policy, cfg, _ = policy_and_task(ROUGH, path, description=description)
    told = " ".join(policy.contract["foreign"]["assumed"])
    assert ("1.6 m by 1 m" in told) is not given
    hard = {"scene.terrain.first_levels": (8, 10), "events.root.params.yaw": (0.5, 2.5)}
    core = core_of(override(cfg, hard), 3)
    observation = core.reset(seed=1)[0]
    for _ in range(3):
        observation = core.step(policy(observation))[0]
    seen = policy.network.observe(observation)
    for robot in range(3):
        below = float(core.sim.root_pos_w[robot, 2]) - rays(core, size, resolution, robot) - offset
        expected = torch.tensor(np.minimum(below, 0.35) * 0.2, dtype=torch.float32)
        torch.testing.assert_close(seen[robot, 3:-12], expected, atol=1e-3, rtol=0.0)
    assert seen[:, 3:-12].std() > 0.001
    turning = core.robot.ang_vel_b * torch.tensor([0.25, 0.5, 2.0])
    torch.testing.assert_close(seen[:, :3], turning, atol=1e-5, rtol=0.0)
    core.close()


def test_a_scan_of_another_grid_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"height_scan 187.*105.*size.*resolution"):
        policy_and_task(ROUGH, mjlab_policy(tmp_path, 90))
    description = write(tmp_path / "scan.yaml", {"height_scan": {"params": {"size": [1.0, 1.0]}}})
    with pytest.raises(ValueError, match=r"scan\.yaml.*resolution"):
        policy_and_task(ROUGH, tmp_path / "policy.onnx", description=description)
    for entry, text, named in (
        ("observation_terms_history_length", "1e9,1,1,1,1,1,1", r"history_length.*1e\+09"),
        ("observation_terms_history_length", "2.5,1,1,1,1,1,1", r"history_length.*2\.5"),
        ("observation_names", "", "no observations"),
        ("action_scale", "0.250," * 11 + "0.000", "action of .*calf_joint.*got 0"),
        ("observation_terms_clip", "1;0" + ",-inf;inf" * 6, r"terms_clip.*1\.0, 0\.0"),
    ):
        texts = {**mjlab_metadata(), entry: text}
        bare = save_network(tmp_path / "bare.onnx", network(48, 12), 48, **texts)
        with pytest.raises(ValueError, match=named):
            policy_and_task(GO2, bare)
    texts = {**mjlab_metadata(), "observation_terms_scale": "1.0,2.0"}
    bare = save_network(tmp_path / "bare.onnx", network(48, 12), 48, **texts)
    with pytest.raises(ValueError, match=r"observation_terms_scale.*7 terms.*1\.0, 2\.0"):
        policy_and_task(GO2, bare)


# --- motions ---------------------------------------------------------------------------------------


def clip(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A clip of a G1 that turns its waist, at 25 frames per second; positions, heights and headings of the base."""
    frames = 50
    time = torch.arange(frames) / 25.0
    joints = torch.tensor(G1_29.default_joint_pos).repeat(frames, 1)
    waist = G1_29.joint_names.index("waist_yaw_joint")
    joints[:, waist] = 0.5 * torch.sin(2.0 * time)
    half = 0.5 * (0.4 + 0.3 * time)
    zeros = torch.zeros(frames)
    quat = torch.stack((half.cos(), zeros, zeros, half.sin()), dim=1)
    pos = torch.stack((0.2 * time, zeros, zeros + G1_29.base_height), dim=1)
    save_motion(path, motion_from_coordinates(G1_29, "turn", 25.0, pos, quat, joints))
    return joints.numpy(), pos.numpy(), (2.0 * half + joints[:, waist]).numpy()


def mimic_yaml() -> dict[str, Any]:
    default = list(G1_29.default_joint_pos)
    return deploy_yaml(
        joint_ids_map=list(range(29)),
        stiffness=list(G1_29.kp),
        damping=list(G1_29.kd),
        default_joint_pos=default,
        commands={},
        actions={"JointPositionAction": {"clip": None, "scale": [0.25] * 29, "offset": default}},
        observations={
            "motion_command": term(58, 1.0),
            "motion_anchor_ori_b": term(6, 1.0),
            "base_ang_vel": term(3, 1.0),
        },
    )


def test_a_policy_of_unitree_rl_lab_imitates_the_motion_of_a_file(tmp_path: Path) -> None:
    joints, _, headings = clip(tmp_path / "turn.npz")
    path = save_network(tmp_path / "policy.onnx", network(67, 29), 67)
    description = write(tmp_path / "deploy.yaml", mimic_yaml())
    policy, cfg, _ = policy_and_task(
        G1, path, description=description, motions=[tmp_path / "turn.npz"]
    )
    assert any("torso_link" in each for each in policy.contract["foreign"]["assumed"])
    core = core_of(exact(cfg), 2)
    observation = core.reset(seed=0)[0]
    torso = core.sim.body_ids(("torso_link",))[0]

    def heading() -> torch.Tensor:
        w, x, y, z = core.sim.body_quat_w[:, torso].unbind(1)
        return torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))

    first = heading()
    for step in range(20):
        seen = policy.network.observe(observation)
        # The clip has a frame for every second control step.
        if step % 2 == 0:
            frame = torch.from_numpy(joints[step // 2])
            torch.testing.assert_close(seen[0, :29], frame, atol=1e-4, rtol=0.0)
            # The clip begins with the robot's heading. Columns of a turn about z: cos, -sin, sin, cos.
            turn = first + float(headings[step // 2] - headings[0]) - heading()
            columns = seen[:, 58:64]
            if step == 0:
                torch.testing.assert_close(columns[:, 0], turn.cos(), atol=1e-3, rtol=0.0)
                torch.testing.assert_close(columns[:, 2], turn.sin(), atol=1e-3, rtol=0.0)
            found = torch.atan2(columns[:, 2], columns[:, 0])
            assert (found - turn).abs().max() < 0.1
        observation = core.step(policy(observation))[0]
    core.close()


def test_a_motion_that_is_missing_or_for_nobody_is_named(tmp_path: Path) -> None:
    clip(tmp_path / "turn.npz")
    path = save_network(tmp_path / "policy.onnx", network(67, 29), 67)
    description = write(tmp_path / "deploy.yaml", mimic_yaml())
    with pytest.raises(ValueError, match=r"deploy\.yaml.*0 files.*--motions"):
        policy_and_task(G1, path, description=description)
    with pytest.raises(ValueError, match="--clips"):
        policy_and_task(G1, path, description=description, clips=["walk"])
    tree = deploy_yaml()
    description = write(tmp_path / "deploy.yaml", tree)
    path = save_network(tmp_path / "policy.onnx", network(lab_size(tree), 12), lab_size(tree))
    with pytest.raises(ValueError, match=r"no motion.*--motions"):
        policy_and_task(GO2, path, description=description, motions=[tmp_path / "turn.npz"])


# --- robots and export -----------------------------------------------------------------------------


def test_an_h1_of_other_frameworks_stands_on_the_soles_of_its_makers_mesh(tmp_path: Path) -> None:
    """left_ankle_link.STL of unitree_rl_gym reaches from 0.100 m behind the ankle to 0.200 m ahead of it."""
    legs = [f"{side}_{joint}_joint" for side in ("left", "right") for joint in LEG]
    default = [0.0, 0.0, -0.1, 0.3, -0.2] * 2
    tree = deploy_yaml(
        joint_names=legs,
        joint_ids_map=list(range(10)),
        stiffness=[150.0] * 10,
        damping=[2.0] * 10,
        default_joint_pos=default,
        actions={"JointPositionAction": {"clip": None, "scale": [0.25] * 10, "offset": default}},
        observations={"base_ang_vel": term(3, 1.0)},
    )
    path = save_network(tmp_path / "policy.onnx", network(3, 10), 3)
    description = write(tmp_path / "deploy.yaml", tree)
    policy, cfg, _ = policy_and_task(H1, path, description=description)
    model = mujoco.MjSpec.from_file(str(cfg.robot.path)).compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    ankle = data.body("left_ankle_link").xpos[0]
    ends = []
    for name in ("heel", "toe_left"):
        shape = f"left_{name}_collision"
        ends.append(data.geom(shape).xpos[0] - ankle)
    radius = model.geom("left_heel_collision").size[0]
    assert [ends[0] - radius, ends[1] + radius] == pytest.approx([-0.1, 0.2], abs=1e-6)
    assert any("0.30 m" in each for each in policy.contract["foreign"]["assumed"])


LEG = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle")


def test_a_checkpoint_of_rsl_rl_is_written_for_another_loop_and_acts_as_in_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = deploy_yaml()
    size = lab_size(tree)
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Linear(size, 16), torch.nn.ELU(), torch.nn.Linear(16, 12)
    ).requires_grad_(False)
    torch.save(old_checkpoint(layers), "model_7.pt")
    description = write(tmp_path / "deploy.yaml", tree)
    given = ["--policy", "model_7.pt", "--contract", "deploy.yaml"]
    cli.main(["export", GO2, *given, "--format", "unitree-rl-lab", "--folder", "lab"])
    policy, cfg, _ = policy_and_task(GO2, Path("model_7.pt"), description=description)
    loop = LabLoop(Path("lab/params/deploy.yaml"), Path("lab/exported/policy.onnx"))
    assert_same_targets(core_of(exact(cfg)), policy, loop, motor_keys(cfg), steps=40)
    written = yaml.safe_load(Path("lab/params/deploy.yaml").read_text())
    assert written["stiffness"][0] == 20.0
    assert COMMAND[0] <= written["commands"]["base_velocity"]["ranges"]["lin_vel_x"][1]


def test_crosscheck_takes_the_motion_of_a_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    clip(tmp_path / "turn.npz")
    save_network(tmp_path / "policy.onnx", network(67, 29), 67)
    write(tmp_path / "deploy.yaml", mimic_yaml())
    words = ["crosscheck", G1, "--policy", "policy.onnx", "--contract", "deploy.yaml"]
    words += ["--sims", "mujoco", "--robots", "1", "--seconds", "1.1", "--json", "c.json"]
    with pytest.raises(SystemExit):
        cli.main(words)
    assert "--motions" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*words, "--motions", "missing.npz"])
    assert "missing.npz" in capsys.readouterr().err
    cli.main([*words, "--motions", "turn.npz"])
    numbers = json.loads(Path("c.json").read_text())
    assert list(numbers["runs"]) == ["mujoco"]
    assert "motion_joints" in numbers["remark"]


def test_a_policy_of_rl_sar_sees_the_motion_in_its_own_order(tmp_path: Path) -> None:
    joints, _, _ = clip(tmp_path / "turn.npz")
    # Numbers of the motors, as its policies of whole_body_tracking have the joints.
    order = [*range(0, 29, 2), *range(1, 29, 2)]
    config = {
        "observations": [
            "whole_body_tracking/motion_command",
            "whole_body_tracking/motion_anchor_ori_b",
            "ang_vel",
        ],
        "observations_history": [],
        "clip_obs": 100.0,
        "num_of_dofs": 29,
        "rl_kp": [40.0] * 29,
        "rl_kd": [2.0] * 29,
        "action_scale": 0.25,
        "ang_vel_scale": 1.0,
        "default_dof_pos": [G1_29.default_joint_pos[number] for number in order],
        "joint_mapping": order,
    }
    description = write(tmp_path / "config.yaml", {"g1/dance": config})
    path = save_network(tmp_path / "policy.pt", network(67, 29), 67)
    policy, cfg, _ = policy_and_task(
        G1, path, description=description, motions=[tmp_path / "turn.npz"]
    )
    core = core_of(exact(cfg), 2)
    observation = core.reset(seed=0)[0]
    # The clip has 25 frames per second.
    steps_per_frame = round(0.04 / cfg.sim.step_dt)
    for step in range(4 * steps_per_frame):
        seen = policy.network.observe(observation)
        if step % steps_per_frame == 0:
            frame = torch.from_numpy(joints[step // steps_per_frame][order])
            torch.testing.assert_close(seen[0, :29], frame, atol=1e-4, rtol=0.0)
        observation = core.step(policy(observation))[0]
    core.close()


@pytest.mark.parametrize("seconds", [1e-9, 1e9])
def test_a_control_step_that_no_loop_has_is_named(seconds: float, tmp_path: Path) -> None:
    tree = deploy_yaml(step_dt=seconds)
    path = save_network(tmp_path / "policy.onnx", network(lab_size(tree), 12), lab_size(tree))
    description = write(tmp_path / "deploy.yaml", tree)
    with pytest.raises(ValueError, match=rf"deploy\.yaml.*{re.escape(f'{seconds:g}')}"):
        policy_and_task(GO2, path, description=description)
