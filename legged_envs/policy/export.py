"""A policy with what runs it without this package: an ONNX file, its weights, its robot as plain MuJoCo reads it."""

import shutil
from pathlib import Path

from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.policy import (
    POLICY_FILE,
    SINCE,
    halve,
    load_policy,
    policy_and_task,
    policy_file,
    save_onnx,
    shipped_file,
)
from legged_envs.sim.scene import spec_on_ground


def export(
    task_id: str, policy: Path | None, folder: Path, half: bool = False
) -> tuple[Path, Path, Path]:
    """Write ``policy.onnx`` and ``policy.safetensors``, of a file or run folder (None: what ships), both with its
    contract, and ``scene.xml``, that of its task; with ``half`` the weights are rounded to 16-bit floats. Where these
    are; errors as :func:`policy_and_task`, and a ValueError, before anything is written, for a contract that lacks
    something.
    """
    given, cfg, _ = policy_and_task(task_id, policy)
    if missing := [name for name in SINCE if name not in given.contract]:
        wrong = f"{str(policy)!r} was written by an earlier version, its contract has no {', '.join(missing)}"
        how = "go on with its run for an update, train --resume, which writes it anew"
        if "action_size" in given.contract:
            wrong = f"methods of {given.task_id!r} make joint targets of its actions, and no contract says how"
            how = "set them in action terms to export a policy"
        raise ValueError(f"{wrong}: {how}")
    text = scene_text(cfg)
    onnx, weights, scene = (folder / name for name in ("policy.onnx", POLICY_FILE, "scene.xml"))
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(policy_file(policy) if policy else shipped_file(task_id), weights)
    if half:
        halve(weights)
        given = load_policy(weights)
    save_onnx(onnx, given, {"inputs": given.inputs, **given.contract})
    scene.write_text(text)
    return onnx, weights, scene


def scene_text(cfg: TaskCfg) -> str:
    """The first robot of a task on a plane as MJCF, with the actuators, contacts and physics options of the simulation,
    and its default pose as the keyframe ``home``; meshes by their absolute paths."""
    robot, spec = cfg.robot, spec_on_ground(cfg.robot, cfg.sim)
    spec.meshdir, spec.texturedir = (
        str(robot.path.parent / each) for each in (spec.meshdir, spec.texturedir)
    )
    pose = [0.0, 0.0, robot.base_height, 1.0, 0.0, 0.0, 0.0, *robot.default_joint_pos]
    spec.add_key(name="home", qpos=pose, ctrl=robot.default_joint_pos)
    spec.compile()
    return str(spec.to_xml())
