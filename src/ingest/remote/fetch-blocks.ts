/** Fetches the blocks of remote files that the cells of a scene need. */
import { open } from 'node:fs/promises';
import { runAllOrAbort } from '../../async/index.js';
import { blocksOfWindow, isTiff, type RasterHeader, withOnlyBlocks } from '../../raster/index.js';
import { type ByteRange, mergeRanges } from '../../remote/index.js';
import type { Scene } from '../ingest-scene-description.js';
import { type ScenePlan, sourceWindowForCell } from '../plan/index.js';
import type { RemoteFiles } from './fetch-item.js';
import { writeFully } from './open-remote-copy.js';
import type { WholeFiles } from './whole-files.js';

/** The blocks that are needed of each raster. An image and the mask in the same file are two rasters. */
type NeededBlocks = Map<RasterHeader['blocks'], { header: RasterHeader; blocks: Set<number> }>;

/** The requests for a scene. */
export interface FetchPlan {
  needed: NeededBlocks;
  /** By the path of the copy. */
  ranges: Map<string, ByteRange[]>;
  /** Paths of the files that are read as a whole. */
  whole: Set<string>;
  requests: number;
  bytes: number;
}

/** Plans which parts of the files are read for some cells: blocks of a GeoTIFF, and all of a file in another format. */
export function planFetch({ scene, grid }: ScenePlan, cells: string[], files: RemoteFiles): FetchPlan {
  const needed: NeededBlocks = new Map();
  const whole = new Set<string>();
  const add = (header: RasterHeader, bands: number[], window: Parameters<typeof blocksOfWindow>[2]) => {
    if (!isTiff(header)) {
      whole.add(header.path);
      return;
    }
    const known = needed.get(header.blocks) ?? { header, blocks: new Set() };
    needed.set(header.blocks, known);
    for (const block of blocksOfWindow(header, bands, window)) known.blocks.add(block);
  };
  for (const group of scene.groups)
    for (const cell of cells) {
      const window = sourceWindowForCell(group, grid, cell);
      if (window.width === 0 || window.height === 0) continue;
      for (const { header, index } of group.bands) {
        const bands = header.alpha === undefined ? [index] : [index, header.alpha];
        add(header, bands, window);
        if (header.mask) add(header.mask, [...Array(header.mask.bands).keys()], window);
      }
    }
  const ranges = new Map<string, ByteRange[]>();
  for (const path of whole) {
    const file = files.get(path);
    if (file && !file.isComplete) ranges.set(path, file.wholeRanges());
  }
  for (const { header, blocks } of needed.values()) {
    // Files without parts to be read are complete.
    if (!isTiff(header) || !files.has(header.path)) continue;
    const { offsets, byteCounts } = header.blocks;
    const own = [...blocks].map((i) => ({ offset: offsets[i]!, bytes: byteCounts[i]! }));
    ranges.set(header.path, [...(ranges.get(header.path) ?? []), ...own]);
  }
  for (const [path, parts] of ranges) ranges.set(path, mergeRanges(parts));
  const all = [...ranges.values()].flat();
  const bytes = all.reduce((sum, one) => sum + one.bytes, 0);
  return { needed, ranges, whole, requests: all.length, bytes };
}

/** Returns the bytes of the needed blocks of a plan, by file and offset. */
export function bytesOfBlocks({ needed }: Pick<FetchPlan, 'needed'>): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const { header, blocks } of needed.values()) {
    if (!isTiff(header)) continue;
    const { offsets, byteCounts } = header.blocks;
    for (const i of blocks) bytes.set(`${header.path}\n${offsets[i]}`, byteCounts[i]!);
  }
  return bytes;
}

/** Reads the parts of a plan into the copies, and keeps whole files. `onBytes` gets the bytes of each piece. Throws TW_REMOTE_... */
export async function fetchRanges(
  { ranges, whole }: Pick<FetchPlan, 'ranges' | 'whole'>,
  files: RemoteFiles,
  kept: WholeFiles,
  onBytes: (bytes: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  await runAllOrAbort(
    [...ranges].map(([path, parts]) => async (own) => {
      const file = files.get(path)!;
      const copy = await open(path, 'r+');
      try {
        const write = async (bytes: Buffer, position: number) => {
          await writeFully(copy, bytes, position);
          onBytes(bytes.length);
        };
        await file.readRanges(parts, write, own);
      } finally {
        await copy.close();
      }
      if (!whole.has(path)) return;
      await kept.keep(file, path);
      file.isComplete = true;
    }),
    signal,
  );
}

/** Returns a scene whose rasters have only the fetched blocks; the others are read as nodata. */
export function withFetchedBlocks(scene: Scene, { needed }: Pick<FetchPlan, 'needed'>): Scene {
  const known = new Map<RasterHeader, RasterHeader>();
  const only = (header: RasterHeader): RasterHeader => {
    const found = known.get(header);
    if (found || !isTiff(header)) return found ?? header;
    const blocks = needed.get(header.blocks)?.blocks ?? new Set<number>();
    const limited = { ...withOnlyBlocks(header, blocks), ...(header.mask && { mask: only(header.mask) }) };
    known.set(header, limited);
    return limited;
  };
  const groups = scene.groups.map((group) => ({
    ...group,
    bands: group.bands.map((band) => ({ ...band, header: only(band.header) })),
  }));
  return { ...scene, groups };
}
