/** The requests that the process of a node in a distributed training answers, and the result of the training. */

import type { Handler } from '../../engines/index.js';
import type { Baselines } from '../evaluation/baselines.js';
import type { DisplayRange } from '../evaluation/display-range.js';
import type { EpochLoss, ModelMetrics, Spread } from '../evaluation/metrics.js';
import type { AppliedHoldOut, PatchDataset } from '../patches/patches.js';
import type { CardContext } from '../registry/model-card.js';
import type { ModelFiles } from '../registry/saved-model.js';
import type { PlaceError, PlaceTask } from '../workers/training-messages.js';
import type { Beginning, KeptTraining } from './rank-checkpoints.js';
import type { RingPlace } from './ring-connection.js';

/** What is said of a place. */
export interface MemberPlace {
  geocode: string;
  /** Those that it is trained and validated on. */
  tiles: CardContext['tiles'];
}

/** The places of one node. */
export interface MemberTask {
  model: string;
  places: (MemberPlace & Pick<PlaceTask, 'id' | 'dates' | 'pairs' | 'validationFrom'>)[];
}

/** What of them can be trained on. */
export interface MemberData {
  usable: string[];
  /** Patches for training, with their overlap. */
  patches: number;
  skipped: { id: string; reason: string }[];
  failed: ({ id: string } & PlaceError)[];
}

export interface MemberTraining extends RingPlace {
  seed: number;
  epochs?: number;
  patience?: number;
  checkpoint: KeptTraining;
}

/** How the model does at one place. */
export interface PlaceScore extends MemberPlace {
  patches: PatchDataset['counts'];
  split: string;
  holdOut: AppliedHoldOut;
  metrics: ModelMetrics;
  /** Display range of the place's own training patches. Absent if a patch has one value. */
  displayRange?: DisplayRange;
  /** Of the true values. */
  spread: { train: Spread; validation: Spread };
  /** On the same validation patches, fitted to the place's own training patches. */
  baseline: Baselines;
}

/** One member's part in it. */
export interface MemberShare {
  places: PlaceScore[];
  /** Patches for training, with their overlap. */
  patches: number;
  bytesRead: number;
}

export interface TrainedTogether {
  /** The same at all members, but for the files: only the first gives them. */
  files?: ModelFiles;
  losses: EpochLoss[];
  /** The epoch whose weights are kept. */
  bestEpoch: number;
  steps: number;
  /** Numbers that are exchanged in a step. */
  parameters: number;
  members: (MemberShare & Traffic)[];
  seconds: number;
}

/** Bytes that went over a member's connections, also before the checkpoint from which it went on. */
export interface Traffic {
  bytesSent: number;
  bytesReceived: number;
}

/** Its file descriptors, to the members before and after it. */
export const PREVIOUS = 4;
export const NEXT = 5;

export type MemberHandlers = {
  read: Handler<MemberTask, MemberData>;
  train: Handler<MemberTraining, TrainedTogether, { begins: Beginning } | { epoch: EpochLoss }>;
  /** Sent when the model is stored. Resolves when the other members leave as well. */
  leave: Handler<undefined, void>;
};
