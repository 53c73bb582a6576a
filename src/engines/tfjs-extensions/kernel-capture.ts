/**
 * Computations that are done again and again with other values. tfjs makes all that leads to its kernels anew each time: layers,
 * scopes, a tape, functions of gradients. In a step of a small net that takes as long as the kernels do. So the calls of kernels
 * are written down once, and then made alone. The results are the same, bit for bit.
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
import type { Tf } from '../tfjs.js';

type DataId = TensorInfo['dataId'];
type KernelArguments = Parameters<KernelFunc>[0];

/** A call of a kernel. Values have numbers: first the given tensors, then constants and results as they come. */
interface KernelCall {
  kernel: KernelFunc;
  attrs: KernelArguments['attrs'];
  inputs: NamedTensorInfoMap;
  /** The inputs, whose data are put in before the call. */
  reads: { info: TensorInfo; value: number }[];
  writes: number[];
  /** Results that nothing reads afterwards. */
  lastUses: number[];
}

/** Values that are handed out. */
interface Output extends Pick<Tensor, 'shape' | 'dtype'> {
  value: number;
  /** Nothing else holds its data. */
  isOwn: boolean;
}

/** A given variable, by its place in the list, that the calls assign a value. */
interface Update {
  given: number;
  value: number;
}

/**
 * Calls that were written down. Invariant: the data of a result live from its call to that of its last reader, those of outputs on,
 * those of constants until `dispose`.
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

  /** Of tensors of the shapes that were recorded, in the same order. The caller disposes what comes out. */
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
        const made = [kernel({ inputs, attrs, backend })].flat();
        for (let i = 0; i < made.length; i++) values[writes[i]] = made[i].dataId;
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
    // An output may be the former value of a variable.
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
 * Runs `compute`, which must depend on the given tensors alone, and writes it down. It may assign results of kernels to given variables, as batch
 * normalisation does. Returns no replay if `compute` reads values, or if two of the given tensors share their data.
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
  const note = (kernel: KernelFunc, { inputs, attrs }: KernelArguments, made: TensorInfo[]) => {
    // Lists of tensors are passed as arrays, and inputs that an operation does without as undefined.
    const copies = Object.entries(inputs).map(([name, info]) => [name, info && infoOf(info)] as const);
    const reads = copies.flatMap(([, info]) =>
      info ? [{ info, value: known.get(info.dataId) ?? constant(info.dataId) }] : [],
    );
    // The same data in another shape: who reads them has it.
    if (made.every(({ dataId }) => known.has(dataId))) return;
    if (made.some((info) => known.has(info.dataId) || info instanceof tf.Tensor)) canReplay = false;
    const copied = Object.assign(Array.isArray(inputs) ? [] : {}, Object.fromEntries(copies));
    const writes = made.map(({ dataId }) => add(dataId));
    calls.push({ kernel, attrs, inputs: copied, reads, writes, lastUses: [] });
  };
  const unwatch = watch(tf, note, () => {
    canReplay = false;
  });
  let outputs: Tensor[] | undefined;
  try {
    outputs = compute();
  } finally {
    unwatch();
    if (!outputs) for (const dataId of constants) backend.disposeData(dataId);
  }
  const handedOut = outputs.map(({ dataId, shape, dtype }) => ({
    value: known.get(dataId) ?? constant(dataId),
    shape,
    dtype,
  }));
  const results = new Set(calls.flatMap(({ writes }) => writes));
  const isOwn = ({ value }: { value: number }, i: number) =>
    results.has(value) && handedOut.findIndex((other) => other.value === value) === i;
  const updates = given.flatMap(({ dataId }, i) =>
    dataId === values[i] ? [] : [{ given: i, value: known.get(dataId) ?? -1 }],
  );
  const assigned = updates.map(({ value }) => value);
  const lasting = new Set([...handedOut.map(({ value }) => value), ...assigned]);
  const replay = new CapturedKernels(
    tf,
    calls,
    values,
    constants,
    handedOut.map((output, i) => ({ ...output, isOwn: isOwn(output, i) })),
    updates,
  );
  // A value that is assigned twice, handed out as well, or not computed by a call has other owners.
  const isAssignable = (value: number, i: number) =>
    results.has(value) &&
    assigned.indexOf(value) === i &&
    handedOut.every((output) => output.value !== value);
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

/** Tells of each call of a kernel that no other kernel makes, and of values that are read outside of kernels, until it is undone. */
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
