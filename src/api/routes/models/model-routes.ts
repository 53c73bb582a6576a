/** Trained models and their versions: lists, cards, STAC Items, files, and deletion. */
import { toArray } from '../../../async/index.js';
import type { ClassifierCard } from '../../../hyperspectral/index.js';
import { isoTime, stacUrls } from '../../../query/index.js';
import {
  bestVersion,
  type ModelRecord,
  type ModelVersionRecord,
  modelNotFound,
  modelVersionNotFound,
  versionNamed,
  versionsOf,
} from '../../../storage/index.js';
import { type CardSummary, exportOnnx } from '../../../training/index.js';
import type { RouteGroup } from '../../api-services.js';
import { baseUrl, link, notModified, weakEtag } from '../../http/index.js';
import { describeWithTag, emptyResponse, fileResponse, GEOJSON, jsonResponse } from '../../schemas/index.js';
import { modelItem } from './model-item-response.js';

/** A version, as lists show it. */
function listedVersion({ card, files: _files, score: _score, createdAt, ...version }: ModelVersionRecord) {
  const { metrics, baseline, seconds, parent } = card as CardSummary | ClassifierCard;
  const { epochs, classifier, mode, distributed } = card as Partial<CardSummary> & { classifier?: string };
  return {
    ...version,
    createdAt: isoTime(createdAt),
    epochs,
    classifier,
    mode,
    places: distributed?.places.length,
    metrics,
    baseline,
    seconds,
    parent,
  };
}

/** Which versions are the latest and the best, and how many there are. */
function versionSummary(model: ModelRecord) {
  const versions = versionsOf(model);
  return { latest: model.version, best: bestVersion(versions).version, versions: versions.length };
}

const JSON_TYPE = 'application/json';
const BINARY = 'application/octet-stream';
const FILES = ['model.json', 'weights.bin', 'card.json', 'model.onnx'];

/** Header with the number of deleted versions, because 204 has no body. */
const DELETED_VERSIONS = 'tilewright-deleted-versions';
const DELETED = { ...emptyResponse('It is deleted'), headers: { [DELETED_VERSIONS]: { type: 'integer' } } };

interface VersionParams {
  id: string;
  /** Default: the latest version. `latest` and `best` mean the current latest and best versions. */
  version?: string;
}

const describe = describeWithTag('models');

export const modelRoutes: RouteGroup = async (server, { services }) => {
  const { storage } = services;

  const find = async (id: string): Promise<ModelRecord> => {
    const model = await storage.models.get(id);
    if (!model) throw modelNotFound(id);
    return model;
  };
  const findVersion = async ({ id, version = 'latest' }: VersionParams) => {
    const model = await find(id);
    const one = versionNamed(model, version);
    if (!one) throw modelVersionNotFound(id, version);
    return { model, one };
  };
  const onnxOf = async (one: ModelVersionRecord) => {
    const [json, weights] = await Promise.all(
      ['model.json', 'weights.bin'].map((name) => storage.models.readFile(one, name)),
    );
    return exportOnnx(json!, weights!, `${one.id}, version ${one.version}`);
  };

  server.get(
    '/models',
    describe('All models', { 200: jsonResponse('Models', 'All of them') }),
    async (request) => {
      const { model: urlOf } = stacUrls(baseUrl(request));
      const scanned = await toArray(storage.models.scanAll());
      const models = scanned.flatMap(({ record }) => record ?? []);
      const damaged = scanned.flatMap(({ key, error }) => (error ? key : []));
      return {
        models: models.map((model) => ({
          ...listedVersion(versionsOf(model)[0]!),
          ...versionSummary(model),
          links: [link('self', urlOf(model.id)), link('item', `${urlOf(model.id)}/item`, GEOJSON)],
        })),
        ...(damaged.length > 0 && { damaged }),
      };
    },
  );

  server.get<{ Params: { id: string } }>(
    '/models/:id/versions',
    describe('Versions of a model, the latest first', {
      200: jsonResponse('ModelVersions', 'The stored versions'),
    }),
    async (request) => {
      const model = await find(request.params.id);
      return { ...versionSummary(model), versions: versionsOf(model).map(listedVersion) };
    },
  );

  for (const [path, what] of [
    ['/models/:id', 'model'],
    ['/models/:id/versions/:version', 'version of a model; "latest" and "best" are accepted'],
  ] as const) {
    server.get<{ Params: VersionParams }>(
      path,
      describe(`A ${what}: its card`, { 200: jsonResponse('Model', 'The model') }),
      async (request) => {
        const { model, one } = await findVersion(request.params);
        const { score: _score, createdAt, ...shown } = one;
        const card = JSON.parse((await storage.models.readFile(one, 'card.json')).toString());
        const { model: urlOf, modelItem: itemOf } = stacUrls(baseUrl(request));
        const links = [
          link('item', itemOf(one), GEOJSON),
          link('version-history', `${urlOf(one.id)}/versions`),
        ];
        return { ...shown, createdAt: isoTime(createdAt), card, ...versionSummary(model), links };
      },
    );

    server.get<{ Params: VersionParams }>(
      `${path}/item`,
      describe(`A ${what}: as a STAC Item of the Machine Learning Model extension`, {
        200: jsonResponse('ModelItem', 'The Item', GEOJSON),
      }),
      async (request, reply) => {
        const { model, one } = await findVersion(request.params);
        reply.type(GEOJSON);
        return modelItem(model, one, baseUrl(request));
      },
    );

    server.get<{ Params: VersionParams & { file: string } }>(
      `${path}/:file`,
      describe(
        `A ${what}: one of its files; model.onnx is created on request`,
        {
          200: fileResponse('The file', JSON_TYPE, BINARY),
          304: emptyResponse('The client has this version'),
        },
        {
          params: {
            type: 'object',
            properties: {
              id: { type: 'string' },
              ...(path.includes(':version') && { version: { type: 'string' } }),
              file: { enum: FILES },
            },
          },
        },
      ),
      async (request, reply) => {
        const { file } = request.params;
        const { one } = await findVersion(request.params);
        const isJson = file.endsWith('.json');
        reply.type(isJson ? JSON_TYPE : BINARY);
        // JSON may be compressed. The hook that sets this header does not see a 304, which has no body.
        if (isJson) reply.header('vary', 'accept-encoding');
        if (notModified(request, reply, isJson ? weakEtag(one.version) : `"${one.version}"`))
          return reply.send();
        const sent = file === 'model.onnx' ? await onnxOf(one) : await storage.models.readFile(one, file);
        return reply.send(sent);
      },
    );

    server.delete<{ Params: VersionParams }>(
      path,
      {
        ...describe(
          what === 'model' ? 'Deletes a model with all its versions' : 'Deletes a version of a model',
          { 204: DELETED },
        ),
        config: { write: true },
      },
      async (request, reply) => {
        const { id, version } = request.params;
        const versions = await storage.models.delete(id, version);
        return reply.code(204).header(DELETED_VERSIONS, versions).send();
      },
    );
  }
};
