"""An actor that learns from rollouts, with everything that a checkpoint holds; in the simplest case by distillation."""

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
from legged_envs.training.mimic_options import (
    MimicDistillationCfg,
    MimicLearningCfg,
)

Teacher = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(``critic``, ``critic_reference``, ``critic_reference_mask``) → actions (num_envs, num_actions)."""
Groups = tuple[str, str, str]
OBSERVED = ("observations", "reference_observations", "reference_observations_mask")
"""Observation, reference window, mask: a network's observation groups, and what the storage calls the actor's."""


class MimicAlgorithm:
    """What PPO and distillation share, with rsl_rl's interface; a constructor ends with :meth:`_begin`. ``env_obs`` is
    an observation of all environments, see :mod:`legged_envs.training.mimic`, on the device to learn on. The actor sees
    ``groups``; ValueError if one is missing or a reference window does not divide into ``frames``."""

    def __init__(
        self,
        env_obs: TensorDict,
        num_actions: int,
        frames: int,
        cfg: MimicLearningCfg,
        groups: Groups,
    ):
        if missing := [group for group in ACTOR_GROUPS + CRITIC_GROUPS if group not in env_obs]:
            raise ValueError(
                f"env_obs must have the groups {ACTOR_GROUPS + CRITIC_GROUPS}, {missing} are missing"
            )
        self.cfg = cfg
        self.iteration, self.learning_rate = 0, cfg.learning_rate
        """Number of updates so far; and the rate, which is set together with ``lr`` of ``optimizer.param_groups``."""
        self.groups, self.transition = groups, Transition()
        """The policy's arguments; and the present step, from :meth:`act` to :meth:`process_env_step`."""
        self.device = env_obs[groups[0]].device
        self._sizes = {
            names: _sizes(env_obs, names, frames) for names in (ACTOR_GROUPS, CRITIC_GROUPS)
        }
        self._shape = len(env_obs[groups[0]]), cfg.steps_per_env, num_actions
        self._parts: dict[str, Any] = {}
        """Everything with a ``state_dict``, by its name in a checkpoint."""
        self.actor = MimicPolicy(self._sizes[groups], frames, num_actions, cfg)

    def _begin(self, training_type: str, critics: Mapping[str, nn.Module], **options: Any) -> None:
        num_envs, num_steps, num_actions = self._shape
        actor = self._sizes[self.groups]
        critic = (
            self._sizes[CRITIC_GROUPS] if critics and self.groups != CRITIC_GROUPS else ()
        )  # nothing is kept twice
        shapes = actor[:1], actor[1:], critic[:1] or None, critic[1:] or None, (num_actions,)
        self.storage = RolloutStorageMM(
            training_type, num_envs, num_steps, *shapes, device=self.device, **options
        )
        self._networks = nn.ModuleDict({"actor": self.actor, **critics}).to(self.device)
        self.optimizer = torch.optim.Adam(
            self._networks.parameters(), lr=self.learning_rate, fused=True
        )
        self._parts |= {**self._networks, "optimizer": self.optimizer}

    def _descend(self, loss: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        for network in self._networks.values():
            nn.utils.clip_grad_norm_(network.parameters(), self.cfg.max_grad_norm)
        self.optimizer.step()

    def _see(self, obs: TensorDict, groups: Groups, prefix: str = "") -> list[torch.Tensor]:
        """What a network sees of ``obs``, put into the transition under names with ``prefix``."""
        seen = inputs(obs, groups)
        for name, part in zip(OBSERVED, (*seen[:2], seen[2].squeeze(1) > 0.5), strict=True):
            setattr(self.transition, prefix + name, part)
        return seen

    @torch.no_grad()
    def act(self, obs: TensorDict) -> torch.Tensor:
        """Draw actions, (num_envs, num_actions), and keep what belongs to them."""
        self.actor(*self._see(obs, self.groups))
        actions = self.transition.actions = self.actor.distribution.sample()
        return actions

    @torch.no_grad()
    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: Mapping[str, Any]
    ) -> None:
        """Keep what the step of the environment led to: ``rewards`` and ``dones``, (num_envs,) both."""
        self.transition.rewards, self.transition.dones = rewards, dones
        self.storage.add_transitions(self.transition)
        self.transition.clear()

    def compute_returns(self, obs: TensorDict) -> None:
        """Nothing; ``obs`` is the observation after the rollout."""

    def _end_of_update(self) -> None:
        self.actor.network.update_normalizers(*observed(self.storage))
        self.storage.clear()
        self.iteration += 1

    def train_mode(self) -> None:
        nn.ModuleList(part for part in self._parts.values() if isinstance(part, nn.Module)).train()

    def get_policy(self) -> MimicPolicy:
        return self.actor

    def save(self) -> dict[str, Any]:
        """Copies of everything that learns, between two iterations: tensors, numbers, dicts and lists of them."""
        state = {name: part.state_dict() for name, part in self._parts.items()}
        return copy.deepcopy(state) | {"iteration": self.iteration}

    def load(
        self,
        state: Mapping[str, Any],
        load_cfg: Mapping[str, bool] | None = None,
        strict: bool = True,
    ) -> bool:
        """Return exactly to a ``state`` from :meth:`save`, or its parts that ``load_cfg`` names; True if the iteration
        is one. ValueError if a part is in only one of both, with ``strict`` RuntimeError if parameters differ."""
        known = {*self._parts, "iteration"}
        wanted = known if load_cfg is None else {name for name, load in load_cfg.items() if load}
        if missing := sorted(wanted - (state.keys() & known)):
            where = f"in the state, which has {sorted(state)}, and in this algorithm, which has {sorted(known)}"
            how = "use the configuration that it was saved with, or choose parts with load_cfg"
            raise ValueError(f"load: {missing} must be {where}; {how}")
        for name in wanted - {"iteration"}:
            part = self._parts[name]
            options = {"strict": strict} if isinstance(part, nn.Module) else {}
            part.load_state_dict(
                copy.deepcopy(state[name]), **options
            )  # an optimizer would go on writing to it
        self.learning_rate = self.optimizer.param_groups[0]["lr"]
        self.iteration = state["iteration"] if "iteration" in wanted else self.iteration
        return "iteration" in wanted


