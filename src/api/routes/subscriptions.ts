/** Subscriptions: list, create, change, remove, and start of a round. */
import { isoTime } from '../../query/index.js';
import { withoutSecrets } from '../../remote/index.js';
import {
  EVERY_PATTERN,
  formatEvery,
  type Round,
  type SubscriptionRecord,
  type SubscriptionRequest,
  type SubscriptionState,
} from '../../subscriptions/index.js';
import { documented } from '../../utils/json-schema.js';
import { baseUrl, link, listPaging, type Paging, toPage } from '../links.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, emptyResponse, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';
import { formatOptionalTime, sendJob } from './execution.js';

/** The inputs of `ingest` that describe a repeated search. */
const INPUTS = ['stac', 'collection', 'grid', 'precision', 'bbox', 'compress', 'cloudTest'];

const NAME = {
  type: 'string',
  pattern: '^[a-z0-9-]{1,63}$',
  description:
    'Id of the subscription: 1 to 63 small letters, digits and -. By default it follows from the search',
};
const EVERY = documented(
  {
    type: 'string',
    description:
      'Time between two rounds, from `1m` to `30d`: a number of minutes, hours or days, such as `6h`',
  },
  { pattern: EVERY_PATTERN },
);

interface Id {
  Params: { id: string };
}

const describe = describeWithTag('subscriptions');

export const subscriptionRoutes: RouteGroup = async (server, { services }) => {
  const { subscriptions, processes } = services;
  const ingest = processes.get('ingest');
  if (!ingest) throw new Error('the ingest process is not wired');
  const known = ingest.inputs.properties as Record<string, object>;
  // A search that is repeated has an address, and no Items.
  const { items: _, ...search } = (known.stac as { properties: Record<string, object> }).properties;
  const stac = closedObject(search, { required: ['url'] });
  const own = Object.fromEntries(INPUTS.map((name) => [name, known[name]!]));
  const inputs = closedObject(
    { ...own, stac },
    {
      required: ['stac'],
      description: 'Inputs of the process `ingest`; the round searches with them',
    },
  );
  const found = { 200: jsonResponse('Subscription', 'The subscription as it is now') };
  const write = { config: { write: true } };

  server.get<{ Querystring: Paging }>(
    '/subscriptions',
    describe(
      'Searches in remote catalogs that are repeated',
      { 200: jsonResponse('Subscriptions', 'All of them, or a page') },
      { querystring: closedObject(listPaging) },
    ),
    async (request) => {
      const { page, links } = toPage(request, await subscriptions.list(), request.query);
      const base = baseUrl(request);
      return { subscriptions: page.map((one) => subscriptionDocument(one, base)), links };
    },
  );

  server.post<{ Body: SubscriptionRequest }>(
    '/subscriptions',
    {
      ...write,
      ...describe(
        'Repeats a search in a remote catalog and ingests what is new; the first round begins at once',
        { 201: jsonResponse('Subscription', 'The subscription') },
        { body: closedObject({ name: NAME, every: EVERY, inputs }, { required: ['every', 'inputs'] }) },
      ),
    },
    async (request, reply) => {
      const created = await subscriptions.create(request.body);
      const base = baseUrl(request);
      return reply
        .code(201)
        .header('location', `${base}/subscriptions/${created.id}`)
        .send(subscriptionDocument(created, base));
    },
  );

  server.get<Id>('/subscriptions/:id', describe('A subscription', found), async (request) =>
    subscriptionDocument(await subscriptions.get(request.params.id), baseUrl(request)),
  );

  server.patch<Id & { Body: { state?: SubscriptionState; every?: string } }>(
    '/subscriptions/:id',
    {
      ...write,
      ...describe('Pauses or resumes a subscription, or changes its interval', found, {
        body: closedObject({ state: { enum: ['active', 'paused'] }, every: EVERY }),
      }),
    },
    async (request) =>
      subscriptionDocument(await subscriptions.change(request.params.id, request.body), baseUrl(request)),
  );

  server.delete<Id>(
    '/subscriptions/:id',
    {
      ...write,
      ...describe('Removes a subscription; its tiles stay, and a running job continues', {
        204: emptyResponse('It is removed'),
      }),
    },
    async (request, reply) => {
      await subscriptions.remove(request.params.id);
      return reply.code(204).send();
    },
  );

  server.post<Id>(
    '/subscriptions/:id/run',
    { ...write, ...describe('Starts a round now', { 201: jsonResponse('Job', 'The job of the round') }) },
    async (request, reply) => {
      const job = await subscriptions.run(request.params.id);
      return sendJob(request, reply, { job, repeated: false });
    },
  );
};

export type SubscriptionDocument = ReturnType<typeof subscriptionDocument>;

function subscriptionDocument(record: SubscriptionRecord, base: string) {
  const { id, state, every, inputs, created, nextRunAt, succeededAt, round } = record;
  const { stac } = inputs;
  return {
    id,
    state,
    every: formatEvery(every),
    // Everybody who may read sees this.
    inputs: { ...inputs, stac: { ...stac, url: withoutSecrets(stac.url) } },
    created: isoTime(created),
    nextRun: state === 'active' ? isoTime(nextRunAt) : null,
    lastSuccess: formatOptionalTime(succeededAt),
    ...(round && { lastRound: roundDocument(round) }),
    links: [
      link('self', `${base}/subscriptions/${id}`),
      ...(round?.job
        ? [{ ...link('related', `${base}/jobs/${round.job}`), title: 'job of the last round' }]
        : []),
    ],
  };
}

function roundDocument({ job, status, startedAt, finishedAt, result, error }: Round) {
  return {
    ...(job !== undefined && { job }),
    status,
    started: isoTime(startedAt),
    finished: formatOptionalTime(finishedAt),
    ...(result && { result }),
    ...(error && { error }),
  };
}
