import type { Imagery } from '../imagery/index.js';
import type { Jobs, Process } from '../jobs/index.js';
import type { Storage } from '../storage/index.js';

/** What the routes stand on. Wired in src/node.ts. */
export interface Services {
  version: string;
  nodeId: string;
  storage: Storage;
  imagery: Imagery;
  jobs: Jobs;
  processes: Map<string, Process>;
  /** Folders whose files `POST /ingest` may name, as real paths. */
  allowedFolders: string[];
  /** The most bytes of an uploaded file. */
  maxUpload: number;
}
