/**
 * Writes a tile that has a spectrum for each pixel. With hundreds of bands it has hundreds of megabytes, so it is written by rows of blocks, and
 * memory holds one row of blocks of all bands. Runs in worker threads.
 */
import { rmSync } from 'node:fs';
import { type CellGroup, cubeImage, groupRecord } from '../../ingest/index.js';
import { CUBE_BLOCK_SIDE, CubeFile } from '../../raster/index.js';
import type { GroupRecord } from '../../storage/index.js';
import type { MapTask } from '../analysis-tasks.js';
import { type PixelMethod, pixelFunction } from '../pixel-methods/pixel-methods.js';
import { PANEL_PIXELS } from '../pixel-methods/pixel-panel.js';
import { eachBlock } from '../tile-reading/spectrum-blocks.js';

export interface WrittenSpectra {
  record: GroupRecord;
  /** Percent of the pixels that have a value in every band that is not empty. */
  coverage: number;
  /** 1 for pixels that have a value in some band. */
  valid: Uint8Array;
}

/** Null if no pixel has a value; then there is no file. Throws TW_IMAGERY_TILE_FILE and the errors of the system. */
export function writeSpectralTile(
  { file, path }: Pick<MapTask, 'file' | 'path'>,
  method: PixelMethod,
  cell: CellGroup,
): WrittenSpectra | null {
  if (path === undefined) throw new Error('a map of spectra needs a path');
  const { width, height } = file;
  const { rows, evaluate } = pixelFunction(method, file);
  const counts = new Uint32Array(rows);
  const held = new Uint16Array(width * height);
  const pixels = new Int32Array(PANEL_PIXELS);
  const places = new Array<BlockRow>(PANEL_PIXELS);
  const cube = new CubeFile(path, cubeImage(cell));
  try {
    const strips = new BlockRowWriter(cube, rows, width, height);
    eachBlock(file, ({ column, row, stride, bands, indexes }) => {
      strips.finishAbove(row);
      for (let from = 0; from < indexes.length; from += PANEL_PIXELS) {
        const values = evaluate(bands, indexes, from);
        const count = Math.min(PANEL_PIXELS, indexes.length - from);
        for (let i = 0; i < count; i++) {
          const index = indexes[from + i]!;
          const y = row + Math.floor(index / stride);
          pixels[i] = y * width + column + (index % stride);
          places[i] = strips.at(y);
        }
        for (let r = 0; r < rows; r++)
          for (let i = 0; i < count; i++) {
            const value = values[r * PANEL_PIXELS + i]!;
            if (Number.isNaN(value)) continue;
            const { planes, start } = places[i]!;
            planes[r]![pixels[i]! - start] = value;
            counts[r]!++;
            held[pixels[i]!]!++;
          }
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
    let whole = 0;
    for (const bands of held) if (bands === filled) whole++;
    return {
      record: groupRecord(cell, percents, cube.finish()),
      coverage: (100 * whole) / size,
      valid: Uint8Array.from(held, (bands) => Number(bands > 0)),
    };
  } finally {
    cube.close();
  }
}

interface BlockRow {
  /** One for each band, NaN where nothing was set. */
  planes: Float32Array[];
  /** Number of its first pixel in the tile. */
  start: number;
}

/**
 * Rows of blocks of the new file. The blocks that are read may have another height.
 *
 * Invariant: the strips before number `next` are written, and `open` holds those from it on that were begun.
 */
class BlockRowWriter {
  private readonly open = new Map<number, BlockRow>();
  private readonly blank: Float32Array[];
  private next = 0;
  /** Planes of the last strip that was written, to be used again. */
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
    for (
      ;
      (this.next + 1) * CUBE_BLOCK_SIDE <= row && this.next * CUBE_BLOCK_SIDE < this.height;
      this.next++
    ) {
      const strip = this.open.get(this.next);
      this.cube.addRows(strip?.planes ?? this.blank);
      if (!strip) continue;
      this.open.delete(this.next);
      for (const plane of strip.planes) plane.fill(NaN);
      this.spare = strip.planes;
    }
  }

  private plane(): Float32Array {
    return new Float32Array(this.width * CUBE_BLOCK_SIDE).fill(NaN);
  }
}
