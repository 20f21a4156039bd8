"""Expands a file of xacro in a separate process, in which the file's expressions only calculate.

    python -P xacro_process.py robot.urdf.xacro

xacro gives the expressions of a file to Python, which would let a stranger's file run anything.
Here, they can calculate with numbers, texts, lists and xacro's functions. Memory and time are
bounded. The URDF is written to standard output. If the file cannot be expanded, the status is 3 and
standard output has the reason.
"""

import ast
import sys
from typing import Any

FAILED = 3
"""Status of the process if the file cannot be expanded."""

MOST_MEMORY = 2**31
"""Largest memory of the process, bytes."""

MOST_TIME = 30
"""Largest computing time of the process, s."""

ALLOWED_NODES = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.Attribute),
    *(ast.Subscript, ast.Slice, ast.Call, ast.keyword, ast.Starred, ast.IfExp),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
    *(ast.List, ast.Tuple, ast.Dict, ast.Set),
    *(ast.ListComp, ast.DictComp, ast.SetComp, ast.comprehension),
)
"""Parts of Python that an expression can have. Functions and generators are not among them."""

FORBIDDEN_NAMES = frozenset({"vars", "type", "mro", "format", "format_map"})
"""Names that lead from a value to the insides of Python. Names that start with ``_`` do too."""


def check_expression(text: str) -> None:
    """Raise a ValueError if an expression does more than calculate."""
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        if not isinstance(node, ALLOWED_NODES):
            kind = type(node).__name__
            raise ValueError(f"the expression {text[:80]!r} has a {kind}, which could run code")
        for name in (getattr(node, "id", ""), getattr(node, "attr", "")):
            if name.startswith("_") or name in FORBIDDEN_NAMES:
                raise ValueError(f"the expression {text[:80]!r} uses {name!r}")


def limit_resources() -> None:
    """Bound the memory and the computing time of this process, where the system can do it."""
    try:
        import resource
    except ImportError:  # There is no such module on Windows.
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_TIME, MOST_TIME))


def refuse_eval(text: str, context: Any) -> str:
    """Refuse ``$(eval …)``, which gives a text to Python with all of its functions."""
    raise ValueError(f"$(eval {text[:80]}) could run code: write ${{…}} instead")


def expand(path: str) -> str:
    """Return the URDF to which xacro expands a file."""
    import xacro
    from xacro import substitution_args

    evaluate = xacro.safe_eval

    def evaluate_checked(text: str, *namespaces: Any) -> Any:
        check_expression(text)
        try:
            return evaluate(text, *namespaces)
        except MemoryError as error:
            raise ValueError(f"it needs more than {MOST_MEMORY:,} bytes of memory") from error

    # xacro has no option for this. This process does nothing else.
    xacro.safe_eval = evaluate_checked
    substitution_args._eval = refuse_eval
    text: str = xacro.process_file(path).toxml()
    return text


def main() -> None:
    """Expand the file that the command line names."""
    limit_resources()
    try:
        text = expand(sys.argv[1])
    except Exception as error:  # Of any kind: files call functions of xacro and packages of ROS.
        print(f"{type(error).__name__}: {error}")
        sys.exit(FAILED)
    sys.stdout.buffer.write(text.encode())


if __name__ == "__main__":
    main()
