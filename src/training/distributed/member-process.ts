import type { ChildProcess } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { receivedError } from '../../errors.js';
import { forkWithEngine } from '../engine/fork.js';
import type { EngineName } from '../engine/load-engine.js';
import { leftRing } from '../errors.js';
import { join } from './doors.js';
import {
  type FromMember,
  type MemberData,
  type MemberTask,
  type MemberTraining,
  NEXT,
  PREVIOUS,
  type ToMember,
  type TrainedTogether,
} from './messages.js';
import type { TogetherOptions } from './train-together.js';

/** The process of this node in a distributed training. Invariant: one question at a time. */
export class MemberProcess {
  private readonly child: ChildProcess;

  constructor(
    private readonly node: string,
    engine: EngineName,
    threads: number,
  ) {
    this.child = forkWithEngine(new URL('./child.js', import.meta.url), engine, { threads, streams: 2 });
  }

  /** Reads the node's places, and says what of them can be trained on. */
  read(task: MemberTask): Promise<MemberData> {
    return this.ask({ read: task }, (answer) => ('data' in answer ? answer.data : undefined));
  }

  /** Trains with the others, who are reached by `links`; a ring of one has none. */
  train(
    training: MemberTraining,
    links: { previous: Duplex; next: Duplex } | undefined,
    { onBegin, onEpoch }: Pick<TogetherOptions, 'onBegin' | 'onEpoch'>,
  ): Promise<TrainedTogether> {
    if (links) {
      const streams = this.child.stdio as unknown as Duplex[];
      join(links.previous, streams[PREVIOUS]);
      join(links.next, streams[NEXT]);
    }
    return this.ask({ train: training }, (answer) => {
      if ('begins' in answer) onBegin?.(answer.begins);
      if ('epoch' in answer) onEpoch?.(answer.epoch);
      return 'trained' in answer ? answer.trained : undefined;
    });
  }

  /** Resolves when all members are ready to leave, as it is called when this one needs nothing more of the others. */
  async leave(): Promise<void> {
    await this.ask({ leave: true }, (answer) => ('left' in answer ? answer : undefined));
  }

  end(): void {
    this.child.kill('SIGKILL');
  }

  /** Throws what the process answers in place of it, and TW_TRAIN_RING where it ends. */
  private ask<T>(question: ToMember, answerOf: (answer: FromMember) => T | undefined): Promise<T> {
    const { child } = this;
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        child.off('message', onMessage).off('error', onError).off('exit', onExit);
        settle();
      };
      const fail = (detail: string) => finish(() => reject(leftRing(this.node, detail)));
      const onMessage = (message: FromMember) => {
        if ('error' in message) return finish(() => reject(receivedError(message.error)));
        const answer = answerOf(message);
        if (answer !== undefined) finish(() => resolve(answer));
      };
      const onError = ({ message }: Error) => fail(message);
      const onExit = (code: number | null, signal: string | null) =>
        fail(`its training process ended (${signal ?? `exit code ${code}`}), most often for want of memory`);
      child.on('message', onMessage).on('error', onError).on('exit', onExit);
      child.send(question, (error) => {
        if (error) fail(error.message);
      });
    });
  }
}
