/** The remote files of a scene, as an ingest uses them. */
import type { ScenePlan } from '../plan/index.js';

export interface RemoteSource {
  /** Stored with the scene, see `SceneRecord.item`. */
  digest: string | undefined;
  /** Requests and bytes that `fetch` needs. */
  plan(plan: ScenePlan, cells: string[]): { requests: number; bytes: number };
  /** Returns the plan with files that hold the pixels of the cells. `onShare` gets the fetched part, 0 to 1. */
  fetch(plan: ScenePlan, cells: string[], onShare: (share: number) => void): Promise<ScenePlan>;
}
