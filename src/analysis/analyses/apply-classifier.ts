/** Applies a stored classifier to the tiles that a filter picks, of its own or of another collection. */
import type { JobContext } from '../../jobs/index.js';
import { all, type Filter, mentions } from '../../query/index.js';
import { nearestBand, spectralTags } from '../../raster/index.js';
import type { ModelVersionRecord, TileRecord, TileSource } from '../../storage/index.js';
import { derive, type Planned, pickedTiles, type WrangleResults } from '../../wrangle/index.js';
import { type AnalysisContext, fileOf, NO_PIXEL, NO_SPECTRUM } from '../analysis-run.js';
import { type ClassifierCard, pixelHeight } from '../classifier/card.js';
import { bandName } from '../classifier/class-map.js';
import { networkOf } from '../classifier/model-files.js';
import { type NetMethod, netMethod } from '../nets/net-method.js';
import { withMappers } from '../nets/net-processes.js';
import { isNet, patchSide } from '../nets/nets.js';
import { layersMethod, type PixelMethod } from '../pixels/methods.js';
import type { MapTask } from '../tasks.js';
import { type AnalysedBand, spectraOf, type TileSpectrum } from '../tiles/spectral-tile.js';
import { neighboursOf, spectraAround } from '../tiles/tiles-around.js';

/** Makes tiles of the source `predicted`. Throws TW_ANALYSIS_CLASSIFIER and TW_STORAGE_MODEL_DAMAGED. */
export async function applyClassifier(
  context: AnalysisContext,
  model: ModelVersionRecord,
  filter: Filter,
  job: JobContext,
  engine?: string,
): Promise<WrangleResults> {
  const { storage } = context;
  const {
    bands,
    classifier,
    sizes,
    classes,
    sources,
    grid,
    pixelHeight: height,
  } = model.card as ClassifierCard;
  const map = {
    bands: classes.map(({ code, name }) => bandName(code, name)),
    classes: {
      ...{ best: 'most' as const, codes: classes.map(({ code }) => code) },
      names: classes.map(({ name }) => name),
    },
  };
  const wanted = mentions(filter, 'source')
    ? filter
    : all([filter, { op: 'in', property: 'source', values: sources }]);
  const spectrumOf = (tile: TileRecord) => {
    const isOfSize = patchSide(classifier) === 1 || hasPixels(tile, grid, height);
    return isOfSize ? spectrumLike(tile, bands) : OTHER_SIZE;
  };
  const of = { model, spectrumOf, sources };
  const weights = await storage.readModelFile(model, 'weights.bin');
  if (isNet(classifier)) {
    const files = { 'model.json': await storage.readModelFile(model, 'model.json'), 'weights.bin': weights };
    const method = netMethod(classifier, classes.length, files);
    const planned = plan(context, { ...of, map: { ...map, method } }, wanted, job);
    return withMappers(context, engine, (workers) => derive({ ...context, workers }, planned, job, NO_PIXEL));
  }
  const method = layersMethod(networkOf(model.id, weights, sizes));
  return derive(context, plan(context, { ...of, map: { ...map, method } }, wanted, job), job, NO_PIXEL);
}

async function* plan<Method extends PixelMethod | NetMethod>(
  { storage, finder }: AnalysisContext,
  of: {
    model: ModelVersionRecord;
    /** The spectrum that the model reads, or why it cannot. */
    spectrumOf: (tile: TileRecord) => TileSpectrum | string;
    sources: readonly TileSource[];
    map: Pick<MapTask<Method>, 'method' | 'bands' | 'classes'>;
  },
  filter: Filter,
  job: JobContext,
): AsyncGenerator<Planned<MapTask<Method>>> {
  const { model, spectrumOf, sources, map } = of;
  const { id, version } = model;
  for await (const tile of pickedTiles(storage, filter, job.isMine)) {
    const spectrum = sources.includes(tile.source)
      ? spectrumOf(tile)
      : `their source is ${tile.source}, and the model was trained on ${sources.join(', ')}`;
    if (typeof spectrum === 'string') {
      yield { skipped: spectrum };
      continue;
    }
    const { collection, scene, grid, geocode, start, end, platform } = tile;
    const place = { collection, scene, grid, geocode };
    const reach = map.method.kind === 'net' ? (map.method.side - 1) / 2 : 0;
    const around = await spectraAround(finder, tile, reach, (one) => {
      const found = spectrumOf(one);
      return typeof found === 'string' ? undefined : found;
    });
    yield {
      facts: { ...place, source: 'predicted', start, end, platform, model: { id, version } },
      inputs: [tile],
      around: around.map((one) => one.tile),
      parameters: { model: id },
      task: (made) => ({
        ...{ kind: 'map', ...map, group: spectrum.group.name },
        tile: { ...made, metadata: { ...made.metadata, MODEL: `${id} ${version}` } },
        file: fileOf(storage, tile, spectrum),
        ...(around.length > 0 && { around: neighboursOf(storage, around) }),
      }),
    };
  }
}

/** Farther centres do not stand for a band of a model whose FWHM is unknown, nm. With a FWHM, half of it is the limit. */
const NEAR = 5;

/** The bands of a tile that stand for those of a model, in their order, or why it lacks them. */
function spectrumLike({ groups }: TileRecord, wanted: readonly AnalysedBand[]): TileSpectrum | string {
  const [group] = spectraOf(groups);
  if (!group) return NO_SPECTRUM;
  const usable = group.bands.map(({ wavelength, fwhm, good, validPercent }) => ({
    ...spectralTags({ wavelength, fwhm }),
    ...((good === false || validPercent === 0) && { good: false as const }),
  }));
  const limitOf = ({ fwhm }: AnalysedBand) => (fwhm === undefined ? NEAR : fwhm / 2);
  const take = (band: number) => {
    if (band >= 0) usable[band] = { ...usable[band]!, good: false };
    return band;
  };
  // Where detectors overlap, several bands are near, and each stands for one band of the model: the one of its name before others.
  const named = wanted.map((one) => {
    const band = group.bands.findIndex(({ name }) => name === one.name);
    const { wavelength = Infinity, good } = usable[band] ?? {};
    const isNear = Math.abs(wavelength - one.wavelength) <= limitOf(one);
    return take(isNear && good !== false ? band : -1);
  });
  const bands = wanted.map((one, i) =>
    named[i]! >= 0 ? named[i]! : take(nearestBand(usable, one.wavelength, limitOf(one))),
  );
  const missing = wanted[bands.indexOf(-1)];
  if (missing) return `they have no good band at ${missing.wavelength.toFixed(1)} nm, which the model reads`;
  return { group, bands };
}

const OTHER_SIZE = 'their pixels have another size than those that the model was trained on';
/** Largest relative difference of pixels of one size. */
const SIZE_TOLERANCE = 0.01;

/** True if the pixels have the height of those that trained a model; also if that is unknown. */
function hasPixels({ groups, ...place }: TileRecord, grid: TileRecord['grid'], height: number | undefined) {
  const [group] = spectraOf(groups);
  if (!group || height === undefined) return true;
  const own = pixelHeight({ ...place, rows: group.height });
  return place.grid === grid && Math.abs(own / height - 1) <= SIZE_TOLERANCE;
}
