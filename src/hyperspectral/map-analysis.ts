/** Analyses that make a map of each tile, as jobs. Worker threads compute the values, or child processes if they need an engine. */
import { join } from 'node:path';
import {
  DERIVE_RESULTS,
  type DeriveResults,
  derivedProperties,
  deriveTiles,
  type PlannedDerivation,
  RESUMABLE_PROCESS,
  selectedTiles,
  type TileDerivation,
} from '../derive/index.js';
import { messageOf } from '../errors.js';
import {
  type ConcludeContext,
  emptyCounts,
  type JobContext,
  mergeCounts,
  type Process,
  recordWarnings,
} from '../jobs/index.js';
import {
  defaultToRawSource,
  type Filter,
  type FilterParams,
  parseFilter,
  requireCollections,
} from '../query/index.js';
import { isHyperspectral } from '../raster/index.js';
import type { Storage, TileRecord, TileSource } from '../storage/index.js';
import { objectOf } from '../utils/json-schema.js';
import {
  ANALYSIS_PROPERTIES,
  type AnalysedCollection,
  type AnalysisContext,
  type AnalysisInputs,
  agreeOnBands,
  BANDS_SCHEMA,
  checkAnalysis,
  collectionOf,
  NO_PIXEL,
} from './analysis.js';
import type { Curve } from './charts.js';
import type { NetMethod } from './cnn/net.js';
import { withMappers } from './cnn/session.js';
import { noSpectra } from './errors.js';
import { sha256Digest } from './hash.js';
import type { LocalRx } from './methods/local-rx.js';
import type { PixelMethod } from './methods/methods.js';
import type { MapTask } from './output-tile.js';
import {
  bandsText,
  exampleSpectra,
  mapSections,
  type ReportMapStyle,
  renderAnalysisReport,
  type Section,
  tilesText,
  writeFiles,
} from './report.js';
import {
  type AnalysedBand,
  findNeighbourSpectra,
  neighbourFiles,
  spectrumFile,
  type TileSpectrum,
} from './tile-spectrum.js';

export type MapMethod = PixelMethod | LocalRx | NetMethod;
export type FittedMap<Method = MapMethod> = Pick<MapTask<Method>, 'method' | 'bands' | 'tags' | 'classes'>;
type MapPlan<Method> = AsyncIterable<PlannedDerivation<MapTask<Method>>>;

/** Derives the tiles that `plan` yields for a map. Throws TW_TRAIN_NO_ENGINE. */
export async function deriveMaps(
  context: AnalysisContext,
  { method, ...map }: FittedMap,
  plan: <Method extends MapMethod>(map: FittedMap<Method>) => MapPlan<Method>,
  job: JobContext,
  engine?: string,
): Promise<DeriveResults> {
  if (method.kind !== 'net') return deriveTiles(context, plan({ ...map, method }), job, NO_PIXEL);
  return withMappers(context, engine, (workers) =>
    deriveTiles({ ...context, workers }, plan({ ...map, method }), job, NO_PIXEL),
  );
}

/** Members of the derivation of a map that depend on the kind of job. */
type MapJob = Pick<TileDerivation, 'facts' | 'parameters' | 'recipe' | 'jobWarnings'> &
  Pick<MapTask, 'checksScale'> & {
    /** Metadata of the new files. */
    metadata: Record<string, string>;
    spectrumOf: (tile: TileRecord) => TileSpectrum | undefined;
  };

/** The derivation of the map of one tile, with the tiles around it if the method reads their pixels. */
export async function mapDerivation<Method extends MapMethod>(
  { storage, finder }: AnalysisContext,
  tile: TileRecord,
  spectrum: TileSpectrum,
  map: FittedMap<Method>,
  { metadata, checksScale, spectrumOf, ...derivation }: MapJob,
): Promise<TileDerivation<MapTask<Method>>> {
  const around = await findNeighbourSpectra(finder, tile, neighbourhoodRadius(map.method), spectrumOf);
  const group = spectrum.group.name;
  return {
    ...derivation,
    inputs: [tile],
    around: around.map((one) => one.tile),
    task: async (newTile, _, stage) => ({
      kind: 'map',
      ...map,
      group,
      ...(checksScale && { checksScale }),
      tile: { ...newTile, metadata: { ...newTile.metadata, ...metadata } },
      file: spectrumFile(storage, tile, spectrum),
      ...(isHyperspectral(map.tags ?? []) && { path: join(await stage(), `${group}.tif`) }),
      ...(around.length > 0 && { around: neighbourFiles(storage, around) }),
    }),
  };
}

