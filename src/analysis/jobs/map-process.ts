/** Analyses that make a map of each tile, as jobs. */
import { join } from 'node:path';
import {
  DERIVE_RESULTS,
  type DeriveResults,
  deriveTiles,
  mergeSkipped,
  type PlannedDerivation,
  RESUMABLE_PROCESS,
  selectedTiles,
} from '../../derive/index.js';
import { messageOf } from '../../errors.js';
import type { ConcludeContext, JobContext, Process } from '../../jobs/index.js';
import { objectOf } from '../../json-schema.js';
import {
  defaultToRawSource,
  type Filter,
  type FilterParams,
  parseFilter,
  requireCollections,
} from '../../query/index.js';
import { isHyperspectral } from '../../raster/index.js';
import type { Storage, TileSource } from '../../storage/index.js';
import type { MapTask } from '../analysis-tasks.js';
import type { NetMethod } from '../convolutional-networks/network-method.js';
import { withMappers } from '../convolutional-networks/network-processes.js';
import { noSpectra } from '../errors.js';
import { sha256Digest } from '../numeric/hash.js';
import type { LocalRx } from '../pixel-methods/local-rx.js';
import type { PixelMethod } from '../pixel-methods/pixel-methods.js';
import type { Curve } from '../report/charts.js';
import { exampleSpectra } from '../report/example-spectra.js';
import { mapSections, type ReportMapStyle } from '../report/map-sections.js';
import { bandsText, renderAnalysisReport, type Section, tilesText } from '../report/render-report.js';
import { writeFiles } from '../report/result-files.js';
import { findNeighbourSpectra, neighbourFiles } from '../tile-reading/neighbour-tiles.js';
import type { AnalysedBand } from '../tile-reading/tile-spectrum.js';
import { ANALYSIS_PROPERTIES, type AnalysisInputs, checkAnalysis, collectionOf } from './analysis-inputs.js';
import {
  type AnalysedCollection,
  type AnalysisContext,
  agreeOnBands,
  BANDS_SCHEMA,
  MAX_LISTED_FAILURES,
  NO_PIXEL,
  spectrumFile,
} from './analysis-run.js';

type MapMethod = PixelMethod | LocalRx | NetMethod;
type FittedMap<Method> = Pick<MapTask<Method>, 'method' | 'bands' | 'tags' | 'classes'>;

/** How maps are made of tiles: what `fit` has found, the same in all runs of a job. */
export interface FittedAnalysis<Fit> {
  map: FittedMap<MapMethod>;
  /** With the bands that the method takes, if these are not all that were agreed on. */
  analysed?: AnalysedCollection;
  /** Plain JSON. */
  fit: Fit;
}

/** An analysis: what is asked for, what is fitted to all tiles, and what is said of it. */
export interface MapAnalysis<Inputs extends AnalysisInputs, Fit> {
  /** Also the source of its tiles, and the end of its process id. */
  name: TileSource;
  title: string;
  description: string;
  /** JSON Schemas of inputs beside those of all analyses. */
  properties: object;
  /** Names of inputs that must be given. */
  required?: string[];
  /** JSON Schema of what is fitted, by which that of other nodes is checked. */
  fit: object;
  /** Throws where inputs that match the schema cannot be used, whatever the data is. */
  check?(inputs: Inputs): void | Promise<void>;
  /** Set if the report shows spectra of the collection. */
  showsSpectra?: true;
  /** Returns the same in all runs of a job. */
  run(
    context: AnalysisContext,
    analysed: AnalysedCollection,
    inputs: Inputs,
    job: JobContext,
  ): Promise<FittedAnalysis<Fit>>;
  /** `examples`: spectra of the collection, if the report shows some. */
  conclude(fit: Fit, inputs: Inputs, bands: AnalysedBand[], examples: Curve[]): Conclusion;
  /** Stores what stays beside the tiles, once for a job. Returns members of the results. */
  publish?(storage: Storage, ended: FinishedMaps<Inputs, Fit>): Promise<object>;
}

