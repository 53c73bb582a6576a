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
import { indexBands, unknownIndex } from '../errors.js';
import { type AnalysisInputs, selectBands } from '../jobs/index.js';
import { bandMap, columns, htmlTable } from '../report/index.js';
import { INDEX_NAMES, type IndexName, NARROW_BAND_INDICES } from '../spectra/index.js';
import type { MapAnalysis, MapResults } from '../spectral-maps/index.js';
import type { AnalysedBand } from '../spectrum-reading/index.js';

export interface IndicesInputs extends AnalysisInputs {
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
