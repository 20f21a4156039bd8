/**
 * Drive a robot from policy.onnx and its metadata: examples/deploy.py in TypeScript.
 *
 * `Controller` is what runs on a robot. It knows the policy only by its metadata, which
 * docs/how-to/deploy.md explains entry by entry. `Robot` is MuJoCo.
 */
import type { MainModule, MjData, MjModel } from "@mujoco/mujoco";
import type { InferenceSession, Tensor } from "onnxruntime-web/wasm";
import { clip, Ground } from "./ground";
import type { Metadata, Term } from "./metadata";

/** What a robot measures: orientation (w, x, y, z), rad/s, rad, rad/s, and heights in m. */
export interface Reading {
  quat: number[];
  gyro: number[];
  jointPos: number[];
  jointVel: number[];
  scan: number[];
}

type Network = Pick<InferenceSession, "run" | "inputNames" | "outputNames">;
type MakeTensor = (values: Float32Array, shape: number[]) => Tensor;
type Values = Record<string, number[]>;

/** Makes the targets of the joints from a command and what a robot measures. */
export class Controller {
  /** Time since the start, s. */
  time = 0;
  /** Last output of the network, clipped. */
  action: number[];
  /** Name of the gait, of a policy with gaits. It may change while the robot walks. */
  gait?: string;
  /** Time of the clock of such a policy, in strides. */
  private strides = 0;
  private readonly terms: Term[];
  private readonly driven: number[];
  private memory: Record<string, Tensor> = {};
  /** Observed values of past control steps, the newest first. */
  private past: Values[] = [];

  /**
   * @param network - Session of policy.onnx.
   * @param about - Metadata of the policy.
   * @param tensor - Makes a tensor of float32.
   * @throws Error if the policy needs what this loop cannot observe.
   */
  constructor(
    private readonly network: Network,
    readonly about: Metadata,
    private readonly tensor: MakeTensor,
  ) {
    const groups = Object.values(about.inputs);
    if (groups.length !== 1) {
      const names = Object.keys(about.inputs).join(", ");
      throw new Error(`${about.task_id} takes ${names}: this page knows only one group`);
    }
    this.terms = groups[0];
    this.action = about.action_scale.map(() => 0);
    this.gait = about.gait_command && Object.keys(about.gait_command.gaits)[0];
    this.driven = about.action_joints.map((name) => about.joint_names.indexOf(name));
    for (const [name, size] of Object.entries(about.memory ?? {})) {
      // An episode begins with an empty memory.
      this.memory[name] = tensor(new Float32Array(size), [1, size]);
    }
  }

  /** Return the target of each joint for the next control step, in the order of `joint_names`. */
  async step(command: number[], reading: Reading): Promise<number[]> {
    const now = this.observe(command, reading);
    // Before the first step, the past is what the robot measures at the start.
    const before = this.past.length ? this.past : this.terms.map(() => now);
    this.past = [now, ...before].slice(0, this.terms.length);
    const observation = Float32Array.from(this.terms.flatMap((term) => this.values(term)));
    const outputs = await this.network.run({
      obs: this.tensor(observation, [1, observation.length]),
      ...this.memory,
    });
    const [actions, ...after] = this.network.outputNames.map((name) => outputs[name]);
    Object.keys(this.memory).forEach((name, index) => (this.memory[name] = after[index]));
    const limit = this.about.action_limit;
    this.action = Array.from(actions.data as Float32Array, (value) => clip(value, -limit, limit));
    const targets = this.targets();
    this.time += this.about.control_dt;
    return targets;
  }

  /** Return every quantity that this loop knows, by the name of its term. */
  private observe(command: number[], reading: Reading): Values {
    const [w, x, y, z] = reading.quat;
    const stride = this.time / (this.about.gait?.period ?? 1);
    const now: Values = {
      command,
      gravity: [2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1],
      ang_vel: reading.gyro,
      joint_pos: reading.jointPos.map((q, j) => q - this.about.default_joint_pos[j]),
      joint_vel: reading.jointVel,
      action: this.action,
      clock: [Math.sin(2 * Math.PI * stride), Math.sin(2 * Math.PI * (stride + 0.25))],
      height_scan: reading.scan,
      ...this.observeGait(command),
    };
    const strange = this.terms.filter((term) => term.own || now[term.name]?.length !== term.size);
    if (strange.length) {
      const names = [...new Set(strange.map((term) => term.name))].join(", ");
      throw new Error(
        `${this.about.task_id} observes ${names}, which this page cannot: it knows ` +
          Object.keys(now).join(", "),
      );
    }
    return now;
  }

  /** Return which feet swing together, how the robot walks, and the clock of each foot. */
  private observeGait(command: number[]): Values {
    const known = this.about.gait_command;
    if (!known || !this.gait) {
      return {};
    }
    const offsets = known.gaits[this.gait];
    // The middle of what was trained.
    const style = [known.period, known.clearance, known.height, known.pitch].map(
      ([low, high]) => (low + high) / 2,
    );
    const angles = known.phase_offsets.map((row) => {
      const offset = row.reduce((sum, factor, index) => sum + factor * offsets[index], 0);
      return 2 * Math.PI * (this.strides + offset);
    });
    // Feet rest while the robot stands.
    const moves = Math.hypot(...command) > known.still ? 1 : 0;
    this.strides += this.about.control_dt / style[0];
    return {
      gait: offsets.map((offset) => Math.cos(2 * Math.PI * offset)),
      gait_style: style,
      clock_sin: angles.map((angle) => moves * Math.sin(angle)),
      clock_cos: angles.map((angle) => moves * Math.cos(angle)),
    };
  }

