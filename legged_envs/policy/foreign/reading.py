"""Reading of a policy of another framework, and of the file that describes it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from legged_envs.envs import make_core
from legged_envs.envs.cfg import TaskCfg, override
from legged_envs.envs.changes import Changes
from legged_envs.motion_reading import MotionReading
from legged_envs.policy.foreign import (
    check_no_checkpoint,
    mjlab,
    rl_sar,
    unitree_rl_gym,
    unitree_rl_lab,
)
from legged_envs.policy.foreign.checkpoint import is_checkpoint, read_checkpoint
from legged_envs.policy.foreign.description import ForeignContract
from legged_envs.policy.foreign.fields import Fields, read_yaml
from legged_envs.policy.foreign.layout import Block, elements_of
from legged_envs.policy.foreign.mapping import MappedNetwork
from legged_envs.policy.foreign.motion import motion_of_file
from legged_envs.policy.foreign.networks import ForeignNetwork, OnnxNetwork, read_metadata
from legged_envs.policy.foreign.scan import HeightScan, read_scan
from legged_envs.policy.foreign.task import (
    MESH_SOLES,
    SOLES_ASSUMED,
    adapted_task,
    check_task,
    find_robot,
)
from legged_envs.policy.foreign.torchscript import TorchScriptNetwork, is_torchscript
from legged_envs.policy.metadata import Contract, contract
from legged_envs.policy.policy import Policy
from legged_envs.robots import RobotCfg
from legged_envs.system_checks import check_installed
from legged_envs.tasks import make_task_cfg, plain_id

SCAN = "height_scan"
"""The only entry of a YAML file that describes the height scan of a policy of mjlab."""

SCAN_REMEDY = (
    "give the grid of its height_scan in the file that --contract names: "
    "height_scan: {params: {size: [1.6, 1.0], resolution: 0.1, offset: 0.0}}"
)
"""What to do if the scan of a policy has another number of points, for errors."""

TIME_STEPS = ("sim.dt", "sim.decimation")
"""Changes that give a task another control step."""

CONTROL_DT = (1e-3, 1.0)
"""Smallest and largest time from one action to the next, s."""

SMALLEST_SCALE = 1e-6
"""Smallest scale of an action, rad. A smaller one moves no joint."""

ONNX = ".onnx"
"""Ending of files of ONNX."""

YAML_FORMATS = (unitree_rl_lab, unitree_rl_gym, rl_sar)
"""Modules of the formats that describe a policy in a YAML file."""

FORMAT_NAMES = "deploy.yaml of unitree_rl_lab, a yaml of unitree_rl_gym, config.yaml of rl_sar"
"""Files that describe policies, for errors."""


def foreign_policy_and_task(
    task_id: str,
    path: Path | None,
    description: Path | None = None,
    changes: Changes | None = None,
    motions: Sequence[Path] = (),
    reading: MotionReading | None = None,
) -> tuple[Policy, TaskCfg, dict[str, Any]]:
    """Read a policy of another framework, and make a task in which it acts.

    Args:
        task_id: Registered id of the task.
        path: ONNX file, TorchScript file, or checkpoint of rsl_rl.
        description: YAML file of its framework, or an ONNX file with metadata. None: `path` is one.
        changes: Changes to the task, in addition to the changes that the policy needs.
        motions: File of the motion that the policy imitates. Empty: it has it in its own file, or
            imitates none.
        reading: Information that this file lacks. None: the file is complete.

    Returns:
        The policy, the configuration of the task, and the changes.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is wrong, or has something that cannot be mapped.
    """
    cfg = make_task_cfg(task_id)
    task_id = plain_id(task_id)
    check_task(task_id, cfg)
    if path is None:
        raise ValueError(
            f"--contract {str(description)!r} describes a policy of another framework: "
            "name the policy with --policy"
        )
    if not path.is_file():
        raise FileNotFoundError(f"there is no policy file {str(path)!r}")
    foreign = read_description(path, description, cfg.robot)
    check_description(foreign)
    foreign = with_motion(cfg, foreign, motions, reading)
    network, assumed = read_network(path, foreign.file.parent)
    adapted = adapted_task(cfg, foreign)
    made = dict(changes or {})
    if foreign.control_dt is None:
        # The step is the user's, if it is the task's and not the policy's.
        steps = {path: value for path, value in made.items() if path in TIME_STEPS}
        adapted = override(adapted, steps)
        assumed = [*assumed, f"a control step has {adapted.sim.step_dt:g} s, as in {task_id!r}"]
    if cfg.robot.xml in MESH_SOLES:
        assumed = [*assumed, SOLES_ASSUMED]
    policy = _make_policy(task_id, adapted, foreign, network, [*foreign.assumed, *assumed])
    return policy, override(adapted, made), made


def check_description(foreign: ForeignContract) -> None:
    """Check what files of all formats can have wrong.

    Raises:
        ValueError: If the policy observes nothing, moves nothing, or an action has no effect, or a
            control step would take forever.
    """
    if not foreign.terms or not foreign.action_joints:
        missing = "observations" if foreign.action_joints else "actions"
        raise ValueError(f"{foreign.source} has no {missing}: name the file of another policy")
    low, high = CONTROL_DT
    if foreign.control_dt is not None and not low <= foreign.control_dt <= high:
        raise ValueError(
            f"{foreign.source}: the time from one action to the next must be {low:g} to {high:g} "
            f"s, got {foreign.control_dt:g}: correct it"
        )
    for name, scale in zip(foreign.action_joints, foreign.action_scale, strict=True):
        if abs(scale) < SMALLEST_SCALE:
            raise ValueError(
                f"{foreign.source}: the scale of the action of {name!r} must be at least "
                f"{SMALLEST_SCALE:g}, got {scale:g}: correct it"
            )


def with_motion(
    cfg: TaskCfg,
    foreign: ForeignContract,
    motions: Sequence[Path],
    reading: MotionReading | None = None,
) -> ForeignContract:
    """Return a description with the motion of a file, if the policy imitates one.

    Args:
        cfg: Task in which it acts.
        foreign: The description.
        motions: Files of motions, as on the command line.
        reading: Information that they lack. None: they are complete.

    Raises:
        ValueError: If the policy imitates a motion and there is no file, or the other way round.
    """
    if motions and not foreign.imitates:
        raise ValueError(
            f"{foreign.source} describes a policy that observes no motion: leave out --motions"
        )
    if not foreign.imitates or (foreign.motion is not None and not motions):
        return foreign
    if len(motions) != 1:
        raise ValueError(
            f"{foreign.source} describes a policy that imitates one motion, but there are "
            f"{len(motions)} files: name its motion with --motions"
        )
    motion = motion_of_file(
        motions[0],
        find_robot(cfg, foreign),
        foreign.joint_names,
        foreign.anchor,
        foreign.control_dt or cfg.sim.step_dt,
        reading,
    )
    assumed = foreign.assumed
    if foreign.anchor is None:
        assumed += (f"the motion is seen from {motion.anchor!r}",)
    return replace(foreign, motion=motion, assumed=assumed)


def read_description(path: Path, description: Path | None, robot: RobotCfg) -> ForeignContract:
    """Read the description of a policy.

    Args:
        path: Policy file.
        description: File that describes it. None: the metadata of the policy file do.
        robot: Robot of the task.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If its format is not known, or something in it is wrong.
    """
    file = description or path
    if not file.is_file():
        raise FileNotFoundError(f"--contract must name a file, and there is none at {str(file)!r}")
    if file.suffix == ONNX:
        return _read_onnx_description(file)
    if description is None:
        check_no_checkpoint(path)
        raise ValueError(
            f"{str(path)!r} does not describe its observations: name its description with "
            f"--contract ({FORMAT_NAMES})"
        )
    check_installed("yaml", extra="foreign")
    tree = read_yaml(file)
    if list(tree) == [SCAN]:
        return _read_with_scan(path, Fields(file, tree).section(SCAN))
    for module in YAML_FORMATS:
        if module.is_format(tree):
            return module.read(Fields(file, tree), robot)
    raise ValueError(
        f"{str(file)!r} is none of {FORMAT_NAMES}: it has {', '.join(list(tree)[:10])}; "
        "name one of these"
    )


def _read_with_scan(path: Path, term: Fields) -> ForeignContract:
    """Read the metadata of a policy with a height scan that another file describes."""
    scan = read_scan(term, offset=mjlab.TASK_SCAN.offset)
    if path.suffix != ONNX:
        raise ValueError(
            f"{str(term.file)!r} has only the grid of {SCAN}, and {str(path)!r} does not describe "
            f"its observations: name a whole description with --contract ({FORMAT_NAMES})"
        )
    return _read_onnx_description(path, scan)


def _read_onnx_description(file: Path, scan: HeightScan | None = None) -> ForeignContract:
    check_installed("onnx", extra="foreign")
    metadata = read_metadata(file)
    if "inputs" in metadata and "task_id" in metadata:
        raise ValueError(
            f"{str(file)!r} is an export of this package: name the policy.safetensors next to it"
        )
    if not mjlab.is_format(metadata):
        raise ValueError(
            f"{str(file)!r} does not describe its observations: name its description with "
            f"--contract ({FORMAT_NAMES})"
        )
    return mjlab.read(file, metadata, scan)


def read_network(path: Path, folder: Path) -> tuple[ForeignNetwork, list[str]]:
    """Read the network of a policy.

    Args:
        path: ONNX file, TorchScript file, or checkpoint of rsl_rl.
        folder: Folder of the description, which may have options of the training.

    Returns:
        The network, and sentences about what was assumed.

    Raises:
        ValueError: If the file is none of these.
    """
    if path.suffix == ONNX:
        check_installed("onnx", "onnxruntime", extra="foreign")
        return OnnxNetwork(path), []
    if is_torchscript(path):
        return TorchScriptNetwork(path), []
    if is_checkpoint(path):
        return read_checkpoint(path, folder)
    raise ValueError(
        f"{str(path)!r} is neither ONNX, TorchScript nor a checkpoint of rsl_rl: name one of these"
    )


def _make_policy(
    task_id: str,
    cfg: TaskCfg,
    foreign: ForeignContract,
    network: ForeignNetwork,
    assumed: list[str],
) -> Policy:
    core = make_core(cfg, 1)
    try:
        entries = contract(task_id, core)
    finally:
        core.close()
    blocks = []
    joints = entries["joint_names"]
    moved = entries["action_joints"]
    for term in entries["observation"]:
        elements = elements_of(term["name"], joints, moved, term["size"])
        blocks.append(Block(term["name"], term.get("steps_ago", 0), elements))
    default = dict(zip(joints, entries["default_joint_pos"], strict=True))
    mapped = MappedNetwork(network, foreign, blocks, default, moved)
    _check_sizes(mapped, foreign, entries)
    entries["foreign"] = {
        "framework": foreign.framework,
        "file": foreign.file.name,
        "terms": [[term.name, term.quantity] for term in foreign.terms],
        "assumed": assumed,
    }
    return Policy(mapped, entries)


def _check_sizes(mapped: MappedNetwork, foreign: ForeignContract, entries: Contract) -> None:
    """Raise a ValueError if the inputs of a network do not fit its description."""
    size = sum(term["size"] for term in entries["observation"])
    seen = mapped.observe(torch.zeros(2, size))
    taken = getattr(mapped.network, "input_size", None)
    expected = (2, len(foreign.action_joints))
    reason = f"it takes {taken}"
    if taken in (None, seen.shape[1]):
        try:
            with torch.inference_mode():
                actions = mapped.network(seen)
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
        else:
            mapped.reset(None)
            if actions.shape == expected and actions.isfinite().all():
                return
            reason = (
                f"it gives {tuple(actions.shape)} for two robots, or numbers that are not finite"
            )
    remedy = "name the file of this policy" if foreign.scan is None else SCAN_REMEDY
    raise ValueError(
        f"the policy does not fit {foreign.source}, which describes {seen.shape[1]} numbers "
        f"({foreign.term_sizes()}) and {expected[1]} actions: {reason}; {remedy}"
    )
