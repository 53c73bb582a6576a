/** Child processes in which networks are trained and applied. */
import { Slots } from '../../jobs/index.js';
import {
  chosenEngine,
  type EngineName,
  EngineProcess,
  type Handler,
  ProcessEnded,
} from '../../training/index.js';
import type { MadeTile, TileMaker } from '../../wrangle/index.js';
import type { Standard } from '../classifier/network.js';
import { netFailed } from '../errors.js';
import type { MapTask } from '../tasks.js';
import type { GroupGradient, NetTile, Parameters, PixelGroup } from './compute.js';
import type { NetMethod } from './net-method.js';
import type { NetShape } from './nets.js';

/** Group by group where a list of groups is given. */
export type NetHandlers = {
  /** Begins with a network and its tiles. Returns what the weights are, in their order. */
  begin: Handler<{ shape: NetShape; tiles: NetTile[] }, Parameters[]>;
  gradients: Handler<{ weights: Float32Array; groups: PixelGroup[] }, GroupGradient[]>;
  values: Handler<{ weights: Float32Array; groups: PixelGroup[] }, Float32Array[]>;
  cams: Handler<{ weights: Float32Array; groups: PixelGroup[] }, { pixels: number[]; sums: Float64Array }[]>;
  files: Handler<{ weights: Float32Array; standard: Standard }, Record<string, Uint8Array>>;
  map: Handler<MapTask<NetMethod>, MadeTile | null>;
};

export class NetProcess extends EngineProcess<NetHandlers> {
  constructor(engine: EngineName) {
    super(new URL('./child.js', import.meta.url), engine);
  }
}

/** Invariants: at most `threads` processes are alive, each busy with at most one tile; a dead one gets no tile. Close it when done. */
export class NetMappers implements TileMaker<MapTask<NetMethod>> {
  private children: NetProcess[] = [];
  private readonly slots: Slots;

  constructor(
    private readonly engine: EngineName,
    readonly threads: number,
  ) {
    this.slots = new Slots(threads);
  }

  /** A child that dies fails its tile alone. Throws TW_ANALYSIS_NET, the signal's reason, and what the child throws. */
  async make(task: MapTask<NetMethod>, signal: AbortSignal): Promise<MadeTile | null> {
    return this.slots.run(signal, () => asked(this.idleChild().request('map', task, { signal })));
  }

  /** Call it when no task runs or waits. */
  close(): void {
    for (const child of this.children) child.close();
  }

  private idleChild(): NetProcess {
    this.children = this.children.filter(({ alive }) => alive);
    const idle = this.children.find(({ busy }) => !busy);
    if (idle) return idle;
    const child = new NetProcess(this.engine);
    this.children.push(child);
    return child;
  }
}

/** Works with processes that apply networks, and ends them. Throws TW_TRAIN_NO_ENGINE. */
export async function withMappers<T>(
  { workers }: { workers: { threads: number } },
  work: (mappers: NetMappers) => Promise<T>,
): Promise<T> {
  const { name } = await chosenEngine();
  const mappers = new NetMappers(name, workers.threads);
  try {
    return await work(mappers);
  } finally {
    mappers.close();
  }
}

/** The answer of a child. Throws TW_ANALYSIS_NET if the child ends before it. */
export async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ProcessEnded)) throw error;
    throw netFailed.because(error, `its process ended with ${error.message}, most often for want of memory`);
  }
}
