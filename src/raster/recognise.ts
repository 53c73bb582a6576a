/** Names a file by its first bytes, for messages that say what was found in place of a TIFF. */

const CONVERT =
  'This format is not read directly: convert it with gdal_translate -of COG, or install GDAL (gdal-bin).';
const OTHER = 'Give a GeoTIFF.';

const SIGNATURES: { bytes: number[]; at?: number; name: string; advice: string }[] = [
  { bytes: [0, 0, 0, 12, 0x6a, 0x50, 0x20, 0x20], name: 'JPEG 2000', advice: CONVERT },
  { bytes: [0xff, 0x4f, 0xff, 0x51], name: 'a JPEG 2000 code stream', advice: CONVERT },
  { bytes: [0x0e, 0x03, 0x13, 0x01], name: 'HDF4', advice: CONVERT },
  { bytes: [0x89, 0x48, 0x44, 0x46], name: 'HDF5 (or netCDF 4)', advice: CONVERT },
  { bytes: [...Buffer.from('CDF')], name: 'netCDF', advice: CONVERT },
  { bytes: [...Buffer.from('EHFA_HEADER_TAG')], name: 'Erdas Imagine (.img)', advice: CONVERT },
  { bytes: [...Buffer.from('NITF')], name: 'NITF', advice: CONVERT },
  { bytes: [...Buffer.from('GRIB')], name: 'GRIB', advice: CONVERT },
  { bytes: [0x89, 0x50, 0x4e, 0x47], name: 'PNG', advice: OTHER },
  { bytes: [0xff, 0xd8, 0xff], name: 'JPEG', advice: OTHER },
  { bytes: [...Buffer.from('GIF8')], name: 'GIF', advice: OTHER },
  { bytes: [...Buffer.from('WEBP')], at: 8, name: 'WebP', advice: OTHER },
  { bytes: [0x50, 0x4b], name: 'a zip archive', advice: 'Unpack it first.' },
  { bytes: [0x1f, 0x8b], name: 'gzip', advice: 'Unpack it first.' },
  { bytes: [...Buffer.from('ustar')], at: 257, name: 'a tar archive', advice: 'Unpack it first.' },
  { bytes: [...Buffer.from('%PDF')], name: 'PDF', advice: OTHER },
  { bytes: [...Buffer.from('<')], name: 'XML or HTML', advice: OTHER },
  { bytes: [...Buffer.from('{')], name: 'JSON', advice: OTHER },
];

/** What the first bytes of a file (a few hundred) look like, and what to do with it. */
export function recognise(start: Uint8Array): { found: string; advice: string } {
  if (start.length === 0) return { found: 'it is empty', advice: 'Fetch or write the file again.' };
  const known = SIGNATURES.find(({ bytes, at = 0 }) => bytes.every((byte, i) => start[at + i] === byte));
  if (known) return { found: `it looks like ${known.name}`, advice: known.advice };
  return { found: 'its content is of no known format', advice: OTHER };
}
