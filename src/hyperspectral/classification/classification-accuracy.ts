/** Accuracy of a classification from its confusion matrix. */

export interface ClassAccuracy {
  code: number;
  /** Labelled pixels. */
  pixels: number;
  /** Share of the pixels of the class that are classified correctly; 0 if there are none. */
  recall: number;
  /** Share of the pixels classified as this class that belong to it; 0 if there are none. */
  precision: number;
  f1: number;
}

export interface AccuracyScores {
  pixels: number;
  /** Overall and average accuracy, 0 to 1. */
  oa: number;
  aa: number;
  /** Cohen's kappa (Cohen 1960). */
  kappa: number;
  classes: ClassAccuracy[];
  /** Rows are labels, columns are predictions, in the order of the codes. */
  confusion: number[][];
}

/** `table`: row by row. Classes without a pixel do not count for the average accuracy. */
export function accuracyScores(table: readonly number[], codes: readonly number[]): AccuracyScores {
  const size = codes.length;
  const confusion = codes.map((_, row) => table.slice(row * size, (row + 1) * size));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const rows = confusion.map(sum);
  const columns = codes.map((_, column) => sum(confusion.map((row) => row[column])));
  const pixels = sum(rows);
  const right = sum(confusion.map((row, i) => row[i]));
  const share = (part: number, total: number) => (total === 0 ? 0 : part / total);
  const classes = codes.map((code, i): ClassAccuracy => {
    const recall = share(confusion[i][i], rows[i]);
    const precision = share(confusion[i][i], columns[i]);
    const f1 = share(2 * recall * precision, recall + precision);
    return { code, pixels: rows[i], recall, precision, f1 };
  });
  const seen = classes.filter((one) => one.pixels > 0);
  const oa = share(right, pixels);
  const chance = share(sum(rows.map((row, i) => row * columns[i])), pixels ** 2);
  return {
    pixels,
    oa,
    kappa: chance === 1 ? 0 : (oa - chance) / (1 - chance),
    classes,
    confusion,
    aa: share(sum(seen.map(({ recall }) => recall)), seen.length),
  };
}
