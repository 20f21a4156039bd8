"""Physics with Genesis, in float32, on CPUs and NVIDIA GPUs."""

from types import SimpleNamespace
from typing import Any

import genesis as gs
import mujoco
import mujoco.batch
import numpy as np
import torch
from genesis.utils.array_class import ErrorCode
from genesis.utils.misc import qd_to_torch
from torch import Tensor
from torch.nn.functional import pad

from legged_envs.robots import RobotCfg
from legged_envs.rotation import rotate
from legged_envs.sim.cfg import SceneCfg
from legged_envs.sim.mujoco_live import SET, LiveSimulation
from legged_envs.sim.mujoco_model import ALL, OUTPUTS, SEEN_BY_RAYS
from legged_envs.sim.simulation import SimCfg

_ROOM = 150
"""For how many contacts of an environment there is room if ``SimCfg.nconmax`` does not say it: Genesis' default."""
_FULL = (
    ErrorCode.OVERFLOW_CANDIDATE_CONTACTS
    | ErrorCode.OVERFLOW_COLLISION_PAIRS
    | ErrorCode.OVERFLOW_CONTACTS
)


class _Model(gs.morphs.MJCF):
    """A compiled model in place of a file, which Genesis' parser takes."""

    def model_post_init(self, context: Any) -> None:
        """Do without the ending of a file."""


def _live(array: Any) -> Tensor:
    """Memory of the engine, environments first."""
    return qd_to_torch(array, transpose=True, copy=False)


