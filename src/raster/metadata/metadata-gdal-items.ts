/**
 * The XML of TIFF tag 42112, in which GDAL keeps metadata items of the dataset and properties of bands. GDAL escapes the text
 * of an item twice, and expects other writers to do the same.
 */

import type { BandTags } from '../raster-types.js';
import { parseSpectralTags, spectralMetadataItems } from './spectral-metadata-tags.js';

/** The XML text; undefined if it would be empty. */
export function gdalMetadataXml(metadata: Record<string, string>, bandTags: BandTags[]): string | undefined {
  const items = Object.entries(metadata).map(([name, value]) => item(name, '', value));
  for (const [band, { description, scale, offset, ...spectral }] of bandTags.entries()) {
    const of = (name: string, value: string) =>
      items.push(item(name, ` sample="${band}" role="${name.toLowerCase()}"`, value));
    if (description !== undefined) of('DESCRIPTION', description);
    if (offset !== undefined) of('OFFSET', String(offset));
    if (scale !== undefined) of('SCALE', String(scale));
    for (const { name, value, domain } of spectralMetadataItems(spectral))
      items.push(item(name, ` sample="${band}"${domain ? ` domain="${domain}"` : ''}`, value));
  }
  return items.length === 0 ? undefined : `<GDALMetadata>\n${items.join('')}</GDALMetadata>\n`;
}

function item(name: string, attributes: string, value: string): string {
  return `  <Item name="${escapeXml(name)}"${attributes}>${escapeXml(escapeXml(value))}</Item>\n`;
}

const ENTITY_OF: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Replaces control characters that XML 1.0 cannot hold by blanks. */
function escapeXml(text: string): string {
  return text
    .replace(/[^\t\n\r\x20-\uFFFD\u{10000}-\u{10FFFF}]/gu, ' ')
    .replace(/[&<>"]/g, (character) => ENTITY_OF[character]);
}

/** GDAL metadata of a file and its bands. */
export interface GdalMetadata {
  metadata: Record<string, string>;
  bandTags: BandTags[];
  /** GDAL's colour interpretation of each band in lower case, if it differs from that of the TIFF tags. */
  interpretations: (string | undefined)[];
  /** Guesses that the parser made. */
  warnings: string[];
}

/** Parses the XML. Leaves out items of other domains than the default, except those of the spectrum. */
export function parseGdalMetadata(xml: string, bands: number): GdalMetadata {
  const metadata: Record<string, string> = {};
  const bandTags: BandTags[] = Array.from({ length: bands }, () => ({}));
  const interpretations: (string | undefined)[] = new Array(bands).fill(undefined);
  const bandItems = Array.from({ length: bands }, () => new Map<string, string>());
  // These patterns cannot overlap with the text after them: hostile text must not take quadratic time.
  for (const [, attributeText = '', text = ''] of xml.matchAll(/<Item\b([^<>]*)>([^<]*)<\/Item>/g)) {
    const attributes = new Map<string, string>();
    for (const [, name = '', value = ''] of attributeText.matchAll(/(?<![\w:])([\w:]+)\s*=\s*"([^"]*)"/g)) {
      attributes.set(name, unescapeXml(value));
    }
    const name = attributes.get('name');
    if (name === undefined) continue;
    const value = unescapeXml(unescapeXml(text));
    const sample = attributes.get('sample');
    const domain = attributes.get('domain') ?? '';
    if (domain === 'IMAGERY') bandItems[Number(sample ?? -1)]?.set(`IMAGERY:${name}`, value);
    if (domain !== '') continue;
    if (sample === undefined) {
      Object.defineProperty(metadata, name, { value, enumerable: true, configurable: true, writable: true });
      continue;
    }
    const tags = bandTags[Number(sample)];
    const number = Number(value);
    const role = attributes.get('role');
    if (!tags) continue;
    if (role === 'colorinterp') interpretations[Number(sample)] = value.toLowerCase();
    else if (role === 'description') tags.description = value;
    else if (role === 'scale' && Number.isFinite(number)) tags.scale = number;
    else if (role === 'offset' && Number.isFinite(number)) tags.offset = number;
    else if (role === undefined || role === '') bandItems[Number(sample)]!.set(name, value);
  }
  const warnings: string[] = [];
  const described = bandItems.map((items, band) => ({ items, description: bandTags[band]!.description }));
  for (const [band, tags] of parseSpectralTags(described, warnings).entries())
    Object.assign(bandTags[band]!, tags);
  return { metadata, bandTags, interpretations, warnings };
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const code = decimal !== undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
