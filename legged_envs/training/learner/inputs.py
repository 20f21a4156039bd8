"""Inputs of a network: observation groups, and a window of a reference motion with its mask."""

from dataclasses import dataclass

import torch
from tensordict import TensorDict

from legged_envs.storage import MiniBatch, RolloutStorageMM, Transition


@dataclass(frozen=True)
class Inputs:
    """Observation groups that a network takes as its arguments, in this order.

    A rollout stores the groups side by side as one observation. A reference window and its mask are
    stored separately, because windows without a reference must not have any influence.
    """

    groups: tuple[str, ...]
    """Names of the observation groups, without the reference."""
    sizes: tuple[int, ...]
    """Size of each group."""
    reference: tuple[str, str] | None = None
    """Names of the groups with the reference window and its mask. None: there is no reference."""
    reference_size: int = 0
    """Size of a reference window. 0: there is no reference."""

    @classmethod
    def of(
        cls,
        observation: TensorDict,
        groups: tuple[str, ...],
        reference: tuple[str, str] | None = None,
    ) -> "Inputs":
        """Return the inputs with the sizes that an example observation has.

        Raises:
            ValueError: If the observation lacks one of the groups.
        """
        names = groups if reference is None else (*groups, *reference)
        missing = [name for name in names if name not in observation]
        if missing:
            raise ValueError(
                f"the network reads the observation groups {', '.join(names)}; the environment "
                f"has no {', '.join(missing)}: use a task with these groups"
            )
        sizes = tuple(observation[group].shape[1] for group in groups)
        window = 0 if reference is None else observation[reference[0]].shape[1]
        return cls(groups, sizes, reference, window)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all groups that are arguments of the network, in order."""
        return self.groups if self.reference is None else (*self.groups, *self.reference)

    def read(self, observation: TensorDict) -> list[torch.Tensor]:
        """Return the inputs of the network, one tensor for each name. Shapes: (num_envs, size)."""
        return [observation[name] for name in self.names]

    def keep(self, arguments: list[torch.Tensor], transition: Transition, critic: bool) -> None:
        """Write the inputs of a network into a transition.

        Args:
            arguments: Inputs from :meth:`read`.
            transition: Transition of the present step, which is changed.
            critic: True for the fields of the critic, False for the fields of the actor.
        """
        groups = arguments[: len(self.groups)]
        joined = groups[0] if len(groups) == 1 else torch.cat(groups, dim=1)
        window = None
        mask = None
        if self.reference is not None:
            window = arguments[-2]
            mask = arguments[-1].squeeze(1) > 0.5
        if critic:
            transition.critic_observations = joined
            transition.critic_reference_observations = window
            transition.critic_reference_observations_mask = mask
        else:
            transition.observations = joined
            transition.reference_observations = window
            transition.reference_observations_mask = mask

    def stored(self, batch: MiniBatch, critic: bool) -> list[torch.Tensor]:
        """Return the inputs of the network from a mini-batch. Shapes: (batch, size of the input).

        Args:
            batch: The mini-batch.
            critic: True for the fields of the critic, False for the fields of the actor.
        """
        if critic:
            return self._split(
                batch.critic_observations,
                batch.critic_reference_observations,
                batch.critic_reference_observations_mask,
            )
        return self._split(
            batch.observations, batch.reference_observations, batch.reference_observations_mask
        )

    def rollout(self, storage: RolloutStorageMM, critic: bool) -> list[torch.Tensor]:
        """Return the inputs of the actor or the critic in every step of a rollout.

        Args:
            storage: Storage that holds the rollout.
            critic: True to read the critic's buffers, False to read the actor's. If the critic has
                no buffers, the actor's are read.

        Returns:
            One tensor for each input, (num_steps, num_envs, size of the input), and the mask of the
            reference, (num_steps, num_envs), if there is a reference.
        """
        if critic and storage.privileged_observations is not None:
            return self._split(
                storage.privileged_observations,
                storage.privileged_reference_observations,
                storage.privileged_reference_observations_mask,
            )
        return self._split(
            storage.observations,
            storage.reference_observations,
            storage.reference_observations_mask,
        )

    def _split(
        self, joined: torch.Tensor, window: torch.Tensor | None, mask: torch.Tensor | None
    ) -> list[torch.Tensor]:
        arguments = list(joined.split(self.sizes, dim=-1))
        if self.reference is not None:
            assert window is not None and mask is not None
            arguments.extend((window, mask))
        return arguments
