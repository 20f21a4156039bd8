"""Managers with the names that Isaac Lab gives their methods."""

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from legged_envs.checks import check_known
from legged_envs.managers import TerminationManager

if TYPE_CHECKING:
    from legged_envs.compat.isaac_lab.manager_based import ManagerBasedEnv


class ManagerView:
    """A manager of an environment, with Isaac Lab's names in addition to its own.

    Args:
        user: The environment in Isaac Lab's words.
        kind: Name of the manager, such as ``"rewards"``.
    """

    def __init__(self, user: "ManagerBasedEnv", kind: str):
        self._user = user
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    # Looked up when it is used, because the view is made before the environment.
    @property
    def _manager(self) -> Any:
        return getattr(self._user.core, self._kind)

    @property
    def active_terms(self) -> list[str]:
        """Names of the terms."""
        return list(self._manager.names)

    @property
    def action(self) -> torch.Tensor:
        """Actions of this step. Shape: (num_envs, size)."""
        current: torch.Tensor = self._manager.current
        return current

    @property
    def prev_action(self) -> torch.Tensor:
        """Actions of the last step. Shape: (num_envs, size)."""
        previous: torch.Tensor = self._manager.previous
        return previous

    @property
    def total_action_dim(self) -> int:
        """Number of elements of an action."""
        size: int = self._manager.size
        return size

    @property
    def group_obs_dim(self) -> dict[str, tuple[int, ...]]:
        """Shape of each observation group of one environment."""
        return {name: (group.size,) for name, group in self._manager.groups.items()}

    def _known_name(self, name: str) -> str:
        """Return the name that the manager has for a term.

        Raises:
            ValueError: If there is no such term.
        """
        name = self._user.renamed.get(name, name)
        kind = type(self._manager).__name__
        names = self._manager.names
        check_known(f"{kind} has no term, or none with a weight,", (name,), names, "terms")
        return name

    def get_term(self, name: str) -> Any:
        """Return a term of actions or commands, or the episodes that a termination ended.

        Raises:
            ValueError: If there is no such term.
        """
        name = self._known_name(name)
        if isinstance(self._manager, TerminationManager):
            return self._manager.reasons[:, self._manager.names.index(name)]
        return self._manager.terms[name]

    def get_command(self, name: str) -> torch.Tensor:
        """Return the present command called ``name``. Shape: (num_envs, size)."""
        command: torch.Tensor = self.get_term(name).value
        return command

    def get_term_cfg(self, name: str) -> Any:
        """Return a copy of the configuration of a term.

        Raises:
            ValueError: If there is no such term.
        """
        cfg = self._manager.cfg[self._known_name(name)]
        # A copy: changes reach the manager only through set_term_cfg, which checks them.
        return replace(cfg, params=copy.deepcopy(cfg.params))

    def set_term_cfg(self, name: str, cfg: Any) -> None:
        """Set the weight of a reward term.

        Args:
            name: Name of the term.
            cfg: A configuration from :meth:`get_term_cfg` with another weight.

        Raises:
            ValueError: If something else than the weight differs.
        """
        present = self.get_term_cfg(name)
        if cfg.func != present.func or cfg.params != present.params:
            raise ValueError(
                f"set_term_cfg({name!r}, …) sets the weight of what get_term_cfg returned, "
                f"not {cfg}"
            )
        self._manager.set_weight(name, cfg.weight)
