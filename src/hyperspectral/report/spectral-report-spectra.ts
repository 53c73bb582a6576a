/** Spectra of a collection for a report. */
import { cellBbox, gridByName } from '../../grid/index.js';
import { type ImageService, parseZone, type Zone } from '../../imagery/index.js';
import { and, type Filter, parseFilter, type TileFinder } from '../../query/index.js';
import type { TileRecord } from '../../storage/index.js';
import type { AnalysedBand } from '../spectrum-reading/index.js';
import type { Curve } from './spectral-report-charts.js';
import { fullestTiles, partWithData, tileLabel } from './spectral-report-maps.js';

/** Tiles whose spectra are shown, the fullest first. */
const MAX_SHOWN_TILES = 4;
/** Side of the square whose mean is shown. */
const SAMPLE_SIDE_PX = 5;

/**
 * Physical values of the mean spectrum of a small square in the middle of the data of some tiles. Tiles that lack data there in some band
 * are left out. Calls `warn` for tiles that cannot be read.
 */
export async function exampleSpectra(
  { finder, imagery }: { finder: TileFinder; imagery: ImageService },
  filter: Filter,
  bands: readonly AnalysedBand[],
  warn: (tile: string, error: unknown) => void,
): Promise<Curve[]> {
  const curves: Curve[] = [];
  for (const tile of await fullestTiles(finder, filter, MAX_SHOWN_TILES)) {
    const region = middleOf(tile);
    const found = await imagery
      .spectra({ region, filter: and([filter, parseFilter({ ids: [tile.id] })]) })
      .catch((error) => {
        warn(`the spectrum of ${tile.id}`, error);
      });
    const date = found?.dates[0];
    const values = bands.map(
      ({ name }) => date?.mean[date.bands.findIndex((band) => band.name === name)] ?? NaN,
    );
    if (values.every(Number.isFinite)) curves.push({ name: tileLabel(tile), values });
  }
  return curves;
}

function middleOf(tile: TileRecord): Zone {
  const { grid, geocode, groups } = tile;
  const [west, south, east, north] = cellBbox(gridByName(grid), geocode);
  const part = partWithData(tile);
  const { width, height } = groups[0];
  const [x, y] = [(part.west + part.east) / 2, (part.north + part.south) / 2];
  const [dx, dy] = [SAMPLE_SIDE_PX / width / 2, SAMPLE_SIDE_PX / height / 2];
  const corner = (across: number, down: number) => [
    west + (east - west) * Math.min(1, Math.max(0, x + across * dx)),
    north - (north - south) * Math.min(1, Math.max(0, y + down * dy)),
  ];
  const ring = [corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1), corner(-1, -1)];
  return parseZone({ type: 'Polygon', coordinates: [ring] });
}
