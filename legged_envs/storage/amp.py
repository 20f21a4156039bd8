"""The states that an adversarial motion prior (AMP) compares, extracted from observations."""

from collections.abc import Callable, Mapping
from functools import partial
from pkgutil import resolve_name
from typing import Any, TypeAlias

import torch

from legged_envs.storage.fields import fitting

AmpCfg: TypeAlias = Mapping[str, Any]
"""Configuration of AMP: the functions that extract states, and their arguments."""


class AmpExtractors:
    """The functions of an AMP configuration, which keep leading dimensions.

    ``amp_obs_extractor`` is called with observations and returns AMP states.
    ``amp_ref_obs_extractor`` is called with (reference observations, mask) and returns AMP states
    and a mask of the existing states. Each is a function or ``"package.module:function"``. A
    ``"_env"`` in the configuration is passed on as ``env=…``.

    Args:
        cfg: The configuration.
        with_reference: True if ``amp_ref_obs_extractor`` is needed.

    Raises:
        ValueError: If a function is missing or cannot be imported.
        TypeError: If a function is not callable.
    """

    def __init__(self, cfg: AmpCfg, with_reference: bool):
        self._obs = _resolve(cfg, "amp_obs_extractor")
        self._ref_obs: Callable[..., object] | None = None
        if with_reference:
            self._ref_obs = _resolve(cfg, "amp_ref_obs_extractor")

    def states(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the AMP states of observations.

        Raises:
            TypeError: If the function of the configuration does not return a tensor.
        """
        states = self._obs(observations)
        if not isinstance(states, torch.Tensor):
            raise TypeError(
                f"amp_obs_extractor must return a tensor, returned {type(states).__name__}"
            )
        return states

    def reference_states(
        self, observations: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the AMP states of reference observations.

        Args:
            observations: Shape: (n, *ref_obs_shape).
            mask: True where there is a reference. Shape: (n,), bool.

        Returns:
            The states, and a mask of the existing states, never more than ``mask``.

        Raises:
            TypeError: If the function of the configuration does not return a pair of tensors.
            ValueError: If the mask that the function returns has another shape or device.
        """
        assert self._ref_obs is not None
        result = self._ref_obs((observations, mask))
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                "amp_ref_obs_extractor must return (states, mask), "
                f"returned {type(result).__name__}"
            )
        states, exists = result
        exists = fitting("the mask that amp_ref_obs_extractor returns", exists, mask)
        return states, exists & mask


def _resolve(cfg: AmpCfg, key: str) -> Callable[..., object]:
    """Return a function of the configuration, imported if it is given by name."""
    function = cfg.get(key)
    if function is None:
        raise ValueError(
            f"amp_cfg has no {key!r}: give a function or an import string 'package.module:function'"
        )
    if isinstance(function, str):
        function = _import_function(key, function)
    if not callable(function):
        raise TypeError(
            f"amp_cfg[{key!r}] must be a function or an import string, "
            f"got {type(function).__name__}"
        )
    if "_env" in cfg:
        return partial(function, env=cfg["_env"])
    return function


def _import_function(key: str, path: str) -> object:
    try:
        module, name = path.split(":")
        return resolve_name(f"{module}:{name}")
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"amp_cfg[{key!r}] = {path!r} cannot be imported as 'package.module:function': {error}"
        ) from error
