/**
 * Captures the kernel calls of one computation and replays them with new data. tfjs repeats everything around its kernels in each step:
 * layers, scopes, tape, gradient functions. In a step of a small network that takes as long as the kernels. The results of a replay are
 * the same, bit for bit.
 */
import type { BackendWasm } from '@tensorflow/tfjs-backend-wasm';
import type {
  KernelConfig,
  KernelFunc,
  NamedTensorInfoMap,
  Tensor,
  TensorInfo,
  Variable,
} from '@tensorflow/tfjs-core';
import type { Tf } from './tfjs.js';

type DataId = TensorInfo['dataId'];
type KernelArguments = Parameters<KernelFunc>[0];

/** A kernel call. Values are numbered: first the given tensors, then constants and results in the order of their occurrence. */
interface KernelCall {
  kernel: KernelFunc;
  attrs: KernelArguments['attrs'];
  inputs: NamedTensorInfoMap;
  /** Inputs whose data are inserted before the call. */
  reads: { info: TensorInfo; value: number }[];
  writes: number[];
  /** Values that no later call reads. */
  lastUses: number[];
}

/** Value that is returned to the caller. */
interface Output extends Pick<Tensor, 'shape' | 'dtype'> {
  value: number;
  /** True if nothing else references its data. */
  isOwn: boolean;
}

/** A given variable, by its index, to which the computation assigns a value. */
interface Update {
  given: number;
  value: number;
}

/**
 * Captured calls. Invariant: the data of a result exist from its call to its last reader, the data of an output until the caller
 * disposes it, the data of constants until `dispose`.
 */
export class CapturedKernels {
  constructor(
    private readonly tf: Tf,
    private readonly calls: KernelCall[],
    private readonly values: DataId[],
    private readonly constants: DataId[],
    private readonly outputs: Output[],
    private readonly updates: Update[],
  ) {}

  /** Replays the calls with tensors of the captured shapes, in the same order. The caller must dispose the outputs. */
  replay(given: Tensor[]): Tensor[] {
    const backend = this.tf.backend() as BackendWasm;
    const values = this.values;
    given.forEach(({ dataId }, i) => {
      values[i] = dataId;
    });
    let done = 0;
    try {
      for (const { kernel, attrs, inputs, reads, writes, lastUses } of this.calls) {
        for (const { info, value } of reads) info.dataId = values[value];
        const results = [kernel({ inputs, attrs, backend })].flat();
        for (let i = 0; i < results.length; i++) values[writes[i]] = results[i].dataId;
        for (const value of lastUses) backend.disposeData(values[value]);
        done++;
      }
    } catch (error) {
      const calls = this.calls.slice(0, done);
      const ended = new Set(calls.flatMap(({ lastUses }) => lastUses));
      for (const value of calls.flatMap(({ writes }) => writes))
        if (!ended.has(value)) backend.disposeData(values[value]);
      throw error;
    }
    const tensorOf = (value: number, { shape, dtype }: Pick<Tensor, 'shape' | 'dtype'>) =>
      this.tf.engine().makeTensorFromTensorInfo({ dataId: values[value], shape, dtype });
    // Created before the updates, because an output may be the previous value of a variable.
    const outputs = this.outputs.map((output) => {
      if (!output.isOwn) backend.incRef(values[output.value]);
      return tensorOf(output.value, output);
    });
    for (const { given: at, value } of this.updates) {
      const tensor = tensorOf(value, given[at]);
      (given[at] as Variable).assign(tensor);
      tensor.dispose();
    }
    return outputs;
  }

  dispose(): void {
    const backend = this.tf.backend() as BackendWasm;
    for (const dataId of this.constants) backend.disposeData(dataId);
  }
}

/**
 * Runs `compute`, which must depend only on the given tensors, and captures its kernel calls. It may assign results of kernels to given
 * variables, as batch normalisation does. Returns no replay if `compute` reads values, or if two of the given tensors share their data.
 */
