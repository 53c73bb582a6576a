/**
 * Gridded MODIS land products (level 3 and daily level 2G): HDF4-EOS files, and single layers as GeoTIFFs that kept the
 * metadata. The short name in the metadata identifies them. Every layer on a two-dimensional grid is a band.
 */

import { basename } from 'node:path';
import { TilewrightError } from '../../errors.js';
import { Mask, type MultiDatasetFile, openRaster, type RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { noDatetime, notRecognised } from '../errors.js';
import {
  type InputProbe,
  type ProductFormat,
  type QualityBand,
  type Resolution,
  type SourceGroup,
  stemOf,
} from '../scene.js';
import { DAY_MS, datetimeOption, parseEosdisTimeRange } from './acquisition-time.js';
import { LP_DAAC, NASA, NSIDC } from './providers.js';
import { bitAt, buildQualityLookup } from './quality.js';

/** Properties of a layer, apart from its name and header. */
type LayerDescription = Omit<UngroupedBand, 'name' | 'header' | 'index' | 'resolution'>;

interface Product {
  /** The measured layers by name. All others of the product are quality and viewing conditions. */
  measured: [name: RegExp, meaning: (match: RegExpExecArray) => LayerDescription][];
  quality?: { name: string; code: (value: number) => number };
}

/** STAC common names of bands 1 to 7; band 5 (1.24 um) has none. */
const COMMON_NAMES = [undefined, 'red', 'nir08', 'blue', 'green', undefined, 'swir16', 'swir22'];

const measured = (scale: number, offset: number, nodata: number, commonName?: string): LayerDescription => ({
  role: 'data',
  resampling: 'bilinear',
  nodata,
  scale,
  offset,
  ...(commonName && { commonName }),
});

const classes = (nodata: number): LayerDescription => ({
  role: 'data',
  resampling: 'nearest',
  nodata,
  scale: 1,
  offset: 0,
});

/** 16-bit state QA of MOD09: cloud state in bits 0-1, shadow in bit 2, snow in bit 12. */
function stateCode(value: number): number {
  if (value === 65535) return Mask.notAssessed;
  if ((value & 3) === 1 || (value & 3) === 2) return Mask.cloud;
  return bitAt(value, 2) ? Mask.shadow : bitAt(value, 12) ? Mask.snow : Mask.clear;
}

/**
 * VI Quality of MOD13: bits 0-1 are 2 if the pixel is most probably cloudy and 3 if no pixel was produced; 14 snow, 15 shadow.
 */
function vegetationCode(value: number): number {
  if ((value & 3) === 3) return Mask.notAssessed;
  if ((value & 3) === 2) return Mask.cloud;
  return bitAt(value, 15) ? Mask.shadow : bitAt(value, 14) ? Mask.snow : Mask.clear;
}

/** Classes of MOD10A2; those that are not listed (missing, no decision, night, saturated, fill) give no information. */
const SNOW_EXTENT = new Map<number, number>([
  [25, Mask.clear], // no snow
  [37, Mask.clear], // lake
  [39, Mask.clear], // ocean
  [50, Mask.cloud],
  [100, Mask.snow], // lake ice
  [200, Mask.snow],
]);

/** NDSI snow cover of MOD10A1: 0 to 100 percent, codes above. Snow from 40 on, as in the older binary maps. */
function snowCoverCode(value: number): number {
  if (value <= 100) return value >= 40 ? Mask.snow : Mask.clear;
  if (value === 250) return Mask.cloud;
  return value === 237 || value === 239 ? Mask.clear : Mask.notAssessed;
}

const reflectance = (layer: string): Product => ({
  measured: [[/^sur_refl_b0([1-7])$/, ([, band]) => measured(1e-4, 0, -28672, COMMON_NAMES[Number(band)])]],
  quality: { name: layer, code: stateCode },
});

const VEGETATION: Product = {
  // The files have scale_factor 10000, which is a divisor.
  measured: [
    [/^(NDVI|EVI)$/, () => measured(1e-4, 0, -3000)],
    [
      /^(red|NIR|blue|MIR)_reflectance$/,
      ([, name]) => {
        const common = { red: 'red', NIR: 'nir08', blue: 'blue', MIR: 'swir22' }[name];
        return measured(1e-4, 0, -1000, common);
      },
    ],
  ],
  quality: { name: 'VI_Quality', code: vegetationCode },
};

const TEMPERATURE: Product = {
  // Cloudy pixels have no temperature, so the layers have no code for cloud.
  measured: [
    [/^LST_/, () => measured(0.02, 0, 0)],
    [/^Emis_/, () => measured(0.002, 0.49, 0)],
  ],
};

/**
 * By short name without its first three letters: MOD is Terra, MYD Aqua, MCD both. The meaning of the numbers is that of the user guides of
 * MOD09 (surface reflectance, collection 6.1), MOD10 (snow), MOD11 (temperature), MOD13 (vegetation indices), MCD12 (land cover) and MCD43
 * (nadir reflectance).
 */
const PRODUCTS: Record<string, Product> = {
  '09GA': reflectance('state_1km'),
  '09GQ': reflectance('state_1km'),
  '09A1': reflectance('sur_refl_state_500m'),
  '09Q1': reflectance('sur_refl_state_250m'),
  '10A1': {
    measured: [[/^(NDSI_Snow_Cover|Snow_Albedo_Daily_Tile)$/, () => classes(255)]],
    quality: { name: 'NDSI_Snow_Cover', code: snowCoverCode },
  },
  '10A2': {
    measured: [[/^Maximum_Snow_Extent$/, () => classes(255)]],
    quality: {
      name: 'Maximum_Snow_Extent',
      code: (value) => SNOW_EXTENT.get(value) ?? Mask.notAssessed,
    },
  },
  '11A1': TEMPERATURE,
  '11A2': TEMPERATURE,
  '12Q1': { measured: [[/^LC_(Type|Prop)\d$/, () => classes(255)]] },
  '13A1': VEGETATION,
  '13A2': VEGETATION,
  '13A3': VEGETATION,
  '13Q1': VEGETATION,
  '43A4': {
    measured: [
      [/^Nadir_Reflectance_Band([1-7])$/, ([, band]) => measured(1e-4, 0, 32767, COMMON_NAMES[Number(band)])],
    ],
  },
};

/** Parts of the `long_name` of measured layers with other names, from the files of collection 6.1. */
const LONG_NAMES: [longName: RegExp, name: (match: RegExpExecArray) => string][] = [
  [/Surface[ _]Reflectance[ _](?:for[ _])?Band[ _]([1-7])/i, ([, band]) => `sur_refl_b0${band}`],
  [
    /(day|night)time .*Land-surface Temperature/i,
    ([, half]) => `LST_${/day/i.test(half!) ? 'Day' : 'Night'}_1km`,
  ],
  [/^Band (\d\d) emissivity/i, ([, band]) => `Emis_${band}`],
];

/**
 * The name of the layer of a file with one layer. Archives name such files by the number of the layer (`_B01`, `_BR_B06`) and
 * keep its `long_name`.
 */
function looseBandName(fileName: string, longName: string | undefined, shortName: string): string {
  const own = modisBandName(fileName, shortName);
  const product = productOf(shortName);
  if (!product || longName === undefined || isKnown(product, own)) return own;
  const known = LONG_NAMES.flatMap(([pattern, name]) => {
    const match = pattern.exec(longName);
    return match ? [name(match)] : [];
  });
  const long = known[0] ?? modisBandName(longName.trim(), shortName);
  return isKnown(product, long) || /(^|_)B\d\d(_|$)/i.test(own) ? long : own;
}

const isKnown = ({ measured, quality }: Product, name: string) =>
  quality?.name === name || measured.some(([pattern]) => pattern.test(name));

const productOf = (shortName: string): Product | undefined => PRODUCTS[shortName.slice(3)];

/** "250m 16 days NDVI" -> NDVI, sur_refl_b01_1 -> sur_refl_b01: removes the part that is equal in all layers of a product. */
export function modisBandName(layer: string, shortName: string): string {
  const plain = layer.replace(/^\d+ ?k?m (16 days|monthly) /, '').replace(/[^A-Za-z0-9._-]+/g, '_');
  return /^M.D09G/.test(shortName) ? plain.replace(/_1$/, '') : plain;
}

/** Properties of a layer, from the table of its product, or else from the file. A declared nodata value takes precedence. */
export function describeLayer(shortName: string, name: string, header: RasterHeader): LayerDescription {
  const product = productOf(shortName);
  if (!product) return describeLayerFromTags(name, header);
  for (const [pattern, meaning] of product.measured) {
    const match = pattern.exec(name);
    if (!match) continue;
    const known = meaning(match);
    return { ...known, nodata: header.nodata ?? known.nodata };
  }
  return { ...calibrationOf(header), role: 'qa', nodata: null };
}

/** Integers without a factor are codes. Nothing else distinguishes them from measurements, and codes must not be averaged. */
function describeLayerFromTags(name: string, header: RasterHeader): LayerDescription {
  const calibration = calibrationOf(header);
  if (/(^|_)(QA|QC|quality|state|obs|num|zenith|azimuth|angle|pnt)(_|$|\d)/i.test(name))
    return { ...calibration, role: 'qa', nodata: null };
  const codes = !header.dataType.startsWith('float') && calibration.scale === 1;
  const resampling = codes ? 'nearest' : 'bilinear';
  return { ...calibration, role: 'data', resampling, nodata: header.nodata ?? null };
}

/** MODIS land products write some factors as divisors. No quantity is stored in steps of a thousand. */
const DIVISOR = 1000;

function calibrationOf({ bandTags: [{ scale = 1, offset = 0 }] }: RasterHeader) {
  return { scale: scale >= DIVISOR ? 1 / scale : scale, offset };
}

/** The layer with cloud information, and its mask codes; undefined if there is none. */
export function qualityLayerOf(shortName: string): Product['quality'] {
  return productOf(shortName)?.quality;
}

type Metadata = Record<string, string>;

interface ModisLayer {
  name: string;
  header: RasterHeader;
}

export const modis: ProductFormat = {
  name: 'MODIS',

  async identify(candidate) {
    // If the file cannot be opened, the raster format reports the error.
    return shortNameOf(await metadataOf(candidate).catch(() => ({}))) !== undefined;
  },

  async describe(candidate, options) {
    const { path } = candidate;
    const metadata = await metadataOf(candidate);
    const shortName = shortNameOf(metadata);
    if (!shortName) throw notRecognised(path, 'its metadata name no MODIS product');
    const warnings: string[] = [];
    const layers =
      candidate.fileType === 'hdf4'
        ? await layersOf(await candidate.subdatasets(), warnings)
        : [looseLayer(await candidate.header(), metadata, shortName)];
    const bands = layers.map(({ name, header }): UngroupedBand => {
      const band = modisBandName(name, shortName);
      const resolution = nominalResolution(header);
      return { name: band, header, index: 0, resolution, ...describeLayer(shortName, band, header) };
    });
    const groups = groupBands(bands);
    const span = datetimeOption(options) ?? parseEosdisTimeRange(metadata);
    if (!span) throw noDatetime(path);
    const id = granuleId(shortName, span.start, metadata);
    const scene = {
      path,
      id: options.id ?? (candidate.fileType === 'hdf4' ? id : `${id}_${bands[0].name}`),
      collection: {
        id: `modis-${shortName.toLowerCase()}`,
        title: metadata.LONGNAME ?? `MODIS ${shortName}`,
        // NASA ESDIS data use policy: data of missions that NASA leads are CC0 unless marked otherwise.
        license: 'CC0-1.0',
        attribution: 'MODIS data courtesy of NASA',
        // Snow and sea ice are 10 and 29.
        providers: [NASA, /^M..(10|29)/.test(shortName) ? NSIDC : LP_DAAC],
      },
      platform: options.platform ?? platformOf(shortName),
      ...span,
      groups,
      quality: qualityOf(groups, shortName, warnings),
      warnings,
    };
    return [scene];
  },
};

async function metadataOf({ fileType, subdatasets, header }: InputProbe): Promise<Metadata> {
  if (fileType === 'hdf4') return (await subdatasets()).metadata;
  return fileType === 'tiff' ? (await header()).metadata : {};
}

function shortNameOf(metadata: Metadata): string | undefined {
  return /^M(?:OD|YD|CD)\d\d[A-Z0-9]*$/.exec(metadata.SHORTNAME ?? '')?.[0];
}

const platformOf = (shortName: string) =>
  shortName.startsWith('MOD') ? 'terra' : shortName.startsWith('MYD') ? 'aqua' : null;

// --- layers -----------------------------------------------------------------------------------------------------

/** Leaves out layers without georeferencing, such as tables. Throws if no layer has any, as in a swath. */
async function layersOf({ path, subdatasets }: MultiDatasetFile, warnings: string[]): Promise<ModisLayer[]> {
  const found: ModisLayer[] = [];
  const left: string[] = [];
  let reason: unknown;
  for (const { name, shape } of subdatasets) {
    if (shape.length === 2) {
      try {
        found.push({ name, header: await openRaster(path, name) });
        continue;
      } catch (error) {
        if (!(error instanceof TilewrightError) || error.code !== 'TW_RASTER_NO_CRS') throw error;
        reason = error;
      }
    }
    left.push(name);
  }
  if (found.length === 0) throw reason ?? notRecognised(path, 'it has no layer on a two-dimensional grid');
  if (left.length > 0) warnings.push(`layers that are no map are left out: ${left.join(', ')}`);
  return found;
}

/** The file is named after its granule, then its layer. Any other name is used as the layer's name. */
function looseLayer(header: RasterHeader, metadata: Metadata, shortName: string): ModisLayer {
  const stem = stemOf(header.path);
  const granule = stemOf(metadata.LOCALGRANULEID ?? '');
  const name = granule && stem.startsWith(granule) ? stem.slice(granule.length) : stem;
  const fileName = name.replace(/^[^A-Za-z0-9]+/, '') || basename(stem);
  return { name: looseBandName(fileName, metadata.long_name, shortName), header };
}

/** The pixel size of the sinusoidal grid, 231.6564, 463.3127 or 926.6254 m; degrees are converted to metres on the equator. */
function nominalResolution({ crs, transform: { xx, xy, yx, yy } }: RasterHeader): Resolution {
  const unit = crs.geographic ? (Math.PI / 180) * 6_371_007.181 : 1;
  const metres = (length: number) => Number((length * unit).toPrecision(7));
  return { x: metres(Math.hypot(xx, yx)), y: metres(Math.hypot(xy, yy)) };
}

// --- metadata ---------------------------------------------------------------------------------------------------

/** MOD10A2.A2022033.h09v05: product, first day, tile. Global products have no tile. */
function granuleId(shortName: string, start: number, metadata: Metadata): string {
  const year = new Date(start).getUTCFullYear();
  const day = 1 + Math.floor((start - Date.UTC(year, 0, 1)) / DAY_MS);
  const [h, v] = [metadata.HORIZONTALTILENUMBER, metadata.VERTICALTILENUMBER].map((number) =>
    /^\d{1,2}$/.test(number ?? '') ? number.padStart(2, '0') : undefined,
  );
  const tile = h !== undefined && v !== undefined ? `.h${h}v${v}` : '';
  return `${shortName}.A${year}${String(day).padStart(3, '0')}${tile}`;
}

function qualityOf(groups: SourceGroup[], shortName: string, warnings: string[]): QualityBand[] {
  const layer = qualityLayerOf(shortName);
  if (!layer) return [];
  const band = buildQualityLookup(groups, layer.name, layer.code);
  if (!band) warnings.push('the layer with cloud information is missing: cloud is not assessed');
  return band ? [band] : [];
}
