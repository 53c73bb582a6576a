/**
 * Layers of the National Land Cover Database, as Erdas .img or GeoTIFF: land cover classes, and percents of impervious surface
 * and tree canopy with codes above 100. Pixels are never averaged. The files have no common tag. A file is NLCD if its name
 * and its content agree: one band of 8 bits in an Albers projection, with a colour table if it holds classes. A copy in
 * another projection is a plain raster, whose colour table protects its codes from averaging.
 */
import type { RasterHeader } from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { noDatetime } from '../errors.js';
import { nominalPixelSize } from '../georeferencing.js';
import { type DescribeOptions, type ProductFormat, slugify, stemOf } from '../scene.js';
import { datetimeOption } from './acquisition-time.js';
import { matchesRaster } from './probe.js';
import { MRLC, USGS } from './providers.js';

interface Layer {
  name: string;
  inName: RegExp;
  /** Classes come with a colour table. */
  classes: boolean;
  /** Nodata value if the file declares none: unclassified, or outside of the mapped area. */
  nodata: number;
}

/** The first layer whose words are in the name; land cover if the name only contains NLCD. */
const LAYERS: Layer[] = [
  { name: 'impervious_descriptor', inName: /descriptor|impdsc/i, classes: true, nodata: 127 },
  { name: 'impervious', inName: /impervious|fctimp/i, classes: false, nodata: 127 },
  { name: 'canopy', inName: /canopy|(^|_)tcc(_|$)/i, classes: false, nodata: 255 },
  { name: 'land_cover', inName: /^(?!.*(change|chg|confidence|cnf|index|spc))/i, classes: true, nodata: 0 },
];

export const nlcd: ProductFormat = {
  name: 'NLCD',

  async identify(candidate) {
    const layer = layerOf(stemOf(candidate.path));
    if (!layer || (candidate.fileType !== 'tiff' && candidate.fileType !== 'hfa')) return false;
    return matchesRaster(candidate, (header) => isNlcd(header, layer));
  },

  async describe({ path, header: open }, options) {
    const header = await open();
    const stem = stemOf(path);
    const layer = layerOf(stem) ?? LAYERS[LAYERS.length - 1];
    const { start, end, id } = yearOf(path, stem, options);
    const band: UngroupedBand = {
      name: layer.name,
      header,
      index: 0,
      resolution: nominalPixelSize(header),
      role: 'data',
      resampling: 'nearest',
      nodata: options.nodata ?? header.nodata ?? layer.nodata,
      scale: 1,
      offset: 0,
    };
    const scene = {
      path,
      id: options.id ?? slugify(id),
      collection: {
        id: 'nlcd',
        title: 'National Land Cover Database',
        license: 'PDDL-1.0',
        attribution: 'NLCD courtesy of the U.S. Geological Survey and the MRLC Consortium',
        providers: [USGS, MRLC],
      },
      platform: options.platform ?? null,
      start,
      end,
      groups: groupBands([band]),
      quality: [],
      warnings: [],
    };
    return [scene];
  },
};

function layerOf(stem: string): Layer | undefined {
  if (!/(^|[^a-z])nlcd([^a-z]|$)/i.test(stem)) return undefined;
  return LAYERS.find(({ inName }) => inName.test(stem));
}

function isNlcd({ bands, dataType, palette, crs }: RasterHeader, { classes }: Layer): boolean {
  return bands === 1 && dataType === 'uint8' && /\+proj=aea /.test(crs.proj4) && (palette || !classes);
}

/** The year of the map, from the name unless --datetime is given, and an id without the processing date. */
function yearOf(path: string, stem: string, options: DescribeOptions) {
  const named = /(?<!\d)(19[89]\d|20\d\d)(?!\d)/.exec(stem)?.[1];
  const id = stem.replace(/_(19|20)\d{6}(?=_|$)/, '');
  const flagged = datetimeOption(options);
  if (flagged) return { ...flagged, id: named ? id : `${id}_${new Date(flagged.start).getUTCFullYear()}` };
  if (!named) throw noDatetime(path);
  const year = Number(named);
  return { start: Date.UTC(year, 0, 1), end: Date.UTC(year, 11, 31, 23, 59, 59), id };
}
