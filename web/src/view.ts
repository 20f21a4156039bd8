/** A robot drawn with three.js, from the geoms of its MuJoCo model. */
import type { MainModule } from "@mujoco/mujoco";
import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import type { Robot } from "./loop";

/** Geoms of higher groups are for contacts alone, and not drawn. */
const LAST_GROUP = 2;
/** Side of the ground that is drawn around the robot, m. */
const GROUND_SIZE = 24;
/** Distance of the points of rough ground that are drawn, m. */
const GROUND_CELL = 0.1;
/** Way of the robot after which the ground is drawn anew around it, m. */
const GROUND_STEP = 4;
/** Side of the squares on the ground, m. */
const SQUARE = 0.5;

/** Draws one robot after the other into a canvas. */
export class View {
  private readonly renderer: THREE.WebGLRenderer;
  private readonly scene = new THREE.Scene();
  private readonly camera = new THREE.PerspectiveCamera(45, 1, 0.05, 60);
  private readonly controls: OrbitControls;
  private readonly sun = new THREE.DirectionalLight(0xffffff, 2.2);
  private readonly bodies = new THREE.Group();
  private readonly floor: THREE.Mesh<THREE.PlaneGeometry, THREE.MeshStandardMaterial>;
  private readonly push = new THREE.ArrowHelper(undefined, undefined, 0.5, 0xd9480f, 0.14, 0.1);
  private pushUntil = 0;
  private robot?: Robot;
  private meshes: { geom: number; mesh: THREE.Mesh }[] = [];

  /** @throws Error if the browser has no WebGL. */
  constructor(private readonly canvas: HTMLCanvasElement) {
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true });
    this.renderer.shadowMap.enabled = true;
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
    this.scene.background = new THREE.Color(0xdfe7ee);
    this.scene.fog = new THREE.Fog(0xdfe7ee, 6, GROUND_SIZE / 2);
    // MuJoCo's z axis points up.
    this.camera.up.set(0, 0, 1);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enablePan = false;
    // The wheel scrolls the page until somebody clicks the robot.
    this.controls.enableZoom = false;
    canvas.addEventListener("pointerdown", () => (this.controls.enableZoom = true));
    canvas.addEventListener("blur", () => (this.controls.enableZoom = false));
    this.controls.maxPolarAngle = 0.49 * Math.PI;
    this.controls.minDistance = 0.6;
    this.controls.maxDistance = 8;
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(1024, 1024);
    const frame = this.sun.shadow.camera;
    frame.left = frame.bottom = -1.6;
    frame.right = frame.top = 1.6;
    this.floor = new THREE.Mesh(
      new THREE.PlaneGeometry(GROUND_SIZE, GROUND_SIZE),
      new THREE.MeshStandardMaterial({ map: squares(), roughness: 0.95 }),
    );
    this.floor.receiveShadow = true;
    this.push.visible = false;
    const sky = new THREE.HemisphereLight(0xffffff, 0x9aa5b1, 1.6);
    this.scene.add(sky, this.sun, this.sun.target, this.floor, this.bodies, this.push);
  }

  /** Draw this robot from now on, seen from the side and in front. */
  show(robot: Robot, mujoco: MainModule): void {
    for (const { mesh } of this.meshes) {
      mesh.geometry.dispose();
      (mesh.material as THREE.Material).dispose();
    }
    this.bodies.clear();
    this.robot = robot;
    this.meshes = [];
    const group: Int32Array = robot.model.geom_group;
    for (let geom = 0; geom < robot.model.ngeom; geom += 1) {
      const shape = group[geom] <= LAST_GROUP ? makeShape(robot, mujoco, geom) : undefined;
      if (shape) {
        const mesh = new THREE.Mesh(shape, makeMaterial(robot, geom));
        mesh.castShadow = true;
        mesh.receiveShadow = true;
        this.meshes.push({ geom, mesh });
        this.bodies.add(mesh);
      }
    }
    const base = this.base();
    const far = 1.1 + 2.1 * (base.z - robot.ground.height(base.x, base.y));
    this.controls.target.copy(base);
    this.camera.position.copy(base).add(new THREE.Vector3(0.62 * far, -0.72 * far, 0.3 * far));
    this.layGround(base);
  }

  /** Show the direction of a push for half a second. */
  showPush(x: number, y: number): void {
    this.push.setDirection(new THREE.Vector3(x, y, 0).normalize());
    this.pushUntil = performance.now() + 500;
  }

  /** Draw the robot as it is now. */
  draw(): void {
    const { robot } = this;
    if (!robot) {
      return;
    }
    const position: Float64Array = robot.data.geom_xpos;
    const rotation: Float64Array = robot.data.geom_xmat;
    for (const { geom, mesh } of this.meshes) {
      const r = rotation.subarray(9 * geom, 9 * geom + 9);
      mesh.matrix.set(
        ...[r[0], r[1], r[2], position[3 * geom]],
        ...[r[3], r[4], r[5], position[3 * geom + 1]],
        ...[r[6], r[7], r[8], position[3 * geom + 2]],
        ...[0, 0, 0, 1],
      );
      mesh.matrixAutoUpdate = false;
    }
    this.follow(this.base());
    this.resize();
    this.renderer.render(this.scene, this.camera);
  }

  private base(): THREE.Vector3 {
    return new THREE.Vector3(...(this.robot as Robot).data.qpos.slice(0, 3));
  }

  /** Move camera, light, ground and arrow with the base. */
  private follow(base: THREE.Vector3): void {
    const way = base.clone().sub(this.controls.target);
    // The camera does not bounce with the steps of the robot.
    way.z *= 0.05;
    this.controls.target.add(way);
    this.camera.position.add(way);
    this.controls.update();
    this.sun.target.position.copy(base);
    this.sun.position.copy(base).add(new THREE.Vector3(1.2, -1.5, 3.5));
    if (Math.hypot(base.x - this.floor.position.x, base.y - this.floor.position.y) > GROUND_STEP) {
      this.layGround(base);
    }
    this.push.visible = performance.now() < this.pushUntil;
    this.push.position.copy(base);
  }

  /** Draw the ground around the robot. */
  private layGround(base: THREE.Vector3): void {
    const { ground } = this.robot as Robot;
    // Whole squares, so that the pattern stays where it is.
    const x = 2 * SQUARE * Math.round(base.x / (2 * SQUARE));
    const y = 2 * SQUARE * Math.round(base.y / (2 * SQUARE));
    const cells = ground.isFlat ? 1 : GROUND_SIZE / GROUND_CELL;
    const shape = new THREE.PlaneGeometry(GROUND_SIZE, GROUND_SIZE, cells, cells);
    const points = shape.attributes.position;
    for (let index = 0; index < points.count; index += 1) {
      points.setZ(index, ground.height(x + points.getX(index), y + points.getY(index)));
    }
    shape.computeVertexNormals();
    this.floor.geometry.dispose();
    this.floor.geometry = shape;
    this.floor.material.flatShading = !ground.isFlat;
    this.floor.position.set(x, y, 0);
  }

  private resize(): void {
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    const size = this.renderer.getSize(new THREE.Vector2());
    if (size.x !== width || size.y !== height) {
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / height;
      this.camera.updateProjectionMatrix();
    }
  }
}

