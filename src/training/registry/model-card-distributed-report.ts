/** Report of a model that several nodes trained together. */
import { plural } from '../../utils/plural.js';
import type { CellReport } from '../learners/index.js';

export interface DistributedReport {
  members: {
    node: string;
    places: number;
    /** Training patches, including their overlap. */
    patches: number;
    /**
     * Bytes over the connections of this rank to its neighbours, except for the last few. After a resume, bytes sent before the checkpoint
     * are included; bytes sent after it in the interrupted run are not.
     */
    bytesSent: number;
    bytesReceived: number;
    /** `bytesSent` divided by `leastBytes`; null for a single rank. */
    ratio: number | null;
  }[];
  /** Running nodes, with or without cells. Absent if an older version trained the model. */
  nodes?: number;
  steps: number;
  /** Values exchanged in each step: the trained weights. */
  parameters: number;
  /** Lower bound on the bytes that a rank sends in an all-reduce of float32: 2 (N - 1) / N x 4 x parameters x steps. */
  leastBytes: number;
  /** Scores of the model at each cell, beside baselines that are fitted to the cell. */
  places: ({ geocode: string } & CellReport)[];
}

/** Describes for people how many bytes a node sent, relative to the lower bound of an all-reduce. */
export function describeTraffic({ members, parameters, steps, nodes = 1 }: DistributedReport): string {
  const size = members.length;
  const work = `${plural(size, 'node')}, ${parameters} parameters, ${plural(steps, 'step')}`;
  const most = members.reduce((a, b) => (b.bytesSent > a.bytesSent ? b : a));
  if (most.ratio === null)
    return `${work}: nothing sent${nodes > 1 ? `, because one of ${nodes} nodes has ${most.places === 1 ? 'the only place' : `all ${most.places} places`}` : ''}`;
  const sent = (most.bytesSent / 1e6).toFixed(2);
  return `${work}: a node sent at most ${sent} MB, ${most.ratio.toFixed(3)} times 2 (N - 1) / N x 4 x parameters x steps`;
}
