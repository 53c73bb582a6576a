/**
 * Grids by the CF conventions in netCDF-4 or HDF5, one scene for each time step: gridMET, which is detected by its metadata,
 * and any other grid if the user names its collection.
 */
import { TilewrightError } from '../../errors.js';
import {
  type MultiDatasetFile,
  openRaster,
  openTimeAxis,
  type RasterHeader,
  type TimeAxis,
} from '../../raster/index.js';
import { groupBands, type UngroupedBand } from '../bands.js';
import { collectionNotNamed, missingBand, noDatetime, notRecognised } from '../errors.js';
import { measurePixelSize } from '../georeferencing.js';
import {
  type DescribeOptions,
  type ProductFormat,
  type Resolution,
  type Scene,
  slugify,
  stemOf,
} from '../scene.js';
import {
  type AcquisitionTime,
  compactTimestamp,
  DAY_MS,
  datetimeOption,
  parseTimeRange,
} from './acquisition-time.js';
import { CLIMATOLOGY_LAB } from './providers.js';

/** A variable of the file with its georeferencing and its times. */
interface Variable {
  name: string;
  header: RasterHeader;
  /** Undefined if it does not change with time. */
  time: TimeAxis | undefined;
}

/** Properties of all files of a product. */
interface Product {
  collection: Scene['collection'];
  /** The same for all scenes; null if it is measured. */
  resolution: Resolution | null;
  /** Duration of one step if the file does not define it, milliseconds. */
  span: number;
  /** True if the only variable of a file names its scenes, because all files of the product cover the same area. */
  isNamedByVariable?: true;
}

const GRIDMET: Product = {
  collection: {
    id: 'gridmet',
    title: 'gridMET daily surface meteorology of the contiguous United States',
    license: 'CC0-1.0',
    attribution: 'Abatzoglou (2013), doi:10.1002/joc.3413',
    providers: [CLIMATOLOGY_LAB],
  },
  // 1/24 of a degree on the equator.
  resolution: { x: 4638.3, y: 4638.3 },
  span: DAY_MS,
  isNamedByVariable: true,
};

export const cfGrid: ProductFormat = {
  name: 'CF grid (netCDF-4, HDF5)',

  async identify({ fileType }) {
    return fileType === 'hdf5';
  },

  async describe({ path, subdatasets: open }, options) {
    const container = await open();
    const product = productOf(container, options);
    const { variables, warnings } = await variablesOf(container);
    const axis = variables.find(({ time }) => time)?.time;
    const steps = axis ? timeStepRanges(axis, product.span) : [timeOf(path, container, options)];
    const moving = variables.filter(({ time }) => sameSteps(time, axis));
    warnings.push(
      ...variables
        .filter((variable) => !moving.includes(variable))
        .map(({ name }) => `${name} is left out: it has other times than ${moving[0].name}`),
    );
    const bands = bandsOf(path, moving, product, options);
    const own = product.isNamedByVariable && moving.length === 1 ? moving[0].name : stemOf(path);
    const name = options.id ?? own;
    return steps.map((step, i) => ({
      path,
      id: options.id && steps.length === 1 ? options.id : `${slugify(name)}_${compactDate(step.start)}`,
      collection: product.collection,
      platform: options.platform ?? null,
      ...step,
      groups: groupBands(
        bands.map((band) => ({ ...band, index: band.index + i * (axis?.bandsPerStep ?? 0) })),
      ),
      quality: [],
      // Warnings about the file appear once.
      warnings: i === 0 ? warnings : [],
    }));
  },
};

/** gridMET cites its paper in every file. */
function productOf({ path, metadata }: MultiDatasetFile, { collection }: DescribeOptions): Product {
  const text = Object.values(metadata).join('\n');
  if (/10\.1002\/joc\.3413|\bgridMET\b/i.test(text)) return GRIDMET;
  if (!collection) throw collectionNotNamed(path);
  return {
    collection: {
      id: collection,
      title: metadata.title || collection,
      license: metadata.license || 'proprietary',
    },
    resolution: null,
    span: 0,
  };
}

