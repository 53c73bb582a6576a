/** The remote files of a scene, as an ingest uses them. */
import type { ScenePart, SceneWrite } from '../../storage/index.js';
import type { NegativeCount } from '../cut/index.js';
import type { ScenePlan } from '../plan/index.js';

export interface RemoteSource {
  /** Stored with the scene, see `SceneRecord.item`. */
  digest: string | undefined;
  /** Requests and bytes that `fetch` needs. */
  plan(plan: ScenePlan, cells: string[]): { requests: number; bytes: number };
  /** Returns the plan with files that hold the pixels of the cells. `onShare` gets the fetched part, 0 to 1. */
  fetch(plan: ScenePlan, cells: string[], onShare: (share: number) => void): Promise<ScenePlan>;
  /** The other nodes of a cluster, which can read the files as well; undefined if this node reads all. */
  owners: CellOwners | undefined;
}

/** Nodes of a cluster that make the tiles of the cells that they own. */
export interface CellOwners {
  /** Divides the cells of a scene by the running nodes that own them. */
  divide(plan: ScenePlan, cells: string[]): { own: string[]; others: Map<string, string[]> };
  /** Lets a node make tiles for a write. Returns undefined if the node fails. Throws the reason of `signal`. */
  make(
    node: string,
    wanted: WantedPart,
    onShare: (share: number) => void,
    signal: AbortSignal,
  ): Promise<MadePart | undefined>;
}

export interface WantedPart {
  write: SceneWrite;
  fingerprint: string;
  cells: string[];
}

/** Tiles of another node for a write, with the count of their pixels below zero. */
export interface MadePart extends ScenePart {
  negative: NegativeCount;
}
