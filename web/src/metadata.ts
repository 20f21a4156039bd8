/** The metadata of a policy; docs/how-to/deploy.md explains each entry. */

/** One term of the observation, in the order of the network's input. */
export interface Term {
  name: string;
  size: number;
  scale: number | number[];
  clip: [number | null, number | null] | null;
  steps_ago?: number;
  own?: string;
}

/** The entries of a policy's metadata that a control loop reads. Angles in rad, torques in N·m. */
export interface Metadata {
  task_id: string;
  robot: string;
  control_dt: number;
  joint_names: string[];
  default_joint_pos: number[];
  actuators: ("position" | "velocity" | "torque")[];
  observation_limit: number;
  action_joints: string[];
  action_scale: number[];
  action_limit: number;
  target_clip: [number | null, number | null][];
  inputs: Record<string, Term[]>;
  memory?: Record<string, number>;
  gait?: { period: number; stance: number; offsets: number[]; swing: Record<string, number>[] };
  gait_command?: {
    gaits: Record<string, number[]>;
    period: [number, number];
    clearance: [number, number];
    height: [number, number];
    pitch: [number, number];
    phase_offsets: number[][];
    still: number;
  };
  scan?: { x: number[]; y: number[]; offset: number; limit: number; lookup: string };
  training: {
    commands: Record<"lin_vel_x" | "lin_vel_y" | "ang_vel_z", [number, number]>;
    can_stand: boolean;
    push_velocity: number;
  };
}
