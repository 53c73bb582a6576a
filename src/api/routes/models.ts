/** Trained models and their versions: lists, cards, STAC Items, files, and deletion. */

import { toArray } from '../../async/index.js';
import { type Bbox, cellBbox, gridByName } from '../../grid/index.js';
import { CLASSIFIER, type ClassifierCard, patchSide } from '../../hyperspectral/index.js';
import { bboxPolygon, extensionUrl, isoTime, stacUrls, toClassification } from '../../query/index.js';
import {
  bestVersion,
  type ModelRecord,
  type ModelVersionRecord,
  modelNotFound,
  modelVersionNotFound,
  versionNamed,
  versionsOf,
  WORLD_CELL,
} from '../../storage/index.js';
import {
  type CardSummary,
  exportOnnx,
  getModelSpec,
  inputPlanes,
  type ModelSpec,
  servedSpec,
} from '../../training/index.js';
import { plural } from '../../utils/text.js';
import { notModified, weakEtag } from '../answers.js';
import { badPagingToken } from '../errors.js';
import { baseUrl, link, nextPageUrl, type Paging, paging, parseLimit } from '../links.js';
import { closedObject } from '../schemas/builders.js';
import { describeWithTag, emptyResponse, fileResponse, GEOJSON, jsonResponse } from '../schemas/openapi.js';
import type { RouteGroup } from '../services.js';

const JSON_TYPE = 'application/json';
const BINARY_TYPE = 'application/octet-stream';

/** Properties that differ between kinds of models. */
interface ModelDescription {
  title: string;
  /** A sentence that says what the model predicts. */
  description: string;
  architecture: string;
  framework: Record<string, string>;
  tasks: string[];
  inputs: object[];
  outputs: object[];
  hyperparameters: object;
  bands: object[];
}

/**
 * A version of a model as a STAC 1.0.0 Item with the Machine Learning Model extension 1.4.0. `one` is a version of `model`. Throws
 * TW_TRAIN_MODEL if this version of the program does not know this kind of model.
 */
function modelItem(model: ModelRecord, one: ModelVersionRecord, base: string) {
  const card = one.card as CardSummary | ClassifierCard;
  const described = one.model === CLASSIFIER ? describeClassifier(one) : describeNet(one);
  const bbox = bboxOf(one);
  const days = card.data.map(({ datetime }) => datetime).sort();
  const weights = one.files.find(({ name }) => name === 'weights.bin')?.bytes ?? 0;
  return {
    type: 'Feature',
    stac_version: '1.0.0',
    stac_extensions: ['mlm/v1.4.0', 'eo/v1.1.0', 'grid/v1.1.0', 'version/v1.2.0'].map(extensionUrl),
    id: `${one.id}_${one.version}`,
    geometry: bboxPolygon(bbox),
    bbox,
    properties: {
      title: described.title,
      description: described.description,
      datetime: null,
      start_datetime: days[0],
      end_datetime: days.at(-1),
      created: isoTime(one.createdAt),
      version: one.version,
      geocode: one.geocode,
      ...(one.geocode !== WORLD_CELL && { 'grid:code': `${one.grid.toUpperCase()}-${one.geocode}` }),
      // The extension does not allow a plus sign in names; ids of collections may have one.
      'mlm:name': one.id.replaceAll('+', '-'),
      'mlm:architecture': described.architecture,
      'mlm:tasks': described.tasks,
      ...described.framework,
      // Weights are float32.
      'mlm:total_parameters': weights / 4,
      'mlm:pretrained': card.parent !== null,
      'mlm:pretrained_source': card.parent,
      'mlm:input': described.inputs,
      'mlm:output': described.outputs,
      'mlm:hyperparameters': described.hyperparameters,
      'eo:bands': described.bands,
    },
    links: linksOf(model, one, card, base),
    assets: assetsOf(stacUrls(base).model(one.id, one.version), described.bands),
  };
}

function describeNet(one: ModelVersionRecord): ModelDescription {
  const card = one.card as CardSummary;
  const spec = servedSpec(getModelSpec(one.model), card.choice);
  const [version] = /^\d+\.\d+\.\d+/.exec(card.engine.version) ?? [];
  return {
    title: spec.title,
    description: `Predicts ${spec.title}, for ${one.geocode} only. Trained on ${trainedOn(one, card)}.`,
    architecture: spec.architecture,
    framework: {
      'mlm:framework': 'TensorFlow.js',
      ...(version !== undefined && { 'mlm:framework_version': version }),
    },
    tasks: tasksOf(spec),
    inputs: [inputOf(spec, card)],
    outputs: outputsOf(spec),
    hyperparameters: hyperparameters(spec, card),
    bands: spec.inputs.map((name) => ({ name, common_name: name })),
  };
}