/** Distance in pixels up to which a method reads the pixels around a pixel. */
export function neighbourhoodRadius(method: MapMethod): number {
  if (method.kind === 'local-distance') return (method.outer - 1) / 2;
  return method.kind === 'net' ? (method.side - 1) / 2 : 0;
}

/** A fitted analysis: the maps to make, equal in all runs of a job. */
export interface FittedAnalysis<Fit> {
  map: FittedMap;
  /** Present if the method reads only some of the bands that the nodes agreed on. */
  analysed?: AnalysedCollection;
  /** Plain JSON. */
  fit: Fit;
}

/** An analysis: its inputs, the fit to all tiles, and the conclusions. */
export interface MapAnalysis<Inputs extends AnalysisInputs, Fit> {
  /** The source of its tiles, and the end of its process id. */
  name: TileSource;
  title: string;
  description: string;
  /** JSON Schemas of its own inputs. */
  properties: object;
  /** Names of required inputs. */
  required?: string[];
  /** JSON Schema of the fit, which validates fits of other nodes. */
  fit: object;
  /** Throws if inputs that match the schema cannot be used with any data. */
  check?(inputs: Inputs): void | Promise<void>;
  /** Set if the report shows spectra of the collection. */
  showsSpectra?: true;
  /** Returns the same in all runs of a job. */
  run(analysed: AnalysedCollection, inputs: Inputs): Promise<FittedAnalysis<Fit>>;
  /** `examples`: spectra of the collection, if the report shows some. */
  conclude(fit: Fit, inputs: Inputs, bands: AnalysedBand[], examples: Curve[]): Conclusion;
  /** Stores results beside the tiles, such as a model, once per job. Returns members of the results. */
  publish?(storage: Storage, ended: FinishedMaps<Inputs, Fit>): Promise<object>;
}

/** State of a job whose tiles are all made. */
interface FinishedMaps<Inputs, Fit> {
  job: string;
  inputs: Inputs;
  fit: Fit;
  bands: AnalysedBand[];
  seconds: number;
}

/** The outcome of an analysis: results, files and report. */
export interface Conclusion {
  /** Members of the results. */
  summary: object;
  /** Files of the results beside the report, by their names. */
  files?: Record<string, Uint8Array>;
  facts?: string[];
  sections: Section[];
  /** Render styles for maps in the report. */
  looks?: ReportMapStyle[];
}

interface MapPart<Fit> extends DeriveResults {
  bands: AnalysedBand[];
  fit: Fit;
}

export interface MapResults extends DeriveResults {
  collection: string;
  /** Source of the tiles that were made. */
  source: TileSource;
  /** The bands that were analysed. */
  bands: AnalysedBand[];
  /** Names of the files of the job. */
  files: string[];
}

export function mapProcess<Inputs extends AnalysisInputs, Fit>(
  context: AnalysisContext,
  analysis: MapAnalysis<Inputs, Fit>,
): Process {
  const { name, title, description, properties, required = [] } = analysis;
  return {
    id: `analyse-${name}`,
    title,
    description,
    inputs: {
      type: 'object',
      required: ['filter', ...required],
      additionalProperties: false,
      properties: { ...ANALYSIS_PROPERTIES, ...properties },
    },
    ...RESUMABLE_PROCESS,
    usesBarrier: () => true,
    check: async (inputs) => {
      checkAnalysis(inputs);
      await analysis.check?.(inputs as Inputs);
    },
    merge: (parts) => {
      const [{ bands, fit }] = parts as [MapPart<Fit>];
      return { ...RESUMABLE_PROCESS.merge(parts), bands, fit };
    },
    part: { allOf: [DERIVE_RESULTS, objectOf({ bands: BANDS_SCHEMA, fit: analysis.fit })] },
    run: (inputs, job) => run(context, analysis, inputs as Inputs, job),
    conclude: async (part, job, inputs) => {
      RESUMABLE_PROCESS.conclude(part, job);
      const { fit, ...results } = part as MapPart<Fit>;
      const { bands } = results;
      const collection = collectionOf(inputs as Inputs);
      const published = await publish(context, analysis, { ...results, fit }, inputs as Inputs, job);
      job.message('writing the report');
      const { filter } = inputs as Inputs;
      // A picture that cannot be rendered must not fail a job whose maps are complete.
      const warn = (tile: string, error: unknown) =>
        job.log('warning', `the report lacks ${tile}: ${messageOf(error)}`);
      const examples = analysis.showsSpectra
        ? await exampleSpectra(context, defaultToRawSource(parseFilter(filter)), bands, warn)
        : [];
      const conclusion = analysis.conclude(fit, inputs as Inputs, bands, examples);
      const { summary, files, facts = [], sections, looks = [] } = conclusion;
      const report = renderAnalysisReport({
        title,
        collection,
        counts: results,
        madeAt: Date.now(),
        facts: [bandsText(bands), ...facts, tilesText(results.tiles + results.unchanged)],
        sections: [...(await mapSections(context, mapFilter(filter, name), looks, warn)), ...sections],
      });
      const all = { 'report.html': report, ...files };
      await writeFiles(context.storage, job, all);
      return { collection, source: name, ...results, ...summary, ...published, files: Object.keys(all) };
    },
  };
}

