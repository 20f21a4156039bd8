/** What the page says about a walk: speeds, and costs against their limits. */
import type { Walker } from "./engine";

/** Time over which speeds are averaged, s. */
const SPEED_TIME = 0.5;
/** Time over which costs are averaged, s. */
const COST_TIME = 5;

/** A cost: the average per step, and its limit. */
export interface Cost {
  value: number;
  limit: number;
}

/** Averages of the last seconds, which forget older values little by little. */
export class Meter {
  /** Speed ahead and to the left, m/s, and turning rate, rad/s. */
  readonly speed = [0, 0, 0];
  readonly costs: Record<string, Cost> = {};

  constructor(private readonly walker: Walker) {
    for (const [name, bounds] of Object.entries(walker.costs)) {
      this.costs[name] = { value: 0, limit: bounds.limit };
    }
  }

  /** Take in the state after a control step. */
  update(): void {
    const dt = this.walker.about.control_dt;
    const speed = this.measuredSpeed();
    speed.forEach((now, axis) => {
      this.speed[axis] += (now - this.speed[axis]) * (dt / SPEED_TIME);
    });
    const costs = this.measuredCosts();
    for (const [name, cost] of Object.entries(this.costs)) {
      cost.value += (costs[name] - cost.value) * (dt / COST_TIME);
    }
  }

  /** Return the velocity of the base in the frame of its heading. */
  private measuredSpeed(): number[] {
    const [w, x, y, z]: Float64Array = this.walker.robot.data.qpos.slice(3, 7);
    const qvel: Float64Array = this.walker.robot.data.qvel;
    const yaw = Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
    const ahead = Math.cos(yaw) * qvel[0] + Math.sin(yaw) * qvel[1];
    const left = Math.cos(yaw) * qvel[1] - Math.sin(yaw) * qvel[0];
    return [ahead, left, qvel[5]];
  }

  /** Return the costs of this step: the fraction of joints beyond their bounds, or 0 and 1. */
  private measuredCosts(): Record<string, number> {
    const { robot, costs } = this.walker;
    const data = robot.data;
    const { jointPos, jointVel } = robot.read();
    const force: Float64Array = data.actuator_force;
    const torque = robot.motors.map((motor) => force[motor]);
    const ranges = costs.joint_position?.ranges ?? [];
    const outside = (q: number, joint: number) => {
      const span = ranges[joint];
      return span ? q < span[0] || q > span[1] : false;
    };
    const beyond = (limits: number[] = []) => (value: number, joint: number) =>
      Math.abs(value) > limits[joint];
    return {
      joint_position: fraction(jointPos, outside),
      joint_velocity: fraction(jointVel, beyond(costs.joint_velocity?.max)),
      joint_torque: fraction(torque, beyond(costs.joint_torque?.max)),
      base_orientation: tilt(robot.data.qpos) > (costs.base_orientation?.max ?? Infinity) ? 1 : 0,
    };
  }
}

function fraction(values: number[], test: (value: number, index: number) => boolean): number {
  return values.filter(test).length / values.length;
}

/** Return the angle between the z axis of the base and the vertical, rad. */
export function tilt(qpos: Float64Array): number {
  const x = qpos[4];
  const y = qpos[5];
  return Math.acos(Math.min(Math.max(1 - 2 * (x * x + y * y), -1), 1));
}