class GenesisSimulation(LiveSimulation):
    """``num_envs`` scenes on the rigid solver of Genesis, in the mode in which it computes as MuJoCo does. On a CPU,
    where it takes one core, two runs are equal bit for bit and a saved state is exact, but environment i is that of
    another ``num_envs`` only but for rounding. The first simulation on a machine compiles for a minute.

    There is room for ``SimCfg.nconmax`` contacts in each environment, by default 150; ``diverged`` raises RuntimeError
    once there were more."""

    def __init__(
        self,
        robot: RobotCfg,
        cfg: SimCfg,
        num_envs: int,
        device: torch.device,
        scene: SceneCfg | None = None,
    ):
        super().__init__(robot, cfg, num_envs, self._check_device("genesis", device))
        if scene and scene.terrain:
            raise ValueError(
                "sim='genesis' has a plane: SceneCfg.terrain must be None; rough ground: sim='mujoco'"
            )
        _start(self.device)
        model = self._take_model(scene := scene or SceneCfg())
        self.survives_fork, self._room = False, cfg.nconmax or _ROOM
        self._scene = _build(model, cfg, num_envs, self._room)
        self._solver = solver = self._scene.sim.rigid_solver
        info, links, dofs = solver.dyn_info, solver.dyn_state.links, solver.dyn_state.dofs
        solving, cache = (
            solver.constraint_solver.constraint_state,
            solver.collider.collider_state.contact_cache,
        )
        arrays = {
            "pos": links.pos,
            "quat": links.quat,
            "com": links.root_COM,
            "ang": links.cd_ang,
            "vel": links.cd_vel,
        }
        arrays |= {
            "force": links.contact_force,
            "acc": solving.qacc,
            "torque": dofs.qf_applied,
            "mode": dofs.ctrl_mode,
        }
        arrays |= {
            "ctrl_pos": dofs.ctrl_pos,
            "ctrl_vel": dofs.ctrl_vel,
            "ctrl_force": dofs.ctrl_force,
        }
        arrays |= {
            "friction": solver.dyn_state.geoms.friction_ratio,
            "ipos": info.links.inertial_pos,
        }
        arrays |= {
            "armature": info.dofs.armature,
            "gain": info.dofs.act_gain,
            "bias": info.dofs.act_bias,
        }
        self._engine = engine = SimpleNamespace(
            **{name: _live(array) for name, array in arrays.items()}
        )
        state = {
            "qpos": solver.rigid_info.qpos,
            "qvel": dofs.vel,
            "qacc_warmstart": solving.qacc_ws,
        }
        state |= {"warm": solving.is_warmstart, "normal": cache.normal, "depth": cache.penetration}
        state = {name: _live(array) for name, array in state.items()}
        state["ctrl"] = self._rows(np.zeros(model.nu))
        self._errors = state["errors"] = _live(solver._errno)
        self._fields = {name: self._rows(getattr(model, name)) for name in SET}
        ground = torch.from_numpy(model.geom_bodyid == 0)
        self._fields["geom_friction"][:, ground] = (
            0.0  # Genesis takes the larger friction of two shapes
        )
        data, joints, sensors = (
            mujoco.MjData(model),
            model.actuator_trnid[:, 0],
            mujoco.mjtSensor.mjSENS_FRAMELINVEL,
        )
        self._outputs = {name: self._rows(np.zeros_like(getattr(data, name))) for name in OUTPUTS}
        self._shapes, self._dofs = self._ids(_colliding(model)), self._ids(model.jnt_dofadr[joints])
        self._site_pos, self._site_bodies = self._rows(model.site_pos), self._ids(model.site_bodyid)
        self._sites = self._ids(model.sensor_objid[model.sensor_type == sensors])
        first = model.sensor_adr[model.sensor_type == sensors]
        self._velocities = self._ids(first[:, None] + np.arange(3))
        self._qpos0 = self._rows(model.qpos0[model.jnt_qposadr[joints]])
        robots = (robot, *(placed.robot for placed in scene.robots.values()))
        kinds = np.array([kind for each in robots for kind in each.actuators])
        self._by_velocity = self._rows(kinds == "velocity")
        engine.mode[:] = int(gs.CTRL_MODE.FORCE)
        engine.mode[:, self._dofs[kinds != "torque"]] = int(gs.CTRL_MODE.POSITION)
        self._rays: Any = None
        self._take_arrays(scene, state, qd_to_torch(solver.rigid_info.substep_dt, copy=False))
        self._mark_all()
        self.forward(torch.arange(num_envs, device=self.device))

    def _rows(self, values: np.ndarray) -> Tensor:
        """The same values for each environment, float32."""
        row = torch.tensor(values, dtype=torch.float32, device=self.device)
        return row.repeat(self.num_envs, *[1] * row.ndim)

    def _ids(self, values: np.ndarray) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.device)

    def _advance(self, num_steps: int) -> None:
        self._update_constants()
        engine, targets = self._engine, self._controls
        engine.ctrl_pos[:, self._dofs] = targets - self._qpos0
        engine.ctrl_vel[:, self._dofs] = targets * self._by_velocity
        engine.ctrl_force[:, self._dofs] = targets
        for _ in range(num_steps):
            self._solver.substep(0)

    def step(self, num_steps: int) -> None:
        self._advance(num_steps)
        self._publish(ALL)

    def forward(self, env_ids: Tensor) -> None:
        state = self._saved["state"]
        before = {name: array.clone() for name, array in state.items()}
        self._advance(1)  # which computes all of this moment before it moves on
        for name, array in state.items():
            array.copy_(before[name])
        self._publish(env_ids)

    def _publish(self, rows: slice | Tensor) -> None:
        """Take over what the last step computed, as ``MjData`` has it."""
        engine, sites = self._engine, self._site_bodies
        site_pos = engine.pos[:, sites] + rotate(engine.quat[:, sites], self._site_pos)
        arm = site_pos - engine.com[:, sites]
        site_vel = engine.vel[:, sites] + torch.linalg.cross(engine.ang[:, sites], arm)
        sensors = torch.zeros_like(self._outputs["sensordata"])
        sensors[:, self._velocities] = site_vel[:, self._sites]
        found = {
            "qacc": engine.acc,
            "actuator_force": engine.torque[:, self._dofs],
            "xpos": engine.pos,
        }
        found |= {
            "xquat": engine.quat,
            "cvel": torch.cat((engine.ang, engine.vel), -1),
            "subtree_com": engine.com,
        }
        found |= {
            "cfrc_ext": pad(engine.force, (3, 0)),
            "site_xpos": site_pos,
            "sensordata": sensors,
        }
        for name, output in self._outputs.items():
            output[rows] = found[name][rows]

    def _own_field(self, name: str, write: bool) -> Tensor | None:
        if write:
            self._stale_constants.add(name)
        return super()._own_field(name, write)

    def _mark_all(self) -> None:
        self._mark_constants(torch.arange(self.num_envs, device=self.device))

    def _update_constants(self) -> None:
        if not self._stale_constants:
            return
        engine, own, changed = (
            self._engine,
            self._fields,
            self._constants_changed.nonzero().flatten(),
        )
        engine.friction[:] = own["geom_friction"][:, self._shapes, 0]
        engine.gain[:, self._dofs] = -own["actuator_biasprm"][..., 1]
        engine.bias[:, self._dofs] = own["actuator_biasprm"][..., :3]
        engine.armature[:], engine.ipos[:] = own["dof_armature"], own["body_ipos"]
        if len(changed):  # and what follows from it and the two above
            self._solver.set_links_mass(
                own["body_mass"][changed, 1:], range(1, self.model.nbody), changed
            )
        self._constants_changed.zero_()
        self._stale_constants.clear()

    def _cast_at_shapes(self, origins_w: Tensor, directions_w: Tensor) -> Tensor:
        if not self.objects:
            height, speed = origins_w[..., 2], -directions_w[..., 2]
            return torch.where(speed > 0.0, height / speed, -1.0)
        self._rays = batch = self._rays or mujoco.batch.Batch(
            self.model, self.num_envs, self.cfg.num_threads
        )
        first = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_TIME)
        batch.state[:, first : first + self.model.nq] = self._qpos.cpu().numpy()
        batch.forward()
        rays = (each.double().cpu().numpy() for each in (origins_w, directions_w))
        return (
            torch.from_numpy(batch.ray(*rays, np.array(SEEN_BY_RAYS, np.uint8))[0])
            .float()
            .to(self.device)
        )

    def diverged(self) -> Tensor | None:
        fine = self._fine() & (self._errors == 0)
        if fine.all():  # the one value that a step waits for
            return None
        if len(full := (self._errors & _FULL).nonzero().flatten().tolist()):
            self._errors.zero_()
            wrong = f"Genesis ran out of room in environment {full[0]} and {len(full) - 1} others"
            raise RuntimeError(
                f"{wrong} with SimCfg.nconmax={self._room}, so that contacts were left out: raise it"
            )
        self._errors.zero_()
        return ~fine

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._mark_all()

    def close(self) -> None:
        if not self.closed:
            self._scene.destroy()
        super().close()


