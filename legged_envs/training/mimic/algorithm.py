"""Base of the algorithms of motion-mimic learning, and distillation."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import nn
from torch.nn import functional

from legged_envs.storage import RolloutStorageMM, Transition
from legged_envs.tasks.mimic import ACTOR_GROUPS, CRITIC_GROUPS
from legged_envs.training.mimic.networks import MimicPolicy
from legged_envs.training.mimic_options import MimicDistillationCfg, MimicLearningCfg

Teacher = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Function of a trained policy that labels states with actions.

Its arguments are the observation groups ``critic``, ``critic_reference`` and
``critic_reference_mask``. It returns actions of shape (num_envs, num_actions).
"""

Groups = tuple[str, str, str]
"""Names of the observation groups that a network reads: observation, reference window and mask."""


class MimicAlgorithm:
    """Base of motion-mimic PPO and distillation, with rsl_rl's interface.

    The constructor of a subclass must end with :meth:`_begin`.

    Args:
        env_obs: An example observation of all environments, on the device to learn on. Its groups
            are described in :mod:`legged_envs.training.mimic`.
        num_actions: Number of actions of a robot.
        frames: Number of future frames in a reference window.
        cfg: Options of the algorithm.
        groups: Names of the observation groups that the actor reads.

    Raises:
        ValueError: If a group is missing, or a reference window does not divide into ``frames``.
    """

    def __init__(
        self,
        env_obs: TensorDict,
        num_actions: int,
        frames: int,
        cfg: MimicLearningCfg,
        groups: Groups,
    ):
        missing = [group for group in ACTOR_GROUPS + CRITIC_GROUPS if group not in env_obs]
        if missing:
            raise ValueError(
                f"env_obs must have the groups {ACTOR_GROUPS + CRITIC_GROUPS}, "
                f"{missing} are missing"
            )
        self.cfg = cfg
        """Options of the algorithm."""
        self.iteration = 0
        """Number of updates so far."""
        self.learning_rate = cfg.learning_rate
        """Current learning rate. To change it, also set ``lr`` of ``optimizer.param_groups``."""
        self.groups = groups
        """Names of the observation groups that are the arguments of the policy, in order."""
        self.transition = Transition()
        """Data of the current step, filled by :meth:`act` and :meth:`process_env_step`."""
        self.device = env_obs[groups[0]].device
        self._sizes = {
            ACTOR_GROUPS: _input_sizes(env_obs, ACTOR_GROUPS, frames),
            CRITIC_GROUPS: _input_sizes(env_obs, CRITIC_GROUPS, frames),
        }
        self._num_envs = len(env_obs[groups[0]])
        self._num_actions = num_actions

        self._parts: dict[str, Any] = {}
        """Objects with a ``state_dict``, by their names in a checkpoint."""
        self.actor = MimicPolicy(self._sizes[groups], frames, num_actions, cfg)
        """The policy that learns."""

    def _begin(
        self, training_type: str, critics: Mapping[str, nn.Module], **storage_options: Any
    ) -> None:
        """Make the storage and the optimiser.

        Args:
            training_type: Kind of learning for the storage: "rl" or "distillation".
            critics: Additional networks that learn together with the actor, by name.
            **storage_options: Additional arguments of the storage.
        """
        observation_size, reference_size = self._sizes[self.groups]
        critic_shape = None
        critic_reference_shape = None
        if critics and self.groups != CRITIC_GROUPS:
            # If the actor reads the groups of the critics, they are stored only once.
            critic_observation_size, critic_reference_size = self._sizes[CRITIC_GROUPS]
            critic_shape = (critic_observation_size,)
            critic_reference_shape = (critic_reference_size,)
        self.storage = RolloutStorageMM(
            training_type,
            self._num_envs,
            self.cfg.steps_per_env,
            (observation_size,),
            (reference_size,),
            critic_shape,
            critic_reference_shape,
            (self._num_actions,),
            device=self.device,
            **storage_options,
        )
        self._networks = nn.ModuleDict({"actor": self.actor, **critics}).to(self.device)
        self.optimizer = torch.optim.Adam(
            self._networks.parameters(), lr=self.learning_rate, fused=True
        )
        self._parts.update(self._networks)
        self._parts["optimizer"] = self.optimizer

    def _descend(self, loss: torch.Tensor) -> None:
        """Make one step of the optimiser."""
        self.optimizer.zero_grad()
        loss.backward()
        # Each network is clipped alone: a large gradient of a critic must not slow the actor.
        for network in self._networks.values():
            nn.utils.clip_grad_norm_(network.parameters(), self.cfg.max_grad_norm)
        self.optimizer.step()

    def _actor_inputs(self, obs: TensorDict) -> list[torch.Tensor]:
        """Return the inputs of the actor, and store them in the transition."""
        seen = inputs(obs, self.groups)
        observation, reference, mask = seen
        self.transition.observations = observation
        self.transition.reference_observations = reference
        self.transition.reference_observations_mask = mask.squeeze(1) > 0.5
        return seen

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample actions from the policy, and store them with their inputs for the update.

        Args:
            obs: Observation before the step.

        Returns:
            Actions. Shape: (num_envs, num_actions).
        """
        self.actor(*self._actor_inputs(obs))
        actions = self.actor.distribution.sample()
        self.transition.actions = actions
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Store the outcome of a step for the update.

        Args:
            obs: Observation after the step, of the new episode where one ended.
            rewards: Rewards. Shape: (num_envs,).
            dones: True where an episode ended. Shape: (num_envs,).
            extras: Additional outcomes of the step; see :mod:`legged_envs.training.mimic`.
        """
        self.transition.rewards = rewards
        self.transition.dones = dones
        self.storage.add_transitions(self.transition)
        self.transition.clear()

    def compute_returns(self, obs: TensorDict) -> None:
        """Do nothing: supervised learning from a teacher's actions needs no returns.

        Args:
            obs: Observation after the rollout. Not used.
        """

    def _end_update(self) -> None:
        # The running statistics change last, so that the update normalises the rollout exactly as
        # it was normalised when the actions were drawn.
        self.actor.network.update_normalizers(*stored_inputs(self.storage))
        self.storage.clear()
        self.iteration += 1

    def train_mode(self) -> None:
        """Put all networks into training mode."""
        for part in self._parts.values():
            if isinstance(part, nn.Module):
                part.train()

    def get_policy(self) -> MimicPolicy:
        """Return the policy that learns, not a copy: it changes with each update."""
        return self.actor

    def save(self) -> dict[str, Any]:
        """Return a copy of the state of all networks and optimisers, for a checkpoint.

        Returns:
            State of each part by name, and ``iteration``. All values are plain data: tensors,
            numbers, and dicts and lists of these.
        """
        state = {name: part.state_dict() for name, part in self._parts.items()}
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
            load_cfg: Parts to load: True or False for each name. None: all parts.
            strict: True: the names of a network's parameters must equal those in the state.

        Returns:
            True if the number of updates is loaded.

        Raises:
            ValueError: If a part is not in both the state and this algorithm.
            RuntimeError: If parameters differ and ``strict`` is True.
        """
        known = {*self._parts, "iteration"}
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
        for name in wanted - {"iteration"}:
            part = self._parts[name]
            # A copy, because an optimiser keeps the given tensors and writes to them.
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


class MimicDistillation(MimicAlgorithm):
    """Distillation: a student policy learns a teacher's actions in the states that it visits.

    This is DAgger (Ross et al. 2011) in which the student alone chooses the actions.

    Args:
        env_obs: Example observation of all environments; see :class:`MimicAlgorithm`.
        num_actions: Number of actions of a robot.
        frames: Number of future frames in a reference window.
        cfg: Options of the distillation.
        teacher: Policy that labels each visited state. It reads the privileged groups.
    """

    cfg: MimicDistillationCfg

    def __init__(
        self,
        env_obs: TensorDict,
        num_actions: int,
        frames: int,
        cfg: MimicDistillationCfg,
        *,
        teacher: Teacher,
    ):
        super().__init__(env_obs, num_actions, frames, cfg, ACTOR_GROUPS)
        self.teacher = teacher
        self._begin("distillation", {})

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Sample the student's actions, and store the teacher's as labels for the update.

        Args:
            obs: Observation before the step.

        Returns:
            Actions of the student. Shape: (num_envs, num_actions).
        """
        self.transition.privileged_actions = self.teacher(*inputs(obs, CRITIC_GROUPS))
        return super().act(obs)

    def update(self) -> dict[str, float]:
        """Learn the teacher's actions in the states of the rollout.

        Returns:
            ``distillation``: mean squared error between student and teacher.
        """
        losses = []
        for _ in range(self.cfg.epochs):
            for observation, _, reference, _, _, labels, _ in self.storage.generator():
                loss = functional.mse_loss(self.actor(observation, *reference), labels)
                self._descend(loss)
                losses.append({"distillation": loss})
        self._end_update()
        return means(losses)


