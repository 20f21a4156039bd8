"""The format of rl_sar: `config.yaml` of a policy, `base.yaml` of its robot, and TorchScript.

`joint_mapping` gives the motor of each joint of the policy. All numbers are in the order of the
policy.
"""

from pathlib import Path
from typing import Any

from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.foreign.baked import (
    BakedNetwork,
    Loop,
    action_scales,
    make_blocks,
    quantity_scale,
)
from legged_envs.policy.foreign.description import (
    ForeignContract,
    ForeignTerm,
    Range,
    unknown_terms,
)
from legged_envs.policy.foreign.fields import (
    LARGEST_HISTORY,
    Fields,
    read_yaml,
    rounded,
    write_yaml,
)
from legged_envs.policy.foreign.files import write_torchscript
from legged_envs.policy.foreign.layout import Block
from legged_envs.policy.foreign.motors import motor_joints
from legged_envs.policy.metadata import Contract
from legged_envs.policy.policy import Policy
from legged_envs.robots import RobotCfg

FRAMEWORK = "rl-sar"
"""Name of the format."""

TERMS = {
    "lin_vel": "lin_vel",
    "ang_vel": "ang_vel",
    "gravity_vec": "gravity",
    "commands": "command",
    "dof_pos": "joint_pos",
    "dof_vel": "joint_vel",
    "actions": "action",
    "whole_body_tracking/motion_command": "motion_joints",
    "whole_body_tracking/motion_anchor_ori_b": "anchor_ori",
}
"""Observation term of the file → the same quantity here."""

UNSCALED = {"gravity_vec": 3, "whole_body_tracking/motion_anchor_ori_b": 6}
"""Observation term that has no scale in the file → its size."""

BASE_FILE = "base.yaml"
"""File of the robot, one folder above the policy's folder."""

FROM_BASE = ("dt", "decimation", "joint_names", "default_dof_pos", "torque_limits", "joint_mapping")
"""Entries that a policy takes from the file of the robot if its own file does not have them."""


def is_format(tree: dict[str, Any]) -> bool:
    """Return True if the content of a YAML file is of this format."""
    return any(isinstance(value, dict) and "rl_kp" in value for value in tree.values())


def read(fields: Fields, robot: RobotCfg) -> ForeignContract:
    """Read the `config.yaml` of a policy.

    Args:
        fields: Content of the file, one section with the name of the policy.
        robot: Robot of the task.

    Raises:
        ValueError: If an entry is missing or wrong, or an observation term has no counterpart here.
    """
    section = _policy_section(fields)
    assumed: list[str] = []
    own = dict(section.values)
    for name, value in _base_values(fields.file).items():
        if name in FROM_BASE:
            own.setdefault(name, value)
    config = Fields(fields.file, own, f"{next(iter(fields.values))}.")
    size = config.whole("num_of_dofs", most=1_000)
    joints = _read_joints(config, robot, size, assumed)
    _note_other_robot(fields, robot, assumed)
    default = config.numbers("default_dof_pos", size)
    wheels = _read_wheels(config, size)
    offset = [0.0 if i in wheels else angle for i, angle in enumerate(default)]
    return ForeignContract(
        file=fields.file,
        framework=FRAMEWORK,
        joint_names=joints,
        default_joint_pos=default,
        kp=config.numbers("rl_kp", size),
        kd=config.numbers("rl_kd", size),
        terms=_read_terms(config, size, wheels),
        action_joints=joints,
        action_scale=config.numbers("action_scale", size, single=True),
        action_offset=tuple(offset),
        velocity_joints=tuple(joints[i] for i in wheels),
        action_clip=_read_clips(config, size),
        by_time=config.values.get("observations_history_priority", "time") == "time",
        observation_limit=config.positive("clip_obs"),
        control_dt=_control_dt(config),
        assumed=tuple(assumed),
    )


def _policy_section(fields: Fields) -> Fields:
    names = list(fields.values)
    if len(names) != 1:
        raise ValueError(
            f"{str(fields.file)!r} describes {', '.join(names)}, but a file of {FRAMEWORK} must "
            "have one policy: remove the others"
        )
    return fields.section(names[0])


