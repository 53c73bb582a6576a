/** Areas of classes from a map and a probability sample of labels (Olofsson et al. 2014). */
import { listOf, NUMBER, objectOf, TEXT } from '../../utils/json-schema.js';

/** Estimates with standard errors. Plain JSON. */
export interface AreaEstimates {
  /** Overall accuracy of the area of the map. */
  oa: number;
  oaError: number;
  classes: {
    name: string;
    /** Square kilometres in the map, and estimated. */
    mapped: number;
    area: number;
    areaError: number;
    /** Share of the area of the class in the map that belongs to it (precision), and of its true area that the map shows (recall). */
    users: number;
    usersError: number;
    producers: number;
    producersError: number;
  }[];
}

const ESTIMATED = ['mapped', 'area', 'areaError', 'users', 'usersError', 'producers', 'producersError'];

export const AREA_ESTIMATES = objectOf({
  oa: NUMBER,
  oaError: NUMBER,
  classes: listOf(
    objectOf({ name: TEXT, ...Object.fromEntries(ESTIMATED.map((member) => [member, NUMBER])) }),
  ),
});

/**
 * Returns the estimates, or the reason why they are missing. The classes of the map are the strata; a simple random sample is stratified
 * afterwards. `confusion`: rows are labels, columns are classes of the map. `mapped`: square kilometres of each class in the map.
 */
export function areaEstimates(
  confusion: readonly (readonly number[])[],
  mapped: readonly number[],
  names: readonly string[],
): AreaEstimates | string {
  const total = mapped.reduce((sum, area) => sum + area, 0);
  const counts = mapped.map((_, stratum) => confusion.reduce((sum, row) => sum + row[stratum], 0));
  const strata = [...mapped.keys()].filter((stratum) => mapped[stratum] > 0);
  const scarce = strata.filter((stratum) => counts[stratum] < 2);
  if (scarce.length > 0)
    return `fewer than 2 labels lie in the area that the map gives to ${scarce.map((one) => names[one]).join(', ')}`;
  const weight = (stratum: number) => mapped[stratum] / total;
  /** Share of a stratum that belongs to a class, and the variance of its estimate (equations 4 and 10). */
  const shareOf = (name: number, stratum: number) => confusion[name][stratum] / counts[stratum];
  const varianceOf = (name: number, stratum: number) => {
    const share = shareOf(name, stratum);
    return (share * (1 - share)) / (counts[stratum] - 1);
  };
  const sum = (value: (stratum: number) => number) => strata.reduce((all, one) => all + value(one), 0);
  const classes = names.map((name, c) => {
    const isMapped = mapped[c] > 0;
    const users = isMapped ? shareOf(c, c) : 0;
    const part = sum((stratum) => weight(stratum) * shareOf(c, stratum));
    const producers = part === 0 ? 0 : ((isMapped ? weight(c) : 0) * users) / part;
    // Equation 7, with shares of the area in place of pixels.
    const own = isMapped ? weight(c) ** 2 * (1 - producers) ** 2 * varianceOf(c, c) : 0;
    const others = sum((stratum) => (stratum === c ? 0 : weight(stratum) ** 2 * varianceOf(c, stratum)));
    return {
      name,
      mapped: mapped[c],
      area: part * total,
      areaError: total * Math.sqrt(sum((stratum) => weight(stratum) ** 2 * varianceOf(c, stratum))),
      users,
      usersError: isMapped ? Math.sqrt(varianceOf(c, c)) : 0,
      producers,
      producersError: part === 0 ? 0 : Math.sqrt(own + producers ** 2 * others) / part,
    };
  });
  return {
    oa: sum((stratum) => weight(stratum) * shareOf(stratum, stratum)),
    oaError: Math.sqrt(sum((stratum) => weight(stratum) ** 2 * varianceOf(stratum, stratum))),
    classes,
  };
}
