"""The base class of the wrappers that normalize by running statistics."""

from typing import ClassVar

from legged_envs.wrappers.plumbing.arrays import Array, Info, Tree
from legged_envs.wrappers.plumbing.base import StatefulWrapper
from legged_envs.wrappers.plumbing.device import Device
from legged_envs.wrappers.plumbing.episodes import Episodes
from legged_envs.wrappers.plumbing.layers import AnyEnv, autoreset_mode
from legged_envs.wrappers.plumbing.normalizer import Normalizers
from legged_envs.wrappers.plumbing.return_scale import ReturnScale


class NormalizingWrapper(StatefulWrapper):
    """A wrapper with running statistics that can be frozen, saved and loaded.

    In every autoreset mode, steps of an environment between the end of its episode and its reset
    enter no statistics.

    Args:
        env: The environment, as for :class:`StatefulWrapper`.
        device: Device on which the environment's arrays must be. None: any device.
    """

    saved_as: ClassVar[str]
    """Key of this wrapper's statistics in :meth:`save`."""
    normalizer: Normalizers
    """The running statistics."""
    STATE = {  # noqa: RUF012
        "over": ("num_envs",),
        "normalizer": None,
        "scales": None,
        "frozen": None,
    }
    _over: Episodes

    def __init__(self, env: AnyEnv, device: Device | None = None):
        super().__init__(env, device)
        self.frozen = False
        """True if the statistics do not change."""
        self._over = Episodes(autoreset_mode(self.env))
        # By the kind of reward or cost.
        self._scales: dict[str, ReturnScale] = {}

    def _begin(
        self, observation: Tree, info: Info, begun: Array, *, partial: bool
    ) -> tuple[Tree, Info]:
        for scale in self._scales.values():
            scale.begin_episodes(begun)
        return observation, info

    def freeze(self) -> None:
        """Keep the statistics as they are, for example to evaluate a policy."""
        self.frozen = True

    def train(self) -> None:
        """Update the statistics on every step, as a new wrapper does."""
        self.frozen = False
