/** A robot of the user: the files of a folder that `legged-envs export` wrote. */
import type { RobotParts } from "./engine";
import type { Metadata } from "./metadata";

const WRITER = "choose a folder that legged-envs export wrote";
/** Entries of the metadata that are texts. The others are JSON. */
const TEXTS = ["task_id", "robot", "action"];
/** Entries of the metadata without which no robot walks. */
const NEEDED = [
  ...["task_id", "control_dt", "joint_names", "default_joint_pos", "actuators", "inputs"],
  ...["observation_limit", "action_joints", "action_scale", "action_limit", "target_clip"],
];
/** Of a policy that does not say how it was trained: nothing can be commanded. */
const UNTRAINED = { commands: {}, can_stand: true, push_velocity: 0 };
/** Field of the metadata in the protobuf message of an ONNX file. */
const METADATA_FIELD = 14;

/**
 * Read an exported folder.
 *
 * @param files - Files with their paths, as an input of the kind `webkitdirectory` gives them.
 * @throws Error if a file is missing, or the policy has no metadata.
 */
export async function readFolder(files: File[]): Promise<RobotParts> {
  const byPath = new Map<string, File>();
  for (const file of files) {
    // Without the name of the folder.
    byPath.set(file.webkitRelativePath.split("/").slice(1).join("/"), file);
  }
  const missing = ["scene.xml", "policy.onnx"].filter((name) => !byPath.has(name));
  if (missing.length) {
    throw new Error(`the folder has no ${missing.join(" and no ")}: ${WRITER}`);
  }
  const read = async (path: string) => new Uint8Array(await (byPath.get(path) as File).arrayBuffer());
  const policy = await read("policy.onnx");
  const about = readMetadata(policy);
  const assets: Record<string, Uint8Array> = {};
  for (const path of byPath.keys()) {
    if (path.startsWith("assets/")) {
      assets[path] = await read(path);
    }
  }
  const scene = await (byPath.get("scene.xml") as File).text();
  return { about, scene, policy, assets, costs: {} };
}

/** Return the metadata in an ONNX file. */
function readMetadata(onnx: Uint8Array): Metadata {
  const decoder = new TextDecoder();
  const entries: Record<string, unknown> = { training: UNTRAINED };
  for (const [field, message] of protobufFields(onnx)) {
    if (field === METADATA_FIELD) {
      const [name, text] = [...protobufFields(message)].map((part) => decoder.decode(part[1]));
      entries[name] = TEXTS.includes(name) ? text : JSON.parse(text);
    }
  }
  const missing = NEEDED.filter((name) => !(name in entries));
  if (missing.length) {
    throw new Error(`policy.onnx has no metadata ${missing.join(", ")}: ${WRITER}`);
  }
  return entries as unknown as Metadata;
}

/** Return the number and the content of each field with a length, of a protobuf message. */
function* protobufFields(bytes: Uint8Array): Generator<[number, Uint8Array]> {
  let at = 0;
  const readInteger = () => {
    // Seven bits in each byte, the lowest first. The last byte is below 128.
    for (let value = 0, factor = 1; at < bytes.length; factor *= 128) {
      const byte = bytes[at];
      at += 1;
      value += (byte % 128) * factor;
      if (byte < 128) {
        return value;
      }
    }
    throw new Error(`policy.onnx is not a whole ONNX file: ${WRITER}`);
  };
  while (at < bytes.length) {
    const tag = readInteger();
    if (tag % 8 === 0) {
      readInteger();
    } else if (tag % 8 === 2) {
      const length = readInteger();
      yield [Math.floor(tag / 8), bytes.subarray(at, at + length)];
      at += length;
    } else {
      // Numbers of 8 and 4 bytes.
      at += tag % 8 === 1 ? 8 : 4;
    }
  }
}
