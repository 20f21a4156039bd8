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

PLAIN_TEXT = ("task_id", "robot", "action")  # entries of the contract that are not JSON
COMMAND = ("lin_vel_x", "lin_vel_y", "ang_vel_z")  # of the robot, in this order
STYLE = ("period", "clearance", "height", "pitch")  # of a gait, in this order
NO_CLOCK = {"period": 1.0, "offsets": (), "swing": ()}  # for a policy without a gait clock


class Controller:
    """From a command and what a robot measures to the targets of its joints."""

    def __init__(self, path):
        self.network = onnxruntime.InferenceSession(path)
        texts = self.network.get_modelmeta().custom_metadata_map
        self.about = {
            name: text if name in PLAIN_TEXT else json.loads(text) for name, text in texts.items()
        }
        self.default = np.array(self.about["default_joint_pos"])
        self.rest = self.default * (np.array(self.about["actuators"]) == "position")
        self.driven = [*map(self.about["joint_names"].index, self.about["action_joints"])]
        self.scale = np.array(self.about["action_scale"])
        self.low, self.high = np.array(self.about["target_clip"], float).T  # NaN: no limit
        self.least, self.most = self.command_limits()
        self.terms = [term for terms in self.about["inputs"].values() for term in terms]
        self.clock = self.about.get("gait", NO_CLOCK)  # always the same gait
        self.gaits = self.about.get("gait_command")  # gaits that may change while it walks
        self.style = {}
        if self.gaits:
            self.style = {name: np.mean(self.gaits[name]) for name in STYLE}
            self.style["gait"] = next(iter(self.gaits["gaits"]))

        # What changes from step to step. An episode starts with a memory of zeros.
        self.time = 0.0
        self.strides = 0.0  # done so far, of a gait that may change
        self.past = []  # observed quantities, the newest first
        self.action = 0.0 * self.scale
        memory = self.about.get("memory", {})
        self.memory = {name: np.zeros((1, size), np.float32) for name, size in memory.items()}

    def command_limits(self):
        """Return the range of each command in training, widened to 0; infinite where unknown."""
        trained = (self.about.get("training") or {}).get("commands") or {}
        ranges = [trained.get(name) or (None, None) for name in COMMAND]
        low, high = np.array(ranges, float).T  # NaN: unknown, so no limit
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
        return np.minimum(low, 0.0), np.maximum(high, 0.0)

    def limit_command(self, command):
        """Clip a command to the range of the training, beyond which the robot may fall."""
        return np.clip(command, self.least, self.most)

    def set_gait(self, **style):
        """Set the name of the gait, or numbers of STYLE. Exit if the policy does not allow them."""
        for name, value in style.items():
            if name not in self.style:
                sys.exit(f"the policy has no {name}, only {', '.join(self.style) or 'a velocity'}")
            known = self.gaits["gaits"] if name == "gait" else self.gaits[name]
            if not (value in known if name == "gait" else known[0] <= float(value) <= known[1]):
                sys.exit(f"{name} must be within {', '.join(map(str, known))}, got {value}")
            self.style[name] = value if name == "gait" else float(value)

    def step_gait(self, command):
        """Return what the policy observes of its gait, and advance the gait by a control step."""
        offsets = np.array(self.gaits["gaits"][self.style["gait"]])
        # The angle of each foot in its stride.
        angle = 2 * np.pi * (self.strides + np.array(self.gaits["phase_offsets"]) @ offsets)
        moves = np.linalg.norm(command) > self.gaits["still"]
        self.strides += self.about["control_dt"] / self.style["period"]
        return {
            "gait": np.cos(2 * np.pi * offsets),
            "gait_style": [self.style[name] for name in STYLE],
            "clock_sin": np.sin(angle) * moves,
            "clock_cos": np.cos(angle) * moves,
        }

    def observe(self, command, quat, gyro, q, dq, scan):
        """Return the input of the network: the newest and past quantities, clipped and scaled."""
        w, x, y, z = quat
        strides = self.time / self.clock["period"]
        now = {
            "command": command,
            "gravity": (2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1),
            "ang_vel": gyro,
            "joint_pos": q - self.default,
            "joint_vel": dq,
            "action": self.action,
            "clock": np.sin(2 * np.pi * (strides + np.array((0.0, 0.25)))),
            "height_scan": scan,
        }
        if self.gaits:
            now |= self.step_gait(command)
        strange = set()
        for term in self.terms:
            if "own" in term or np.size(now.get(term["name"], ())) != term["size"]:
                strange.add(term["name"])
        if strange:
            sys.exit(
                f"this loop cannot observe {', '.join(sorted(strange))}, only {', '.join(now)}"
            )
        # As many steps as there are terms are enough. At the start, the past is as the present.
        before = self.past or [now] * len(self.terms)
        self.past = [now, *before][: len(self.terms)]
        parts = []
        for term in self.about["observation"]:
            value = self.past[term.get("steps_ago", 0)][term["name"]]
            parts.append(np.clip(value, *(term["clip"] or (-np.inf, np.inf))) * term["scale"])
        limit = self.about["observation_limit"]
        return np.concatenate(parts, dtype=np.float32).clip(-limit, limit)

    def lift(self):
        """Return joint offsets that lift the feet in swing; all 0 without a gait clock."""
        offsets = np.zeros(len(self.default))
        for lead, swing in zip(self.clock["offsets"], self.clock["swing"], strict=True):
            phase = (self.time / self.clock["period"] + lead) % 1.0
            swung = max((phase - self.clock["stance"]) / (1.0 - self.clock["stance"]), 0.0)
            angles = np.array([swing[name] for name in self.about["joint_names"]])
            offsets += np.sin(np.pi * swung) ** 2 * angles
        return offsets

    def __call__(self, command, quat, gyro, q, dq, scan=()):
        """Make a control step, and return the targets of all joints.

        The orientation is (w, x, y, z), the gyro in rad/s in the frame of the base, q in rad, dq in
        rad/s, and the scan in m, for policies that use one.
        """
        command = self.limit_command(command)
        self.observation = self.observe(command, quat, gyro, q, dq, scan)
        actions, *after = self.network.run(None, {"obs": self.observation[None], **self.memory})
        self.memory = dict(zip(self.memory, after, strict=True))
        limit = self.about["action_limit"]
        self.action = np.clip(actions[0], -limit, limit)
        target = self.rest + self.lift()
        moved = target[self.driven] + self.scale * self.action
        target[self.driven] = np.fmax(self.low, np.fmin(self.high, moved))
        self.time += self.about["control_dt"]
        return target


