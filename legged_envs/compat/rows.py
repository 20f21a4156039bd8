"""Rows of a user's tensors that a reset of other environments must not change."""

from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from legged_envs.state import State, copy_rows, restore_rows

if TYPE_CHECKING:
    from legged_envs.compat.user_task import UserTask


@contextmanager
def others_unchanged(user: "UserTask", env_ids: Tensor, **more: State) -> Iterator[None]:
    """Keep the rows of all other environments in a user's tensors: methods are for whole batches.

    Args:
        user: The user's object; tensors in its dicts and lists are kept too.
        env_ids: Environments with rows that may change, shape (n,).
        more: Further dicts of attributes.
    """
    before = copy_rows({**user.stateful_attributes(), **more}, user.core.num_envs)
    yield
    others = torch.ones(user.core.num_envs, dtype=torch.bool)
    others[env_ids.cpu()] = False
    restore_rows(ChainMap(vars(user), more), before, others)
