/** Loads the HDF5 library once for each thread, on first use: it is large, and few files need it. */
import type { File, Metadata } from 'h5wasm/node';
import { type EmscriptenFs, Hdf5Sandbox } from './hdf5-sandbox.js';

export interface Hdf5Library {
  guard: Hdf5Sandbox;
  /** The library may open only `path`, and only during `Hdf5Sandbox.allowing`. */
  open(path: string): File;
  attributeMetadata(file: File, path: string, name: string): Metadata;
}

let library: Promise<Hdf5Library> | undefined;

export function loadHdf5Library(): Promise<Hdf5Library> {
  library ??= load();
  return library;
}

async function load(): Promise<Hdf5Library> {
  const { File, ready } = await import('h5wasm/node');
  const module = await ready;
  return {
    guard: new Hdf5Sandbox(module.FS as unknown as EmscriptenFs),
    open: (path) => new File(path, 'r'),
    attributeMetadata: (file, path, name) => module.get_attribute_metadata(file.file_id, path, name),
  };
}
