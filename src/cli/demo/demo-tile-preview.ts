import sharp from 'sharp';
import { readRaster } from '../../raster/index.js';
import type { Storage, TileRecord } from '../../storage/index.js';

const SIDE_PIXELS = 240;
/** Reflectances from black to white. Land is dark, so clouds may be overexposed. */
const BLACK_POINT = 0.01;
const WHITE_POINT = 0.28;
const GAMMA = 1 / 1.6;

/** A small true-colour picture of a tile as a data URI, transparent where there is no data; undefined if the tile lacks a colour. */
export async function renderPreview(storage: Storage, tile: TileRecord): Promise<string | undefined> {
  const group = tile.groups.find((one) =>
    ['red', 'green', 'blue'].every((colour) => one.bands.some((band) => band.commonName === colour)),
  );
  if (!group) return undefined;
  const indexes = ['red', 'green', 'blue'].map((colour) =>
    group.bands.findIndex((b) => b.commonName === colour),
  );
  const { bands } = await readRaster(storage.tilePath(tile, group.name), indexes);
  const { width, height, nodata } = group;
  const rgba = new Uint8Array(width * height * 4);
  for (const [c, pixels] of bands.entries()) {
    const { scale, offset } = group.bands[indexes[c]];
    for (let i = 0; i < width * height; i++) {
      const reflectance = pixels[i] * scale + offset;
      const share = Math.min(1, Math.max(0, (reflectance - BLACK_POINT) / (WHITE_POINT - BLACK_POINT)));
      rgba[4 * i + c] = Math.round(255 * share ** GAMMA);
      if (c === 0) rgba[4 * i + 3] = 255;
      if (pixels[i] === nodata) rgba[4 * i + 3] = 0;
    }
  }
  const picture = sharp(rgba, { raw: { width, height, channels: 4 } }).resize(SIDE_PIXELS, SIDE_PIXELS, {
    fit: 'inside',
  });
  return `data:image/webp;base64,${(await picture.webp({ quality: 70 }).toBuffer()).toString('base64')}`;
}
