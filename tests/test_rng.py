"""The random numbers of an environment depend on its seed, index, stream and draw, and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from legged_envs.rng import RandomStreams, Stream, splitmix64

CPU = torch.device("cpu")
GOLDEN_GAMMA = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1

PUBLISHED = {
    # Steele, Lea & Flood's generator as published by S. Vigna (https://prng.di.unimi.it/splitmix64.c), seed 0, and the
    # Rosetta Code task "Pseudo-random numbers/Splitmix64", seed 1234567.
    0: (
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
        0xF88BB8A8724C81EC,
        0x1B39896A51A8749B,
    ),
    1234567: (
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ),
}


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def mix(z: int) -> int:
    """SplitMix64's output function on Python integers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & WORD
    return z ^ (z >> 31)


def unmix(z: int) -> int:
    """The inverse of ``mix``."""
    z ^= z >> 31 ^ z >> 62
    z = z * pow(0x94D049BB133111EB, -1, 1 << 64) & WORD
    z ^= z >> 27 ^ z >> 54
    z = z * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & WORD
    return z ^ z >> 30 ^ z >> 60


def streams(num_envs: int, seed: int | list[int] = 0) -> RandomStreams:
    random = RandomStreams(num_envs, CPU)
    random.seed(seed, torch.arange(num_envs))
    return random


def stream_that_draws(words: list[int]) -> Stream:
    """A stream with the 64-bit word ``words[i]`` as its first draw in environment i."""
    stream = Stream("chosen", len(words), CPU)
    keys = [signed(unmix(word) - GOLDEN_GAMMA & WORD) for word in words]
    stream.load_state_dict(
        {"key": torch.tensor(keys).unsqueeze(1), "counter": torch.zeros(len(words), 1).long()}
    )
    return stream


# --- SplitMix64 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", PUBLISHED)
def test_splitmix64_gives_the_published_sequence(seed):
    state = torch.tensor([signed(seed + (n + 1) * GOLDEN_GAMMA & WORD) for n in range(5)])
    assert splitmix64(state).tolist() == [signed(word) for word in PUBLISHED[seed]]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=20))
def test_splitmix64_equals_integer_arithmetic(values):
    expected = [signed(mix(value & WORD)) for value in values]
    assert splitmix64(torch.tensor(values)).tolist() == expected


def test_a_stream_is_the_splitmix64_sequence_of_its_key():
    stream = streams(3, seed=11).stream("noise")
    keys = stream.state_dict()["key"].squeeze(1).tolist()
    drawn = torch.cat([stream.signed_24_bit(4), stream.signed_24_bit(2)], dim=1)
    for key, row in zip(keys, drawn.tolist(), strict=True):
        words = [mix(key + (n + 1) * GOLDEN_GAMMA & WORD) for n in range(3)]
        halves = [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)]
        top_24_bits = [half >> 8 for half in halves]
        assert row == [bits - (1 << 24) if bits >> 23 else bits for bits in top_24_bits]


# --- independence -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_an_environment_draws_the_same_whatever_the_batch_size(num_envs):
    small, large = streams(num_envs, seed=5).stream("push"), streams(64, seed=5).stream("push")
    for size in (1, 12, 7):
        assert torch.equal(
            small.uniform(-1.0, 2.0, size), large.uniform(-1.0, 2.0, size)[:num_envs]
        )


def test_a_draw_for_some_environments_leaves_the_others_alone():
    whole, partial = streams(6).stream("reset"), streams(6).stream("reset")
    ids = torch.tensor([1, 4])
    others = torch.tensor([0, 2, 3, 5])
    first_of_all = whole.uniform(0.0, 1.0, 3)
    assert torch.equal(partial.uniform(0.0, 1.0, 3, ids), first_of_all[ids])
    second_of_all = whole.uniform(0.0, 1.0, 3)
    next_of_all = partial.uniform(0.0, 1.0, 3)
    assert torch.equal(next_of_all[others], first_of_all[others])
    assert torch.equal(next_of_all[ids], second_of_all[ids])


def test_a_draw_for_no_environment_is_empty_and_changes_nothing():
    stream, untouched = streams(4).stream("reset"), streams(4).stream("reset")
    nobody = torch.arange(0)
    assert stream.uniform(0.0, 1.0, 3, nobody).shape == (0, 3)
    assert stream.signed_24_bit(1, nobody).shape == (0, 1)
    assert torch.equal(stream.uniform(0.0, 1.0, 3), untouched.uniform(0.0, 1.0, 3))


def test_seeds_environments_and_streams_all_draw_different_numbers():
    drawn = [
        row
        for seed in (0, 1, 2)
        for name in ("push", "noise", "")
        for row in streams(16, seed).stream(name).uniform(0.0, 1.0, 8).tolist()
    ]
    assert len({tuple(row) for row in drawn}) == len(drawn) == 144
    assert np.abs(np.corrcoef(np.array(drawn).T) - np.eye(8)).max() < 5 / np.sqrt(144)


