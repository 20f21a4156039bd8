"""Compiles a tensor function into a C++ library with AOTInductor."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

OPTIONS = {"cpp.simdlen": 0, "cpp.threads": 1, "cpp.vec_isa_ok": False}
"""Scalar code on one thread: the compiler's own vectorisation keeps the order of every sum, so that an environment's
results do not depend on how many there are. Vector instructions need then not be tried out, which takes ten seconds."""

CompiledFunction = Callable[[list[torch.Tensor]], list[torch.Tensor]]


def compile_function(
    function: Callable[..., tuple[torch.Tensor, ...]], tensors: Sequence[torch.Tensor]
) -> CompiledFunction:
    """``function`` as machine code for tensors of the shapes, strides and types of ``tensors``, which it trusts.

    The library is kept in Inductor's cache folder (``TORCHINDUCTOR_CACHE_DIR``), under its graph's fingerprint.
    RuntimeError if there is no C++ compiler.
    """
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(compiler) is None:
        raise RuntimeError(
            f"compile=True needs a C++ compiler, and there is no {compiler!r}: install one (Debian: apt-get install "
            "g++), name another in the environment variable CXX, or leave compile=False"
        )
    # Of TorchInductor's doors this is the one with the least to do on a call: torch.compile checks guards for tens of
    # microseconds, and its compile_fx goes through a generated Python wrapper.
    import torch._inductor
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    module = torch.nn.Module()
    module.forward = function
    with torch._inductor.config.patch(OPTIONS):
        program = torch.export.export(module, tuple(tensors), strict=False)
        package = Path(cache_dir(), "legged_envs", f"{_fingerprint(program, tensors)}.pt2")
        if not package.exists():
            package.parent.mkdir(parents=True, exist_ok=True)
            part = package.with_suffix(f".{os.getpid()}.pt2")  # another process may be compiling the same
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # PyTorch's about PyTorch
                torch._inductor.aoti_compile_and_package(program, package_path=str(part))
            part.replace(package)
        model = torch._inductor.aoti_load_package(str(package), run_single_threaded=True)
    return model.loader.run  # the model itself packs and unpacks nested arguments first


def _fingerprint(program: torch.export.ExportedProgram, tensors: Sequence[torch.Tensor]) -> str:
    """A name for the compiled program: its operations, constants and inputs, and what compiles it."""
    constants = sorted({**program.constants, **program.state_dict}.items())
    parts = [
        torch.__version__,
        platform.machine() + torch.backends.cpu.get_cpu_capability(),
        str(OPTIONS),
        program.graph_module.code,
        str(program.graph_signature),
        *(f"{tensor.dtype}{tensor.shape}{tensor.stride()}" for tensor in tensors),
        *(f"{name}{value.dtype}{value.shape}{value.tolist()}" for name, value in constants),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
