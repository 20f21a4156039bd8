"""Saved states, contents that are put back, and rows of some environments."""

from collections import deque

import numpy as np
import torch

from legged_envs.state import (
    Stateful,
    copy_rows,
    copy_state,
    is_state,
    map_tree,
    preserve_contents,
    replace_in_place,
    restore_rows,
    restore_state,
)


class Counter(Stateful):
    STATE = ("_count", "parts")

    def __init__(self) -> None:
        self._count = torch.zeros(2)
        self.parts = {"names": ["a"]}


def test_a_saved_state_is_a_copy_and_comes_back() -> None:
    counter = Counter()
    parts = counter.parts
    state = counter.state_dict()
    counter._count += 1.0
    counter.parts["names"].append("b")
    assert list(state) == ["count", "parts"]
    counter.load_state_dict(state)
    assert counter._count.tolist() == [0.0, 0.0]
    assert counter.parts is parts and parts == {"names": ["a"]}
    counter._count += 1.0
    assert state["count"].tolist() == [0.0, 0.0]


def test_a_deque_stays_a_deque_of_its_length() -> None:
    holder = {"last": deque([1.0, 2.0], maxlen=2)}
    state = copy_state(holder)
    holder["last"].append(3.0)
    assert restore_state(holder, state)["last"] == deque([1.0, 2.0])
    assert holder["last"].maxlen == 2


def test_objects_in_a_state_stay_the_same_objects() -> None:
    counter = Counter()
    holder = {"counter": counter}
    state = copy_state(holder)
    counter._count += 1.0
    assert restore_state(holder, state)["counter"] is counter
    assert not counter._count.any()


def test_leaves_of_trees_meet_at_the_same_place() -> None:
    tree = {"a": (1, 2), "b": 3}
    assert map_tree(lambda x, y: x + y, tree, tree) == {"a": (2, 4), "b": 6}


def test_what_can_be_saved() -> None:
    assert is_state([torch.zeros(1), {"x": np.zeros(1), "none": None, "word": "w"}])
    assert is_state(Counter())
    assert not is_state(object()) and not is_state({"f": print})


def test_values_are_replaced_where_others_hold_them() -> None:
    tensor = torch.zeros(3)
    view = tensor[1:]
    names = ["a"]
    current = {"tensor": tensor, "names": names, "recent": deque([1])}
    result = replace_in_place(
        current, {"tensor": torch.ones(3), "names": ["b", "c"], "recent": deque([2])}
    )
    assert result is current and result["names"] is names
    assert view.tolist() == [1.0, 1.0]
    assert names == ["b", "c"] and list(current["recent"]) == [2]
    expanded = torch.zeros(1).expand(3)
    assert replace_in_place(expanded, torch.ones(3)) is not expanded


def test_contents_are_as_before_a_block() -> None:
    values = {"tensor": torch.zeros(2), "inner": {"list": [1], "set": {1}}}
    inner = values["inner"]
    with preserve_contents(values):
        values["tensor"] += 1.0
        inner["list"].append(2)
        inner["set"].clear()
        values["new"] = 3
    assert list(values) == ["tensor", "inner"] and values["inner"] is inner
    assert not values["tensor"].any()
    assert inner == {"list": [1], "set": {1}}


def test_rows_of_some_environments_come_back() -> None:
    values = {"a": torch.zeros(3, 2), "other": torch.zeros(5), "list": [torch.zeros(3)]}
    before = copy_rows(values, 3)
    values["a"] += 1.0
    values["other"] += 1.0
    replaced = torch.ones(3)
    values["list"][0] = replaced
    restore_rows(values, before, torch.tensor([True, False, True]))
    assert values["a"][:, 0].tolist() == [0.0, 1.0, 0.0]
    assert values["other"].tolist() == [1.0] * 5
    assert values["list"][0].tolist() == [0.0, 1.0, 0.0]
    assert replaced.tolist() == [1.0] * 3, "it may be a view of another tensor"
