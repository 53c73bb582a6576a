/** A subscription as it is stored. Times are milliseconds since 1970. */
import type { IngestInputs, StacSource } from '../ingest/index.js';
import type { JobStatus } from '../storage/index.js';
import { messageCheck, NUMBER, objectOf, TEXT } from '../utils/json-schema.js';

/** The inputs of the job of a round. */
export type SubscriptionInputs = Pick<
  IngestInputs,
  'collection' | 'grid' | 'precision' | 'bbox' | 'compress' | 'cloudTest'
> & { stac: Omit<StacSource, 'url' | 'items'> & { url: string } };

export type SubscriptionState = 'active' | 'paused';

export interface Round {
  /** The time for which it was planned, which identifies it; for a round that was asked for, its start. */
  planned: number;
  startedAt: number;
  /** Absent between the claim of the round and the start of its job. */
  job?: string;
  status: JobStatus;
  finishedAt?: number;
  /** The scenes that an ended round has stored. */
  result?: RoundResult;
  error?: { code: string; message: string };
}

/** Numbers of scenes, and of the tiles of the new ones. */
export interface RoundResult {
  /** New scenes, and those that have changed. */
  ingested: number;
  unchanged: number;
  failed: number;
  tiles: number;
}

export interface SubscriptionRecord {
  id: string;
  created: number;
  inputs: SubscriptionInputs;
  /** Time between two rounds, ms. */
  every: number;
  state: SubscriptionState;
  nextRunAt: number;
  /** The last round. */
  round?: Round;
  /** Start of the last round that has stored all scenes of its search. */
  succeededAt?: number;
}

/** True until the job of the round has ended. */
export const isRunning = (round: Round | undefined): round is Round =>
  round !== undefined && round.finishedAt === undefined;

export const checkRecord = messageCheck(
  objectOf(
    {
      id: TEXT,
      created: NUMBER,
      inputs: objectOf({ stac: objectOf({ url: TEXT }) }),
      every: NUMBER,
      state: { enum: ['active', 'paused'] satisfies SubscriptionState[] },
      nextRunAt: NUMBER,
    },
    { round: objectOf({ planned: NUMBER, startedAt: NUMBER, status: TEXT }), succeededAt: NUMBER },
  ),
);
