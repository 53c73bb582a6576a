/**
 * Sentinel-2 bands in a folder without the SAFE structure: renamed or copied by hand, or in the layout of object stores
 * (B05.jp2 or R20m/B05.jp2 beside tileInfo.json, B05.tif beside a STAC item). Properties come from names and these documents,
 * then from options. Each guess is a warning.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { noDatetime } from '../errors.js';
import { type DescribeOptions, type InputProbe, type ProductFormat, type Scene, slugify } from '../scene.js';
import { compactTimestamp, datetimeOption, parseTime } from './acquisition-time.js';
import {
  dataFiles,
  describeSentinel2,
  parseBandFileName,
  type Radiometry,
  requireSingleScene,
  type Sentinel2BandFile,
  type Sentinel2Level,
  sentinel2Id,
} from './sentinel2-bands.js';
import { FIRST_DAY_WITH_OFFSET } from './stac-sidecar.js';

export const sentinel2Loose: ProductFormat = {
  name: 'Sentinel-2 bands',

  // The bands of other sensors have other numbers (B5) or are not JPEG 2000.
  async identify({ path, entries }) {
    const own = (name: string) => /\.jp2$/i.test(name) || /(^|_)(S2[A-Z]_|T\d\d[A-Z]{3}_)/.test(name);
    const named = /^S2[A-Z]_/.test(basename(path));
    const bands = dataFiles(await bandsOf({ path, entries }));
    return bands.some((file) => named || own(basename(file.path)));
  },

  async describe(candidate, options) {
    const bands = await bandsOf(candidate);
    const stems = [...new Set(dataFiles(bands).map(({ stem }) => stem))].sort();
    requireSingleScene(candidate.path, stems.length, options);
    // A document does not define to which of several scenes it belongs.
    const documents = stems.length > 1 ? NO_DOCUMENTS : await readDocuments(candidate);
    const scenes: Scene[] = [];
    for (const stem of stems) {
      const files = bands.filter((file) => file.stem === stem || file.band === 'CLASSI');
      const facts = factsOf([stem, ...documents.texts, basename(candidate.path)]);
      facts.sensed ??= documents.sensed;
      const warnings = ['bands without their SAFE metadata', ...documents.warnings];
      const path = stems.length > 1 ? join(candidate.path, stem) : candidate.path;
      scenes.push(
        await describeStem(path, files, { ...facts, shifted: documents.shifted }, options, warnings),
      );
    }
    return scenes;
  },
};

/** Bands in a folder and in its folders R10m, R20m and R60m. */
async function bandsOf({
  path,
  entries,
}: Pick<InputProbe, 'path' | 'entries'>): Promise<Sentinel2BandFile[]> {
  const names = [...(entries ?? [])];
  for (const entry of entries ?? []) {
    if (!/^R[126]0m\/$/.test(entry)) continue;
    for (const name of await readdir(join(path, entry))) names.push(entry + name);
  }
  return names.map((name) => parseBandFileName(join(path, name))).filter((file) => file !== null);
}

interface Facts {
  level?: Sentinel2Level;
  platform?: string;
  /** Start of the datatake and time of the tile, milliseconds since 1970. */
  datatake?: number;
  sensed?: number;
  orbit?: number;
  mgrs?: string;
  baseline?: number;
  /** True if stored numbers have the offset of baseline 04.00; undefined if no document says so. */
  shifted?: boolean;
}

// --- what names say -----------------------------------------------------------------------------------------------

const PRODUCT_NAME = /S2([A-Z])_MSI(L1C|L2A)_(\d{8}T\d{6})_N(\d{4})_R(\d{3})_T(\d\d[A-Z]{3})/;
/** The time in long names is the processing time, so it is not used. */
const LONG_NAME =
  /S2([A-Z])_(?:OPER|USER)_MSI_(L1C|L2A)_TL_.{4}_\d{8}T\d{6}_A(\d{6})_T(\d\d[A-Z]{3})(?:_N(\d\d\.\d\d))?/;
const SHORT_NAME = /(?:^|_)T(\d\d[A-Z]{3})_(\d{8}T\d{6})(?:_|$)/;

/** Properties from all texts; the first value wins. */
function factsOf(texts: string[]): Facts {
  const facts: Facts = {};
  for (const text of texts)
    for (const [key, value] of Object.entries(factsOfName(text))) {
      if (value !== undefined) Object.assign(facts, { [key]: facts[key as keyof Facts] ?? value });
    }
  return facts;
}

function factsOfName(text: string): Facts {
  const product = PRODUCT_NAME.exec(text);
  if (product) {
    const [, satellite, level, time, baseline, orbit, mgrs] = product;
    return {
      level: level as Sentinel2Level,
      platform: `sentinel-2${satellite.toLowerCase()}`,
      datatake: timeOfName(time),
      baseline: Number(baseline) / 100,
      orbit: Number(orbit),
      mgrs,
    };
  }
  const long = LONG_NAME.exec(text);
  if (long) {
    const [, satellite, level, absolute, mgrs, baseline] = long;
    return {
      level: level as Sentinel2Level,
      platform: `sentinel-2${satellite.toLowerCase()}`,
      orbit: relativeOrbit(satellite, Number(absolute)),
      mgrs,
      ...(baseline && { baseline: Number(baseline) }),
    };
  }
  const short = SHORT_NAME.exec(text);
  return short ? { mgrs: short[1], datatake: timeOfName(short[2]) } : {};
}

