/** OGC API Processes, part 1: the list of processes, their descriptions and their execution. */
import type { Process } from '../../jobs/index.js';
import { processNotFound } from '../errors.js';
import { baseUrl, link, listPaging, type Paging, toPage } from '../links.js';
import { closedObject, publishedSchema } from '../schemas/builders.js';
import { describeWithTag, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';
import { type ExecuteRequest, executionRoute, sendJob, startJob, wantedResultOptions } from './execution.js';
import { jobRoutes } from './jobs.js';

/** The jobs of these processes get paths on the server's disk. Their own routes check or create the paths. */
const OWN_ROUTES = new Set(['ingest', 'store-model']);
const EXECUTE = 'http://www.opengis.net/def/rel/ogc/1.0/execute';

function summary({ id, title, description }: Process, base: string) {
  return {
    id,
    title,
    description,
    version: '1.0.0',
    jobControlOptions: ['async-execute', 'dismiss'],
    outputTransmission: ['value'],
    links: [link('self', `${base}/processes/${id}`), link(EXECUTE, `${base}/processes/${id}/execution`)],
  };
}

/** Inputs as the standard requires them: by name, each with its schema. */
function inputsOf({ inputs }: Process) {
  const { properties = {}, required = [] } = publishedSchema(inputs) as {
    properties?: object;
    required?: string[];
  };
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      { title: name, schema, minOccurs: required.includes(name) ? 1 : 0 },
    ]),
  );
}

const describe = describeWithTag('processes');

export const processRoutes: RouteGroup = async (server, { services }) => {
  const { jobs, processes } = services;
  server.get<{ Querystring: Paging }>(
    '/processes',
    describe(
      'Processes that can be run',
      { 200: jsonResponse('Processes', 'All of them, or a page') },
      { querystring: closedObject(listPaging) },
    ),
    async (request) => {
      const base = baseUrl(request);
      const { page, links } = toPage(request, [...processes.values()], request.query);
      return { processes: page.map((one) => summary(one, base)), links };
    },
  );

  server.get<{ Params: { id: string } }>(
    '/processes/:id',
    describe('A process, its inputs and its outputs', { 200: jsonResponse('Process', 'The process') }),
    async (request) => {
      const found = processes.get(request.params.id);
      if (!found) throw processNotFound(request.params.id);
      return { ...summary(found, baseUrl(request)), inputs: inputsOf(found), outputs: found.outputs ?? {} };
    },
  );

  for (const process of processes.values()) {
    if (OWN_ROUTES.has(process.id)) continue;
    server.post<{ Body: ExecuteRequest }>(
      `/processes/${process.id}/execution`,
      executionRoute(process),
      async (request, reply) => {
        const resultOptions = wantedResultOptions(process, request.body);
        const inputs = request.body.inputs ?? {};
        return sendJob(request, reply, await startJob(request, jobs, process, inputs, { resultOptions }));
      },
    );
  }

  server.post<{ Params: { id: string } }>(
    '/processes/:id/execution',
    { config: { write: true }, schema: { hide: true } },
    async (request) => {
      throw processNotFound(request.params.id);
    },
  );

  await server.register(jobRoutes, { services });
};
