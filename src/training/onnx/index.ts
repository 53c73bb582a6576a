/**
 * Writes models as ONNX files (operator set 17) without TensorFlow, with one converter for each layer type. An unknown layer type is
 * refused. Imports no other folder.
 */
export { exportOnnx } from './export-onnx.js';