class MimicDistillation(MimicAlgorithm):
    """A student acts and learns what ``teacher`` would do in every state: DAgger (Ross et al. 2011) without mixing."""

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
        self.transition.privileged_actions = self.teacher(*inputs(obs, CRITIC_GROUPS))
        return super().act(obs)

    def update(self) -> dict[str, float]:
        """Learn the labels of the rollout. Returns the mean squared error, ``distillation``."""
        losses = []
        for _ in range(self.cfg.epochs):
            for observation, _, reference, _, _, labels, _ in self.storage.generator():
                loss = functional.mse_loss(self.actor(observation, *reference), labels)
                self._descend(loss)
                losses.append({"distillation": loss})
        self._end_of_update()
        return means(losses)


def inputs(obs: TensorDict, groups: Groups) -> list[torch.Tensor]:
    return [obs[group] for group in groups]


def observed(rows: Any, prefix: str = "") -> list[torch.Tensor]:
    """Observation, reference window and mask of a storage or batch: :data:`OBSERVED` with ``prefix``."""
    return [getattr(rows, prefix + name) for name in OBSERVED]


def means(rows: Iterable[Mapping[str, torch.Tensor]]) -> dict[str, float]:
    """The mean of each name's numbers, over the rows that have it."""
    values: dict[str, list[torch.Tensor]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value.detach())
    return {
        name: sum(numbers, torch.zeros(())).item() / len(numbers)
        for name, numbers in values.items()
    }


def _sizes(obs: TensorDict, groups: Groups, frames: int) -> tuple[int, int]:
    observation, reference, _ = (obs[group].shape[1] for group in groups)
    if frames < 1 or reference % frames:
        raise ValueError(
            f"frames must divide the {reference} numbers of {groups[1]!r} evenly, got {frames}"
        )
    return observation, reference
