"""Base classes of configurations: dataclasses that refuse unknown fields, and print as tables."""

import copy
import dataclasses
import difflib
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, dataclass_transform

from legged_envs.checks import did_you_mean
from legged_envs.tables import Table, TableRepr, format_cell, shorten

MAX_VALUE_LENGTH = 40
"""Largest number of characters of a value in the ``repr`` of a configuration."""

MISSPELLING_CUTOFF = 0.85
"""Similarity to a field's name, 0 to 1, above which a new attribute counts as a misspelling of it.
"""

_NOT_FIELDS = (type, property, classmethod, staticmethod, FunctionType)


class Configuration(TableRepr):
    """Base class of all configurations. Subclasses are dataclasses.

    Assigning an attribute that the class does not declare raises an ``AttributeError``. The
    ``repr`` is one line with the fields that differ from their defaults. ``str`` has all fields as
    tables: one for the plain fields, and one for each dict of terms, such as the rewards of a task.
    """

    def __init_subclass__(cls, **arguments: Any):
        super().__init_subclass__(**arguments)
        # The dataclass decorator writes a repr of all fields into a class that only has an
        # inherited one. So each class gets the inherited repr as its own.
        inherited_repr = cls.__repr__
        cls.__repr__ = inherited_repr  # type: ignore[method-assign]

    if not TYPE_CHECKING:  # Else a type checker would accept every attribute.

        def __setattr__(self, name: str, value: object) -> None:
            is_declared = name in type(self).__dataclass_fields__ or hasattr(type(self), name)
            if not is_declared:
                known = [field.name for field in dataclasses.fields(self)]
                raise AttributeError(
                    f"{type(self).__name__} has no field {name!r}; "
                    f"{did_you_mean(name, known)}it has: {', '.join(known)}"
                )
            super().__setattr__(name, value)

    def _describe(self) -> str:
        parts = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if _differs_from_default(self, field):
                parts.append(f"{field.name}={_format_value(getattr(self, field.name))}")
        return ", ".join(parts)

    def _as_tables(self) -> Iterator[Table]:
        rows = [(name, value) for name, value in vars(self).items() if not _are_terms(value)]
        yield type(self).__name__, ("field", "value"), rows
        yield from _tables_of_terms("", self)


def _differs_from_default(cfg: Configuration, field: Field[Any]) -> bool:
    default = field.default
    if field.default_factory is not MISSING:
        default = field.default_factory()
    return repr(getattr(cfg, field.name)) != repr(default)


def _are_terms(value: object) -> bool:
    """Return True for a dict of configurations, such as the reward terms of a task."""
    if not isinstance(value, dict) or not value:
        return False
    return all(isinstance(item, Configuration) for item in value.values())


def _format_value(value: Any) -> str:
    if _are_terms(value):
        names = ", ".join(value)
        return f"{{{names}}}" if len(value) < 4 else f"{{{len(value)} terms}}"
    if isinstance(value, dict):
        items = [f"{key!r}: {_format_value(item)}" for key, item in value.items()]
        text = f"{{{', '.join(items)}}}"
    elif callable(value):
        text = format_cell(value)
    else:
        text = repr(value)
    return shorten(text, MAX_VALUE_LENGTH)


def _tables_of_terms(path: str, cfg: Configuration) -> Iterator[Table]:
    """Return one table for each dict of terms in a configuration, and in its terms.

    Args:
        path: Path to ``cfg`` with a dot at its end, for the titles.
        cfg: Configuration that may hold dicts of terms.
    """
    for name, terms in vars(cfg).items():
        if not _are_terms(terms):
            continue
        yield _table_of_terms(path + name, terms)
        for key, term in terms.items():
            yield from _tables_of_terms(f"{path}{name}.{key}.", term)


def _table_of_terms(title: str, terms: dict[str, Configuration]) -> Table:
    all_terms = list(terms.values())
    kinds = {type(term) for term in all_terms}
    if len(kinds) > 1:  # They have different fields, so their lines are shown.
        return title, ("term", "configuration"), list(terms.items())
    columns = [name for name, value in vars(all_terms[0]).items() if not _are_terms(value)]
    rows: list[Sequence[object]] = []
    for key, term in terms.items():
        values = [vars(term).get(column) for column in columns]
        rows.append((key, *values))
    return title, ("term", *columns), rows


class ConfigClass(Configuration):
    """Base class that :func:`configclass` adds to a class. It has ``replace`` and ``copy``.

    A subclass may add fields by assignments without a type annotation. A new name that is similar
    to the name of an existing field of this package is refused as a misspelling of it.
    """

    def __init_subclass__(cls, **arguments: Any):
        super().__init_subclass__(**arguments)
        own_fields: list[str] = []
        declared = set(inspect.get_annotations(cls))
        for base in cls.__mro__[1:]:
            annotated = inspect.get_annotations(base)
            declared.update(annotated)
            declared.update(vars(base))
            if base.__module__.startswith("legged_envs."):
                own_fields.extend(annotated)
        for name, value in vars(cls).items():
            if name in declared or isinstance(value, _NOT_FIELDS):
                continue
            similar = difflib.get_close_matches(name, own_fields, 1, MISSPELLING_CUTOFF)
            if similar:
                raise AttributeError(
                    f"{cls.__name__}.{name} is not a field of its bases; "
                    f"did you mean {similar[0]!r}? If it is meant as a new field, annotate it"
                )

    def replace(self, **changes: Any) -> Any:
        """Return a copy of this configuration with new values of the named fields."""
        return dataclasses.replace(self.copy(), **changes)

    def copy(self) -> Any:
        """Return a deep copy of this configuration."""
        return copy.deepcopy(self)


@dataclass_transform()
def configclass(cls: Any) -> Any:
    """Decorate a class as a configuration, like the decorator ``configclass`` of Isaac Lab.

    Every value that the class assigns is a field, with or without an annotation. Functions,
    properties and nested classes are not fields. Each object gets its own copy of a mutable
    default. The class gets the methods of :class:`ConfigClass`, and unknown fields are refused.
    """
    annotations = dict(inspect.get_annotations(cls))
    for name, value in vars(cls).items():
        is_field = not name.startswith("__") and not isinstance(value, _NOT_FIELDS)
        if is_field and name not in annotations:
            annotations[name] = type(value)
    for name in annotations:
        default = getattr(cls, name, MISSING)
        if default is MISSING:
            # Isaac Lab's fields without a default are MISSING until a user sets them.
            setattr(cls, name, dataclasses.field(default_factory=lambda: MISSING))
        elif _is_mutable(default):
            factory = partial(copy.deepcopy, default)
            setattr(cls, name, dataclasses.field(default_factory=factory))
    cls.__annotations__ = annotations
    cls = dataclasses.dataclass(repr=False)(cls)
    if issubclass(cls, ConfigClass):
        return cls
    names = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    return type(cls.__name__, (cls, ConfigClass), names)


def _is_mutable(value: object) -> bool:
    if type(value).__hash__ is None:
        return True
    return hasattr(value, "__dict__") and not callable(value)
