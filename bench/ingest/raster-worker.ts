/** A thread of the ingest benchmark: decodes rows, warps cells, writes tiles. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { handleTasks } from '../../src/async/index.js';
import { geohash } from '../../src/grid/index.js';
import {
  buildControlGrid,
  createTransform,
  encodeCog,
  type RasterHeader,
  type Resampling,
  readRowsOfRasters,
  warp,
} from '../../src/raster/index.js';

/** Pixels per side of a cell. */
export const CELL_PIXELS = 512;

export type Task =
  | { kind: 'decode'; header: RasterHeader; rowStart: number; rowEnd: number; pixels: SharedArrayBuffer }
  | {
      kind: 'warp';
      header: RasterHeader;
      pixels: SharedArrayBuffer;
      geocodes: string[];
      resampling: Resampling;
      simd: boolean;
      keep: boolean;
    }
  | { kind: 'write'; folder: string };

export interface Done {
  /** Pixels with data. */
  valid: number;
  tiles: number;
}

interface Tile {
  geocode: string;
  pixels: Uint16Array;
}

/** Warped tiles that a `write` will write. */
let kept: Tile[] = [];
const scratch = new Uint16Array(CELL_PIXELS * CELL_PIXELS);

handleTasks<Task, Done>(async (task) => {
  switch (task.kind) {
    case 'decode': {
      const { header, rowStart, rowEnd, pixels } = task;
      await readRowsOfRasters([
        { header, bands: [0], rowStart, rowEnd, into: [new Uint16Array(pixels)], firstRow: 0 },
      ]);
      return { valid: 0, tiles: 0 };
    }
    case 'warp':
      return warpCells(task);
    case 'write': {
      for (const { geocode, pixels } of kept)
        writeFileSync(join(task.folder, `${geocode}.tif`), encodeTile(geocode, pixels));
      const done = { valid: 0, tiles: kept.length };
      kept = [];
      return done;
    }
  }
});

function warpCells({ header, pixels, geocodes, resampling, simd, keep }: Task & { kind: 'warp' }): Done {
  const project = createTransform('EPSG:4326', header.crs);
  const source = {
    pixels: new Uint16Array(pixels),
    window: { column: 0, row: 0, width: header.width, height: header.height },
    rasterWidth: header.width,
    rasterHeight: header.height,
    nodata: header.nodata,
  };
  const valid = new Uint8Array(CELL_PIXELS * CELL_PIXELS);
  const done = { valid: 0, tiles: 0 };
  for (const geocode of geocodes) {
    const grid = buildControlGrid(
      { bounds: geohash.bounds(geocode), width: CELL_PIXELS, height: CELL_PIXELS },
      project,
      header.transform,
    );
    const out = keep ? new Uint16Array(CELL_PIXELS * CELL_PIXELS) : scratch;
    valid.fill(1);
    const count = warp(resampling, source, grid, out, valid, simd);
    if (count === 0) continue;
    done.valid += count;
    done.tiles++;
    if (keep) kept.push({ geocode, pixels: out });
  }
  return done;
}

function encodeTile(geocode: string, pixels: Uint16Array): Buffer {
  const { west, east, south, north } = geohash.bounds(geocode);
  return encodeCog({
    width: CELL_PIXELS,
    height: CELL_PIXELS,
    dataType: 'uint16',
    bands: [pixels],
    transform: {
      originX: west,
      originY: north,
      pixelWidth: (east - west) / CELL_PIXELS,
      pixelHeight: (north - south) / CELL_PIXELS,
    },
    epsg: 4326,
    nodata: 0,
    overviews: 'mean',
  });
}
