/**
 * Coordinate reference systems of the EPSG registry as PROJ defines them, from the table that tools/make-epsg-table.py writes.
 */
import { readFileSync } from 'node:fs';
import type { Datum } from './datum.js';

export interface EpsgEntry {
  /** A PROJ string with its shift to WGS 84, without `+no_defs`. */
  proj4: string;
  /** See `Crs.datumErrorMetres`. */
  errorMetres: number;
}

let loaded: string | undefined;
const table = () => (loaded ??= readFileSync(new URL('./epsg.tsv', import.meta.url), 'latin1'));

/** The entry of a code; undefined if PROJ does not know it, or proj4js lacks its projection. */
export function epsgEntry(code: number): EpsgEntry | undefined {
  // Searches lines instead of parsing them: few of the six thousand are ever needed.
  const start = table().indexOf(`\n${code}\t`);
  return start < 0 ? undefined : parseEntry(lineAt(start + 1));
}

/** The datum of a geographic system by its name in WKT (WKT 1, WKT 2 or ESRI); undefined if it is unknown. */
export function datumByName(name: string): Datum | undefined {
  const key = name.toLowerCase().replace(/[^a-z0-9]/g, '');
  if (key === '') return undefined;
  const found = new RegExp(`\\n[^\\n]*\\t(?:[^\\t\\n]* )?${key}(?= |\\n)`).exec(table());
  return found ? datumFromEntry(parseEntry(lineAt(found.index + 1))) : undefined;
}

/** The datum of a geographic entry. */
export function datumFromEntry({ proj4, errorMetres }: EpsgEntry): Datum {
  return { proj4: proj4.replace('+proj=longlat ', ''), errorMetres };
}

function lineAt(start: number): string {
  return table().slice(start, table().indexOf('\n', start));
}

function parseEntry(line: string): EpsgEntry {
  const [, metres, proj4] = line.split('\t');
  return { proj4: proj4!, errorMetres: metres === '?' ? Infinity : Number(metres) };
}
