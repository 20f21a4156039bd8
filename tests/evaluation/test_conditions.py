"""The task of an evaluation: without disturbances, and without curricula that would change it."""

from __future__ import annotations

import pytest
import torch

from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import evaluation_cfg
from legged_envs.evaluation.evaluator import Evaluator
from legged_envs.managers import CurriculumTermCfg
from legged_envs.mdp import curricula
from legged_envs.tasks import make_task_cfg

GO2 = "Legged/Go2-Flat-v0"


@pytest.fixture
def task() -> TaskCfg:
    """A Go2 whose pushes become stronger while it trains."""
    cfg = make_task_cfg(GO2)
    params = {"path": "events.push.params.velocity", "steps": (0, 1000), "values": (0.1, 1.0)}
    cfg.curriculum["pushes"] = CurriculumTermCfg(curricula.schedule, params)
    return cfg


def test_a_task_whose_curriculum_changes_pushes_is_evaluated(task: TaskCfg) -> None:
    made = evaluation_cfg(task)
    assert "push" in task.events and "push" not in made.events
    assert task.curriculum and not made.curriculum
    evaluator = Evaluator(GO2, task, episodes=2)
    evaluator.metrics.EPISODE_SECONDS = 0.1  # type: ignore[misc]
    # The standing robots of the second rollout begin with a reset, in which curricula act.
    result = evaluator.run(lambda observation: torch.zeros(2, 12))
    evaluator.close()
    assert result.falls == 0.0
