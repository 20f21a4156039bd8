"""Adapter of terms that users write in Isaac Lab's forms: functions, and classes with a state."""

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

import torch
from torch import Tensor

from legged_envs.state import Stateful, copy_state, is_state, replace_in_place


class Adapted(Stateful):
    """A user's term with the types and arguments of the terms of this package.

    A class is made by ``func(cfg=cfg, env=env)``. Its ``__call__`` is the term; its
    ``reset(env_ids)``, if it has one, starts episodes; its tensors and numbers are the state.

    Args:
        func: A function or a class.
        cfg: Configuration of the term, for the constructor of the class.
        dtype: Type to which a returned tensor is converted. None: it stays.
        event: True for an event. It is called without its random stream, unless it has a parameter
            ``random``.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        cfg: Any,
        dtype: torch.dtype | None = None,
        event: bool = False,
    ):
        self.func = func
        """The user's function or class."""
        self.cfg = cfg
        """Configuration of the term."""
        self._dtype = dtype
        names = [parameter.name for parameter in self._own_parameters()]
        self._drops_random = event and "random" not in names

    def _own_parameters(self) -> list[Parameter]:
        call = self.func.__call__ if isinstance(self.func, type) else self.func
        parameters = signature(call).parameters.values()
        return [parameter for parameter in parameters if parameter.name != "self"]

    @property
    def __signature__(self) -> Signature:
        """Parameters of the term, as ``inspect.signature`` returns them.

        An event has a parameter ``random`` after ``env`` and ``env_ids``, where its manager passes
        the stream.
        """
        parameters = self._own_parameters()
        if self._drops_random:
            parameters.insert(2, Parameter("random", Parameter.POSITIONAL_OR_KEYWORD))
        return Signature(parameters)

    def make(self, env: Any) -> "Adapted":
        """Make the object of a class; return this adapter."""
        is_class = isinstance(self.func, type)
        self._term = self.func(cfg=self.cfg, env=env) if is_class else self.func
        return self

    def __getstate__(self) -> dict[str, Any]:
        # The object is made again in a copy: it may hold the environment.
        return {name: value for name, value in vars(self).items() if name != "_term"}

    def __call__(self, env: Any, *args: Any, **params: Any) -> Any:
        if self._drops_random:
            args = args[:-1]
        value = self._term(env, *args, **params)
        if self._dtype is not None and isinstance(value, Tensor):
            return value.to(self._dtype)
        return value

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the object, which may be set here; empty for a function."""
        return vars(self._term) if isinstance(self.func, type) else {}

    def reset(self, env_ids: Tensor) -> None:
        """Begin the episodes of ``env_ids`` (n,)."""
        if hasattr(self._term, "reset"):
            self._term.reset(env_ids=env_ids)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the tensors and numbers of the object."""
        return {
            name: copy_state(value) for name, value in self.attributes.items() if is_state(value)
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set the tensors and numbers of the object, in the same memory where possible."""
        for name, value in state.items():
            present = self.attributes.get(name)
            setattr(self._term, name, replace_in_place(present, value))
