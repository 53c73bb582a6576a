/**
 * Patches of other cells, on which a cell trains together with its own while it adapts the base. Without them, the model changes at will
 * for land that the training ground of the cell does not show, although the base knows this land (rehearsal: Robins 1995, "Catastrophic
 * forgetting, rehearsal and pseudorehearsal").
 */

import { readStateFile, writeStateFile } from '../learners/index.js';
import type { ModelSpec } from '../models/index.js';
import { concatPatches, type Patches, subsamplePatches } from '../patches/index.js';
import { adaptationEpochs } from './fine-tune-base.js';

/** Some training patches of one cell. */
export interface CellSample {
  /** Unique name of the cell. */
  cell: string;
  patches: Patches;
}

/** Number of patches of other cells over that of own patches. */
const OTHERS_FRACTION = 1 / 2;
/** Maximum number of cells that share patches, so that a region of any size exchanges a few megabytes. */
const MAX_SHARING_CELLS = 24;

/** Passes over the patches of a cell that an adaptation takes, if other cells share enough patches; those count as fractions of a pass. */
export const adaptationPasses = (epochs: number): number => adaptationEpochs(epochs) * (1 + OTHERS_FRACTION);

/** Returns the cells that share patches, spread evenly over the cells of a region, and how many patches each one shares. */
export function sharingCells(
  { maxPatches }: Pick<ModelSpec, 'maxPatches'>,
  cells: readonly string[],
): { cells: string[]; patches: number } {
  const sorted = cells.toSorted();
  const count = Math.min(sorted.length, MAX_SHARING_CELLS);
  return {
    cells: Array.from({ length: count }, (_, i) => sorted[Math.floor((i * sorted.length) / count)]),
    patches: Math.ceil((OTHERS_FRACTION * maxPatches) / Math.max(1, count - 1)),
  };
}

/** Returns the training patches of a cell together with those of other cells. */
export function withOtherCells(
  cell: string,
  train: Patches,
  samples: CellSample[],
): { patches: Patches; others: number } {
  const found = samples.filter((sample) => sample.cell !== cell).map(({ patches }) => patches);
  if (found.length === 0) return { patches: train, others: 0 };
  const others = subsamplePatches(concatPatches(found), Math.round(OTHERS_FRACTION * train.count));
  // Copies, because the sets become views of the result.
  return { patches: concatPatches([{ ...train }, { ...others }]), others: others.count };
}

/** Number of own patches at which a cell keeps half of its fine-tuning. Larger cells keep more. */
const HALF_KEPT_PATCHES = 60;

/**
 * The part of its fine-tuning that a cell keeps: n / (n + n0) for n own patches, a shrinkage towards the base that is stronger where a cell
 * has few patches. Without patches of other cells, which make a fine-tuning safe, it is half of that.
 */
export function keptFactor(patches: number, others: number): number {
  const safety = Math.min(1, 1 / 2 + others / (2 * OTHERS_FRACTION * patches));
  return (safety * patches) / (patches + HALF_KEPT_PATCHES);
}

const FORMAT = 'samples of a region';
/** Members of patches that the learners read. */
const ARRAYS = ['inputs', 'targets', 'targetMask', 'cloud'] as const;

/** A sample as JSON: the arrays are little-endian float32 in base64. */
export interface SampleMessage {
  cell: string;
  shape: Pick<Patches, 'count' | 'size' | 'inputBands' | 'targetBands'>;
  arrays: Partial<Record<(typeof ARRAYS)[number], string>>;
}

export function encodeSample({ cell, patches }: CellSample): SampleMessage {
  const { count, size, inputBands, targetBands } = patches;
  const base64 = ({ buffer, byteOffset, byteLength }: Float32Array) =>
    Buffer.from(buffer, byteOffset, byteLength).toString('base64');
  const arrays = ARRAYS.flatMap((name) => (patches[name] ? [[name, base64(patches[name])]] : []));
  return { cell, shape: { count, size, inputBands, targetBands }, arrays: Object.fromEntries(arrays) };
}

function decodeSample({ cell, shape, arrays }: SampleMessage): CellSample {
  // A copy, because float32 views must be aligned to four bytes.
  const floats = (text: string) => new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer);
  const { inputs = '', targets = '', targetMask, cloud } = arrays;
  const patches = {
    ...shape,
    inputs: floats(inputs),
    targets: floats(targets),
    ...(targetMask !== undefined && { targetMask: floats(targetMask) }),
    ...(cloud !== undefined && { cloud: floats(cloud) }),
  };
  return { cell, patches };
}

export const writeSamples = (path: string, samples: SampleMessage[]): Promise<void> =>
  writeStateFile(path, { task: FORMAT, samples } as SampleState, []);

/** Returns the messages of a file; undefined if it is missing or damaged. */
export const readSampleMessages = async (path: string): Promise<SampleMessage[] | undefined> =>
  (await readStateFile<SampleState>(path, FORMAT))?.state.samples;

interface SampleState {
  task: string;
  samples: SampleMessage[];
}

/** Returns the samples of a file; none if it is missing or damaged. */
export async function readSamples(path: string): Promise<CellSample[]> {
  return ((await readSampleMessages(path)) ?? []).map(decodeSample);
}
