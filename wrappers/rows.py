"""Choosing rows of batches by masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged_envs.wrappers.array_kinds import any_row, as_kind_of, as_numpy, namespace, where_rows

WITHOUT_ROWS = frozenset({"lagrange_multipliers", "max_probabilities"})
"""Keys of ``info`` that have no row for each environment but one number for each cost, also where K = num_envs."""


def without_rows(rows: Any, mask: Any) -> Any:
    """``rows``, a mask or None for no rows, without those of ``mask``, which is None for all."""
    if rows is None or mask is None:
        return None
    left = rows & ~mask
    return left if any_row(left) else None


def blank_rows(mask: Any, array: Any) -> Any:
    """``array`` with 0, False or None in the rows of ``mask``."""
    if isinstance(array, np.ndarray):
        blanked = array.copy()
        blanked[as_numpy(mask)] = None if array.dtype == object else 0
        return blanked
    return choose_rows(mask, namespace(array).zeros_like(array), array)


def choose_rows(mask: Any, one: Any, other: Any) -> Any:
    """Rows of ``one`` where ``mask`` holds and of ``other`` elsewhere, for arrays or dicts and tuples of them."""
    if isinstance(one, dict):
        return {key: choose_rows(mask, one[key], other[key]) for key in one}
    if isinstance(one, tuple):
        return tuple(choose_rows(mask, a, b) for a, b in zip(one, other, strict=True))
    return where_rows(as_kind_of(mask, one), one, other)


def info_rows(mask: Any, later: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """An ``info`` with the rows of ``later`` where ``mask`` holds and of ``earlier`` elsewhere.

    Rows of a key that only the other one has are blank. What has no rows, ``WITHOUT_ROWS`` and all that is shaped
    otherwise, is taken from ``later`` where it has the key.
    """
    result: dict[str, Any] = {}
    for key in {**earlier, **later}:
        if key in WITHOUT_ROWS:
            result[key] = later.get(key, earlier.get(key))
        elif key not in later:
            result[key] = _blank(mask, earlier[key])
        elif key not in earlier:
            result[key] = _blank(~mask, later[key])
        elif isinstance(later[key], dict) and isinstance(earlier[key], dict):
            result[key] = info_rows(mask, later[key], earlier[key])
        elif _has_rows(later[key], mask) and _has_rows(earlier[key], mask):
            result[key] = choose_rows(mask, later[key], earlier[key])
        else:
            result[key] = later[key]
    return result


def _blank(mask: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: part if key in WITHOUT_ROWS else _blank(mask, part) for key, part in value.items()}
    return blank_rows(mask, value) if _has_rows(value, mask) else value


def _has_rows(value: Any, mask: Any) -> bool:
    return getattr(value, "ndim", 0) > 0 and value.shape[0] == mask.shape[0]
