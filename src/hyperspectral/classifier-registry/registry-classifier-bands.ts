/** The bands of a tile that a stored classifier reads. */
import { nearestBand, spectralTags } from '../../raster/index.js';
import type { GroupRecord, TileRecord } from '../../storage/index.js';
import { NO_SPECTRUM } from '../jobs/index.js';
import { patchSide } from '../spectral-cnn/index.js';
import { type AnalysedBand, spectralGroups, type TileSpectrum } from '../spectrum-reading/index.js';
import { type ClassifierCard, pixelHeight } from './classifier-card.js';

/** Largest distance of the centre of a band from that of a model's band. If the model's band has a FWHM, the limit is half of it. */
const MAX_BAND_DISTANCE_NM = 5;
/** Largest relative difference between pixels of one size. */
const SIZE_TOLERANCE = 0.01;
const OTHER_SIZE = 'their pixels have another size than those that the model was trained on';

/** Returns the bands in the order of the model's bands, or the reason why the classifier does not apply to the tile. */
export function inputBands(tile: TileRecord, card: ClassifierCard): TileSpectrum | string {
  const [group] = spectralGroups(tile.groups);
  if (!group) return NO_SPECTRUM;
  if (patchSide(card.classifier) > 1 && !hasPixelSize(tile, group, card)) return OTHER_SIZE;
  const bands = matchBands(group, card.bands);
  const missing = card.bands[bands.indexOf(-1)];
  if (missing) return `they have no good band at ${missing.wavelength.toFixed(1)} nm, which the model reads`;
  return { group, bands };
}

/**
 * Returns a different band for each band of a model, -1 if none matches. If detectors overlap, several bands can be near: the band with the
 * name of the model's band is preferred, then the nearest band.
 */
function matchBands(group: GroupRecord, wanted: readonly AnalysedBand[]): number[] {
  const unused = group.bands.map(({ wavelength, fwhm, good, validPercent }) => ({
    ...spectralTags({ wavelength, fwhm }),
    ...((good === false || validPercent === 0) && { good: false as const }),
  }));
  const limitOf = ({ fwhm }: AnalysedBand) => (fwhm === undefined ? MAX_BAND_DISTANCE_NM : fwhm / 2);
  const take = (band: number) => {
    // `nearestBand` ignores bands that are not good.
    if (band >= 0) unused[band] = { ...unused[band], good: false };
    return band;
  };
  const named = wanted.map((one) => {
    const band = group.bands.findIndex(({ name }) => name === one.name);
    const { wavelength = Infinity, good } = unused[band] ?? {};
    const isNear = Math.abs(wavelength - one.wavelength) <= limitOf(one);
    return take(isNear && good !== false ? band : -1);
  });
  return wanted.map((one, i) =>
    named[i] >= 0 ? named[i] : take(nearestBand(unused, one.wavelength, limitOf(one))),
  );
}

/** True if the pixels have the height of those that trained the classifier, or if that height is unknown. */
function hasPixelSize(
  { grid, geocode }: TileRecord,
  { height: rows }: GroupRecord,
  card: Pick<ClassifierCard, 'grid' | 'pixelHeight'>,
): boolean {
  if (card.pixelHeight === undefined) return true;
  const own = pixelHeight({ grid, geocode, rows });
  return grid === card.grid && Math.abs(own / card.pixelHeight - 1) <= SIZE_TOLERANCE;
}
