"""Checks that the code can be read: its density, line by line, and one docstring per attribute.

    python -m tools.readability

A syntax node is an expression or a statement of Python's own parser. Code that people hold up as a
model has 4.5 (Gymnasium) to 6.7 (CleanRL) nodes per line of code. The figures find places to look
at; whether a reader understands a line is for a reader to say. The exit status is 1 if a limit is
exceeded.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDERS = ("legged_envs", "wrappers")
"""Folders that are checked."""
MAX_NODES_PER_LINE = 6.0
"""Limit of syntax nodes per line of code, over all folders."""
MAX_NODES_PER_LINE_OF_A_FILE = 7.0
"""Limit of syntax nodes per line of code of one file."""
MIN_LINES_OF_A_FILE = 40
"""Lines of code from which on the limit of a file applies; short files vary too much."""
MAX_LINES_OF_A_FILE = 430
"""Limit of all lines of a file."""
MAX_LINES_OF_A_FUNCTION = 60
"""Limit of the lines of a function without its docstring."""
MAX_LINE_LENGTH = 100
"""Limit of the characters of a line of code."""
MAX_TUPLE_ASSIGNMENTS = 5.0
"""Limit of assignments ``a, b = x, y`` per 1,000 lines of code."""
MAX_WALRUS = 1.0
"""Limit of ``:=`` per 1,000 lines of code."""
MAX_ANY = 25.0
"""Limit of the name ``Any`` per 1,000 lines of code."""
SECTIONS = ("Args", "Returns", "Yields", "Raises", "Examples")
"""Titles of the sections of a docstring in Google's form."""
NOT_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
"""Tokens that do not make a line a line of code."""


@dataclass
class Figures:
    """Counts of a file, or of several files."""

    lines: int = 0
    """Lines of code, without blank lines, comments and docstrings."""
    nodes: int = 0
    """Expressions and statements."""
    comments: int = 0
    """Lines with a comment."""
    tuple_assignments: int = 0
    """Assignments ``a, b = x, y``."""
    walrus: int = 0
    """Uses of ``:=``."""
    any_types: int = 0
    """Uses of the name ``Any``."""
    problems: list[str] = field(default_factory=list)
    """Places that exceed a limit."""

    def add(self, other: "Figures") -> None:
        """Add the figures of another file."""
        self.lines += other.lines
        self.nodes += other.nodes
        self.comments += other.comments
        self.tuple_assignments += other.tuple_assignments
        self.walrus += other.walrus
        self.any_types += other.any_types
        self.problems += other.problems

    def per_line(self) -> float:
        """Return the syntax nodes per line of code."""
        return self.nodes / max(self.lines, 1)

    def per_thousand(self, count: int) -> float:
        """Return ``count`` per 1,000 lines of code."""
        return 1000.0 * count / max(self.lines, 1)


