"""Drive a robot from policy.onnx and the contract in it, with only NumPy, onnxruntime and MuJoCo.

legged-envs export Legged/Go2-Flat-v0 --folder go2    writes the files; then, with vx, vy in m/s and ωz in rad/s,
python examples/deploy.py go2 0.8 0 0 window          walks until the window is closed, without "window" for 10 s.
A policy with gaits also takes gait=pace period=0.4 clearance=0.08 height=0.28 pitch=0, any of them."""

import json
import sys
import time

import mujoco.viewer
import numpy as np
import onnxruntime

COMMAND = ("lin_vel_x", "lin_vel_y", "ang_vel_z")  # of the robot, in this order
STYLE = ("period", "clearance", "height", "pitch")  # of a gait, in this order


class Controller:  # from a command and what a robot measures to the targets of its joints
    def __init__(self, path):
        self.network, self.time, self.past = onnxruntime.InferenceSession(path), 0.0, []
        texts = self.network.get_modelmeta().custom_metadata_map
        self.about = about = {
            k: v if k in ("task_id", "robot", "action") else json.loads(v) for k, v in texts.items()
        }
        self.default, self.scale = (
            np.array(about["default_joint_pos"]),
            np.array(about["action_scale"]),
        )
        self.rest, self.limit = (
            self.default * (np.array(about["actuators"]) == "position"),
            about["action_limit"],
        )
        self.driven, self.bound = (
            [*map(about["joint_names"].index, about["action_joints"])],
            about["observation_limit"],
        )
        self.low, self.high = np.array(about["target_clip"], float).T  # NaN where there is none
        trained = (about.get("training") or {}).get("commands") or {}
        ranges = np.array([trained.get(name) or (None, None) for name in COMMAND], float).T
        # Least and largest command of the training, NaN if unknown. The command 0 stays possible.
        self.least, self.most = np.minimum(ranges[0], 0.0), np.maximum(ranges[1], 0.0)
        self.action, self.gait = (
            0.0 * self.scale,
            about.get("gait", {"period": 1.0, "offsets": (), "swing": ()}),
        )
        memory = about.get("memory", {})  # of the network; an episode starts with zeros
        self.memory = {name: np.zeros((1, size), np.float32) for name, size in memory.items()}
        self.terms = [term for terms in about["inputs"].values() for term in terms]
        self.gaits, self.stride = about.get("gait_command"), 0.0  # a gait may change while it walks
        self.style = {}
        if self.gaits:
            self.style = {name: np.mean(self.gaits[name]) for name in STYLE}
            self.style["gait"] = next(iter(self.gaits["gaits"]))

    def set_gait(self, **style):
        for name, value in style.items():
            if name not in self.style:
                sys.exit(f"the policy has no {name}, only {', '.join(self.style) or 'a velocity'}")
            known = self.gaits["gaits"] if name == "gait" else self.gaits[name]
            if not (value in known if name == "gait" else known[0] <= float(value) <= known[1]):
                sys.exit(f"{name} must be within {', '.join(map(str, known))}, got {value}")
            self.style[name] = value if name == "gait" else float(value)

    def gait_terms(self, command):  # which feet swing together, how, and the time of each foot
        offsets = np.array(self.gaits["gaits"][self.style["gait"]])
        angle = 2 * np.pi * (self.stride + np.array(self.gaits["phase_offsets"]) @ offsets)
        moves = np.linalg.norm(command) > self.gaits["still"]
        self.stride += self.about["control_dt"] / self.style["period"]
        return {
            "gait": np.cos(2 * np.pi * offsets),
            "gait_style": [self.style[name] for name in STYLE],
            "clock_sin": np.sin(angle) * moves,
            "clock_cos": np.cos(angle) * moves,
        }

    def limit_command(self, command):  # beyond the commands of the training, a policy may fall
        return np.fmax(self.least, np.fmin(self.most, command))

    def __call__(self, command, quat, gyro, q, dq, scan=()):
        command = self.limit_command(command)
        (w, x, y, z), stride, gait, about = (
            quat,
            self.time / self.gait["period"],
            self.gait,
            self.about,
        )
        gravity = (2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1)
        now = {
            "command": command,
            "gravity": gravity,
            "ang_vel": gyro,
            "joint_pos": q - self.default,
            "joint_vel": dq,
        }
        now |= {
            "action": self.action,
            "clock": np.sin(2 * np.pi * (stride + np.array((0.0, 0.25)))),
            "height_scan": scan,
        }
        if self.gaits:
            now |= self.gait_terms(command)
        if strange := {
            t["name"]
            for t in self.terms
            if "own" in t or np.size(now.get(t["name"], ())) != t["size"]
        }:
            sys.exit(
                f"this loop cannot observe {', '.join(sorted(strange))}, only {', '.join(now)}"
            )
        self.past = [now, *(self.past or [now] * len(self.terms))][
            : len(self.terms)
        ]  # there is a term for each step
        parts = [
            (self.past[term.get("steps_ago", 0)][term["name"]], term)
            for term in about["observation"]
        ]
        parts = [
            np.clip(value, *(term["clip"] or (-np.inf, np.inf))) * term["scale"]
            for value, term in parts
        ]
        self.observation = np.concatenate(parts, dtype=np.float32).clip(-self.bound, self.bound)
        actions, *after = self.network.run(None, {"obs": self.observation[None], **self.memory})
        self.memory = dict(zip(self.memory, after, strict=True))
        self.action = np.clip(actions[0], -self.limit, self.limit)
        target, self.time = self.rest.copy(), self.time + about["control_dt"]
        for offset, swing in zip(
            gait["offsets"], gait["swing"], strict=True
        ):  # the feet that swing are lifted
            swung = max(((stride + offset) % 1.0 - gait["stance"]) / (1.0 - gait["stance"]), 0.0)
            target += np.sin(np.pi * swung) ** 2 * np.array(
                [swing[name] for name in about["joint_names"]]
            )
        target[self.driven] = np.fmax(
            self.low, np.fmin(self.high, target[self.driven] + self.scale * self.action)
        )
        return target


