"""The rollout buffer against plain float64 loops, TorchRL's estimator, and a number per transition."""

from __future__ import annotations

import ast
import copy
import io
import pickle
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchrl.objectives.value.functional import generalized_advantage_estimate

import legged_envs.storage
from legged_envs.storage import MiniBatch, RolloutStorageMM
from legged_envs.storage.fields import BATCH_BUFFERS, TRANSITION_BUFFERS

STEPS, ENVS, COSTS, ACTIONS = 7, 5, 2, 3
OBS, REF, CRITIC, CRITIC_REF, RND = 4, 2, 6, 3, 2
SIZES = {
    "observations": OBS,
    "critic_observations": CRITIC,
    "rnd_state": RND,
    "cost_rewards": COSTS,
}
SIZES |= {
    "reference_observations": REF,
    "critic_reference_observations": CRITIC_REF,
    "cost_values": COSTS,
}
SIZES |= dict.fromkeys(("rewards", "values", "actions_log_prob"), 1)
SIZES |= dict.fromkeys(
    ("actions", "privileged_actions", "dagger_actions", "action_mean", "action_sigma"), ACTIONS
)
MASKS = ("reference_observations_mask", "critic_reference_observations_mask")
BUFFER_OF = {
    "critic_observations": "privileged_observations",
    "action_mean": "mu",
    "action_sigma": "sigma",
}
"""Only where the names of the field and of the buffer differ."""
BUFFER_OF |= {
    name: name.replace("critic_", "privileged_")
    for name in (MASKS[1], "critic_reference_observations")
}
COMPUTED = ("returns", "advantages", "cost_returns", "cost_advantages")
TUPLE = (
    *(
        "observations",
        "reference",
        "critic_observations",
        "critic_reference",
        "actions",
        "values",
        "advantages",
    ),
    *(
        "returns",
        "actions_log_prob",
        "action_mean",
        "action_sigma",
        "dagger_actions",
        "hidden_states",
        "masks",
    ),
    *("rnd_state", "obs_prev_state", "ref_obs_prev_state", "ref_obs_prev_mask"),
)
"""The documented order."""


def amp_obs(observations: torch.Tensor) -> torch.Tensor:
    return observations[..., :1]


