"""The engine ``"genesis"``: Genesis in float32, on CPUs and NVIDIA GPUs."""

from dataclasses import dataclass
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
from legged_envs.sim.cfg import SceneCfg, SimCfg
from legged_envs.sim.engines.arrays import ALL
from legged_envs.sim.engines.live_simulation import LiveSimulation
from legged_envs.sim.engines.model_simulation import GEOM_GROUPS_SEEN_BY_RAYS, OUTPUTS
from legged_envs.sim.engines.parameters import MODEL_FIELDS

DEFAULT_NCONMAX = 150
"""Largest number of contacts per environment if ``SimCfg.nconmax`` is 0. It is Genesis' default."""
OVERFLOW_ERRORS = (
    ErrorCode.OVERFLOW_CANDIDATE_CONTACTS
    | ErrorCode.OVERFLOW_COLLISION_PAIRS
    | ErrorCode.OVERFLOW_CONTACTS
)
"""Bits in Genesis' error numbers for more contacts than there is memory for."""


def _live(array: Any) -> Tensor:
    """Return the memory of an array of the engine, environments first."""
    return qd_to_torch(array, transpose=True, copy=False)


@dataclass(frozen=True, eq=False)
class SolverArrays:
    """Arrays of Genesis' rigid solver, as tensors that share its memory. Shapes: (num_envs, …).

    Links are the bodies of all robots and objects. Degrees of freedom (dofs) are the entries of
    ``qvel``. Vectors are in the world frame, unless another frame is given.
    """

    link_pos: Tensor
    """Positions of the links' origins, m. Shape: (num_envs, links, 3)."""
    link_quat: Tensor
    """Orientations of the links, (w, x, y, z). Shape: (num_envs, links, 4)."""
    link_com: Tensor
    """Centre of mass of the robot or object to which each link belongs, m. Shape: (num_envs, links,
    3)."""
    link_ang_vel: Tensor
    """Angular velocities of the links, rad/s. Shape: (num_envs, links, 3)."""
    link_lin_vel: Tensor
    """Velocity of each link at the point ``link_com``, m/s. Shape: (num_envs, links, 3)."""
    link_force: Tensor
    """Net contact force on each link, N. Shape: (num_envs, links, 3)."""
    link_inertial_pos: Tensor
    """Centre of mass of each link in the frame of the link, m. Shape: (num_envs, links, 3)."""
    joint_acc: Tensor
    """Accelerations of all dofs, m/s² or rad/s². Shape: (num_envs, dofs)."""
    joint_torque: Tensor
    """Forces that actuators applied to the dofs, N or N m. Shape: (num_envs, dofs)."""
    control_mode: Tensor
    """Control mode of each dof, a value of ``gs.CTRL_MODE``. Shape: (num_envs, dofs)."""
    target_pos: Tensor
    """Target position of each dof minus its position in ``qpos0``, rad. Shape: (num_envs, dofs)."""
    target_vel: Tensor
    """Target velocity of each dof, rad/s. Shape: (num_envs, dofs)."""
    target_force: Tensor
    """Target force of each dof, N m. Shape: (num_envs, dofs)."""
    armature: Tensor
    """Reflected rotor inertia of each dof, kg m². Shape: (num_envs, dofs)."""
    actuator_gain: Tensor
    """Position gain of each dof's actuator, N m/rad. Shape: (num_envs, dofs)."""
    actuator_bias: Tensor
    """Bias terms of each dof's actuator, as in MuJoCo's ``biasprm``. Shape: (num_envs, dofs, 3)."""
    friction: Tensor
    """Sliding friction of each shape, as a factor of its friction in the model, which is 1. Shape:
    (num_envs, shapes)."""

    @classmethod
    def of(cls, solver: Any) -> "SolverArrays":
        """Return the arrays of a rigid solver of Genesis."""
        info = solver.dyn_info
        links = solver.dyn_state.links
        dofs = solver.dyn_state.dofs
        return cls(
            link_pos=_live(links.pos),
            link_quat=_live(links.quat),
            link_com=_live(links.root_COM),
            link_ang_vel=_live(links.cd_ang),
            link_lin_vel=_live(links.cd_vel),
            link_force=_live(links.contact_force),
            link_inertial_pos=_live(info.links.inertial_pos),
            joint_acc=_live(solver.constraint_solver.constraint_state.qacc),
            joint_torque=_live(dofs.qf_applied),
            control_mode=_live(dofs.ctrl_mode),
            target_pos=_live(dofs.ctrl_pos),
            target_vel=_live(dofs.ctrl_vel),
            target_force=_live(dofs.ctrl_force),
            armature=_live(info.dofs.armature),
            actuator_gain=_live(info.dofs.act_gain),
            actuator_bias=_live(info.dofs.act_bias),
            friction=_live(solver.dyn_state.geoms.friction_ratio),
        )


