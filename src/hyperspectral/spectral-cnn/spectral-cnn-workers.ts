/** Child processes in which networks are trained and applied. */

import type { MadeTile, TileMaker } from '../../derive/index.js';
import {
  type EngineName,
  EnginePool,
  EngineProcess,
  type Handler,
  resultOrFailure,
  selectEngineCached,
} from '../../engines/index.js';
import { netFailed } from '../errors.js';
import type { MapTask } from '../output-tiles/index.js';
import type { Standardisation } from '../pixel-methods/index.js';
import type { GroupGradient, NetTile, ParameterShape, PixelGroup } from './spectral-cnn-runtime.js';
import type { NetMethod, NetShape } from './spectral-cnn-specs.js';

/** Requests to the processes. Results are in the order of the groups. */
export type NetHandlers = {
  /** Builds a network and keeps its tiles in memory. Returns the shapes of its weights, in their order. */
  begin: Handler<{ shape: NetShape; tiles: NetTile[] }, ParameterShape[]>;
  gradients: Handler<{ weights: Float32Array; groups: PixelGroup[] }, GroupGradient[]>;
  values: Handler<{ weights: Float32Array; groups: PixelGroup[] }, Float32Array[]>;
  cams: Handler<{ weights: Float32Array; groups: PixelGroup[] }, { pixels: number[]; sums: Float64Array }[]>;
  files: Handler<{ weights: Float32Array; standard: Standardisation }, Record<string, Uint8Array>>;
  map: Handler<MapTask<NetMethod>, MadeTile | null>;
};

const SCRIPT = new URL('./spectral-cnn-worker.js', import.meta.url);

export class NetProcess extends EngineProcess<NetHandlers> {
  constructor(engine: EngineName) {
    super(SCRIPT, engine);
  }
}

/** Throws TW_ANALYSIS_NET if the process ends before it answers. */
export const resultOrNetFailure = <T>(answer: Promise<T>): Promise<T> => resultOrFailure(answer, netFailed);

/** Calls `work` with processes that apply networks, then ends them. If a process dies, only its tile fails. Throws TW_TRAIN_NO_ENGINE. */
export async function withMappers<T>(
  { workers: { threads } }: { workers: { threads: number } },
  engine: string | undefined,
  work: (mappers: TileMaker<MapTask<NetMethod>>) => Promise<T>,
): Promise<T> {
  const { name } = await selectEngineCached(engine);
  const pool = new EnginePool<NetHandlers>(SCRIPT, name, threads);
  try {
    return await work({
      threads,
      make: (task, signal) =>
        pool.run(signal, (child) => resultOrNetFailure(child.request('map', task, { signal }))),
    });
  } finally {
    pool.close();
  }
}
