import type { Duplex } from 'node:stream';
import { type EngineName, EngineProcess, ProcessEnded } from '../../engines/index.js';
import { nodeLost } from '../errors.js';
import type { DataParallelOptions } from './data-parallel-training.js';
import {
  type DataParallelResult,
  NEXT_RANK_FD,
  PREVIOUS_RANK_FD,
  type RankHandlers,
  type ReadCellsRequest,
  type ReadCellsResult,
  type TrainRankRequest,
} from './rank-messages.js';
import { pipeBothWays } from './rank-rendezvous.js';

/** The process of this rank. Every method throws TW_TRAIN_RING if the process ends, and the errors of the process. */
export class RankProcess {
  private readonly process: EngineProcess<RankHandlers>;

  constructor(
    private readonly node: string,
    engine: EngineName,
    threads: number,
  ) {
    const script = new URL('./rank-worker.js', import.meta.url);
    this.process = new EngineProcess(script, engine, { threads, streams: 2 });
  }

  /** Reads the cells of the node, and returns which are usable. */
  read(task: ReadCellsRequest): Promise<ReadCellsResult> {
    return this.orNodeLost(this.process.request('read', task));
  }

  /** Trains with the other ranks over `links`; undefined for a single rank. */
  train(
    training: TrainRankRequest,
    links: { previous: Duplex; next: Duplex } | undefined,
    { onBegin, onEpoch }: Pick<DataParallelOptions, 'onBegin' | 'onEpoch'>,
  ): Promise<DataParallelResult> {
    if (links) {
      pipeBothWays(links.previous, this.process.stream(PREVIOUS_RANK_FD));
      pipeBothWays(links.next, this.process.stream(NEXT_RANK_FD));
    }
    const trained = this.process.request('train', training, {
      onProgress(progress) {
        if ('begins' in progress) onBegin?.(progress.begins);
        else onEpoch?.(progress.epoch);
      },
    });
    return this.orNodeLost(trained);
  }

  /** Call it when this rank needs nothing more from the others. Resolves when all ranks are ready to leave. */
  shutdown(): Promise<void> {
    return this.orNodeLost(this.process.request('leave', undefined));
  }

  end(): void {
    this.process.close();
  }

  private async orNodeLost<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error;
      const detail = `its training process ended (${error.message}), usually because of too little memory`;
      throw nodeLost.because(error, this.node, detail);
    }
  }
}
