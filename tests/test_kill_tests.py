"""The script that kills trainings: it finds every difference between two checkpoints."""

import copy

import pytest
import torch

from tools.kill_tests import differences

STATE = {
    "weights": {"actor": torch.tensor([1.0, torch.nan, 0.0]), "step": torch.tensor(3)},
    "rng": [torch.arange(4, dtype=torch.uint8), (1, 2.5, None)],
}


def test_equal_states_have_no_difference_with_nan_either():
    assert list(differences(copy.deepcopy(STATE), STATE, "state")) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda state: state["weights"]["actor"][2:].neg_(), "state.weights.actor"),
        (lambda state: state["weights"]["step"].add_(1), "state.weights.step"),
        (lambda state: state["weights"].pop("step"), "state.weights"),
        (lambda state: state["rng"][0].add_(1), r"state.rng[0]"),
        (lambda state: state["rng"].pop(), "state.rng"),
        (lambda state: state["rng"].__setitem__(1, (1, 2.5, 0)), "state.rng[1][2]"),
    ],
)
def test_one_bit_is_a_difference_and_has_its_path(change, path):
    other = copy.deepcopy(STATE)
    change(other)
    (found,) = differences(other, STATE, "state")
    assert found.split(" ")[0] == path
