"""The adversarial motion prior: its states, its pairs and its published formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from chase import NETWORK
from tensordict import TensorDict

from legged_envs.envs import CoreVectorEnv, make_core
from legged_envs.envs.cfg import override
from legged_envs.managers import ObservationGroupCfg, ObservationTermCfg
from legged_envs.mdp import observations
from legged_envs.mdp.motion_command import motion_command
from legged_envs.motions import (
    Motion,
    MotionError,
    MotionLibrary,
    motion_from_coordinates,
    shipped_motions,
)
from legged_envs.robots import GO2
from legged_envs.tasks import make_task_cfg
from legged_envs.training.learner.style_prior import (
    Discriminator,
    ExpertTransitions,
    StylePrior,
)
from legged_envs.training.learner_options import AmpCfg
from legged_envs.training.mimic.amp_observations import amp_observations
from legged_envs.training.mimic.ppo import make_mimic_ppo
from legged_envs.training.mimic_options import MimicPPOCfg


def test_the_discriminator_tells_two_motions_apart() -> None:
    torch.manual_seed(0)
    discriminator = Discriminator(2, AmpCfg(1.0, hidden=(32,), gradient_penalty=1.0))
    optimizer = torch.optim.Adam(discriminator.parameters(), 3e-3)

    def pairs(angle: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Points on the circle and where they turn to: the states alone are the same for every angle."""
        begin = 6.28 * torch.rand(256)
        return tuple(torch.stack((a.cos(), a.sin()), dim=1) for a in (begin, begin + angle))  # type: ignore[return-value]

    for _ in range(300):
        loss = discriminator.losses(pairs(-0.8), pairs(0.8))["amp"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    expert, policy = discriminator(*pairs(0.8)), discriminator(*pairs(-0.8))
    assert expert.min() > policy.max() and expert.mean() > 0.4 and policy.mean() < -0.4
    assert (
        discriminator.reward(*pairs(0.8)).mean() > discriminator.reward(*pairs(-0.8)).mean() + 0.3
    )


def test_losses_and_reward_of_the_discriminator_are_the_published_ones() -> None:
    torch.manual_seed(0)
    discriminator = Discriminator(3, AmpCfg(1.0, gradient_penalty=4.0))
    discriminator.network = torch.nn.Linear(6, 1)  # its gradient is the same everywhere
    discriminator.normalizer.update(5.0 + 2.0 * torch.randn(1000, 3))
    policy, expert = ((5.0 + torch.randn(7, 3), 5.0 + torch.randn(7, 3)) for _ in range(2))
    weight, bias = (p.detach().double().numpy() for p in discriminator.network.parameters())

    def score(pair: tuple[torch.Tensor, torch.Tensor]) -> np.ndarray:
        mean, std = (
            x.double().numpy()
            for x in (discriminator.normalizer.mean, discriminator.normalizer.std)
        )
        return (
            np.concatenate([(part.double().numpy() - mean) / (std + 0.01) for part in pair], axis=1)
            @ weight[0]
            + bias
        )

    expected = (
        ((score(expert) - 1) ** 2).mean()
        + ((score(policy) + 1) ** 2).mean()
        + 2.0 * (weight**2).sum()
    )
    assert discriminator.losses(policy, expert)["amp"].item() == pytest.approx(expected, rel=1e-5)
    far = tuple(100.0 * part for part in policy)
    for pair in (policy, far):
        reward = np.maximum(0.0, 1.0 - 0.25 * (score(pair) - 1.0) ** 2)  # type: ignore[arg-type]
        np.testing.assert_allclose(discriminator.reward(*pair).detach(), reward, atol=1e-5)


def test_amp_rewards_and_learns_from_each_step_of_each_episode() -> None:
    """States are (environment, episode, step), those of the expert (−1, −1, number of the pair), half a step apart."""
    envs, steps = 5, 12
    episode, age = torch.zeros(envs), torch.zeros(envs)

    def observe() -> TensorDict:
        state = torch.stack((torch.arange(envs).float(), episode, age), dim=1)
        groups = {"policy": state, "reference": state, "reference_mask": torch.ones(envs, 1)}
        return TensorDict(
            groups
            | {f"critic_{k}": v for k, v in groups.items()}
            | {"critic": state, "amp": state.clone()},
            batch_size=[envs],
        )

    def expert(n: int) -> tuple[torch.Tensor, torch.Tensor]:
        before = torch.stack((-torch.ones(n), -torch.ones(n), torch.arange(n).float()), dim=1)
        return before, before + torch.tensor([0.0, 0.0, 0.5])

    cfg = MimicPPOCfg(
        **NETWORK, amp=AmpCfg(2.0, 3.0), steps_per_env=steps, epochs=1, mini_batches=3
    )
    algorithm = make_mimic_ppo(observe(), 2, 1, cfg, expert=expert)
    (style,) = algorithm.parts
    assert isinstance(style, StylePrior)
    discriminator = style.network
    at_step, policy, motion = [], [], []
    reward, losses = discriminator.reward, discriminator.losses

    def reward_of(previous: torch.Tensor, current: torch.Tensor) -> torch.Tensor:
        at_step.append(torch.stack((previous, current)))
        return reward(previous, current)

    def losses_of(ours: Any, theirs: Any) -> dict[str, torch.Tensor]:
        policy.append(torch.stack(ours))
        motion.append(torch.stack(theirs))
        return losses(ours, theirs)

    discriminator.reward, discriminator.losses = reward_of, losses_of  # type: ignore[method-assign]
    torch.manual_seed(0)
    obs, ended, done = observe(), 0, []
    for _ in range(steps):
        algorithm.act(obs)
        done.append(torch.stack((torch.arange(envs).float(), episode, age), dim=1))
        age += 1
        final, dones = observe(), torch.rand(envs) < 0.3
        ended += int(dones.sum())
        episode, age = episode + dones.float(), age.masked_fill(dones, 0.0)
        obs = observe()
        algorithm.process_env_step(
            obs, torch.ones(envs), dones, {"time_outs": dones, "final_obs": final}
        )
        rewarded = reward(*at_step[-1]).detach()
        torch.testing.assert_close(
            algorithm.storage.rewards[len(at_step) - 1, :, 0], 3.0 + 2.0 * rewarded
        )
    algorithm.compute_returns(obs)
    algorithm.update()
    assert ended > 5
    one_step = torch.tensor([0.0, 0.0, 1.0])
    for pairs in (torch.cat(at_step, 1), torch.cat(policy, 1)):
        previous, current = pairs
        assert torch.equal(current - previous, one_step.expand_as(current))
        assert sorted(previous.tolist()) == sorted(
            torch.cat(done).tolist()
        )  # all of them, each once
    assert [batch.shape for batch in motion] == [batch.shape for batch in policy]
    assert all(torch.equal(batch, torch.stack(expert(batch.shape[1]))) for batch in motion)


# --- the expert's pairs -----------------------------------------------------------------------------------------------


def exact_states() -> ObservationGroupCfg:
    """The default states without noise."""
    return replace(amp_observations(), noisy=False)


def make_task_core(
    task: str, num_envs: int, states: ObservationGroupCfg, **changes: Any
) -> CoreVectorEnv:
    cfg = override(make_task_cfg(task), changes)
    cfg.observations["amp"] = states
    return make_core(cfg, num_envs, array="torch", observations="dict")


def clip(name: str, frames: int, **options: Any) -> Motion:
    """Of Go2, that moves its first joint by 0.01 rad a frame at 50 frames a second."""
    joint_pos = torch.tensor(GO2.default_joint_pos, dtype=torch.float64).repeat(frames, 1)
    joint_pos[:, 0] += 0.01 * torch.arange(frames)
    root = torch.tensor([0.0, 0.0, 0.3], dtype=torch.float64).repeat(frames, 1)
    quat = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64).repeat(frames, 1)
    return motion_from_coordinates(GO2, name, 50.0, root, quat, joint_pos, **options)