class GenesisSimulation(LiveSimulation):
    """A simulation of many environments with the rigid solver of Genesis, in its MuJoCo mode.

    On a CPU it uses one core. Two runs are then equal bit for bit, and a saved state is exact.
    Environment i depends on ``num_envs`` only by rounding. The first simulation on a machine
    compiles for about a minute.

    Memory is allocated for ``SimCfg.nconmax`` contacts in each environment, by default 150.
    ``diverged`` raises a RuntimeError if there were more.

    Args:
        robot: First robot of the scene.
        cfg: Physics settings.
        num_envs: Number of environments.
        device: The CPU or an NVIDIA GPU, the same for all simulations of a process.
        scene: Other robots and objects on a plane. None: one robot.

    Raises:
        ValueError: The device, the robot or the scene is wrong, or the scene has terrain.
    """

    def __init__(
        self,
        robot: RobotCfg,
        cfg: SimCfg,
        num_envs: int,
        device: torch.device,
        scene: SceneCfg | None = None,
    ):
        super().__init__(robot, cfg, num_envs, self._check_device("genesis", device))
        scene = scene or SceneCfg()
        if scene.terrain is not None:
            raise ValueError(
                "sim='genesis' supports only a plane: set SceneCfg.terrain to None, or use "
                "sim='mujoco' for rough ground"
            )
        _start_genesis(self.device)
        self.survives_fork = False
        self._nconmax = cfg.nconmax or DEFAULT_NCONMAX
        model = self._make_model(scene)
        self._scene = _build_scene(model, cfg, num_envs, self._nconmax)
        self._solver = self._scene.sim.rigid_solver
        self._engine = SolverArrays.of(self._solver)
        self._fields = {name: self._repeat(getattr(model, name)) for name in MODEL_FIELDS}
        # Genesis uses the larger friction of two shapes. With 0 for the ground it is the robot's.
        of_ground = torch.from_numpy(model.geom_bodyid == 0)
        self._fields["geom_friction"][:, of_ground] = 0.0
        data = mujoco.MjData(model)
        self._outputs = {name: self._repeat(np.zeros_like(getattr(data, name))) for name in OUTPUTS}
        self._index_model(model)
        robots = [robot]
        for placed in scene.robots.values():
            robots.append(placed.robot)
        self._set_control_modes(robots)
        self._ray_batch: mujoco.batch.Batch | None = None
        """A batch that rays are cast in, made when it is first needed."""
        timestep = qd_to_torch(self._solver.rigid_info.substep_dt, copy=False)
        self._make_live_scene(scene, self._find_state(model), timestep)
        self._mark_all()
        self.forward(torch.arange(num_envs, device=self.device))

    def _index_model(self, model: mujoco.MjModel) -> None:
        """Find the parts of Genesis' arrays that the outputs are made of."""
        joints = model.actuator_trnid[:, 0]
        collides = (model.geom_contype | model.geom_conaffinity) > 0
        measures_velocity = model.sensor_type == mujoco.mjtSensor.mjSENS_FRAMELINVEL
        first_columns = model.sensor_adr[measures_velocity]

        self._shapes = self._indices(np.flatnonzero(collides))
        """Shapes of the model that Genesis has: only shapes that collide."""
        self._dofs = self._indices(model.jnt_dofadr[joints])
        """Degree of freedom of each actuator."""
        self._qpos0 = self._repeat(model.qpos0[model.jnt_qposadr[joints]])
        """Position of each actuator's joint in the model's file, rad."""
        self._site_pos = self._repeat(model.site_pos)
        """Positions of the sites in the frames of their bodies, m."""
        self._site_bodies = self._indices(model.site_bodyid)
        """Body of each site."""
        self._measured_sites = self._indices(model.sensor_objid[measures_velocity])
        """Sites with a sensor of their velocity."""
        self._velocity_columns = self._indices(first_columns[:, None] + np.arange(3))
        """Columns of ``sensordata`` with these velocities. Shape: (sensors, 3)."""

    def _set_control_modes(self, robots: list[RobotCfg]) -> None:
        kinds: list[str] = []
        for robot in robots:
            kinds.extend(robot.actuators)
        actuators = np.array(kinds)

        self._follows_velocity = self._repeat(actuators == "velocity")
        """1 for each actuator that is driven to a velocity, otherwise 0."""
        mode = self._engine.control_mode
        mode[:] = int(gs.CTRL_MODE.FORCE)
        mode[:, self._dofs[actuators != "torque"]] = int(gs.CTRL_MODE.POSITION)

    def _find_state(self, model: mujoco.MjModel) -> dict[str, Tensor]:
        """Return the arrays that the next step depends on."""
        solving = self._solver.constraint_solver.constraint_state
        contacts = self._solver.collider.collider_state.contact_cache

        self._errors = _live(self._solver._errno)
        """Bits of Genesis' errors of each environment. Shape: (num_envs,)."""
        return {
            "qpos": _live(self._solver.rigid_info.qpos),
            "qvel": _live(self._solver.dyn_state.dofs.vel),
            "qacc_warmstart": _live(solving.qacc_ws),
            "warm": _live(solving.is_warmstart),
            "normal": _live(contacts.normal),
            "depth": _live(contacts.penetration),
            "ctrl": self._repeat(np.zeros(model.nu)),
            "errors": self._errors,
        }

    def _repeat(self, values: np.ndarray) -> Tensor:
        """Return the same float32 values for each environment. Shape: (num_envs, …)."""
        row = torch.tensor(values, dtype=torch.float32, device=self.device)
        return row.repeat(self.num_envs, *[1] * row.ndim)

    def _indices(self, values: np.ndarray) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.device)

    def step(self, num_steps: int) -> None:
        self._advance(num_steps)
        self._publish(ALL)

    def forward(self, env_ids: Tensor) -> None:
        state = self._saved["state"]
        before = {name: array.clone() for name, array in state.items()}
        # A step first computes all quantities of the present state. Then it advances the state,
        # which is restored here.
        self._advance(1)
        for name, array in state.items():
            array.copy_(before[name])
        self._publish(env_ids)

    def _advance(self, num_steps: int) -> None:
        self._update_constants()
        engine = self._engine
        targets = self._controls
        # Each control mode of Genesis uses one or two of these targets and ignores the others.
        engine.target_pos[:, self._dofs] = targets - self._qpos0
        engine.target_vel[:, self._dofs] = targets * self._follows_velocity
        engine.target_force[:, self._dofs] = targets
        for _ in range(num_steps):
            self._solver.substep(0)

    def _publish(self, rows: slice | Tensor) -> None:
        """Copy what the last step computed to the outputs, which are laid out as in ``MjData``."""
        engine = self._engine
        bodies = self._site_bodies
        site_offset = rotate(engine.link_quat[:, bodies], self._site_pos)
        site_pos = engine.link_pos[:, bodies] + site_offset
        # Velocities of links in Genesis are at the robot's centre of mass, like MuJoCo's cvel.
        arm = site_pos - engine.link_com[:, bodies]
        turning = torch.linalg.cross(engine.link_ang_vel[:, bodies], arm)
        site_vel = engine.link_lin_vel[:, bodies] + turning
        sensordata = torch.zeros_like(self._outputs["sensordata"])
        sensordata[:, self._velocity_columns] = site_vel[:, self._measured_sites]
        computed = {
            "qacc": engine.joint_acc,
            "actuator_force": engine.joint_torque[:, self._dofs],
            "xpos": engine.link_pos,
            "xquat": engine.link_quat,
            "cvel": torch.cat((engine.link_ang_vel, engine.link_lin_vel), -1),
            "subtree_com": engine.link_com,
            "cfrc_ext": pad(engine.link_force, (3, 0)),
            "site_xpos": site_pos,
            "sensordata": sensordata,
        }
        for name, output in self._outputs.items():
            output[rows] = computed[name][rows]

    def _field_to_write(self, name: str) -> Tensor:
        self._stale_constants.add(name)
        return super()._field_to_write(name)

    def _mark_all(self) -> None:
        self._mark_constants(torch.arange(self.num_envs, device=self.device))

    def _update_constants(self) -> None:
        """Copy parameters that were set, such as gains and masses, to the arrays of Genesis.

        It also makes Genesis compute the constants that depend on them. Nothing is done if no
        parameter was set since the last call.
        """
        if not self._stale_constants:
            return
        engine = self._engine
        fields = self._fields
        engine.friction[:] = fields["geom_friction"][:, self._shapes, 0]
        engine.actuator_gain[:, self._dofs] = -fields["actuator_biasprm"][..., 1]
        engine.actuator_bias[:, self._dofs] = fields["actuator_biasprm"][..., :3]
        engine.armature[:] = fields["dof_armature"]
        engine.link_inertial_pos[:] = fields["body_ipos"]
        changed = self._constants_changed.nonzero().flatten()
        if len(changed):
            # set_links_mass also computes the constants that depend on masses, centres of mass and
            # armatures.
            masses = fields["body_mass"][changed, 1:]
            self._solver.set_links_mass(masses, range(1, self.model.nbody), changed)
        self._constants_changed.zero_()
        self._stale_constants.clear()

    def _cast_at_shapes(self, origins_w: Tensor, directions_w: Tensor) -> Tensor:
        if not self.objects:
            height = origins_w[..., 2]
            speed_down = -directions_w[..., 2]
            return torch.where(speed_down > 0.0, height / speed_down, -1.0)
        # Genesis cannot cast rays at objects: MuJoCo does it, with the same positions.
        if self._ray_batch is None:
            self._ray_batch = mujoco.batch.Batch(self.model, self.num_envs, self.cfg.num_threads)
        batch = self._ray_batch
        first = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_TIME)
        batch.state[:, first : first + self.model.nq] = self._qpos.cpu().numpy()
        batch.forward()
        distances, _ = batch.ray(
            origins_w.double().cpu().numpy(),
            directions_w.double().cpu().numpy(),
            np.array(GEOM_GROUPS_SEEN_BY_RAYS, np.uint8),
        )
        return torch.from_numpy(distances).float().to(self.device)

    def diverged(self) -> Tensor | None:
        is_fine = self._is_finite() & (self._errors == 0)
        # The one value that a step waits for.
        if is_fine.all():
            return None
        full = (self._errors & OVERFLOW_ERRORS).nonzero().flatten().tolist()
        self._errors.zero_()
        if full:
            raise RuntimeError(
                f"Genesis ran out of room in environment {full[0]} and {len(full) - 1} others "
                f"with SimCfg.nconmax={self._nconmax}, so that contacts were left out: raise it"
            )
        return ~is_fine

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        self._mark_all()

    def close(self) -> None:
        if not self.closed:
            self._scene.destroy()
        super().close()


