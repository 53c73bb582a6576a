/** Warnings about shares of the pixels of an image. They are true for this image only, and not for images that are made from it. */
import type { TileRecord } from '../storage/index.js';
import type { FillTargets } from './tasks.js';

const OTHER_DATES = 'of the pixels are of other dates';
const NOT_ASSESSED = 'of the pixels were not assessed for cloud, so they may be cloud';
const STILL_CLOUD = 'of the pixels are still cloud or cloud shadow';
const BELOW_TARGET = 'of the cell holds data, below the target of';
const ABOVE_TARGET = 'of the assessed pixels are cloud, above the target of';
const SHARES = [OTHER_DATES, NOT_ASSESSED, STILL_CLOUD, BELOW_TARGET, ABOVE_TARGET];

/** Percent of the pixels of an image. */
export interface PixelShares {
  otherDates?: number;
  notAssessed?: number;
  /** Cloud and cloud shadow. */
  stillCloud?: number;
}

export function shareWarnings({ otherDates = 0, notAssessed = 0, stillCloud = 0 }: PixelShares): string[] {
  return [
    otherDates > 0 ? `${percent(otherDates)} ${OTHER_DATES}` : [],
    stillCloud > 0 ? `${percent(stillCloud)} ${STILL_CLOUD}` : [],
    notAssessed > 0 ? `${percent(notAssessed)} ${NOT_ASSESSED}` : [],
  ].flat();
}

export function targetWarnings(
  { coverage, cloudCover }: Pick<TileRecord, 'coverage' | 'cloudCover'>,
  targets: FillTargets,
): string[] {
  // Rounded down, so that no target seems to be met.
  const covered = Math.floor(10 * coverage) / 10;
  return [
    coverage < targets.coverage ? `${covered.toFixed(1)} % ${BELOW_TARGET} ${targets.coverage} %` : [],
    cloudCover !== null && cloudCover > targets.cloud
      ? `${percent(cloudCover)} ${ABOVE_TARGET} ${targets.cloud} %`
      : [],
  ].flat();
}

export const isShareWarning = (text: string): boolean => SHARES.some((share) => text.includes(` % ${share}`));

export const percent = (share: number) => `${share < 0.1 ? 'less than 0.1' : share.toFixed(1)} %`;
