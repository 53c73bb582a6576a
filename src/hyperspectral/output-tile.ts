/**
 * Makes a tile of the values that a method computes for each pixel. A tile of spectra has hundreds of megabytes, so it is written row of
 * blocks by row of blocks, and memory holds one row of blocks of all bands. Runs in worker threads and child processes.
 */

import { rmSync } from 'node:fs';
import type { MadeTile, NewTile } from '../derive/index.js';
import { type GridName, gridByName } from '../grid/index.js';
import { codeColours, colourOfCode } from '../imagery/index.js';
import {
  type CellGroup,
  type CellImage,
  cubeImage,
  encodeGroup,
  encodeMask,
  imageRecord,
  joinTile,
  placedFile,
  tileValidity,
} from '../ingest/index.js';
import {
  bandValidity,
  CUBE_BLOCK_SIDE,
  CubeFile,
  createTransform,
  crsFromEpsg,
  isHyperspectral,
  Mask,
  type PixelArray,
} from '../raster/index.js';
import type { ClassRecord } from '../storage/index.js';
import { type Neighbour, pixelNumber, readMaskCodes, type SpectrumFile, spectrumAt } from './blocks.js';
import { otherScale } from './errors.js';
import { type GroundSquares, squareOf } from './labelled-pixels.js';
import { labelCodes, type TileLabels } from './labels.js';
import { type LocalRx, localRxDistances } from './methods/local-rx.js';
import { eachPanel, type PixelMethod, pixelFunction } from './methods/methods.js';
import { PANEL_PIXELS } from './methods/panel.js';
import type { MapBandTags } from './wavelengths.js';

/** Reflectance is at most about 1, and a little more in glint and on slopes. */
const MAX_REFLECTANCE = 2;
/** Means of water and snow differ from that of land by smaller factors. */
const MAX_MEAN_RATIO = 50;

/**
 * Detects that a classifier was trained on reflectance and is applied to larger numbers, such as reflectance times 10,000, or vice versa.
 * Its map would be wrong without a visible sign. `centre`: the mean of each band over the training pixels.
 */
export class ScaleCheck {
  private readonly sums: Float64Array;
  private count = 0;

  constructor(private readonly centre: ArrayLike<number>) {
    this.sums = new Float64Array(centre.length);
  }

  /** Adds the physical values of a pixel. */
  add(spectrum: ArrayLike<number>): void {
    for (let band = 0; band < this.sums.length; band++) this.sums[band] += spectrum[band];
    this.count++;
  }

  /** Throws TW_ANALYSIS_OTHER_SCALE. Does nothing if no band has a positive mean. */
  finish(): void {
    const found = Math.max(...this.sums) / this.count;
    const trained = Math.max(...Array.from(this.centre));
    const least = Math.min(found, trained);
    const most = Math.max(found, trained);
    if (least > 0 && least <= MAX_REFLECTANCE && most > MAX_REFLECTANCE && most > MAX_MEAN_RATIO * least)
      throw otherScale(found, trained);
  }
}

/**
 * Writes a spectrum and its mask. Returns null and writes no file if no pixel has a value. Throws TW_IMAGERY_TILE_FILE and system errors.
 */
function writeSpectralTile(
  { file, path }: Pick<MapTask, 'file' | 'path'>,
  method: PixelMethod,
  cell: CellGroup,
): MadeTile | null {
  if (path === undefined) throw new Error('a map of spectra needs a path');
  const { width, height } = file;
  const values = pixelFunction(method, file);
  const { rows } = values;
  const counts = new Uint32Array(rows);
  /** Number of bands of each pixel that have a value. */
  const bandCounts = new Uint16Array(width * height);
  const pixels = new Int32Array(PANEL_PIXELS);
  const rowsOfPixels = new Array<BlockRow>(PANEL_PIXELS);
  const cube = new CubeFile(path);
  try {
    cube.begin(cubeImage(cell));
    const strips = new BlockRowWriter(cube, rows, width, height);
    eachPanel(file, values, (panel, block, indexes) => {
      strips.finishAbove(block.row);
      for (let i = 0; i < indexes.length; i++) {
        pixels[i] = pixelNumber(block, indexes[i], width);
        rowsOfPixels[i] = strips.at(Math.floor(pixels[i] / width));
      }
      for (let r = 0; r < rows; r++)
        for (let i = 0; i < indexes.length; i++) {
          const value = panel[r * PANEL_PIXELS + i];
          if (Number.isNaN(value)) continue;
          const { planes, start } = rowsOfPixels[i];
          planes[r][pixels[i] - start] = value;
          counts[r]++;
          bandCounts[pixels[i]]++;
        }
    });
    strips.finishAbove(Math.ceil(height / CUBE_BLOCK_SIDE) * CUBE_BLOCK_SIDE);
    const filled = counts.reduce((sum, count) => sum + Number(count > 0), 0);
    if (filled === 0) {
      rmSync(path);
      return null;
    }
    const size = width * height;
    const percents = Array.from(counts, (count) => (100 * count) / size);
    let complete = 0;
    for (const bands of bandCounts) if (bands === filled) complete++;
    const valid = Uint8Array.from(bandCounts, (bands) => Number(bands > 0));
    const { image: mask, ...figures } = encodeMask(cell, maskOf(file, valid));
    const placed = [cube.finish([]), cube.add(mask.bytes)];
    const { name, groups } = placedFile([{ record: imageRecord(cell, percents) }, mask], placed);
    const coverage = (100 * complete) / size;
    return { files: [{ name, bytes: null }], groups, coverage, ...figures, used: [0] };
  } finally {
    cube.close();
  }
}

