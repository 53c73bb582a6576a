/** Files with one fault each, which an ingest must refuse or report. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CogImage, encodeCog } from '../src/raster/index.js';
import { type LandsatScene, writeLandsatLikeScene } from './landsat-like.js';
import { SERIES_EPSG, SERIES_ORIGIN } from './sentinel-like.js';

/** A good file of one band, 64 x 48 pixels of 200 m. */
function smallImage(fill: (pixel: number) => number): CogImage {
  return {
    width: 64,
    height: 48,
    dataType: 'uint16',
    bands: [Uint16Array.from({ length: 64 * 48 }, (_, i) => fill(i))],
    transform: { originX: SERIES_ORIGIN.x, originY: SERIES_ORIGIN.y, pixelWidth: 200, pixelHeight: 200 },
    epsg: SERIES_EPSG,
    nodata: 0,
    overviews: 'nearest',
  };
}

const ramp = (pixel: number) => 1000 + (pixel % 64) * 20 + (pixel >> 6);

/** A TIFF with a complete directory and truncated pixels, as after an interrupted download. */
export async function writeTruncatedTiff(path: string): Promise<void> {
  const bytes = encodeCog(smallImage((pixel) => 1000 + ((pixel * 7919) % 4001)));
  await writeFile(path, bytes.subarray(0, Math.floor(bytes.length * 0.7)));
}

/** Text with the name of a TIFF, such as an error page that a script saved. */
export async function writeNotATiff(path: string): Promise<void> {
  await writeFile(path, '<!doctype html><title>404 Not Found</title>\n');
}

/** A TIFF without GeoTIFF keys: its pixels have a position, but no coordinate system. */
export async function writeTiffWithoutCrs(path: string): Promise<void> {
  const bytes = encodeCog(smallImage(ramp));
  hideTag(bytes, 34_735);
  await writeFile(path, bytes);
}

/** A TIFF in which no pixel has data. */
export async function writeAllNodataTiff(path: string): Promise<void> {
  await writeFile(path, encodeCog(smallImage(() => 0)));
}

/** A Landsat scene whose MTL names B4 (red) but whose file is missing. */
export async function writeLandsatWithoutRed(folder: string): Promise<LandsatScene> {
  const scene = await writeLandsatLikeScene(folder, { size: { width: 120, height: 100 } });
  const { B4, ...bandPaths } = scene.bandPaths;
  if (B4 !== undefined) await rm(B4);
  return { ...scene, bandPaths };
}

/** Writes one of each into a folder and returns the paths: files, and the folder of the scene without red. */
export async function writeBrokenFiles(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const tiffs = {
    'truncated.tif': writeTruncatedTiff,
    'not-a-tiff.tif': writeNotATiff,
    'no-crs.tif': writeTiffWithoutCrs,
    'all-nodata.tif': writeAllNodataTiff,
  };
  for (const [name, write] of Object.entries(tiffs)) await write(join(folder, name));
  const missing = join(folder, 'landsat-without-red');
  await writeLandsatWithoutRed(missing);
  return [...Object.keys(tiffs).map((name) => join(folder, name)), missing];
}

/** Gives a tag of the first directory a private number that no reader knows, in place. */
function hideTag(bytes: Buffer, tag: number): void {
  const directory = bytes.readUInt32LE(4);
  const entries = bytes.readUInt16LE(directory);
  for (let i = 0; i < entries; i++) {
    const at = directory + 2 + i * 12;
    if (bytes.readUInt16LE(at) === tag) bytes.writeUInt16LE(65_000, at);
  }
}
