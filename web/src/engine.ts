/** MuJoCo and ONNX Runtime, both in WebAssembly, and robots that run in them. */
import loadMujoco, { type MainModule, type MjModel } from "@mujoco/mujoco";
import * as ort from "onnxruntime-web/wasm";
import { binary, type Costs, robotFile, unpack } from "./files";
import { Controller, Robot } from "./loop";
import type { Metadata } from "./metadata";

/** A robot and the policy that drives it. */
export interface Walker {
  about: Metadata;
  costs: Costs;
  robot: Robot;
  /** Makes a controller whose episode begins. */
  begin(): Controller;
  /** Frees the memory of both engines. */
  free(): void;
}

/** What a robot and its policy are made of. */
export interface RobotParts {
  about: Metadata;
  /** Text of scene.xml. */
  scene: string;
  /** policy.onnx. */
  policy: Uint8Array;
  /** The scene's files, by their path in the scene. */
  assets: Record<string, Uint8Array>;
  costs: Costs;
}

let engine: Promise<MainModule> | undefined;
/** Number of scenes that were compiled. */
let numScenes = 0;

async function start(): Promise<MainModule> {
  const files = await Promise.all([binary("mujoco.wasm"), binary("onnxruntime.wasm")]);
  // One thread: several need headers that most static hosts do not send.
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = files[1].buffer;
  return loadMujoco({ wasmBinary: files[0].buffer });
}

/** Return MuJoCo. Its first caller loads both engines. */
export function mujocoEngine(): Promise<MainModule> {
  engine ??= start();
  engine.catch(() => (engine = undefined));
  return engine;
}

function makeTensor(values: Float32Array, shape: number[]): ort.Tensor {
  return new ort.Tensor("float32", values, shape);
}

/**
 * Return a scene as this MuJoCo reads it.
 *
 * The newest build in WebAssembly is MuJoCo 3.14. The text of MuJoCo 4 says of each actuator if
 * gain and bias are those of a position or a velocity, which 3.14 sees by itself and refuses to
 * read.
 */
function plainScene(scene: string): string {
  return scene.replace(/ input="(?:pos|vel)"/g, "");
}

/** Return the model of an exported scene. */
function compile(mujoco: MainModule, parts: RobotParts): MjModel {
  // Files in memory: MuJoCo's own virtual files would take seconds for a large terrain.
  const files = mujoco.FS;
  // A folder of its own: MuJoCo keeps what it has read, by the path of the file.
  numScenes += 1;
  const folder = `/robot${numScenes}`;
  files.mkdirTree(`${folder}/assets`, 0o777);
  files.writeFile(`${folder}/scene.xml`, plainScene(parts.scene));
  for (const [path, asset] of Object.entries(parts.assets)) {
    files.writeFile(`${folder}/${path}`, asset);
  }
  const none = new mujoco.MjVFS();
  try {
    return mujoco.MjModel.from_xml_path(`${folder}/scene.xml`, none);
  } finally {
    none.delete();
    for (const path of ["scene.xml", ...Object.keys(parts.assets)]) {
      files.unlink(`${folder}/${path}`);
    }
  }
}

/**
 * Load a robot of the page's folder and its policy.
 *
 * @param name - File name of the policy, without its ending.
 * @throws Error if the policy needs what the page cannot observe.
 */
export async function loadWalker(name: string): Promise<Walker> {
  const file = await robotFile(name);
  const assets: Record<string, Uint8Array> = {};
  for (const [path, asset] of Object.entries(file.assets)) {
    assets[path] = await binary(asset);
  }
  const { metadata: about, scene, costs } = file;
  return makeWalker({ about, scene, policy: await unpack(file.policy), assets, costs });
}

/**
 * Make a robot and the policy that drives it.
 *
 * @throws Error if the scene does not compile, or does not fit the policy, or the policy needs what
 * the page cannot observe.
 */
export async function makeWalker(parts: RobotParts): Promise<Walker> {
  const { about, costs } = parts;
  const mujoco = await mujocoEngine();
  const model = compile(mujoco, parts);
  const network = await ort.InferenceSession.create(parts.policy);
  const begin = () => new Controller(network, about, makeTensor);
  const robot = new Robot(mujoco, model, about);
  const free = () => {
    robot.delete();
    void network.release();
  };
  try {
    // A policy that does not fit is found before it walks.
    await begin().step([0, 0, 0], robot.read());
  } catch (error) {
    free();
    throw error;
  }
  return { about, costs, robot, begin, free };
}

/**
 * Return where the base is, x, y, z in m, after a walk from the pose `home`.
 *
 * The test of this page compares it with the same walk in Python.
 */
export async function walk(name: string, command: number[], seconds: number): Promise<number[]> {
  const walker = await loadWalker(name);
  const controller = walker.begin();
  const steps = Math.round(seconds / walker.about.control_dt);
  for (let step = 0; step < steps; step += 1) {
    walker.robot.write(await controller.step(command, walker.robot.read()));
  }
  const place: number[] = Array.from(walker.robot.data.qpos.slice(0, 3));
  walker.free();
  return place;
}
