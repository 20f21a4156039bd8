"""Checks of a contract that was read from a file, before anything relies on its entries."""

from typing import Any

from legged_envs.tables import shorten

CONTRACT_TYPES: dict[str, type] = {
    "task_id": str,
    "changes": dict,
    "clips": list,
    "inputs": dict,
    "observation": list,
    "memory": dict,
}
"""Types of the entries of a contract that this package reads."""

LARGEST_TERM = 1_000_000
"""Largest size of an observation term in a contract."""


def check_contract(entries: Any) -> None:
    """Raise a ValueError unless the entries that this package reads have the types it writes."""
    if not isinstance(entries, dict):
        raise ValueError(f"its contract is not a JSON object: {shorten(str(entries), 100)}")
    for name, kind in CONTRACT_TYPES.items():
        if name in entries and not isinstance(entries[name], kind):
            raise ValueError(
                f"{name} of its contract is not a {kind.__name__}: "
                f"{shorten(str(entries[name]), 100)}"
            )
    groups = entries.get("inputs") or {"observation": entries.get("observation", [])}
    for group, terms in groups.items():
        if not isinstance(terms, list) or not all(map(_is_term, terms)):
            raise ValueError(
                f"{group!r} of its contract is not a list of terms, "
                "each with a name, a size and a scale"
            )

    for name, size in entries.get("memory", {}).items():
        if type(size) is not int or not 1 <= size <= LARGEST_TERM:
            raise ValueError(
                f"memory {name!r} of its contract must have a size of 1 to {LARGEST_TERM:,}, "
                f"got {shorten(str(size), 100)}"
            )


def _is_term(term: object) -> bool:
    if not isinstance(term, dict):
        return False
    if not {"name", "size", "scale"} <= term.keys():
        return False
    # A bool is an int for `isinstance`, and no size.
    return type(term["size"]) is int and 0 <= term["size"] <= LARGEST_TERM
