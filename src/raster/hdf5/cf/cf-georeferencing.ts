/**
 * Georeferencing of grids by the CF conventions (CF-1.11, sections 4, 5.6 and appendix F): coordinate variables and a grid
 * mapping.
 */
import { posix } from 'node:path';
import { metresPerUnit } from '../../crs/index.js';
import { corrupt, noCrs, unsupported } from '../../errors.js';
import { aliasTable } from '../../raster-alias-table.js';
import type { Attributes, Hdf5File } from '../hdf5-file.js';
import { type AxisOrigin, type Georeferencing, gridGeoreferencing } from '../hdf5-georeferencing.js';
import { crsFromGridMapping } from './cf-grid-mapping.js';

export function cfGeoreferencing(file: Hdf5File, dataset: string): Georeferencing {
  const variable = file.dataset(dataset)!;
  const [rows, columns] = file
    .dimensionScales(variable)
    .slice(-2)
    .map((scales) => scales.at(0));
  const y = axisOf(file, rows);
  const x = axisOf(file, columns);
  if (x?.kind === 'latitude' || x?.kind === 'y' || y?.kind === 'longitude' || y?.kind === 'x') {
    throw unsupported(file.path, `${dataset} is stored with its columns before its rows`);
  }
  const geographic = y?.kind === 'latitude' && x?.kind === 'longitude';
  if (!y || !x || (!geographic && (y.kind !== 'y' || x.kind !== 'x'))) {
    throw noCrs(file.path, `${dataset} has no coordinate variables of latitude and longitude, or y and x`);
  }
  const mapping = gridMapping(file, dataset);
  if (!mapping && !geographic) throw noCrs(file.path, `${dataset} has coordinates but no grid mapping`);
  const crs = crsFromGridMapping(
    file.path,
    mapping,
    geographic,
    (!geographic && metresOf(file, x.attributes)) || 1,
  );
  const [height, width] = file.metadata(variable).shape!.slice(-2);
  const ownUnit = crs.geographic ? 1 : metresPerUnit(crs);
  // Coordinates without a unit have the unit of the coordinate system.
  const unit = (axis: Axis) => (crs.geographic ? 1 : (metresOf(file, axis.attributes) ?? ownUnit) / ownUnit);
  const across = readAxisOrigin(file, x.path, width, unit(x));
  return gridGeoreferencing(crs, across, readAxisOrigin(file, y.path, height, unit(y)), height);
}

type AxisKind = 'latitude' | 'longitude' | 'y' | 'x';

interface Axis {
  path: string;
  attributes: Attributes;
  kind: AxisKind;
}

function axisOf(file: Hdf5File, path: string | undefined): Axis | undefined {
  if (path === undefined) return undefined;
  const attributes = file.attributes(path);
  const kind = kindOf(attributes);
  return kind && { path, attributes, kind };
}

/** The axis of a coordinate variable; undefined if it is neither x nor y (such as latitudes of a rotated pole). */
function kindOf({ standard_name: name, units }: Attributes): AxisKind | undefined {
  if (name === 'latitude' || name === 'longitude') return name;
  if (name === 'projection_y_coordinate') return 'y';
  if (name === 'projection_x_coordinate') return 'x';
  if (name !== undefined && name !== '') return undefined;
  if (/^degrees?_?(north|N)$/i.test(String(units))) return 'latitude';
  if (/^degrees?_?(east|E)$/i.test(String(units))) return 'longitude';
  return undefined;
}

/** Attributes of the variable that `grid_mapping` names, searched in the dataset's group and the groups around it. */
function gridMapping(file: Hdf5File, dataset: string): Attributes | undefined {
  const text = file.attributes(dataset).grid_mapping;
  if (typeof text !== 'string') return undefined;
  // The long form also names the coordinates: "crs: x y".
  const name = text.trim().split(/[\s:]/, 1)[0];
  for (let group = posix.dirname(dataset); ; group = posix.dirname(group)) {
    const path = posix.join(group, name);
    if (file.dataset(path)) return file.attributes(path);
    if (group === '/') throw noCrs(file.path, `its grid mapping ${name} is missing`);
  }
}

const METRES_PER_UNIT: Record<string, number> = {
  ...aliasTable([
    [1, 'm meter meters metre metres'],
    [1000, 'km kilometer kilometers kilometre kilometres'],
    [0.3048, 'ft foot feet'],
    [1200 / 3937, 'us-ft us_survey_foot'],
  ]),
  'us survey foot': 1200 / 3937,
};

/** Metres of the unit of a projected coordinate; undefined if it has none. */
function metresOf(file: Hdf5File, { units = '' }: Attributes): number | undefined {
  const unit = String(units).toLowerCase();
  if (unit === '') return undefined;
  if (!Object.hasOwn(METRES_PER_UNIT, unit)) throw unsupported(file.path, `its coordinates are in ${units}`);
  return METRES_PER_UNIT[unit];
}

/** Tolerance of the position of a cell for even spacing, in cells: far above the rounding of float32 coordinates. */
const MAX_SPACING_ERROR_CELLS = 0.1;
const VALUES_PER_READ = 65_536;

/** Checks that cell centres are evenly spaced; reads them in pieces. */
function readAxisOrigin(file: Hdf5File, path: string, length: number, unit: number): AxisOrigin {
  const dataset = file.dataset(path)!;
  const shape = file.metadata(dataset).shape ?? [];
  if (shape.length !== 1)
    throw unsupported(file.path, `its coordinates ${path} have ${shape.length} dimensions`);
  if (shape[0] !== length)
    throw corrupt(file.path, `it has ${shape[0]} coordinates ${path} for ${length} pixels`);
  if (length < 2) throw noCrs(file.path, `a single coordinate in ${path} does not say the size of a pixel`);
  const at = (i: number) => Number(file.slice(dataset, [[i, i + 1]])[0]);
  const first = at(0);
  const step = (at(length - 1) - first) / (length - 1);
  if (!Number.isFinite(first) || !Number.isFinite(step)) {
    throw corrupt(file.path, `the coordinates ${path} are not all numbers`);
  }
  if (step === 0) throw noCrs(file.path, `the coordinates ${path} are all the same`);
  for (let from = 0; from < length; from += VALUES_PER_READ) {
    const values = file.slice(dataset, [[from, Math.min(length, from + VALUES_PER_READ)]]);
    for (let i = 0; i < values.length; i++) {
      const error = Math.abs(Number(values[i]) - (first + (from + i) * step)) / Math.abs(step);
      if (Number.isNaN(error)) throw corrupt(file.path, `the coordinates ${path} are not all numbers`);
      if (error > MAX_SPACING_ERROR_CELLS)
        throw unsupported(file.path, `its coordinates ${path} are not evenly spaced`);
    }
  }
  return { start: (first - step / 2) * unit, step: step * unit };
}
