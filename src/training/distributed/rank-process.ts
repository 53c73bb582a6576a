import type { Duplex } from 'node:stream';
import { type EngineName, EngineProcess, ProcessEnded } from '../../engines/index.js';
import { leftRing } from '../errors.js';
import type { TogetherOptions } from './data-parallel-training.js';
import {
  type MemberData,
  type MemberHandlers,
  type MemberTask,
  type MemberTraining,
  NEXT,
  PREVIOUS,
  type TrainedTogether,
} from './rank-messages.js';
import { join } from './rendezvous.js';

/** The process of this node in a distributed training. Every method throws TW_TRAIN_RING if the process ends, and what it throws. */
export class MemberProcess {
  private readonly process: EngineProcess<MemberHandlers>;

  constructor(
    private readonly node: string,
    engine: EngineName,
    threads: number,
  ) {
    const script = new URL('./rank-worker.js', import.meta.url);
    this.process = new EngineProcess(script, engine, { threads, streams: 2 });
  }

  /** Reads the node's places, and says what of them can be trained on. */
  read(task: MemberTask): Promise<MemberData> {
    return this.orLeftRing(this.process.request('read', task));
  }

  /** Trains with the others, who are reached by `links`; a ring of one has none. */
  train(
    training: MemberTraining,
    links: { previous: Duplex; next: Duplex } | undefined,
    { onBegin, onEpoch }: Pick<TogetherOptions, 'onBegin' | 'onEpoch'>,
  ): Promise<TrainedTogether> {
    if (links) {
      join(links.previous, this.process.stream(PREVIOUS));
      join(links.next, this.process.stream(NEXT));
    }
    const trained = this.process.request('train', training, {
      onProgress(progress) {
        if ('begins' in progress) onBegin?.(progress.begins);
        else onEpoch?.(progress.epoch);
      },
    });
    return this.orLeftRing(trained);
  }

  /** Resolves when all members are ready to leave, as it is called when this one needs nothing more of the others. */
  leave(): Promise<void> {
    return this.orLeftRing(this.process.request('leave', undefined));
  }

  end(): void {
    this.process.close();
  }

  private async orLeftRing<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof ProcessEnded)) throw error;
      const detail = `its training process ended (${error.message}), most often for want of memory`;
      throw leftRing.because(error, this.node, detail);
    }
  }
}
