"""The engine ``"mujoco_warp"``: MuJoCo Warp in float32, on NVIDIA GPUs.

It also runs on CPUs, slowly, for tests.
"""

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
from legged_envs.sim.cfg import SceneCfg, SimCfg
from legged_envs.sim.engines.live_simulation import LiveSimulation
from legged_envs.sim.engines.model_simulation import GEOM_GROUPS_SEEN_BY_RAYS, OUTPUTS
from legged_envs.sim.engines.parameters import MODEL_FIELDS

# Otherwise Warp prints a line for each kernel that it loads.
wp.config.log_level = max(wp.config.log_level, wp.LOG_WARNING)

STATE_FIELDS = ("time", "qpos", "qvel", "ctrl", "qacc_warmstart", "qfrc_applied", "xfrc_applied")
"""Fields of ``mjw.Data`` on which the next step depends. A saved state contains them."""
CONSTANTS = ("body_subtreemass", "body_invweight0", "dof_invweight0")
"""Fields of ``mjw.Model`` that must be computed again after masses, for example, were set.

They have a row per environment.
"""
NOT_AN_OVERFLOW = OverflowType.ITERATIONS | OverflowType.LS_ITERATIONS
"""Bits of ``OverflowType`` that are not an error.

They mean that the solver has stopped at ``SimCfg.iterations`` or ``SimCfg.ls_iterations``, as it
may on every engine.
"""
CONTACT_POINTS = {
    int(mujoco.mjtGeom.mjGEOM_SPHERE): 1,
    int(mujoco.mjtGeom.mjGEOM_CAPSULE): 2,
}
"""Types of shapes, and the number of contact points of each with a plane."""
MOST_CONTACT_POINTS = 4
"""Number of contact points with a plane of shapes that `CONTACT_POINTS` does not have."""


