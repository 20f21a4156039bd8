"""Export of a policy with everything that runs it without this package.

These are an ONNX file, the weights, and the robot as a model that plain MuJoCo reads.
"""

import shutil
from pathlib import Path

from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.metadata import missing_entries
from legged_envs.policy.policy import (
    POLICY_FILE,
    Policy,
    halve_weights,
    load_policy,
    policy_and_task,
    policy_file,
    save_onnx,
    shipped_file,
)
from legged_envs.sim.scene import spec_on_ground

ONNX_FILE = "policy.onnx"
"""File name of the exported network with its contract."""

SCENE_FILE = "scene.xml"
"""File name of the exported scene: the robot as a MuJoCo model."""


def export(
    task_id: str, policy: Path | None, folder: Path, half: bool = False
) -> tuple[Path, Path, Path]:
    """Write the files that run a policy without this package.

    Args:
        task_id: Registered id of the task.
        policy: Policy file or run folder; None for the policy that ships with the package.
        folder: Folder to write to.
        half: True to round the weights to 16-bit floats.

    Returns:
        The paths of `policy.onnx` and `policy.safetensors`, both with the contract, and of
        `scene.xml`, the scene of the task.

    Raises:
        FileNotFoundError: If there is no such policy file.
        ValueError: If the file is not a policy of such a task, or its contract lacks an entry that
            a control loop needs. Nothing is written then.
    """
    given, cfg, _ = policy_and_task(task_id, policy)
    _check_exportable(given, policy)
    # Before anything is written: a task that cannot be exported leaves no folder behind.
    scene_text = scene_xml(cfg)
    onnx = folder / ONNX_FILE
    weights = folder / POLICY_FILE
    scene = folder / SCENE_FILE
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(policy_file(policy) if policy else shipped_file(task_id), weights)
    if half:
        halve_weights(weights)
        # The network of the ONNX file has the rounded weights too.
        given = load_policy(weights)
    save_onnx(onnx, given, {"inputs": given.inputs, **given.contract})
    scene.write_text(scene_text)
    return onnx, weights, scene


def _check_exportable(policy: Policy, path: Path | None) -> None:
    missing = missing_entries(policy.contract)
    if not missing:
        return
    if "action_size" in policy.contract:
        raise ValueError(
            f"methods of {policy.task_id!r} make joint targets of its actions, "
            "and no contract says how: set them in action terms to export a policy"
        )
    raise ValueError(
        f"{str(path)!r} was written by an earlier version, "
        f"its contract has no {', '.join(missing)}: "
        "continue its run for an update, train --resume, which writes it anew"
    )


def scene_xml(cfg: TaskCfg) -> str:
    """Return the first robot of a task on a plane as MJCF.

    The model has the actuators, contacts and physics options of the simulation, and the default
    pose as the keyframe `home`. Meshes have absolute paths.
    """
    robot = cfg.robot
    spec = spec_on_ground(robot, cfg.sim)
    folder = robot.path.parent
    # MJCF reads relative paths from the folder of the file, which is another one.
    spec.meshdir = str(folder / spec.meshdir)
    spec.texturedir = str(folder / spec.texturedir)
    base_pose = [0.0, 0.0, robot.base_height, 1.0, 0.0, 0.0, 0.0]
    spec.add_key(
        name="home",
        qpos=[*base_pose, *robot.default_joint_pos],
        ctrl=robot.default_joint_pos,
    )
    # The text of a spec is complete only after it was compiled.
    spec.compile()
    return str(spec.to_xml())
