/** A worker thread: merges the segments of a checkpoint. */
import { handleTasksByKind } from '../../async/index.js';
import { mergeSegments, type SegmentSlice } from './segment.js';

const HANDLERS = {
  merge({ slices, isComplete }: { slices: SegmentSlice[]; isComplete: boolean }): Uint8Array {
    return new Uint8Array(mergeSegments(slices, isComplete));
  },
};

export type MergeHandlers = typeof HANDLERS;

handleTasksByKind(HANDLERS, ({ buffer }) => [buffer as ArrayBuffer]);
