/** Makes a map of each tile: with worker threads, or with child processes if an engine computes the values. */
import { join } from 'node:path';
import {
  type DeriveResults,
  deriveTiles,
  type PlannedDerivation,
  type TileDerivation,
} from '../../derive/index.js';
import type { JobContext } from '../../jobs/index.js';
import { isHyperspectral } from '../../raster/index.js';
import type { TileRecord } from '../../storage/index.js';
import { type AnalysisContext, NO_PIXEL } from '../jobs/index.js';
import type { MapTask } from '../output-tiles/index.js';
import type { LocalRx, PixelMethod } from '../pixel-methods/index.js';
import { type NetMethod, withMappers } from '../spectral-cnn/index.js';
import {
  findNeighbourSpectra,
  neighbourFiles,
  spectrumFile,
  type TileSpectrum,
} from '../spectrum-reading/index.js';

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
type MapJob = Pick<TileDerivation, 'facts' | 'parameters' | 'recipe'> &
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
function neighbourhoodRadius(method: MapMethod): number {
  if (method.kind === 'local-distance') return (method.outer - 1) / 2;
  return method.kind === 'net' ? (method.side - 1) / 2 : 0;
}
