/**
 * Assembles a band of a stored tile file as a separate file: new directories over the same blocks, which are neither decoded
 * nor copied.
 */
import { type ImageDescription, imageIfd, maskIfd, type StoredBlocks } from './write-cog-ifds.js';
import { encodeHead, headSize } from './write-tiff-ifd.js';

/** Consecutive bytes of the stored file. */
export interface ByteRange {
  start: number;
  bytes: number;
}

/** A file that starts with `head` and continues with ranges of another file. */
export interface AssembledFile {
  head: Buffer;
  ranges: ByteRange[];
  /** Total size in bytes. */
  bytes: number;
}

/**
 * A Cloud Optimized GeoTIFF with one band. `levels` are the blocks of the band in the stored file, from the full image to the
 * smallest overview; `masks` are those of the masks of each level, if there are any. A block of 0 bytes is missing, and stays
 * so.
 */
export function extractBand(
  facts: ImageDescription,
  levels: StoredBlocks[],
  masks: StoredBlocks[],
): AssembledFile {
  const images = levels.flatMap((level, i) => {
    const mask = masks[i];
    return [
      { blocks: level, isMask: false, isOverview: i > 0 },
      ...(mask ? [{ blocks: mask, isMask: true, isOverview: i > 0 }] : []),
    ].map((image) => ({ ...image, offsets: new Uint32Array(image.blocks.offsets.length) }));
  });
  const directories = images.map(({ blocks, offsets, isMask, isOverview }) =>
    isMask
      ? maskIfd({ ...blocks, offsets }, isOverview)
      : imageIfd(facts, 1, { ...blocks, offsets }, isOverview),
  );
  let position = headSize(directories);
  const ranges: ByteRange[] = [];
  for (const { blocks, offsets } of images.toReversed())
    for (let i = 0; i < offsets.length; i++) {
      const start = blocks.offsets[i];
      const bytes = blocks.byteCounts[i];
      if (bytes === 0) continue;
      offsets[i] = position;
      position += bytes;
      const last = ranges.at(-1);
      if (last && last.start + last.bytes === start) last.bytes += bytes;
      else ranges.push({ start, bytes });
    }
  return { head: encodeHead(directories), ranges, bytes: position };
}
