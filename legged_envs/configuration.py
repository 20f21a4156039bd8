"""The base of all configurations: dataclasses that refuse fields they lack, and that print as tables."""

import copy
import dataclasses
import difflib
import inspect
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, dataclass_transform

from legged_envs.checks import did_you_mean
from legged_envs.tables import Table, TableRepr, format_cell, shorten


class Configuration(TableRepr):
    """A dataclass that cannot be given an attribute which its class does not declare: AttributeError. Its ``repr``
    names the fields that are not at their defaults."""

    def __init_subclass__(cls, **arguments: Any):
        super().__init_subclass__(**arguments)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # else the decorator writes one, of all fields

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if name not in type(self).__dataclass_fields__ and not hasattr(type(self), name):
                known = [field.name for field in fields(self)]
                wrong = f"{type(self).__name__} has no field {name!r}; {did_you_mean(name, known)}"
                raise AttributeError(f"{wrong}it has: {', '.join(known)}")
            super().__setattr__(name, value)

    def _describe(self) -> str:
        own = {
            field.name: getattr(self, field.name) for field in fields(self) if _differs(self, field)
        }  # type: ignore[arg-type]
        return ", ".join(f"{name}={_shown(value)}" for name, value in own.items())

    def _as_tables(self) -> Iterator[Table]:
        rows = [(name, value) for name, value in vars(self).items() if not _are_terms(value)]
        yield type(self).__name__, ("field", "value"), rows
        yield from _tables_within("", self)


def _differs(cfg: Any, field: Field[Any]) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return repr(getattr(cfg, field.name)) != repr(default)


def _are_terms(value: object) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(item, Configuration) for item in value.values())
    )


def _shown(value: Any) -> str:
    if _are_terms(value):
        return f"{{{', '.join(value)}}}" if len(value) < 4 else f"{{{len(value)} terms}}"
    text = format_cell(value) if callable(value) else repr(value)
    if isinstance(value, dict):
        text = f"{{{', '.join(f'{key!r}: {_shown(item)}' for key, item in value.items())}}}"
    return shorten(text, 40)


def _tables_within(path: str, cfg: Any) -> Iterator[Table]:
    """What the dicts of terms in a configuration hold, and those in the terms."""
    for name, terms in vars(cfg).items():
        if not _are_terms(terms):
            continue
        kinds, first = {type(term) for term in terms.values()}, next(iter(terms.values()))
        columns = [column for column, value in vars(first).items() if not _are_terms(value)]
        rows = [(key, *map(vars(term).get, columns)) for key, term in terms.items()]
        several = ("term", "configuration"), [*terms.items()]
        yield path + name, *(several if len(kinds) > 1 else (("term", *columns), rows))
        for key, term in terms.items():
            yield from _tables_within(f"{path}{name}.{key}.", term)


_NO_FIELDS = (type, property, classmethod, staticmethod, type(lambda: 0))


@dataclass_transform()
def configclass(cls: Any) -> Any:
    """Make ``cls`` a configuration: what it assigns is a field, annotated or not, mutable defaults are copied, unknown
    fields are refused. Functions, properties and nested classes are no fields. It has ``replace`` and ``copy``."""
    annotations = dict(inspect.get_annotations(cls))
    assigned = {
        n: value
        for n, value in vars(cls).items()
        if not (n.startswith("__") or isinstance(value, _NO_FIELDS))
    }
    for name in (
        annotations := annotations
        | {n: type(v) for n, v in assigned.items() if n not in annotations}
    ):
        value = getattr(cls, name, dataclasses.MISSING)
        if value is dataclasses.MISSING:
            setattr(cls, name, dataclasses.field(default_factory=lambda: dataclasses.MISSING))
        elif type(value).__hash__ is None or (hasattr(value, "__dict__") and not callable(value)):
            setattr(cls, name, dataclasses.field(default_factory=partial(copy.deepcopy, value)))
    cls.__annotations__ = annotations
    cls = dataclasses.dataclass(repr=False)(cls)
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    return cls if issubclass(cls, ConfigClass) else type(cls.__name__, (cls, ConfigClass), names)


class ConfigClass(Configuration):
    """What :func:`configclass` adds to a class. A subclass that assigns, without annotation, what is nearly the name of
    a field of ours is an AttributeError."""

    def __init_subclass__(cls, **arguments: Any):
        super().__init_subclass__(**arguments)
        parents = {base: inspect.get_annotations(base) for base in cls.__mro__[1:]}
        ours = [
            name
            for base, names in parents.items()
            if base.__module__.startswith("legged_envs.")
            for name in names
        ]
        own = {name for name, value in vars(cls).items() if not isinstance(value, _NO_FIELDS)}
        for name in own.difference(
            inspect.get_annotations(cls), *parents.values(), *map(vars, parents)
        ):
            if close := difflib.get_close_matches(name, ours, 1, 0.85):
                wrong = (
                    f"{cls.__name__}.{name} is no field of its bases; did you mean {close[0]!r}?"
                )
                raise AttributeError(f"{wrong} If it is meant as a new field, annotate it")

    def replace(self, **changes: Any) -> Any:
        """A copy with other values of some fields."""
        return dataclasses.replace(self.copy(), **changes)

    def copy(self) -> Any:
        """A copy that shares nothing with this one."""
        return copy.deepcopy(self)
