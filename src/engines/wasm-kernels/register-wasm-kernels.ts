/**
 * Extends the tfjs WASM backend (4.22) for training. The stock backend lacks gradients, and its gradient of max pooling is wrong. The
 * kernels of this folder add and replace them with primitives on the heap of the backend, so that no tensor is copied.
 */
import type { GradConfig, KernelConfig } from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/index.js';
import type { Tf } from '../tfjs.js';
import { conv2dGrad, replaceConvolutionOfLayers, replaceKernel } from '../tfjs-extensions/index.js';
import { adamKernel } from './adam-kernel.js';
import {
  fusedBatchNorm,
  replaceTrainingOfBatchNormalization,
  trainingBatchNorm,
  trainingBatchNormGrad,
  trainingBatchNormGradient,
} from './batch-norm-kernels.js';
import { biasAdd } from './bias-add-kernel.js';
import { concat, pad, slice, splitV } from './concat-split-kernels.js';
import { conv2d, conv2dBackpropFilter, conv2dBackpropInput, fusedConv2d } from './conv2d-kernels.js';
import { depthwiseConv2dBackpropFilter, depthwiseConv2dBackpropInput } from './depthwise-gradient-kernels.js';
import { cast, identity } from './identity-cast-kernels.js';
import { batchMatMul, fusedMatMul } from './mat-mul-kernels.js';
import { avgPoolGrad, avgPoolKernel, maxPoolGrad, maxPoolKernel } from './pool-kernels.js';
import { leakyRelu, leakyReluGrad, relu, reluGradient } from './relu-kernels.js';
import { mean, sum } from './sum-mean-kernels.js';
import { WASM } from './wasm-kernel.js';

/** Call it once for a `tf`, after the WASM backend has started. */
export function registerTrainingKernels(tf: Tf, primitives: ComputePrimitives): void {
  const added = [
    conv2dBackpropFilter(tf, primitives),
    depthwiseConv2dBackpropFilter(tf, primitives),
    depthwiseConv2dBackpropInput(tf, primitives),
    leakyReluGrad(primitives),
    trainingBatchNorm(primitives),
    trainingBatchNormGrad(primitives),
    adamKernel(primitives),
  ];
  for (const kernel of added) tf.registerKernel(kernel);
  const replaced: Record<string, (stock: KernelConfig) => KernelConfig> = {
    [tf.Identity]: () => identity(tf),
    [tf.Cast]: (stock) => cast(tf, stock),
    [tf.AvgPool]: (stock) => avgPoolKernel(tf, primitives, stock),
    [tf.MaxPool]: (stock) => maxPoolKernel(tf, primitives, stock),
    [tf.MaxPoolGrad]: () => maxPoolGrad(tf, primitives),
    [tf.AvgPoolGrad]: () => avgPoolGrad(tf, primitives),
    [tf.BatchMatMul]: (stock) => batchMatMul(tf, primitives, stock),
    [tf._FusedMatMul]: (stock) => fusedMatMul(tf, primitives, stock),
    [tf.Conv2D]: () => conv2d(tf, primitives),
    [tf.FusedConv2D]: () => fusedConv2d(tf, primitives),
    [tf.Conv2DBackpropInput]: () => conv2dBackpropInput(tf, primitives),
    [tf.Add]: (stock) => biasAdd(tf, primitives, stock),
    [tf.Sum]: (stock) => sum(tf, primitives, stock),
    [tf.Mean]: (stock) => mean(tf, primitives, stock),
    [tf.Concat]: (stock) => concat(tf, primitives, stock),
    [tf.SplitV]: (stock) => splitV(tf, primitives, stock),
    [tf.Slice]: (stock) => slice(tf, primitives, stock),
    [tf.PadV2]: (stock) => pad(tf, primitives, stock),
    [tf.Relu]: (stock) => relu(tf, primitives, stock),
    [tf.LeakyRelu]: (stock) => leakyRelu(tf, primitives, stock),
    [tf.FusedBatchNorm]: (stock) => fusedBatchNorm(tf, primitives, stock),
  };
  for (const [name, make] of Object.entries(replaced)) replaceKernel(tf, WASM, name, make);
  for (const gradient of [
    conv2dGrad(tf, tf.Conv2D),
    reluGradient(tf, tf.Relu),
    reluGradient(tf, tf.LeakyRelu),
  ])
    replaceGradient(tf, gradient);
  tf.registerGradient(conv2dGrad(tf, tf.FusedConv2D));
  tf.registerGradient(trainingBatchNormGradient(tf));
  replaceConvolutionOfLayers(tf);
  replaceTrainingOfBatchNormalization(tf);
}

function replaceGradient(tf: Tf, gradient: GradConfig): void {
  tf.unregisterGradient(gradient.kernelName);
  tf.registerGradient(gradient);
}