const ARCHITECTURES = {
  lda: 'Linear discriminant analysis',
  logistic: 'Logistic regression',
  mlp: 'Multilayer perceptron',
  cnn1d: 'Convolutional network along the bands',
  resnet3d: 'Residual network of separable 3D convolutions with attention over the bands',
};

function describeClassifier({ collection, card }: ModelVersionRecord): ModelDescription {
  const { classifier, strength, seed, bands, sizes, classes } = card as ClassifierCard;
  const tasks = ['classification'];
  const side = patchSide(classifier);
  return {
    title: 'classes of spectra',
    description: `Predicts the class of a pixel from its spectrum. Trained on labelled pixels of the collection ${collection}.`,
    architecture: ARCHITECTURES[classifier],
    framework: { 'mlm:framework': 'TensorFlow.js' },
    tasks,
    inputs: [
      input(
        bands.map(({ name }) => name),
        side === 1 ? [-1, bands.length] : [-1, side, side, bands.length],
        side === 1
          ? 'Physical values of the bands: stored value * scale + offset'
          : `Physical values of the bands, stored value * scale + offset, of the ${side} x ${side} pixels around the pixel; pixels without data have the mean of the band`,
      ),
    ],
    outputs: [
      {
        ...output('output', tasks, [-1, classes.length], 'Probability of each class'),
        'classification:classes': classes.map(({ code, name }) => ({
          ...toClassification({ value: code, name }),
          description: name,
        })),
      },
    ],
    hyperparameters: { classifier, strength, seed, layers: sizes },
    // The extension has wavelengths in micrometres.
    bands: bands.map(({ name, wavelength, fwhm }) => ({
      name,
      center_wavelength: wavelength / 1000,
      ...(fwhm !== undefined && { full_width_half_max: fwhm / 1000 }),
    })),
  };
}

/** The bounds of the cell, or of the entire grid. */
function bboxOf({ grid: name, geocode }: ModelVersionRecord): Bbox {
  const grid = gridByName(name);
  if (geocode !== WORLD_CELL) return cellBbox(grid, geocode);
  const { west, south, east, north } = grid.extent;
  return [...grid.toLonLat(west, south), ...grid.toLonLat(east, north)];
}

function trainedOn({ collection }: ModelVersionRecord, { distributed }: CardSummary): string {
  return `${distributed ? `${plural(distributed.places.length, 'place')} of ` : ''}the collection ${collection}`;
}

const tasksOf = ({ target }: ModelSpec) => [target.kind === 'clear' ? 'generative' : 'regression'];

/** The planes that follow the bands of the date in the input of a model that reads the history of its place. */
const HISTORY_PLANES =
  '; then the history of the place, from its other dates: 1 where one measured the pixel, else 0; the mean of the target; the means of the bands of the training; the standard deviation of the target, and its value on the nearest date';

function inputOf(spec: ModelSpec, { values, pixelSize }: CardSummary) {
  const { inputs, target, patchSize, layers, history } = spec;
  // Each `down` layer halves the image, and a later layer doubles it again.
  const multiple = 2 ** layers.filter(({ type }) => type === 'down').length;
  const sides = multiple > 1 ? `; height and width are multiples of ${multiple}` : '';
  const side = target.kind === 'mean' ? patchSize : -1;
  const meaning =
    values === 'scaled counts'
      ? '8-bit numbers without a scale, divided by 255; they are not reflectance'
      : 'Reflectance, 0 to 1: stored value * scale + offset';
  const pixels = pixelSize ? `; pixels as in the band group ${pixelSize.group}` : '';
  const planes = target.kind === 'clear' ? inputs.length : inputPlanes(spec);
  const text = `${meaning}${pixels}${sides}${history ? HISTORY_PLANES : ''}`;
  return input(inputs, [-1, side, side, planes], text);
}

function outputsOf(spec: ModelSpec): object[] {
  const { target, inputs, layers, title } = spec;
  const tasks = tasksOf(spec);
  const channels = target.kind === 'clear' ? inputs.length : 1;
  const shape = target.kind === 'mean' ? [-1, channels] : [-1, -1, -1, channels];
  const outputs = [output('output', tasks, shape, title)];
  if (layers.some(({ type }) => type === 'attention'))
    outputs.push(output('attention', tasks, [-1, -1, -1, 1], 'where the model looks for cloud, 0 to 1'));
  return outputs;
}

const input = (bands: readonly string[], shape: number[], description: string) => ({
  name: 'input',
  bands,
  input: arrayOf(shape),
  description,
  value_scaling: null,
  resize_type: null,
  pre_processing_function: null,
});

const output = (name: string, tasks: string[], shape: number[], description: string) => ({
  name,
  tasks,
  result: arrayOf(shape),
  description,
  post_processing_function: null,
});

