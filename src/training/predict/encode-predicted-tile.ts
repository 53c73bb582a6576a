/** Encodes the pixels and the mask of a tile that a model made. */
import { type MadeTile, validityStatistics } from '../../derive/index.js';
import type { PixelGrid } from '../../grid/index.js';
import { type CellGroup, encodeMaskFile, encodeTile } from '../../ingest/index.js';
import type { PixelArray } from '../../raster/index.js';
import type { PredictTask } from './predict-task.js';

/** Encoding of the stored pixels, which have one plane for each band. */
interface PredictedBands extends Pick<CellGroup, 'dataType' | 'bands'> {
  nodata: number | undefined;
  stored: PixelArray[];
}

/** `codes`: the mask of the tile. `valid`: 1 for pixels with data. */
export function encodePredictedTile(
  { tile, groups }: PredictTask,
  { width, height }: PixelGrid,
  { dataType, nodata, bands, stored }: PredictedBands,
  codes: Uint8Array,
  valid: Uint8Array,
): MadeTile {
  const cell: CellGroup = {
    ...tile,
    width,
    height,
    name: groups[`${width}x${height}`],
    role: 'data',
    resampling: 'bilinear',
    dataType,
    nodata: nodata ?? null,
    colours: undefined,
    bands,
  };
  const figures = validityStatistics(stored, nodata, valid);
  const { file } = encodeTile(cell, { bands: stored, ...figures, valid, mask: null });
  const { file: mask, cloudCover, footprint } = encodeMaskFile(cell, codes);
  return { files: [file, mask], coverage: figures.coverage, cloudCover, footprint, used: [0] };
}