export function captureKernels(
  tf: Tf,
  given: Tensor[],
  compute: () => Tensor[],
): { outputs: Tensor[]; replay: CapturedKernels | null } {
  const backend = tf.backend() as BackendWasm;
  const values = given.map(({ dataId }) => dataId);
  const known = new Map(values.map((dataId, i) => [dataId, i]));
  const constants: DataId[] = [];
  const calls: KernelCall[] = [];
  let canReplay = known.size === given.length;
  const add = (dataId: DataId) => {
    known.set(dataId, values.length);
    return values.push(dataId) - 1;
  };
  const constant = (dataId: DataId) => {
    backend.incRef(dataId);
    constants.push(dataId);
    return add(dataId);
  };
  const record = (kernel: KernelFunc, { inputs, attrs }: KernelArguments, made: TensorInfo[]) => {
    // Lists of tensors are passed as arrays, and omitted optional inputs as undefined.
    const copies = Object.entries(inputs).map(([name, info]) => [name, info && infoOf(info)] as const);
    const reads = copies.flatMap(([, info]) =>
      info ? [{ info, value: known.get(info.dataId) ?? constant(info.dataId) }] : [],
    );
    // The call only reshapes data that are known already.
    if (made.every(({ dataId }) => known.has(dataId))) return;
    if (made.some((info) => known.has(info.dataId) || info instanceof tf.Tensor)) canReplay = false;
    const copied = Object.assign(Array.isArray(inputs) ? [] : {}, Object.fromEntries(copies));
    const writes = made.map(({ dataId }) => add(dataId));
    calls.push({ kernel, attrs, inputs: copied, reads, writes, lastUses: [] });
  };
  const unwatch = watch(tf, record, () => {
    canReplay = false;
  });
  let outputs: Tensor[] | undefined;
  try {
    outputs = compute();
  } finally {
    unwatch();
    if (!outputs) for (const dataId of constants) backend.disposeData(dataId);
  }
  const returned = outputs.map(({ dataId, shape, dtype }) => ({
    value: known.get(dataId) ?? constant(dataId),
    shape,
    dtype,
  }));
  const results = new Set(calls.flatMap(({ writes }) => writes));
  const isOwn = ({ value }: { value: number }, i: number) =>
    results.has(value) && returned.findIndex((other) => other.value === value) === i;
  const updates = given.flatMap(({ dataId }, i) =>
    dataId === values[i] ? [] : [{ given: i, value: known.get(dataId) ?? -1 }],
  );
  const assigned = updates.map(({ value }) => value);
  const lasting = new Set([...returned.map(({ value }) => value), ...assigned]);
  const replay = new CapturedKernels(
    tf,
    calls,
    values,
    constants,
    returned.map((output, i) => ({ ...output, isOwn: isOwn(output, i) })),
    updates,
  );
  // A value that is assigned twice, is also returned, or is not the result of a call has other owners.
  const isAssignable = (value: number, i: number) =>
    results.has(value) && assigned.indexOf(value) === i && returned.every((output) => output.value !== value);
  if (!canReplay || !assigned.every(isAssignable)) {
    replay.dispose();
    return { outputs, replay: null };
  }
  const lastUse = new Map<number, KernelCall>();
  for (const call of calls)
    for (const value of [...call.reads.map((read) => read.value), ...call.writes]) lastUse.set(value, call);
  for (const [value, call] of lastUse)
    if (results.has(value) && !lasting.has(value)) call.lastUses.push(value);
  return { outputs, replay };
}

const infoOf = ({ dataId, shape, dtype }: TensorInfo): TensorInfo => ({ dataId, shape, dtype });

/**
 * Reports each kernel call that is not made by another kernel, and each read of values outside of kernels, until the returned function is
 * called.
 */
function watch(
  tf: Tf,
  onCall: (kernel: KernelFunc, given: KernelArguments, made: TensorInfo[]) => void,
  onRead: () => void,
): () => void {
  const backend = tf.backend() as BackendWasm;
  let depth = 0;
  const kernels = tf.getKernelsForBackend(tf.getBackend()).map((config: KernelConfig) => {
    const { kernelFunc } = config;
    config.kernelFunc = (given) => {
      depth++;
      try {
        const made = kernelFunc(given);
        if (depth === 1) onCall(kernelFunc, given, [made].flat());
        return made;
      } finally {
        depth--;
      }
    };
    return { config, kernelFunc };
  });
  const readSync = backend.readSync.bind(backend);
  backend.readSync = (...given) => {
    if (depth === 0) onRead();
    return readSync(...given);
  };
  return () => {
    for (const { config, kernelFunc } of kernels) config.kernelFunc = kernelFunc;
    backend.readSync = readSync;
  };
}
