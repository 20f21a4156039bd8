"""Export of a policy with everything that runs it without this package.

These are an ONNX file, the weights, and the robot as a model that plain MuJoCo reads.
"""

import json
import shutil
from pathlib import Path

from safetensors import safe_open

from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.policy.card import CARD_FILE, write_card
from legged_envs.policy.lookup import policy_and_task
from legged_envs.policy.metadata import Contract, missing_entries
from legged_envs.policy.policy import (
    CONTRACT_KEY,
    POLICY_FILE,
    Policy,
    halve_weights,
    load_policy,
    policy_file,
    save_onnx,
    shipped_file,
)
from legged_envs.policy.scene_files import scene_spec, write_scene
from legged_envs.policy.training_facts import complete_contract
from legged_envs.policy.weights_file import serialize, write_whole

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
        policy: Policy file or run folder; None for the pretrained policy of the package.
        folder: Folder to write to.
        half: True to round the weights to 16-bit floats.

    Returns:
        The paths of `policy.onnx` and `policy.safetensors`, both with the contract, and of
        `scene.xml`, the scene of the task. If the policy has a height scan, the stairs are in the
        scene's height field, even if ``TerrainCfg.vertical_risers`` makes them boxes in training.

    Raises:
        FileNotFoundError: If there is no such policy file.
        ValueError: If the file is not a policy of such a task, or its contract lacks an entry that
            a control loop needs. Nothing is written then.
    """
    given, cfg, _ = policy_and_task(task_id, policy)
    check_exportable(given, policy)
    onnx = folder / ONNX_FILE
    weights = folder / POLICY_FILE
    scene = folder / SCENE_FILE
    completed = complete_contract(given.contract, cfg)
    scene_cfg = _with_stairs_in_height_field(cfg) if "scan" in completed else cfg
    # Before the other files: a task that cannot be exported leaves no folder behind.
    write_scene(scene, scene_cfg)
    shutil.copyfile(policy_file(policy) if policy else shipped_file(task_id), weights)
    if completed != given.contract:
        _replace_contract(weights, completed)
        given = load_policy(weights)
    if half:
        halve_weights(weights)
        # The rounded weights are also used for the ONNX file.
        given = load_policy(weights)
    save_onnx(onnx, given, {"inputs": given.inputs, **given.contract})
    return onnx, weights, scene


def _with_stairs_in_height_field(cfg: TaskCfg) -> TaskCfg:
    """Return a task with its stairs in the height field instead of as boxes.

    A control loop scans only the height field.
    """
    if cfg.scene.terrain is None:
        return cfg
    return override(cfg, {"scene.terrain.vertical_risers": False})


def _replace_contract(path: Path, contract: Contract) -> None:
    """Write another contract into a policy file. Everything else in the file stays as it is.

    Args:
        path: Policy file.
        contract: The new contract.
    """
    weights = {}
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        for name in file.keys():  # noqa: SIM118
            weights[name] = file.get_tensor(name)
    metadata[CONTRACT_KEY] = json.dumps(contract)
    write_whole(path, serialize(weights, metadata))


def export_card(task_id: str, policy: Path | None, folder: Path) -> Path:
    """Write the model card of a policy.

    Args:
        task_id: Registered id of the task.
        policy: Policy file or run folder; None for the pretrained policy of the package.
        folder: Folder to write to.

    Returns:
        The path of the card.
    """
    given, cfg, _ = policy_and_task(task_id, policy)
    weights = policy_file(policy) if policy else shipped_file(task_id)
    path = folder / CARD_FILE
    write_card(path, given.contract, cfg, weights, is_shipped=policy is None)
    return path


def check_exportable(policy: Policy, path: Path | None) -> None:
    """Raise a ValueError if a contract lacks something that a control loop needs.

    Args:
        policy: The policy.
        path: Its file, for errors.

    Raises:
        ValueError: If an entry is missing, or the task computes targets in methods.
    """
    if "foreign" in policy.contract:
        raise ValueError(
            f"{str(path)!r} is a policy of another framework, and a policy.safetensors is written "
            "only by a training of this package: add --format"
        )
    missing = missing_entries(policy.contract)
    if not missing:
        return
    if "action_size" in policy.contract:
        raise ValueError(
            f"methods of {policy.task_id!r} convert actions to joint targets, "
            "and metadata cannot describe methods: use action terms to export a policy"
        )
    raise ValueError(
        f"{str(path)!r} was written by an earlier version, "
        f"and its metadata lacks {', '.join(missing)}: "
        "continue its run for one update with train --resume, which writes the policy again"
    )


def scene_xml(cfg: TaskCfg) -> str:
    """Return the first robot of a task on a plane as MJCF.

    The model has the actuators, contacts and physics options of the simulation, and the default
    pose as the keyframe `home`. Meshes keep the paths of the robot's own file; `write_scene` copies
    them.
    """
    spec = scene_spec(cfg)
    folder = cfg.robot.path.parent
    # MJCF reads relative paths from the folder of the file, which is another one.
    spec.meshdir = str(folder / spec.meshdir)
    spec.texturedir = str(folder / spec.texturedir)
    # The text of a spec is complete only after it was compiled.
    spec.compile()
    return str(spec.to_xml())
