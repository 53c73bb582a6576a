/**
 * Writes a tile that has a spectrum for each pixel. With hundreds of bands it has hundreds of megabytes, so it is written row of blocks by
 * row of blocks, and memory holds one row of blocks of all bands. Runs in worker threads.
 */
import { rmSync } from 'node:fs';
import { type CellGroup, cubeImage, groupRecord } from '../../ingest/index.js';
import { CUBE_BLOCK_SIDE, CubeFile } from '../../raster/index.js';
import { eachPanel, PANEL_PIXELS, type PixelMethod, pixelFunction } from '../pixel-methods/index.js';
import { pixelNumber } from '../spectrum-reading/index.js';
import type { MapTask } from './output-tile-task.js';

/**
 * Returns null and writes no file if no pixel has a value. `coverage`: percent of the pixels that have a value in every band that is not
 * empty; `valid`: 1 for pixels that have a value in some band. Throws TW_IMAGERY_TILE_FILE and system errors.
 */
export function writeSpectralTile(
  { file, path }: Pick<MapTask, 'file' | 'path'>,
  method: PixelMethod,
  cell: CellGroup,
) {
  if (path === undefined) throw new Error('a map of spectra needs a path');
  const { width, height } = file;
  const values = pixelFunction(method, file);
  const { rows } = values;
  const counts = new Uint32Array(rows);
  /** Number of bands of each pixel that have a value. */
  const bandCounts = new Uint16Array(width * height);
  const pixels = new Int32Array(PANEL_PIXELS);
  const rowsOfPixels = new Array<BlockRow>(PANEL_PIXELS);
  const cube = new CubeFile(path, cubeImage(cell));
  try {
    const strips = new BlockRowWriter(cube, rows, width, height);
    eachPanel(file, values, (panel, block, indexes) => {
      strips.finishAbove(block.row);
      for (let i = 0; i < indexes.length; i++) {
        pixels[i] = pixelNumber(block, indexes[i], width);
        rowsOfPixels[i] = strips.at(Math.floor(pixels[i] / width));
      }
      for (let r = 0; r < rows; r++)
        for (let i = 0; i < indexes.length; i++) {
          const value = panel[r * PANEL_PIXELS + i];
          if (Number.isNaN(value)) continue;
          const { planes, start } = rowsOfPixels[i];
          planes[r][pixels[i] - start] = value;
          counts[r]++;
          bandCounts[pixels[i]]++;
        }
    });
    strips.finishAbove(Math.ceil(height / CUBE_BLOCK_SIDE) * CUBE_BLOCK_SIDE);
    const filled = counts.reduce((sum, count) => sum + Number(count > 0), 0);
    if (filled === 0) {
      rmSync(path);
      return null;
    }
    const size = width * height;
    const percents = Array.from(counts, (count) => (100 * count) / size);
    let complete = 0;
    for (const bands of bandCounts) if (bands === filled) complete++;
    return {
      record: groupRecord(cell, percents, cube.finish()),
      coverage: (100 * complete) / size,
      valid: Uint8Array.from(bandCounts, (bands) => Number(bands > 0)),
    };
  } finally {
    cube.close();
  }
}

interface BlockRow {
  /** One plane per band, NaN where no value was set. */
  planes: Float32Array[];
  /** Number of its first pixel in the tile. */
  start: number;
}

/**
 * Writes the new file by rows of blocks (strips). The blocks of the input may have another height.
 *
 * Invariant: the strips before number `next` are written, and `open` contains the later strips that have values.
 */
class BlockRowWriter {
  private readonly open = new Map<number, BlockRow>();
  private readonly blank: Float32Array[];
  private next = 0;
  /** Planes of the last written strip, for reuse. */
  private spare: Float32Array[] | undefined;

  constructor(
    private readonly cube: CubeFile,
    private readonly rows: number,
    private readonly width: number,
    private readonly height: number,
  ) {
    const empty = this.plane();
    this.blank = Array.from({ length: rows }, () => empty);
  }

  /** The strip of a row of pixels. */
  at(row: number): BlockRow {
    const number = Math.floor(row / CUBE_BLOCK_SIDE);
    let strip = this.open.get(number);
    if (!strip) {
      const planes = this.spare ?? Array.from({ length: this.rows }, () => this.plane());
      this.spare = undefined;
      strip = { planes, start: number * CUBE_BLOCK_SIDE * this.width };
      this.open.set(number, strip);
    }
    return strip;
  }

  /** Writes the strips that end at a row of pixels or above it. */
  finishAbove(row: number): void {
    while ((this.next + 1) * CUBE_BLOCK_SIDE <= row && this.next * CUBE_BLOCK_SIDE < this.height) {
      const strip = this.open.get(this.next);
      this.cube.addRows(strip?.planes ?? this.blank);
      this.open.delete(this.next);
      this.next++;
      if (!strip) continue;
      for (const plane of strip.planes) plane.fill(NaN);
      this.spare = strip.planes;
    }
  }

  private plane(): Float32Array {
    return new Float32Array(this.width * CUBE_BLOCK_SIDE).fill(NaN);
  }
}
