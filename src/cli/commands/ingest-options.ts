/** The options of `ingest` that describe how scenes become tiles; `subscribe` has some of them. */
import { readFileSync } from 'node:fs';
import { InvalidArgumentError, type Option } from 'commander';
import { messageOf } from '../../errors.js';
import type { Bbox } from '../../grid/index.js';
import { parseBbox } from '../../query/index.js';
import {
  appendList,
  createOption,
  parseIntegerOption,
  parseNumberOption,
  parsePositiveIntegerOption,
} from '../options/index.js';

const numberOrNan = (value: string): number | 'nan' =>
  value.trim().toLowerCase() === 'nan' ? 'nan' : parseNumberOption(value);

/** Parses "red=3,nir=4", or a list of names for `--from-stac`. */
function bandNames(value: string): Record<string, number> | string[] {
  if (!value.includes('=')) return appendList(value, undefined);
  const pairs = value.split(',').map((pair) => /^([\w.-]+)=(\d+)$/.exec(pair.trim()));
  if (pairs.includes(null))
    throw new InvalidArgumentError('It must be a list of names with band numbers, such as red=3,nir=4.');
  const names = Object.fromEntries(pairs.map((match) => [match?.[1], Number(match?.[2])]));
  if (Object.keys(names).length < pairs.length) throw new InvalidArgumentError('A name occurs twice.');
  return names;
}

function boxOption(value: string): Bbox {
  try {
    return parseBbox(value);
  } catch (error) {
    throw new InvalidArgumentError(`${messageOf(error)}.`);
  }
}

/** Parses "400-2500", "400,410,420", or the path of a file with a number for each band. Returns nanometres. */
function wavelengthList(value: string): number[] {
  const range = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(value.trim());
  if (range) return [Number(range[1]), Number(range[2])];
  const text = /^[\d.,\s]+$/.test(value) ? value : readText(value);
  const numbers = text.split(/[\s,;]+/).filter((item) => item !== '');
  if (numbers.length < 2 || !numbers.every((item) => Number.isFinite(Number(item))))
    throw new InvalidArgumentError(
      'It must be wavelengths in nanometres, such as 400-2500, or a file of them.',
    );
  return numbers.map(Number);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new InvalidArgumentError(`The file cannot be read: ${messageOf(error)}.`);
  }
}

/** The options of the process. */
export function ingestOptions(): Option[] {
  return [
    createOption(
      '--collection <id>',
      'collection of the tiles (lower-case letters, digits, - and .); known products have their own; with --from-stac: collections of the archive to search, separated by commas',
    ),
    createOption('--grid <grid>', 'kind of cells').choices(['geohash', 'quadtile']),
    createOption(
      '--precision <n>',
      'length of the geocodes; by default it is chosen so that cells are at least 128 pixels wide',
      parseIntegerOption,
    ),
    createOption(
      '--bbox <w,s,e,n>',
      'only make the cells that meet this box, in degrees; each is made as a whole, and scenes outside of the box are skipped',
      boxOption,
    ),
    createOption('--id <id>', 'scene id of a raster that is not a known product'),
    createOption(
      '--datetime <time>',
      'acquisition time: 2024-06-01T10:30:00Z, 2024-06-01, 2024-06, 2024, or start/end; with --from-stac: dates to search, also with an open end, such as 2024-05/..',
    ),
    createOption(
      '--bands <names>',
      'names of bands, such as red=3,nir=4; with --from-stac, the bands to read, such as red,nir,scl',
      bandNames,
    ),
    createOption('--nodata <value>', 'stored value that means no data, a number or nan', numberOrNan),
    createOption('--scale <factor>', 'physical value = stored * scale + offset', parseNumberOption),
    createOption('--offset <value>', 'see --scale', parseNumberOption),
    createOption('--platform <name>', 'name of the satellite or aircraft'),
    createOption(
      '--mask-band <n>',
      'band whose value is 0 for clear pixels and not 0 for cloudy pixels',
      parsePositiveIntegerOption,
    ),

    createOption(
      '--position <place>',
      'position of a raster without georeferencing: EPSG:CODE,ULX,ULY,LRX,LRY, outer corners as for gdal_translate -a_ullr',
    ),
    createOption(
      '--wavelengths <nm>',
      'wavelengths of the bands: a file with a number for each band, or the first and last one, such as 400-2500',
      wavelengthList,
    ),
    createOption(
      '--name-pattern <pattern>',
      'read facts from the names of the files: {time:%Y-%m-%d}, {band}, {tile}, {platform}, and {*} for ignored text, such as {platform}_{*}_{tile}_{band}_{time:%Y%m%d}.tif',
    ),
    createOption('--layer <name>', 'name of the array to ingest from a MATLAB file with several arrays'),
    createOption(
      '--cloud-test',
      'detect cloud by reflectance if the product has no cloud mask (needs six bands, which it finds by their names)',
    ),
    createOption(
      '--compress <method>',
      'compress the tiles of imaging spectrometers, which makes them a quarter smaller, and slower to read',
    ).choices(['deflate']),
    createOption(
      '--dry-run',
      'only list the tiles that the ingest would create; some of these tiles may turn out to have no data',
    ),
  ];
}
