"""Completion of the command line in shells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Annotated

from tyro.conf import Positional, arg

from legged_envs.tasks import TASKS

SHELLS = ("bash", "zsh")
"""Shells that the script supports."""

SCRIPT = Template("""\
# Completion of legged-envs for bash and zsh: eval "$$(legged-envs completion)"
if [ -n "$$ZSH_VERSION" ]; then autoload -U +X compinit bashcompinit; compinit; bashcompinit; fi
_legged_envs() {
    local word="$${COMP_WORDS[COMP_CWORD]}" words
    case "$$COMP_CWORD:$${COMP_WORDS[1]}" in
        1:*) words="$verbs" ;;
$cases
    esac
    case "$$word" in
        -*) ;;
        *) [ "$$COMP_CWORD" -eq 2 ] && words="$tasks" ;;
    esac
    COMPREPLY=($$(compgen -W "$$words" -- "$$word"))
    # Complete file names where no option and no task matches.
    [ "$${#COMPREPLY[@]}" -eq 0 ] && COMPREPLY=($$(compgen -f -- "$$word"))
}
complete -F _legged_envs legged-envs
""")
"""Script for a shell, with the names of verbs, their options and the tasks to fill in."""


@dataclass
class CompletionCfg:
    """Options of `legged-envs completion`."""

    shell: Annotated[str, Positional, arg(metavar="[SHELL]")] = "bash"
    """Shell, bash or zsh. Both have the same script."""


def make_completion(options: Mapping[str, Sequence[str]]) -> str:
    """Return a script that completes commands, options and task ids in bash and zsh.

    Args:
        options: Names of the options of each command, by its name.
    """
    cases = []
    for name, names in options.items():
        cases.append(f'        *:{name}) words="{" ".join(names)}" ;;')
    return SCRIPT.substitute(verbs=" ".join(options), cases="\n".join(cases), tasks=" ".join(TASKS))
