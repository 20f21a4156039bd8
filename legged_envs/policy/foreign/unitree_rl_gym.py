"""The format of unitree_rl_gym: a YAML file of `deploy/`, and the network as TorchScript.

The observation is always the same: angular velocity, gravity, command, joint positions and
velocities, the last action, and sine and cosine of a clock of 0.8 s.
"""

from pathlib import Path
from typing import Any

from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.foreign.baked import BakedNetwork, Loop, action_scales, quantity_scale
from legged_envs.policy.foreign.description import ForeignContract, ForeignTerm
from legged_envs.policy.foreign.fields import Fields, rounded, write_yaml
from legged_envs.policy.foreign.files import write_torchscript
from legged_envs.policy.foreign.layout import Block, elements_of
from legged_envs.policy.foreign.motors import motor_joints
from legged_envs.policy.metadata import Contract
from legged_envs.policy.policy import Policy
from legged_envs.policy.scene_files import write_scene
from legged_envs.robots import RobotCfg

FRAMEWORK = "unitree-rl-gym"
"""Name of the format."""

PERIOD = 0.8
"""Duration of a stride of the clock in its control loops, s. It is not in the file."""

CLOCK_SIZE = 2
"""Elements of the clock, which policies of robots without a gait do not take."""


def is_format(tree: dict[str, Any]) -> bool:
    """Return True if the content of a YAML file is of this format."""
    return "kps" in tree and "num_obs" in tree


def read(fields: Fields, robot: RobotCfg) -> ForeignContract:
    """Read a file of `deploy_mujoco/configs` or `deploy_real/configs`.

    Args:
        fields: Content of the file.
        robot: Robot of the task. The policy moves its first joints, unless the file names the
            joints.

    Raises:
        ValueError: If an entry is missing or wrong, or the policy has another observation.
    """
    assumed: list[str] = []
    size = fields.whole("num_actions", most=1_000)
    joints = _read_joints(fields, robot, size, assumed)
    default = fields.numbers("default_angles", size)
    num_obs = fields.whole("num_obs", most=10_000)
    # 9: angular velocity, gravity and command, 3 each.
    least = 9 + 3 * size
    if num_obs not in (least, least + CLOCK_SIZE):
        raise ValueError(
            f"{fields.path('num_obs')} is {num_obs}, and policies of {FRAMEWORK} with {size} "
            f"actions take {least}, or {least + CLOCK_SIZE} with a clock: "
            "describe another observation in a deploy.yaml of unitree_rl_lab"
        )
    has_clock = num_obs > least
    if has_clock:
        assumed.append(f"the clock has a period of {PERIOD} s, as in the loops of {FRAMEWORK}")
    terms = _terms(fields, size, has_clock)
    return ForeignContract(
        file=fields.file,
        framework=FRAMEWORK,
        joint_names=joints,
        default_joint_pos=default,
        kp=fields.numbers("kps", size),
        kd=fields.numbers("kds", size),
        terms=terms,
        action_joints=joints,
        action_scale=fields.numbers("action_scale", size, single=True),
        action_offset=default,
        control_dt=_control_dt(fields),
        command_ranges=_read_ranges(fields),
        gait_period=PERIOD if has_clock else None,
        assumed=tuple(assumed),
    )


def _read_joints(fields: Fields, robot: RobotCfg, size: int, assumed: list[str]) -> tuple[str, ...]:
    if fields.has("joint_names"):
        joints = fields.names("joint_names")
        if len(joints) != size:
            raise ValueError(
                f"{fields.path('joint_names')} has {len(joints)} names, and num_actions is {size}: "
                "give each action one"
            )
        return joints
    if fields.has("leg_joint2motor_idx"):
        motors = motor_joints(robot)
        ids = fields.indices("leg_joint2motor_idx", below=len(motors))
        if len(ids) == size:
            assumed.append(f"motors are numbered as in Unitree's SDK for {robot.name!r}")
            return _check_sides(tuple(motors[i] for i in ids), fields, robot)
    if size > robot.num_joints:
        raise ValueError(
            f"{fields.path('num_actions')} is {size}, and {robot.name!r} has "
            f"{robot.num_joints} joints: add joint_names, in the order of the policy, to the file"
        )
    joints = _check_sides(robot.joint_names[:size], fields, robot)
    assumed.append(f"joints are in the order of {robot.name!r}: {', '.join(joints)}")
    return joints


def _check_sides(joints: tuple[str, ...], fields: Fields, robot: RobotCfg) -> tuple[str, ...]:
    """Return joints that were assumed, or raise a ValueError if one lacks its partner.

    A file of another robot with another number of joints in a leg, such as the H1-2, gives one leg
    too many joints and ends in the middle of an arm, or has motors that the robot does not use.
    """
    if "" in joints:
        raise ValueError(
            f"{fields.path('leg_joint2motor_idx')} has a motor that {robot.name!r} does not have: "
            "give a policy of this robot, or add joint_names, in the order of the policy, to the "
            "file"
        )
    for joint, (partner, _) in zip(robot.joint_names, robot.mirror, strict=True):
        if joint in joints and partner not in joints:
            raise ValueError(
                f"{fields.path('num_actions')} is {len(joints)}, which takes {joint!r} of "
                f"{robot.name!r} without {partner!r}: give a policy of this robot, or add "
                "joint_names, in the order of the policy, to the file"
            )
    return joints


