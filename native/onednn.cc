/**
 * N-API addon: compute primitives of training with oneDNN (v2 or v3). Tensors are float32 in the layout of TensorFlow: activations
 * [batch, height, width, channels], filters [height, width, in, out]. All functions work on the memory of the typed arrays that they
 * receive, which may be views of a WASM heap, so no tensor is copied.
 *
 * All calls come from one thread. Memory kept between calls is bounded: MAX_CACHED_PRIMITIVES primitives, and one buffer for each
 * operand, as large as the largest so far.
 */
#include <node_api.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
#include <dnnl.hpp>

namespace {

using dnnl::memory;
using dims = memory::dims;
using tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;

const dnnl::engine& cpu() {
  // Never destroyed, like all state here: at exit, oneDNN may still use it.
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& stream() {
  static auto& stream = *new dnnl::stream(cpu());
  return stream;
}

/** Reusable buffer that grows. */
class Buffer {
 public:
  void* ofAtLeast(size_t bytes) {
    if (bytes > bytes_) {
      data_.reset();
      bytes_ = 0;
      data_.reset(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
      if (!data_) throw std::bad_alloc();
      bytes_ = bytes;
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data_;
  size_t bytes_ = 0;
};

// Convolution

enum Direction : int32_t { FORWARD, TO_INPUT, TO_FILTER };
enum Operand { X, FILTER, Y, OPERANDS };

/** In the order of the geometry of `convolve`. */
struct Geometry {
  int32_t batch, height, width, inChannels, outChannels, filterHeight, filterWidth, strideHeight, strideWidth,
      dilationHeight, dilationWidth, top, left, bottom, right;
};
constexpr size_t GEOMETRY = sizeof(Geometry) / sizeof(int32_t);

/** Throws if a size is not positive; padding may be 0 or negative. */
void checkSizes(const Geometry& g) {
  const std::array<int32_t, 11> sizes{g.batch, g.height, g.width, g.inChannels, g.outChannels, g.filterHeight, g.filterWidth,
                                      g.strideHeight, g.strideWidth, g.dilationHeight, g.dilationWidth};
  if (*std::min_element(sizes.begin(), sizes.end()) < 1) throw std::invalid_argument("sizes of a convolution are 1 or more");
}

int64_t outputSize(int64_t size, int64_t filter, int64_t stride, int64_t dilation, int64_t padding) {
  return (size + padding - ((filter - 1) * dilation + 1)) / stride + 1;
}

struct Convolution {
  dnnl::primitive run;
  /** Layout of the caller, and layout of the primitive. */
  std::array<memory::desc, OPERANDS> given, wanted;
  /** Conversion between the two, if they differ. */
  std::array<dnnl::primitive, OPERANDS> reorder;
  memory::desc bias, scratch;
  std::array<size_t, OPERANDS> sizes;

  bool reorders(int operand) const { return static_cast<bool>(reorder[operand]); }
};

template <typename Description>
void describe(Convolution& made, const Description& of, const memory::desc& x, const memory::desc& filter, const memory::desc& y) {
  made.wanted = {x, filter, y};
  made.scratch = of.scratchpad_desc();
}

Convolution makeConvolution(Direction direction, const Geometry& g, bool hasBias) {
  const int64_t rows = outputSize(g.height, g.filterHeight, g.strideHeight, g.dilationHeight, int64_t(g.top) + g.bottom);
  const int64_t columns = outputSize(g.width, g.filterWidth, g.strideWidth, g.dilationWidth, int64_t(g.left) + g.right);
  if (rows <= 0 || columns <= 0) throw std::invalid_argument("the filter is larger than the image");
  const dims xSize{g.batch, g.inChannels, g.height, g.width};
  const dims filterSize{g.outChannels, g.inChannels, g.filterHeight, g.filterWidth};
  const dims ySize{g.batch, g.outChannels, rows, columns};
  const dims strides{g.strideHeight, g.strideWidth}, dilates{g.dilationHeight - 1, g.dilationWidth - 1};
  const dims before{g.top, g.left}, after{g.bottom, g.right};

  Convolution made;
  made.given = {memory::desc(xSize, f32, tag::nhwc), memory::desc(filterSize, f32, tag::hwio), memory::desc(ySize, f32, tag::nhwc)};
  for (int i = 0; i < OPERANDS; i++) made.sizes[i] = made.given[i].get_size() / sizeof(float);
  // oneDNN chooses the layout: that saves more time than the copies cost, especially for the gradient by the filter.
  const memory::desc x(xSize, f32, tag::any), filter(filterSize, f32, tag::any), y(ySize, f32, tag::any);
  if (hasBias) made.bias = memory::desc(dims{g.outChannels}, f32, tag::x);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto kind = dnnl::prop_kind::forward_training;

#if DNNL_VERSION_MAJOR >= 3
  const dnnl::convolution_forward::primitive_desc forward(
      cpu(), kind, algorithm, x, filter, made.bias, y, strides, dilates, before, after, attributes);
#else
  const dnnl::convolution_forward::primitive_desc forward(
      {kind, algorithm, x, filter, made.bias, y, strides, dilates, before, after}, attributes, cpu());
#endif
  if (direction == FORWARD) {
    made.run = dnnl::convolution_forward(forward);
    describe(made, forward, forward.src_desc(), forward.weights_desc(), forward.dst_desc());
  } else if (direction == TO_INPUT) {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_backward_data::primitive_desc back(
        cpu(), algorithm, x, filter, y, strides, dilates, before, after, forward, attributes);
#else
    const dnnl::convolution_backward_data::primitive_desc back(
        {algorithm, x, filter, y, strides, dilates, before, after}, attributes, cpu(), forward);
#endif
    made.run = dnnl::convolution_backward_data(back);
    describe(made, back, back.diff_src_desc(), back.weights_desc(), back.diff_dst_desc());
  } else {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_backward_weights::primitive_desc back(
        cpu(), algorithm, x, filter, y, strides, dilates, before, after, forward, attributes);
#else
    const dnnl::convolution_backward_weights::primitive_desc back(
        {algorithm, x, filter, y, strides, dilates, before, after}, attributes, cpu(), forward);
#endif
    made.run = dnnl::convolution_backward_weights(back);
    describe(made, back, back.src_desc(), back.diff_weights_desc(), back.diff_dst_desc());
  }
  const int output = direction == FORWARD ? Y : direction == TO_INPUT ? X : FILTER;
  for (int i = 0; i < OPERANDS; i++) {
    const auto &from = i == output ? made.wanted[i] : made.given[i], &to = i == output ? made.given[i] : made.wanted[i];
    if (from != to) made.reorder[i] = dnnl::reorder(dnnl::reorder::primitive_desc(cpu(), from, cpu(), to));
  }
  return made;
}

constexpr size_t MAX_CACHED_PRIMITIVES = 512;

/** Creating a primitive takes longer than many runs of it, so the last used ones are cached. */
Convolution& keptConvolution(Direction direction, const Geometry& geometry, bool hasBias) {
  using Entry = std::pair<std::string, Convolution>;
  static auto& entries = *new std::list<Entry>;
  static auto& places = *new std::unordered_map<std::string, std::list<Entry>::iterator>;
  std::string key(reinterpret_cast<const char*>(&geometry), sizeof geometry);
  key.push_back(static_cast<char>(direction * 2 + hasBias));
  const auto known = places.find(key);
  if (known != places.end()) {
    entries.splice(entries.begin(), entries, known->second);
    return entries.front().second;
  }
  entries.emplace_front(key, makeConvolution(direction, geometry, hasBias));
  places[key] = entries.begin();
  if (entries.size() > MAX_CACHED_PRIMITIVES) {
    places.erase(entries.back().first);
    entries.pop_back();
  }
  return entries.front().second;
}

void convolve(Direction direction, const Convolution& convolution, std::array<float*, OPERANDS> values, float* bias) {
  static std::array<Buffer, OPERANDS> reordered;
  static Buffer scratch;
  const int output = direction == FORWARD ? Y : direction == TO_INPUT ? X : FILTER;
  std::array<memory, OPERANDS> given, used;
  for (int i = 0; i < OPERANDS; i++) {
    given[i] = memory(convolution.given[i], cpu(), values[i]);
    used[i] = !convolution.reorders(i)
                  ? given[i]
                  : memory(convolution.wanted[i], cpu(), reordered[i].ofAtLeast(convolution.wanted[i].get_size()));
    if (convolution.reorders(i) && i != output)
      convolution.reorder[i].execute(stream(), {{DNNL_ARG_FROM, given[i]}, {DNNL_ARG_TO, used[i]}});
  }
  std::unordered_map<int, memory> arguments{
      {direction == TO_INPUT ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, used[X]},
      {direction == TO_FILTER ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, used[FILTER]},
      {direction == FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, used[Y]},
      {DNNL_ARG_SCRATCHPAD, memory(convolution.scratch, cpu(), scratch.ofAtLeast(convolution.scratch.get_size()))}};
  if (bias) arguments.emplace(DNNL_ARG_BIAS, memory(convolution.bias, cpu(), bias));
  convolution.run.execute(stream(), arguments);
  if (convolution.reorders(output))
    convolution.reorder[output].execute(stream(), {{DNNL_ARG_FROM, used[output]}, {DNNL_ARG_TO, given[output]}});
  stream().wait();
}

// Products

/** c[m, n] = a[m, k] b[k, n] + (adds ? c : 0). a and b may be transposed. */
void multiply(bool transposeA, bool transposeB, int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c,
              bool adds = false) {
  const auto status = dnnl::sgemm(transposeA ? 'T' : 'N', transposeB ? 'T' : 'N', m, n, k, 1.f, a, transposeA ? m : k, b,
                                  transposeB ? k : n, adds ? 1.f : 0.f, c, n);
  if (status != dnnl::status::success) throw std::runtime_error("oneDNN refuses the product");
}

/**
 * True if each output pixel depends only on its input pixel: such a convolution is a matrix product, which takes half the time, because
 * it needs no other layout.
 */
bool isOfPixels(const Geometry& g) {
  return g.filterHeight == 1 && g.filterWidth == 1 && g.strideHeight == 1 && g.strideWidth == 1 && g.top == 0 && g.left == 0 &&
         g.bottom == 0 && g.right == 0;
}

void convolvePixels(Direction direction, const Geometry& g, std::array<float*, OPERANDS> values, const float* bias) {
  const int64_t pixels = int64_t(g.batch) * g.height * g.width, in = g.inChannels, out = g.outChannels;
  const auto [x, filter, y] = values;
  if (direction == TO_INPUT) return multiply(false, true, pixels, in, out, y, filter, x);
  if (direction == TO_FILTER) return multiply(true, false, in, out, pixels, x, y, filter);
  if (bias)
    for (int64_t pixel = 0; pixel < pixels; pixel++) std::copy_n(bias, out, y + pixel * out);
  multiply(false, false, pixels, out, in, x, filter, y, bias != nullptr);
}

// Other operations

constexpr int64_t BLOCK = 256;

/** Sums each column of a matrix. Blocks of rows are summed in float32, which is fast, and the blocks in float64. */
void columnSums(const float* x, float* sums, int64_t rows, int64_t columns) {
  std::vector<float> block(columns);
  std::vector<double> all(columns, 0.0);
  for (int64_t begin = 0; begin < rows; begin += BLOCK) {
    std::fill(block.begin(), block.end(), 0.f);
    for (int64_t row = begin; row < std::min(rows, begin + BLOCK); row++)
      for (int64_t c = 0; c < columns; c++) block[c] += x[row * columns + c];
    for (int64_t c = 0; c < columns; c++) all[c] += block[c];
  }
  for (int64_t c = 0; c < columns; c++) sums[c] = static_cast<float>(all[c]);
}

/** y = x if x is positive, otherwise alpha x. Alpha 0 is a plain ReLU. */
void leakyRelu(float alpha, const float* x, float* __restrict y, size_t length) {
  // Both values are computed and one is selected, which avoids a branch.
  for (size_t i = 0; i < length; i++) {
    const float scaled = alpha == 0 ? 0 : alpha * x[i];
    y[i] = x[i] < 0 ? scaled : x[i];
  }
}

void leakyReluGradient(float alpha, const float* x, const float* dy, float* __restrict dx, size_t length) {
  for (size_t i = 0; i < length; i++) dx[i] = dy[i] * (x[i] > 0 ? 1 : alpha);
}

/** y = scale (x - mean) + offset, for each channel. */
void scaleChannels(const float* x, const float* mean, const float* scale, const float* offset, float* __restrict y, int64_t rows,
                   int64_t channels) {
  for (int64_t row = 0; row < rows; row++)
    for (int64_t c = 0; c < channels; c++) y[row * channels + c] = (x[row * channels + c] - mean[c]) * scale[c] + offset[c];
}

/** Computes for each channel the sum of dy and of dy (x - mean), in blocks as in `columnSums`. */
void batchNormSums(const float* x, const float* dy, const float* mean, float* sums, float* products, int64_t rows, int64_t channels) {
  std::vector<float> sum(channels), product(channels);
  std::vector<double> allSums(channels, 0.0), allProducts(channels, 0.0);
  for (int64_t begin = 0; begin < rows; begin += BLOCK) {
    std::fill(sum.begin(), sum.end(), 0.f);
    std::fill(product.begin(), product.end(), 0.f);
    for (int64_t row = begin; row < std::min(rows, begin + BLOCK); row++) {
      const float *xs = x + row * channels, *dys = dy + row * channels;
      float *__restrict toSum = sum.data(), *__restrict toProduct = product.data();
      for (int64_t c = 0; c < channels; c++) {
        toSum[c] += dys[c];
        toProduct[c] += dys[c] * (xs[c] - mean[c]);
      }
    }
    for (int64_t c = 0; c < channels; c++) {
      allSums[c] += sum[c];
      allProducts[c] += product[c];
    }
  }
  std::copy(allSums.begin(), allSums.end(), sums);
  std::copy(allProducts.begin(), allProducts.end(), products);
}

/**
 * Computes mean and variance of each channel relative to the first row, because a mean that is large relative to the deviations would
 * cancel them. Blocks as in `columnSums`.
 */
void channelMoments(const float* x, float* mean, float* variance, int64_t rows, int64_t channels) {
  std::vector<float> sum(channels), square(channels);
  std::vector<double> allSums(channels, 0.0), allSquares(channels, 0.0);
  for (int64_t begin = 0; begin < rows; begin += BLOCK) {
    std::fill(sum.begin(), sum.end(), 0.f);
    std::fill(square.begin(), square.end(), 0.f);
    for (int64_t row = begin; row < std::min(rows, begin + BLOCK); row++) {
      const float* values = x + row * channels;
      float *__restrict toSum = sum.data(), *__restrict toSquare = square.data();
      for (int64_t c = 0; c < channels; c++) {
        const float distance = values[c] - x[c];
        toSum[c] += distance;
        toSquare[c] += distance * distance;
      }
    }
    for (int64_t c = 0; c < channels; c++) {
      allSums[c] += sum[c];
      allSquares[c] += square[c];
    }
  }
  for (int64_t c = 0; c < channels; c++) {
    const double distance = allSums[c] / rows;
    mean[c] = static_cast<float>(x[c] + distance);
    variance[c] = static_cast<float>(std::max(0.0, allSquares[c] / rows - distance * distance));
  }
}

/** dx = scale dy + slope (x - mean) + offset, for each channel. */
void batchNormGradient(const float* x, const float* dy, const float* mean, const float* scale, const float* slope,
                       const float* offset, float* __restrict dx, int64_t rows, int64_t channels) {
  for (int64_t row = 0; row < rows; row++)
    for (int64_t c = 0; c < channels; c++) {
      const int64_t i = row * channels + c;
      dx[i] = scale[c] * dy[i] + slope[c] * (x[i] - mean[c]) + offset[c];
    }
}

/** `first` is 1 - beta1, `second` is 1 - beta2. */
struct AdamHyperparameters {
  float first, second, decay, rate, epsilon;
};

/** One step of Adam. */
void adam(const AdamHyperparameters& n, const float* variable, const float* gradient, const float* first, const float* second,
          float* __restrict toVariable, float* __restrict toFirst, float* __restrict toSecond, size_t length) {
  for (size_t i = 0; i < length; i++) {
    const float g = gradient[i] + n.decay * variable[i];
    const float m = first[i] + n.first * (g - first[i]);
    const float v = second[i] + n.second * (g * g - second[i]);
    toFirst[i] = m;
    toSecond[i] = v;
    toVariable[i] = variable[i] - n.rate * m / (std::sqrt(v) + n.epsilon);
  }
}

/** Copies a range of columns of each row of a matrix into another. */
void copyColumns(const float* from, int64_t fromWidth, float* to, int64_t toWidth, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; row++) std::copy_n(from + row * fromWidth, columns, to + row * toWidth);
}

// Functions that JavaScript calls

/** Arguments of a call. Invalid arguments throw. */
class Arguments {
 public:
  Arguments(napi_env env, napi_callback_info info, size_t count) : env_(env), values_(count) {
    size_t given = count;
    napi_get_cb_info(env, info, &given, values_.data(), nullptr, nullptr);
    if (given < count) throw std::invalid_argument("too few arguments");
  }

  int64_t number(size_t i) const {
    int64_t value;
    if (napi_get_value_int64(env_, values_[i], &value) != napi_ok) throw std::invalid_argument("a number is wanted");
    return value;
  }

  double real(size_t i) const {
    double value;
    if (napi_get_value_double(env_, values_[i], &value) != napi_ok) throw std::invalid_argument("a number is wanted");
    return value;
  }

  float* floats(size_t i, size_t length) const { return static_cast<float*>(array(i, napi_float32_array, length)); }
  const int32_t* ints(size_t i, size_t length) const { return static_cast<int32_t*>(array(i, napi_int32_array, length)); }

  bool isNull(size_t i) const {
    napi_valuetype type;
    napi_typeof(env_, values_[i], &type);
    return type == napi_null;
  }

 private:
  void* array(size_t i, napi_typedarray_type wanted, size_t length) const {
    napi_typedarray_type type;
    size_t found;
    void* data;
    if (napi_get_typedarray_info(env_, values_[i], &type, &found, &data, nullptr, nullptr) != napi_ok || type != wanted)
      throw std::invalid_argument("a typed array is wanted");
    if (found != length)
      throw std::invalid_argument("an array has " + std::to_string(found) + " values in place of " + std::to_string(length));
    return data;
  }

  napi_env env_;
  std::vector<napi_value> values_;
};

/** Converts C++ exceptions to JavaScript errors. */
template <void (*Call)(napi_env, napi_callback_info)>
napi_value guarded(napi_env env, napi_callback_info info) {
  try {
    Call(env, info);
  } catch (const std::exception& error) {
    napi_throw_error(env, nullptr, error.what());
  }
  return nullptr;
}

/** convolve(direction, geometry, x, filter, y, bias | null) */
void callConvolve(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 6);
  const int64_t direction = given.number(0);
  if (direction < FORWARD || direction > TO_FILTER) throw std::invalid_argument("no such direction");
  Geometry geometry;
  std::copy_n(given.ints(1, GEOMETRY), GEOMETRY, reinterpret_cast<int32_t*>(&geometry));
  const bool hasBias = !given.isNull(5);
  if (hasBias && direction != FORWARD) throw std::invalid_argument("a gradient has no bias");
  checkSizes(geometry);
  const auto values = [&](std::array<size_t, OPERANDS> sizes) -> std::array<float*, OPERANDS> {
    return {given.floats(2, sizes[X]), given.floats(3, sizes[FILTER]), given.floats(4, sizes[Y])};
  };
  float* bias = hasBias ? given.floats(5, geometry.outChannels) : nullptr;
  if (isOfPixels(geometry)) {
    const size_t pixels = size_t(geometry.batch) * geometry.height * geometry.width;
    const size_t in = geometry.inChannels, out = geometry.outChannels;
    convolvePixels(static_cast<Direction>(direction), geometry, values({pixels * in, in * out, pixels * out}), bias);
  } else {
    const Convolution& convolution = keptConvolution(static_cast<Direction>(direction), geometry, hasBias);
    convolve(static_cast<Direction>(direction), convolution, values(convolution.sizes), bias);
  }
}

/** multiply([m, n, k, transposeA, transposeB], a, b, c): c[m, n] = a[m, k] b[k, n]; a and b may be transposed. */
void callMultiply(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 4);
  const int32_t* shape = given.ints(0, 5);
  const int64_t m = shape[0], n = shape[1], k = shape[2];
  multiply(shape[3], shape[4], m, n, k, given.floats(1, m * k), given.floats(2, k * n), given.floats(3, m * n));
}

/** columnSums(rows, columns, x, sums) */
void callColumnSums(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 4);
  const int64_t rows = given.number(0), columns = given.number(1);
  columnSums(given.floats(2, rows * columns), given.floats(3, columns), rows, columns);
}

/** leakyRelu(length, alpha, x, y) */
void callLeakyRelu(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 4);
  const size_t length = given.number(0);
  leakyRelu(given.real(1), given.floats(2, length), given.floats(3, length), length);
}

