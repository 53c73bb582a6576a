/** The 8 x 8 equal parts of a cell: a coarse mask of where in its cell a tile holds data. */
import type { Bbox, Grid } from './grid.js';

const SIDE = 8;

/**
 * A set of parts of a cell: one bit for each part, row by row from the north-western part, which is the highest bit of `north`. `north` has
 * the four northern rows, `south` the four southern ones.
 */
export interface CellParts {
  north: number;
  south: number;
}

const ALL_PARTS: Readonly<CellParts> = { north: 0xffffffff, south: 0xffffffff };

/** Reads a text of `partsWithData`: two hexadecimal digits for each row, from north to south. An absent text means all parts. */
export function parseParts(text: string | undefined): Readonly<CellParts> {
  if (text === undefined) return ALL_PARTS;
  return { north: Number.parseInt(text.slice(0, 8), 16), south: Number.parseInt(text.slice(8), 16) };
}

/**
 * The parts of a cell that pixels other than 0 overlap, as a text; undefined if these are all parts, or if all pixels are 0. The pixels
 * cover the cell, row by row from the north-western one.
 */
export function partsWithData(
  mask: Uint8Array,
  { width, height }: { width: number; height: number },
): string | undefined {
  const columns = Uint8Array.from({ length: width }, (_, column) => {
    const [first, end] = partsOfPixel(column, width);
    return (0xff >> first) & (0xff00 >> end);
  });
  const rows = new Uint8Array(SIDE);
  for (let row = 0; row < height; row++) {
    const [first, end] = partsOfPixel(row, height);
    let bits = rows.subarray(first, end).reduce((shared, part) => shared & part);
    for (let column = 0; column < width && bits !== 0xff; column++)
      if (mask[row * width + column] !== 0) bits |= columns[column]!;
    for (let part = first; part < end; part++) rows[part]! |= bits;
  }
  const text = Buffer.from(rows).toString('hex');
  return /^(0+|f+)$/.test(text) ? undefined : text;
}

/** The rows or columns of parts that one of `count` pixels overlaps, from `first` to before `end`. */
function partsOfPixel(pixel: number, count: number): [first: number, end: number] {
  return [Math.floor((SIDE * pixel) / count), Math.ceil((SIDE * (pixel + 1)) / count)];
}

const maskOf = (column: number, row: number) => 0x80000000 >>> (SIDE * (row % (SIDE / 2)) + column);
const halfOf = (row: number) => (row < SIDE / 2 ? 'north' : 'south');

type HasPart = (column: number, row: number) => boolean;

/** The part west and north of the cell has column and row -1. */
const isInCell: HasPart = (column, row) => Math.min(column, row) >= 0 && Math.max(column, row) < SIDE;

const hasPart =
  (parts: CellParts): HasPart =>
  (column, row) =>
    isInCell(column, row) && (parts[halfOf(row)] & maskOf(column, row)) !== 0;

type Position = [lon: number, lat: number];

/** Farther from a cell than any point of the Earth, degrees. */
const FAR_DEGREES = 1000;

/** The parts of one cell as areas in degrees. The outermost edges are those of the cell, bit for bit. */
export class DividedCell {
  /** Edges from west to east, and from north to south, between two that are far away. */
  private readonly x: number[];
  private readonly y: number[];

  constructor(grid: Grid, geocode: string) {
    const { west, south, east, north } = grid.bounds(geocode);
    const at = (from: number, to: number, i: number) => (i === SIDE ? to : from + ((to - from) * i) / SIDE);
    const edges = Array.from({ length: SIDE + 1 }, (_, i) =>
      grid.toLonLat(at(west, east, i), at(north, south, i)),
    );
    this.x = [edges[0]![0] - FAR_DEGREES, ...edges.map(([lon]) => lon), edges[SIDE]![0] + FAR_DEGREES];
    this.y = [edges[0]![1] + FAR_DEGREES, ...edges.map(([, lat]) => lat), edges[SIDE]![1] - FAR_DEGREES];
  }

  /** The rectangle of `width` x `height` parts from a part on. Parts beside the cell extend far beyond it. */
  private box(column: number, row: number, width = 1, height = 1): Bbox {
    const { x, y } = this;
    return [x[column + 1]!, y[row + height + 1]!, x[column + width + 1]!, y[row + 1]!];
  }

  /**
   * The area of the parts: closed boxes whose union is the area, and open boxes whose union is its interior, or everything outside of the
   * area, in the cell and around it.
   */
  area(parts: CellParts): { boxes: Bbox[]; interior(): Bbox[]; exterior(): Bbox[] } {
    const has = hasPart(parts);
    return {
      boxes: this.squares(0)
        .filter((part) => has(...part))
        .map((part) => this.box(...part)),
      interior: () => this.openBoxes(has),
      exterior: () => this.openBoxes((column, row) => !has(column, row)),
    };
  }

