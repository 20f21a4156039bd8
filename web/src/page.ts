/** The page: choose a robot, drive it, push it, and see speeds and costs. */
import { loadWalker, makeWalker, mujocoEngine, type RobotParts, type Walker, walk } from "./engine";
import type { Controller } from "./loop";
import { Meter, tilt } from "./meter";
import { readFolder } from "./own";
import { View } from "./view";

/** Offset of one joint from the pose `home` at the start, rad. */
const OFFSET = 0.01;
/** Part of the trained range that a key or a button commands. */
const DRIVE = 0.8;
/** Part of the trained range that the robot walks ahead with at first. */
const FIRST = 0.6;
/** Time that a frame may simulate, ms. A slower machine shows slower robots. */
const FRAME_TIME = 40;
/** Tilt of a robot that has fallen, rad, and after how long it is put back, s. */
const FALLEN = 1.2;
const REST = 2;
/** Time between two updates of the numbers, ms. */
const NUMBERS_TIME = 200;
/** Value of the choice of the user's own robot. */
const OWN = "own";

const KEYS: Record<string, [axis: number, sign: number]> = {
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
  ArrowLeft: [2, 1],
  ArrowRight: [2, -1],
  a: [1, 1],
  d: [1, -1],
};
const ACTIONS: Record<string, string> = { " ": "push", r: "reset", s: "stop" };

function find<Kind extends Element>(selector: string): Kind {
  return document.querySelector(`#robots ${selector}`) as Kind;
}

const canvas = find<HTMLCanvasElement>("canvas");
const message = find<HTMLElement>(".robots-message");
const choice = find<HTMLSelectElement>("select");
const gait = find<HTMLSelectElement>(".robots-choice + .robots-choice select");
const folder = find<HTMLInputElement>("input[type=file]");
const sliders = [...document.querySelectorAll<HTMLInputElement>("#robots input[type=range]")];
const buttons = [...document.querySelectorAll<HTMLButtonElement>("#robots button")];

const command = [0, 0, 0];
let view: View;
let walker: Walker | undefined;
let controller: Controller;
let meter: Meter;
/** The robot of the folder that the user chose last. */
let own: RobotParts;
/** Simulated time since the robot fell, s. */
let lying = 0;
/** Counts the robots, so that one that loads slowly does not replace a later one. */
let chosen = 0;

function say(text: string): void {
  message.textContent = text;
}

/** Return the trained range of each command. */
function ranges(): [number, number][] {
  const trained = walker?.about.training.commands;
  return [trained?.lin_vel_x, trained?.lin_vel_y, trained?.ang_vel_z].map((range) => range ?? [0, 0]);
}

function setCommand(axis: number, value: number): void {
  const [low, high] = ranges()[axis];
  command[axis] = Math.min(Math.max(value, low), high);
  sliders[axis].value = String(command[axis]);
}

function drive(axis: number, sign: number): void {
  const [low, high] = ranges()[axis];
  setCommand(axis, DRIVE * (sign > 0 ? high : low));
}

/** Put the robot back to its start. */
function reset(): void {
  if (walker) {
    walker.robot.reset();
    const { data, positions } = walker.robot;
    // No real robot stands exactly symmetric. If it did, a policy that treats left and right
    // equally would move both front feet at once, and could fall.
    data.qpos[positions[0]] += OFFSET;
    controller = walker.begin();
    setGait();
    meter = new Meter(walker);
    lying = 0;
    say("");
  }
}

/** Walk with the chosen gait, if the policy has gaits. */
function setGait(): void {
  if (walker?.about.gait_command) {
    controller.gait = gait.value;
  }
}

/** Offer the gaits of the policy. */
function showGaits(): void {
  const names = Object.keys(walker?.about.gait_command?.gaits ?? {});
  gait.replaceChildren(...names.map((name) => new Option(name)));
  (gait.parentElement as HTMLElement).hidden = names.length === 0;
}

/** Give the base a velocity in a random direction, as in training. */
function push(): void {
  if (walker) {
    const angle = 2 * Math.PI * Math.random();
    const speed = Math.max(walker.about.training.push_velocity, 0.3);
    const qvel: Float64Array = walker.robot.data.qvel;
    qvel[0] += speed * Math.cos(angle);
    qvel[1] += speed * Math.sin(angle);
    view.showPush(Math.cos(angle), Math.sin(angle));
  }
}

function act(name: string): void {
  if (name === "stop") {
    sliders.forEach((_, axis) => setCommand(axis, 0));
  } else if (name === "push") {
    push();
  } else {
    reset();
  }
}

/** Load a robot, and let it walk in place of the one before. */
async function choose(name: string): Promise<void> {
  chosen += 1;
  const number = chosen;
  say(`Loading ${choice.selectedOptions[0]?.text ?? name} …`);
  const mujoco = await mujocoEngine();
  const next = await (name === OWN ? makeWalker(own) : loadWalker(name));
  if (number !== chosen) {
    next.free();
    return;
  }
  walker?.free();
  walker = next;
  showGaits();
  reset();
  view.show(next.robot, mujoco);
  showCosts();
  ranges().forEach(([low, high], axis) => {
    sliders[axis].min = String(low);
    sliders[axis].max = String(high);
    sliders[axis].disabled = low === high;
    setCommand(axis, axis === 0 ? FIRST * high : 0);
  });
  for (const button of buttons) {
    button.disabled = button.dataset.axis ? sliders[Number(button.dataset.axis)].disabled : false;
  }
}

