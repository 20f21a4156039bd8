"""Description of a legged robot: its model, its actuators and the names of its parts."""

import re
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from legged_envs.checks import check_choice, check_number
from legged_envs.configuration import Configuration
from legged_envs.tables import Table

Value = TypeVar("Value")

ACTUATOR_GAINS: Mapping[str, tuple[str, ...]] = {
    "position": ("kp", "kd"),
    "velocity": ("kd",),
    "torque": (),
}
"""Kinds of actuators, and the gains that each kind uses.

The torque follows from the target u, the joint position q and the joint velocity q̇, and is clipped
to the torque limit:

* ``"position"``: kp (u − q) − kd q̇, with u in rad.
* ``"velocity"``: kd (u − q̇), with u in rad/s.
* ``"torque"``: u, in N m.
"""

NUMBERS_PER_JOINT: Mapping[str, Mapping[str, float]] = {
    "default_joint_pos": {},
    "kp": {"least": 0.0},
    "kd": {"least": 0.0},
    "torque_limits": {"above": 0.0},
    "velocity_limits": {"above": 0.0},
}
"""Fields of :class:`RobotCfg` with one number per joint, and the bounds of these numbers.

The bounds are keyword arguments of :func:`~legged_envs.checks.check_number`.
"""

OTHER_SIDE = {
    "left": "right",
    "Left": "Right",
    "LEFT": "RIGHT",
    "l": "r",
    "L": "R",
    "right": "left",
    "Right": "Left",
    "RIGHT": "LEFT",
    "r": "l",
    "R": "L",
}
"""Words and letters for left and right in names of joints and bodies, each with its opposite."""


def counterpart(name: str, names: Sequence[str]) -> str:
    """Return the name of the joint or body at the same place on the other side of a robot.

    The two names differ only in left and right, or in L and R within a word of one or two letters,
    at one place or at all: the counterpart of ``FL_hip`` is ``FR_hip``, the counterpart of
    ``left_leg_l`` is ``right_leg_r``.

    Args:
        name: Name of a joint or body.
        names: Names of all joints, or of all bodies, of the robot.

    Returns:
        The name in ``names`` on the other side, or ``name`` if there is none.
    """
    for other in _names_on_other_side(name):
        if other in names:
            return other
    return name


def _names_on_other_side(name: str) -> Iterator[str]:
    spans = [match.span() for match in re.finditer("left|right", name, re.IGNORECASE)]
    for short_word in re.finditer(r"(?<![A-Za-z])[A-Za-z]{1,2}(?![A-Za-z])", name):
        for i in range(*short_word.span()):
            spans.append((i, i + 1))
    sides = [(start, end) for start, end in spans if name[start:end] in OTHER_SIDE]
    for start, end in sides:
        yield name[:start] + OTHER_SIDE[name[start:end]] + name[end:]
    # Both sides at once, as in left_leg_left_hip. From the end, so that places stay valid.
    for start, end in sorted(sides, reverse=True):
        name = name[:start] + OTHER_SIDE[name[start:end]] + name[end:]
    yield name


def mirror_left_and_right(
    joint_names: tuple[str, ...], sideways: tuple[str, ...] = ("roll", "yaw")
) -> tuple[tuple[str, float], ...]:
    """Return the field ``mirror`` of a :class:`RobotCfg` from the names of its joints.

    The names must contain left and right, or L and R. The partner of a joint is its
    :func:`counterpart` on the other side. A joint in the middle is its own partner.

    Args:
        joint_names: Names of the joints.
        sideways: Lower-case words. A joint with one of them in its name changes the sign of its
            position when left and right are swapped.

    Returns:
        Partner and sign, 1 or -1, of each joint.
    """
    mirror = []
    for name in joint_names:
        changes_sign = any(word in name.lower() for word in sideways)
        sign = -1.0 if changes_sign else 1.0
        mirror.append((counterpart(name, joint_names), sign))
    return tuple(mirror)


