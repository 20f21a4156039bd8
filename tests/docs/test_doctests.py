"""The examples in the docstrings of the wrappers run and print their documented output."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import legged_envs.wrappers

LIBRARIES = {"sb3", "skrl", "rl_games", "rsl_rl", "omnisafe", "pettingzoo"}
MODULES = sorted(
    {module.name for module in pkgutil.iter_modules(legged_envs.wrappers.__path__)} - LIBRARIES
)
WITH_EXAMPLES = {
    *(
        "action_repeat",
        "action_scale",
        "auto_reset",
        "cost_normalize",
        "cost_reduce",
        "episode_statistics",
    ),
    *(
        "from_cmdp",
        "obs_normalize",
        "reward_normalize",
        "time_limit",
        "to_numpy",
        "to_torch",
        "unsqueeze",
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_print_what_they_say(name):
    module = importlib.import_module(f"legged_envs.wrappers.{name}")
    failed, attempted = doctest.testmod(
        module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert failed == 0
    assert attempted > 0 or name not in WITH_EXAMPLES
