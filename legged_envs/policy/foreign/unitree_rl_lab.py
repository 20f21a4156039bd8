"""The format of unitree_rl_lab and unitree_rl_mjlab: `deploy.yaml`, and the network as ONNX.

`joint_ids_map` gives the motor of each joint of the policy. Gains are in the order of motors,
everything else is in the order of the policy.
"""

from pathlib import Path
from typing import Any

from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.foreign.baked import (
    BakedNetwork,
    Loop,
    action_scales,
    has_bound,
    make_blocks,
    quantity_scale,
)
from legged_envs.policy.foreign.description import (
    ForeignContract,
    ForeignTerm,
    Range,
    unknown_terms,
)
from legged_envs.policy.foreign.fields import LARGEST_HISTORY, Fields, rounded, write_yaml
from legged_envs.policy.foreign.files import write_onnx
from legged_envs.policy.foreign.layout import elements_of
from legged_envs.policy.foreign.motors import motor_joints, motor_numbers
from legged_envs.policy.foreign.scan import NO_GRID, HeightScan, read_scan, says_grid
from legged_envs.policy.metadata import Contract
from legged_envs.policy.policy import Policy
from legged_envs.robots import RobotCfg

FRAMEWORK = "unitree-rl-lab"
"""Name of the format."""

TERMS = {
    "base_ang_vel": "ang_vel",
    "base_lin_vel": "lin_vel",
    "projected_gravity": "gravity",
    "velocity_commands": "command",
    "joint_pos_rel": "joint_pos",
    "joint_pos": "joint_angle",
    "joint_vel_rel": "joint_vel",
    "joint_vel": "joint_vel",
    "last_action": "action",
    "gait_phase": "clock",
    "height_scan": "height_scan",
    "height_scanner": "height_scan",
    "motion_command": "motion_joints",
    "motion_anchor_pos_b": "anchor_pos",
    "motion_anchor_ori_b": "anchor_ori",
}
"""Observation term of the file → the same quantity here."""

TERM_FIELDS = ("params", "clip", "scale", "history_length", "flatten_history_dim")
"""Entries that an observation term of the file may have."""

ACTIONS = ("JointPositionAction", "JointVelocityAction")
"""Action terms that can be mapped. The second one is for wheels."""

SWITCHES = ("use_gym_history", "scale_first")
"""Entries among the observation terms that are not terms, of unitree_rl_mjlab."""


def is_format(tree: dict[str, Any]) -> bool:
    """Return True if the content of a YAML file is of this format."""
    return "joint_ids_map" in tree


def read(fields: Fields, robot: RobotCfg) -> ForeignContract:
    """Read a `deploy.yaml`.

    Args:
        fields: Content of the file.
        robot: Robot of the task, with the motors that the file numbers.

    Raises:
        ValueError: If an entry is missing or wrong, or an observation term has no counterpart here.
    """
    assumed: list[str] = []
    motors = motor_joints(robot)
    ids = fields.indices("joint_ids_map", below=len(motors))
    joints = tuple(motors[i] for i in ids)
    if fields.has("joint_names"):
        joints = fields.names("joint_names")
    else:
        assumed.append(f"motors are numbered as in Unitree's SDK for {robot.name!r}")
    size = len(ids)
    if len(joints) != size:
        raise ValueError(
            f"{fields.path('joint_names')} has {len(joints)} names and joint_ids_map {size} "
            "numbers: give each joint one of each"
        )
    actions = _read_actions(fields.section("actions"), joints)
    observations = fields.section("observations")
    _check_terms(observations)
    scan = _read_scan(observations)
    terms, period = _read_terms(observations, joints, actions["joints"], scan)
    if scan is not None:
        assumed.append("a height scan is around the base, and looks at the surface below")
    return ForeignContract(
        file=fields.file,
        framework=FRAMEWORK,
        joint_names=joints,
        default_joint_pos=fields.numbers("default_joint_pos", size),
        kp=_of_joints(fields, "stiffness", ids, assumed),
        kd=_of_joints(fields, "damping", ids, assumed),
        terms=terms,
        action_joints=actions["joints"],
        action_scale=actions["scale"],
        action_offset=actions["offset"],
        velocity_joints=actions["velocity"],
        target_clip=actions["clip"],
        control_dt=fields.positive("step_dt"),
        by_time=bool(fields.section("observations").values.get("use_gym_history")),
        command_ranges=_read_ranges(fields),
        gait_period=period,
        scan=scan,
        assumed=tuple(assumed),
    )


def _of_joints(
    fields: Fields, name: str, ids: tuple[int, ...], assumed: list[str]
) -> tuple[float, ...]:
    """Return gains, which the file has in the order of motors, in the order of the policy."""
    value = fields.get(name)
    count = len(value) if isinstance(value, list) else len(ids)
    gains = fields.numbers(name, count)
    if max(ids) < count:
        return tuple(gains[i] for i in ids)
    # G1 with 23 joints: the file leaves out the motors that are not there.
    if count == len(ids):
        assumed.append(f"{name} has one number for each joint of the policy, not for each motor")
        return gains
    raise ValueError(
        f"{fields.path(name)} has {count} numbers, and joint_ids_map goes up to {max(ids)}: "
        "give one for each motor"
    )


