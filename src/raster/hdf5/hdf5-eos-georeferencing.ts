/**
 * Georeferencing of HDF-EOS5 grids by their structural metadata (HDF-EOS5 Data Model, File Format and Library, ESDS-RFC-008).
 */

import { crsFromEpsg } from '../crs/index.js';
import { corrupt, noCrs, unsupported } from '../errors.js';
import { odlList, odlNodes, parseOdl } from '../metadata/index.js';
import type { Crs } from '../raster-types.js';
import type { Hdf5File } from './hdf5-file.js';
import { type Georeferencing, gridGeoreferencing } from './hdf5-georeferencing.js';

export const STRUCT_METADATA_PREFIX = '/HDFEOS INFORMATION/StructMetadata.';

/** The structural metadata, which long files split into parts; undefined if the file is not HDF-EOS. */
export function readStructMetadata(file: Hdf5File): string | undefined {
  const parts: string[] = [];
  for (let i = 0; ; i++) {
    const part = file.text(`${STRUCT_METADATA_PREFIX}${i}`);
    if (part === undefined) return parts.length > 0 ? parts.join('') : undefined;
    parts.push(part);
  }
}

/** Undefined if the dataset belongs to no HDF-EOS grid. */
export function eosGeoreferencing(file: Hdf5File, dataset: string): Georeferencing | undefined {
  const name = /^\/HDFEOS\/GRIDS\/([^/]+)\//.exec(dataset)?.[1];
  const structure = name === undefined ? undefined : readStructMetadata(file);
  if (structure === undefined) return undefined;
  const grids = [...odlNodes(parseOdl(structure))].filter(({ values }) => values.GridName === name);
  if (grids.length === 0)
    throw noCrs(file.path, `its structural metadata does not describe the grid ${name}`);
  const { values } = grids[0];
  const numbers = (key: string) => odlList(values[key] ?? '').map(Number);
  const [width] = numbers('XDim');
  const [height] = numbers('YDim');
  const shape = file.metadata(file.dataset(dataset)!).shape ?? [];
  if (shape.at(-1) !== width || shape.at(-2) !== height) {
    throw corrupt(
      file.path,
      `${dataset} is ${shape.join(' x ')}, but its grid has ${height} rows of ${width} pixels`,
    );
  }
  const corners = [...numbers('UpperLeftPointMtrs'), ...numbers('LowerRightMtrs')];
  if (corners.length !== 4 || !corners.every(Number.isFinite)) {
    throw noCrs(file.path, `the corners of the grid ${name} cannot be read`);
  }
  const geographic = values.Projection === 'HE5_GCTP_GEO';
  const packed = geographic && corners.some((corner) => Math.abs(corner) > 360);
  const [left, top, right, bottom] = packed ? corners.map(packedDmsToDegrees) : corners;
  const x = { start: left, step: (right - left) / width };
  const y = { start: top, step: (bottom - top) / height };
  if (!(x.step > 0 && y.step < 0)) throw noCrs(file.path, `the corners of the grid ${name} span no area`);
  const crs = geographic ? crsFromEpsg(4326) : projected(file.path, values);
  return gridGeoreferencing(crs, x, storedFrom(file.path, values.GridOrigin, y, bottom), height);
}

/** Rows go south from the upper left pixel unless the grid declares that its first pixel is the lower left one. */
function storedFrom(
  path: string,
  origin: string | undefined,
  y: { start: number; step: number },
  bottom: number,
) {
  if (origin === undefined || origin === 'HE5_HDFE_GD_UL') return y;
  if (origin === 'HE5_HDFE_GD_LL') return { start: bottom, step: -y.step };
  throw unsupported(path, `its first pixel is at ${origin}`);
}

/** Supports only the sinusoidal projection of VIIRS and MODIS tiles. */
function projected(path: string, values: Record<string, string>): Crs {
  if (values.Projection !== 'HE5_GCTP_SNSOID')
    throw unsupported(path, `its projection is ${values.Projection}`);
  const [radius, , , , meridian = 0, , east = 0, north = 0] = odlList(values.ProjParams ?? '').map(Number);
  if (!(radius > 0) || ![radius, meridian, east, north].every(Number.isFinite)) {
    throw noCrs(path, 'its sinusoidal projection does not say the radius of the sphere');
  }
  const parameters = `+lon_0=${packedDmsToDegrees(meridian)} +x_0=${east} +y_0=${north} +a=${radius} +b=${radius}`;
  return { epsg: undefined, proj4: `+proj=sinu ${parameters} +units=m +no_defs`, geographic: false };
}

/** GCTP packs degrees as DDDMMMSSS.SS: 75 degrees 30 minutes are 75030000. */
export function packedDmsToDegrees(packed: number): number {
  const size = Math.abs(packed);
  const degrees = Math.floor(size / 1e6);
  const minutes = Math.floor((size - degrees * 1e6) / 1e3);
  const seconds = size - degrees * 1e6 - minutes * 1e3;
  return Math.sign(packed) * (degrees + minutes / 60 + seconds / 3600);
}
