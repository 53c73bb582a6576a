/** What training is asked for, and what it stands on. */
import { type FilterParams, parseInstant, type TileFinder } from '../../query/index.js';
import type { Storage } from '../../storage/index.js';
import type { Rendezvous } from '../distributed/index.js';
import type { FreezingSchedule } from '../loop/index.js';
import type { TrainingMode, TransferPolicy } from '../registry/index.js';
import type { TextureIndex } from '../texture/index.js';

export interface TrainContext {
  storage: Storage;
  finder: TileFinder;
  textures: TextureIndex;
  /** Places trained side by side at most. */
  cores?: number;
  /** Bytes that the processes that train may take together. */
  memory?: number;
  /** Of a node that is one of many: its address, and how it reaches the others. */
  rendezvous?: { url: string; doors: Rendezvous };
}

export interface TrainInputs {
  /** One kind of model, or several that differ. */
  model: string | string[];
  mode?: TrainingMode;
  filter?: FilterParams;
  epochs?: number;
  /** Stops a training if the selection loss has not improved for this number of epochs. */
  patience?: number;
  /** First time that is held out for validation, RFC 3339. Default: the last quarter of the dates, see `validationDate`. */
  validationFrom?: string;
  seed?: number;
  engine?: string;
  /** Bytes that the process of a place may take, in the contained mode. */
  placeMemory?: number;
  /** Whose model each place starts from. Default: none. */
  transfer?: TransferPolicy;
  /** Which layers learn when, of a model that starts from another. Default: all. */
  fineTuning?: FreezingSchedule;
  /** False: the models are scored and not stored, and the results contain their losses. Default: true. */
  store?: boolean;
  /** One place of each cluster trains first, the others start from these models. */
  curriculum?: boolean;
}

export const requestedModels = ({ model }: Pick<TrainInputs, 'model'>): string[] => [model].flat();

/** The first held-out time that the inputs name, milliseconds since 1970. Throws TW_QUERY_INSTANT. */
export const validationTime = ({
  validationFrom,
}: Pick<TrainInputs, 'validationFrom'>): number | undefined =>
  validationFrom === undefined ? undefined : parseInstant(validationFrom, 'validationFrom');

export const DEFAULT_SEED = 1;
