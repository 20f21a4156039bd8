"""Bound of the numbers with which a network of PyTorch computes, checked before each operation."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from legged_envs.policy.network_size import MOST_NUMBERS


class _Bounded(TorchDispatchMode):
    """Computes the size of each result with tensors that have a shape and no elements."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = 0

        self.excess: str | None = None
        """Sentence about the operation that would make too many numbers. None: there was none."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        shapes, options = tree_map_only(torch.Tensor, _without_elements, (tuple(args), given))
        # Functions that make tensors, such as zeros, would make them in memory.
        if any(argument.name == "device" for argument in func._schema.arguments):
            options["device"] = torch.device("meta")
        try:
            result = func(*shapes, **options)
        # Results that depend on the elements, such as item(), have no shape before they are there.
        except (NotImplementedError, RuntimeError):
            result = ()
        self._add(result, str(func))
        return func(*args, **given)

    def _add(self, result: Any, operation: str) -> None:
        parts = result if isinstance(result, (tuple, list)) else (result,)
        for part in parts:
            if isinstance(part, torch.Tensor):
                self._numbers += part.numel()
        if self._numbers <= MOST_NUMBERS:
            return
        # TorchScript tries some operations early and continues when they fail: the first is named.
        self.excess = self.excess or (
            f"its network computes with {self._numbers:,} numbers until {operation}, and with "
            f"at most {MOST_NUMBERS:,} it is run"
        )
        raise RuntimeError(self.excess)


def _without_elements(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(
        tensor.size(), tensor.stride(), dtype=tensor.dtype, device=torch.device("meta")
    )


@contextmanager
def bounded_numbers() -> Iterator[None]:
    """Stop the first operation in the block that makes too many numbers, before it makes them.

    Raises:
        ValueError: If all results together have more than `MOST_NUMBERS` elements.
    """
    bounded = _Bounded()
    try:
        with bounded:
            yield
    except RuntimeError as error:
        # TorchScript replaces the words of errors inside of its operations.
        if bounded.excess is None:
            raise
        raise ValueError(bounded.excess) from error
