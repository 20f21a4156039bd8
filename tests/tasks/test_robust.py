"""Rough ground under harsh conditions: each change separately, undone by the documented options, on any robot."""

from ast import literal_eval
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from legged_envs.envs import make_core
from legged_envs.envs.cfg import TaskCfg
from legged_envs.evaluation.conditions import evaluation_cfg
from legged_envs.evaluation.metrics.terrain import TerrainMetrics
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.robust import CHANGES, robust
from legged_envs.tasks.rough import anymal_c_rough, g1_rough, go2_blind
from legged_envs.tasks.velocity import go2_flat

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "rough-ground.md"


def documented() -> dict[str, list[tuple[str, Any]]]:
    """Options of the page that take each change back: paths and values by the name of the change."""
    options = {}
    for line in PAGE.read_text().splitlines():
        name, _, words = (cell.strip(" `") for cell in f"{line}|||".split("|")[1:4])
        if name in CHANGES:
            pairs = (option.strip(" `").split(" ", 1) for option in words.split(";"))
            options[name] = [(path, literal_eval(value)) for path, value in pairs]
    return options


def value_at(cfg: object, path: str) -> Any:
    """The value at a path; None if the task does not have the term."""
    for part in path.split("."):
        cfg = cfg.get(part) if isinstance(cfg, dict) else getattr(cfg, part, None)
    return cfg


def test_all_changes_can_be_taken_back_by_options() -> None:
    assert set(documented()) == set(CHANGES)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_what_the_options_take_back_and_nothing_else(name: str) -> None:
    before = go2_blind()
    alone = robust(go2_blind(), [name])
    options = documented()[name]
    for path, value in options:
        # Terms that the task before does not have are switched off by a 0 or an empty value.
        assert value_at(before, path) in (value, None) or not value
        assert value_at(alone, path) != value
    back = alone.with_changes(dict(options))
    for path in (path for other, pairs in documented().items() for path, _ in pairs):
        expected = value_at(before, path)
        if expected is not None:
            assert value_at(back, path) == pytest.approx(expected), path


def test_the_task_has_all_changes() -> None:
    cfg = make_task_cfg("Legged/Go2-Robust-v0")
    assert cfg == robust(go2_blind())
    for name in CHANGES:
        assert cfg != robust(go2_blind(), [other for other in CHANGES if other != name])


@pytest.mark.parametrize("rough", [anymal_c_rough, g1_rough])
def test_any_robot_on_rough_ground_can_have_it(rough: Callable[[], TaskCfg]) -> None:
    cfg = robust(rough())
    before = rough()
    for kind, steps in cfg.scene.terrain.kinds.items():
        if "stairs" in kind:
            highest = before.scene.terrain.kinds[kind].params.get("height", (0.05, 0.2))[1]
            assert steps.params["height"][1] == pytest.approx(1.25 * highest, abs=1e-3)
    core = make_core(cfg, 16, array="torch")
    core.reset(seed=0)
    for _ in range(3):
        _, reward, *_ = core.step(torch.zeros(16, core.actions.size))
    assert reward.isfinite().all()
    core.close()


def test_an_evaluation_starts_no_robot_elsewhere_and_keeps_its_command() -> None:
    cfg = evaluation_cfg(make_task_cfg("Legged/Go2-Robust-v0"))
    assert "drop" not in cfg.events
    velocity = cfg.commands["velocity"]
    assert velocity.kind_ranges == {} and velocity.resampling_time_s[0] > 1000.0


def test_what_cannot_be_made_harsher_is_named() -> None:
    with pytest.raises(ValueError, match=r"'slopes'.*stairs"):
        robust(go2_blind(), ["slopes"])
    with pytest.raises(ValueError, match=r"'go2' is on a plane"):
        robust(go2_flat())


def test_all_robots_of_an_evaluation_walk_straight_on() -> None:
    """Half of the robots of the training keep a drawn turn, and would walk in circles."""
    cfg = make_task_cfg("Legged/Go2-Robust-v0")
    assert cfg.commands["velocity"].heading_fraction == 0.5
    evaluated, _ = TerrainMetrics.task(cfg, 8)
    assert evaluated.commands["velocity"].heading_fraction == 1.0