def test_a_stream_does_not_depend_on_which_streams_exist_or_when_it_was_first_used():
    random = streams(4, seed=3)
    random.stream("other").uniform(0.0, 1.0, 5)
    before = RandomStreams(4, CPU)
    early = before.stream("push")
    before.seed(3, torch.arange(4))
    assert torch.equal(random.stream("push").uniform(0.0, 1.0, 6), early.uniform(0.0, 1.0, 6))
    assert random.stream("push") is random.stream("push")


# --- seeds ------------------------------------------------------------------------------------------------------------


def test_a_list_of_seeds_makes_each_environment_the_first_of_its_own_seed():
    listed = streams(3, [7, 0, 7]).stream("push").uniform(0.0, 1.0, 9)
    for row, seed in zip(listed, (7, 0, 7), strict=True):
        assert torch.equal(row, streams(1, seed).stream("push").uniform(0.0, 1.0, 9)[0])


def test_seeding_again_replays_and_only_in_the_environments_named():
    random = streams(4, seed=1)
    stream = random.stream("push")
    first = stream.uniform(0.0, 1.0, 4)
    random.seed(1, torch.tensor([0, 2]))
    again = stream.uniform(0.0, 1.0, 4)
    assert torch.equal(again[[0, 2]], first[[0, 2]])
    assert not (again[[1, 3]] == first[[1, 3]]).any()


# --- distribution -----------------------------------------------------------------------------------------------------


def test_uniform_has_the_moments_of_a_uniform_distribution():
    x = streams(2000).stream("push").uniform(0.0, 1.0, 100).double().numpy()
    sigma = np.sqrt(1 / 12 / x.size)
    assert abs(x.mean() - 0.5) < 5 * sigma
    assert abs(x.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / x.size)
    counts = np.histogram(x, bins=50, range=(0.0, 1.0))[0]
    assert ((counts - x.size / 50) ** 2 / (x.size / 50)).sum() < 49 + 5 * np.sqrt(2 * 49)
    assert np.abs(np.corrcoef(x[:, :-1].ravel(), x[:, 1:].ravel())[0, 1]) < 5 / np.sqrt(x.size)


def test_bounds_may_differ_from_column_to_column():
    low, high = torch.tensor([-3.0, 0.0, 10.0]), torch.tensor([-1.0, 0.5, 10.0])
    x = streams(2000).stream("push").uniform(low, high, 3)
    assert (x >= low).all() and (x <= high).all()
    assert torch.allclose(x.mean(0), (low + high) / 2, atol=0.1)
    assert torch.allclose(x.amax(0) - x.amin(0), high - low, atol=0.02)


@settings(max_examples=200, deadline=None)
@given(st.floats(-1000.0, 1000.0, width=32), st.floats(0.0, 1000.0, width=32))
@example(0.0, 1.7385070669097875e-38)  # 2⁻²⁴ of this is not a normal number
def test_the_smallest_and_the_largest_draw_stay_within_the_bounds(low, width):
    high = float(np.float32(low) + np.float32(width))
    smallest_then_largest = 0x7FFFFFFF_80000000
    x = stream_that_draws([smallest_then_largest]).uniform(low, high, 2)[0]
    assert x[0].item() == low
    assert low <= x[1].item() <= high


# --- state ------------------------------------------------------------------------------------------------------------


def test_saved_streams_go_on_where_they_were_also_in_new_ones():
    random = streams(5, seed=9)
    random.stream("push").uniform(0.0, 1.0, 3, torch.tensor([1, 3]))
    random.stream("noise").uniform(0.0, 1.0, 7)
    state = random.state_dict()
    expected = [
        random.stream(name).uniform(0.0, 1.0, 4) for name in ("push", "noise", "made later")
    ]
    for target in (random, RandomStreams(5, CPU)):
        target.load_state_dict(state)
        for name, values in zip(("push", "noise"), expected, strict=False):
            assert torch.equal(target.stream(name).uniform(0.0, 1.0, 4), values)
    fresh = RandomStreams(5, CPU)
    fresh.load_state_dict(state)
    assert torch.equal(fresh.stream("made later").uniform(0.0, 1.0, 4), expected[2])


def test_a_saved_state_does_not_change_when_the_streams_go_on():
    random = streams(2)
    random.stream("push").uniform(0.0, 1.0, 2)
    state = random.state_dict()
    following = random.stream("push").uniform(0.0, 1.0, 2)
    random.seed(4, torch.arange(2))
    random.load_state_dict(state)
    assert torch.equal(random.stream("push").uniform(0.0, 1.0, 2), following)


def test_a_stream_that_is_first_used_after_a_state_draws_the_same_again_from_there():
    random = RandomStreams(3, torch.device("cpu"))
    random.seed(5, torch.arange(3))
    random.stream("old").uniform(0.0, 1.0, 2)
    state = random.state_dict()

    def draw() -> torch.Tensor:
        return torch.cat(
            [random.stream(name).uniform(0.0, 1.0, 2) for name in ("old", "new", "new")], 1
        )

    expected = draw()
    random.load_state_dict(state)
    assert torch.equal(draw(), expected)
