/**
 * `cube`: a spectrum and all spectra out of a tile of an imaging spectrometer, by whether its blocks are compressed. Pixels are
 * those of the EnMAP scene of Potsdam, without the nodata between its chips. Files are in the system's cache.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readBlockOfAllBands, withOpenTile } from '../../src/imagery/tile-geotiff.js';
import { CUBE_BLOCK_SIDE, encodeCube, type ImageFile, readRaster } from '../../src/raster/index.js';
import { type BenchOptions, type BenchResult, median, result, spend } from '../support/bench.js';

const SCENE = fileURLToPath(
  new URL('../../../../shared/data/hyperspectral-enmap-potsdam/enmap-potsdam.hdr', import.meta.url),
);
const NODATA = -32_768;
/** Rows and columns of a chip. */
const CHIP = 32;
const PLACE = {
  epsg: 4326,
  transform: { originX: 13, originY: 52.5, pixelWidth: 0.0003, pixelHeight: 0.0003 },
};

/** Times and size of one file. */
interface Stored {
  image: ImageFile;
  megabytes: number;
  one: number[];
  all: number[];
}

export async function benchCube({ short, log }: BenchOptions): Promise<BenchResult[]> {
  if (!existsSync(SCENE)) {
    log(`${SCENE} is missing: no figures`);
    return [];
  }
  const { bands, height } = await measuredPixels();
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-bench-'));
  const rounds = short ? 3 : 25;
  try {
    const plain = store(folder, bands, height, false);
    const deflate = store(folder, bands, height, true);
    for (let round = 0; round < rounds; round++)
      for (const { image, one, all } of [plain, deflate]) {
        one.push(
          await milliseconds(() =>
            withOpenTile(image, (file, cog) => readBlockOfAllBands(file, cog, 0, 21, 20)),
          ),
        );
        all.push(await milliseconds(() => readAll(image, height / CUBE_BLOCK_SIDE)));
      }
    const figure = (name: string, unit: string, of: (stored: Stored) => number) =>
      result(`${name}, less is better`, unit, of(plain), { deflate: of(deflate) });
    return [
      figure(`file of ${bands.length} bands`, 'MB', ({ megabytes }) => megabytes),
      figure('one spectrum', 'CPU ms', ({ one }) => median(one)),
      figure(`all ${CUBE_BLOCK_SIDE * height} spectra`, 'CPU ms', ({ all }) => median(all)),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function store(folder: string, bands: Int16Array[], height: number, isCompressed: boolean): Stored {
  const path = join(folder, isCompressed ? 'deflate.tif' : 'plain.tif');
  const image = { width: CUBE_BLOCK_SIDE, height, dataType: 'int16', nodata: NODATA, ...PLACE } as const;
  const bytes = encodeCube({ ...image, isCompressed }, bands);
  writeFileSync(path, bytes);
  return { image: { path, start: 0, bytes: bytes.length }, megabytes: bytes.length / 1e6, one: [], all: [] };
}

/** The chips of the scene with data, two side by side. */
async function measuredPixels(): Promise<{ bands: Int16Array[]; height: number }> {
  const { header, bands } = await readRaster(SCENE);
  const across = header.width / CHIP;
  const chips = Array.from({ length: (across * header.height) / CHIP }, (_, chip) => ({
    column: (chip % across) * CHIP,
    row: Math.floor(chip / across) * CHIP,
  })).filter(({ column, row }) => bands[0]![row * header.width + column] !== NODATA);
  const height = (chips.length * CHIP * CHIP) / CUBE_BLOCK_SIDE;
  const joined = bands.map((band) => {
    const out = new Int16Array(CUBE_BLOCK_SIDE * height);
    for (const [chip, { column, row }] of chips.entries())
      for (let y = 0; y < CHIP; y++) {
        const from = (row + y) * header.width + column;
        const to = ((chip >> 1) * CHIP + y) * CUBE_BLOCK_SIDE + (chip % 2) * CHIP;
        out.set((band as Int16Array).subarray(from, from + CHIP), to);
      }
    return out;
  });
  return { bands: joined, height };
}

function readAll(image: ImageFile, blocks: number): void {
  withOpenTile(image, (file, cog) => {
    for (let block = 0; block < blocks; block++) readBlockOfAllBands(file, cog, block, CUBE_BLOCK_SIDE);
  });
}

async function milliseconds(work: () => unknown): Promise<number> {
  return 1000 * (await spend(async () => work())).cpuSeconds;
}
