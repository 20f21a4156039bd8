"""Entry point of the command `legged-envs`.

A mistake of the user is one line and exit status 2. PyTorch and MuJoCo are imported by the verbs
that need them, when they run: so help, and mistakes in options, take no seconds.
"""

import inspect
import io
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import tyro

from legged_envs import __version__
from legged_envs.checks import check_choice, check_known
from legged_envs.cli.bench import BenchCfg, bench
from legged_envs.cli.benchmark import benchmark
from legged_envs.cli.check import CheckCfg, check
from legged_envs.cli.compare import CompareCfg, compare
from legged_envs.cli.completion import SHELLS, CompletionCfg, make_completion
from legged_envs.cli.crosscheck import crosscheck
from legged_envs.cli.demo import DemoCfg, demo
from legged_envs.cli.evaluate import EvaluateCfg, evaluate
from legged_envs.cli.export import ExportCfg, export
from legged_envs.cli.help_text import REGISTRY, shorten_help, wrap_help
from legged_envs.cli.list_tasks import ListCfg, list_tasks
from legged_envs.cli.motion import MotionCfg, motion
from legged_envs.cli.play import PlayCfg, play
from legged_envs.cli.record import record
from legged_envs.cli.report import ReportCfg, report
from legged_envs.cli.sweep import sweep
from legged_envs.cli.terrain import TerrainReportCfg, terrain
from legged_envs.cli.train import train
from legged_envs.cli.unknown_words import (
    GENERAL_OPTIONS,
    IMPORT_OPTION,
    all_option_names,
    check_foreign_options,
    check_repeated_options,
    explain_unknown_word,
)
from legged_envs.errors import is_mistake
from legged_envs.evaluation.crosscheck_options import CrosscheckCfg
from legged_envs.evaluation.record_options import RecordCfg
from legged_envs.runs.interruption import Terminated, raise_terminated
from legged_envs.safe_benchmark.options import BenchmarkCfg
from legged_envs.sweeps.options import SweepCfg
from legged_envs.system_checks import import_named
from legged_envs.tables import printable
from legged_envs.training.options import TrainCfg


@dataclass(frozen=True)
class Verb:
    """One verb of the command line, such as `train` in `legged-envs train`."""

    options: type[Any]
    """Dataclass of the options."""
    run: Callable[[Any], None]
    """Function that runs the verb with its options. Its docstring is the help text of the verb."""


def completion(cfg: CompletionCfg) -> None:
    """Print a script for tab completion in bash and zsh.

    It completes commands, options and task ids. Add this line to ~/.bashrc or ~/.zshrc:
    eval "$(legged-envs completion)"
    """
    check_choice("completion: SHELL", cfg.shell, SHELLS)
    names = {name: all_option_names(verb.options) for name, verb in VERBS.items()}
    print(make_completion(names), end="")


VERBS = {
    "list": Verb(ListCfg, list_tasks),
    "demo": Verb(DemoCfg, demo),
    "train": Verb(TrainCfg, train),
    "play": Verb(PlayCfg, play),
    "eval": Verb(EvaluateCfg, evaluate),
    "record": Verb(RecordCfg, record),
    "sweep": Verb(SweepCfg, sweep),
    "report": Verb(ReportCfg, report),
    "compare": Verb(CompareCfg, compare),
    "bench": Verb(BenchCfg, bench),
    "benchmark": Verb(BenchmarkCfg, benchmark),
    "crosscheck": Verb(CrosscheckCfg, crosscheck),
    "motion": Verb(MotionCfg, motion),
    "export": Verb(ExportCfg, export),
    "terrain": Verb(TerrainReportCfg, terrain),
    "check": Verb(CheckCfg, check),
    "completion": Verb(CompletionCfg, completion),
}
"""Name of a verb on the command line → its options and function."""

ALIASES = {"sim2sim": "crosscheck"}
"""Another name of a verb → the verb."""

# MuJoCo reads MUJOCO_GL when it is imported, which is in the middle of a verb. These lists let a
# wrong value be found before.
GL_BACKENDS = {"linux": ("egl", "osmesa", "glx"), "darwin": ("cgl",), "win32": ("wgl",)}
"""Values of MUJOCO_GL that MuJoCo takes on each system, in addition to those for all systems."""
GL_SWITCHES = ("enable", "enabled", "on", "true", "1", "disable", "disabled", "off", "false", "0")
"""Values of MUJOCO_GL that MuJoCo takes on all systems, in addition to glfw."""