def inputs(obs: TensorDict, groups: Groups) -> list[torch.Tensor]:
    """Return the inputs of a network from an observation: observation, reference window, mask."""
    return [obs[group] for group in groups]


def stored_inputs(rows: Any) -> list[torch.Tensor]:
    """Return the inputs of the actor from a storage or a mini-batch, in the order of its groups."""
    return [
        rows.observations,
        rows.reference_observations,
        rows.reference_observations_mask,
    ]


def means(rows: Iterable[Mapping[str, torch.Tensor]]) -> dict[str, float]:
    """Return the mean of each named number, over the rows that contain the name."""
    values: dict[str, list[torch.Tensor]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value.detach())
    result = {}
    for name, numbers in values.items():
        total = sum(numbers, torch.zeros(()))
        result[name] = total.item() / len(numbers)
    return result


def _input_sizes(obs: TensorDict, groups: Groups, frames: int) -> tuple[int, int]:
    """Return the sizes of observation and reference window."""
    observation_group, reference_group, _ = groups
    reference_size = obs[reference_group].shape[1]
    if frames < 1 or reference_size % frames:
        raise ValueError(
            f"frames must divide the {reference_size} numbers of {reference_group!r} evenly, "
            f"got {frames}"
        )
    return obs[observation_group].shape[1], reference_size
