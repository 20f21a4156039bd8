"""Observations: groups of terms, each concatenated into one vector."""

from collections.abc import Iterable

from legged_envs.managers.manager import Manager
from legged_envs.managers.observation_cfg import ObservationGroupCfg
from legged_envs.managers.observation_group import ObservationGroup
from legged_envs.mdp.context import Env
from legged_envs.tables import Table


class ObservationManager(Manager):
    """Holds the observation groups.

    Args:
        env: The environment that the terms see.
        cfg: Name of each group mapped to its configuration.
        limit: Observations are clipped to ±``limit``.
    """

    STATE = ("groups",)

    def __init__(self, env: Env, cfg: dict[str, ObservationGroupCfg], limit: float):
        super().__init__(env, cfg)
        self.groups = {
            name: ObservationGroup(env, name, group, limit) for name, group in cfg.items()
        }
        """Name of each group mapped to the group."""

    def _as_tables(self) -> Iterable[Table]:
        tables: list[Table] = []
        for group in self.groups.values():
            tables += group._as_tables()
        return tables
