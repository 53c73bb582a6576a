/** A server with the processes of a test, in addition to those with their own routes. */
import type { FastifyInstance } from 'fastify';
import { buildServer, type ServerOptions } from '../../src/api/index.js';
import { FolderCoordination } from '../../src/coordination/index.js';
import { localQueries } from '../../src/dht/index.js';
import { ImageService } from '../../src/imagery/index.js';
import { IngestPool, ingestProcess } from '../../src/ingest/index.js';
import { LocalJobService, type Process } from '../../src/jobs/index.js';
import { NodeMetrics } from '../../src/metrics/index.js';
import { TileFinder } from '../../src/query/index.js';
import { Storage } from '../../src/storage/index.js';
import { Subscriptions } from '../../src/subscriptions/index.js';
import { storeModelProcess, TextureIndex } from '../../src/training/index.js';
import { atEnd } from '../support/at-end.js';

export interface JobServer {
  server: FastifyInstance;
  jobs: LocalJobService;
  storage: Storage;
}

export async function jobServer(
  t: { after(work: () => Promise<void>): void },
  data: string,
  processes: Process[],
  access: Partial<ServerOptions> = {},
): Promise<JobServer> {
  const storage = await Storage.open(data);
  const workers = new IngestPool(1, 128e6);
  const owners = localQueries(storage.index);
  const finder = new TileFinder(storage, owners);
  const imagery = new ImageService({ storage, finder, owners, cores: 1 });
  const ingest = ingestProcess({ storage, workers, memory: 128e6 });
  const own = [ingest, storeModelProcess({ storage, finder })];
  const all = [...processes, ...own];
  const jobs = await LocalJobService.open(storage, all, { resume: true });
  const coordination = new FolderCoordination(data);
  const subscriptions = new Subscriptions({
    ...{ open: coordination.open, jobs, ingest, self: 'test' },
    onFailure: (error) => process.emitWarning(String(error)),
  });
  const server = await buildServer(
    {
      version: '0',
      nodeId: 'test',
      storage,
      finder,
      cluster: undefined,
      imagery,
      textures: new TextureIndex(storage),
      jobs,
      subscriptions,
      metrics: new NodeMetrics(),
      processes: new Map(all.map((one) => [one.id, one])),
      allowedFolders: [],
      maxUpload: 1e8,
    },
    { log: false, ownerSecret: 'owner', ...access },
  );
  atEnd(t, async () => {
    await jobs.close();
    server.server.closeAllConnections();
    await server.close();
    await workers.close();
    await imagery.close();
    await coordination.close();
    await storage.close();
  });
  return { server, jobs, storage };
}
