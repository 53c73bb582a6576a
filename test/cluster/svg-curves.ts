/** Curves over time as an SVG: one panel for each unit, one line for each series. */

export interface Curve {
  name: string;
  values: (number | undefined)[];
}

const WIDTH = 900;
const HEIGHT = 150;
const LEFT = 60;
const GAP = 40;
const COLOURS = ['#1b6ca8', '#d1495b', '#2e933c', '#8d6a9f'];

export function svgOf(seconds: number[], panels: { title: string; curves: Curve[] }[]): string {
  const end = Math.max(1, ...seconds);
  const x = (at: number) => LEFT + (at / end) * (WIDTH - LEFT - 10);
  const body = panels.map(({ title, curves }, p) => {
    const top = GAP + p * (HEIGHT + GAP);
    const known = curves.flatMap(({ values }) => values.filter((value) => value !== undefined));
    const most = Math.max(1, ...known) * 1.1;
    const y = (value: number) => top + HEIGHT - (value / most) * HEIGHT;
    const lines = curves.map(({ values }, c) => {
      const points = values.flatMap((value, i) =>
        value === undefined ? [] : [`${x(seconds[i]!).toFixed(1)},${y(value).toFixed(1)}`],
      );
      return `<polyline fill="none" stroke="${COLOURS[c % COLOURS.length]}" points="${points.join(' ')}"/>`;
    });
    const names = curves.map(
      ({ name }, c) => `<tspan dx="12" fill="${COLOURS[c % COLOURS.length]}">${name}</tspan>`,
    );
    return [
      `<text x="${LEFT}" y="${top - 8}">${title}${names.join('')}</text>`,
      `<path stroke="#999" fill="none" d="M${LEFT} ${top}V${top + HEIGHT}H${WIDTH - 10}"/>`,
      `<text x="${LEFT - 6}" y="${top + 10}" text-anchor="end">${most.toPrecision(3)}</text>`,
      `<text x="${LEFT - 6}" y="${top + HEIGHT}" text-anchor="end">0</text>`,
      ...lines,
    ].join('\n');
  });
  const height = GAP + panels.length * (HEIGHT + GAP);
  const hours = `<text x="${WIDTH - 10}" y="${height - 12}" text-anchor="end">${(end / 3600).toFixed(2)} hours</text>`;
  return `<svg role="img" aria-label="Curves of a soak" xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
${body.join('\n')}
${hours}
</svg>
`;
}