const timeOfName = (text: string) =>
  parseTime(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)$/, '$1-$2-$3T$4:$5:$6Z'));

/** The cycle has 143 orbits. Its start was derived from delivered products, which contain both numbers. */
function relativeOrbit(satellite: string, absolute: number): number | undefined {
  const start = { A: -2, B: 27 }[satellite];
  return start === undefined ? undefined : ((absolute - start) % 143) + 1;
}

// --- what documents say -------------------------------------------------------------------------------------------

interface Documents {
  /** Names of products in them. */
  texts: string[];
  sensed?: number;
  shifted?: boolean;
  warnings: string[];
}

const NO_DOCUMENTS: Documents = { texts: [], warnings: [] };

const MAX_DOCUMENT_BYTES = 4e6;

/** Reads `tileInfo.json` and STAC items in the folder. */
async function readDocuments({ path, entries }: InputProbe): Promise<Documents> {
  const found: Documents = { texts: [], warnings: [] };
  for (const name of (entries ?? []).filter((entry) => /\.json$/i.test(entry)).slice(0, 20)) {
    const document = await readJson(join(path, name));
    if (document === undefined) {
      found.warnings.push(`${name} is not a JSON document and is skipped`);
      continue;
    }
    const text = (key: string) => (typeof document[key] === 'string' ? document[key] : undefined);
    found.texts.push(...TITLE_KEYS.map(text).filter((title) => title !== undefined));
    const time = parseTime(text('datetime') ?? text('timestamp') ?? '');
    if (!Number.isNaN(time)) found.sensed ??= time;
    if (/^(true|1)$/i.test(String(document['earthsearch:boa_offset_applied']))) found.shifted = false;
  }
  return found;
}

/** Keys of tileInfo.json and STAC items for the name of the product. */
const TITLE_KEYS = ['productName', 's2:product_uri', 'sentinel:product_id', 'id'];

/** The members of a JSON document and of its `properties` (STAC Item); undefined if the document is not JSON or is far too large. */
async function readJson(path: string): Promise<Record<string, unknown> | undefined> {
  if ((await stat(path)).size > MAX_DOCUMENT_BYTES) return undefined;
  const text = await readFile(path, 'utf8');
  try {
    const { properties, ...rest } = JSON.parse(text) ?? {};
    return { ...rest, ...(typeof properties === 'object' && properties) };
  } catch {
    // The caller adds a warning: such a document only supplements names and options.
    return undefined;
  }
}

// --- scene --------------------------------------------------------------------------------------------------------

async function describeStem(
  path: string,
  files: Sentinel2BandFile[],
  facts: Facts,
  options: DescribeOptions,
  warnings: string[],
): Promise<Scene> {
  const { datatake, orbit, mgrs } = facts;
  const platform = options.platform ?? facts.platform ?? null;
  const taken = facts.sensed ?? datatake;
  const span = datetimeOption(options) ?? (taken === undefined ? undefined : { start: taken, end: taken });
  if (!span) throw noDatetime(path);
  const level = facts.level ?? guessLevel(files, options, warnings);
  const id = mgrs
    ? sentinel2Id({ platform, level, datatake: datatake ?? span.start, orbit, mgrs })
    : `${slugify(basename(path))}_${compactTimestamp(span.start)}`;
  const radiometry = radiometryOf(facts, span.start, options, warnings);
  return describeSentinel2(
    { path, id: options.id ?? id, level, platform, span, radiometry, warnings },
    files,
  );
}

function guessLevel(
  files: Sentinel2BandFile[],
  { collection }: DescribeOptions,
  warnings: string[],
): Sentinel2Level {
  const asked = /^sentinel-2-(l1c|l2a)$/.exec(collection ?? '')?.[1];
  if (asked) return asked.toUpperCase() as Sentinel2Level;
  if (files.some(({ band }) => band === 'B10')) return 'L1C';
  const guess = files.some(({ band, size }) => band === 'SCL' || (size && band !== 'CLASSI')) ? 'L2A' : 'L1C';
  warnings.push(
    `level ${guess} is assumed; name the other with --collection sentinel-2-l1c or sentinel-2-l2a`,
  );
  return guess;
}

function radiometryOf(facts: Facts, time: number, options: DescribeOptions, warnings: string[]): Radiometry {
  const scale = options.scale ?? 1e-4;
  const nodata = (declared = 0) => options.nodata ?? declared;
  if (options.offset !== undefined) return { scale, offset: () => options.offset as number, nodata };
  const { shifted = facts.baseline === undefined ? undefined : facts.baseline >= 4 } = facts;
  const offset = (shifted ?? time >= FIRST_DAY_WITH_OFFSET) ? -0.1 : 0;
  if (shifted === undefined) {
    warnings.push(
      `offset ${offset} is assumed by the date; reprocessed scenes (baseline 04.00 and later) have -0.1: say --offset`,
    );
  }
  return { scale, offset: () => offset, nodata };
}
