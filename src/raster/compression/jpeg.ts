/**
 * JPEG blocks of TIFFs (TIFF Technical Note 2), decoded by libjpeg-turbo through sharp. Like GDAL, it interpolates colours
 * that are stored at half the resolution.
 */
import type { Sharp } from 'sharp';
import type { TiffBlocks } from '../raster-types.js';
import { type BlockShape, requireSize } from './compression-libraries.js';
import { jpegFrame } from './jpeg-frame.js';

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
