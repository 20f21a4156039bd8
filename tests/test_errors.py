"""Mistakes of the user are distinguished from defects of the code."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from legged_envs.checks import check_number, match_names
from legged_envs.configuration import Configuration
from legged_envs.errors import is_mistake, print_mistake
from legged_envs.tables import shorten


@dataclass
class Options(Configuration):
    size: int = 1


def error_of(call) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("there was no error")


@pytest.mark.parametrize(
    "call",
    [
        lambda: check_number("speed", "fast"),  # raised in several lines
        lambda: setattr(Options(), "colour", "red"),  # an AttributeError
        lambda: Path("/no/such/file").read_text(),
        lambda: __import__("no_such_module"),
    ],
)
def test_what_the_package_refuses_and_the_machine_lacks_is_a_mistake(call) -> None:
    assert is_mistake(error_of(call))


@pytest.mark.parametrize(
    "call",
    [
        lambda: shorten(None, 3),  # an AttributeError in a file of the package
        lambda: match_names("joint", "(", ["knee"]),  # an error that another package raises
        lambda: int("seven"),
    ],
)
def test_an_operation_that_fails_is_not_a_mistake(call) -> None:
    assert not is_mistake(error_of(call))


def test_an_error_that_another_package_raises_is_not_a_mistake() -> None:
    def fail() -> None:
        raise ValueError("by the user's own function")

    assert not is_mistake(error_of(fail))


def test_an_error_that_was_never_raised_is_a_mistake() -> None:
    assert is_mistake(ValueError("shown on a page"))


def test_a_script_prints_a_mistake_in_one_line_and_a_defect_with_its_traceback(capsys) -> None:
    mistake = error_of(lambda: check_number("speed", "fast"))
    print_mistake(type(mistake), mistake, mistake.__traceback__)
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1 and "'fast'" in printed
    for defect in (error_of(lambda: int("seven")), KeyboardInterrupt()):
        print_mistake(type(defect), defect, defect.__traceback__)
    printed = capsys.readouterr().err
    assert "Traceback" in printed and "KeyboardInterrupt" in printed


def test_an_integer_larger_than_any_float_is_no_finite_number() -> None:
    with pytest.raises(ValueError, match="speed must be a finite number"):
        check_number("speed", 10**400)
