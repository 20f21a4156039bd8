"""The format of mjlab and whole_body_tracking: an ONNX file with its description as metadata.

Lists are written as texts with commas between their elements.
"""

from collections.abc import Mapping
from math import inf, isfinite, isnan
from pathlib import Path

from legged_envs.envs.cfg import TaskCfg
from legged_envs.policy.foreign.baked import BakedNetwork, Loop, action_scales, make_blocks
from legged_envs.policy.foreign.description import (
    ForeignContract,
    ForeignTerm,
    Range,
    unknown_terms,
)
from legged_envs.policy.foreign.fields import LARGEST_HISTORY, rounded
from legged_envs.policy.foreign.files import write_onnx
from legged_envs.policy.foreign.layout import elements_of
from legged_envs.policy.foreign.motion import ReferenceMotion, gives_motion, read_motion
from legged_envs.policy.foreign.scan import HeightScan, grid_lines
from legged_envs.policy.metadata import Contract
from legged_envs.policy.policy import Policy
from legged_envs.tables import shorten

FRAMEWORK = "mjlab"
"""Name of the format."""

TERMS = {
    "base_lin_vel": "lin_vel",
    "base_ang_vel": "ang_vel",
    "projected_gravity": "gravity",
    "command": "command",
    "velocity_commands": "command",
    "joint_pos": "joint_pos",
    "joint_pos_rel": "joint_pos",
    "joint_vel": "joint_vel",
    "joint_vel_rel": "joint_vel",
    "actions": "action",
    "last_action": "action",
    "height_scan": "height_scan",
}
"""Observation term of the file → the same quantity here."""

MOTION_TERMS = {
    "motion_command": "motion_joints",
    "command": "motion_joints",
    "motion_anchor_pos_b": "anchor_pos",
    "motion_anchor_ori_b": "anchor_ori",
}
"""Observation term of a policy that imitates the motion in its file → the same quantity here."""

TASK_SCAN = HeightScan(x=grid_lines(1.6, 0.1), y=grid_lines(1.0, 0.1), offset=0.0)
"""Height scan of mjlab's own velocity tasks (1.6.0), around the base. The metadata do not have it.

Its rays start at the base and end 5 m below it. No ground of these tasks is that deep.
"""

SCAN_ASSUMED = (
    "height_scan looks at the grid of mjlab's velocity tasks, 1.6 m by 1 m, a point every 0.1 m"
)
"""Assumption that is reported for a policy with a height scan without a described grid."""

CONTROL_DT = "control_dt"
"""Entry with the time from one action to the next, s. Only exports of this package have it."""

NO_BOUND = (-inf, inf)
"""Bounds of an observation that is not clipped."""


class Texts:
    """Metadata of an ONNX file. Its lists are read and checked.

    Args:
        file: The file, for errors.
        values: Name → text.
    """

    def __init__(self, file: Path, values: Mapping[str, str]):
        self.file = file
        """File, for errors."""
        self._values = values

    def has(self, name: str) -> bool:
        """Return True if there is such an entry."""
        return name in self._values

    def words(self, name: str) -> tuple[str, ...]:
        """Return the elements of a list.

        Raises:
            ValueError: If there is no such entry.
        """
        if name not in self._values:
            raise ValueError(
                f"{str(self.file)!r} has no {name} in its metadata: export it with mjlab, "
                "or name a description with --contract"
            )
        text = self._values[name].strip().removeprefix("[").removesuffix("]")
        words = [word.strip().strip("'\"") for word in text.split(",")]
        return tuple(words) if text else ()

    def numbers(self, name: str, size: int) -> tuple[float, ...]:
        """Return finite numbers. One number stands for all.

        Raises:
            ValueError: If there is no such entry, it has another length or no numbers.
        """
        words = self.words(name)
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        if len(numbers) == 1:
            numbers = numbers * size
        if len(numbers) != size or not all(isfinite(number) for number in numbers):
            raise ValueError(
                f"{str(self.file)!r}: {name} in its metadata must be {size} numbers, "
                f"got {shorten(', '.join(words), 80)}: export it again"
            )
        return tuple(numbers)

    def lists(self, name: str, size: int) -> list[tuple[float, ...]]:
        """Return a list of numbers for each of ``size`` terms. A number may be infinite.

        mjlab writes ``;`` between the numbers of one term.

        Raises:
            ValueError: If there is another number of lists, or something is not a number.
        """
        words = self.words(name)
        lists = []
        try:
            for word in words:
                lists.append(tuple(float(part) for part in word.split(";")))
        except ValueError:
            lists = []
        if len(lists) != size or any(isnan(number) for numbers in lists for number in numbers):
            raise ValueError(
                f"{str(self.file)!r}: {name} in its metadata must have numbers for {size} terms, "
                f"got {shorten(', '.join(words), 80)}: export it again"
            )
        return lists


