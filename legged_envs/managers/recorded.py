import functools
import gc
import hashlib
import itertools
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from legged_envs.managers.fusion import Fusion, Unfit
from legged_envs.managers.tape import Place, Tape, tensors_in

_OPTIONS = {"cpp.simdlen": 0, "cpp.threads": 1, "cpp.vec_isa_ok": False}
"""Scalar code on one thread keeps the order of sums, so that results do not depend on the number of environments.
Vector instructions need then not be tried out, which takes ten seconds."""
Run = Callable[[], None]
Attributes = Sequence[dict[str, Any]]  # those of the owners


class Piece(NamedTuple):
    """A stretch of a step's maths that :class:`Program` runs or replays."""

    run: Run
    """A stretch of a step's maths, which reads tensors of the owners and changes them in place or sets others."""
    pure: bool
    """Whether it can be recorded: tensor operations that depend neither on the tensors' values nor on anything else
    that changes, and change nothing but the owners' tensors."""


class Program:
    """Pieces of a step, run in order; pure pieces in succession run as one recording. Their operations are recorded
    once and replayed from then on, with the same results bit for bit, without the interpreter between them; or compiled
    into C++ libraries, with results that differ in the last digits.
    What a recording reads must be an attribute of one of the ``owners``, which exists already or which an earlier pure
    piece sets. Between two calls the attributes may be set to other tensors, and tensors be changed in place. Tensors
    in an owner's tuples, lists and dicts, and in tables that ``functools.lru_cache`` keeps, are constants: they may be
    read too, but not be replaced. What is computed goes to new tensors, so that whoever keeps one keeps its values.
    ValueError if a pure piece cannot be recorded: it reads a tensor that no owner has, sets what is no tensor, depends
    on the values of a tensor, or draws random numbers. RuntimeError if ``compile`` finds no compiler."""

    def __init__(self, pieces: Sequence[Piece], owners: Sequence[object], compile: bool = False):
        attributes = [vars(owner) for owner in {id(owner): owner for owner in owners}.values()]
        before = [dict(names) for names in attributes]
        self._runs: list[Run] = []
        try:
            for pure, group in itertools.groupby(pieces, key=lambda piece: piece.pure):
                runs = [piece.run for piece in group]
                self._runs += [_record(runs, attributes, compile)] if pure else runs
        finally:
            _restore(attributes, before)

    def __call__(self) -> None:
        for run in self._runs:
            run()


def _record(runs: Sequence[Run], attributes: Attributes, compile: bool) -> Run:
    """What replays ``runs`` on the tensors that ``attributes`` hold; leaves results of a run on copies in them."""
    places = [
        (names, name)
        for names in attributes
        for name, value in names.items()
        if isinstance(value, Tensor)
    ]
    kept = {
        id(t)
        for names in attributes
        for v in names.values()
        if not isinstance(v, Tensor)
        for t in tensors_in(v)
    }
    with torch.inference_mode(False), torch.no_grad():
        examples = _copies(_get(places))
        _set(places, examples)
        before = [dict(names) for names in attributes]
        inputs = {id(tensor): place for tensor, place in zip(examples, places, strict=True)}
        with Tape(inputs) as tape:
            for run in runs:
                run()
        writes = []
        for names, old in zip(attributes, before, strict=True):
            for name, value in names.items():
                if isinstance(value, Tensor) and value is not old.get(name):
                    writes.append((names, name))
                elif name in old and value is not old[name]:
                    raise ValueError(
                        f"a pure piece set the attribute {name!r}, which is no tensor, to {value!r}"
                    )
        outputs = list(zip(writes, _get(writes), strict=True))
        try:
            replay = Fusion(tape, inputs, outputs).replay
        except Unfit:
            replay = tape.function(outputs)
    _check_constants([tensor for tensor in tape.constants if id(tensor) not in kept])
    reads = [inputs[id(tensor)] for tensor in tape.reads]

    def run_all(*tensors: Tensor) -> tuple[Tensor, ...]:
        _set(reads, tensors)
        for run in runs:
            run()
        return tuple(_get(writes))

    def run_recording() -> None:
        with np.errstate(all="ignore"):
            replayed = replay()
        if not replayed:  # a user's command or action that comes transposed
            for run in runs:
                run()

    def run_compiled() -> None:
        # It trusts the strides, and a user's command or action may come transposed.
        pairs = zip(_get(reads), contiguous, strict=True)
        _set(
            writes,
            compiled([tensor.contiguous() if needed else tensor for tensor, needed in pairs]),
        )

    if not compile:
        return run_recording
    results, contiguous = (
        [dict(names) for names in attributes],
        [tensor.is_contiguous() for tensor in tape.reads],
    )
    compiled = _compile(run_all, tape.reads)
    _restore(attributes, results)
    return run_compiled


