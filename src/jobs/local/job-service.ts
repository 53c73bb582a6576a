import type { Readable } from 'node:stream';
import type { Peer } from '../../dht/index.js';
import type { LocalJobService } from './local-job-service.js';

/** A file that a job answered with. */
export interface JobFile {
  bytes: number;
  open(): Promise<Readable> | Readable;
}

/** Jobs as those see them who ask for them: of this node, or of all nodes. */
export interface JobService
  extends Pick<
    LocalJobService,
    | 'start'
    | 'startIdempotent'
    | 'get'
    | 'list'
    | 'active'
    | 'log'
    | 'subscribe'
    | 'cancel'
    | 'retry'
    | 'hasStopped'
  > {
  /** The node that is to be asked for a job in place of this one; `includeEnded` where it has to be the one that had it. */
  leaderOf(id: string, alsoEnded?: boolean): Promise<Peer | undefined>;
  /** Undefined where there is none of this name. */
  file(id: string, name: string): Promise<JobFile | undefined>;
}