@pytest.mark.parametrize("task", ["Legged/Go2-Mimic-v0", "Legged/G1-Mimic-v0"])
def test_the_experts_pairs_are_what_a_robot_exactly_on_the_reference_shows_at_two_control_steps(
    task: str,
) -> None:
    states = exact_states()
    exactly = {"events.reference.params": {}, "commands.motion.reference_fraction": 1.0}
    core = make_task_core(task, 40, states, **exactly)
    motion = motion_command(core.commands)
    library = motion.player.library
    expert = ExpertTransitions(library, states, core.step_dt)
    steps = (
        (library.duration / core.step_dt).round().long()
    )  # pairs of each clip: it is a whole number of steps long
    assert len(expert.previous) == steps.sum()
    torch.manual_seed(0)
    clips = torch.arange(40) % library.num_clips
    step = (torch.rand(40) * steps[clips]).long()
    step[:8] = steps[clips[:8]] - 1  # the last pair, in loops into the next repetition

    def shown(step: torch.Tensor) -> torch.Tensor:
        motion.pin(clips, step * core.step_dt)
        return core.reset(seed=0)[0]["amp"]

    pair = (steps.cumsum(0) - steps)[clips] + step
    scaled = [expert._observed(part[pair]) for part in (expert.previous, expert.current)]
    for got, at in zip(scaled, (step, step + 1), strict=True):
        torch.testing.assert_close(got, shown(at), rtol=0, atol=1e-5)
    assert (scaled[0] - scaled[1]).abs().max() > 0.01


