/** The request that a checking process answers. */
import type { Handler } from '../../engines/index.js';
import type { PixelGrid } from '../../grid/index.js';
import type { ModelFileLocation } from '../../storage/index.js';
import type { AcquisitionFiles } from '../data/index.js';
import type { DateError } from '../evaluation/index.js';

export interface CheckTask {
  /** Name and files of the model. */
  model: { name: string; topology: ModelFileLocation; weights: ModelFileLocation };
  /** Dates of the training, only for models without a truth. */
  known: AcquisitionFiles[];
  /** New dates. */
  fresh: AcquisitionFiles[];
  /** Pixels of the cell in the training. Default: those of each date. */
  size?: PixelGrid;
}

export interface CheckedDates {
  /** Empty for models with a truth, whose card has these errors. */
  known: DateError[];
  fresh: DateError[];
}

export type CheckHandlers = { check: Handler<CheckTask, CheckedDates> };