/**
 * Stores the trained model. Throws TW_QUERY_NO_COLLECTION if the collection was deleted, because no later deletion would remove the model.
 */
async function publish<Inputs extends AnalysisInputs, Fit>(
  { storage }: AnalysisContext,
  analysis: MapAnalysis<Inputs, Fit>,
  { fit, bands, tiles, unchanged, skipped }: MapPart<Fit>,
  inputs: Inputs,
  job: Pick<ConcludeContext, 'id' | 'started'>,
): Promise<object | undefined> {
  if (!analysis.publish) return undefined;
  const collection = collectionOf(inputs);
  await requireCollections(storage, { collections: collection });
  if (tiles + unchanged === 0) throw noSpectra(collection, Object.keys(skipped));
  const seconds = Math.max(0, Date.now() - job.started) / 1000;
  return analysis.publish(storage, { job: job.id, inputs, fit, bands, seconds });
}

/** Returns the filter of the maps of an analysis. Ids in the filter of the inputs are those of the input tiles. */
function mapFilter({ ids: _, ...filter }: FilterParams, source: TileSource): Filter {
  return parseFilter({ ...filter, source });
}

async function run<Inputs extends AnalysisInputs, Fit>(
  context: AnalysisContext,
  analysis: MapAnalysis<Inputs, Fit>,
  inputs: Inputs,
  job: JobContext,
): Promise<MapPart<Fit>> {
  const { job: recording, warnings } = recordWarnings(job);
  const agreed = await agreeOnBands(context, inputs, recording);
  const { map, fit, analysed = agreed } = await analysis.run(agreed, inputs);
  job.message(`making maps of ${map.bands.length} bands`);
  const results = await deriveMaps(
    context,
    map,
    (map) => planMaps(analysis.name, analysed, map, warnings),
    secondHalf(job, analysed.tiles),
  );
  const { skipped, failed, failures } = analysed.counts;
  const left = { ...emptyCounts(), skipped, failed, failures };
  return { ...results, ...mergeCounts([left, results]), bands: analysed.bands, fit };
}

/** The progress of work that begins when half of the job is done. */
function secondHalf(job: JobContext, tiles: number): JobContext {
  return {
    ...job,
    progress: (now) => {
      const ended = (now.done ?? 0) + (now.failed ?? 0) + (now.skipped ?? 0);
      job.progress({ ...now, share: 0.5 + Math.min(0.5, ended / Math.max(tiles, 1) / 2) });
    },
  };
}

async function* planMaps<Method extends MapMethod>(
  source: TileSource,
  { context, job, filter, spectrumOf, counts }: AnalysedCollection,
  map: FittedMap<Method>,
  jobWarnings: string[],
): AsyncGenerator<PlannedDerivation<MapTask<Method>>> {
  const recipe = sha256Digest(map);
  const metadata = { ANALYSIS: `${source} ${recipe}` };
  const failed = new Set(counts.failed.map(({ tile }) => tile));
  for await (const tile of selectedTiles(context.storage, filter, job.isMine)) {
    const spectrum = spectrumOf(tile);
    const facts = derivedProperties(tile, source);
    const parameters = {};
    // The former map of a tile without a spectrum does not fit the new maps. A tile that has only failed keeps its map.
    if (!spectrum) yield { obsolete: { facts, inputs: [tile], parameters } };
    else if (!failed.has(tile.id))
      yield mapDerivation(context, tile, spectrum, map, {
        ...{ facts, parameters, recipe, metadata, spectrumOf, jobWarnings },
      });
  }
}