class WarpSimulation(LiveSimulation):
    """A simulation of many environments with MuJoCo Warp.

    Quantities are the engine's own arrays, which the next step overwrites in place. ``step`` and
    ``forward`` launch recorded graphs, on a GPU on PyTorch's stream. Only ``diverged`` waits for
    the GPU.

    On a CPU two runs are equal bit for bit, environment i does not depend on ``num_envs``, and a
    saved state is exact. On a GPU a saved state is exact too, but the order of summation varies, so
    two runs differ in the last digits. The first simulation on a machine compiles for about a
    minute. The result is kept in the folder that the environment variable ``WARP_CACHE_PATH``
    names.

    Memory is allocated for ``SimCfg.nconmax`` contacts per environment, on average over all
    environments, and for ``SimCfg.njmax`` constraints in each. By default it is enough for all
    shapes of a robot that lies on the ground. ``diverged`` raises a RuntimeError if there were
    more.

    Args:
        robot: First robot of the scene.
        cfg: Physics settings.
        num_envs: Number of environments.
        device: The CPU or an NVIDIA GPU.
        scene: Other robots, objects and ground. None: one robot on a plane.

    Raises:
        ValueError: The device, the robot or the scene is wrong.
    """

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
        self.survives_fork = device.type == "cpu"
        scene = scene or SceneCfg()
        model = self._make_model(scene)
        self._room = find_room(model, cfg)
        own_fields = (*CONSTANTS, *MODEL_FIELDS)
        with wp.ScopedDevice(str(device)):
            self._warp_model = mjw.put_model(model, dict.fromkeys(own_fields, num_envs))
            self._warp_model.opt.warn_overflow = 0
            self._data = mjw.put_data(model, mujoco.MjData(model), num_envs, **self._room)
            self._step_graph = self._capture(mjw.step)
            self._forward_graph = self._capture(mjw.forward)
            # PyTorch works on another stream.
            wp.synchronize_device()
        self._fields = {name: wp.to_torch(getattr(self._warp_model, name)) for name in own_fields}
        self._outputs = {name: wp.to_torch(getattr(self._data, name)) for name in OUTPUTS}
        state = {name: wp.to_torch(getattr(self._data, name)) for name in STATE_FIELDS}

        self._overflow = wp.to_torch(self._data.overflow)
        """Bits of ``OverflowType`` of each environment. Shape: (num_envs,)."""
        self._overflow.zero_()
        self._make_live_scene(scene, state, wp.to_torch(self._warp_model.opt.timestep))
        self._launch(self._forward_graph)

    def _capture(self, function: Callable[..., None]) -> Any:
        """Return a graph of ``function(model, data)``."""
        # The first call loads the kernels, which is forbidden in a capture.
        function(self._warp_model, self._data)
        collects_garbage = gc.isenabled()
        # Memory that is freed in a capture would end it.
        gc.disable()
        try:
            with wp.ScopedCapture() as capture:
                function(self._warp_model, self._data)
        finally:
            if collects_garbage:
                gc.enable()
        return capture.graph

    def _stream(self) -> Any:
        """Return PyTorch's stream; None on a CPU.

        Warp must work on it to see what tensors hold.
        """
        return None if self.device.type == "cpu" else wp.stream_from_torch(self.device)

    def _launch(self, graph: Any, times: int = 1) -> None:
        stream = self._stream()
        for _ in range(times):
            wp.capture_launch(graph, stream)

    def _run(self, function: Callable[..., None], *arguments: Any, **options: Any) -> None:
        """Call ``function(model, data, …)`` on PyTorch's stream."""
        with wp.ScopedDevice(str(self.device)), wp.ScopedStream(self._stream(), sync_enter=False):
            function(self._warp_model, self._data, *arguments, **options)

    def step(self, num_steps: int) -> None:
        self._update_constants()
        self._launch(self._step_graph, num_steps)

    def forward(self, env_ids: Tensor) -> None:
        # The graph computes the outputs of all environments. Those of environments that are not in
        # env_ids are restored, because they must still lag.
        before = {name: output.clone() for name, output in self._outputs.items()}
        self._update_constants()
        self._launch(self._forward_graph)
        for name, output in self._outputs.items():
            output.copy_(before[name].index_copy_(0, env_ids, output[env_ids]))

    def _update_constants(self) -> None:
        """Compute the model's constants in the environments where masses, for example, were set."""
        if not self._stale_constants:
            return
        # set_const computes the constants of all environments. Where nothing was set, the results
        # could differ from the old values in their last digits, so the old values are restored.
        before = {name: self._fields[name].clone() for name in CONSTANTS}
        self._run(mjw.set_const, groups=SetConstGroup.FIXED | SetConstGroup.INERT0, restore=False)
        for name, old_values in before.items():
            values = self._fields[name]
            changed = self._constants_changed.view(-1, *[1] * (values.ndim - 1))
            values.copy_(torch.where(changed, values, old_values))
        self._constants_changed.zero_()
        self._stale_constants.clear()

    def _cast_at_shapes(self, origins_w: Tensor, directions_w: Tensor) -> Tensor:
        distances = torch.empty(origins_w.shape[:2], device=self.device)
        excluded_bodies = torch.full_like(distances[0], -1, dtype=torch.int32)
        hit_shapes = torch.empty_like(distances, dtype=torch.int32)
        hit_normals = torch.empty_like(origins_w)
        self._run(
            mjw.rays,
            wp.from_torch(origins_w.contiguous(), dtype=wp.vec3),
            wp.from_torch(directions_w.contiguous(), dtype=wp.vec3),
            wp.types.vector(6, int)(*GEOM_GROUPS_SEEN_BY_RAYS),
            True,  # static shapes are seen
            wp.from_torch(excluded_bodies),
            wp.from_torch(distances),
            wp.from_torch(hit_shapes),
            wp.from_torch(hit_normals, dtype=wp.vec3),
        )
        return distances

    def diverged(self) -> Tensor | None:
        is_finite = self._is_finite()
        is_full = (self._overflow & ~int(NOT_AN_OVERFLOW)) != 0
        # The one value that a step waits for.
        if not (is_full | ~is_finite).any():
            return None
        if is_full.any():
            self._raise_overflow(is_full)
        return ~is_finite

    def _raise_overflow(self, is_full: Tensor) -> None:
        # The limits of all environments together, in one error.
        limits = OverflowType(0)
        for bits in self._overflow[is_full].tolist():
            limits |= OverflowType(bits) & ~NOT_AN_OVERFLOW
        env_ids = is_full.nonzero().flatten().tolist()
        self._overflow.zero_()
        nconmax = self._room["nconmax"]
        njmax = self._room["njmax"]
        raise RuntimeError(
            f"MuJoCo Warp ran out of room ({limits.name}) in environment {env_ids[0]} and "
            f"{len(env_ids) - 1} others with SimCfg.nconmax={nconmax} and SimCfg.njmax={njmax}, "
            "so that contacts were left out: raise njmax for NEFC, nconmax for BROADPHASE, "
            "NARROWPHASE and CCD; HFIELD: a coarser terrain"
        )


def find_room(model: mujoco.MjModel, cfg: SimCfg) -> dict[str, int]:
    """Return the numbers of contacts and constraints for which to allocate memory.

    The number of contacts per environment is ``SimCfg.nconmax``, if it is not 0. Otherwise it is
    enough for all collision shapes lying on a plane, and twice as large if the shapes can touch a
    height field or each other. The number of constraints per environment is ``SimCfg.njmax``, if it
    is not 0. Otherwise it is enough for these contacts, all joint limits and joint frictions.

    Args:
        model: Compiled scene.
        cfg: Physics settings.

    Returns:
        The keys ``"nconmax"`` and ``"njmax"``, which are arguments of ``mjw.put_data``.
    """
    collides = (model.geom_contype | model.geom_conaffinity) > 0
    shapes = collides & (model.geom_bodyid > 0)
    contacts = 0
    for kind in model.geom_type[shapes].tolist():
        contacts += CONTACT_POINTS.get(kind, MOST_CONTACT_POINTS)
    if model.nhfield or (model.geom_contype[shapes] > 0).any():
        contacts *= 2
    nconmax = cfg.nconmax or contacts
    # A pyramidal friction cone has two constraints per direction.
    constraints_per_contact = 2 * max(1, int(model.geom_condim[shapes].max()) - 1)
    num_limits = int(model.jnt_limited.sum())
    num_frictions = int((model.dof_frictionloss > 0.0).sum())
    njmax = constraints_per_contact * nconmax + num_limits + num_frictions
    return {"nconmax": nconmax, "njmax": cfg.njmax or njmax}