  /** Return the numbers of one term: of its time step, clipped, scaled, and clipped at last. */
  private values(term: Term): number[] {
    const [low, high] = term.clip ?? [null, null];
    const bound = this.about.observation_limit;
    return this.past[term.steps_ago ?? 0][term.name].map((value, index) => {
      const scale = Array.isArray(term.scale) ? term.scale[index] : term.scale;
      return clip(clip(value, low, high) * scale, -bound, bound);
    });
  }

  /** Return the targets that the last action stands for. */
  private targets(): number[] {
    const { about } = this;
    const targets = about.default_joint_pos.map((q, j) =>
      about.actuators[j] === "position" ? q : 0,
    );
    const gait = about.gait;
    gait?.offsets.forEach((offset, foot) => {
      // A foot that swings is lifted.
      const phase = (this.time / gait.period + offset) % 1;
      const swung = Math.max((phase - gait.stance) / (1 - gait.stance), 0);
      const lift = Math.sin(Math.PI * swung) ** 2;
      about.joint_names.forEach((name, j) => (targets[j] += lift * gait.swing[foot][name]));
    });
    this.driven.forEach((joint, index) => {
      const [low, high] = about.target_clip[index];
      const target = targets[joint] + about.action_scale[index] * this.action[index];
      targets[joint] = clip(target, low, high);
    });
    return targets;
  }
}

/** The robot in MuJoCo. A real one asks its sensors in `read` and its motors in `write`. */
export class Robot {
  readonly data: MjData;
  readonly ground: Ground;
  /** Addresses of the joints in qpos, qvel and ctrl, in the order of `joint_names`. */
  readonly positions: number[];
  readonly velocities: number[];
  readonly motors: number[];
  private readonly steps: number;

  /** Place the robot in the pose of the keyframe `home`. */
  constructor(
    private readonly mujoco: MainModule,
    readonly model: MjModel,
    private readonly about: Metadata,
  ) {
    const kinds = mujoco.mjtObj;
    const id = (kind: { value: number }, name: string) => mujoco.mj_name2id(model, kind.value, name);
    const joints = about.joint_names.map((name) => id(kinds.mjOBJ_JOINT, name));
    this.motors = about.joint_names.map((name) => id(kinds.mjOBJ_ACTUATOR, name));
    const absent = about.joint_names.filter((_, j) => joints[j] < 0 || this.motors[j] < 0);
    if (absent.length || model.nkey < 1) {
      const what = absent.length ? `joint and motor ${absent.join(", ")}` : "keyframe home";
      throw new Error(`the scene has no ${what}, which the policy of ${about.task_id} needs`);
    }
    this.positions = joints.map((joint) => model.jnt_qposadr[joint]);
    this.velocities = joints.map((joint) => model.jnt_dofadr[joint]);
    this.steps = Math.round(about.control_dt / model.opt.timestep);
    this.ground = new Ground(model, mujoco.mjtGeom.mjGEOM_HFIELD.value);
    this.data = new mujoco.MjData(model);
    this.reset();
  }

  /** Place the robot in the pose of the keyframe `home`. */
  reset(): void {
    this.mujoco.mj_resetDataKeyframe(this.model, this.data, 0);
    // The poses of the bodies, for who draws them. The state is that of the keyframe.
    this.mujoco.mj_kinematics(this.model, this.data);
  }

  /** Return what the sensors of a robot measure. */
  read(): Reading {
    const qpos: Float64Array = this.data.qpos;
    const qvel: Float64Array = this.data.qvel;
    return {
      quat: Array.from(qpos.slice(3, 7)),
      gyro: Array.from(qvel.slice(3, 6)),
      jointPos: this.positions.map((address) => qpos[address]),
      jointVel: this.velocities.map((address) => qvel[address]),
      scan: this.scan(qpos),
    };
  }

  /** Return how far the ground is below the base, at a grid that turns with the heading. */
  private scan(qpos: Float64Array): number[] {
    const look = this.about.scan;
    if (!look) {
      return [];
    }
    const [w, x, y, z] = qpos.slice(3, 7);
    const yaw = Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
    const [sin, cos] = [Math.sin(yaw), Math.cos(yaw)];
    return look.x.flatMap((ahead) =>
      look.y.map((left) => {
        const pointX = qpos[0] + (cos * ahead - sin * left);
        const pointY = qpos[1] + (sin * ahead + cos * left);
        const below = qpos[2] - this.ground.height(pointX, pointY, look.lookup) - look.offset;
        return clip(below, -look.limit, look.limit);
      }),
    );
  }

  /** Send targets to the motors, and simulate one control step. */
  write(targets: number[]): void {
    const ctrl: Float64Array = this.data.ctrl;
    this.motors.forEach((motor, joint) => (ctrl[motor] = targets[joint]));
    for (let step = 0; step < this.steps; step += 1) {
      this.mujoco.mj_step(this.model, this.data);
    }
  }

  /** Free the memory of MuJoCo. */
  delete(): void {
    this.data.delete();
    this.model.delete();
  }
}