def is_docstring(node: ast.AST) -> bool:
    """Return True for a statement that is only a string."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_assignment(node: ast.AST) -> bool:
    """Return True for a statement that gives a name a value or a type."""
    return isinstance(node, (ast.Assign, ast.AnnAssign))


def statement_lists(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements that follow each other."""
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def shared_docstrings(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each docstring that stands under several assignments.

    Tools assign such a docstring only to the last assignment. A blank line separates assignments
    without a docstring from an assignment with a docstring.
    """
    for statements in statement_lists(tree):
        for index in range(1, len(statements)):
            if not is_docstring(statements[index]):
                continue
            documented = statements[index - 1]
            if isinstance(documented, ast.Assign) and _assigns_several(documented):
                yield statements[index].lineno
            if index < 2 or not is_assignment(documented):
                continue
            above = statements[index - 2]
            if is_assignment(above) and above.end_lineno == documented.lineno - 1:
                yield statements[index].lineno


def repeated_sections(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and title of each section that a docstring has more than once."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        text = (ast.get_docstring(node) or "").splitlines()
        for title in SECTIONS:
            if text.count(f"{title}:") > 1:
                yield node.lineno, title


def _assigns_several(assignment: ast.Assign) -> bool:
    return len(assignment.targets) > 1 or isinstance(assignment.targets[0], ast.Tuple)


def code_lines(source: str, tree: ast.AST) -> tuple[set[int], int]:
    """Return the numbers of the lines of code, and how many lines have a comment."""
    lines: set[int] = set()
    comments = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments += 1
        elif token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if is_docstring(node):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))  # type: ignore[attr-defined]
    return lines, comments


def measure(path: Path) -> Figures:
    """Count in a file, and find places that exceed a limit."""
    source = path.read_text()
    tree = ast.parse(source)
    lines, comments = code_lines(source, tree)
    figures = Figures(lines=len(lines), comments=comments)
    for node in ast.walk(tree):
        _count(node, figures)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = _length(node)
            if length > MAX_LINES_OF_A_FUNCTION:
                figures.problems.append(
                    f"{path}:{node.lineno}: {node.name} has {length} lines, "
                    f"at most {MAX_LINES_OF_A_FUNCTION} are allowed"
                )
    for line in shared_docstrings(tree):
        figures.problems.append(f"{path}:{line}: a docstring under several assignments")
    for line, title in repeated_sections(tree):
        figures.problems.append(f"{path}:{line}: a docstring with {title} more than once")
    _check_file(path, source.splitlines(), lines, figures)
    return figures


def _count(node: ast.AST, figures: Figures) -> None:
    if is_docstring(node):
        return
    if isinstance(node, (ast.expr, ast.stmt)):
        figures.nodes += 1
    if isinstance(node, ast.NamedExpr):
        figures.walrus += 1
    if isinstance(node, ast.Name) and node.id == "Any":
        figures.any_types += 1
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
        unpacks = any(isinstance(target, ast.Tuple) for target in node.targets)
        figures.tuple_assignments += int(unpacks)


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function's body without its docstring."""
    first = function.body[0]
    if is_docstring(first):
        if len(function.body) == 1:
            return 0
        first = function.body[1]
    return (function.end_lineno or 0) - first.lineno + 1


def _check_file(path: Path, text: list[str], lines: set[int], figures: Figures) -> None:
    if len(text) > MAX_LINES_OF_A_FILE:
        figures.problems.append(
            f"{path}: {len(text)} lines, at most {MAX_LINES_OF_A_FILE} are allowed"
        )
    for line in sorted(lines):
        if len(text[line - 1]) > MAX_LINE_LENGTH:
            figures.problems.append(f"{path}:{line}: longer than {MAX_LINE_LENGTH} characters")
    is_dense = figures.per_line() > MAX_NODES_PER_LINE_OF_A_FILE
    if is_dense and len(lines) >= MIN_LINES_OF_A_FILE:
        figures.problems.append(
            f"{path}: {figures.per_line():.2f} nodes per line, "
            f"at most {MAX_NODES_PER_LINE_OF_A_FILE} are allowed"
        )


def room_of(path: Path) -> str:
    """Return the folder that a file is counted in."""
    parts = path.parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def python_files() -> Iterator[Path]:
    """Yield the files of :data:`FOLDERS`, each once: ``legged_envs/wrappers`` is a link."""
    for folder in FOLDERS:
        for path in sorted(Path(folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                yield path


def check_totals(total: Figures) -> list[str]:
    """Return the limits of the whole package that are exceeded."""
    problems = []
    limits = {
        "syntax nodes per line": (total.per_line(), MAX_NODES_PER_LINE),
        "tuple assignments per 1,000 lines": (
            total.per_thousand(total.tuple_assignments),
            MAX_TUPLE_ASSIGNMENTS,
        ),
        "walrus per 1,000 lines": (total.per_thousand(total.walrus), MAX_WALRUS),
        "Any per 1,000 lines": (total.per_thousand(total.any_types), MAX_ANY),
    }
    for name, (value, limit) in limits.items():
        if value > limit:
            problems.append(f"{name}: {value:.2f}, at most {limit} are allowed")
    return problems


def main() -> None:
    """Print a row per room, and the problems; exit with status 1 if there are any."""
    rooms: dict[str, Figures] = {}
    total = Figures()
    for path in python_files():
        figures = measure(path)
        rooms.setdefault(room_of(path), Figures()).add(figures)
        total.add(figures)
    print(f"{'room':28} {'lines':>6} {'nodes/line':>10} {'a,b=':>6} {':=':>5} {'Any':>6} {'#':>6}")
    for name, figures in [*sorted(rooms.items()), ("all", total)]:
        print(
            f"{name:28} {figures.lines:6d} {figures.per_line():10.2f} "
            f"{figures.per_thousand(figures.tuple_assignments):6.1f} "
            f"{figures.per_thousand(figures.walrus):5.1f} "
            f"{figures.per_thousand(figures.any_types):6.1f} "
            f"{figures.per_thousand(figures.comments):6.1f}"
        )
    problems = total.problems + check_totals(total)
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
