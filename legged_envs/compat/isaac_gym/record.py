"""The base of the records of `isaacgym.gymapi`."""

import struct
from math import copysign, inf, isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Self

from legged_envs.checks import did_you_mean

LARGEST = 3.4028234663852886e38
"""Value that stands for infinity in Isaac Gym: the largest float32."""


def round_to_float32(value: float) -> float:
    """Return the float32 that is nearest to a value. Values beyond all float32 are infinite."""
    # This takes a fifth of the time of NumPy's float32, and scripts make many records.
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return copysign(inf, value)
    return rounded


class Record:
    """A set of named fields with default values. Values may be given in the order of the fields, or
    by name.

    A value for a float, such as a tensor of one element, is converted to a float. It is rounded to
    float32, as in Isaac Gym, where these fields are floats of C: 0.005 becomes
    0.004999999888241291. None stands for the default.

    Raises:
        AttributeError: If there is no such field.
        TypeError: If there are too many values, or a value is not the record that a field holds.
        ValueError: If a float is not finite.
    """

    FIELDS: ClassVar[dict[str, Any]]
    """Default of each field, by its name."""

    def __init__(self, *values: Any, **named: Any):
        if len(values) > len(self.FIELDS):
            raise TypeError(
                f"{type(self).__name__} has {len(self.FIELDS)} fields, got {len(values)} values"
            )
        given = dict(zip(self.FIELDS, values, strict=False))
        given.update(named)
        for name, default in self.FIELDS.items():
            if given.get(name) is None:
                # Records may be fields of records, so each gets a separate copy.
                given[name] = default.copy() if isinstance(default, Record) else default
        for name, value in given.items():
            setattr(self, name, value)

    def copy(self) -> Self:
        """Return a copy. The records that it holds are copied too."""
        other = type(self).__new__(type(self))
        for name in self.FIELDS:
            value = getattr(self, name)
            object.__setattr__(other, name, value.copy() if isinstance(value, Record) else value)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __setattr__(self, name: str, value: Any) -> None:
        record = type(self).__name__
        if name not in self.FIELDS:
            raise AttributeError(
                f"gymapi.{record} has no field {name!r}; "
                f"{did_you_mean(name, self.FIELDS)}it has: {', '.join(self.FIELDS)}"
            )
        expected = type(self.FIELDS[name])
        if expected is float:
            # Codebases write elements of tensors and NumPy scalars into records.
            number = float(value.item() if hasattr(value, "item") else value)
            value = round_to_float32(number)
            if not isfinite(value):
                raise ValueError(f"gymapi.{record}.{name} must be finite, got {number}")
        elif issubclass(expected, Record) and not isinstance(value, expected):
            raise TypeError(
                f"gymapi.{record}.{name} must be a gymapi.{expected.__name__}, got {value!r}"
            )
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({values})"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
