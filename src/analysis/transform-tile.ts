/** Makes a tile of a linear transform of the spectrum of each pixel. Runs in worker threads. */
import { type CellGroup, encodeCell, encodeMask } from '../ingest/index.js';
import { Mask } from '../raster/index.js';
import { type MadeTile, validOf } from '../wrangle/index.js';
import { StoredTransform } from './linear-transform.js';
import type { TransformTask } from './tasks.js';
import { eachBlock, maskCodes } from './tile-blocks.js';

/** Null if no pixel is clear and holds data in every band. Throws TW_IMAGERY_TILE_FILE. */
export function transformTile({
  tile,
  file,
  transform,
  group,
  bands: names,
}: TransformTask): MadeTile | null {
  const { width, height } = file;
  const stored = new StoredTransform(transform, file);
  const planes = names.map(() => new Float32Array(width * height).fill(NaN));
  const valid = new Uint8Array(width * height);
  eachBlock(file, ({ column, row, stride, bands, indexes }) => {
    stored.apply(bands, indexes, (results, from, count) => {
      for (let i = 0; i < count; i++) {
        const index = indexes[from + i]!;
        const at = (row + Math.floor(index / stride)) * width + column + (index % stride);
        valid[at] = 1;
        for (let r = 0; r < planes.length; r++) planes[r]![at] = results[r * 64 + i]!;
      }
    });
  });
  if (!valid.includes(1)) return null;
  const cell: CellGroup = {
    ...tile,
    ...{ width, height, name: group, role: 'data', resampling: 'bilinear', dataType: 'float32' },
    ...{ nodata: null, colours: undefined },
    bands: names.map((name) => ({ name, scale: 1, offset: 0 })),
  };
  // What could not be read stays what it was: cloud, shadow, snow or no data.
  const known = maskCodes(file);
  const codes = valid.map((is, at) => {
    if (is === 1) return known?.[at] ?? Mask.notAssessed;
    const code = known?.[at] ?? Mask.nodata;
    return code === Mask.clear || code === Mask.notAssessed ? Mask.nodata : code;
  });
  const figures = validOf(planes, NaN, valid);
  const { file: map } = encodeCell(cell, { bands: planes, ...figures, valid, mask: null });
  const { file: mask, cloudCover, footprint } = encodeMask(cell, codes);
  return { files: [map, mask], coverage: figures.coverage, cloudCover, footprint, used: [0] };
}