  /** An edge or a corner between parts lies inside of an area if the area has all parts around it. */
  private openBoxes(has: HasPart): Bbox[] {
    return this.squares(-1).flatMap(([column, row]) =>
      SHAPES.filter(([width, height]) =>
        this.squares(0, width, height).every(([right, down]) => has(column + right, row + down)),
      ).map(([width, height]) => this.box(column, row, width, height)),
    );
  }

  /** Columns and rows from `from` on. */
  private squares(from: number, width = SIDE, height = SIDE): [column: number, row: number][] {
    return Array.from({ length: (width - from) * (height - from) }, (_, i) => [
      from + (i % (width - from)),
      from + Math.floor(i / (width - from)),
    ]);
  }

  /**
   * The parts that are not 'outside' of a region. `relate` compares squares of parts with the region: all parts of one that is 'inside'
   * are, and one at the 'edge' is divided into four.
   */
  partsWhere(relate: (box: Bbox) => 'inside' | 'edge' | 'outside'): CellParts {
    const parts = { north: 0, south: 0 };
    const visit = (column: number, row: number, side: number): void => {
      const relation = relate(this.box(column, row, side, side));
      if (relation === 'outside') return;
      const isWhole = relation === 'inside' || side === 1;
      const step = isWhole ? 1 : side / 2;
      for (let r = row; r < row + side; r += step)
        for (let c = column; c < column + side; c += step)
          if (isWhole) parts[halfOf(r)] |= maskOf(c, r);
          else visit(c, r, step);
    };
    visit(0, 0, SIDE);
    return parts;
  }

  /**
   * The area of the parts as polygons of GeoJSON, one for each group of parts that share edges. They are valid: rings touch in corners
   * only, outer rings run counterclockwise, holes clockwise.
   */
  outline(parts: CellParts): Position[][][] {
    const has = hasPart(parts);
    const seen = new Set<number>();
    const polygons: Position[][][] = [];
    for (const [column, row] of this.squares(0)) {
      if (!has(column, row) || seen.has(SIDE * row + column)) continue;
      const group = connectedParts(column, row, has);
      for (const part of group) seen.add(part);
      const rings = ringsAround((c, r) => isInCell(c, r) && group.has(SIDE * r + c));
      polygons.push(rings.map((ring) => ring.map(([c, r]): Position => [this.x[c + 1]!, this.y[r + 1]!])));
    }
    return polygons;
  }
}

/** Widths and heights of the boxes around parts, edges and corners. */
const SHAPES = [
  [1, 1],
  [2, 1],
  [1, 2],
  [2, 2],
] as const;

/** Steps east, north, west and south. */
const STEPS = [
  [1, 0],
  [0, -1],
  [-1, 0],
  [0, 1],
] as const;

/** Numbers of the parts that are connected with a part across edges. */
function connectedParts(column: number, row: number, has: HasPart): Set<number> {
  const group = new Set([SIDE * row + column]);
  // The loop also visits parts that it adds to the set.
  for (const part of group)
    for (const [right, down] of STEPS) {
      const c = (part % SIDE) + right;
      const r = Math.floor(part / SIDE) + down;
      if (has(c, r)) group.add(SIDE * r + c);
    }
  return group;
}

type Corner = [column: number, row: number];

/**
 * Closed rings around connected parts, with the parts to their left; the outer ring comes first. In a corner where two parts touch, a
 * ring turns right and stays with the gap beside it. Hence no ring passes a corner twice.
 */
function ringsAround(has: HasPart): Corner[][] {
  // Directions of the edges that start in each corner, from north to south and west to east.
  const starts = Array.from({ length: (SIDE + 1) ** 2 }, () => new Set<number>());
  const at = (column: number, row: number) => starts[(SIDE + 1) * row + column]!;
  for (let row = 0; row < SIDE; row++)
    for (let column = 0; column < SIDE; column++) {
      if (!has(column, row)) continue;
      if (!has(column, row + 1)) at(column, row + 1).add(0);
      if (!has(column + 1, row)) at(column + 1, row + 1).add(1);
      if (!has(column, row - 1)) at(column + 1, row).add(2);
      if (!has(column - 1, row)) at(column, row).add(3);
    }
  const rings: Corner[][] = [];
  for (const [first, directions] of starts.entries())
    for (let direction of directions) {
      const start: Corner = [first % (SIDE + 1), Math.floor(first / (SIDE + 1))];
      const ring: Corner[] = [start];
      directions.delete(direction);
      let [column, row] = start;
      for (;;) {
        column += STEPS[direction]![0];
        row += STEPS[direction]![1];
        if (column === start[0] && row === start[1]) break;
        const next = [direction + 3, direction, direction + 1].map((turn) => turn % 4);
        const taken = next.find((one) => at(column, row).has(one))!;
        at(column, row).delete(taken);
        if (taken !== direction) ring.push([column, row]);
        direction = taken;
      }
      rings.push([...ring, start]);
    }
  return rings;
}
