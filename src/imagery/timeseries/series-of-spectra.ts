/** Spectra of a zone, one for each date. */
import type { QueryBounds, ScatterQuery } from '../../dht/index.js';
import { and, type Filter, type PartialAnswer, partialAnswer } from '../../query/index.js';
import { zoneTooLarge } from '../errors.js';
import { sumOf } from './distributed-series-median.js';
import { type AcquisitionFacts, MAX_TILES } from './partial-series.js';
import type {
  PartialSpectra,
  PartialSpectraDate,
  SpectralBand,
  SpectraQuery,
} from './partial-series-of-spectra.js';
import { type Zone, zoneBbox } from './series-zone.js';
import type { SpectrumSums } from './zonal-series-spectra.js';

/** The spectrum of one acquisition over the clear pixels of the zone; NaN for a band without data. */
export interface SpectrumDate extends AcquisitionFacts {
  bands: SpectralBand[];
  /** All pixels of the zone in cells that have tiles of the date. */
  pixels: number;
  /** Clear pixels that have data in a good band. */
  valid: number;
  mean: number[];
  /** Population standard deviation (divided by the number of pixels). */
  std: number[];
}

export interface Spectra extends PartialAnswer {
  /** From the earliest on. */
  dates: SpectrumDate[];
  /** Tiles that have no spectrum. */
  skipped: number;
}

export interface SpectraSeriesRequest {
  region: Zone;
  filter: Filter;
}

/** Throws TW_IMAGERY_TOO_MUCH, TW_IMAGERY_TILE_FILE, TW_QUERY_UNANSWERED. */
export async function readSpectra(
  send: ScatterQuery<SpectraQuery, PartialSpectra>,
  boundsOf: (filter: Filter) => QueryBounds,
  { region, filter: wanted }: SpectraSeriesRequest,
): Promise<Spectra> {
  const filter = and([{ op: 's_intersects', shape: { bbox: zoneBbox(region) } }, wanted]);
  const { answers, unanswered } = await send({ region, filter }, () => boundsOf(filter));
  const matched = sumOf(answers, (answer) => answer.matched);
  if (matched > MAX_TILES) throw zoneTooLarge(`${matched} tiles`, MAX_TILES);
  const dates = new Map<string, PartialSpectraDate[]>();
  for (const date of answers.flatMap((share) => share.dates))
    dates.set(date.key, [...(dates.get(date.key) ?? []), date]);
  return {
    dates: [...dates.values()].map(dateOf).sort((a, b) => a.start - b.start),
    skipped: sumOf(answers, ({ skipped }) => skipped),
    ...partialAnswer(unanswered),
  };
}

function dateOf(parts: PartialSpectraDate[]): SpectrumDate {
  const [{ start, collection, bands }] = parts;
  // A fixed order makes sums independent of the distribution of the cells.
  const places = parts.flatMap(({ places }) => places).sort((a, b) => (a.key < b.key ? -1 : 1));
  const { valid, counts, means, squares } = places.reduce(mergeSpectrumSums, {
    key: '',
    valid: 0,
    counts: bands.map(() => 0),
    means: bands.map(() => 0),
    squares: bands.map(() => 0),
  });
  return {
    start,
    end: Math.max(...parts.map(({ end }) => end)),
    collection,
    scenes: [...new Set(parts.flatMap(({ scenes }) => scenes))].sort(),
    bands,
    // Several scenes may cover one cell, which counts once.
    pixels: sumOf([...new Map(parts.flatMap(({ pixels }) => pixels)).values()], (count) => count),
    valid,
    mean: counts.map((count, band) => (count > 0 ? means[band] : NaN)),
    std: counts.map((count, band) => (count > 0 ? Math.sqrt(squares[band] / count) : NaN)),
  };
}

/** Statistics of the union of two sets of pixels, band by band (Chan, Golub and LeVeque 1979). */
function mergeSpectrumSums(a: SpectrumSums, b: SpectrumSums): SpectrumSums {
  const counts = a.counts.map((count, i) => count + b.counts[i]);
  const apart = a.means.map((mean, i) => b.means[i] - mean);
  const share = (i: number) => (counts[i] === 0 ? 0 : b.counts[i] / counts[i]);
  return {
    key: a.key,
    valid: a.valid + b.valid,
    counts,
    means: a.means.map((mean, i) => mean + apart[i] * share(i)),
    squares: a.squares.map((sum, i) => sum + b.squares[i] + apart[i] ** 2 * a.counts[i] * share(i)),
  };
}
