"""Policies with a memory: cells, trajectories, deployed networks, and what resets a memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

from legged_envs.evaluation.plain_loop import PlainLoop
from legged_envs.policy.memory import RememberingNetwork
from legged_envs.policy.policy import load_policy, save_policy
from legged_envs.robots import GO2 as ROBOT
from legged_envs.sim import SimCfg
from legged_envs.training.options import TrainCfg
from legged_envs.training.prepare import prepare
from legged_envs.training.scheme_options import LSTMCfg
from legged_envs.training.schemes.lstm import RecurrentPPO
from legged_envs.training.schemes.recurrent import MemoryActor, cell_step
from legged_envs.training.trainer import Trainer

GO2 = "Legged/Go2-Flat-v0"
NUM_ENVS = 8
CELLS: tuple[Literal["lstm", "gru"], ...] = ("lstm", "gru")
SMALL = LSTMCfg(steps_per_env=6, epochs=2, mini_batches=2, hidden=(16,), memory=12)


def trainer_of(algo: LSTMCfg = SMALL, folder: Path | None = None) -> Trainer:
    cfg = TrainCfg(GO2, num_envs=NUM_ENVS, run_dir=folder, iterations=9, video=False, algo=algo)
    return Trainer(prepare(cfg), Console(quiet=True))


def iterate(trainer: Trainer, times: int) -> Trainer:
    for _ in range(times):
        trainer.set_schedule()
        trainer.iterate()
    return trainer


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_step_of_a_cell_is_that_of_pytorch(kind: Any) -> None:
    layer = kind(5, 3).double()
    inputs = torch.randn(4, 7, 5, dtype=torch.float64)
    parts = 2 if kind is nn.LSTM else 1
    state = tuple(torch.randn(7, 3, dtype=torch.float64) for _ in range(parts))
    before = tuple(part.unsqueeze(0) for part in state)
    expected, _ = layer(inputs, before if parts == 2 else before[0])
    for step in range(4):
        state = cell_step(layer, inputs[step], state)
        torch.testing.assert_close(state[0], expected[step])


@pytest.mark.parametrize("cell", CELLS)
def test_the_update_sees_the_actions_of_the_rollout_although_episodes_ended_in_it(
    cell: Literal["lstm", "gru"],
) -> None:
    trainer = trainer_of(replace(SMALL, cell=cell))
    algorithm = trainer.algorithm
    assert isinstance(algorithm, RecurrentPPO)
    # The first rollout leaves a memory; in the second one two episodes end.
    iterate(trainer, 1)
    with torch.inference_mode():
        for step in range(6):
            observation = trainer.env.get_observations()
            if step == 2:
                buffer = trainer.env.episode_length_buf.clone()
                buffer[:2] = trainer.env.max_episode_length - 1
                trainer.env.episode_length_buf = buffer
            outcome = trainer.env.step(algorithm.act(observation))
            algorithm.process_env_step(*outcome)
        algorithm.compute_returns(trainer.env.get_observations())
    assert algorithm.storage.dones[2, :2].all()
    rows = 0
    for batch in algorithm._draw():
        actor_seen, _ = algorithm._normalized(batch)
        mean = algorithm.actor.evaluate(*actor_seen)
        torch.testing.assert_close(mean, batch.action_mean, rtol=1e-4, atol=1e-5)
        rows += len(mean)
    assert rows == 6 * NUM_ENVS


def test_an_episode_starts_with_an_empty_memory_and_the_others_go_on() -> None:
    actor = MemoryActor(SMALL, 5, torch.ones(2), 3)
    actor(torch.randn(3, 5))
    before = actor.memory.clone()
    actor.forget(torch.tensor([False, True, False]))
    assert (actor.memory[:, 1] == 0.0).all()
    torch.testing.assert_close(actor.memory[:, [0, 2]], before[:, [0, 2]])


def test_gradients_go_back_through_time() -> None:
    actor = MemoryActor(SMALL, 5, torch.ones(2), 3)
    observations = torch.randn(4, 5, requires_grad=True)
    masks = torch.ones(4, 1, dtype=torch.bool)
    state = (torch.zeros(1, 1, 12), torch.zeros(1, 1, 12))
    actor.evaluate(observations, masks, *state)[-1].sum().backward()
    gradient = observations.grad
    assert gradient is not None and (gradient[0] != 0.0).any()


@pytest.mark.parametrize("cell", CELLS)
def test_the_file_acts_as_the_actor_and_forgets_at_a_reset(
    cell: Literal["lstm", "gru"], tmp_path: Path
) -> None:
    trainer = iterate(trainer_of(replace(SMALL, cell=cell), tmp_path), 1)
    trainer.export()
    policy = load_policy(tmp_path)
    parts = {"h": 12, "c": 12} if cell == "lstm" else {"h": 12}
    assert policy.contract["memory"] == parts
    actor = trainer.algorithm.actor
    actor.memory = torch.zeros_like(actor.memory)
    observations = torch.randn(3, NUM_ENVS, 45)
    with torch.no_grad():
        expected = [actor(observation) for observation in observations]
    for observation, action in zip(observations, expected, strict=True):
        torch.testing.assert_close(policy(observation), action)
    ended = torch.zeros(NUM_ENVS, dtype=torch.bool)
    ended[3] = True
    policy.reset(ended)
    actor.forget(ended)
    with torch.no_grad():
        torch.testing.assert_close(policy(observations[0]), actor(observations[0]))
    policy.reset()
    torch.testing.assert_close(policy(observations[0]), expected[0])
    # Another number of robots begins anew.
    torch.testing.assert_close(policy(observations[0, :2]), expected[0][:2])


@pytest.mark.parametrize("cell", CELLS)
def test_a_plain_loop_that_starts_again_has_forgotten(
    cell: Literal["lstm", "gru"], tmp_path: Path
) -> None:
    trainer = iterate(trainer_of(replace(SMALL, cell=cell), tmp_path), 1)
    trainer.export()
    loop = PlainLoop(tmp_path / "policy.onnx", ROBOT, SimCfg())
    pose = np.array([[0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0]])
    state = {
        "root": pose,
        "twist": np.zeros((1, 6)),
        "joints": loop.default_joint_pos[None],
        "joint_vel": np.zeros((1, 12)),
    }
    runs = []
    for _ in range(2):
        loop.start(state, np.array([[1.0, 0.0, 0.0]]), np.zeros(1))
        loop.step()
        loop.step()
        runs.append(loop.action)
    np.testing.assert_array_equal(runs[1], runs[0])


def test_a_resumed_run_is_the_run_that_never_stopped(
    tmp_path: Path, assert_same: Callable[..., None]
) -> None:
    whole = iterate(trainer_of(folder=tmp_path), 3)
    iterate(trainer_of(folder=tmp_path), 2).save()
    resumed = iterate(Trainer(prepare(TrainCfg(GO2, resume=tmp_path)), Console(quiet=True)), 1)
    assert_same(whole.algorithm.save(), resumed.algorithm.save())


def test_whole_rollouts_are_not_cut_into_more_batches_than_there_are_robots() -> None:
    with pytest.raises(ValueError, match=r"--mini-batches must be at most num_envs = 8.*got 9"):
        trainer_of(replace(SMALL, mini_batches=9))


@pytest.mark.parametrize("size", [0, 12.0, "12", 10**9])
def test_a_memory_of_a_strange_size_is_refused(size: Any, tmp_path: Path) -> None:
    network = MemoryActor(SMALL, 5, torch.ones(2), 3).as_jit()
    terms = [{"name": "command", "size": 5, "scale": 1.0}]
    contract = {"inputs": {"policy": terms}, "memory": {"h": size, "c": 12}}
    save_policy(tmp_path / "policy.safetensors", network, contract)
    with pytest.raises(ValueError, match="memory 'h'"):
        load_policy(tmp_path)


def test_a_network_that_remembers_is_reset_outside_of_inference_mode() -> None:
    network = RememberingNetwork(lambda x, h: (x + h, h + 1.0), {"h": 1})
    with torch.inference_mode():
        network(torch.zeros(2, 1))
    network.reset(torch.tensor([True, False]))
    torch.testing.assert_close(network(torch.zeros(2, 1)), torch.tensor([[0.0], [1.0]]))
