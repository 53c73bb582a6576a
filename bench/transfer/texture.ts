/** `texture`: the texture of a tile of 512 x 512 pixels, beside scikit-image; and the nearest of many places. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Storage, type TextureRecord } from '../../src/storage/index.js';
import { TextureIndex } from '../../src/training/index.js';
import { type GreyImage, TEXTURE_NAMES, textureOf } from '../../src/training/texture/glcm.js';
import { randomStream } from '../../src/utils/random.js';
import { type BenchOptions, type BenchResult, median, result, spend } from '../support/bench.js';
import { installPython } from '../support/python.js';

const PEER = fileURLToPath(new URL('../../../bench/transfer/texture.py', import.meta.url));
const SIDE_PIXELS = 512;
const PLACES = 100_000;

/** Waves with noise, as land is at this size. */
function land(): GreyImage {
  const { next } = randomStream(1);
  const levels = Uint8Array.from({ length: SIDE_PIXELS * SIDE_PIXELS }, (_, i) => {
    const [row, column] = [Math.floor(i / SIDE_PIXELS), i % SIDE_PIXELS];
    const wave = 110 + 50 * Math.sin(column / 37) * Math.cos(row / 23);
    return Math.min(255, Math.max(1, Math.round(wave + 40 * (next() - 0.5))));
  });
  return { width: SIDE_PIXELS, height: SIDE_PIXELS, levels };
}

export async function benchTexture({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const image = land();
  const rounds = short ? 1 : 5;
  const python = installPython('skimage', ['scikit-image'], 'skimage', log);
  for (let i = 0; i < 20; i++) textureOf(image);
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const times = 20;
    const { cpuSeconds } = await spend(async () => {
      for (let i = 0; i < times; i++) textureOf(image);
    });
    ours.push((1e3 * cpuSeconds) / times);
    if (!python) continue;
    const { ms, values } = peer(python, image);
    requireSame(textureOf(image)!, values);
    theirs.push(ms);
    log(`round ${round + 1}: ${ours.at(-1)!.toFixed(2)} ms, scikit-image ${ms.toFixed(2)} ms`);
  }
  const nearest = await benchNearest(short ? 1000 : PLACES);
  const peers: Record<string, number> = theirs.length > 0 ? { 'scikit-image': 1e3 / median(theirs) } : {};
  return [
    result(
      `texture of ${SIDE_PIXELS} x ${SIDE_PIXELS} pixels, CPU (mark 15 ms, 66.7/s)`,
      'tiles/s',
      1e3 / median(ours),
      peers,
    ),
    nearest,
  ];
}

/** The ten nearest of so many places, of a catalogue on disk; the first question, which reads them, is left out. */
async function benchNearest(places: number): Promise<BenchResult> {
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-texture-'));
  const storage = await Storage.open(folder, { reserve: 0 });
  try {
    const collection = {
      id: 'c',
      title: 'c',
      grid: 'geohash' as const,
      precision: 6,
      license: 'various',
      createdAt: 0,
    };
    await storage.catalogue.write([storage.catalogue.collections.set('c', collection)]);
    const { next } = randomStream(1);
    const textures = Array.from({ length: places }, (_, i): TextureRecord => {
      const geocode = i.toString(32).padStart(6, '0');
      const values = TEXTURE_NAMES.map(() => next());
      return {
        collection: 'c',
        grid: 'geohash',
        geocode,
        tile: `c_s_g${geocode}`,
        version: 'v',
        start: 0,
        values,
      };
    });
    await storage.textures.put(textures);
    const index = new TextureIndex(storage);
    const milliseconds: number[] = [];
    for (let i = 0; i < 60; i++) {
      const { geocode } = textures[Math.floor(next() * places)]!;
      const { cpuSeconds } = await spend(() => index.nearest('c', geocode, 10));
      if (i >= 10) milliseconds.push(1e3 * cpuSeconds);
    }
    return result(`the 10 nearest of ${places} places, CPU (mark 5 ms)`, 'ms', median(milliseconds));
  } finally {
    await storage.close();
    rmSync(folder, { recursive: true });
  }
}

function peer(python: string, { width, height, levels }: GreyImage): { ms: number; values: number[] } {
  const { status, stdout, stderr } = spawnSync(python, [PEER, `${width}`, `${height}`, '5'], {
    input: levels,
  });
  if (status !== 0) throw new Error(String(stderr));
  return JSON.parse(String(stdout));
}

function requireSame(ours: Float64Array, theirs: number[]): void {
  for (const [i, value] of theirs.entries())
    if (Math.abs(ours[i]! - value) > 1e-6 * Math.max(1, Math.abs(value)))
      throw new Error(`${TEXTURE_NAMES[i]}: ours is ${ours[i]}, that of scikit-image ${value}`);
}
