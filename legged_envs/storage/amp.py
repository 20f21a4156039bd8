"""The states that an adversarial motion prior compares, taken out of observations."""

from collections.abc import Callable, Mapping
from functools import partial
from pkgutil import resolve_name
from typing import Any

import torch

from legged_envs.storage.fields import fitting


class AmpExtractors:
    """The functions of an AMP configuration ``cfg``, which keep leading dimensions: ``amp_obs_extractor``
    (observations) → states; ``with_reference`` also ``amp_ref_obs_extractor`` ((reference_observations, mask)) → states
    and which are there. Each is a function or ``"package.module:function"``; a ``"_env"`` of ``cfg`` is passed on as
    ``env=…``. ValueError if one is missing or leads nowhere, TypeError if it is no function."""

    def __init__(self, cfg: Mapping[str, Any], with_reference: bool):
        self._obs = _resolve(cfg, "amp_obs_extractor")
        self._ref_obs = _resolve(cfg, "amp_ref_obs_extractor") if with_reference else None

    def states(self, observations: torch.Tensor) -> torch.Tensor:
        states = self._obs(observations)
        if not isinstance(states, torch.Tensor):
            raise TypeError(
                f"amp_obs_extractor must return a tensor, returned {type(states).__name__}"
            )
        return states

    def reference_states(
        self, observations: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The AMP states of reference ``observations``, and which are there: never more than ``mask`` says."""
        assert self._ref_obs is not None
        result = self._ref_obs((observations, mask))
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                f"amp_ref_obs_extractor must return (states, mask), returned {type(result).__name__}"
            )
        return result[0], fitting(
            "the mask that amp_ref_obs_extractor returns", result[1], mask
        ) & mask


def _resolve(cfg: Mapping[str, Any], key: str) -> Callable[..., Any]:
    found = cfg.get(key)
    if found is None:
        raise ValueError(
            f"amp_cfg has no {key!r}: give a function or an import string 'package.module:function'"
        )
    if isinstance(found, str):
        try:
            module, name = found.split(":")
            found = resolve_name(f"{module}:{name}")
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(
                f"amp_cfg[{key!r}] = {cfg[key]!r} is no 'package.module:function': {error}"
            ) from error
    if not callable(found):
        raise TypeError(
            f"amp_cfg[{key!r}] must be a function or an import string, got {type(found).__name__}"
        )
    return partial(found, env=cfg["_env"]) if "_env" in cfg else found
