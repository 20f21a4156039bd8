"""A term: a function of the environment, bound to its parameters."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from legged_envs.checks import did_you_mean
from legged_envs.mdp.context import Env
from legged_envs.tables import TableRepr, format_cell


def name_of(func: Callable[..., object]) -> str:
    """Return a name for ``func`` to use in errors; not every callable has one."""
    func = getattr(func, "func", func)  # the function inside a functools.partial
    return getattr(func, "__name__", None) or type(func).__name__


def check_function(
    where: str,
    func: Callable[..., object],
    first: tuple[str, ...],
    params: Mapping[str, object],
) -> None:
    """Check that ``func`` can be called with positional arguments and parameters by name.

    Args:
        where: Name of the term, which comes first in the error.
        func: The function of the term.
        first: Names of the positional arguments.
        params: Keyword arguments.

    Raises:
        TypeError: If ``func`` is not callable, or not with these arguments.
    """
    if not callable(func):
        raise TypeError(f"{where}: func must be callable, got {func!r}")
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return
    # Bound here and not called: a wrong parameter is found before anything is evaluated.
    try:
        signature.bind(*first, **params)
    except TypeError as error:
        known = list(signature.parameters)[len(first) :]
        hints = []
        for name in params:
            if name not in known:
                hint = did_you_mean(name, known).rstrip(" ;")
                hints.append(f"; {hint}" if hint else "")
        given = ", ".join([*first, *(f"{name}={value!r}" for name, value in params.items())])
        raise TypeError(
            f"{where}: {name_of(func)}{signature} cannot be called with ({given}): "
            f"{error}{''.join(hints)}"
        ) from None


class Term(TableRepr):
    """A term function bound to its parameters.

    Args:
        kind: Kind of the term, such as ``"reward"``; used in errors.
        name: Name of the term in its configuration.
        func: ``func(env, **params)``, which returns a tensor with a row per environment.
        params: Keyword arguments of ``func``.

    Raises:
        TypeError: If ``func`` is not callable with ``env`` and ``params``.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        func: Callable[..., torch.Tensor],
        params: Mapping[str, Any],
    ):
        self.where = f"{kind} term {name!r}"
        """Kind and name of the term, as errors state them."""
        check_function(self.where, func, ("env",), params)
        self.func = func
        """Function of the term."""
        self.params = dict(params)  # a copy: the configuration may be changed later
        """Keyword arguments of the function."""
        functions = [func, *filter(callable, self.params.values())]

        self.is_builtin = all(_is_builtin(function) for function in functions)
        """True if the function, and each function among its parameters, is from this package.

        Such a term is finite wherever the physics is, so its values need not be checked.
        """

    def __call__(self, env: Env) -> torch.Tensor:
        return self.func(env, **self.params)

    def _describe(self) -> str:
        return f"{self.where}: {format_cell(self.func)}({format_cell(self.params)})"

    def check(self, env: Env, dtype: torch.dtype, scalar: bool) -> torch.Tensor:
        """Evaluate the term once and check its result.

        Args:
            env: The environment.
            dtype: Expected dtype.
            scalar: True if the term returns one number per environment, shape (num_envs,);
                otherwise it returns a vector, shape (num_envs, size).

        Returns:
            The value of the term.

        Raises:
            TypeError: If the call fails with one; the name of the term is added.
            ValueError: If shape or dtype are not as expected.
        """
        try:
            value = self(env)
        except TypeError as error:
            raise TypeError(f"{self.where} ({name_of(self.func)}): {error}") from error
        must_return = f"{self.where} ({name_of(self.func)}) must return"
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"{must_return} a tensor, got {type(value).__name__}")
        if value.ndim != (1 if scalar else 2) or len(value) != env.num_envs:
            shape = f"({env.num_envs},)" if scalar else f"({env.num_envs}, size)"
            raise ValueError(f"{must_return} shape {shape}, got {tuple(value.shape)}")
        if value.dtype != dtype:
            raise ValueError(f"{must_return} {dtype}, got {value.dtype}")
        return value


def _is_builtin(function: Callable[..., object]) -> bool:
    module = getattr(function, "__module__", None) or ""
    return module.startswith("legged_envs.mdp.")
