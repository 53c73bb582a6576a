/** Bands as of Sentinel-2: fields, clouds, sensor noise, and a wedge without data; UTM 33, seeded. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encodeCog } from '../../src/raster/index.js';

/** Path of a band of side x side pixels of 10 m. It is made once and kept in the system's folder for temporary files. */
export function sceneFile(side: number, log: (line: string) => void): string {
  return bandFile({ side, pixel: 10, kind: 'band' }, log);
}

export interface BandSpec {
  side: number;
  /** Metres. */
  pixel: number;
  /** Reflectance numbers, or classes as of SCL: 0 no data, 4 vegetation, 9 cloud. */
  kind: 'band' | 'classes';
}

export const BENCH_FOLDER = join(tmpdir(), 'tilewright-bench');

export function bandFile(spec: BandSpec, log: (line: string) => void): string {
  const path = join(BENCH_FOLDER, `scene-2-${spec.kind}-${spec.side}-${spec.pixel}m.tif`);
  if (!existsSync(path)) {
    log(`making ${path}`);
    mkdirSync(BENCH_FOLDER, { recursive: true });
    // A separate process writes it, so that its memory does not count.
    const args = [fileURLToPath(import.meta.url), JSON.stringify(spec), path];
    const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' });
    if (status !== 0) throw new Error(`${path} could not be written`);
  }
  return path;
}

/** Numbers in [-1, 1), the same every time (xorshift32). */
function noise(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state / 2 ** 31;
  };
}

/** Adds smooth noise to one row: a lattice of `cells` random values a side, interpolated. */
class Octave {
  private readonly values: Float32Array;
  private readonly line: Float32Array;

  constructor(
    readonly cells: number,
    readonly amplitude: number,
    next: () => number,
  ) {
    this.values = new Float32Array((cells + 1) ** 2).map(() => next() * amplitude);
    this.line = new Float32Array(cells + 1);
  }

  addTo(row: Float32Array, y: number): void {
    const { cells } = this;
    const side = row.length;
    const place = (y / side) * cells;
    const above = Math.floor(place);
    const part = place - above;
    for (let i = 0; i <= cells; i++) {
      const a = this.values[above * (cells + 1) + i];
      const b = this.values[(above + 1) * (cells + 1) + i];
      this.line[i] = a + (b - a) * part;
    }
    const step = cells / side;
    for (let x = 0; x < side; x++) {
      const at = x * step;
      const left = at | 0;
      const a = this.line[left];
      row[x] += a + (this.line[left + 1] - a) * (at - left);
    }
  }
}

function makeScene(side: number): Uint16Array {
  const next = noise(20_240_101);
  const ground: Octave[] = [];
  for (let cells = 9, amplitude = 900; cells < side; cells *= 3, amplitude *= 0.55) {
    ground.push(new Octave(cells, amplitude, next));
  }
  const sky = [new Octave(14, 1.6, next), new Octave(60, 0.7, next), new Octave(300, 0.25, next)];
  const fields = Math.ceil(side / 40);
  const field = new Float32Array(fields ** 2).map(() => next() * 400);
  const pixels = new Uint16Array(side * side);
  const land = new Float32Array(side);
  const cloud = new Float32Array(side);
  for (let y = 0; y < side; y++) {
    land.fill(1600);
    cloud.fill(0);
    for (const octave of ground) octave.addTo(land, y);
    for (const octave of sky) octave.addTo(cloud, y);
    const edge = Math.floor(side * 0.85 + y * 0.1);
    for (let x = 0; x < edge; x++) {
      const cover = Math.min(1, Math.max(0, (cloud[x] - 0.8) * 1.6));
      const plain = land[x] + field[Math.floor(y / 40) * fields + Math.floor(x / 40)];
      const value = plain * (1 - cover) + 7500 * cover + next() * 30;
      pixels[y * side + x] = Math.min(12_000, Math.max(1, value));
    }
  }
  return pixels;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { side, pixel, kind } = JSON.parse(process.argv[2]) as BandSpec;
  const path = process.argv[3];
  const band = makeScene(side);
  const classes = () => Uint8Array.from(band, (value) => (value === 0 ? 0 : value > 5000 ? 9 : 4));
  const bytes = encodeCog({
    width: side,
    height: side,
    dataType: kind === 'band' ? 'uint16' : 'uint8',
    bands: [kind === 'band' ? band : classes()],
    transform: { originX: 499_980, originY: 5_000_040, pixelWidth: pixel, pixelHeight: pixel },
    epsg: 32633,
    nodata: 0,
    overviews: kind === 'band' ? 'mean' : 'nearest',
  });
  writeFileSync(`${path}.part`, bytes);
  renameSync(`${path}.part`, path);
}
