/** Maps of the tiles that an analysis has made, for its report. */
import { gridByName } from '../../grid/index.js';
import { type Html, html } from '../../html/index.js';
import type { CellPart, ColourScale, ImageService, RenderParams } from '../../imagery/index.js';
import { createSearch, type Filter, parseSortby, type TileFinder } from '../../query/index.js';
import type { TileRecord } from '../../storage/index.js';
import type { Section } from './render-spectral-report.js';

export interface ReportMapStyle {
  title: string;
  look: RenderParams;
}

/** A map of one band, counted from 1. `range`: values of the first and the last colour, such as `0,1`; default: those of the tiles. */
export function bandMap(title: string, band: number, range?: string): ReportMapStyle {
  return { title, look: { bidx: [band], colormap_name: 'viridis', ...(range && { rescale: [range] }) } };
}

/** Tiles that are shown, the fullest first. */
const MAX_SHOWN_TILES = 6;

/** Returns one section of matching tiles for each style; none if no tile matches. Calls `warn` for maps that cannot be rendered. */
export async function mapSections(
  { finder, imagery }: { finder: TileFinder; imagery: ImageService },
  filter: Filter,
  looks: readonly ReportMapStyle[],
  warn: (tile: string, error: unknown) => void,
): Promise<Section[]> {
  const tiles = await fullestTiles(finder, filter, MAX_SHOWN_TILES);
  if (tiles.length === 0) return [];
  const sections: Section[] = [];
  for (const { title, look: wanted } of looks) {
    // The fullest tile determines the value range of all tiles, so that their colours are comparable.
    const scale = await imagery.colourScale(tiles[0], wanted).catch((error) => {
      warn(`the colours of ${title}`, error);
    });
    const look = scale ? { ...wanted, rescale: [`${scale.low},${scale.high}`] } : wanted;
    const figures: Html[] = [];
    for (const tile of tiles) {
      const drawn = await imagery.preview(tile, look, 'png', partWithData(tile)).catch((error) => {
        warn(`${title} of ${tile.id}`, error);
      });
      if (!drawn) continue;
      const picture = drawn.bytes.toString('base64');
      const name = tileLabel(tile);
      figures.push(
        html`<figure><img alt="${name}" src="data:image/png;base64,${picture}"><figcaption>${name}</figcaption></figure>`,
      );
    }
    if (figures.length > 0)
      sections.push({
        title,
        content: html`${scale ? colourBar(scale) : ''}<div class="maps">${figures}</div>`,
      });
  }
  return sections;
}

function colourBar({ low, high, colours }: ColourScale): Html {
  const [from, to] = [low, high].map((value) => String(Number(value.toPrecision(3))));
  return html`<p class="legend scale">${from!}<i style="background: linear-gradient(to right, ${colours.join(', ')})"></i>${to!}</p>`;
}

/** Returns the matching tiles with the highest pixel coverage. */
export async function fullestTiles(finder: TileFinder, filter: Filter, limit: number): Promise<TileRecord[]> {
  return (await finder.find(createSearch(filter, { limit, order: parseSortby('-pixel_coverage') }))).tiles;
}

/** Returns the cell and day of a tile, such as "u336, 2022-07-24". */
export const tileLabel = ({ geocode, start }: TileRecord) =>
  `${geocode}, ${new Date(start).toISOString().slice(0, 10)}`;

/** The smallest part of the cell that contains all data of a tile, extended to full pixels. */
export function partWithData({ grid, geocode, footprint, groups: [group] }: TileRecord): CellPart {
  const { west, south, east, north } = gridByName(grid).bounds(geocode);
  const { width, height } = group!;
  const columns = footprint.map(([x]) => ((x - west) / (east - west)) * width);
  const rows = footprint.map(([, y]) => ((north - y) / (north - south)) * height);
  return {
    west: Math.floor(Math.min(...columns)) / width,
    east: Math.ceil(Math.max(...columns)) / width,
    north: Math.floor(Math.min(...rows)) / height,
    south: Math.ceil(Math.max(...rows)) / height,
  };
}
