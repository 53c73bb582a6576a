/** What clients did and saw while a pair ran. Times are ms since its start. */
import { writeFile } from 'node:fs/promises';

/** Number of the delivery that a scene is of, or that it is not there. */
export type SceneState = number | 'absent';

/**
 * `refused`: nothing was changed. `unknown`: the change may have been made, or may be made still.
 * Invariant of a history: a scene is written by one writer, which goes on with it only when its last write is done or refused.
 */
export interface Write {
  kind: 'write';
  scene: string;
  /** What the scene is to be. */
  to: SceneState;
  node: string;
  invoked: number;
  /** Infinity while it is unknown. */
  ended: number;
  outcome: 'done' | 'refused' | 'unknown';
  why?: string;
}

/** What one answer shows of a scene. `half`: it is neither absent nor one whole delivery. */
export type Seen = SceneState | { half: string };

/** An answer that should hold all tiles there are, in one page or in many. */
export interface Read {
  kind: 'read';
  node: string;
  invoked: number;
  ended: number;
  /** The answer says that it lacks slots. */
  partial: boolean;
  matched: number;
  returned: number;
  /** Ids that it has more than once. */
  twice: string[];
  scenes: Record<string, Seen>;
}

/** Bytes of a tile that a node or the store gave. */
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
  /** `away`: a part of the cluster is, and the answer says so. `wrong`: the bytes are those of no delivery. */
  outcome: 'right' | 'gone' | 'away' | 'wrong' | 'failed';
  why?: string;
}

/** Counts of a node that are not made by listing tiles. */
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

/** What became of a job whose result names all tiles that it has found. */
export interface JobEnd {
  kind: 'job';
  node: string;
  invoked: number;
  ended: number;
  /** Parts of a cluster that are away may make it fail. */
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

/** What a node shows of scenes and of the tiles derived from them, after the last derivation. */
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
  /** All nodes run, are connected, and own what they owned before. */
  isHealthy: boolean;
  searches: number;
  partial: number;
  /** Searches without an answer. */
  failed: number;
  why?: string;
}

/** One checkpoint or sweep that the harness has run. */
export interface UpkeepRun {
  kind: 'upkeep';
  work: 'checkpoint' | 'sweep';
  invoked: number;
  ended: number;
  /** `failed`: a fault has kept it from finishing. */
  outcome: 'done' | 'failed';
  /** Commits while it ran. */
  commits: number;
  /** Checkpoints that it has written. */
  manifests: number;
  why?: string;
}

/** A request of a reader that was not answered. */
export interface Unanswered {
  kind: 'unanswered';
  node: string;
  invoked: number;
  ended: number;
  why: string;
}

/** What the harness did. */
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

  /** One JSON document a line. */
  async save(path: string): Promise<void> {
    await writeFile(path, this.events.map((event) => `${JSON.stringify(event)}\n`).join(''));
  }
}
