/** `/openapi.json` for client generators: names of operations, the token, the server. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Ajv } from 'ajv';
import { publishedSchema } from '../../src/api/schemas/builders.js';
import { openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';

interface Operation {
  operationId?: string;
  security?: object[];
}

async function operationsOf(t: TestContext, access: { token?: string; readToken?: string }) {
  const node = await openNode({
    data: join(await tempFolder(t), 'data'),
    memory: 128e6,
    cores: 1,
    ...access,
  });
  atEnd(t, () => node.close());
  const headers = { authorization: `Bearer ${node.ownerSecret}`, host: 'localhost:8080' };
  const document = (await node.server.inject({ url: '/openapi.json', headers })).json();
  const operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ name: `${method.toUpperCase()} ${path}`, ...one })),
  );
  return { document, operations };
}

/** Names of functions in generated clients. New ones may be added, but existing names never change. */
const IDS = `
  aggregate aggregateByPost aggregateCollection aggregateCollectionByPost cancelJob changeSubscription checkTraining
  createSubscription
  deleteCollection deleteItem deleteModel deleteModelVersion deleteScene drainNode executeAnalyseAnomaly
  executeAnalyseClassify executeAnalyseCluster executeAnalyseContinuum executeAnalyseIndices
  executeAnalyseMatch executeAnalyseMnf executeAnalysePca executeAnalyseResample executeAnalyseSmooth
  executeAnalyseStats executeAnalyseUnmix executeCheck executeCoalesce executeExport executeFill executeIngest executePredict executeScore executeScoreClassifier
  executeSplit executeStoreModel executeTensor executeTexture executeTrain executeVerify findSimilarPlaces
  getBandFile getClusterUsage getCollection getCollectionQueryables getConformance getDocsPage getHealth getItem getJob
  getJobEvents getJobFile getJobLog getJobResults getLandingPage getMapPage getMapTile getMapTileByFormat getMetrics getModel
  getModelFile getModelItem getModelVersion getModelVersionFile getModelVersionItem getPlacement getPreview getPreviewByFormat
  getProcess getQueryables getReady getScene getSpectra getSubscription getTileFile getTileJson getTimeSeries
  getTrainingPlace ingest listAggregations listCollectionAggregations listCollections listItems listJobs
  listModelVersions listModels listNodes listProcesses listScenes listSubscriptions locateCell rebalance rejoinNode removeSubscription retryJob runSubscription
  searchItems searchItemsByPost
`;

test('each operation has a unique and stable name', async (t) => {
  const { document, operations } = await operationsOf(t, { token: 'w' });
  const unnamed = operations.filter(({ operationId }) => operationId === undefined);
  assert.deepEqual(unnamed, [], 'name these in src/api/schemas/openapi.ts');
  const ids = operations.map(({ operationId }) => operationId!);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^[a-z][A-Za-z]+$/);
  assert.deepEqual(ids.sort(), IDS.trim().split(/\s+/));
  assert.deepEqual(document.servers, [{ url: 'http://localhost:8080' }]);
});

test('schemas have the keywords of OpenAPI 3.0 only', async (t) => {
  const { document } = await operationsOf(t, {});
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      // Names of properties may equal keywords.
      const isKeyword = !path.endsWith('/properties');
      if (isKeyword)
        assert.ok(!['propertyNames', 'patternProperties', 'const', 'if', 'contains'].includes(name), path);
      // In OpenAPI 3.0 these are booleans.
      if (name === 'exclusiveMinimum' || name === 'exclusiveMaximum')
        assert.notEqual(typeof member, 'number', path);
      if (name === 'required') assert.notDeepEqual(member, [], path);
      walk(member, `${path}/${name}`);
    }
  };
  walk(document.paths, '');
  walk(document.components, '');
});

test('the inputs of all processes are valid JSON Schemas', async (t) => {
  const node = await openNode({ data: join(await tempFolder(t), 'data'), memory: 128e6, cores: 1 });
  atEnd(t, () => node.close());
  const headers = { authorization: `Bearer ${node.ownerSecret}` };
  const read = async (url: string) => (await node.server.inject({ url, headers })).json();
  const ajv = new Ajv({ strict: false });
  const { processes } = await read('/processes?limit=1000');
  assert.ok(processes.length > 15);
  for (const { id } of processes)
    for (const [name, { schema }] of Object.entries<{ schema: object }>(
      (await read(`/processes/${id}`)).inputs,
    ))
      assert.ok(ajv.validateSchema(schema), `${id}.${name}: ${ajv.errorsText()}`);
});

test('operations name the token if the server requires one', async (t) => {
  const guarded = async (access: { token?: string; readToken?: string }) => {
    const { document, operations } = await operationsOf(t, access);
    const { type, scheme } = document.components.securitySchemes.token;
    assert.deepEqual([type, scheme], ['http', 'bearer']);
    return operations.flatMap(({ name, security }) => {
      if (!security) return [];
      assert.deepEqual(security, [{ token: [] }]);
      return [name];
    });
  };
  assert.deepEqual(await guarded({}), []);
  const writes = await guarded({ token: 'w' });
  assert.ok(writes.includes('POST /ingest') && writes.includes('DELETE /jobs/{id}'));
  assert.ok(!writes.includes('GET /search') && !writes.includes('POST /search'));
  const all = await guarded({ token: 'w', readToken: 'r' });
  for (const name of [...writes, 'GET /search', 'POST /search', 'GET /metrics'])
    assert.ok(all.includes(name), name);
  for (const name of ['GET /health', 'GET /ready', 'GET /map']) assert.ok(!all.includes(name), name);
});

test('properties may have the names of keywords', () => {
  const properties = { propertyNames: { type: 'string' }, properties: { type: 'object' } };
  assert.deepEqual(publishedSchema({ type: 'object', properties, propertyNames: {} }), {
    type: 'object',
    properties,
  });
});