interface BlockRow {
  /** One plane per band, NaN where no value was set. */
  planes: Float32Array[];
  /** Number of its first pixel in the tile. */
  start: number;
}

/**
 * Writes the new file by rows of blocks (strips). The blocks of the input may have another height.
 *
 * Invariant: the strips before number `next` are written, and `open` contains the later strips that have values.
 */
class BlockRowWriter {
  private readonly open = new Map<number, BlockRow>();
  private readonly blank: Float32Array[];
  private next = 0;
  /** Planes of the last written strip, for reuse. */
  private spare: Float32Array[] | undefined;

  constructor(
    private readonly cube: CubeFile,
    private readonly rows: number,
    private readonly width: number,
    private readonly height: number,
  ) {
    const empty = this.plane();
    this.blank = Array.from({ length: rows }, () => empty);
  }

  /** The strip of a row of pixels. */
  at(row: number): BlockRow {
    const number = Math.floor(row / CUBE_BLOCK_SIDE);
    let strip = this.open.get(number);
    if (!strip) {
      const planes = this.spare ?? Array.from({ length: this.rows }, () => this.plane());
      this.spare = undefined;
      strip = { planes, start: number * CUBE_BLOCK_SIDE * this.width };
      this.open.set(number, strip);
    }
    return strip;
  }

  /** Writes the strips that end at a row of pixels or above it. */
  finishAbove(row: number): void {
    while ((this.next + 1) * CUBE_BLOCK_SIDE <= row && this.next * CUBE_BLOCK_SIDE < this.height) {
      const strip = this.open.get(this.next);
      this.cube.addRows(strip?.planes ?? this.blank);
      this.open.delete(this.next);
      this.next++;
      if (!strip) continue;
      for (const plane of strip.planes) plane.fill(NaN);
      this.spare = strip.planes;
    }
  }

  private plane(): Float32Array {
    return new Float32Array(this.width * CUBE_BLOCK_SIDE).fill(NaN);
  }
}

/**
 * Returns null if no pixel is clear, has data in every band, and has a value. A pixel of the new tile is valid if it has a value in some
 * band. Throws TW_IMAGERY_TILE_FILE and TW_ANALYSIS_OTHER_SCALE.
 */
export function makeOutputTile(task: MapTask): MadeTile | null {
  const { method } = task;
  const cell = cellOf(task);
  if (!isHyperspectral(cell.bands) || method.kind === 'local-distance')
    return outputTileOfPlanes(task, planesOf(task));
  return writeSpectralTile(task, method, cell);
}

/** Makes a tile of planes of values; returns null if no plane has a value. */
export function outputTileOfPlanes(task: MapTask<unknown>, planes: Float32Array[]): MadeTile | null {
  const { file, classes } = task;
  const cell = cellOf(task);
  const valid = validPixels(planes);
  if (!valid.includes(1)) return null;
  const encode = (group: CellGroup, bands: PixelArray[], hole: number) =>
    encodeGroup(group, { bands, valid: bands.map((band) => bandValidity(band, hole)) });
  const values = encode(cell, planes, NaN);
  const images: CellImage[] = [values.image];
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
    images.push(encode(group, [codes], NO_CLASS).image);
  }
  const { coverage } = tileValidity([values.validity], cell);
  const { image: mask, ...figures } = encodeMask(cell, maskOf(file, valid));
  return { ...joinTile([...images, mask]), coverage, ...figures, used: [0] };
}

/** 1 for pixels that have a value in some plane. */
function validPixels(planes: Float32Array[]): Uint8Array {
  const valid = new Uint8Array(planes[0].length);
  for (const plane of planes)
    for (let i = 0; i < valid.length; i++) if (!Number.isNaN(plane[i])) valid[i] = 1;
  return valid;
}

