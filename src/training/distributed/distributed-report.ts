/** What is told of a model that was trained on many nodes. */

import { plural } from '../../plural.js';
import type { Baselines } from '../evaluation/baselines.js';
import type { DisplayRange } from '../evaluation/display-range.js';
import {
  type Metrics,
  type ModelMetrics,
  pooledScore,
  pooledTargetStatistics,
  pooledTile,
} from '../evaluation/metrics.js';
import type { AppliedHoldOut, TrainValidationPatches } from '../patches/patches.js';
import type { TrainedCell } from '../workers/training-messages.js';
import type { ResumePoint } from './rank-checkpoints.js';
import type { CellScore, DataParallelResult } from './rank-messages.js';

export interface DistributedReport {
  members: {
    node: string;
    places: number;
    /** Patches for training, with their overlap. */
    patches: number;
    /**
     * Over its connections to the members before and after it, all but the last few bytes. Where it went on from a checkpoint, what was
     * sent up to there is counted, and what was sent after it in vain is not.
     */
    bytesSent: number;
    bytesReceived: number;
    /** Bytes sent over `leastBytes`; null in a ring of one. */
    ratio: number | null;
  }[];
  /** That run, with places and without. Absent where the model was trained by an older version of the program. */
  nodes?: number;
  steps: number;
  /** Numbers that are exchanged in a step: the trained weights. */
  parameters: number;
  /** That an all-reduce of float32 takes of each member: 2 (N - 1) / N x 4 x parameters x steps. */
  leastBytes: number;
  /** How the one model does at each place, beside baselines that are fitted to the place. */
  places: {
    geocode: string;
    patches: TrainValidationPatches['counts'];
    split: string;
    /** Absent in cards of older versions. */
    holdOut?: AppliedHoldOut;
    metrics: ModelMetrics;
    /** With which its images are scored; absent if a patch has one value. */
    displayRange?: DisplayRange;
    baseline: Baselines;
  }[];
}

/** `names` are those of the members, `nodes` the number of nodes that run. */
export function distributedReport(
  trained: DataParallelResult,
  names: string[],
  nodes: number,
): DistributedReport {
  const { members, steps, parameters } = trained;
  const size = members.length;
  const leastBytes = ((2 * (size - 1)) / size) * 4 * parameters * steps;
  return {
    members: members.map(({ places, patches, bytesSent, bytesReceived }, i) => ({
      node: names[i]!,
      places: places.length,
      ...{ patches, bytesSent, bytesReceived },
      ratio: size > 1 ? bytesSent / leastBytes : null,
    })),
    ...{ nodes, steps, parameters, leastBytes },
    places: placesOf(trained).map(
      ({ geocode, patches, split, holdOut, metrics, displayRange, baseline }) => ({
        ...{ geocode, patches, split, holdOut, metrics, baseline },
        ...(displayRange && { displayRange }),
      }),
    ),
  };
}

/** For people: from where it goes on, or why from nowhere. */
export function describeResumePoint({ epoch, unlike }: ResumePoint): string {
  if (epoch > 0) return `goes on from epoch ${epoch}`;
  return unlike
    ? 'begins anew: the nodes have no checkpoint of the same epoch'
    : 'begins with epoch 1: there is no checkpoint of this training';
}

/** For people: how much a node has sent, beside the least that an all-reduce takes. */
export function describeTraffic({ members, parameters, steps, nodes = 1 }: DistributedReport): string {
  const size = members.length;
  const work = `${plural(size, 'node')}, ${parameters} parameters, ${plural(steps, 'step')}`;
  const most = members.reduce((a, b) => (b.bytesSent > a.bytesSent ? b : a));
  if (most.ratio === null)
    return `${work}: nothing sent${nodes > 1 ? `, as ${most.places === 1 ? 'the place is' : `all ${most.places} places are`} with one of ${nodes} nodes` : ''}`;
  const sent = (most.bytesSent / 1e6).toFixed(2);
  return `${work}: at most ${sent} MB sent by a node, ${most.ratio.toFixed(3)} times 2 (N - 1) / N x 4 x parameters x steps`;
}

/** The scores of all places taken as one set. */
export function pooledCellScores(trained: DataParallelResult): TrainedCell {
  const { files, losses, bestEpoch, members, seconds } = trained;
  const places = placesOf(trained);
  const pooled = (side: 'train' | 'validation', of: (place: CellScore) => Metrics) =>
    pooledScore(
      places.map(({ spread }) => spread[side]),
      places.map(of),
    );
  const tile = pooledTile(places);
  const counts = (side: 'train' | 'validation') =>
    places.reduce((sum, { patches }) => sum + patches[side], 0);
  return {
    files: files!,
    epochs: losses.length,
    losses,
    bestEpoch,
    metrics: {
      train: pooled('train', ({ metrics }) => metrics.train),
      validation: pooled('validation', ({ metrics }) => metrics.validation),
      ...(tile && { tile }),
    },
    spread: pooledTargetStatistics(places.map(({ spread }) => spread.validation)),
    baseline: {
      mean: pooled('validation', ({ baseline }) => baseline.mean),
      linear: pooled('validation', ({ baseline }) => baseline.linear),
      ...(places[0].baseline.unchanged && {
        unchanged: pooled('validation', ({ baseline }) => baseline.unchanged!),
        nearest: pooled('validation', ({ baseline }) => baseline.nearest!),
        median: pooled('validation', ({ baseline }) => baseline.median!),
      }),
    },
    patches: { train: counts('train'), validation: counts('validation') },
    split: `${plural(places.length, 'place')}, each divided as for a model of its own`,
    bytesRead: members.reduce((sum, { bytesRead }) => sum + bytesRead, 0),
    seconds,
  };
}

const placesOf = ({ members }: DataParallelResult) =>
  members.flatMap(({ places }) => places).sort((a, b) => (a.geocode < b.geocode ? -1 : 1));