/** The georeferenced variables. Others are bounds, or belong to another grid. */
async function variablesOf({
  path,
  subdatasets,
}: MultiDatasetFile): Promise<{ variables: Variable[]; warnings: string[] }> {
  const variables: Variable[] = [];
  const faults: { name: string; error: TilewrightError }[] = [];
  for (const { name } of subdatasets) {
    try {
      const header = await openRaster(path, name);
      variables.push({ name, header, time: await openTimeAxis(path, name) });
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      faults.push({ name, error });
    }
  }
  if (variables.length === 0) {
    // Bounds of coordinates have no position either, so another fault says more.
    const fault = faults.find(({ error }) => error.code !== 'TW_RASTER_NO_CRS') ?? faults[0];
    throw fault?.error ?? notRecognised(path, 'it holds no variable with rows and columns');
  }
  const names = variableNames(variables.map(({ name }) => name));
  return {
    variables: variables.map((variable, i) => ({ ...variable, name: names[i] })),
    warnings: [
      ...faults.map(({ name, error }) => `${name} is left out: ${error.message}`),
      ...variables.flatMap(({ header }) => header.warnings ?? []),
    ],
  };
}

/** The last parts of paths. If several are equal, the parts below the group that these have in common. */
export function variableNames(paths: string[]): string[] {
  const split = paths.map((path) => path.split('/').filter((part) => part !== ''));
  return split.map((parts) => {
    const alike = split.filter((other) => other.at(-1) === parts.at(-1));
    if (alike.length === 1) return parts.slice(-1).join();
    const common = parts.findIndex(
      (part, i) => i === parts.length - 1 || alike.some((other) => other[i] !== part),
    );
    return parts.slice(common).join('/');
  });
}

function bandsOf(
  path: string,
  variables: Variable[],
  product: Product,
  options: DescribeOptions,
): UngroupedBand[] {
  const bands = variables.flatMap(({ name, header, time }) => {
    const count = time?.bandsPerStep ?? header.bands;
    const tags = header.bandTags[0];
    return Array.from(
      { length: count },
      (_, index): UngroupedBand => ({
        name: count === 1 ? name : `${name}_${index + 1}`,
        header,
        index,
        role: 'data',
        resampling: header.metadata.flag_values === undefined ? 'bilinear' : 'nearest',
        resolution: product.resolution ?? measurePixelSize(header),
        nodata: options.nodata ?? header.nodata ?? null,
        scale: options.scale ?? tags.scale ?? 1,
        offset: options.offset ?? tags.offset ?? 0,
      }),
    );
  });
  for (const [name, number] of Object.entries(options.bands ?? {})) {
    if (number < 1 || number > bands.length) {
      throw missingBand(path, `${name}=${number}`, `The file has ${bands.length} bands; correct --bands.`);
    }
    bands[number - 1].name = name;
  }
  return bands;
}

function sameSteps(a: TimeAxis | undefined, b: TimeAxis | undefined): boolean {
  if (!a || !b) return a === b;
  return a.steps.length === b.steps.length && a.steps.every(({ start }, i) => start === b.steps[i].start);
}

/** Bounds of a step end where the next one starts. A scene ends a millisecond earlier, so that days do not overlap. */
export function timeStepRanges({ steps }: TimeAxis, span: number): AcquisitionTime[] {
  return steps.map(({ start, end }) => {
    if (end > start) return { start, end: end - 1 };
    return { start, end: span === 0 ? start : start + span - 1 };
  });
}

/** The time if no variable has a time axis: --datetime, else the time coverage in the file. */
function timeOf(path: string, { metadata }: MultiDatasetFile, options: DescribeOptions): AcquisitionTime {
  const span = datetimeOption(options) ?? parseTimeRange(metadata.time_coverage_start ?? '');
  if (!span) throw noDatetime(path);
  return span;
}

/** A date alone if the step starts at midnight. */
const compactDate = (time: number) => compactTimestamp(time).replace(/T000000Z$/, '');
