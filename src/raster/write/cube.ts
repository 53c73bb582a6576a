/**
 * Writes GeoTIFFs of many bands for reading spectra: PlanarConfiguration 2 with blocks of 64 x 64 pixels, in which the blocks
 * of all bands at one block position lie side by side (GDAL 3.11 calls this INTERLEAVE=TILE; every TIFF reader sees a
 * band-sequential file). A spectrum then needs one short read, and a band many short ones. Blocks are not compressed by
 * default: deflate makes files a quarter smaller, and reading spectra 26 times slower (`npm run bench -- cube`).
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { imageTooLarge, invalidImage } from '../errors.js';
import {
  allocatePixels,
  bytesPerSample,
  dataTypeOf,
  declaredNodata,
  nodataAsType,
} from '../pixels/data-types.js';
import type { PixelArray } from '../raster.js';
import {
  encodeBlock,
  encodeMasks,
  type ImageDescription,
  imageIfd,
  MAX_TIFF_BYTES,
  maskIfd,
  type StoredBlocks,
} from './cog.js';
import { combineCrc32, encodeHead, headSize } from './tiff.js';

/** Rows and columns of a block. */
export const CUBE_BLOCK_SIDE = 64;

export interface CubeImage extends ImageDescription {
  bands: number;
  /**
   * If every value is data, only masks can mark missing pixels: the number of masks, one for all bands or one for each. 0 if a value
   * marks them.
   */
  masks: number;
  isCompressed: boolean;
}

/**
 * Writes rows of blocks in order. The bytes passed to `write` follow the header, which has `headerBytes` bytes and which
 * `finish` returns. Invariant: all rows of blocks before `row` are written. Block positions without data among them have
 * offset and length 0 in all bands, which readers treat as nodata.
 */
class CubeWriter {
  readonly headerBytes: number;
  private readonly blocks: StoredBlocks & { offsets: Uint32Array; byteCounts: Uint32Array };
  private readonly facts: ImageDescription;
  /** Value that readers return for the pixels of a missing block. */
  private readonly fillValue: number;
  private position: number;
  private row = 0;

  constructor(
    private readonly image: CubeImage,
    private readonly write: (bytes: Uint8Array) => void,
  ) {
    const { width, height, bands, dataType, nodata, isCompressed } = image;
    const blockWidth = Math.min(CUBE_BLOCK_SIDE, Math.ceil(width / 16) * 16);
    const count = Math.ceil(width / blockWidth) * Math.ceil(height / CUBE_BLOCK_SIDE);
    const lists = { offsets: new Uint32Array(count * bands), byteCounts: new Uint32Array(count * bands) };
    this.blocks = { width, height, blockWidth, blockHeight: CUBE_BLOCK_SIDE, ...lists, isCompressed };
    // Readers return 0 for missing blocks if the file declares no nodata value.
    this.facts = { ...image, nodata: declaredNodata(dataType, nodata) };
    this.fillValue = nodataAsType(dataType, this.facts.nodata) ?? 0;
    const maskBlocks = new Uint32Array(count * image.masks);
    this.headerBytes = headSize(this.directories(maskBlocks, maskBlocks));
    this.position = this.headerBytes;
  }

  /** Adds the next 64 rows of all bands, fewer at the end: one array of width x rows pixels for each band. */
  addRows(bands: readonly PixelArray[]): void {
    const { width, height, blockWidth, blockHeight, offsets, byteCounts } = this.blocks;
    const rows = Math.min(blockHeight, height - this.row * blockHeight);
    if (rows <= 0 || bands.length !== this.image.bands || bands.some((band) => band.length < width * rows))
      throw invalidImage(`${bands.length} bands of rows that do not fit a cube of ${width} x ${height}`);
    const across = Math.ceil(width / blockWidth);
    const perBand = offsets.length / bands.length;
    for (let column = 0; column < across; column++) {
      const start = column * blockWidth;
      const part = { start, stride: width, width: Math.min(blockWidth, width - start), height: rows };
      if (bands.every((band) => isAll(this.fillValue, band, part))) continue;
      const place = this.row * across + column;
      for (const [band, bytes] of this.encoded(bands, part).entries()) {
        offsets[band * perBand + place] = this.position;
        byteCounts[band * perBand + place] = bytes.length;
        this.append(bytes);
      }
    }
    this.row++;
  }

