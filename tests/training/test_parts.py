"""Parts of PPO work in every task: constraints, style and novelty without motions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from legged_envs.training.learner.constraints import Constraints
from legged_envs.training.learner.lagrange import Lagrange
from legged_envs.training.learner.mirror import MirroredHalf
from legged_envs.training.learner.style_prior import StylePrior
from legged_envs.training.learner_options import AmpCfg, LagrangeCfg, RndCfg
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer

GO2 = "Legged/Go2-Flat-v0"
EVERYTHING = PPOCfg(
    steps_per_env=4,
    epochs=2,
    mini_batches=2,
    hidden=(16,),
    symmetry="batches",
    amp=AmpCfg(0.1, hidden=(16,)),
    rnd=RndCfg(0.1, hidden=(16,)),
    lagrange=LagrangeCfg(enabled=True, costs=("joint_torque", "foot_slip"), integral=0.3),
)


def trainer_of(folder: Path | None, algo: PPOCfg = EVERYTHING, **options: Any) -> Trainer:
    cfg = TrainCfg(GO2, num_envs=16, run_dir=folder, iterations=4, video=False, **options)
    return Trainer(prepare(replace(cfg, algo=algo)), Console(quiet=True))


def iterate(trainer: Trainer, times: int) -> Trainer:
    for _ in range(times):
        trainer.set_schedule()
        trainer.iterate()
    return trainer


def test_a_velocity_task_is_trained_with_every_part() -> None:
    trainer = trainer_of(None, clips=("trot",))
    kinds = [type(part) for part in trainer.algorithm.parts]
    assert kinds[:2] == [Constraints, MirroredHalf] and StylePrior in kinds
    row = trainer.iterate()
    assert {"loss_cost/joint_torque", "loss_style_reward", "loss_rnd_reward"} <= row.keys()
    assert "loss_free_cost/joint_torque" not in row  # there is nothing without a reference
    storage = trainer.algorithm.storage
    assert storage.cost_returns is not None and storage.cost_returns.shape == (4, 16, 2)


def test_a_resumed_run_with_every_part_is_the_run_that_never_stopped(
    tmp_path: Path, assert_same: Callable[..., None]
) -> None:
    # One after the other: trainers of one process share torch's random numbers.
    whole = iterate(trainer_of(tmp_path), 3)
    iterate(trainer_of(tmp_path), 2).save()
    cfg = TrainCfg(GO2, resume=tmp_path)
    resumed = iterate(Trainer(prepare(cfg), Console(quiet=True)), 1)
    assert_same(whole.algorithm.save(), resumed.algorithm.save())


def test_multipliers_without_motions_are_one_row_of_all_steps() -> None:
    options = LagrangeCfg(enabled=True, proportional=0.0, integral=0.1)
    cpu = torch.device("cpu")
    constraint = Lagrange(("one", "two"), (0.5, 0.01), 0.9, options, cpu, with_reference=False)
    costs = torch.tensor([1.0, 0.005]).expand(4, 3, 2)  # twice and half of the limit
    mean = constraint.ascend(constraint.scaled(costs), None)
    torch.testing.assert_close(mean, torch.tensor([[1.0, 0.005]]))
    torch.testing.assert_close(constraint.values, torch.tensor([[0.1, 0.0]]))
    report = constraint.report(mean)
    assert report["cost/one"] == pytest.approx(1.0) and report["multiplier/one"] > 0.0
    assert not any(name.startswith("free_") for name in report)
    advantages = torch.randn(4, 3, 1, dtype=torch.float64)
    of_costs = torch.randn(4, 3, 2, dtype=torch.float64)
    std = of_costs.flatten(0, 1).std(dim=0, correction=0)
    excess = (of_costs[..., 0] - of_costs[..., 0].mean()) / std[0].clamp(min=0.1)
    expected = (advantages[..., 0] - 0.1 * excess) / 1.1
    combined = advantages.float()
    constraint.combine_(combined, of_costs.float(), None)
    torch.testing.assert_close(combined[..., 0].double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"learner": "rsl_rl"}, r"--amp\.weight is for --learner legged_envs"),
        ({"amp": AmpCfg()}, {"learner": "rsl_rl"}, r"--rnd\.weight is for --learner legged_envs"),
        ({"lagrange": LagrangeCfg(enabled=True, costs=("heat",))}, {}, "no cost 'heat'"),
        ({"amp": AmpCfg()}, {"clips": ("trot",)}, r"--clips is for mimic tasks.*--amp"),
        ({}, {"clips": ("waltz",)}, "waltz"),
    ],
)
def test_what_does_not_fit_is_refused(
    changes: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        trainer_of(None, replace(EVERYTHING, **changes), **options)