/** One plane for each row of the method; NaN for pixels that are not clear or have no value. */
function planesOf({
  file,
  method,
  checksScale,
  around = [],
}: Pick<MapTask, 'file' | 'method' | 'checksScale' | 'around'>): Float32Array[] {
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

/** Counts the labels of a tile by the class that a classifier gives to their pixels. Plain data. */
export interface TallyTask<Method = PixelMethod>
  extends Pick<MapTask<Method>, 'file' | 'method' | 'checksScale' | 'around'> {
  kind: 'tally';
  cell: { grid: GridName; geocode: string };
  labels: TileLabels;
  squares: GroundSquares;
  /** True if the areas of tiles without labels count too. */
  mapsAll: boolean;
}

export interface Tally {
  /** Pixels by label code * 256 + number of the predicted class, by square. */
  squares: Map<string, Map<number, number>>;
  /** Labelled pixels whose neighbour to the west has a label too. */
  touching: number;
  /** Square metres of each class in the map. */
  areas: number[];
}

/** Returns null if the tile has no label and need not be mapped. Throws TW_IMAGERY_TILE_FILE and TW_ANALYSIS_OTHER_SCALE. */
export function tally(task: TallyTask): Tally | null {
  const codes = labelCodes(task.labels, task.cell, task.file);
  return task.mapsAll || codes.some((code) => code > 0) ? tallyOfPlanes(task, codes, planesOf(task)) : null;
}

/** `planes`: probabilities of the classes. */
export function tallyOfPlanes(
  { file, cell, squares }: Omit<TallyTask<unknown>, 'method'>,
  codes: Uint8Array,
  planes: Float32Array[],
): Tally {
  const { width, height } = file;
  const squareAt = squareOf(cell, file, squares);
  const classes = classesOf(planes, { best: 'most', codes: [...planes.keys()] });
  const found: Tally = { squares: new Map(), touching: 0, areas: planes.map(() => 0) };
  const areas = pixelAreas(cell, { width, height });
  for (const [pixel, own] of classes.entries()) {
    if (own === NO_CLASS) continue;
    found.areas[own] += areas[Math.floor(pixel / width)];
    const code = codes[pixel];
    if (code === 0) continue;
    if (pixel % width > 0 && codes[pixel - 1] > 0) found.touching++;
    const square = squareAt(pixel);
    const table = found.squares.get(square) ?? new Map<number, number>();
    found.squares.set(square, table.set(code * 256 + own, (table.get(code * 256 + own) ?? 0) + 1));
  }
  return { ...found, areas: found.areas.map(Math.round) };
}

/** Radius of the sphere with the area of the Earth, metres. */
const EARTH_RADIUS_M = 6_371_007.2;

/** Square metres of a pixel of each row. */
function pixelAreas(
  { grid, geocode }: TallyTask['cell'],
  { width, height }: { width: number; height: number },
) {
  const { epsg, bounds } = gridByName(grid);
  const { west, south, east, north } = bounds(geocode);
  const project = createTransform(crsFromEpsg(epsg), 'EPSG:4326');
  const radians = (degrees: number) => (degrees * Math.PI) / 180;
  const sines = Array.from({ length: height + 1 }, (_, row) =>
    Math.sin(radians(project(west, north - (row / height) * (north - south))[1])),
  );
  const turn = radians(project(east, south)[0] - project(west, south)[0]) / width;
  return Array.from(
    { length: height },
    (_, row) => EARTH_RADIUS_M ** 2 * turn * (sines[row] - sines[row + 1]),
  );
}

/** The code of the best plane of each pixel. */
function classesOf(
  planes: Float32Array[],
  { best, threshold, codes: named }: Omit<MapClasses, 'names'>,
): Uint8Array {
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

interface MapClasses {
  best: 'least' | 'most';
  /** Pixels whose best value is beyond it have code 0. */
  threshold?: number;
  /** Codes and names of the bands. */
  codes: number[];
  names: string[];
}

/** Makes a tile of the values that a method computes from the spectrum of each pixel, or of the pixels around it. Plain data. */
export interface MapTask<Method = PixelMethod | LocalRx> {
  kind: 'map';
  tile: NewTile;
  file: SpectrumFile;
  method: Method;
  /** If set, spectra of another scale than those that trained the classifier are refused. */
  checksScale?: boolean;
  /** Tiles that windows reach into. */
  around?: Neighbour[];
  /** Name of the group of the new tile, and of its bands. */
  group: string;
  bands: string[];
  /** Tags of the bands, if they are wavelengths. */
  tags?: MapBandTags[];
  /** Path of the tile's file if the bands are a spectrum; the file must not exist. */
  path?: string;
  /** If set, the tile also gets a group with the code of the best band of each pixel. */
  classes?: MapClasses;
}
