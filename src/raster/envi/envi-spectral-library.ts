/**
 * Reads spectral libraries of ENVI: an image of one band in which each line is a spectrum (file type "ENVI Spectral Library").
 */
import { corrupt, notTiff, unsupported } from '../errors.js';
import { withFile } from '../file-access/index.js';
import { allocatePixels } from '../pixels/index.js';
import type { SpectralLibrary } from '../raster-types.js';
import { findHeader } from './envi-files.js';
import { openEnviNumbers, readFields, readWavelengths, reflectanceScale } from './envi-header.js';
import { listField } from './envi-header-fields.js';
import { readEnvi } from './read-envi.js';

/** Libraries are held in memory. The largest known ones have 20 MB. */
const MAX_LIBRARY_BYTES = 2 ** 28;

/**
 * Reads a library by the path of its header or of its image. Throws TW_RASTER_NOT_TIFF if it is not a library, and
 * TW_RASTER_UNREADABLE, _SIZE_DIFFERS, _CORRUPT and _UNSUPPORTED.
 */
export async function readEnviLibrary(path: string): Promise<SpectralLibrary> {
  const header = (await withFile(path, () => findHeader(path))) ?? path;
  const fields = await readFields(header);
  if (!/spectral library/i.test(fields.get('file type') ?? ''))
    throw notTiff(header, 'its file type is not "ENVI Spectral Library"', 'Name a spectral library.');
  const numbers = await openEnviNumbers(fields, header, path === header ? undefined : path);
  const { width, height, bands, dataType } = numbers;
  if (bands !== 1) throw unsupported(header, `a library of ${bands} bands`);
  if (numbers.fileBytes > MAX_LIBRARY_BYTES)
    throw unsupported(header, `a library of ${numbers.fileBytes} bytes`);
  const spectrum = readWavelengths(fields, width, header);
  if (!spectrum) throw corrupt(header, 'its spectra have no wavelengths');
  const values = allocatePixels(dataType, width * height);
  readEnvi(
    numbers,
    [0],
    { column: 0, row: 0, width, height },
    { arrays: [values], offset: 0, stride: width },
  );
  const names = listField(fields, 'spectra names') ?? [];
  const scale = reflectanceScale(fields, header);
  return {
    wavelengths: spectrum.nanometres,
    spectra: Array.from({ length: height }, (_, line) => ({
      name: names[line] ?? `spectrum ${line + 1}`,
      values: Array.from(values.subarray(line * width, (line + 1) * width), (value) => value * (scale ?? 1)),
    })),
    isScaled: scale !== undefined,
    ...(spectrum.warning !== undefined && { warning: spectrum.warning }),
  };
}
