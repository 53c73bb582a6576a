/**
 * Makes the tfjs WASM backend (4.22) fit for training. Stock, it lacks gradients, and that of max pooling is wrong; the
 * kernels of this folder add and replace them, as loops over its heap, so that no tensor is copied.
 */
import type { GradConfig, KernelConfig } from '@tensorflow/tfjs-core';
import type { ComputePrimitives } from '../compute-primitives/compute-primitives.js';
import type { Tf } from '../tfjs.js';
import { replaceConvolutionOfLayers } from '../tfjs-extensions/conv-layer.js';
import { conv2dGrad } from '../tfjs-extensions/conv2d-grad.js';
import { replaceKernel } from '../tfjs-extensions/replace-kernel.js';
import { adamKernel } from './adam.js';
import {
  fusedBatchNorm,
  replaceTrainingOfBatchNormalization,
  trainingBatchNorm,
  trainingBatchNormGrad,
  trainingBatchNormGradient,
} from './batch-norm.js';
import { biasAdd } from './bias-add.js';
import { concat, pad, slice, splitV } from './concat-split-slice-pad.js';
import { conv2d, conv2dBackpropFilter, conv2dBackpropInput, fusedConv2d } from './convolution/conv2d.js';
import { depthwiseConv2dBackpropFilter } from './convolution/depthwise-conv2d-backprop-filter.js';
import { depthwiseConv2dBackpropInput } from './convolution/depthwise-conv2d-backprop-input.js';
import { cast, identity } from './identity-cast.js';
import { batchMatMul, fusedMatMul } from './mat-mul.js';
import { avgPoolGrad, avgPoolKernel, maxPoolGrad, maxPoolKernel } from './pool.js';
import { mean, sum } from './reduce-sum-mean.js';
import { leakyRelu, leakyReluGrad, relu, reluGradient } from './relu.js';
import { unsortedSegmentSum } from './unsorted-segment-sum.js';
import { WASM } from './wasm-kernel.js';

/** Call once for a `tf`, after the WASM backend has started. */
export function registerTrainingKernels(tf: Tf, loops: ComputePrimitives): void {
  const added = [
    conv2dBackpropFilter(tf, loops),
    depthwiseConv2dBackpropFilter(tf, loops),
    depthwiseConv2dBackpropInput(tf, loops),
    unsortedSegmentSum(tf),
    leakyReluGrad(loops),
    trainingBatchNorm(loops),
    trainingBatchNormGrad(loops),
    adamKernel(loops),
  ];
  for (const kernel of added) tf.registerKernel(kernel);
  const replaced: Record<string, (stock: KernelConfig) => KernelConfig> = {
    [tf.Identity]: () => identity(tf),
    [tf.Cast]: (stock) => cast(tf, stock),
    [tf.AvgPool]: (stock) => avgPoolKernel(tf, loops, stock),
    [tf.MaxPool]: (stock) => maxPoolKernel(tf, loops, stock),
    [tf.MaxPoolGrad]: () => maxPoolGrad(tf, loops),
    [tf.AvgPoolGrad]: () => avgPoolGrad(tf, loops),
    [tf.BatchMatMul]: (stock) => batchMatMul(tf, loops, stock),
    [tf._FusedMatMul]: (stock) => fusedMatMul(tf, loops, stock),
    [tf.Conv2D]: () => conv2d(tf, loops),
    [tf.FusedConv2D]: () => fusedConv2d(tf, loops),
    [tf.Conv2DBackpropInput]: () => conv2dBackpropInput(tf, loops),
    [tf.Add]: (stock) => biasAdd(tf, loops, stock),
    [tf.Sum]: (stock) => sum(tf, loops, stock),
    [tf.Mean]: (stock) => mean(tf, loops, stock),
    [tf.Concat]: (stock) => concat(tf, loops, stock),
    [tf.SplitV]: (stock) => splitV(tf, loops, stock),
    [tf.Slice]: (stock) => slice(tf, loops, stock),
    [tf.PadV2]: (stock) => pad(tf, loops, stock),
    [tf.Relu]: (stock) => relu(tf, loops, stock),
    [tf.LeakyRelu]: (stock) => leakyRelu(tf, loops, stock),
    [tf.FusedBatchNorm]: (stock) => fusedBatchNorm(tf, loops, stock),
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
