/** Loss curves of the models as small multiples with shared axes. */
import { type AxisScale, type Html, html, logScale, logTick, significant } from '../html/index.js';
import { axes, type ChartAxis, PANEL_LAYOUT, panel, panels, svgPath, toX, toY } from './demo-report-chart.js';
import type { ReportModel } from './demo-report-data.js';

export function lossCharts(models: ReportModel[]): Html {
  const epochs = Math.max(1, ...models.map(({ losses }) => losses.at(-1)?.epoch ?? 1));
  const y: ChartAxis = {
    scale: logScale(
      models.flatMap(({ losses, baseline }) => [
        ...losses.flatMap(({ train, validation }) => [train, validation]),
        baseline.linear.mse,
      ]),
    ),
    label: logTick,
  };
  const x: ChartAxis = { scale: epochScale(epochs), label: String };
  return panels(models.map((model) => lossPanel(model, x, y)));
}

function lossPanel({ geocode, losses, patches, baseline }: ReportModel, x: ChartAxis, y: ChartAxis): Html {
  const line = (of: (loss: ReportModel['losses'][number]) => number) =>
    svgPath(
      losses
        .filter((loss) => of(loss) > 0)
        .map((loss) => [toX(x.scale.position(loss.epoch)), toY(y.scale.position(of(loss)))]),
    );
  const ridge = toY(y.scale.position(baseline.linear.mse)).toFixed(1);
  const [first, last] = [losses[0], losses.at(-1)];
  const alt =
    first && last
      ? `Loss of place ${geocode} over ${last.epoch} epochs: validation from ${significant(first.validation)} to ${significant(last.validation)}, train from ${significant(first.train)} to ${significant(last.train)}`
      : `Place ${geocode} has no epochs`;
  return panel(
    geocode,
    html`<span data-tip="${patches.train} patches to learn from, ${patches.validation} to check">${patches.train} + ${patches.validation} patches</span>`,
    alt,
    html`${axes(x, y)}<line class="ridge" x1="${toX(0)}" x2="${toX(1)}" y1="${ridge}" y2="${ridge}"/><path class="train" d="${line((loss) => loss.train)}"/><path class="model" d="${line((loss) => loss.validation)}"/>${
      losses.length > 1 && hoverTexts(losses, x.scale)
    }`,
  );
}

/** Tooltips for the epochs, evenly spread over the panel. */
function hoverTexts(losses: ReportModel['losses'], scale: AxisScale): Html {
  const [from, to] = [toX(scale.position(losses[0]!.epoch)), toX(scale.position(losses.at(-1)!.epoch))];
  const texts = losses.map(
    ({ epoch, train, validation }) =>
      `epoch ${epoch}: train ${significant(train)}, validation ${significant(validation)}`,
  );
  return html`<line class="cursor" y1="${toY(1)}" y2="${toY(0)}"/><rect class="hit" x="${from.toFixed(1)}" y="${PANEL_LAYOUT.top}" width="${(to - from).toFixed(1)}" height="${toY(0) - PANEL_LAYOUT.top}" data-tips="${texts.join('|')}"/>`;
}

function epochScale(epochs: number): AxisScale {
  const middle = Math.round((1 + epochs) / 2);
  return {
    position: (epoch) => (epochs === 1 ? 0.5 : (epoch - 1) / (epochs - 1)),
    ticks: [...new Set([1, middle, epochs])],
  };
}