def _check_constants(tensors: Sequence[Tensor]) -> None:
    """Raise ValueError for a tensor that is in no table of ``functools.lru_cache``: what it holds may be replaced."""
    for tensor in tensors:
        holders = gc.get_referrers(tensor)
        if any(isinstance(holder, functools._lru_cache_wrapper) for holder in holders):
            continue
        owned = [
            (vars(holder), type(holder).__name__)
            for holder in holders
            if hasattr(holder, "__dict__")
        ]
        named = [
            f" ({name!r} of {kind})"
            for names, kind in owned
            for name in names
            if names[name] is tensor
        ]
        what = f"a tensor of shape {tuple(tensor.shape)}{''.join(named[:1])}"
        why = "that is an attribute of none of the owners: a recording would not see it replaced"
        how = "keep it in env.robot.table if it never changes, or do not mark the piece pure"
        raise ValueError(f"a pure piece reads {what} {why}. Make what holds it an owner, {how}")


def _compile(function: Callable[..., tuple[Tensor, ...]], tensors: Sequence[Tensor]) -> Any:
    """``function`` as machine code for tensors of the shapes, strides and types of ``tensors``, which it trusts."""
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(compiler) is None:
        how = "install one (Debian: apt-get install g++), name another in the environment variable CXX"
        raise RuntimeError(
            f"compile=True needs a C++ compiler, not {compiler!r}: {how}, or leave compile=False"
        )
    # Of TorchInductor's doors this is the one with the least to do on a call: torch.compile checks guards for tens of
    # microseconds, and its compile_fx goes through a generated Python wrapper.
    import torch._inductor
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    module = torch.nn.Module()
    module.forward = function
    with torch._inductor.config.patch(_OPTIONS):
        program = torch.export.export(module, tuple(tensors), strict=False)
        package = Path(cache_dir(), "legged_envs", f"{_fingerprint(program, tensors)}.pt2")
        if not package.exists():
            package.parent.mkdir(parents=True, exist_ok=True)
            part = package.with_suffix(
                f".{os.getpid()}.pt2"
            )  # another process may be compiling the same
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # PyTorch's about PyTorch
                torch._inductor.aoti_compile_and_package(program, package_path=str(part))
            part.replace(package)
        model = torch._inductor.aoti_load_package(str(package), run_single_threaded=True)
    return model.loader.run  # the model itself packs and unpacks nested arguments first


def _fingerprint(program: torch.export.ExportedProgram, tensors: Sequence[Tensor]) -> str:
    constants = sorted({**program.constants, **program.state_dict}.items())
    parts = [
        torch.__version__,
        platform.machine() + torch.backends.cpu.get_cpu_capability(),
        str(_OPTIONS),
        program.graph_module.code,
        str(program.graph_signature),
        *(f"{tensor.dtype}{tensor.shape}{tensor.stride()}" for tensor in tensors),
        *(f"{name}{value.dtype}{value.shape}{value.tolist()}" for name, value in constants),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copies that share memory as the tensors do; what ``copy.deepcopy`` gives, in a tenth of the time."""
    storages = {
        storage._cdata: storage for storage in (tensor.untyped_storage() for tensor in tensors)
    }
    clones = {key: storage.clone() for key, storage in storages.items()}
    parts = (
        (clones[t.untyped_storage()._cdata], t.storage_offset(), t.shape, t.stride())
        for t in tensors
    )
    return [tensor.new_empty(0).set_(*part) for tensor, part in zip(tensors, parts, strict=True)]


def _get(places: Sequence[Place]) -> list[Tensor]:
    return [names[name] for names, name in places]


def _set(places: Sequence[Place], tensors: Sequence[Tensor]) -> None:
    for (names, name), tensor in zip(places, tensors, strict=True):
        names[name] = tensor


def _restore(attributes: Attributes, before: Attributes) -> None:
    for names, old in zip(attributes, before, strict=True):
        for name in names.keys() - old.keys():
            del names[name]
        names.update(old)
