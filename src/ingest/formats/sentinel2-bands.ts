/** Bands and masks of Sentinel-2 products of any file layout: describes a scene from a list of files. */
import { basename, dirname } from 'node:path';
import { mapConcurrent } from '../../async/index.js';
import { Mask, openRaster, type RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { badOption, missingBand } from '../errors.js';
import { nominalPixelSize } from '../georeferencing.js';
import type { DescribeOptions, Scene } from '../scene.js';
import { type AcquisitionTime, compactTimestamp } from './acquisition-time.js';
import { COPERNICUS, ESA } from './providers.js';
import { bitAt, buildQualityLookups, qualityBand, sentinel2SceneClass } from './quality.js';

export type Sentinel2Level = 'L1C' | 'L2A';

/** Conversion of stored numbers to reflectance: number * scale + offset. */
export interface Radiometry {
  scale: number;
  /** By band name. */
  offset(band: string): number;
  /** The nodata value, given the one that a band's file declares. */
  nodata(declared: number | undefined): number;
}

/** In the order of `band_id` in the metadata. `size` is the native pixel size in metres. */
export const SENTINEL2_BANDS = [
  { name: 'B01', size: 60, commonName: 'coastal' },
  { name: 'B02', size: 10, commonName: 'blue' },
  { name: 'B03', size: 10, commonName: 'green' },
  { name: 'B04', size: 10, commonName: 'red' },
  { name: 'B05', size: 20, commonName: 'rededge071' },
  { name: 'B06', size: 20, commonName: 'rededge075' },
  { name: 'B07', size: 20, commonName: 'rededge078' },
  { name: 'B08', size: 10, commonName: 'nir' },
  { name: 'B8A', size: 20, commonName: 'nir08' },
  { name: 'B09', size: 60, commonName: 'nir09' },
  { name: 'B10', size: 60, commonName: 'cirrus' },
  { name: 'B11', size: 20, commonName: 'swir16' },
  { name: 'B12', size: 20, commonName: 'swir22' },
];

const BAND_NAMES = new Set(SENTINEL2_BANDS.map((band) => band.name));

interface Sentinel2Scene {
  /** The file or folder of the scene, for messages. */
  path: string;
  id: string;
  level: Sentinel2Level;
  platform: string | null;
  span: AcquisitionTime;
  radiometry: Radiometry;
  warnings: string[];
}

const sentinel2Collection = (level: Sentinel2Level) => ({
  id: `sentinel-2-${level.toLowerCase()}`,
  title: `Sentinel-2 Level-${level.slice(1)}`,
  license: 'proprietary',
  licenseUrl: 'https://sentinel.esa.int/documents/247904/690755/Sentinel_Data_Legal_Notice',
  // The notice that the Copernicus Sentinel data licence requires; the year is that of each scene.
  attribution: 'Contains modified Copernicus Sentinel data [year]',
  providers: [ESA, COPERNICUS],
  // The sizes of all bands, even if some are missing, so that the scene stacks with complete ones.
  pixelSizes: [[60, 20, 10].map((size) => ({ x: size, y: size }))],
});

interface Acquisition {
  platform: string | null;
  level: Sentinel2Level;
  datatake: number;
  orbit: number | undefined;
  mgrs: string;
}

/**
 * The name of a product without baseline and processing date: S2A_MSIL1C_20220618T103031_R108_T32TLS. Unknown parts are left
 * out.
 */
export function sentinel2Id({ platform, level, datatake, orbit, mgrs }: Acquisition): string {
  const satellite = /^sentinel-(2[a-z])$/.exec(platform ?? '')?.[1].toUpperCase() ?? '2';
  const run = orbit === undefined ? '' : `_R${String(orbit).padStart(3, '0')}`;
  return `S${satellite}_MSI${level}_${compactTimestamp(datatake).slice(0, -1)}${run}_T${mgrs}`;
}

/** One id cannot name several scenes. Throws TW_INGEST_BAD_OPTION. */
export function requireSingleScene(path: string, scenes: number, { id }: DescribeOptions): void {
  if (id === undefined || scenes <= 1) return;
  throw badOption('--id', id, `an input of one scene, but ${path} has ${scenes}`);
}

// --- files ------------------------------------------------------------------------------------------------------

export interface Sentinel2BandFile {
  path: string;
  /** A name of `BANDS`, SCL, QA60 or CLASSI. */
  band: string;
  /** Pixel size in the name or the folder. */
  size: number | undefined;
  /** The part of the name before the band: the same for all files of a granule. */
  stem: string;
}

const BAND_FILE =
  /^(?:(.+?)_)??(?:R(10|20|60)m_)?(B0[1-9]|B1[0-2]|B8A|SCL|QA60)(?:_(10|20|60)m)?\.(?:jp2|tiff?)$/i;
/** The scene classification of level 2A of 2016 is named S2A_USER_SCL_L2A_TL_..._T32TQR_20m.jp2. */
const OLD_SCL = /^(.*_)SCL(_.*)_(20|60)m\.jp2$/i;
const CLASSI = /(?:^|_)MSK_CLASSI(?:_.*)?_B00.*\.(?:jp2|tiff?)$/i;

/** The content of a file of a product; null for files that are left out: true colour, previews, other masks, AOT and WVP. */
export function parseBandFileName(path: string): Sentinel2BandFile | null {
  const name = basename(path);
  if (CLASSI.test(name)) return { path, band: 'CLASSI', size: 60, stem: '' };
  if (/(?:^|_)MSK_/i.test(name)) return null;
  const folder = /^R(10|20|60)m$/i.exec(basename(dirname(path)))?.[1];
  const old = OLD_SCL.exec(name);
  if (old) return { path, band: 'SCL', size: Number(old[3]), stem: old[1] + old[2] };
  const match = BAND_FILE.exec(name);
  if (!match) return null;
  const size = match[4] ?? match[2] ?? folder;
  return { path, band: match[3].toUpperCase(), size: size ? Number(size) : undefined, stem: match[1] ?? '' };
}

/**
 * A file for each band: at its native pixel size, else the nearest copy, because level 2A has some bands at two or three
 * sizes.
 */
function chooseFiles(files: Sentinel2BandFile[], warnings: string[]): Map<string, Sentinel2BandFile> {
  const chosen = new Map<string, Sentinel2BandFile>();
  for (const { name, size } of [...SENTINEL2_BANDS, { name: 'SCL', size: 20 }]) {
    const distance = (file: Sentinel2BandFile) => Math.abs((file.size ?? size) - size);
    const [best] = files.filter((f) => f.band === name).sort((a, b) => distance(a) - distance(b));
    if (!best) continue;
    if (distance(best) > 0) {
      warnings.push(`${name} is a copy at ${best.size} m; its file at ${size} m is not there`);
    }
    chosen.set(name, best);
  }
  for (const name of ['QA60', 'CLASSI']) {
    const file = files.find((f) => f.band === name);
    if (file) chosen.set(name, file);
  }
  return chosen;
}

/** The files of bands, without masks. */
export const dataFiles = (files: Sentinel2BandFile[]) => files.filter((file) => BAND_NAMES.has(file.band));

// --- scene ------------------------------------------------------------------------------------------------------

/** Number of files opened concurrently: each JPEG 2000 file needs a process. */
const MAX_CONCURRENT_OPENS = 4;

/**
 * Describes the scene whose bands are among the files. Leaves out the aerosol optical thickness and water vapour of level 2A
 * (AOT, WVP): they are not reflectances, and all bands of a group have the same meaning. Uses only the best mask of a product.
 */
export async function describeSentinel2(facts: Sentinel2Scene, files: Sentinel2BandFile[]): Promise<Scene> {
  const { path, id, level, platform, span, radiometry, warnings } = facts;
  const chosen = chooseFiles(files, warnings);
  const mask = MASKS.find(({ file }) => chosen.has(file));
  const wanted = SENTINEL2_BANDS.filter(({ name }) => chosen.has(name));
  const names = [...wanted.map(({ name }) => name), ...(mask ? [mask.file] : [])];
  const headers = await mapConcurrent(names, MAX_CONCURRENT_OPENS, (name) =>
    openRaster((chosen.get(name) as Sentinel2BandFile).path),
  );
  const bands: UngroupedBand[] = wanted.map(({ name, commonName }, i) => ({
    name,
    commonName,
    header: headers[i],
    index: 0,
    resolution: nominalPixelSize(headers[i]),
    role: 'data',
    nodata: radiometry.nodata(headers[i].nodata),
    scale: radiometry.scale,
    offset: radiometry.offset(name),
  }));
  if (mask) bands.push(...maskBands(mask, headers[wanted.length]));
  const groups = groupBands(bands);
  return {
    path,
    id,
    collection: sentinel2Collection(level),
    platform,
    ...span,
    groups,
    quality: buildQualityLookups(groups, mask?.codes ?? {}),
    reflectanceTest: !mask,
    warnings,
  };
}

// --- masks ------------------------------------------------------------------------------------------------------

interface MaskProduct {
  file: string;
  nodata: number | null;
  /** By name, in the order of the file's bands; the first one with information decides. */
  codes: Record<string, (value: number) => number>;
}

/** Best first. */
const MASKS: MaskProduct[] = [
  { file: 'SCL', nodata: 0, codes: { SCL: sentinel2SceneClass } },
  {
    // Bit 10: opaque cloud, bit 11: cirrus.
    file: 'QA60',
    nodata: null,
    codes: { QA60: (v) => (bitAt(v, 10) || bitAt(v, 11) ? Mask.cloud : Mask.clear) },
  },
  {
    // PSD 15: band 1 opaque clouds, band 2 cirrus, band 3 snow and ice; 1 where it is so.
    file: 'CLASSI',
    nodata: null,
    codes: {
      CLASSI_OPAQUE: (v) => (v ? Mask.cloud : Mask.notAssessed),
      CLASSI_CIRRUS: (v) => (v ? Mask.cloud : Mask.notAssessed),
      CLASSI_SNOW: (v) => (v ? Mask.snow : Mask.clear),
    },
  },
];

function maskBands({ codes, nodata }: MaskProduct, header: RasterHeader): UngroupedBand[] {
  const bands = Object.keys(codes);
  if (header.bands < bands.length || !/^uint(8|16)$/.test(header.dataType)) {
    const hint = `The mask should have ${bands.length} bands of 8 or 16 bit codes; download it again.`;
    throw missingBand(header.path, bands[bands.length - 1], hint);
  }
  const resolution = nominalPixelSize(header);
  return bands.map((name, index) => qualityBand(name, header, index, resolution, nodata));
}