def amp_ref_obs(reference: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    return reference[0][..., :1], reference[1]


def amp_obs_of(observations: torch.Tensor, env: str) -> torch.Tensor:
    assert env == "the environment"
    return 2.0 * observations


AMP = {"amp_obs_extractor": amp_obs, "amp_ref_obs_extractor": f"{__name__}:amp_ref_obs"}


def make(
    training_type: str = "rl", num_envs: int = ENVS, num_steps: int = STEPS, **changes: Any
) -> RolloutStorageMM:
    """Return a storage that keeps all fields, with ``changes`` of its arguments."""
    arguments: dict[str, Any] = {
        "obs_shape": [OBS],
        "ref_obs_shape": [REF],
        "privileged_obs_shape": [CRITIC],
        "privileged_ref_obs_shape": [CRITIC_REF],
        "actions_shape": [ACTIONS],
        "apply_dagger_actions": True,
        "rnd_state_shape": [RND],
        "amp_cfg": AMP,
        "num_costs": COSTS if training_type == "rl" else 0,
    }
    return RolloutStorageMM(training_type, num_envs, num_steps, **arguments | changes)


def plain(num_envs: int = ENVS, num_steps: int = STEPS, **changes: Any) -> RolloutStorageMM:
    """A storage of PPO's own fields only."""
    none = dict.fromkeys(
        ("ref_obs_shape", "privileged_obs_shape", "privileged_ref_obs_shape", "amp_cfg")
    )
    reduced = {"apply_dagger_actions": False, "rnd_state_shape": None, "num_costs": 0}
    return make("rl", num_envs, num_steps, **none | reduced | changes)


def numbered(step: int, num_envs: int = ENVS, hidden: bool = False) -> RolloutStorageMM.Transition:
    """Return a transition in which every field holds n = step · num_envs + env; masks hold n % 2 == 0."""
    number = step * num_envs + torch.arange(num_envs)
    transition = RolloutStorageMM.Transition()
    for name, size in SIZES.items():
        setattr(transition, name, number[:, None].float().expand(num_envs, size).contiguous())
    transition.dones = torch.zeros(num_envs, dtype=torch.bool)
    transition.reference_observations_mask = transition.critic_reference_observations_mask = (
        number % 2 == 0
    )
    if hidden:
        state = number[None, :, None].float().expand(2, num_envs, 4)
        transition.hidden_states = (state[:1], (state, state + 0.5))  # a GRU and an LSTM
    return transition


def fill(
    storage: RolloutStorageMM, dones: np.ndarray | None = None, hidden: bool = False
) -> RolloutStorageMM:
    """Numbered transitions, with returns and advantages that carry the number too."""
    steps, envs = storage.num_transitions_per_env, storage.num_envs
    for step in range(steps):
        transition = numbered(step, envs, hidden)
        if dones is not None:
            transition.dones = torch.as_tensor(dones[step])
        storage.add_transitions(transition)
    if storage.training_type == "rl":
        storage.returns.copy_(storage.values)
        storage.advantages.copy_(storage.values)
        if storage.num_costs:
            storage.cost_returns.copy_(storage.cost_values)
            storage.cost_advantages.copy_(storage.cost_values)
    return storage


def random_dones(
    seed: int = 0, num_steps: int = STEPS, num_envs: int = ENVS, share: float = 0.3
) -> np.ndarray:
    return np.random.default_rng(seed).random((num_steps, num_envs)) < share


# --- returns ----------------------------------------------------------------------------------------------------------


def loop_gae(
    rewards: np.ndarray,
    values: np.ndarray,
    last: np.ndarray,
    dones: np.ndarray,
    time_outs: np.ndarray,
    final: np.ndarray,
    gamma: float,
    lam: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and returns, one number at a time."""
    advantages = np.zeros_like(values)
    steps, envs = values.shape
    for env in range(envs):
        advantage = 0.0
        for step in reversed(range(steps)):
            following = last[env] if step == steps - 1 else values[step + 1, env]
            if dones[step, env]:
                following, advantage = (final[step, env] if time_outs[step, env] else 0.0), 0.0
            delta = rewards[step, env] + gamma * following - values[step, env]
            advantage = delta + gamma * lam * advantage
            advantages[step, env] = advantage
    return advantages, advantages + values


class Random:
    """A random rollout as float32 numbers: rewards and costs, dones of which some are time-outs."""

    def __init__(self, seed: int, num_steps: int, num_envs: int, share: float):
        rng = np.random.default_rng(seed)
        shape, channels = (num_steps, num_envs), 1 + COSTS
        normal = lambda *size: rng.normal(size=size).astype(np.float32)  # noqa: E731
        self.rewards, self.values, self.final = (normal(*shape, channels) for _ in range(3))
        self.last = normal(num_envs, channels)
        self.dones = rng.random(shape) < share
        self.time_outs = self.dones & (rng.random(shape) < 0.5)
        self.final[~self.time_outs] = np.nan  # nobody computes those

    def storage(self) -> RolloutStorageMM:
        num_steps, num_envs = self.dones.shape
        storage = plain(num_envs, num_steps, num_costs=COSTS)
        for step in range(num_steps):
            transition = numbered(step, num_envs)
            transition.rewards, transition.dones = (
                torch.tensor(self.rewards[step, :, 0]),
                torch.tensor(self.dones[step]),
            )
            transition.values = torch.tensor(self.values[step, :, :1])
            transition.cost_rewards = torch.tensor(self.rewards[step, :, 1:])
            transition.cost_values = torch.tensor(self.values[step, :, 1:])
            storage.add_transitions(transition)
        return storage

    def arguments(self, bootstrap: bool) -> dict[str, Any]:
        last = {
            "last_values": torch.tensor(self.last[:, :1]),
            "last_cost_values": torch.tensor(self.last[:, 1:]),
        }
        if not bootstrap:
            return last
        final = {
            "final_values": torch.tensor(self.final[..., 0]),
            "final_cost_values": torch.tensor(self.final[..., 1:]),
        }
        return last | final | {"time_outs": torch.tensor(self.time_outs)}

    def expected(
        self, channel: int, bootstrap: bool, gamma: float, lam: float
    ) -> tuple[np.ndarray, np.ndarray]:
        time_outs = self.time_outs & bootstrap
        series = [
            a[..., channel].astype(np.float64)
            for a in (self.rewards, self.values, self.last, self.final)
        ]
        return loop_gae(*series[:3], self.dones, time_outs, series[3], gamma, lam)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    num_steps=st.integers(1, 24),
    num_envs=st.integers(1, 6),
    share=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    gamma=st.sampled_from([0.0, 0.9, 0.99, 1.0]),
    lam=st.sampled_from([0.0, 0.95, 1.0]),
    bootstrap=st.booleans(),
)
def test_returns_are_those_of_a_float64_loop(
    seed: int,
    num_steps: int,
    num_envs: int,
    share: float,
    gamma: float,
    lam: float,
    bootstrap: bool,
) -> None:
    rollout = Random(seed, num_steps, num_envs, share)
    storage = rollout.storage()
    storage.compute_returns(
        **rollout.arguments(bootstrap), gamma=gamma, lam=lam, normalize_advantage=False
    )
    assert storage.cost_returns is not None and storage.cost_advantages is not None
    returns = torch.cat((storage.returns, storage.cost_returns), dim=-1).numpy()
    advantages = torch.cat((storage.advantages, storage.cost_advantages), dim=-1).numpy()
    for channel in range(1 + COSTS):
        expected_advantages, expected_returns = rollout.expected(channel, bootstrap, gamma, lam)
        np.testing.assert_allclose(
            advantages[..., channel], expected_advantages, rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose(returns[..., channel], expected_returns, rtol=1e-5, atol=1e-5)


def test_returns_are_those_of_torchrl() -> None:
    rollout = Random(3, 24, 8, 0.1)
    storage = rollout.storage()
    storage.compute_returns(
        **rollout.arguments(bootstrap=True), gamma=0.99, lam=0.95, normalize_advantage=False
    )
    following = np.concatenate((rollout.values[1:, :, 0], rollout.last[None, :, 0]))
    following = np.where(rollout.time_outs, rollout.final[..., 0], following)
    series = [
        torch.tensor(a).T[..., None]
        for a in (rollout.values[..., 0], following, rollout.rewards[..., 0])
    ]
    terminated = torch.tensor(rollout.dones & ~rollout.time_outs).T[..., None]
    done = torch.tensor(rollout.dones).T[..., None]
    advantages, returns = generalized_advantage_estimate(0.99, 0.95, *series, done, terminated)
    torch.testing.assert_close(storage.advantages, advantages.transpose(0, 1), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(storage.returns, returns.transpose(0, 1), rtol=1e-5, atol=1e-5)


def test_advantages_are_normalized_over_the_rollout_and_returns_are_not() -> None:
    rollout = Random(1, 9, 4, 0.2)
    storage = rollout.storage()
    arguments = rollout.arguments(bootstrap=False)
    storage.compute_returns(**arguments, gamma=0.9, lam=0.8, normalize_cost_advantage=True)
    for channel, advantages, returns in (
        (0, storage.advantages[..., 0], storage.returns[..., 0]),
        (2, storage.cost_advantages[..., 1], storage.cost_returns[..., 1]),  # type: ignore[index]
    ):
        raw, expected_returns = rollout.expected(channel, False, 0.9, 0.8)
        np.testing.assert_allclose(
            advantages, (raw - raw.mean()) / (raw.std(ddof=1) + 1e-8), rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(returns, expected_returns, rtol=1e-5, atol=1e-5)
    storage.compute_returns(**arguments, gamma=0.9, lam=0.8)
    np.testing.assert_allclose(storage.cost_advantages[..., 1], raw, rtol=1e-5, atol=1e-5)  # type: ignore[index]


def test_a_continuation_discounts_all_later_rewards_and_no_costs() -> None:
    rollout = Random(4, 9, 4, 0.2)
    storage = rollout.storage()
    continuation = np.random.default_rng(0).random((9, 4), np.float32)
    arguments = rollout.arguments(True)
    storage.compute_returns(
        **arguments,
        gamma=0.9,
        lam=0.8,
        normalize_advantage=False,
        continuation=torch.tensor(continuation),
    )
    values = rollout.values[..., 0].astype(np.float64)
    advantage = np.zeros(4)
    for step in reversed(range(9)):
        following = values[step + 1] if step < 8 else rollout.last[:, 0]
        following = np.where(rollout.dones[step], 0.0, following)
        following = np.where(rollout.time_outs[step], rollout.final[step, :, 0], following)
        goes_on = continuation[step].astype(np.float64)
        difference = rollout.rewards[step, :, 0] + 0.9 * goes_on * following - values[step]
        advantage = difference + 0.9 * 0.8 * goes_on * ~rollout.dones[step] * advantage
        np.testing.assert_allclose(storage.advantages[step, :, 0], advantage, rtol=1e-5, atol=1e-5)
    of_costs = rollout.expected(1, True, 0.9, 0.8)[1]
    np.testing.assert_allclose(storage.cost_returns[..., 0], of_costs, rtol=1e-5, atol=1e-5)  # type: ignore[index]
    with pytest.raises(ValueError, match="continuation"):
        storage.compute_returns(**arguments, gamma=0.9, lam=0.8, continuation=torch.ones(4))


def test_costs_may_have_their_own_discount() -> None:
    rollout = Random(2, 9, 4, 0.2)
    storage = rollout.storage()
    storage.compute_returns(
        **rollout.arguments(True), gamma=0.9, lam=0.8, cost_gamma=1.0, cost_lam=0.5
    )
    np.testing.assert_allclose(
        storage.returns[..., 0], rollout.expected(0, True, 0.9, 0.8)[1], rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        storage.cost_returns[..., 0],  # type: ignore[index]
        rollout.expected(1, True, 1.0, 0.5)[1],
        rtol=1e-5,
        atol=1e-5,
    )


def test_one_transition_has_an_advantage_of_zero_when_normalized() -> None:
    storage = plain(1, 1)
    storage.add_transitions(numbered(0, 1))
    storage.compute_returns(torch.ones(1), 0.9, 0.9)
    assert storage.advantages.item() == 0.0


def test_returns_are_written_in_place() -> None:
    storage = fill(plain())
    returns, advantages = storage.returns, storage.advantages
    storage.compute_returns(torch.zeros(ENVS, 1, requires_grad=True), 0.99, 0.95)
    assert (
        storage.returns is returns
        and storage.advantages is advantages
        and not returns.requires_grad
    )


# --- batches ----------------------------------------------------------------------------------------------------------


def numbers_in(item: Any) -> list[torch.Tensor]:
    """The number that each row of an item carries, one tensor per tensor in it, masks left out."""
    if item is None:
        return []
    if isinstance(item, tuple):
        return [numbers for part in item for numbers in numbers_in(part)]
    return [] if item.dtype is torch.bool else [item.reshape(len(item), -1)[:, 0]]


@pytest.mark.parametrize("num_mini_batches", [1, 4, 7, STEPS * ENVS])
def test_every_transition_comes_once_per_epoch_and_whole(num_mini_batches: int) -> None:
    storage = fill(make(), hidden=True)
    batches = list(storage.mini_batch_generator(num_mini_batches, num_epochs=3))
    assert len(batches) == 3 * num_mini_batches
    epochs = []
    for batch in batches:
        assert type(batch) is tuple and len(batch) == 18
        items = dict(zip(TUPLE, batch, strict=True))
        number = items["observations"][:, 0]
        assert items.pop("masks") is None
        previous = torch.where(number >= ENVS, number - ENVS, number)
        for name in ("obs_prev_state", "ref_obs_prev_state"):
            assert torch.equal(items.pop(name), previous[:, None]), name
        earlier = (number >= ENVS) & (previous % 2 == 0)
        assert torch.equal(items.pop("ref_obs_prev_mask"), earlier)
        for name in ("reference", "critic_reference"):
            assert torch.equal(items[name][1], number % 2 == 0), name
        actor, (hidden, cell) = items.pop("hidden_states")
        assert actor.shape == (1, len(number), 4) and hidden.shape == cell.shape == (
            2,
            len(number),
            4,
        )
        assert torch.equal(actor[0, :, 0], number)
        assert torch.equal(hidden[1, :, 3], number) and torch.equal(cell[1, :, 3], number + 0.5)
        for name, item in items.items():
            rows = numbers_in(item)
            assert rows, name
            for row in rows:
                assert torch.equal(row, number), name
        epochs.append(number)
    size = len(batches) // 3
    orders = [torch.cat(epochs[i * size : (i + 1) * size]) for i in range(3)]
    assert all(
        torch.equal(order.sort().values, torch.arange(STEPS * ENVS).float()) for order in orders
    )
    assert not torch.equal(orders[0], orders[1]) and not torch.equal(orders[1], orders[2])
    assert max(map(len, epochs)) - min(map(len, epochs)) <= 1


def test_a_batch_by_name_is_the_tuple_and_has_the_costs() -> None:
    storage = fill(make())
    torch.manual_seed(0)
    named = list(storage.mini_batches(3, 2))
    torch.manual_seed(0)
    for batch, items in zip(named, storage.mini_batch_generator(3, 2), strict=True):
        assert isinstance(batch, MiniBatch)
        for one, other in zip(batch.as_tuple(), items, strict=True):
            torch.testing.assert_close(one, other, rtol=0.0, atol=0.0)
        number = batch.observations[:, :1]
        assert torch.equal(batch.indices[:, None].float(), number)
        for costs in (batch.cost_values, batch.cost_returns, batch.cost_advantages):
            assert costs is not None and torch.equal(costs, number.expand(-1, COSTS))


def test_what_is_not_kept_is_none_and_the_critic_sees_what_the_actor_sees() -> None:
    storage = fill(plain())
    items = dict(zip(TUPLE, next(storage.mini_batch_generator(2)), strict=True))
    assert (
        items["hidden_states"] == (None, None)
        and items["critic_observations"] is items["observations"]
    )
    absent = ("reference", "critic_reference", "dagger_actions", "masks", "rnd_state", *TUPLE[-3:])
    assert [name for name, item in items.items() if item is None] == sorted(absent, key=TUPLE.index)
    shared = next(fill(make(privileged_ref_obs_shape=[None])).mini_batches(2))
    assert shared.critic_reference_observations is shared.reference_observations
    assert shared.critic_reference_observations_mask is shared.reference_observations_mask


@pytest.mark.parametrize("seed", range(4))
def test_previous_states_are_of_the_same_episode(seed: int) -> None:
    dones = random_dones(seed)
    storage = fill(make(), dones)
    seen = 0
    for batch in storage.mini_batches(3, 1):
        for row, index in enumerate(batch.indices.tolist()):
            step, env = divmod(index, ENVS)
            has_one = step > 0 and not dones[step - 1, env]
            earlier = index - ENVS if has_one else index
            assert batch.has_previous[row] == has_one
            assert batch.obs_prev_state[row] == batch.ref_obs_prev_state[row] == earlier
            assert batch.ref_obs_prev_mask[row] == (has_one and earlier % 2 == 0)
            seen += 1
    assert seen == STEPS * ENVS


def test_amp_extractors_get_the_environment_and_need_no_reference() -> None:
    cfg = {"amp_obs_extractor": f"{__name__}:amp_obs_of", "_env": "the environment"}
    batch = next(fill(plain(amp_cfg=cfg)).mini_batches(1))
    assert torch.equal(
        batch.obs_prev_state[:, 0],
        2.0 * torch.where(batch.indices >= ENVS, batch.indices - ENVS, batch.indices),
    )
    assert batch.ref_obs_prev_state is None and batch.ref_obs_prev_mask is None


def test_an_amp_mask_can_only_shrink() -> None:
    everything = lambda reference: (reference[0], torch.ones_like(reference[1]))  # noqa: E731
    storage = fill(make(amp_cfg=AMP | {"amp_ref_obs_extractor": everything}), random_dones())
    for batch in storage.mini_batches(2, 1):
        assert not (batch.ref_obs_prev_mask & ~batch.has_previous).any()


@pytest.mark.parametrize(
    ("extractor", "error", "message"),
    [
        (
            lambda reference: reference[0],
            TypeError,
            "amp_ref_obs_extractor .*Tensor",
        ),
        (
            lambda reference: (reference[0], None),
            ValueError,
            "amp_ref_obs_extractor",
        ),
        (
            lambda reference: (reference[0], reference[1].float()),
            TypeError,
            r"amp_ref_obs_extractor .*torch\.float32",
        ),
        (
            lambda reference: (reference[0], reference[1][:1]),
            ValueError,
            r"amp_ref_obs_extractor .*\(1,\)",
        ),
    ],
)
def test_what_an_amp_extractor_returns_is_checked(
    extractor: Any, error: type[Exception], message: str
) -> None:
    storage = fill(make(amp_cfg=AMP | {"amp_ref_obs_extractor": extractor}))
    with pytest.raises(error, match=message):
        next(storage.mini_batch_generator(1))


@pytest.mark.parametrize("reference", [True, False])
def test_distillation_gives_the_steps_in_order_as_views(reference: bool) -> None:
    without = (
        {} if reference else dict.fromkeys(("ref_obs_shape", "privileged_obs_shape", "amp_cfg"))
    )
    storage = fill(make("distillation", **without), random_dones())
    steps = list(storage.generator())
    assert len(steps) == STEPS
    for i, step in enumerate(steps):
        assert len(step) == 7
        number = i * ENVS + torch.arange(ENVS).float()
        for item in step[:6]:
            assert all(torch.equal(row, number) for row in numbers_in(item))
        assert torch.equal(step[6], storage.dones[i])
        owners = [storage.observations, storage.actions, storage.privileged_actions, storage.dones]
        for view, owner in zip((step[0], *step[4:]), owners, strict=True):
            assert view.untyped_storage().data_ptr() == owner.untyped_storage().data_ptr()
        if reference:
            assert step[1].shape == (ENVS, CRITIC) and step[2][0].shape == (ENVS, REF)
            assert torch.equal(step[3][1], number % 2 == 0)
        else:
            assert torch.equal(step[1], step[0]) and step[2] is None and step[3] is None


# --- recurrent policies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_mini_batches", [1, 2, 5])
def test_trajectories_are_whole_episodes_with_the_state_they_began_with(
    num_mini_batches: int,
) -> None:
    dones = random_dones(5)
    expected = []
    for env in range(ENVS):
        cuts = [0, *(np.flatnonzero(dones[:-1, env]) + 1), STEPS]
        expected += [tuple(step * ENVS + env for step in range(a, b)) for a, b in pairwise(cuts)]
    storage = fill(make(), dones, hidden=True)
    batches = list(storage.trajectory_batches(num_mini_batches, num_epochs=2))
    for epoch in (batches[:num_mini_batches], batches[num_mini_batches:]):
        found = []
        for batch in epoch:
            assert batch.masks is not None and batch.masks.shape == batch.indices.shape
            assert torch.equal(batch.observations[..., 0].long(), batch.indices)
            assert torch.equal(batch.advantages[..., 0].long(), batch.indices)
            assert torch.equal(
                batch.has_previous & batch.masks, batch.masks & (torch.arange(STEPS)[:, None] > 0)
            )
            actor, (hidden, cell) = batch.hidden_states  # type: ignore[misc]
            begins = batch.indices[0].float()
            assert actor.shape == (1, len(begins), 4) and actor.is_contiguous()  # type: ignore[union-attr]
            assert torch.equal(actor[0, :, 1], begins)  # type: ignore[index]
            assert torch.equal(hidden[1, :, 2], begins) and torch.equal(cell[0, :, 2], begins + 0.5)
            columns = zip(batch.indices.T, batch.masks.T, strict=True)
            found += [tuple(indices[mask].tolist()) for indices, mask in columns]
        assert sorted(found) == sorted(expected)


def test_the_recurrent_tuple_has_masks_and_states_in_their_places() -> None:
    storage = fill(make(), random_dones(), hidden=True)
    batch = next(storage.recurrent_mini_batch_generator(1))
    items = dict(zip(TUPLE, batch, strict=True))
    assert (
        items["masks"].shape == items["observations"].shape[:2]
        and items["masks"].sum() == STEPS * ENVS
    )
    assert items["hidden_states"][0].shape[1] == items["masks"].shape[1]


def test_a_recurrent_network_gives_over_trajectories_what_it_gave_step_by_step() -> None:
    torch.manual_seed(0)
    network, dones = torch.nn.LSTM(OBS, 3, num_layers=2), random_dones(2)
    storage = plain()
    state = tuple(torch.zeros(2, ENVS, 3) for _ in range(2))
    outputs = torch.zeros(STEPS, ENVS, 3)
    for step in range(STEPS):
        transition = numbered(step)
        transition.observations = torch.randn(ENVS, OBS)
        transition.hidden_states, transition.dones = (state, None), torch.tensor(dones[step])
        storage.add_transitions(transition)
        with torch.no_grad():
            output, state = network(transition.observations[None], state)
        outputs[step] = output[0]
        state = tuple(part * ~transition.dones[None, :, None] for part in state)
    storage.compute_returns(torch.zeros(ENVS), 0.99, 0.95)
    for batch in storage.trajectory_batches(2, num_epochs=1):
        assert batch.hidden_states[1] is None and batch.masks is not None
        output, _ = network(batch.observations, batch.hidden_states[0])
        torch.testing.assert_close(
            output[batch.masks], outputs.flatten(0, 1)[batch.indices][batch.masks]
        )


# --- statistics and state ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_statistics_are_of_trajectories_and_change_nothing(share: float) -> None:
    dones = random_dones(1, share=share)
    storage = fill(plain(), dones)
    before = storage.state_dict()["buffers"]
    lengths = []
    for env in range(ENVS):
        length = 0
        for step in range(STEPS):
            length += 1
            if dones[step, env] or step == STEPS - 1:
                lengths.append(length)
                length = 0
    mean_length, mean_reward = storage.get_statistics()
    assert mean_length.item() == pytest.approx(np.mean(lengths))
    assert mean_reward.item() == pytest.approx((STEPS * ENVS - 1) / 2)
    for name, buffer in storage.state_dict()["buffers"].items():
        assert torch.equal(buffer, before[name]), name


def through_disk(obj: Any, **kwargs: Any) -> Any:
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, **kwargs)


def by_state(storage: RolloutStorageMM) -> RolloutStorageMM:
    made = make()
    made.load_state_dict(through_disk(storage.state_dict()))
    return made


@pytest.mark.parametrize(
    "restore",
    [
        by_state,
        lambda storage: through_disk(storage, weights_only=False, map_location="cpu"),
        copy.deepcopy,
    ],
    ids=["state_dict", "storage", "deepcopy"],
)
def test_a_saved_storage_goes_on_as_if_nothing_had_been(
    restore: Callable[[RolloutStorageMM], RolloutStorageMM], assert_same: Callable[..., None]
) -> None:
    original = make()
    for step in range(3):
        original.add_transitions(numbered(step, hidden=True))
    restored = restore(original)
    assert restored.step == 3
    for storage in (original, restored):
        for step in range(3, STEPS):
            storage.add_transitions(numbered(step, hidden=True))
        with pytest.raises(RuntimeError, match="compute_returns"):
            storage.mini_batch_generator(2)
        storage.compute_returns(
            torch.ones(ENVS), 0.9, 0.8, last_cost_values=torch.ones(ENVS, COSTS)
        )
    assert_same(original.state_dict(), restored.state_dict())
    full = restore(restored)
    torch.manual_seed(0)
    batches = [batch[0] for batch in restored.mini_batch_generator(2, 1)]
    torch.manual_seed(0)
    assert_same(batches, [batch[0] for batch in full.mini_batch_generator(2, 1)])


def test_a_state_is_a_copy() -> None:
    storage = fill(plain())
    state = storage.state_dict()
    storage.clear()
    storage.add_transitions(numbered(9))
    assert state["step"] == STEPS and state["buffers"]["rewards"][0, 0] == 0.0
    storage.load_state_dict(state)
    assert storage.rewards[0, 0] == 0.0 and len(list(storage.mini_batches(2, 1))) == 2


def test_a_state_of_another_storage_is_refused() -> None:
    state = make().state_dict()
    with pytest.raises(ValueError, match="'dagger_actions'"):
        make(apply_dagger_actions=False).load_state_dict(state)
    with pytest.raises(ValueError, match=r"observations.*5, 8"):
        make(obs_shape=[8]).load_state_dict(state)


def test_a_state_of_more_steps_is_refused_and_changes_nothing() -> None:
    state = fill(plain()).state_dict()
    storage = plain()
    for step in (STEPS + 1, 99, -1):
        with pytest.raises(ValueError, match=rf"state\['step'\] .*{step}"):
            storage.load_state_dict(state | {"step": step})
    assert storage.step == 0 and not storage.values.any()


def test_a_state_loaded_in_inference_mode_can_be_gone_on_with_outside() -> None:
    storage, original = plain(), plain()
    original.add_transitions(numbered(0, hidden=True))
    with torch.inference_mode():
        storage.load_state_dict(original.state_dict())
    for step in range(1, STEPS):
        storage.add_transitions(numbered(step, hidden=True))
    storage.compute_returns(torch.zeros(ENVS), 0.9, 0.9)
    batch = next(storage.trajectory_batches(1))
    assert torch.equal(batch.hidden_states[0][0, :, 0].long(), batch.indices[0])  # type: ignore[index]


# --- buffers ----------------------------------------------------------------------------------------------------------


def test_buffers_are_those_of_the_documented_configuration() -> None:
    storage = make()
    shapes = {
        name: (STEPS, ENVS, size) for name, size in SIZES.items() if name != "privileged_actions"
    }
    shapes |= dict.fromkeys(("dones", "returns", "advantages"), (STEPS, ENVS, 1))
    shapes |= dict.fromkeys(("cost_returns", "cost_advantages"), (STEPS, ENVS, COSTS))
    shapes |= dict.fromkeys(MASKS, (STEPS, ENVS))
    dtypes = dict.fromkeys(MASKS, torch.bool) | {"dones": torch.uint8}
    for name, shape in shapes.items():
        buffer = getattr(storage, BUFFER_OF.get(name, name))
        assert tuple(buffer.shape) == shape and buffer.dtype is dtypes.get(name, torch.float32), (
            name
        )
    assert not hasattr(storage, "privileged_actions")
    student = make("distillation", apply_dagger_actions=False, rnd_state_shape=None)
    assert student.privileged_actions.shape == (STEPS, ENVS, ACTIONS)
    assert (
        student.dagger_actions is None
        and student.rnd_state is None
        and not hasattr(student, "values")
    )
    bare = make(ref_obs_shape=[None], privileged_obs_shape=[None], amp_cfg=None)
    assert bare.reference_observations is None and bare.privileged_observations is None
    assert (
        bare.privileged_reference_observations is None
        and bare.privileged_reference_observations_mask is None
    )


def test_a_name_that_is_no_buffer_is_named() -> None:
    with pytest.raises(AttributeError, match="'privileged_observation'"):
        _ = plain().privileged_observation


def test_the_table_has_every_buffer_and_every_field_once() -> None:
    assert {*TRANSITION_BUFFERS, *BATCH_BUFFERS} == {*SIZES, *MASKS, "dones", *COMPUTED}
    for buffers in (TRANSITION_BUFFERS, BATCH_BUFFERS):
        assert all(buffer == BUFFER_OF.get(name, name) for name, buffer in buffers.items())
    hints = (get_type_hints(kind) for kind in (RolloutStorageMM.Transition, MiniBatch))
    in_transition, in_batch = ({name for name in names if name in SIZES} for names in hints)
    assert in_transition == set(SIZES) and in_batch == set(SIZES) - {
        "privileged_actions",
        "rewards",
        "cost_rewards",
    }


def test_a_field_of_several_dimensions_is_kept() -> None:
    storage = plain(obs_shape=(2, 3))
    for step in range(STEPS):
        transition = numbered(step)
        transition.observations = torch.full((ENVS, 2, 3), float(step))
        storage.add_transitions(transition)
    storage.compute_returns(torch.zeros(ENVS), 0.9, 0.9)
    batch = next(storage.mini_batches(1))
    assert torch.equal(batch.observations[:, 1, 2].long(), batch.indices // ENVS)


def test_columns_and_flags_come_in_the_usual_forms() -> None:
    storage = plain(num_steps=4)
    for dones in ([0, 1, 0, 256, 2], [False, True, False, True, True]):
        for column in (False, True):
            transition = numbered(0)
            transition.dones = torch.tensor(dones)
            for name in ("rewards", "values", "actions_log_prob"):
                tensor = torch.arange(ENVS).float()
                setattr(transition, name, tensor[:, None] if column else tensor)
            if column:
                transition.dones = transition.dones[:, None]
            storage.add_transitions(transition)
    assert (storage.dones[..., 0] == torch.tensor([0, 1, 0, 1, 1])).all()
    assert (storage.rewards[..., 0] == torch.arange(ENVS)).all() and (
        storage.values == storage.rewards
    ).all()


def test_what_is_kept_is_a_copy_without_a_graph() -> None:
    storage = plain()
    transition = numbered(0)
    transition.values = torch.ones(ENVS, 1, requires_grad=True)
    state = torch.ones(1, ENVS, 2, requires_grad=True)
    transition.hidden_states = (state, None)
    storage.add_transitions(transition)
    transition.observations.fill_(-1.0)
    assert (storage.observations[0, 1] == 1.0).all()
    assert not storage.values.requires_grad
    storage.step = STEPS
    storage.returns.zero_()
    assert not next(storage.mini_batches(1)).hidden_states[0].requires_grad  # type: ignore[union-attr]


def test_a_buffer_put_in_place_of_another_is_used() -> None:
    storage = plain()
    storage.rewards = torch.zeros(STEPS, ENVS, 1)
    storage.add_transitions(numbered(2))
    assert (storage.rewards[0, :, 0] == 2 * ENVS + torch.arange(ENVS)).all()


def test_a_rollout_in_inference_mode_can_be_learnt_from() -> None:
    with torch.inference_mode():
        storage = plain()
        for step in range(STEPS):
            storage.add_transitions(numbered(step, hidden=True))
        storage.compute_returns(torch.zeros(ENVS), 0.9, 0.9)
    weight = torch.ones(1, requires_grad=True)
    for batch in (next(storage.mini_batches(2)), next(storage.trajectory_batches(2))):
        (weight * batch.observations.sum() * batch.hidden_states[0].sum()).backward()  # type: ignore[union-attr]
    storage.clear()
    storage.add_transitions(numbered(0, hidden=True))


def test_a_transition_is_cleared_and_takes_no_unknown_field() -> None:
    transition = numbered(0, hidden=True)
    transition.clear()
    assert (
        transition.observations is None
        and transition.hidden_states is None
        and transition.cost_values is None
    )
    with pytest.raises(AttributeError, match="reward_"):
        transition.reward_ = torch.zeros(1)  # type: ignore[attr-defined]


# --- bad input --------------------------------------------------------------------------------------------------------


def fields_of(storage: RolloutStorageMM) -> list[str]:
    return [*(name for name in SIZES if name != "privileged_actions"), *MASKS, "dones"]


@pytest.mark.parametrize("field", fields_of(make()))
def test_a_field_that_does_not_fit_is_named_and_leaves_the_storage_alone(field: str) -> None:
    storage = make()
    storage.add_transitions(numbered(0))
    before = storage.state_dict()["buffers"]
    good = getattr(numbered(1), field)
    wrong_dtype = good.double() if good.is_floating_point() else good.float()
    bad: list[tuple[Any, type[Exception], str]] = [
        (None, ValueError, ""),
        (good.numpy(), TypeError, "ndarray"),
        (good[1:], ValueError, r"\(5"),
        (good[:1], ValueError, r"\(5"),
        (good[None], ValueError, r"\(5"),
        (wrong_dtype, TypeError, "float"),
        (good.to("meta"), ValueError, "meta"),
    ]
    for value, error, message in bad:
        transition = numbered(1)
        setattr(transition, field, value)
        with pytest.raises(error, match=rf"transition\.{field}\b.*{message}"):
            storage.add_transitions(transition)
        assert storage.step == 1
        for name, buffer in storage.state_dict()["buffers"].items():
            assert torch.equal(buffer, before[name]), name


@pytest.mark.parametrize(
    ("first", "second", "error", "message"),
    [
        (None, "gru", ValueError, "hidden_states: .*transition 1"),
        ("gru", None, ValueError, r"hidden_states\[0\] .*None"),
        ("gru", "lstm", ValueError, r"hidden_states\[0\] .*tuple of 2"),
        (
            "lstm",
            "gru",
            ValueError,
            r"hidden_states\[0\] .*a tensor",
        ),
        (
            "gru",
            "wide",
            ValueError,
            r"hidden_states\[0\] .*\(1, 5, 6\)",
        ),
        (
            "gru",
            "double",
            TypeError,
            r"hidden_states\[0\] .*torch.float64",
        ),
        (
            "short",
            None,
            ValueError,
            r"hidden_states\[0\] .*\(1, 3, 4\)",
        ),
        ("meta", None, ValueError, r"hidden_states\[0\] .*meta"),
        ("list", None, TypeError, r"hidden_states\[0\] .*list"),
    ],
)
def test_hidden_states_that_do_not_fit_are_named(
    first: str | None, second: str | None, error: type[Exception], message: str
) -> None:
    gru = torch.zeros(1, ENVS, 4)
    states: dict[str | None, Any] = {
        "gru": gru,
        "lstm": (gru, gru),
        "wide": torch.zeros(1, ENVS, 6),
        None: None,
    }
    states |= {"double": gru.double(), "short": gru[:, :3], "meta": gru.to("meta"), "list": [gru]}
    storage = plain()
    with pytest.raises(error, match=message):
        for step, name in enumerate((first, second)):
            transition = numbered(step)
            transition.hidden_states = (states[name], None)
            storage.add_transitions(transition)


def test_hidden_states_must_be_a_pair() -> None:
    storage, transition = plain(), numbered(0)
    transition.hidden_states = torch.zeros(1, ENVS, 4)  # type: ignore[assignment]
    with pytest.raises(TypeError, match="hidden_states"):
        storage.add_transitions(transition)


def test_too_many_and_too_few_transitions_raise() -> None:
    storage = fill(plain())
    with pytest.raises(OverflowError, match="num_transitions_per_env = 7"):
        storage.add_transitions(numbered(0))
    storage.clear()
    storage.add_transitions(numbered(0))
    readers: list[Callable[[], Any]] = [
        lambda: storage.compute_returns(torch.zeros(ENVS), 0.9, 0.9),
        lambda: storage.mini_batches(2),
        lambda: storage.mini_batch_generator(2),
        lambda: storage.trajectory_batches(2),
        lambda: storage.recurrent_mini_batch_generator(2),
        storage.get_statistics,
    ]
    for read in readers:
        with pytest.raises(RuntimeError, match="1 of num_transitions_per_env = 7"):
            read()
    student = make("distillation")
    with pytest.raises(RuntimeError, match="0 of num_transitions_per_env"):
        student.generator()


def test_the_last_rollouts_returns_are_not_given_out_again() -> None:
    storage = fill(plain())
    storage.compute_returns(torch.zeros(ENVS), 0.9, 0.9)
    assert len(list(storage.mini_batches(3, 1))) == 3
    storage.clear()
    for step in range(STEPS):
        storage.add_transitions(numbered(step))
    with pytest.raises(RuntimeError, match="compute_returns"):
        storage.mini_batch_generator(2)
    storage.returns = torch.ones(STEPS, ENVS, 1)  # of an estimator of one's own
    assert (next(storage.mini_batches(1)).returns == 1.0).all()


def test_a_storage_says_whether_it_has_the_returns_of_its_rollout() -> None:
    storage = plain()
    assert not storage.has_returns
    for step in range(STEPS):
        storage.add_transitions(numbered(step))
    assert not storage.has_returns
    storage.compute_returns(torch.zeros(ENVS), 0.9, 0.9)
    assert storage.has_returns
    storage.clear()
    assert not storage.has_returns
    storage.returns[0] = 1.0  # of an estimator of one's own
    assert storage.has_returns
    assert not make("distillation").has_returns


def test_the_other_training_types_readers_raise() -> None:
    student = fill(make("distillation"))
    for read in (student.mini_batch_generator, student.mini_batches, student.trajectory_batches):
        with pytest.raises(ValueError, match="'rl'"):
            read(2)
    with pytest.raises(ValueError, match="'rl'"):
        student.compute_returns(torch.zeros(ENVS), 0.9, 0.9)
    with pytest.raises(ValueError, match="'distillation'"):
        fill(plain()).generator()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"last_values": None}, ValueError, "last_values"),
        (
            {"last_values": torch.zeros(ENVS + 1)},
            ValueError,
            "last_values",
        ),
        (
            {"last_values": torch.zeros(ENVS).double()},
            TypeError,
            "last_values",
        ),
        ({"last_cost_values": None}, ValueError, "last_cost_values"),
        ({"last_cost_values": torch.zeros(ENVS)}, ValueError, "last_cost_values"),
        ({"gamma": 1.01}, ValueError, "^gamma .*1.01"),
        ({"lam": float("nan")}, ValueError, "^lam .*nan"),
        ({"cost_gamma": -0.1}, ValueError, "cost_gamma .*-0.1"),
        ({"final_values": None}, ValueError, "final_values"),
        ({"final_cost_values": None}, ValueError, "final_cost_values"),
        ({"time_outs": None}, ValueError, "time_outs"),
        ({"time_outs": torch.zeros(STEPS, ENVS)}, TypeError, "time_outs"),
        (
            {"time_outs": torch.zeros(ENVS, STEPS, dtype=torch.bool)},
            ValueError,
            "time_outs",
        ),
        ({"final_values": torch.zeros(STEPS, ENVS, 2)}, ValueError, "final_values"),
    ],
)
def test_arguments_of_the_returns_are_checked(
    changes: Any, error: type[Exception], message: str
) -> None:
    storage = fill(make(), random_dones())
    arguments = {
        "last_values": torch.zeros(ENVS),
        "gamma": 0.9,
        "lam": 0.9,
        "time_outs": torch.as_tensor(random_dones()),
        "final_values": torch.zeros(STEPS, ENVS),
        "last_cost_values": torch.zeros(ENVS, COSTS),
        "final_cost_values": torch.zeros(STEPS, ENVS, COSTS),
    }
    returns = storage.returns.clone()
    with pytest.raises(error, match=message):
        storage.compute_returns(**arguments | changes)
    assert torch.equal(storage.returns, returns)


def test_a_time_out_without_an_end_is_refused_where_it_is() -> None:
    storage = fill(plain())
    time_outs = torch.zeros(STEPS, ENVS, dtype=torch.bool)
    time_outs[4, 2] = True
    with pytest.raises(ValueError, match="step 4 in environment 2"):
        storage.compute_returns(
            torch.zeros(ENVS), 0.9, 0.9, time_outs=time_outs, final_values=torch.zeros(STEPS, ENVS)
        )
    with pytest.raises(ValueError, match="num_costs"):
        storage.compute_returns(
            torch.zeros(ENVS), 0.9, 0.9, last_cost_values=torch.zeros(ENVS, COSTS)
        )


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("field", ["rewards", "values", "last_values", "final_values"])
@pytest.mark.parametrize("kind", ["", "cost_"])
def test_a_number_that_is_not_finite_is_named_with_its_place(
    kind: str, field: str, number: float
) -> None:
    name = field.replace("values", f"{kind}values") if "_" in field else kind + field
    dones = np.zeros((STEPS, ENVS), dtype=bool)
    dones[3, 2] = True
    storage = fill(make(), dones)
    arguments = {
        "last_values": torch.zeros(ENVS, 1),
        "last_cost_values": torch.zeros(ENVS, COSTS),
        "time_outs": torch.as_tensor(dones),
        "final_values": torch.zeros(STEPS, ENVS, 1),
        "final_cost_values": torch.zeros(STEPS, ENVS, COSTS),
    }
    step = STEPS - 1 if "last" in field else 3
    tensor = (
        arguments[name].expand(STEPS, ENVS, -1) if name in arguments else getattr(storage, name)
    )
    tensor[step, 2, -1] = number
    column = ", column 1" if kind else ""
    message = rf"^{name} .*{number} .*step {step} .*environment 2{column}$"
    with pytest.raises(ValueError, match=message):
        storage.compute_returns(**arguments, gamma=0.9, lam=0.9)
    with pytest.raises(RuntimeError, match="compute_returns"):
        storage.mini_batches(2)
    tensor[step, 2, -1] = 0.0
    storage.compute_returns(**arguments, gamma=0.9, lam=0.9)
    assert storage.advantages.isfinite().all()


def test_returns_that_overflow_are_refused_and_large_ones_are_not() -> None:
    storage = fill(plain())
    storage.rewards[3:5] = 3e38
    with pytest.raises(ValueError, match=r"^returns .*inf .*step 0 .*environment 0"):
        storage.compute_returns(torch.zeros(ENVS), 1.0, 1.0, normalize_advantage=False)
    storage.compute_returns(torch.zeros(ENVS), 0.0, 0.0, normalize_advantage=False)
    assert storage.returns.isfinite().all() and storage.returns.sum().isinf()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"training_type": "sl"}, ValueError, "training_type .*'sl'"),
        ({"num_envs": 0}, ValueError, "num_envs .*0"),
        (
            {"num_steps": 2.5},
            ValueError,
            r"num_transitions_per_env .*2\.5",
        ),
        ({"obs_shape": None}, ValueError, "obs_shape"),
        ({"obs_shape": 48}, TypeError, "obs_shape .*48"),
        ({"actions_shape": [0]}, ValueError, r"actions_shape\[0\]"),
        ({"ref_obs_shape": []}, ValueError, "ref_obs_shape"),
        ({"num_costs": -1}, ValueError, "num_costs"),
        (
            {"training_type": "distillation", "num_costs": 1},
            ValueError,
            "num_costs",
        ),
        (
            {"amp_cfg": {"amp_obs_extractor": amp_obs}},
            ValueError,
            "amp_ref_obs_extractor",
        ),
        ({"amp_cfg": AMP | {"amp_obs_extractor": 3}}, TypeError, "amp_obs_extractor.*int"),
        ({"amp_cfg": AMP | {"amp_obs_extractor": "nowhere:f"}}, ValueError, "'nowhere:f'"),
        ({"amp_cfg": AMP | {"amp_obs_extractor": "math"}}, ValueError, "'math'"),
        (
            {"amp_cfg": AMP | {"amp_obs_extractor": "math:nothing"}},
            ValueError,
            "'math:nothing'",
        ),
    ],
)
def test_arguments_of_the_storage_are_checked(
    changes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**{"training_type": "rl", "num_costs": 0} | changes)


@pytest.mark.parametrize("reader", ["mini_batches", "mini_batch_generator", "trajectory_batches"])
def test_numbers_of_batches_are_checked_at_once(reader: str) -> None:
    read = getattr(fill(plain()), reader)
    for bad in (0, STEPS * ENVS + 1):
        with pytest.raises(ValueError, match=f"num_mini_batches .*{bad}"):
            read(bad)
    with pytest.raises(ValueError, match=r"num_epochs .*0"):
        read(1, 0)


# --- the package ------------------------------------------------------------------------------------------------------


def test_the_storage_needs_nothing_but_torch() -> None:
    allowed = set(sys.stdlib_module_names) | {"torch"}
    for path in Path(legged_envs.storage.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.split(".")[0] in allowed or name.startswith(
                    (
                        "legged_envs.storage",
                        "legged_envs.checks",
                        "legged_envs.state",
                        "legged_envs.tables",
                    )
                ), (path.name, name)


def test_a_storage_with_a_replaced_buffer_or_of_another_default_dtype_is_copied() -> None:
    storage = RolloutStorageMM("rl", 4, 3, (5,), None, None, None, (2,))
    storage.observations = storage.observations.double() + 1.0
    for other in (copy.deepcopy(storage), pickle.loads(pickle.dumps(storage))):
        assert (
            torch.equal(other.observations, storage.observations)
            and other.observations.dtype == torch.float64
        )
    saved = pickle.dumps(storage)
    torch.set_default_dtype(torch.float64)
    try:
        assert pickle.loads(saved).actions.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_hidden_states_of_another_storage_are_refused() -> None:
    one, state = fill(make(), hidden=True), fill(make(), hidden=True).state_dict()
    state["hidden_states"] = [(False, [torch.zeros(2, 9, 1, 6)])] * 2
    with pytest.raises(ValueError, match="hidden_states"):
        one.load_state_dict(state)
