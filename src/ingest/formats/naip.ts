/**
 * NAIP aerial images, by the USDA's names and extents: m_<quad>_<quarter>_<UTM zone>_<pixel>_<date>[_<delivery date>]. No tag
 * of the files identifies NAIP, and many have no metadata at all. So a file is NAIP if its name and its content agree: four
 * bands of 8 bits (red, green, blue, near infrared) in NAD83 UTM, in the zone of the name. Any other file is a plain raster,
 * including images of three bands, because true and false colour cannot be distinguished.
 */
import { basename } from 'node:path';
import { effectiveNodata, type RasterHeader, treatAlphaAsData } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { notRecognised } from '../errors.js';
import { nominalPixelSize } from '../georeferencing.js';
import type { ProductFormat, Resolution } from '../scene.js';
import { datetimeOption, parseTime } from './acquisition-time.js';
import { matchesRaster } from './probe.js';
import { USDA } from './providers.js';

const NAIP_BANDS = ['red', 'green', 'blue', 'nir'];

interface NaipName {
  /** The name up to the date of the flight. */
  id: string;
  zone: number;
  /** Metres. */
  pixel: number;
  start: number;
}

export const naip: ProductFormat = {
  name: 'NAIP',

  async identify(candidate) {
    const name = parseName(basename(candidate.path));
    if (!name || (candidate.fileType !== 'tiff' && candidate.fileType !== 'jp2')) return false;
    return matchesRaster(candidate, (header) => isNaip(header, name));
  },

  async describe({ path, header: open }, options) {
    const name = parseName(basename(path));
    if (!name) throw notRecognised(path, 'it is not named as NAIP images are');
    // Some files declare the near infrared as alpha.
    const header = treatAlphaAsData(await open());
    const resolution = resolutionOf(header, name);
    const bands = NAIP_BANDS.map((band, index): UngroupedBand => {
      const nodata = options.nodata ?? effectiveNodata(header) ?? null;
      const base = { name: band, commonName: band, header, index, resolution };
      return { ...base, role: 'data', nodata, scale: 1, offset: 0 };
    });
    const { start, end } = datetimeOption(options) ?? { start: name.start, end: name.start };
    const scene = {
      path,
      id: options.id ?? name.id,
      collection: {
        id: 'naip',
        title: 'National Agriculture Imagery Program',
        license: 'PDDL-1.0',
        attribution: 'NAIP imagery courtesy of the U.S. Department of Agriculture',
        providers: [USDA],
      },
      platform: options.platform ?? 'aircraft',
      start,
      end,
      groups: groupBands(bands),
      quality: [],
      warnings: [],
    };
    return [scene];
  },
};

/** Null if the name is not one of NAIP. Pixels are written as 1, h (half a metre), 060 or 030 (centimetres). */
function parseName(file: string): NaipName | null {
  const match = /^(m_\d{7}_(?:ne|nw|se|sw)_(\d{1,2})_(1|h|\d{3})_(\d{4})(\d\d)(\d\d))(?!\d)/i.exec(file);
  if (!match) return null;
  const [, id, zone, pixel, year, month, day] = match;
  const start = parseTime(`${year}-${month}-${day}`);
  const metres = pixel === '1' ? 1 : /h/i.test(pixel) ? 0.5 : Number(pixel) / 100;
  return Number.isNaN(start) ? null : { id: id.toLowerCase(), zone: Number(zone), pixel: metres, start };
}

function isNaip({ bands, dataType, crs }: RasterHeader, { zone }: NaipName): boolean {
  const utm = /\+proj=utm \+zone=(\d+) (?!.*\+south).*\+(?:datum=NAD83|ellps=GRS80)/.exec(crs.proj4);
  return bands === NAIP_BANDS.length && dataType === 'uint8' && Number(utm?.[1]) === zone;
}

/** The pixel size of the name if the file has it, so that years stack; resampled files have their own. */
function resolutionOf(header: RasterHeader, { pixel }: NaipName): Resolution {
  const own = nominalPixelSize(header);
  const isNominal = [own.x, own.y].every((metres) => Math.abs(metres - pixel) <= 0.01 * pixel);
  return isNominal ? { x: pixel, y: pixel } : own;
}
