/** Sections of the report of a classification. */
import { html } from '../../html/index.js';
import { colourKey, columns, htmlTable, percentText, type Section, spectrumChart } from '../report/index.js';
import type { AnalysedBand } from '../spectrum-reading/index.js';
import type { ClassifyFit } from './classification-map.js';
import type { BandWeights, TrainingFacts } from './classification-training-facts.js';

export function classSections(fit: ClassifyFit, bands: readonly AnalysedBand[]): Section[] {
  const { classes, compared, calibration, bandWeights } = fit;
  const shown = fit.random ?? fit.scores;
  const classOf = (code: number) => classes.find((one) => one.code === code)!;
  return [
    {
      title: 'Accuracy',
      content: html`<p>Overall ${percentText(shown.oa)}, average ${percentText(shown.aa)}, kappa ${shown.kappa.toFixed(3)}.</p>${htmlTable(
        columns(['', 'code', 'class'], ['trained on', 'validated on', 'recall', 'precision', 'F1']),
        shown.classes.map(({ code, pixels, recall, precision, f1 }) => [
          colourKey(code),
          `${code}`,
          classOf(code).name,
          `${classOf(code).train}`,
          `${pixels}`,
          percentText(recall),
          percentText(precision),
          f1.toFixed(3),
        ]),
      )}`,
    },
    {
      title: 'Classifiers on the validation pixels',
      content: htmlTable(
        columns(
          ['classifier'],
          [
            'regularisation',
            'cross entropy (tuning pixels)',
            'overall (tuning pixels)',
            'overall',
            'average',
            'kappa',
          ],
        ),
        compared.map(({ classifier, strength, entropy, tuned, oa, aa, kappa }) => [
          classifier,
          `${strength}`,
          entropy.toFixed(3),
          percentText(tuned),
          percentText(oa),
          percentText(aa),
          kappa.toFixed(3),
        ]),
      ),
    },
    {
      title: 'Calibration of the probabilities',
      content: html`<p>Expected calibration error ${percentText(calibration.error)}, ${percentText(calibration.uncalibrated)} before temperature scaling (T = ${calibration.temperature.toFixed(2)}).</p>${htmlTable(
        columns([], ['mean largest probability', 'pixels', 'share correct']),
        calibration.bins.map(({ pixels, probability, accuracy }) => [
          percentText(probability),
          `${pixels}`,
          percentText(accuracy),
        ]),
      )}`,
    },
    {
      title: 'Confusion matrix (rows: labels, columns: map)',
      content: htmlTable(
        columns(
          [''],
          shown.classes.map(({ code }) => classOf(code).name),
        ),
        shown.confusion.map((row, i) => [classOf(shown.classes[i].code).name, ...row.map(String)]),
      ),
    },
    ...(bandWeights ? [bandSection(bands, classes, bandWeights)] : []),
    {
      title: 'Mean spectra of the classes',
      content: spectrumChart(
        bands,
        classes.map(({ name, mean }) => ({ name, values: mean })),
      ),
    },
  ];
}

function bandSection(
  bands: readonly AnalysedBand[],
  classes: ClassifyFit['classes'],
  weights: BandWeights,
): Section {
  const curves = weights.flatMap((values, c) => (values ? [{ name: classes[c].name, values }] : []));
  return {
    title: 'Importance of the bands (Grad-CAM)',
    content: html`<p>How much each band raises the score of the class above the score of the second best class. The values are means over the correctly classified validation pixels, divided by the largest mean.</p>${spectrumChart(bands, curves)}`,
  };
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

export function trainingText({
  engine,
  precision,
  epochs,
  parameters,
  spectraBytes,
  gradientBytes,
}: TrainingFacts) {
  const bytes = `spectra ${megabytes(spectraBytes)}, gradients ${megabytes(gradientBytes)}`;
  const how = epochs === undefined ? '' : `${epochs} epochs with ${engine}, `;
  return `${parameters} weights, ${how}${precision} precision: ${bytes}`;
}