/** State of a job whose tiles are all made. */
export interface FinishedMaps<Inputs, Fit> {
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
  files: Record<string, Uint8Array>;
  facts: string[];
  sections: Section[];
  /** Pictures of the tiles for the report. */
  looks: ReportMapStyle[];
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
    ...{ id: `analyse-${name}`, title, description },
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
      // A picture that cannot be drawn must not fail a job whose maps are made.
      const warn = (tile: string, error: unknown) =>
        job.log('warning', `the report lacks ${tile}: ${messageOf(error)}`);
      const examples = analysis.showsSpectra
        ? await exampleSpectra(context, defaultToRawSource(parseFilter(filter)), bands, warn)
        : [];
      const { summary, files, facts, sections, looks } = analysis.conclude(
        ...([fit, inputs as Inputs, bands, examples] as const),
      );
      const report = renderAnalysisReport({
        ...{ title, collection, counts: results, madeAt: Date.now() },
        facts: [bandsText(bands), ...facts, `${tilesText(results.tiles + results.unchanged)}`],
        sections: [...(await mapSections(context, mapFilter(filter, name), looks, warn)), ...sections],
      });
      const all = { 'report.html': report, ...files };
      await writeFiles(context.storage, job, all);
      return { collection, source: name, ...results, ...summary, ...published, files: Object.keys(all) };
    },
  };
}

/** Stores the trained model. Throws TW_QUERY_NO_COLLECTION if the collection was deleted, because nothing would ever delete the model. */
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

/** Returns the filter of the maps of an analysis. The ids of the inputs' filter are those of other tiles. */
function mapFilter({ ids: _, ...filter }: FilterParams, source: TileSource): Filter {
  return parseFilter({ ...filter, source });
}

async function run<Inputs extends AnalysisInputs, Fit>(
  context: AnalysisContext,
  analysis: MapAnalysis<Inputs, Fit>,
  inputs: Inputs,
  job: JobContext,
): Promise<MapPart<Fit>> {
  const agreed = await agreeOnBands(context, inputs, job);
  const { map, fit, analysed = agreed } = await analysis.run(context, agreed, inputs, job);
  job.message(`making maps of ${map.bands.length} bands`);
  const results = await makeMaps(context, analysis.name, analysed, map, secondHalf(job, analysed.tiles));
  const { skipped, failed, failures } = analysed.counts;
  results.skipped = mergeSkipped([results, { skipped }]);
  results.failed = [...failed, ...results.failed].slice(0, MAX_LISTED_FAILURES);
  results.failures += failures;
  return { ...results, bands: analysed.bands, fit };
}

/** Maps of networks are made by processes with an engine, the others by threads. */
async function makeMaps(
  context: AnalysisContext,
  source: TileSource,
  analysed: AnalysedCollection,
  { method, ...map }: FittedAnalysis<unknown>['map'],
  job: JobContext,
): Promise<DeriveResults> {
  if (method.kind !== 'net')
    return deriveTiles(context, planTiles(context, source, analysed, { ...map, method }, job), job, NO_PIXEL);
  return withMappers(context, undefined, (workers) =>
    deriveTiles(
      { ...context, workers },
      planTiles(context, source, analysed, { ...map, method }, job),
      job,
      NO_PIXEL,
    ),
  );
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

/** Pixels that a method sees around a pixel. */
function neighbourhoodRadius(method: MapMethod): number {
  if (method.kind === 'local-distance') return (method.outer - 1) / 2;
  return method.kind === 'net' ? (method.side - 1) / 2 : 0;
}

async function* planTiles<Method extends MapMethod>(
  { storage, finder }: AnalysisContext,
  source: TileSource,
  { filter, spectrumOf, counts }: AnalysedCollection,
  map: FittedMap<Method>,
  job: JobContext,
): AsyncGenerator<PlannedDerivation<MapTask<Method>>> {
  const recipe = sha256Digest(map);
  const failed = new Set(counts.failed.map(({ tile }) => tile));
  for await (const tile of selectedTiles(storage, filter, job.isMine)) {
    const spectrum = spectrumOf(tile);
    const { id, collection, scene, grid, geocode, start, end, platform } = tile;
    const made = {
      facts: { collection, scene, grid, geocode, source, start, end, platform },
      inputs: [tile],
      parameters: {},
    };
    if (!spectrum || failed.has(id)) {
      // A former map does not fit the new ones, unless its tile has only failed.
      if (!spectrum) yield { obsolete: made };
      continue;
    }
    const around = await findNeighbourSpectra(finder, tile, neighbourhoodRadius(map.method), spectrumOf);
    yield {
      ...made,
      around: around.map((one) => one.tile),
      recipe,
      task: async (newTile, _, stage) => ({
        ...{ kind: 'map', ...map, group: spectrum.group.name },
        tile: { ...newTile, metadata: { ...newTile.metadata, ANALYSIS: `${source} ${recipe}` } },
        file: spectrumFile(storage, tile, spectrum),
        ...(isHyperspectral(map.tags ?? []) && { path: join(await stage(), `${spectrum.group.name}.tif`) }),
        ...(around.length > 0 && { around: neighbourFiles(storage, around) }),
      }),
    };
  }
}