def _start(device: torch.device) -> None:
    """Start Genesis, once in a process; ValueError if it runs on another device."""
    if not gs._initialized:
        gs.init(backend=gs.cpu if device.type == "cpu" else gs.cuda, logging_level="error")
    own, given = ((each.type, each.index or 0) for each in (gs.device, device))
    if own != given:
        wrong = f"Genesis runs on device={str(gs.device)!r} in this process, which has one, got {str(device)!r}"
        raise ValueError(f"{wrong}: start another process")


def _colliding(model: mujoco.MjModel) -> np.ndarray:
    return np.flatnonzero((model.geom_contype | model.geom_conaffinity) > 0)


def _build(model: mujoco.MjModel, cfg: SimCfg, num_envs: int, room: int) -> gs.Scene:
    """The scene of Genesis; friction is left to its ratios, which each environment has for itself."""
    scene = gs.Scene(
        sim_options=gs.options.SimOptions(dt=cfg.dt, gravity=tuple(model.opt.gravity)),
        rigid_options=gs.options.RigidOptions(
            enable_mujoco_compatibility=True,
            integrator=gs.integrator.implicitfast,
            enable_neutral_collision=True,
            enable_adjacent_collision=True,
            batch_links_info=True,
            batch_dofs_info=True,
            iterations=cfg.iterations,
            ls_iterations=cfg.ls_iterations,
            max_contacts=room,
            max_collision_pairs=max(room, _ROOM),
            broadphase_traversal=gs.broadphase_traversal.ALL_VS_ALL,  # which remembers nothing
        ),
        show_viewer=False,
    )
    friction = model.geom_friction.copy()
    model.geom_friction[:, 0] = 1.0
    scene.add_entity(_Model(file=model, default_armature=None, align=False), name="scene")
    model.geom_friction[:] = friction
    scene.build(n_envs=num_envs)
    return scene
