/** Which source rows a cell reads. */
import type { Grid } from '../geocode/index.js';
import { mapToPixel, projector } from '../raster/index.js';
import type { SourceGroup } from './scene.js';

/** Source rows [from, to) of one group; from = to where the cell lies beside the raster. */
export type RowSpan = [from: number, to: number];

/** Nodes per side at which a cell's border is projected to find the rows that it reads. */
const SAMPLES = 9;
/** Rows beyond the sampled ones: one for bilinear neighbours, one for curvature between the samples. */
const MARGIN = 2;

export function rowsOfCell(group: SourceGroup, grid: Grid, geocode: string): RowSpan {
  const { header } = group.bands[0];
  const { west, south, east, north } = grid.bounds(geocode);
  const toSource = projector(`EPSG:${grid.epsg}`, header.crs);
  let low = Infinity;
  let high = -Infinity;
  for (let j = 0; j < SAMPLES; j++) {
    for (let i = 0; i < SAMPLES; i++) {
      const u = i / (SAMPLES - 1);
      const v = j / (SAMPLES - 1);
      const point = toSource(west + (east - west) * u, south + (north - south) * v);
      const [, row] = mapToPixel(header.transform, ...point);
      if (!Number.isFinite(row)) continue;
      low = Math.min(low, row);
      high = Math.max(high, row);
    }
  }
  const clip = (row: number) => Math.max(0, Math.min(header.height, row));
  return low > high ? [0, 0] : [clip(Math.floor(low) - MARGIN), clip(Math.ceil(high) + MARGIN)];
}
