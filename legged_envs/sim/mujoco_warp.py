"""Physics with MuJoCo Warp, in float32: on NVIDIA GPUs, and on CPUs, slowly, for tests."""

import gc
from collections.abc import Callable
from typing import Any

import mujoco
import mujoco_warp as mjw
import torch
import warp as wp
from mujoco_warp import OverflowType, SetConstGroup
from torch import Tensor

from legged_envs.robots import RobotCfg
from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.mujoco_live import SET, LiveSimulation
from legged_envs.sim.mujoco_model import OUTPUTS, SEEN_BY_RAYS
from legged_envs.sim.simulation import SimCfg

wp.config.log_level = max(
    wp.config.log_level, wp.LOG_WARNING
)  # else each kernel that is loaded is a line
_STATE = ("time", "qpos", "qvel", "ctrl", "qacc_warmstart", "qfrc_applied", "xfrc_applied")
"""Fields of ``mjw.Data`` that the next step depends on."""
_DERIVED = ("body_subtreemass", "body_invweight0", "dof_invweight0")
"""Fields of ``mjw.Model`` that follow from others that parameters set; each environment has its own."""
_NO_LIMIT = OverflowType.ITERATIONS | OverflowType.LS_ITERATIONS
"""The solver's iterations ended at ``SimCfg.iterations`` or ``ls_iterations``, as they may on every engine."""
_POINTS = {
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind}")): n for kind, n in (("SPHERE", 1), ("CAPSULE", 2))
}
"""In how many points a shape touches a plane; others in four."""


