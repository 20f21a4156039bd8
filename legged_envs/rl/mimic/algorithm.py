"""What motion-mimic PPO and distillation share: an actor, a rollout, and everything that a checkpoint holds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch
from tensordict import TensorDict
from torch import nn

from legged_envs.rl.mimic.networks import Inputs, MimicPolicy
from legged_envs.rl.mimic_config import ACTOR_GROUPS, CRITIC_GROUPS, MimicLearningCfg
from legged_envs.storage import RolloutStorageMM, Transition

Teacher = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(``critic``, ``critic_reference``, ``critic_reference_mask``) → actions (num_envs, num_actions)."""
Groups = tuple[str, str, str]
"""Observation groups of a network: observation, reference window, mask."""
Part = TypeVar("Part")


class MimicAlgorithm:
    """An actor that learns from a rollout, with the interface of rsl_rl's algorithms.

    Whoever derives from it makes ``storage`` and ``optimizer`` with :meth:`_make_storage` and :meth:`_make_optimizer`.

    Args:
        env_obs: An observation of all environments, on the device to learn on: see :mod:`legged_envs.rl.mimic`.
        num_actions: Size of the action.
        frames: Frames of each reference window.
        cfg: Networks, learning rate, gradient norm and length of a rollout.
        groups: Observation groups of the actor.

    Raises:
        ValueError: If a group is missing or a window does not divide into frames.
    """

    def __init__(self, env_obs: TensorDict, num_actions: int, frames: int, cfg: MimicLearningCfg, groups: Groups):
        self.learning_rate = cfg.learning_rate
        """Set it together with the ``lr`` of ``optimizer.param_groups``."""
        self.iteration = 0
        """Number of updates so far."""
        self.calm_envs = 0
        """Number of environments, the first ones, that act without noise."""
        self.groups = groups
        """What the policy sees of an observation, in the order of its arguments."""
        self.transition = Transition()
        """The present step, from :meth:`act` to ``process_env_step``."""
        self._max_grad_norm = cfg.max_grad_norm
        self._sizes = {names: _sizes(env_obs, names, frames) for names in (ACTOR_GROUPS, CRITIC_GROUPS)}
        self.device = env_obs[groups[0]].device
        self._shape = len(env_obs[groups[0]]), cfg.steps_per_env, num_actions
        self._parts: dict[str, Any] = {}
        """Everything with a ``state_dict``, by its name in a checkpoint."""
        self.actor = self._add("actor", MimicPolicy(self._sizes[groups], frames, num_actions, cfg).to(self.device))

    def _add(self, name: str, part: Part) -> Part:
        """Let checkpoints hold ``part``."""
        self._parts[name] = part
        return part

    def _make_storage(self, training_type: str, critic_sizes: tuple[int, int] | None, **options: Any) -> None:
        """``critic_sizes`` are P and R of a critic with observations of its own, ``options`` those of the storage."""
        num_envs, num_steps, num_actions = self._shape
        actor, critic = self._sizes[self.groups], critic_sizes or ()
        shapes = actor[:1], actor[1:], critic[:1] or None, critic[1:] or None, (num_actions,)
        self.storage = RolloutStorageMM(training_type, num_envs, num_steps, *shapes, device=self.device, **options)

    def _make_optimizer(self, *networks: nn.Module) -> None:
        """Adam over ``networks``, each of which has its gradient clipped by itself."""
        self._networks = networks
        parameters = [parameter for network in networks for parameter in network.parameters()]
        self.optimizer = self._add("optimizer", torch.optim.Adam(parameters, lr=self.learning_rate, fused=True))

    def _descend(self, loss: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        for network in self._networks:
            nn.utils.clip_grad_norm_(network.parameters(), self._max_grad_norm)
        self.optimizer.step()

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Draw actions and put them, and what the actor saw, into the transition. Shape: (num_envs, num_actions)."""
        transition, seen = self.transition, inputs(obs, self.groups)
        transition.observations, transition.reference_observations = seen[:2]
        transition.reference_observations_mask = seen[2].squeeze(1) > 0.5
        mean = self.actor(*seen)
        transition.actions = self.actor.distribution.sample()
        transition.actions[: self.calm_envs] = mean[: self.calm_envs]
        return transition.actions

    def _store(self, rewards: torch.Tensor, dones: torch.Tensor) -> None:
        """Put the transition, which led to ``rewards`` and ``dones``, into the storage."""
        self.transition.rewards, self.transition.dones = rewards, dones
        self.storage.add_transitions(self.transition)
        self.transition.clear()

    def _seen(self, whose: str = "") -> Inputs:
        """Observations, references and masks of the rollout, the actor's or the ``"privileged_"`` ones."""
        names = ("observations", "reference_observations", "reference_observations_mask")
        observation, reference, mask = (getattr(self.storage, whose + name).flatten(0, 1) for name in names)
        return observation, reference, mask

    def _end_of_update(self) -> None:
        self.storage.clear()
        self.iteration += 1

    def train_mode(self) -> None:
        """Let the networks learn and the normalizers count."""
        for part in self._parts.values():
            if isinstance(part, nn.Module):
                part.train()

    def get_policy(self) -> MimicPolicy:
        """The policy, with ``output_std``, ``as_jit()`` and ``as_onnx()``."""
        return self.actor

    def save(self) -> dict[str, Any]:
        """Copies of everything that learns, between two iterations: tensors, numbers, dicts and lists of them."""
        state = {name: part.state_dict() for name, part in self._parts.items()}
        return copy.deepcopy(state) | {"iteration": self.iteration}

    def load(self, state: Mapping[str, Any], load_cfg: Mapping[str, bool] | None = None, strict: bool = True) -> bool:
        """Return exactly to a state from :meth:`save`.

        Args:
            state: The state; it is not changed.
            load_cfg: Which of its parts to load, e.g. ``{"actor": True}``; all of them if None.
            strict: Whether each network's parameters must be exactly those of the state.

        Returns:
            Whether the iteration was loaded, so that the run goes on.

        Raises:
            ValueError: If a part is asked for that the state or this algorithm does not have.
            RuntimeError: If the parameters of a network differ.
        """
        known = {*self._parts, "iteration"}
        wanted = known if load_cfg is None else {name for name, load in load_cfg.items() if load}
        if missing := sorted(wanted - (state.keys() & known)):
            raise ValueError(
                f"load: {missing} must be in the state, which has {sorted(state)}, and in this algorithm, which has "
                f"{sorted(known)}; use the configuration that it was saved with, or choose parts with load_cfg"
            )
        for name in wanted - {"iteration"}:
            part = self._parts[name]
            options = {"strict": strict} if isinstance(part, nn.Module) else {}
            part.load_state_dict(copy.deepcopy(state[name]), **options)  # an optimizer would go on writing to it
        self.learning_rate = self.optimizer.param_groups[0]["lr"]
        if "iteration" in wanted:
            self.iteration = state["iteration"]
        return "iteration" in wanted


def inputs(obs: TensorDict, groups: Groups) -> Inputs:
    """What a network sees of ``obs``."""
    observation, reference, mask = groups
    return obs[observation], obs[reference], obs[mask]


def means(rows: Iterable[Mapping[str, torch.Tensor]]) -> dict[str, float]:
    """The mean of each name's numbers, over the rows that have it."""
    values: dict[str, list[torch.Tensor]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value.detach())
    return {name: sum(numbers, torch.zeros(())).item() / len(numbers) for name, numbers in values.items()}


def _sizes(obs: TensorDict, groups: Groups, frames: int) -> tuple[int, int]:
    """Sizes of observation and reference window."""
    if missing := [group for group in groups if group not in obs]:
        raise ValueError(f"env_obs must have the groups {ACTOR_GROUPS + CRITIC_GROUPS}, {missing} are missing")
    observation, reference, _ = inputs(obs, groups)
    size = reference.shape[1]
    if frames < 1 or size % frames:
        raise ValueError(
            f"frames must divide the {size} numbers of {groups[1]!r} into frames of one size, got {frames}"
        )
    return observation.shape[1], size
