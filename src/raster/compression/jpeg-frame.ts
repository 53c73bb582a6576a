/** Checks the structure of a JPEG stream (ITU-T T.81, annex B) before a decoder allocates memory for its declared size. */

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

export interface JpegFrame {
  width: number;
  height: number;
  samples: number;
}

/** The only frame of a stream. Throws an Error if the stream is damaged, or if the decoder cannot decode it in bounded time. */
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
