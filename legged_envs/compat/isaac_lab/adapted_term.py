"""Terms as other frameworks write them: classes with a state, functions without the types or arguments of ours."""

from inspect import Parameter, Signature, signature
from typing import Any

import torch

from legged_envs.state import Stateful, copy_state, is_state, replace_in_place


class Adapted(Stateful):
    """Calls ``func``, or an object of a class ``func``, made by ``func(cfg=cfg, env=env)``, whose ``__call__`` is the
    term and whose ``reset(env_ids)``, if it has one, begins episodes; its tensors and numbers are its state. What it
    returns is converted to ``dtype`` if it is a tensor. An ``event`` is called without its stream of random numbers
    unless it has a parameter ``random``."""

    def __init__(self, func: Any, cfg: Any, dtype: torch.dtype | None = None, event: bool = False):
        self.func, self.cfg, self._dtype, self._drops_random = func, cfg, dtype, False
        self._drops_random = event and "random" not in signature(self).parameters

    @property
    def __signature__(self) -> Signature:
        own = signature(
            self.func.__call__ if isinstance(self.func, type) else self.func
        ).parameters.values()
        parameters = [each for each in own if each.name != "self"]
        if self._drops_random:
            parameters.insert(2, Parameter("random", Parameter.POSITIONAL_OR_KEYWORD))
        return Signature(parameters)

    def make(self, env: Any) -> "Adapted":
        """Make the object, where it is one of a class; returns itself."""
        self._term = self.func(cfg=self.cfg, env=env) if isinstance(self.func, type) else self.func
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_term"}

    def __call__(self, env: Any, *args: Any, **params: Any) -> Any:
        value = self._term(env, *(args[:-1] if self._drops_random else args), **params)
        return value.to(self._dtype) if self._dtype and isinstance(value, torch.Tensor) else value

    @property
    def attributes(self) -> dict[str, Any]:
        """Those of the object, which may be set here; none where ``func`` is no class."""
        return vars(self._term) if isinstance(self.func, type) else {}

    def reset(self, env_ids: torch.Tensor) -> None:
        if hasattr(self._term, "reset"):
            self._term.reset(env_ids=env_ids)

    def state_dict(self) -> dict[str, Any]:
        return {
            name: copy_state(value) for name, value in self.attributes.items() if is_state(value)
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self._term, name, replace_in_place(vars(self._term).get(name), value))