def _base_values(file: Path) -> dict[str, Any]:
    """Return the content of the robot's own file. Empty: there is none."""
    base = file.absolute().parent.parent / BASE_FILE
    if not base.is_file():
        return {}
    tree = read_yaml(base)
    if not tree:
        raise ValueError(f"{str(base)!r} is empty: remove it, or write the values of the robot")
    return dict(Fields(base, tree).section(next(iter(tree))).values)


def _read_joints(config: Fields, robot: RobotCfg, size: int, assumed: list[str]) -> tuple[str, ...]:
    if config.has("joint_names"):
        motors = config.names("joint_names")
    else:
        motors = motor_joints(robot)
        assumed.append(
            f"there is no {BASE_FILE} one folder above, so motors are numbered as in Unitree's "
            f"SDK for {robot.name!r}"
        )
    mapping = config.indices("joint_mapping", below=len(motors))
    if len(mapping) != size:
        raise ValueError(
            f"{config.path('joint_mapping')} has {len(mapping)} numbers, and num_of_dofs is "
            f"{size}: give each joint one"
        )
    return tuple(motors[i] for i in mapping)


def _note_other_robot(fields: Fields, robot: RobotCfg, assumed: list[str]) -> None:
    """Say that the policy was made for another robot, which may have joints of the same names.

    The only section of a file is called after the robot and the policy: ``go2/himloco``.
    """
    named, slash, _ = next(iter(fields.values)).partition("/")
    # A file of the G1 is for its 12 or its 29 joints.
    is_same = robot.name == named or robot.name.startswith(f"{named}_")
    if slash and not is_same:
        assumed.append(f"the file is of the robot {named!r}, and its policy moves {robot.name!r}")


def _read_wheels(config: Fields, size: int) -> tuple[int, ...]:
    if not config.values.get("wheel_indices"):
        return ()
    return config.indices("wheel_indices", below=size)


def _read_clips(config: Fields, size: int) -> tuple[Range, ...] | None:
    """Return the bounds of actions. None: the lists are empty or missing."""
    if not config.values.get("clip_actions_upper"):
        return None
    low = config.numbers("clip_actions_lower", size)
    high = config.numbers("clip_actions_upper", size)
    return tuple(zip(low, high, strict=True))


def _read_terms(config: Fields, size: int, wheels: tuple[int, ...]) -> tuple[ForeignTerm, ...]:
    names = config.names("observations")
    unknown = [f"{name} (not known here)" for name in names if name not in TERMS]
    if unknown:
        raise unknown_terms(config.file, unknown)
    ages: tuple[int, ...] = (0,)
    if config.values.get("observations_history"):
        # 0 is the latest, in any order and with gaps.
        ages = config.indices("observations_history", below=LARGEST_HISTORY)
    terms = []
    for name in names:
        terms.append(ForeignTerm(name, TERMS[name], _scale(config, name, size, wheels), None, ages))
    return tuple(terms)


def _scale(config: Fields, name: str, size: int, wheels: tuple[int, ...]) -> tuple[float, ...]:
    if name == "commands":
        return config.numbers("commands_scale", 3)
    if name in UNSCALED:
        return (1.0,) * UNSCALED[name]
    if name == "actions":
        return (1.0,) * size
    if TERMS[name] == "motion_joints":
        return (1.0,) * (2 * size)
    scale = config.number(f"{name}_scale")
    if name in ("lin_vel", "ang_vel"):
        return (scale,) * 3
    scales = [scale] * size
    if name == "dof_pos":
        # The angle of a wheel counts its turns, and is shown as 0.
        for wheel in wheels:
            scales[wheel] = 0.0
    return tuple(scales)


def _control_dt(config: Fields) -> float | None:
    if not (config.has("dt") and config.has("decimation")):
        return None
    return config.positive("dt") * config.whole("decimation", most=10_000)


# --- writing --------------------------------------------------------------------------------------

NAME = "legged_envs"
"""Folder of the policy below the robot's folder, as rl_sar finds it."""

WRITTEN_TERMS = {quantity: name for name, quantity in TERMS.items()}
"""Quantities that its control loop observes → observation term of the file."""

CLIP = 100.0
"""Limit of the observations and actions in the file. The network has the policy's numbers."""


