/** Maps of narrow-band indices. */
import {
  compileExpression,
  type Program,
  parseExpression,
  parseWavelengthName,
  toIdentifier,
} from '../../expressions/index.js';
import { significant } from '../../html/index.js';
import { nearestBand } from '../../raster/index.js';
import { listOf, objectOf, TEXT } from '../../utils/json-schema.js';
import { type AnalysisInputs, selectBands } from '../analysis.js';
import { indexBands, unknownIndex } from '../errors.js';
import type { MapAnalysis, MapResults } from '../map-analysis.js';
import { bandMap, columns, htmlTable } from '../report.js';
import type { AnalysedBand } from '../tile-spectrum.js';

const define = (title: string, expression: string, source: string) => ({ title, expression, source });

/** Expressions over bands by wavelength. Bands are reflectance, 0 to 1. */
export const NARROW_BAND_INDICES = {
  ndvi: define(
    'normalized difference vegetation index',
    '(800nm - 670nm) / (800nm + 670nm)',
    'Rouse et al. 1974',
  ),
  ndvi705: define(
    'red-edge normalized difference',
    '(750nm - 705nm) / (750nm + 705nm)',
    'Gitelson and Merzlyak 1994',
  ),
  pri: define('photochemical reflectance index', '(531nm - 570nm) / (531nm + 570nm)', 'Gamon et al. 1992'),
  mcari: define(
    'modified chlorophyll absorption ratio index',
    '((700nm - 670nm) - 0.2 * (700nm - 550nm)) * (700nm / 670nm)',
    'Daughtry et al. 2000',
  ),
  tcari_osavi: define(
    'transformed chlorophyll absorption ratio index by optimized soil-adjusted vegetation index',
    '3 * ((700nm - 670nm) - 0.2 * (700nm - 550nm) * (700nm / 670nm)) / (1.16 * (800nm - 670nm) / (800nm + 670nm + 0.16))',
    'Haboudane et al. 2002',
  ),
  cri1: define('carotenoid reflectance index 1', '1 / 510nm - 1 / 550nm', 'Gitelson et al. 2002'),
  cri2: define('carotenoid reflectance index 2', '1 / 510nm - 1 / 700nm', 'Gitelson et al. 2002'),
  ari1: define('anthocyanin reflectance index 1', '1 / 550nm - 1 / 700nm', 'Gitelson et al. 2001'),
  ari2: define('anthocyanin reflectance index 2', '800nm * (1 / 550nm - 1 / 700nm)', 'Gitelson et al. 2001'),
  rep: define(
    'red-edge position by linear interpolation, nm',
    '700 + 40 * ((670nm + 780nm) / 2 - 700nm) / (740nm - 700nm)',
    'Guyot and Baret 1988',
  ),
  psri: define('plant senescence reflectance index', '(680nm - 500nm) / 750nm', 'Merzlyak et al. 1999'),
  sipi: define(
    'structure-insensitive pigment index',
    '(800nm - 445nm) / (800nm - 680nm)',
    'Penuelas et al. 1995',
  ),
  wbi: define('water band index', '900nm / 970nm', 'Penuelas et al. 1997'),
  ndwi: define('normalized difference water index', '(860nm - 1240nm) / (860nm + 1240nm)', 'Gao 1996'),
  msi: define('moisture stress index', '1599nm / 819nm', 'Hunt and Rock 1989'),
  ndii: define(
    'normalized difference infrared index',
    '(819nm - 1649nm) / (819nm + 1649nm)',
    'Hardisky et al. 1983',
  ),
  ndni: define(
    'normalized difference nitrogen index',
    '(log(1 / 1510nm) - log(1 / 1680nm)) / (log(1 / 1510nm) + log(1 / 1680nm))',
    'Serrano et al. 2002',
  ),
  ndli: define(
    'normalized difference lignin index',
    '(log(1 / 1754nm) - log(1 / 1680nm)) / (log(1 / 1754nm) + log(1 / 1680nm))',
    'Serrano et al. 2002',
  ),
  cai: define(
    'cellulose absorption index',
    '0.5 * (2000nm + 2200nm) - 2100nm',
    'Daughtry 2001, without the factor 100',
  ),
  clay: define('clay minerals ratio', '1650nm / 2215nm', 'Drury 1987'),
  ferrous: define('ferrous minerals ratio', '1650nm / 830nm', 'Segal 1982'),
  iron_oxide: define('ratio of ferric iron oxides', '660nm / 485nm', 'Segal 1982'),
};

type IndexName = keyof typeof NARROW_BAND_INDICES;
export const INDEX_NAMES = Object.keys(NARROW_BAND_INDICES) as IndexName[];

interface IndicesInputs extends AnalysisInputs {
  /** Names of the library, or expressions over bands. */
  indices: string[];
}

/** An index, and the bands from which it was computed. */
interface ComputedIndex {
  name: string;
  expression: string;
  /** Publication of an index of the library. */
  source?: string;
  /** `asked`: the name in the expression. */
  bands: { asked: string; name: string; wavelength: number }[];
}

interface IndicesFit {
  indices: string[];
}

export interface IndicesResults extends MapResults {
  indices: ComputedIndex[];
}

const MAX_INDICES = 50;
const MAX_SHOWN_MAPS = 8;
/** A band represents a wavelength within its FWHM, or within this distance if that is more. */
const WAVELENGTH_TOLERANCE_NM = 15;