def _read_actions(fields: Fields, joints: tuple[str, ...]) -> dict[str, Any]:
    strange = [name for name in fields.values if name not in ACTIONS]
    if strange or not fields.values:
        raise ValueError(
            f"{fields.path('')[:-1]} has {', '.join(strange) or 'nothing'}, and only "
            f"{' and '.join(ACTIONS)} can be mapped: export a policy with these"
        )
    read: dict[str, Any] = {"joints": (), "scale": (), "offset": (), "velocity": (), "clip": None}
    clips: list[Range] = []
    for name in fields.values:
        term = fields.section(name)
        moved = joints
        if isinstance(term.values.get("joint_ids"), list) and _is_selection(term):
            moved = tuple(joints[i] for i in term.indices("joint_ids", below=len(joints)))
        read["joints"] += moved
        read["scale"] += term.numbers("scale", len(moved), single=True)
        read["offset"] += term.numbers("offset", len(moved), single=True)
        if name == "JointVelocityAction":
            read["velocity"] += moved
        if term.has("clip"):
            clips += _read_clips(term, len(moved))
    if clips and len(clips) != len(read["joints"]):
        raise ValueError(f"{fields.path('')[:-1]}: only some terms have a clip: give all of them")
    if clips:
        read["clip"] = tuple(clips)
    return read


def _is_selection(term: Fields) -> bool:
    # Isaac Lab's slice(None), which stands for all joints, is a list of three nulls here.
    return term.values["joint_ids"] != [None, None, None]


def _read_clips(term: Fields, size: int) -> list[Range]:
    value = term.get("clip")
    if not isinstance(value, list) or len(value) != size:
        raise ValueError(f"{term.path('clip')} must be {size} pairs [low, high]: correct it")
    pairs = Fields(term.file, {str(i): pair for i, pair in enumerate(value)}, term.path("clip."))
    return [pairs.range(str(i)) for i in range(size)]


def _term_names(fields: Fields) -> list[str]:
    return [name for name in fields.values if name not in SWITCHES]


def _check_terms(fields: Fields) -> None:
    """Raise a ValueError that names all terms without a counterpart here."""
    reasons = []
    for name in _term_names(fields):
        if name not in TERMS:
            reasons.append(f"{name} (not known here)")
        elif TERMS[name] == "height_scan" and not says_grid(fields.section(name)):
            reasons.append(f"{name} ({NO_GRID})")
    if reasons:
        raise unknown_terms(fields.file, reasons)


def _read_scan(fields: Fields) -> HeightScan | None:
    """Return where the height scan among the observations looks. None: there is none."""
    for name in _term_names(fields):
        if TERMS[name] == "height_scan":
            return read_scan(fields.section(name))
    return None


def _read_terms(
    fields: Fields,
    joints: tuple[str, ...],
    action_joints: tuple[str, ...],
    scan: HeightScan | None,
) -> tuple[tuple[ForeignTerm, ...], float | None]:
    names = _term_names(fields)
    points = 0 if scan is None else scan.size
    scale_first = bool(fields.values.get("scale_first"))
    by_time = bool(fields.values.get("use_gym_history"))
    terms = []
    period = None
    for name in names:
        entry = fields.section(name)
        _check_known_fields(entry)
        quantity = TERMS[name]
        if quantity == "clock":
            period = entry.section("params").positive("period")
        _check_all_joints(entry, name, len(joints))
        size = len(elements_of(quantity, joints, action_joints, points))
        terms.append(_read_term(entry, name, quantity, size, scale_first))
    if by_time and len({term.ages for term in terms}) > 1:
        raise ValueError(
            f"{fields.path('use_gym_history')} needs one history_length for all terms: "
            "give them the same"
        )
    return tuple(terms), period


def _check_known_fields(entry: Fields) -> None:
    unknown = [name for name in entry.values if name not in TERM_FIELDS and entry.has(name)]
    if unknown:
        raise ValueError(
            f"{entry.path(unknown[0])} cannot be mapped (known: {', '.join(TERM_FIELDS)}): remove "
            "it if the policy was trained without it"
        )


def _check_all_joints(entry: Fields, name: str, size: int) -> None:
    params = entry.values.get("params") or {}
    asset = params.get("asset_cfg") if isinstance(params, dict) else None
    ids = asset.get("joint_ids") if isinstance(asset, dict) else None
    if isinstance(ids, list) and ids != [None, None, None] and ids != list(range(size)):
        raise ValueError(
            f"{entry.path('params')} selects joints {ids} for {name}, and only all joints can be "
            "mapped: export a policy that observes all"
        )


