"""Reading of fields of a YAML file: numbers, lists and names, with errors that name the field."""

import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from legged_envs.checks import check_number, did_you_mean, whole_number
from legged_envs.tables import shorten

LARGEST_FILE = 1_000_000
"""Largest size of a description, bytes. Those of robots with 29 joints have 10,000."""
LARGEST_LIST = 1_000
"""Largest number of elements of a list in a description."""
LARGEST_HISTORY = 200
"""Largest number of past steps in an observation."""

BRIEF = reprlib.Repr()
"""Texts of values for errors. Aliases of YAML can make a value with gigabytes of text."""
BRIEF.maxlevel = 2

Tree = dict[str, Any]
"""Content of a YAML file: name → value."""


class Fields:
    """A mapping in a YAML file. Its values are checked when they are read.

    Args:
        file: The file, for errors.
        values: Name → value.
        where: Names that lead to this mapping, for errors. Empty: the file itself.
    """

    def __init__(self, file: Path, values: Mapping[str, Any], where: str = ""):
        self.file = file
        """File, for errors."""
        self.values = values
        """Name → value."""
        self._where = where

    def path(self, name: str) -> str:
        """Return the file and the path of a value in it, for errors."""
        return f"{str(self.file)!r}: {self._where}{name}"

    def has(self, name: str) -> bool:
        """Return True if a value is there and not null."""
        return self.values.get(name) is not None

    def get(self, name: str) -> Any:
        """Return a value.

        Raises:
            ValueError: If there is none.
        """
        if not self.has(name):
            raise ValueError(
                f"{self.path(name)} is missing; {did_you_mean(name, list(self.values))}"
                "a policy cannot be driven without it: add it"
            )
        return self.values[name]

    def section(self, name: str) -> "Fields":
        """Return a mapping in this mapping.

        Raises:
            ValueError: If it is missing or not a mapping.
        """
        value = self.get(name)
        if not isinstance(value, dict):
            raise ValueError(
                f"{self.path(name)} must be a mapping, got {BRIEF.repr(value)}: correct it"
            )
        return Fields(self.file, value, f"{self._where}{name}.")

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number, or the default if there is none.

        Raises:
            ValueError: If it is missing without a default, or not a finite number.
        """
        if default is not None and not self.has(name):
            return default
        value = self.get(name)
        _check_real(self.path(name), value)
        return float(value)

    def positive(self, name: str) -> float:
        """Return a number above 0.

        Raises:
            ValueError: If it is missing or not such a number.
        """
        value = self.number(name)
        check_number(self.path(name), value, above=0.0)
        return value

    def whole(self, name: str, most: int, least: int = 1) -> int:
        """Return a whole number from `least` to `most`.

        Raises:
            ValueError: If it is missing or not such a number.
        """
        return whole_number(self.path(name), self.get(name), least=least, most=most)

    def numbers(self, name: str, size: int, single: bool = False) -> tuple[float, ...]:
        """Return a list of finite numbers.

        Args:
            name: Name of the list.
            size: Its length.
            single: True if one number may stand for all.

        Raises:
            ValueError: If it is missing, of another length, or not of finite numbers.
        """
        value = self.get(name)
        if single and not isinstance(value, list):
            _check_real(self.path(name), value)
            return (float(value),) * size
        return self._as_numbers(name, value, size)

    def _as_numbers(self, name: str, value: object, size: int) -> tuple[float, ...]:
        if not isinstance(value, list) or len(value) != size:
            found = len(value) if isinstance(value, list) else BRIEF.repr(value)
            raise ValueError(f"{self.path(name)} must be {size} numbers, got {found}: correct it")
        for i, number in enumerate(value):
            _check_real(f"{self.path(name)}[{i}]", number)
        return tuple(float(number) for number in value)

    def range(self, name: str) -> tuple[float, float]:
        """Return a pair (low, high) of finite numbers.

        Raises:
            ValueError: If it is missing or not such a pair.
        """
        low, high = self.numbers(name, 2)
        if low > high:
            raise ValueError(f"{self.path(name)} must be [low, high], got {[low, high]}: swap them")
        return low, high

    def indices(self, name: str, below: int) -> tuple[int, ...]:
        """Return a list of different whole numbers from 0 on.

        Args:
            name: Name of the list.
            below: Each number must be smaller than this.

        Raises:
            ValueError: If it is missing or not such a list.
        """
        value = self.get(name)
        is_list = isinstance(value, list) and len(value) <= LARGEST_LIST
        if not is_list or not all(type(number) is int for number in value):
            raise ValueError(
                f"{self.path(name)} must be whole numbers, got {BRIEF.repr(value)}: correct it"
            )
        strange = [number for number in value if not 0 <= number < below]
        strange += [number for number in set(value) if value.count(number) > 1]
        if strange:
            raise ValueError(
                f"{self.path(name)} must be different numbers from 0 to {below - 1}, "
                f"got {BRIEF.repr(strange)}: correct it"
            )
        return tuple(value)

    def names(self, name: str) -> tuple[str, ...]:
        """Return a list of different names.

        Raises:
            ValueError: If it is missing or not such a list.
        """
        value = self.get(name)
        is_list = isinstance(value, list) and len(value) <= LARGEST_LIST
        if not is_list or not all(isinstance(each, str) for each in value):
            raise ValueError(
                f"{self.path(name)} must be names, got {BRIEF.repr(value)}: correct it"
            )
        if len(set(value)) != len(value):
            raise ValueError(
                f"{self.path(name)} has a name twice: {shorten(', '.join(value), 200)}: correct it"
            )
        return tuple(value)


def _check_real(name: str, value: object) -> None:
    # A bool is a number for Python, and none in a file.
    if isinstance(value, bool):
        raise ValueError(f"{name} must be a number, got {value}: correct it")
    check_number(name, value)


def read_yaml(file: Path) -> Tree:
    """Read a YAML file of plain values.

    Tags of Python, as Isaac Lab writes them for slices and tuples, are read as the lists and texts
    that they mark: no object is made.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is too large, or not YAML with a mapping.
    """
    import yaml

    class PlainLoader(yaml.SafeLoader):
        """Loader that reads tagged values without their tags."""

    PlainLoader.add_multi_constructor("tag:yaml.org,2002:python/", _without_tag)
    if not file.is_file():
        raise FileNotFoundError(f"--contract must name a file, and there is none at {str(file)!r}")
    if file.stat().st_size > LARGEST_FILE:
        raise ValueError(
            f"{str(file)!r} has {file.stat().st_size} bytes, and a description of a policy at most "
            f"{LARGEST_FILE}: name the YAML file, not the network"
        )
    try:
        tree = yaml.load(file.read_text(encoding="utf-8"), PlainLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        reason = shorten(" ".join(str(error).split()), 200)
        raise ValueError(f"{str(file)!r} is not a YAML file: {reason}; name another") from error
    if not isinstance(tree, dict) or not all(isinstance(name, str) for name in tree):
        raise ValueError(
            f"{str(file)!r} must be a YAML file of names and values: name another file"
        )
    return tree


def _without_tag(loader: Any, suffix: str, node: Any) -> object:
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    return loader.construct_scalar(node)


def rounded(numbers: Sequence[float]) -> list[float]:
    """Return numbers as they are written to a YAML file, with seven digits.

    Float32, in which loops compute, has no more.
    """
    return [float(f"{number:.7g}") for number in numbers]


def write_yaml(file: Path, tree: Tree, comment: str) -> None:
    """Write a YAML file.

    Args:
        file: File to write.
        tree: Plain values.
        comment: First line of the file.
    """
    import yaml

    class PlainDumper(yaml.SafeDumper):
        """Writes a list that occurs twice in full each time, instead of as a YAML alias."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    text = yaml.dump(tree, Dumper=PlainDumper, default_flow_style=None, sort_keys=False, width=100)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# {comment}\n{text}", encoding="utf-8")
