"""Two Go2 that carry a beam: the scene, observations and commands of each, and ends of episodes."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch

from legged_envs.evaluation.conditions import EVALUATION_ENV_OPTIONS, evaluation_cfg
from legged_envs.tasks import make_task_cfg
from legged_envs.tasks.go2_pair import APART, BEAM, beam_and_partner

ID = "Legged/Go2-Pair-v0"


def make(num_envs: int = 3, **changes):
    cfg = evaluation_cfg(make_task_cfg(ID))
    envs = gym.make_vec(ID, num_envs=num_envs, cfg=cfg, **{**EVALUATION_ENV_OPTIONS, **changes})
    envs.reset(seed=0)
    return envs, envs.unwrapped.task.user


def matrix(quat: torch.Tensor) -> np.ndarray:
    w, x, y, z = quat.double().numpy()
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def wander(envs, steps: int, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        envs.step(0.6 * (torch.rand(64, 24, generator=generator)[: envs.num_envs] - 0.5))


def test_a_pair_that_stands_holds_the_beam_for_ten_seconds():
    envs, task = make(4)
    for _ in range(500):
        _, _, _, _, info = envs.step(torch.zeros(4, 24))
    assert not info["agent_terminated"].any()
    force = task.sim.objects["beam"].contact_force_w
    torch.testing.assert_close(force[:, 2], torch.full((4,), 2.5 * 9.81), rtol=0.1, atol=0.0)
    assert (task.beam_height() > 0.25).all()
    envs.close()


def test_agents_see_beam_and_partner_in_their_own_base_frames():
    envs, task = make()
    wander(envs, 20)
    sim = task.sim
    bodies = {"left": sim, "right": sim.robots["right"], "beam": sim.objects["beam"]}
    for agent, partner, side in (("left", "right", 1.0), ("right", "left", -1.0)):
        seen = beam_and_partner(task.carriers[agent]).unflatten(1, (8, 3))
        for i in range(3):
            base, place = (
                matrix(bodies[agent].root_quat_w[i]).T,
                bodies[agent].root_pos_w[i].double().numpy(),
            )
            beam, other = bodies["beam"], bodies[partner]
            turned, ahead = matrix(beam.root_quat_w[i]), matrix(other.root_quat_w[i])[:, 0]
            vectors = (
                base @ (beam.root_pos_w[i].double().numpy() - place)
                - (0.06, -side * APART / 2, 0.085),
                base @ (other.root_pos_w[i].double().numpy() - place) - (0.0, -side * APART, 0.0),
                base @ beam.root_lin_vel_w[i].double().numpy(),
                base @ turned @ beam.root_ang_vel_b[i].double().numpy(),
                base @ other.root_lin_vel_w[i].double().numpy(),
                *(base @ turned[:, axis] for axis in (0, 1)),
                base @ ahead,
            )
            np.testing.assert_allclose(seen[i].numpy(), np.stack(vectors), atol=2e-5)
        corners = [
            matrix(bodies["beam"].root_quat_w[0])[2] @ (np.array(signs) * BEAM)
            for signs in itertools.product((1, -1), repeat=3)
        ]
        lowest = min(corners) + bodies["beam"].root_pos_w[0, 2].item()
        assert task.beam_height()[0].item() == pytest.approx(lowest, abs=1e-5)
    envs.close()


def test_the_height_of_the_beam_is_above_the_ground():
    envs, task = make(2)
    above_plane = task.beam_height()
    slope = SimpleNamespace(height=lambda x, y: 0.3 + 0.1 * x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task.sim, "ground", slope)
        above_slope = task.beam_height()
    x = task.sim.objects["beam"].root_pos_w[:, 0]
    torch.testing.assert_close(above_slope, above_plane - 0.3 - 0.1 * x)
    envs.close()


def test_each_is_asked_for_the_velocity_of_its_place_in_a_rigid_pair():
    envs, task = make()
    vx, vy, wz = task.commands["velocity"].unbind(1)
    for agent, y in (("left", 0.35), ("right", -0.35)):
        own = task.carriers[agent].commands["velocity"]
        torch.testing.assert_close(own, torch.stack((vx - wz * y, vy, wz), 1))  # v + ω × r
    observation = task.split(task.core.last_observation["policy"], task.observation_spaces)
    for agent in ("left", "right"):
        torch.testing.assert_close(
            observation[agent][:, :3], task.carriers[agent].commands["velocity"]
        )
    envs.close()


def test_events_and_actions_reach_each_robot_on_its_own():
    envs, task = make()
    left, right = task.sim, task.sim.robots["right"]
    for name in ("friction", "body_mass", "kp"):
        assert not torch.equal(left.get_parameter(name), right.get_parameter(name))
    torch.testing.assert_close(left.root_pos_w[:, :2], torch.tensor([[0.0, 0.35]]).expand(3, 2))
    torch.testing.assert_close(right.root_pos_w[:, :2], torch.tensor([[0.0, -0.35]]).expand(3, 2))
    actions = torch.zeros(3, 24)
    actions[:, 12] = 1.0
    still = right.joint_pos.clone()
    envs.step(actions)
    assert (right.joint_pos[:, 0] - still[:, 0] > 0.03).all() and (
        left.joint_pos[:, 0].abs() < 0.1
    ).all()
    assert torch.equal(task.carriers["right"].actions.current[:, 0], torch.ones(3))
    envs.close()


def put(body, env_id: int, pos, quat=(1.0, 0.0, 0.0, 0.0)) -> None:
    body.write_root_state(
        torch.tensor([env_id]), torch.tensor([pos]), torch.tensor([quat]), *torch.zeros(2, 1, 3)
    )


def test_who_falls_ends_its_own_episode_and_a_beam_that_drops_ends_both():
    envs, task = make()
    put(task.sim, 1, (0.0, 0.35, 0.2), (0.0, 1.0, 0.0, 0.0))  # on its back
    put(task.sim.objects["beam"], 1, (3.0, 0.0, 3.0))
    put(task.sim.objects["beam"], 2, (3.0, 0.0, 0.1))
    ends = []
    for _ in range(60):
        observation, _, terminated, _, info = envs.step(torch.zeros(3, 24))
        ends.append(info["agent_terminated"].clone())
        if info["agent_terminated"][1].tolist() == [True, False]:
            over = observation["policy"][1]
            own = task.managers_of["right"]["rewards"].total[1]
            assert not terminated[1] and info["rewards"][1, 1] == own
            assert (over[69:] != 0.0).any()
    flags = torch.stack(ends)
    assert flags[0].tolist() == [[False] * 2, [False] * 2, [True] * 2]
    assert flags[12].tolist() == [[False] * 2, [True, False], [True] * 2]
    assert flags[-1].tolist() == [[False] * 2, [True] * 2, [True] * 2]
    assert (
        (over[:69] == 0.0).all()
        and info["rewards"][1:].abs().max() == 0.0
        and terminated.tolist() == [False, True, True]
    )
    assert info["costs"][2].abs().max() == 0.0
    envs.close()


def test_a_saved_state_a_masked_reset_and_num_envs_change_nothing_else(assert_same):
    envs, _ = make()
    one, _ = make(1)
    for each in (envs, one):
        wander(each, 25)
    state = envs.unwrapped.get_state()
    ends = []
    for _ in range(2):
        envs.unwrapped.set_state(state)
        envs.reset(options={"reset_mask": torch.tensor([False, True, False])})
        wander(envs, 10, seed=4)
        ends.append(envs.step(torch.zeros(3, 24)))
    assert_same(ends[0], ends[1])
    wander(one, 10, seed=4)
    assert_same([part[:1] for part in ends[0][1:4]], list(one.step(torch.zeros(1, 24))[1:4]))
    envs.close()
    one.close()


@pytest.mark.usefixtures("walking_evaluations")
def test_a_trained_pair_is_loaded_and_evaluated_against_a_pair_that_stands(tmp_path):
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "go2_pair_carry.py"))
    generator, saved, expected = torch.Generator().manual_seed(0), {}, []
    seen = torch.randn(5, 138, generator=generator)
    for agent, part in zip(("left", "right"), seen.split(69, 1), strict=True):
        net = torch.nn.Sequential(torch.nn.Linear(69, 8), torch.nn.ELU(), torch.nn.Linear(8, 12))
        mean, variance = (
            torch.randn(69, generator=generator).double(),
            torch.rand(69, generator=generator).double() + 0.5,
        )
        scaler = {
            "running_mean": mean,
            "running_variance": variance,
            "current_count": torch.ones(()).double(),
        }
        policy = {f"net.{name}": value for name, value in net.state_dict().items()} | {
            "log_std": torch.zeros(12)
        }
        saved[agent] = [policy, scaler]
        expected.append(net(((part - mean) / (variance.sqrt() + 1e-8)).clamp(-5.0, 5.0).float()))
    torch.save(saved, tmp_path / "policy.pt")
    torch.testing.assert_close(
        example["load"](tmp_path / "policy.pt")(seen), torch.cat(expected, 1)
    )
    result = example["carrying"](lambda joined: torch.zeros(len(joined), 24), episodes=4)
    assert result["carried"] == 1.0
    assert result["lin_vel_error"] == pytest.approx(result["standing_lin_vel_error"], abs=0.02)
    assert result["ang_vel_error"] == pytest.approx(result["standing_ang_vel_error"], abs=0.02)
