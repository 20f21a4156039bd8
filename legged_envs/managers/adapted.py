"""Terms as other frameworks write them: classes with a state, functions without the types or arguments of ours."""

from inspect import Parameter, Signature, signature
from typing import Any

import torch

from legged_envs.state import Stateful, copied, is_state, replaced_in_place


class Adapted(Stateful):
    """Calls ``func``, or an object of a class ``func``, made by ``func(cfg=cfg, env=env)``, whose ``__call__`` is the
    term and whose ``reset(env_ids)``, if it has one, begins episodes; its tensors and numbers are its state. What it
    returns is put through each ``modifier.func(value, **modifier.params)`` of ``cfg``, converted to ``dtype``,
    and ``shift`` is added. An ``event`` is called with a stream only if it takes ``random``."""

    def __init__(
        self, func: Any, cfg: Any, dtype: torch.dtype | None = None, shift: float = 0.0, event: bool = False
    ) -> None:
        self.func, self.cfg, self._dtype, self._shift, self._event = func, cfg, dtype, shift, event
        self._object: Any = None

    @property
    def __signature__(self) -> Signature:
        own = signature(self.func.__call__ if isinstance(self.func, type) else self.func).parameters.values()
        parameters = [each for each in own if each.name not in ("self", "random")]
        if self._event:
            parameters.insert(2, Parameter("random", Parameter.POSITIONAL_OR_KEYWORD))
        return Signature(parameters)

    def make(self, env: Any) -> None:
        if isinstance(self.func, type):
            self._object = self.func(cfg=self.cfg, env=env)

    def __call__(self, env: Any, *args: Any, **params: Any) -> Any:
        function = self.func if self._object is None else self._object
        if self._event:
            args, stream = args[:-1], args[-1]
            params |= {"random": stream} if "random" in signature(function).parameters else {}
        value = function(env, *args, **params)
        for modifier in getattr(self.cfg, "modifiers", None) or ():
            value = modifier.func(value, **modifier.params)
        value = value if self._dtype is None else value.to(self._dtype)
        return value + self._shift if self._shift else value

    def reset(self, env_ids: torch.Tensor) -> None:
        if hasattr(self._object, "reset"):
            self._object.reset(env_ids=env_ids)

    def state_dict(self) -> dict[str, Any]:
        own = {} if self._object is None else vars(self._object)
        return {name: copied(value) for name, value in own.items() if is_state(value)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self._object, name, replaced_in_place(getattr(self._object, name), value))
