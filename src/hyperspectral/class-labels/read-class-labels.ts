/** Reads label files: a raster of codes, or GeoJSON with a class for each feature. */

import { extname } from 'node:path';
import { deflateSync } from 'node:zlib';
import { messageOf } from '../../errors.js';
import { readRaster, readSmallFile } from '../../raster/index.js';
import { parseJson } from '../../utils/json-text.js';
import { badLabels } from '../errors.js';
import { type Labels, MAX_CODE, regionOf } from './class-labels.js';

/** Larger files contain more labels than fit into a request. */
const MAX_FILE_BYTES = 200e6;
/** Names of properties with the class of a feature; the first one that is present counts. */
const CLASS_PROPERTIES = ['class', 'label', 'code', 'name', 'id'];

/** Throws TW_ANALYSIS_LABELS and the errors of rasters. */
export async function readLabels(path: string): Promise<Labels> {
  return /^\.(geojson|json)$/i.test(extname(path)) ? readGeoJson(path) : readCodes(path);
}

async function readCodes(path: string): Promise<Labels> {
  const { header, bands } = await readRaster(path);
  const { crs, transform, width, height, nodata, metadata } = header;
  if (bands.length !== 1) throw badLabels(`${path} has ${bands.length} bands, and labels are one`);
  if (crs.epsg === undefined) throw badLabels(`${path} has a coordinate system without an EPSG code`);
  const codes = Uint8Array.from(bands[0], (value) => {
    if (value === nodata || Number.isNaN(value)) return 0;
    if (!Number.isInteger(value) || value < 0 || value > MAX_CODE)
      throw badLabels(`${path} holds ${value}; codes are whole numbers from 1 to ${MAX_CODE}, 0 for none`);
    return value;
  });
  const { originX, originY, xx, xy, yx, yy } = transform;
  const names = classNames(metadata);
  return {
    ...(Object.keys(names).length > 0 && { names }),
    raster: {
      epsg: crs.epsg,
      width,
      height,
      transform: [originX, xx, xy, originY, yx, yy],
      codes: deflateSync(codes).toString('base64'),
    },
  };
}

/** Names by code, from the items `CLASS_n` of class maps and from `class names` of ENVI. */
function classNames(metadata: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(metadata).flatMap(([item, name]) => {
      const code = /^CLASS_(\d+)$/.exec(item)?.[1];
      return code && Number(code) > 0 && Number(code) <= MAX_CODE ? [[code, name]] : [];
    }),
  );
}

interface Feature {
  geometry?: object;
  properties?: Record<string, unknown> | null;
}

async function readGeoJson(path: string): Promise<Labels> {
  const document = await parsed(path);
  const { type, features } = document;
  if (type !== 'FeatureCollection' || !Array.isArray(features) || features.length === 0)
    throw badLabels(`${path} is not a FeatureCollection with features`);
  const classes = features.map(({ properties }, i) => {
    const name = CLASS_PROPERTIES.map((key) => properties?.[key]).find(
      (value) => value !== undefined && value !== null,
    );
    if (name === undefined) throw badLabels(`feature ${i + 1} of ${path} has no property "class"`);
    return String(name);
  });
  // Integers are codes, 0 for no label; names are numbered in alphabetical order.
  const names = [...new Set(classes)].sort();
  const areCodes = names.every((name) => /^\d+$/.test(name));
  const tooLarge = areCodes ? names.find((name) => Number(name) > MAX_CODE) : undefined;
  if (tooLarge !== undefined)
    throw badLabels(`${path} has the class ${tooLarge}; codes are 1 to ${MAX_CODE}, 0 for none`);
  if (!areCodes && names.length > MAX_CODE) throw badLabels(`${path} has more than ${MAX_CODE} classes`);
  const codeOf = (name: string) => (areCodes ? Number(name) : names.indexOf(name) + 1);
  return {
    ...(!areCodes && { names: Object.fromEntries(names.map((name) => [`${codeOf(name)}`, name])) }),
    features: features
      .map(({ geometry }, i) => {
        if (!geometry) throw badLabels(`feature ${i + 1} of ${path} has no geometry`);
        regionOf(geometry, `feature ${i + 1} of ${path}`);
        return { code: codeOf(classes[i]), geometry };
      })
      .filter(({ code }) => code > 0),
  };
}

async function parsed(path: string): Promise<{ type?: unknown; features?: Feature[] }> {
  try {
    return parseJson((await readSmallFile(path, MAX_FILE_BYTES)).toString()) as object;
  } catch (error) {
    throw badLabels.because(error, `${path} cannot be read as GeoJSON: ${messageOf(error)}`);
  }
}
