"""The configuration of a run in OmniIsaacGymEnvs' words."""

import copy
from dataclasses import fields
from typing import Any

from legged_envs.checks import check_spelling
from legged_envs.envs.cfg import TaskCfg
from legged_envs.sim import SimCfg

TASK_FIELDS = {field.name for field in fields(TaskCfg)} - {"sim"}
"""Fields of a ``TaskCfg`` that ``config["task"]`` may have."""
ENV_FIELDS = (
    "numEnvs",
    "episodeLength",
    "controlFrequencyInv",
    "clipObservations",
    "clipActions",
    "costLimits",
)
"""Fields of ``config["task"]["env"]`` that this package reads."""


class SimConfig:
    """The configuration of a run: a dict like OmniIsaacGymEnvs' YAML files, copied.

    ``config["task"]["env"]`` has ``numEnvs``, ``episodeLength`` in control steps,
    ``controlFrequencyInv`` in physics steps per control step, ``clipObservations``,
    ``clipActions``, ``costLimits`` as {name: limit}, and all other entries that the task reads.
    ``config["task"]["sim"]`` has the fields of :class:`~legged_envs.sim.SimCfg`, such as ``dt``
    in s. ``config["task"]`` may have any field of ``TaskCfg``: ``robot``, Go2 by default, and the
    terms of managers. ``sim_device`` and ``rl_device`` are torch devices.

    Args:
        config: The dict; None for defaults.

    Raises:
        ValueError: If a name in the task, its ``env`` or ``sim`` is nearly a known one, or a part
            of the task stands outside of it.
    """

    def __init__(self, config: dict[str, Any] | None = None):
        given = copy.deepcopy(dict(config or {}))
        defaults = {"headless": True, "seed": -1, "sim_device": "cpu"}

        self.config: dict[str, Any] = {**defaults, **given}
        """The whole configuration."""
        self.task_config: dict[str, Any] = {"env": {}, "sim": {}, **given.get("task", {})}
        """``config["task"]``."""
        self.config["task"] = self.task_config
        check_spelling("SimConfig: task", self.task_config, TASK_FIELDS)
        check_spelling("SimConfig: env", self.task_config["env"], ENV_FIELDS)
        check_spelling("SimConfig: sim", self.task_config["sim"], vars(SimCfg()))
        misplaced = (TASK_FIELDS | {"env", "sim"}) & self.config.keys()
        if misplaced:
            raise ValueError(
                f"SimConfig: config[{min(misplaced)!r}] has no effect. Move it to config['task']."
            )
