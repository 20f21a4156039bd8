"""A recording of a step's maths does what the maths as written does, bit for bit, and takes no memory with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from legged_envs import make_task_cfg
from legged_envs.envs import LeggedVectorEnv
from legged_envs.managers import fusion
from legged_envs.managers.recorded import Piece, Program

SIZES = [1, 3, 32, 128, 129, 4096]
SPECIAL = torch.tensor(
    [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-40, -1e-40, 3e38, 1.0, -1.0]
)


class Owner(SimpleNamespace):
    """Holds tensors of ``n`` environments; the same for the same seed."""

    def __init__(self, n: int, seed: int = 0):
        random = torch.Generator().manual_seed(seed)

        def floats(*shape: int) -> torch.Tensor:
            value = (
                torch.randn(shape, generator=random) * torch.randn(shape, generator=random).exp()
            )
            special = SPECIAL[torch.randint(len(SPECIAL), shape, generator=random)]
            return torch.where(torch.rand(shape, generator=random) < 0.1, special, value)

        super().__init__(
            n=n,
            a=floats(n, 12),
            b=floats(n, 12),
            pair=floats(n, 2),
            vector=floats(n, 3),
            feet=floats(n, 4),
            bodies=floats(n, 7, 3),
            wide=floats(n, 19)[:, 7:],
            row=floats(12),
            column=floats(n),
            scalar=torch.tensor(0.3),
            contact=floats(n, 4) > 0.0,
            count=torch.randint(-3, 9, (n, 4), generator=random, dtype=torch.int32),
            draw=torch.randint(-(2**23), 2**23, (n, 12), generator=random, dtype=torch.int32),
            joints=torch.tensor([4, -1, 0]),
            bits=2 ** torch.arange(4),
            scores=floats(16),
            sums=torch.zeros(n, 12),
        )


def same(mine: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two tensors have the same bits, but for those of a NaN."""
    if mine.shape != expected.shape or mine.dtype != expected.dtype:
        return False
    if not mine.is_floating_point():
        return torch.equal(mine, expected)
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[mine.element_size()]
    bits = mine.contiguous().view(kind) == expected.contiguous().view(kind)
    return bool((bits | (mine.isnan() & expected.isnan())).all())


def assert_same_attributes(mine: object, expected: object) -> None:
    assert list(vars(mine)) == list(vars(expected))
    for name, value in vars(expected).items():
        if isinstance(value, torch.Tensor):
            assert same(getattr(mine, name), value), name


Run = Callable[[Any], None]


def assert_replays_as_written(
    run: Run, n: int, between: Callable[[Any, int], None] = lambda owner, step: None, steps: int = 4
) -> None:
    """Run three times as recorded and as written, with ``between`` before each call."""
    recorded, written = Owner(n), Owner(n)
    program = Program([Piece(lambda: run(recorded), pure=True)], [recorded])
    assert_same_attributes(recorded, written)
    for step in range(steps):
        for owner in (recorded, written):
            between(owner, step)
        program()
        run(written)
        assert_same_attributes(recorded, written)


def setting(expression: Callable[[Owner], torch.Tensor]) -> Run:
    def run(owner: Owner) -> None:
        owner.result = expression(owner)

    return run


