// Build the page's scripts: node build.mjs FOLDER
import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(import.meta.url);
const folder = process.argv[2];
await mkdir(folder, { recursive: true });

await build({
  entryPoints: ["src/page.ts"],
  outfile: join(folder, "page.js"),
  bundle: true,
  minify: true,
  // A script, not a module: a page that was opened as a file may not load modules.
  format: "iife",
  target: "es2022",
  // Both engines get their WebAssembly as bytes, and ask for no address.
  define: { "import.meta.url": "document.baseURI" },
  external: ["module", "node:*", "worker_threads", "fs", "path", "os", "url"],
  legalComments: "external",
  logLevel: "warning",
});

const engines = {
  "mujoco.wasm": "@mujoco/mujoco/mujoco.wasm",
  "onnxruntime.wasm": "onnxruntime-web/ort-wasm-simd-threaded.wasm",
};
for (const [name, source] of Object.entries(engines)) {
  const packed = gzipSync(await readFile(require.resolve(source)), { level: 9 });
  const script = `leggedEnvs.files["${name}"]="${packed.toString("base64")}";\n`;
  await writeFile(join(folder, `${name}.js`), script);
}
