/** Reads pixels of a dataset by hyperslabs. */
import { corrupt } from '../errors.js';
import { bytesPerSample, fillValueFor } from '../pixels/index.js';
import type { Hdf5Blocks, HeaderOf, PixelArray, ReadTarget, Window } from '../raster-types.js';
import { replaceMissing } from './cf/index.js';
import { type Hdf5File, withHdf5 } from './hdf5-file.js';
import { readHyperslab } from './hdf5-stored-dataset.js';

export type Hdf5Header = HeaderOf<Hdf5Blocks>;

/** The library's memory holds one piece at a time. */
const HYPERSLAB_BYTES = 2 ** 24;

/**
 * Reads a window of some bands (from 0). The window must lie in the raster and fit the target.
 * Throws TW_RASTER_UNREADABLE and _CORRUPT.
 */
export async function readHdf5(
  header: Hdf5Header,
  bands: number[],
  window: Window,
  { arrays, ...place }: ReadTarget,
): Promise<void> {
  await withHdf5(header.path, (file) => {
    for (const [i, band] of bands.entries()) readBand(file, header, band, window, arrays[i], place);
  });
}

function readBand(
  file: Hdf5File,
  header: Hdf5Header,
  band: number,
  { column, row, width, height }: Window,
  out: PixelArray,
  { offset, stride }: Omit<ReadTarget, 'arrays'>,
): void {
  const { blocks, path, dataType } = header;
  const nodata = fillValueFor(dataType, header.nodata);
  const dataset = file.dataset(blocks.dataset);
  const shape = dataset && file.metadata(dataset).shape;
  if (!shape || shape.at(-2) !== header.height || shape.at(-1) !== header.width) {
    throw corrupt(path, `${blocks.dataset} is not as it was when it was opened`);
  }
  const first = blocks.bottomUp ? header.height - row - height : row;
  const leading = indexOf(band, shape.slice(0, -2));
  for (const [from, to] of planHyperslabs(
    first,
    first + height,
    blocks.height,
    width * bytesPerSample(dataType),
  )) {
    const ranges: [number, number][] = [...leading, [from, to], [column, column + width]];
    const pixels = readHyperslab(file, dataset, dataType, ranges);
    if (pixels.length !== (to - from) * width) throw corrupt(path, `rows ${from}-${to} cannot be read`);
    if (blocks.missing) replaceMissing(pixels, blocks.missing, nodata);
    for (let y = from; y < to; y++) {
      const target = blocks.bottomUp ? first + height - 1 - y : y - first;
      const start = (y - from) * width;
      out.set(pixels.subarray(start, start + width), offset + target * stride);
    }
  }
}

/** The indexes of a band in the dimensions before rows and columns, the last of which runs fastest. */
function indexOf(band: number, dimensions: number[]): [number, number][] {
  const ranges: [number, number][] = [];
  for (const size of dimensions.toReversed()) {
    ranges.unshift([band % size, (band % size) + 1]);
    band = Math.floor(band / size);
  }
  return ranges;
}

/** Runs of rows that end at block boundaries, so that no block is decoded twice. */
function* planHyperslabs(
  from: number,
  to: number,
  blockHeight: number,
  rowBytes: number,
): Generator<[number, number]> {
  const rows = Math.max(1, Math.floor(HYPERSLAB_BYTES / (rowBytes * blockHeight))) * blockHeight;
  while (from < to) {
    const end = Math.min(to, Math.floor(from / rows) * rows + rows);
    yield [from, end];
    from = end;
  }
}
