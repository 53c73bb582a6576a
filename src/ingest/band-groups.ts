/** Gathers the bands of a scene into groups by pixel size, data type and role. */
import type { RasterHeader } from '../raster/index.js';
import { bandsDiffer } from './errors.js';
import type { Resolution, SourceBand, SourceGroup } from './scene.js';

export interface UngroupedBand extends SourceBand {
  role: 'data' | 'qa';
  nodata: number | null;
  resolution: Resolution;
}

const sameSize = (a: number, b: number) => Math.abs(a - b) <= 0.001 * Math.max(a, b);

function samePosition(a: RasterHeader, b: RasterHeader): boolean {
  const s = a.transform;
  const t = b.transform;
  const tolerance = 0.01 * Math.hypot(s.xx, s.yx);
  return (
    a.width === b.width &&
    a.height === b.height &&
    a.crs.proj4 === b.crs.proj4 &&
    Math.abs(s.originX - t.originX) < tolerance &&
    Math.abs(s.originY - t.originY) < tolerance
  );
}

/** Groups, finest first, data before qa. Names are `<size>m`, `<size>m-qa`, with `-<type>` where two would be alike. */
export function groupBands(bands: UngroupedBand[]): SourceGroup[] {
  const groups: (SourceGroup & { type: string })[] = [];
  for (const { role, nodata, resolution, ...band } of bands) {
    const found = groups.find(
      (g) =>
        g.role === role &&
        g.type === band.header.dataType &&
        sameSize(g.resolution.x, resolution.x) &&
        sameSize(g.resolution.y, resolution.y),
    );
    if (found && !samePosition(found.bands[0].header, band.header)) {
      throw bandsDiffer(band.header.path, found.bands[0].header.path);
    }
    if (found) found.bands.push(band);
    else groups.push({ name: '', role, resolution, nodata, bands: [band], type: band.header.dataType });
  }
  const size = (g: SourceGroup) => Math.max(g.resolution.x, g.resolution.y);
  groups.sort((a, b) => size(a) - size(b) || (a.role === b.role ? 0 : a.role === 'data' ? -1 : 1));
  const base = (g: SourceGroup) => `${sizeName(size(g))}m${g.role === 'qa' ? '-qa' : ''}`;
  return groups.map(({ type, ...group }) => {
    const alike = groups.filter((other) => base(other) === base(group)).length > 1;
    return { ...group, name: alike ? `${base(group)}-${type}` : base(group) };
  });
}

/** 10 -> "10", 0.6 -> "0.6", 3011.58 -> "3012". */
function sizeName(metres: number): string {
  return metres >= 10 ? String(Math.round(metres)) : String(Number(metres.toPrecision(2)));
}
