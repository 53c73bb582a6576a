/** A raster of two bands, and a STAC Item for it. */
import { bytesOf } from '../support/rasters.js';

/** An Item of one asset for a file of two bands. */
export const item = (href: string, more: object = {}, asset: object = {}) =>
  JSON.stringify({
    type: 'Feature',
    stac_version: '1.0.0',
    id: 'flight-7',
    collection: 'drone',
    properties: { datetime: '2023-05-06T07:08:09Z', platform: 'ebee', license: 'CC-BY-4.0' },
    assets: {
      image: {
        href,
        'eo:bands': [
          { name: 'R', common_name: 'red' },
          { name: 'N', common_name: 'nir' },
        ],
        'raster:bands': [{ nodata: 9, scale: 0.5, offset: 1 }, { nodata: 9 }],
        ...asset,
      },
    },
    ...more,
  });

export const twoBands = {
  dataType: 'uint8',
  bands: bytesOf(2, 64 * 64, (i, band) => (i % 50) + band),
} as const;
