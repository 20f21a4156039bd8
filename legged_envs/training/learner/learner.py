"""What all algorithms have in common: networks, their optimizer, parts, and checkpoints."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from legged_envs.storage import RolloutStorageMM, Transition
from legged_envs.training import processes
from legged_envs.training.learner.inputs import Inputs
from legged_envs.training.learner.part import Part


class Learner:
    """Base of the algorithms, with the interface of rsl_rl's.

    Args:
        networks: Networks that learn with one optimizer, by name. ``"actor"`` is the policy.
        actor_inputs: Inputs of the actor.
        storage: The rollout.
        learning_rate: Learning rate of the optimizer at the start.
        max_grad_norm: Largest L2 norm of each network's gradient.
        parts: What joins the algorithm, in the order in which it is called.
    """

    def __init__(
        self,
        networks: Mapping[str, nn.Module],
        actor_inputs: Inputs,
        storage: RolloutStorageMM,
        learning_rate: float,
        max_grad_norm: float,
        parts: Sequence[Part] = (),
    ):
        self.actor: Any = networks["actor"]
        """The policy that learns."""
        self.actor_inputs = actor_inputs
        """Inputs of the actor."""
        self.groups: tuple[str, ...] = actor_inputs.names
        """Names of the observation groups that the trained policy reads, in order."""
        self.storage = storage
        """The rollout."""
        self.transition = Transition()
        """Data of the present step, filled by ``act`` and ``process_env_step``."""
        self.parts = tuple(parts)
        """What joins the algorithm, in the order in which it is called."""
        self.iteration = 0
        """Number of updates so far."""
        self.learning_rate = learning_rate
        """Present learning rate. To change it, also set ``lr`` of ``optimizer.param_groups``."""
        self._max_grad_norm = max_grad_norm
        self._networks = nn.ModuleDict(networks).to(storage.device)

        self.optimizer = torch.optim.Adam(self._networks.parameters(), lr=learning_rate, fused=True)
        """Optimizer of the networks."""

    def _descend(self, loss: torch.Tensor) -> None:
        """Make one step of the optimizer."""
        self.optimizer.zero_grad()
        loss.backward()
        processes.average_gradients(self.optimizer)
        # Each network is clipped separately: a large gradient of a critic must not slow the actor.
        for network in self._networks.values():
            nn.utils.clip_grad_norm_(network.parameters(), self._max_grad_norm)
        self.optimizer.step()

    def _stateful(self) -> dict[str, Any]:
        """Return everything with a ``state_dict``, by its name in a checkpoint."""
        objects: dict[str, Any] = {**self._networks, "optimizer": self.optimizer}
        for part in self.parts:
            objects.update(part.state())
        return objects

    def train_mode(self) -> None:
        """Put all networks into training mode."""
        for part in self._stateful().values():
            if isinstance(part, nn.Module):
                part.train()

    def get_policy(self) -> Any:
        """Return the policy that learns, not a copy: it changes with each update."""
        return self.actor

    def save(self) -> dict[str, Any]:
        """Return a copy of the state of all networks and optimizers, for a checkpoint.

        Returns:
            State of each object by name, and ``iteration``. All values are plain data: tensors,
            numbers, and dicts and lists of these.
        """
        state = {name: part.state_dict() for name, part in self._stateful().items()}
        return {**copy.deepcopy(state), "iteration": self.iteration}

    def load(
        self,
        state: Mapping[str, Any],
        load_cfg: Mapping[str, bool] | None = None,
        strict: bool = True,
    ) -> bool:
        """Restore a state that :meth:`save` returned.

        Args:
            state: State from :meth:`save`.
            load_cfg: Objects to load: True or False for each name. None: all.
            strict: True: the names of a network's parameters must equal those in the state.

        Returns:
            True if the number of updates is loaded.

        Raises:
            ValueError: If an object is not in both the state and this algorithm.
            RuntimeError: If parameters differ and ``strict`` is True.
        """
        objects = self._stateful()
        known = {*objects, "iteration"}
        wanted = set(known)
        if load_cfg is not None:
            wanted = {name for name, load in load_cfg.items() if load}
        missing = sorted(wanted - (state.keys() & known))
        if missing:
            raise ValueError(
                f"load: {missing} must be in the state, which has {sorted(state)}, and in this "
                f"algorithm, which has {sorted(known)}; use the configuration that it was saved "
                "with, or choose parts with load_cfg"
            )
        for name, part in objects.items():
            if name not in wanted:
                continue
            # A copy, because an optimizer keeps the given tensors and writes to them.
            own = copy.deepcopy(state[name])
            if isinstance(part, nn.Module):
                part.load_state_dict(own, strict=strict)
            else:
                part.load_state_dict(own)
        self.learning_rate = self.optimizer.param_groups[0]["lr"]
        loads_iteration = "iteration" in wanted
        if loads_iteration:
            self.iteration = state["iteration"]
        return loads_iteration


def means(rows: Iterable[Mapping[str, torch.Tensor]]) -> dict[str, float]:
    """Return the mean of each named number, over the rows that contain the name."""
    values: dict[str, list[torch.Tensor]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value.detach())
    result = {}
    for name, numbers in values.items():
        # One transfer for each name, not one for each mini-batch.
        result[name] = torch.stack(numbers).mean().item()
    return result