class Ground:  # heights at points of the world, as in the contract's entry "scan"; a real robot has a map of them
    def __init__(self, model):
        self.low, self.scale, self.heights = np.zeros(2), 1.0, np.zeros((2, 2))  # a plane
        if model.nhfield:
            half_x, half_y, span, _ = model.hfield_size[0]
            geom = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_HFIELD)[0]
            place = model.geom_pos[geom]
            rows, columns = model.hfield_nrow[0], model.hfield_ncol[0]  # along y, along x
            self.low, self.scale = place[:2] - (half_x, half_y), 2.0 * half_x / (columns - 1)
            self.heights = place[2] + span * model.hfield_data.reshape(rows, columns).T

    def __call__(self, points, lookup):  # (n, 2) -> (n,)
        cells = np.array(self.heights.shape) - 1
        along = np.clip((points - self.low) / self.scale, 0.0, cells)
        i, j = np.minimum(along.astype(int), cells - 1).T
        u, v = along.T - (i, j)
        h00, h10 = self.heights[i, j], self.heights[i + 1, j]
        h01, h11 = self.heights[i, j + 1], self.heights[i + 1, j + 1]
        if lookup == "lowest":  # of three corners
            return np.minimum(np.minimum(h00, h10), h01)
        if lookup == "bilinear":
            return (1 - v) * ((1 - u) * h00 + u * h10) + v * ((1 - u) * h01 + u * h11)
        upper = h00 + u * (h10 - h00) + v * (h11 - h10)
        lower = h00 + u * (h11 - h01) + v * (h01 - h00)
        return np.where(u >= v, upper, lower)  # the surface: two triangles


class Robot:  # in MuJoCo; a real one's read() asks sensors, its write() sends targets, kp, kd and limits to the motors
    def __init__(self, path, about):
        self.model, names = mujoco.MjModel.from_xml_path(path), about["joint_names"]
        self.data, self.motors = (
            mujoco.MjData(self.model),
            [self.model.actuator(name).id for name in names],
        )
        mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        self.angles, self.speeds = np.array(
            [(j.qposadr[0], j.dofadr[0]) for j in map(self.model.joint, names)]
        ).T
        self.steps = round(about["control_dt"] / self.model.opt.timestep)
        self.ground, self.look = Ground(self.model), about.get("scan")

    def read(
        self,
    ):  # orientation (w, x, y, z) and angular velocity of the base, in its frame; joints, rad and rad/s; heights
        return (
            self.data.qpos[3:7],
            self.data.qvel[3:6].copy(),
            self.data.qpos[self.angles],
            self.data.qvel[self.speeds],
            self.scan() if self.look else (),
        )

    def scan(self):  # how far the ground is below the base at a grid that turns with the heading
        (w, x, y, z), look = self.data.qpos[3:7], self.look
        yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        ahead, left = np.repeat(look["x"], len(look["y"])), np.tile(look["y"], len(look["x"]))
        points = self.data.qpos[:2] + np.transpose(
            (
                np.cos(yaw) * ahead - np.sin(yaw) * left,
                np.sin(yaw) * ahead + np.cos(yaw) * left,
            )
        )
        below = self.data.qpos[2] - self.ground(points, look["lookup"]) - look["offset"]
        return np.clip(below, -look["limit"], look["limit"])

    def write(self, target):
        self.data.ctrl[self.motors] = target
        mujoco.mj_step(self.model, self.data, self.steps)


if __name__ == "__main__":
    sys.tracebacklimit = 0  # a mistake is one line
    style = dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word)
    words = sys.argv[1:2] + [word for word in sys.argv[2:] if "=" not in word]
    folder, *command, window = (*words, "")[:5] if len(words) > 3 else sys.exit(__doc__)
    command, controller = np.array(command, float), Controller(f"{folder}/policy.onnx")
    np.isfinite(command).all() or sys.exit(f"vx, vy and ωz must be finite numbers, got {command}")
    controller.set_gait(**style)
    limited = controller.limit_command(command)
    if (limited != command).any():
        print("limited to the commands of the training:", *limited)
    robot = Robot(f"{folder}/scene.xml", controller.about)
    viewer, begin = (
        mujoco.viewer.launch_passive(robot.model, robot.data) if window else None,
        time.perf_counter(),
    )
    while viewer.is_running() if viewer else controller.time < 10.0:
        robot.write(controller(command, *robot.read()))
        if viewer:
            viewer.sync()
            time.sleep(max(begin + controller.time - time.perf_counter(), 0.0))
    print(
        "after {:.1f} s at x = {:.2f} m, y = {:.2f} m, height {:.2f} m".format(
            controller.time, *robot.data.qpos[:3]
        )
    )