@dataclass(frozen=True)
class RobotCfg(Configuration):
    """Description of a legged robot: its model file, its actuators and the names of its parts.

    The MJCF file contains the bodies and joints, but no motors and no ground. Fields with one entry
    per joint are in the order of ``joint_names``. Fields with one entry per foot are in the order
    of ``foot_names``.

    Raises:
        ValueError: Fields contradict each other, such as two lengths, or a number is out of its
            range. The message names the field.
    """

    name: str
    """Short name of the robot in files, tables and errors, such as ``"go2"``."""
    xml: str
    """MJCF file: the name of a file next to this module, or an absolute path."""
    base_body: str
    """Body that carries the free joint ``root`` and the site ``imu``."""
    joint_names: tuple[str, ...]
    """Actuated joints in the order of actions and observations, which is the order of the MJCF
    file."""
    default_joint_pos: tuple[float, ...]
    """Joint positions of the standing pose, rad. They are the targets of a zero action."""
    kp: tuple[float, ...]
    """Stiffness of each joint, N m/rad. It must be 0 for ``"velocity"`` and ``"torque"`` actuators
    (:data:`ACTUATOR_GAINS`)."""
    kd: tuple[float, ...]
    """Damping of each joint, N m s/rad. It must be positive for a ``"velocity"`` actuator and 0 for
    a ``"torque"`` actuator (:data:`ACTUATOR_GAINS`)."""
    torque_limits: tuple[float, ...]
    """Largest absolute torque of each joint, N m. The simulation clips torques to it."""
    velocity_limits: tuple[float, ...]
    """Largest absolute velocity of each joint that the real motor reaches, rad/s."""
    base_height: float
    """Height of the base origin above the ground in the standing pose, feet touching, m."""
    foot_names: tuple[str, ...]
    """Foot bodies. Each is welded to the last link of its leg and has a site ``<foot>_site`` at its
    origin."""
    foot_radius: float
    """Height of a foot's origin above the ground while the robot stands on it, m. For a wheel, its
    radius."""
    penalized_bodies: tuple[str, ...]
    """Bodies that should not touch the ground. Tasks penalize their contacts."""
    termination_bodies: tuple[str, ...]
    """Bodies that end an episode when they touch the ground."""
    mirror: tuple[tuple[str, float], ...]
    """Partner of each joint when left and right are swapped, and its sign, 1 or -1.

    In the mirrored pose a joint has the position of its partner, multiplied by the sign. A joint in
    the middle is its own partner.
    """
    foot_mirror: tuple[int, ...]
    """Partner of each foot when left and right are swapped, as an index in ``foot_names``."""
    diagonals: tuple[tuple[str, str], ...] = ()
    """Pairs of feet that stand and swing together in a trot. Empty for a robot that cannot trot."""
    actuators: tuple[str, ...] = ()
    """Kind of each joint's actuator: ``"position"``, ``"velocity"`` or ``"torque"``
    (:data:`ACTUATOR_GAINS`). Empty: all are ``"position"``."""
    wheels: bool = False
    """True if the feet are wheels. Each turns about the y axis of its body, without limits."""

    def __post_init__(self) -> None:
        # Lengths are compared first: the later checks pair the entries of two fields by position.
        self._check_types()
        for field in fields(self):
            # A robot is a key of tables, which a list cannot be.
            object.__setattr__(self, field.name, _without_lists(getattr(self, field.name)))
        self._check_names()
        if not self.actuators:
            all_position = ("position",) * len(self.joint_names)
            object.__setattr__(self, "actuators", all_position)
        self._check_repeated_names()
        self._check_lengths()
        self._check_numbers()
        self._check_actuators()
        self._check_mirror()
        self._check_feet()

    def _describe(self) -> str:
        return f"{self.name!r}, {self.num_joints} joints, {len(self.foot_names)} feet"

    def _as_tables(self) -> Iterator[Table]:
        columns = ("joint_names", *NUMBERS_PER_JOINT, "actuators", "mirror")
        others = [(name, value) for name, value in vars(self).items() if name not in columns]
        yield repr(self), ("field", "value"), others
        values_per_column = [getattr(self, column) for column in columns]
        yield "joints", columns, list(zip(*values_per_column, strict=True))

    @property
    def path(self) -> Path:
        """Absolute path of the robot's MJCF file.

        Raises:
            FileNotFoundError: If the file does not exist.
        """
        path = Path(__file__).resolve().parent / self.xml
        if not path.is_file():
            raise FileNotFoundError(
                f"RobotCfg {self.name!r}: there is no file {str(path)!r}; xml must be an absolute "
                "path, or the name of a file of the package"
            )
        return path

    @property
    def num_joints(self) -> int:
        """Number of actuated joints."""
        return len(self.joint_names)

    def _by_joint(self, values: Sequence[Value]) -> dict[str, Value]:
        return dict(zip(self.joint_names, values, strict=True))

    def _error(self, message: str) -> ValueError:
        return ValueError(f"RobotCfg {self.name!r}: {message}")

    def _check_types(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_sequence = isinstance(value, Sized) and not isinstance(value, str)
            if "tuple" not in str(field.type) or is_sequence:
                continue
            example = f"({value!r},)"
            if field.name in NUMBERS_PER_JOINT:
                example += f" * {len(self.joint_names)}"
            raise self._error(f"{field.name} must be a tuple, such as {example}, got {value!r}")

    def _check_names(self) -> None:
        if not self.joint_names:
            raise self._error("joint_names is empty")
        if not self.foot_names:
            raise self._error("foot_names is empty")

    def _check_repeated_names(self) -> None:
        for field in ("joint_names", "foot_names", "penalized_bodies", "termination_bodies"):
            names = getattr(self, field)
            repeated = sorted({repr(name) for name in names if names.count(name) > 1})
            if repeated:
                raise self._error(f"{field} repeats {', '.join(repeated)}")

    def _check_lengths(self) -> None:
        num_joints = len(self.joint_names)
        for field in (*NUMBERS_PER_JOINT, "mirror", "actuators"):
            length = len(getattr(self, field))
            if length != num_joints:
                raise self._error(f"{field} has {length} entries but joint_names has {num_joints}")
        num_feet = len(self.foot_names)
        if len(self.foot_mirror) != num_feet:
            raise self._error(
                f"foot_mirror has {len(self.foot_mirror)} entries but foot_names has {num_feet}"
            )

    def _check_numbers(self) -> None:
        for field, bounds in NUMBERS_PER_JOINT.items():
            for joint, value in self._by_joint(getattr(self, field)).items():
                check_number(f"RobotCfg {self.name!r}: {field} of {joint!r}", value, **bounds)
        check_number(f"RobotCfg {self.name!r}: base_height", self.base_height, above=0.0)
        check_number(f"RobotCfg {self.name!r}: foot_radius", self.foot_radius, above=0.0)

    def _check_actuators(self) -> None:
        kp = self._by_joint(self.kp)
        kd = self._by_joint(self.kd)
        for joint, kind in self._by_joint(self.actuators).items():
            name = f"RobotCfg {self.name!r}: actuators of {joint!r}"
            check_choice(name, kind, tuple(ACTUATOR_GAINS))
            for field, gain in (("kp", kp[joint]), ("kd", kd[joint])):
                if field not in ACTUATOR_GAINS[kind] and gain != 0.0:
                    raise self._error(
                        f"{field} of {joint!r}, a {kind} actuator, must be 0, got {gain}"
                    )
            if kind == "velocity" and kd[joint] == 0.0:
                raise self._error(
                    f"kd of {joint!r}, a velocity actuator, must be positive, got {kd[joint]}"
                )

    def _check_mirror(self) -> None:
        mirror = self._by_joint(self.mirror)
        for joint, (partner, sign) in mirror.items():
            if partner not in mirror:
                raise self._error(f"mirror of {joint!r} is {partner!r}, which is not a joint")
            if sign not in (1.0, -1.0):
                raise self._error(f"mirror sign of {joint!r} must be 1 or -1, got {sign}")
            if mirror[partner] != (joint, sign):
                raise self._error(
                    "mirror is not its own inverse: "
                    f"{joint!r} -> {(partner, sign)}, {partner!r} -> {mirror[partner]}"
                )

    def _check_feet(self) -> None:
        num_feet = len(self.foot_names)
        for i, (foot, partner) in enumerate(zip(self.foot_names, self.foot_mirror, strict=True)):
            if partner not in range(num_feet) or self.foot_mirror[partner] != i:
                raise self._error(
                    f"foot_mirror is not its own inverse at {foot!r}: {self.foot_mirror}"
                )
        for pair in self.diagonals:
            for foot in pair:
                if foot not in self.foot_names:
                    raise self._error(f"diagonals must be pairs of {self.foot_names}, got {foot!r}")


def _without_lists(value: object) -> object:
    """Return a value with tuples in place of lists, also of lists within it."""
    if isinstance(value, (list, tuple)):
        return tuple(_without_lists(part) for part in value)
    return value
