/** The style sheet of reports, for light and dark mode. */
import { trusted } from '../../html/index.js';

const CURVE_COLOURS = [
  '#0a63a8',
  '#c0640a',
  '#2b8a83',
  '#8a4fbd',
  '#b3304c',
  '#5b7a1e',
  '#767e86',
  '#a8790a',
];

export const REPORT_STYLE = trusted(`
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #1b2126; --soft: #5a636b; --line: #dfdcd3; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181b; --ink: #e9e7e1; --soft: #a3abb2; --line: #343b41; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 960px; padding: 32px 24px 48px; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 30px; line-height: 1.2; margin: 4px 0 8px; } h2 { font-size: 21px; margin: 40px 0 8px; }
.meta, .legend, caption, footer, figcaption { color: var(--soft); font-size: 13.5px; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 18px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; }
.scroll { max-height: 420px; overflow: auto; }
.chart { width: 100%; height: auto; } .chart text { fill: var(--soft); font-size: 12px; } .axes line { stroke: var(--line); }
.curve path { fill: none; stroke-width: 1.6; } .curve path.spread { stroke: none; opacity: 0.18; }
.legend span { margin-right: 16px; } .legend span::before { content: ''; display: inline-block; width: 18px; border-top: 3px solid currentColor; margin-right: 6px; vertical-align: 4px; }
${CURVE_COLOURS.map((colour, c) => `.curve.c${c} path { stroke: ${colour}; } .curve.c${c} path.spread { fill: ${colour}; } .legend .c${c} { color: ${colour}; }`).join('\n')}
.scale i { display: inline-block; width: 160px; height: 12px; margin: 0 8px; vertical-align: -1px; }
.key { display: inline-block; width: 14px; height: 14px; border-radius: 3px; }
.maps { display: flex; flex-wrap: wrap; gap: 16px; } figure { margin: 0; }
.maps img { height: 280px; width: auto; max-width: 100%; object-fit: contain; } .maps img, .matrix { image-rendering: pixelated; background: var(--line); } .matrix { width: 100%; max-width: 480px; }
code { font-family: ui-monospace, monospace; }
`);
