/** The ground and the dates that trained a model and the models that it started from. */
import { type GridName, gridByName } from '../../grid/index.js';
import { type ModelVersionRecord, type Storage, type TileRecord, versionNamed } from '../../storage/index.js';
import { type Dated, isSamePass, parseDated } from '../dates.js';
import { type CardSummary, trainingDates } from '../model-card.js';
import type { TrainedCell } from '../tile-errors.js';

export interface TrainingGround {
  /** The cells of the training, in the coordinates of a tile. Cells far from the tile are left out. */
  cellsAround(tile: TileRecord): TrainedCell[];
  /** True for a date within three days of one of the training, which may be the same pass. */
  isTrainingDate(date: Dated): boolean;
  /** Models that it started from, whose ground and dates are not known because they were deleted. */
  lost: string[];
}

interface TrainedPlace {
  collection: string;
  grid: GridName;
  geocode: string;
  heldOut: TrainedCell['heldOut'];
}

export async function trainingGround(
  { models }: Pick<Storage, 'models'>,
  model: ModelVersionRecord,
): Promise<TrainingGround> {
  const lineage = [model];
  const lost: string[] = [];
  const places: TrainedPlace[] = [];
  const dates = new Set<string>();
  for (const { collection, grid, card } of lineage) {
    const { distributed, pixelSize, geocode, holdOut, parent, transfer, adaptation, ...rest } =
      card as CardSummary;
    const { width, height } = pixelSize ?? {};
    const size = width !== undefined && height !== undefined ? { width, height } : undefined;
    for (const place of distributed?.places ?? [{ geocode, holdOut }]) {
      const heldOut = place.holdOut && { window: place.holdOut.window, ...(size && { size }) };
      places.push({ collection, grid, geocode: place.geocode, heldOut });
    }
    for (const date of trainingDates({ ...rest, holdOut, distributed, adaptation, transfer }))
      dates.add(date);
    if (parent === null) continue;
    const version = adaptation?.base.version ?? transfer?.version;
    const record = await models.get(parent);
    const ancestor = record && version && versionNamed(record, version);
    if (!ancestor) lost.push(`${parent}, version ${version}`);
    else if (!lineage.some(({ id, version }) => id === ancestor.id && version === ancestor.version))
      lineage.push(ancestor);
  }
  const trained = [...dates].map(parseDated);
  return {
    cellsAround: (tile) => places.flatMap((place) => cellAround(place, tile)),
    isTrainingDate: (date) => trained.some((other) => isSamePass(other, date)),
    lost,
  };
}

/** A gap is at most as wide as a tile. */
function cellAround({ collection, grid, geocode, heldOut }: TrainedPlace, tile: TileRecord): TrainedCell[] {
  const bounds = gridByName(tile.grid).bounds(tile.geocode);
  const cell = gridByName(grid).bounds(geocode);
  const x = (longitude: number) => (longitude - bounds.west) / (bounds.east - bounds.west);
  const y = (latitude: number) => (bounds.north - latitude) / (bounds.north - bounds.south);
  const edges = { west: x(cell.west), east: x(cell.east), north: y(cell.north), south: y(cell.south) };
  if (edges.east < -1 || edges.west > 2 || edges.south < -1 || edges.north > 2) return [];
  // Tiles of other collections may have other pixels than those of the training.
  const isSame =
    grid === tile.grid && geocode === tile.geocode && (heldOut?.size || collection === tile.collection);
  return [{ ...edges, ...(isSame && heldOut && { heldOut }) }];
}
