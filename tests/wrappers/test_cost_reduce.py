"""CostReduce against its formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import VectorEnv
from toy_envs import ToyVectorEnv, convert
from wrapper_checks import (
    DISABLED,
    KINDS,
    MODES,
    NEXT_STEP,
    RESETTING,
    SEEDS,
    moves,
    sync,
    to_numpy,
)

from legged_envs.wrappers.auto_reset import AutoReset
from legged_envs.wrappers.cost_normalize import CostNormalize
from legged_envs.wrappers.cost_reduce import CostReduce
from legged_envs.wrappers.time_limit import TimeLimit


@KINDS
@MODES
def test_terms_are_reduced_to_the_cost_that_the_name_says(array, mode):
    formulas = {
        "sum": lambda c: c.sum(1),
        "weighted": lambda c: c[:, 0] / 0.5 + c[:, 1] / 0.25,
        "max": lambda c: c.max(1),
        "any": lambda c: (c > 0.0).any(1).astype(float),
    }
    seen = set()
    for how, formula in formulas.items():
        env = CostReduce(
            ToyVectorEnv(array=array)
            if mode is DISABLED
            else AutoReset(ToyVectorEnv(array=array), mode),
            how,
        )
        env.reset()
        for action in moves(8):
            info = to_numpy(env.step(convert(action, array))[4])
            assert info["cost"].dtype == np.float32
            np.testing.assert_allclose(info["cost"], formula(info["costs"]), rtol=1e-6)
            if "final_info" in info:
                np.testing.assert_array_equal(info["final_info"]["cost"], info["cost"])
            seen |= {(how, value) for value in info["cost"].tolist()}
    assert {value for how, value in seen if how == "weighted"} >= {0.0, 2.0, 4.0}


@KINDS
def test_whole_costs_are_weighted_by_limits_that_are_fractions(array):
    class Counts(ToyVectorEnv):
        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            *step, _ = super().step(actions)
            return *step, {"costs": convert(np.array([[1, 2]] * 3), self.array)}

    core = Counts(array=array)
    core.cost_limits = (0.4, 10.0)
    env = CostReduce(core, "weighted")
    env.reset()
    for action in moves(2):
        cost = to_numpy(env.step(convert(action, array))[4]["cost"])
        assert cost.dtype == np.float32 and cost.tolist() == pytest.approx([2.7] * 3)


@MODES
@pytest.mark.parametrize("scale", ["return", "step"])
def test_limits_and_zeros_are_those_of_raw_costs_also_above_their_normalization(mode, scale):
    def over(how: str, normalized: bool) -> list[Any]:
        env: VectorEnv = sync(mode, 4)
        env = CostReduce(CostNormalize(env, scale=scale) if normalized else env, how)
        env.reset(seed=SEEDS)
        costs = []
        for action in moves(15):
            _, _, terminated, truncated, info = env.step(action)
            final = info.get("final_info", {}).get("cost", np.zeros(3))
            costs.append((info["cost"], final))
            if mode is DISABLED and (terminated | truncated).any():
                env.reset(options={"reset_mask": terminated | truncated})
        return costs

    for how in ("weighted", "any"):
        for (cost, final), (expected, expected_final) in zip(
            over(how, True), over(how, False), strict=True
        ):
            np.testing.assert_array_equal(cost, expected)
            rows = expected_final != 0.0
            np.testing.assert_array_equal(final[rows], expected_final[rows])
    assert not np.array_equal(over("max", True), over("max", False))


@RESETTING
def test_costs_that_gymnasium_hides_in_final_info_are_reduced_where_they_belong(mode):
    ours = CostReduce(AutoReset(TimeLimit(sync(DISABLED), 4), mode), "weighted")
    hidden = CostReduce(sync(mode, 4), "weighted")
    ours.reset(seed=SEEDS), hidden.reset(seed=SEEDS)
    for action in moves(20):
        one, other = ours.step(action), hidden.step(action)
        np.testing.assert_array_equal(one[4]["cost"], other[4]["cost"])


def test_a_step_in_which_every_environment_resets_costs_nothing():
    env = CostReduce(sync(NEXT_STEP, limit=2), "max")
    env.reset(seed=SEEDS)
    costs = [env.step(action)[4]["cost"] for action in moves(3)]
    assert costs[0].all() and costs[2].tolist() == [0.0, 0.0, 0.0]


def test_reductions_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match=r"sum.*got 'mean'"):
        CostReduce(ToyVectorEnv(), "mean")
    none = CostReduce(ToyVectorEnv(costs=False), "sum")
    none.reset()
    with pytest.raises(ValueError, match=r"\['time'\]"):
        none.step(moves(1)[0])
    for limits, message in (
        ((0.5, 0.0), "cost 'late' is 0.0"),
        ((0.5,), "2 cost_names and 1 cost_limits"),
    ):
        env = ToyVectorEnv()
        env.cost_limits = limits
        with pytest.raises(ValueError, match=message):
            CostReduce(env, "weighted")
        CostReduce(env, "max")
    empty = ToyVectorEnv()
    empty.cost_names = ()
    with pytest.raises(ValueError, match=r"CostReduce.*cost"):
        CostReduce(empty, "sum")
    with pytest.raises(ValueError, match="cost_limits"):
        CostReduce(ToyVectorEnv(costs=False), "weighted")
