"""Network of this package with everything inside that loops of other frameworks cannot express.

These are the order of the numbers, clips, scales of single elements, the limit of actions, and the
gait to which joint targets are relative.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from legged_envs.policy.foreign.layout import (
    Block,
    columns_of,
    elements_of,
    keys_of,
    missing_quantities,
    own_blocks,
)
from legged_envs.policy.metadata import Contract
from legged_envs.policy.policy import Policy


@dataclass(frozen=True)
class Loop:
    """Inputs that the control loop of another framework gives to a network, and its use of the
    actions.

    Joints are in the order of the policy's contract.
    """

    framework: str
    """Name of the format, for errors."""
    blocks: tuple[Block, ...]
    """Blocks of the observation in order."""
    scales: Mapping[str, float | tuple[float, ...]]
    """Quantity → factor that the loop multiplies it with. Those that are missing have 1."""
    action_scale: Mapping[str, float]
    """Joint → change of its target by an action of 1, rad; for wheels rad/s."""
    clips_targets: bool = False
    """True if the loop can clip targets."""
    drives_wheels: bool = False
    """True if the loop can set targets that are velocities."""

    @property
    def size(self) -> int:
        """Number of elements of the observation."""
        return len(keys_of(self.blocks))


def check_loop(contract: Contract, loop: Loop) -> None:
    """Check that a loop of another framework can drive a policy.

    Raises:
        ValueError: If it cannot. The error names everything that the format lacks.
    """
    lacks = missing_quantities(keys_of(own_blocks(contract)), keys_of(loop.blocks))
    reasons = []
    if lacks:
        reasons.append(f"its loop does not observe {', '.join(lacks)}")
    idle = [name for name in contract["joint_names"] if name not in contract["action_joints"]]
    if idle:
        reasons.append(f"it moves all joints, and no action moves {', '.join(idle)}")
    if not loop.clips_targets and any(has_bound(pair) for pair in contract["target_clip"]):
        reasons.append("its loop cannot clip targets (target_clip)")
    wheels = [kind for kind in contract["actuators"] if kind != "position"]
    if wheels and not (loop.drives_wheels and set(wheels) == {"velocity"}):
        reasons.append(f"its targets are positions, and the robot has {wheels[0]} actuators")
    if reasons:
        raise ValueError(
            f"the policy cannot be written as {loop.framework}: {'; '.join(reasons)}; "
            "choose another --format, or train without these"
        )


def has_bound(pair: Sequence[float | None]) -> bool:
    """Return True if one of the bounds of a pair is not None."""
    return any(bound is not None for bound in pair)


def action_scales(contract: Contract) -> dict[str, float]:
    """Return joint → change of its target by an action of 1."""
    return dict(zip(contract["action_joints"], contract["action_scale"], strict=True))


def make_blocks(
    contract: Contract, known: Collection[str], with_history: bool = True
) -> tuple[Block, ...]:
    """Return the blocks of a loop that shows each quantity of a policy, the oldest value first.

    Args:
        contract: Contract of the policy.
        known: Quantities that the loop can show. Others are left out.
        with_history: False if the loop only shows present values.
    """
    ages: dict[str, int] = {}
    for entry in contract["observation"]:
        name = entry["name"]
        if name in known:
            age = entry.get("steps_ago", 0) if with_history else 0
            ages[name] = max(ages.get(name, 0), age)
    joints = contract["joint_names"]
    blocks = []
    for name, oldest in ages.items():
        elements = elements_of(name, joints, joints)
        blocks += [Block(name, age, elements) for age in range(oldest, -1, -1)]
    return tuple(blocks)


def quantity_scale(contract: Contract, quantity: str) -> float:
    """Return the factor of a quantity if all elements and times have the same factor, otherwise
    1."""
    scales = [entry["scale"] for entry in contract["observation"] if entry["name"] == quantity]
    first = scales[0] if scales else 1.0
    is_single = not isinstance(first, list) and all(scale == first for scale in scales)
    return float(first) if is_single and first > 0.0 else 1.0


class BakedNetwork(torch.nn.Module):
    """Takes the observation of a loop of another framework, and gives its actions.

    Args:
        policy: Policy of this package.
        loop: The loop.

    Raises:
        ValueError: If the loop cannot drive the policy.
    """

    columns: torch.Tensor
    """Column in the loop's observation of each number that the policy sees. int64."""
    factor: torch.Tensor
    """Factor of each of these numbers."""
    low: torch.Tensor
    """Lower bound of each, after the factor."""
    high: torch.Tensor
    """Upper bound of each, after the factor."""
    action_factor: torch.Tensor
    """Factor of each action."""

    def __init__(self, policy: Policy, loop: Loop):
        super().__init__()
        contract = policy.contract
        check_loop(contract, loop)
        self._network = policy.network
        blocks = own_blocks(contract)
        columns = columns_of(keys_of(blocks), keys_of(loop.blocks))
        self.register_buffer("columns", torch.tensor(columns))
        # What an action of 1 is in the loop, as a multiple of what it is here.
        ratio = {}
        for name, scale in action_scales(contract).items():
            ratio[name] = scale / loop.action_scale[name]
        applied = _applied_scales(loop)
        factor, low, high = _own_factors(contract, blocks)
        for i, (quantity, _, element) in enumerate(keys_of(blocks)):
            factor[i] /= applied[columns[i]]
            if quantity == "action":
                factor[i] /= ratio[element]
        self.register_buffer("factor", torch.tensor(factor))
        self.register_buffer("low", torch.tensor(low))
        self.register_buffer("high", torch.tensor(high))
        self.register_buffer("action_factor", torch.tensor(list(ratio.values())))
        self._limit: float = contract["action_limit"]
        self._lift = make_lift(contract, blocks)
        self._order = _order_of_loop(contract, loop)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the actions of the loop. Shapes: (n, size) → (n, num_actions)."""
        seen = observation[:, self.columns] * self.factor
        if self._lift is not None:
            seen = self._lift.remove_from_actions(seen)
        seen = seen.clamp(self.low, self.high)
        actions = self._network(seen).clamp(-self._limit, self._limit)
        if self._lift is not None:
            actions = self._lift.add_to_actions(actions, seen)
        return (actions * self.action_factor)[:, self._order]


def _applied_scales(loop: Loop) -> list[float]:
    """Return the factor of the loop for each number of its observation."""
    scales: list[float] = []
    for block in loop.blocks:
        scale = loop.scales.get(block.quantity, 1.0)
        if isinstance(scale, tuple):
            scales += scale
        else:
            scales += [scale] * len(block.elements)
    return scales


def _own_factors(
    contract: Contract, blocks: Sequence[Block]
) -> tuple[list[float], list[float], list[float]]:
    """Return scale and bounds, after the scale, of each number that a policy sees."""
    limit = contract["observation_limit"]
    factor: list[float] = []
    low: list[float] = []
    high: list[float] = []
    for entry, block in zip(contract["observation"], blocks, strict=True):
        scales = entry["scale"]
        if not isinstance(scales, list):
            scales = [scales] * len(block.elements)
        least, most = entry["clip"] or (None, None)
        for scale in scales:
            ends = [
                -math.inf if least is None else least * scale,
                math.inf if most is None else most * scale,
            ]
            factor.append(float(scale))
            low.append(max(min(ends), -limit))
            high.append(min(max(ends), limit))
    return factor, low, high


def _order_of_loop(contract: Contract, loop: Loop) -> list[int]:
    """Return the position in the policy's actions of each action of the loop.

    The loop's actions are in the order of the joints.
    """
    moved: list[str] = contract["action_joints"]
    return [moved.index(name) for name in contract["joint_names"]]


# --- a gait to which targets are relative ---------------------------------------------------------


TINY = 1e-12
"""Smallest cosine of a clock."""


class PastActions(NamedTuple):
    """Place of past actions in what a policy sees."""

    age: int
    """Age of the actions in control steps, on top of the one step that all have."""
    columns: list[int]
    """Columns of the actions."""
    scale: torch.Tensor
    """Factor with which the policy sees them. Shape: () or (num_actions,)."""


class Lift(torch.nn.Module):
    """Adds the lift of a gait to actions, for loops with targets around a constant pose.

    Args:
        contract: Contract of the policy.
        clock: Columns of sine and cosine of the clock in what the policy sees.
        past: Blocks of past actions in what the policy sees.
    """

    offsets: torch.Tensor
    """How far ahead of the clock each foot is, in strides. Shape: (num_feet,)."""
    swing: torch.Tensor
    """Action that is the lift of each foot in mid-swing. Shape: (num_feet, num_actions)."""

    def __init__(self, contract: Contract, clock: Sequence[int], past: Sequence["PastActions"]):
        super().__init__()
        gait = contract["gait"]
        self._clock = list(clock)
        self._past = list(past)
        for number, each in enumerate(self._past):
            self.register_buffer(f"columns_{number}", torch.tensor(each.columns))
        self._stance: float = gait["stance"]
        self._stride: float = contract["control_dt"] / gait["period"]
        scale = torch.tensor(contract["action_scale"])
        turns = []
        for foot in gait["swing"]:
            turns.append([foot[name] for name in contract["action_joints"]])
        self.register_buffer("offsets", torch.tensor(gait["offsets"], dtype=torch.float32))
        self.register_buffer("swing", torch.tensor(turns) / scale)

    def lift(self, seen: torch.Tensor, steps_ago: int) -> torch.Tensor:
        """Return the lift as an action. Shapes: (n, size) → (n, num_actions)."""
        sine = seen[:, self._clock[0]]
        # A little more than 0: ONNX divides by it.
        cosine = seen[:, self._clock[1]] + TINY
        phase = torch.atan2(sine, cosine) / (2.0 * math.pi) - steps_ago * self._stride
        foot_phase = torch.remainder(phase[:, None] + self.offsets, 1.0)
        swung = (foot_phase - self._stance).clamp(min=0.0) / (1.0 - self._stance)
        return torch.sin(math.pi * swung).square() @ self.swing

    def add_to_actions(self, actions: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Return actions that also lift the feet. Shapes: (n, num_actions) → the same."""
        return actions + self.lift(seen, 0)

    def remove_from_actions(self, seen: torch.Tensor) -> torch.Tensor:
        """Return the observation with past actions as they were before the lift was added."""
        for number, past in enumerate(self._past):
            columns = self.get_buffer(f"columns_{number}")
            actions = seen[:, columns]
            # At the start of an episode they are 0, and nothing was added.
            was_made = (actions != 0.0).any(1, keepdim=True)
            lift = self.lift(seen, past.age + 1) * past.scale
            before = torch.where(was_made, actions - lift, actions)
            seen = seen.index_copy(1, columns, before)
        return seen


def make_lift(contract: Contract, blocks: Sequence[Block]) -> Lift | None:
    """Return the lift of a policy's gait. None: its targets are around the default pose.

    Raises:
        ValueError: If the policy follows a gait without observing its clock.
    """
    gait: dict[str, Any] = contract.get("gait", {})
    turns = [turn for foot in gait.get("swing", ()) for turn in foot.values()]
    if not any(turns):
        return None
    keys = keys_of(blocks)
    clock = [("clock", 0, "sin"), ("clock", 0, "cos")]
    if not set(clock) <= set(keys):
        raise ValueError(
            "the policy follows a gait and does not observe its clock, so no other loop can know "
            "the time of the stride: train it with the term clock"
        )
    past = []
    column = 0
    for entry, block in zip(contract["observation"], blocks, strict=True):
        size = len(block.elements)
        if block.quantity == "action":
            columns = list(range(column, column + size))
            past.append(PastActions(block.age, columns, torch.tensor(entry["scale"])))
        column += size
    return Lift(contract, columns_of(clock, keys), past)