/** Read the folder that the user chose, and let its robot walk. */
async function chooseOwn(): Promise<void> {
  own = await readFolder([...(folder.files as FileList)]);
  choice.querySelector(`option[value=${OWN}]`)?.remove();
  choice.append(new Option(`${own.about.task_id} of your folder`, OWN, true, true));
  await choose(OWN);
}

/** Say why a robot does not walk. */
function sayFault(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  say(`This robot cannot walk here: ${text}.`);
}

/** Simulate one control step. */
async function step(now: Walker): Promise<void> {
  const targets = await controller.step(command, now.robot.read());
  // Another robot may have been chosen in the meantime.
  if (now !== walker) {
    return;
  }
  now.robot.write(targets);
  meter.update();
  const fallen = tilt(now.robot.data.qpos) > FALLEN;
  lying = fallen ? lying + now.about.control_dt : 0;
  if (lying > 0) {
    say("The robot has fallen, and is put back.");
  }
  if (lying > REST) {
    reset();
  }
}

/** Simulate in real time, and draw, as long as the page is open. */
async function run(): Promise<void> {
  let clock = performance.now();
  let numbers = clock;
  let simulated = 0;
  for (;;) {
    await new Promise(requestAnimationFrame);
    const now = walker;
    const begin = performance.now();
    if (!now) {
      clock = begin;
      continue;
    }
    const dt = 1000 * now.about.control_dt;
    while (now === walker && clock + dt <= begin && performance.now() - begin < FRAME_TIME) {
      await step(now);
      clock += dt;
      simulated += dt;
    }
    // What a slow machine or a hidden page has missed is not made up.
    clock = Math.max(clock, begin - 2 * dt);
    view.draw();
    if (begin - numbers > NUMBERS_TIME) {
      showNumbers(simulated / (begin - numbers));
      simulated = 0;
      numbers = begin;
    }
  }
}

function showCosts(): void {
  const rows = Object.entries(meter.costs).map(([name, cost]) => {
    const row = document.createElement("tr");
    const limit = cost.limit;
    row.innerHTML =
      `<th scope="row">${name.replace("_", " ")}</th>` +
      `<td><meter min="0" max="${2 * limit}" high="${limit}" optimum="0"></meter></td>` +
      `<td></td><td>${limit}</td>`;
    return row;
  });
  find(".robots-costs tbody").replaceChildren(...rows);
}

function showNumbers(pace: number): void {
  document.querySelectorAll("#robots .robots-speed tbody tr").forEach((row, axis) => {
    row.children[2].textContent = command[axis].toFixed(2);
    row.children[3].textContent = meter.speed[axis].toFixed(2).replace("-0.00", "0.00");
  });
  const rows = document.querySelectorAll("#robots .robots-costs tbody tr");
  Object.values(meter.costs).forEach((cost, index) => {
    (rows[index].querySelector("meter") as HTMLMeterElement).value = cost.value;
    rows[index].children[2].textContent = cost.value.toFixed(3);
  });
  find(".robots-time").textContent =
    `${controller.time.toFixed(0)} s simulated, ${Math.min(pace, 1).toFixed(2)} × real time`;
}

function listen(): void {
  choice.addEventListener("change", () => choose(choice.value).catch(sayFault));
  gait.addEventListener("change", setGait);
  folder.addEventListener("change", () => chooseOwn().catch(sayFault));
  sliders.forEach((slider, axis) => {
    slider.addEventListener("input", () => setCommand(axis, Number(slider.value)));
  });
  for (const button of buttons) {
    const { axis, sign } = button.dataset;
    if (axis === undefined) {
      button.addEventListener("click", () => act(button.dataset.do as string));
      continue;
    }
    // Held like a key: the pointer may leave the button.
    button.addEventListener("pointerdown", (event) => {
      button.setPointerCapture(event.pointerId);
      drive(Number(axis), Number(sign));
    });
    const release = () => setCommand(Number(axis), 0);
    button.addEventListener("pointerup", release);
    button.addEventListener("pointercancel", release);
    button.addEventListener("contextmenu", (event) => event.preventDefault());
  }
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("keyup", onKey);
  canvas.addEventListener("pointerdown", () => canvas.focus());
}

function onKey(event: KeyboardEvent): void {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const held = KEYS[key];
  const action = ACTIONS[key];
  if ((!held && !action) || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  // The keys neither scroll the page nor open its search.
  event.preventDefault();
  event.stopPropagation();
  if (held && event.type === "keydown") {
    drive(...held);
  } else if (held) {
    setCommand(held[0], 0);
  } else if (event.type === "keydown" && !event.repeat) {
    act(action);
  }
}

/** Return what this browser lacks; undefined if the robots can walk in it. */
function missing(): string | undefined {
  if (typeof WebAssembly === "undefined") {
    return "WebAssembly";
  }
  if (typeof DecompressionStream === "undefined") {
    return "DecompressionStream";
  }
  try {
    view = new View(canvas);
  } catch {
    return "WebGL";
  }
  return undefined;
}

function main(): void {
  const lack = missing();
  if (lack) {
    say(`This browser has no ${lack}, which the robots need: open the page in another browser.`);
    return;
  }
  listen();
  const wanted = location.hash.slice(1);
  if ([...choice.options].some((option) => option.value === wanted)) {
    choice.value = wanted;
  }
  canvas.focus({ preventScroll: true });
  choose(choice.value).catch(sayFault);
  run().catch(sayFault);
}

Object.assign((window as unknown as { leggedEnvs: object }).leggedEnvs, { walk });
main();
