/** Reads the labelled pixels of a job with the pixels around them; each run reads its own tiles. */

import type { SelectedEngine } from '../../engines/index.js';
import { type TileRecord, withPinnedTiles } from '../../storage/index.js';
import { mixedEngines } from '../../training/index.js';
import { COUNT, listOf, messageCheck, objectOf, TEXT } from '../../utils/json-schema.js';
import {
  classesOfCodes,
  type Labels,
  openLabels,
  SETS,
  type SplitKind,
  TRAIN,
  withLabels,
} from '../class-labels/index.js';
import { fewLabels } from '../errors.js';
import { type AnalysedCollection, allGatherChecked, forEachTile } from '../jobs/index.js';
import type { Standardisation } from '../pixel-methods/index.js';
import { findNeighbourSpectra, type Neighbour, neighbourFiles } from '../spectrum-reading/index.js';
import { BYTES_PER_VALUE, type Precision, sampleFractions } from '../training-samples/index.js';
import { GROUP, type NetTile, type PixelGroup } from './spectral-cnn-runtime.js';
import { NET_SETTINGS, type NetName } from './spectral-cnn-specs.js';

/** At most `GROUP` labelled pixels of one tile. Groups depend only on the data, not on the nodes of the tiles. */
export interface PatchGroup {
  /** Index of `SETS`. */
  set: number;
  /** Bits of the sets whose squares the patches overlap. */
  shown: number;
  pixels: number;
  /** Present if the tile belongs to this run. */
  own?: PixelGroup;
}

export interface NetOptions {
  name: NetName;
  precision: Precision;
  labels: Labels;
  split: SplitKind;
  codes: readonly number[];
  standard: Standardisation;
  /** Labelled pixels of all runs, by code. */
  labelled: ReadonlyMap<number, number>;
}

export interface Gathered {
  /** Tiles of this run. */
  tiles: NetTile[];
  /** The groups of all runs, in the same order on every node. */
  groups: PatchGroup[];
  /** Bytes of the spectra of all runs. */
  bytes: number;
}

/**
 * Memory limit for the spectra of a job if no two patches share one. A job with more labelled pixels uses a part of them, chosen by hash.
 */
const MAX_PATCH_BYTES = 2 ** 28;

const checkGathered = messageCheck(
  objectOf({
    engine: TEXT,
    ids: listOf(TEXT),
    pixels: listOf(listOf(COUNT)),
    bytes: COUNT,
    training: listOf(COUNT),
  }),
);

/** Reads each tile twice. Throws TW_TRAIN_ENGINES if the runs have different engines. */
export async function gatherPatches(
  analysed: AnalysedCollection,
  { name, precision, labels, split, codes, standard, labelled }: NetOptions,
  engine: SelectedEngine,
): Promise<Gathered> {
  const { side } = NET_SETTINGS[name];
  const bytes = side ** 2 * BYTES_PER_VALUE[precision] * analysed.bands.length;
  const shares = sampleFractions(labelled, MAX_PATCH_BYTES / bytes);
  const classOf = classesOfCodes(codes);
  const found: { id: string; tile: NetTile; kinds: Uint8Array }[] = [];
  const open = await openLabels(labels);
  await forEachTile(analysed, async (tile, file) => {
    const { id, grid, geocode } = tile;
    const options = { file, cell: { grid, geocode }, split, standard, shares, side, precision };
    const patches = await withNeighbours(analysed, tile, (side - 1) / 2, (around) =>
      withLabels(analysed.context, open, tile, (labels) =>
        analysed.compute({ kind: 'patches', ...options, labels, around }),
      ),
    );
    if (!patches || patches.codes.length === 0) return;
    const { codes, sets, shown, ...own } = patches;
    const classes = Uint8Array.from(codes, (code) => classOf[code]);
    found.push({ id, kinds: sets.map((set, i) => kindOf(set, shown[i])), tile: { ...own, classes } });
  });
  found.sort((a, b) => (a.id < b.id ? -1 : 1));
  const message = {
    engine: `${engine.name} ${engine.version}`,
    ids: found.map(({ id }) => id),
    pixels: found.map(({ kinds }) => KINDS.map((kind) => kinds.filter((one) => one === kind).length)),
    training: codes.map((_, c) => found.reduce((sum, one) => sum + trainingPixels(one, c), 0)),
    bytes: found.reduce((sum, { tile }) => sum + tile.spectra.byteLength, 0),
  };
  const messages = await allGatherChecked(analysed.job, message, checkGathered);
  const absent = codes.filter((_, c) => messages.every(({ training }) => !training[c]));
  if (absent.length > 0)
    throw fewLabels(
      `no training pixel of class ${absent.join(', ')} has a patch outside of the squares for tuning and validation`,
    );
  const engines = new Set(messages.map((one) => one.engine));
  if (engines.size > 1) throw mixedEngines([...engines].join(', '));
  const own = new Map(found.map(({ id, kinds }, tile) => [id, { tile, kinds }]));
  const all = messages
    .flatMap(({ ids, pixels }) => ids.map((id, i) => ({ id, pixels: pixels[i] })))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    tiles: found.map(({ tile }) => tile),
    groups: all.flatMap(({ id, pixels }) =>
      pixels.flatMap((count, kind) => groupsOf(count, kind, own.get(id))),
    ),
    bytes: messages.reduce((sum, one) => sum + one.bytes, 0),
  };
}

/** Passes the tiles around a tile to `work`; they are pinned in the meantime. */
async function withNeighbours<T>(
  { context: { storage, finder }, spectrumOf }: AnalysedCollection,
  tile: TileRecord,
  reach: number,
  work: (around: Neighbour[]) => Promise<T>,
): Promise<T> {
  const around = await findNeighbourSpectra(finder, tile, reach, spectrumOf);
  const read = around.map(({ tile }) => ({ tile, groups: tile.groups }));
  return withPinnedTiles(storage, read, () => work(neighbourFiles(storage, around)));
}

/** Pixels of a kind have the same set, and patches that overlap squares of the same sets. */
const SET_COMBINATIONS = 2 ** SETS.length;
const kindOf = (set: number, shown: number) => set * SET_COMBINATIONS + shown;
const KINDS = Array.from({ length: SETS.length * SET_COMBINATIONS }, (_, kind) => kind);

/** Number of pixels of a class in the training for tuning. The other trainings include these pixels. */
function trainingPixels({ kinds, tile }: { kinds: Uint8Array; tile: NetTile }, classNumber: number): number {
  const trains = kindOf(TRAIN, 1 << TRAIN);
  return kinds.filter((kind, i) => kind === trains && tile.classes[i] === classNumber).length;
}

/** True if patches that overlap the sets `shown` may train a network on `sets`. Other patches contain tuning or validation pixels. */
export function mayTrain(shown: number, sets: readonly number[]): boolean {
  return sets.reduce((others, set) => others & ~(1 << set), shown) === 0;
}

/** Adjacent pixels belong to different groups, so that a group is representative of the tile. */
function groupsOf(count: number, kind: number, own?: { tile: number; kinds: Uint8Array }): PatchGroup[] {
  const groups = Math.ceil(count / GROUP);
  const numbers = own && [...own.kinds.keys()].filter((pixel) => own.kinds[pixel] === kind);
  return Array.from({ length: groups }, (_, g) => ({
    set: Math.floor(kind / SET_COMBINATIONS),
    shown: kind % SET_COMBINATIONS,
    pixels: Math.ceil((count - g) / groups),
    ...(numbers && {
      own: { tile: own.tile, pixels: Int32Array.from(numbers.filter((_, i) => i % groups === g)) },
    }),
  }));
}