def _read_term(
    entry: Fields, name: str, quantity: str, size: int, scale_first: bool
) -> ForeignTerm:
    scale = (1.0,) * size
    if entry.has("scale"):
        scale = entry.numbers("scale", size, single=True)
    clip = entry.range("clip") if entry.has("clip") else None
    if clip is not None and scale_first:
        if len(set(scale)) > 1 or scale[0] <= 0.0:
            raise ValueError(
                f"{entry.path('clip')} comes after several scales (scale_first), which cannot be "
                "mapped: use one scale for the term"
            )
        clip = (clip[0] / scale[0], clip[1] / scale[0])
    length = 1
    if entry.has("history_length"):
        length = max(entry.whole("history_length", most=LARGEST_HISTORY, least=0), 1)
    # The oldest value comes first.
    ages = tuple(reversed(range(length)))
    return ForeignTerm(name, quantity, scale, clip, ages)


def _read_ranges(fields: Fields) -> dict[str, Range]:
    commands = fields.values.get("commands") or {}
    if not isinstance(commands, dict) or "base_velocity" not in commands:
        return {}
    ranges = fields.section("commands").section("base_velocity").section("ranges")
    names = ("lin_vel_x", "lin_vel_y", "ang_vel_z")
    return {name: ranges.range(name) for name in names if ranges.has(name)}


# --- writing --------------------------------------------------------------------------------------

NO_BOUND = 1e6
"""Bound of a target where the policy has none, rad."""

WRITTEN_TERMS = {
    "ang_vel": "base_ang_vel",
    "gravity": "projected_gravity",
    "command": "velocity_commands",
    "joint_pos": "joint_pos_rel",
    "joint_vel": "joint_vel_rel",
    "action": "last_action",
    "clock": "gait_phase",
}
"""Quantities that its control loop observes → observation term of the file."""


def write(folder: Path, policy: Policy, cfg: TaskCfg) -> list[Path]:
    """Write `params/deploy.yaml` and `exported/policy.onnx`.

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
    description = folder / "params" / "deploy.yaml"
    write_yaml(
        description, _make_tree(contract, cfg, loop), f"{contract['task_id']} for {FRAMEWORK}"
    )
    onnx = folder / "exported" / "policy.onnx"
    write_onnx(onnx, network, loop.size)
    return [description, onnx]


def _make_loop(contract: Contract) -> Loop:
    scales = {name: quantity_scale(contract, name) for name in WRITTEN_TERMS}
    return Loop(
        framework=FRAMEWORK,
        blocks=make_blocks(contract, WRITTEN_TERMS),
        scales=scales,
        action_scale=action_scales(contract),
        clips_targets=True,
    )


def _make_tree(contract: Contract, cfg: TaskCfg, loop: Loop) -> dict[str, Any]:
    joints = contract["joint_names"]
    ids = motor_numbers(cfg.robot, tuple(joints))
    stiffness = [0.0] * (max(ids) + 1)
    damping = list(stiffness)
    for motor, kp, kd in zip(ids, contract["kp"], contract["kd"], strict=True):
        stiffness[motor] = kp
        damping[motor] = kd
    return {
        "joint_names": list(joints),
        "joint_ids_map": ids,
        "step_dt": rounded([contract["control_dt"]])[0],
        "stiffness": rounded(stiffness),
        "damping": rounded(damping),
        "default_joint_pos": rounded(contract["default_joint_pos"]),
        "commands": {"base_velocity": {"ranges": _written_ranges(cfg)}},
        "actions": {"JointPositionAction": _written_action(contract, loop)},
        "observations": _written_terms(contract, loop),
    }


def _written_ranges(cfg: TaskCfg) -> dict[str, Any]:
    command = cfg.commands["velocity"]
    ranges: dict[str, Any] = {}
    for name in ("lin_vel_x", "lin_vel_y", "ang_vel_z"):
        ranges[name] = rounded(getattr(command, name))
    ranges["heading"] = None
    return ranges


def _written_action(contract: Contract, loop: Loop) -> dict[str, Any]:
    joints = contract["joint_names"]
    clips = None
    if any(has_bound(pair) for pair in contract["target_clip"]):
        pairs = dict(zip(contract["action_joints"], contract["target_clip"], strict=True))
        clips = [_written_clip(pairs[name]) for name in joints]
    return {
        "clip": clips,
        "joint_names": [".*"],
        "scale": rounded([loop.action_scale[name] for name in joints]),
        "offset": rounded(contract["default_joint_pos"]),
        "joint_ids": None,
    }


def _written_clip(pair: list[float | None]) -> list[float]:
    low, high = pair
    least = -NO_BOUND if low is None else low
    most = NO_BOUND if high is None else high
    return rounded([least, most])


def _written_terms(contract: Contract, loop: Loop) -> dict[str, Any]:
    terms: dict[str, Any] = {}
    for block in loop.blocks:
        name = WRITTEN_TERMS[block.quantity]
        params: dict[str, Any] = {}
        if block.quantity == "command":
            params["command_name"] = "base_velocity"
        if block.quantity == "clock":
            params["period"] = rounded([contract["gait"]["period"]])[0]
        scale = rounded([quantity_scale(contract, block.quantity)])[0]
        # The first block of a quantity is its oldest value.
        terms.setdefault(
            name,
            {
                "params": params,
                "clip": None,
                "scale": [scale] * len(block.elements),
                "history_length": block.age + 1,
            },
        )
    return terms