def _start_genesis(device: torch.device) -> None:
    """Start Genesis, once in a process; ValueError if it runs on another device."""
    # Genesis has one device for a process, which its first start chooses.
    if not gs._initialized:
        backend = gs.cpu if device.type == "cpu" else gs.cuda
        gs.init(backend=backend, logging_level="error")
    running = (gs.device.type, gs.device.index or 0)
    wanted = (device.type, device.index or 0)
    if running != wanted:
        raise ValueError(
            f"Genesis runs on device={str(gs.device)!r} in this process, which has one, got "
            f"{str(device)!r}: start another process"
        )


class _CompiledModel(gs.morphs.MJCF):
    """A compiled model where Genesis expects a file: its parser accepts both."""

    def model_post_init(self, context: Any) -> None:
        """Skip the check of the file's ending."""


def _build_scene(model: mujoco.MjModel, cfg: SimCfg, num_envs: int, nconmax: int) -> gs.Scene:
    """Return the scene of Genesis with frictions of 1.

    Friction is set through ratios to that, which each environment has for itself.
    """
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
            max_contacts=nconmax,
            max_collision_pairs=max(nconmax, DEFAULT_NCONMAX),
            # This traversal keeps no memory of earlier steps.
            broadphase_traversal=gs.broadphase_traversal.ALL_VS_ALL,
        ),
        show_viewer=False,
    )
    friction = model.geom_friction.copy()
    model.geom_friction[:, 0] = 1.0
    scene.add_entity(_CompiledModel(file=model, default_armature=None, align=False), name="scene")
    model.geom_friction[:] = friction
    scene.build(n_envs=num_envs)
    return scene