  /** Returns the header of the file. `masks`: 0 for pixels without data; as many as the image has. */
  finish(masks: Uint8Array[]): Buffer {
    const { width, height, blockWidth, blockHeight } = this.blocks;
    if (this.row < Math.ceil(height / blockHeight)) throw invalidImage(`rows of its cube are missing`);
    if (this.image.masks !== masks.length)
      throw invalidImage(`it has ${masks.length} masks instead of ${this.image.masks}`);
    const encoded = encodeMasks({ width, height }, masks, blockWidth, blockHeight).blocks;
    const offsets = encoded.map((bytes) => {
      const at = this.position;
      this.append(bytes);
      return at;
    });
    const lengths = encoded.map(({ length }) => length);
    return encodeHead(this.directories(offsets, lengths));
  }

  private directories(maskOffsets: ArrayLike<number>, maskBytes: ArrayLike<number>) {
    const own = imageIfd(this.facts, this.image.bands, this.blocks, false);
    const { masks } = this.image;
    const blocks = { ...this.blocks, offsets: maskOffsets, byteCounts: maskBytes };
    return masks > 0 ? [own, maskIfd(blocks, masks, false)] : [own];
  }

  /** The bytes of all bands at one block position, band by band. */
  private encoded(
    bands: readonly PixelArray[],
    part: { start: number; stride: number; width: number; height: number },
  ): Uint8Array[] {
    const { dataType, isCompressed } = this.image;
    const { blockWidth, blockHeight } = this.blocks;
    if (isCompressed) return bands.map((band) => encodeBlock(band, part, blockWidth, blockHeight, dataType));
    const pixels = allocatePixels(dataType, blockWidth * blockHeight * bands.length);
    if (part.width < blockWidth || part.height < blockHeight) pixels.fill(this.fillValue);
    for (const [i, band] of bands.entries())
      for (let y = 0; y < part.height; y++) {
        const from = part.start + y * part.stride;
        pixels.set(band.subarray(from, from + part.width), (i * blockHeight + y) * blockWidth);
      }
    const bytes = new Uint8Array(pixels.buffer);
    const each = blockWidth * blockHeight * bytesPerSample(dataType);
    return bands.map((_, i) => bytes.subarray(i * each, (i + 1) * each));
  }

  private append(bytes: Uint8Array): void {
    this.position += bytes.length;
    if (this.position > MAX_TIFF_BYTES) throw imageTooLarge(this.position);
    this.write(bytes);
  }
}

function isAll(
  value: number,
  pixels: PixelArray,
  { start, stride, width, height }: { start: number; stride: number; width: number; height: number },
): boolean {
  for (let y = 0; y < height; y++)
    for (let i = start + y * stride, end = i + width; i < end; i++)
      if (pixels[i] !== value && !(Number.isNaN(value) && Number.isNaN(pixels[i]))) return false;
  return true;
}

/** Encodes a complete cube: one array of width x height pixels for each band, and the masks of the image. */
export function encodeCube(
  image: Omit<CubeImage, 'bands' | 'masks'>,
  bands: PixelArray[],
  masks: Uint8Array[] = [],
): Buffer {
  const { width, height, dataType } = image;
  const other = bands.find((band) => dataTypeOf(band) !== dataType);
  if (other) throw invalidImage(`a ${dataTypeOf(other)} band in a ${dataType} cube`);
  const parts: Uint8Array[] = [];
  const about = { ...image, bands: bands.length, masks: masks.length };
  const writer = new CubeWriter(about, (bytes) => parts.push(bytes));
  for (let row = 0; row < height; row += CUBE_BLOCK_SIDE)
    writer.addRows(bands.map((band) => band.subarray(row * width, (row + CUBE_BLOCK_SIDE) * width)));
  return Buffer.concat([writer.finish(masks), ...parts]);
}

/** A cube that is written to a file while it is made, so that memory holds one row of its blocks. Always call `close`. */
export class CubeFile {
  private readonly file: number;
  private readonly writer: CubeWriter;
  private bytes = 0;
  private crc = 0;

  /** Throws system errors. */
  constructor(path: string, image: CubeImage) {
    this.writer = new CubeWriter(image, (bytes) => this.append(bytes));
    this.file = openSync(path, 'wx');
  }

  addRows(bands: readonly PixelArray[]): void {
    this.writer.addRows(bands);
  }

  /** Writes the header. Returns size and checksum for the record of the file. */
  finish(masks: Uint8Array[]): { bytes: number; crc32: number } {
    const head = this.writer.finish(masks);
    writeFully(this.file, head, 0);
    return {
      bytes: head.length + this.bytes,
      crc32: combineCrc32(crc32(head), this.crc, this.bytes),
    };
  }

  close(): void {
    closeSync(this.file);
  }

  private append(bytes: Uint8Array): void {
    writeFully(this.file, bytes, this.writer.headerBytes + this.bytes);
    this.bytes += bytes.length;
    this.crc = crc32(bytes, this.crc);
  }
}

function writeFully(file: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(file, bytes, done, bytes.length - done, position + done);
}