def test_pairs_are_drawn_by_the_weights_of_their_clips_and_with_the_noise_of_the_group() -> None:
    motions = [clip("long", 31, weight=3.0), clip("short", 4), clip("never", 9, weight=0.0)]
    library = MotionLibrary(motions, GO2)
    expert = ExpertTransitions(library, exact_states(), 0.02)
    assert len(expert.previous) == 30 + 3 + 8
    torch.manual_seed(0)
    previous, current = expert.sample(20_000)
    joint = 6  # the first joint, behind gravity and angular velocity
    torch.testing.assert_close(
        current[:, joint] - previous[:, joint], torch.full((20_000,), 0.01), rtol=0, atol=1e-6
    )
    number = (previous[:, joint] / 0.01).round().long()
    expected = torch.full((30,), 3.0 / 4.0 / 30.0)
    expected[:3] += 1.0 / 4.0 / 3.0
    torch.testing.assert_close(torch.bincount(number) / 20_000, expected, rtol=0, atol=0.01)

    noisy = ExpertTransitions(library, amp_observations(), 0.02)
    widths = torch.cat(
        [torch.full((n,), w) for n, w in ((3, 0.05), (3, 0.05), (12, 0.01), (12, 0.025))]
    )
    torch.manual_seed(0)
    drawn = torch.multinomial(noisy.weights, 5000, replacement=True)
    torch.manual_seed(0)
    for states, exact in zip(noisy.sample(5000), (expert.previous, expert.current), strict=True):
        away = states - expert._observed(exact[drawn])
        assert (away.abs() <= widths + 1e-6).all() and (away.abs().amax(0) > 0.95 * widths).all()


def test_loops_lead_on_clips_end_and_frames_that_are_not_valid_have_no_pair() -> None:
    current = {}
    for loop in (False, True):
        library = MotionLibrary([clip("up", 11, loop=loop)], GO2)
        current[loop] = ExpertTransitions(library, exact_states(), 0.03).current[:, 6]
    expected = 0.015 * torch.arange(1, 7)  # six whole steps in 0.2 s
    torch.testing.assert_close(current[False], expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        current[True], torch.cat((expected, torch.tensor([0.005]))), rtol=0, atol=1e-6
    )
    valid = torch.arange(11) != 5
    broken = ExpertTransitions(
        MotionLibrary([clip("up", 11, valid=valid)], GO2), exact_states(), 0.02
    )
    assert (broken.previous[:, 6] / 0.01).round().tolist() == [0, 1, 2, 3, 6, 7, 8, 9]
    with pytest.raises(MotionError, match=r"two valid states 0.02 s apart; none of up is one"):
        ExpertTransitions(
            MotionLibrary([clip("up", 11, valid=torch.arange(11) % 2 > 0)], GO2),
            exact_states(),
            0.02,
        )
    with pytest.raises(MotionError, match="weight above 0"):
        ExpertTransitions(MotionLibrary([clip("up", 11, weight=0.0)], GO2), exact_states(), 0.02)


def test_states_may_be_any_terms_that_a_motion_has_clipped_and_scaled_and_no_others() -> None:
    terms = {
        "joint_vel": ObservationTermCfg(observations.joint_vel, clip=(-0.3, 0.3), scale=2.0),
        "lin_vel": ObservationTermCfg(observations.base_lin_vel, scale=(1.0, 2.0, 3.0)),
    }
    library = MotionLibrary([clip("up", 11)], GO2)
    previous, _ = ExpertTransitions(library, ObservationGroupCfg(terms), 0.02).sample(5)
    expected = torch.zeros(5, 15)
    expected[:, 0] = 0.6  # of 0.5 rad/s
    torch.testing.assert_close(previous, expected, rtol=0, atol=1e-6)
    terms["command"] = ObservationTermCfg(observations.command)
    with pytest.raises(
        ValueError,
        match=r"AMP's term 'command' reads a quantity that motions do not have: .*'commands'; leave it out",
    ):
        ExpertTransitions(library, ObservationGroupCfg(terms), 0.02)


def test_a_velocity_task_shows_the_same_states() -> None:
    core = make_task_core("Legged/Go2-Flat-v0", 2, amp_observations())
    expert = ExpertTransitions(
        MotionLibrary(shipped_motions(GO2), GO2), core.cfg.observations["amp"], core.step_dt
    )
    previous, current = expert.sample(7)
    assert previous.shape == current.shape == (7, core.group_sizes["amp"])