def _terms(fields: Fields, size: int, has_clock: bool) -> tuple[ForeignTerm, ...]:
    ang_vel = fields.number("ang_vel_scale")
    joint_pos = fields.number("dof_pos_scale")
    joint_vel = fields.number("dof_vel_scale")
    terms = [
        ForeignTerm("ang_vel", "ang_vel", (ang_vel,) * 3),
        ForeignTerm("gravity_orientation", "gravity", (1.0,) * 3),
        ForeignTerm("cmd", "command", fields.numbers("cmd_scale", 3)),
        ForeignTerm("qj", "joint_pos", (joint_pos,) * size),
        ForeignTerm("dqj", "joint_vel", (joint_vel,) * size),
        ForeignTerm("action", "action", (1.0,) * size),
    ]
    if has_clock:
        terms.append(ForeignTerm("sin_phase, cos_phase", "clock", (1.0,) * CLOCK_SIZE))
    return tuple(terms)


def _control_dt(fields: Fields) -> float:
    if fields.has("control_dt"):
        return fields.positive("control_dt")
    decimation = fields.whole("control_decimation", most=10_000)
    return fields.positive("simulation_dt") * decimation


def _read_ranges(fields: Fields) -> dict[str, tuple[float, float]]:
    """Return ranges from the largest commands of a remote control, which only real robots have."""
    if not fields.has("max_cmd"):
        return {}
    largest = fields.numbers("max_cmd", 3)
    names = ("lin_vel_x", "lin_vel_y", "ang_vel_z")
    return {name: (-abs(most), abs(most)) for name, most in zip(names, largest, strict=True)}


# --- writing --------------------------------------------------------------------------------------

ORDER = ("ang_vel", "gravity", "command", "joint_pos", "joint_vel", "action", "clock")
"""Quantities that its control loops observe, always all of them and in this order."""

DURATION = 60.0
"""Duration of a simulation in its control loop, s."""


def write(folder: Path, policy: Policy, cfg: TaskCfg) -> list[Path]:
    """Write a YAML file of `deploy_mujoco`, `policy.pt`, and `scene.xml` with torque motors.

    Paths in the file are relative to the folder.

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
    description = folder / f"{cfg.robot.name}.yaml"
    weights = folder / "policy.pt"
    scene = folder / "scene.xml"
    write_scene(scene, cfg, torques=True)
    comment = f"{contract['task_id']} for {FRAMEWORK}: the paths are relative to this folder"
    write_yaml(description, _make_tree(contract, cfg, loop, weights.name, scene.name), comment)
    write_torchscript(weights, network, loop.size)
    return [description, weights, scene]


def _make_loop(contract: Contract) -> Loop:
    observes_clock = any(entry["name"] == "clock" for entry in contract["observation"])
    period = contract["gait"]["period"] if observes_clock else PERIOD
    if period != PERIOD:
        raise ValueError(
            f"the policy has a clock of {period:g} s, and the loops of {FRAMEWORK} one of "
            f"{PERIOD:g} s: choose another --format, or train with --changes "
            f"commands.gait.period {PERIOD:g}"
        )
    joints = contract["joint_names"]
    blocks = [Block(name, 0, elements_of(name, joints, joints)) for name in ORDER]
    own = action_scales(contract)
    # The file has one scale for all joints. The network brings its actions to it.
    largest = max(own.values())
    scales = {}
    for name in ("ang_vel", "joint_pos", "joint_vel", "command"):
        scales[name] = quantity_scale(contract, name)
    return Loop(
        framework=FRAMEWORK,
        blocks=tuple(blocks),
        scales=scales,
        action_scale=dict.fromkeys(own, largest),
    )


def _make_tree(
    contract: Contract, cfg: TaskCfg, loop: Loop, weights: str, scene: str
) -> dict[str, Any]:
    size = len(contract["joint_names"])
    scales = {name: quantity_scale(contract, name) for name in loop.scales}
    return {
        "policy_path": weights,
        "xml_path": scene,
        "simulation_duration": DURATION,
        "simulation_dt": rounded([cfg.sim.dt])[0],
        "control_decimation": cfg.sim.decimation,
        "kps": rounded(contract["kp"]),
        "kds": rounded(contract["kd"]),
        "default_angles": rounded(contract["default_joint_pos"]),
        "ang_vel_scale": scales["ang_vel"],
        "dof_pos_scale": scales["joint_pos"],
        "dof_vel_scale": scales["joint_vel"],
        "action_scale": rounded([next(iter(loop.action_scale.values()))])[0],
        "cmd_scale": [scales["command"]] * 3,
        "num_actions": size,
        "num_obs": loop.size,
        "cmd_init": [0.5, 0.0, 0.0],
        "joint_names": list(contract["joint_names"]),
    }
