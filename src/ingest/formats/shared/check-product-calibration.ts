/** Checks that nodata, scale and offset keep different values different. */
import { bytesPerSample, type DataType, minValue, nodataAsType } from '../../../raster/index.js';
import { badOption, badScale } from '../../errors.js';
import type { DescribeOptions, Scene, SourceBand, SourceGroup } from '../../ingest-scene-description.js';

/** Throws TW_INGEST_BAD_OPTION for a `--nodata` that no band can hold, and TW_INGEST_BAD_SCALE. */
export function checkCalibration({ path, groups }: Scene, { nodata }: DescribeOptions): void {
  const data = groups.filter(({ role }) => role === 'data');
  const flagged = data.filter((group) => nodata !== undefined && sameNumber(group.nodata, nodata));
  if (flagged.length > 0 && !flagged.some(canStoreNodata)) {
    const types = [...new Set(flagged.map(typeOf))];
    throw badOption(
      '--nodata',
      String(nodata),
      `a value that pixels of ${types.join(' or ')} of ${path} can hold`,
    );
  }
  for (const band of data.flatMap(({ bands }) => bands))
    if (!isInvertible(band)) throw badScale(path, band.name, band.scale, band.offset);
}

const sameNumber = (a: number | null, b: number) => a === b || (Number.isNaN(a) && Number.isNaN(b));

const typeOf = ({ bands }: SourceGroup): DataType => bands[0]!.header.dataType;

function canStoreNodata(group: SourceGroup): boolean {
  return nodataAsType(typeOf(group), group.nodata ?? undefined) !== undefined;
}

/** True if two stored values can result in two physical values. Physical values are single precision in all computations. */
function isInvertible({ header: { dataType }, scale, offset }: SourceBand): boolean {
  const physical = (stored: number) => Math.fround(stored * scale + offset);
  if (dataType.startsWith('float'))
    return Math.fround(scale) !== 0 && Number.isFinite(Math.fround(scale)) && Number.isFinite(physical(0));
  const lowest = minValue(dataType);
  const first = physical(lowest);
  const last = physical(lowest + 2 ** (8 * bytesPerSample(dataType)) - 1);
  return Number.isFinite(first) && Number.isFinite(last) && first !== last;
}