def write(folder: Path, policy: Policy, cfg: TaskCfg) -> list[Path]:
    """Write `base.yaml` of the robot, and `config.yaml` and `policy.pt` of the policy below it.

    Args:
        folder: Folder to write to.
        policy: Policy of this package.
        cfg: Its task.

    Raises:
        ValueError: If the control loop of this format cannot drive the policy. Nothing is written.
    """
    contract = policy.contract
    loop = _make_loop(contract)
    network = BakedNetwork(policy, loop)
    robot = cfg.robot
    comment = f"{contract['task_id']} for {FRAMEWORK}"
    base = folder / BASE_FILE
    config = folder / NAME / "config.yaml"
    weights = folder / NAME / "policy.pt"
    write_yaml(base, {robot.name: _make_base(contract, cfg)}, comment)
    write_yaml(config, {f"{robot.name}/{NAME}": _make_config(contract, cfg, loop)}, comment)
    write_torchscript(weights, network, loop.size)
    return [base, config, weights]


def _make_loop(contract: Contract) -> Loop:
    scales = {}
    for name in ("lin_vel", "ang_vel", "command", "joint_pos", "joint_vel"):
        scales[name] = quantity_scale(contract, name)
    return Loop(
        framework=FRAMEWORK,
        blocks=_by_time(make_blocks(contract, WRITTEN_TERMS)),
        scales=scales,
        action_scale=action_scales(contract),
        drives_wheels=True,
    )


def _by_time(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks of all quantities at all times, the oldest first."""
    oldest = max(block.age for block in blocks)
    present = [block for block in blocks if block.age == 0]
    ordered = []
    for age in range(oldest, -1, -1):
        ordered += [Block(block.quantity, age, block.elements) for block in present]
    return tuple(ordered)


def _make_base(contract: Contract, cfg: TaskCfg) -> dict[str, Any]:
    motors = [name for name in motor_joints(cfg.robot) if name in contract["joint_names"]]
    default = dict(zip(contract["joint_names"], contract["default_joint_pos"], strict=True))
    limits = dict(zip(contract["joint_names"], contract["torque_limits"], strict=True))
    controllers = [f"{name.removesuffix('_joint')}_controller" for name in motors]
    return {
        "dt": rounded([cfg.sim.dt])[0],
        "decimation": cfg.sim.decimation,
        "num_of_dofs": len(motors),
        "wheel_indices": [],
        "torque_limits": rounded([limits[name] for name in motors]),
        "default_dof_pos": rounded([default[name] for name in motors]),
        "joint_names": motors,
        "joint_controller_names": controllers,
        "joint_mapping": list(range(len(motors))),
    }


def _make_config(contract: Contract, cfg: TaskCfg, loop: Loop) -> dict[str, Any]:
    joints = contract["joint_names"]
    size = len(joints)
    oldest = max(block.age for block in loop.blocks)
    history = list(range(oldest, -1, -1)) if oldest else []
    names = [WRITTEN_TERMS[block.quantity] for block in loop.blocks if block.age == 0]
    motors = [name for name in motor_joints(cfg.robot) if name in joints]
    wheels = [i for i, kind in enumerate(contract["actuators"]) if kind == "velocity"]
    kp = rounded(contract["kp"])
    kd = rounded(contract["kd"])
    return {
        "model_name": "policy.pt",
        "num_observations": loop.size // (oldest + 1),
        "observations": names,
        "observations_history": history,
        "observations_history_priority": "time",
        "clip_obs": CLIP,
        "clip_actions_lower": [-CLIP] * size,
        "clip_actions_upper": [CLIP] * size,
        "rl_kp": kp,
        "rl_kd": kd,
        "fixed_kp": kp,
        "fixed_kd": kd,
        "num_of_dofs": size,
        "action_scale": rounded([loop.action_scale[name] for name in joints]),
        "wheel_indices": wheels,
        "lin_vel_scale": loop.scales["lin_vel"],
        "ang_vel_scale": loop.scales["ang_vel"],
        "dof_pos_scale": loop.scales["joint_pos"],
        "dof_vel_scale": loop.scales["joint_vel"],
        "commands_scale": [loop.scales["command"]] * 3,
        "torque_limits": rounded(contract["torque_limits"]),
        "default_dof_pos": rounded(contract["default_joint_pos"]),
        "joint_mapping": [motors.index(name) for name in joints],
    }