/** leakyReluGradient(length, alpha, x, dy, dx) */
void callLeakyReluGradient(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 5);
  const size_t length = given.number(0);
  leakyReluGradient(given.real(1), given.floats(2, length), given.floats(3, length), given.floats(4, length), length);
}

/** scaleChannels(rows, channels, x, mean, scale, offset, y) */
void callScaleChannels(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 7);
  const int64_t rows = given.number(0), channels = given.number(1), all = rows * channels;
  scaleChannels(given.floats(2, all), given.floats(3, channels), given.floats(4, channels), given.floats(5, channels),
                given.floats(6, all), rows, channels);
}

/** batchNormSums(rows, channels, x, dy, mean, sums, products) */
void callBatchNormSums(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 7);
  const int64_t rows = given.number(0), channels = given.number(1), all = rows * channels;
  batchNormSums(given.floats(2, all), given.floats(3, all), given.floats(4, channels), given.floats(5, channels),
                given.floats(6, channels), rows, channels);
}

/** channelMoments(rows, channels, x, mean, variance) */
void callChannelMoments(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 5);
  const int64_t rows = given.number(0), channels = given.number(1);
  channelMoments(given.floats(2, rows * channels), given.floats(3, channels), given.floats(4, channels), rows, channels);
}

/** batchNormGradient(rows, channels, x, dy, mean, scale, slope, offset, dx) */
void callBatchNormGradient(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 9);
  const int64_t rows = given.number(0), channels = given.number(1), all = rows * channels;
  batchNormGradient(given.floats(2, all), given.floats(3, all), given.floats(4, channels), given.floats(5, channels),
                    given.floats(6, channels), given.floats(7, channels), given.floats(8, all), rows, channels);
}