EXPRESSIONS: dict[str, Callable[[Any], torch.Tensor]] = {
    "arithmetic": lambda o: (o.a + o.b) * o.wide - o.row / o.b,
    "scalars": lambda o: (o.a * 0.37 + 2) / 12 - o.wide.sub(1.5),
    "scalar tensor": lambda o: o.a * o.scalar + o.scalar,
    "scaled difference": lambda o: (o.a + o.b).sub_(o.wide, alpha=2.0),
    "powers": lambda o: o.a.square() + o.b.pow(3) - o.wide.abs().sqrt(),
    "exponential": lambda o: (o.column * -4.0).exp_() + o.a.exp().sum(1),
    "clamps": lambda o: (
        o.a.clamp(-1.0, 1.0) + o.b.clamp_min(0.0) - o.wide.clamp_max(0.0) + o.a.clamp(max=2)
    ),
    "clamps to zero": lambda o: o.a.clamp_min(0.0),
    "clamps to minus zero": lambda o: o.a.clamp_max(-0.0),
    "clamp to tensors": lambda o: torch.clamp(o.a, -o.row.abs(), o.row.abs()),
    "comparisons": lambda o: (
        (o.a > o.b) | (o.a < 0.3) & ~(o.wide >= o.row) | (o.a != o.b) | (o.a <= 1) | (o.b == 0)
    ),
    "of an integer with a float": lambda o: o.count > 0.5,
    "float and bool": lambda o: o.feet * o.contact - o.contact * o.feet.abs(),
    "int and bool": lambda o: o.count * o.contact + (o.contact * o.bits),
    "int and float": lambda o: o.draw * o.row,
    "integers": lambda o: o.count.neg().abs() * 2 - o.count // 2,
    "int division": lambda o: o.count / 3,
    "bool arithmetic": lambda o: o.contact * o.contact + (o.contact ^ ~o.contact),
    "sums": lambda o: (
        o.pair.sum(1) + o.vector.sum(1) + o.feet.sum(1) + o.a.sum(1) + o.bodies.sum(2).sum(1)
    ),
    "sums of columns": lambda o: o.a.sum(0) + o.b.mean(0) + o.wide.sum() + o.a.sum((0, 1)),
    "kept dimensions": lambda o: o.feet.sum(1, keepdim=True) * o.a.mean(1, keepdim=True),
    "counts": lambda o: (o.a > 0).sum(1, dtype=torch.float32) + o.contact.sum(1) + o.count.sum(1),
    "means": lambda o: o.feet.mean(1) + o.a.mean(1),
    "any": lambda o: (o.a > 2.0).any(1) | o.contact.all(1) | o.contact.any(),
    "extremes": lambda o: o.feet.amin(1) + o.a.amax(1) + o.b.max(1).values,
    "which of two zeros": lambda o: torch.cat(
        (
            torch.maximum(o.a * 0, o.b * 0),
            torch.minimum(o.a * 0, o.b * 0),
            *((o.feet * 0).aminmax(dim=1, keepdim=True)),
        ),
        dim=1,
    ),
    "least of zeros": lambda o: (o.a.sign() * 0.0).amin(1) * 1.0,
    "greatest of zeros": lambda o: (o.a.sign() * 0.0).amax(1) * 1.0,
    "choice": lambda o: torch.where(o.contact, o.feet, o.count).sum(1),
    "codes": lambda o: o.scores[(o.contact * o.bits).sum(1)],
    "index": lambda o: o.a[:, o.joints].sum(1) + o.a[:, [3, 1]].sum(1),
    "index of rows": lambda o: o.a[torch.arange(o.n).flip(0)],
    "two indices": lambda o: o.a[torch.arange(o.n), torch.zeros(o.n, dtype=torch.int64)],
    "slices": lambda o: o.a[:, 1::3] * o.wide[:, :4] + o.a[:, -4:],
    "select": lambda o: o.vector[:, 2] * o.bodies[..., 1].sum(1),
    "norms": lambda o: torch.linalg.vector_norm(o.bodies, dim=-1).sum(1) + o.a.norm(dim=1),
    "cross": lambda o: torch.linalg.cross(o.bodies, o.vector.unsqueeze(1).expand_as(o.bodies)),
    "addcmul": lambda o: torch.addcmul(o.a, o.b, o.wide),
    "stack": lambda o: torch.stack((o.a, o.b, o.wide), dim=1).flatten(1),
    "stack of columns": lambda o: torch.stack([o.column, o.feet[:, 1], o.column * 2.0], dim=-1),
    "cat": lambda o: torch.cat((o.a, o.feet, o.wide * 2.0), dim=1),
    "cat of rows": lambda o: torch.cat((o.a, o.wide)),
    "casts": lambda o: (
        o.contact.float() * o.count.to(torch.float32)
        + (o.feet.double() * o.contact.double()).float()
    ),
    "factories": lambda o: (
        torch.ones(o.n) * 2 + torch.zeros_like(o.column).add_(1.0) + torch.tensor(0.5)
    ),
    "factory changed in place": lambda o: (
        torch.zeros(o.n, 12).add_(o.a)[:, 0] + torch.full((o.n,), 2.0).mul_(o.column)
    ),
    "literal changed in place": lambda o: torch.tensor([1.0, 2.0]).add_(o.pair.sum(0)),
    "angles": lambda o: torch.atan2(o.pair[:, 0], o.pair[:, 1]) + o.column.sin() * o.column.cos(),
    "matmul": lambda o: o.a.clamp(-1, 1) @ o.row.clamp(-1, 1),
    "reshapes": lambda o: (
        o.wide.reshape(-1, 3).square().reshape(o.n, -1) + o.a.view(-1, 12).contiguous()
    ),
    "sort": lambda o: o.feet.sort(dim=1).values + o.feet.topk(4, dim=1)[0],
    "in place through a view": lambda o: o.a.clone()[:, 2:5].mul_(2.0).add_(o.vector),
    "half": lambda o: (o.a.half() * o.b.half()).float() + (o.a.bfloat16() + o.b.bfloat16()).float(),
    "double": lambda o: (o.a.double() * o.b.double() + 0.1).sum(1),
    "split": lambda o: torch.cat(
        [part.square() for part in o.a.split([3, 5, 4], dim=1)][::-1], dim=1
    ),
    "unbind": lambda o: o.vector.unbind(1)[0] + o.vector.square().unbind(1)[2],
    "transposed": lambda o: (o.a.t() * 2.0).sum(0) + o.a.t().contiguous().sum(0),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_operation_gives_the_same_bits_at_every_batch_size(name):
    for n in SIZES:
        assert_replays_as_written(setting(EXPRESSIONS[name]), n, steps=2)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_give_the_same_bits(seed):
    """Up to 25 operations, each on what any earlier one made: of one robot they are gathered into few calls."""
    one: list[Callable[..., torch.Tensor]] = [
        *(
            torch.neg,
            torch.abs,
            torch.square,
            torch.exp,
            torch.sqrt,
            torch.tanh,
            torch.reciprocal,
            torch.sign,
        ),
        *(
            lambda x: x.clamp(-1, 1),
            lambda x: x.clamp_min(0.0),
            lambda x: 1.0 - 2.5 * x,
            lambda x: (x > 0.2).float(),
        ),
        *(
            lambda x: torch.where(x > 0, x, 0.1 * x),
            lambda x: x.clone().mul_(x > 0),
            lambda x: x.roll(1, -1),
        ),
        *(
            lambda x: x.mean(-1, keepdim=True) + x,
            lambda x: x.norm(dim=-1, keepdim=True) * x,
            lambda x: x.cumsum(-1),
        ),
        *(
            lambda x: torch.stack((x, -x))[1],
            lambda x: torch.cat((x, x), -1)[:, 6:18],
            lambda x: x[:, [0, 3] * 6],
        ),
    ]
    two: list[Callable[..., torch.Tensor]] = [
        *(torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.atan2),
        *(
            lambda x, y: torch.where(x > y, x, y),
            lambda x, y: x.clone().add_(y, alpha=2.0),
            lambda x, y: x.lerp(y, 0.3),
        ),
    ]
    rows = [
        lambda x: x.sum(-1),
        lambda x: x.amax(-1),
        lambda x: (x > 0).any(-1),
        lambda x: (x[:, :4] < 1).all(-1),
    ]
    draw = torch.Generator().manual_seed(seed)
    program = torch.randint(10**6, (25, 4), generator=draw).tolist()[: 3 + seed % 23]

    def run(owner: Any) -> None:
        values = [owner.a, owner.b, owner.wide, owner.row.expand_as(owner.a), owner.sums]
        for kind, which, i, j in program:
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(
                two[which % len(two)](x, y) if kind % 3 == 0 else one[which % len(one)](x)
            )
        owner.rows = torch.stack([row(x) * 1.0 for row, x in zip(rows, values[-4:], strict=True)])
        owner.last = values[-1] * 1.0
        owner.sums.add_(values[-1].nan_to_num(0.0, 0.0, 0.0) * 0.01)

    assert_replays_as_written(run, (1, 1, 1, 3)[seed % 4])


def test_what_a_piece_changes_in_place_stays_changed():
    def run(owner: Any) -> None:
        owner.sums.add_(owner.a).mul_(0.5)
        owner.count.add_(1).mul_(owner.contact)
        owner.wide[:, :3].copy_(owner.vector)
        owner.a[:, 0] = owner.column
        owner.b.clamp_(-1.0, 1.0).index_fill_(1, owner.joints.clamp(min=0), 0.0)

    assert_replays_as_written(run, 5)


def test_pieces_that_read_what_earlier_ones_set():
    def run(owner: Any) -> None:
        owner.a, owner.b = owner.b, owner.a
        owner.total = (owner.a - owner.b).sum(1)
        owner.column = owner.total * owner.column.clamp(-1, 1)
        owner.same = owner.column
        owner.part = owner.feet[:, :2]
        owner.contact = (owner.feet > 0.0) & ~owner.contact

    for n in (1, 200):
        assert_replays_as_written(run, n)


def test_attributes_may_be_replaced_between_calls():
    def run(owner: Any) -> None:
        owner.sums.add_(owner.a[:, :1] * owner.row)
        owner.result = (owner.vector[:, :2] - owner.pair).square_().sum(1)

    def between(owner: Any, step: int) -> None:
        owner.a, owner.b = owner.b, owner.a
        owner.row = owner.row + 1.0
        owner.sums = owner.sums.clone()
        owner.vector.mul_(0.5)

    assert_replays_as_written(run, 7, between)


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x.t().contiguous().t(),
        lambda x: torch.cat((x, x), dim=1)[:, : x.shape[1]],
        lambda x: torch.stack((x, x), dim=2)[..., 0],
        lambda x: x[:1].expand_as(x),
        lambda x: x.double(),
        lambda x: x.requires_grad_(),
    ],
)
def test_attributes_may_come_in_another_order_of_memory(layout):
    def run(owner: Any) -> None:
        owner.difference = (owner.a - owner.b).abs_()
        owner.result = owner.difference.sum(1) + owner.a.sum(1) + owner.a[:, 1:].square().sum(1)
        owner.rows = owner.a.reshape(-1, 6) * 2.0

    def between(owner: Any, step: int) -> None:
        owner.a = (
            layout(owner.a.detach().float() * 1.5)
            if step % 2
            else owner.a.detach().float().contiguous()
        )

    with torch.no_grad():
        for n in (1, 6, 300):
            assert_replays_as_written(run, n, between)


