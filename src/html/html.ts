/** HTML reports: templates of markup that escape data, pages, and the style sheet of a report. */

/** Markup. Invariant: every text from outside is escaped; only `html` and `trusted` create instances. */
export class Html {
  constructor(readonly markup: string) {}
}

type Part = string | number | Html | Html[] | null | false;

/** A template of markup. Strings are escaped, markup and lists of markup are inserted unchanged, null and false are omitted. */
export function html(template: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(template.reduce((text, next, i) => text + markupOf(parts[i - 1]) + next));
}

/** Marks constant text of this program as markup. It must never be used for data. */
export function trusted(markup: string): Html {
  return new Html(markup);
}

function markupOf(part: Part): string {
  if (part === null || part === false) return '';
  if (Array.isArray(part)) return part.map(({ markup }) => markup).join('');
  return part instanceof Html ? part.markup : escaped(String(part));
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]);
}

/** Content-Security-Policy of a self-contained page without scripts. */
export const PAGE_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";

interface PageParts {
  title: string;
  /** Content-Security-Policy. */
  policy: string;
  style: Html;
  body: Html;
}

export const htmlSection = (title: string, ...content: Html[]): Html => html`<section><h2>${title}</h2>
${content}</section>
`;

/** An HTML page with embedded styles for light and dark mode. */
export function htmlPage({ title, policy, style, body }: PageParts): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
${body}
</body>
</html>
`.markup;
}

/**
 * Blue, orange and grey mark model, ridge and mean; teal and violet mark coverage and cloud. These colours are distinguishable with every
 * kind of colour vision, and also differ in shape, dash or position.
 */
const COLOUR_STYLE = `
:root { color-scheme: light dark;
  --paper: #fbfaf7; --raised: #ffffff; --ink: #1b2126; --soft: #5a636b; --line: #dfdcd3; --faint: #efede6;
  --model: #0a63a8; --ridge: #c0640a; --mean: #767e86; --train: #8aa9c4; --cover-ink: #2b8a83; --cloud-ink: #8a76bd; --pick: #0a63a8; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #14181b; --raised: #1b2024; --ink: #e9e7e1; --soft: #a3abb2; --line: #343b41; --faint: #242a2f;
  --model: #74b9f2; --ridge: #f0a050; --mean: #98a1a9; --train: #55789a; --cover-ink: #3fa59d; --cloud-ink: #9d8bd4; --pick: #8cc8fa; } }`;

const TEXT_STYLE = `
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif; }
main, header, footer { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 56px; }
h1, h2 { font-family: Charter, "Bitstream Charter", "Iowan Old Style", Georgia, "Liberation Serif", serif; font-weight: 600; line-height: 1.2; text-wrap: balance; }
h1 { font-size: clamp(30px, 5vw, 44px); letter-spacing: -0.015em; margin: 6px 0 10px; }
h2 { font-size: 26px; letter-spacing: -0.01em; margin: 0 0 8px; }
h3 { font-size: 14px; font-weight: 600; margin: 28px 0 4px; }
p { margin: 0 0 14px; max-width: 68ch; text-wrap: pretty; }
section { margin-top: 56px; padding-top: 28px; border-top: 1px solid var(--line); }
.meta { max-width: none; }
.eyebrow, .meta, .note, caption, .none, footer { color: var(--soft); font-size: 13.5px; }
.eyebrow { letter-spacing: 0.08em; text-transform: uppercase; font-size: 12px; font-weight: 600; margin: 0; }
.lead { font-size: 19px; line-height: 1.5; margin-top: 26px; max-width: 62ch; }
.verdict { border-left: 3px solid var(--model); padding-left: 14px; }
code, .code, .geocode { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
pre { margin: 0 0 12px; padding: 12px 14px; background: var(--faint); border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13.5px; line-height: 1.5; }
pre code { user-select: all; } pre span { display: inline-block; max-width: 100%; }
footer { margin-top: 64px; padding-bottom: 48px; }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
a { color: var(--model); }
:focus-visible { outline: 2px solid var(--model); outline-offset: 2px; }
summary { cursor: pointer; color: var(--model); font-size: 14px; margin: 14px 0; }
ul.plain { list-style: none; padding: 0; margin: 0; }
.skipped { columns: 2 340px; column-gap: 40px; font-size: 14px; }
.skipped li { break-inside: avoid; padding: 5px 0; border-bottom: 1px solid var(--faint); overflow-wrap: anywhere; }
.skipped .geocode { font-weight: 600; margin-right: 8px; }
.warnings { color: var(--soft); font: 13px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }`;

const FIGURE_STYLE = `
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 1px; margin: 30px 0 0; background: var(--line); border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.numbers div { background: var(--raised); padding: 14px 16px; display: flex; flex-direction: column-reverse; justify-content: flex-end; }
.numbers dt { font-size: 13px; color: var(--soft); line-height: 1.35; }
.numbers dd { margin: 0; font-size: 28px; font-weight: 600; letter-spacing: -0.02em; line-height: 1.2; font-variant-numeric: tabular-nums; }
.numbers dd small { font-size: 15px; font-weight: 500; color: var(--soft); letter-spacing: 0; }
.match { height: 10px; border-radius: 5px; background: var(--faint); overflow: hidden; max-width: 480px; margin: 4px 0 6px; }
.match i { display: block; height: 100%; background: var(--model); }
.asked::first-letter { text-transform: uppercase; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 12px 0 16px; font-size: 13px; color: var(--soft); align-items: center; }
.key { display: inline-block; width: 14px; height: 10px; margin-right: 5px; border-radius: 2px; vertical-align: -0.5px; }
.key.cover { background: var(--cover-ink); } .key.cloud { background: var(--cloud-ink); }
.key.outline { border: 2px solid var(--pick); }
.key.line { height: 0; width: 20px; border-radius: 0; border-top: 2.2px solid var(--model); vertical-align: 4px; }
.key.line.of-train { border-top-color: var(--train); } .key.line.of-ridge { border-top: 1.6px dashed var(--ridge); } .key.line.of-identity { border-top: 1.2px dashed var(--soft); }
.key.model { width: 9px; height: 9px; border-radius: 50%; background: var(--model); }
.key.ridge { width: 8px; height: 8px; border-radius: 0; background: var(--ridge); transform: rotate(45deg); }
.key.mean { width: 3px; height: 12px; border-radius: 0; background: var(--mean); vertical-align: -2px; }`;

const TABLE_STYLE = `
.scroll { overflow-x: auto; margin: 0 -4px; padding: 0 4px; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; width: 100%; }
caption { text-align: left; padding: 0 0 10px; line-height: 1.45; }
th { font-weight: 600; text-align: left; } thead th { color: var(--soft); font-weight: 500; vertical-align: bottom; }
th, td { padding: 6px 10px 6px 0; border-bottom: 1px solid var(--faint); vertical-align: top; }
tbody th { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-weight: 500; }
.scenes td, .scenes th { overflow-wrap: anywhere; } .scenes .number { text-align: right; } .unit { display: none; }
table.dates { width: auto; border-collapse: separate; border-spacing: 0; }
.dates th, .dates td { border: 0; padding: 3px 7px; white-space: nowrap; }
.dates thead tr:first-child th { color: var(--ink); padding-top: 0; } .dates thead tr:last-child th { font-size: 12px; }
.dates th[scope=row], .dates th[rowspan] { position: sticky; left: 0; background: var(--paper); padding-left: 0; z-index: 1; }
.dates thead th { text-align: right; } .dates th[rowspan] { text-align: left; }
.dates td { text-align: right; min-width: 40px; border-bottom: 2px solid var(--paper); }
.dates td.cover { position: relative; padding-left: 20px; background: color-mix(in srgb, var(--cover-ink) calc(var(--cover) * 0.42%), var(--paper)); border-left: 10px solid var(--paper); background-clip: padding-box; }
.dates td.cloud { background: color-mix(in srgb, var(--cloud-ink) calc(var(--cloud) * 0.62%), var(--faint)); background-clip: padding-box; }
.dates td.no-cloud { background: none; color: var(--soft); }
.dates td.absent { background: none; }
.dates td .dot { position: absolute; left: 6px; } .dot { color: var(--pick); font-size: 9px; line-height: 2.2; vertical-align: 1px; }
.note .dot { line-height: 1; }
.errors th, .errors td { text-align: right; padding: 4px 0 4px 14px; vertical-align: middle; white-space: nowrap; }
.errors th:first-child { text-align: left; padding-left: 0; }
.errors td.plot, .errors th.plot { width: 46%; padding-left: 22px; padding-right: 12px; position: relative; }
.errors thead th { font-size: 12.5px; } .errors tfoot th, .errors tfoot td { border-top: 1px solid var(--line); border-bottom: 0; padding-top: 9px; padding-bottom: 9px; }
.errors .lost .best { color: var(--ridge); font-weight: 600; }
.errors thead .plot { height: 22px; } 
.tick { position: absolute; transform: translateX(-50%); bottom: 4px; font-weight: 400; font-size: 11.5px; }
.errors thead .plot .ticks { position: absolute; inset: 0 12px 0 22px; }`;

const MAP_STYLE = `
.tiles { display: flex; flex-wrap: wrap; gap: 20px 36px; align-items: flex-start; }
.tiles > .map-block { flex: 1 1 480px; min-width: 0; width: 100%; } .tiles > .dates-block { flex: 0 1 auto; min-width: 0; max-width: 100%; } .dates-block .note { max-width: 430px; margin-bottom: 8px; } .dates-block h3 { margin-top: 4px; }
.map { display: grid; grid-template-columns: 56px 1fr; grid-template-rows: auto 24px auto; }
.ruler { grid-column: 2; font-size: 11px; color: var(--soft); line-height: 1; display: flex; align-items: flex-end; gap: 6px; white-space: nowrap; margin: 0 0 6px; }
.ruler i { border: solid var(--soft); border-width: 0 1.5px 1.5px; height: 6px; flex: none; }
.lats, .lons { position: relative; font-size: 10.5px; color: var(--soft); font-variant-numeric: tabular-nums; }
.lats span { position: absolute; right: 7px; transform: translateY(-50%); white-space: nowrap; }
.lons { grid-column: 2; overflow: visible; } .lons span { position: absolute; top: 5px; transform: translateX(-50%); white-space: nowrap; }
.cells { position: relative; list-style: none; margin: 0; padding: 0; width: 100%; }
.cell { position: absolute; container-type: size; overflow: hidden; border: 1.5px solid transparent; background-clip: padding-box !important; background: color-mix(in srgb, var(--cover-ink) calc(var(--cover) * 0.4%), var(--paper)); }
.cell img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: fill; opacity: 0.42; filter: saturate(0.45); }
.cell.picked img { opacity: 1; filter: none; }
.cell.picked::after { content: ""; position: absolute; inset: 0; border: 2px solid var(--pick); box-shadow: inset 0 0 0 1px color-mix(in srgb, var(--paper) 70%, transparent); }
.cell .code, .cell .figures { position: absolute; left: 5px; background: color-mix(in srgb, var(--paper) 86%, transparent); border-radius: 3px; padding: 0 4px; font-size: 11.5px; line-height: 1.5; }
.cell .code { top: 5px; font-weight: 600; } .cell .figures { bottom: 12px; font-variant-numeric: tabular-nums; display: flex; gap: 8px; }
.figure::before { content: ""; display: inline-block; width: 7px; height: 7px; border-radius: 1px; margin-right: 3px; background: var(--cover-ink); }
.figure.cloud::before { background: var(--cloud-ink); }
.meter { position: absolute; left: 2px; height: 3px; bottom: 5px; max-width: calc(100% - 4px); background: var(--cover-ink); width: calc(var(--cover) * 1%); }
.meter.cloud { bottom: 2px; background: var(--cloud-ink); width: calc(var(--cloud) * 1%); }
@container (max-width: 68px) { .cell .code, .cell .figures { font-size: 9.5px; left: 2px; padding: 0 2px; } .cell .code { top: 2px; } .cell .figures { bottom: 9px; gap: 4px; } .figure::before { display: none; } .figure.cover::after { content: " ·"; } .cell.picked::after { border-width: 1.5px; } }
@container (max-width: 46px) or (max-height: 34px) { .cell .figures { display: none; } }
@container (max-width: 34px) or (max-height: 18px) { .cell .code { display: none; } .cell.picked::after { border-width: 1px; box-shadow: none; } }
.switch { border: 0; padding: 0; margin: 0 0 12px; font-size: 13.5px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 2px 16px; }
.switch legend { float: left; margin-right: 16px; padding: 0; } .switch label { cursor: pointer; } .switch input { accent-color: var(--model); margin: 0 3px 0 0; vertical-align: -1px; }
.map-block:has([value=cover]:checked) img, .map-block:has([value=cloud]:checked) img { display: none; }
.map-block:has([value=cover]:checked) .cell { background: color-mix(in srgb, var(--cover-ink) calc(var(--cover) * 0.8%), var(--faint)); }
.map-block:has([value=cloud]:checked) .cell { background: color-mix(in srgb, var(--cloud-ink) calc(var(--cloud) * 0.9%), var(--faint)); }
.map-block:has([value=cloud]:checked) .no-cloud { background: repeating-linear-gradient(45deg, var(--faint) 0 5px, var(--paper) 5px 10px); }`;

const CHART_STYLE = `
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(158px, 1fr)); gap: 18px 16px; }
.panel { margin: 0; min-width: 0; } .panel svg { display: block; width: 100%; overflow: visible; }
.panel figcaption { font-size: 12px; line-height: 1.35; margin-bottom: 4px; display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 8px; padding-right: 5px; }
.panel figcaption b { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: 12.5px; font-weight: 600; }
.panel figcaption span { color: var(--soft); font-variant-numeric: tabular-nums; }
.scatter { display: grid; grid-template-columns: minmax(0, 340px) minmax(0, 1fr); gap: 28px; align-items: start; }
svg text { font-size: 9.5px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.pooled svg text { font-size: 6.5px; } .panels figcaption span { flex-basis: 100%; } .pooled figcaption { font-size: 14px; } .pooled figcaption b { font: 600 15px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.axes line, .rule { stroke: var(--faint); stroke-width: 1; } 
svg path, svg line { fill: none; stroke-linejoin: round; stroke-linecap: round; }
svg .train { stroke: var(--train); stroke-width: 1.5; } .panel .model { stroke: var(--model); stroke-width: 1.9; }
.panel .ridge { stroke: var(--ridge); stroke-width: 1.1; stroke-dasharray: 3.5 3; stroke-linecap: butt; }
.identity { stroke: var(--soft); stroke-width: 0.8; stroke-dasharray: 3 3; }
.dots { stroke: var(--model); stroke-width: 4; stroke-opacity: 0.55; } .pooled .dots { stroke-width: 2.4; }
.pooled .dots:hover { stroke: var(--ridge); stroke-opacity: 1; }
.hit { fill: transparent; } .cursor { stroke: var(--soft); stroke-width: 0.7; visibility: hidden; } .cursor.on { visibility: visible; }
.marks { display: block; overflow: visible; } .marks .span { stroke: var(--line); stroke-width: 2; } .marks .mean { stroke: var(--mean); stroke-width: 3; stroke-linecap: butt; }
.marks svg { overflow: visible; } .marks .ridge { fill: var(--ridge); } .marks .model { fill: var(--model); }
#tip { position: fixed; z-index: 9; max-width: min(320px, calc(100vw - 16px)); pointer-events: none; background: var(--ink); color: var(--paper); font-size: 12.5px; line-height: 1.4; padding: 5px 9px; border-radius: 5px; }`;

const NARROW_STYLE = `
@media (max-width: 760px) {
  main, header, footer { padding-left: 16px; padding-right: 16px; } header { padding-top: 32px; }
  section { margin-top: 40px; padding-top: 24px; } h2 { font-size: 23px; } .lead { font-size: 17px; margin-top: 18px; }
  .numbers { grid-template-columns: 1fr 1fr; } .numbers dd { font-size: 24px; } .numbers div { padding: 11px 13px; }
  .scatter { grid-template-columns: minmax(0, 1fr); } .wide { display: none; }
  .map { grid-template-columns: 46px 1fr; margin-left: -4px; } .lats, .lons { font-size: 9.5px; } .lats span { right: 4px; }
  .errors th, .errors td { padding-left: 8px; font-size: 12px; } .errors td.plot, .errors th.plot { width: 34%; padding-left: 12px; padding-right: 6px; }
  .errors thead .plot .ticks { inset: 0 6px 0 12px; } .errors thead .key { display: block; margin: 0 0 3px auto; }
  .dates th, .dates td { padding: 3px 5px; } .dates td { min-width: 44px; } .dates td.cover { border-left-width: 6px; padding-left: 17px; } .dates td .dot { left: 4px; }
  .scenes thead { display: none; } .scenes tr { display: block; padding: 10px 0; border-bottom: 1px solid var(--line); }
  .scenes th { display: block; border: 0; padding: 0 0 2px; } .scenes td { display: inline; border: 0; padding: 0; } .scenes td + td::before { content: " · "; color: var(--soft); } .scenes .unit { display: inline; }
  .switch legend { float: none; width: 100%; }
}
@media print { body { background: #fff; } section { break-inside: avoid-page; } .switch, #tip { display: none; } }`;

/** The style sheet of a report. */
export const reportStyle = trusted(
  [COLOUR_STYLE, TEXT_STYLE, FIGURE_STYLE, TABLE_STYLE, MAP_STYLE, CHART_STYLE, NARROW_STYLE].join(''),
);
