/** Makes a tile of the values that a method computes for each pixel. Runs in worker threads. */

import { type MadeTile, validityStatistics } from '../../derive/index.js';
import { codeColours, colourOfCode } from '../../imagery/index.js';
import { type CellFile, type CellGroup, encodeMaskFile, encodeTile } from '../../ingest/index.js';
import { isHyperspectral, Mask } from '../../raster/index.js';
import type { ClassRecord } from '../../storage/index.js';
import { eachPanel, localRxDistances, PANEL_PIXELS, pixelFunction } from '../pixel-methods/index.js';
import { pixelNumber, readMaskCodes, type SpectrumFile, spectrumAt } from '../spectrum-reading/index.js';
import { ScaleCheck } from './output-tile-scale-check.js';
import type { MapClasses, MapTask } from './output-tile-task.js';
import { writeSpectralTile } from './write-spectral-tile.js';

/**
 * Returns null if no pixel is clear, has data in every band, and has a value. A pixel of the new tile is valid if it has a value in some
 * band. Throws TW_IMAGERY_TILE_FILE and TW_ANALYSIS_OTHER_SCALE.
 */
export function makeOutputTile(task: MapTask): MadeTile | null {
  const { method } = task;
  const cell = cellOf(task);
  if (!isHyperspectral(cell.bands) || method.kind === 'local-distance')
    return outputTileOfPlanes(task, planesOf(task));
  const made = writeSpectralTile(task, method, cell);
  return (
    made && outputTile([{ record: made.record, bytes: null }], made.coverage, cell, task.file, made.valid)
  );
}

/** Makes a tile of planes of values; returns null if no plane has a value. */
export function outputTileOfPlanes(task: MapTask<unknown>, planes: Float32Array[]): MadeTile | null {
  const { file, classes } = task;
  const cell = cellOf(task);
  const valid = validPixels(planes);
  if (!valid.includes(1)) return null;
  const figures = validityStatistics(planes, NaN, valid);
  const files: CellFile[] = [encodeTile(cell, { bands: planes, ...figures, valid, mask: null }).file];
  if (classes) {
    const codes = classesOf(planes, classes);
    const group: CellGroup = {
      ...cell,
      name: 'class',
      dataType: 'uint8',
      nodata: NO_CLASS,
      resampling: 'nearest',
      colours: codeColours(),
      bands: [{ name: 'class', scale: 1, offset: 0, classes: classRecords(classes) }],
    };
    const ofClasses = validityStatistics([codes], NO_CLASS, valid);
    files.push(encodeTile(group, { bands: [codes], ...ofClasses, valid, mask: null }).file);
  }
  return outputTile(files, figures.coverage, cell, file, valid);
}

function outputTile(
  files: MadeTile['files'],
  coverage: number,
  cell: CellGroup,
  file: SpectrumFile,
  valid: Uint8Array,
): MadeTile {
  const { file: mask, cloudCover, footprint } = encodeMaskFile(cell, maskOf(file, valid));
  return { files: [...files, mask], coverage, cloudCover, footprint, used: [0] };
}

/** 1 for pixels that have a value in some plane. */
function validPixels(planes: Float32Array[]): Uint8Array {
  const valid = new Uint8Array(planes[0].length);
  for (const plane of planes)
    for (let i = 0; i < valid.length; i++) if (!Number.isNaN(plane[i])) valid[i] = 1;
  return valid;
}

/** One plane for each row of the method; NaN for pixels that are not clear or have no value. */
function planesOf({ file, method, checksScale, around = [] }: MapTask): Float32Array[] {
  if (method.kind === 'local-distance') return [localRxDistances(file, around, method)];
  const { width, height } = file;
  const { rows, evaluate } = pixelFunction(method, file);
  const check = checksScale && method.kind === 'probabilities' ? new ScaleCheck(method.centre) : undefined;
  const planes = Array.from({ length: rows }, () => new Float32Array(width * height).fill(NaN));
  eachPanel(file, { rows, evaluate }, (values, block, indexes) => {
    check?.add(spectrumAt(block.bands, indexes[0], file));
    for (let i = 0; i < indexes.length; i++) {
      const at = pixelNumber(block, indexes[i], width);
      for (let r = 0; r < rows; r++) planes[r][at] = values[r * PANEL_PIXELS + i];
    }
  });
  check?.finish();
  return planes;
}

function cellOf({ tile, file: { width, height }, group, bands, tags }: MapTask<unknown>): CellGroup {
  return {
    ...tile,
    width,
    height,
    name: group,
    role: 'data',
    resampling: 'bilinear',
    dataType: 'float32',
    nodata: null,
    colours: undefined,
    bands: bands.map((name, i) => ({ name, ...tags?.[i], scale: 1, offset: 0 })),
  };
}

/** Code of pixels without a class. */
const NO_CLASS = 255;
/** Code of pixels that no target matches. */
const UNMATCHED = 0;

const hexOf = (colour: number) => colour.toString(16).toUpperCase().padStart(6, '0');

function classRecords({ codes, names, threshold }: MapClasses): ClassRecord[] {
  const classes = codes.map((value, i) => ({ value, name: names[i] }));
  if (threshold !== undefined) classes.unshift({ value: UNMATCHED, name: 'none' });
  return classes.map((one) => ({ ...one, colour: hexOf(colourOfCode(one.value)) }));
}

/** The code of the best plane of each pixel. */
function classesOf(planes: Float32Array[], { best, threshold, codes: named }: MapClasses): Uint8Array {
  const sign = best === 'least' ? -1 : 1;
  const codes = new Uint8Array(planes[0].length).fill(NO_CLASS);
  for (let i = 0; i < codes.length; i++) {
    let most = -Infinity;
    for (const [p, plane] of planes.entries()) {
      const value = sign * plane[i];
      if (value <= most || Number.isNaN(value)) continue;
      most = value;
      codes[i] = named[p];
    }
    if (threshold !== undefined && codes[i] !== NO_CLASS && most < sign * threshold) codes[i] = UNMATCHED;
  }
  return codes;
}

/** Mask of the new tile. Pixels without a value keep their code for cloud, shadow, snow or no data. */
function maskOf(file: SpectrumFile, valid: Uint8Array): Uint8Array {
  const known = readMaskCodes(file);
  return valid.map((is, at) => {
    if (is === 1) return known?.[at] ?? Mask.notAssessed;
    const code = known?.[at] ?? Mask.nodata;
    return code === Mask.clear || code === Mask.notAssessed ? Mask.nodata : code;
  });
}
