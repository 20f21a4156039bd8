"""MuJoCo's warnings leave no file in the working directory."""

from __future__ import annotations

import logging
from pathlib import Path

import mujoco
import pytest
import torch

from legged_envs.robots import GO2
from legged_envs.sim import SimCfg, make_simulation
from legged_envs.sim.warnings_log import keep_no_log_file


def test_a_simulation_that_explodes_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.INFO)
    sim = make_simulation("mujoco", GO2, SimCfg(num_threads=1), 2, "cpu")
    sim.batch.bind("qvel")[0] = 1e12
    for _ in range(3):
        sim.step(4)
    assert list(tmp_path.iterdir()) == []
    assert any("unstable" in record.message for record in caplog.records)
    assert torch.isfinite(sim.root_pos_w[1]).all()
    sim.close()


def test_the_handler_of_somebody_else_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = mujoco.get_mju_user_warning()
    mine = [].append
    mujoco.set_mju_user_warning(mine)
    keep_no_log_file()
    assert mujoco.get_mju_user_warning() is mine
    mujoco.set_mju_user_warning(before)
