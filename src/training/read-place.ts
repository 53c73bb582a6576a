/** Reads the pixels of a place's dates as physical values. */
import { Mask, type PixelArray, type RasterHeader, readRaster } from '../raster/index.js';
import type { DatePixels } from './patches.js';
import type { BandFile, PlaceDate } from './worker-messages.js';

export type ReadOutcome = { dates: DatePixels[]; bytesRead: number } | { skipped: string };

const BANDS = ['red', 'green', 'blue', 'nir'] as const;

/** Which mask code speaks for a pixel that covers several: the first of these that occurs. */
const WORST_FIRST = [Mask.nodata, Mask.cloud, Mask.shadow, Mask.snow, Mask.notAssessed, Mask.clear];

/** All dates of a place, or the reason why their sizes do not fit together. */
export async function readPlace(files: PlaceDate[]): Promise<ReadOutcome> {
  const dates: DatePixels[] = [];
  let bytesRead = 0;
  for (const file of files) {
    const date = await readDate(file);
    if ('skipped' in date) return date;
    const [first = date.pixels] = dates;
    if (date.pixels.width !== first.width || date.pixels.height !== first.height) {
      return { skipped: `its dates differ in size: ${sizeOf(first)} and ${sizeOf(date.pixels)} px` };
    }
    dates.push(date.pixels);
    bytesRead += date.bytesRead;
  }
  return { dates, bytesRead };
}

async function readDate(
  files: PlaceDate,
): Promise<{ pixels: DatePixels; bytesRead: number } | { skipped: string }> {
  const rasters = await readOnce(BANDS.map((name) => files[name]));
  const { header: mask, bands } = await readRaster(files.mask, [0]);
  const size = rasters.get(files.red.path)!.header;
  for (const name of BANDS) {
    const { header } = rasters.get(files[name].path)!;
    if (header.width !== size.width || header.height !== size.height) {
      return { skipped: `its bands differ in size: red ${sizeOf(size)}, ${name} ${sizeOf(header)} px` };
    }
  }
  const codes = coarsen(bands[0], mask, size);
  if (codes === undefined) {
    return {
      skipped: `its mask of ${sizeOf(mask)} px is no integer multiple of its bands' ${sizeOf(size)} px`,
    };
  }
  const band = (file: BandFile) => physical(rasters.get(file.path)!, file);
  return {
    pixels: {
      time: files.time,
      width: size.width,
      height: size.height,
      red: band(files.red),
      green: band(files.green),
      blue: band(files.blue),
      nir: band(files.nir),
      mask: codes,
    },
    bytesRead: [...rasters.values()].reduce((sum, { header }) => sum + header.fileBytes, mask.fileBytes),
  };
}

interface ReadBands {
  header: RasterHeader;
  /** By band number. */
  bands: Map<number, PixelArray>;
}

/** Each file is opened once for all of its bands that are wanted. */
async function readOnce(wanted: BandFile[]): Promise<Map<string, ReadBands>> {
  const rasters = new Map<string, ReadBands>();
  for (const path of new Set(wanted.map((file) => file.path))) {
    const numbers = [...new Set(wanted.filter((file) => file.path === path).map(({ band }) => band))];
    const { header, bands } = await readRaster(path, numbers);
    rasters.set(path, { header, bands: new Map(numbers.map((number, i) => [number, bands[i]])) });
  }
  return rasters;
}

function physical({ header, bands }: ReadBands, { band, scale, offset }: BandFile): Float32Array {
  const stored = bands.get(band)!;
  return Float32Array.from(stored, (value) => (value === header.nodata ? NaN : value * scale + offset));
}

interface Size {
  width: number;
  height: number;
}

function sizeOf({ width, height }: Size): string {
  return `${width}x${height}`;
}

/** Mask codes at the bands' size: a pixel takes the worst code that it covers. Undefined where the sizes do not nest. */
function coarsen(codes: PixelArray, fine: Size, coarse: Size): Uint8Array | undefined {
  const factor = fine.width / coarse.width;
  if (!Number.isInteger(factor) || fine.height !== coarse.height * factor) return undefined;
  const severity = new Uint8Array(256).fill(WORST_FIRST.length);
  WORST_FIRST.forEach((code, rank) => {
    severity[code] = rank;
  });
  return Uint8Array.from({ length: coarse.width * coarse.height }, (_, pixel) => {
    const from = Math.floor(pixel / coarse.width) * factor * fine.width + (pixel % coarse.width) * factor;
    let worst = codes[from];
    for (let row = 0; row < factor; row++) {
      for (let column = 0; column < factor; column++) {
        const code = codes[from + row * fine.width + column];
        if (severity[code] < severity[worst]) worst = code;
      }
    }
    return worst;
  });
}