def is_format(metadata: Mapping[str, str]) -> bool:
    """Return True if the metadata of an ONNX file is of this format."""
    return "observation_names" in metadata and "joint_stiffness" in metadata


def read(
    file: Path, metadata: Mapping[str, str], scan: HeightScan | None = None
) -> ForeignContract:
    """Read the metadata of an ONNX file.

    Args:
        file: The file.
        metadata: Its metadata.
        scan: Where its height scan looks. None: the grid of mjlab's own tasks.

    Raises:
        ValueError: If an entry is missing or wrong, or an observation term has no counterpart here.
    """
    texts = Texts(file, metadata)
    joints = texts.words("joint_names")
    size = len(joints)
    default = texts.numbers("default_joint_pos", size)
    given_scan = scan
    scan = scan or TASK_SCAN
    terms = _read_terms(texts, joints, scan.size)
    sees_heights = any(term.quantity == "height_scan" for term in terms)
    return ForeignContract(
        file=file,
        framework=FRAMEWORK,
        joint_names=joints,
        default_joint_pos=default,
        kp=texts.numbers("joint_stiffness", size),
        kd=texts.numbers("joint_damping", size),
        terms=terms,
        action_joints=joints,
        action_scale=texts.numbers("action_scale", size),
        action_offset=default,
        control_dt=texts.numbers(CONTROL_DT, 1)[0] if texts.has(CONTROL_DT) else None,
        motion=_read_motion(texts, terms),
        anchor=_anchor(texts) if texts.has("anchor_body_name") else None,
        scan=scan if sees_heights else None,
        assumed=(SCAN_ASSUMED,) if sees_heights and given_scan is None else (),
    )


def _read_motion(texts: Texts, terms: tuple[ForeignTerm, ...]) -> ReferenceMotion | None:
    """Return the motion that a policy observes. None: it observes no scan, or not the scan of its
    file."""
    if not any(term.quantity in MOTION_TERMS.values() for term in terms):
        return None
    if not gives_motion(texts.file):
        return None
    return read_motion(texts.file, _anchor(texts), texts.words("body_names"))


def _anchor(texts: Texts) -> str:
    names = texts.words("anchor_body_name")
    if not names:
        raise ValueError(f"{str(texts.file)!r}: anchor_body_name must be a body, got ''")
    return names[0]


def _read_terms(texts: Texts, joints: tuple[str, ...], points: int) -> tuple[ForeignTerm, ...]:
    names = texts.words("observation_names")
    # Policies of BeyondMimic have the motion in their file, with the name of its anchor.
    has_motion = texts.has("anchor_body_name")
    quantities = {**TERMS, **MOTION_TERMS} if has_motion else TERMS
    unknown = []
    for name in names:
        if name in MOTION_TERMS and name not in quantities:
            unknown.append(f"{name} (a reference motion, but the file lacks anchor_body_name)")
        elif name not in quantities:
            unknown.append(f"{name} (not known here)")
    if unknown:
        raise unknown_terms(texts.file, unknown)
    lengths = _history_lengths(texts, len(names))
    scales: list[tuple[float, ...]] = [(1.0,)] * len(names)
    if texts.has("observation_terms_scale"):
        scales = texts.lists("observation_terms_scale", len(names))
    clips = [NO_BOUND] * len(names)
    if texts.has("observation_terms_clip"):
        clips = _read_clips(texts, len(names))
    terms = []
    for name, length, scale, clip in zip(names, lengths, scales, clips, strict=True):
        quantity = quantities[name]
        count = len(elements_of(quantity, joints, joints, points))
        if len(scale) == 1:
            scale = scale * count
        if len(scale) != count or not all(isfinite(factor) for factor in scale):
            raise ValueError(
                f"{str(texts.file)!r}: observation_terms_scale in its metadata must have {count} "
                f"finite numbers for {name}, got {len(scale)}: export it again"
            )
        # The oldest value comes first.
        ages = tuple(reversed(range(length)))
        terms.append(ForeignTerm(name, quantity, scale, None if clip == NO_BOUND else clip, ages))
    return tuple(terms)


