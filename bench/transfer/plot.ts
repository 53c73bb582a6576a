/** Validation loss over epochs as a picture (figure 9 of the paper): a panel a set of places, a line a policy. */
import type { TransferPolicy } from '../../src/training/model-card.js';

export interface LossLine {
  policy: TransferPolicy;
  /** After each epoch, over the error of a fresh start. */
  losses: number[];
}

const COLOURS: Record<TransferPolicy, string> = {
  none: '#d95f02',
  random: '#7570b3',
  similar: '#1b9e77',
  probe: '#1f78b4',
};
const [WIDTH, HEIGHT, LEFT, TOP, GAP] = [640, 180, 48, 40, 56];

const TICKS = [0.2, 0.5, 0.8, 1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100];
/** Pixels between two ticks at least. */
const TICK_GAP = 16;

/** SVG. Panels by their titles, each with its own logarithmic axis of losses. */
export function lossPlot(panels: Map<string, LossLine[]>): string {
  const legend = Object.entries(COLOURS).map(
    ([policy, colour], i) =>
      `<text x="${LEFT + 110 * i}" y="16" fill="${colour}" font-weight="bold">${policy}</text>`,
  );
  const [width, bottom] = [LEFT + WIDTH + 16, TOP + panels.size * (HEIGHT + GAP)];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${bottom}" font-family="sans-serif" font-size="12">`,
    '<title>Validation loss by epoch and by what a place starts from</title>',
    `<rect width="${width}" height="${bottom}" fill="#fff"/>`,
    ...legend,
    ...[...panels].flatMap(([title, lines], i) => panel(title, lines, TOP + i * (HEIGHT + GAP))),
    '</svg>\n',
  ].join('\n');
}

function panel(title: string, lines: LossLine[], top: number): string[] {
  const bottom = top + HEIGHT;
  const epochs = Math.max(...lines.map(({ losses }) => losses.length));
  // With 1, which a fresh start comes to at its best.
  const all = lines.flatMap(({ losses }) => losses).concat(1);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const height = (loss: number) => (Math.log(loss / least) / Math.log(most / least)) * HEIGHT;
  const y = (loss: number) => (bottom - height(loss)).toFixed(1);
  const x = (epoch: number) => (LEFT + ((epoch - 1) / Math.max(1, epochs - 1)) * WIDTH).toFixed(1);
  return [
    `<text x="${LEFT}" y="${top - 6}">${title}</text>`,
    `<path d="M${LEFT} ${top}V${bottom}H${LEFT + WIDTH}" fill="none" stroke="#888"/>`,
    ...ticksOf(least, most, height).flatMap((tick) => [
      `<line x1="${LEFT}" x2="${LEFT + WIDTH}" y1="${y(tick)}" y2="${y(tick)}" stroke="#ccc"/>`,
      `<text x="${LEFT - 6}" y="${Number(y(tick)) + 4}" text-anchor="end">${tick}</text>`,
    ]),
    ...lines.map(({ policy, losses }) => {
      const points = losses.map((loss, i) => `${x(i + 1)},${y(loss)}`);
      return `<polyline points="${points.join(' ')}" fill="none" stroke="${COLOURS[policy]}" stroke-width="1.5"/>`;
    }),
    `<text x="${LEFT}" y="${bottom + 16}">epoch 1</text>`,
    `<text x="${LEFT + WIDTH}" y="${bottom + 16}" text-anchor="end">${epochs}</text>`,
  ];
}

/** 1, and from there those that do not stand too close. */
function ticksOf(least: number, most: number, height: (loss: number) => number): number[] {
  const ticks = [1];
  const isApart = (tick: number) =>
    ticks.every((other) => Math.abs(height(tick) - height(other)) >= TICK_GAP);
  for (const tick of TICKS) if (tick >= least && tick <= most && isApart(tick)) ticks.push(tick);
  return ticks;
}
