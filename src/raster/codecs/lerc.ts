/** Checks the header of a LERC blob (Lerc2, versions 2 to 6) before a decoder allocates memory for its declared size. */
import type { DataType } from '../raster.js';

const MAGIC = 'Lerc2 ';
const TYPES: DataType[] = ['int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'float32', 'float64'];

interface LercHeader {
  width: number;
  height: number;
  samples: number;
  dataType: DataType;
}

/** Throws an Error if the bytes are not one blob. */
export function lercHeader(bytes: Uint8Array): LercHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
  if (magic !== MAGIC || bytes.length < 58) throw new Error('no LERC blob');
  const version = view.getInt32(6, true);
  if (version < 2 || version > 6) throw new Error(`a LERC blob of version ${version}`);
  let at = version >= 3 ? 14 : 10;
  const next = () => {
    at += 4;
    return view.getInt32(at - 4, true);
  };
  const height = next();
  const width = next();
  const samples = version >= 4 ? next() : 1;
  const valid = next();
  const unit = next();
  const length = next();
  const type = next();
  const dataType = TYPES[type];
  if (!dataType) throw new Error(`a LERC blob of type ${type}`);
  if (!(valid >= 0 && valid <= width * height)) throw new Error(`${valid} valid pixels in a LERC blob`);
  if (!(unit >= 1 && unit <= 1024)) throw new Error(`LERC units of ${unit} pixels`);
  if (length !== bytes.length) throw new Error(`a LERC blob of ${length} bytes in ${bytes.length}`);
  return { width, height, samples, dataType };
}
