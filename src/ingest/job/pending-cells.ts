/** Decides which tiles of a scene are still to be made. */
import type { Bbox, Grid } from '../../grid/index.js';
import {
  type CollectionRecord,
  cellsOfFingerprint,
  type SceneRecord,
  type Storage,
} from '../../storage/index.js';
import { addRegion, isRegionKnown, regionFilter } from '../plan/index.js';

interface WantedScene {
  storage: Storage;
  collection: CollectionRecord;
  grid: Grid;
  /** The scene as it is stored. */
  known: SceneRecord | undefined;
  fingerprint: string;
  /** Absent for the whole scene. */
  region: Bbox | undefined;
  /** Computes the cells of the scene in the region. */
  cover(): string[];
}

export interface PendingCells {
  cells: string[];
  /** Number of tiles in the region that stay. */
  present: number;
  /** True if tiles of another fingerprint, or damaged ones, are replaced. */
  replaced: boolean;
  /** True for the cells whose tiles stay. */
  keep(geocode: string): boolean;
  /** The regions of this fingerprint after the ingest; undefined for the whole scene. */
  regions: Bbox[] | undefined;
}

/** Returns the cells that have no undamaged tile of this fingerprint, except those that are known to have no data. */
export async function pendingCells(wanted: WantedScene): Promise<PendingCells> {
  const { storage, collection, grid, known, fingerprint, region, cover } = wanted;
  const isWanted = region ? regionFilter(grid, region) : () => true;
  const isLatest = known?.fingerprint === fingerprint;
  const former = isLatest ? known.regions : [];
  const isWhole = former === undefined;
  const isKnown = isWhole || (region !== undefined && isRegionKnown(former, region));
  const made = known ? cellsOfFingerprint(known, fingerprint).filter(isWanted) : [];
  const intact = new Set(known ? await storage.intactCells(known, collection, made) : []);
  const wereRead = (former ?? []).map((one) => regionFilter(grid, one));
  const present = new Set(known?.geocodes);
  const isEmpty = (cell: string) => !present.has(cell) && wereRead.some((contains) => contains(cell));
  const cells = isKnown ? made : cover();
  const keep = (cell: string) => intact.has(cell) || !isWanted(cell);
  return {
    cells: cells.filter((cell) => !intact.has(cell) && !isEmpty(cell)),
    present: intact.size,
    replaced: known?.geocodes.some((cell) => !keep(cell)) ?? false,
    keep,
    regions: isWhole || region === undefined ? undefined : addRegion(former, region),
  };
}