ANSI_COLOR = re.compile(r"\x1b\[[0-9;]*m")
"""Escape codes that change the color of a terminal's text."""
BOX_DRAWING = re.compile("[\u2500-\u257f]")
"""Characters of the frames that tyro, the parser of options, draws around its errors."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command `legged-envs`.

    A mistake of the user, and anything that the machine lacks, is one line and exit status 2. With
    ``--traceback``, the traceback stands before that line. The status of an interruption is 130, of
    a pipe that its reader closed 141, of a termination by SIGTERM 143. In the first tenths of a
    second, in which modules are imported and nothing is written, they print no line. A defect of
    the code is raised.

    Args:
        arguments: The words after `legged-envs`. None: the arguments of this process.
    """
    # OpenMP threads that wait shall leave the cores to the physics after a short spin. The variable
    # is read only once, when PyTorch is loaded.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    if arguments is None:
        arguments = sys.argv[1:]
        # A task `module:Id` may be in the folder in which the command was given. Without one,
        # nothing is imported from there: the folder may be a stranger's.
        if IMPORT_OPTION in arguments or any(":" in word for word in arguments):
            sys.path.append(os.getcwd())
        # Without a handler, the process would end without a word.
        signal.signal(signal.SIGTERM, raise_terminated)
        warnings.formatwarning = format_warning
    # It may stand anywhere in the command, and is an option of no verb.
    words = [word for word in arguments if word != "--traceback"]
    try:
        words, modules = take_imports(words)
        for module in modules:
            import_named(module, f"{IMPORT_OPTION} {module}")
        call = parse(words, modules)
        # After the words are read: help needs no renderer.
        check_gl_backend()
        call()
        # A pipe that was closed is found here, and not when Python ends.
        sys.stdout.flush()
    except Terminated:
        stop("terminated", status=143)
    except KeyboardInterrupt:
        # 128 plus the number of the signal, as shells expect.
        stop("interrupted", status=130)
    except BrokenPipeError:
        # The reader of a pipe, such as head, has enough.
        leave_pipe()
    except Exception as error:
        if not is_mistake(error):
            # A defect keeps its traceback, which a report of it needs.
            raise
        if "--traceback" in arguments:
            traceback.print_exc()
        stop(f"error: {str(error) or type(error).__name__}", status=2)


