/** The HTML of the map page. Its scripts are in `browser/`. */
import { SPECTRAL_INDICES } from '../../../expressions/index.js';
import { COLORMAPS } from '../../../imagery/index.js';

/** Colormaps that come first in the list. */
const COMMON_COLORMAPS = ['viridis', 'magma', 'inferno', 'plasma', 'cividis', 'rdylgn', 'terrain'];

const options = (names: readonly string[]) => names.map((name) => `<option>${name}</option>`).join('');

export const document = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tilewright map</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="map/leaflet.css">
<link rel="stylesheet" href="map/page.css">
<script src="map/leaflet.js" defer></script>
<script src="map/topojson.js" defer></script>
<script src="map/browser-page.js" type="module"></script>
<aside>
  <details id="settings" open>
    <summary>tilewright map</summary>
    <form id="controls">
      <label>Collection <select id="collection"></select></label>
      <div class="pair">
        <label>From <input type="date" id="from"></label>
        <label>To <input type="date" id="to"></label>
      </div>
      <label>Cloud at most: <output id="most-cloud">any</output>
        <input type="range" id="cloud" min="0" max="100" step="5" value="100"></label>
      <label>Style <select id="look" data-indices='${JSON.stringify(SPECTRAL_INDICES)}'></select></label>
      <div id="bands" hidden>
        <label>Band <select id="band"></select></label>
        <div class="pair">
          <label>Darkest <input type="number" id="low" step="any" placeholder="auto"></label>
          <label>Brightest <input type="number" id="high" step="any" placeholder="auto"></label>
        </div>
        <label>Colours <select id="colours"><option value="">as they are</option>
          ${options(COMMON_COLORMAPS)}<optgroup label="More">${options(COLORMAPS.filter((name) => !COMMON_COLORMAPS.includes(name)))}</optgroup></select></label>
      </div>
      <label>Pixels <select id="mosaic"><option value="">of the least cloudy date</option>
        <option value="median">median of the dates</option></select></label>
      <label class="check"><input type="checkbox" id="outlines" checked> Outlines of tiles</label>
      <label class="check"><input type="checkbox" id="land" checked> Land and borders</label>
    </form>
  </details>
  <p id="message" role="status"></p>
  <form id="access" hidden>
    <label>Token <input type="password" id="token" autocomplete="off" required></label>
    <button>Open</button>
    <p>Use a token that the server was started with (--read-token or --token). It is kept until this tab closes.</p>
  </form>
  <section id="place" aria-live="polite"><p>Click the map to see the dates of a place.</p></section>
</aside>
<main>
  <div id="map"></div>
  <p id="busy" role="status" hidden>Loading …</p>
  <figure id="legend" hidden></figure>
</main>
</html>
`;
