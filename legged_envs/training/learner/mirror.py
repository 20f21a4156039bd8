"""Mirrored mini-batches: half of each is turned left to right, as data augmentation."""

from collections.abc import Sequence

import torch

from legged_envs.envs import CoreVectorEnv
from legged_envs.mdp.scan import SCAN_Y
from legged_envs.mdp.symmetry import Kind, Mirror, mirror_scan
from legged_envs.storage import MiniBatch, RolloutStorageMM
from legged_envs.training.learner.part import Part


class MirroredHalf(Part):
    """Mirrors the first half of each mini-batch left to right.

    A robot is symmetric, so the mirrored action is right in the mirrored state. The mirrored rows
    keep their log-probabilities, advantages and returns (Mittal et al. 2024).

    Args:
        env: The training environment. Its observation terms must define their mirror images.
        actor_groups: Observation groups of the actor.
        critic_groups: Observation groups of the critic.

    Raises:
        ValueError: If an observation term or the robot does not define its mirror image.
    """

    name = "mirror"

    def __init__(
        self, env: CoreVectorEnv, actor_groups: Sequence[str], critic_groups: Sequence[str]
    ):
        if env.group_sizes.keys() != env.observations.groups.keys():
            raise ValueError("the task has no terms for its observations")

        self.actor = mirror_of(env, actor_groups)
        """Mirror of what the actor reads."""
        self.critic = mirror_of(env, critic_groups)
        """Mirror of what the critic reads."""
        self.action = mirror_of_actions(env)
        """Mirror of the actions."""

    def prepare(self, storage: RolloutStorageMM, batches: Sequence[MiniBatch]) -> dict[str, float]:
        """Mirror observations, actions and action distribution of the first halves, in place."""
        for batch in batches:
            half = len(batch.actions) // 2
            # Before the actor's: where both read the same, they share one tensor.
            if batch.critic_observations is not batch.observations:
                _mirror_rows(batch.critic_observations, self.critic, half)
            _mirror_rows(batch.observations, self.actor, half)
            _mirror_rows(batch.actions, self.action, half)
            # PPO compares the new distribution with the old one, which drew the action, so the old
            # one is mirrored as well.
            _mirror_rows(batch.action_mean, self.action, half)
            # A standard deviation has no sign: only its joints are exchanged.
            batch.action_sigma[:half] = batch.action_sigma[:half, self.action.index]
        return {}


def mirror_of(env: CoreVectorEnv, groups: Sequence[str]) -> Mirror:
    """Return the mirror of some observation groups side by side.

    Raises:
        ValueError: If an observation term or the robot does not define its mirror image.
    """
    terms: list[tuple[str, str | Kind | None, int]] = []
    for name in groups:
        cfg = env.cfg.observations[name]
        for term, size, _ in env.observations.groups[name].layout:
            kind: str | Kind | None = cfg.terms[term].mirror
            if kind == "scan":
                kind = mirror_scan(cfg.terms[term].params.get("y", SCAN_Y))
            terms.append((term, kind, size))
    return Mirror(env.cfg.robot, terms, _driven_joints(env))


def mirror_of_actions(env: CoreVectorEnv) -> Mirror:
    """Return the mirror of the actions.

    Raises:
        ValueError: If a joint has an action, and its partner on the other side has none.
    """
    driven = _driven_joints(env)
    return Mirror(env.cfg.robot, [("action", "action", len(driven))], driven)


def _driven_joints(env: CoreVectorEnv) -> list[int]:
    """Return the joints that the actions drive, in the order of the actions."""
    joints: list[int] = []
    for term in env.actions.terms.values():
        joints.extend(term.joints)
    return joints


def _mirror_rows(values: torch.Tensor, mirror: Mirror, half: int) -> None:
    values[:half] = mirror(values[:half])
