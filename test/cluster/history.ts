/** The actions and observations of clients during a pair. Times are ms since its start. */
import { writeFile } from 'node:fs/promises';

/** The number of the delivery of a scene, or its absence. */
export type SceneState = number | 'absent';

/**
 * `refused`: nothing was changed. `unknown`: the change may have been made, or may still be made.
 * Invariant of a history: a scene has one writer, which continues only when its last write is done or refused.
 */
export interface Write {
  kind: 'write';
  scene: string;
  /** The state that the write leads to. */
  to: SceneState;
  node: string;
  invoked: number;
  /** Infinity while the outcome is unknown. */
  ended: number;
  outcome: 'done' | 'refused' | 'unknown';
  why?: string;
}

/** The state of a scene in one answer. `half`: neither absent nor one complete delivery. */
export type Seen = SceneState | { half: string };

/** An answer that should contain all tiles, in one page or in many. */
export interface Read {
  kind: 'read';
  node: string;
  invoked: number;
  ended: number;
  /** True if the answer says that it lacks slots. */
  partial: boolean;
  matched: number;
  returned: number;
  /** Ids that occur more than once. */
  twice: string[];
  scenes: Record<string, Seen>;
}

/** Bytes of a tile from a node or the store. */
export interface TileRead {
  kind: 'tile';
  node: string;
  tile: string;
  group: string;
  scene: string;
  /** The delivery that the same node has shown just before. */
  delivery: number;
  invoked: number;
  ended: number;
  /** `away`: a part of the cluster is unreachable, and the answer says so. `wrong`: the bytes belong to no delivery. */
  outcome: 'right' | 'gone' | 'away' | 'wrong' | 'failed';
  why?: string;
}

/** Counts from a node that do not come from listing tiles. */
export interface Count {
  kind: 'count';
  node: string;
  invoked: number;
  ended: number;
  /** All tiles, by the aggregation `total_count`. */
  tiles: number;
  /** Tiles of each scene, by the list of scenes. */
  scenes: Record<string, number>;
}

/** The outcome of a job whose result names all tiles that it has found. */
export interface JobEnd {
  kind: 'job';
  node: string;
  invoked: number;
  ended: number;
  /** Unreachable parts of a cluster may make it fail. */
  outcome: 'done' | 'failed';
  tiles: string[];
  why?: string;
}

/** A job that derives tiles, trains or predicts has ended. */
export interface Work {
  kind: 'work';
  process: string;
  node: string;
  invoked: number;
  ended: number;
  outcome: 'done' | 'refused' | 'unknown';
  why?: string;
}

/** The scenes of a node, and the tiles derived from them, after the last derivation. */
export interface Derived {
  kind: 'derived';
  node: string;
  invoked: number;
  ended: number;
  scenes: Record<string, { delivery: SceneState; files: Record<string, number> }>;
}

/** Many searches sent to one node at the same moment. */
export interface Burst {
  kind: 'burst';
  node: string;
  invoked: number;
  ended: number;
  /** True if all nodes are running and connected, and own the same slots as before. */
  isHealthy: boolean;
  searches: number;
  partial: number;
  /** Searches without an answer. */
  failed: number;
  why?: string;
}

/** One checkpoint or garbage collection by the harness. */
export interface UpkeepRun {
  kind: 'upkeep';
  work: 'checkpoint' | 'sweep';
  invoked: number;
  ended: number;
  /** `failed`: a fault kept it from finishing. */
  outcome: 'done' | 'failed';
  /** Number of commits during the run. */
  commits: number;
  /** Number of checkpoints that it has written. */
  manifests: number;
  why?: string;
}

/** A request of a reader without an answer. */
export interface Unanswered {
  kind: 'unanswered';
  node: string;
  invoked: number;
  ended: number;
  why: string;
}

/** An action of the harness. */
export interface Note {
  kind: 'note';
  invoked: number;
  text: string;
}

export type Event =
  | Write
  | Read
  | TileRead
  | Count
  | JobEnd
  | Work
  | Derived
  | Burst
  | UpkeepRun
  | Unanswered
  | Note;

export class History {
  readonly events: Event[] = [];
  private readonly began = performance.now();

  now(): number {
    return Math.round((performance.now() - this.began) * 10) / 10;
  }

  add<E extends Event>(event: E): E {
    this.events.push(event);
    return event;
  }

  note(text: string): void {
    this.add({ kind: 'note', invoked: this.now(), text });
  }

  of<K extends Event['kind']>(kind: K): Extract<Event, { kind: K }>[] {
    return this.events.filter((event): event is Extract<Event, { kind: K }> => event.kind === kind);
  }

  /** JSON lines. */
  async save(path: string): Promise<void> {
    await writeFile(path, this.events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  }
}
