/**
 * Gridded MODIS land products (level 3 and daily level 2G): HDF4-EOS files, and single layers as GeoTIFFs that kept the
 * metadata. The short name in the metadata identifies them. Every layer on a two-dimensional grid is a band.
 */
import { basename } from 'node:path';
import { TilewrightError } from '../../../errors.js';
import { type MultiDatasetFile, openRaster, type RasterHeader } from '../../../raster/index.js';
import { noDatetime, notRecognised } from '../../errors.js';
import { groupBands, type UngroupedBand } from '../../ingest-band-groups.js';
import type {
  InputProbe,
  ProductFormat,
  QualityBand,
  Resolution,
  SourceGroup,
} from '../../ingest-scene-description.js';
import {
  buildQualityLookup,
  DAY_MS,
  datetimeOption,
  LP_DAAC,
  NASA,
  NSIDC,
  parseEosdisTimeRange,
  stemOf,
} from '../shared/index.js';
import { describeLayer, looseBandName, modisBandName, qualityLayerOf } from './modis-products.js';

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
