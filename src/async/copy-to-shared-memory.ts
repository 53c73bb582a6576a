/** Copies an array to shared memory, so that it can be sent to threads without another copy. */
export function copyToSharedMemory<T extends Float32Array | Uint16Array | Uint8Array | Int32Array>(
  values: T,
): T {
  const copy = new (values.constructor as new (buffer: SharedArrayBuffer) => T)(
    new SharedArrayBuffer(values.byteLength),
  );
  copy.set(values);
  return copy;
}
