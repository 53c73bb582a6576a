/** CPU use over time as a picture (figure 10 of the paper): a panel a model, a line a mode. */

export interface CpuTrace {
  model: string;
  mode: string;
  /** Cores in use up to a time. */
  points: { seconds: number; cores: number }[];
}

const COLOURS: Record<string, string> = {
  distributed: '#d95f02',
  partitioned: '#1b9e77',
  contained: '#7570b3',
};
const [WIDTH, HEIGHT, LEFT, TOP, GAP] = [640, 120, 48, 40, 52];

/** SVG. Each panel has its own axis of time, and one of 0 to 100 % of a core. */
export function cpuPlot(traces: CpuTrace[]): string {
  const models = [...new Set(traces.map(({ model }) => model))];
  const panels = models.map((model, i) =>
    panel(
      model,
      traces.filter((trace) => trace.model === model),
      TOP + i * (HEIGHT + GAP),
    ),
  );
  const legend = Object.entries(COLOURS).map(
    ([mode, colour], i) =>
      `<text x="${LEFT + 110 * i}" y="16" fill="${colour}" font-weight="bold">${mode}</text>`,
  );
  const [width, height] = [LEFT + WIDTH + 16, TOP + models.length * (HEIGHT + GAP)];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    '<title>CPU of the nodes over time, by model and mode</title>',
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...legend,
    ...panels.flat(),
    '</svg>\n',
  ].join('\n');
}

function panel(model: string, traces: CpuTrace[], top: number): string[] {
  const longest = Math.max(...traces.flatMap(({ points }) => points.map(({ seconds }) => seconds)));
  const bottom = top + HEIGHT;
  const y = (use: number) => (bottom - Math.min(1, use) * HEIGHT).toFixed(1);
  const lines = traces.map(({ mode, points }) => {
    const text = points.map(
      ({ seconds, cores }) => `${(LEFT + (seconds / longest) * WIDTH).toFixed(1)},${y(cores)}`,
    );
    return `<polyline points="${text.join(' ')}" fill="none" stroke="${COLOURS[mode]}" stroke-width="1.5"/>`;
  });
  return [
    `<text x="${LEFT}" y="${top - 6}">${model}</text>`,
    ...[0, 0.5, 1].flatMap((use) => [
      `<line x1="${LEFT}" x2="${LEFT + WIDTH}" y1="${y(use)}" y2="${y(use)}" stroke="#ccc"/>`,
      `<text x="${LEFT - 6}" y="${Number(y(use)) + 4}" text-anchor="end">${100 * use} %</text>`,
    ]),
    ...lines,
    `<text x="${LEFT}" y="${bottom + 16}">0</text>`,
    `<text x="${LEFT + WIDTH}" y="${bottom + 16}" text-anchor="end">${longest.toFixed(0)} s</text>`,
  ];
}
