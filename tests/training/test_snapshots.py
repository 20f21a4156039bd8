"""Policies that a running training writes into its run folder."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from legged_envs.policy.policy import load_policy, policy_file
from legged_envs.policy.snapshots import find_snapshots, snapshot_file
from legged_envs.training import snapshots
from legged_envs.training.options import PPOCfg, TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.trainer import Trainer

TASK = "Legged/Go2-Flat-v0"


def make_trainer(folder: Path) -> Trainer:
    ppo = PPOCfg(steps_per_env=4, epochs=1, mini_batches=2, hidden=(16,))
    cfg = TrainCfg(
        TASK, num_envs=8, run_dir=folder, algo=ppo, episodes=4, video=False, iterations=3
    )
    return Trainer(prepare(cfg), Console(quiet=True))


def test_a_training_writes_its_policies_and_stays_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = make_trainer(tmp_path / "plain")
    plain._make_updates(lambda *_: None)
    # One of an earlier run in the same folder.
    watched = make_trainer(tmp_path / "watched")
    old = snapshot_file(watched.run_dir, 900)
    old.parent.mkdir(parents=True)
    old.write_bytes(b"old")
    monkeypatch.setattr(snapshots, "SNAPSHOT_SECONDS", 0.0)
    monkeypatch.setattr(snapshots, "SNAPSHOT_GROWTH", 1.0)
    watched._make_updates(lambda *_: None)

    assert not find_snapshots(plain.run_dir)
    found = find_snapshots(watched.run_dir)
    assert list(found) == [1, 2, 3]
    # Without a finished policy, the run folder stands for the newest of them.
    assert policy_file(watched.run_dir) == found[3]
    observation = torch.linspace(-1.0, 1.0, 45)[None]
    actions = [load_policy(path)(observation) for path in found.values()]
    assert not torch.equal(actions[0], actions[1]) and not torch.equal(actions[1], actions[2])
    network = plain.algorithm.get_policy().as_jit()
    torch.testing.assert_close(actions[2], network(observation), atol=1e-6, rtol=0.0)
    watched.export()
    assert policy_file(watched.run_dir) == watched.run_dir / "policy.safetensors"
    finished = load_file(watched.run_dir / "policy.safetensors")
    for name, value in load_file(found[3]).items():
        assert torch.equal(value, finished[name])


def test_the_time_between_policies_grows_with_the_training(tmp_path: Path) -> None:
    trainer = SimpleNamespace(seconds=0.0, iteration=0, progress=0.5, run_dir=tmp_path)
    written = []
    kept = snapshots.Snapshots(trainer)
    kept.write = lambda: (  # type: ignore[method-assign]
        written.append(trainer.seconds),
        setattr(kept, "_written_at", trainer.seconds),
    )
    for second in range(10 * 3600):
        trainer.seconds = float(second)
        kept.write_if_due()
    assert written[:3] == [30.0, 60.0, 90.0]
    assert 70 < len(written) < 100
    assert max(later / earlier for earlier, later in pairwise(written[20:])) < 1.1


def test_other_files_and_links_out_of_the_run_are_no_policies(tmp_path: Path) -> None:
    run = tmp_path / "run"
    inside = snapshot_file(run, 7)
    inside.parent.mkdir(parents=True)
    inside.touch()
    (inside.parent / "policy_7b.safetensors").touch()
    (inside.parent / "policy_000008.safetensors.new").touch()
    outside = tmp_path / "other.safetensors"
    outside.touch()
    snapshot_file(run, 9).symlink_to(outside)
    assert find_snapshots(run) == {7: inside}
