/**
 * Files of the page as scripts: each adds its content to `window.leggedEnvs`.
 *
 * A page that was opened as a file may run scripts beside it, and may not fetch them. Binary files
 * are compressed by gzip and written in base64, so that any host sends few bytes.
 */
import type { Metadata } from "./metadata";

/** Bounds of costs, one number for each joint. A joint without an end has null. */
export interface Costs {
  joint_position?: { limit: number; ranges: ([number, number] | null)[] };
  joint_velocity?: { limit: number; max: number[] };
  joint_torque?: { limit: number; max: number[] };
  base_orientation?: { limit: number; max: number };
}

/** A policy and its robot, as `legged-envs export` writes them. */
export interface RobotFile {
  metadata: Metadata;
  /** Text of scene.xml. */
  scene: string;
  /** policy.onnx. */
  policy: string;
  /** Names of the scene's files in `files`, by their path in the scene. */
  assets: Record<string, string>;
  costs: Costs;
}

interface Shelf {
  files: Record<string, string>;
  robots: Record<string, RobotFile>;
}

const shelf: Shelf = { files: {}, robots: {} };
(window as unknown as { leggedEnvs: Shelf }).leggedEnvs = shelf;

/** The folder of this script, from where it loads the others. */
const folder = new URL(".", (document.currentScript as HTMLScriptElement).src);
const loading = new Map<string, Promise<void>>();

/** Run a script of the page's folder, once. */
function load(name: string): Promise<void> {
  const known = loading.get(name);
  if (known) {
    return known;
  }
  const promise = new Promise<void>((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL(name, folder).href;
    script.onload = () => resolve();
    script.onerror = () => {
      // A network that comes back is asked again.
      loading.delete(name);
      reject(new Error(`${name} could not be loaded: reload the page`));
    };
    document.head.append(script);
  });
  loading.set(name, promise);
  return promise;
}

/** Return the bytes of a compressed file. */
export async function unpack(text: string): Promise<Uint8Array<ArrayBuffer>> {
  const letters = atob(text);
  const packed = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index += 1) {
    packed[index] = letters.charCodeAt(index);
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Return the bytes of a file of the page's folder. */
export async function binary(name: string): Promise<Uint8Array<ArrayBuffer>> {
  await load(`${name}.js`);
  return unpack(shelf.files[name]);
}

/** Return a robot of the page's folder. */
export async function robotFile(name: string): Promise<RobotFile> {
  await load(`${name}.js`);
  return shelf.robots[name];
}
