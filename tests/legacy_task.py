"""A task in the style of legged_gym, for the tests of legged_envs.compat.isaac_gym: it imports only ``isaacgym``.

As a script it steps the task with random actions: ``legacy_task.py --num_envs 8 --steps 5 --headless``."""

import sys
from pathlib import Path

import isaacgym  # noqa: F401
import numpy as np
import torch
from isaacgym import gymapi, gymtorch, gymutil, terrain_utils
from isaacgym.torch_utils import *  # noqa: F403
from isaacgym.torch_utils import quat_rotate_inverse, to_torch, torch_rand_float

ANGLES = {"hip": 0.5, "knee": -1.0}
CLIP = 100.0


class Task:
    def __init__(self, num_envs, device="cuda:0", terrain="plane", episode_length=20, fastest=None):
        self.fastest = fastest  # of a DOF, rad/s; None: that of the asset
        self.gym, self.num_envs, self.max_episode_length = (
            gymapi.acquire_gym(),
            num_envs,
            episode_length,
        )
        params = gymapi.SimParams()
        physx = {"num_threads": 1, "solver_type": 1, "contact_collection": 2}
        sim_cfg = {
            "dt": 0.005,
            "substeps": 1,
            "gravity": [0.0, 0.0, -9.81],
            "up_axis": 1,
            "physx": physx,
        }
        gymutil.parse_sim_config(sim_cfg, params)
        kind, number = gymutil.parse_device_str(device)
        self.device = device if kind == "cuda" and params.use_gpu_pipeline else "cpu"
        self.sim = self.gym.create_sim(number, -1, gymapi.SIM_PHYSX, params)
        self._create_ground(terrain)
        self._create_envs()
        self.gym.prepare_sim(self.sim)
        self.root = gymtorch.wrap_tensor(self.gym.acquire_actor_root_state_tensor(self.sim))
        self.dof_state = gymtorch.wrap_tensor(self.gym.acquire_dof_state_tensor(self.sim))
        self.forces = gymtorch.wrap_tensor(
            self.gym.acquire_net_contact_force_tensor(self.sim)
        ).view(num_envs, -1, 3)
        self.dof_pos, self.dof_vel = self.dof_state.view(num_envs, self.num_actions, 2).unbind(-1)
        self.default = to_torch(
            [ANGLES[name.split("_")[1]] for name in self.dof_names], device=self.device
        )
        self.obs_buf = torch.zeros(num_envs, 9 + 3 * self.num_actions)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.actions, self.extras = torch.zeros(num_envs, self.num_actions), {}
        self.torques = torch.zeros_like(self.actions)
        self.reset_idx(torch.arange(num_envs))
        self._refresh()

    def _create_ground(self, terrain):
        if terrain == "plane":
            plane = gymapi.PlaneParams()
            plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
            self.gym.add_ground(self.sim, plane)
            return
        tile = terrain_utils.SubTerrain(
            "terrain", width=64, length=48, vertical_scale=0.005, horizontal_scale=0.1
        )
        terrain_utils.random_uniform_terrain(tile, -0.03, 0.03, step=0.005, downsampled_scale=0.2)
        mesh = terrain_utils.convert_heightfield_to_trimesh(tile.height_field_raw, 0.1, 0.005, 0.75)
        params = gymapi.TriangleMeshParams()
        params.nb_vertices, params.nb_triangles = len(mesh[0]), len(mesh[1])
        params.transform.p.x, params.transform.p.y = -3.2, -2.4
        self.gym.add_triangle_mesh(
            self.sim, mesh[0].flatten(order="C"), mesh[1].flatten(order="C"), params
        )

    def _create_envs(self):
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode, options.density = 3, 0.001
        options.collapse_fixed_joints = options.replace_cylinder_with_capsule = True
        asset = self.gym.load_asset(
            self.sim, str(Path(__file__).parent), "legacy_dog.urdf", options
        )
        self.dof_names, bodies = (
            self.gym.get_asset_dof_names(asset),
            self.gym.get_asset_rigid_body_names(asset),
        )
        self.num_actions = self.gym.get_asset_dof_count(asset)
        shapes, dofs = (
            self.gym.get_asset_rigid_shape_properties(asset),
            self.gym.get_asset_dof_properties(asset),
        )
        if self.fastest is not None:
            dofs["velocity"] = self.fastest
        self.torque_limits = torch.tensor([dofs["effort"][i].item() for i in range(len(dofs))])
        friction, pose, self.envs = (
            torch_rand_float(0.5, 1.25, (64, 1), device="cpu"),
            gymapi.Transform(),
            [],
        )
        for i in range(self.num_envs):
            env = self.gym.create_env(
                self.sim, gymapi.Vec3(), gymapi.Vec3(), int(np.sqrt(self.num_envs))
            )
            pose.p = gymapi.Vec3(*torch.tensor([0.0, 0.0, 0.45]))
            for shape in shapes:
                shape.friction = friction[torch.tensor([i % 64])]
            self.gym.set_asset_rigid_shape_properties(asset, shapes)
            actor = self.gym.create_actor(env, asset, pose, "dog", i, 1, 0)
            self.gym.set_actor_dof_properties(env, actor, dofs)
            props = self.gym.get_actor_rigid_body_properties(env, actor)
            props[0].mass += np.random.uniform(-1.0, 1.0)
            self.gym.set_actor_rigid_body_properties(env, actor, props, recomputeInertia=True)
            self.envs.append(env)
        feet = [name for name in bodies if "foot" in name]
        self.feet = torch.tensor(
            [self.gym.find_actor_rigid_body_handle(self.envs[0], 0, name) for name in feet]
        )

    def step(self, actions):
        self.actions = torch.clip(actions, -CLIP, CLIP).to(self.device)
        for _ in range(4):
            torques = (
                20.0 * (0.25 * self.actions + self.default - self.dof_pos) - 0.5 * self.dof_vel
            )
            self.torques = torch.clip(torques, -self.torque_limits, self.torque_limits)
            self.gym.set_dof_actuation_force_tensor(self.sim, gymtorch.unwrap_tensor(self.torques))
            self.gym.simulate(self.sim)
            self.gym.fetch_results(self.sim, True)
            self.gym.refresh_dof_state_tensor(self.sim)
        self._refresh()
        self.episode_length_buf += 1
        time_outs = self.episode_length_buf > self.max_episode_length
        done = time_outs | (self.projected_gravity[:, 2] > -0.5)
        reward = torch.exp(-(self.base_lin_vel[:, :2] ** 2).sum(1))
        env_ids = done.nonzero().flatten()
        self.extras = {"time_outs": time_outs}
        self.reset_idx(env_ids)
        self.compute_observations()
        return torch.clip(self.obs_buf, -CLIP, CLIP), None, reward, done, self.extras

    def reset(self):
        self.reset_idx(torch.arange(self.num_envs))
        return self.step(torch.zeros(self.num_envs, self.num_actions))[0], None

    def _refresh(self):
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_net_contact_force_tensor(self.sim)
        quat, down = (
            self.root[:, 3:7],
            to_torch([0.0, 0.0, -1.0], device=self.device).repeat(self.num_envs, 1),
        )
        self.base_lin_vel = quat_rotate_inverse(quat, self.root[:, 7:10])
        self.base_ang_vel = quat_rotate_inverse(quat, self.root[:, 10:13])
        self.projected_gravity = quat_rotate_inverse(quat, down)

    def reset_idx(self, env_ids):
        if len(env_ids) == 0:
            return
        self.dof_pos[env_ids] = self.default * torch_rand_float(
            0.9, 1.1, (len(env_ids), self.num_actions), self.device
        )
        self.dof_vel[env_ids] = 0.0
        self.root[env_ids] = torch.tensor([0.0, 0.0, 0.42, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        ids = gymtorch.unwrap_tensor(env_ids.to(torch.int32))
        for tensor, kind in ((self.dof_state, "dof"), (self.root, "actor_root")):
            setter = getattr(self.gym, f"set_{kind}_state_tensor_indexed")
            setter(self.sim, gymtorch.unwrap_tensor(tensor), ids, len(env_ids))
        self.extras["episode"] = {"length": self.episode_length_buf[env_ids].float().mean()}
        self.episode_length_buf[env_ids] = 0

    def compute_observations(self):
        parts = (
            self.base_lin_vel,
            self.base_ang_vel,
            self.projected_gravity,
            self.dof_pos - self.default,
        )
        self.obs_buf = torch.cat((*parts, self.dof_vel, self.actions), dim=-1)
        self.obs_buf += 0.01 * torch.rand_like(self.obs_buf)


if __name__ == "__main__":
    custom = [
        {"name": "--num_envs", "type": int, "default": 4},
        {"name": "--steps", "type": int, "default": 3},
    ]
    custom += [{"name": "--headless", "action": "store_true", "default": False}]
    custom += [
        {"name": "--rl_device", "type": str, "default": "cuda:0"},
        {"name": "--terrain", "default": "plane"},
    ]
    args = gymutil.parse_arguments(description="legacy", custom_parameters=custom)
    torch.manual_seed(0)
    task = Task(args.num_envs, args.sim_device_type, args.terrain)
    for _ in range(args.steps):
        obs, _, reward, _, _ = task.step(
            torch.randn(task.num_envs, task.num_actions, device=args.rl_device)
        )
        task.gym.refresh_net_contact_force_tensor(task.sim)
    weight = float(task.forces[:, task.feet, 2].sum(1).mean())
    print(
        f"finite {bool(torch.isfinite(obs).all())} device {task.device} weight {weight:.1f}",
        *sys.argv[1:],
    )
