/** Any single GeoTIFF, its bands and time described by flags or by its own tags. */
import { createHash } from 'node:crypto';
import { basename, extname } from 'node:path';
import { Mask, openRaster, type RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../band-groups.js';
import { badOption, missingBand, noCollection, noDatetime } from '../errors.js';
import { groundResolution } from '../resolution.js';
import type { DescribeOptions, QualityBand, Scene, SceneFormat } from '../scene.js';

/** STAC eo 1.1.0 common names; a band so named gets it as its common name too. */
const COMMON_NAMES = new Set(
  'coastal blue green red rededge rededge071 rededge075 rededge078 yellow pan nir nir08 nir09 cirrus swir16 swir22 lwir lwir11 lwir12'.split(
    ' ',
  ),
);

export const geotiff: SceneFormat = {
  name: 'GeoTIFF',

  async detect({ entries }) {
    return entries === null;
  },

  async describe({ path }, options) {
    const header = await openRaster(path);
    const { start, end } = timeOf(path, header, options);
    if (!options.collection) throw noCollection(path);
    const groups = groupBands(describeBands(path, header, options));
    const scene: Scene = {
      path,
      id: options.id ?? `${cleanId(basename(path, extname(path)))}_${stamp(start)}`,
      collection: { id: options.collection, title: options.collection, license: 'proprietary' },
      platform: options.platform ?? header.metadata.PLATFORM ?? null,
      start,
      end,
      groups,
      quality: options.maskBand === undefined ? [] : [maskBand(path, groups, header, options.maskBand)],
      reflectanceTest: false,
      warnings: [],
    };
    return [scene];
  },
};

function describeBands(path: string, header: RasterHeader, options: DescribeOptions): UngroupedBand[] {
  const names = header.bandTags.map((tags, i) => tags.description || `b${i + 1}`);
  for (const [name, number] of Object.entries(options.bands ?? {})) {
    if (number < 1 || number > header.bands) {
      throw missingBand(path, `${name}=${number}`, `The file has ${header.bands} bands; correct --bands.`);
    }
    names[number - 1] = name;
  }
  if (options.maskBand !== undefined && (options.maskBand < 1 || options.maskBand > header.bands)) {
    throw missingBand(
      path,
      String(options.maskBand),
      `The file has ${header.bands} bands; correct --mask-band.`,
    );
  }
  const resolution = groundResolution(header);
  return names.map((name, index) => {
    const isMask = index + 1 === options.maskBand;
    const tags = header.bandTags[index];
    return {
      name: name.trim(),
      commonName: COMMON_NAMES.has(name.toLowerCase()) ? name.toLowerCase() : undefined,
      header,
      index,
      resolution,
      role: isMask ? 'qa' : 'data',
      nodata: isMask ? null : (options.nodata ?? header.nodata ?? null),
      scale: isMask ? 1 : (options.scale ?? tags.scale ?? 1),
      offset: isMask ? 0 : (options.offset ?? tags.offset ?? 0),
    };
  });
}

/** A mask band given by the user: 0 is clear, any other value is cloud. */
function maskBand(path: string, groups: Scene['groups'], header: RasterHeader, number: number): QualityBand {
  if (header.dataType !== 'uint8' && header.dataType !== 'uint16') {
    throw badOption(
      '--mask-band',
      String(number),
      `a band of 8 or 16 bit codes, but ${path} holds ${header.dataType}`,
    );
  }
  const group = groups.find((g) => g.role === 'qa');
  if (!group) throw new Error('the mask band has no group');
  const codes = new Uint8Array(header.dataType === 'uint8' ? 256 : 65536).fill(Mask.cloud);
  codes[0] = Mask.clear;
  return { group: group.name, band: 0, codes };
}

function timeOf(
  path: string,
  header: RasterHeader,
  options: DescribeOptions,
): { start: number; end: number } {
  if (options.datetime !== undefined) {
    const [start, end = start] = options.datetime.split('/').map((part) => parseTime(part));
    if (Number.isNaN(start) || Number.isNaN(end) || end < start) {
      throw badOption('--datetime', options.datetime, 'a time such as 2024-06-01T10:30:00Z, or start/end');
    }
    return { start, end };
  }
  // TIFF 6.0 DateTime is "YYYY:MM:DD HH:MM:SS" without a zone; UTC is the field's custom.
  const tag = header.metadata.ACQUISITION_DATETIME ?? header.dateTime;
  const time = tag ? parseTime(tag.replace(/^(\d{4}):(\d\d):(\d\d) /, '$1-$2-$3T')) : NaN;
  if (Number.isNaN(time)) throw noDatetime(path);
  return { start: time, end: time };
}

/** RFC 3339 or a plain date; without a zone it is UTC. NaN for what is none, also for days that do not exist. */
function parseTime(text: string): number {
  const day = /^\d{4}-\d\d-\d\d/.exec(text)?.[0];
  const midnight = Date.parse(`${day}T00:00:00Z`);
  // Date.parse takes 31 February for 3 March.
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(`${day}T`)) return NaN;
  if (text === day) return midnight;
  if (!/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/.test(text)) return NaN;
  const zoned = /[Zz]$|[+-]\d\d:\d\d$/.test(text) ? text : `${text}Z`;
  return Date.parse(zoned.replace(' ', 'T').toUpperCase());
}

const stamp = (time: number) => new Date(time).toISOString().replace(/[-:]|\.\d+/g, '');

/** A file name as an id; where characters were replaced, a digest keeps different names apart. */
function cleanId(name: string): string {
  const clean = name
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 80);
  if (clean === name) return name;
  return `${clean || 'scene'}-${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}