class Ground:
    """Heights at points of the world, as in the contract's entry "scan". A real robot has a map."""

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


class Robot:
    """The robot in MuJoCo. Replace its methods read() and write() for a real one."""

    def __init__(self, path, about):
        self.model = mujoco.MjModel.from_xml_path(path)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        names = about["joint_names"]
        self.motors = [self.model.actuator(name).id for name in names]
        joints = [self.model.joint(name) for name in names]
        self.angles = np.array([joint.qposadr[0] for joint in joints])
        self.speeds = np.array([joint.dofadr[0] for joint in joints])
        self.steps = round(about["control_dt"] / self.model.opt.timestep)
        self.ground = Ground(self.model)
        self.look = about.get("scan")

    def read(self):
        """Return orientation, gyro, joint angles, joint speeds and scan, for the controller."""
        return (
            self.data.qpos[3:7],
            self.data.qvel[3:6].copy(),
            self.data.qpos[self.angles],
            self.data.qvel[self.speeds],
            self.scan() if self.look else (),
        )

    def scan(self):
        """Return how far the ground is below the base at a grid that turns with the heading."""
        (w, x, y, z), look = self.data.qpos[3:7], self.look
        yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        ahead, left = np.repeat(look["x"], len(look["y"])), np.tile(look["y"], len(look["x"]))
        east = np.cos(yaw) * ahead - np.sin(yaw) * left
        north = np.sin(yaw) * ahead + np.cos(yaw) * left
        points = self.data.qpos[:2] + np.transpose((east, north))
        below = self.data.qpos[2] - self.ground(points, look["lookup"]) - look["offset"]
        return np.clip(below, -look["limit"], look["limit"])

    def write(self, target):
        """Set the joint targets, and simulate a control step.

        A real robot also gets kp, kd and torque limits of the contract.
        """
        self.data.ctrl[self.motors] = target
        mujoco.mj_step(self.model, self.data, self.steps)


if __name__ == "__main__":
    sys.tracebacklimit = 0  # a mistake is one line
    style = dict(word.split("=", 1) for word in sys.argv[2:] if "=" in word)
    words = sys.argv[1:2] + [word for word in sys.argv[2:] if "=" not in word]
    if len(words) < 4:
        sys.exit(__doc__)
    folder, window = words[0], len(words) > 4
    command = np.array(words[1:4], float)
    if not np.isfinite(command).all():
        sys.exit(f"vx, vy and ωz must be finite numbers, got {command}")
    controller = Controller(f"{folder}/policy.onnx")
    controller.set_gait(**style)
    limited = controller.limit_command(command)
    if (limited != command).any():
        print("limited to the commands of the training:", *limited)
    robot = Robot(f"{folder}/scene.xml", controller.about)
    # No real robot stands exactly symmetric. If it did, a policy that treats left and right equally
    # would move both front feet at once, and could fall.
    robot.data.qpos[robot.angles[0]] += 0.01  # rad
    viewer = mujoco.viewer.launch_passive(robot.model, robot.data) if window else None
    begin = time.perf_counter()
    while viewer.is_running() if viewer else controller.time < 10.0:
        robot.write(controller(command, *robot.read()))
        if viewer:
            viewer.sync()
            time.sleep(max(begin + controller.time - time.perf_counter(), 0.0))
    x, y, height = robot.data.qpos[:3]
    print(f"after {controller.time:.1f} s at x = {x:.2f} m, y = {y:.2f} m, height {height:.2f} m")
