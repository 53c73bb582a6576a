/** Fits of the priors of cells, each computed once: the cloud-free tiles around a cell all need its fit. */
import type { PixelGrid } from '../../grid/index.js';
import {
  type AcquisitionFiles,
  fitPrior,
  type PriorFit,
  priorValues,
  readAcquisitions,
} from '../data/index.js';
import type { BandName } from '../models/index.js';

/** Maximum number of fits that are kept, the most recently used. */
const MAX_FITS = 1024;

export class PriorFits {
  /** The least recently used first. Files of a version never change, so their paths identify a fit. */
  private readonly fits = new Map<string, PriorFit | { skipped: string }>();

  /** Returns the fit of the prior of a date to its other dates, or the reason why the dates cannot be read together. */
  async get(
    date: AcquisitionFiles,
    others: AcquisitionFiles[],
    bands: readonly BandName[],
    size: PixelGrid,
  ): Promise<PriorFit | { skipped: string }> {
    const { width, height } = size;
    const key = JSON.stringify([width, height, date, ...others]);
    const fit = this.fits.get(key) ?? (await fitDates([date, ...others], bands, size));
    this.fits.delete(key);
    this.fits.set(key, fit);
    const [oldest] = this.fits.keys();
    if (this.fits.size > MAX_FITS) this.fits.delete(oldest);
    return fit;
  }
}

async function fitDates(
  files: AcquisitionFiles[],
  bands: readonly BandName[],
  size: PixelGrid,
): Promise<PriorFit | { skipped: string }> {
  const read = await readAcquisitions(files, undefined, size);
  if ('skipped' in read) return read;
  const [date, ...others] = read.dates;
  return fitPrior(date, others, bands, priorValues(date, others, bands).nearest);
}
