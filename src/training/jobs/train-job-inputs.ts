/** Inputs of a training job, and the services that it uses. */
import { type FilterParams, parseInstant, type TileFinder } from '../../query/index.js';
import type { Storage } from '../../storage/index.js';
import type { Rendezvous } from '../distributed/index.js';
import type { FreezingSchedule } from '../learners/index.js';
import type { TrainingMode, TransferPolicy } from '../registry/index.js';
import type { TextureIndex } from '../texture/index.js';

export interface TrainContext {
  storage: Storage;
  finder: TileFinder;
  textures: TextureIndex;
  /** Maximum number of cells trained in parallel. */
  cores?: number;
  /** Memory for all training processes together, in bytes. */
  memory?: number;
  /** Called after each epoch of a training that this node takes part in. */
  onEpoch?: () => void;
  /** Address of a node of a cluster, and its connections to other nodes. */
  rendezvous?: { url: string; doors: Rendezvous };
}

export interface TrainInputs {
  /** One kind of model, or several different ones. */
  model: string | string[];
  mode?: TrainingMode;
  filter?: FilterParams;
  epochs?: number;
  /** Stops a training if the selection loss has not improved for this number of epochs. */
  patience?: number;
  /** First held-out time, RFC 3339. Default: the last quarter of the dates, see `validationDate`. */
  validationFrom?: string;
  seed?: number;
  engine?: string;
  /** Memory limit of the process of a cell in bytes, in the contained mode. */
  placeMemory?: number;
  /** Source model of each cell. Default: none. */
  transfer?: TransferPolicy;
  /** Schedule of the trainable layers if the training starts from another model. Default: all. */
  fineTuning?: FreezingSchedule;
  /** False: the models are scored and not stored, and the results contain their losses. Default: true. */
  store?: boolean;
  /** One cell of each cluster trains first, and the others start from these models. */
  curriculum?: boolean;
  /** Id of the base model of the regional mode. Default: one is trained. */
  base?: string;
  /** Only the places whose models have drifted, see `freshness`. */
  stale?: boolean;
  /** With `stale`: limit of the sum of the seconds that the last trainings took, over all nodes. Default: no limit. */
  budget?: number;
  /** Regional mode: false trains no fresh model of each cell to compare with. Default: true. */
  fresh?: boolean;
}

export const requestedModels = ({ model }: Pick<TrainInputs, 'model'>): string[] => [model].flat();

/** Returns the first held-out time of the inputs, milliseconds since 1970. Throws TW_QUERY_INSTANT. */
export const validationTime = ({
  validationFrom,
}: Pick<TrainInputs, 'validationFrom'>): number | undefined =>
  validationFrom === undefined ? undefined : parseInstant(validationFrom, 'validationFrom');

export const DEFAULT_SEED = 1;