/** adam(length, beta1, beta2, decay, rate, epsilon, variable, gradient, first, second, toVariable, toFirst, toSecond) */
void callAdam(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 13);
  const size_t length = given.number(0);
  const AdamHyperparameters numbers{float(1 - given.real(1)), float(1 - given.real(2)), float(given.real(3)), float(given.real(4)),
                            float(given.real(5))};
  adam(numbers, given.floats(6, length), given.floats(7, length), given.floats(8, length), given.floats(9, length),
       given.floats(10, length), given.floats(11, length), given.floats(12, length), length);
}

/** copyColumns([rows, columns, width and first column of the source, width and first column of the target], from, to) */
void callCopyColumns(napi_env env, napi_callback_info info) {
  const Arguments given(env, info, 3);
  const int32_t* g = given.ints(0, 6);
  const int64_t rows = g[0], columns = g[1];
  for (int i : {2, 4})
    if (columns < 0 || g[i + 1] < 0 || g[i + 1] + columns > g[i]) throw std::invalid_argument("the columns are outside the matrix");
  copyColumns(given.floats(1, rows * g[2]) + g[3], g[2], given.floats(2, rows * g[4]) + g[5], g[4], rows, columns);
}

napi_value init(napi_env env, napi_value exports) {
  const std::array<std::pair<const char*, napi_callback>, 11> functions{{{"convolve", guarded<callConvolve>},
                                                                        {"multiply", guarded<callMultiply>},
                                                                        {"columnSums", guarded<callColumnSums>},
                                                                        {"leakyRelu", guarded<callLeakyRelu>},
                                                                        {"leakyReluGradient", guarded<callLeakyReluGradient>},
                                                                        {"scaleChannels", guarded<callScaleChannels>},
                                                                        {"batchNormSums", guarded<callBatchNormSums>},
                                                                        {"channelMoments", guarded<callChannelMoments>},
                                                                        {"batchNormGradient", guarded<callBatchNormGradient>},
                                                                        {"adam", guarded<callAdam>},
                                                                        {"copyColumns", guarded<callCopyColumns>}}};
  for (const auto& [name, callback] : functions) {
    napi_value function;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &function);
    napi_set_named_property(env, exports, name, function);
  }
  const dnnl_version_t* version = dnnl_version();
  const std::string text =
      std::to_string(version->major) + '.' + std::to_string(version->minor) + '.' + std::to_string(version->patch);
  napi_value value;
  napi_create_string_utf8(env, text.c_str(), text.size(), &value);
  napi_set_named_property(env, exports, "version", value);
  return exports;
}

}  // namespace

NAPI_MODULE(onednn, init)
