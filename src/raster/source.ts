/** Opens files, detects their types by their first bytes (names do not count), and limits the sizes that they declare. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { TilewrightError } from '../errors.js';
import { notTiff, rasterUnreadable, unsupported } from './errors.js';

/**
 * Opens a regular file for reading. Throws system errors, and an error for pipes and devices: a plain open would wait for a
 * pipe without end.
 */
export async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const status = await file.stat();
    if (!status.isFile() && !status.isDirectory()) throw new Error('it is a pipe or a device');
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Reads a complete small file. Throws the errors of `openFile`, and an error for a folder or if the file has more than `most`
 * bytes.
 */
export async function readSmallFile(path: string, most: number): Promise<Buffer> {
  const file = await openFile(path);
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new Error('it is a folder');
    if (status.size > most) throw new Error(`it has ${status.size} bytes, and at most ${most} are read`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** The first bytes of an open file, at most `most`. */
export async function readStart(file: FileHandle, most: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(most), 0, most, 0);
  return buffer.subarray(0, bytesRead);
}

/** Reads parts of a file; a `FileHandle` is one. */
export interface ByteReader {
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
  /** Throws if the reader would not read a part. Called before memory for the part is allocated. */
  checkPart?(position: number, length: number): void;
}

/** An open file, its size, and its first bytes, which hold the signature and mostly the directory. */
export interface SourceFile<Reader = FileHandle> {
  path: string;
  size: number;
  start: Uint8Array;
  handle: Reader;
}

/** A read of this size takes hardly longer than one of a few bytes, and it covers the headers of most tiles and scenes. */
const PREFETCH_BYTES = 16_384;

/** Opens a file while `use` runs. Throws TW_RASTER_UNREADABLE, and TW_RASTER_NOT_TIFF for a folder. */
export function withFile<T>(path: string, use: (file: SourceFile) => Promise<T>): Promise<T> {
  return withHandle(path, async (handle, size) => {
    const start = await readStart(handle, Math.min(PREFETCH_BYTES, size));
    return use({ path, size, start, handle });
  });
}

/** Opens the bytes [from, to) of a file, as if they were a file. Throws as `withFile` does. */
export function withFilePart<T>(
  path: string,
  [from, to]: [number, number],
  use: (file: SourceFile<ByteReader>) => Promise<T>,
): Promise<T> {
  return withHandle(path, async (handle, fileSize) => {
    const size = Math.max(0, Math.min(to, fileSize) - from);
    const start = new Uint8Array(Math.min(PREFETCH_BYTES, size));
    const part: ByteReader = {
      read: (into, offset, length, position) => handle.read(into, offset, length, from + position),
    };
    await part.read(start, 0, start.length, 0);
    return use({ path, size, start, handle: part });
  });
}

async function withHandle<T>(
  path: string,
  use: (handle: FileHandle, size: number) => Promise<T>,
): Promise<T> {
  let handle: FileHandle | undefined;
  try {
    handle = await openFile(path);
    const status = await handle.stat();
    if (status.isDirectory()) throw notTiff(path, 'it is a folder', 'Name a file.');
    return await use(handle, status.size);
  } catch (error) {
    if (error instanceof TilewrightError) throw error;
    throw rasterUnreadable.because(error, path, error);
  } finally {
    await handle?.close();
  }
}

/** Types of files that tilewright can open. */
export type FileType =
  | 'tiff'
  | 'jp2'
  | 'hfa'
  | 'hdf4'
  | 'hdf5'
  | 'netcdf'
  | 'envi'
  | 'mat'
  | 'zip'
  | 'gzip'
  | 'tar';

/** Types of files that hold pixels. */
export type RasterType = Exclude<FileType, 'zip' | 'gzip' | 'tar'>;

/** Number of bytes that are enough to detect a type. */
export const SIGNATURE_BYTES = 512;

const DEFAULT_ADVICE = 'Use a GeoTIFF or a known product.';
const ARCHIVE_ADVICE = 'Ingest it as it is, or unpack it.';

const SIGNATURES: { bytes: number[]; at?: number; name: string; kind?: FileType; advice?: string }[] = [
  { bytes: [0x49, 0x49, 0x2a, 0], name: 'TIFF', kind: 'tiff' },
  { bytes: [0x4d, 0x4d, 0, 0x2a], name: 'TIFF', kind: 'tiff' },
  { bytes: [0x49, 0x49, 0x2b, 0], name: 'BigTIFF', kind: 'tiff' },
  { bytes: [0x4d, 0x4d, 0, 0x2b], name: 'BigTIFF', kind: 'tiff' },
  { bytes: [0, 0, 0, 12, 0x6a, 0x50, 0x20, 0x20], name: 'JPEG 2000', kind: 'jp2' },
  { bytes: [0xff, 0x4f, 0xff, 0x51], name: 'a JPEG 2000 code stream', kind: 'jp2' },
  { bytes: [0x0e, 0x03, 0x13, 0x01], name: 'HDF4', kind: 'hdf4' },
  { bytes: [0x89, 0x48, 0x44, 0x46], name: 'HDF5 (or netCDF 4)', kind: 'hdf5' },
  { bytes: [...Buffer.from('CDF')], name: 'netCDF', kind: 'netcdf' },
  { bytes: [...Buffer.from('EHFA_HEADER_TAG')], name: 'Erdas Imagine (.img)', kind: 'hfa' },
  ...['ENVI\n', 'ENVI\r', 'ENVI ', '\uFEFFENVI'].map((text) => ({
    bytes: [...Buffer.from(text)],
    name: 'an ENVI header',
    kind: 'envi' as const,
  })),
  { bytes: [...Buffer.from('MATLAB 5.0 MAT-file')], name: 'a MATLAB 5 file', kind: 'mat' },
  {
    bytes: [...Buffer.from('MATLAB 7.3 MAT-file')],
    name: 'a MATLAB 7.3 file',
    advice: 'Save it in MATLAB with -v7.',
  },
  { bytes: [0x50, 0x4b, 3, 4], name: 'a zip archive', kind: 'zip', advice: ARCHIVE_ADVICE },
  { bytes: [0x50, 0x4b, 5, 6], name: 'an empty zip archive', kind: 'zip', advice: ARCHIVE_ADVICE },
  { bytes: [0x1f, 0x8b], name: 'gzip', kind: 'gzip', advice: ARCHIVE_ADVICE },
  { bytes: [...Buffer.from('ustar')], at: 257, name: 'a tar archive', kind: 'tar', advice: ARCHIVE_ADVICE },
  { bytes: [...Buffer.from('NITF')], name: 'NITF', advice: 'Convert it with gdal_translate -of COG.' },
  { bytes: [...Buffer.from('GRIB')], name: 'GRIB', advice: 'Convert it with gdal_translate -of COG.' },
  { bytes: [0x89, 0x50, 0x4e, 0x47], name: 'PNG' },
  { bytes: [0xff, 0xd8, 0xff], name: 'JPEG' },
  { bytes: [...Buffer.from('GIF8')], name: 'GIF' },
  { bytes: [...Buffer.from('WEBP')], at: 8, name: 'WebP' },
  { bytes: [...Buffer.from('%PDF')], name: 'PDF' },
  { bytes: [...Buffer.from('<')], name: 'XML or HTML' },
  { bytes: [...Buffer.from('{')], name: 'JSON' },
];

function findSignature(start: Uint8Array) {
  return SIGNATURES.find(({ bytes, at = 0 }) => bytes.every((byte, i) => start[at + i] === byte));
}

/** The type of a file that starts with these bytes; null if it is not supported. */
export function detectFileType(start: Uint8Array): FileType | null {
  return findSignature(start)?.kind ?? null;
}

/** A description of the first bytes of an unsupported file, and advice, for error messages. */
export function describeSignature(start: Uint8Array): { found: string; advice: string } {
  if (start.length === 0) return { found: 'it is empty', advice: 'Fetch or write the file again.' };
  const known = findSignature(start);
  if (known) return { found: `it looks like ${known.name}`, advice: known.advice ?? DEFAULT_ADVICE };
  return { found: 'its format is not known', advice: DEFAULT_ADVICE };
}

/** Larger sizes in files are errors. No real sensor has wider images, and the limit keeps arithmetic on sizes exact. */
export const MAX_SIDE_PIXELS = 2 ** 24;
export const MAX_BANDS = 4096;
/** Largest decoded size of one block, bytes. */
export const MAX_BLOCK_BYTES = 2 ** 30;

/** Throws TW_RASTER_UNSUPPORTED for a raster that is too large. */
export function requireSupportedSize(path: string, width: number, height: number, bands: number): void {
  if (width > MAX_SIDE_PIXELS || height > MAX_SIDE_PIXELS || bands > MAX_BANDS)
    throw unsupported(
      path,
      `its size is ${width} x ${height} with ${bands} bands`,
      'Cut it with gdal_translate -srcwin COLUMN ROW WIDTH HEIGHT IN OUT.tif, or write some of its bands with -b N.',
    );
}