/** Return a pattern of squares for the ground. */
function squares(): THREE.Texture {
  const tones = [205, 188, 188, 205];
  const pixels = Uint8Array.from(tones.flatMap((tone) => [tone, tone + 4, tone + 8, 255]));
  const texture = new THREE.DataTexture(pixels, 2, 2);
  texture.wrapS = texture.wrapT = THREE.RepeatWrapping;
  texture.repeat.setScalar(GROUND_SIZE / (2 * SQUARE));
  texture.colorSpace = THREE.SRGBColorSpace;
  texture.anisotropy = 8;
  texture.generateMipmaps = true;
  texture.minFilter = THREE.LinearMipmapLinearFilter;
  texture.needsUpdate = true;
  return texture;
}

/** Return the shape of a geom in its own frame; undefined for the ground, which `View` draws. */
function makeShape(robot: Robot, mujoco: MainModule, geom: number) {
  const [x, y, z]: Float64Array = robot.model.geom_size.slice(3 * geom, 3 * geom + 3);
  const kinds = mujoco.mjtGeom;
  switch (robot.model.geom_type[geom]) {
    case kinds.mjGEOM_SPHERE.value:
      return new THREE.SphereGeometry(x, 24, 16);
    case kinds.mjGEOM_ELLIPSOID.value:
      return new THREE.SphereGeometry(1, 28, 20).scale(x, y, z);
    case kinds.mjGEOM_BOX.value:
      return new THREE.BoxGeometry(2 * x, 2 * y, 2 * z);
    // The axis of these is y in three.js, and z in MuJoCo.
    case kinds.mjGEOM_CAPSULE.value:
      return new THREE.CapsuleGeometry(x, 2 * y, 8, 20).rotateX(Math.PI / 2);
    case kinds.mjGEOM_CYLINDER.value:
      return new THREE.CylinderGeometry(x, x, 2 * y, 28).rotateX(Math.PI / 2);
    default:
      return undefined;
  }
}

function makeMaterial(robot: Robot, geom: number): THREE.MeshStandardMaterial {
  const { model } = robot;
  const material: number = model.geom_matid[geom];
  const known = material >= 0;
  const colours: Float32Array = known ? model.mat_rgba : model.geom_rgba;
  const first = 4 * (known ? material : geom);
  const [red, green, blue, alpha] = colours.slice(first, first + 4);
  const colour = new THREE.Color().setRGB(red, green, blue, THREE.SRGBColorSpace);
  return new THREE.MeshStandardMaterial({
    color: colour,
    emissive: colour,
    emissiveIntensity: known ? model.mat_emission[material] : 0,
    roughness: known ? 0.9 - 0.5 * model.mat_shininess[material] : 0.8,
    opacity: alpha,
    transparent: alpha < 1,
  });
}
