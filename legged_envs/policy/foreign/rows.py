"""Networks that act for one robot at a time, and remember it: made to act for many robots at once.

Loops of other frameworks drive one robot. Most of their networks also compute with many rows; some
have the number 1 in an operation.
"""

from collections.abc import Callable, Mapping, Sequence

import torch

Memory = dict[str, torch.Tensor]
"""Memory of a network: name of a tensor → its value."""

Step = Callable[[torch.Tensor, Memory], tuple[torch.Tensor, Memory]]
"""Function of the observations (n, size) and the memory before → actions (n, num_actions) and the
memory after. Some work only for n = 1."""

TRIAL_ROBOTS = 3
"""Robots of the trial. Two rows would also pass where a network takes them for two directions."""
TRIAL_STEPS = 3
"""Control steps of the trial. Memory has an effect from the second one on."""
TOLERANCE = 1e-4
"""Largest difference of the actions of one robot, computed separately and together with others.
Sums of float32 in another order differ."""


class RowNetwork:
    """A network with a memory for each robot.

    The first call tries several robots together and each of them separately. If the actions are the
    same, all robots act in one call from then on. Otherwise the network is called for one robot
    after another.

    Args:
        step: The network.
        first: Memory of one robot at the start of an episode. Empty: the network has none.
    """

    def __init__(self, step: Step, first: Memory):
        self._step = step
        self._first = first
        self._axes = robot_axes(first)
        # None until it was tried.
        self._is_joint: bool | None = None
        self._count = 0
        # Of all robots in one element, or of each robot.
        self._memory: list[Memory] = []

    def __call__(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the actions for observations. Shapes: (n, size) → (n, num_actions).

        With another number of robots than before, all of them start again.
        """
        if self._is_joint is None:
            self._is_joint = self._try_joint(observation.shape[1])
        if len(observation) != self._count:
            self._begin(len(observation))
        if self._is_joint:
            actions, self._memory[0] = self._step(observation, self._memory[0])
            return actions
        rows = []
        for i in range(len(observation)):
            action, self._memory[i] = self._step(observation[i : i + 1], self._memory[i])
            rows.append(action)
        return torch.cat(rows)

    @property
    def is_joint(self) -> bool:
        """True if all robots act in one call. False before the first call."""
        return bool(self._is_joint)

    def reset(self, ended: torch.Tensor | None) -> None:
        """Clear the memory of robots at the start of their episodes.

        Args:
            ended: True for these robots. None: all. Shape: (n,), bool.
        """
        if ended is None or len(ended) != self._count:
            self._count = 0
            return
        if not self._is_joint:
            for i in ended.nonzero().flatten().tolist():
                self._memory[i] = self._first
            return
        memory = self._memory[0]
        for name, axis in self._axes.items():
            shape = [1] * memory[name].ndim
            shape[axis] = -1
            starts = ended.to(memory[name].device).reshape(shape)
            memory[name] = torch.where(starts, self._first[name], memory[name])

    def _begin(self, count: int) -> None:
        self._count = count
        if self._is_joint:
            self._memory = [self._repeated(count)]
        else:
            self._memory = [self._first] * count

    def _repeated(self, count: int) -> Memory:
        """Return the memory of robots at the start of an episode."""
        memory = {}
        for name, value in self._first.items():
            axis = self._axes.get(name)
            memory[name] = value if axis is None else value.repeat_interleave(count, dim=axis)
        return memory

    def _try_joint(self, size: int) -> bool:
        """Return True if several robots together get the same actions as in separate calls."""
        random = torch.Generator().manual_seed(0)
        seen = torch.randn(TRIAL_STEPS, TRIAL_ROBOTS, size, generator=random)
        actions = []
        memories = []
        for robot in range(TRIAL_ROBOTS):
            memory = self._first
            for step in range(TRIAL_STEPS):
                action, memory = self._step(seen[step, robot : robot + 1], memory)
                actions.append(action)
            memories.append(memory)
        if not self._keeps_constants(memories):
            return False
        alone = torch.cat(actions).reshape(TRIAL_ROBOTS, TRIAL_STEPS, -1)
        memory = self._repeated(TRIAL_ROBOTS)
        for step in range(TRIAL_STEPS):
            try:
                together, memory = self._step(seen[step], memory)
            # Of any kind: the network was made for one row.
            except Exception:
                return False
            if not _is_near(together, alone[:, step]):
                return False
        for name, axis in self._axes.items():
            joined = torch.cat([each[name] for each in memories], dim=axis)
            if not _is_near(memory[name], joined):
                return False
        return True

    def _keeps_constants(self, memories: Sequence[Memory]) -> bool:
        """Return True if tensors without an axis for robots stayed as they were."""
        for name, value in self._first.items():
            if name not in self._axes and not all(
                torch.equal(memory[name], value) for memory in memories
            ):
                return False
        return True


def robot_axes(memory: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """Return the axis that counts robots, for each tensor in the memory of one robot.

    Such an axis has size 1. Tensors without such an axis, such as constants, are left out.

    Args:
        memory: Name of a tensor → its value for one robot.
    """
    axes = {}
    for name, value in memory.items():
        axis = axis_of(value.ndim)
        if value.ndim > 0 and value.shape[axis] == 1:
            axes[name] = axis
    return axes


def axis_of(dimensions: int) -> int:
    """Return the axis of the robots: the second one of states such as (layers, n, hidden)."""
    return 1 if dimensions == 3 else 0


def _is_near(one: torch.Tensor, other: torch.Tensor) -> bool:
    is_alike = one.shape == other.shape
    return is_alike and torch.allclose(one.float(), other.float(), rtol=TOLERANCE, atol=TOLERANCE)