def take_imports(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command without its options ``--import``, and the modules that they name.

    Raises:
        ValueError: If a module is missing.
    """
    kept = []
    modules = []
    remaining = iter(words)
    for word in remaining:
        if word != IMPORT_OPTION:
            kept.append(word)
            continue
        module = next(remaining, "")
        if not module or module.startswith("-"):
            raise ValueError(f"{IMPORT_OPTION} must name a module, got {module!r}")
        # A whole task may be named: its module registers it.
        modules.append(module.partition(":")[0])
    return kept, modules


def format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Return a warning as one line, without the place in the code that gives it."""
    return f"legged-envs: warning: {message}\n"


def stop(message: str, status: int) -> NoReturn:
    """Print a message as one line, and exit with a status."""
    # Errors of other packages have several lines. A log has one for each command.
    line = printable(" ".join(message.split()))
    # In one piece: processes of a training print at the same time, and torchrun has no buffers.
    sys.stderr.write(f"legged-envs: {line}\n")
    sys.exit(status)


def leave_pipe() -> NoReturn:
    """Exit after the reader of the output closed its pipe, without a message."""
    # Python flushes its output when it ends, which would fail and be reported.
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    # 128 plus the number of SIGPIPE, as shells expect.
    sys.exit(141)


def check_gl_backend() -> None:
    """Raise a ValueError if MuJoCo, when it is imported, would not take the value of MUJOCO_GL."""
    value = os.environ.get("MUJOCO_GL", "").lower().strip()
    if value:
        known = ("glfw", *GL_BACKENDS.get(sys.platform, ()), *GL_SWITCHES)
        check_known("MUJOCO_GL cannot be", [value], known, "it can be")


def parse(words: list[str], modules: Sequence[str] = ()) -> Callable[[], None]:
    """Return the call that a command line asks for.

    Args:
        words: The words after `legged-envs`, without ``--import``.
        modules: Modules that the options ``--import`` name.

    Raises:
        SystemExit: After the help of a verb was printed.
        ValueError: If the words are not a valid command.
    """
    if not words:
        raise ValueError(f"expected one of {', '.join(VERBS)} (legged-envs --help)")
    first = words[0]
    if first in ("-h", "--help"):
        # The call is returned and not made, so that reading a command line has no effect.
        return partial(print, make_help_text())
    if first == "--version":
        if len(words) > 1:
            raise ValueError(f"--version takes no other words, got {' '.join(words[1:])!r}")
        return partial(print, f"legged-envs {__version__}")
    if first.startswith("-"):
        check_known("unexpected", [first], GENERAL_OPTIONS, "options before a command")
    name = ALIASES.get(first, first)
    check_known("unknown command", [name], VERBS, "commands")
    verb = VERBS[name]
    options = parse_options(name, words[1:])
    if isinstance(options, TrainCfg):
        # The command that resumes a training, and each run of a sweep, import the modules again.
        options.imports = tuple(modules)
    return partial(verb.run, options)


def parse_options(name: str, words: list[str]) -> Any:
    """Return the options of a verb, as an object of their dataclass.

    Args:
        name: Name of the verb.
        words: The words after that name.

    Raises:
        SystemExit: After the help of the verb was printed.
        ValueError: If a word is not an option of the verb, an option is given twice, or its value
            is wrong or missing.
    """
    check_repeated_options(words)
    verb = VERBS[name]
    # Before tyro, which would only miss the task that follows such an option.
    check_foreign_options(words, verb.options)
    program = f"legged-envs {name}"
    help_text = io.StringIO()
    printed = io.StringIO()
    try:
        # tyro prints a help text or an error in a box, and exits.
        with redirect_stdout(help_text), redirect_stderr(printed):
            options, unknown_words = tyro.cli(
                verb.options,
                prog=program,
                description=inspect.getdoc(verb.run),
                args=words,
                # Options of the verb may also follow the name of an algorithm.
                config=(tyro.conf.CascadeSubcommandArgs,),
                # tyro does not know the options of the algorithms that were not chosen.
                return_unknown_args=True,
                registry=REGISTRY,
            )
    except SystemExit as exit_:
        if not exit_.code:
            print(wrap_help(shorten_help(help_text.getvalue())))
            raise
        raise ValueError(as_one_line(printed.getvalue())) from None
    if unknown_words:
        explanation = explain_unknown_word(unknown_words[0], verb.options)
        raise ValueError(f"{explanation} ({program} --help)")
    return options


def as_one_line(box: str) -> str:
    """Return the text of an error that tyro printed in a box of several lines."""
    text = BOX_DRAWING.sub(" ", ANSI_COLOR.sub("", box))
    # The first line is the title, which the second line repeats.
    _, _, message = text.strip().partition("\n")
    # An output without Unicode has dashes for the frames.
    words = [word for word in shorten_help(message).split() if word.strip("-")]
    return " ".join(words)


def make_help_text() -> str:
    """Return the text of `legged-envs --help`: the verbs, each with the first line of its help."""
    lines = [
        "usage: legged-envs [-h] [--version] COMMAND ...",
        "",
        "Legged robots as vectorized Gymnasium environments.",
        "",
        "commands (legged-envs COMMAND --help shows their options):",
    ]
    for name, verb in VERBS.items():
        summary = (inspect.getdoc(verb.run) or "").partition("\n")[0]
        # The longest verb, crosscheck, and two spaces.
        lines.append(f"  {name:<12}{summary}")
    for alias, name in ALIASES.items():
        lines.append(f"  {alias:<12}The same as {name}.")
    lines += [
        "",
        "options:",
        "  -h, --help    Show this text.",
        "  --version     Show the version.",
        f"  {IMPORT_OPTION} MODULE",
        "                After any command: import a module that registers tasks.",
        "  --traceback   After any command: show where an error comes from.",
    ]
    return "\n".join(lines)
