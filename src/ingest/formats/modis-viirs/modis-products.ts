/**
 * Meaning of the numbers of common MODIS land products, from their user guides: MOD09 (surface reflectance, collection 6.1),
 * MOD10 (snow), MOD11 (temperature), MOD13 (vegetation indices), MCD12 (land cover) and MCD43 (nadir reflectance).
 */
import { Mask, type RasterHeader } from '../../../raster/index.js';
import type { UngroupedBand } from '../../ingest-band-groups.js';
import { bitAt } from '../shared/index.js';

/** Properties of a layer, apart from its name and header. */
export type LayerDescription = Omit<UngroupedBand, 'name' | 'header' | 'index' | 'resolution'>;

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

/** By short name without its first three letters: MOD is Terra, MYD Aqua, MCD both. */
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
export function looseBandName(fileName: string, longName: string | undefined, shortName: string): string {
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