class WarpSimulation(LiveSimulation):
    """``num_envs`` scenes on MuJoCo Warp. What is read are the engine's own arrays, which the next step overwrites in
    place. A step and ``forward`` are graphs, on a GPU launched on PyTorch's stream; only ``diverged`` waits for it.
    On a CPU two runs are equal bit for bit, environment i is that of another ``num_envs``, and a saved state is exact;
    on a GPU the state is exact too, but sums run in any order, so that two runs part in the last digit. The first
    simulation on a machine compiles for about a minute (``WARP_CACHE_PATH`` keeps that).

    There is room for ``SimCfg.nconmax`` contacts, on average of all environments, and ``SimCfg.njmax`` constraints in
    each, by default for all shapes lying on the ground; ``diverged`` raises RuntimeError once there were more."""

    def __init__(
        self,
        robot: RobotCfg,
        cfg: SimCfg,
        num_envs: int,
        device: torch.device,
        scene: SceneCfg | None = None,
    ):
        device = self._check_device("mujoco_warp", device)
        super().__init__(robot, cfg, num_envs, device)
        model = self._take_model(scene := scene or SceneCfg())
        self.survives_fork, self._room = device.type == "cpu", _room(model, cfg)
        with wp.ScopedDevice(str(device)):
            self._warp_model = mjw.put_model(model, dict.fromkeys((*_DERIVED, *SET), num_envs))
            self._warp_model.opt.warn_overflow = 0
            self._data = mjw.put_data(model, mujoco.MjData(model), num_envs, **self._room)
            self._step_graph, self._forward_graph = (
                self._capture(mjw.step),
                self._capture(mjw.forward),
            )
            wp.synchronize_device()  # PyTorch works on another stream
        self._fields = {
            name: wp.to_torch(getattr(self._warp_model, name)) for name in (*_DERIVED, *SET)
        }
        self._outputs = {name: wp.to_torch(getattr(self._data, name)) for name in OUTPUTS}
        state = {name: wp.to_torch(getattr(self._data, name)) for name in _STATE}
        self._overflow = wp.to_torch(self._data.overflow)
        self._overflow.zero_()
        self._take_arrays(scene, state, wp.to_torch(self._warp_model.opt.timestep))
        self._launch(self._forward_graph)

    def _capture(self, function: Callable[..., None]) -> Any:
        function(self._warp_model, self._data)  # which loads the kernels: a capture cannot
        frees = gc.isenabled()
        gc.disable()  # what is freed in a capture ends it
        try:
            with wp.ScopedCapture() as capture:
                function(self._warp_model, self._data)
        finally:
            if frees:
                gc.enable()
        return capture.graph

    def _stream(self) -> Any:
        """PyTorch's stream, on which the engine has to work to find what tensors hold; None on a CPU."""
        return None if self.device.type == "cpu" else wp.stream_from_torch(self.device)

    def _launch(self, graph: Any, times: int = 1) -> None:
        stream = self._stream()
        for _ in range(times):
            wp.capture_launch(graph, stream)

    def _run(self, function: Callable[..., None], *arguments: Any, **options: Any) -> None:
        with wp.ScopedDevice(str(self.device)), wp.ScopedStream(self._stream(), sync_enter=False):
            function(self._warp_model, self._data, *arguments, **options)

    def step(self, num_steps: int) -> None:
        self._update_constants()
        self._launch(self._step_graph, num_steps)

    def forward(self, env_ids: Tensor) -> None:
        before = {name: output.clone() for name, output in self._outputs.items()}
        self._update_constants()
        self._launch(self._forward_graph)
        for name, output in self._outputs.items():  # those of others go on lagging
            output.copy_(before[name].index_copy_(0, env_ids, output[env_ids]))

    def _update_constants(self) -> None:
        if not self._stale_constants:
            return
        before = {name: self._fields[name].clone() for name in _DERIVED}
        self._run(mjw.set_const, groups=SetConstGroup.FIXED | SetConstGroup.INERT0, restore=False)
        for name, rows in before.items():
            changed = self._constants_changed.view(-1, *[1] * (rows.ndim - 1))
            self._fields[name].copy_(torch.where(changed, self._fields[name], rows))
        self._constants_changed.zero_()
        self._stale_constants.clear()

    def _cast_at_shapes(self, origins_w: Tensor, directions_w: Tensor) -> Tensor:
        distances = torch.empty(origins_w.shape[:2], device=self.device)
        nobody = torch.full_like(distances[0], -1, dtype=torch.int32)
        rays = [
            wp.from_torch(each.contiguous(), dtype=wp.vec3) for each in (origins_w, directions_w)
        ]
        groups = wp.types.vector(6, int)(*SEEN_BY_RAYS)
        shapes = wp.from_torch(torch.empty_like(distances, dtype=torch.int32))
        normals = wp.from_torch(torch.empty_like(origins_w), dtype=wp.vec3)
        self._run(
            mjw.rays,
            *rays,
            groups,
            True,
            wp.from_torch(nobody),
            wp.from_torch(distances),
            shapes,
            normals,
        )
        return distances

    def diverged(self) -> Tensor | None:
        fine, full = self._fine(), (self._overflow & ~int(_NO_LIMIT)) != 0
        if not (full | ~fine).any():  # the one value that a step waits for
            return None
        if full.any():
            self._raise_overflow(full)
        return ~fine

    def _raise_overflow(self, full: Tensor) -> None:
        bits = OverflowType(0)
        for value in self._overflow[full].tolist():
            bits |= OverflowType(value) & ~_NO_LIMIT
        where = full.nonzero().flatten().tolist()
        self._overflow.zero_()
        given = " and ".join(f"SimCfg.{name}={size}" for name, size in self._room.items())
        wrong = f"MuJoCo Warp ran out of room ({bits.name}) in environment {where[0]} and {len(where) - 1} others"
        how = "raise njmax for NEFC, nconmax for BROADPHASE, NARROWPHASE and CCD; HFIELD: a coarser terrain"
        raise RuntimeError(f"{wrong} with {given}, so that contacts were left out: {how}")


def _room(model: mujoco.MjModel, cfg: SimCfg) -> dict[str, int]:
    """Most contacts and constraints of an environment: those of ``cfg``, or of all shapes that lie on a plane, twice as
    many where they touch a height field or each other."""
    shapes = ((model.geom_contype | model.geom_conaffinity) > 0) & (model.geom_bodyid > 0)
    points = sum(_POINTS.get(kind, 4) for kind in model.geom_type[shapes].tolist())
    points *= 2 if model.nhfield or (model.geom_contype[shapes] > 0).any() else 1
    limits = int(model.jnt_limited.sum()) + int((model.dof_frictionloss > 0.0).sum())
    rows = 2 * max(1, int(model.geom_condim[shapes].max()) - 1)
    return {
        "nconmax": cfg.nconmax or points,
        "njmax": cfg.njmax or rows * (cfg.nconmax or points) + limits,
    }
