import re
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from legged_envs.checks import check_choice, check_number
from legged_envs.configuration import Configuration
from legged_envs.tables import Table

ACTUATOR_GAINS = {"position": ("kp", "kd"), "velocity": ("kd",), "torque": ()}
"""Kinds of actuators, and which gains each has. With the target u, τ = clip(…, ±torque limit) of kp (u − q) − kd q̇,
of kd (u − q̇), and of u: u is in rad, rad/s and N·m."""
_BOUNDS: dict[str, dict[str, float]] = {
    "default_joint_pos": {},
    "kp": {"least": 0.0},
    "kd": {"least": 0.0},
}
_BOUNDS |= {"torque_limits": {"above": 0.0}, "velocity_limits": {"above": 0.0}}
"""Fields of numbers per joint, and what each number must be."""


def counterpart(name: str, names: Sequence[str]) -> str:
    """The one of ``names`` that is ``name`` with left in place of right or L in place of R, in words of one or two
    letters such as FL, or the other way round; ``name`` itself if there is none."""
    swaps = {"left": "right", "Left": "Right", "LEFT": "RIGHT", "l": "r", "L": "R"}
    swaps |= {right: left for left, right in swaps.items()}
    places = [match.span() for match in re.finditer("left|right", name, re.IGNORECASE)]
    short = re.finditer(r"(?<![A-Za-z])[A-Za-z]{1,2}(?![A-Za-z])", name)
    places += [(i, i + 1) for match in short for i in range(*match.span())]
    swapped = [name[:i] + swaps[name[i:j]] + name[j:] for i, j in places if name[i:j] in swaps]
    return next((each for each in swapped if each in names), name)


def mirror_left_and_right(
    joint_names: tuple[str, ...], sideways: tuple[str, ...] = ("roll", "yaw")
) -> tuple[tuple[str, float], ...]:
    """``RobotCfg.mirror`` of a robot whose joints are named after ``left`` or ``right``, ``L`` or ``R``, or are in the
    middle: a joint takes the place of its namesake on the other side; those named after one of ``sideways`` change
    their sign."""
    signs = [
        -1.0 if any(part in name.lower() for part in sideways) else 1.0 for name in joint_names
    ]
    return tuple(
        (counterpart(name, joint_names), sign)
        for name, sign in zip(joint_names, signs, strict=True)
    )