def test_tensors_that_share_memory_go_on_sharing_it():
    first, second = Owner(4), SimpleNamespace()

    def run() -> None:
        first.a.add_(1.0)
        second.result = second.alias * 2.0 + second.view.sum(1, keepdim=True)

    second.alias, second.view = first.a, first.a[:, :3]
    program = Program([Piece(run, True)], [first, second, first])
    before = first.a.clone()
    program()
    assert same(first.a, before + 1.0)
    assert same(second.result, first.a * 2.0 + first.a[:, :3].sum(1, keepdim=True))
    second.alias = torch.zeros(4, 12)
    program()
    assert same(second.result, torch.zeros(4, 12) + first.a[:, :3].sum(1, keepdim=True))


def test_results_are_tensors_of_their_own():
    """Whoever keeps a result finds it as it was, however often the recording is replayed."""
    owner = Owner(3)
    program = Program([Piece(lambda: setting(lambda o: o.a * 2.0)(owner), True)], [owner])
    seen = []
    for step in range(4):
        owner.a.fill_(float(step))
        program()
        seen.append(owner.result)
    assert [value[0, 0].item() for value in seen] == [0.0, 2.0, 4.0, 6.0]


def test_impure_pieces_run_as_they_are_written_in_their_place():
    owner, calls = Owner(2), []

    def pure(name: str, expression: Callable[[Any], torch.Tensor]) -> Piece:
        return Piece(
            lambda: (calls.append(name), setattr(owner, "feet", expression(owner)))[1], True
        )

    def impure() -> None:
        calls.append("impure")
        owner.feet = owner.feet * float(len(calls))

    pieces = [
        pure("first", lambda o: o.feet + 1.0),
        pure("second", lambda o: o.feet * 3.0),
        Piece(impure, False),
        pure("third", lambda o: o.feet - 1.0),
    ]
    expected = owner.feet.clone()
    program = Program(pieces, [owner])
    assert same(owner.feet, expected), "making a program changes nothing"
    assert calls == ["first", "second", "third"]
    for call in (4, 5):
        program()
        expected = (expected + 1.0) * 3.0 * float(call) - 1.0
        assert same(owner.feet, expected)
    assert calls[3:] == ["impure", "impure"]


