/** Detects the type of a file by its first bytes; its name does not count. */

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
