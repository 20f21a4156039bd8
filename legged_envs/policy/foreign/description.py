"""Description of a policy of another framework, in words that all formats share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from legged_envs.policy.foreign.layout import Block, elements_of
from legged_envs.policy.foreign.motion import MOTION_QUANTITIES, ReferenceMotion
from legged_envs.policy.foreign.scan import HeightScan

NO_LIMIT = 100.0
"""Limit of actions and observations for files that have none, as in legged_gym.

Actions of this size move a target by some 25 rad: no joint gets there.
"""

Range = tuple[float, float]
"""(low, high)."""


@dataclass(frozen=True)
class ForeignTerm:
    """One observation term of a policy of another framework."""

    name: str
    """Name of the term in its own framework."""
    quantity: str
    """Name of the same quantity in this package."""
    scale: tuple[float, ...]
    """Factor of each element. The joints are in the order of the file."""
    clip: Range | None = None
    """Bounds of the value before scaling. None: it is not clipped."""
    ages: tuple[int, ...] = (0,)
    """Ages of the values that the policy sees, in control steps and in their order."""


@dataclass(frozen=True)
class ForeignContract:
    """Observations of a policy of another framework, and the meaning of its actions.

    Numbers for each joint are in the order of `joint_names`, those for each action in the order of
    `action_joints`.
    """

    file: Path
    """File with the description, for errors."""
    framework: str
    """Name of the format, such as `"unitree-rl-lab"`."""
    joint_names: tuple[str, ...]
    """Joints that the policy observes, in its order."""
    default_joint_pos: tuple[float, ...]
    """Positions to which `joint_pos` is relative, rad."""
    kp: tuple[float, ...]
    """Stiffness of each joint, N·m/rad."""
    kd: tuple[float, ...]
    """Damping of each joint, N·m·s/rad."""
    terms: tuple[ForeignTerm, ...]
    """Observation terms in order."""
    action_joints: tuple[str, ...]
    """Joint that each action moves."""
    action_scale: tuple[float, ...]
    """Change of each target by an action of 1, rad; for wheels rad/s."""
    action_offset: tuple[float, ...]
    """Target of each joint for an action of 0, rad; for wheels rad/s."""
    control_dt: float | None = None
    """Time from one action to the next, s. None: the file does not specify it."""
    velocity_joints: tuple[str, ...] = ()
    """Joints with velocity targets, such as wheels."""
    by_time: bool = False
    """True if all terms of one step stand together. False: all steps of one term."""
    action_clip: tuple[Range, ...] | None = None
    """Bounds of each action. None: there are none."""
    target_clip: tuple[Range, ...] | None = None
    """Bounds of each target. None: there are none."""
    observation_limit: float = NO_LIMIT
    """Each number of the observation is clipped to ± this."""
    command_ranges: dict[str, Range] = field(default_factory=dict)
    """`lin_vel_x`, `lin_vel_y` or `ang_vel_z` → range of the commands, m/s or rad/s."""
    gait_period: float | None = None
    """Duration of a stride of the term `clock`, s. None: there is no such term."""
    motion: ReferenceMotion | None = None
    """Motion that the policy imitates. None: it follows commands, or the motion is in another
    file."""
    anchor: str | None = None
    """Body to which the motion is relative. None: the body that carries the arms, or the base
    without arms."""
    scan: HeightScan | None = None
    """Where the term `height_scan` looks. None: there is no such term."""
    assumed: tuple[str, ...] = ()
    """Assumptions about information that the file lacks, one sentence each."""

    @property
    def imitates(self) -> bool:
        """True if the policy observes a reference motion."""
        return any(term.quantity in MOTION_QUANTITIES for term in self.terms)

    @property
    def source(self) -> str:
        """Name of the file in quotes, for errors."""
        return repr(str(self.file))

    def blocks(self) -> list[Block]:
        """Return the blocks of the observation, in order."""
        if not self.by_time:
            return [self._block(term, age) for term, age in self._terms_then_ages()]
        # All terms have the same ages then.
        blocks = []
        for age in self.terms[0].ages:
            blocks += [self._block(term, age) for term in self.terms]
        return blocks

    def _terms_then_ages(self) -> list[tuple[ForeignTerm, int]]:
        pairs = []
        for term in self.terms:
            pairs += [(term, age) for age in term.ages]
        return pairs

    def _block(self, term: ForeignTerm, age: int) -> Block:
        size = len(term.scale)
        elements = elements_of(term.quantity, self.joint_names, self.action_joints, size)
        return Block(term.quantity, age, elements)

    def term_sizes(self) -> str:
        """Return the terms with their sizes as a text, for errors."""
        parts = []
        for term in self.terms:
            parts.append(f"{term.name} {len(term.scale) * len(term.ages)}")
        return ", ".join(parts)


def unknown_terms(file: Path, reasons: Sequence[str]) -> ValueError:
    """Return the error for observation terms that cannot be mapped.

    Args:
        file: File with the description of the policy.
        reasons: Each term with the reason, such as `"height_scan (the file lacks a grid)"`.
    """
    return ValueError(
        f"{str(file)!r}: these observations have no counterpart here: {'; '.join(reasons)}; "
        "train or export the policy without them"
    )
