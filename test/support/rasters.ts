/** GeoTIFFs of any size and position, written by tests. */
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type CogImage, encodeCog } from '../../src/raster/index.js';

export interface RasterOptions extends Partial<Omit<CogImage, 'transform'>> {
  /** Outer corner of the upper left pixel. */
  x?: number;
  y?: number;
  pixel?: number;
  /** Marks the values as indexes of a colour table. */
  palette?: boolean;
}

/** One band of uint16 rising from 1, by default 64 x 64 pixels of 10 m in EPSG:32633. */
export async function writeRaster(path: string, options: RasterOptions = {}): Promise<string> {
  const { x = 500_000, y = 5_300_000, pixel = 10, palette = false, ...image } = options;
  const { width = 64, height = 64 } = image;
  const bytes = encodeCog({
    dataType: 'uint16',
    bands: [Uint16Array.from({ length: width * height }, (_, i) => i + 1)],
    epsg: 32633,
    overviews: 'nearest',
    ...image,
    width,
    height,
    transform: { originX: x, originY: y, pixelWidth: pixel, pixelHeight: pixel },
  });
  if (palette) setPalette(bytes);
  await writeFile(path, bytes);
  return path;
}

/** `count` bands of 8 bits in which pixel i is `value(i, band)`. */
export function bytesOf(count: number, pixels: number, value: (i: number, band: number) => number) {
  return Array.from({ length: count }, (_, band) =>
    Uint8Array.from({ length: pixels }, (_, i) => value(i, band)),
  );
}

/** Turns PhotometricInterpretation (tag 262) of the full image to 3. */
function setPalette(tiff: Buffer): void {
  const directory = tiff.readUInt32LE(4);
  for (let i = 0; i < tiff.readUInt16LE(directory); i++) {
    const at = directory + 2 + 12 * i;
    if (tiff.readUInt16LE(at) === 262) tiff.writeUInt16LE(3, at + 8);
  }
}

/** The folder of real scenes next to the repository, which may be missing. */
export const realData = fileURLToPath(new URL('../../../../shared/data/', import.meta.url));
