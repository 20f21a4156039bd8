/** The ground of a scene. A real robot has a map of its heights. */
import type { MjModel } from "@mujoco/mujoco";

/** Return the value within [low, high], of which null is no bound. */
export function clip(value: number, low: number | null, high: number | null): number {
  return Math.min(Math.max(value, low ?? -Infinity), high ?? Infinity);
}

/** Heights at points of the world. On a plane they are 0. */
export class Ground {
  private low = [0, 0];
  private cell = 1;
  private top = 0;
  private span = 0;
  private rows = 0;
  private columns = 0;
  private heights = new Float32Array();

  constructor(model: MjModel, fieldType: number) {
    if (!model.nhfield) {
      return;
    }
    const geom = Array.from(model.geom_type as Int32Array).indexOf(fieldType);
    const [x, y, z] = model.geom_pos.slice(3 * geom, 3 * geom + 3);
    const [halfX, halfY, span] = model.hfield_size;
    // Rows go along y, columns along x.
    this.rows = model.hfield_nrow[0];
    this.columns = model.hfield_ncol[0];
    this.low = [x - halfX, y - halfY];
    this.cell = (2 * halfX) / (this.columns - 1);
    this.top = z;
    this.span = span;
    // A copy: the arrays of a model become invalid when the memory of MuJoCo grows.
    this.heights = Float32Array.from(model.hfield_data);
  }

  get isFlat(): boolean {
    return this.rows === 0;
  }

  /** Return the height at a corner (column, row) of the grid. */
  private corner(i: number, j: number): number {
    return this.top + this.span * this.heights[j * this.columns + i];
  }

  /** Return the height at a point by the rule of the metadata's entry `scan`. */
  height(x: number, y: number, lookup = "surface"): number {
    if (this.isFlat) {
      return 0;
    }
    const alongX = clip((x - this.low[0]) / this.cell, 0, this.columns - 1);
    const alongY = clip((y - this.low[1]) / this.cell, 0, this.rows - 1);
    const i = Math.min(Math.floor(alongX), this.columns - 2);
    const j = Math.min(Math.floor(alongY), this.rows - 2);
    const u = alongX - i;
    const v = alongY - j;
    const h00 = this.corner(i, j);
    const h10 = this.corner(i + 1, j);
    const h01 = this.corner(i, j + 1);
    const h11 = this.corner(i + 1, j + 1);
    if (lookup === "lowest") {
      return Math.min(h00, h10, h01);
    }
    if (lookup === "bilinear") {
      return (1 - v) * ((1 - u) * h00 + u * h10) + v * ((1 - u) * h01 + u * h11);
    }
    // The surface itself: two triangles.
    return u >= v ? h00 + u * (h10 - h00) + v * (h11 - h10) : h00 + u * (h11 - h01) + v * (h01 - h00);
  }
}
