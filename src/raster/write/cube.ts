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
import { SMALL_PICTURE_SIDE } from './overviews.js';
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

/** Blocks of an image, which are placed one after another. */
type CubeLevel = StoredBlocks & { offsets: Uint32Array; byteCounts: Uint32Array };

/**
 * Writes rows of blocks in order. The bytes passed to `write` follow the header, which has `headerBytes` bytes and which
 * `finish` returns. Invariant: all rows of blocks before `row` are written, and `picture` has every `step`-th pixel of them. Block
 * positions without data among them have offset and length 0 in all bands, which readers treat as nodata.
 */
class CubeWriter {
  readonly headerBytes: number;
  private readonly blocks: CubeLevel;
  /** The overview with sides of at most 64 pixels; undefined if the cube is that small. */
  private readonly overview: CubeLevel | undefined;
  private readonly picture: PixelArray[];
  private readonly step: number;
  private readonly facts: ImageDescription;
  /** Value that readers return for the pixels of a missing block. */
  private readonly fillValue: number;
  private position: number;
  private row = 0;

  constructor(
    private readonly image: CubeImage,
    private readonly write: (bytes: Uint8Array) => void,
  ) {
    const { width, height, bands, dataType, nodata } = image;
    this.blocks = cubeLevel(image, image);
    this.step = 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(width, height) / SMALL_PICTURE_SIDE)));
    const small = { width: Math.ceil(width / this.step), height: Math.ceil(height / this.step) };
    this.overview = this.step > 1 ? cubeLevel(image, small) : undefined;
    const pixels = this.overview ? small.width * small.height : 0;
    this.picture = Array.from({ length: bands }, () => allocatePixels(dataType, pixels));
    // Readers return 0 for missing blocks if the file declares no nodata value.
    this.facts = { ...image, nodata: declaredNodata(dataType, nodata) };
    this.fillValue = nodataAsType(dataType, this.facts.nodata) ?? 0;
    const places = this.levels.map((level) => new Uint32Array((level.offsets.length / bands) * image.masks));
    this.headerBytes = headSize(this.directories(places.map((at) => ({ offsets: at, byteCounts: at }))));
    this.position = this.headerBytes;
  }

  /** Adds the next 64 rows of all bands, fewer at the end: one array of width x rows pixels for each band. */
  addRows(bands: readonly PixelArray[]): void {
    const { width, height, blockHeight } = this.blocks;
    const rows = Math.min(blockHeight, height - this.row * blockHeight);
    if (rows <= 0 || bands.length !== this.image.bands || bands.some((band) => band.length < width * rows))
      throw invalidImage(`${bands.length} bands of rows that do not fit a cube of ${width} x ${height}`);
    this.addBlocks(this.blocks, this.row, bands);
    if (this.overview) this.addToPicture(bands, this.row * blockHeight, rows);
    this.row++;
  }

  /** Returns the header of the file. `masks`: 0 for pixels without data; as many as the image has. */
  finish(masks: Uint8Array[]): Buffer {
    const { width, height, blockHeight } = this.blocks;
    if (this.row < Math.ceil(height / blockHeight)) throw invalidImage(`rows of its cube are missing`);
    if (this.image.masks !== masks.length)
      throw invalidImage(`it has ${masks.length} masks instead of ${this.image.masks}`);
    if (this.overview) this.addBlocks(this.overview, 0, this.picture);
    const small = masks.map((mask) => everyPixel(mask, { width, height }, this.step));
    const places = this.levels.map((level, i) => this.addMasks(level, i === 0 ? masks : small));
    return encodeHead(this.directories(places));
  }

  private get levels(): CubeLevel[] {
    return this.overview ? [this.blocks, this.overview] : [this.blocks];
  }

  /** `masks`: the blocks of the masks of each level. */
  private directories(masks: Pick<StoredBlocks, 'offsets' | 'byteCounts'>[]) {
    const { image } = this;
    return this.levels.flatMap((level, i) => {
      const directory = imageIfd(this.facts, image.bands, level, i > 0);
      return image.masks > 0
        ? [directory, maskIfd({ ...level, ...masks[i]! }, image.masks, i > 0)]
        : [directory];
    });
  }

  private addBlocks(
    { width, height, blockWidth, blockHeight, offsets, byteCounts }: CubeLevel,
    row: number,
    bands: readonly PixelArray[],
  ): void {
    const across = Math.ceil(width / blockWidth);
    const perBand = offsets.length / bands.length;
    const rows = Math.min(blockHeight, height - row * blockHeight);
    for (let column = 0; column < across; column++) {
      const start = column * blockWidth;
      const part = { start, stride: width, width: Math.min(blockWidth, width - start), height: rows };
      if (bands.every((band) => isAll(this.fillValue, band, part))) continue;
      const place = row * across + column;
      for (const [band, bytes] of this.encoded(bands, part, blockWidth).entries()) {
        offsets[band * perBand + place] = this.position;
        byteCounts[band * perBand + place] = bytes.length;
        this.append(bytes);
      }
    }
  }

  private addMasks({ width, height, blockWidth, blockHeight }: CubeLevel, masks: Uint8Array[]) {
    const encoded = encodeMasks({ width, height }, masks, blockWidth, blockHeight).blocks;
    const offsets = encoded.map((bytes) => {
      const at = this.position;
      this.append(bytes);
      return at;
    });
    return { offsets, byteCounts: encoded.map(({ length }) => length) };
  }

  /** Spectra stay measured ones: the picture has every `step`-th pixel, and no means. */
  private addToPicture(bands: readonly PixelArray[], firstRow: number, rows: number): void {
    const { width } = this.image;
    const { step, overview } = this;
    for (let row = Math.ceil(firstRow / step) * step; row < firstRow + rows; row += step) {
      const to = (row / step) * overview!.width;
      const from = (row - firstRow) * width;
      for (const [b, band] of bands.entries())
        for (let column = 0, i = to; column < width; column += step, i++)
          this.picture[b]![i] = band[from + column]!;
    }
  }

  /** The bytes of all bands at one block position, band by band. */
  private encoded(
    bands: readonly PixelArray[],
    part: { start: number; stride: number; width: number; height: number },
    blockWidth: number,
  ): Uint8Array[] {
    const { dataType, isCompressed } = this.image;
    const { blockHeight } = this.blocks;
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

function cubeLevel(
  { bands, isCompressed }: CubeImage,
  { width, height }: Pick<CubeImage, 'width' | 'height'>,
): CubeLevel {
  const blockWidth = Math.min(CUBE_BLOCK_SIDE, Math.ceil(width / 16) * 16);
  const count = Math.ceil(width / blockWidth) * Math.ceil(height / CUBE_BLOCK_SIDE);
  const lists = { offsets: new Uint32Array(count * bands), byteCounts: new Uint32Array(count * bands) };
  return { width, height, blockWidth, blockHeight: CUBE_BLOCK_SIDE, ...lists, isCompressed };
}

/** Every `step`-th pixel of every `step`-th row. */
function everyPixel(
  pixels: Uint8Array,
  { width, height }: Pick<CubeImage, 'width' | 'height'>,
  step: number,
): Uint8Array {
  const across = Math.ceil(width / step);
  const out = new Uint8Array(across * Math.ceil(height / step));
  for (let i = 0; i < out.length; i++)
    out[i] = pixels[Math.floor(i / across) * step * width + (i % across) * step]!;
  return out;
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

/** The part of a file that holds an image. */
export interface PlacedImage {
  bytes: number;
  crc32: number;
}

/**
 * A file of several images, each complete with header and offsets of its own. Cubes are written while they are made, so that memory holds
 * one row of blocks: `begin`, `addRows`, `finish`. Other images are added encoded. Always call `close`.
 */
export class CubeFile {
  private readonly file: number;
  private writer: CubeWriter | undefined;
  /** First byte of the image that is written. */
  private start = 0;
  /** Bytes of its pixels, and their checksum. */
  private pixels: PlacedImage = { bytes: 0, crc32: 0 };

  /** Throws system errors. */
  constructor(path: string) {
    this.file = openSync(path, 'wx');
  }

  begin(image: CubeImage): void {
    this.pixels = { bytes: 0, crc32: 0 };
    this.writer = new CubeWriter(image, (bytes) => this.append(bytes));
  }

  addRows(bands: readonly PixelArray[]): void {
    this.writer!.addRows(bands);
  }

  /** Ends a cube. */
  finish(masks: Uint8Array[]): PlacedImage {
    const head = this.writer!.finish(masks);
    writeFully(this.file, head, this.start);
    const { bytes, crc32: sum } = this.pixels;
    this.start += head.length + bytes;
    return { bytes: head.length + bytes, crc32: combineCrc32(crc32(head), sum, bytes) };
  }

  /** Adds an encoded image. */
  add(image: Uint8Array): PlacedImage {
    writeFully(this.file, image, this.start);
    this.start += image.length;
    return { bytes: image.length, crc32: crc32(image) };
  }

  close(): void {
    closeSync(this.file);
  }

  private append(bytes: Uint8Array): void {
    writeFully(this.file, bytes, this.start + this.writer!.headerBytes + this.pixels.bytes);
    this.pixels = { bytes: this.pixels.bytes + bytes.length, crc32: crc32(bytes, this.pixels.crc32) };
  }
}

function writeFully(file: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(file, bytes, done, bytes.length - done, position + done);
}