export const spectralIndicesProcess: MapAnalysis<IndicesInputs, IndicesFit> = {
  name: 'indices',
  title: 'Spectral indices',
  description: `Maps of narrow-band indices: ${INDEX_NAMES.join(', ')}, or expressions over bands by wavelength. A band is the nearest good one, within its FWHM or 15 nm.`,
  properties: {
    indices: {
      type: 'array',
      items: { type: 'string', minLength: 1, maxLength: 1000 },
      minItems: 1,
      maxItems: MAX_INDICES,
      description: 'Names of the library, or expressions such as (860nm - 660nm) / (860nm + 660nm)',
    },
  },
  required: ['indices'],
  fit: objectOf({ indices: listOf(TEXT) }),
  check: ({ indices }) => {
    for (const text of indices) parseExpression(expressionOf(text));
  },
  run: async (analysed, inputs) => {
    const names = namesOf(inputs);
    const { bands } = analysed;
    const kept = [...new Set(bandsUsed(names, bands).flatMap((used) => [...used.values()]))].sort(
      (a, b) => a - b,
    );
    const programs = programsOf(names, (name) => kept.indexOf(bandAt(name, bands)));
    return {
      map: { method: { kind: 'expressions', programs }, bands: names },
      analysed: selectBands(analysed, kept),
      fit: { indices: names },
    };
  },
  conclude: ({ indices: names }, _, bands) => {
    const used = bandsUsed(names, bands);
    const computed = names.map((name, i): ComputedIndex => {
      const known = libraryName(name);
      return {
        name,
        expression: expressionOf(name),
        ...(known && { source: NARROW_BAND_INDICES[known].source }),
        bands: [...used[i]].map(([asked, band]) => ({
          asked,
          name: bands[band].name,
          wavelength: bands[band].wavelength,
        })),
      };
    });
    return {
      summary: { indices: computed },
      sections: [{ title: 'Indices', content: indexTable(computed) }],
      looks: names.slice(0, MAX_SHOWN_MAPS).map((name, i) => bandMap(name, i + 1)),
    };
  },
};

function indexTable(computed: ComputedIndex[]) {
  return htmlTable(
    columns(['index', 'expression', 'source', 'bands'], []),
    computed.map(({ name, expression, source = '', bands }) => [
      name,
      expression,
      source,
      bands.map((band) => `${band.asked}: ${band.name} (${significant(band.wavelength)} nm)`).join(', '),
    ]),
  );
}

/** Each index once; names of the library in lower case. */
function namesOf({ indices }: IndicesInputs): string[] {
  return [...new Set(indices.map((text) => libraryName(text) ?? text.trim()))];
}

function libraryName(text: string): IndexName | undefined {
  const name = text.trim().toLowerCase();
  return Object.hasOwn(NARROW_BAND_INDICES, name) ? (name as IndexName) : undefined;
}

function expressionOf(text: string): string {
  const name = libraryName(text);
  return name ? NARROW_BAND_INDICES[name].expression : text;
}

function programsOf(names: string[], bandOf: (name: string) => number): Program[] {
  return names.map((text) =>
    compileExpression(parseExpression(expressionOf(text)), (name) => {
      // An expression may contain names of the library.
      const known = libraryName(name);
      return known ? parseExpression(NARROW_BAND_INDICES[known].expression) : bandOf(name);
    }),
  );
}

/** The band for each name in each index. Throws TW_ANALYSIS_INDEX and TW_ANALYSIS_INDEX_BANDS. */
function bandsUsed(names: string[], bands: AnalysedBand[]): Map<string, number>[] {
  const missing: string[] = [];
  const used = names.map((text) => {
    const found = new Map<string, number>();
    programsOf([text], (name) => {
      const band = bandAt(name, bands);
      if (parseWavelengthName(name) === undefined && band < 0)
        throw unknownIndex(text, `there is no band or index ${JSON.stringify(name)}`, INDEX_NAMES);
      const lack = reasonNoBand(name, bands[band]);
      if (lack !== undefined) missing.push(`${text} needs ${lack}`);
      found.set(name, band);
      return band;
    });
    if (found.size === 0) throw unknownIndex(text, 'it names no band', INDEX_NAMES);
    return found;
  });
  if (missing.length > 0) throw indexBands([...new Set(missing)]);
  return used;
}

/** The index of a band by name, or of the band nearest to a wavelength; -1 for other names. */
function bandAt(name: string, bands: AnalysedBand[]): number {
  const wavelength = parseWavelengthName(name);
  if (wavelength !== undefined) return nearestBand(bands, wavelength, Infinity);
  return bands.findIndex((band) => toIdentifier(band.name) === name);
}

/** The reason why a band does not represent a wavelength; undefined if it does. */
function reasonNoBand(name: string, band: AnalysedBand | undefined): string | undefined {
  const asked = parseWavelengthName(name);
  if (asked === undefined || band === undefined) return undefined;
  const tolerance = Math.max(WAVELENGTH_TOLERANCE_NM, band.fwhm ?? 0);
  if (Math.abs(band.wavelength - asked) <= tolerance) return undefined;
  return `${asked} nm, and the nearest is ${band.name} at ${band.wavelength} nm (at most ${tolerance} nm away)`;
}