@dataclass(frozen=True)
class RobotCfg(Configuration):
    """A legged robot: its MJCF file, which holds the bodies only, its actuators and the names of its parts. Fields per
    joint follow ``joint_names``, per foot ``foot_names``. ValueError if the description contradicts itself."""

    name: str
    xml: str
    """Short name, also the prefix of task ids, and MJCF file: a name beside this module, or an absolute path."""
    base_body: str
    """Body that carries the free joint ``root`` and the site ``imu``."""
    joint_names: tuple[str, ...]
    """Actuated joints in the order of actions and observations, which is their order in the MJCF file."""
    default_joint_pos: tuple[float, ...]
    """Joint positions of the standing pose [rad]; a zero action asks for this pose."""
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    """Gains [N m/rad] and [N m s/rad]: 0 where :data:`ACTUATOR_GAINS` has none; kd positive for ``"velocity"``."""
    torque_limits: tuple[float, ...]
    velocity_limits: tuple[float, ...]
    """Largest absolute joint torques [N m], and joint velocities of the real actuators [rad/s]."""
    base_height: float
    """Height of the base origin above the ground in the standing pose, feet touching [m]."""
    foot_names: tuple[str, ...]
    """Foot bodies. Each is welded to the last link of its leg and has a site ``<foot>_site`` at its origin."""
    foot_radius: float
    """Height of a foot's origin above the ground while the robot stands on it [m]; the radius of a wheel."""
    penalized_bodies: tuple[str, ...]
    termination_bodies: tuple[str, ...]
    """Bodies whose contact with the ground is undesired, and those whose contact ends the episode."""
    mirror: tuple[tuple[str, float], ...]
    foot_mirror: tuple[int, ...]
    """What takes the place of each joint, with its sign, 1 or -1, and of each foot when left and right are swapped."""
    diagonals: tuple[tuple[str, str], ...] = ()
    """Pairs of feet that stand and swing together in a trot; empty for a robot that cannot trot."""
    actuators: tuple[str, ...] = ()
    """What drives each joint and so what its target is, of :data:`ACTUATOR_GAINS`; empty for ``"position"`` for all."""
    wheels: bool = False
    """Whether the feet are wheels: each turns, without an end, about its own y axis."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value, times = (
                getattr(self, entry.name),
                f" * {len(self.joint_names)}" if entry.name in _BOUNDS else "",
            )
            if "tuple" in str(entry.type) and (
                isinstance(value, str) or not isinstance(value, Sized)
            ):
                raise self._error(
                    f"{entry.name} must be a tuple, such as ({value!r},){times}, got {value!r}"
                )
        for field in ("joint_names", "foot_names"):
            if not getattr(self, field):
                raise self._error(f"{field} is empty")
        object.__setattr__(
            self, "actuators", self.actuators or ("position",) * len(self.joint_names)
        )
        for field in ("joint_names", "foot_names", "penalized_bodies", "termination_bodies"):
            names = getattr(self, field)
            if repeated := sorted({repr(name) for name in names if names.count(name) > 1}):
                raise self._error(f"{field} repeats {', '.join(repeated)}")
        lengths = dict.fromkeys((*_BOUNDS, "mirror", "actuators"), "joint_names") | {
            "foot_mirror": "foot_names"
        }
        for field, per in lengths.items():
            got, expected = len(getattr(self, field)), len(getattr(self, per))
            if got != expected:
                raise self._error(f"{field} has {got} entries but {per} has {expected}")
        for field, bounds in _BOUNDS.items():
            for joint, value in self._per_joint(field).items():
                check_number(f"RobotCfg {self.name!r}: {field} of {joint!r}", value, **bounds)
        for field in ("base_height", "foot_radius"):
            check_number(f"RobotCfg {self.name!r}: {field}", getattr(self, field), above=0.0)
        self._check_actuators()
        self._check_mirrors()
        for foot in (foot for pair in self.diagonals for foot in pair):
            if foot not in self.foot_names:
                raise self._error(f"diagonals must be pairs of {self.foot_names}, got {foot!r}")

    def _describe(self) -> str:
        return f"{self.name!r}, {self.num_joints} joints, {len(self.foot_names)} feet"

    def _as_tables(self) -> Iterator[Table]:
        columns = ("joint_names", *_BOUNDS, "actuators", "mirror")
        others = [(name, value) for name, value in vars(self).items() if name not in columns]
        yield repr(self), ("field", "value"), others
        yield "joints", columns, [*zip(*map(vars(self).get, columns), strict=True)]

    @property
    def path(self) -> Path:
        """The MJCF file; FileNotFoundError if there is none."""
        path = Path(__file__).resolve().parent / self.xml
        if not path.is_file():
            how = "xml must be an absolute path, or the name of a file that comes with the package"
            raise FileNotFoundError(
                f"RobotCfg {self.name!r}: there is no file {str(path)!r}; {how}"
            )
        return path

    @property
    def num_joints(self) -> int:
        """Number of actuated joints."""
        return len(self.joint_names)

    def _per_joint(self, field: str) -> dict[str, Any]:
        return dict(zip(self.joint_names, getattr(self, field), strict=True))

    def _error(self, message: str) -> ValueError:
        return ValueError(f"RobotCfg {self.name!r}: {message}")

    def _check_actuators(self) -> None:
        for joint, kind, kp, kd in zip(
            self.joint_names, self.actuators, self.kp, self.kd, strict=True
        ):
            check_choice(
                f"RobotCfg {self.name!r}: actuators of {joint!r}", kind, tuple(ACTUATOR_GAINS)
            )
            for field, gain in {"kp": kp, "kd": kd}.items():
                if field not in ACTUATOR_GAINS[kind] and gain != 0.0:
                    raise self._error(
                        f"{field} of {joint!r}, a {kind} actuator, must be 0, got {gain}"
                    )
            if kind == "velocity" and kd == 0.0:
                raise self._error(
                    f"kd of {joint!r}, a velocity actuator, must be positive, got {kd}"
                )

    def _check_mirrors(self) -> None:
        mirror = self._per_joint("mirror")
        for joint, (partner, sign) in mirror.items():
            if partner not in mirror:
                raise self._error(f"mirror of {joint!r} is {partner!r}, which is not a joint")
            if sign not in (1.0, -1.0):
                raise self._error(f"mirror sign of {joint!r} must be 1 or -1, got {sign}")
            if mirror[partner] != (joint, sign):
                there_and_back = f"{joint!r} -> {(partner, sign)}, {partner!r} -> {mirror[partner]}"
                raise self._error(f"mirror is not its own inverse: {there_and_back}")
        for i, (foot, partner) in enumerate(zip(self.foot_names, self.foot_mirror, strict=True)):
            if partner not in range(len(self.foot_names)) or self.foot_mirror[partner] != i:
                raise self._error(
                    f"foot_mirror is not its own inverse at {foot!r}: {self.foot_mirror}"
                )
