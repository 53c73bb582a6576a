/**
 * VIIRS land products on grids (HDF-EOS5): surface reflectance (VNP09GA, VNP09A1, VNP09H1), vegetation indices (VNP13), of all
 * platforms. Quality bits: VIIRS Surface Reflectance User's Guide 1.1 (QF1, QF2, state) and VIIRS Vegetation Index Product
 * Suite User Guide 2.1.2 (pixel reliability).
 */
import { Mask, type MultiDatasetFile, openRaster, type RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { noDatetime, notRecognised } from '../errors.js';
import { measurePixelSize } from '../georeferencing.js';
import type { DescribeOptions, InputProbe, ProductFormat, Resolution, Scene } from '../scene.js';
import { compactTimestamp, datetimeOption, parseEosdisTimeRange } from './acquisition-time.js';
import { hdf5Subdatasets } from './probe.js';
import { LP_DAAC, NASA } from './providers.js';
import { bitAt, buildQualityLookups } from './quality.js';

const PRODUCT = /^V(NP|J1|J2)\d\w*$/;
const PLATFORMS: Record<string, string> = { NP: 'suomi-npp', J1: 'noaa-20', J2: 'noaa-21' };

/** STAC common names by VIIRS band. */
const COMMON_NAMES: Record<string, string> = {
  I1: 'red',
  I2: 'nir',
  I3: 'swir16',
  M1: 'coastal',
  M3: 'blue',
  M4: 'green',
  M5: 'red',
  M7: 'nir08',
  M10: 'swir16',
  M11: 'swir22',
};

export const viirs: ProductFormat = {
  name: 'VIIRS',

  async identify(candidate) {
    return (await productOf(candidate)) !== null;
  },

  async describe(candidate, options) {
    const container = await productOf(candidate);
    if (!container) throw notRecognised(candidate.path, 'it is not a VIIRS product on a grid');
    return [await describeProduct(container, options)];
  },
};

async function productOf(candidate: InputProbe): Promise<MultiDatasetFile | null> {
  const found = await hdf5Subdatasets(candidate);
  const isProduct = PRODUCT.test(found?.metadata.ShortName ?? '') && found?.metadata.StructMetadata;
  return isProduct ? found : null;
}

async function describeProduct(container: MultiDatasetFile, options: DescribeOptions): Promise<Scene> {
  const { path, metadata } = container;
  const product = metadata.ShortName;
  const layers = container.subdatasets.filter(
    ({ name, shape }) => shape.length === 2 && kindOf(name) !== null,
  );
  const headers = await Promise.all(layers.map(({ name }) => openRaster(path, name)));
  const groups = groupBands(layers.map(({ name }, i) => describeBand(name, headers[i])));
  if (!groups.some(({ role }) => role === 'data')) {
    throw notRecognised(path, `${product} holds no reflectance and no vegetation index`);
  }
  const span = datetimeOption(options) ?? parseEosdisTimeRange(metadata);
  if (!span) throw noDatetime(path);
  const day = compactTimestamp(span.start).slice(0, 8);
  const tile = tileOf(headers[0]);
  return {
    path,
    id: options.id ?? [product, day, tile].filter(Boolean).join('_'),
    collection: {
      id: `viirs-${product.toLowerCase()}`,
      title: metadata.LongName ?? `VIIRS ${product}`,
      // NASA ESDIS data use policy, as for MODIS.
      license: 'CC0-1.0',
      attribution: 'NASA Land Processes Distributed Active Archive Center',
      providers: [NASA, LP_DAAC],
    },
    platform: options.platform ?? PLATFORMS[PRODUCT.exec(product)?.[1] ?? ''] ?? null,
    ...span,
    groups,
    quality: buildQualityLookups(groups, QUALITY_CODES),
    warnings: [],
  };
}

/** Tiles of the sinusoidal grid of MODIS and VIIRS are a tenth of half the sphere's circumference wide. */
function tileOf({ crs, transform }: RasterHeader): string | null {
  const radius = Number(/\+proj=sinu .*\+a=([\d.]+)/.exec(crs.proj4)?.[1]);
  if (!(radius > 0)) return null;
  const side = (radius * Math.PI) / 18;
  // The corner is written with six decimals; half a pixel keeps it inside of the tile.
  const h = 18 + Math.floor((transform.originX + transform.xx / 2) / side);
  const v = 9 - Math.ceil((transform.originY + transform.yy / 2) / side);
  return `h${String(h).padStart(2, '0')}v${String(v).padStart(2, '0')}`;
}

// --- bands ------------------------------------------------------------------------------------------------------

const REFLECTANCE = /\/SurfReflect_([IM]\d+)(?:_1)?$/;
const VEGETATION = /\/[^/]*\b(NDVI|EVI2?|(?:red|NIR|blue|green|SWIR\d) reflectance)$/;
const QUALITY = /\/(?:[^/]*\b)?(?:SurfReflect_)?(QF\d|State|VI Quality|pixel reliability)(?:_\w+)?$/;

/** The band's name and role; null for angles, counts and pointers, which are left out. */
function kindOf(layer: string): { name: string; role: 'data' | 'qa' } | null {
  const data = (REFLECTANCE.exec(layer) ?? VEGETATION.exec(layer))?.[1];
  if (data) return { name: data.replaceAll(' ', '_'), role: 'data' };
  const quality = QUALITY.exec(layer)?.[1];
  return quality ? { name: quality.replaceAll(' ', '_'), role: 'qa' } : null;
}

function describeBand(layer: string, header: RasterHeader): UngroupedBand {
  const { name, role } = kindOf(layer)!;
  const { scale = 1, offset = 0 } = header.bandTags[0];
  const isData = role === 'data';
  return {
    name,
    commonName: COMMON_NAMES[name],
    header,
    index: 0,
    role,
    resolution: resolutionOf(header),
    nodata: header.nodata ?? null,
    // Vegetation index products write divisors, like those of MODIS.
    scale: !isData ? 1 : scale > 1 ? 1 / scale : scale,
    offset: isData ? offset : 0,
  };
}

/** The grid's own step, so precise that 927 m is twice 463 m: their tiles then also have integer ratios. */
function resolutionOf(header: RasterHeader): Resolution {
  if (header.crs.geographic) return measurePixelSize(header);
  const { xx, yy } = header.transform;
  return { x: Number(xx.toPrecision(7)), y: Number(Math.abs(yy).toPrecision(7)) };
}

// --- quality ----------------------------------------------------------------------------------------------------

/** In order of precedence; a value without information leaves the pixel to the next one. */
const QUALITY_CODES: Record<string, (value: number) => number> = {
  // Bits 2-3: 0 confident clear, 1 probably clear, 2 probably cloudy, 3 confident cloudy.
  QF1: (v) => (bitAt(v, 3) ? Mask.cloud : Mask.notAssessed),
  QF2: (v) => (bitAt(v, 3) ? Mask.shadow : bitAt(v, 5) ? Mask.snow : Mask.clear),
  // Bits 0-1: 0 clear, 1 cloudy, 2 mixed, 3 not set, assumed clear.
  State: (v) =>
    (v & 3) === 1 || (v & 3) === 2
      ? Mask.cloud
      : bitAt(v, 2)
        ? Mask.shadow
        : bitAt(v, 12)
          ? Mask.snow
          : Mask.clear,
  // Ranks: 7 cloud shadow, 8 snow or ice, 9 cloud; higher ranks are estimates.
  pixel_reliability: (v) => {
    if (v > 9) return Mask.notAssessed;
    return v === 9 ? Mask.cloud : v === 8 ? Mask.snow : v === 7 ? Mask.shadow : Mask.clear;
  },
};