def _read_clips(texts: Texts, count: int) -> list[Range]:
    """Return the bounds of each term before its scale is applied."""
    clips = []
    for numbers in texts.lists("observation_terms_clip", count):
        if len(numbers) != 2 or numbers[0] > numbers[1]:
            raise ValueError(
                f"{str(texts.file)!r}: observation_terms_clip in its metadata must have a lower "
                f"and an upper bound for each term, got {numbers}: export it again"
            )
        clips.append((numbers[0], numbers[1]))
    return clips


def _history_lengths(texts: Texts, count: int) -> list[int]:
    # The first name is mjlab's, the second is BeyondMimic's.
    for entry in ("observation_terms_history_length", "observation_history_lengths"):
        if not texts.has(entry):
            continue
        numbers = texts.numbers(entry, count)
        for number in numbers:
            if not (number.is_integer() and 0.0 <= number <= LARGEST_HISTORY):
                raise ValueError(
                    f"{str(texts.file)!r}: {entry} in its metadata must be whole numbers from 0 to "
                    f"{LARGEST_HISTORY}, got {number:g}: export it again"
                )
        # 0 is only the present value.
        return [max(int(number), 1) for number in numbers]
    return [1] * count


# --- writing --------------------------------------------------------------------------------------

WRITTEN_TERMS = {
    "lin_vel": "base_lin_vel",
    "ang_vel": "base_ang_vel",
    "gravity": "projected_gravity",
    "command": "command",
    "joint_pos": "joint_pos",
    "joint_vel": "joint_vel",
    "action": "actions",
}
"""Quantities that its control loops observe → name of the observation."""

COMMAND = "twist"
"""Name of the velocity command in mjlab."""


def write(folder: Path, policy: Policy, cfg: TaskCfg) -> list[Path]:
    """Write `policy.onnx` with the metadata of mjlab.

    Args:
        folder: Folder to write to.
        policy: Policy of this package.
        cfg: Its task.

    Raises:
        ValueError: If the control loop of this format cannot drive the policy. Nothing is written.
    """
    contract = policy.contract
    loop = Loop(
        framework=FRAMEWORK,
        blocks=make_blocks(contract, WRITTEN_TERMS),
        scales={},
        action_scale=action_scales(contract),
    )
    network = BakedNetwork(policy, loop)
    onnx = folder / "policy.onnx"
    write_onnx(onnx, network, loop.size, _make_metadata(contract, loop))
    return [onnx]


def _make_metadata(contract: Contract, loop: Loop) -> dict[str, str]:
    lengths: dict[str, int] = {}
    for block in loop.blocks:
        # The first block of a quantity is its oldest value.
        lengths.setdefault(WRITTEN_TERMS[block.quantity], block.age + 1)
    history = ",".join(str(length) for length in lengths.values())
    joints = contract["joint_names"]
    scale = [loop.action_scale[name] for name in joints]
    return {
        "run_path": contract["task_id"],
        "joint_names": ",".join(joints),
        "joint_stiffness": _joined(contract["kp"]),
        "joint_damping": _joined(contract["kd"]),
        "default_joint_pos": _joined(contract["default_joint_pos"]),
        "command_names": COMMAND,
        "observation_names": ",".join(lengths),
        "observation_history_lengths": history,
        "observation_terms_history_length": history,
        "action_scale": _joined(scale),
        # Not an entry of mjlab, whose loops know the time step of their task.
        CONTROL_DT: repr(contract["control_dt"]),
    }


def _joined(numbers: list[float]) -> str:
    # mjlab writes three decimals. An action scale of 0.3728 needs more.
    return ",".join(repr(number) for number in rounded(numbers))
