"""Network of another framework as a policy of this package: orders, shifts, scales and limits."""

from collections.abc import Sequence

import torch

from legged_envs.policy.foreign.description import ForeignContract
from legged_envs.policy.foreign.layout import Block, columns_of, keys_of
from legged_envs.policy.foreign.networks import ForeignNetwork


class MappedNetwork:
    """Takes the raw quantities of an environment, and gives actions in its order.

    Each number that the network sees is clip(quantity + shift) · scale, within a limit.

    Args:
        network: Network of the other framework.
        foreign: Its observations and joints.
        blocks: Blocks of the observation of the environment, which is neither scaled nor clipped.
        default_joint_pos: Joint → position to which the environment's `joint_pos` is relative, rad.
        action_joints: Joint of each action of the environment.
    """

    def __init__(
        self,
        network: ForeignNetwork,
        foreign: ForeignContract,
        blocks: Sequence[Block],
        default_joint_pos: dict[str, float],
        action_joints: Sequence[str],
    ):
        self.network = network
        """Network of the other framework."""
        self._shifts = action_shifts(foreign)
        keys = keys_of(foreign.blocks())
        # An angle is the relative position plus the default.
        present = [("joint_pos" if key[0] == "joint_angle" else key[0], *key[1:]) for key in keys]
        self._columns = torch.tensor(columns_of(present, keys_of(blocks)))
        shift = []
        for quantity, _, element in keys:
            shift.append(self._shift_of(quantity, element, default_joint_pos))
        self._shift = torch.tensor(shift)
        scale, low, high = _factors_and_bounds(foreign)
        self._scale = torch.tensor(scale)
        self._low = torch.tensor(low)
        self._high = torch.tensor(high)
        self._limit = foreign.observation_limit
        self._order = torch.tensor([foreign.action_joints.index(name) for name in action_joints])
        self._action_shift = torch.tensor([self._shifts[name] for name in foreign.action_joints])
        clips = foreign.action_clip or ((-torch.inf, torch.inf),) * len(foreign.action_joints)
        self._action_low = torch.tensor([pair[0] for pair in clips])
        self._action_high = torch.tensor([pair[1] for pair in clips])

    def _shift_of(self, quantity: str, element: str, default: dict[str, float]) -> float:
        if quantity == "joint_angle":
            return default[element]
        if quantity == "action":
            return -self._shifts[element]
        return 0.0

    def observe(self, observation: torch.Tensor) -> torch.Tensor:
        """Return what the network sees, in its order. Shapes: (n, size) → (n, its size)."""
        raw = observation[:, self._columns] + self._shift
        scaled = raw.clamp(self._low, self._high) * self._scale
        return scaled.clamp(-self._limit, self._limit)

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        """Return actions. Shapes: (n, size) → (n, num_actions)."""
        actions = self.network(self.observe(observation))
        clipped = actions.clamp(self._action_low, self._action_high)
        return (clipped + self._action_shift)[:, self._order]

    def reset(self, ended: torch.Tensor | None) -> None:
        """Clear the memory of robots at the start of their episodes; see `ForeignNetwork`."""
        self.network.reset(ended)


def action_shifts(foreign: ForeignContract) -> dict[str, float]:
    """Return joint → what an action here is larger than the same one in the file.

    It is not 0 where the target of an action of 0 is not the default position.
    """
    default = dict(zip(foreign.joint_names, foreign.default_joint_pos, strict=True))
    shifts = {}
    for name, scale, offset in zip(
        foreign.action_joints, foreign.action_scale, foreign.action_offset, strict=True
    ):
        centre = 0.0 if name in foreign.velocity_joints else default[name]
        shifts[name] = (offset - centre) / scale
    return shifts


def _factors_and_bounds(
    foreign: ForeignContract,
) -> tuple[list[float], list[float], list[float]]:
    """Return scale, lower and upper bound of each number that the network sees."""
    terms = {}
    for term in foreign.terms:
        terms[term.quantity] = term
    scale: list[float] = []
    low: list[float] = []
    high: list[float] = []
    for block in foreign.blocks():
        term = terms[block.quantity]
        bounds = term.clip or (-torch.inf, torch.inf)
        scale += term.scale
        low += [bounds[0]] * len(term.scale)
        high += [bounds[1]] * len(term.scale)
    return scale, low, high
