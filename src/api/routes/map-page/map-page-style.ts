/** Colours and layout of the map page, light and dark, wide and narrow. */
export const style = `
:root {
  --paper: #fff; --ground: #eceae5; --land: #dedad1; --border: #c2bcb0; --ink: #1d2330; --faint: #5c6675; --rule: #d3d7de; --accent: #0b63b5;
  color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root { --paper: #171b22; --ground: #0f1217; --land: #1b212a; --border: #38414e; --ink: #e8ebf0; --faint: #a0a9b8; --rule: #333b48; --accent: #6cb4ff; }
}
* { box-sizing: border-box; }
html, body { height: 100%; margin: 0; }
body {
  display: grid; grid-template: 100% / 21rem 1fr;
  font: 15px/1.4 system-ui, sans-serif; color: var(--ink); background: var(--paper);
}
aside { overflow-y: auto; padding: 1rem; border-right: 1px solid var(--rule); }
summary { font-weight: 650; font-size: 1.1rem; cursor: pointer; }
form, #bands { display: grid; grid-template-columns: minmax(0, 1fr); gap: .75rem; }
form { margin-top: .75rem; }
[hidden] { display: none !important; }
label { display: block; color: var(--faint); font-size: .85rem; }
.pair { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem; }
select, input:not([type=checkbox]) {
  display: block; width: 100%; margin-top: .15rem; font: inherit; font-size: .95rem; color: var(--ink);
}
select, input[type=date], input[type=number], input[type=password], button {
  min-height: 2.2rem; padding: .25rem .4rem; background: var(--paper); border: 1px solid var(--rule); border-radius: 4px;
}
input { accent-color: var(--accent); }
button { font: inherit; color: var(--ink); cursor: pointer; }
#access p { margin: 0; color: var(--faint); font-size: .85rem; }
output { color: var(--ink); }
.check { display: flex; align-items: center; gap: .4rem; color: var(--ink); }
#message { margin: .75rem 0; color: var(--accent); overflow-wrap: anywhere; }
#message:empty { display: none; }
#place { margin-top: 1rem; padding-top: .5rem; border-top: 1px solid var(--rule); }
#place p { color: var(--faint); }
h2 { font-size: 1rem; margin: .5rem 0; }
figure { margin: 0; }
figcaption, small { color: var(--faint); font-size: .85rem; }
small { display: block; }
ol { list-style: none; margin: .5rem 0; padding: 0; }
li { display: flex; gap: .75rem; align-items: center; padding: .4rem 0; border-top: 1px solid var(--rule); }
li img { object-fit: contain; background: var(--ground); border-radius: 3px; flex: none; }
a { color: var(--accent); }
.chart { display: block; width: 100%; max-width: 30rem; font: 11px system-ui, sans-serif; }
.chart text { fill: var(--faint); }
.chart .rule { stroke: var(--rule); }
.chart .line { stroke: var(--accent); fill: none; stroke-width: 1.5; }
.chart .dot { fill: var(--accent); }
.chart .line { stroke-linecap: round; stroke-linejoin: round; }
.line-1 { --line: #0b63b5; } .line-2 { --line: #d55e00; } .line-3 { --line: #009e73; } .line-4 { --line: #b5509c; }
.line-5 { --line: #b08900; }
.chart path.line { stroke: var(--line, var(--accent)); }
.key { display: flex; flex-wrap: wrap; gap: 0 .9rem; margin: .15rem 0; font-size: .85rem; }
.key span::before {
  content: ''; display: inline-block; width: 1rem; margin-right: .3rem; vertical-align: middle; border-top: 2px solid var(--line);
}
main { position: relative; }
#map { height: 100%; background: var(--ground); font: inherit; }
#busy, #legend {
  position: absolute; z-index: 1000; pointer-events: none; margin: 0; padding: .3rem .6rem; border-radius: 4px;
  color: var(--ink); background: var(--paper); border: 1px solid var(--rule); font-size: .85rem;
}
#busy { top: 10px; left: 50%; transform: translateX(-50%); }
#legend { right: 10px; bottom: 28px; width: 12rem; display: grid; grid-template-columns: auto auto; }
#legend figcaption, #legend .ramp { grid-column: 1 / 3; }
#legend .ramp { height: .7rem; margin: .15rem 0; border-radius: 2px; }
#legend span:last-child { text-align: right; }
.leaflet-land-pane { pointer-events: none; }
path.graticule { stroke: var(--faint); stroke-opacity: .35; }
path.cell { stroke: var(--accent); stroke-opacity: .6; fill: none; }
path.pin { stroke: #fff; stroke-width: 2; fill: #d4351c; fill-opacity: 1; }
.degrees { font-size: 11px; color: var(--faint); white-space: nowrap; text-shadow: 0 0 3px var(--ground), 0 0 3px var(--ground); }
.degrees.below { transform-origin: 0 0; margin-top: -38px !important; padding-left: 3px; }
.degrees.beside { padding-left: 4px; }
.leaflet-bar a, .leaflet-control-attribution, .leaflet-control-scale-line {
  background: var(--paper) !important; color: var(--ink) !important; border-color: var(--rule) !important;
}
.leaflet-control-attribution a { color: var(--accent); }
@media (max-width: 699px) {
  body { grid-template: auto minmax(18rem, 1fr) auto auto / 100%; height: auto; min-height: 100%; }
  aside { display: contents; }
  #settings { grid-row: 1; padding: .75rem 1rem; }
  main { grid-row: 2; height: 62vh; }
  #message, #access { grid-row: 3; margin: 0; padding: .75rem 1rem; }
  #place { grid-row: 4; margin: 0; padding: .75rem 1rem; }
}
`;
