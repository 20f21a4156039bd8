"""The registered task in the five other forms of ``examples/workflows``."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import legged_envs
from benchmarks.workflows import FORMS
from legged_envs.registration import TASKS

_CFGS: dict[str, Any] = {}


def register_form(form: str) -> str:
    """Register a form, whatever other tests have registered or forgotten. Returns its id."""
    if form not in _CFGS:
        name = f"go2_flat_{form}"
        importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(
            name
        )
        _CFGS[form] = TASKS[FORMS[form]]
    legged_envs.register(FORMS[form], _CFGS[form])
    return FORMS[form]