def test_a_program_without_pieces_or_tensors_does_nothing():
    Program([], [])()
    Program([Piece(lambda: None, True)], [SimpleNamespace(a=1)])()


# --- what cannot be recorded ------------------------------------------------------------------------------------------


@lru_cache
def table(size: int) -> torch.Tensor:
    return torch.arange(float(size))


def test_tables_that_are_cached_and_tensors_in_containers_are_constants():
    owner = Owner(4)
    owner.limits = {0.9: (torch.full((12,), -0.5), torch.full((12,), 0.5))}
    table(12)

    def run() -> None:
        low, high = owner.limits[0.9]
        owner.result = torch.minimum(torch.maximum(owner.a, low), high) * table(12)

    program = Program([Piece(run, True)], [owner])
    owner.a.mul_(0.1)
    program()
    assert same(
        owner.result,
        torch.minimum(torch.maximum(owner.a, torch.tensor(-0.5)), torch.tensor(0.5)) * table(12),
    )


STATE = torch.ones(4)


@pytest.mark.parametrize(
    "kept_in", ["an object", "a module", "a closure", "an object that shares it with an owner"]
)
def test_a_tensor_that_no_owner_has_is_an_error(kept_in):
    owner, closed = Owner(4), torch.ones(4)
    other = SimpleNamespace(state=torch.ones(4), shared=owner.column)
    read = {
        "an object": lambda: other.state,
        "a module": lambda: STATE,
        "a closure": lambda: closed,
        "an object that shares it with an owner": lambda: other.shared,
    }[kept_in]
    piece = Piece(lambda: setattr(owner, "result", owner.column * read()), True)
    before = dict(vars(owner))
    with pytest.raises(ValueError, match=r"shape \(4,\).*none of the owners.*an owner"):
        Program([piece], [owner])
    assert vars(owner).keys() == before.keys()
    assert all(vars(owner)[name] is value for name, value in before.items()), (
        "an error leaves the owners as they were"
    )
    expected = owner.column * read()
    Program([piece], [owner, other, SimpleNamespace(constants=[STATE, closed])])()
    assert same(owner.result, expected)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (lambda o: setattr(o, "n", o.n + 1), "'n', which is no tensor"),
        (lambda o: setattr(o, "result", o.a * float(o.a[0, 0])), "depends on the values"),
        (lambda o: setattr(o, "result", o.a if o.contact.any() else o.b), "depends on the values"),
        (lambda o: setattr(o, "result", o.a[o.contact[:, 0]]), "depends on the values"),
        (lambda o: setattr(o, "result", o.contact.nonzero()), "depends on the values"),
        (lambda o: setattr(o, "result", o.a + torch.rand(4, 12)), "random"),
        (lambda o: o.a.uniform_(), "random"),
        (lambda o: setattr(o, "result", o.missing * 2.0), "missing"),
    ],
)
def test_what_depends_on_more_than_tensors_is_an_error(run, why):
    owner = Owner(4)
    expected = Owner(4)
    with pytest.raises((ValueError, AttributeError), match=why):
        Program([Piece(lambda: owner.a.add_(1.0), True), Piece(lambda: run(owner), True)], [owner])
    assert_same_attributes(owner, expected)
    assert owner.n == 4


