/**
 * JPEG blocks of TIFFs (TIFF Technical Note 2), decoded by libjpeg-turbo through sharp. Like GDAL, it interpolates colours
 * that are stored at half the resolution.
 */
import type { Sharp } from 'sharp';
import type { TiffBlocks } from '../raster.js';
import { type BlockShape, requireSize } from './libraries.js';

const SOI = 0xd8;
const EOI = 0xd9;
const SOS = 0xda;
const DQT = 0xdb;
const DHT = 0xc4;
const DRI = 0xdd;
/** Baseline, extended and progressive, with Huffman codes. */
const SUPPORTED_FRAMES = new Set([0xc0, 0xc1, 0xc2]);
/** Other frame types and arithmetic coding. */
const UNSUPPORTED_FRAMES = new Set([
  0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xdc, 0xde, 0xdf,
]);
const isRestart = (marker: number) => marker >= 0xd0 && marker <= 0xd7;

/** libtiff's limit: each scan of a progressive image costs as much time as all pixels, even if it is short. */
const MAX_SCANS = 100;

interface JpegFrame {
  width: number;
  height: number;
  samples: number;
}

/**
 * The only frame of a stream, whose structure (ITU-T T.81, annex B) is checked before a decoder allocates memory for its declared size.
 * Throws an Error if the stream is damaged, or if the decoder cannot decode it in bounded time.
 */
export function jpegFrame(bytes: Uint8Array): JpegFrame {
  let frame: JpegFrame | undefined;
  let scans = 0;
  for (const { marker, segment } of segments(bytes)) {
    if (UNSUPPORTED_FRAMES.has(marker)) throw new Error(`a JPEG frame of type ${marker.toString(16)}`);
    if (SUPPORTED_FRAMES.has(marker)) {
      if (frame) throw new Error('two JPEG frames');
      frame = readFrame(segment);
    }
    if (marker === SOS && ++scans > MAX_SCANS) throw new Error(`more than ${MAX_SCANS} JPEG scans`);
    if (marker === SOS && (!frame || segment.length !== 4 + 2 * segment[0]))
      throw new Error('a JPEG scan without a frame');
    if (marker === DQT || marker === DHT) checkTables(marker, segment);
    if (marker === DRI && segment.length !== 2) throw new Error('a JPEG restart interval of a wrong length');
  }
  if (!frame || scans === 0) throw new Error('no JPEG frame');
  return frame;
}

/** All segments from the start to the end of an image. Throws if the end is missing. */
function* segments(bytes: Uint8Array): Generator<{ marker: number; segment: Uint8Array }> {
  if (bytes[0] !== 0xff || bytes[1] !== SOI) throw new Error('no JPEG image');
  let at = 2;
  for (;;) {
    if (bytes[at] !== 0xff) throw new Error(`no JPEG marker at byte ${at}`);
    while (bytes[at + 1] === 0xff) at++;
    const marker = bytes[at + 1];
    if (marker === undefined) throw new Error('the JPEG image has no end');
    if (marker === EOI) return;
    const end = at + 2 + ((bytes[at + 2] << 8) | bytes[at + 3]);
    if (!(end >= at + 4 && end <= bytes.length)) throw new Error(`a JPEG segment ends at byte ${end}`);
    yield { marker, segment: bytes.subarray(at + 4, end) };
    at = marker === SOS ? endOfScan(bytes, end) : end;
  }
}

/** In coded pixels 0xff is followed by 0 or a restart marker. */
function endOfScan(bytes: Uint8Array, start: number): number {
  let at = bytes.indexOf(0xff, start);
  while (at >= 0 && (bytes[at + 1] === 0 || isRestart(bytes[at + 1]))) at = bytes.indexOf(0xff, at + 2);
  if (at < 0) throw new Error('the JPEG image has no end');
  return at;
}

function readFrame(segment: Uint8Array): JpegFrame {
  const view = new DataView(segment.buffer, segment.byteOffset, segment.byteLength);
  const samples = segment[5] ?? 0;
  if (samples === 0 || segment.length !== 6 + 3 * samples) throw new Error('a JPEG frame of a wrong length');
  if (segment[0] !== 8) throw new Error(`JPEG pixels of ${segment[0]} bits`);
  const ids = new Set<number>();
  for (let at = 6; at < segment.length; at += 3) {
    ids.add(segment[at]);
    const across = segment[at + 1] >> 4;
    const down = segment[at + 1] & 15;
    if (across < 1 || across > 4 || down < 1 || down > 4)
      throw new Error(`JPEG samples of ${across} x ${down} in a unit`);
  }
  if (ids.size !== samples) throw new Error('two JPEG components of one name');
  return { height: view.getUint16(1), width: view.getUint16(3), samples };
}

/** A segment holds complete tables of quantization or of Huffman codes. */
function checkTables(marker: number, segment: Uint8Array): void {
  let at = 0;
  while (at < segment.length) {
    const codes = segment.subarray(at + 1, at + 17);
    if (marker === DQT) at += segment[at] >> 4 === 0 ? 65 : 129;
    else at += 17 + codes.reduce((sum, count) => sum + count, 0);
  }
  if (at !== segment.length) throw new Error('JPEG tables of a wrong length');
}

/** The decoder needs some bytes for each sample. */
const MAX_SAMPLES = 2 ** 25;

/** Samples of one block, interleaved. Throws an Error if the block is damaged or has another shape. */
export async function decodeJpeg(
  stored: Uint8Array,
  { tables, isYcbcr }: NonNullable<TiffBlocks['jpeg']>,
  shape: BlockShape,
): Promise<Uint8Array> {
  const frame = jpegFrame(stored);
  requireSize(frame, shape);
  const { width, height, samples } = frame;
  if (width * height * samples > MAX_SAMPLES)
    throw new Error(`a JPEG block of more than ${MAX_SAMPLES} samples`);
  const sharp = await loadSharp();
  const start = tables ? tables.subarray(0, -END_BYTES) : stored.subarray(0, START_BYTES);
  const stream = Buffer.concat([start, adobeMarker(isYcbcr), stored.subarray(START_BYTES)]);
  const image = sharp(stream, { failOn: 'error', limitInputPixels: width * height });
  const { data, info } = await asStored(image, samples).raw().toBuffer({ resolveWithObject: true });
  if (info.channels !== samples)
    throw new Error(`a JPEG image of ${info.channels} samples in place of ${samples}`);
  // libvips treats four samples as inks, and inverts them.
  if (samples === 4) for (let i = 0; i < data.length; i++) data[i] = 255 - data[i]!;
  return data;
}

/** Loaded on first use: it is large, and few files need it. */
async function loadSharp() {
  const { default: sharp } = await import('sharp');
  // No block is decoded twice, so a cache is useless.
  sharp.cache(false);
  return sharp;
}

/** Markers for the start and the end of an image. */
const START_BYTES = 2;
const END_BYTES = 2;

/** An APP14 segment that declares the colours of the TIFF's tags (ITU-T T.872, 6.5.3). */
function adobeMarker(isYcbcr: boolean): Buffer {
  const marker = Buffer.from('\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0', 'latin1');
  marker[marker.length - 1] = isYcbcr ? 1 : 0;
  return marker;
}

/** Keeps samples that are not colours unchanged. */
function asStored(image: Sharp, samples: number): Sharp {
  if (samples === 1) return image.toColourspace('b-w');
  if (samples === 2) return image.pipelineColourspace('srgb');
  return samples === 4 ? image.pipelineColourspace('cmyk').toColourspace('cmyk') : image;
}