/** An array of float32; -1 stands for any size. */
function arrayOf(shape: number[]): object {
  const image = ['batch', 'height', 'width', 'channel'];
  return { shape, dim_order: shape.length === 4 ? image : ['batch', 'channel'], data_type: 'float32' };
}

function hyperparameters(spec: ModelSpec, { epochs, seed }: CardSummary): object {
  const { patchSize: patch_size, batchSize: batch_size, learningRate: learning_rate, loss } = spec;
  // A linear function is solved, not trained in steps.
  if (spec.layers.length === 0) return { epochs, seed, patch_size };
  return { epochs, seed, patch_size, batch_size, learning_rate, loss };
}

function linksOf(
  model: ModelRecord,
  one: ModelVersionRecord,
  card: CardSummary | ClassifierCard,
  base: string,
) {
  const url = stacUrls(base);
  const versions = versionsOf(model).map(({ version }) => version);
  const at = versions.indexOf(one.version);
  const titled = (rel: string, href: string, title: string) => ({ ...link(rel, href, GEOJSON), title });
  const itemOf = (rel: string, version: string | undefined) =>
    version === undefined ? [] : [titled(rel, url.modelItem({ id: one.id, version }), version)];
  const parentLinks: object[] = [];
  if (card.parent !== null) {
    const version = card.transfer?.version;
    const href = version ? url.modelItem({ id: card.parent, version }) : `${url.model(card.parent)}/item`;
    parentLinks.push(titled('derived_from', href, card.parent));
  }
  return [
    ...itemOf('self', one.version),
    link('root', url.root),
    ...itemOf('latest-version', versions[0]),
    ...itemOf('predecessor-version', versions[at + 1]),
    ...itemOf('successor-version', versions[at - 1]),
    ...parentLinks,
    ...card.data.map(({ id }) => titled('derived_from', url.item(one.collection, id), id)),
  ];
}

function assetsOf(url: string, bands: object[]) {
  const asset = (file: string, type: string, title: string, role: string) => ({
    href: `${url}/${file}`,
    type,
    title,
    roles: [role],
  });
  const model = (file: string, type: string, title: string, artifact: string) => ({
    ...asset(file, type, title, 'mlm:model'),
    'mlm:artifact_type': artifact,
    'eo:bands': bands,
  });
  return {
    model: model('model.json', JSON_TYPE, 'Layers, for tf.loadLayersModel', 'tfjs.LayersModel.save'),
    weights: asset('weights.bin', BINARY_TYPE, 'Weights of these layers', 'mlm:weights'),
    onnx: model('model.onnx', `${BINARY_TYPE}; application=onnx`, 'The same model as one ONNX file', 'onnx'),
    card: asset('card.json', JSON_TYPE, 'Data, metrics and baselines', 'metadata'),
  };
}

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

/** A paging token is the id of a model, which may have been deleted in the meantime. */
const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,399}$/;
/** Most models of a page: their records have all versions. */
const MAX_PAGE = 1000;

const MODEL_FILES = ['model.json', 'weights.bin', 'card.json', 'model.onnx'];

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

  server.get<{ Querystring: Paging }>(
    '/models',
    describe(
      'Models, in the order of their ids',
      { 200: jsonResponse('Models', 'A page of models') },
      { querystring: closedObject(paging) },
    ),
    async (request) => {
      const { model: urlOf } = stacUrls(baseUrl(request));
      const { token } = request.query;
      if (token !== undefined && !MODEL_ID.test(token)) throw badPagingToken(token);
      const limit = parseLimit(request.query, MAX_PAGE);
      // One more model shows that there is a next page. Its token is the last id of this page.
      const scanned = await toArray(storage.models.scanAll({ after: token, limit: limit + 1 }));
      const page = scanned.slice(0, limit);
      const models = page.flatMap(({ record }) => record ?? []);
      const damaged = page.flatMap(({ key, error }) => (error ? key : []));
      return {
        models: models.map((model) => ({
          ...listedVersion(versionsOf(model)[0]!),
          ...versionSummary(model),
          links: [link('self', urlOf(model.id)), link('item', `${urlOf(model.id)}/item`, GEOJSON)],
        })),
        ...(damaged.length > 0 && { damaged }),
        links: scanned.length > limit ? [link('next', nextPageUrl(request, page.at(-1)!.key))] : [],
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
          200: fileResponse('The file', JSON_TYPE, BINARY_TYPE),
          304: emptyResponse('The client has this version'),
        },
        {
          params: {
            type: 'object',
            properties: {
              id: { type: 'string' },
              ...(path.includes(':version') && { version: { type: 'string' } }),
              file: { enum: MODEL_FILES },
            },
          },
        },
      ),
      async (request, reply) => {
        const { file } = request.params;
        const { one } = await findVersion(request.params);
        const isJson = file.endsWith('.json');
        reply.type(isJson ? JSON_TYPE : BINARY_TYPE);
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