def test_warnings_of_numpy_stay_out(recwarn):
    owner = Owner(4)
    program = Program(
        [Piece(lambda: setting(lambda o: o.a / (o.b * 0.0) + o.a * 3e38)(owner), True)], [owner]
    )
    program()
    assert not recwarn.list


# --- memory and environments ------------------------------------------------------------------------------------------


GROWTH = """
import gc, resource
from test_recorded import EXPRESSIONS, Owner, Piece, Program

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20

owner, expressions = Owner(8), [EXPRESSIONS[name] for name in ("arithmetic", "sums", "clamps", "slices", "stack")]
for cycle in range(500):
    if cycle == 20:
        before = resident()
    pieces = [Piece(lambda e=e, i=i: setattr(owner, f"r{i}", e(owner)), True) for i, e in enumerate(expressions)]
    program = Program(pieces, [owner])
    for _ in range(3):
        program()
print(resident() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_programs_leave_no_memory_behind():
    """In a process of its own: the heap of one that has run other tests grows by itself."""
    result = subprocess.run(
        [sys.executable, "-c", GROWTH],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-1500:]
    assert float(result.stdout) < 10.0, f"480 programs left {float(result.stdout):.1f} MB behind"


@pytest.mark.parametrize(
    "task", ["Legged/Go2-Flat-v0", "Legged/G1-Flat-v0", "Legged/Go2-Mimic-v0", "Legged/G1-Mimic-v0"]
)
@pytest.mark.parametrize("num_envs", [1, 40])
def test_recorded_tasks_do_what_unrecorded_ones_do(
    task, num_envs, monkeypatch, random_actions, assert_same
):
    def make() -> LeggedVectorEnv:
        cfg = make_task_cfg(task)
        cfg.events["push"].interval_s = (0.1, 0.5)
        return LeggedVectorEnv(cfg, num_envs, array="torch", observations="dict")

    recorded = make()
    monkeypatch.setattr("legged_envs.mdp.context.is_pure", lambda function: False)
    monkeypatch.setattr("legged_envs.managers.manager.is_pure", lambda function: False)
    written = make()
    size = recorded.single_action_space.shape[0]
    assert_same(recorded.reset(seed=1), written.reset(seed=1))
    for step, action in enumerate(torch.from_numpy(random_actions(50, num_envs, size))):
        results = recorded.step(action)
        assert_same(results, written.step(action), f"step {step}")
        mask = results[2].clone()
        mask[0] |= step == 30
        if mask.any():
            options = {"reset_mask": mask}
            assert_same(
                recorded.reset(options=options), written.reset(options=options), f"reset {step}"
            )


@pytest.mark.parametrize(
    "task", ["Legged/Go2-Flat-v0", "Legged/G1-Flat-v0", "Legged/Go2-Mimic-v0", "Legged/G1-Mimic-v0"]
)
def test_a_single_robot_takes_a_fraction_of_the_calls(task, monkeypatch):
    made = []

    class Counted(fusion.Fusion):
        def __init__(self, tape, *args: Any):
            super().__init__(tape, *args)
            made.append((len(tape.operations), len(self._runs)))

    monkeypatch.setattr("legged_envs.managers.recorded.Fusion", Counted)
    LeggedVectorEnv(make_task_cfg(task), 1, observations="dict").close()
    assert len(made) == 2, (
        "neither evaluation nor observation falls back to a call for each operation"
    )
    assert all(calls < 0.5 * operations for operations, calls in made), made
