/** How the loss of each place's model fell, as small multiples on shared axes. */
import { type Html, html, logScale, logTick, type Scale, significant } from '../../../html/index.js';
import { type Axis, axes, PANEL, panel, panels, pathOf, xOf, yOf } from './chart.js';
import type { ReportModel } from './report-data.js';

export function lossCharts(models: ReportModel[]): Html {
  const epochs = Math.max(1, ...models.map(({ losses }) => losses.at(-1)?.epoch ?? 1));
  const y: Axis = {
    scale: logScale(
      models.flatMap(({ losses, baseline }) => [
        ...losses.flatMap(({ train, validation }) => [train, validation]),
        baseline.linear.mse,
      ]),
    ),
    label: logTick,
  };
  const x: Axis = { scale: epochScale(epochs), label: String };
  return panels(models.map((model) => lossPanel(model, x, y)));
}

function lossPanel({ geocode, losses, patches, baseline }: ReportModel, x: Axis, y: Axis): Html {
  const line = (of: (loss: ReportModel['losses'][number]) => number) =>
    pathOf(
      losses
        .filter((loss) => of(loss) > 0)
        .map((loss) => [xOf(x.scale.at(loss.epoch)), yOf(y.scale.at(of(loss)))]),
    );
  const ridge = yOf(y.scale.at(baseline.linear.mse)).toFixed(1);
  const [first, last] = [losses[0], losses.at(-1)];
  const alt =
    first && last
      ? `Loss of place ${geocode} over ${last.epoch} epochs: validation from ${significant(first.validation)} to ${significant(last.validation)}, train from ${significant(first.train)} to ${significant(last.train)}`
      : `Place ${geocode} has no epochs`;
  return panel(
    html`${geocode}`,
    html`<span data-tip="${patches.train} patches to learn from, ${patches.validation} to check">${patches.train} + ${patches.validation} patches</span>`,
    alt,
    html`${axes(x, y)}<line class="ridge" x1="${xOf(0)}" x2="${xOf(1)}" y1="${ridge}" y2="${ridge}"/><path class="train" d="${line((loss) => loss.train)}"/><path class="model" d="${line((loss) => loss.validation)}"/>${
      losses.length > 1 && hoverTexts(losses, x.scale)
    }`,
  );
}

/** Texts for the epochs, evenly spread over the panel. */
function hoverTexts(losses: ReportModel['losses'], scale: Scale): Html {
  const [from, to] = [xOf(scale.at(losses[0]!.epoch)), xOf(scale.at(losses.at(-1)!.epoch))];
  const texts = losses.map(
    ({ epoch, train, validation }) =>
      `epoch ${epoch}: train ${significant(train)}, validation ${significant(validation)}`,
  );
  return html`<line class="cursor" y1="${yOf(1)}" y2="${yOf(0)}"/><rect class="hit" x="${from.toFixed(1)}" y="${PANEL.top}" width="${(to - from).toFixed(1)}" height="${yOf(0) - PANEL.top}" data-tips="${texts.join('|')}"/>`;
}

function epochScale(epochs: number): Scale {
  const middle = Math.round((1 + epochs) / 2);
  return {
    at: (epoch) => (epochs === 1 ? 0.5 : (epoch - 1) / (epochs - 1)),
    ticks: [...new Set([1, middle, epochs])],
  };
}
